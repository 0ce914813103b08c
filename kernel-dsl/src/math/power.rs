//! xʸ.

use super::exponential::power_of_two;
use super::reciprocal;
use crate::device;

/// Returns x to the power y, to 2.525 ulp.
///
/// Special cases follow C99 (annex F.9.4.4). The result is 1 if y is ±0 or x is 1, even beside a
/// NaN, and if x is −1 and y infinite. The result is NaN if x is negative and y not an integer,
/// both finite. If y is odd, the result has the sign of x. Powers of zeros and infinities are zeros
/// and infinities. Overflow gives an infinity, underflow subnormal numbers, then zeros.
///
/// The result is 2 to the y·log₂|x|, with the logarithm as a sum of two `f32`, to a relative error
/// of about 2⁻³².
/// |x| = m·2ⁿ with m from √½ to √2. s = (m − 1) / (m + 1) has two parts, from an approximate
/// reciprocal and the remainder. log₂ m = 2/ln 2 · artanh s ≈ 2/ln 2·s + s³·q(s²), q minimax of
/// degree 3 (relative error 1.1·10⁻¹¹). All terms except q are carried in two parts. A branch
/// corrects bases that are not positive and normal.
#[device]
pub fn pow(x: f32, y: f32) -> f32 {
    let positive = power_of_positive(x.abs(), y);
    let ordinary = x.to_bits().wrapping_sub(0x0080_0000) < 0x7F00_0000 && y == y;
    if ordinary { positive } else { power_of_other_base(x, y, positive) }
}

/// Returns aʸ for a positive and finite a, and any y that is not a NaN.
#[device]
fn power_of_positive(a: f32, y: f32) -> f32 {
    let subnormal = a < 1.17549435e-38; // 0x1p-126
    let b = if subnormal { a * 8388608.0 } else { a };
    let scale = if subnormal { -23.0f32 } else { 0.0 };
    let bits = b.to_bits();
    let exponent = bits.wrapping_sub(0x3F35_04F3) & 0xFF80_0000; // √½
    let m = f32::from_bits(bits.wrapping_sub(exponent));
    let n = (exponent as i32 as f32).mul_add(1.1920929e-7, scale); // 0x1p-23

    // s = (m − 1) / (m + 1), its divisor as d + dl
    let z = m - 1.0;
    let d = m + 1.0;
    let dl = m - (d - 1.0);
    // 1 / d on [√½ + 1, √2 + 1] to 1.3·10⁻³, and squared
    let i = 0.11686288f32.mul_add(d, -0.72244453).mul_add(d, 1.4777569);
    let i = reciprocal::refine(d, i);
    let s = z * i;
    let sl = s.mul_add(-dl, s.mul_add(-d, z)) * i;

    let rounded = s + sl;
    let w = rounded * rounded;
    // The rounding error of s changes s³/3 by s² times the error.
    let sl = w.mul_add(sl - (rounded - s), sl);
    let q = 0.3366287f32; // 0x1.58b532p-2
    let q = q.mul_add(w, 0.41192138); // 0x1.a5ceb8p-2
    let q = q.mul_add(w, 0.5770789); // 0x1.2776e2p-1
    let q = q.mul_add(w, 0.9617967); // 0x1.ec709ep-1
    let t = s * 2.88539; // 0x1.715476p1
    let tl = s.mul_add(2.88539, -t);
    let tl = s.mul_add(3.851926e-8, tl); // 0x1.4ae0cp-25
    let tl = sl.mul_add(2.88539, tl);
    let tl = (w * rounded).mul_add(q, tl);
    // log₂ a = h + l, first with an l as large as r·q, then with one below the last place of h
    let top = n + t;
    let tl = (n - top) + t + tl;
    let h = top + tl;
    let l = (top - h) + tl;

    // For |y| ≥ 10¹³, aʸ is 1, 0 or infinite.
    let y = y.max(-1e13).min(1e13);
    let p = y * h;
    let pl = y.mul_add(l, y.mul_add(h, -p));
    let far = p.abs() > 160.0;
    let p = p.max(-160.0).min(160.0);
    let pl = if far { 0.0 } else { pl };
    let shifted = p + 12583166.0;
    power_of_two((p - (shifted - 12583166.0)) + pl, shifted)
}

/// Returns the power of a base that is not both positive and normal, given the power of its
/// magnitude.
#[device]
fn power_of_other_base(x: f32, y: f32, positive: f32) -> f32 {
    let (a, b) = (x.abs(), y.abs());
    // From 2²⁴ on, all numbers are even.
    let whole = y == y.trunc();
    let odd = whole && b < 16777216.0 && (b as u32) & 1 == 1;
    let size = if a == 0.0 || a == f32::INFINITY {
        if (a == 0.0) == (y < 0.0) { f32::INFINITY } else { 0.0 }
    } else if a == 1.0 {
        1.0
    } else {
        positive
    };
    let signed = if x.is_sign_negative() && odd { -size } else { size };
    let no_root = x < 0.0 && a < f32::INFINITY && !whole;
    if y == 0.0 || x == 1.0 {
        1.0
    } else if x != x || y != y || no_root {
        f32::NAN
    } else {
        signed
    }
}
