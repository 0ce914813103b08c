//! Q3_K: 256 numbers of three bits in 16 groups; number = d · (s − 32) · (q − 4).
//!
//! Block: 32 bytes of highest bits, 64 of the low two, 12 bytes with s of each group in six bits,
//! `d: f16`. The planes hold q − 4 in two's complement: three bits at the top of a byte are
//! 32 · (q − 4).

use super::host::{Ggml, Rule};

pub use items::Q3K;

#[kernel_dsl::device]
mod items {
    use super::super::device::*;
    use kernel_dsl::prelude::*;

    /// Marker of the format.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Q3K;

    /// A unit as it is loaded.
    #[derive(Clone, Copy)]
    pub struct LoadedQ3K {
        q: [u32; 2],
        high: u32,
        scales: [u32; 3],
        d: u16,
    }

    impl BlockFormat for Q3K {
        const NUMBERS: usize = 256;
        const BYTES: usize = 110;
        const SCALED: bool = true;
        const HALVES: bool = true;
        const MINS: bool = false;
        const STEP: f32 = 0.03125;

        fn code(block: View<u8, 1>, i: usize) -> u32 {
            let low = byte(block, 32 + i / 128 * 32 + i % 32) >> (i / 32 % 4 * 2) as u32 & 3;
            low | (byte(block, i % 32) >> (i / 32) as u32 & 1) << 2
        }
        fn d(block: View<u8, 1>) -> u32 {
            half(block, 108)
        }
        fn scale(block: View<u8, 1>, g: usize) -> u32 {
            let low = byte(block, 96 + g % 8) >> (g / 8 * 4) as u32 & 15;
            low | (byte(block, 104 + g % 4) >> (g / 4 * 2) as u32 & 3) << 4
        }
        fn factor(d: u32, scale: u32) -> f32 {
            float(d) * (scale as i32 - 32) as f32
        }

        fn words(units: usize) -> usize {
            3 * units + units / 8 * 3
        }
        fn halves(units: usize) -> usize {
            units / 8
        }
        fn pack(
            block: View<u8, 1>,
            within: usize,
            mut words: ViewMut<u32, 2>,
            mut halves: ViewMut<u16, 2>,
            at: PlaneUnit,
        ) {
            for j in 0..2 {
                words[(at.row, 2 * at.unit + j)] = pairs(j, |i| Q3K::code(block, 32 * within + i));
            }
            words[(at.row, 2 * at.units + at.unit)] = singles(|i| Q3K::code(block, 32 * within + i) >> 2 ^ 1);
            if within == 0 {
                // The words: the low four bits of the scales of units' first groups, those of their
                // last groups, and the highest bits of both.
                for j in 0..3 {
                    let mut word = 0u32;
                    for u in 0..8 {
                        let (first, last) = (Q3K::scale(block, 2 * u), Q3K::scale(block, 2 * u + 1));
                        let bits = if j == 0 {
                            first & 15
                        } else if j == 1 {
                            last & 15
                        } else {
                            first >> 4 | last >> 4 << 2
                        };
                        word |= bits << (4 * u) as u32;
                    }
                    words[(at.row, 3 * at.units + at.unit / 8 * 3 + j)] = word;
                }
                halves[(at.row, at.unit / 8)] = Q3K::d(block) as u16;
            }
        }

        type Loaded = LoadedQ3K;
        fn load(words: View<u32, 2>, halves: View<u16, 2>, at: PlaneUnit) -> LoadedQ3K {
            let scales = 3 * at.units + at.unit / 8 * 3;
            LoadedQ3K {
                q: words.load((at.row, 2 * at.unit)),
                high: words[(at.row, 2 * at.units + at.unit)],
                scales: [words[(at.row, scales)], words[(at.row, scales + 1)], words[(at.row, scales + 2)]],
                d: halves[(at.row, at.unit / 8)],
            }
        }
        fn unpack(loaded: LoadedQ3K, unit: usize) -> Unit {
            let (d, [first, last]) = (loaded.d as u32, two_of_six(loaded.scales, unit));
            let bytes = with_singles(with_pairs([0; 8], loaded.q, 5), loaded.high, 7);
            Unit { bytes: signed(bytes), scale: [Q3K::factor(d, first), Q3K::factor(d, last)], min: [0.0; 2] }
        }
    }
}

impl Ggml for Q3K {
    const NAME: &'static str = "Q3_K";
    const CODES: u32 = 8;
    const RULE: Rule = Rule::Groups { least: -32, bias: 32 };
    const WORDS: &'static [usize] = &[16, 8, 3];
    const HALVES16: &'static [usize] = &[1];

    fn value(code: u32) -> i32 {
        code as i32 - 4
    }
}
