//! The division of long rows into parts, one block per part, if there are too few rows to fill a
//! device.

use crate::Queue;
use crate::operand::ArrayOperand;
use kernel_dsl::Element;
use runtime::{BufferView, Error};

/// Returns the number of blocks of a device whose multiprocessors have `each` blocks.
pub(crate) fn blocks(on: &impl Queue, each: usize) -> usize {
    each * on.device().facts().multiprocessors as usize
}

/// Returns the number of elements per block, of the `n` elements of a row of x: a multiple of
/// `least` that makes `parts` parts or fewer. `step` is the number of elements of a kernel's
/// iteration.
///
/// # Errors
/// Returns an error if the kernel's counter would overflow.
pub(crate) fn chunk<T: Element, const R: usize>(
    x: &BufferView<'_, T, R>,
    parts: usize,
    n: usize,
    least: usize,
    step: usize,
) -> Result<usize, Error> {
    // A single part ends less than `least` past the row.
    x.countable(n, step + least)?;
    let chunk = n.div_ceil(parts).max(1).next_multiple_of(least);
    if chunk < n {
        // The last of several parts ends less than a part past the row.
        x.countable(n, step + chunk)?;
    }
    Ok(chunk)
}
