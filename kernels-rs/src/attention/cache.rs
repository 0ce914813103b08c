//! The layouts and element types of the key-value cache of a decoding step.

pub use items::*;

use super::extend::{contiguous, paged};
use crate::operand::{Operand, refused};
use kernel_dsl::Element;
use kernel_dsl::compiler::{ElementType, Scalar};
use runtime::{BufferView, BufferViewMut, Error};

/// A cache of keys and values, to read.
///
/// Keys and values are [sequence, head, row, element]; with a table they are
/// [page, head, row of the page, element]. A cache of bytes has a scale for each head of each row.
#[derive(Clone, Copy, Debug)]
pub struct KvCache<'a, K: Element> {
    pub(super) keys: BufferView<'a, K, 4>,
    pub(super) values: BufferView<'a, K, 4>,
    pub(super) scales: Option<[BufferView<'a, f32, 3>; 2]>,
    pub(super) table: Option<BufferView<'a, u32, 2>>,
}

impl<'a, K: Element> KvCache<'a, K> {
    /// Makes a cache with a plane for each sequence, of numbers as they are.
    pub fn new(keys: BufferView<'a, K, 4>, values: BufferView<'a, K, 4>) -> Self {
        KvCache { keys, values, scales: None, table: None }
    }

    /// Sets the table of pages, [sequence, page of the sequence], which names the page.
    pub fn paged(self, table: BufferView<'a, u32, 2>) -> Self {
        KvCache { table: Some(table), ..self }
    }

    /// Sets the scales of the keys and of the values, [plane, head, row]: the number is the byte
    /// times the scale.
    pub fn scaled(self, scales: [BufferView<'a, f32, 3>; 2]) -> Self {
        KvCache { scales: Some(scales), ..self }
    }

    /// Rejects a cache that does not fit `sequences` queries.
    pub(super) fn check(&self, sequences: usize) -> Result<(), Error> {
        let layout = [self.keys.extents(), self.keys.strides()];
        planes::<K>(sequences, layout, self.table.as_ref())?;
        self.scales.iter().flatten().try_for_each(|scales| scale_extents::<K>(layout, scales))
    }
}

/// A cache of keys and values, to write: the extents are those of [`KvCache`].
#[derive(Debug)]
pub struct KvCacheMut<'a, K: Element> {
    pub(super) keys: BufferViewMut<'a, K, 4>,
    pub(super) values: BufferViewMut<'a, K, 4>,
    pub(super) scales: Option<[BufferViewMut<'a, f32, 3>; 2]>,
    pub(super) table: Option<BufferView<'a, u32, 2>>,
}

impl<'a, K: Element> KvCacheMut<'a, K> {
    /// Makes a cache with a plane for each sequence, of numbers as they are.
    pub fn new(keys: BufferViewMut<'a, K, 4>, values: BufferViewMut<'a, K, 4>) -> Self {
        KvCacheMut { keys, values, scales: None, table: None }
    }

    /// Sets the table of pages, [sequence, page of the sequence], which names the page.
    pub fn paged(self, table: BufferView<'a, u32, 2>) -> Self {
        KvCacheMut { table: Some(table), ..self }
    }

