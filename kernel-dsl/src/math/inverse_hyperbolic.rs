//! The inverses of the hyperbolic functions.

use super::logarithm::near_one;
use super::reciprocal;
use super::roots::half_inverse;
use crate::device;

/// Returns q(z) of asinh t ≈ t + t³·q(t²), |t| ≤ 1/2: the minimax polynomial of degree 4 for the
/// relative error of the sum (1.3·10⁻⁹).
#[device]
fn area_sine(z: f32) -> f32 {
    let q = -0.013222113f32; // −0x1.b1432p-7
    let q = q.mul_add(z, 0.028160654); // 0x1.cd6258p-6
    let q = q.mul_add(z, -0.04438293); // −0x1.6b95cp-5
    let q = q.mul_add(z, 0.074986406); // 0x1.3324f2p-4
    q.mul_add(z, -0.16666643) // −0x1.555536p-3
}

/// Returns ln((w + low)·2ᵐ) for a finite w of at least 1 and a `low` that is tiny compared with w.
/// The method is that of [`ln`](super::ln).
#[device]
fn ln_of_sum(w: f32, low: f32, m: f32) -> f32 {
    let bits = w.to_bits();
    let exponent = bits.wrapping_sub(0x3F2A_AAAB) & 0xFF80_0000; // 2/3
    let z = f32::from_bits(bits.wrapping_sub(exponent)) - 1.0;
    let z = low.mul_add(f32::from_bits(0x3F80_0000u32.wrapping_sub(exponent)), z);
    let n = (exponent as i32 as f32).mul_add(1.1920929e-7, m); // 0x1p-23
    n.mul_add(0.693147182, near_one(z)) // 0x1.62e43p-1
}

/// Returns ln(a + s + c) for positive a ≤ s, or ln 2b if b is so large that a and s equal b.
/// Returns b itself if b is infinite or a NaN.
#[device]
fn ln_of_larger(b: f32, a: f32, s: f32, c: f32) -> f32 {
    let w = s + a;
    let low = (s - w) + a + c;
    let (w, low, m) = if b > 4096.0 { (b * 0.5, 0.0, 2.0) } else { (w, low, 0.0) };
    let y = ln_of_sum(w, low, m);
    if b < f32::INFINITY { y } else { b }
}

/// Returns the inverse hyperbolic sine, to 1.272 ulp.
///
/// Zeros and infinities are fixed points; NaN for NaN.
///
/// Up to ½ the result is a polynomial. Above ½ it is ln(|x| + √(x² + 1)), with the square, the root
/// and the sum in two parts. Both forms are computed, so there is no branch.
#[device]
pub fn asinh(x: f32) -> f32 {
    let a = x.abs();
    let z = a * a;
    let near = (a * z).mul_add(area_sine(z), a);
    let u = a.mul_add(a, 1.0);
    let low = a.mul_add(a, 1.0 - u);
    let h = half_inverse(u);
    let s = u * (h + h);
    let c = (s.mul_add(-s, u) + low) * h;
    let far = ln_of_larger(a, a, s, c);
    (if a < 0.5 { near } else { far }).copysign(x)
}

/// Returns the inverse hyperbolic cosine, to 1.262 ulp.
///
/// +0 at 1, ∞ at ∞; NaN for NaN and below 1.
///
/// Up to 1½ the result is 2·asinh √((x − 1)/2), by the polynomial of [`asinh`] and a root in two
/// parts. From there it is ln(x + √(x² − 1)), as in [`asinh`].
#[device]
pub fn acosh(x: f32) -> f32 {
    let near = x < 1.5;
    let q = x * x;
    // Both differences are exact where they are used: q is then between 2 and 2²⁴.
    let u = if near { x.mul_add(0.5, -0.5) } else { q - 1.0 };
    let low = if near { 0.0 } else { x.mul_add(x, -q) };
    let h = half_inverse(u);
    let s = u * (h + h);
    let s = s.mul_add(-s, u).mul_add(h, s);
    let c = (s.mul_add(-s, u) + low) * h;
    let t = s + s;
    let small = t + (t * u).mul_add(area_sine(u), c + c);
    let large = ln_of_larger(x, s, x, c);
    let y = if near { small } else { large };
    if x < 1.0 { f32::NAN } else { y }
}

/// Returns the inverse hyperbolic tangent, to 0.883 ulp.
///
/// A zero keeps its sign; ±∞ at ±1; NaN for NaN and beyond.
///
/// Up to ½ the result is x + x³·q(x²), q minimax of degree 5 (relative error 1.4·10⁻⁹). Above ½ it
/// is ½·ln((1 + |x|)/(1 − |x|)), with the quotient in two parts, from an approximate reciprocal and
/// the remainder. Both forms are computed, so there is no branch.
#[device]
pub fn atanh(x: f32) -> f32 {
    let a = x.abs();
    let z = a * a;
    let q = 0.17638071f32; // 0x1.693a4ap-3
    let q = q.mul_add(z, 0.051603064); // 0x1.a6bb78p-5
    let q = q.mul_add(z, 0.11816411); // 0x1.e4000cp-4
    let q = q.mul_add(z, 0.14223784); // 0x1.234d98p-3
    let q = q.mul_add(z, 0.20002453); // 0x1.99a676p-3
    let q = q.mul_add(z, 0.33333302); // 0x1.55554p-2
    let near = (a * z).mul_add(q, a);
    // The divisor is exact. The rounding error of the sum is exact, too.
    let (n, d) = (1.0 + a, 1.0 - a);
    let i = reciprocal::refine(d, reciprocal::approximate_reciprocal(d));
    let w = n * i;
    let low = (w.mul_add(-d, n) + (a - (n - 1.0))) * i;
    let far = 0.5 * ln_of_sum(w, low, 0.0);
    let edge = if a == 1.0 { f32::INFINITY } else { f32::NAN };
    let far = if a < 1.0 { far } else { edge };
    (if a < 0.5 { near } else { far }).copysign(x)
}
