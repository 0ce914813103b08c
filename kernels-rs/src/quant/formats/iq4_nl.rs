//! IQ4_NL: 32 numbers of four bits, which select from a table, with a scale; number = d ·
//! table\[q\].
//!
//! Block: `d: f16`, 16 bytes of numbers.

use super::host::{Ggml, Rule};

pub use items::Iq4Nl;

#[kernel_dsl::device]
mod items {
    use super::super::device::*;
    use kernel_dsl::prelude::*;

    /// Marker of the format.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Iq4Nl;

    /// A unit as it is loaded.
    #[derive(Clone, Copy)]
    pub struct LoadedIq4Nl {
        q: [u32; 4],
        d: u16,
    }

    impl BlockFormat for Iq4Nl {
        const NUMBERS: usize = 32;
        const BYTES: usize = 18;
        const SCALED: bool = true;
        const HALVES: bool = false;
        const MINS: bool = false;
        const STEP: f32 = 1.0;

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
                words[(at.row, 4 * at.unit + j)] = selectors(j, |i| Iq4Nl::code(block, i));
            }
            halves[(at.row, at.unit)] = Iq4Nl::d(block) as u16;
        }

        type Loaded = LoadedIq4Nl;
        fn load(words: View<u32, 2>, halves: View<u16, 2>, at: PlaneUnit) -> LoadedIq4Nl {
            LoadedIq4Nl { q: words.load((at.row, 4 * at.unit)), d: halves[(at.row, at.unit)] }
        }
        fn unpack(loaded: LoadedIq4Nl, _unit: usize) -> Unit {
            let scale = float(loaded.d as u32);
            Unit { bytes: signed(selected(loaded.q, NONLINEAR)), scale: [scale; 2], min: [0.0; 2] }
        }
    }
}

/// The numbers that four bits select, in units of the scale.
pub(super) const TABLE: [i32; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

impl Ggml for Iq4Nl {
    const NAME: &'static str = "IQ4_NL";
    const CODES: u32 = 16;
    const RULE: Rule = Rule::Largest;
    const WORDS: &'static [usize] = &[32];
    const HALVES16: &'static [usize] = &[8];

    fn value(code: u32) -> i32 {
        TABLE[code as usize]
    }
}
