//! GPU kernels written in kernel-dsl, and nothing else: no PTX by hand.
//!
//! Each module is one kernel family: how it works, what it needs, what limits it. Every kernel is an item with its PTX for
//! sm_61 as a constant (`saxpy::PTX`, `matmul::<16>::PTX`) and a typed launch (`saxpy::launch(&device, …)`); see
//! crate `runtime` for devices and buffers. The command `kernels` lists, shows and checks them.
//!
//! # The order of numbers
//!
//! Reductions, sorts, top-k and sampling order floats in one way:
//!
//! * −0 and 0 are equal.
//! * A NaN counts as the number that comes last: as −∞ where the largest is sought or numbers descend, as
//!   ∞ where the smallest is sought or numbers ascend.
//! * Of equal numbers the one of the smaller index comes first.
//!
//! So the maximum of `[NaN, −∞]` is −∞, its arg-max 0, and its arg-min 1.

mod access;
pub mod activation;
pub mod attention;
mod axes;
pub mod blocks;
pub mod command;
pub mod convolution;
pub mod elementwise;
pub mod fold;
pub mod gemm;
pub mod histogram;
mod operand;
mod parts;
pub mod permute;
pub mod quant;
mod queue;
pub mod reduce;
pub mod rotary;
pub mod rowwise;
pub mod sampling;
pub mod sass;
pub mod scan;
mod subjects;

pub use elementwise::saxpy;
pub use gemm::matmul;
pub use permute::transpose;
pub use queue::{Memory, Passed, Queue, Shared};
pub use rowwise::textbook::softmax;
