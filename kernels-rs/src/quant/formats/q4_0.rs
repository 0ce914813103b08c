//! Q4_0: 32 numbers of four bits with a scale; number = d · (q − 8).
//!
//! Block: `d: f16`, 16 bytes of numbers. The plane holds q − 8 in two's complement: four bits in
//! the upper half of a byte are 16 · (q − 8).

use super::host::{Ggml, Rule};

pub use items::Q4_0;

#[kernel_dsl::device]
mod items {
    use super::super::device::*;
    use kernel_dsl::prelude::*;

    /// Marker of the format.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Q4_0;

    /// A unit as it is loaded.
    #[derive(Clone, Copy)]
    pub struct LoadedQ4_0 {
        q: [u32; 4],
        d: u16,
    }

    impl BlockFormat for Q4_0 {
        const NUMBERS: usize = 32;
        const BYTES: usize = 18;
        const SCALED: bool = true;
        const HALVES: bool = false;
        const MINS: bool = false;
        const STEP: f32 = 0.0625;

        fn code(block: View<u8, 1>, i: usize) -> u32 {
            nibble(block, 2, i)
        }
        fn d(block: View<u8, 1>) -> u32 {
            half(block, 0)
        }

        fn words(units: usize) -> usize {
            4 * units
        }
        fn halves(units: usize) -> usize {
            units
        }
        fn pack(
            block: View<u8, 1>,
            _within: usize,
            mut words: ViewMut<u32, 2>,
            mut halves: ViewMut<u16, 2>,
            at: PlaneUnit,
        ) {
            for j in 0..4 {
                words[(at.row, 4 * at.unit + j)] = nibbles(j, |i| Q4_0::code(block, i) ^ 8);
            }
            halves[(at.row, at.unit)] = Q4_0::d(block) as u16;
        }

        type Loaded = LoadedQ4_0;
        fn load(words: View<u32, 2>, halves: View<u16, 2>, at: PlaneUnit) -> LoadedQ4_0 {
            LoadedQ4_0 { q: words.load((at.row, 4 * at.unit)), d: halves[(at.row, at.unit)] }
        }
        fn unpack(loaded: LoadedQ4_0, _unit: usize) -> Unit {
            let scale = float(loaded.d as u32);
            Unit { bytes: signed(spread_nibbles(loaded.q, 4)), scale: [scale; 2], min: [0.0; 2] }
        }
    }
}

impl Ggml for Q4_0 {
    const NAME: &'static str = "Q4_0";
    const CODES: u32 = 16;
    const RULE: Rule = Rule::Largest;
    const WORDS: &'static [usize] = &[32];
    const HALVES16: &'static [usize] = &[8];

    fn value(code: u32) -> i32 {
        code as i32 - 8
    }
}
