//! Sine, cosine and tangent of angles in radians, of any size.

use super::reciprocal;
use crate::device;
use crate::int;

/// Reduces an angle of at least 2¹⁶ to its difference from the nearest multiple n·π/2, in two
/// parts, and n modulo 4.
///
/// Payne and Hanek, *Radian reduction for trigonometric functions*, ACM SIGNUM Newsletter 18, 1983:
/// only those bits of the product of the mantissa with 2/π matter that are worth less than four
/// quarter turns. 96 bits of 2/π give 64 bits of the product; n is the first two of them.
#[device]
fn large_angle(a: f32) -> (f32, f32, u32) {
    // The bits of 2/π after the binary point, after a word of zeros.
    const TWO_OVER_PI: [u32; 8] =
        [0, 0xA2F9_836E, 0x4E44_1529, 0xFC27_57D1, 0xF534_DDC0, 0xDB62_9599, 0x3C43_9041, 0xFE51_63AB];
    let bits = a.to_bits();
    let m = (bits & 0x007F_FFFF) | 0x0080_0000;
    // For the exponent e of a, the mantissa's last bit has the weight 2^(e − 23). The window starts
    // at the bit of 2/π with the weight 2^(24 − e): their product is 2, the upper bit of n.
    let start = (bits >> 23) - 120;
    let (word, bit) = ((start >> 5) as usize, start & 31);
    let w = [TWO_OVER_PI[word], TWO_OVER_PI[word + 1], TWO_OVER_PI[word + 2], TWO_OVER_PI[word + 3]];
    let (high, middle, low) =
        (int::funnel_shl(w[0], w[1], bit), int::funnel_shl(w[1], w[2], bit), int::funnel_shl(w[2], w[3], bit));
    let product = ((m.wrapping_mul(high) as u64) << 32)
        .wrapping_add(m as u64 * middle as u64)
        .wrapping_add(int::mul_hi(m, low) as u64);
    let n = (product.wrapping_add(1 << 61) >> 62) as u32;
    // The rest is a signed fraction of a quarter turn, in units of 2⁻⁶².
    let rest = product.wrapping_sub((n as u64) << 62);
    let negative = rest >> 63 != 0;
    let size = if negative { 0u64.wrapping_sub(rest) } else { rest };
    let zeros = size.leading_zeros();
    let top = ((size << zeros) >> 32) as u32;
    let angle = int::mul_hi(top, 0xC90F_DAA2); // π/2·2³¹
    let near = angle as f32;
    let off = angle.wrapping_sub(near as u32) as i32 as f32;
    // 2^(−29 − zeros), and the sign
    let scale = f32::from_bits(((98 - zeros) << 23) | if negative { 0x8000_0000 } else { 0 });
    // The difference is a NaN for an infinity.
    (near * scale + (a - a), off * scale, n)
}

/// Reduces an angle a ≥ 0 to its difference from the nearest multiple n·π/2, in two parts, and n,
/// whose lowest two bits matter; NaN for infinities and NaNs.
///
/// Up to 105615 the reduction is that of Cody and Waite, with π/2 in three parts: the first two
/// truncated, the last rounded. The first difference is exact, because both terms are multiples of
/// 2⁻²⁴ and the difference is below 1. The rounding error of the second difference is the second
/// part of the result. Without this part a sine just below a power of 2 is off by 1.5 ulp.
#[device]
fn reduced_angle(a: f32) -> (f32, f32, u32) {
    let shifted = a.mul_add(0.63661975, 12582912.0); // 2/π, and 1.5·2²³
    let k = shifted - 12582912.0;
    let near = k.mul_add(-1.5707963, a); // −0x1.921fb4p0
    let p = k * 7.5497894e-8; // 0x1.4442dp-24
    let r = near - p;
    let low = k.mul_add(5.390303e-15, k.mul_add(7.5497894e-8, -p)); // 0x1.84698ap-48
    let rest = (near - r) - p - low;
    if a > 105615.0 { large_angle(a) } else { (r, rest, shifted.to_bits()) }
}

/// Returns sin(r + rest), |r| ≤ π/4: r + r³·q(r²), q minimax of degree 2 (relative error 4.0·10⁻⁹).
#[device]
fn sine(r: f32, rest: f32, z: f32) -> f32 {
    let q = -1.9517895e-4f32; // −0x1.9951e6p-13
    let q = q.mul_add(z, 0.008332187); // 0x1.110774p-7
    let q = q.mul_add(z, -0.16666655); // −0x1.555546p-3
    r + (z * r).mul_add(q, rest)
}

