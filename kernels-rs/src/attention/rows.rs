//! Rows of keys and values, as the kernels of many queries read them.
//!
//! [`Heads`] are the keys or the values of all heads, and [`Rows`] are those of one head of a
//! sequence. A view of floats implements both traits. [`StoredHeads`] lie in a
//! [cache](super::cache), in any of its formats.
//!
//! A thread loads up to four neighboring numbers of a row. The numbers stay as stored, with their
//! scale, during a share of a slice's products. The numbers become `f32` when the thread writes
//! them to shared memory, so that both products read floats, whatever the cache holds:
//!
//! ```text
//!             global memory                      registers of a thread     shared memory
//!   f16       ▒▒ ▒▒ ▒▒ ▒▒                        ▒▒▒▒ ▒▒▒▒             ──▶ four f32
//!   q8_0      ▒ ▒ ▒ ▒     scale of 32 numbers    ▒▒▒▒ and scale        ──▶ four f32: number · scale
//!   q4_0      ▒▒▒▒, eight numbers, and scale     ▒▒▒▒ and scale        ──▶ four f32: number · scale
//! ```
//!
//! The product of a number of at most 8 bits and an `f16` is exact in `f32`.
//!
//! The plane and the row of each key of a step are found once, and lie in shared memory: with
//! pages, this takes a division and a load from the table. [`Rows::find`] stores them.

pub use items::*;

#[kernel_dsl::device]
mod items {
    use super::super::cache::{CacheEntry, Pages, Scales, StoredElement};
    use super::super::span::KEYS;
    use kernel_dsl::prelude::*;

    /// Rows of numbers of a head.
    pub trait Rows: Copy {
        /// The form in which a thread keeps up to four neighboring numbers.
        type Kept: Copy;
        /// The position of a row, from which [`fetch`](Rows::fetch) counts.
        type From: Copy;
        /// Returns four zeros.
        fn zeros() -> Self::Kept;
        /// Returns the `i`-th kept number; the kept numbers begin at column `col`.
        fn number(kept: Self::Kept, col: usize, i: usize) -> f32;
        /// Returns the number of columns.
        fn columns(self) -> usize;
        /// Returns the rows for reading tile `tile` of a step.
        fn of_tile(self, tile: usize) -> Self;
        /// Returns the position of the first row.
        fn start(self) -> Self::From;
        /// Returns the position `rows` rows after `from` in the sequence, and `of_tile` rows after
        /// it in the tile.
        fn after(from: Self::From, rows: usize, of_tile: usize) -> Self::From;
        /// Stores where row `row` lies, for row `of_step` of a step.
        fn find(self, row: usize, of_step: usize);
        /// Loads `N` numbers from column `col` on. The row is `row` rows after `from` in the
        /// sequence, and `of_tile` rows after it in the tile. If `is_row` is false, all numbers are
        /// zeros. With `VECTOR` = 4 there is one access if `first` < `end`, and zeros otherwise.
        /// Otherwise each number is one access, and numbers from column `end` on are zeros.
        #[allow(clippy::too_many_arguments, reason = "the place of the numbers, and their limits")]
        fn fetch<const N: usize, const VECTOR: usize>(
            self,
            from: Self::From,
            row: usize,
            of_tile: usize,
            is_row: bool,
            col: usize,
            first: usize,
            end: usize,
        ) -> Self::Kept;
        /// Loads numbers of any row from column `col` on, as [`fetch`](Rows::fetch) does.
        fn fetch_any<const N: usize, const VECTOR: usize>(
            self,
            row: usize,
            col: usize,
            first: usize,
            end: usize,
        ) -> Self::Kept;
    }

    /// The rows of all sequences and heads.
    pub trait Heads: Copy {
        /// The rows of a head.
        type Rows: Rows;
        /// Whether [`Rows::find`] must precede [`Rows::fetch`].
        const ARE_FOUND: bool;
        /// Returns the number of heads.
        fn heads(self) -> usize;
        /// Returns the number of rows of a head.
        fn rows(self) -> usize;
        /// Returns the number of columns.
        fn columns(self) -> usize;
        /// Returns the rows of a head from row `first` on, in the columns from piece `piece`
        /// on. A piece has `width` columns.
        fn of_head(self, sequence: usize, head: usize, first: usize, piece: usize, width: usize) -> Self::Rows;
    }

