//! The grid of blocks of a launch.

use crate::host::context::context;
use std::iter::StepBy;
use std::ops::Range;

/// Returns the index of this thread in the grid: `block::x() * block::threads() + thread::index()`.
/// For grids of one dimension. In PTX `mad.lo` of `%ctaid.x` by a constant, or by `%ntid.x` if the
/// launch chooses the block's size.
#[must_use]
#[track_caller]
pub fn index() -> usize {
    let c = context("grid::index()");
    c.block[0] * c.threads() + c.index
}

/// Returns the number of threads along x of the whole grid, `grid::dim_x() * block::threads()`: the
/// step of a grid-stride loop. In PTX `%nctaid.x` times a constant, or times `%ntid.x`.
#[must_use]
#[track_caller]
pub fn threads() -> usize {
    let c = context("grid::threads()");
    c.grid_dim[0] * c.threads()
}

/// Iterates over this thread's numbers below `n` in a grid of one dimension:
/// `(grid::index()..n).step_by(grid::threads())`, the grid-stride loop, for any `n`. It is the
/// range of a `for`. Consecutive threads have consecutive numbers, so their accesses coalesce.
#[track_caller]
pub fn stride(n: usize) -> StepBy<Range<usize>> {
    (index()..n).step_by(threads())
}

/// Returns the number of blocks along x (`%nctaid.x`).
#[must_use]
#[track_caller]
pub fn dim_x() -> usize {
    context("grid::dim_x()").grid_dim[0]
}

/// Returns the number of blocks along y (`%nctaid.y`).
#[must_use]
#[track_caller]
pub fn dim_y() -> usize {
    context("grid::dim_y()").grid_dim[1]
}

/// Returns the number of blocks along z (`%nctaid.z`).
#[must_use]
#[track_caller]
pub fn dim_z() -> usize {
    context("grid::dim_z()").grid_dim[2]
}
