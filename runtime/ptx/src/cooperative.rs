//! Cooperative launches: all blocks are resident at once and take turns, so that they can wait for
//! one another.

use super::launch::Checks;
use super::machine::{BARRIERS, Machine, State};
use super::memory::Scratch;
use super::warp::Warp;

/// The number of the barrier of all blocks, which no barrier of a block has.
pub const GRID_BARRIER: usize = usize::MAX;

/// The size of the grid's workspace in bytes: its size, the barrier, and reserved words.
pub const WORKSPACE_BYTES: usize = 64;

/// A resident block that does not run now.
struct Resting {
    index: [u32; 3],
    shared: Scratch,
    barriers: [State; BARRIERS],
    warps: Vec<Warp>,
}

impl Machine<'_, '_> {
    /// Runs all blocks in turns. Each warp that is ready runs for its time slice.
    pub fn run_cooperative(&mut self) {
        let blocks = (0..self.grid.block_count()).map(|n| {
            self.block = self.grid.block(n);
            let mut warps = self.warps();
            self.begin_block(&mut warps);
            let bytes = self.memory.shared.bytes.len();
            Resting { index: self.block, shared: Scratch::new(bytes), barriers: [State::default(); BARRIERS], warps }
        });
        let mut blocks: Vec<Resting> = blocks.collect();
        // The limit of instructions is for the whole launch.
        self.spent = 0;
        while !self.stopped && blocks.iter().any(|block| block.warps.iter().any(|warp| !warp.ended())) {
            let mut moved = false;
            for block in &mut blocks {
                self.swap(block);
                moved |= self.run_turn(&mut block.warps);
                self.swap(block);
                if self.stopped {
                    return;
                }
            }
            if !moved && !meet(&mut blocks) {
                self.unblock(&mut blocks);
            }
        }
    }

    /// Exchanges the running block with a resting one.
    fn swap(&mut self, block: &mut Resting) {
        self.block = block.index;
        std::mem::swap(&mut self.memory.shared, &mut block.shared);
        std::mem::swap(&mut self.barriers, &mut block.barriers);
    }

    /// Runs each warp of a block that is ready, and completes barriers. Returns whether any warp
    /// ran or was released.
    fn run_turn(&mut self, warps: &mut [Warp]) -> bool {
        let mut moved = false;
        for warp in &mut *warps {
            if warp.ended() || warp.waits.is_some() {
                continue;
            }
            moved = true;
            match self.options.checks {
                Checks::Values | Checks::Faults => self.run_warp::<false>(warp),
                Checks::All => self.run_warp::<true>(warp),
            }
            if self.stopped {
                return true;
            }
        }
        self.release(warps) || moved
    }

    /// Reports a deadlock in the first block that waits at its own barrier, or in which warps
    /// wait for all blocks.
    fn unblock(&mut self, blocks: &mut [Resting]) {
        let waits = |warp: &Warp, grid: bool| warp.waits.as_ref().is_some_and(|m| (m.number == GRID_BARRIER) == grid);
        let own = blocks.iter().position(|block| block.warps.iter().any(|warp| waits(warp, false)));
        let any = || blocks.iter().position(|block| block.warps.iter().any(|warp| waits(warp, true)));
        if let Some(found) = own.or_else(any) {
            self.swap(&mut blocks[found]);
            let mut warps = std::mem::take(&mut blocks[found].warps);
            self.stuck(&mut warps);
            blocks[found].warps = warps;
            self.swap(&mut blocks[found]);
        }
    }
}

/// Releases all warps if each that has not ended waits for all blocks. Returns whether it did.
fn meet(blocks: &mut [Resting]) -> bool {
    let here = |warp: &Warp| warp.ended() || warp.waits.as_ref().is_some_and(|m| m.number == GRID_BARRIER);
    if !blocks.iter().all(|block| block.warps.iter().all(here)) {
        return false;
    }
    blocks.iter_mut().flat_map(|block| &mut block.warps).for_each(|warp| warp.waits = None);
    true
}
