//! Kernels that experts would write, in the language as it is: each on every executor, against plain Rust.
//!
//! Where inputs are small whole numbers, sums are exact in any order, so the comparison is too. `tests/paper.rs` runs them, and so
//! does `cargo run --release -p tests --bin paper -- check`.

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

/// The logarithm to base 2.
#[device]
fn log2(x: f32) -> f32 {
    math::ln(x) * std::f32::consts::LOG2_E
}
