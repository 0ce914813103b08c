//! xʸ.

use super::exponential::power_of_two;
use super::logarithm::{log2_parts, parts};
use crate::device;

/// Returns x to the y, with C99's special cases as in [`math::pow`](crate::math::pow).
///
/// The result is 2 to the y·log₂|x|, with the logarithm as a sum of two numbers, to a relative
/// 2⁻⁶⁴.
#[device]
pub fn pow(x: f64, y: f64) -> f64 {
    let (a, b) = (x.abs(), y.abs());
    let (m, n) = parts(a);
    let (h, l) = log2_parts(m, n);
    // For |y| ≥ 10²², the power is 1, 0 or infinite.
    let e = y.max(-1e22).min(1e22);
    let p = e * h;
    let pl = e.mul_add(l, e.mul_add(h, -p));
    let far = p.abs() > 1100.0;
    let p = p.max(-1100.0).min(1100.0);
    let pl = if far { 0.0 } else { pl };
    let shifted = p + 6755399441057790.0;
    let positive = power_of_two((p - (shifted - 6755399441057790.0)) + pl, shifted);
    if x > 0.0 && a < f64::INFINITY && y == y {
        positive
    } else {
        // From 2⁵³ on, all numbers are even.
        let whole = y == y.trunc();
        let odd = whole && b < 9007199254740992.0 && (b as u64) & 1 == 1;
        let size = if a == 0.0 || a == f64::INFINITY {
            if (a == 0.0) == (y < 0.0) { f64::INFINITY } else { 0.0 }
        } else {
            positive
        };
        let signed = if x.is_sign_negative() && odd { -size } else { size };
        let no_root = x < 0.0 && a < f64::INFINITY && !whole;
        if y == 0.0 || x == 1.0 {
            1.0
        } else if x != x || y != y || no_root {
            f64::NAN
        } else {
            signed
        }
    }
}
