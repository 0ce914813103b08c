//! Logarithms: natural, to the bases 2 and 10, and of 1 + x.

use crate::device;

/// Splits a positive finite x = (1 + z)·2ⁿ into z and n, where 1 + z lies between the number with
/// the bits `least` and its double.
#[device]
fn parts(x: f32, least: u32) -> (f32, f32) {
    let subnormal = x < 1.17549435e-38; // 0x1p-126
    let a = if subnormal { x * 8388608.0 } else { x };
    let scale = if subnormal { -23.0f32 } else { 0.0 };
    let bits = a.to_bits();
    let exponent = bits.wrapping_sub(least) & 0xFF80_0000;
    let z = f32::from_bits(bits.wrapping_sub(exponent)) - 1.0;
    (z, (exponent as i32 as f32).mul_add(1.1920929e-7, scale)) // 0x1p-23
}

/// Returns y, but −∞ where x = 0, ∞ where x = ∞, and NaN where x < 0 or x is a NaN.
#[device]
fn with_special_cases(x: f32, y: f32) -> f32 {
    // Negative numbers also have larger unsigned bits: for them ∞·x + ∞ is −∞ + ∞, a NaN.
    let y = if x.to_bits() < 0x7F80_0000 { y } else { x.mul_add(f32::INFINITY, f32::INFINITY) };
    if x == 0.0 { f32::NEG_INFINITY } else { y }
}

/// Returns ln(1 + z) for z from −1/3 to 1/3: z − z²/2 + z³·q(z), q minimax of degree 7 for the
/// relative error of the sum (4.7·10⁻⁹).
#[device]
pub(super) fn near_one(z: f32) -> f32 {
    let q = -0.128745154f32; // −0x1.07ab8ap-3
    let q = q.mul_add(z, 0.139865175); // 0x1.1e71a2p-3
    let q = q.mul_add(z, -0.121883407); // −0x1.f33c04p-4
    let q = q.mul_add(z, 0.140053749); // 0x1.1ed48p-3
    let q = q.mul_add(z, -0.16680181); // −0x1.559c3p-3
    let q = q.mul_add(z, 0.20010443); // 0x1.99d05ap-3
    let q = q.mul_add(z, -0.249998048); // −0x1.fffefap-3
    let q = q.mul_add(z, 0.333332151); // 0x1.555506p-2
    q.mul_add(z, -0.5).mul_add(z * z, z)
}

/// Returns the natural logarithm, to 0.934 ulp.
///
/// ln(±0) = −∞, ln(∞) = ∞; NaN for NaN and negative numbers.
///
/// x = m·2ⁿ with m from 2/3 to 4/3, so that z = m − 1 is exact and nothing cancels near 1. ln(1 +
/// z) ≈ z − z²/2 + z³·q(z), where q is the minimax polynomial of degree 7 for the relative error
/// (4.7·10⁻⁹). The coefficients are rounded to `f32` one after another, and the remaining ones
/// fitted again. n·ln 2 is added with one rounding. The reduction is that of FreeBSD's msun
/// (`e_logf.c`) with another interval.
#[device]
pub fn ln(x: f32) -> f32 {
    let (z, n) = parts(x, 0x3F2A_AAAB); // 2/3
    with_special_cases(x, n.mul_add(0.693147182, near_one(z))) // 0x1.62e43p-1
}

/// Returns the logarithm to base 2, to 0.987 ulp.
///
/// Exact for powers of 2. Zeros, infinities and negative numbers as in [`ln`].
///
/// x = (1 + z)·2ⁿ with 1 + z from √½ to √2. There |log₂(1 + z)| ≤ ½ ≤ |log₂ x| unless n = 0, so
/// that the sum with n magnifies no error. log₂(1 + z) ≈ z·log₂ e + z²·q(z), with log₂ e in two
/// parts, and q minimax of degree 8 (relative error 9.1·10⁻⁹).
#[device]
pub fn log2(x: f32) -> f32 {
    let (z, n) = parts(x, 0x3F35_04F3); // √½
    let q = -0.08379352f32; // −0x1.5737ep-4
    let q = q.mul_add(z, 0.17349145); // 0x1.634f7cp-3
    let q = q.mul_add(z, -0.19542855); // −0x1.903cd8p-3
    let q = q.mul_add(z, 0.20688315); // 0x1.a7b25ap-3
    let q = q.mul_add(z, -0.23937966); // −0x1.ea3fe2p-3
    let q = q.mul_add(z, 0.28844228); // 0x1.275d6ap-2
    let q = q.mul_add(z, -0.3607014); // −0x1.715bb6p-2
    let q = q.mul_add(z, 0.4809002); // 0x1.ec711ap-2
    let q = q.mul_add(z, -0.72134733); // −0x1.71547p-1
    let low = q.mul_add(z, 1.925963e-8) * z; // 0x1.4ae0cp-26
    with_special_cases(x, z.mul_add(1.442695, low) + n) // 0x1.715476p0
}

