//! The device that a launch is for: facts for `grid = …` and `#[requires(…)]`, where the launch evaluates them.
//!
//! A kernel's body cannot ask for them: there `grid::dim_x()` says how many blocks there are.

/// Multiprocessors of the device; the interpreter says 2. Under [`host::run`](crate::host::run), which is given its grid, 2.
#[must_use]
pub fn multiprocessors() -> usize {
    2
}

/// Blocks for a grid whose blocks go on to the next piece of work until all of `blocks` pieces are done: `resident` for each
/// multiprocessor, and no more than there are pieces.
#[must_use]
pub fn waves(resident: usize, blocks: usize) -> usize {
    blocks.min(resident * multiprocessors())
}
