//! The shape of a launch.

use crate::{FULL, LANES};
use kernel_dsl_compiler::Target;
use kernel_dsl_compiler::analyses::occupancy::{Needs, Occupancy};

/// The largest number of blocks that the interpreters keep resident, except in cooperative
/// launches.
pub const MAX_RESIDENT_BLOCKS: u64 = 16;

/// The number of multiprocessors of a GeForce GTX 1050 Ti.
const MIN_MULTIPROCESSORS: u32 = 6;

/// The number of registers of a thread for which blocks must fit. The interpreters do not know the
/// registers of machine code. A kernel with more of them may have fewer resident blocks; a
/// cooperative launch asks the driver.
const ASSUMED_REGISTERS: u32 = 64;

/// The blocks of a launch and the threads of a block, each in x, y, z. x varies fastest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GridShape {
    /// Blocks in x, y, z. If one is 0, nothing runs.
    pub blocks: [u32; 3],
    /// Threads of a block in x, y, z.
    pub threads: [u32; 3],
}

impl GridShape {
    /// Returns the number of blocks.
    pub fn block_count(&self) -> u64 {
        self.blocks.into_iter().map(u64::from).fold(1, u64::saturating_mul)
    }

    /// Returns the number of blocks that are sure to be resident at once, with `shared` bytes of
    /// shared memory each. Six multiprocessors hold so many at 64 registers a thread; the number is
    /// at most [`MAX_RESIDENT_BLOCKS`]. Of all targets, a multiprocessor of sm_75 holds the fewest
    /// threads and has the least shared memory.
    pub fn resident_blocks(&self, shared: u32) -> u64 {
        let needs = Needs { threads: self.thread_count(), registers: Some(ASSUMED_REGISTERS), shared };
        let each = Occupancy::of(Target::SM_75, needs).blocks.max(1);
        u64::from(each * MIN_MULTIPROCESSORS).min(MAX_RESIDENT_BLOCKS)
    }

    /// Returns the index in x, y, z of the block with linear index `n`.
    pub fn block(&self, n: u64) -> [u32; 3] {
        let [x, y, _] = self.blocks.map(u64::from);
        [n % x, n / x % y, n / x / y].map(|i| i as u32)
    }

    /// Returns the number of threads of a block.
    pub fn thread_count(&self) -> u32 {
        self.threads.into_iter().product()
    }

    /// Returns the number of warps of a block.
    pub fn warp_count(&self) -> u32 {
        self.thread_count().div_ceil(LANES as u32)
    }

    /// Returns the lanes of warp `warp` that are threads of the block. The last warp of a block may
    /// have fewer than 32.
    pub fn warp_mask(&self, warp: u32) -> u32 {
        let left = self.thread_count().saturating_sub(warp * LANES as u32);
        if left >= LANES as u32 { FULL } else { (1 << left) - 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_warps_are_numbered_from_x() {
        let shape = GridShape { blocks: [2, 3, 4], threads: [5, 7, 1] };
        let blocks: Vec<_> = (0..shape.block_count()).map(|n| shape.block(n)).collect();
        let expected = (0..4).flat_map(|z| (0..3).flat_map(move |y| (0..2).map(move |x| [x, y, z])));
        assert_eq!(blocks, expected.collect::<Vec<_>>());
        assert_eq!((shape.warp_count(), shape.warp_mask(0), shape.warp_mask(1)), (2, FULL, 0b111));
        assert_eq!(GridShape { blocks: [u32::MAX; 3], ..shape }.block_count(), u64::MAX);
    }

    #[test]
    fn large_blocks_leave_room_for_fewer() {
        let resident = |threads, shared| GridShape { blocks: [1; 3], threads: [threads, 1, 1] }.resident_blocks(shared);
        assert_eq!([32, 256, 352].map(|threads| resident(threads, 0)), [16, 16, 12]);
        assert_eq!([512, 513, 1024].map(|threads| resident(threads, 0)), [12, 6, 6]);
        assert_eq!([16, 24, 32, 33, 48, 99].map(|kib| resident(32, kib << 10)), [16, 12, 12, 6, 6, 6]);
    }
}
