//! eˣ, 2ˣ and eˣ − 1.

use crate::device;

/// Returns 2ⁿ·p, rounded once, for n from −252 to 254, where `shifted` = n + 12583166.
///
/// The scale is the product of two factors, 2 to the halves of n, since n exceeds the exponents of
/// `f32`. 12583166 is 1.5·2²³ + 2·127: the low bits of the sum are n plus twice the bias of an
/// exponent.
#[device]
pub(super) fn scaled(p: f32, shifted: f32) -> f32 {
    let (low, high) = factors(shifted);
    // The first product is exact, so that a subnormal result is rounded once.
    p * low * high
}

/// Returns the two factors of [`scaled`].
#[device]
pub(super) fn factors(shifted: f32) -> (f32, f32) {
    let bits = shifted.to_bits();
    let low = (bits << 22) & 0x7F80_0000;
    (f32::from_bits(low), f32::from_bits((bits << 23).wrapping_sub(low)))
}

/// Returns c − k·ln 2 for a whole number k, with ln 2 in two parts.
#[device]
pub(super) fn remainder(c: f32, k: f32) -> f32 {
    k.mul_add(-1.42860677e-6, k.mul_add(-0.693145752, c)) // −0x1.7f7d1cp-20, −0x1.62e4p-1
}

/// Returns q(r) of eʳ − 1 ≈ r + r²·q(r), |r| ≤ ln 2 / 2: the minimax polynomial of degree 4 for the
/// relative error of the sum (1.4·10⁻⁸).
#[device]
pub(super) fn second_order(r: f32) -> f32 {
    let q = 0.0013837815f32; // 0x1.6ac002p-10
    let q = q.mul_add(r, 0.00836732); // 0x1.122e2ap-7
    let q = q.mul_add(r, 0.04166774); // 0x1.555796p-5
    let q = q.mul_add(r, 0.16666538); // 0x1.5554a8p-3
    q.mul_add(r, 0.49999997) // 0x1.fffffep-2
}

/// Returns eˣ, to 0.892 ulp.
///
/// Infinity from 88.722839 on, subnormal below −87.33655, 0 below −103.97208; exp(−∞) = 0, exp(∞) =
/// ∞, NaN for NaN.
///
/// The reduction is Cody and Waite's (*Software Manual for the Elementary Functions*, 1980, chapter
/// 6): x = n·ln 2 + r, |r| ≤ ln 2 / 2. ln 2 has two parts, the first of 15 bits, so that its
/// product with n is exact. Then eʳ ≈ 1 + r + r²·q(r), where q is the minimax polynomial of degree
/// 4 for the relative error (3.1·10⁻⁹). The coefficients are rounded to `f32` one after another,
/// and the remaining ones fitted again.
#[device]
pub fn exp(x: f32) -> f32 {
    // Above 88.7 n stays 128, and p grows with x: infinity. A NaN passes through r.
    let c = if x < -104.0 { -104.0 } else { x };
    // Adding 1.5·2²³ leaves the integer nearest to c / ln 2 in the low bits of the sum: no
    // conversion is needed.
    let shifted = c.mul_add(1.442695, 12583166.0).min(12583294.0);
    let k = shifted - 12583166.0;
    let r = remainder(c, k);
    let q = 0.00138213031f32; // 0x1.6a5132p-10
    let q = q.mul_add(r, 0.00836866815); // 0x1.12397ap-7
    let q = q.mul_add(r, 0.0416682586); // 0x1.5558acp-5
    let q = q.mul_add(r, 0.166665211); // 0x1.555492p-3
    let q = q.mul_add(r, 0.49999994); // 0x1.fffffcp-2
    scaled(q.mul_add(r, 1.0).mul_add(r, 1.0), shifted)
}

/// Returns 2ˣ, to 0.919 ulp.
///
/// Exact where x is a whole number. Infinity from 128 on, subnormal below −126, 0 from −150 on;
/// 2^−∞ = 0, 2^∞ = ∞, NaN for NaN.
///
/// x = n + r, |r| ≤ 1/2, and 2ʳ ≈ 1 + r·q(r). q is the minimax polynomial of degree 5 for the
/// relative error (1.3·10⁻⁸ with rounded coefficients).
#[device]
pub fn exp2(x: f32) -> f32 {
    let c = if x < -151.0 { -151.0 } else { x };
    let shifted = (c + 12583166.0).min(12583294.0);
    power_of_two(c - (shifted - 12583166.0), shifted)
}

/// Returns 2 to the r + n, |r| ≤ 1/2, or more if the result is infinite in any case; `shifted` as
/// in [`scaled`].
#[device]
pub(super) fn power_of_two(r: f32, shifted: f32) -> f32 {
    let q = 1.3331945e-4f32; // 0x1.179756p-13
    let q = q.mul_add(r, 0.0013387927); // 0x1.5ef4dcp-10
    let q = q.mul_add(r, 0.009625446); // 0x1.3b6818p-7
    let q = q.mul_add(r, 0.055503663); // 0x1.c6af9ep-5
    let q = q.mul_add(r, 0.24022594); // 0x1.ebfb94p-3
    let q = q.mul_add(r, 0.6931472); // 0x1.62e43p-1
    scaled(q.mul_add(r, 1.0), shifted)
}

/// Returns eˣ − 1 without the cancellation near 0, to 1.289 ulp.
///
/// −1 below −17.4, infinity from 88.722839 on; NaN for NaN. For |x| below 2⁻²⁴ the result is x
/// itself, with the sign of a zero.
///
/// The reduction is that of [`exp`]. The result is 2ⁿ·p + (2ⁿ − 1), where eʳ − 1 ≈ p = r + r²·q(r).
/// All terms are halved, since 2¹²⁸ exceeds `f32`.
#[device]
pub fn exp_m1(x: f32) -> f32 {
    let c = if x < -18.0 { -18.0 } else { x };
    // The low bits are those of the exponent of 2ⁿ⁻¹.
    let shifted = c.mul_add(1.442695, 12583038.0).min(12583166.0);
    let k = shifted - 12583038.0;
    let r = remainder(c, k);
    let q = second_order(r);
    // Halves of 2ⁿ, of 2ⁿ·r, which is exact, and of the result.
    let half = f32::from_bits(shifted.to_bits() << 23);
    let linear = r * half;
    let y = (linear * r).mul_add(q, linear + (half - 0.5));
    if x.abs() < 5.9604645e-8 { x } else { y + y }
}