    impl<T: Float> Rows for View<T, 2> {
        type Kept = [T; 4];
        type From = View<T, 2>;
        fn zeros() -> [T; 4] {
            [T::from_f32(0.0); 4]
        }
        fn number(kept: [T; 4], _col: usize, i: usize) -> f32 {
            kept[i].to_f32()
        }
        fn columns(self) -> usize {
            self.cols()
        }
        fn of_tile(self, _tile: usize) -> View<T, 2> {
            self
        }
        fn start(self) -> View<T, 2> {
            self
        }
        fn after(from: View<T, 2>, rows: usize, _of_tile: usize) -> View<T, 2> {
            from.offset((rows, 0))
        }
        fn find(self, _row: usize, _of_step: usize) {}
        fn fetch<const N: usize, const VECTOR: usize>(
            self,
            from: View<T, 2>,
            row: usize,
            _of_tile: usize,
            is_row: bool,
            col: usize,
            first: usize,
            end: usize,
        ) -> [T; 4] {
            let mut x = [T::from_f32(0.0); 4];
            if is_row {
                if VECTOR == 4 {
                    if first < end {
                        let few: [T; N] = from.load((row, col));
                        for i in unroll(0..N) {
                            x[i] = few[i];
                        }
                    }
                } else {
                    for i in unroll(0..N) {
                        if col + i < end {
                            x[i] = from[(row, col + i)];
                        }
                    }
                }
            }
            x
        }
        fn fetch_any<const N: usize, const VECTOR: usize>(
            self,
            row: usize,
            col: usize,
            first: usize,
            end: usize,
        ) -> [T; 4] {
            self.fetch::<N, VECTOR>(self, row, 0, true, col, first, end)
        }
    }

    impl<T: Float> Heads for View<T, 4> {
        type Rows = View<T, 2>;
        const ARE_FOUND: bool = false;
        fn heads(self) -> usize {
            self.dim(1)
        }
        fn rows(self) -> usize {
            self.dim(2)
        }
        fn columns(self) -> usize {
            self.dim(3)
        }
        fn of_head(self, sequence: usize, head: usize, first: usize, piece: usize, width: usize) -> View<T, 2> {
            self.at(sequence).at(head).offset((first, piece * width))
        }
    }

    /// Keys, or values, in a cache.
    #[derive(Clone, Copy)]
    pub struct StoredHeads<K: StoredElement, C: Scales, G: Pages> {
        /// The numbers, [plane, head, row, element].
        pub numbers: View<K, 4>,
        /// The scales of keys and of values.
        pub scales: C,
        /// The layout.
        pub pages: G,
        /// Whether these are values.
        pub are_values: bool,
        /// The plane and the row of each key of a step.
        pub places: Shared<u32, 2>,
        /// The number of keys of a step.
        pub step: usize,
    }

    /// Rows of a head of a sequence in a cache.
    #[derive(Clone, Copy)]
    pub struct StoredRows<K: StoredElement, C: Scales, G: Pages> {
        /// The rows of all heads.
        pub of: StoredHeads<K, C, G>,
        /// The sequence.
        pub sequence: usize,
        /// The head.
        pub head: usize,
        /// The first row.
        pub from: StoredFrom,
        /// The first column.
        pub col: usize,
    }

    /// A row of a sequence in a cache.
    #[derive(Clone, Copy)]
    pub struct StoredFrom {
        /// The row.
        pub row: usize,
        /// The row's number in a step.
        pub of_step: usize,
    }

    /// Numbers as a thread keeps them.
    #[derive(Clone, Copy)]
    pub struct StoredNumbers<K: StoredElement, C: Scales> {
        /// Stored bits of the numbers. Only the first is used if it has four numbers or more.
        pub kept: [K::Kept; 4],
        /// The scale of all.
        pub scale: C::Scale,
    }

    impl<K: StoredElement, C: Scales, G: Pages> Heads for StoredHeads<K, C, G> {
        type Rows = StoredRows<K, C, G>;
        const ARE_FOUND: bool = true;
        fn heads(self) -> usize {
            self.numbers.dim(1)
        }
        fn rows(self) -> usize {
            self.pages.capacity(self.numbers.dim(2))
        }
        fn columns(self) -> usize {
            self.numbers.dim(3) * K::NUMBERS
        }
        fn of_head(
            self,
            sequence: usize,
            head: usize,
            first: usize,
            piece: usize,
            width: usize,
        ) -> StoredRows<K, C, G> {
            StoredRows { of: self, sequence, head, from: StoredFrom { row: first, of_step: 0 }, col: piece * width }
        }
    }

