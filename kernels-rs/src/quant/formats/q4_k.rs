//! Q4_K: 256 numbers of four bits in eight groups; number = d · s · q − m · t.
//!
//! Block: `d, m: f16`, 12 bytes with s and t of each group in six bits each, 128 bytes of numbers.

use super::host::{Ggml, Rule};

pub use items::Q4K;

#[kernel_dsl::device]
mod items {
    use super::super::device::*;
    use kernel_dsl::prelude::*;

    /// Marker of the format.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Q4K;

    /// A unit as it is loaded.
    #[derive(Clone, Copy)]
    pub struct LoadedQ4K {
        q: [u32; 4],
        header: [u32; 4],
    }

    impl BlockFormat for Q4K {
        const NUMBERS: usize = 256;
        const BYTES: usize = 144;
        const SCALED: bool = true;
        const HALVES: bool = false;
        const MINS: bool = true;
        const STEP: f32 = 1.0;

        fn code(block: View<u8, 1>, i: usize) -> u32 {
            byte(block, 16 + i / 64 * 32 + i % 32) >> (i / 32 % 2 * 4) as u32 & 15
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
            4 * units + units / 2
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
                words[(at.row, 4 * at.unit + j)] = nibbles(j, |i| Q4K::code(block, 32 * within + i));
                if within == 0 {
                    words[(at.row, 4 * at.units + at.unit / 2 + j)] = header_of_six(Q4K, block, j);
                }
            }
        }

        type Loaded = LoadedQ4K;
        fn load(words: View<u32, 2>, _halves: View<u16, 2>, at: PlaneUnit) -> LoadedQ4K {
            LoadedQ4K {
                q: words.load((at.row, 4 * at.unit)),
                header: words.load((at.row, 4 * at.units + at.unit / 8 * 4)),
            }
        }
        fn unpack(loaded: LoadedQ4K, unit: usize) -> Unit {
            let [scale, min] = six_of_header(loaded.header, unit);
            let (scale, min) = (Q4K::factor(loaded.header[0], scale), Q4K::offset(loaded.header[0] >> 16, min));
            Unit { bytes: signed(spread_nibbles(loaded.q, 0)), scale: [scale; 2], min: [min; 2] }
        }
    }
}

impl Ggml for Q4K {
    const NAME: &'static str = "Q4_K";
    const CODES: u32 = 16;
    const RULE: Rule = Rule::Minima { most: 63 };
    const WORDS: &'static [usize] = &[32, 4];
    const HALVES16: &'static [usize] = &[];

    fn value(code: u32) -> i32 {
        code as i32
    }
}
