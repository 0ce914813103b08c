//! x
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
