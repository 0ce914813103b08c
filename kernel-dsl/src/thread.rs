//! The thread that runs this code. Values differ from thread to thread, and need no convergence.

use crate::host::context::context;

/// Index in the block along x; consecutive threads of a warp have consecutive x (`%tid.x`).
#[must_use]
#[track_caller]
pub fn x() -> usize {
    context("thread::x()").thread[0]
}

/// Index in the block along y (`%tid.y`).
#[must_use]
#[track_caller]
pub fn y() -> usize {
    context("thread::y()").thread[1]
}

/// Index in the block along z (`%tid.z`).
#[must_use]
#[track_caller]
pub fn z() -> usize {
    context("thread::z()").thread[2]
}

/// Index in the block, counted through x, then y, then z: x + dim_x · (y + dim_y · z). In PTX `%tid.x` alone for a
/// block of one dimension, else `mad.lo` by constants.
#[must_use]
#[track_caller]
pub fn index() -> usize {
    context("thread::index()").index
}
