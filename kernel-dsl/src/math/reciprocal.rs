//! 1 / d by neither the hardware's approximation, whose bits differ between cards, nor IEEE's
//! division, which consists of that approximation and a slow path.

use crate::device;

/// Returns 1 / d to a relative 1.8·10⁻³, with the sign of d, for a normal d with |d| < 2¹²⁶.
///
/// Subtracting the bits of d from those of a constant negates the exponent, which gives 1 / d
/// within 12 %. A step of the third order reduces the error to its cube. The constant minimizes the
/// largest error; the method is Blinn's (*Floating-point tricks*, IEEE Computer Graphics and
/// Applications 17, 1997).
#[device]
pub(super) fn approximate_reciprocal(d: f32) -> f32 {
    let i = f32::from_bits(0x7EF3_11C7u32.wrapping_sub(d.to_bits()));
    cubic(d, i)
}

/// Returns a nearer 1 / d, whose relative error is the cube of that of `i`.
#[device]
pub(super) fn cubic(d: f32, i: f32) -> f32 {
    let e = d.mul_add(-i, 1.0);
    i.mul_add(e.mul_add(e, e), i)
}

/// Returns a nearer 1 / d, whose relative error is the square of that of `i`.
#[device]
pub(super) fn refine(d: f32, i: f32) -> f32 {
    i.mul_add(d.mul_add(-i, 1.0), i)
}