/// Returns cos r for |r| ≤ π/4, given z = r²: 1 + r²·q(r²), q minimax of degree 3 (relative error
/// 1.2·10⁻¹⁰).
#[device]
fn cosine(z: f32) -> f32 {
    let q = 2.4432327e-5f32; // 0x1.99e80cp-16
    let q = q.mul_add(z, -0.001388731); // −0x1.6c0c28p-10
    let q = q.mul_add(z, 0.041666646); // 0x1.55554ap-5
    let q = q.mul_add(z, -0.5);
    q.mul_add(z, 1.0)
}

/// Returns the sine of an angle in radians, to 1.225 ulp.
///
/// A zero keeps its sign; NaN for infinities and NaN.
///
/// x = n·π/2 + r. Up to 105615 the reduction is that of Cody and Waite; for larger angles a branch
/// runs that of Payne and Hanek. The result is ±sin r or ±cos r, each a polynomial.
#[device]
pub fn sin(x: f32) -> f32 {
    let (r, rest, n) = reduced_angle(x.abs());
    let z = r * r;
    let y = if n & 1 == 0 { sine(r, rest, z) } else { cosine(z) };
    f32::from_bits(y.to_bits() ^ (((n << 30) ^ x.to_bits()) & 0x8000_0000))
}

/// Returns the cosine of an angle in radians, to 1.217 ulp.
///
/// NaN for infinities and NaN. As [`sin`].
#[device]
pub fn cos(x: f32) -> f32 {
    let (r, rest, n) = reduced_angle(x.abs());
    let z = r * r;
    let y = if n & 1 == 0 { cosine(z) } else { sine(r, rest, z) };
    f32::from_bits(y.to_bits() ^ ((n.wrapping_add(1) << 30) & 0x8000_0000))
}

/// Returns the sine and the cosine of an angle in radians, which share most of their work: the same
/// bits as [`sin`] and [`cos`].
#[device]
pub fn sin_cos(x: f32) -> (f32, f32) {
    let (r, rest, n) = reduced_angle(x.abs());
    let z = r * r;
    let (s, c) = (sine(r, rest, z), cosine(z));
    let (sin, cos) = if n & 1 == 0 { (s, c) } else { (c, s) };
    (
        f32::from_bits(sin.to_bits() ^ (((n << 30) ^ x.to_bits()) & 0x8000_0000)),
        f32::from_bits(cos.to_bits() ^ ((n.wrapping_add(1) << 30) & 0x8000_0000)),
    )
}

/// Returns the tangent of an angle in radians, to 1.08 ulp.
///
/// A zero keeps its sign; NaN for infinities and NaN.
///
/// The reduction is that of [`sin`], with the rounding error of r as a second part. tan r ≈ r +
/// r³·q(r²), q minimax of degree 6 (relative error 1.3·10⁻⁹), also in two parts t + u. If n is odd,
/// the result is −1 / (t + u): an approximate reciprocal of t, and a last step with both parts.
#[device]
pub fn tan(x: f32) -> f32 {
    let (near, off, n) = reduced_angle(x.abs());
    // Next to a multiple of π/2 the second part may be as large as the first.
    let r = near + off;
    let rest = off - (r - near);
    let z = r * r;
    let q = 0.004380941f32; // 0x1.1f1bfep-8
    let q = q.mul_add(z, 8.288595e-5); // 0x1.5ba61cp-14
    let q = q.mul_add(z, 0.010838305); // 0x1.63264ap-7
    let q = q.mul_add(z, 0.021282611); // 0x1.5cb1bep-6
    let q = q.mul_add(z, 0.05405946); // 0x1.badae8p-5
    let q = q.mul_add(z, 0.13332672); // 0x1.110d9ap-3
    let q = q.mul_add(z, 0.3333335); // 0x1.55556p-2
    let p = z * r * q;
    let t = r + p;
    // tan(r + rest) = tan r + rest·(1 + tan² r)
    let u = (r - t) + p + rest.mul_add(t * t, rest);
    let i = reciprocal::refine(t, reciprocal::approximate_reciprocal(t));
    let inverse = i.mul_add(u.mul_add(-i, t.mul_add(-i, 1.0)), i);
    let y = if n & 1 == 0 { t + u } else { -inverse };
    f32::from_bits(y.to_bits() ^ (x.to_bits() & 0x8000_0000))
}
