//! The calls for elementwise functions, which broadcast, order the axes and choose the widest
//! accesses.

use super::maps::{map_1, map_2, map_3};
use crate::Queue;
use crate::axes::{Axes, in_pieces, in_pieces_mut, padded, pieces_are_contiguous, pieces_are_contiguous_mut, widest};
use crate::dispatch::dispatch;
use crate::operand::ArrayOperand;
use crate::queue::{LibraryCall, renaming_parameters};
use kernel_dsl::{DeviceFn, Float, GenericArgument};
use runtime::{BufferStrided, BufferStridedMut, Error};

/// Returns the number of elements of y that an access takes: 16 bytes of the widest of several
/// formats, or one element if rows of y do not allow it.
fn widest_together<Y: Float>(bytes: &[usize], y: &mut BufferStridedMut<'_, Y, 4>) -> usize {
    // No float has one byte.
    let wide = widest(bytes.iter().copied().fold(2, usize::max));
    if pieces_are_contiguous_mut(y, wide) { wide } else { 1 }
}

/// Computes y ← f(a) for each element. f is any function marked `#[device(value)]`, of this crate
/// or another, given by its name with braces.
///
/// a and y are arrays of rank 1 to 4 with any strides. a is broadcast to the extents of y as in
/// NumPy: missing leading axes and axes of one element are repeated. Formats may differ, and may be
/// `f32`, `f16`, `bf16` or caller-defined: f computes in `f32`, and y is rounded once. If elements
/// of y are adjacent, 16 bytes of it are written at once.
///
/// The results of f for subnormal numbers, infinities and NaNs are stored unchanged; a result
/// beyond the range of y's format is ±∞. Elements have no effect on each other.
///
/// For functions of this crate in `f32` and `f16` the common instances are compiled into the
/// program. Any other is compiled on first use, which takes some milliseconds.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernel_dsl::prelude::*;
///
/// /// max(x, 0)
/// #[device(value)]
/// fn relu(x: f32) -> f32 {
///     x.max(0.0)
/// }
///
/// let device = runtime::Device::cpu();
/// let x = device.upload(&[-1.0f32, 2.0])?;
/// let mut y = device.zeros::<f32>(4)?;
/// kernels_rs::elementwise::map(&device, relu {}, x.view([2])?.strided(), y.view_mut([2, 2])?.strided())?;
/// assert_eq!(y.download()?, [0.0, 2.0, 0.0, 2.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Returns an error if a cannot be broadcast to the extents of y, the arrays overlap, or a buffer
/// belongs to another device.
pub fn map<F, A, Y, const RA: usize, const R: usize>(
    on: &impl Queue,
    _f: F,
    a: BufferStrided<'_, A, RA>,
    y: BufferStridedMut<'_, Y, R>,
) -> Result<(), Error>
where
    F: DeviceFn<(f32,), Output = f32>,
    A: Float + GenericArgument,
    Y: Float + GenericArgument,
{
    let extents = padded(y.extents());
    if extents.contains(&0) {
        return Ok(());
    }
    let (a, y) = (a.broadcast(extents)?, y.reshaped(extents)?);
    let axes = Axes::of(extents, &[y.strides(), a.strides()]);
    let (a, mut y) = (axes.read(a)?, axes.written(y)?);
    let wide = widest_together(&[size_of::<A>(), size_of::<Y>()], &mut y);
    dispatch!(let V: usize = wide, of [1, 2, 4, 8]; let A_TOGETHER: bool = pieces_are_contiguous(&a, wide); {
        const VA: usize = if A_TOGETHER { V } else { 1 };
        // SAFETY: the launch compares all extents with one another, and the kernel accesses
        // elements within them only, whatever its function computes. The oracle ran the kernel at
        // and around every edge (`kernels check`).
        unsafe { map_1::<A, Y, F, V, VA, { V / VA }>::launch_unchecked(&LibraryCall(on), in_pieces(a, VA)?, &mut in_pieces_mut(y, V)?) }
    })
}

