//! The calls for reductions, which choose the number of parts, the access width and the kernels.

use super::Monoid;
use super::kernels::{join_columns, reduce_columns, reduce_parts, reduce_rows};
use crate::Queue;
use crate::axes::{pieces_are_contiguous, widest};
use crate::dispatch::dispatch;
use crate::operand::ArrayOperand;
use crate::parts::{blocks, chunk};
use crate::queue::LibraryCall;
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// A monoid that a launch can be compiled for: a device struct.
pub trait Reduced: Monoid + GenericArgument {}

impl<M: Monoid + GenericArgument> Reduced for M {}

/// The number of blocks per multiprocessor that reduce parts of rows, and saturate the memory
/// bandwidth. The last block of a result combines the parts of all, which takes longer if there are
/// more.
const ROW_BLOCKS: usize = 4;
/// The number of blocks per multiprocessor that reduce parts of columns.
const COLUMN_BLOCKS: usize = 8;
/// The minimum number of elements of a row per block: with fewer, the overhead of a block
/// dominates.
const MIN_ROW_PART: usize = 8192;
/// The minimum number of elements of a strip of columns per block.
const MIN_COLUMN_PART: usize = 64;
/// The maximum number of elements of a row per iteration of a block: four accesses of eight
/// elements by each of its 256 threads.
const ROW_PART_STEP: usize = 4 * 8 * 256;
/// The number of rows per iteration of a block that reduces columns: four for each of its warps.
const COLUMN_PART_STEP: usize = 4 * 8;
/// The maximum number of rows, or results, of a block.
const ROWS: usize = 8;
/// The maximum number of columns of a block.
const COLUMNS: usize = 32 * 8;

/// Reduces `y[r]` ← row r of x. x is `[rows, n]` of `f32`, `f16`, `bf16` or a caller-defined
/// format, computed in `f32`; y has one element for each row. The last stride is 1, rows may have
/// gaps, and either extent may be 0.
///
/// A warp reduces a row of up to 1024 elements in `f32`, and a block of 256 threads a longer one.
/// If the rows are too few for the device, each is divided into parts of 8192 elements or more. The
/// order of a sum depends only on the shape, the alignment and the number of multiprocessors. The
/// error of a [`Sum`](super::Sum) is at most γ(n)·Σ|x|, where γ(n) = n·u/(1 − n·u) and u = 2⁻²⁴
/// (Higham, *Accuracy and Stability of Numerical Algorithms*, section 4.2). In practice the error
/// is much smaller, because about a thousand partial sums are formed.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::reduce::{self, ArgMax, Sum};
/// let device = runtime::Device::cpu();
/// let x = device.upload(&[1.0f32, 5.0, 3.0, 2.0, 2.0, 1.0])?;
/// let (mut sums, mut places) = (device.zeros::<f32>(2)?, device.zeros::<u32>(2)?);
/// reduce::rows(&device, Sum, &x.view([2, 3])?, &mut sums.view_mut([2])?)?;
/// reduce::rows(&device, ArgMax, &x.view([2, 3])?, &mut places.view_mut([2])?)?;
/// assert_eq!((sums.download()?, places.download()?), (vec![9.0, 5.0], vec![1, 0]));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Returns an error if:
/// - y does not have one element for each row, or overlaps x,
/// - an axis has more elements than the kernels can count in 32 bits, including the steps and parts
///   beyond its end,
/// - a buffer belongs to another device, or memory for parts is insufficient.
pub fn rows<X: Float + GenericArgument, M: Reduced>(
    on: &impl Queue,
    _monoid: M,
    x: &BufferView<'_, X, 2>,
    y: &mut BufferViewMut<'_, M::Out, 1>,
) -> Result<(), Error> {
    let [rows, n] = x.extents();
    y.expected("y", [rows], "an element for each row of x")?;
    if rows == 0 {
        return Ok(());
    }
    x.countable(rows, ROWS)?;
    // Normalizes the stride of an axis of one row, which has no meaning.
    let x = &x.strided().reshaped([rows, n])?.side_by_side()?;
    let chunk = chunk(x, blocks(on, ROW_BLOCKS).div_ceil(rows), n, MIN_ROW_PART, ROW_PART_STEP)?;
    if chunk < n {
        return parts::<X, M>(on, x, chunk, 0, y);
    }
    dispatch!(let [L: usize, V: usize, R: usize] = match (width(x), n) {
        (8, 0..=4096) => [32, 8, 8],
        (8, ..=8192) => [128, 8, 2],
        (8, _) => [256, 8, 1],
        (4, 0..=1024) => [32, 4, 8],
        (4, _) => [256, 4, 1],
        (_, 0..=256) => [32, 1, 8],
        _ => [256, 1, 1],
    };
    // SAFETY: the launch compares all extents with one another, and the kernel accesses elements
    // within them only, whatever it combines. The oracle ran the kernel at and around every edge
    // (`kernels check`).
    unsafe { reduce_rows::<X, M, L, V, R>::launch_unchecked(&LibraryCall(on), x, y) })
}

