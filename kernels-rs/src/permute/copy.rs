//! The calls for copies, which order the axes and choose the kernel.

use super::rows::{copy_rows, fill_rows};
use super::tiles::transpose_tiles;
use crate::Queue;
use crate::axes::{Axes, in_pieces, in_pieces_mut, padded, together, together_mut, widest};
use crate::operand::Operand;
use kernel_dsl::launcher::ValueArgument;
use kernel_dsl::{GenericArgument, Number};
use runtime::{BufferStrided, BufferStridedMut, BufferView, BufferViewMut, Error};

/// The minimum extent of the axes along which a tile reads and writes. Shorter axes would leave
/// most of a tile empty.
const WORTH_A_TILE: usize = 16;

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
/// let turned = x.view([2, 3])?.strided().transposed();
/// kernels_rs::permute::copy(&device, turned, y.view_mut([3, 2])?.strided())?;
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
    if by_y[3] == 1 && by_x[3] != 1 && extents[3] >= WORTH_A_TILE {
        let along = (0..3).find(|d| by_x[*d] == 1 && extents[*d] >= WORTH_A_TILE);
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
    macro_rules! by {
        ($v:literal) => {
            // SAFETY: as in `in_rows`.
            unsafe { fill_rows::<T, $v>::launch_unchecked(on, value, &mut in_pieces_mut(y, $v)?) }
        };
    }
    match widest(size_of::<T>()) {
        16 if together_mut(&mut y, 16) => by!(16),
        8 if together_mut(&mut y, 8) => by!(8),
        4 if together_mut(&mut y, 4) => by!(4),
        2 if together_mut(&mut y, 2) => by!(2),
        _ => by!(1),
    }
}

fn in_rows<T: Number + GenericArgument>(
    on: &impl Queue,
    x: BufferStrided<'_, T, 4>,
    mut y: BufferStridedMut<'_, T, 4>,
) -> Result<(), Error> {
    macro_rules! by {
        ($v:literal, $vx:literal, $parts:literal) => {
            // SAFETY: the launch checks all extents against each other, and the kernel's accesses
            // stay within them. The oracle ran it at and around every edge (`kernels check`).
            unsafe {
                copy_rows::<T, $v, $vx, $parts>::launch_unchecked(on, &in_pieces(x, $vx)?, &mut in_pieces_mut(y, $v)?)
            }
        };
    }
    macro_rules! of {
        ($v:literal) => {
            if together(&x, $v) { by!($v, $v, 1) } else { by!($v, 1, $v) }
        };
    }
    match widest(size_of::<T>()) {
        16 if together_mut(&mut y, 16) => of!(16),
        8 if together_mut(&mut y, 8) => of!(8),
        4 if together_mut(&mut y, 4) => of!(4),
        2 if together_mut(&mut y, 2) => of!(2),
        _ => by!(1, 1, 1),
    }
}

fn in_tiles<T: Number + GenericArgument>(
    on: &impl Queue,
    x: BufferView<'_, T, 4>,
    mut y: BufferViewMut<'_, T, 4>,
) -> Result<(), Error> {
    // The constants that follow from the first five, as the kernel derives them.
    macro_rules! by {
        ($vx:literal, $vy:literal, $k:literal, of $cols:literal, $words:literal) => {{
            const Q: usize = usize::div_ceil($vy, $k);
            const AX: usize = if $vx > 1 { 16 } else { 32 };
            // SAFETY: as in `in_rows`.
            unsafe {
                transpose_tiles::<
                    T,
                    $vx,
                    $vy,
                    $cols,
                    $words,
                    $k,
                    { $words * $k },
                    { $words + 1 },
                    { $cols + $cols / 32 * 2 - 2 },
                    AX,
                    { $cols * $words / $vx / 512 },
                    Q,
                    { 32 / Q },
                    { $cols * $words / Q / 512 },
                >::launch_unchecked(on, &x, &mut y)
            }
        }};
    }
    let wide = widest(size_of::<T>());
    let (of_x, of_y) = (together(&x.strided(), wide.min(8)), together_mut(&mut y.reborrow().strided(), wide));
    match (size_of::<T>(), of_x, of_y) {
        (4, true, true) => by!(4, 4, 1, of 64, 64),
        (4, true, false) => by!(4, 1, 1, of 64, 64),
        (4, false, true) => by!(1, 4, 1, of 64, 64),
        (2, true, true) => by!(8, 8, 2, of 128, 32),
        (2, true, false) => by!(8, 1, 2, of 128, 32),
        (2, false, true) => by!(1, 8, 2, of 128, 32),
        (2, ..) => by!(1, 1, 2, of 128, 32),
        (1, true, true) => by!(8, 16, 4, of 128, 32),
        (1, true, false) => by!(8, 1, 4, of 128, 32),
        (1, false, true) => by!(1, 16, 4, of 128, 32),
        (1, ..) => by!(1, 1, 4, of 128, 32),
        _ => by!(1, 1, 1, of 64, 64),
    }
}
