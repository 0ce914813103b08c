//! Q6_K: 256 numbers of six bits in 16 groups; number = d · s · (q − 32).
//!
//! Block: 128 bytes of the low four bits, 64 of the high two, s of each group as a signed byte,
//! `d: f16`. The planes hold q − 32 in two's complement: six bits at the top of a byte are
//! 4 · (q − 32).

use super::host::{Ggml, Rule};

pub use items::Q6K;

#[kernel_dsl::device]
mod items {
    use super::super::device::*;
    use kernel_dsl::prelude::*;

    /// Marker of the format.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Q6K;

    /// A unit as it is loaded.
    #[derive(Clone, Copy)]
    pub struct LoadedQ6K {
        q: [u32; 4],
        high: [u32; 2],
        scales: u16,
        d: u16,
    }

    impl BlockFormat for Q6K {
        const NUMBERS: usize = 256;
        const BYTES: usize = 210;
        const SCALED: bool = true;
        const HALVES: bool = true;
        const MINS: bool = false;
        const STEP: f32 = 0.25;

        fn code(block: View<u8, 1>, i: usize) -> u32 {
            let (n, j, l) = (i / 128, i / 32 % 4, i % 32);
            let low = byte(block, 64 * n + j % 2 * 32 + l) >> (j / 2 * 4) as u32 & 15;
            low | (byte(block, 128 + 32 * n + l) >> (2 * j) as u32 & 3) << 4
        }
        fn d(block: View<u8, 1>) -> u32 {
            half(block, 208)
        }
        fn scale(block: View<u8, 1>, g: usize) -> u32 {
            byte(block, 192 + g)
        }
        fn factor(d: u32, scale: u32) -> f32 {
            float(d) * int::extract(scale as i32, 0, 8) as f32
        }

        fn words(units: usize) -> usize {
            6 * units
        }
        fn halves(units: usize) -> usize {
            units + units / 8
        }
        fn pack(
            block: View<u8, 1>,
            within: usize,
            mut words: ViewMut<u32, 2>,
            mut halves: ViewMut<u16, 2>,
            at: PlaneUnit,
        ) {
            for j in 0..4 {
                words[(at.row, 4 * at.unit + j)] = nibbles(j, |i| Q6K::code(block, 32 * within + i));
            }
            for j in 0..2 {
                words[(at.row, 4 * at.units + 2 * at.unit + j)] =
                    pairs(j, |i| Q6K::code(block, 32 * within + i) >> 4 ^ 2);
            }
            halves[(at.row, at.unit)] = (Q6K::scale(block, 2 * within) | Q6K::scale(block, 2 * within + 1) << 8) as u16;
            if within == 0 {
                halves[(at.row, at.units + at.unit / 8)] = Q6K::d(block) as u16;
            }
        }

        type Loaded = LoadedQ6K;
        fn load(words: View<u32, 2>, halves: View<u16, 2>, at: PlaneUnit) -> LoadedQ6K {
            LoadedQ6K {
                q: words.load((at.row, 4 * at.unit)),
                high: words.load((at.row, 4 * at.units + 2 * at.unit)),
                scales: halves[(at.row, at.unit)],
                d: halves[(at.row, at.units + at.unit / 8)],
            }
        }
        fn unpack(loaded: LoadedQ6K, _unit: usize) -> Unit {
            let (d, scales) = (loaded.d as u32, loaded.scales as u32);
            let bytes = with_pairs(spread_nibbles(loaded.q, 2), loaded.high, 6);
            Unit { bytes: signed(bytes), scale: [Q6K::factor(d, scales), Q6K::factor(d, scales >> 8)], min: [0.0; 2] }
        }
    }
}

impl Ggml for Q6K {
    const NAME: &'static str = "Q6_K";
    const CODES: u32 = 64;
    const RULE: Rule = Rule::Groups { least: -128, bias: 0 };
    const WORDS: &'static [usize] = &[32, 16];
    const HALVES16: &'static [usize] = &[8, 1];

    fn value(code: u32) -> i32 {
        code as i32 - 32
    }
}
