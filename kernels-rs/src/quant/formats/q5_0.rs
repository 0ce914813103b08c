//! Q5_0: 32 numbers of five bits with a scale; number = d · (q − 16).
//!
//! Block: `d: f16`, 32 highest bits, 16 bytes of the others. The planes hold q − 16 in two's
//! complement: five bits at the top of a byte are 8 · (q − 16).

use super::host::{Ggml, Rule};

pub use items::Q5_0;

#[kernel_dsl::device]
mod items {
    use super::super::device::*;
    use kernel_dsl::prelude::*;

    /// Marker of the format.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Q5_0;

    /// A unit as it is loaded.
    #[derive(Clone, Copy)]
    pub struct LoadedQ5_0 {
        q: [u32; 4],
        high: u32,
        d: u16,
    }

    impl BlockFormat for Q5_0 {
        const NUMBERS: usize = 32;
        const BYTES: usize = 22;
        const SCALED: bool = true;
        const HALVES: bool = false;
        const MINS: bool = false;
        const STEP: f32 = 0.125;

        fn code(block: View<u8, 1>, i: usize) -> u32 {
            nibble(block, 6, i) | (byte(block, 2 + i / 8) >> (i % 8) as u32 & 1) << 4
        }
        fn d(block: View<u8, 1>) -> u32 {
            half(block, 0)
        }

        fn words(units: usize) -> usize {
            5 * units
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
                words[(at.row, 4 * at.unit + j)] = nibbles(j, |i| Q5_0::code(block, i));
            }
            words[(at.row, 4 * at.units + at.unit)] = singles(|i| Q5_0::code(block, i) >> 4 ^ 1);
            halves[(at.row, at.unit)] = Q5_0::d(block) as u16;
        }

        type Loaded = LoadedQ5_0;
        fn load(words: View<u32, 2>, halves: View<u16, 2>, at: PlaneUnit) -> LoadedQ5_0 {
            LoadedQ5_0 {
                q: words.load((at.row, 4 * at.unit)),
                high: words[(at.row, 4 * at.units + at.unit)],
                d: halves[(at.row, at.unit)],
            }
        }
        fn unpack(loaded: LoadedQ5_0, _unit: usize) -> Unit {
            let scale = float(loaded.d as u32);
            let bytes = with_singles(spread_nibbles(loaded.q, 3), loaded.high, 7);
            Unit { bytes: signed(bytes), scale: [scale; 2], min: [0.0; 2] }
        }
    }
}

impl Ggml for Q5_0 {
    const NAME: &'static str = "Q5_0";
    const CODES: u32 = 32;
    const RULE: Rule = Rule::Largest;
    const WORDS: &'static [usize] = &[32, 8];
    const HALVES16: &'static [usize] = &[8];

    fn value(code: u32) -> i32 {
        code as i32 - 16
    }
}
