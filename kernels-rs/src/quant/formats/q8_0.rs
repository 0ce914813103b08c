//! Q8_0: 32 bytes with a scale; number = d · q.
//!
//! Block: `d: f16`, 32 signed bytes. A plane holds the first 16 bytes of each block, another the
//! last 16, so that neighboring lanes load neighboring 16 bytes.

use super::host::{Ggml, Rule};

pub use items::Q8_0;

#[kernel_dsl::device]
mod items {
    use super::super::device::*;
    use kernel_dsl::prelude::*;

    /// Marker of the format.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Q8_0;

    /// A unit as it is loaded.
    #[derive(Clone, Copy)]
    pub struct LoadedQ8_0 {
        first: [u32; 4],
        last: [u32; 4],
        d: u16,
    }

    impl BlockFormat for Q8_0 {
        const NUMBERS: usize = 32;
        const BYTES: usize = 34;
        const SCALED: bool = true;
        const HALVES: bool = false;
        const MINS: bool = false;
        const STEP: f32 = 1.0;

        fn code(block: View<u8, 1>, i: usize) -> u32 {
            byte(block, 2 + i)
        }
        fn d(block: View<u8, 1>) -> u32 {
            half(block, 0)
        }

        fn words(units: usize) -> usize {
            8 * units
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
            for j in 0..8 {
                let mut word = 0u32;
                for b in unroll(0..4) {
                    word |= Q8_0::code(block, 4 * j + b) << (8 * b) as u32;
                }
                words[(at.row, j / 4 * 4 * at.units + 4 * at.unit + j % 4)] = word;
            }
            halves[(at.row, at.unit)] = Q8_0::d(block) as u16;
        }

        type Loaded = LoadedQ8_0;
        fn load(words: View<u32, 2>, halves: View<u16, 2>, at: PlaneUnit) -> LoadedQ8_0 {
            LoadedQ8_0 {
                first: words.load((at.row, 4 * at.unit)),
                last: words.load((at.row, 4 * at.units + 4 * at.unit)),
                d: halves[(at.row, at.unit)],
            }
        }
        fn unpack(loaded: LoadedQ8_0, _unit: usize) -> Unit {
            let scale = float(loaded.d as u32);
            let mut bytes = [0u32; 8];
            for j in unroll(0..4) {
                bytes[j] = loaded.first[j];
                bytes[j + 4] = loaded.last[j];
            }
            Unit { bytes: signed(bytes), scale: [scale; 2], min: [0.0; 2] }
        }
    }
}

impl Ggml for Q8_0 {
    const NAME: &'static str = "Q8_0";
    const CODES: u32 = 256;
    const RULE: Rule = Rule::Bytes;
    const WORDS: &'static [usize] = &[32, 32];
    const HALVES16: &'static [usize] = &[8];

    fn value(code: u32) -> i32 {
        i32::from(code as u8 as i8)
    }
}
