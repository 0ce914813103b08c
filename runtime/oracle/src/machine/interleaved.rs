//! Launches whose blocks run interleaved.
//!
//! Blocks run interleaved from the start under [`Schedule::Preempted`], and in cooperative
//! launches, where all blocks are resident at once. In other launches, blocks run interleaved from
//! the first block on that waits for blocks that have not begun. The launch must be so small that
//! all its blocks are sure to be resident at once
//! ([`resident_blocks`](runtime_simt::GridShape::resident_blocks)).
//!
//! A suspended block keeps its shared memory, its warps, and its part of the order of accesses.
//! Each run of a block is a [`TimeSlice`], so the epoch of an access shows which block made it.

use crate::check::Check;
use crate::code::Inst;
use crate::machine::livelock::Cycle;
use crate::machine::memory::{SharedMemory, shared_memory};
use crate::machine::order::BlockOrder;
use crate::machine::shadow::{Shadow, TimeSlice};
use crate::machine::{ACCESSES, ALL, Machine, OBSERVED_TIER, VALUES, Warp};
use crate::report::{Description, Thread};
use crate::{Checks, Options, Program};
use runtime_simt::{Interleaver, MAX_RESIDENT_BLOCKS, RunningGrid, Schedule, WarpState};

/// The largest number of blocks of a cooperative launch.
pub const MAX_COOPERATIVE_BLOCKS: u64 = 1024;

/// Returns whether the blocks of a launch run interleaved. Blocks that cannot communicate run one
/// after the other: the results are equal.
pub fn is_interleaved(program: &Program, options: &Options) -> bool {
    let communicates = |inst: &Inst| matches!(inst, Inst::Atomic(_) | Inst::Inline(_) | Inst::GridSync);
    let preempted = matches!(options.schedule, Schedule::Preempted(_));
    (preempted || options.cooperative) && program.code.insts.iter().any(communicates)
}

/// A resident block that is suspended.
pub struct SuspendedBlock {
    index: [u32; 3],
    shared: SharedMemory,
    shadow: Shadow,
    order: BlockOrder,
    /// The epochs in which the block began and of its last barrier.
    epochs: [u32; 2],
    warps: Vec<Warp>,
}

/// A launch that runs interleaved at a tier of checks.
struct InterleavedLaunch<'a, 'p, 'm, const TIER: u8> {
    machine: &'a mut Machine<'p, 'm>,
    /// The block that has begun before blocks ran interleaved; the first number is its own.
    begun: Option<SuspendedBlock>,
}

impl Machine<'_, '_> {
    /// Runs blocks of the launch interleaved and returns whether all of them reached their end.
    /// `begun` is the first of them, if it has begun.
    pub fn run_interleaved(&mut self, begun: Option<SuspendedBlock>, numbers: impl Iterator<Item = u64>) -> bool {
        match self.options.checks {
            _ if self.observer.is_some() => self.interleave::<OBSERVED_TIER>(begun, numbers),
            Checks::Values => self.interleave::<VALUES>(begun, numbers),
            Checks::Accesses => self.interleave::<ACCESSES>(begun, numbers),
            Checks::All => self.interleave::<ALL>(begun, numbers),
        }
        !self.stopped && !self.setting.budget.is_spent()
    }

    fn interleave<const TIER: u8>(&mut self, begun: Option<SuspendedBlock>, numbers: impl Iterator<Item = u64>) {
        let resident = if self.options.cooperative { usize::MAX } else { MAX_RESIDENT_BLOCKS as usize };
        let mut interleaver = Interleaver::new(self.options.schedule, resident);
        interleaver.run(&mut InterleavedLaunch::<TIER> { machine: self, begun }, numbers);
    }

    /// Suspends the running block, which waits for blocks that have not begun. From now on, blocks
    /// run interleaved.
    pub fn suspended(&mut self, mut warps: Vec<Warp>) -> SuspendedBlock {
        (self.interleaved, self.awaits_blocks) = (true, false);
        // The limit of instructions now applies to all blocks together.
        self.options.fuel = self.options.fuel.saturating_mul(self.setting.grid.block_count());
        self.order.set_interleaved();
        self.observes();
        for warp in &mut warps {
            (warp.cycle, warp.idle, warp.highest) = (None, 0, 0);
        }
        let mut block = self.empty_block(self.block, warps);
        self.swap(&mut block);
        block
    }

