//! Grids of more blocks along y and z than hardware runs.
//!
//! Hardware runs at most 65,535 blocks along y and along z, and 2³¹ − 1 along x. A kernel that has
//! a sequence, a head or a matrix of a batch for each block along y or z declares its grid by
//! [`along_x`], [`along_y`] and [`along_z`], and finds its block by [`block_at`]:
//!
//! ```text
//!   x × y × z blocks, y and z at most 65,535       the grid is x × y × z          block::x() < x
//!   more along y or z                              the grid is x·y·z × 1 × 1      of linear index i: x = i % x, y = i / x % y, z = i / x / y
//! ```
//!
//! In a grid that is not folded each block spends one comparison; the divisions belong to folded
//! grids alone. In both forms blocks start in the same order. The product x·y·z is at most 2³¹ − 1
//! in a folded grid; the library's calls refuse more before a launch, in the caller's words.

use crate::permute::rows::divided;
use kernel_dsl::prelude::*;

/// Blocks along y, and along z, that hardware runs at most.
#[device]
pub const MAX_ALONG: usize = 65_535;

/// Blocks of a grid along x at most.
pub(crate) const MAX_BLOCKS: u64 = (1 << 31) - 1;

/// Whether a grid of x × y × z blocks can be launched, folded if need be.
pub(crate) fn fits([x, y, z]: [usize; 3]) -> bool {
    let blocks = if y > MAX_ALONG || z > MAX_ALONG { x.saturating_mul(y).saturating_mul(z) } else { x };
    blocks as u64 <= MAX_BLOCKS
}

/// Whether blocks lie in one line along x.
#[device]
fn folded(y: usize, z: usize) -> bool {
    y > MAX_ALONG || z > MAX_ALONG
}

/// Extent along x of the grid of x × y × z blocks.
#[device]
pub fn along_x(x: usize, y: usize, z: usize) -> usize {
    if folded(y, z) { x * y * z } else { x }
}

/// Extent along y of the grid of x × y × z blocks.
#[device]
pub fn along_y(y: usize, z: usize) -> usize {
    if folded(y, z) { 1 } else { y }
}

/// Extent along z of the grid of x × y × z blocks.
#[device]
pub fn along_z(y: usize, z: usize) -> usize {
    if folded(y, z) { 1 } else { z }
}

/// Coordinates of the block among x × y × z blocks, of which a block need not know z.
#[device]
pub fn block_at(x: usize, y: usize) -> [usize; 3] {
    let at = block::x();
    if at < x {
        // Of a folded grid these are the blocks of y = z = 0, and y and z are 0 there.
        [at, block::y(), block::z()]
    } else {
        let (rest, at) = divided(at, x);
        let (z, y) = divided(rest, y);
        [at, y, z]
    }
}
