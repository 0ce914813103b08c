//! Facts about the device of a launch, for `grid = …` and `#[requires(…)]`, which the launch
//! evaluates.
//!
//! A kernel's body cannot call these functions; `grid::dim_x()` returns the number of blocks there.

/// Returns the number of multiprocessors of the device: 2 for the interpreter and for
/// [`host::run`](crate::host::run).
#[must_use]
pub fn multiprocessors() -> usize {
    2
}

/// Returns the number of blocks for a persistent grid whose blocks loop over `blocks` pieces of
/// work: `resident` for each multiprocessor, at most `blocks`.
#[must_use]
pub fn waves(resident: usize, blocks: usize) -> usize {
    blocks.min(resident * multiprocessors())
}
