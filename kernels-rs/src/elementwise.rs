//! Elementwise functions of arrays: [`map`], [`map2`] and [`map3`] of any function marked
//! `#[device(value)]`, and [`gate`] of the halves of rows.
//!
//! ```text
//!   y: planes of rows of pieces              a thread and step
//!   │ piece │ piece │ piece │ … row 0        x  ─ 16 bytes ─▶ ┐
//!   │ piece │ piece │ piece │ … row 1        row for all ─▶   ├ f(·) ─ 16 bytes ─▶ y
//!   …                                        column for all ─▶┘ element by element, from the caches
//! ```
//!
//! Inputs are broadcast by strides of 0, and axes that are contiguous in all arrays are merged.
//! Therefore arrays without gaps are one row, whose pieces are found without a division. A piece is
//! 16 bytes of the widest format, if elements of y are adjacent. The limit is memory, as long as f
//! takes fewer than about forty instructions an element on sm_61. A thread has one piece of each
//! input in flight, and a multiprocessor has 2048 threads.
//!
//! [`saxpy`] is the smallest kernel of the library.
//!
//! # Measured
//!
//! Measured on an H200 (driver 580.159, the PTX of sm_61 compiled by its JIT) by
//! `kernels bench --suite memory`, with 32768 × 4096 elements:
//!
//! - `silu` of `f32`: 4.03 TB/s, 0.96 × a copy; with `fast::exp2` 4.26, 1.01 ×;
//! - `swiglu` with `fast::exp2` and a row for all: 4.21, 1.00 ×; of halves 4.32, 1.02 ×;
//! - both of `f16`: 4.17 and 4.21, 1.00 and 1.02 ×.

mod map;
pub mod maps;

pub use map::{gate, map, map2, map3};

use kernel_dsl::prelude::*;

/// Computes y ← a·x + y, one element per thread, each with one rounding.
#[kernel(block = 256, grid = y.len().div_ceil(256))]
#[requires(x.len() == y.len())]
pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = a.mul_add(x[i], y[i]);
    }
}
