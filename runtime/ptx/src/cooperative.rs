//! Launches whose blocks run interleaved.
//!
//! In a cooperative launch, all blocks are resident at once and can wait for one another. Under
//! [`Schedule::Preempted`](runtime_simt::Schedule), a few blocks are resident at once. In other
//! launches, blocks run interleaved from the first block on that seems to wait for a later one. The
//! launch must be so small that all its blocks are sure to be resident at once
//! ([`resident_blocks`](runtime_simt::GridShape::resident_blocks)).

use super::launch::Checks;
use super::machine::{BARRIERS, BarrierState, Machine};
use super::memory::ScratchMemory;
use super::repetition::RecordedGrid;
use super::warp::Warp;
use runtime_simt::{Interleaver, MAX_RESIDENT_BLOCKS, RunningGrid, WarpState};

/// The number of the barrier of all blocks, which no barrier of a block has.
pub const GRID_BARRIER: usize = usize::MAX;

/// The size of the grid's workspace in bytes: its size, the barrier, and reserved words.
pub const WORKSPACE_BYTES: usize = 64;

/// A resident block that does not run now.
pub struct PausedBlock {
    index: [u32; 3],
    shared: ScratchMemory,
    barriers: [BarrierState; BARRIERS],
    /// The warps of the block.
    pub warps: Vec<Warp>,
}

/// A launch that runs interleaved, with every check if `CHECKED`.
struct Interleaved<'a, 'p, 'm, const CHECKED: bool> {
    machine: &'a mut Machine<'p, 'm>,
    /// The block that has begun before blocks ran interleaved; the first number is its own.
    begun: Option<PausedBlock>,
    /// A recorded state, for the search for deadlocks.
    recorded: RecordedGrid,
}

impl Machine<'_, '_> {
    /// Runs blocks of the launch interleaved: all of them in a cooperative launch, else a few at
    /// once. `begun` is the first of them, if it has begun.
    pub fn run_interleaved(&mut self, begun: Option<PausedBlock>, numbers: impl Iterator<Item = u64>) {
        let resident = if self.options.cooperative { usize::MAX } else { MAX_RESIDENT_BLOCKS as usize };
        let mut interleaver = Interleaver::new(self.options.schedule, resident);
        let recorded = RecordedGrid::default();
        match self.options.checks {
            Checks::Values | Checks::Faults => {
                interleaver.run(&mut Interleaved::<false> { machine: self, begun, recorded }, numbers);
            }
            Checks::Named(_) | Checks::All => {
                interleaver.run(&mut Interleaved::<true> { machine: self, begun, recorded }, numbers)
            }
        }
    }

    /// Pauses the running block, which seems to wait for another block. From now on, blocks run
    /// interleaved.
    pub fn pause(&mut self, mut warps: Vec<Warp>) -> PausedBlock {
        (self.interleaved, self.awaits_blocks, self.polls) = (true, false, 0);
        // The limit of instructions now applies to all blocks together.
        self.options.fuel = self.options.fuel.saturating_mul(self.grid.block_count());
        warps.iter_mut().for_each(|warp| warp.idle = 0);
        let mut block = self.empty_block(self.block, warps);
        self.swap(&mut block);
        block
    }

    /// Returns a block that has not begun.
    fn empty_block(&self, index: [u32; 3], warps: Vec<Warp>) -> PausedBlock {
        let shared = ScratchMemory::new(self.memory.shared.bytes.len());
        PausedBlock { index, shared, barriers: [BarrierState::default(); BARRIERS], warps }
    }

    /// Runs `run` while `block` is the running block.
    fn in_block<T>(&mut self, block: &mut PausedBlock, run: impl FnOnce(&mut Self, &mut Vec<Warp>) -> T) -> T {
        self.swap(block);
        let mut warps = std::mem::take(&mut block.warps);
        let result = run(self, &mut warps);
        block.warps = warps;
        self.swap(block);
        result
    }

    /// Exchanges the running block with a paused one.
    fn swap(&mut self, block: &mut PausedBlock) {
        std::mem::swap(&mut self.block, &mut block.index);
        std::mem::swap(&mut self.memory.shared, &mut block.shared);
        std::mem::swap(&mut self.barriers, &mut block.barriers);
    }

    /// Reports a deadlock in the first block that waits at its own barrier, or in which warps
    /// wait for all blocks.
    fn unblock(&mut self, blocks: &mut [PausedBlock]) {
        let waits = |warp: &Warp, grid: bool| warp.waits.as_ref().is_some_and(|m| (m.number == GRID_BARRIER) == grid);
        let own = blocks.iter().position(|block| block.warps.iter().any(|warp| waits(warp, false)));
        let any = || blocks.iter().position(|block| block.warps.iter().any(|warp| waits(warp, true)));
        if let Some(found) = own.or_else(any) {
            self.in_block(&mut blocks[found], |machine, warps| machine.report_deadlock(warps));
        }
    }
}

impl<const CHECKED: bool> RunningGrid for Interleaved<'_, '_, '_, CHECKED> {
    type Block = PausedBlock;

    fn begin(&mut self, number: u64) -> PausedBlock {
        if let Some(block) = self.begun.take() {
            return block;
        }
        let machine = &mut *self.machine;
        let (grid, schedule) = (machine.grid, machine.options.schedule);
        let index = grid.block(schedule.block(number, grid.block_count()));
        let mut block = machine.empty_block(index, Vec::new());
        machine.in_block(&mut block, |machine, warps| {
            *warps = machine.warps();
            machine.begin_block(warps);
        });
        block
    }

    fn warp_count(&self, block: &PausedBlock) -> usize {
        block.warps.len()
    }

    fn state(&self, block: &PausedBlock, warp: usize) -> WarpState {
        let warp = &block.warps[warp];
        if warp.ended() || warp.waits.is_some() { WarpState::Waits } else { WarpState::Ready }
    }

    fn run_warp(&mut self, block: &mut PausedBlock, warp: usize) {
        self.machine.in_block(block, |machine, warps| {
            machine.run_warp::<CHECKED, false>(&mut warps[warp]);
            if !machine.stopped {
                machine.release(warps);
            }
        });
    }

    fn is_stopped(&self) -> bool {
        self.machine.stopped
    }

    fn end_turn(&mut self, blocks: &mut [PausedBlock], block: usize, warp: usize) {
        let so_far = (self.machine.changes, self.machine.statistics.warp_instructions);
        let Some(message) = self.recorded.end_turn(so_far, blocks, (block, warp)) else { return };
        self.machine.in_block(&mut blocks[block], |machine, warps| machine.report_repetition(&warps[warp], message));
    }

    fn resume(&mut self, block: &mut PausedBlock) -> bool {
        block.warps.iter().any(|warp| !warp.ended())
    }

    fn unblock(&mut self, blocks: &mut [PausedBlock]) -> bool {
        if !release_grid_barrier(blocks) {
            self.machine.unblock(blocks);
        } else if let Some(races) = &mut self.machine.races {
            races.grid_barrier();
        }
        true
    }
}

/// Releases all warps if each of them has ended or waits for all blocks. Returns whether they were
/// released.
fn release_grid_barrier(blocks: &mut [PausedBlock]) -> bool {
    let here = |warp: &Warp| warp.ended() || warp.waits.as_ref().is_some_and(|m| m.number == GRID_BARRIER);
    if !blocks.iter().all(|block| block.warps.iter().all(here)) {
        return false;
    }
    blocks.iter_mut().flat_map(|block| &mut block.warps).for_each(|warp| warp.waits = None);
    true
}
