//! The number of sequences of a call, from its lists of queries and keys.

use crate::operand::Operand;
use kernel_dsl::Element;
use runtime::{BufferView, Error};

/// Returns the number of padded sequences: the batch of q. Each list must have one number for each
/// sequence.
pub(super) fn padded<T: Element>(
    q: &BufferView<'_, T, 4>,
    [queries, keys]: [&BufferView<'_, u32, 1>; 2],
) -> Result<usize, Error> {
    let [batch, ..] = q.extents();
    queries.expected("the list of queries", [batch], "a number for each sequence of the batch")?;
    keys.expected("the list of keys", [batch], "a number for each sequence of the batch")?;
    Ok(batch)
}

/// Returns the number of concatenated sequences in a batch of one. It is one less than the length
/// of the lists, which end with the end of the last sequence.
pub(super) fn packed<T: Element>(
    q: &BufferView<'_, T, 4>,
    [queries, keys]: [&BufferView<'_, u32, 1>; 2],
) -> Result<usize, Error> {
    let ([batch, ..], [places]) = (q.extents(), queries.extents());
    if batch != 1 {
        let why = format!("q has a batch of {batch}, and concatenated sequences have a batch of one");
        return Err(q.refused(why));
    }
    keys.expected("the list of keys", [places], "the length of the list of queries")?;
    Ok(places.saturating_sub(1))
}
