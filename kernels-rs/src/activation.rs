//! Activation functions for kernels of this crate and of others.
//!
//! The functions named `fast_…` use the hardware's approximations. Fast functions have a relative
//! error of 10⁻⁵, others of 3·10⁻⁷. Fast functions take a third of the instructions: 10 per element
//! instead of 30. On an H200, memory delivers a 16-bit element every 28 instructions; only the fast
//! functions keep up with it.
//!
//! # Extreme inputs
//!
//! | x | sigmoid | silu, gelu, gelu_tanh and their fast forms |
//! |---|---|---|
//! | NaN | NaN | NaN |
//! | +∞ | 1 | ∞ |
//! | large, to 3.4·10³⁸ | 1 | x |
//! | subnormal | 1/2 | x/2 |
//! | −3.4·10³⁸, −∞ | 0 | −0, the limit |
//!
//! A gate f(a) · b is NaN if f(a) is 0 and b infinite. The error of gelu is relative to |x|: below
//! −5.5 the result is 0.

use crate::rowwise::softmax::decay;
use kernel_dsl::prelude::*;

/// Returns the sigmoid, 1 / (1 + e⁻ˣ), with a relative error of 5·u until it is subnormal. For
/// negative x the function computes e^x / (1 + e^x), because e⁻ˣ overflows below −88.8.
#[device]
pub fn sigmoid(x: f32) -> f32 {
    let e = decay(-x.abs());
    let share = 1.0 / (1.0 + e);
    if x < 0.0 { e * share } else { share }
}

/// Returns SiLU, x · sigmoid(x) (Elfwing, Uchibe and Doya, 2017).
#[device(value)]
pub fn silu(x: f32) -> f32 {
    // −∞ times 0 would be NaN; the lowest number times 0 is −0, the limit.
    x.max(f32::MIN) * sigmoid(x)
}

/// Returns the Gaussian error linear unit, x · Φ(x) = x/2 · (1 + erf(x/√2)) (Hendrycks and Gimpel,
/// 2016).
#[device(value)]
pub fn gelu(x: f32) -> f32 {
    0.5 * x.max(f32::MIN) * (1.0 + math::erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// Returns the tanh approximation of [`gelu`](gelu()), x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³)))
/// (Hendrycks and Gimpel, 2016).
#[device(value)]
pub fn gelu_tanh(x: f32) -> f32 {
    let inner = 0.797_884_6 * (0.044_715 * x * x).mul_add(x, x);
    0.5 * x.max(f32::MIN) * (1.0 + math::tanh(inner))
}

/// Returns silu(a) · b: the gate of SwiGLU (Shazeer, *GLU Variants Improve Transformer*, 2020).
#[device(value)]
pub fn swiglu(a: f32, b: f32) -> f32 {
    silu(a) * b
}

/// Returns gelu(a) · b: the gate of GeGLU (Shazeer, 2020).
#[device(value)]
pub fn geglu(a: f32, b: f32) -> f32 {
    gelu(a) * b
}

/// Returns gelu_tanh(a) · b: the gate of GeGLU in the tanh approximation.
#[device(value)]
pub fn geglu_tanh(a: f32, b: f32) -> f32 {
    gelu_tanh(a) * b
}

/// Returns an approximation of the sigmoid, 1 / (1 + e⁻ˣ), with a relative error of 10⁻⁵, the error
/// of e⁻ˣ at x = −88. Below −88 the result is 0.
#[device]
pub fn fast_sigmoid(x: f32) -> f32 {
    fast::rcp(1.0 + fast::exp(-x))
}

/// Returns an approximation of [`silu`](silu()) with a relative error of 10⁻⁵; 0 below −88.
#[device(value)]
pub fn fast_silu(x: f32) -> f32 {
    x.max(f32::MIN) * fast_sigmoid(x)
}

/// Returns an approximation of [`gelu_tanh`](gelu_tanh()), x · sigmoid(2·√(2/π)·(x + 0.044715·x³)),
/// with a relative error of 10⁻⁵; 0 below −10.
#[device(value)]
pub fn fast_gelu_tanh(x: f32) -> f32 {
    let twice = 1.595_769_1 * (0.044_715 * x * x).mul_add(x, x);
    x.max(f32::MIN) * fast_sigmoid(twice)
}

/// Returns `fast_silu(a)` · b.
#[device(value)]
pub fn fast_swiglu(a: f32, b: f32) -> f32 {
    fast_silu(a) * b
}

/// Returns `fast_gelu_tanh(a)` · b.
#[device(value)]
pub fn fast_geglu_tanh(a: f32, b: f32) -> f32 {
    fast_gelu_tanh(a) * b
}
