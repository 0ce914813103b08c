//! Cases of the expert [`examples`](crate::examples): inputs, and expected outputs from plain Rust.
//!
//! Where inputs are small integers, sums are exact in any order, and so is the comparison.
//! `tests/examples.rs` runs the cases, and so does
//! `cargo run --release -p tests --bin all-kernels -- check`.

mod bitonic;
mod conv3d;
mod decode_attention;
mod elementwise;
mod flash_attention;
mod histogram;
mod q8_gemm;
mod scan;
mod sgemm;
mod topk;
mod trial;