    /// Sets the scales of the keys and of the values, [plane, head, row]: the largest magnitude of
    /// a row over 127.
    pub fn scaled(self, scales: [BufferViewMut<'a, f32, 3>; 2]) -> Self {
        KvCacheMut { scales: Some(scales), ..self }
    }

    /// Rejects a cache that does not fit `sequences` queries.
    pub(super) fn check(&self, sequences: usize) -> Result<(), Error> {
        let layout = [self.keys.extents(), self.keys.strides()];
        planes::<K>(sequences, layout, self.table.as_ref())?;
        self.scales.iter().flatten().try_for_each(|scales| scale_extents::<K>(layout, scales))
    }
}

fn planes<K: Element>(
    sequences: usize,
    layout: [[usize; 4]; 2],
    table: Option<&BufferView<'_, u32, 2>>,
) -> Result<(), Error> {
    match table {
        Some(table) => paged::<K>(sequences, layout, table),
        None => contiguous::<K>(sequences, layout),
    }
}

/// Rejects scales of a cache that is not of bytes, and scales of other extents than the cache.
fn scale_extents<K: Element>(layout: [[usize; 4]; 2], scales: &impl Operand<3>) -> Result<(), Error> {
    if K::TYPE != ElementType::Scalar(Scalar::I8) {
        return Err(refused::<K, 4>(layout, "scales belong to a cache of bytes".into()));
    }
    let [[planes, heads, rows, _], _] = layout;
    scales.expected("the scales of the cache", [planes, heads, rows], "one for each head of each row of the cache")
}

#[kernel_dsl::device]
mod items {
    use kernel_dsl::prelude::*;

    /// The position of a row in a cache: plane, head and row.
    #[derive(Clone, Copy)]
    pub struct Entry {
        /// The sequence, or the page.
        pub plane: usize,
        /// The key head.
        pub head: usize,
        /// The row of the plane.
        pub row: usize,
    }

    /// The layout of a cache, which maps a sequence's keys to planes and rows.
    pub trait Pages: Copy {
        /// Returns the plane and row of key `key` of sequence `sequence`. A plane has `rows` rows.
        fn place(&self, sequence: usize, key: usize, rows: usize) -> (usize, usize);

        /// Returns the maximum number of keys of a sequence.
        fn room(&self, rows: usize) -> usize;
    }

    /// The layout with one plane for each sequence.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Contiguous;

    impl Pages for Contiguous {
        fn place(&self, sequence: usize, key: usize, _rows: usize) -> (usize, usize) {
            (sequence, key)
        }

        fn room(&self, rows: usize) -> usize {
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
        fn place(&self, sequence: usize, key: usize, rows: usize) -> (usize, usize) {
            (self.table[(sequence.min(self.table.rows() - 1), key / rows)] as usize, key % rows)
        }

        fn room(&self, rows: usize) -> usize {
            if self.table.rows() == 0 { 0 } else { self.table.cols() * rows }
        }
    }

    /// A type of numbers stored in a cache.
    pub trait Stored: Element {
        /// Converts to `f32`, exactly.
        fn widen(self) -> f32;
        /// Converts from `f32` to the nearest value.
        fn narrow(x: f32) -> Self;
    }

    impl Stored for f32 {
        fn widen(self) -> f32 {
            self
        }
        fn narrow(x: f32) -> f32 {
            x
        }
    }

    impl Stored for f16 {
        fn widen(self) -> f32 {
            self.to_f32()
        }
        fn narrow(x: f32) -> f16 {
            f16::from_f32(x)
        }
    }

    impl Stored for bf16 {
        fn widen(self) -> f32 {
            self.to_f32()
        }
        fn narrow(x: f32) -> bf16 {
            bf16::from_f32(x)
        }
    }

    impl Stored for i8 {
        fn widen(self) -> f32 {
            self as f32
        }
        fn narrow(x: f32) -> i8 {
            x.round_ties_even() as i8
        }
    }

    /// The scales that stored numbers are multiplied by.
    pub trait Scales: Copy {
        /// Whether there are scales.
        const SCALED: bool;
        /// Returns the scale of a key.
        fn key(&self, at: Entry) -> f32;
        /// Returns the scale of a value.
        fn value(&self, at: Entry) -> f32;
    }

    /// No scales.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Unscaled;

    impl Scales for Unscaled {
        const SCALED: bool = false;
        fn key(&self, _at: Entry) -> f32 {
            1.0
        }
        fn value(&self, _at: Entry) -> f32 {
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
        fn key(&self, at: Entry) -> f32 {
            self.keys[(at.plane, at.head, at.row)]
        }
        fn value(&self, at: Entry) -> f32 {
            self.values[(at.plane, at.head, at.row)]
        }
    }
}
