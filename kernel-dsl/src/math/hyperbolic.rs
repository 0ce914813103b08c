//! The hyperbolic functions and the logistic function.

use super::exponential::{factors, remainder, second_order};
use super::reciprocal;
use crate::device;

/// Returns eᶜ for c from −80 to 80, to a relative 2⁻²¹: for sums with a larger number.
///
/// The method is that of [`exp`](super::exp), with ln 2 in one part and a polynomial of degree 5
/// (1.3·10⁻⁷). n is added to the exponent of eʳ.
#[device]
pub(super) fn coarse_exp(c: f32) -> f32 {
    let shifted = c.mul_add(1.442695, 12582912.0);
    let r = (shifted - 12582912.0).mul_add(-0.6931472, c);
    let p = 0.008536997f32; // 0x1.17bd86p-7
    let p = p.mul_add(r, 0.0419552); // 0x1.57b26ep-5
    let p = p.mul_add(r, 0.16664529); // 0x1.554a2p-3
    let p = p.mul_add(r, 0.4999848); // 0x1.fffc04p-2
    let p = p.mul_add(r, 1.0000004); // 0x1.000006p0
    let p = p.mul_add(r, 1.0000001); // 0x1.000002p0
    f32::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// Returns 2ⁿ⁻² and 2⁻ⁿ⁻², 0 ≤ n ≤ 129, from the bits of the first; 0 for a subnormal second.
/// The difference and the sum of both are half the hyperbolic sine and cosine of n·ln 2.
#[device]
fn powers(bits: u32) -> (f32, f32) {
    let inverse = (0x7D00_0000u32.wrapping_sub(bits) as i32).max(0) as u32;
    (f32::from_bits(bits), f32::from_bits(inverse))
}

/// Returns cosh r − 1 for |r| ≤ ln 2 / 2, given z = r²: a minimax polynomial of degree 3, to
/// 1.0·10⁻¹⁰.
#[device]
fn cosh_minus_one(z: f32) -> f32 {
    let q = 0.0013935466f32; // 0x1.6d4f54p-10
    let q = q.mul_add(z, 0.04166646); // 0x1.5554e6p-5
    q.mul_add(z, 0.5) * z
}

/// Returns the hyperbolic sine, to 1.446 ulp.
///
/// ±∞ beyond ±89.415985; a zero keeps its sign; NaN for NaN.
///
/// With |x| = n·ln 2 + r, where n is 0 below 1, the result is sinh(n·ln 2)·cosh r + cosh(n·ln
/// 2)·sinh r. Both first factors come from two powers of two. sinh r ≈ r + r³·q(r²), q minimax of
/// degree 3 up to 1 (relative error 3.1·10⁻¹⁰). All terms are halved, since e⁸⁹ exceeds `f32`.
#[device]
pub fn sinh(x: f32) -> f32 {
    let a = x.abs();
    let c = if a > 89.5 { 89.5 } else { a };
    // 12583037 is 1.5·2²³ + 125: the low bits are those of the exponent of 2ⁿ⁻².
    let shifted = if a < 1.0 { 12583037.0 } else { c.mul_add(1.442695, 12583037.0) };
    let r = remainder(c, shifted - 12583037.0);
    let z = r * r;
    let q = 2.7822132e-6f32; // 0x1.756c1ep-19
    let q = q.mul_add(z, 1.9842896e-4); // 0x1.a022bcp-13
    let q = q.mul_add(z, 0.0083333105); // 0x1.1110ep-7
    let q = q.mul_add(z, 0.16666667); // 0x1.555556p-3
    let s = (z * r).mul_add(q, r);
    let (p, m) = powers(shifted.to_bits() << 23);
    // Only the smaller product is rounded on its own; the larger one is part of the fused sum.
    let y = (p - m) + (p + m).mul_add(s, (p - m) * cosh_minus_one(z));
    // A subnormal number may have no exact half.
    let y = if a < 1.2207031e-4 { a } else { y + y };
    y.copysign(x)
}

/// Returns the hyperbolic cosine, to 1.297 ulp.
///
/// ∞ beyond ±89.415985; NaN for NaN.
///
/// As [`sinh`]: cosh(n·ln 2)·cosh r + sinh(n·ln 2)·sinh r, q of degree 1 up to ln 2 / 2 (1.4·10⁻⁸
/// of sinh r).
#[device]
pub fn cosh(x: f32) -> f32 {
    let a = x.abs();
    let c = if a > 89.5 { 89.5 } else { a };
    let shifted = c.mul_add(1.442695, 12583037.0);
    let r = remainder(c, shifted - 12583037.0);
    let z = r * r;
    let q = 0.008366735f32; // 0x1.122942p-7
    let q = q.mul_add(z, 0.16666542); // 0x1.5554aep-3
    let s = (z * r).mul_add(q, r);
    let (p, m) = powers(shifted.to_bits() << 23);
    // m is added to the small terms, because a rounded sum p + m may be off by one place of the
    // result.
    let y = p + (p - m).mul_add(s, (p + m).mul_add(cosh_minus_one(z), m));
    y + y
}

/// Returns the hyperbolic tangent, to 1.279 ulp.
///
/// ±1 beyond ±9.02; a zero keeps its sign; NaN for NaN.
///
/// Up to 1 the result is x + x³·q(x²), q minimax of degree 6 (relative error 4.7·10⁻⁹). Above 1 it
/// is 1 − 2 / (e²ˣ + 1): the quotient is below 0.24, so its relative error matters little in the
/// result. Both forms are computed, so there is no branch.
#[device]
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let z = x * x;
    let q = -3.585959e-4f32; // −0x1.7803dap-12
    let q = q.mul_add(z, 0.0023018846); // 0x1.2db66ep-9
    let q = q.mul_add(z, -0.007946845); // −0x1.0466f8p-7
    let q = q.mul_add(z, 0.021487176); // 0x1.600bcp-6
    let q = q.mul_add(z, -0.053879987); // −0x1.b96286p-5
    let q = q.mul_add(z, 0.13332348); // 0x1.110be6p-3
    let q = q.mul_add(z, -0.33333296); // −0x1.55553cp-2
    let near = (z * a).mul_add(q, a);
    let b = a.min(10.0);
    let d = coarse_exp(b + b) + 1.0;
    let far = reciprocal::cubic(d, reciprocal::approximate_reciprocal(d)).mul_add(-2.0, 1.0);
    (if a >= 1.0 { far } else { near }).copysign(x)
}

