//! Kernels as experts would write them, in the current language: each on every executor, against
//! plain Rust.
//!
//! Where inputs are small integers, sums are exact in any order, and so is the comparison.
//! `tests/paper.rs` runs them, and so does `cargo run --release -p tests --bin paper -- check`.

mod attention;
mod bitonic;
mod conv3d;
mod decode;
mod elementwise;
mod histogram;
mod q8_gemm;
mod scan;
mod sgemm;
mod topk;
mod trial;

use kernel_dsl::prelude::*;

/// Computes the logarithm to base 2.
#[device]
fn log2(x: f32) -> f32 {
    math::ln(x) * std::f32::consts::LOG2_E
}
