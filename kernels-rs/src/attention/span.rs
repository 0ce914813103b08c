//! The ranges of queries and keys of a block: the sequences of a batch, and the tiles of keys that
//! a tile of queries sees.

#![allow(clippy::manual_checked_ops, reason = "kernels have no `checked_div`")]

pub use items::*;

#[kernel_dsl::device]
mod items {
    use kernel_dsl::prelude::*;

    /// A sequence: the positions of its queries and keys in the views, and their numbers.
    #[derive(Clone, Copy)]
    pub struct SequenceSpan {
        /// The row of the first query.
        pub query: usize,
        /// The number of queries.
        pub queries: usize,
        /// The row of the first key.
        pub key: usize,
        /// The number of keys.
        pub keys: usize,
    }

    impl SequenceSpan {
        /// Returns the range of keys that `rows` queries from `row0` on see. Each query sees `left`
        /// keys before its position and `right` after it.
        pub fn visible_keys(&self, row0: usize, rows: usize, left: usize, right: usize) -> (usize, usize) {
            let last = (row0 + rows).min(self.queries) - 1;
            let begin = (row0 + self.keys).saturating_sub(self.queries + left);
            (begin, (last + self.keys + 1 + right).saturating_sub(self.queries).min(self.keys))
        }
    }

    /// Returns whether some pair of a tile of `queries` queries and [`KEYS`] keys has a distance
    /// below `low` or above `high`. The first key is `ahead` keys after the position of the first
    /// query.
    pub fn is_cut(queries: usize, ahead: i32, low: i32, high: i32) -> bool {
        ahead + KEYS as i32 - 1 > high || ahead - (queries as i32 - 1) < low
    }

    /// The layout of a batch of sequences in memory.
    pub trait Sequences: Copy {
        /// Returns the index of sequence `i` in the views' first dimension.
        fn batch(&self, i: usize) -> usize;

        /// Returns sequence `i` of views with `queries` rows of queries and `keys` rows of keys.
        fn span(&self, i: usize, queries: usize, keys: usize) -> SequenceSpan;
    }

    /// Sequences of equal length, one for each index of the views' first dimension.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Whole;

    impl Sequences for Whole {
        fn batch(&self, i: usize) -> usize {
            i
        }

        fn span(&self, _i: usize, queries: usize, keys: usize) -> SequenceSpan {
            SequenceSpan { query: 0, queries, key: 0, keys }
        }
    }

    /// Sequences padded to equal length. A sequence has the first rows of its index.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Padded {
        /// The number of queries of each sequence.
        pub queries: View<u32, 1>,
        /// The number of keys of each sequence.
        pub keys: View<u32, 1>,
    }

    impl Sequences for Padded {
        fn batch(&self, i: usize) -> usize {
            i
        }

        fn span(&self, i: usize, queries: usize, keys: usize) -> SequenceSpan {
            let (q, k) = (self.queries[i] as usize, self.keys[i] as usize);
            SequenceSpan { query: 0, queries: q.min(queries), key: 0, keys: k.min(keys) }
        }
    }

    /// Concatenated sequences in views with a batch of one. Sequence i has the rows from the i-th
    /// number to the next.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Packed {
        /// The first query of each sequence, and the end of the last.
        pub queries: View<u32, 1>,
        /// The first key of each sequence, and the end of the last.
        pub keys: View<u32, 1>,
    }

    impl Sequences for Packed {
        fn batch(&self, _i: usize) -> usize {
            0
        }

        fn span(&self, i: usize, queries: usize, keys: usize) -> SequenceSpan {
            let q = (self.queries[i] as usize).min(queries);
            let k = (self.keys[i] as usize).min(keys);
            let to = (self.queries[i + 1] as usize).min(queries).max(q);
            let key_to = (self.keys[i + 1] as usize).min(keys).max(k);
            SequenceSpan { query: q, queries: to - q, key: k, keys: key_to - k }
        }
    }

    /// Keys of a tile.
    pub const KEYS: usize = 64;

    /// The tiles of keys that a tile of queries sees.
    pub trait MaskPattern: Copy {
        /// Returns the start and the length of the list of tiles for the head's tile of queries
        /// that begins at `row`. These queries see keys from `begin` to `end` at most.
        fn tiles(&self, head: usize, row: usize, begin: usize, end: usize) -> (usize, usize);

        /// Returns the first key of the `i`-th tile of the list that begins at `first`.
        fn key(&self, first: usize, i: usize) -> usize;
    }

    /// All tiles.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Dense;

    impl MaskPattern for Dense {
        fn tiles(&self, _head: usize, _row: usize, begin: usize, end: usize) -> (usize, usize) {
            let first = begin / KEYS;
            (first, if begin < end { end.div_ceil(KEYS) - first } else { 0 })
        }

        fn key(&self, first: usize, i: usize) -> usize {
            (first + i) * KEYS
        }
    }

    /// The tiles of a list of blocks. A block has [`KEYS`] · 2^`shift` queries, and the same number
    /// of keys.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Listed {
        /// The start of each list, [head, block of queries + 1].
        pub rows: View<u32, 2>,
        /// The indices of the blocks.
        pub blocks: View<u32, 1>,
        /// The binary logarithm of the number of tiles of a block.
        pub shift: usize,
    }

    impl MaskPattern for Listed {
        fn tiles(&self, head: usize, row: usize, _begin: usize, _end: usize) -> (usize, usize) {
            let list = (row / KEYS) >> self.shift;
            let first = self.rows[(head, list)] as usize;
            (first << self.shift, (self.rows[(head, list + 1)] as usize - first) << self.shift)
        }

        fn key(&self, first: usize, i: usize) -> usize {
            let at = first + i;
            let block = self.blocks[at >> self.shift] as usize;
            ((block << self.shift) + (at - (at >> self.shift << self.shift))) * KEYS
        }
    }
}
