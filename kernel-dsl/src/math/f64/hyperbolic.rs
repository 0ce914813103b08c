//! The hyperbolic tangent.

use super::exponential::exp_m1;
use crate::device;

/// Returns the hyperbolic tangent.
///
/// ±1 beyond ±19.1; a zero keeps its sign; NaN for NaN.
///
/// With m = e^2|x| − 1 the result is m / (m + 2). From 0.55 on, that quotient would have the errors
/// of both operands, so the result is 1 − 2 / (m + 2). Both use IEEE's division.
#[device]
pub fn tanh(x: f64) -> f64 {
    let a = x.abs();
    // Not `min`, so that a NaN stays.
    let b = if a > 20.0 { 20.0 } else { a };
    let m = exp_m1(b + b);
    let large = a > 0.55;
    let quotient = if large { 2.0 } else { m } / (m + 2.0);
    let y = if large { 1.0 - quotient } else { quotient };
    y.copysign(x)
}
