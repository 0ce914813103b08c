//! Execution of a launch, block by block. The warps of a block alternate. `cooperative` interleaves
//! blocks: from the start, or from the first block on that seems to wait for a later one.

use super::code::BarrierReduction;
use super::cooperative::GRID_BARRIER;
use super::inline::InlineContext;
use super::launch::{Checks, Options, Outcome};
use super::memory::{Buffer, Lookup, ScratchMemory, WarpMemory};
use super::observe::InstructionObserver;
use super::program::Program;
use super::races::RaceHistory;
use super::registers::{LANES, Registers, lanes};
use super::repetition::RecordedState;
use super::service::Heap;
use super::texture::Objects;
use super::warp::{BarrierArrival, Warp};
use super::{Check, Statistics, Thread};
use runtime_simt::report::{Description, Findings};
use runtime_simt::{GridShape, Points, Printed, RunningBlock, Schedule, Scheduler};
use std::iter;
use std::sync::Arc;

/// The number of barriers of a block.
pub const BARRIERS: usize = 16;

/// The number of strong loads, or of consecutive atomic operations without effect, after which a
/// warp seems to wait for another block.
const WAITING_POLLS: u32 = 1 << 14;

/// The number of warp instructions of a block before the first search for waiting warps.
const MIN_WAITING_INSTRUCTIONS: u64 = 1 << 16;

/// The memory of a launch and of the running block.
pub struct LaunchMemory<'m> {
    /// The buffers, sorted by address.
    pub buffers: Vec<Buffer<'m>>,
    /// The way to find the buffer of an address.
    pub lookup: Lookup,
    /// The shared memory of the block.
    pub shared: ScratchMemory,
    /// The parameters of the launch.
    pub parameters: Vec<u8>,
}

impl<'m> LaunchMemory<'m> {
    /// Returns the memory that a warp sees.
    #[inline(always)]
    pub fn view<'a>(&'a mut self, local: &'a mut ScratchMemory) -> WarpMemory<'a, 'm> {
        let local_bytes = (local.bytes.len() / LANES) as u32;
        WarpMemory {
            buffers: &mut self.buffers,
            lookup: self.lookup,
            shared: &mut self.shared,
            local,
            parameters: &self.parameters,
            local_bytes,
        }
    }
}

/// The parts of a launch that are the same for all blocks.
#[derive(Clone, Debug)]
pub struct LaunchSetting {
    /// The bytes of the parameters.
    pub parameters: Vec<u8>,
    /// The way to find the buffer of an address.
    pub lookup: Lookup,
    /// The bytes of shared memory of a block.
    pub shared: usize,
    /// The blocks and threads of the launch.
    pub grid: GridShape,
    /// Bytes of shared memory that the launch adds.
    pub dynamic_shared: u32,
    /// The textures and surfaces.
    pub objects: Arc<Objects>,
}

/// A running launch.
pub struct Machine<'p, 'm> {
    /// The program.
    pub program: &'p Program,
    /// The memory of the launch.
    pub memory: LaunchMemory<'m>,
    /// The blocks and threads of the launch.
    pub grid: GridShape,
    /// Bytes of shared memory that the launch adds.
    pub dynamic_shared: u32,
    /// The index of the running block.
    pub block: [u32; 3],
    /// The number of warp instructions of the previous blocks.
    pub spent: u64,
    /// The barriers of the block.
    pub barriers: [BarrierState; BARRIERS],
    /// The options of the run.
    pub options: Options,
    /// The findings so far.
    pub findings: Findings<'p>,
    /// The statistics so far.
    pub statistics: Statistics,
    /// Whether the launch has ended early.
    pub stopped: bool,
    /// Whether blocks run interleaved.
    pub interleaved: bool,
    /// Whether the running block seems to wait for another block of a launch whose blocks can all
    /// be resident at once.
    pub awaits_blocks: bool,
    /// The points at which a warp may be preempted: executions of atomic operations.
    pub points: Points,
    /// The number of consecutive atomic operations that changed nothing. A store, a complete
    /// barrier or a new block restarts the count.
    pub polls: u64,
    /// The number of operations that may have changed memory or printed.
    pub changes: u64,
    /// A recorded state of the running block, for the search for endless loops.
    pub recorded: RecordedState,
    /// The text that the kernel printed.
    pub printed: Printed,
    /// The messages of failed assertions, one a line.
    pub asserted: String,
    /// The address of the grid's workspace in a cooperative launch; 0 in others.
    pub workspace: u64,
    /// The device's heap, if the kernel uses it.
    pub heap: Option<&'m mut Heap>,
    /// The textures and surfaces.
    pub objects: Arc<Objects>,
    /// Whether the host may access some of the memory during the launch.
    pub has_host_memory: bool,
    /// Whether weak loads of such memory are noted, because the kernel may have fences.
    pub notes_host_reads: bool,
    /// The accesses so far, if the launch looks for races.
    pub races: Option<Box<RaceHistory>>,
    /// The observer of the executed instructions, if there is one.
    pub observer: Option<&'m mut (dyn InstructionObserver + 'm)>,
    /// Whether each instruction must be executed if there is an observer.
    pub deciding: &'p [bool],
}