/// Returns the logarithm to base 10, to 1.02 ulp.
///
/// Zeros, infinities and negative numbers as in [`ln`].
///
/// The method is that of [`log2`], with log₁₀ e and, for n, log₁₀ 2 in two parts (relative error of
/// the polynomial 1.1·10⁻⁸).
#[device]
pub fn log10(x: f32) -> f32 {
    let (z, n) = parts(x, 0x3F35_04F3); // √½
    let q = -0.022783052f32; // −0x1.75470cp-6
    let q = q.mul_add(z, 0.050839227); // 0x1.a07996p-5
    let q = q.mul_add(z, -0.05914406); // −0x1.e48216p-5
    let q = q.mul_add(z, 0.06251939); // 0x1.001454p-4
    let q = q.mul_add(z, -0.07205161); // −0x1.271f96p-4
    let q = q.mul_add(z, 0.08681682); // 0x1.639a08p-4
    let q = q.mul_add(z, -0.10858187); // −0x1.bcc058p-4
    let q = q.mul_add(z, 0.14476559); // 0x1.287adcp-3
    let q = q.mul_add(z, -0.21714719); // −0x1.bcb7aap-3
    let low = q.mul_add(z, -1.010305e-8) * z; // −0x1.5b235ep-27
    let low = n.mul_add(-1.4320989e-8, low); // −0x1.ec10cp-27
    let p = z.mul_add(0.4342945, low); // 0x1.bcb7b2p-2
    with_special_cases(x, n.mul_add(0.30103, p)) // 0x1.344136p-2
}

/// Returns ln(1 + x) without the rounding error of 1 + x near 0, to 1.269 ulp.
///
/// A zero keeps its sign; ln_1p(−1) = −∞, ln_1p(∞) = ∞; NaN for NaN and below −1.
///
/// The rounded sum 1 + x, between ¾·2ⁿ and 1½·2ⁿ, determines n. z = x·2⁻ⁿ + (2⁻ⁿ − 1) is exact for
/// n from −1 to 1 and rounded once elsewhere. ln(1 + z) as in [`ln`], with q minimax of degree 8
/// (relative error 1.5·10⁻⁹).
#[device]
pub fn ln_1p(x: f32) -> f32 {
    let u = 1.0 + x;
    let exponent = u.to_bits().wrapping_sub(0x3F40_0000) & 0xFF80_0000; // ¾
    // 4·2⁻ⁿ, since 2⁻¹²⁸ is subnormal.
    let scale = f32::from_bits(0x4080_0000u32.wrapping_sub(exponent));
    let z = f32::from_bits(x.to_bits().wrapping_sub(exponent)) - scale.mul_add(-0.25, 1.0);
    let n = exponent as i32 as f32 * 1.1920929e-7; // 0x1p-23
    let q = 0.038541608f32; // 0x1.3bbb9cp-5
    let q = q.mul_add(z, -0.09197145); // −0x1.78b70ep-4
    let q = q.mul_add(z, 0.11711533); // 0x1.dfb454p-4
    let q = q.mul_add(z, -0.12722024); // −0x1.048c0cp-3
    let q = q.mul_add(z, 0.1427581); // 0x1.245e5cp-3
    let q = q.mul_add(z, -0.16655451); // −0x1.551a88p-3
    let q = q.mul_add(z, 0.19999565); // 0x1.999752p-3
    let q = q.mul_add(z, -0.25000167); // −0x1.00007p-2
    let q = q.mul_add(z, 0.3333334); // 0x1.55555ap-2
    let p = q.mul_add(z, -0.5).mul_add(z * z, z);
    let y = with_special_cases(u, n.mul_add(0.693147182, p)); // 0x1.62e43p-1
    // The result has the sign of x. For −0, the last sum has lost the sign.
    f32::from_bits(y.to_bits() | (x.to_bits() & 0x8000_0000))
}
