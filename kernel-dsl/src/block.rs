//! The block of threads that this thread is in, which shares its [`Shared`](crate::Shared) arrays and can wait for one
//! another.

use crate::host::context::context;
use crate::host::monitor::Scope;

/// Index of the block in the grid along x (`%ctaid.x`). The same for all threads of a block.
#[track_caller]
pub fn x() -> usize {
    context("block::x()").block[0]
}

/// Index of the block in the grid along y (`%ctaid.y`). The same for all threads of a block.
#[track_caller]
pub fn y() -> usize {
    context("block::y()").block[1]
}

/// Index of the block in the grid along z (`%ctaid.z`). The same for all threads of a block.
#[track_caller]
pub fn z() -> usize {
    context("block::z()").block[2]
}

/// Threads of a block along x: a constant of the kernel.
#[track_caller]
pub fn dim_x() -> usize {
    context("block::dim_x()").block_dim[0]
}

/// Threads of a block along y: a constant of the kernel.
#[track_caller]
pub fn dim_y() -> usize {
    context("block::dim_y()").block_dim[1]
}

/// Threads of a block along z: a constant of the kernel.
#[track_caller]
pub fn dim_z() -> usize {
    context("block::dim_z()").block_dim[2]
}

/// Threads of a block: a constant of the kernel.
#[track_caller]
pub fn threads() -> usize {
    context("block::threads()").threads()
}

/// Waits until all threads of the block are here; what they wrote before, to shared memory or through mutable
/// views, all of them see after.
///
/// All threads of the block must come to the same call: it may stand under an `if` or in a loop only where all of them
/// take the same way, and after a `return` only where none or all have returned. In PTX one `bar.sync 0`.
#[track_caller]
pub fn sync() {
    context("block::sync()").meet(Scope::Block, "block::sync()", 0);
}