/// The state of a barrier.
#[derive(Clone, Copy, Default, Debug)]
pub struct BarrierState {
    /// The number of threads that have arrived, counted in whole warps.
    pub arrived: u32,
    /// The number of threads that must arrive; `None` means all live threads.
    pub threads: Option<u32>,
    /// The counts of the reduction: threads whose predicate is true, and all threads.
    pub counts: (u32, u32),
}

impl<'p, 'm> Machine<'p, 'm> {
    /// Creates a machine that has not run any block.
    pub fn new(program: &'p Program, setting: &LaunchSetting, buffers: Vec<Buffer<'m>>, options: Options) -> Self {
        let LaunchSetting { parameters, lookup, shared, grid, dynamic_shared, objects } = setting.clone();
        let preemption = match options.schedule {
            Schedule::Preempted(preemption) => Some(preemption),
            _ => None,
        };
        let has_host_memory = buffers.iter().any(|buffer| buffer.of_host);
        Machine {
            program,
            memory: LaunchMemory { buffers, lookup, shared: ScratchMemory::new(shared), parameters },
            grid,
            dynamic_shared,
            block: [0; 3],
            spent: 0,
            barriers: [BarrierState::default(); BARRIERS],
            options,
            findings: Findings::new(program, options.limit, options.schedule),
            statistics: Statistics::default(),
            stopped: false,
            interleaved: options.cooperative || preemption.is_some(),
            awaits_blocks: false,
            points: Points::new(preemption.unwrap_or_default()),
            polls: 0,
            changes: 0,
            recorded: RecordedState::default(),
            printed: Printed::default(),
            asserted: String::new(),
            workspace: 0,
            heap: None,
            objects,
            has_host_memory,
            notes_host_reads: has_host_memory && program.code.ordered,
            races: (options.races && options.checks.enables_races())
                .then(|| Box::new(RaceHistory::new(program.code.has_read_only_loads))),
            observer: None,
            deciding: &[],
        }
    }

    /// Runs the given blocks of the launch; x varies fastest.
    pub fn run(&mut self, mut blocks: impl Iterator<Item = u64>) {
        if self.interleaved {
            // Blocks alternate, so the limit of instructions applies to the launch, not to each
            // block.
            self.spent = 0;
            return self.run_interleaved(None, blocks);
        }
        let mut warps = self.warps();
        let mut scheduler = Scheduler::new(self.options.schedule, self.grid);
        while let Some(n) = blocks.next() {
            self.block = scheduler.block(n);
            match self.options.checks {
                Checks::Values | Checks::Faults if self.observer.is_some() => {
                    self.run_block::<false, true>(&mut warps, &mut scheduler);
                }
                Checks::Values | Checks::Faults => self.run_block::<false, false>(&mut warps, &mut scheduler),
                Checks::Named(_) | Checks::All => self.run_block::<true, false>(&mut warps, &mut scheduler),
            }
            if self.stopped {
                return;
            }
            if self.awaits_blocks {
                let waiting = self.pause(warps);
                return self.run_interleaved(Some(waiting), iter::once(n).chain(blocks));
            }
        }
    }

    /// Returns the outcome of the blocks that ran. `globals` is the number of variables of the
    /// module.
    pub fn outcome(self, globals: usize) -> Outcome {
        let report = self.findings.report();
        let given = self.memory.buffers.iter().skip(globals);
        let approximate = given.enumerate().filter_map(|(i, buffer)| buffer.approximate.then_some(i)).collect();
        let (printed, asserted, points) = (self.printed.take(), self.asserted, self.points.passed);
        Outcome { statistics: self.statistics, report, points, approximate, printed, asserted }
    }

