//! Kernels that reduce the rows of a matrix: softmax, cross-entropy, layer norm, RMS norm, group
//! norm, and their gradients. The entry points are [`Softmax`], [`CrossEntropy`], [`Norm`] and
//! [`GroupNorm`]. The entry points take any number of rows of any length, strides between rows, and
//! `f32` or 16-bit storage.
//!
//! | kernels | for |
//! |---|---|
//! | [`softmax::softmax_rows`], [`softmax::softmax_divided`] | softmax and log-softmax, scaled, masked |
//! | [`norm::norm_rows`], [`norm::norm_divided`], [`norm::norm_quantized`], [`norm::norm_activations`] | layer norm and RMS norm, with a residual added, in floats or in 8 bits, with a scale for each row or each 32 numbers |
//! | [`backward::softmax_backward`], [`backward::norm_backward`] | gradients of the inputs |
//! | [`backward::norm_columns`], [`backward::norm_columns_sum`] | gradients of weight and bias |
//! | [`group::group_norm`], [`group::group_norm_backward`], [`group::group_norm_channels`] | group norm, and its gradients |
//! | [`loss::cross_entropy`], [`loss::cross_entropy_backward`] | the loss of logits and labels, and its gradient |
//! | [`textbook::softmax`] | studying |
//!
//! # The limits
//!
//! The limit is memory: each element is read once and written once, with ten to forty instructions
//! in between. Therefore a team of threads, a warp or a block of up to 1024, keeps its row in
//! registers ([`row`] has a diagram). A table gives the team for a row's length. If there are many
//! rows, blocks in different phases overlap. If there are few, the time of a single row counts, and
//! a team is as large as there is work. Several blocks share a row of more than 32,768 elements
//! ([`divided`] has a diagram).
//!
//! # Extreme inputs
//!
//! All kernels compute in `f32`. `f16` and `bf16` are widened exactly, and a result beyond a
//! format's range is stored as ±∞.
//!
//! | inputs of a row | softmax | cross-entropy | norms |
//! |---|---|---|---|
//! | finite, up to ±3.4·10³⁸ | finite | finite if the loss is in the range of `f32` | finite |
//! | subnormal | as other small logits | as other small logits | as larger elements, by an exact scale |
//! | all equal | 1 / columns | ln columns | layer, group: 0 (± the mean's rounding), and NaN if ε = 0; RMS: ±1 |
//! | −∞ | 0; a row of −∞ gives zeros | ∞ for that label | as for +∞ |
//! | +∞ | NaN | NaN | layer, group: NaN; RMS: NaN for that element, 0 · weight for the others |
//! | NaN | NaN | NaN | NaN |
//! | NaN in masked or ignored elements | no effect | no effect | – |
//!
//! The specs test each line on every executor (`runtime::testing::Extreme`). The documentation of
//! each call has the details.
//!
//! # Measured
//!
//! Measured on an H200 (driver 580.159, the PTX of sm_61 compiled by its JIT) by
//! `kernels bench --suite softmax`, `norm` and `loss`, compared with a copy:
//!
//! | | 32768 × 4096 | × copy | × torch 2.11 | 8192 × 1024, × copy |
//! |---|---|---|---|---|
//! | softmax, log-softmax | 4.11, 4.11 TB/s | 0.97, 0.97 | 1.62 | 0.97 |
//! | RMS norm, layer norm | 4.14, 4.17 | 0.98, 0.99 | 1.41, 1.39 | 0.97, 0.96 |
//! | RMS norm, layer norm of `f16` | 4.11, 3.98 | 0.98, 0.95 | | |
//! | softmax, log-softmax of `f16` | 3.38, 3.47 | 0.81, 0.83 | | |
//!
//! Softmax of rows of 4095, which are not aligned to 16 bytes, reaches 4.01 TB/s. Blocks share rows
//! of 65,536, which reach 3.7 to 4.0 TB/s, 0.89 to 0.95 × a copy. Rows of 151,936 reach 0.85 to
//! 0.92 × if there are 512, and 0.74 to 0.76 × if there are 64. Cross-entropy over 151,936 tokens
//! reads 3.54 TB/s, and its gradient moves 3.80. In norms x bypasses the L1 cache, which keeps
//! weight and bias. Before that, both came from L2, whose bandwidth was the limit, at 87 %.

pub mod backward;
mod call;
pub mod divided;
pub mod group;
pub mod loss;
pub mod moments;
pub mod norm;
pub mod row;
pub mod softmax;
pub mod textbook;

pub(crate) use call::plan;
pub use call::{Added, CrossEntropy, GroupNorm, Norm, RowKernel, RowsShape, Saved, Softmax, Team};
