//! The layouts and element types of the key-value cache.
//!
//! | cache | element type | numbers in an element | scales |
//! |---|---|---|---|
//! | floats | `f32`, `f16`, `bf16` | one | none |
//! | bytes | `i8` | one, from −128 to 127 | an `f32` for each head of each row ([`Scaled`]) |
//! | q8_0 | `i8` | one, from −128 to 127 | an `f16` for each 32 numbers ([`Blocks`]) |
//! | q4_0 | `u32` | eight, from −8 to 7 | an `f16` for each 32 numbers ([`Blocks`]) |
//!
//! The two traits [`StoredElement`] and [`Scales`] describe a format to the kernels.

pub use items::*;

use super::extend::{contiguous, paged};
use crate::operand::{ArrayOperand, refused_operand};
use kernel_dsl::compiler::{ElementType, Scalar};
use kernel_dsl::half::f16;
use runtime::{BufferView, BufferViewMut, Error};

/// The scales of the keys and of the values of a cache.
#[derive(Clone, Copy, Debug)]
pub(super) enum Factors<R, B> {
    /// No scales.
    None,
    /// A scale for each head of each row.
    Rows([R; 2]),
    /// A scale for each 32 numbers.
    Blocks([B; 2]),
}

impl<R: ArrayOperand<3>, B: ArrayOperand<4>> Factors<R, B> {
    /// Rejects scales that do not belong to a cache with elements `K` and the layout `cache`.
    fn check<K: StoredElement>(&self, cache: [[usize; 4]; 2]) -> Result<(), Error> {
        let [[planes, heads, rows, elements], _] = cache;
        let is = |scalar| K::TYPE == ElementType::Scalar(scalar);
        match self {
            Factors::None => Ok(()),
            Factors::Rows(_) if !is(Scalar::I8) => {
                Err(refused_operand::<K, 4>(cache, "scales of rows belong to a cache of bytes".into()))
            }
            Factors::Blocks(_) if !is(Scalar::I8) && K::NUMBERS == 1 => {
                let why = "scales of 32 numbers belong to a cache of bytes (`i8`) or of eight numbers a word (`u32`)";
                Err(refused_operand::<K, 4>(cache, why.into()))
            }
            Factors::Rows(scales) => scales.iter().try_for_each(|scales| {
                let why = "one for each head of each row of the cache";
                scales.expected("the scales of the cache", [planes, heads, rows], why)
            }),
            Factors::Blocks(scales) => scales.iter().try_for_each(|scales| {
                let blocks = (elements * K::NUMBERS).div_ceil(BLOCK);
                let why = "one for each 32 numbers of each head of each row of the cache";
                scales.expected("the scales of the cache", [planes, heads, rows, blocks], why)
            }),
        }
    }
}

/// A cache of keys and values, to read.
///
/// Keys and values are [sequence, head, row, element]; with a table they are
/// [page, head, row of the page, element]. An element of `u32` holds eight numbers of four bits in
/// two's complement, the first in the lowest bits.
#[derive(Clone, Copy, Debug)]
pub struct KvCache<'a, K: StoredElement> {
    pub(super) keys: BufferView<'a, K, 4>,
    pub(super) values: BufferView<'a, K, 4>,
    pub(super) scales: Factors<BufferView<'a, f32, 3>, BufferView<'a, f16, 4>>,
    pub(super) table: Option<BufferView<'a, u32, 2>>,
}

impl<'a, K: StoredElement> KvCache<'a, K> {
    /// Makes a cache with a plane for each sequence and without scales.
    pub fn new(keys: BufferView<'a, K, 4>, values: BufferView<'a, K, 4>) -> Self {
        KvCache { keys, values, scales: Factors::None, table: None }
    }

    /// Sets the page table, [sequence, page of the sequence], whose elements are planes.
    pub fn paged(self, table: BufferView<'a, u32, 2>) -> Self {
        KvCache { table: Some(table), ..self }
    }

