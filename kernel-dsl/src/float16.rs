//! 16-bit floats of any layout: [`Float16<EXP, BIAS, Policy>`](Float16).
//!
//! A code has a sign, `EXP` bits of exponent (2 to 10), and a fraction of 15 − `EXP` bits. The
//! exponent is the exponent field minus `BIAS`; field 0 holds signed zeros and the subnormal
//! numbers. `Float16<5, 15>` is IEEE's binary16, `Float16<8, 127>` a bfloat16. The [`Policy`]
//! defines the highest exponent:
//!
//! | policy | highest exponent | overflow | an infinity becomes |
//! |---|---|---|---|
//! | [`Ieee`] | infinities and NaNs | infinity | infinity |
//! | [`Finite`] | numbers, and one NaN | NaN | NaN |
//! | [`Saturating`] | numbers, and one NaN | the largest number of its sign | the largest number of its sign |
//!
//! As with [`f16`](struct@crate::half::f16), values are stored in 16 bits and computed with in
//! `f32`, and each result is rounded to nearest even. `truncate` rounds towards zero instead; then
//! only an infinity overflows. Every NaN is written as the code 0x7FFF. The host and every
//! executor give the same codes.
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! type E4M11 = Float16<4, 7, Finite>;
//! assert_eq!(E4M11::from_f32(1.0).to_bits(), 7 << 11);
//! assert_eq!(E4M11::from_f32(1e9).to_bits(), 0x7fff);
//! assert_eq!(Float16::<4, 7, Saturating>::from_f32(-1e9).to_f32(), -511.75);
//! assert_eq!(Float16::<3, 3>::truncate(1.99999).to_f32(), 2.0 - 1.0 / 4096.0);
//! ```
//!
//! A kernel writes out the layout with its numbers; a type alias is not available there. A negative
//! bias is for the host only.
//!
//! Every test run decodes all 65,536 codes of ten layouts, on the host and in kernels, and encodes
//! a sample. `FLOAT16=all cargo test --release -p tests --test language half_and_bfloat` encodes
//! all 2³² arguments, rounded and truncated, in `<5, 15>`, `<8, 127>`, `<4, 7, Finite>`,
//! `<10, 511>` and `<6, 31, Saturating>`; each code was that of the nearest value.
//!
//! # Cost on sm_61
//!
//! Issue slots by ptxas 12.9, beyond a kernel that loads and stores the same number of bytes;
//! `cargo test -p tests --test language math` writes and checks them. Layouts of 9 and 10 bits of
//! exponent, and biases far from 0 to 126, exceed the range of `f32` and cost more.
//!
//! | layout | to `f32` | from `f32` | `truncate` |
//! |---|---|---|---|
//! | `<5, 15>` | 1 | 0 | 14 |
//! | `<8, 127>` | 1 | 4 | 2 |
//! | `<4, 7>` | 6 | 14 | 14 |
//! | `<4, 7, Finite>` | 6 | 14 | 14 |
//! | `<6, 31, Saturating>` | 6 | 14 | 12 |
//! | `<10, 511>` | 23 | 33 | 28 |

use kernel_dsl_compiler::float16::{self, Float16Format};
use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

mod sealed {
    pub trait Sealed {}
}

/// The meaning of the highest exponent of a [`Float16`]: [`Ieee`], [`Finite`] or [`Saturating`].
pub trait Policy: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The compiler's name for the policy.
    const POLICY: float16::Float16Policy;
}

macro_rules! policies {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name;
        impl sealed::Sealed for $name {}
        impl Policy for $name {
            const POLICY: float16::Float16Policy = float16::Float16Policy::$name;
        }
    )*};
}
policies! {
    /// Infinities and NaNs, as in IEEE 754.
    Ieee
    /// One NaN and no infinity: values that are too large become the NaN.
    Finite
    /// One NaN and no infinity: values that are too large become the largest number.
    Saturating
}

/// A float of 16 bits with `EXP` bits of exponent and the bias `BIAS`: see the [module](self).
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Float16<const EXP: u32, const BIAS: i32, P: Policy = Ieee>(u16, PhantomData<P>);

