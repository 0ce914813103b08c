//! The transpose of a matrix by 32 × 32 tiles.
//!
//! Rows of x are read and rows of y are written, both by whole warps, so that every request is 128 consecutive bytes; the
//! turn happens in shared memory, where a pad of one element keeps the 32 lanes that read a column on 32 banks.

mod copy;
pub mod gather;
pub mod rows;
pub mod tiles;

pub use copy::{copy, fill, transpose_batch};
pub use gather::gather;

use kernel_dsl::prelude::*;

/// y = xᵀ; x is M × N, y is N × M, any M and N.
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
