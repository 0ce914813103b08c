//! Activation functions, for kernels of this crate and of others to call.

use kernel_dsl::prelude::*;

/// The sigmoid, 1 / (1 + e⁻ˣ).
#[device]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + math::exp(-x))
}

/// SiLU, x · sigmoid(x) (Elfwing, Uchibe and Doya, 2017).
#[device]
pub fn silu(x: f32) -> f32 {
    x * sigmoid(x)
}
