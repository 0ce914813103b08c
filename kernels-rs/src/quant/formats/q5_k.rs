//! Q5_K: 256 numbers of five bits in eight groups; number = d · s · q − m · t.
//!
//! Block: `d, m: f16`, 12 bytes with s and t of each group in six bits each, 32 bytes of highest
//! bits, 128 bytes of the others.

use super::host::{Ggml, Rule};

pub use items::Q5K;

#[kernel_dsl::device]
mod items {
    use super::super::device::*;
    use kernel_dsl::prelude::*;

    /// Marker of the format.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Q5K;

    /// A unit as it is loaded.
    #[derive(Clone, Copy)]
    pub struct LoadedQ5K {
        q: [u32; 4],
        header: [u32; 4],
        high: u32,
    }

    impl BlockFormat for Q5K {
        const NUMBERS: usize = 256;
        const BYTES: usize = 176;
        const SCALED: bool = true;
        const HALVES: bool = false;
        const MINS: bool = true;
        const STEP: f32 = 1.0;

        fn code(block: View<u8, 1>, i: usize) -> u32 {
            let low = byte(block, 48 + i / 64 * 32 + i % 32) >> (i / 32 % 2 * 4) as u32 & 15;
            low | (byte(block, 16 + i % 32) >> (i / 32) as u32 & 1) << 4
        }
        fn d(block: View<u8, 1>) -> u32 {
            half(block, 0)
        }
        fn m(block: View<u8, 1>) -> u32 {
            half(block, 2)
        }
        fn scale(block: View<u8, 1>, g: usize) -> u32 {
            scale_of_six(block, 4, g)
        }
        fn min(block: View<u8, 1>, g: usize) -> u32 {
            min_of_six(block, 4, g)
        }
        fn factor(d: u32, scale: u32) -> f32 {
            float(d) * scale as f32
        }
        fn offset(m: u32, min: u32) -> f32 {
            float(m) * min as f32
        }

        fn words(units: usize) -> usize {
            5 * units + units / 2
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
                words[(at.row, 4 * at.unit + j)] = nibbles(j, |i| Q5K::code(block, 32 * within + i));
                if within == 0 {
                    words[(at.row, 4 * at.units + at.unit / 2 + j)] = header_of_six(Q5K, block, j);
                }
            }
            let high = 4 * at.units + at.units / 2 + at.unit;
            words[(at.row, high)] = singles(|i| Q5K::code(block, 32 * within + i) >> 4);
        }

        type Loaded = LoadedQ5K;
        fn load(words: View<u32, 2>, _halves: View<u16, 2>, at: PlaneUnit) -> LoadedQ5K {
            LoadedQ5K {
                q: words.load((at.row, 4 * at.unit)),
                header: words.load((at.row, 4 * at.units + at.unit / 8 * 4)),
                high: words[(at.row, 4 * at.units + at.units / 2 + at.unit)],
            }
        }
        fn unpack(loaded: LoadedQ5K, unit: usize) -> Unit {
            let [scale, min] = six_of_header(loaded.header, unit);
            let (scale, min) = (Q5K::factor(loaded.header[0], scale), Q5K::offset(loaded.header[0] >> 16, min));
            let bytes = with_singles(spread_nibbles(loaded.q, 0), loaded.high, 4);
            Unit { bytes: signed(bytes), scale: [scale; 2], min: [min; 2] }
        }
    }
}

impl Ggml for Q5K {
    const NAME: &'static str = "Q5_K";
    const CODES: u32 = 32;
    const RULE: Rule = Rule::Minima { most: 63 };
    const WORDS: &'static [usize] = &[32, 4, 8];
    const HALVES16: &'static [usize] = &[];

    fn value(code: u32) -> i32 {
        code as i32
    }
}
