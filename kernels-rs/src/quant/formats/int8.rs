//! Bytes with a scale for each row, by which a product is multiplied at its end. GGML has no such
//! format.
//!
//! Block: 32 signed bytes. The planes are those of [`Q8_0`](super::Q8_0) without scales. Zeros
//! follow the last byte of a row.

pub use items::Int8;

#[kernel_dsl::device]
mod items {
    use super::super::device::*;
    use kernel_dsl::prelude::*;

    /// Marker of the format.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Int8;

    /// A unit as it is loaded.
    #[derive(Clone, Copy)]
    pub struct LoadedInt8 {
        first: [u32; 4],
        last: [u32; 4],
    }

    impl BlockFormat for Int8 {
        const NUMBERS: usize = 32;
        const BYTES: usize = 32;
        const SCALED: bool = false;
        const HALVES: bool = false;
        const MINS: bool = false;
        const STEP: f32 = 1.0;

        fn code(block: View<u8, 1>, i: usize) -> u32 {
            block.get(i).map_or(0, |q: u8| q as u32)
        }
        fn d(_block: View<u8, 1>) -> u32 {
            0
        }
        fn factor(_d: u32, _scale: u32) -> f32 {
            1.0
        }

        fn words(units: usize) -> usize {
            8 * units
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
            for j in 0..8 {
                let mut word = 0u32;
                for b in unroll(0..4) {
                    word |= Int8::code(block, 4 * j + b) << (8 * b) as u32;
                }
                words[(at.row, j / 4 * 4 * at.units + 4 * at.unit + j % 4)] = word;
            }
        }

        type Loaded = LoadedInt8;
        fn load(words: View<u32, 2>, _halves: View<u16, 2>, at: PlaneUnit) -> LoadedInt8 {
            LoadedInt8 {
                first: words.load((at.row, 4 * at.unit)),
                last: words.load((at.row, 4 * at.units + 4 * at.unit)),
            }
        }
        fn unpack(loaded: LoadedInt8, _unit: usize) -> Unit {
            let mut bytes = [0u32; 8];
            for j in unroll(0..4) {
                bytes[j] = loaded.first[j];
                bytes[j + 4] = loaded.last[j];
            }
            Unit { bytes: signed(bytes), scale: [1.0; 2], min: [0.0; 2] }
        }
    }
}
