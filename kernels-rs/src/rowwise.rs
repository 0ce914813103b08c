//! Kernels that reduce the rows of a matrix: softmax, cross-entropy, layer norm, RMS norm, group norm, and their ways back. [`Softmax`], [`CrossEntropy`], [`Norm`] and [`GroupNorm`] are what to call: any
//! number of rows, of any length, strides between them, `f32` or 16-bit storage.
//!
//! | kernels | for |
//! |---|---|
//! | [`softmax::softmax_rows`] | softmax and log-softmax, scaled, masked |
//! | [`norm::norm_rows`], [`norm::norm_quantized`] | layer norm and RMS norm, with a residual added, in floats or in 8 bits |
//! | [`backward::softmax_backward`], [`backward::norm_backward`] | gradients by what these were given |
//! | [`backward::norm_columns`], [`backward::norm_columns_sum`] | gradients by weight and bias |
//! | [`group::group_norm`], [`group::group_norm_backward`], [`group::group_norm_channels`] | group norm, and its gradients |
//! | [`loss::cross_entropy`], [`loss::cross_entropy_backward`] | the loss of logits by labels, and its gradient |
//! | [`textbook::softmax`] | reading |
//!
//! # What limits them
//!
//! Memory: each element is read once and written once, with some ten to forty instructions between. So a team of threads, a warp or a block of up to 1024,
//! keeps its row in registers ([`row`] has the picture); as many as it takes to keep it, which is what a table says for a row's length. Rows
//! are many, and blocks in different phases overlap. Where rows are few, it is one row's time that counts, and a team is as large as there is work.
//!
//! # Extremes
//!
//! All kernels compute in `f32`; `f16` and `bf16` are widened exactly, and a result beyond a format's range is stored as ±∞.
//!
//! | inputs of a row | softmax | cross-entropy | norms |
//! |---|---|---|---|
//! | finite, up to ±3.4·10³⁸ | finite | finite where the loss is a number of `f32` | finite |
//! | subnormal | as other small logits | as other small logits | exact scale: as of larger rows |
//! | all equal | 1 / columns | ln columns | 0 (± the mean's rounding), NaN of ε = 0 |
//! | −∞ | 0; a row of −∞ gives zeros | loss of that label ∞ | NaN |
//! | +∞ | NaN | NaN | layer, group: NaN; RMS: NaN there, 0 · weight elsewhere |
//! | NaN | NaN | NaN | NaN |
//! | NaN where masked or ignored | no effect | no effect | – |
//!
//! The specs try each line on every executor (`runtime::testing::Extreme`); each call's documentation has the details.
//!
//! # Measured
//!
//! On an H200 (driver 580.159, the PTX of sm_61 by its JIT), `kernels bench softmax`, `norm` and `loss`, beside a copy:
//!
//! | | 32768 × 4096 | × copy | × torch 2.11 | 8192 × 1024, × copy |
//! |---|---|---|---|---|
//! | softmax, log-softmax | 4.11, 4.11 TB/s | 0.97, 0.97 | 1.62 | 0.97 |
//! | RMS norm, layer norm | 4.14, 4.17 | 0.98, 0.99 | 1.41, 1.39 | 0.97, 0.96 |
//! | RMS norm, layer norm of `f16` | 4.11, 3.98 | 0.98, 0.95 | | |
//! | softmax, log-softmax of `f16` | 3.38, 3.47 | 0.81, 0.83 | | |
//!
//! Rows of 4095, which no 16 bytes begin at, take softmax 4.01 TB/s; rows of 65,536, longer than what is kept, 3.05. Cross-entropy over 151,936 tokens reads 3.54 TB/s, and its way back
//! moves 3.80. In norms the second cache was the limit before x went past the first one: weight and bias came from there, and it gave 87 % of all it can.

pub mod backward;
mod call;
pub mod group;
pub mod loss;
pub mod moments;
pub mod norm;
pub mod row;
pub mod softmax;
pub mod textbook;

pub(crate) use call::plan;
pub use call::{Added, CrossEntropy, GroupNorm, Norm, Saved, Softmax};
