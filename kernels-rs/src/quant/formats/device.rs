//! The interface of a format to kernels, and the layout of its numbers in planes.
//!
//! A *unit* is 32 numbers of a row. A row has several planes, one after another. A plane has a
//! record for each unit, or for each eight units. So the 32 lanes of a warp load 32 units by
//! accesses of 4, 8 or 16 bytes without gaps:
//!
//! ```text
//!   file    │ block: scale, low bits, high bits │ block │ …          2-byte alignment at best
//!
//!   words   │ low bits of unit 0, 1, 2, … │ headers │ high bits of unit 0, 1, 2, … │   u32, 16-byte rows
//!   halves  │ scale of unit 0, 1, 2, … │ …                                          │   u16
//! ```
//!
//! The bits of a record have the order of [`nibbles`], [`pairs`], [`singles`] and [`selectors`], so
//! that few operations convert them to bytes.

pub use items::*;

#[kernel_dsl::device]
mod items {
    use kernel_dsl::prelude::*;

    /// 32 numbers as operands of `dp4a`: number = scale · STEP · byte − min.
    #[derive(Clone, Copy)]
    pub struct Unit {
        /// Word j holds the bytes of numbers 4j to 4j + 3.
        pub bytes: [i32; 8],
        /// Scales of the first and of the last 16 numbers.
        pub scale: [f32; 2],
        /// Minima, which are subtracted from the first and from the last 16 numbers; 0 without
        /// `MINS`.
        pub min: [f32; 2],
    }

    /// A unit of a row of planes.
    #[derive(Clone, Copy)]
    pub struct PlaneUnit {
        /// The row.
        pub row: usize,
        /// The unit of the row.
        pub unit: usize,
        /// Units of each row.
        pub units: usize,
    }

    /// A format of GGML: the fields of its blocks, and the conversion of its planes to operands.
    ///
    /// Fields are read from `block`, the bytes of a row beginning with the block's first byte.
    pub trait BlockFormat: Copy {
        /// Numbers of a block: 32 or 256.
        const NUMBERS: usize;
        /// Bytes of a block.
        const BYTES: usize;
        /// Whether units have scales; otherwise all scales are 1.
        const SCALED: bool;
        /// Whether 16 numbers share a scale instead of 32.
        const HALVES: bool;
        /// Whether a minimum is subtracted.
        const MINS: bool;
        /// Value of a 1 in a byte of a [`Unit`], relative to the scale: a power of two.
        const STEP: f32;

        /// Returns the bits of number `i`.
        fn code(block: View<u8, 1>, i: usize) -> u32;
        /// Returns the bits of the block's scale.
        fn d(block: View<u8, 1>) -> u32;
        /// Returns the bits of the block's minimum.
        fn m(_block: View<u8, 1>) -> u32 {
            0
        }
        /// Returns the bits of the scale of group `g`, of 16 numbers with `HALVES`, otherwise of
        /// 32.
        fn scale(_block: View<u8, 1>, _g: usize) -> u32 {
            0
        }
        /// Returns the bits of the minimum of group `g`.
        fn min(_block: View<u8, 1>, _g: usize) -> u32 {
            0
        }

        /// Returns the scale in `f32`, from the block's bits and the group's.
        fn factor(d: u32, _scale: u32) -> f32 {
            float(d)
        }
        /// Returns the number that is subtracted, from the block's bits and the group's.
        fn offset(_m: u32, _min: u32) -> f32 {
            0.0
        }

        /// Returns the number of words in a row of `units` units.
        fn words(units: usize) -> usize;
        /// Returns the number of `u16` in a row of `units` units.
        fn halves(units: usize) -> usize;
        /// Writes unit `at`, which is unit `within` of `block`. Records that several units share
        /// are written with the first of them.
        fn pack(block: View<u8, 1>, within: usize, words: ViewMut<u32, 2>, halves: ViewMut<u16, 2>, at: PlaneUnit);

        /// A unit as it is loaded.
        type Loaded: Copy;
        /// Loads unit `at`.
        fn load(words: View<u32, 2>, halves: View<u16, 2>, at: PlaneUnit) -> Self::Loaded;
        /// Converts unit `unit` to operands.
        fn unpack(loaded: Self::Loaded, unit: usize) -> Unit;
    }

