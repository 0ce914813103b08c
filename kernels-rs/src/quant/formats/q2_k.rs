//! Q2_K: 256 numbers of two bits in 16 groups; number = d · s · q − m · t.
//!
//! Block: a byte for each group, s in its low half and t above, 64 bytes of numbers, `d, m: f16`.

use super::host::{Ggml, Rule};

pub use items::Q2K;

#[kernel_dsl::device]
mod items {
    use super::super::device::*;
    use kernel_dsl::prelude::*;

    /// Marker of the format.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Q2K;

    /// A unit as it is loaded.
    #[derive(Clone, Copy)]
    pub struct LoadedQ2K {
        q: [u32; 2],
        dm: u32,
        scales: u16,
    }

    impl BlockFormat for Q2K {
        const NUMBERS: usize = 256;
        const BYTES: usize = 84;
        const SCALED: bool = true;
        const HALVES: bool = true;
        const MINS: bool = true;
        const STEP: f32 = 1.0;

        fn code(block: View<u8, 1>, i: usize) -> u32 {
            byte(block, 16 + i / 128 * 32 + i % 32) >> (i / 32 % 4 * 2) as u32 & 3
        }
        fn d(block: View<u8, 1>) -> u32 {
            half(block, 80)
        }
        fn m(block: View<u8, 1>) -> u32 {
            half(block, 82)
        }
        fn scale(block: View<u8, 1>, g: usize) -> u32 {
            byte(block, g) & 15
        }
        fn min(block: View<u8, 1>, g: usize) -> u32 {
            byte(block, g) >> 4
        }
        fn factor(d: u32, scale: u32) -> f32 {
            float(d) * scale as f32
        }
        fn offset(m: u32, min: u32) -> f32 {
            float(m) * min as f32
        }

        fn words(units: usize) -> usize {
            2 * units + units / 8
        }
        fn halves(units: usize) -> usize {
            units
        }
        fn pack(
            block: View<u8, 1>,
            within: usize,
            mut words: ViewMut<u32, 2>,
            mut halves: ViewMut<u16, 2>,
            at: PlaneUnit,
        ) {
            for j in 0..2 {
                words[(at.row, 2 * at.unit + j)] = pairs(j, |i| Q2K::code(block, 32 * within + i));
            }
            halves[(at.row, at.unit)] = (byte(block, 2 * within) | byte(block, 2 * within + 1) << 8) as u16;
            if within == 0 {
                words[(at.row, 2 * at.units + at.unit / 8)] = Q2K::d(block) | Q2K::m(block) << 16;
            }
        }

        type Loaded = LoadedQ2K;
        fn load(words: View<u32, 2>, halves: View<u16, 2>, at: PlaneUnit) -> LoadedQ2K {
            LoadedQ2K {
                q: words.load((at.row, 2 * at.unit)),
                dm: words[(at.row, 2 * at.units + at.unit / 8)],
                scales: halves[(at.row, at.unit)],
            }
        }
        fn unpack(loaded: LoadedQ2K, _unit: usize) -> Unit {
            let (d, m, s) = (loaded.dm, loaded.dm >> 16, loaded.scales as u32);
            Unit {
                bytes: signed(with_pairs([0; 8], loaded.q, 0)),
                scale: [Q2K::factor(d, s & 15), Q2K::factor(d, s >> 8 & 15)],
                min: [Q2K::offset(m, s >> 4 & 15), Q2K::offset(m, s >> 12)],
            }
        }
    }
}

impl Ggml for Q2K {
    const NAME: &'static str = "Q2_K";
    const CODES: u32 = 4;
    const RULE: Rule = Rule::Minima { most: 15 };
    const WORDS: &'static [usize] = &[16, 1];
    const HALVES16: &'static [usize] = &[8];

    fn value(code: u32) -> i32 {
        code as i32
    }
}
