//! Integers.

pub mod blocks;
pub mod blockwise;
pub mod gemv;
pub mod igemm;
pub mod peak;
mod product;
mod round;
pub mod sums;
mod tile;
mod weights;

pub use product::{Igemm, Quantised};
pub use weights::{Format, Weights};
