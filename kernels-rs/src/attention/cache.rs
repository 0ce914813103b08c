//! The layouts and element types of the key-value cache of a decoding step.

pub use items::*;

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
