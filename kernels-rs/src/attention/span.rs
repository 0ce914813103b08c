//! Which queries and keys a block has to do with: the sequences of a batch, and the tiles of keys that a tile of queries looks at.

#![allow(clippy::manual_checked_ops, reason = "kernels have no `checked_div`")]

pub use items::*;

#[kernel_dsl::device]
mod items {
    use kernel_dsl::prelude::*;

    /// A sequence: where its queries and keys lie in the views, and how many there are.
    #[derive(Clone, Copy)]
    pub struct Span {
        /// The row of the first query.
        pub query: usize,
        /// Queries.
        pub queries: usize,
        /// The row of the first key.
        pub key: usize,
        /// Keys.
        pub keys: usize,
    }

    impl Span {
        /// From where to where lie the keys that `rows` queries from `row0` on see, where each sees `left` before its position and `right` behind.
        pub fn seen(&self, row0: usize, rows: usize, left: usize, right: usize) -> (usize, usize) {
            let last = (row0 + rows).min(self.queries) - 1;
            let begin = (row0 + self.keys).saturating_sub(self.queries + left);
            (begin, (last + self.keys + 1 + right).saturating_sub(self.queries).min(self.keys))
        }
    }

    /// Whether a pair of a tile of `queries` queries and [`KEYS`] keys lies beyond `low` or `high`,
    /// where the first key lies `ahead` keys after the position of the first query.
    pub fn is_cut(queries: usize, ahead: i32, low: i32, high: i32) -> bool {
        ahead + KEYS as i32 - 1 > high || ahead - (queries as i32 - 1) < low
    }

    /// How the sequences of a batch lie in memory.
    pub trait Sequences: Copy {
        /// Where sequence `i` is along the views' first dimension.
        fn batch(&self, i: usize) -> usize;

        /// Sequence `i`, of views with so many rows of queries and of keys.
        fn span(&self, i: usize, queries: usize, keys: usize) -> Span;
    }

    /// All of one length, a sequence an index of the views' first dimension.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Whole;

    impl Sequences for Whole {
        fn batch(&self, i: usize) -> usize {
            i
        }

        fn span(&self, _i: usize, queries: usize, keys: usize) -> Span {
            Span { query: 0, queries, key: 0, keys }
        }
    }

    /// Padded to one length, of which each sequence has the first rows.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Padded {
        /// Queries, one number a sequence.
        pub queries: View<u32, 1>,
        /// Keys, one number a sequence.
        pub keys: View<u32, 1>,
    }

    impl Sequences for Padded {
        fn batch(&self, i: usize) -> usize {
            i
        }

        fn span(&self, i: usize, queries: usize, keys: usize) -> Span {
            let (q, k) = (self.queries[i] as usize, self.keys[i] as usize);
            Span { query: 0, queries: q.min(queries), key: 0, keys: k.min(keys) }
        }
    }

    /// One behind the other in views of one batch: sequence i has the rows from the i-th number to the next.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Packed {
        /// Where each sequence's queries begin, and the end of the last.
        pub queries: View<u32, 1>,
        /// The same of keys.
        pub keys: View<u32, 1>,
    }

    impl Sequences for Packed {
        fn batch(&self, _i: usize) -> usize {
            0
        }

        fn span(&self, i: usize, queries: usize, keys: usize) -> Span {
            let q = (self.queries[i] as usize).min(queries);
            let k = (self.keys[i] as usize).min(keys);
            let to = (self.queries[i + 1] as usize).min(queries).max(q);
            let key_to = (self.keys[i + 1] as usize).min(keys).max(k);
            Span { query: q, queries: to - q, key: k, keys: key_to - k }
        }
    }

    /// Keys of a tile.
    pub const KEYS: usize = 64;

    /// The tiles of keys that a tile of queries looks at.
    pub trait Pattern: Copy {
        /// Where the list of tiles begins, and how many they are: of a head's tile of queries that begins at query `row`, which see keys from `begin` to
        /// `end` at most.
        fn tiles(&self, head: usize, row: usize, begin: usize, end: usize) -> (usize, usize);

        /// The first key of the `i`-th tile of the list that begins at `first`.
        fn key(&self, first: usize, i: usize) -> usize;
    }

    /// All of them.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Dense;

    impl Pattern for Dense {
        fn tiles(&self, _head: usize, _row: usize, begin: usize, end: usize) -> (usize, usize) {
            let first = begin / KEYS;
            (first, if begin < end { end.div_ceil(KEYS) - first } else { 0 })
        }

        fn key(&self, first: usize, i: usize) -> usize {
            (first + i) * KEYS
        }
    }

    /// Those that a list has: blocks of [`KEYS`] · 2^`shift` keys, for each block of as many queries.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Listed {
        /// [head, block of queries, and one more]: where its list begins.
        pub rows: View<u32, 2>,
        /// The blocks, by their number.
        pub blocks: View<u32, 1>,
        /// The logarithm of a block's tiles.
        pub shift: usize,
    }

    impl Pattern for Listed {
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
