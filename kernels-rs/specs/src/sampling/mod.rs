//! Specs of the kernels that draw tokens, a file for each module of kernels.

mod best;
mod logits;
mod random;
mod threshold;
mod top;

pub(super) use logits::{order, temperature};
pub(super) use random::{random_stream, stream, words};
