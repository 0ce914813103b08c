//! The grid of blocks that a launch makes.

use crate::host::context::context;
use std::iter::StepBy;
use std::ops::Range;

/// Index of this thread in the grid: `block::x() * block::threads() + thread::index()`. For grids of one dimension. In
/// PTX `mad.lo` of `%ctaid.x` by a constant, or by `%ntid.x` where the launch decides the block.
#[must_use]
#[track_caller]
pub fn index() -> usize {
    let c = context("grid::index()");
    c.block[0] * c.threads() + c.index
}

/// Threads along x of the whole grid: `grid::dim_x() * block::threads()`, the step of a loop in which a grid of one
/// dimension walks over any number of elements. In PTX `%nctaid.x` times a constant, or times `%ntid.x`.
#[must_use]
#[track_caller]
pub fn threads() -> usize {
    let c = context("grid::threads()");
    c.grid_dim[0] * c.threads()
}

/// The numbers below `n` that are this thread's in a grid of one dimension, however large `n` is:
/// `(grid::index()..n).step_by(grid::threads())`, known as the grid-stride loop. It stands in a `for`, as a range does.
/// Consecutive threads have consecutive numbers, so that their accesses are of one piece.
#[track_caller]
pub fn stride(n: usize) -> StepBy<Range<usize>> {
    (index()..n).step_by(threads())
}

/// Number of blocks along x (`%nctaid.x`).
#[must_use]
#[track_caller]
pub fn dim_x() -> usize {
    context("grid::dim_x()").grid_dim[0]
}

/// Number of blocks along y (`%nctaid.y`).
#[must_use]
#[track_caller]
pub fn dim_y() -> usize {
    context("grid::dim_y()").grid_dim[1]
}

/// Number of blocks along z (`%nctaid.z`).
#[must_use]
#[track_caller]
pub fn dim_z() -> usize {
    context("grid::dim_z()").grid_dim[2]
}
