//! Transcendental functions made of exact operations: the same bits on the host, in the interpreters and on every GPU.
//!
//! Each is plain Rust within the language of kernels, and uses nothing but operations that IEEE 754 rounds correctly.
//! They have no division and no loop: some two dozen instructions each, one of them in `ln` a conversion.
//! Errors are in units of the result's last place (ulp), against the exact value, the largest over every `f32` there
//! is; measured by `cargo run --release -p kernel-dsl --example ulp`.

// Constants are decimals that round to the `f32` whose bits stand beside them, and the language of kernels has neither
// `clamp` nor `is_nan`.
#![allow(clippy::excessive_precision, clippy::approx_constant, clippy::manual_clamp, clippy::eq_op)]

use crate::device;

/// eˣ, to 0.892 ulp.
///
/// Infinity from 88.722839 on, subnormal below −87.33655, 0 below −103.97208; exp(−∞) = 0, exp(∞) = ∞, NaN for NaN.
///
/// Cody and Waite's reduction (*Software Manual for the Elementary Functions*, 1980, chapter 6): x = n·ln 2 + r, |r| ≤
/// ln 2 / 2, with ln 2 in two parts, the first of 15 bits, so that its product with n is exact. Then eʳ ≈ 1 + r +
/// r²·q(r), where q is the minimax polynomial of degree 4 for the relative error (3.1·10⁻⁹), coefficients rounded to
/// `f32` one after another and the rest fitted again. The scale 2ⁿ is two factors, since n runs from −150 to 128.
#[device]
pub fn exp(x: f32) -> f32 {
    // Beyond these the result is 0 or infinity already. A NaN becomes 89 here, and comes back at the end.
    let c = x.min(89.0).max(-104.0);
    // Adding 1.5·2²³ leaves the integer nearest to c / ln 2 in the low bits of the sum: no conversion is needed.
    let shifted = c.mul_add(1.442695, 12582912.0);
    let n = shifted.to_bits() as i32 - 0x4B40_0000;
    let k = shifted - 12582912.0;
    let r = k.mul_add(-1.42860677e-6, k.mul_add(-0.693145752, c)); // −0x1.7f7d1cp-20, −0x1.62e4p-1
    let q = 0.00138213031f32; // 0x1.6a5132p-10
    let q = q.mul_add(r, 0.00836866815); // 0x1.12397ap-7
    let q = q.mul_add(r, 0.0416682586); // 0x1.5558acp-5
    let q = q.mul_add(r, 0.166665211); // 0x1.555492p-3
    let q = q.mul_add(r, 0.49999994); // 0x1.fffffcp-2
    let p = q.mul_add(r, 1.0).mul_add(r, 1.0);
    // The first product is exact, so that a subnormal result is rounded once.
    let half = n >> 1;
    let low = f32::from_bits(((half + 127) << 23) as u32);
    let high = f32::from_bits(((n - half + 127) << 23) as u32);
    let y = p * low * high;
    if x != x { x } else { y }
}

/// The natural logarithm, to 0.934 ulp.
///
/// ln(±0) = −∞, ln(∞) = ∞; NaN for NaN and for what is less than 0.
///
/// x = m·2ⁿ with m from 2/3 to 4/3, so that z = m − 1 is exact and nothing cancels near 1; ln(1 + z) ≈ z − z²/2 +
/// z³·q(z), where q is the minimax polynomial of degree 7 for the relative error (4.7·10⁻⁹), coefficients rounded to
/// `f32` one after another and the rest fitted again; then n·ln 2 is added with one rounding. The reduction is that of
/// FreeBSD's msun (`e_logf.c`) with another interval.
#[device]
pub fn ln(x: f32) -> f32 {
    let infinity = f32::from_bits(0x7F80_0000);
    let ordinary = x > 0.0 && x < infinity;
    let subnormal = x < 1.17549435e-38; // 0x1p-126
    let a = if ordinary { x } else { 1.0 };
    let a = if subnormal { a * 8388608.0 } else { a };
    let bits = a.to_bits() as i32;
    let n = (bits - 0x3F2A_AAAB) >> 23; // 0x3F2A_AAAB: 2/3
    let z = f32::from_bits((bits - (n << 23)) as u32) - 1.0;
    let n = if subnormal { n - 23 } else { n };
    let q = -0.128745154f32; // −0x1.07ab8ap-3
    let q = q.mul_add(z, 0.139865175); // 0x1.1e71a2p-3
    let q = q.mul_add(z, -0.121883407); // −0x1.f33c04p-4
    let q = q.mul_add(z, 0.140053749); // 0x1.1ed48p-3
    let q = q.mul_add(z, -0.16680181); // −0x1.559c3p-3
    let q = q.mul_add(z, 0.20010443); // 0x1.99d05ap-3
    let q = q.mul_add(z, -0.249998048); // −0x1.fffefap-3
    let q = q.mul_add(z, 0.333332151); // 0x1.555506p-2
    let p = q.mul_add(z, -0.5).mul_add(z * z, z);
    let y = (n as f32).mul_add(0.693147182, p); // 0x1.62e43p-1
    if ordinary {
        y
    } else if x == 0.0 {
        -infinity
    } else if x < 0.0 {
        f32::from_bits(0x7FC0_0000)
    } else {
        x
    }
}
