//! The layout of a call's sequences in memory, and the keys that each query sees.

use super::call::Attention;
use super::score::Score;
use super::span::{self, Dense, MaskPattern, Sequences, Whole};
use crate::operand::ArrayOperand;
use crate::{LaunchStruct, Queue};
use kernel_dsl::Element;
use runtime::{BufferView, Error};

/// Queries, keys and values of attention: Q is [batch, head, query, element], K and V are [batch,
/// head of keys, key, element].
#[derive(Clone, Copy, Debug)]
pub struct Qkv<'a, T: Element> {
    /// Queries.
    pub q: BufferView<'a, T, 4>,
    /// Keys.
    pub k: BufferView<'a, T, 4>,
    /// Values.
    pub v: BufferView<'a, T, 4>,
}

/// The layout of a batch's sequences in Q, K, V and O.
#[derive(Clone, Copy, Debug, Default)]
pub enum Layout<'a> {
    /// Each index of the batch is a sequence, and all have the length of the views.
    #[default]
    Dense,
    /// Each index of the batch is a sequence, padded to the length of the views.
    ///
    /// Sequence i has the first `queries[i]` queries and the first `keys[i]` keys. Rows after these
    /// are not written.
    Padded {
        /// The number of queries of each sequence.
        queries: BufferView<'a, u32, 1>,
        /// The number of keys of each sequence.
        keys: BufferView<'a, u32, 1>,
    },
    /// All sequences lie one after the other in a batch of one.
    ///
    /// Sequence i has the queries from `queries[i]` to `queries[i + 1]`, and its keys likewise.
    /// Rows that belong to no sequence are not written.
    Packed {
        /// Where the queries of each sequence begin, and the end of the last sequence.
        queries: BufferView<'a, u32, 1>,
        /// Where the keys of each sequence begin, and the end of the last sequence.
        keys: BufferView<'a, u32, 1>,
        /// The largest numbers of queries and of keys that a sequence has.
        longest: [usize; 2],
    },
}

/// The tiles of keys that each tile of queries sees, and the tiles of queries that see each tile of
/// keys.
pub(super) struct Patterns<P> {
    pub of_queries: P,
    pub of_keys: P,
}

/// The number of sequences, and the largest numbers of queries and of keys that one has.
#[derive(Clone, Copy)]
pub(super) struct BatchExtent {
    pub sequences: usize,
    pub queries: usize,
    pub keys: usize,
}

/// A pass of attention, generic over the patterns and the sequences that its kernels are compiled
/// for.
pub(super) trait AttentionPass {
    /// Queues the kernels of the pass.
    fn queue<P: MaskPattern + LaunchStruct, S: Sequences + LaunchStruct>(
        self,
        patterns: Patterns<P>,
        sequences: S,
        extent: BatchExtent,
    ) -> Result<(), Error>;
}

impl<M: Score> Attention<'_, M> {
    /// Queues a pass over the sequences and the mask of this call. Memory has `of_keys` keys for
    /// each index of the batch.
    pub(super) fn queue<T: Element>(
        &self,
        on: &impl Queue,
        q: &BufferView<'_, T, 4>,
        of_keys: usize,
        pass: impl AttentionPass,
    ) -> Result<(), Error> {
        let [batch, heads, rows, _] = q.extents();
        let every = Patterns { of_queries: Dense, of_keys: Dense };
        match (self.layout, self.mask) {
            (Layout::Dense, None) => {
                pass.queue(every, Whole, BatchExtent { sequences: batch, queries: rows, keys: of_keys })
            }
            (Layout::Dense, Some(mask)) => {
                let lengths = [rows, of_keys];
                let (queries, keys) = (mask.of_queries(heads, lengths)?, mask.of_keys(heads, lengths)?);
                // SAFETY: the launches are noted as readers of the lists and queued before the
                // borrow of the mask ends. The lists have these extents.
                let patterns = unsafe {
                    Patterns { of_queries: queries.pattern(mask.size()), of_keys: keys.pattern(mask.size()) }
                };
                let extent = BatchExtent { sequences: batch, queries: rows, keys: of_keys };
                queries.reading(on, || keys.reading(on, || pass.queue(patterns, Whole, extent)))
            }
            (Layout::Padded { queries, keys }, None) => {
                queries.expected("the list of queries", [batch], "a number for each sequence of the batch")?;
                keys.expected("the list of keys", [batch], "a number for each sequence of the batch")?;
                // SAFETY: the launches are noted as readers of the buffers and queued before the
                // borrow of the views ends. Both lists have an element for each sequence.
                let sequences = unsafe { span::Padded { queries: queries.detached(), keys: keys.detached() } };
                let extent = BatchExtent { sequences: batch, queries: rows, keys: of_keys };
                on.reading(&queries, || on.reading(&keys, || pass.queue(every, sequences, extent)))
            }
            (Layout::Packed { queries, keys, longest }, None) => {
                if batch != 1 {
                    let why = format!("q is a batch of {batch}, and packed sequences are a batch of 1");
                    return Err(q.refused_operand(why));
                }
                let [places] = queries.extents();
                keys.expected("the list of keys", [places], "the length of the list of queries")?;
                // SAFETY: as for padded sequences. Each list has one element more than there are
                // sequences.
                let sequences = unsafe { span::Packed { queries: queries.detached(), keys: keys.detached() } };
                let extent = BatchExtent {
                    sequences: places.saturating_sub(1),
                    queries: longest[0].min(rows),
                    keys: longest[1].min(of_keys),
                };
                on.reading(&queries, || on.reading(&keys, || pass.queue(every, sequences, extent)))
            }
            (Layout::Padded { .. } | Layout::Packed { .. }, Some(_)) => {
                Err(q.refused_operand("a mask applies to sequences of `Layout::Dense` only".into()))
            }
        }
    }
}
