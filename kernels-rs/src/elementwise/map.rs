//! The calls for elementwise functions, which broadcast, order the axes and choose the widest
//! accesses.

use super::maps::{map_1, map_2, map_3};
use crate::Queue;
use crate::axes::{Axes, in_pieces, in_pieces_mut, padded, together, together_mut, widest};
use crate::operand::Operand;
use kernel_dsl::{DeviceFn, Float, GenericArgument};
use runtime::{BufferStrided, BufferStridedMut, Error};

/// Returns the number of elements of an access in the widest of several formats.
const fn pieces(bytes: &[usize]) -> usize {
    let (mut most, mut i) = (1, 0);
    while i < bytes.len() {
        if bytes[i] > most {
            most = bytes[i];
        }
        i += 1;
    }
    // No float has only one byte.
    widest(if most < 2 { 2 } else { most })
}

/// Computes y ← f(x) for each element. f is any function marked `#[device(value)]`, of this crate
/// or another, given by its name with braces.
///
/// x and y are arrays of rank 1 to 4 with any strides. x is broadcast to the extents of y as in
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
/// Returns an error if x cannot be broadcast to the extents of y, the arrays overlap, or a buffer
/// belongs to another device.
pub fn map<F, A, Y, const RA: usize, const R: usize>(
    on: &impl Queue,
    _f: F,
    x: BufferStrided<'_, A, RA>,
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
    let (a, y) = (x.broadcast(extents)?, y.reshaped(extents)?);
    let axes = Axes::of(extents, &[y.strides(), a.strides()]);
    let (a, mut y) = (axes.read(a)?, axes.written(y)?);
    macro_rules! by {
        ($v:literal, $va:literal, $pa:literal) => {
            // SAFETY: the launch checks all extents against each other, and the kernel's accesses
            // stay within them for any function. The oracle ran it at and around every edge
            // (`kernels check`).
            unsafe {
                map_1::<A, Y, F, $v, $va, $pa>::launch_unchecked(on, &in_pieces(a, $va)?, &mut in_pieces_mut(y, $v)?)
            }
        };
    }
    macro_rules! of {
        ($v:literal) => {
            if together(&a, $v) { by!($v, $v, 1) } else { by!($v, 1, $v) }
        };
    }
    match pieces(&[size_of::<A>(), size_of::<Y>()]) {
        8 if together_mut(&mut y, 8) => of!(8),
        4 if together_mut(&mut y, 4) => of!(4),
        2 if together_mut(&mut y, 2) => of!(2),
        _ => by!(1, 1, 1),
    }
}

/// Computes y ← f(a, b) for each element, as [`map`] does; each input is broadcast separately.
///
/// # Errors
/// As for [`map`].
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
    macro_rules! by {
        ($v:literal, $va:literal, $pa:literal, $vb:literal, $pb:literal) => {{
            let (a, b, mut y) = (in_pieces(a, $va)?, in_pieces(b, $vb)?, in_pieces_mut(y, $v)?);
            // SAFETY: as in `map`.
            unsafe { map_2::<A, B, Y, F, $v, $va, $vb, $pa, $pb>::launch_unchecked(on, &a, &b, &mut y) }
        }};
    }
    macro_rules! of {
        ($v:literal) => {
            match (together(&a, $v), together(&b, $v)) {
                (true, true) => by!($v, $v, 1, $v, 1),
                (true, false) => by!($v, $v, 1, 1, $v),
                (false, true) => by!($v, 1, $v, $v, 1),
                (false, false) => by!($v, 1, $v, 1, $v),
            }
        };
    }
    match pieces(&[size_of::<A>(), size_of::<B>(), size_of::<Y>()]) {
        8 if together_mut(&mut y, 8) => of!(8),
        4 if together_mut(&mut y, 4) => of!(4),
        2 if together_mut(&mut y, 2) => of!(2),
        _ => by!(1, 1, 1, 1, 1),
    }
}

/// Computes y ← f(a, b, c) for each element, as [`map`] does; each input is broadcast separately.
///
/// # Errors
/// As for [`map`].
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
    macro_rules! by {
        ($v:literal, $va:literal, $pa:literal, $vb:literal, $pb:literal, $vc:literal, $pc:literal) => {{
            let (a, b, c, mut y) = (in_pieces(a, $va)?, in_pieces(b, $vb)?, in_pieces(c, $vc)?, in_pieces_mut(y, $v)?);
            // SAFETY: as in `map`.
            unsafe {
                map_3::<A, B, C, Y, F, $v, $va, $vb, $vc, $pa, $pb, $pc>::launch_unchecked(on, &a, &b, &c, &mut y)
            }
        }};
    }
    macro_rules! of {
        ($v:literal) => {
            match (together(&a, $v), together(&b, $v), together(&c, $v)) {
                (true, true, true) => by!($v, $v, 1, $v, 1, $v, 1),
                (true, true, false) => by!($v, $v, 1, $v, 1, 1, $v),
                (true, false, true) => by!($v, $v, 1, 1, $v, $v, 1),
                (true, false, false) => by!($v, $v, 1, 1, $v, 1, $v),
                (false, true, true) => by!($v, 1, $v, $v, 1, $v, 1),
                (false, true, false) => by!($v, 1, $v, $v, 1, 1, $v),
                (false, false, true) => by!($v, 1, $v, 1, $v, $v, 1),
                (false, false, false) => by!($v, 1, $v, 1, $v, 1, $v),
            }
        };
    }
    match pieces(&[size_of::<A>(), size_of::<B>(), size_of::<C>(), size_of::<Y>()]) {
        8 if together_mut(&mut y, 8) => of!(8),
        4 if together_mut(&mut y, 4) => of!(4),
        2 if together_mut(&mut y, 2) => of!(2),
        _ => by!(1, 1, 1, 1, 1, 1, 1),
    }
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
    x.expected("x", [rows, n.saturating_mul(2)], "for each row of y its two halves")?;
    let halves = x.reshaped([rows, 2, n])?.permuted([1, 0, 2])?;
    map2(on, f, halves.slice(0..1)?.reshaped([rows, n])?, halves.slice(1..2)?.reshaped([rows, n])?, y)
}
