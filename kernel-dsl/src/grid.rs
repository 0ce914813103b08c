//! The grid of blocks of a launch.

use crate::host::context::context;
use crate::host::monitor::BarrierScope;
use std::iter::StepBy;
use std::ops::Range;

/// Returns the index of this thread in the grid: `block::x() * block::threads() + thread::index()`.
/// For grids of one dimension. In PTX: `mad.lo` of `%ctaid.x` by a constant, or by `%ntid.x` if the
/// launch chooses the block's size.
#[must_use]
#[track_caller]
pub fn index() -> usize {
    let c = context("grid::index()");
    c.block[0] * c.threads() + c.index
}

/// Returns the number of threads along x of the whole grid, `grid::dim_x() * block::threads()`: the
/// step of a grid-stride loop. In PTX: `%nctaid.x` times a constant, or times `%ntid.x`.
#[must_use]
#[track_caller]
pub fn threads() -> usize {
    let c = context("grid::threads()");
    c.grid_dim[0] * c.threads()
}

/// Iterates over this thread's indices below `n`, for any `n`, in a grid of one dimension:
/// `(grid::index()..n).step_by(grid::threads())`. A `for` over this range is the grid-stride loop.
/// Consecutive threads have consecutive indices, so their accesses coalesce.
#[track_caller]
pub fn stride(n: usize) -> StepBy<Range<usize>> {
    (index()..n).step_by(threads())
}

/// Waits until all threads of the grid arrive. The threads' earlier writes, to buffers and shared
/// memory, are visible to all of them afterwards.
///
/// The kernel has the clause `cooperative`, so that all its blocks run at once. A launch of more
/// blocks than the device holds is an error before anything runs. All threads of the grid must
/// reach the same call, as those of a block reach [`block::sync`](crate::block::sync). If a block
/// or its first thread ends early, the others wait forever on a GPU. The interpreter reports each
/// thread that ends early.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// /// One step of Jacobi's method from x to y, and one back, in one launch.
/// #[kernel(cooperative, block = 128, grid = device::multiprocessors())]
/// #[requires(x.len() == y.len())]
/// pub fn two_steps(x: &mut [f32], y: &mut [f32]) {
///     for i in grid::stride(y.len()) {
///         y[i] = 0.5 * (x[i.saturating_sub(1)] + x[(i + 1).min(x.len() - 1)]);
///     }
///     grid::sync();                                   // all of y, before any thread reads it
///     for i in grid::stride(x.len()) {
///         x[i] = 0.5 * (y[i.saturating_sub(1)] + y[(i + 1).min(y.len() - 1)]);
///     }
/// }
/// # fn main() {}
/// ```
///
/// The hardware has no instruction for this barrier. The PTX is that of CUDA's cooperative groups.
/// After a `bar.sync`, one thread of each block makes a fence and adds to a counter in the launch's
/// workspace. The thread polls the counter until all blocks have added. A fence and a `bar.sync`
/// follow. The driver supplies the workspace, and the counter needs no reset.
///
/// # Panics
/// Under [`host::run`](crate::host::run), where blocks run one after another, if the grid has
/// several blocks.
#[track_caller]
pub fn sync() {
    let c = context("grid::sync()");
    let blocks: usize = c.grid_dim.iter().product();
    assert!(
        blocks == 1,
        "grid::sync() of {blocks} blocks, which `host::run` runs one after another: launch the kernel"
    );
    c.rendezvous(BarrierScope::Block, "grid::sync()", ());
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
