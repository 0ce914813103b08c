//! Attention.

pub mod append;
pub mod cache;
mod call;
pub mod decode;
pub mod mask;
pub mod prefill;
pub mod score;
pub mod span;
mod step;
mod tile;

pub use call::{Attention, Passed};
pub use step::{Decode, Scratch};
