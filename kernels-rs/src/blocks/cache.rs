//! Where tokens stand, and the keys and values of those that have been.

use kernel_dsl::Element;
use runtime::{BufferView, BufferViewMut, Error};

/// What a layer is told of its tokens, on the device: in a graph these numbers change from one replay to the next.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    /// `[axes, tokens]`: one row of positions, or time, height and width.
    pub positions: BufferView<'a, u32, 2>,
    /// For each pair of a head which row of positions turns it, `[head / 2]`; see [`Rotary::sections`](crate::rotary::Rotary::sections).
    pub axes: BufferView<'a, u32, 1>,
    /// The frequency of each pair of a head, `[head / 2]`; see [`Rotary::frequencies`](crate::rotary::Rotary::frequencies).
    pub frequencies: BufferView<'a, f32, 1>,
    /// `[tokens]`: the row of the cache that a token's key and value go to, each its own. Row r of sequence s is s·room + r; a number behind the last
    /// row is of a token that leaves nothing.
    pub slots: BufferView<'a, u32, 1>,
}

/// Keys and values of sequences: `[sequence, group, room, head]` each.
#[derive(Debug)]
pub struct Cache<'a, K: Element> {
    /// Keys, turned.
    pub keys: BufferViewMut<'a, K, 4>,
    /// Values.
    pub values: BufferViewMut<'a, K, 4>,
}

impl<K: Element> Cache<'_, K> {
    /// Keys and values of one sequence, the first so many: `[1, group, length, head]` each.
    ///
    /// # Errors
    /// Where there is no such sequence, or it has less room.
    pub fn of(&mut self, sequence: usize, length: usize) -> Result<[BufferView<'_, K, 4>; 2], Error> {
        fn part<'v, K: Element>(
            view: &'v mut BufferViewMut<'_, K, 4>,
            sequence: usize,
            length: usize,
        ) -> Result<BufferView<'v, K, 4>, Error> {
            let sequence = view.reborrow().shared().slice(sequence..sequence.saturating_add(1))?;
            // Rows first, to cut them.
            sequence.strided().permuted([2, 1, 0, 3])?.slice(0..length)?.permuted([2, 1, 0, 3])?.side_by_side()
        }
        Ok([part(&mut self.keys, sequence, length)?, part(&mut self.values, sequence, length)?])
    }

    /// All of it, to read.
    pub fn views(&mut self) -> [BufferView<'_, K, 4>; 2] {
        [self.keys.reborrow().shared(), self.values.reborrow().shared()]
    }
}
