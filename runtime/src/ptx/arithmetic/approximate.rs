//! Instructions that promise a bound instead of bits.
//!
//! Each gives the true result, computed in `f64` and rounded to `f32`: one of the values that the manual allows. Values
//! that come of one are marked (`Registers::approximate`), for a GPU may give others, within the bound.

use super::convert::to_float;
use super::float::{F16, F32, F64, Rounding};
use kernel_dsl::compiler::Approximation;

/// In single precision: what the interpreter of IR and the prelude give too.
pub fn single(what: Approximation, bits: u32) -> u32 {
    let result = what.nearest(f32::from_bits(bits));
    if result.is_nan() { F32.nan() as u32 } else { result.to_bits() }
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.f64`: the upper half of the result, as the hardware gives it.
pub fn double(what: Approximation, bits: u64) -> u64 {
    let result = what.exact(f64::from_bits(bits));
    if result.is_nan() { F64.nan() } else { result.to_bits() & !0xffff_ffff }
}

/// In half precision: the true result, rounded.
pub fn half(what: Approximation, bits: u64) -> u64 {
    let x = f64::from_bits(to_float(F16, F64, bits, Rounding::Nearest));
    to_float(F64, F16, what.exact(x).to_bits(), Rounding::Nearest)
}

/// How far a GPU may be from the true result in half precision, which the manual says apart.
pub fn half_bound(what: Approximation) -> &'static str {
    match what {
        Approximation::Tangent => "2^-10.987",
        _ => "2^-9.9 of the result",
    }
}

/// How far a GPU's `div.approx.f32` and `div.full.f32` may be from the true quotient.
pub const DIVISION_BOUND: &str = "2 ulp";

/// `div.approx.f32`: a · (1/b); for 2^126 < |b| < 2^128 a zero, or a NaN where a is infinite.
pub fn divide(a: u32, b: u32) -> u32 {
    let (x, y) = (f64::from(f32::from_bits(a)), f64::from(f32::from_bits(b)));
    let beyond = y.is_finite() && y.abs() > 2f64.powi(126);
    let result = if beyond { x * (0.0f64).copysign(y) } else { x / y } as f32;
    if result.is_nan() { F32.nan() as u32 } else { result.to_bits() }
}