    /// Returns the plane of row `row` of a sequence, and the row's index in that plane.
    fn place<K: StoredElement, C: Scales, G: Pages>(rows: StoredRows<K, C, G>, row: usize) -> (usize, usize) {
        let numbers = rows.of.numbers;
        let (plane, row) = rows.of.pages.place(rows.sequence, row, numbers.dim(2));
        // A table may contain any number, so the plane is clamped.
        (if G::IN_PAGES { plane.min(numbers.dim(0) - 1) } else { plane }, row)
    }

    /// Loads `N` = 1, 2 or 4 numbers of row `row` of a plane, from column `col` on. The numbers
    /// share a scale and, if an element has several, an element; unless `is_there`, all are zeros.
    fn stored<K: StoredElement, C: Scales, G: Pages, const N: usize>(
        rows: StoredRows<K, C, G>,
        plane: usize,
        row: usize,
        col: usize,
        is_there: bool,
    ) -> StoredNumbers<K, C> {
        let (numbers, scales) = (rows.of.numbers, rows.of.scales);
        let (head, d) = (rows.head, rows.col + col);
        let at = CacheEntry { plane, head, row };
        // Each load has its own condition, so that it is predicated instead of branched around.
        let mut few = [K::narrow(0.0); 4];
        if is_there {
            if K::NUMBERS == 1 {
                let x: [K; N] = numbers.load((plane, head, row, d));
                for i in unroll(0..N) {
                    few[i] = x[i];
                }
            } else {
                few[0] = numbers[(plane, head, row, d / K::NUMBERS)];
            }
        }
        let mut scale = C::ONE;
        if C::SCALED && is_there {
            scale = if rows.of.are_values { scales.value(at, d) } else { scales.key(at, d) };
        }
        let mut kept = [K::keep(few); 4];
        for i in unroll(1..4 / K::KEPT_NUMBERS) {
            let e = i * K::KEPT_NUMBERS;
            kept[i] = K::keep([few[e], few[(e + 1) % 4], few[(e + 2) % 4], few[(e + 3) % 4]]);
        }
        StoredNumbers { kept, scale }
    }

    impl<K: StoredElement, C: Scales, G: Pages> Rows for StoredRows<K, C, G> {
        type Kept = StoredNumbers<K, C>;
        type From = StoredFrom;
        fn zeros() -> StoredNumbers<K, C> {
            StoredNumbers { kept: [K::keep([K::narrow(0.0); 4]); 4], scale: C::ONE }
        }
        fn number(kept: StoredNumbers<K, C>, col: usize, i: usize) -> f32 {
            // If an element has several numbers, one element holds all that are kept.
            let x = if K::NUMBERS > 1 {
                K::widen(K::beginning_at(kept.kept[0], col % K::NUMBERS), i)
            } else {
                K::widen(kept.kept[i / K::KEPT_NUMBERS], i % K::KEPT_NUMBERS)
            };
            if C::SCALED { x * kept.scale.to_f32() } else { x }
        }
        fn columns(self) -> usize {
            self.of.numbers.dim(3) * K::NUMBERS - self.col
        }
        fn of_tile(self, tile: usize) -> StoredRows<K, C, G> {
            let from = StoredFrom { row: self.from.row, of_step: self.from.of_step + tile * KEYS };
            StoredRows { of: self.of, sequence: self.sequence, head: self.head, from, col: self.col }
        }
        fn start(self) -> StoredFrom {
            self.from
        }
        fn after(from: StoredFrom, rows: usize, of_tile: usize) -> StoredFrom {
            StoredFrom { row: from.row + rows, of_step: from.of_step + of_tile }
        }
        fn find(self, row: usize, of_step: usize) {
            let (plane, row) = place(self, self.from.row + row);
            self.of.places.store((of_step, 0), [plane as u32, row as u32]);
        }
        fn fetch<const N: usize, const VECTOR: usize>(
            self,
            from: StoredFrom,
            _row: usize,
            of_tile: usize,
            is_row: bool,
            col: usize,
            first: usize,
            end: usize,
        ) -> StoredNumbers<K, C> {
            // Loads ahead go past the last key of a step, and what they return is not used.
            let of_step = (from.of_step + of_tile) % self.of.step;
            let at = self.of.places.load::<2>((of_step, 0)).map(|x| x as usize);
            let (plane, row) = (at[0], at[1]);
            stored::<K, C, G, N>(self, plane, row, col, is_row && first < end)
        }
        fn fetch_any<const N: usize, const VECTOR: usize>(
            self,
            row: usize,
            col: usize,
            first: usize,
            end: usize,
        ) -> StoredNumbers<K, C> {
            let (plane, row) = place(self, self.from.row + row);
            stored::<K, C, G, N>(self, plane, row, col, first < end)
        }
    }
}