    /// Sets the scales of the keys and of the values, [plane, head, row]: a number is its byte
    /// times the scale.
    pub fn scaled(self, scales: [BufferView<'a, f32, 3>; 2]) -> Self {
        KvCache { scales: Factors::Rows(scales), ..self }
    }

    /// Sets the scales of the keys and of the values, [plane, head, row, block of 32 numbers]. A
    /// cache of `i8` is then in the format q8_0, and one of `u32` in the format q4_0.
    pub fn blocks(self, scales: [BufferView<'a, f16, 4>; 2]) -> Self {
        KvCache { scales: Factors::Blocks(scales), ..self }
    }

    /// Rejects a cache without a plane, or a row of the table, for each sequence.
    pub(super) fn check(&self, sequences: usize) -> Result<(), Error> {
        let layout = [self.keys.extents(), self.keys.strides()];
        planes::<K>(sequences, layout, self.table.as_ref())?;
        self.scales.check::<K>(layout)
    }
}

/// A cache of keys and values, to write: the extents are those of [`KvCache`].
#[derive(Debug)]
pub struct KvCacheMut<'a, K: StoredElement> {
    pub(super) keys: BufferViewMut<'a, K, 4>,
    pub(super) values: BufferViewMut<'a, K, 4>,
    pub(super) scales: Factors<BufferViewMut<'a, f32, 3>, BufferViewMut<'a, f16, 4>>,
    pub(super) table: Option<BufferView<'a, u32, 2>>,
}

impl<'a, K: StoredElement> KvCacheMut<'a, K> {
    /// Makes a cache with a plane for each sequence and without scales.
    pub fn new(keys: BufferViewMut<'a, K, 4>, values: BufferViewMut<'a, K, 4>) -> Self {
        KvCacheMut { keys, values, scales: Factors::None, table: None }
    }

    /// Sets the page table, [sequence, page of the sequence], whose elements are planes.
    pub fn paged(self, table: BufferView<'a, u32, 2>) -> Self {
        KvCacheMut { table: Some(table), ..self }
    }

