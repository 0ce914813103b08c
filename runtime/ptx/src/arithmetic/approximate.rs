//! Instructions for which the manual states an error bound instead of a result.
//!
//! Each function returns the true result, computed in `f64` and rounded. The manual allows this
//! value. Values that depend on such a result are marked (`Registers::approximate`), because a GPU
//! may compute another result within the bound.

use super::convert::to_float;
use super::float::{F16, F32, F64, F64_UPPER, FloatFormat, FloatValue, Rounding, RoundingMode};
use kernel_dsl_compiler::Approximation;

/// Returns the result in single precision, which the IR interpreter and the prelude also compute.
pub fn single(what: Approximation, bits: u32) -> u32 {
    let result = what.nearest(f32::from_bits(bits));
    if result.is_nan() { F32.nan() as u32 } else { result.to_bits() }
}

/// Returns the result of `rsqrt.approx.f64`: the true value rounded to `f64`.
pub fn double(what: Approximation, bits: u64) -> u64 {
    let (x, result) = (f64::from_bits(bits), what.exact(f64::from_bits(bits)));
    if result.is_nan() {
        return F64.nan_of([bits]);
    }
    if what != Approximation::ReciprocalSquareRoot || !(x.is_normal() || x.is_subnormal()) {
        return result.to_bits();
    }
    // The two roundings of `exact` are corrected by a step of Newton's iteration, on x scaled into
    // [1, 4).
    let normal = if x.is_subnormal() { x * 2f64.powi(54) } else { x };
    let exponent = ((normal.to_bits() >> 52) as i32 - 1023) & !1;
    let x = f64::from_bits(normal.to_bits().wrapping_sub((i64::from(exponent) << 52) as u64));
    let y = 1.0 / x.sqrt();
    let square = y * y;
    let rest = x.mul_add(-square, 1.0) - x * y.mul_add(y, -square);
    let shift = -exponent / 2 + if normal == f64::from_bits(bits) { 0 } else { 27 };
    (y * 0.5).mul_add(rest, y).to_bits().wrapping_add((i64::from(shift) << 52) as u64)
}

/// Returns the result of `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`, which read and write only
/// the upper half of a register. The result is the true value for the operand's upper half, rounded
/// to an upper half. The lower half is 0.
pub fn upper_half(what: Approximation, bits: u64) -> u64 {
    let x = F64_UPPER.flush(bits >> 32) << 32;
    let how = RoundingMode { rounding: Rounding::Nearest, flush: true };
    to_float(F64, F64_UPPER, what.exact(f64::from_bits(x)).to_bits(), how) << 32
}

/// Returns the result in half precision: the true result, rounded.
pub fn half(what: Approximation, bits: u64) -> u64 {
    let x = f64::from_bits(to_float(F16, F64, bits, Rounding::Nearest));
    to_float(F64, F16, what.exact(x).to_bits(), Rounding::Nearest)
}

/// Returns the error bound of a GPU in half precision, as the manual words it.
pub fn half_bound(what: Approximation) -> &'static str {
    match what {
        Approximation::Tangent => "2^-10.987",
        _ => "2^-9.9 of the result",
    }
}

/// Error bound of `div.approx.f32` and `div.full.f32` on a GPU.
pub const DIVISION_BOUND: &str = "2 ulp";

/// Returns the quotient of `div.approx.f32`, which multiplies a by the reciprocal of b. For 2^126 <
/// |b| < 2^128 the reciprocal is 0, so that the result is a zero, or a NaN where a is infinite.
pub fn divide(format: FloatFormat, a: u64, b: u64, how: RoundingMode) -> u64 {
    let largest = format.one() + (126 << 23);
    let beyond = b & (format.sign() - 1) > largest && matches!(format.decode(b), FloatValue::Finite(_));
    if beyond { format.mul(a, b & format.sign(), how) } else { format.div(a, b, how) }
}
