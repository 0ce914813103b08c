//! Q5_1: 32 numbers of five bits with a scale and a minimum; number = d · q + m.
//!
//! Block: `d, m: f16`, 32 highest bits, 16 bytes of the others.

use super::host::{Ggml, Rule};

pub use items::Q5_1;

#[kernel_dsl::device]
mod items {
    use super::super::device::*;
    use kernel_dsl::prelude::*;

    /// Marker of the format.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Q5_1;

    /// A unit as it is loaded.
    #[derive(Clone, Copy)]
    pub struct LoadedQ5_1 {
        q: [u32; 4],
        rest: [u32; 2],
    }

    impl BlockFormat for Q5_1 {
        const NUMBERS: usize = 32;
        const BYTES: usize = 24;
        const SCALED: bool = true;
        const HALVES: bool = false;
        const MINS: bool = true;
        const STEP: f32 = 1.0;

        fn code(block: View<u8, 1>, i: usize) -> u32 {
            nibble(block, 8, i) | (byte(block, 4 + i / 8) >> (i % 8) as u32 & 1) << 4
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
            6 * units
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
                words[(at.row, 4 * at.unit + j)] = nibbles(j, |i| Q5_1::code(block, i));
            }
            words[(at.row, 4 * at.units + 2 * at.unit)] = Q5_1::d(block) | Q5_1::m(block) << 16;
            words[(at.row, 4 * at.units + 2 * at.unit + 1)] = singles(|i| Q5_1::code(block, i) >> 4);
        }

        type Loaded = LoadedQ5_1;
        fn load(words: View<u32, 2>, _halves: View<u16, 2>, at: PlaneUnit) -> LoadedQ5_1 {
            LoadedQ5_1 { q: words.load((at.row, 4 * at.unit)), rest: words.load((at.row, 4 * at.units + 2 * at.unit)) }
        }
        fn unpack(loaded: LoadedQ5_1, _unit: usize) -> Unit {
            let (scale, min) = (float(loaded.rest[0]), -float(loaded.rest[0] >> 16));
            let bytes = with_singles(spread_nibbles(loaded.q, 0), loaded.rest[1], 4);
            Unit { bytes: signed(bytes), scale: [scale; 2], min: [min; 2] }
        }
    }
}

impl Ggml for Q5_1 {
    const NAME: &'static str = "Q5_1";
    const CODES: u32 = 32;
    const RULE: Rule = Rule::Range;
    const WORDS: &'static [usize] = &[32, 16];
    const HALVES16: &'static [usize] = &[];

    fn value(code: u32) -> i32 {
        code as i32
    }
}
