//! Floats of 16 bits: [`struct@f16`] (IEEE binary16) and [`bf16`] (an `f32` without its lower half), the types of crate
//! `half`.
//!
//! They are kept in 16 bits and computed with in `f32`: each operation is done in `f32` and its result rounded to
//! nearest even. No instruction that computes in 16 bits is ever emitted, since those of sm_61 run at 1/64 of the rate.
//!
//! | in a kernel | what it gives |
//! |---|---|
//! | `a + b`, `-`, `*`, `/` | the exact result rounded once: 24 bits in between change nothing |
//! | `-a`, `a.abs()` | the sign's bit changed, of a NaN too |
//! | `==`, `<`, … | of the values: −0 equals +0, everything but `!=` is false of a NaN |
//! | `a.min(b)`, `a.max(b)` | as of `f32`: a NaN loses, −0 is below +0 |
//! | `a.mul_add(b, c)` | `f32::mul_add`, then rounded: **not** one rounding, as an instruction of 16 bits would have it |
//! | `a.to_f32()` | exact |
//! | `f16::from_f32(x)` | rounded to nearest even; subnormals kept; too large is infinity |
//! | `a.to_bits()`, `f16::from_bits(b)` | the code, a `u16` |
//! | `f16::ONE`, `MAX`, `NAN`, … | crate `half`'s constants |
//!
//! There is no `as`, no literal, and lanes do not hand them over: widen with `to_f32`. A sum of many is better kept in
//! `f32` too, and rounded once at its end; that is less work as well.
//!
//! # Cost on sm_61
//!
//! An `f16` is one conversion each way, at a quarter of the rate of arithmetic. A `bf16`, which sm_61 has no conversions
//! for, is widened by a shift and rounded by five instructions, as ptxas makes of them: a field, a sum of three, a
//! shift, and a choice where it is a NaN.
//!
//! # One NaN
//!
//! Rounding to 16 bits makes the code 0x7FFF of any NaN, in both formats, in the interpreter as on every GPU: it
//! is what the hardware's own conversions write. Loads, stores and `from_bits` keep whatever code there is. On the
//! host crate `half` keeps a NaN's sign and upper payload; and its `max` and `min` of −0 and +0 give either. That is the one
//! thing in which [`host::run`](crate::host::run) differs. As with all NaNs, the bits that `to_f32` gives for one are
//! left open.

pub use ::half::{bf16, f16};

use kernel_dsl_compiler::half::{bf16_from_f32, f16_from_f32};

/// What crate `half` leaves to other crates' traits.
pub trait HalfExt: sealed::Sealed + Copy {
    /// The value without its sign.
    fn abs(self) -> Self;
    /// self · a + b by `f32::mul_add`, then rounded to 16 bits: two roundings.
    fn mul_add(self, a: Self, b: Self) -> Self;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::f16 {}
    impl Sealed for super::bf16 {}
}

macro_rules! half {
    ($($t:ty, $encode:ident;)*) => {$(
        impl HalfExt for $t {
            fn abs(self) -> $t {
                <$t>::from_bits(self.to_bits() & 0x7FFF)
            }
            fn mul_add(self, a: $t, b: $t) -> $t {
                <$t>::from_bits($encode(self.to_f32().mul_add(a.to_f32(), b.to_f32())))
            }
        }
    )*};
}
half! {
    f16, f16_from_f32;
    bf16, bf16_from_f32;
}
