//! Grids with more blocks along y and z than the hardware supports.
//!
//! Hardware runs at most 65,535 blocks along y and along z, and 2³¹ − 1 along x. A kernel may have
//! a sequence, a head or a matrix of a batch for each block along y or z. Such a kernel declares
//! its grid by [`along_x`], [`along_y`] and [`along_z`], and finds its block by [`block_at`]:
//!
//! ```text
//!   x × y × z blocks, y and z at most 65,535       the grid is x × y × z          block::x() < x
//!   more along y or z                              the grid is x·y·z × 1 × 1      of linear index i: x = i % x, y = i / x % y, z = i / x / y
//! ```
//!
//! In an unfolded grid each block executes one comparison; only folded grids need divisions. In
//! both forms blocks start in the same order. The product x·y·z is at most 2³¹ − 1 in a folded
//! grid. The library's calls reject larger grids before a launch, in the caller's terms.

use crate::permute::rows::div_rem;
use kernel_dsl::prelude::*;

/// The maximum number of blocks along y, and along z.
#[device]
pub const MAX_ALONG: usize = 65_535;

/// The maximum number of blocks along x.
pub(crate) const MAX_BLOCKS: u64 = (1 << 31) - 1;

/// Returns whether a grid of x × y × z blocks can be launched, folded if necessary.
pub(crate) fn fits([x, y, z]: [usize; 3]) -> bool {
    let blocks = if y > MAX_ALONG || z > MAX_ALONG { x.saturating_mul(y).saturating_mul(z) } else { x };
    blocks as u64 <= MAX_BLOCKS
}

/// Returns whether the grid is folded along x.
#[device]
fn folded(y: usize, z: usize) -> bool {
    y > MAX_ALONG || z > MAX_ALONG
}

/// Returns the extent along x of the grid of x × y × z blocks.
#[device]
pub fn along_x(x: usize, y: usize, z: usize) -> usize {
    if folded(y, z) { x * y * z } else { x }
}

/// Returns the extent along y of the grid of x × y × z blocks.
#[device]
pub fn along_y(y: usize, z: usize) -> usize {
    if folded(y, z) { 1 } else { y }
}

/// Returns the extent along z of the grid of x × y × z blocks.
#[device]
pub fn along_z(y: usize, z: usize) -> usize {
    if folded(y, z) { 1 } else { z }
}

/// Returns the block's coordinates among x × y × z blocks. The number of blocks along z is not
/// needed.
#[device]
pub fn block_at(x: usize, y: usize) -> [usize; 3] {
    let at = block::x();
    if at < x {
        // In a folded grid these are the blocks with y = z = 0, and `block::y()` and `block::z()`
        // are 0.
        [at, block::y(), block::z()]
    } else {
        let (rest, at) = div_rem(at, x);
        let (z, y) = div_rem(rest, y);
        [at, y, z]
    }
}