/// Reduces y[b · cols + c] ← column c of matrix b of x. x is [batch, rows, cols], stored as for
/// [`rows`]. The call reduces any axis but the last of an array: the axes before that axis are the
/// batch, and those after it the columns.
///
/// A block of eight warps has a strip of 128 columns, or a part of it of 64 rows or more; a second
/// kernel combines parts. The order is fixed as for [`rows`], and a sum has the same error bound.
///
/// # Errors
/// Returns the errors of [`rows`].
pub fn columns<X: Float + GenericArgument, M: Reduced>(
    on: &impl Queue,
    _monoid: M,
    x: &BufferView<'_, X, 3>,
    y: &mut BufferViewMut<'_, M::Out, 1>,
) -> Result<(), Error> {
    let [batch, rows, cols] = x.extents();
    let results = batch.saturating_mul(cols);
    y.expected("y", [results], "an element for each column of each matrix of x")?;
    if results == 0 {
        return Ok(());
    }
    x.countable(cols, COLUMNS)?;
    x.countable(results, ROWS)?;
    // Normalizes the strides of axes of one row or one matrix, which have no meaning.
    let x = &x.strided().reshaped([batch, rows, cols])?.side_by_side()?;
    let wide = widest(size_of::<X>()).min(8);
    let whole = pieces_are_contiguous(&x.strided().reshaped([1, batch, rows, cols])?, wide);
    let strips = batch * cols.div_ceil(32 * if whole { wide } else { 1 });
    let chunk = chunk(x, blocks(on, COLUMN_BLOCKS).div_ceil(strips), rows, MIN_COLUMN_PART, COLUMN_PART_STEP)?;
    let parts = rows.div_ceil(chunk);
    let mut states = on.scratch::<M::State>(results * parts)?;
    let of_states = [batch, parts, cols];
    let mut view = states.view_mut(of_states)?;
    dispatch!(let V: usize = if whole { wide } else { 1 }, of [1, 4, 8];
        // SAFETY: as in `rows`.
        unsafe { reduce_columns::<X, M, V>::launch_unchecked(&LibraryCall(on), x, chunk, &mut view) })?;
    let mut y = y.reborrow().strided().reshaped([batch, cols])?.side_by_side()?;
    // SAFETY: as in `rows`.
    unsafe { join_columns::<M>::launch_unchecked(&LibraryCall(on), states.view(of_states)?, rows, &mut y) }
}

/// Reduces `y[0]` ← all elements of x, `[rows, n]` stored as for [`rows`]; indices count row by
/// row. A sum has the error bound of a single row of all elements.
///
/// # Errors
/// Returns the errors of [`rows`], where y must have one element.
pub fn all<X: Float + GenericArgument, M: Reduced>(
    on: &impl Queue,
    _monoid: M,
    x: &BufferView<'_, X, 2>,
    y: &mut BufferViewMut<'_, M::Out, 1>,
) -> Result<(), Error> {
    let [rows, n] = x.extents();
    y.expected("y", [1], "the result")?;
    // Indices count through all rows.
    let elements = rows.saturating_mul(n);
    x.countable(elements, MIN_ROW_PART + ROW_PART_STEP)?;
    // Rows without gaps are treated as one row.
    let x = match x.strided().reshaped([1, elements]) {
        Ok(row) => row.side_by_side()?,
        Err(_) => *x,
    };
    let [rows, of_row] = x.extents();
    let chunk = chunk(&x, blocks(on, ROW_BLOCKS).div_ceil(rows.max(1)), of_row, MIN_ROW_PART, ROW_PART_STEP)?;
    parts::<X, M>(on, &x, chunk, of_row, y)
}

/// Reduces parts of `chunk` elements of the rows, then the parts of each row, or of all rows if y
/// has one element. Indices of neighboring rows are `pitch` apart.
fn parts<X: Float + GenericArgument, M: Reduced>(
    on: &impl Queue,
    x: &BufferView<'_, X, 2>,
    chunk: usize,
    pitch: usize,
    y: &mut BufferViewMut<'_, M::Out, 1>,
) -> Result<(), Error> {
    let ([rows, n], [results]) = (x.extents(), y.extents());
    let parts = (rows * n.div_ceil(chunk)).max(1);
    let mut states = on.scratch::<M::State>(parts)?;
    let mut counters = on.counters(results.div_ceil(2))?;
    let (mut states, ended) = (states.view_mut([results, parts / results])?, counters.halves(results)?);
    dispatch!(let V: usize = width(x), of [1, 4, 8];
        // SAFETY: the launch compares all extents with one another, and the kernel accesses
        // elements within them only. The oracle ran it at and around every edge (`kernels check`).
        unsafe { reduce_parts::<X, M, V>::launch_unchecked(&LibraryCall(on), x, chunk, pitch, &mut states, ended, y) })
}

/// Returns the number of elements of a row that are read at once.
fn width<X: Float>(x: &BufferView<'_, X, 2>) -> usize {
    let wide = widest(size_of::<X>()).min(8);
    let [rows, n] = x.extents();
    let whole = x.strided().reshaped([1, 1, rows, n]).is_ok_and(|x| pieces_are_contiguous(&x, wide));
    if whole { wide } else { 1 }
}
