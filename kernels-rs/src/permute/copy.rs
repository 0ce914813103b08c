//! The calls for copies, which order the axes and choose the kernel.

use super::rows::{copy_rows, fill_rows};
use super::tiles::transpose_tiles;
use crate::Queue;
use crate::axes::{Axes, in_pieces, in_pieces_mut, padded, pieces_are_contiguous, pieces_are_contiguous_mut, widest};
use crate::dispatch::dispatch;
use crate::operand::ArrayOperand;
use crate::queue::LibraryCall;
use kernel_dsl::launcher::ValueArgument;
use kernel_dsl::{GenericArgument, Number};
use runtime::{BufferStrided, BufferStridedMut, BufferView, BufferViewMut, Error};

/// The minimum extent of the axes along which a tile reads and writes. Shorter axes would leave
/// most of a tile empty.
const MIN_TILE_EXTENT: usize = 16;

/// Copies y ← x, arrays of rank 1 to 4 with any strides: y[i, j, …] becomes x[i, j, …]. Values are
/// copied bit for bit, including NaNs.
///
/// x is broadcast to the extents of y as in NumPy. For a permutation of axes see
/// [`BufferStrided::permuted`].
///
/// Axes are sorted by the memory order of y, and axes that are contiguous in both arrays are
/// merged. If x and y then have the same last axis, [`copy_rows`] moves 16 bytes at once where y is
/// contiguous and aligned, and single elements otherwise. If x has another last axis,
/// [`transpose_tiles`] transposes tiles of 4096 words in shared memory.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// let device = runtime::Device::cpu();
/// let x = device.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let mut y = device.zeros::<f32>(6)?;
/// let transposed = x.view([2, 3])?.strided().transposed();
/// kernels_rs::permute::copy(&device, transposed, y.view_mut([3, 2])?.strided())?;
/// assert_eq!(y.download()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Returns an error if x cannot be broadcast to the extents of y, the arrays overlap, or a buffer
/// belongs to another device.
pub fn copy<T: Number + GenericArgument, const RX: usize, const R: usize>(
    on: &impl Queue,
    x: BufferStrided<'_, T, RX>,
    y: BufferStridedMut<'_, T, R>,
) -> Result<(), Error> {
    let extents = padded(y.extents());
    if extents.contains(&0) {
        return Ok(());
    }
    let (x, y) = (x.broadcast(extents)?, y.reshaped(extents)?);
    let axes = Axes::of(extents, &[y.strides(), x.strides()]);
    let (x, y) = (axes.read(x)?, axes.written(y)?);
    let (by_x, by_y, extents) = (x.strides(), y.strides(), y.extents());
    if by_y[3] == 1 && by_x[3] != 1 && extents[3] >= MIN_TILE_EXTENT {
        let along = (0..3).find(|d| by_x[*d] == 1 && extents[*d] >= MIN_TILE_EXTENT);
        let order = match along {
            Some(0) => Some([1, 2, 0, 3]),
            Some(1) => Some([0, 2, 1, 3]),
            Some(_) => Some([0, 1, 2, 3]),
            None => None,
        };
        if let Some(order @ [a, b, c, d]) = order.filter(|_| size_of::<T>() <= 4) {
            let x = x.permuted([a, b, d, c])?.side_by_side()?;
            return in_tiles(on, x, y.permuted(order)?.side_by_side()?);
        }
    }
    in_rows(on, x, y)
}

/// Copies y[b, j, i] ← x[b, i, j]: the transposes of a batch of matrices. x is [batch, M, N] and y
/// [batch, N, M], with any extents, including 0. The last stride is 1 and the others are arbitrary.
///
/// # Errors
/// Returns an error if extents do not match, the arrays overlap, or a buffer belongs to another
/// device.
pub fn transpose_batch<T: Number + GenericArgument>(
    on: &impl Queue,
    x: &BufferView<'_, T, 3>,
    y: &mut BufferViewMut<'_, T, 3>,
) -> Result<(), Error> {
    let [batch, rows, cols] = x.extents();
    // A copy would broadcast a batch of one.
    y.expected("y", [batch, cols, rows], "the transposes of x's matrices")?;
    copy(on, x.strided().permuted([0, 2, 1])?, y.reborrow().strided())
}

