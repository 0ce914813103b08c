//! The hardware's approximations by name: a few instructions each, within a bound, with different
//! bits on different cards.
//!
//! | function | PTX | slots on sm_61 | largest error |
//! |---|---|---|---|
//! | [`exp2`] | `ex2.approx.ftz` | 2 (a quarter of the rate) | 2 ulp |
//! | [`exp`] | `mul`, `ex2.approx.ftz` | 3 | 2 ulp, plus one for each unit of \|x\| / 2 |
//! | [`log2`] | `lg2.approx.ftz` | 1 (a quarter) | 2⁻²² for x in (0.5, 2), relative 2⁻²² elsewhere |
//! | [`ln`] | `lg2.approx.ftz`, `mul` | 2 | as for `log2`, and a rounding |
//! | [`rcp`] | `rcp.approx.ftz` | 1 (a quarter) | 1 ulp |
//! | [`div`] | `rcp.approx.ftz`, `mul` | 2 | 2 ulp; 0 or a NaN for \|b\| above 2¹²⁶ |
//! | [`sqrt`] | `sqrt.approx.ftz` | 2 (a quarter) | relative 2⁻²³ |
//! | [`rsqrt`] | `rsqrt.approx.ftz` | 1 (a quarter) | relative 2⁻²²·⁹ |
//! | [`sin`], [`cos`] | `sin.approx.ftz`, `cos.approx.ftz` | 2 (a quarter) | 2⁻²⁰·⁵ in \[−2π, 2π\]; no bound far outside |
//! | [`tanh`] | `mul`, `ex2`, `add`, `rcp`, `fma`; from sm_75 `tanh.approx` | 6 | 2⁻²²; from sm_75 relative 2⁻¹¹ |
//!
//! Bounds are those of the PTX manual, instructions those of ptxas 12.9. A **subnormal** operand or
//! result is a zero of its sign (`.ftz`): without the flush each function would take two to four
//! more instructions for scaling.
//!
//! # Results on other executors
//!
//! The interpreters of IR and of PTX, and the bodies here, replace each approximate instruction by
//! the correctly rounded value. All three agree exactly, and a GPU's result is close to theirs. A
//! kernel that uses these functions therefore declares a tolerance for each argument that such a
//! value may reach:
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! #[kernel(block = 256, grid = y.len().div_ceil(256), tolerance(y(relative = 1e-6)))]
//! #[requires(x.len() == y.len())]
//! pub fn silu(x: &[f32], y: &mut [f32]) {
//!     let i = grid::index();
//!     if i < y.len() {
//!         y[i] = fast::div(x[i], 1.0 + fast::exp(-x[i]));
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! `runtime::testing` and `kernels check` compare a GPU with the interpreter within
//! `absolute + relative · |value|`, and the executors on the CPU bit for bit. Without a tolerance,
//! both refuse to compare with a GPU. A tolerance for an argument that no such value reaches is a
//! compile error.
//!
//! A comparison, an index or an integer that depends on such a value may differ on a GPU, and no
//! tolerance covers that. `kernels report` and `kernels check` name these locations
//! ([`compiler::analyses::approximate`](crate::compiler::analyses::approximate)). Use
//! [`math`](crate::math) for values that must agree everywhere.

use kernel_dsl_compiler::Approximation;

macro_rules! approximations {
    ($($(#[$doc:meta])* $name:ident $what:ident;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(x: f32) -> f32 {
            Approximation::$what.stand_in(x)
        }
    )*};
}

approximations! {
    /// 2ˣ: 1 for a subnormal x; 0 where the result would be below 2⁻¹²⁶.
    exp2 Exponential;
    /// The logarithm to base 2: −∞ for zeros and subnormal numbers, a NaN for negative ones.
    log2 Logarithm;
    /// 1 / x: an infinity for a subnormal x, 0 for |x| above 2¹²⁶.
    rcp Reciprocal;
    /// The square root; −0 for −0, a NaN for negative numbers.
    sqrt SquareRoot;
    /// 1 / √x: an infinity for zeros and subnormal numbers, a NaN for negative ones.
    rsqrt ReciprocalSquareRoot;
    /// The sine of an angle in radians.
    sin Sine;
    /// The cosine of an angle in radians.
    cos Cosine;
}

/// Returns eˣ as 2 to the x · log₂ e, whose rounding error grows with x.
#[must_use]
pub fn exp(x: f32) -> f32 {
    exp2(x * std::f32::consts::LOG2_E)
}

/// Returns the natural logarithm, as ln 2 · log₂ x.
#[must_use]
pub fn ln(x: f32) -> f32 {
    log2(x) * std::f32::consts::LN_2
}

/// Returns a / b as a · (1 / b). For |b| above 2¹²⁶ the reciprocal is subnormal, and so 0.
#[must_use]
pub fn div(a: f32, b: f32) -> f32 {
    a * rcp(b)
}

/// Returns the hyperbolic tangent. Before sm_75 it is 1 − 2 / (e²ˣ + 1), with an absolute error of
/// 2⁻²² near 0. From sm_75 on it is the hardware's own instruction, to 11 bits. The Rust body
/// computes the formula.
#[must_use]
pub fn tanh(x: f32) -> f32 {
    rcp(exp2(x * (2.0 * std::f32::consts::LOG2_E)) + 1.0).mul_add(-2.0, 1.0)
}