    /// Returns a block that has not begun.
    fn empty_block(&self, index: [u32; 3], warps: Vec<Warp>) -> SuspendedBlock {
        let (shared, shadow) = (shared_memory(self.options.fill), self.shared_shadow.of_another_block());
        SuspendedBlock { index, shared, shadow, order: BlockOrder::default(), epochs: [0; 2], warps }
    }

    /// Returns the largest number of blocks of which all are sure to be resident at once.
    pub fn resident_blocks(&self) -> u64 {
        match self.options.cooperative {
            true => MAX_COOPERATIVE_BLOCKS,
            false => self.setting.grid.resident_blocks(self.setting.shared_bytes),
        }
    }

    /// Exchanges the running block with a suspended one.
    fn swap(&mut self, block: &mut SuspendedBlock) {
        std::mem::swap(&mut self.block, &mut block.index);
        std::mem::swap(&mut self.shared, &mut block.shared);
        std::mem::swap(&mut self.shared_shadow, &mut block.shadow);
        self.order.swap(&mut block.order);
        let epochs = std::mem::replace(&mut block.epochs, [self.block_epoch, self.barrier_epoch]);
        [self.block_epoch, self.barrier_epoch] = epochs;
    }

    /// Runs `run` while `block` is the running block.
    fn in_block<T>(&mut self, block: &mut SuspendedBlock, run: impl FnOnce(&mut Self, &mut Vec<Warp>) -> T) -> T {
        self.swap(block);
        let mut warps = std::mem::take(&mut block.warps);
        let result = run(self, &mut warps);
        block.warps = warps;
        self.swap(block);
        result
    }

    /// Returns whether the running block is observed, and notifies the observer that the block
    /// runs.
    fn observes(&mut self) -> bool {
        let block = self.block;
        self.observer.as_mut().is_some_and(|observer| {
            observer.switch(block);
            observer.observes(block)
        })
    }

    /// Returns whether a warp waits at a barrier of the grid.
    fn waits_for_grid(&self, warp: &Warp) -> bool {
        warp.waits.is_some_and(|site| matches!(self.program.code.insts[site as usize], Inst::GridSync))
    }

    /// Opens the barrier of the grid if all warps of the resident blocks wait there, and reports
    /// blocks that do not wait. Returns whether the launch continues.
    fn open_grid_barrier<const TIER: u8>(&mut self, blocks: &mut [SuspendedBlock]) -> bool {
        let at =
            |block: &SuspendedBlock| block.warps.iter().find_map(|warp| Some((warp.index, warp.mask, warp.waits?)));
        let Some((index, mask, site)) = blocks.first().and_then(at) else { return false };
        let first = 1 << (mask.trailing_zeros() % 32);
        let all = blocks.iter().filter_map(|block| Some((block.index, at(block)?)));
        let different = all.map(|(block, (warp, _, there))| (block, warp, there)).find(|(.., there)| *there != site);
        let elsewhere = |machine: &Self, block, warp| {
            let thread = machine.program.thread(warp * 32);
            Thread { block, thread, warp, lane: 0 }
        };
        if let (Some(block), true) = (self.ended, (blocks.len() as u64) < self.setting.grid.block_count()) {
            self.in_block(&mut blocks[0], |machine, _| {
                machine.report(Check::DivergentBarrier, site, index, first, |machine, _| {
                    let message = "a deadlock: a block has ended without reaching a `grid::sync()` that others wait at";
                    Description::new(message).against(None, elsewhere(machine, block, 0), "has ended")
                });
            });
            self.stopped = true;
            return false;
        }
        if let (Some((block, warp, there)), true) = (different, TIER >= ACCESSES) {
            self.in_block(&mut blocks[0], |machine, _| {
                machine.report(Check::DivergentBarrier, site, index, first, |machine, _| {
                    Description::new("the blocks of the grid wait at different `grid::sync()`s").against(
                        Some(there),
                        elsewhere(machine, block, warp),
                        "waits here",
                    )
                });
            });
        }
        self.tick();
        self.grid_barrier_epoch = self.epoch;
        for block in blocks {
            self.in_block(block, |machine, warps| machine.pass_barrier::<TIER>(warps));
        }
        true
    }

