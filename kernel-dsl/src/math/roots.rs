//! The cube root, the reciprocal square root, and the length of a vector. The square root itself is
//! an operation of IEEE 754, `x.sqrt()`. This module also computes it in two parts, and without its
//! slow path.

use crate::device;

/// Returns 1 / √x, to 1.199 ulp.
///
/// ±∞ at ±0, 0 at ∞; NaN for NaN and negative numbers.
///
/// The seed comes from the bits: half the exponent, negated (Lomont, *Fast inverse square root*,
/// 2003). A step of the third order and one of the second refine it. The cost is about that of
/// IEEE's square root and division on their fast paths, with a third of the code. A branch scales
/// subnormal numbers and sets the special values.
#[device]
pub fn rsqrt(x: f32) -> f32 {
    if x.to_bits().wrapping_sub(0x0080_0000) < 0x7F00_0000 {
        rsqrt_normal(x)
    } else if x > 0.0 && x < f32::INFINITY {
        rsqrt_normal(x * 16777216.0) * 4096.0
    } else if x == 0.0 {
        f32::INFINITY.copysign(x)
    } else if x > 0.0 {
        0.0
    } else {
        f32::NAN
    }
}

#[device]
fn rsqrt_normal(x: f32) -> f32 {
    let y = f32::from_bits(0x5F37_59DFu32 - (x.to_bits() >> 1));
    // 1/√(1 − h) = 1 + h/2 + 3h²/8 + …
    let h = (x * y).mul_add(-y, 1.0);
    let y = (h * y).mul_add(h.mul_add(0.375, 0.5), y);
    let h = (x * y).mul_add(-y, 1.0);
    (h * y).mul_add(0.5, y)
}

/// Returns 1 / (2·√z) to a relative 2.5·10⁻⁵, for a normal z; for 0, an arbitrary number.
///
/// One step refines the seed of [`rsqrt`], by a polynomial that is minimax for the seed's errors.
#[device]
pub(super) fn half_inverse(z: f32) -> f32 {
    let y = f32::from_bits(0x5F37_59DFu32.wrapping_sub(z.to_bits() >> 1));
    let h = (z * y).mul_add(-y, 1.0);
    h.mul_add(0.18774101, 0.25054863).mul_add(h, 0.5000001) * y
}

/// Returns √z, to 0.51 ulp, and the remainder that rounding dropped, for z that is normal or 0.
#[device]
pub(super) fn root(z: f32) -> (f32, f32) {
    let h = half_inverse(z);
    let s = z * (h + h);
    let s = s.mul_add(-s, z).mul_add(h, s);
    (s, s.mul_add(-s, z) * h)
}

/// Returns the length √(x² + y²) of a vector, without overflow or underflow on the way, to 1.024
/// ulp.
///
/// ∞ if x or y is infinite, even beside a NaN; otherwise NaN if x or y is a NaN.
///
/// x and y are scaled by the power of two of the larger magnitude, which is exact. The sum of
/// squares is rounded twice, and the root comes from the seed of [`rsqrt`] and the remainder.
#[device]
pub fn hypot(x: f32, y: f32) -> f32 {
    let (x, y) = (x.abs(), y.abs());
    let (a, b) = if y > x { (y, x) } else { (x, y) };
    let power = (a.to_bits() & 0x7F80_0000).max(0x0080_0000).min(0x7E80_0000);
    let scale = f32::from_bits(0x7F00_0000 - power);
    let (u, v) = (a * scale, b * scale);
    let (length, _) = root(u.mul_add(u, v * v));
    let length = length * f32::from_bits(power);
    if a == f32::INFINITY || b == f32::INFINITY { f32::INFINITY } else { length }
}

/// Returns the cube root, to 0.886 ulp.
///
/// Zeros and infinities are fixed points; NaN for NaN.
///
/// The seed for x^−⅓ comes from the bits, converted to a float: the float's product with −⅓,
/// converted back to bits, has the negated third of the exponent. A step of the fourth order
/// follows, then x·y², and one Newton step on it.
#[device]
pub fn cbrt(x: f32) -> f32 {
    let a = x.abs();
    let subnormal = a < 1.17549435e-38; // 0x1p-126
    let b = if subnormal { a * 16777216.0 } else { a };
    let y = f32::from_bits((b.to_bits() as f32).mul_add(-0.33333334, 1419966976.0) as u32);
    // (1 − h)^−⅓ = 1 + h/3 + 2h²/9 + 14h³/81 + …
    let h = (b * y).mul_add(-(y * y), 1.0);
    let y = (h * y).mul_add(h.mul_add(0.17283951, 0.22222222).mul_add(h, 0.33333334), y);
    let s = y * y;
    let c = b * s;
    let rest = (c * c).mul_add(-c, b);
    let c = (rest * s).mul_add(0.33333334, c);
    let c = if subnormal { c * 0.00390625 } else { c };
    let c = if a == 0.0 || a == f32::INFINITY { a } else { c };
    c.copysign(x)
}
