//! Prefix sums along the rows of a matrix.
//!
//! The entry points are [`inclusive`] and [`exclusive`]. A block iterates over a row, or a part of
//! it, by tiles of 4096 elements, and carries the sum:
//!
//! ```text
//!   a tile: 8 warps of 4 pieces of 32 lanes of 4 elements
//!   │ warp 0: │ lane 0 … lane 31 │ lane 0 … lane 31 │ … │ warp 1: │ … │
//!             ╰ a scan by shuffles, carried to the next ╯           the warps' sums through shared memory, one barrier a tile
//! ```
//!
//! If there are too few rows to fill the device, they are divided: first the sums of the parts are
//! computed, then their exclusive prefix by the same kernel. Finally each part is scanned, starting
//! from the sum of those before it (reduce-then-scan: Merrill and Grimshaw, *Parallel Scan for
//! Stream Architectures*, 2009). No block waits for another, and the order of the sums is fixed.
//!
//! The limit is memory: elements are read and written once, and read twice if rows are divided.
//!
//! # Extreme inputs
//!
//! An infinity or a NaN affects the sums from its index to the end of its row, as in sequential
//! additions, and none before. Subnormal numbers are not flushed. If Σ|x| up to an element exceeds
//! `f32::MAX`, partial sums may overflow, and the sum there is finite, infinite or NaN.
//!
//! # Measured
//!
//! Measured on an H200 (driver 580.159, the PTX of sm_61 compiled by its JIT) by
//! `kernels bench memory`, 32768 × 4096. Rows reach 4.14 TB/s, 0.98 × a copy. All elements as one
//! row reach 2.61, 0.62 ×, because a divided row is read twice.

pub mod kernels;
mod run;

pub use run::{exclusive, inclusive};
