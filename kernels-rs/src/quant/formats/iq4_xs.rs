//! IQ4_XS: 256 numbers of four bits, which select from a table, in eight groups;
//! number = d · (s − 32) · table\[q\].
//!
//! Block: `d: f16`, the two highest bits of each s, four lower bits of each s, 128 bytes of
//! numbers. The table is that of [`Iq4Nl`](super::Iq4Nl).

use super::host::{Ggml, Rule};

pub use items::Iq4Xs;

#[kernel_dsl::device]
mod items {
    use super::super::device::*;
    use kernel_dsl::prelude::*;

    /// Marker of the format.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Iq4Xs;

    /// A unit as it is loaded.
    #[derive(Clone, Copy)]
    pub struct LoadedIq4Xs {
        q: [u32; 4],
        header: [u32; 2],
    }

    impl BlockFormat for Iq4Xs {
        const NUMBERS: usize = 256;
        const BYTES: usize = 136;
        const SCALED: bool = true;
        const HALVES: bool = false;
        const MINS: bool = false;
        const STEP: f32 = 1.0;

        fn code(block: View<u8, 1>, i: usize) -> u32 {
            nibble(block, 8 + i / 32 * 16, i % 32)
        }
        fn d(block: View<u8, 1>) -> u32 {
            half(block, 0)
        }
        fn scale(block: View<u8, 1>, g: usize) -> u32 {
            let low = byte(block, 4 + g / 2) >> (g % 2 * 4) as u32 & 15;
            low | (half(block, 2) >> (2 * g) as u32 & 3) << 4
        }
        fn factor(d: u32, scale: u32) -> f32 {
            float(d) * (scale as i32 - 32) as f32
        }

        fn words(units: usize) -> usize {
            4 * units + units / 4
        }
        fn halves(_units: usize) -> usize {
            0
        }
        fn pack(
            block: View<u8, 1>,
            within: usize,
            mut words: ViewMut<u32, 2>,
            _halves: ViewMut<u16, 2>,
            at: PlaneUnit,
        ) {
            for j in 0..4 {
                words[(at.row, 4 * at.unit + j)] = selectors(j, |i| Iq4Xs::code(block, 32 * within + i));
            }
            if within == 0 {
                words[(at.row, 4 * at.units + at.unit / 4)] = half(block, 0) | half(block, 2) << 16;
                words[(at.row, 4 * at.units + at.unit / 4 + 1)] = half(block, 4) | half(block, 6) << 16;
            }
        }

        type Loaded = LoadedIq4Xs;
        fn load(words: View<u32, 2>, _halves: View<u16, 2>, at: PlaneUnit) -> LoadedIq4Xs {
            LoadedIq4Xs {
                q: words.load((at.row, 4 * at.unit)),
                header: words.load((at.row, 4 * at.units + at.unit / 8 * 2)),
            }
        }
        fn unpack(loaded: LoadedIq4Xs, unit: usize) -> Unit {
            let (header, u) = (loaded.header, unit % 8);
            let low = int::extract(header[1], (4 * u) as u32, 4);
            let scale = Iq4Xs::factor(header[0], int::insert(header[0] >> (16 + 2 * u) as u32, low, 4, 2));
            Unit { bytes: signed(selected(loaded.q, NONLINEAR)), scale: [scale; 2], min: [0.0; 2] }
        }
    }
}

impl Ggml for Iq4Xs {
    const NAME: &'static str = "IQ4_XS";
    const CODES: u32 = 16;
    const RULE: Rule = Rule::Groups { least: -32, bias: 32 };
    const WORDS: &'static [usize] = &[32, 2];
    const HALVES16: &'static [usize] = &[];

    fn value(code: u32) -> i32 {
        super::iq4_nl::TABLE[code as usize]
    }
}
