//! x
#![allow(clippy::excessive_precision, clippy::approx_constant, clippy::manual_clamp, clippy::eq_op)]
mod error_function;
mod exponential;
pub mod f64;
mod hyperbolic;
mod logarithm;
mod power;
mod reciprocal;
mod roots;
mod trigonometric;

pub use error_function::erf;
pub use exponential::{exp, exp_m1, exp2};
pub use hyperbolic::{sigmoid, tanh};
pub use logarithm::{ln, ln_1p, log2, log10};
pub use power::pow;
pub use roots::{cbrt, rsqrt};
pub use trigonometric::{cos, sin, sin_cos, tan};
