//! Cases of the expert [`examples`](crate::examples): inputs, and expected outputs from plain Rust.
//!
//! Where inputs are small integers, sums are exact in any order, and so is the comparison.
//! `tests/examples.rs` runs the cases, and so does
//! `cargo run --release -p tests --bin all-kernels -- check`.

mod bfs;
mod bitonic;
mod bvh;
mod conv3d;
mod decode_attention;
mod elementwise;
mod fft;
mod flash_attention;
mod hash_table;
mod heat;
mod histogram;
mod keccak;
mod knn;
mod look_back;
mod nbody;
mod q8_gemm;
mod radix_sort;
mod scan;
mod sgemm;
mod sha256;
mod smith_waterman;
mod topk;
mod trial;
mod work_queue;
