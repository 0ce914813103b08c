//! Integers.

pub mod igemm;
mod product;
pub mod sums;
mod tile;

pub use product::{Igemm, Quantised};