impl<const EXP: u32, const BIAS: i32, P: Policy> Float16<EXP, BIAS, P> {
    /// The layout. Fewer than 2 or more than 10 bits of exponent, or a bias of more than 16 bits,
    /// are a compile error.
    pub const FORMAT: Float16Format = match Float16Format::new(EXP, BIAS, P::POLICY) {
        Some(format) => format,
        None => panic!("a Float16 has 2 to 10 bits of exponent, and a bias of 16 bits"),
    };

    /// Returns the value of a code.
    #[must_use]
    pub const fn from_bits(code: u16) -> Self {
        Float16(code, PhantomData)
    }

    /// Returns the code.
    #[must_use]
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// Returns the value nearest to `x`; ties to even.
    #[must_use]
    pub const fn from_f32(x: f32) -> Self {
        Self::from_bits(Self::FORMAT.encode(x))
    }

    /// Rounds `x` towards zero; for a finite `x` the result is at most the largest number.
    #[must_use]
    pub const fn truncate(x: f32) -> Self {
        Self::from_bits(Self::FORMAT.truncate(x))
    }

    /// Converts to `f32`: exact if the layout lies within the range of `f32`, otherwise the
    /// nearest.
    #[must_use]
    pub const fn to_f32(self) -> f32 {
        Self::FORMAT.decode(self.0)
    }

    /// Returns the value without its sign.
    #[must_use]
    pub const fn abs(self) -> Self {
        Self::from_bits(self.0 & 0x7FFF)
    }

    /// Computes self · a + b by `f32::mul_add`, then rounds to 16 bits: two roundings.
    #[must_use]
    pub fn mul_add(self, a: Self, b: Self) -> Self {
        Self::from_f32(self.to_f32().mul_add(a.to_f32(), b.to_f32()))
    }

    /// Returns the minimum; a NaN loses.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self::from_f32(self.to_f32().min(other.to_f32()))
    }

    /// Returns the maximum; a NaN loses.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self::from_f32(self.to_f32().max(other.to_f32()))
    }
}

impl<const EXP: u32, const BIAS: i32, P: Policy> Default for Float16<EXP, BIAS, P> {
    fn default() -> Self {
        Self::from_bits(0)
    }
}

impl<const EXP: u32, const BIAS: i32, P: Policy> PartialEq for Float16<EXP, BIAS, P> {
    fn eq(&self, other: &Self) -> bool {
        self.to_f32() == other.to_f32()
    }
}

impl<const EXP: u32, const BIAS: i32, P: Policy> PartialOrd for Float16<EXP, BIAS, P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.to_f32().partial_cmp(&other.to_f32())
    }
}

impl<const EXP: u32, const BIAS: i32, P: Policy> fmt::Debug for Float16<EXP, BIAS, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_f32(), f)
    }
}

impl<const EXP: u32, const BIAS: i32, P: Policy> fmt::Display for Float16<EXP, BIAS, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.to_f32(), f)
    }
}

macro_rules! operators {
    ($($Trait:ident $f:ident $op:tt $Assign:ident $assign:ident;)*) => {$(
        impl<const EXP: u32, const BIAS: i32, P: Policy> $Trait for Float16<EXP, BIAS, P> {
            type Output = Self;
            fn $f(self, other: Self) -> Self {
                Self::from_f32(self.to_f32() $op other.to_f32())
            }
        }
        impl<const EXP: u32, const BIAS: i32, P: Policy> $Assign for Float16<EXP, BIAS, P> {
            fn $assign(&mut self, other: Self) {
                *self = *self $op other;
            }
        }
    )*};
}
operators! {
    Add add + AddAssign add_assign;
    Sub sub - SubAssign sub_assign;
    Mul mul * MulAssign mul_assign;
    Div div / DivAssign div_assign;
}

impl<const EXP: u32, const BIAS: i32, P: Policy> Neg for Float16<EXP, BIAS, P> {
    type Output = Self;
    fn neg(self) -> Self {
        Self::from_bits(self.0 ^ 0x8000)
    }
}
