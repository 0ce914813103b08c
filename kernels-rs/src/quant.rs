//! Integers.

pub mod igemm;
pub mod peak;
mod product;
pub mod sums;
mod tile;

pub use product::{Igemm, Quantised};
