//! The division of long rows into parts, one block per part, if there are too few rows to fill a
//! device.

use crate::Queue;
use crate::operand::ArrayOperand;
use kernel_dsl::Element;
use runtime::{BufferView, Error};

/// The number of blocks per multiprocessor that saturates the memory bandwidth.
const BLOCKS_PER_MULTIPROCESSOR: usize = 8;

/// Returns the number of elements per block, of `n`, for each of `strips` rows of x: a multiple of
/// `least` that fills the device. `step` is the number of elements of a kernel's iteration.
///
/// # Errors
/// Returns an error if the kernel's counter would overflow.
pub(crate) fn chunk<T: Element, const R: usize>(
    on: &impl Queue,
    x: &BufferView<'_, T, R>,
    strips: usize,
    n: usize,
    least: usize,
    step: usize,
) -> Result<usize, Error> {
    // A single part ends less than `least` past the row.
    x.countable(n, step + least)?;
    let blocks = BLOCKS_PER_MULTIPROCESSOR * on.device().facts().multiprocessors as usize;
    let parts = blocks.div_ceil(strips.max(1));
    let chunk = n.div_ceil(parts).max(1).next_multiple_of(least);
    if chunk < n {
        // The last of several parts ends less than a part past the row.
        x.countable(n, step + chunk)?;
    }
    Ok(chunk)
}
