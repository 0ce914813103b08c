//! Long rows in parts, a block a part, where rows alone are too few to fill a device.

use crate::Queue;
use crate::operand::Operand;
use kernel_dsl::Element;
use runtime::{BufferView, Error};

/// Blocks for each multiprocessor that are enough to move memory at full speed.
const RESIDENT: usize = 8;

/// Elements of each of `strips` rows of x that a block takes, of `n`: as many as fill the device, a multiple of `least`. The kernel goes `step` elements at once.
///
/// # Errors
/// Where the kernel cannot count so far.
pub(crate) fn chunk<T: Element, const R: usize>(
    on: &impl Queue,
    x: &BufferView<'_, T, R>,
    strips: usize,
    n: usize,
    least: usize,
    step: usize,
) -> Result<usize, Error> {
    // One part alone ends less than `least` behind the row.
    x.countable(n, step + least)?;
    let blocks = RESIDENT * on.device().facts().multiprocessors as usize;
    let parts = blocks.div_ceil(strips.max(1));
    let chunk = n.div_ceil(parts).max(1).next_multiple_of(least);
    if chunk < n {
        // Of several the last ends less than a part behind it.
        x.countable(n, step + chunk)?;
    }
    Ok(chunk)
}