/// Computes y ← f(a, b) for each element, as [`map`] does; each input is broadcast separately.
///
/// # Errors
/// Returns the errors of [`map`].
pub fn map2<F, A, B, Y, const RA: usize, const RB: usize, const R: usize>(
    on: &impl Queue,
    _f: F,
    a: BufferStrided<'_, A, RA>,
    b: BufferStrided<'_, B, RB>,
    y: BufferStridedMut<'_, Y, R>,
) -> Result<(), Error>
where
    F: DeviceFn<(f32, f32), Output = f32>,
    A: Float + GenericArgument,
    B: Float + GenericArgument,
    Y: Float + GenericArgument,
{
    let extents = padded(y.extents());
    if extents.contains(&0) {
        return Ok(());
    }
    let (a, b, y) = (a.broadcast(extents)?, b.broadcast(extents)?, y.reshaped(extents)?);
    let axes = Axes::of(extents, &[y.strides(), a.strides(), b.strides()]);
    let (a, b, mut y) = (axes.read(a)?, axes.read(b)?, axes.written(y)?);
    let wide = widest_together(&[size_of::<A>(), size_of::<B>(), size_of::<Y>()], &mut y);
    dispatch!(let V: usize = wide, of [1, 2, 4, 8];
        let A_TOGETHER: bool = pieces_are_contiguous(&a, wide);
        let B_TOGETHER: bool = pieces_are_contiguous(&b, wide); {
        const VA: usize = if A_TOGETHER { V } else { 1 };
        const VB: usize = if B_TOGETHER { V } else { 1 };
        let (a, b, mut y) = (in_pieces(a, VA)?, in_pieces(b, VB)?, in_pieces_mut(y, V)?);
        // SAFETY: as in `map`.
        unsafe { map_2::<A, B, Y, F, V, VA, VB, { V / VA }, { V / VB }>::launch_unchecked(&LibraryCall(on), a, b, &mut y) }
    })
}

/// Computes y ← f(a, b, c) for each element, as [`map`] does; each input is broadcast separately.
///
/// # Errors
/// Returns the errors of [`map`].
pub fn map3<F, A, B, C, Y, const RA: usize, const RB: usize, const RC: usize, const R: usize>(
    on: &impl Queue,
    _f: F,
    a: BufferStrided<'_, A, RA>,
    b: BufferStrided<'_, B, RB>,
    c: BufferStrided<'_, C, RC>,
    y: BufferStridedMut<'_, Y, R>,
) -> Result<(), Error>
where
    F: DeviceFn<(f32, f32, f32), Output = f32>,
    A: Float + GenericArgument,
    B: Float + GenericArgument,
    C: Float + GenericArgument,
    Y: Float + GenericArgument,
{
    let extents = padded(y.extents());
    if extents.contains(&0) {
        return Ok(());
    }
    let (a, b, c, y) = (a.broadcast(extents)?, b.broadcast(extents)?, c.broadcast(extents)?, y.reshaped(extents)?);
    let axes = Axes::of(extents, &[y.strides(), a.strides(), b.strides(), c.strides()]);
    let (a, b, c, mut y) = (axes.read(a)?, axes.read(b)?, axes.read(c)?, axes.written(y)?);
    let wide = widest_together(&[size_of::<A>(), size_of::<B>(), size_of::<C>(), size_of::<Y>()], &mut y);
    dispatch!(let V: usize = wide, of [1, 2, 4, 8];
        let A_TOGETHER: bool = pieces_are_contiguous(&a, wide);
        let B_TOGETHER: bool = pieces_are_contiguous(&b, wide);
        let C_TOGETHER: bool = pieces_are_contiguous(&c, wide); {
        const VA: usize = if A_TOGETHER { V } else { 1 };
        const VB: usize = if B_TOGETHER { V } else { 1 };
        const VC: usize = if C_TOGETHER { V } else { 1 };
        let (a, b, c, mut y) = (in_pieces(a, VA)?, in_pieces(b, VB)?, in_pieces(c, VC)?, in_pieces_mut(y, V)?);
        // SAFETY: as in `map`.
        unsafe {
            map_3::<A, B, C, Y, F, V, VA, VB, VC, { V / VA }, { V / VB }, { V / VC }>::launch_unchecked(
                &LibraryCall(on), a, b, c, &mut y,
            )
        }
    })
}

/// Computes y ← f(a, b) of the halves of each row of x, [rows, 2·n] as (a | b), with y of
/// [rows, n]: the gate of a network whose two projections are one product. f is
/// [`swiglu`](crate::activation::swiglu()), [`geglu`](crate::activation::geglu()), or any other
/// function of two numbers. For two separate matrices use [`map2`].
///
/// # Errors
/// Returns an error if extents do not match, x and y overlap, or a buffer belongs to another
/// device.
pub fn gate<F, X, Y>(
    on: &impl Queue,
    f: F,
    x: BufferStrided<'_, X, 2>,
    y: BufferStridedMut<'_, Y, 2>,
) -> Result<(), Error>
where
    F: DeviceFn<(f32, f32), Output = f32>,
    X: Float + GenericArgument,
    Y: Float + GenericArgument,
{
    let [rows, n] = y.extents();
    x.expected("x", [rows, n.saturating_mul(2)], "two halves for each row of y")?;
    let halves = x.reshaped([rows, 2, n])?.permuted([1, 0, 2])?;
    map2(on, f, halves.slice(0..1)?.reshaped([rows, n])?, halves.slice(1..2)?.reshaped([rows, n])?, y)
        .map_err(renaming_parameters(&[["a", "x"], ["b", "x"]]))
}