    /// Returns the number that a 1 in a byte of a unit means. The product is exact: unless `STEP`
    /// is 1, scales are far above the least `f32`.
    pub fn scale_of_one<F: BlockFormat>(scale: f32) -> f32 {
        if F::STEP == 1.0 { scale } else { F::STEP * scale }
    }

    /// Returns byte `at` of a block.
    pub fn byte(block: View<u8, 1>, at: usize) -> u32 {
        block[at] as u32
    }

    /// Returns the 16 bits from byte `at` on.
    pub fn half(block: View<u8, 1>, at: usize) -> u32 {
        block[at] as u32 | (block[at + 1] as u32) << 8
    }

    /// Returns number `i` of 32 whose bytes begin at `at`. The lower halves of the bytes are
    /// numbers 0 to 15, the upper halves numbers 16 to 31.
    pub fn nibble(block: View<u8, 1>, at: usize, i: usize) -> u32 {
        byte(block, at + i % 16) >> (i / 16 * 4) as u32 & 15
    }

    /// Returns the number that the lower 16 bits of `bits` hold as an `f16`.
    pub fn float(bits: u32) -> f32 {
        f16::from_bits((bits & 0xffff) as u16).to_f32()
    }

    /// Returns word `j` of four. Byte b has the four bits of number 4j + b, and above them those of
    /// number 4j + b + 16.
    pub fn nibbles(j: usize, code: impl Fn(usize) -> u32) -> u32 {
        let mut word = 0u32;
        for b in unroll(0..4) {
            word |= (code(4 * j + b) & 15 | (code(4 * j + b + 16) & 15) << 4) << (8 * b) as u32;
        }
        word
    }

    /// Returns word `j` of two. Byte b has two bits of numbers 16j + b, 16j + b + 4, 16j + b + 8
    /// and 16j + b + 12, the first lowest.
    pub fn pairs(j: usize, code: impl Fn(usize) -> u32) -> u32 {
        let mut word = 0u32;
        for b in unroll(0..4) {
            for t in unroll(0..4) {
                word |= (code(16 * j + 4 * t + b) & 3) << (8 * b + 2 * t) as u32;
            }
        }
        word
    }

    /// Returns the word whose byte b has one bit of numbers b, b + 4, … b + 28, the first lowest.
    pub fn singles(code: impl Fn(usize) -> u32) -> u32 {
        let mut word = 0u32;
        for b in unroll(0..4) {
            for t in unroll(0..8) {
                word |= (code(4 * t + b) & 1) << (8 * b + t) as u32;
            }
        }
        word
    }

    /// Returns word `j` of four: the four bits of numbers 8j to 8j + 7, the first lowest.
    pub fn selectors(j: usize, code: impl Fn(usize) -> u32) -> u32 {
        let mut word = 0u32;
        for n in unroll(0..8) {
            word |= (code(8 * j + n) & 15) << (4 * n) as u32;
        }
        word
    }

    /// Shifts the bits of each byte up by `up` − `down` places and keeps those of `mask`. The mask
    /// excludes bits that come from a neighboring byte.
    pub fn shift_bits(word: u32, up: usize, down: usize, mask: u32) -> u32 {
        if up > down { word << (up - down) as u32 & mask } else { word >> (down - up) as u32 & mask }
    }

    /// Returns the bytes of [`nibbles`], with each number's four bits beginning at bit `at` of its
    /// byte, 0 to 4.
    pub fn spread_nibbles(words: [u32; 4], at: usize) -> [u32; 8] {
        let mask = 0x0f0f_0f0fu32 << at as u32;
        let mut bytes = [0u32; 8];
        for j in unroll(0..4) {
            bytes[j] = shift_bits(words[j], at, 0, mask);
            bytes[j + 4] = shift_bits(words[j], at, 4, mask);
        }
        bytes
    }

    /// Adds the bits of [`pairs`], beginning at bit `at` of each byte.
    pub fn with_pairs(bytes: [u32; 8], words: [u32; 2], at: usize) -> [u32; 8] {
        let mut bytes = bytes;
        for j in unroll(0..8) {
            bytes[j] |= shift_bits(words[j / 4], at, j % 4 * 2, 0x0303_0303u32 << at as u32);
        }
        bytes
    }

