//! The current thread. Values differ between threads and need no convergence.

use crate::host::context::context;

/// Returns the index in the block along x (`%tid.x`). Consecutive threads of a warp have
/// consecutive x.
#[must_use]
#[track_caller]
pub fn x() -> usize {
    context("thread::x()").thread[0]
}

/// Returns the index in the block along y (`%tid.y`).
#[must_use]
#[track_caller]
pub fn y() -> usize {
    context("thread::y()").thread[1]
}

/// Returns the index in the block along z (`%tid.z`).
#[must_use]
#[track_caller]
pub fn z() -> usize {
    context("thread::z()").thread[2]
}

/// Returns the index in the block, with x fastest, then y, then z: x + dim_x · (y + dim_y · z). In
/// PTX `%tid.x` alone for a block of one dimension, otherwise `mad.lo` by constants.
#[must_use]
#[track_caller]
pub fn index() -> usize {
    context("thread::index()").index
}
