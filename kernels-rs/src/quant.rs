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

pub use product::{Igemm, Quantised};
