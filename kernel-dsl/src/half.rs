//! 16-bit floats: [`struct@f16`] (IEEE binary16) and [`bf16`] (an `f32` without its lower half),
//! the types of crate `half`.
//!
//! Values are stored in 16 bits and computed with in `f32`: the result of each operation is rounded
//! to nearest even. The compiler never emits 16-bit arithmetic, which runs at 1/64 of the rate on
//! sm_61.
//!
//! | in a kernel | result |
//! |---|---|
//! | `a + b`, `-`, `*`, `/` | the exact result rounded once: 24 bits in between change nothing |
//! | `-a`, `a.abs()` | changes the sign bit, of a NaN too |
//! | `==`, `<`, … | by value: −0 equals +0, all except `!=` are false for a NaN |
//! | `a.min(b)`, `a.max(b)` | as for `f32`: a NaN loses, −0 is below +0 |
//! | `a.mul_add(b, c)` | `f32::mul_add`, then rounded: **not** one rounding, unlike a 16-bit instruction |
//! | `a.to_f32()` | exact |
//! | `f16::from_f32(x)` | rounded to nearest even; subnormals kept; infinity on overflow |
//! | `a.to_bits()`, `f16::from_bits(b)` | the code, a `u16` |
//! | `f16::ONE`, `MAX`, `NAN`, … | crate `half`'s constants |
//!
//! There is no `as` and no literal, and lanes do not exchange these types: widen with `to_f32`.
//! Keep long sums in `f32`, and round once at the end; that is also less work.
//!
//! # Cost on sm_61
//!
//! An `f16` takes one conversion each way, at a quarter of the rate of arithmetic. sm_61 has no
//! conversions for `bf16`: widening is a shift, and rounding takes five machine instructions: a bit
//! field, a three-operand sum, a shift, and a comparison and select for NaN.
//!
//! # One NaN
//!
//! Rounding to 16 bits turns any NaN into the code 0x7FFF in both formats. The interpreter and
//! every GPU do so, like the hardware's own conversions. Loads, stores and `from_bits` keep any
//! code. On the host, crate `half` keeps a NaN's sign and upper payload, and its `max` and `min` of
//! −0 and +0 return either zero. [`host::run`](crate::host::run) differs from a device only in
//! these two points. As for all NaNs, the bits that `to_f32` returns for a NaN are unspecified.

pub use ::half::{bf16, f16};

use kernel_dsl_compiler::half::{bf16_from_f32, f16_from_f32};

/// Methods that crate `half` leaves to traits of other crates.
pub trait HalfExt: sealed::Sealed + Copy {
    /// Returns the value without its sign.
    fn abs(self) -> Self;
    /// Computes self · a + b by `f32::mul_add`, then rounds to 16 bits: two roundings.
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
