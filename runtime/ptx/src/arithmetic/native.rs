//! Rounding to nearest even by the processor's own instructions, in its default mode: `.rn` without more.
//!
//! A NaN that comes out is the one that `float` makes.

use super::float::{F32, F64};

/// One NaN for all.
#[inline(always)]
fn canonical32(x: f32) -> u32 {
    // By its bits, as `canonical64` does.
    let bits = x.to_bits();
    if F32.is_nan(bits.into()) { F32.nan() as u32 } else { bits }
}

/// Returns the bits of a result, of a NaN those that the operands lead to.
#[inline(always)]
fn canonical64<const N: usize>(x: f64, operands: [u64; N]) -> u64 {
    // By its bits: of `x.is_nan()` the optimizer makes the NaN that the processor gives.
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
    /// a + b.
    add32 add64 +, |operands: [u64; 2]| operands;
    /// a − b.
    sub32 sub64 -, |operands: [u64; 2]| operands;
    /// a · b.
    mul32 mul64 *, |operands: [u64; 2]| operands;
    /// a / b.
    div32 div64 /, |[a, b]: [u64; 2]| [b, a];
}

/// √a.
#[inline(always)]
pub fn sqrt32(a: u32) -> u32 {
    canonical32(f32::from_bits(a).sqrt())
}

/// √a.
#[inline(always)]
pub fn sqrt64(a: u64) -> u64 {
    canonical64(f64::from_bits(a).sqrt(), [a])
}

/// a · b + c, rounded once. Fast where the caller is compiled for a processor that has it.
#[inline(always)]
pub fn fma32(a: u32, b: u32, c: u32) -> u32 {
    canonical32(f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c)))
}

/// a · b + c, rounded once. Fast where the caller is compiled for a processor that has it.
#[inline(always)]
pub fn fma64(a: u64, b: u64, c: u64) -> u64 {
    canonical64(f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)), [a, c, b])
}

/// `.ftz`: a subnormal becomes a zero of its sign.
#[inline(always)]
pub fn flush32(a: u32) -> u32 {
    if a & 0x7f80_0000 == 0 { a & 0x8000_0000 } else { a }
}

/// `.sat`: to [+0, 1]; a NaN becomes +0.
#[inline(always)]
pub fn saturate32(a: u32) -> u32 {
    F32.saturate(a.into()) as u32
}
