//! Integers: products of bytes, weights of 8 and 4 bits, and how numbers become either.
//!
//! | to call | what it does | its kernels |
//! |---|---|---|
//! | [`Igemm`] | op(A)·op(B) of signed bytes, exact in 32 bits, as `i32`, or by scales as `f32`, `f16` or bytes again | [`igemm`](mod@igemm), [`sums`] |
//! | [`Weights`] | Q8_0 and Q4_0 as llama.cpp has them, and rows of bytes; products with activations in `f32` or 16 bits | [`gemv`], [`blockwise`], [`blocks`] |
//! | [`Affine`] | scales and zero points by the extremes of a matrix or of its rows; bytes by them, and back | [`affine`] |
//! | [`formats`] | the blocks of GGML's files on the host: numbers of blocks, blocks of numbers, planes of blocks and back | |
//! | [`calibration`] | scales from samples, on the host: largest magnitude, percentile, least mean-square error | |
//!
//! # Extreme inputs
//!
//! [`Affine`] is right for all finite numbers, and says what infinities and NaNs become. [`Weights::quantize_q8`] and
//! [`Weights::quantize_q4`] have what scales of `f16` hold, as their docs say; activations in [`Weights::product`] have scales of
//! `f32`. [`Igemm`] multiplies scales in `f32`. On the host, samples that are not finite do not count in [`calibration`].
//!
//! # What limits them on sm_61
//!
//! `dp4a` adds four products of bytes to a sum of 32 bits at the rate of one multiplication of floats, so that a Tesla P40 has 47 tera-operations a second
//! for its 11.8 of `f32`; no later instruction for matrices is there. The tile of [`igemm`](mod@igemm) is that of [`gemm`](mod@crate::gemm) with
//! words of four bytes in the place of floats, and has the same limits: two fragments of 8 words are read from shared memory for 64 `dp4a`, which keeps
//! it busy for half of the time, and the rest is to issue little else.
//!
//! | loop of 128 × 128 × 32 bytes, twice | `dp4a` of the issue slots | registers |
//! |---|---|---|
//! | B as [N, K]: 16 bytes of K at once | 1024 of 1081, 95 % | 117 |
//! | B as [K, N]: four rows of K, and their 4 × 4 bytes turned by eight permutations | 1024 of 1106, 93 % | 125 |
//! | A as [K, M], B as [K, N] | 1024 of 1139, 90 % | 128 |
//!
//! None spills, and 5 % of the `dp4a` wait for a register bank (`tests/tests/budgets.rs`).
//!
//! Weights in blocks of 32 have a scale each, and so the sum of each 8 `dp4a` becomes a float and is multiplied: of the 427 slots of the loop of
//! [`blockwise`] 256 are `dp4a` and 96 that. Where there are few rows, memory is the limit: 34 bytes for 32 weights of Q8_0, 18 of Q4_0, which
//! [`gemv`] reads once, 16 bytes at a time, with some of every warp under way while the last ones are multiplied.
//!
//! # Measured
//!
//! On an H200 (driver 580.159, the PTX of sm_61 by its JIT), `kernels bench quant`, beside `dp4a` alone ([`peak`]), cuBLAS in `f32`, and a copy of as many bytes:
//!
//! | | | |
//! |---|---|---|
//! | 4096³ bytes, B as [N, K] and as [K, N] | 125 and 122 TOPS | 0.94 and 0.92 of `dp4a` alone, 2.47 and 2.37 × cuBLAS |
//! | 2048³, 1024³, 1001³ | 115, 85, 38 | 0.87, 0.64, 0.29 of it |
//! | 1 × 8192 × 8192, Q8_0, Q4_0, bytes | 3.23, 4.32, 3.30 TB/s | 0.90, 0.94, 0.92 × a copy |
//! | 8 × 8192 × 8192 of them | 54, 59, 54 µs | |
//! | 512 × 6144 × 2048 | 71, 70, 88 TOPS | |

pub mod affine;
pub mod blocks;
pub mod blockwise;
pub mod calibration;
pub mod formats;
pub mod gemv;
pub mod igemm;
pub mod peak;
mod product;
mod quantizer;
mod round;
pub mod sums;
mod tile;
mod weighted;
mod weights;

pub use product::{Igemm, Quantized};
pub use quantizer::Affine;
pub use weights::{Format, Weights};
