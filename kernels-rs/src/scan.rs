//! Prefix sums along the rows of a matrix.
//!
//! [`inclusive`] and [`exclusive`] are what to call. A block walks along a row, or a part of it, tile by tile of 4096 elements, and carries the sum on:
//!
//! ```text
//!   a tile: 8 warps of 4 pieces of 32 lanes of 4 elements
//!   │ warp 0: │ lane 0 … lane 31 │ lane 0 … lane 31 │ … │ warp 1: │ … │
//!             ╰ a scan by shuffles, carried to the next ╯           the warps' sums by way of shared memory, one barrier a tile
//! ```
//!
//! Where rows alone do not fill the device, they are divided: the sums of the parts come first, their exclusive prefix next, by the same kernel, and then each part is
//! scanned from where those before it end (reduce-then-scan: Merrill and Grimshaw, *Parallel Scan for Stream Architectures*, 2009). No block
//! waits for another, and the order of the sums is fixed.
//!
//! What limits it is memory: elements are read and written once, and read twice where rows are divided.
//!
//! # Extreme inputs
//!
//! An infinity or a NaN counts from its place to the end of its row, as in additions one after another, and for nothing
//! before. Subnormal numbers count as they are. Where Σ|x| up to an element is beyond `f32::MAX`, partial sums may overflow,
//! and the sum there is finite, infinite or NaN.
//!
//! # Measured
//!
//! On an H200 (driver 580.159, the PTX of sm_61 by its JIT), `kernels bench memory`, 32768 × 4096: of rows 4.14 TB/s, 0.98 × a copy; of all as one row 2.61, 0.62 ×: a row in parts is read twice.

pub mod kernels;
mod run;

pub use run::{exclusive, inclusive};
