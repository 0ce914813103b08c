//! The functions for `f64`: the same ways with longer polynomials and parts.
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
//! Errors in units of the last place are bounds with some room to the largest among samples of ten thousands of arguments, over all
//! sizes and where the functions are not constant, against numbers of 200 bits and more; `tests/f64` keeps a part of the samples. sm_61
//! computes in `f64` at a thirty-second of the rate of `f32`: these are there for where `f32` does not do, and are not measured for speed.

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
