//! eˣ, 2ˣ and eˣ − 1: as for `f32`, with more terms.

use crate::device;

/// Returns 2ⁿ·p, rounded once, for n from −2044 to 2046, where `shifted` = n + 6755399441057790,
/// which is 1.5·2⁵² + 2·1023.
#[device]
pub(super) fn scaled(p: f64, shifted: f64) -> f64 {
    let bits = shifted.to_bits();
    let low = (bits << 51) & 0x7FF0_0000_0000_0000;
    let high = (bits << 52).wrapping_sub(low);
    p * f64::from_bits(low) * f64::from_bits(high)
}

/// Returns c − k·ln 2 for a whole number k, with ln 2 in parts of 40 and 53 bits.
#[device]
fn remainder(c: f64, k: f64) -> f64 {
    k.mul_add(-7.371002565167799e-13, k.mul_add(-0.6931471805592082, c))
}

/// Returns q(r) of eʳ ≈ 1 + r + r²·q(r), |r| ≤ ln 2 / 2: a minimax polynomial of degree 9 (relative
/// error 3.7·10⁻¹⁸).
#[device]
fn second_order(r: f64) -> f64 {
    let q = 2.501883741878867e-8f64; // 0x1.add202b818922p-26
    let q = q.mul_add(r, 2.763077583888821e-7); // 0x1.28aee5f6e1053p-22
    let q = q.mul_add(r, 2.7557534579967125e-6); // 0x1.71def7c3478bbp-19
    let q = q.mul_add(r, 2.4801491702029118e-5); // 0x1.a019988337da4p-16
    let q = q.mul_add(r, 0.0001984126955597362); // 0x1.a01a013bb8ceap-13
    let q = q.mul_add(r, 0.0013888888944890792); // 0x1.6c16c184b8026p-10
    let q = q.mul_add(r, 0.0083333333334757); // 0x1.11111111251a6p-7
    let q = q.mul_add(r, 0.041666666666525735); // 0x1.55555555505ffp-5
    let q = q.mul_add(r, 0.16666666666666435); // 0x1.5555555555502p-3
    q.mul_add(r, 0.5000000000000011) // 0x1.000000000000ap-1
}

/// Returns eˣ.
///
/// Infinity from 709.78 on, subnormal below −708.4, 0 below −745.13; exp(−∞) = 0, exp(∞) = ∞, NaN
/// for NaN.
///
/// The method is that of [`math::exp`](crate::math::exp), with more bits and terms.
#[device]
pub fn exp(x: f64) -> f64 {
    let c = if x < -746.0 { -746.0 } else { x };
    let shifted = c.mul_add(1.4426950408889634, 6755399441057790.0).min(6755399441058814.0);
    let k = shifted - 6755399441057790.0;
    let r = remainder(c, k);
    let q = second_order(r);
    scaled(q.mul_add(r, 1.0).mul_add(r, 1.0), shifted)
}

/// Returns 2ˣ, exact where x is a whole number.
///
/// Infinity from 1024 on, subnormal below −1022, 0 from −1075 on; 2^−∞ = 0, 2^∞ = ∞, NaN for NaN.
/// The polynomial is 1 + r·q(r), q of degree 10 (relative error 6.3·10⁻¹⁸).
#[device]
pub fn exp2(x: f64) -> f64 {
    let c = if x < -1076.0 { -1076.0 } else { x };
    let shifted = (c + 6755399441057790.0).min(6755399441058814.0);
    power_of_two(c - (shifted - 6755399441057790.0), shifted)
}

/// Returns 2 to the r + n, |r| ≤ 1/2; `shifted` as in [`scaled`].
#[device]
pub(super) fn power_of_two(r: f64, shifted: f64) -> f64 {
    let q = 4.519060175490139e-10f64; // 0x1.f0e03c5b1890ap-32
    let q = q.mul_add(r, 7.07560881193616e-9); // 0x1.e63b6d357786fp-28
    let q = q.mul_add(r, 1.0177657230090411e-7); // 0x1.b52086516e2cbp-24
    let q = q.mul_add(r, 1.321542451758573e-6); // 0x1.62bfb4ad4b50cp-20
    let q = q.mul_add(r, 1.5252734736386614e-5); // 0x1.ffcbfe65657f3p-17
    let q = q.mul_add(r, 0.00015403530478807665); // 0x1.430913167af73p-13
    let q = q.mul_add(r, 0.0013333558145568168); // 0x1.5d87fe7845975p-10
    let q = q.mul_add(r, 0.009618129107577091); // 0x1.3b2ab6fb9dac1p-7
    let q = q.mul_add(r, 0.055504108664824574); // 0x1.c6b08d704a26fp-5
    let q = q.mul_add(r, 0.24022650695910172); // 0x1.ebfbdff82c5b3p-3
    let q = q.mul_add(r, 0.6931471805599453); // 0x1.62e42fefa39efp-1
    scaled(q.mul_add(r, 1.0), shifted)
}

/// Returns eˣ − 1 without the cancellation near 0.
///
/// −1 below −37.5, infinity from 709.78 on; NaN for NaN. For |x| below 2⁻⁵³ the result is x itself,
/// with the sign of a zero. The method is that of [`math::exp_m1`](crate::math::exp_m1).
#[device]
pub fn exp_m1(x: f64) -> f64 {
    let c = if x < -39.0 { -39.0 } else { x };
    let shifted = c.mul_add(1.4426950408889634, 6755399441056766.0).min(6755399441057790.0);
    let k = shifted - 6755399441056766.0;
    let r = remainder(c, k);
    let q = second_order(r);
    let half = f64::from_bits(shifted.to_bits() << 52);
    let linear = r * half;
    let y = (linear * r).mul_add(q, linear + (half - 0.5));
    if x.abs() < 1.1102230246251565e-16 { x } else { y + y }
}
