//! The grid of blocks that a launch makes.

use crate::host::context::context;

/// Index of this thread in the grid: `block::x() * block::threads() + thread::index()`. For grids of one dimension. In
/// PTX `mad.lo` of `%ctaid.x` by a constant.
#[must_use]
#[track_caller]
pub fn index() -> usize {
    let c = context("grid::index()");
    c.block[0] * c.threads() + c.index
}

/// Threads along x of the whole grid: `grid::dim_x() * block::threads()`, the step of a loop in which a grid of one
/// dimension walks over any number of elements. In PTX `%nctaid.x` times a constant.
#[must_use]
#[track_caller]
pub fn threads() -> usize {
    let c = context("grid::threads()");
    c.grid_dim[0] * c.threads()
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
