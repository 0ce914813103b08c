//! Where the keys and values of a decoding step lie, and as what.

pub use items::*;

#[kernel_dsl::device]
mod items {
    use kernel_dsl::prelude::*;

    /// A row of a cache: its plane, head and place there.
    #[derive(Clone, Copy)]
    pub struct Entry {
        /// The sequence, or the page.
        pub plane: usize,
        /// The head of keys.
        pub head: usize,
        /// The row of the plane.
        pub row: usize,
    }

    /// How a sequence's keys are found.
    pub trait Pages: Copy {
        /// The plane and row of key `key` of sequence `sequence`, of planes with `rows` rows.
        fn place(&self, sequence: usize, key: usize, rows: usize) -> (usize, usize);

        /// How many keys a sequence has room for.
        fn room(&self, rows: usize) -> usize;
    }

    /// A sequence is a plane.
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

    /// A plane is a page, and a table says which pages a sequence has: vLLM's layout (Kwon and others, 2023).
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Paged {
        /// [sequence, page of the sequence]: the page's plane.
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

    /// A number as a cache has it.
    pub trait Stored: Element {
        /// The number.
        fn widen(self) -> f32;
        /// The nearest there is.
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

    /// What a stored number is to be multiplied with.
    pub trait Scales: Copy {
        /// Whether there is anything.
        const SCALED: bool;
        /// Of a key.
        fn key(&self, at: Entry) -> f32;
        /// Of a value.
        fn value(&self, at: Entry) -> f32;
    }

    /// Nothing.
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

    /// A factor for each head of each key and of each value.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Scaled {
        /// [plane, head, row]
        pub keys: View<f32, 3>,
        /// [plane, head, row]
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