    /// Begins a time slice of the running block, unless the last slice already belongs to this
    /// block.
    fn begin_slice(&mut self) {
        if self.history.last().is_none_or(|slice| slice.began != self.block_epoch) {
            self.tick();
            self.history.push(TimeSlice { from: self.epoch, began: self.block_epoch, block: self.block });
        }
    }
}

impl<const TIER: u8> RunningGrid for InterleavedLaunch<'_, '_, '_, TIER> {
    type Block = SuspendedBlock;

    fn begin(&mut self, number: u64) -> SuspendedBlock {
        if let Some(block) = self.begun.take() {
            return block;
        }
        let machine = &mut *self.machine;
        let (grid, schedule) = (machine.setting.grid, machine.options.schedule);
        machine.waiting = grid.block_count() - 1 - number;
        let index = grid.block(schedule.block(number, grid.block_count()));
        let mut block = machine.empty_block(index, machine.warps());
        machine.in_block(&mut block, |machine, warps| machine.begin_block::<TIER>(warps));
        block
    }

    fn warp_count(&self, block: &SuspendedBlock) -> usize {
        block.warps.len()
    }

    fn state(&self, block: &SuspendedBlock, warp: usize) -> WarpState {
        match &block.warps[warp] {
            warp if !warp.runs() => WarpState::Waits,
            warp if warp.cycle.is_some() => WarpState::Idle,
            _ => WarpState::Ready,
        }
    }

    fn run_warp(&mut self, block: &mut SuspendedBlock, warp: usize) {
        self.machine.in_block(block, |machine, warps| {
            machine.begin_slice();
            if TIER >= ALL && warps[warp].is_split {
                // An access of another part of the warp is not simultaneous with an access of this
                // part.
                machine.tick();
            }
            let observed = TIER < OBSERVED_TIER || machine.observes();
            match observed {
                true => machine.warp::<TIER>(&mut warps[warp]),
                false => machine.warp::<ALL>(&mut warps[warp]),
            }
            if warps[warp].cycle.is_some() && machine.split_warps(warps) {
                warps.iter_mut().for_each(|warp| warp.cycle = None);
            }
        });
    }

    fn is_stopped(&self) -> bool {
        self.machine.stopped || self.machine.setting.budget.is_spent()
    }

    fn resume(&mut self, block: &mut SuspendedBlock) -> bool {
        let can_continue = self.machine.in_block(block, |machine, warps| {
            machine.begin_slice();
            if machine.join_lanes(warps, machine.setting.grid.warp_count() as usize) {
                return true;
            }
            if machine.has_ended::<TIER>(warps) {
                machine.ended.get_or_insert(machine.block);
                return false;
            }
            if warps.iter().all(|warp| warp.ended || machine.waits_for_grid(warp)) {
                if TIER >= ACCESSES {
                    machine.report_mismatch(warps);
                }
            } else {
                machine.open_barrier::<TIER>(warps);
            }
            true
        });
        if !can_continue {
            self.machine.options.count_block();
        }
        can_continue
    }

    fn unblock(&mut self, blocks: &mut [SuspendedBlock]) -> bool {
        let loops = |block: &SuspendedBlock| block.warps.iter().any(|warp| warp.cycle.is_some());
        if !blocks.iter().any(loops) {
            return self.machine.open_grid_barrier::<TIER>(blocks);
        }
        let stale = |machine: &mut Machine<'_, '_>, warps: &mut Vec<Warp>| {
            let cycles: Vec<Cycle> = warps.iter().filter_map(|warp| warp.cycle).collect();
            !cycles.is_empty() && machine.has_changed_since(&cycles)
        };
        if blocks.iter_mut().any(|block| self.machine.in_block(block, stale)) {
            return true;
        }
        let mut stuck = blocks.iter_mut().filter_map(|block| {
            let found = block.warps.iter().find_map(|warp| Some((warp.cycle?.site, warp.index)));
            found.map(|(site, warp)| (block, site, warp))
        });
        let (Some((first, ..)), other) = (stuck.next(), stuck.next()) else { return false };
        let elsewhere = other.map(|(block, site, warp)| {
            let thread = self.machine.program.thread(warp * 32);
            (site, Thread { block: block.index, thread, warp, lane: 0 })
        });
        self.machine.in_block(first, |machine, warps| {
            machine.begin_slice();
            machine.report_looping_warps(warps, elsewhere);
        });
        false
    }
}
