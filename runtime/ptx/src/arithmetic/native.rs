//! Arithmetic rounded to nearest even by the processor's own instructions, in its default mode:
//! `.rn` without other modifiers.
//!
//! A resulting NaN has the bits that `float` computes.

use super::float::{F32, F64};

/// Returns the bits of a result, with one pattern for every NaN.
#[inline(always)]
fn canonical32(x: f32) -> u32 {
    // Tests the bits instead of `x.is_nan()`, for the reason given in `canonical64`.
    let bits = x.to_bits();
    if F32.is_nan(bits.into()) { F32.nan() as u32 } else { bits }
}

/// Returns the bits of a result; those of a NaN follow from the operands.
#[inline(always)]
fn canonical64<const N: usize>(x: f64, operands: [u64; N]) -> u64 {
    // Tests the bits, because with `x.is_nan()` the optimizer would return the processor's NaN.
    let bits = x.to_bits();
    if F64.is_nan(bits) { F64.nan_of(operands) } else { bits }
}

macro_rules! binary {
    ($($(#[$meta:meta])* $single:ident $double:ident $op:tt, $order:expr;)*) => {$(
        $(#[$meta])*
        #[inline(always)]
        pub fn $single(a: u32, b: u32) -> u32 {
            canonical32(f32::from_bits(a) $op f32::from_bits(b))
        }

        $(#[$meta])*
        #[inline(always)]
        pub fn $double(a: u64, b: u64) -> u64 {
            canonical64(f64::from_bits(a) $op f64::from_bits(b), ($order)([a, b]))
        }
    )*};
}

binary! {
    /// Computes a + b.
    add32 add64 +, |operands: [u64; 2]| operands;
    /// Computes a − b.
    sub32 sub64 -, |operands: [u64; 2]| operands;
    /// Computes a · b.
    mul32 mul64 *, |operands: [u64; 2]| operands;
    /// Computes a / b.
    div32 div64 /, |[a, b]: [u64; 2]| [b, a];
}

/// Computes √a.
#[inline(always)]
pub fn sqrt32(a: u32) -> u32 {
    canonical32(f32::from_bits(a).sqrt())
}

/// Computes √a.
#[inline(always)]
pub fn sqrt64(a: u64) -> u64 {
    canonical64(f64::from_bits(a).sqrt(), [a])
}

/// Computes a · b + c, rounded once. Fast if the caller is compiled for a processor with this
/// instruction.
#[inline(always)]
pub fn fma32(a: u32, b: u32, c: u32) -> u32 {
    canonical32(f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c)))
}

/// Computes a · b + c, rounded once. Fast if the caller is compiled for a processor with this
/// instruction.
#[inline(always)]
pub fn fma64(a: u64, b: u64, c: u64) -> u64 {
    canonical64(f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)), [a, c, b])
}

/// Applies `.ftz`: a subnormal becomes a zero of its sign.
#[inline(always)]
pub fn flush32(a: u32) -> u32 {
    if a & 0x7f80_0000 == 0 { a & 0x8000_0000 } else { a }
}

/// Applies `.sat`: clamps to [+0, 1]; a NaN becomes +0.
#[inline(always)]
pub fn saturate32(a: u32) -> u32 {
    F32.saturate(a.into()) as u32
}
