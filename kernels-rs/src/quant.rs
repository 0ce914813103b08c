//! Integers: products of bytes, weights in the formats of GGML's files, and quantization of
//! numbers.
//!
//! | to call | what it does | its kernels |
//! |---|---|---|
//! | [`Igemm`] | op(A)·op(B) of signed bytes, exact in 32 bits, as `i32`, or by scales as `f32`, `f16` or bytes again | [`igemm`](mod@igemm), [`sums`] |
//! | [`Weights`] | the 13 [`formats`] of GGML, and rows of bytes; products with activations in `f32` or 16 bits | [`few`], [`many`], [`repack`] |
//! | [`Activations`] | activations that are quantized once for several products of the same rows, optionally together with the gate or the norm before the product | [`activations`], [`norm_activations`](crate::rowwise::norm::norm_activations) |
//! | [`Routing`] | mixtures of experts: routes of tokens, products with experts in any format, and their sums | [`routing`](mod@routing), [`few`], [`many`] |
//! | [`Affine`] | scales and zero points from the extremes of a matrix or of its rows; conversions to bytes and back | [`affine`] |
//! | [`formats::host`] | conversions on the host of blocks of GGML's files: to numbers and back, and to planes and back | |
//! | [`calibration`] | scales from samples, on the host: largest magnitude, percentile, least mean-square error | |
//!
//! # Extreme inputs
//!
//! [`Affine`] is correct for all finite numbers, and documents the results for infinities and NaNs.
//! [`Weights::quantize_q8`] and [`Weights::quantize_q4`] have scales of `f16`, whose limits their
//! documentation states. Activations in [`Weights::product`] have scales of `f32`. [`Igemm`]
//! multiplies scales in `f32`. On the host, [`calibration`] ignores samples that are not finite.
//!
//! # Limits on sm_61
//!
//! `dp4a` adds four products of bytes to a sum of 32 bits, at the rate of one multiplication of
//! floats. A Tesla P40 therefore computes 47 tera-operations of bytes a second, and 11.8 of `f32`.
//! Pascal has no matrix instructions. The tile of [`igemm`](mod@igemm) is that of
//! [`gemm`](mod@crate::gemm) with words of four bytes instead of floats, and has the same limits.
//! Two fragments of 8 words are read from shared memory for 64 `dp4a`, which keeps shared memory
//! busy for half of the time. The kernel issues few other instructions.
//!
//! | loop of 128 × 128 × 32 bytes, twice | `dp4a` of the issue slots | registers |
//! |---|---|---|
//! | B as [N, K]: 16 bytes of K at once | 1024 of 1081, 95 % | 117 |
//! | B as [K, N]: four rows of K, and their 4 × 4 bytes transposed by eight permutations | 1024 of 1106, 93 % | 125 |
//! | A as [K, M], B as [K, N] | 1024 of 1139, 90 % | 128 |
//!
//! None spills, and 5 % of the `dp4a` wait for a register bank
//! (`tests/tests/machine_code/budgets.rs`).
//!
//! Weights in blocks have a scale for each 32 or 16 numbers. Therefore each sum of eight or four
//! `dp4a` becomes a float and is multiplied. With few rows, the limit is memory, and on small GPUs
//! the issue of instructions: a Tesla P40 has 9.6 slots while its memory delivers a weight of Q4_0
//! or Q4_K, 18.1 for Q8_0, 13.9 for Q6_K.
//!
//! | | Q4_0 | Q8_0 | Q4_K | Q6_K |
//! |---|---|---|---|---|
//! | [`few`]: slots a weight, 1 row | 1.23 | 0.86 | 1.52 | 2.08 |
//! | 4 rows | 2.01 | 1.76 | 2.50 | 3.06 |
//! | 8 rows | 3.41 | 3.20 | 4.10 | 4.70 |
//! | [`many`]: `dp4a` of the slots of the loop, 64 rows | 62 % | 62 % | 55 % | 47 % |
//!
//! # Accuracy
//!
//! The table has root mean square errors, relative to the root mean square of the exact values:
//!
//! - of normal weights, against the numbers that they were quantized from on the host;
//! - of products of 4096 numbers, against the exact products of the same weights, for normal
//!   activations;
//! - of the same products with one activation in a hundred 20 times as large.
//!
//! The cause of the errors of products is the quantization of activations to 8 bits, with a scale
//! for each 32 numbers. `UPDATE=1 cargo test -p tests --test library products_are_accurate` writes
//! the table.
//!
#![doc = include_str!("quant/accuracy.md")]
//!
//! # Measured
//!
//! On an H200 (driver 580.159, which compiles the PTX of sm_61), `kernels bench --suite quant`
//! compares with `dp4a` alone ([`peak`]) and cuBLAS in `f32`:
//!
//! | | | |
//! |---|---|---|
//! | 4096³ bytes, B as [N, K] and as [K, N] | 125 and 122 TOPS | 0.94 and 0.92 of `dp4a` alone, 2.47 and 2.37 × cuBLAS |
//! | 2048³, 1024³, 1001³ | 115, 85, 38 | 0.87, 0.64, 0.29 of `dp4a` alone |
//!
//! A table of costs, [`plan`](mod@plan), chooses the kernel for a product with [`Weights`].
//! Measured plans in a table have precedence ([`Weights::tuned`]).

pub mod activations;
pub mod affine;
pub mod calibration;
mod experts;
pub mod few;
mod format;
pub mod formats;
pub mod igemm;
pub mod many;
pub mod peak;
pub mod plan;
mod product;
mod quantizer;
pub mod repack;
pub(crate) mod round;
pub mod routing;
pub mod sums;
mod tile;
mod tuned;
mod weighted;
mod weights;

pub use experts::{ExpertRows, Routes, Routing};
pub use format::Format;
pub use product::{Igemm, Quantized};
pub use quantizer::Affine;
pub use tuned::WeightedShape;
pub use weighted::Activations;
pub use weights::Weights;
