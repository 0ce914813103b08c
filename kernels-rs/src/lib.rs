//! A library of GPU kernels written in kernel-dsl, without any hand-written PTX.
//!
//! Each module is a kernel family and documents how it works, its requirements, and its limits.
//! Every kernel is an item with its PTX for sm_61 as a constant (`saxpy::PTX`, `matmul::<16>::PTX`)
//! and a typed launch (`saxpy::launch(&device, …)`). Crate `runtime` provides devices and buffers.
//! Crate `kernels-rs-specs` tests the kernels, and the command `kernels` of crate
//! `kernels-rs-command` lists, shows, checks and measures them.
//!
//! # The order of numbers
//!
//! Reductions, sorts, top-k and sampling order floats alike:
//!
//! - −0 and 0 are equal.
//! - A NaN comes last: it counts as −∞ for maxima and descending order, and as ∞ for minima and
//!   ascending order.
//! - Of equal numbers, the one with the smaller index comes first.
//!
//! So the maximum of `[NaN, −∞]` is −∞, its arg-max 0, and its arg-min 1.

mod access;
pub mod activation;
pub mod attention;
mod axes;
pub mod blocks;
pub mod convolution;
mod counters;
mod dispatch;
pub mod elementwise;
pub mod fold;
pub mod gemm;
pub mod histogram;
mod operand;
pub mod optimizer;
mod parts;
pub mod permute;
pub mod preload;
pub mod quant;
mod queue;
pub mod reduce;
pub mod rotary;
pub mod rowwise;
pub mod sampling;
pub mod scan;
pub mod tuned;

pub use counters::BlockCounters;
pub use elementwise::saxpy;
pub use gemm::matmul;
pub use permute::transpose;
pub use queue::{LaunchStruct, Queue, QueueMemory, SharedBuffer};
pub use rowwise::textbook::softmax;
