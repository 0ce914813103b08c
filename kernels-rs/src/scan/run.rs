//! The calls for prefix sums.

use super::kernels::{scan_rows, sum_parts};
use crate::Queue;
use crate::axes::{together, together_mut};
use crate::operand::Operand;
use crate::parts::chunk;
use kernel_dsl::{GenericArgument, Number};
use runtime::{BufferView, BufferViewMut, Error};

/// Elements of a tile, the step of a block.
const TILE: usize = 4096;

/// Computes y[r, i] ← x[r, 0] + … + x[r, i]. Both arrays are [rows, n] of any number of at least 32
/// bits, with a last stride of 1; rows may have gaps. Either extent may be 0, and there are at most
/// 2³¹ − 1 rows.
///
/// Sums of integers wrap on a GPU; on the CPU device an overflow is an error, as in every kernel.
/// Sums of floats are computed in their own format, in an order that depends only on the shape, the
/// alignment and the number of multiprocessors. The error of each is at most γ(n)·Σ|x| of the
/// elements up to it. Here γ(n) = n·u/(1 − n·u) (Higham, *Accuracy and Stability of Numerical
/// Algorithms*, section 4.2). Therefore neighboring sums need not differ by exactly the element
/// between them.
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
/// - a buffer belongs to another device, or memory for the sums of parts is insufficient.
pub fn inclusive<T: Number + GenericArgument>(
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
pub fn exclusive<T: Number + GenericArgument>(
    on: &impl Queue,
    x: &BufferView<'_, T, 2>,
    y: &mut BufferViewMut<'_, T, 2>,
) -> Result<(), Error> {
    scan::<T, false>(on, x, y)
}

fn scan<T: Number + GenericArgument, const INCLUSIVE: bool>(
    on: &impl Queue,
    x: &BufferView<'_, T, 2>,
    y: &mut BufferViewMut<'_, T, 2>,
) -> Result<(), Error> {
    let [rows, n] = x.extents();
    y.expected("y", [rows, n], "the extents of x")?;
    if [rows, n].contains(&0) {
        return Ok(());
    }
    x.startable([rows, 1, 1], format_args!("{rows} rows"))?;
    // Normalizes the stride of an axis of one row, which has no meaning.
    let x = &x.strided().reshaped([rows, n])?.side_by_side()?;
    let y = &mut y.reborrow().strided().reshaped([rows, n])?.side_by_side()?;
    let chunk = chunk(on, x, rows, n, TILE, TILE)?;
    let nothing = on.scratch::<T>(0)?;
    if chunk >= n {
        return part::<T, INCLUSIVE>(on, x, chunk, &nothing.view([0, 0])?, y);
    }
    let parts = [rows, n.div_ceil(chunk)];
    let of_parts = parts.iter().product();
    let (mut sums, mut starts) = (on.scratch::<T>(of_parts)?, on.scratch::<T>(of_parts)?);
    let mut view = sums.view_mut(parts)?;
    // SAFETY: as in `part`.
    unsafe {
        match reads_four(x)? {
            true => sum_parts::<T, 4>::launch_unchecked(on, x, chunk, &mut view)?,
            false => sum_parts::<T, 1>::launch_unchecked(on, x, chunk, &mut view)?,
        }
    }
    let whole = parts[1].next_multiple_of(TILE);
    part::<T, false>(on, &sums.view(parts)?, whole, &nothing.view([0, 0])?, &mut starts.view_mut(parts)?)?;
    part::<T, INCLUSIVE>(on, x, chunk, &starts.view(parts)?, y)
}

/// Scans parts of rows, beginning with their starts.
fn part<T: Number + GenericArgument, const INCLUSIVE: bool>(
    on: &impl Queue,
    x: &BufferView<'_, T, 2>,
    chunk: usize,
    starts: &BufferView<'_, T, 2>,
    y: &mut BufferViewMut<'_, T, 2>,
) -> Result<(), Error> {
    let [rows, n] = y.extents();
    let four = reads_four(x)? && together_mut(&mut y.reborrow().strided().reshaped([1, 1, rows, n])?, 4);
    // SAFETY: the launch checks all extents against each other, and the kernel's accesses stay
    // within them. The oracle ran it at and around every edge (`kernels check`).
    unsafe {
        match four {
            true => scan_rows::<T, INCLUSIVE, 4>::launch_unchecked(on, x, chunk, starts, y),
            false => scan_rows::<T, INCLUSIVE, 1>::launch_unchecked(on, x, chunk, starts, y),
        }
    }
}

/// Returns whether four elements of x can be read at once.
fn reads_four<T: Number>(x: &BufferView<'_, T, 2>) -> Result<bool, Error> {
    let [rows, n] = x.extents();
    Ok(together(&x.strided().reshaped([1, 1, rows, n])?, 4))
}
