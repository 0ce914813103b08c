//! Which queries and keys a block has to do with: the sequences of a batch, and the tiles of keys that a tile of queries looks at.

#![allow(clippy::manual_checked_ops, reason = "kernels have no `checked_div`")]

pub use items::*;

#[kernel_dsl::device]
mod items {
    use crate::permute::rows::divided;
    use kernel_dsl::prelude::*;

    /// A sequence: where its queries and keys lie in the views, and how many there are.
    #[derive(Clone, Copy)]
    pub struct Span {
        /// Index of the views' first dimension.
        pub batch: usize,
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

    /// How the sequences of a batch lie in memory.
    pub trait Sequences: Copy {
        /// Sequence `i`, of views with so many rows of queries and of keys.
        fn span(&self, i: usize, queries: usize, keys: usize) -> Span;
    }

    /// All of one length, a sequence an index of the views' first dimension.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Whole;

    impl Sequences for Whole {
        fn span(&self, i: usize, queries: usize, keys: usize) -> Span {
            Span { batch: i, query: 0, queries, key: 0, keys }
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
        fn span(&self, i: usize, queries: usize, keys: usize) -> Span {
            let (q, k) = (self.queries[i] as usize, self.keys[i] as usize);
            Span { batch: i, query: 0, queries: q.min(queries), key: 0, keys: k.min(keys) }
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
        fn span(&self, i: usize, queries: usize, keys: usize) -> Span {
            let q = (self.queries[i] as usize).min(queries);
            let k = (self.keys[i] as usize).min(keys);
            let to = (self.queries[i + 1] as usize).min(queries).max(q);
            let key_to = (self.keys[i + 1] as usize).min(keys).max(k);
            Span { batch: 0, query: q, queries: to - q, key: k, keys: key_to - k }
        }
    }

    /// Keys of a tile.
    pub const KEYS: usize = 64;

    /// What a block has.
    #[derive(Clone, Copy)]
    pub struct Assigned {
        /// The tile of queries.
        pub tile: usize,
        /// Their head.
        pub head: usize,
        /// The piece of a sequence.
        pub other: usize,
        /// Which part of the keys.
        pub part: usize,
    }

    /// In which order blocks have what there is, as the host says it.
    #[derive(Clone, Copy)]
    pub struct Order {
        /// Of undivided keys, the blocks that run at once where tiles have more and less to do, or 0.
        pub wave: usize,
        /// Parts that the keys of a tile of queries are divided into, at most.
        pub parts: usize,
        /// Tiles of keys of a part.
        pub each: usize,
        /// How many more tiles of keys a tile of queries has than the one before; 0 where all have as many.
        pub slope: usize,
    }

    /// The tiles of keys that a tile of queries looks at.
    pub trait Pattern: Copy {
        /// What block `id` of a grid has: a tile of `height` queries, of `rows` tiles, a head, of `heads`, and one of `others` pieces of sequences.
        fn assigned(
            &self,
            id: usize,
            height: usize,
            rows: usize,
            heads: usize,
            others: usize,
            order: Order,
        ) -> Assigned;

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
        /// Without a `wave` in order, so that blocks which run at once share keys. With one, the rows that have most to do come first, and the second
        /// of two waves of blocks runs backwards: so a multiprocessor that has a long one gets a short one beside it. Of divided keys the longest
        /// parts come first: what comes last is short, and evens out what multiprocessors have had.
        fn assigned(
            &self,
            id: usize,
            _height: usize,
            rows: usize,
            heads: usize,
            others: usize,
            order: Order,
        ) -> Assigned {
            let all = heads * others;
            let (tile, other, part) = if order.parts > 1 {
                let (group, other) = divided(id, all);
                if order.slope > 0 {
                    let (rank, part) = divided(group, order.parts);
                    // The part that is as long as the first one of that rank.
                    let later = part * order.each / order.slope;
                    ((rows - 1 - rank + later) % rows, other, part)
                } else {
                    let (part, rank) = divided(group, rows);
                    (rank, other, part)
                }
            } else if order.wave == 0 {
                (id % rows, id / rows, 0)
            } else {
                let (chunk, place) = divided(id, order.wave);
                let last = (rows * all).min(id - place + order.wave) - 1;
                let rank = if chunk % 2 == 1 { last - place } else { id };
                (rows - 1 - rank / all, rank % all, 0)
            };
            Assigned { tile, head: other % heads, other: other / heads, part }
        }

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
        /// Head · blocks of queries + block, those with the longest lists first.
        pub order: View<u32, 1>,
    }

    impl Pattern for Listed {
        /// The longest lists first: what comes last is short, and evens out what multiprocessors have had.
        fn assigned(
            &self,
            id: usize,
            height: usize,
            _rows: usize,
            _heads: usize,
            others: usize,
            order: Order,
        ) -> Assigned {
            let (rank, rest) = divided(id, others * order.parts);
            // Tiles of a block of queries, which are whole.
            let of_block = (KEYS << self.shift) / height;
            let (place, lists) = (self.order[rank / of_block] as usize, self.rows.dim(1) - 1);
            let tile = place % lists * of_block + rank % of_block;
            Assigned { tile, head: place / lists, other: rest % others, part: rest / others }
        }

        fn tiles(&self, head: usize, row: usize, _begin: usize, _end: usize) -> (usize, usize) {
            let list = (row / KEYS) >> self.shift;
            let first = self.rows[(head, list)] as usize;
            (first << self.shift, (self.rows[(head, list + 1)] as usize - first) << self.shift)
        }

        fn key(&self, first: usize, i: usize) -> usize {
            let at = first + i;
            let block = (self.blocks[at >> self.shift] as usize) << self.shift;
            (block | at & ((1 << self.shift) - 1)) * KEYS
        }
    }
}
