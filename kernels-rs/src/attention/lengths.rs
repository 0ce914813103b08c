//! How many sequences a call is of, by its lists of queries and keys.

use crate::operand::Operand;
use kernel_dsl::Element;
use runtime::{BufferView, Error};

/// Sequences that are padded to one length: as many as the batch of q has, with a number of queries and one of keys each.
pub(super) fn padded<T: Element>(
    q: &BufferView<'_, T, 4>,
    [queries, keys]: [&BufferView<'_, u32, 1>; 2],
) -> Result<usize, Error> {
    let [batch, ..] = q.extents();
    queries.expected("the list of queries", [batch], "a number for each sequence of the batch")?;
    keys.expected("the list of keys", [batch], "a number for each sequence of the batch")?;
    Ok(batch)
}

/// Sequences that lie one behind the other in a batch of one: one fewer than there are places at which their queries begin, the end of the last among them.
pub(super) fn packed<T: Element>(
    q: &BufferView<'_, T, 4>,
    [queries, keys]: [&BufferView<'_, u32, 1>; 2],
) -> Result<usize, Error> {
    let ([batch, ..], [places]) = (q.extents(), queries.extents());
    if batch != 1 {
        let why = format!("q is a batch of {batch}, and sequences that lie one behind the other are a batch of one");
        return Err(q.refused(why));
    }
    keys.expected("the list of keys", [places], "as many places as the list of queries has")?;
    Ok(places.saturating_sub(1))
}