    /// Adds the bits of [`singles`], at bit `at` of each byte.
    pub fn with_singles(bytes: [u32; 8], word: u32, at: usize) -> [u32; 8] {
        let mut bytes = bytes;
        for j in unroll(0..8) {
            bytes[j] |= shift_bits(word, at, j, 0x0101_0101u32 << at as u32);
        }
        bytes
    }

    /// Returns the bytes that [`selectors`] select from a table of 16, four to a word.
    pub fn selected(words: [u32; 4], table: [u32; 4]) -> [u32; 8] {
        let mut bytes = [0u32; 8];
        for j in unroll(0..4) {
            // Three bits select from either half of the table, the fourth selects the half.
            let which = words[j] & 0x7777_7777;
            let upper = words[j] >> 1 & 0x4444_4444 | 0x3210_3210;
            for h in unroll(0..2) {
                let by = (16 * h) as u32;
                let low = int::byte_perm(table[0], table[1], which >> by);
                let high = int::byte_perm(table[2], table[3], which >> by);
                bytes[2 * j + h] = int::byte_perm(low, high, upper >> by);
            }
        }
        bytes
    }

    /// The table of IQ4_NL and IQ4_XS as bytes.
    pub const NONLINEAR: [u32; 4] = [0xbfad_9881, 0xf6ea_ddcf, 0x2619_0d01, 0x7159_4535];

    /// Twice the floats of MXFP4 as bytes.
    pub const TWICE: [u32; 4] = [0x0302_0100, 0x0c08_0604, 0xfdfe_ff00, 0xf4f8_fafc];

    /// Reads words as signed bytes.
    pub fn signed(words: [u32; 8]) -> [i32; 8] {
        words.map(|word| word as i32)
    }

    /// Returns the scale of unit `u` of 8. The 12 bytes at `at` hold a scale and a minimum of six
    /// bits for each unit of Q4_K and Q5_K.
    pub fn scale_of_six(block: View<u8, 1>, at: usize, u: usize) -> u32 {
        if u < 4 { byte(block, at + u) & 63 } else { byte(block, at + u + 4) & 15 | byte(block, at + u - 4) >> 6 << 4 }
    }

    /// Returns the minimum that belongs to [`scale_of_six`].
    pub fn min_of_six(block: View<u8, 1>, at: usize, u: usize) -> u32 {
        if u < 4 { byte(block, at + u + 4) & 63 } else { byte(block, at + u + 4) >> 4 | byte(block, at + u) >> 6 << 4 }
    }

    /// Returns word `j` of the header of eight units with a scale and a minimum of six bits each.
    /// The words are d and m; the lower four bits of the scales; those of the minima; and for each
    /// unit the two highest bits of its scale, with those of its minimum above them.
    pub fn header_of_six<F: BlockFormat>(_of: F, block: View<u8, 1>, j: usize) -> u32 {
        if j == 0 {
            F::d(block) | F::m(block) << 16
        } else {
            let mut word = 0u32;
            for u in 0..8 {
                let (scale, min) = (F::scale(block, u), F::min(block, u));
                let bits = if j == 1 {
                    scale & 15
                } else if j == 2 {
                    min & 15
                } else {
                    scale >> 4 | min >> 4 << 2
                };
                word |= bits << (4 * u) as u32;
            }
            word
        }
    }

    /// Returns the scale and the minimum of unit `unit` from its header.
    pub fn six_of_header(header: [u32; 4], unit: usize) -> [u32; 2] {
        two_of_six([header[1], header[2], header[3]], unit)
    }

    /// Returns two numbers of six bits of unit `unit` of eight. The lower four bits of each are in
    /// the first two words, and the highest bits of both in the last.
    pub fn two_of_six(words: [u32; 3], unit: usize) -> [u32; 2] {
        let at = (unit % 8 * 4) as u32;
        let high = words[2] >> at;
        let first = int::insert(high, int::extract(words[0], at, 4), 4, 2);
        let second = int::insert(high >> 2, int::extract(words[1], at, 4), 4, 2);
        [first, second]
    }
}
