//! Integers.

pub mod affine;
pub mod blocks;
pub mod blockwise;
pub mod calibration;
pub mod gemv;
pub mod igemm;
pub mod peak;
mod product;
mod quantiser;
mod round;
pub mod sums;
mod tile;
mod weights;

pub use product::{Igemm, Quantised};
pub use quantiser::Affine;
pub use weights::{Format, Weights};