    /// Sets the registers that are constant throughout the launch.
    fn fill(&self, warp: &mut Warp) {
        for (place, _, bits) in &self.program.code.constants {
            warp.registers.fill(*place, *bits);
        }
        if let Some(stack) = self.program.code.stack {
            warp.registers.fill(stack.limit, warp.local_bytes() as u64);
        }
        for (place, _, special) in &self.program.code.specials {
            for lane in 0..LANES {
                let value = self.inline_context(warp.index).special(*special, lane);
                warp.registers.set(*place, lane, value);
            }
        }
    }

    /// Returns the position of a warp in the launch.
    fn inline_context(&self, warp: u32) -> InlineContext {
        InlineContext {
            warp,
            block: self.block,
            threads: self.grid.threads,
            blocks: self.grid.blocks,
            dynamic_shared: self.dynamic_shared,
            total_shared: self.memory.shared.bytes.len() as u32,
        }
    }

    fn run_block<const CHECKED: bool, const HAS_OBSERVER: bool>(
        &mut self,
        warps: &mut Vec<Warp>,
        scheduler: &mut Scheduler,
    ) {
        self.spent = self.statistics.warp_instructions;
        self.begin_block(warps);
        scheduler.run_block(&mut Running::<CHECKED, HAS_OBSERVER>(self), warps);
    }

    /// Sets the memory and the warps of a block to their state at its start.
    pub(super) fn begin_block(&mut self, warps: &mut [Warp]) {
        let code = &self.program.code;
        self.memory.shared.forget();
        let number = self.block_number();
        if let Some(races) = &mut self.races {
            races.begin_block(number, self.interleaved);
        }
        (self.barriers, self.polls) = ([BarrierState::default(); BARRIERS], 0);
        // The state of another block is none of this one.
        self.changes += 1;
        for warp in warps.iter_mut() {
            let mask = self.grid.warp_mask(warp.index);
            warp.start(self.options.policy, mask);
            for (place, _, special) in &code.specials {
                if special.begins_with_the_block() {
                    let value = self.inline_context(warp.index).special(*special, 0);
                    warp.registers.fill(*place, value);
                }
            }
            let always = code.constants.iter().map(|c| c.1).chain(code.specials.iter().map(|s| s.1));
            always.for_each(|id| warp.registers.defined[id as usize] = u32::MAX);
        }
        self.statistics.blocks += 1;
        self.statistics.warps += warps.len() as u64;
        if let Some(observer) = &mut self.observer {
            observer.begin_block();
        }
    }

    /// Creates the warps of a block.
    pub(super) fn warps(&self) -> Vec<Warp> {
        let local_bytes = self.program.code.local_bytes(self.options.stack);
        let warps = (0..self.grid.warp_count()).map(|index| {
            let mut warp = Warp::new(index, &self.program.code, local_bytes, self.options.policy);
            self.fill(&mut warp);
            warp
        });
        warps.collect()
    }

    /// Returns whether the launch has several blocks that are sure to be resident at once.
    pub(super) fn has_resident_blocks(&self) -> bool {
        let shared = self.memory.shared.bytes.len() as u32;
        (2..=self.grid.resident_blocks(shared)).contains(&self.grid.block_count())
    }

    /// Returns whether the running block seems to wait for another block. All blocks of the launch
    /// must be sure to be resident at once.
    fn seems_to_wait(&self, warps: &[Warp]) -> bool {
        let instructions = self.statistics.warp_instructions - self.spent;
        if instructions < MIN_WAITING_INSTRUCTIONS {
            return false;
        }
        warps.iter().any(|warp| warp.idle.max(warp.strong_loads) >= WAITING_POLLS)
            && self.has_resident_blocks()
            && self.observer.is_none()
    }

    /// Releases the warps at each complete barrier; returns whether there was one.
    pub(super) fn release(&mut self, warps: &mut [Warp]) -> bool {
        let all = 32 * warps.iter().filter(|w| !w.ended()).count() as u32;
        let mut released = false;
        for number in 0..BARRIERS {
            let state = self.barriers[number];
            if state.arrived == 0 || state.arrived < state.threads.unwrap_or(all) {
                continue;
            }
            self.barriers[number] = BarrierState::default();
            for warp in &mut *warps {
                if let Some(meeting) = warp.waits.take_if(|m| m.number == number) {
                    write_reduction(&mut warp.registers, &meeting, state.counts);
                    (released, self.polls) = (true, 0);
                }
            }
        }
        let number = self.block_number();
        if let Some(races) = self.races.as_mut().filter(|_| released) {
            races.barrier(number);
        }
        released
    }