    /// Sets where the scales of the keys and values are written, [plane, head, row]: the largest
    /// magnitude of a row divided by 127.
    pub fn scaled(self, scales: [BufferViewMut<'a, f32, 3>; 2]) -> Self {
        KvCacheMut { scales: Factors::Rows(scales), ..self }
    }

    /// Sets where the scales are written, with the extents of [`KvCache::blocks`].
    pub fn blocks(self, scales: [BufferViewMut<'a, f16, 4>; 2]) -> Self {
        KvCacheMut { scales: Factors::Blocks(scales), ..self }
    }

    /// Rejects a cache without a plane, or a row of the table, for each sequence.
    pub(super) fn check(&self, sequences: usize) -> Result<(), Error> {
        let layout = [self.keys.extents(), self.keys.strides()];
        planes::<K>(sequences, layout, self.table.as_ref())?;
        self.scales.check::<K>(layout)
    }
}

fn planes<K: StoredElement>(
    sequences: usize,
    layout: [[usize; 4]; 2],
    table: Option<&BufferView<'_, u32, 2>>,
) -> Result<(), Error> {
    match table {
        Some(table) => paged::<K>(sequences, layout, table),
        None => contiguous::<K>(sequences, layout),
    }
}

#[kernel_dsl::device]
mod items {
    use kernel_dsl::prelude::*;

    /// The position of a row in a cache: plane, head and row.
    #[derive(Clone, Copy)]
    pub struct CacheEntry {
        /// The sequence, or the page.
        pub plane: usize,
        /// The key head.
        pub head: usize,
        /// The row of the plane.
        pub row: usize,
    }

    /// The layout of a cache, which maps a sequence's keys to planes and rows.
    pub trait Pages: Copy {
        /// Whether neighboring keys may be in different planes.
        const IN_PAGES: bool;
        /// Returns the plane and row of key `key` of sequence `sequence`. A plane has `rows` rows.
        fn place(&self, sequence: usize, key: usize, rows: usize) -> (usize, usize);

        /// Returns the maximum number of keys of a sequence.
        fn capacity(&self, rows: usize) -> usize;
    }

    /// The layout with one plane for each sequence.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Contiguous;

    impl Pages for Contiguous {
        const IN_PAGES: bool = false;
        fn place(&self, sequence: usize, key: usize, _rows: usize) -> (usize, usize) {
            (sequence, key)
        }

        fn capacity(&self, rows: usize) -> usize {
            rows
        }
    }

    /// The layout with pages: a plane is a page, and a table gives the pages of each sequence, as
    /// in vLLM (Kwon and others, 2023).
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Paged {
        /// The plane of each page, [sequence, page of the sequence].
        pub table: View<u32, 2>,
    }

    impl Pages for Paged {
        const IN_PAGES: bool = true;
        fn place(&self, sequence: usize, key: usize, rows: usize) -> (usize, usize) {
            (self.table[(sequence.min(self.table.rows() - 1), key / rows)] as usize, key % rows)
        }

        fn capacity(&self, rows: usize) -> usize {
            if self.table.rows() == 0 { 0 } else { self.table.cols() * rows }
        }
    }

    /// The numbers that share a scale of a cache in the format q8_0 or q4_0.
    pub const BLOCK: usize = 32;

    /// An element of a cache: a number, or several.
    pub trait StoredElement: Element {
        /// The number of numbers in an element.
        const NUMBERS: usize;
        /// The form in which a lane keeps loaded elements until it needs their numbers.
        type Kept: Copy;
        /// The number of numbers in a `Kept`.
        const KEPT_NUMBERS: usize;
        /// Packs the first `KEPT_NUMBERS` numbers of neighboring elements.
        fn keep(elements: [Self; 4]) -> Self::Kept;
        /// Returns number `i` of `kept`, exactly.
        fn widen(kept: Self::Kept, i: usize) -> f32;
        /// Removes the first `_first` numbers of a format with several numbers an element.
        fn beginning_at(kept: Self::Kept, _first: usize) -> Self::Kept {
            kept
        }
        /// Returns the same as [`widen`](Self::widen) by bit operations and a sum, without an
        /// integer conversion. A conversion has an eighth of the rate of a sum on an H100, and a
        /// quarter on sm_61. This form has more instructions.
        fn widen_by_sum(kept: Self::Kept, i: usize) -> f32 {
            Self::widen(kept, i)
        }
        /// Whether numbers are integers of 8 bits or fewer, which [`dot`](Self::dot) multiplies.
        const INTEGERS: bool = false;
        /// The factor by which results of [`dot`](Self::dot) are multiplied.
        const UNIT: f32 = 1.0;
        /// Packs the `KEPT_NUMBERS` integers of 16 bits that [`dot`](Self::dot) takes.
        fn pack(_q: [i32; 8]) -> [u32; 4] {
            [0; 4]
        }
        /// Returns `sum` plus the products of packed integers and the numbers kept together.
        fn dot(_q: [u32; 4], _kept: Self::Kept, sum: i32) -> i32 {
            sum
        }
        /// Returns the element whose first number is the nearest to `x`, and whose others are 0.
        fn narrow(x: f32) -> Self;
        /// Combines the first numbers of `NUMBERS` neighboring lanes into one element. All lanes of
        /// the warp call it.
        fn joined(self) -> Self;
        /// Returns the scale for numbers from −`depth` to `height`; both arguments are at least 0.
        fn scale(depth: f32, height: f32) -> f32;
    }

    impl StoredElement for f32 {
        const NUMBERS: usize = 1;
        type Kept = f32;
        const KEPT_NUMBERS: usize = 1;
        fn keep(elements: [f32; 4]) -> f32 {
            elements[0]
        }
        fn widen(kept: f32, _i: usize) -> f32 {
            kept
        }
        fn narrow(x: f32) -> f32 {
            x
        }
        fn joined(self) -> f32 {
            self
        }
        fn scale(_depth: f32, _height: f32) -> f32 {
            1.0
        }
    }

    impl StoredElement for f16 {
        const NUMBERS: usize = 1;
        type Kept = f16;
        const KEPT_NUMBERS: usize = 1;
        fn keep(elements: [f16; 4]) -> f16 {
            elements[0]
        }
        fn widen(kept: f16, _i: usize) -> f32 {
            kept.to_f32()
        }
        fn narrow(x: f32) -> f16 {
            f16::from_f32(x)
        }
        fn joined(self) -> f16 {
            self
        }
        fn scale(_depth: f32, _height: f32) -> f32 {
            1.0
        }
    }

    impl StoredElement for bf16 {
        const NUMBERS: usize = 1;
        type Kept = bf16;
        const KEPT_NUMBERS: usize = 1;
        fn keep(elements: [bf16; 4]) -> bf16 {
            elements[0]
        }
        fn widen(kept: bf16, _i: usize) -> f32 {
            kept.to_f32()
        }
        fn narrow(x: f32) -> bf16 {
            bf16::from_f32(x)
        }
        fn joined(self) -> bf16 {
            self
        }
        fn scale(_depth: f32, _height: f32) -> f32 {
            1.0
        }
    }

    impl StoredElement for i8 {
        const NUMBERS: usize = 1;
        type Kept = i32;
        const KEPT_NUMBERS: usize = 4;
        fn keep(elements: [i8; 4]) -> i32 {
            int::word(elements)
        }
        fn widen(kept: i32, i: usize) -> f32 {
            int::extract(kept, (8 * i) as u32, 8) as f32
        }
        fn widen_by_sum(kept: i32, i: usize) -> f32 {
            // 2²³ + n + 128 for a number n: a sum gives n, exactly.
            let bytes = kept as u32 ^ 0x8080_8080;
            f32::from_bits(int::byte_perm(bytes, 0x4b00_0000, 0x7440 + i as u32)) - 8_388_736.0
        }
        const INTEGERS: bool = true;
        fn pack(q: [i32; 8]) -> [u32; 4] {
            [pair(q[0], q[1]), pair(q[2], q[3]), 0, 0]
        }
        fn dot(q: [u32; 4], kept: i32, sum: i32) -> i32 {
            dp2a_hi(q[1] as i32, kept, dp2a_lo(q[0] as i32, kept, sum))
        }
        fn narrow(x: f32) -> i8 {
            x.round_ties_even() as i8
        }
        fn joined(self) -> i8 {
            self
        }
        fn scale(depth: f32, height: f32) -> f32 {
            depth.max(height) / 127.0
        }
    }

    /// Returns two integers of 16 bits in a word.
    fn pair(low: i32, high: i32) -> u32 {
        low as u32 & 0xffff | (high as u32) << 16
    }

    /// Eight numbers of four bits in two's complement, the first in the lowest bits.
    impl StoredElement for u32 {
        const NUMBERS: usize = 8;
        type Kept = u32;
        const KEPT_NUMBERS: usize = 8;
        fn keep(elements: [u32; 4]) -> u32 {
            elements[0]
        }
        fn widen(kept: u32, i: usize) -> f32 {
            // 2²³ + (n + 8)·2⁴ʲ for a number n that is j-th in its half of the word: one fused
            // multiply-add gives n, exactly.
            let half = (kept ^ 0x8888_8888) >> (i / 4 * 16) as u32;
            let shifted = f32::from_bits(half & 15 << (4 * (i % 4)) as u32 | 0x4b00_0000);
            let factor = [1.0, 1.0 / 16.0, 1.0 / 256.0, 1.0f32 / 4096.0][i % 4];
            shifted.mul_add(factor, -8_388_608.0 * factor - 8.0)
        }
        fn beginning_at(kept: u32, first: usize) -> u32 {
            kept >> (4 * first) as u32
        }
        const INTEGERS: bool = true;
        // `dot` has the four bits in the upper half of a byte: the number times 16.
        const UNIT: f32 = 1.0 / 16.0;
        fn pack(q: [i32; 8]) -> [u32; 4] {
            [pair(q[0], q[2]), pair(q[4], q[6]), pair(q[1], q[3]), pair(q[5], q[7])]
        }
        fn dot(q: [u32; 4], kept: u32, sum: i32) -> i32 {
            let (even, odd) = ((kept << 4 & 0xf0f0_f0f0) as i32, (kept & 0xf0f0_f0f0) as i32);
            let sum = dp2a_hi(q[1] as i32, even, dp2a_lo(q[0] as i32, even, sum));
            dp2a_hi(q[3] as i32, odd, dp2a_lo(q[2] as i32, odd, sum))
        }
        fn narrow(x: f32) -> u32 {
            (x.round_ties_even() as i32).clamp(-8, 7) as u32 & 15
        }
        fn joined(self) -> u32 {
            let mut word = self << (4 * (warp::lane() % 8)) as u32;
            for step in unroll(0..3) {
                word |= warp::shuffle_xor(word, 1 << step);
            }
            word
        }
        fn scale(depth: f32, height: f32) -> f32 {
            // The number with the largest magnitude is −8 scales.
            if depth >= height { depth / 8.0 } else { -(height / 8.0) }
        }
    }

    /// The scales that stored numbers are multiplied by.
    pub trait Scales: Copy {
        /// Whether there are scales.
        const SCALED: bool;
        /// A scale as it is stored.
        type Scale: Float;
        /// A scale of 1.
        const ONE: Self::Scale;
        /// Returns the scale of element `d` of a key.
        fn key(&self, at: CacheEntry, d: usize) -> Self::Scale;
        /// Returns the scale of element `d` of a value.
        fn value(&self, at: CacheEntry, d: usize) -> Self::Scale;
    }

    /// No scales.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Unscaled;

    impl Scales for Unscaled {
        const SCALED: bool = false;
        type Scale = f32;
        const ONE: f32 = 1.0;
        fn key(&self, _at: CacheEntry, _d: usize) -> f32 {
            1.0
        }
        fn value(&self, _at: CacheEntry, _d: usize) -> f32 {
            1.0
        }
    }

    /// A scale for each head of each key and each value.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Scaled {
        /// Scales of keys, [plane, head, row].
        pub keys: View<f32, 3>,
        /// Scales of values, [plane, head, row].
        pub values: View<f32, 3>,
    }

    impl Scales for Scaled {
        const SCALED: bool = true;
        type Scale = f32;
        const ONE: f32 = 1.0;
        fn key(&self, at: CacheEntry, _d: usize) -> f32 {
            self.keys[(at.plane, at.head, at.row)]
        }
        fn value(&self, at: CacheEntry, _d: usize) -> f32 {
            self.values[(at.plane, at.head, at.row)]
        }
    }

    /// A scale for each [`BLOCK`] numbers of each head of each key and each value.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Blocks {
        /// Scales of keys, [plane, head, row, block].
        pub keys: View<f16, 4>,
        /// Scales of values, [plane, head, row, block].
        pub values: View<f16, 4>,
    }

    /// Returns the block of element `d`. The shift is cheap enough to be predicated with the load
    /// that follows. The compiler would branch around a division.
    fn block_of(d: usize) -> usize {
        d >> BLOCK.ilog2() as usize
    }

    impl Scales for Blocks {
        const SCALED: bool = true;
        type Scale = f16;
        const ONE: f16 = f16::ONE;
        fn key(&self, at: CacheEntry, d: usize) -> f16 {
            self.keys[(at.plane, at.head, at.row, block_of(d))]
        }
        fn value(&self, at: CacheEntry, d: usize) -> f16 {
            self.values[(at.plane, at.head, at.row, block_of(d))]
        }
    }
}
