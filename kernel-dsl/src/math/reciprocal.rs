//! 1 / d without the hardware's approximation, whose bits no other machine has, and without IEEE's division, which is made of it
//! and a slow path.

use crate::device;

/// 1 / d to a relative 1.8·10⁻³, of the sign of d, which is normal and below 2¹²⁶ in size.
///
/// Subtracting the bits from those of a constant negates the exponent, and the mantissa to 12 %: a step of the third order
/// leaves the cube of that. The constant is the one that makes the largest error smallest (Blinn, *Floating-point tricks*, IEEE
/// Computer Graphics and Applications 17, 1997, has the method).
#[device]
pub(super) fn rough(d: f32) -> f32 {
    let i = f32::from_bits(0x7EF3_11C7u32.wrapping_sub(d.to_bits()));
    cubic(d, i)
}

/// A nearer 1 / d, whose relative error is the cube of that of `i`.
#[device]
pub(super) fn cubic(d: f32, i: f32) -> f32 {
    let e = d.mul_add(-i, 1.0);
    i.mul_add(e.mul_add(e, e), i)
}

/// A nearer 1 / d, whose relative error is the square of that of `i`.
#[device]
pub(super) fn square(d: f32, i: f32) -> f32 {
    i.mul_add(d.mul_add(-i, 1.0), i)
}
