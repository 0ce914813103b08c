//! Inverse trigonometric functions.

use super::reciprocal;
use super::roots::root;
use crate::device;

// π/2 and π are less than these by 4.371139e-8 and 8.742278e-8, which is more than half of the last
// place of a result near 1.

/// Returns q(z) of asin t ≈ t + t³·q(t²), |t| ≤ 1/2: the minimax polynomial of degree 4 for the
/// relative error of the sum (4.9·10⁻⁹).
#[device]
fn arcsine(z: f32) -> f32 {
    let q = 0.042158388f32; // 0x1.595c8cp-5
    let q = q.mul_add(z, 0.024184743); // 0x1.8c3e2ap-6
    let q = q.mul_add(z, 0.045469154); // 0x1.747bbap-5
    let q = q.mul_add(z, 0.074953094); // 0x1.330204p-4
    q.mul_add(z, 0.16666752) // 0x1.5555c8p-3
}

/// Returns the angle from −π/2 to π/2 whose sine is x, to 1.011 ulp.
///
/// A zero keeps its sign; NaN for NaN and beyond ±1.
///
/// Up to ½ the result is a polynomial. Above ½ it is π/2 − 2·asin √((1 − |x|)/2), by the same
/// polynomial, with the root in two parts. Both forms are computed, so there is no branch.
#[device]
pub fn asin(x: f32) -> f32 {
    let a = x.abs();
    let near = a < 0.5;
    // The difference is exact.
    let z = if near { a * a } else { a.mul_add(-0.5, 0.5) };
    let q = arcsine(z);
    let (s, c) = root(z);
    let t = s + s;
    let rest = (t * z).mul_add(q, c.mul_add(2.0, 4.371139e-8));
    // π/2 is added in two halves: the first difference is rounded by less than the result.
    let far = if a > 1.0 { f32::NAN } else { 0.7853982 + ((0.7853982 - t) - rest) };
    (if near { (a * z).mul_add(q, a) } else { far }).copysign(x)
}

/// Returns the angle from 0 to π whose cosine is x, to 1.047 ulp.
///
/// NaN for NaN and beyond ±1.
///
/// Up to ½ the result is π/2 − asin x. Above ½ it is 2·asin √((1 − |x|)/2), or π minus that for
/// negative x.
#[device]
pub fn acos(x: f32) -> f32 {
    let a = x.abs();
    let near = a < 0.5;
    let z = if near { a * a } else { a.mul_add(-0.5, 0.5) };
    let q = arcsine(z);
    let (s, c) = root(z);
    let (t, c) = if near { (x, 0.0) } else { (s + s, c + c) };
    let rest = (t * z).mul_add(q, c);
    let (whole, less) = if near { (1.5707964, 4.371139e-8) } else { (3.1415927, 8.742278e-8) };
    let y = if x >= 0.5 { t + rest } else { (whole - t) - (rest + less) };
    if a > 1.0 { f32::NAN } else { y }
}

/// Returns q(z) of atan t ≈ t + t³·q(t²), |t| ≤ 1: the minimax polynomial of degree 8 for the
/// relative error of the sum (2.7·10⁻⁹).
#[device]
fn arctangent(z: f32) -> f32 {
    let q = -0.0017889632f32; // −0x1.d4f74ap-10
    let q = q.mul_add(z, 0.010892811); // 0x1.64ef86p-7
    let q = q.mul_add(z, -0.031135246); // −0x1.fe1ebp-6
    let q = q.mul_add(z, 0.057912596); // 0x1.da6b84p-5
    let q = q.mul_add(z, -0.08400679); // −0x1.58178p-4
    let q = q.mul_add(z, 0.10951187); // 0x1.c08f84p-4
    let q = q.mul_add(z, -0.14264043); // −0x1.2420aap-3
    let q = q.mul_add(z, 0.1999853); // 0x1.9991e4p-3
    q.mul_add(z, -0.333333) // −0x1.55553ep-2
}

/// Returns the angle from −π/2 to π/2 whose tangent is x, to 1.237 ulp.
///
/// A zero keeps its sign; ±π/2 at ±∞; NaN for NaN.
///
/// Up to 1 the result is a polynomial. Above 1 it is π/2 − atan(1/|x|), by an approximate
/// reciprocal.
#[device]
pub fn atan(x: f32) -> f32 {
    let a = x.abs();
    let far = a > 1.0;
    // For larger numbers the result is π/2.
    let d = a.min(1.2676506e30); // 0x1p100
    let i = reciprocal::cubic(d, reciprocal::approximate_reciprocal(d));
    let (t, low) = if far { (i, 4.371139e-8) } else { (a, 0.0) };
    let z = t * t;
    let p = t + (z * t).mul_add(arctangent(z), low);
    (if far { 1.5707964 - p } else { p }).copysign(x)
}

/// Returns the angle from −π to π of the point (x, y), the angle of y / x in its quadrant, to 1.718
/// ulp.
///
/// Special cases follow C99 (annex F.9.1.4). The sign is that of y, including zeros. If y is 0, the
/// result is 0 for positive x and π for negative x, including zeros. Infinities have the ratio 1.
/// NaN if either is NaN.
///
/// [`atan`] of the smaller over the larger magnitude is added to 0, π/2 or π. The quotient comes
/// from an approximate reciprocal and the remainder. If the larger magnitude is close to 0 or
/// infinite, a branch scales both.
#[device]
pub fn atan2(y: f32, x: f32) -> f32 {
    let (a, b) = (x.abs(), y.abs());
    let steep = b > a;
    let (n, d) = if steep { (a, b) } else { (b, a) };
    // From 2⁻¹⁰⁰ to 2¹²⁶ both 1 / d and the remainder of the quotient are representable.
    let ordinary = d.to_bits().wrapping_sub(0x0D80_0000) < 0x7100_0000;
    let (n, d) = if ordinary { (n, d) } else { scale_fraction(n, d) };
    let i = reciprocal::cubic(d, reciprocal::approximate_reciprocal(d));
    let t = n * i;
    let t = t.mul_add(-d, n).mul_add(i, t);

    let left = x.is_sign_negative();
    let (whole, low) = if left { (3.1415927, -8.742278e-8) } else { (0.0, 0.0) };
    let (whole, low) = if steep { (1.5707964, -4.371139e-8) } else { (whole, low) };
    let z = t * t;
    let t = if steep != left { -t } else { t };
    (whole + (t + (z * t).mul_add(arctangent(z), low))).copysign(y)
}

/// Scales n / d ≤ 1 so that the divisor has a reciprocal, where that of d overflows.
#[device]
fn scale_fraction(n: f32, d: f32) -> (f32, f32) {
    if d == f32::INFINITY {
        // The ratio of a finite to an infinite number is 0; a NaN stays a NaN.
        (if n == d { 1.0 } else { n * 0.0 }, 1.0)
    } else if d == 0.0 {
        (n, 1.0)
    } else if d > 1.0 {
        (n * 0.0625, d * 0.0625)
    } else {
        (n * 1.2676506e30, d * 1.2676506e30) // 0x1p100
    }
}
