//! The functions for `f64`: the same methods with longer polynomials and parts.
//!
//! | function | error |
//! |---|---|
//! | [`exp`] | 0.9 |
//! | [`exp2`] | 0.9 |
//! | [`exp_m1`] | 1.5 |
//! | [`ln`] | 0.6 |
//! | [`log2`] | 0.6 |
//! | [`sin`], [`cos`], [`sin_cos`] | 0.8 |
//! | [`tanh`] | 2.5 |
//! | [`pow`] | 1 |
//!
//! Errors, in units in the last place, are bounds slightly above the largest error among tens of
//! thousands of samples. The samples cover all magnitudes, and all arguments where the functions
//! are not constant, against numbers of 200 bits and more; `tests/language` keeps some of them.
//! sm_61 computes in `f64` at 1/32 of the rate of `f32`. These functions are for cases where `f32`
//! does not suffice; their speed was not measured.

mod exponential;
mod hyperbolic;
mod logarithm;
mod power;
mod trigonometric;

pub use exponential::{exp, exp_m1, exp2};
pub use hyperbolic::tanh;
pub use logarithm::{ln, log2};
pub use power::pow;
pub use trigonometric::{cos, sin, sin_cos};
