//! Prefix sums as one calls them.

use super::kernels::{scan_rows, sum_parts};
use crate::Queue;
use crate::axes::{together, together_mut};
use crate::operand::Operand;
use crate::parts::chunk;
use kernel_dsl::{GenericArgument, Number};
use runtime::{BufferView, BufferViewMut, Error};

/// Elements of a tile, by which a block goes on.
const TILE: usize = 4096;

/// y[r, i] ← x[r, 0] + … + x[r, i]. Both are [rows, n], with a last stride of 1 and rows that may lie apart, of any number of at least 32 bits; either extent
/// may be 0, and there are at most 2³¹ − 1 rows.
///
/// Sums of integers wrap on a GPU, and are an error on the CPU device where they overflow, as all sums are there. Those of floats are computed in
/// their own format, in an order that follows from the shape, the alignment and the number of multiprocessors alone; each is off by at most γ(n)·Σ|x|, of the elements up to it, where
/// γ(n) = n·u/(1 − n·u) (Higham, *Accuracy and Stability of Numerical Algorithms*, section 4.2). So neighboring sums need not differ by exactly what lies between.
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
/// Where the extents differ, x and y overlap, rows have more elements than the kernels can count in 32 bits, a tile and a part beyond their end included, a buffer is another device's, or
/// memory for the sums of parts is short.
pub fn inclusive<T: Number + GenericArgument>(
    on: &impl Queue,
    x: &BufferView<'_, T, 2>,
    y: &mut BufferViewMut<'_, T, 2>,
) -> Result<(), Error> {
    scan::<T, true>(on, x, y)
}

/// y[r, i] ← x[r, 0] + … + x[r, i − 1], and y[r, 0] ← 0; as [`inclusive`].
///
/// # Errors
/// As for [`inclusive`].
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
    y.expected("y", [rows, n], "as x is")?;
    if [rows, n].contains(&0) {
        return Ok(());
    }
    x.startable([rows, 1, 1], format_args!("{rows} rows"))?;
    // So that where one row lies apart from no other does not matter.
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

/// Scans parts of rows from their starts on.
fn part<T: Number + GenericArgument, const INCLUSIVE: bool>(
    on: &impl Queue,
    x: &BufferView<'_, T, 2>,
    chunk: usize,
    starts: &BufferView<'_, T, 2>,
    y: &mut BufferViewMut<'_, T, 2>,
) -> Result<(), Error> {
    let [rows, n] = y.extents();
    let four = reads_four(x)? && together_mut(&mut y.reborrow().strided().reshaped([1, 1, rows, n])?, 4);
    // SAFETY: the launch compares all extents with one another, and the kernel reads and writes what lies within them: the oracle ran it at and
    // around every edge (`kernels check`).
    unsafe {
        match four {
            true => scan_rows::<T, INCLUSIVE, 4>::launch_unchecked(on, x, chunk, starts, y),
            false => scan_rows::<T, INCLUSIVE, 1>::launch_unchecked(on, x, chunk, starts, y),
        }
    }
}

/// Whether four elements of x can be read at once.
fn reads_four<T: Number>(x: &BufferView<'_, T, 2>) -> Result<bool, Error> {
    let [rows, n] = x.extents();
    Ok(together(&x.strided().reshaped([1, 1, rows, n])?, 4))
}
