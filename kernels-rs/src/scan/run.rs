//! The calls for prefix sums.

use super::ScanSum;
use super::kernels::{scan_linked, scan_rows};
use crate::Queue;
use crate::axes::{pieces_are_contiguous, pieces_are_contiguous_mut};
use crate::dispatch::dispatch;
use crate::operand::ArrayOperand;
use crate::parts::{blocks, chunk};
use crate::queue::LibraryCall;
use kernel_dsl::GenericArgument;
use runtime::{BufferView, BufferViewMut, Error};

/// The number of blocks per multiprocessor that saturates the memory bandwidth.
const BLOCKS_PER_MULTIPROCESSOR: usize = 8;
/// Tiles of a group: the number of threads of a block, each of which reads a sum.
const GROUP: usize = 256;

/// Computes y[r, i] ← x[r, 0] + … + x[r, i]. Both arrays are [rows, n] of any number of at least 32
/// bits, with a last stride of 1; rows may have gaps. Either extent may be 0, and there are at most
/// 2³¹ − 1 rows.
///
/// Sums of integers wrap on a GPU; on the CPU device an overflow is an error, as in every kernel.
/// Sums of floats are computed in their own format. The order of additions depends only on the
/// shape, the alignment and the number of multiprocessors. The error of each sum is at most
/// γ(n)·Σ|x| of the elements up to it. Here γ(n) = n·u/(1 − n·u) (Higham, *Accuracy and Stability
/// of Numerical Algorithms*, section 4.2). Therefore neighboring sums need not differ by exactly
/// the element between them.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// let device = runtime::Device::cpu();
/// let x = device.upload(&[3u32, 1, 4, 1, 5, 9])?;
/// let mut y = device.zeros::<u32>(6)?;
/// kernels_rs::scan::inclusive(&device, &x.view([2, 3])?, &mut y.view_mut([2, 3])?)?;
/// assert_eq!(y.download()?, [3, 4, 8, 1, 6, 15]);
/// kernels_rs::scan::exclusive(&device, &x.view([1, 6])?, &mut y.view_mut([1, 6])?)?;
/// assert_eq!(y.download()?, [0, 3, 4, 8, 9, 14]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Returns an error if:
/// - the extents differ, or x and y overlap,
/// - rows have more elements than the kernels can count in 32 bits, including a tile and a part
///   beyond their end,
/// - a buffer belongs to another device, or memory for the sums of tiles is insufficient.
pub fn inclusive<T: ScanSum + GenericArgument>(
    on: &impl Queue,
    x: &BufferView<'_, T, 2>,
    y: &mut BufferViewMut<'_, T, 2>,
) -> Result<(), Error> {
    scan::<T, true>(on, x, y)
}

/// Computes y[r, i] ← x[r, 0] + … + x[r, i − 1], and y[r, 0] ← 0, as [`inclusive`] does.
///
/// # Errors
/// Returns the errors of [`inclusive`].
pub fn exclusive<T: ScanSum + GenericArgument>(
    on: &impl Queue,
    x: &BufferView<'_, T, 2>,
    y: &mut BufferViewMut<'_, T, 2>,
) -> Result<(), Error> {
    scan::<T, false>(on, x, y)
}

fn scan<T: ScanSum + GenericArgument, const INCLUSIVE: bool>(
    on: &impl Queue,
    x: &BufferView<'_, T, 2>,
    y: &mut BufferViewMut<'_, T, 2>,
) -> Result<(), Error> {
    let [rows, n] = x.extents();
    y.expected("y", [rows, n], "the extents of x")?;
    if [rows, n].contains(&0) {
        return Ok(());
    }
    x.check_grid([rows, 1, 1], format_args!("{rows} rows"))?;
    // Normalizes the stride of an axis of one row, which has no meaning.
    let x = &x.strided().reshaped([rows, n])?.side_by_side()?;
    let y = &mut y.reborrow().strided().reshaped([rows, n])?.side_by_side()?;
    let row = [1, 1, rows, n];
    let four = pieces_are_contiguous(&x.strided().reshaped(row)?, 4)
        && pieces_are_contiguous_mut(&mut y.reborrow().strided().reshaped(row)?, 4);
    let pieces = if size_of::<T>() == 8 { 4 } else { 8 };
    let tile = 1024 * pieces;
    if chunk(x, blocks(on, BLOCKS_PER_MULTIPROCESSOR).div_ceil(rows), n, tile, tile)? >= n {
        return dispatch!(let V: usize = if four { 4 } else { 1 }, of [1, 4];
            // SAFETY: the launch checks all extents against each other, and the kernel's accesses
            // stay within them. The oracle ran the kernel at and around every edge (`kernels
            // check`).
            unsafe { scan_rows::<T, INCLUSIVE, V>::launch_unchecked(&LibraryCall(on), x, y) });
    }
    let tiles = n.div_ceil(tile);
    let words = rows * (1 + 2 * (tiles + tiles.div_ceil(GROUP)));
    let mut links = on.counters(words)?;
    let links = &mut links.words(words)?;
    dispatch!(let V: usize = if four { 4 } else { 1 }, of [1, 4]; let PIECES: usize = pieces, of [8, 4];
        // SAFETY: as for `scan_rows`.
        unsafe { scan_linked::<T, INCLUSIVE, V, GROUP, PIECES, { 1024 * PIECES }>::launch_unchecked(&LibraryCall(on), x, links, y) })
}
