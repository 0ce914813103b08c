//! The positions of tokens, and the cached keys and values of earlier tokens.

use kernel_dsl::Element;
use runtime::{BufferView, BufferViewMut, Error};

/// The positions, frequencies and cache rows of a layer's tokens, on the device. In a graph the
/// values may change between replays.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    /// `[axes, tokens]`: one row of positions, or time, height and width. Positions are the bits of
    /// `i32`, as those of [`Rotary`](crate::rotary::Rotary).
    pub positions: BufferView<'a, u32, 2>,
    /// The row of positions of each rotated pair of a head, `[head / 2]`; see
    /// [`Rotary::sections`](crate::rotary::Rotary::sections).
    pub axes: BufferView<'a, u32, 1>,
    /// The frequency of each pair of a head, `[head / 2]`. See
    /// [`Rotary::frequencies`](crate::rotary::Rotary::frequencies).
    pub frequencies: BufferView<'a, f32, 1>,
    /// `[tokens]`: the cache row of each token's key and value. No two tokens may have the same
    /// row. Row r of sequence s is s·capacity + r. A token whose number is beyond the last row is
    /// not stored.
    pub slots: BufferView<'a, u32, 1>,
}

/// Keys and values of sequences, each `[sequence, group, capacity, head]`. A group is the query
/// heads that share a key head. A sequence has up to `capacity` tokens.
#[derive(Debug)]
pub struct Cache<'a, K: Element> {
    /// Keys after the rotary embedding.
    pub keys: BufferViewMut<'a, K, 4>,
    /// Values.
    pub values: BufferViewMut<'a, K, 4>,
}

impl<K: Element> Cache<'_, K> {
    /// Returns the first `length` keys and values of one sequence, each `[1, group, length, head]`.
    ///
    /// # Errors
    /// Returns an error if the sequence does not exist, or has fewer rows.
    pub fn of(&mut self, sequence: usize, length: usize) -> Result<[BufferView<'_, K, 4>; 2], Error> {
        fn part<'v, K: Element>(
            view: &'v mut BufferViewMut<'_, K, 4>,
            sequence: usize,
            length: usize,
        ) -> Result<BufferView<'v, K, 4>, Error> {
            let sequence = view.reborrow().shared().slice(sequence..sequence.saturating_add(1))?;
            // Makes rows the first axis, to slice them.
            sequence.strided().permuted([2, 1, 0, 3])?.slice(0..length)?.permuted([2, 1, 0, 3])?.side_by_side()
        }
        Ok([part(&mut self.keys, sequence, length)?, part(&mut self.values, sequence, length)?])
    }

    /// Returns read-only views of all keys and values, with the extents of the cache.
    pub fn views(&mut self) -> [BufferView<'_, K, 4>; 2] {
        [self.keys.reborrow().shared(), self.values.reborrow().shared()]
    }
}
