//! Data movement without computation: [`copy`] of arrays with any strides, [`transpose_batch`],
//! [`fill`], and [`gather`](gather()) of rows by index.
//!
//! | kernels | for | a thread's work |
//! |---|---|---|
//! | [`rows::copy_rows`], [`rows::fill_rows`] | arrays with the same last axis, or a short one | 16 bytes, or an element |
//! | [`tiles::transpose_tiles`] | arrays with different last axes | 8 words of a tile of 4096, transposed in shared memory |
//! | [`gather::gather_rows`] | rows by index | 16 bytes |
//!
//! The limit of all kernels is memory. The kernels use at most 32 registers, so that a
//! multiprocessor of sm_61 has the maximum number of warps (`tests/tests/machine_code/budgets.rs`).
//! `kernels bench --suite memory` compares them with a device-to-device copy.
//!
//! Elements are copied bit for bit in every format, including −0, subnormal numbers, infinities and
//! NaNs.
//!
//! # The simplest kernel
//!
//! [`transpose`] works by 32 × 32 tiles. Rows of x are read and rows of y are written, both by
//! whole warps, so that every request is 128 consecutive bytes. The transposition happens in shared
//! memory. A padding of one element puts the 32 elements of a column in 32 banks.
//!
//! # Measured
//!
//! Measured on an H200 (driver 580.159, the PTX of sm_61 compiled by its JIT) by
//! `kernels bench --suite memory`, 32768 × 4096, compared with a copy by the driver:
//!
//! | | TB/s | × copy |
//! |---|---|---|
//! | copy; of rows with gaps; axes 0213 | 4.26, 4.23, 4.20 | 1.01, 0.99, 1.00 |
//! | fill | 4.60 | 1.10 |
//! | transpose of `f32`, `f16`, `i8` | 4.08, 3.97, 3.81 | 0.97, 0.95, 0.93 |
//! | gather of `f32`, `f16` | 4.00, 3.89 | 0.95, 0.94 |
//!
//! Narrow elements need the same number of instructions a word as wide ones, and have half or a
//! quarter of the words. Arrays of `i8` with 4096 × 32768 and 8192 × 8192 elements reach 0.97 and
//! 0.96.

mod copy;
pub mod gather;
pub mod rows;
pub mod tiles;

pub use copy::{copy, fill, transpose_batch};
pub use gather::gather;

use kernel_dsl::prelude::*;

/// Computes y = xᵀ, where x is M × N and y is N × M, for any M and N.
#[kernel(block = (32, 8), grid = (x.cols().div_ceil(32), x.rows().div_ceil(32)), writes(y = once))]
#[requires(y.rows() == x.cols(), y.cols() == x.rows())]
pub fn transpose(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    let tile = Shared::<f32, 2>::padded([32, 32]);
    tile.copy_from(x.offset((block::y() * 32, block::x() * 32)));
    block::sync();
    let (row, col) = (block::x() * 32 + thread::y(), block::y() * 32 + thread::x());
    for i in unroll(0..4) {
        if row + 8 * i < y.rows() && col < y.cols() {
            y[(row + 8 * i, col)] = tile[(thread::x(), thread::y() + 8 * i)];
        }
    }
}
