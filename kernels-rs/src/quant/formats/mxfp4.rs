//! MXFP4: 32 numbers of four bits, floats of two bits of exponent and one of mantissa, with a power
//! of two as their scale; number = 2^(e − 128) · table\[q\], where the table holds twice each
//! float.
//!
//! Block: the exponent e as a byte, 16 bytes of numbers (Open Compute Project, *OCP Microscaling
//! Formats (MX) Specification*, 2023, version 1.0).

use super::host::{Ggml, Rule};

pub use items::Mxfp4;

#[kernel_dsl::device]
mod items {
    use super::super::device::*;
    use kernel_dsl::prelude::*;

    /// Marker of the format.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Mxfp4;

    /// A unit as it is loaded.
    #[derive(Clone, Copy)]
    pub struct LoadedMxfp4 {
        q: [u32; 4],
        e: u16,
    }

    impl BlockFormat for Mxfp4 {
        const NUMBERS: usize = 32;
        const BYTES: usize = 17;
        const SCALED: bool = true;
        const HALVES: bool = false;
        const MINS: bool = false;
        const STEP: f32 = 1.0;

        fn code(block: View<u8, 1>, i: usize) -> u32 {
            nibble(block, 1, i)
        }
        fn d(block: View<u8, 1>) -> u32 {
            byte(block, 0)
        }
        fn factor(d: u32, _scale: u32) -> f32 {
            // 2⁻¹²⁸ and 2⁻¹²⁷ are subnormal.
            f32::from_bits(if d < 2 { 0x0020_0000 << d } else { (d - 1) << 23 })
        }

        fn words(units: usize) -> usize {
            4 * units
        }
        fn halves(units: usize) -> usize {
            units.div_ceil(2)
        }
        fn pack(
            block: View<u8, 1>,
            _within: usize,
            mut words: ViewMut<u32, 2>,
            mut halves: ViewMut<u16, 2>,
            at: PlaneUnit,
        ) {
            for j in 0..4 {
                words[(at.row, 4 * at.unit + j)] = selectors(j, |i| Mxfp4::code(block, i));
            }
            // Two exponents share a record: those of an even unit and of the next unit.
            if at.unit & 1 == 0 {
                let next = block.get(17).map_or(0, |e: u8| e as u32);
                halves[(at.row, at.unit / 2)] = (Mxfp4::d(block) | next << 8) as u16;
            }
        }

        type Loaded = LoadedMxfp4;
        fn load(words: View<u32, 2>, halves: View<u16, 2>, at: PlaneUnit) -> LoadedMxfp4 {
            LoadedMxfp4 { q: words.load((at.row, 4 * at.unit)), e: halves[(at.row, at.unit / 2)] }
        }
        fn unpack(loaded: LoadedMxfp4, unit: usize) -> Unit {
            let scale = Mxfp4::factor(loaded.e as u32 >> (unit % 2 * 8) as u32 & 0xff, 0);
            Unit { bytes: signed(selected(loaded.q, TWICE)), scale: [scale; 2], min: [0.0; 2] }
        }
    }
}

/// Twice the numbers that four bits mean.
const TABLE: [i32; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

impl Ggml for Mxfp4 {
    const NAME: &'static str = "MXFP4";
    const CODES: u32 = 16;
    const RULE: Rule = Rule::Exponent;
    const WORDS: &'static [usize] = &[32];
    const HALVES16: &'static [usize] = &[4];

    fn value(code: u32) -> i32 {
        TABLE[code as usize]
    }
}