    /// Reports a deadlock at barriers and releases all warps.
    pub(super) fn report_deadlock(&mut self, warps: &mut [Warp]) {
        let described: Vec<String> = warps
            .iter()
            .map(|w| match &w.waits {
                Some(m) if m.number == GRID_BARRIER => format!("warp {} waits for all blocks", w.index),
                Some(m) => format!("warp {} waits at barrier {}", w.index, m.number),
                None => format!("warp {} has ended", w.index),
            })
            .take(4)
            .collect();
        let Some(i) = warps.iter().position(|w| w.waits.is_some()) else { return };
        let (site, mask) = warps[i].waits.as_ref().map_or((0, 1), |m| (m.site, m.mask));
        let message = || format!("waits for a barrier that the other warps do not reach: {}", described.join(", "));
        self.report(&warps[i], Check::DivergentBarrier, site, mask, message);
        for warp in &mut *warps {
            if let Some(meeting) = warp.waits.take() {
                let counts = self.barriers.get(meeting.number).map_or((0, 0), |state| state.counts);
                write_reduction(&mut warp.registers, &meeting, counts);
            }
        }
        self.barriers = [BarrierState::default(); BARRIERS];
    }

    /// Returns a thread of the running block.
    pub fn thread(&self, warp: u32, lane: usize) -> Thread {
        let thread = self.inline_context(warp).thread(lane as u32);
        Thread { block: self.block, thread, warp, lane: lane as u32 }
    }

    /// Reports that the lanes of `mask` violate `check`.
    #[cold]
    pub fn report(&mut self, warp: &Warp, check: Check, site: u32, mask: u32, message: impl FnOnce() -> String) {
        let hits = mask.count_ones();
        if hits == 0 || !self.options.checks.enables(check) {
            return;
        }
        if self.findings.count(check, site, None, hits) {
            return;
        }
        let thread = self.thread(warp.index, lanes(mask).next().unwrap_or(0));
        self.findings.add(check, site, hits, thread, Description::new(message()));
        self.stopped |= self.findings.full();
    }
}

/// A block that runs: with every check if `CHECKED`, and with the machine's observer if
/// `HAS_OBSERVER`.
struct Running<'a, 'p, 'm, const CHECKED: bool, const HAS_OBSERVER: bool>(&'a mut Machine<'p, 'm>);

impl<const CHECKED: bool, const HAS_OBSERVER: bool> RunningBlock for Running<'_, '_, '_, CHECKED, HAS_OBSERVER> {
    type Warp = Warp;

    fn is_ready(&self, warp: &Warp) -> bool {
        !warp.ended() && warp.waits.is_none()
    }

    fn run_warp(&mut self, warp: &mut Warp) {
        self.0.run_warp::<CHECKED, HAS_OBSERVER>(warp);
    }

    fn is_stopped(&self) -> bool {
        self.0.stopped
    }

    fn phase(&self) -> u64 {
        0
    }

    fn resume(&mut self, warps: &mut Vec<Warp>) -> bool {
        if warps.iter().all(|w| w.ended()) {
            return false;
        }
        if !self.0.release(warps) && warps.iter().all(|w| w.ended() || w.waits.is_some()) {
            self.0.report_deadlock(warps);
        }
        self.0.awaits_blocks = self.0.seems_to_wait(warps);
        if !self.0.awaits_blocks && !self.0.stopped {
            self.0.stop_repetition(warps);
        }
        !self.0.awaits_blocks
    }
}

/// Writes the result of a barrier's reduction.
fn write_reduction(registers: &mut Registers, meeting: &BarrierArrival, (count, threads): (u32, u32)) {
    let Some((reduction, place)) = meeting.reduction else { return };
    let value = match reduction {
        BarrierReduction::Count => count,
        BarrierReduction::All => u32::from(count == threads),
        BarrierReduction::Any => u32::from(count > 0),
    };
    for lane in lanes(meeting.mask) {
        registers.set(place, lane, value.into());
    }
}
