//! Q4_1: 32 numbers of four bits with a scale and a minimum; number = d · q + m.
//!
//! Block: `d, m: f16`, 16 bytes of numbers.

use super::host::{Ggml, Rule};

pub use items::Q4_1;

#[kernel_dsl::device]
mod items {
    use super::super::device::*;
    use kernel_dsl::prelude::*;

    /// Marker of the format.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Q4_1;

    /// A unit as it is loaded.
    #[derive(Clone, Copy)]
    pub struct LoadedQ4_1 {
        q: [u32; 4],
        dm: u32,
    }

    impl BlockFormat for Q4_1 {
        const NUMBERS: usize = 32;
        const BYTES: usize = 20;
        const SCALED: bool = true;
        const HALVES: bool = false;
        const MINS: bool = true;
        const STEP: f32 = 1.0;

        fn code(block: View<u8, 1>, i: usize) -> u32 {
            nibble(block, 4, i)
        }
        fn d(block: View<u8, 1>) -> u32 {
            half(block, 0)
        }
        fn m(block: View<u8, 1>) -> u32 {
            half(block, 2)
        }
        fn offset(m: u32, _min: u32) -> f32 {
            -float(m)
        }

        fn words(units: usize) -> usize {
            5 * units
        }
        fn halves(_units: usize) -> usize {
            0
        }
        fn pack(
            block: View<u8, 1>,
            _within: usize,
            mut words: ViewMut<u32, 2>,
            _halves: ViewMut<u16, 2>,
            at: PlaneUnit,
        ) {
            for j in 0..4 {
                words[(at.row, 4 * at.unit + j)] = nibbles(j, |i| Q4_1::code(block, i));
            }
            words[(at.row, 4 * at.units + at.unit)] = Q4_1::d(block) | Q4_1::m(block) << 16;
        }

        type Loaded = LoadedQ4_1;
        fn load(words: View<u32, 2>, _halves: View<u16, 2>, at: PlaneUnit) -> LoadedQ4_1 {
            LoadedQ4_1 { q: words.load((at.row, 4 * at.unit)), dm: words[(at.row, 4 * at.units + at.unit)] }
        }
        fn unpack(loaded: LoadedQ4_1, _unit: usize) -> Unit {
            let (scale, min) = (float(loaded.dm), -float(loaded.dm >> 16));
            Unit { bytes: signed(spread_nibbles(loaded.q, 0)), scale: [scale; 2], min: [min; 2] }
        }
    }
}

impl Ggml for Q4_1 {
    const NAME: &'static str = "Q4_1";
    const CODES: u32 = 16;
    const RULE: Rule = Rule::Range;
    const WORDS: &'static [usize] = &[32, 8];
    const HALVES16: &'static [usize] = &[];

    fn value(code: u32) -> i32 {
        code as i32
    }
}
