//! Transcendental functions made of exact operations: the same bits on the host, in the
//! interpreters and on every GPU.
//!
//! Each function is plain Rust within the language of kernels, with only operations that IEEE 754
//! rounds correctly, and integer operations. The host runs the same code, so a test on the host,
//! the oracle and a GPU agree to the last bit. [`fast`](crate::fast) has the hardware's
//! approximations, a few instructions each, with different bits on different cards.
//!
//! # The functions
//!
//! | function | error | slots | in all | NVIDIA's error | slots | in all |
//! |---|---|---|---|---|---|---|
//! | [`exp`] | 0.892 | 18 | 18 | 2 | 10 | 10 |
//! | [`exp2`] | 0.919 | 16 | 16 | 2 | 5 | 5 |
//! | [`exp_m1`] | 1.289 | 19 | 19 | 1 | 29 | 29 |
//! | [`ln`] | 0.934 | 23 | 23 | 1 | 24 | 24 |
//! | [`log2`] | 0.987 | 24 | 24 | 1 | 25 | 25 |
//! | [`log10`] | 1.02 | 25 | 25 | 2 | 25 | 25 |
//! | [`ln_1p`] | 1.269 | 25 | 25 | 1 | 21 | 25 |
//! | [`sin`] | 1.225 | 28 | 100 | 2 | 22 | 132 |
//! | [`cos`] | 1.217 | 28 | 100 | 2 | 23 | 133 |
//! | [`tan`] | 1.08 | 44 | 116 | 4 | 19 | 129 |
//! | [`asin`] | 1.011 | 36 | 36 | 2 | 26 | 26 |
//! | [`acos`] | 1.047 | 39 | 39 | 2 | 28 | 28 |
//! | [`atan`] | 1.237 | 25 | 25 | 2 | 18 | 18 |
//! | [`sinh`] | 1.446 | 31 | 31 | 3 | 8 | 33 |
//! | [`cosh`] | 1.297 | 24 | 24 | 2 | 23 | 23 |
//! | [`tanh`] | 1.279 | 35 | 35 | 2 | 19 | 19 |
//! | [`asinh`] | 1.272 | 55 | 55 | 3 | 46 | 120 |
//! | [`acosh`] | 1.262 | 61 | 61 | 4 | 27 | 81 |
//! | [`atanh`] | 0.883 | 49 | 49 | 3 | 32 | 36 |
//! | [`sigmoid`] | 1.041 | 43 | 43 | – | 19 | 64 |
//! | [`erf`] | 1.444 | 30 | 30 | 2 | 29 | 29 |
//! | [`rsqrt`] | 1.199 | 13 | 34 | 2 | 4 | 4 |
//! | [`cbrt`] | 0.886 | 26 | 26 | 1 | 18 | 18 |
//! | [`sin_cos`] | 1.225 | 33 | 105 | 2 | 28 | 138 |
//! | [`pow`] | 2.525 | 71 | 92 | 4 | 57 | 84 |
//! | [`atan2`] | 1.718 | 40 | 52 | 3 | 72 | 184 |
//! | [`hypot`] | 1.024 | 28 | 28 | 3 | 34 | 38 |
//!
//! **Errors** are in units in the last place (ulp) of the result against the exact value, rounded
//! up. The errors are the maximum over all `f32`, and over 2³² stratified pairs for [`pow`],
//! [`atan2`] and [`hypot`]; `cargo bench -p kernel-dsl --bench ulp` measures them. NVIDIA's are
//! those of libdevice in the CUDA C++ Programming Guide 12.9, *Mathematical Functions*, which were
//! found by tests and are not guaranteed.
//!
//! **Slots** are issue slots of a warp on sm_61, by ptxas 12.9, beyond a kernel that only loads and
//! stores. The first number is the shortest path through the polynomial, for ordinary arguments.
//! The second is all code, with the branches for other arguments. The last two columns are those of
//! libdevice's functions, as NVRTC 12.9 compiles them without options for speed. libdevice may use
//! the hardware's approximations (`ex2`, `lg2`, `rcp`, `rsqrt`), which have no exact counterpart.
//! For that reason [`exp`], [`exp2`], [`tanh`], [`sigmoid`], [`cbrt`], [`pow`] and the inverses of
//! functions of one number cost more here. [`sin`], [`cos`] and [`tan`] carry a second part of the
//! angle, which reduces their errors from 2 and 4 ulp to at most 1.3. `rsqrt` in libdevice is one
//! hardware instruction and a scaling. `cargo test -p tests --test language math` generates and
//! checks the table.
//!
//! # Method
//!
//! Arguments are reduced by operations that are exact or whose rounding error is carried on. A
//! minimax polynomial follows, and the last operation rounds a nearly exact value once. No `f32`
//! function computes in `f64`, which sm_61 does at 1/32 of the rate. None divides: an approximate
//! reciprocal comes from the bits of a number and a few multiply-adds. Branches are for rare
//! arguments only: large angles, subnormal numbers of a root, powers of negative numbers, points
//! close to 0 or infinity. Special cases, signs of zeros and subnormal numbers follow C99's annex
//! F.
//!
//! Polynomials are found by Remez's exchange algorithm for the relative error of the whole
//! function. The coefficients are rounded one after another, from the constant term up, and the
//! remaining ones fitted again each time. Comments give each as a hexadecimal number.
//!
//! [`f64`](mod@self::f64) has the functions for `f64`.

// Constants are decimals that round to the number whose bits are in the comment beside them. The
// language of kernels has no `clamp` and no names for these constants.
#![allow(clippy::excessive_precision, clippy::approx_constant, clippy::manual_clamp, clippy::eq_op)]

mod error_function;
mod exponential;
pub mod f64;
mod hyperbolic;
mod inverse_hyperbolic;
mod inverse_trigonometric;
mod logarithm;
mod power;
mod reciprocal;
mod roots;
mod trigonometric;

pub use error_function::erf;
pub use exponential::{exp, exp_m1, exp2};
pub use hyperbolic::{cosh, sigmoid, sinh, tanh};
pub use inverse_hyperbolic::{acosh, asinh, atanh};
pub use inverse_trigonometric::{acos, asin, atan, atan2};
pub use logarithm::{ln, ln_1p, log2, log10};
pub use power::pow;
pub use roots::{cbrt, hypot, rsqrt};
pub use trigonometric::{cos, sin, sin_cos, tan};