/// Fills y, an array of rank 1 to 4 with any strides, by accesses of 16 bytes where possible.
///
/// # Errors
/// Returns an error if the buffer belongs to another device.
pub fn fill<T: Number + GenericArgument + ValueArgument, const R: usize>(
    on: &impl Queue,
    value: T,
    y: BufferStridedMut<'_, T, R>,
) -> Result<(), Error> {
    let extents = padded(y.extents());
    if extents.contains(&0) {
        return Ok(());
    }
    let y = y.reshaped(extents)?;
    let axes = Axes::of(extents, &[y.strides()]);
    let mut y = axes.written(y)?;
    dispatch!(let V: usize = widest_together(&mut y), of [1, 2, 4, 8, 16];
        // SAFETY: as in `in_rows`.
        unsafe { fill_rows::<T, V>::launch_unchecked(&LibraryCall(on), value, &mut in_pieces_mut(y, V)?) })
}

fn in_rows<T: Number + GenericArgument>(
    on: &impl Queue,
    x: BufferStrided<'_, T, 4>,
    mut y: BufferStridedMut<'_, T, 4>,
) -> Result<(), Error> {
    let wide = widest_together(&mut y);
    dispatch!(let V: usize = wide, of [1, 2, 4, 8, 16]; let TOGETHER: bool = pieces_are_contiguous(&x, wide); {
        const VX: usize = if TOGETHER { V } else { 1 };
        // SAFETY: the launch compares all extents with one another, and the kernel accesses
        // elements within them only. The oracle ran the kernel at and around every edge (`kernels
        // check`).
        unsafe { copy_rows::<T, V, VX, { V / VX }>::launch_unchecked(&LibraryCall(on), in_pieces(x, VX)?, &mut in_pieces_mut(y, V)?) }
    })
}

/// Returns how many elements an access of y takes: 16 bytes, or one element if rows do not allow
/// it.
fn widest_together<T: Number>(y: &mut BufferStridedMut<'_, T, 4>) -> usize {
    let wide = widest(size_of::<T>());
    if pieces_are_contiguous_mut(y, wide) { wide } else { 1 }
}

fn in_tiles<T: Number + GenericArgument>(
    on: &impl Queue,
    x: BufferView<'_, T, 4>,
    mut y: BufferViewMut<'_, T, 4>,
) -> Result<(), Error> {
    let wide = widest(size_of::<T>());
    let (of_x, of_y) = (
        pieces_are_contiguous(&x.strided(), wide.min(8)),
        pieces_are_contiguous_mut(&mut y.reborrow().strided(), wide),
    );
    dispatch!(let [VX: usize, VY: usize, K: usize, COLS: usize, WORDS: usize] = match (size_of::<T>(), of_x, of_y) {
        (4, true, true) => [4, 4, 1, 64, 64],
        (4, true, false) => [4, 1, 1, 64, 64],
        (4, false, true) => [1, 4, 1, 64, 64],
        (2, true, true) => [8, 8, 2, 128, 32],
        (2, true, false) => [8, 1, 2, 128, 32],
        (2, false, true) => [1, 8, 2, 128, 32],
        (2, ..) => [1, 1, 2, 128, 32],
        (1, true, true) => [8, 16, 4, 128, 32],
        (1, true, false) => [8, 1, 4, 128, 32],
        (1, false, true) => [1, 16, 4, 128, 32],
        (1, ..) => [1, 1, 4, 128, 32],
        _ => [1, 1, 1, 64, 64],
    }; {
        // The kernel derives the other constants from these five in the same way.
        const Q: usize = VY.div_ceil(K);
        const AX: usize = if VX > 1 { 16 } else { 32 };
        const PITCH: usize = COLS + COLS / 32 * 2 - 2;
        const X_ROUNDS: usize = COLS * WORDS / VX / 512;
        const Y_ROUNDS: usize = COLS * WORDS / Q / 512;
        // SAFETY: as in `in_rows`.
        unsafe {
            transpose_tiles::<
                T, VX, VY, COLS, WORDS, K, { WORDS * K }, { WORDS + 1 }, PITCH, AX, X_ROUNDS, Q, { 32 / Q }, Y_ROUNDS,
            >::launch_unchecked(&LibraryCall(on), x, &mut y)
        }
    })
}