/// Returns the logistic function 1 / (1 + e⁻ˣ), to 1.041 ulp.
///
/// 0 below −103.97, subnormal below −87.33; 1 above 17.33; NaN for NaN.
///
/// Let E = e^−|x| = 2ⁿ·(h + l), where l is the rounding error of h. The result is 1 / (1 + E) or E
/// / (1 + E). A first quotient uses an approximate reciprocal: a minimax polynomial of degree 3 on
/// \[1, 2\] (1.7·10⁻³) and a Newton step. The remainder of the numerator, with the low parts of
/// both, is divided by the same reciprocal. The reduction is that of [`exp`](super::exp), q that of
/// [`exp_m1`](super::exp_m1).
#[device]
pub fn sigmoid(x: f32) -> f32 {
    let c = if x.abs() > 104.0 { -104.0 } else { -x.abs() };
    let shifted = c.mul_add(1.442695, 12583166.0);
    let k = shifted - 12583166.0;
    let r = remainder(c, k);
    let p = (r * r).mul_add(second_order(r), r);
    let h = 1.0 + p;
    let l = (1.0 - h) + p;
    // In the sum 1 + E, values below 2⁻¹⁰⁰ have no effect.
    let (first, second) = factors(shifted);
    let (eh, el) = (h * first * second, l * first * second);
    let d = 1.0 + eh;
    let dl = (1.0 - d) + eh + el;
    let i = (-0.22183748f32).mul_add(d, 1.3310249).mul_add(d, -2.9393458).mul_add(d, 2.8284254);
    let i = reciprocal::refine(d, i);
    let (nh, nl) = if x < 0.0 { (h, l) } else { (1.0, 0.0) };
    let y = nh * i;
    let rest = y.mul_add(-dl, y.mul_add(-d, nh)) + nl;
    let y = rest.mul_add(i, y);
    if x < 0.0 { y * first * second } else { y }
}
