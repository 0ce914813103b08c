//! The state of a running launch: memory, time and findings. Runs blocks one after the other.
//!
//! A block runs each warp to a barrier, its end, or a loop that waits for other warps
//! ([`livelock`](crate::machine::livelock)), then the next. When all warps have arrived, the
//! barrier opens. Blocks may run [`interleaved`](crate::machine::interleaved) as well: from the
//! start, or from the first block on that waits for a later one.

pub mod access;
pub mod address;
pub mod arithmetic;
pub mod async_copy;
pub mod atomic;
pub mod coalesced_fast_path;
pub mod cooperation;
pub mod describe;
pub mod independent;
pub mod inline;
pub mod interleaved;
pub mod livelock;
pub mod log;
pub mod memory;
pub mod nonfinite;
pub mod observer;
pub mod order;
pub mod outputs;
pub mod overflow_reads;
pub mod race_check;
pub mod shadow;
pub mod shared_fast_path;
pub mod superinstructions;
pub mod variables;
pub mod warp;

use crate::check::Check;
use crate::code::frame::{FULL, FrameRegister, LANES, Row, lanes_of};
use crate::code::lanes::Simd;
use crate::code::{Inst, MaskSlot, Pc};
use crate::machine::async_copy::Copies;
use crate::machine::interleaved::is_interleaved;
use crate::machine::livelock::{Cycle, Search};
use crate::machine::memory::{Buffer, SharedMemory, shared_memory};
use crate::machine::nonfinite::StoredNonFinite;
use crate::machine::observer::Observer;
use crate::machine::order::AccessOrder;
use crate::machine::shadow::{Clock, Life, PageBudget, Shadow, TimeSlice};
use crate::machine::shared_fast_path::Memo;
use crate::machine::warp::barrier_name;
use crate::report::{Description, Findings, Thread};
use crate::{Checks, Options, Program, Statistics};
use bytemuck::Zeroable;
use kernel_dsl_compiler::ir::Special;
use runtime_ptx::registers::Registers;
use runtime_simt::{GridShape, Points, Preemption, Printed, RunningBlock, Schedule, Scheduler};
use std::iter;

/// Values only.
pub const VALUES: u8 = 0;
/// Values, and the checks that need no shadow memory.
pub const ACCESSES: u8 = 1;
/// All checks.
pub const ALL: u8 = 2;
/// All checks, with an [`Observer`].
pub const OBSERVED_TIER: u8 = 3;

/// The parameters of a launch that all threads share.
pub struct LaunchConstants {
    /// The values of the entry's parameters.
    pub parameters: Vec<u64>,
    /// The index of each argument among the buffers.
    pub by_argument: Vec<Option<usize>>,
    /// Bytes of shared memory that the launch has.
    pub shared_bytes: u32,
    /// Bytes of shared memory per cell of shadow memory.
    pub shared_granule: u32,
    /// The offsets of arrays of dynamic size.
    pub dynamic: Vec<u32>,
    /// The blocks and threads of the launch.
    pub grid: GridShape,
    /// The limit of shadow memory.
    pub budget: PageBudget,
}

/// Hits of a check in lanes of a warp.
pub struct CheckHits {
    pub count: u32,
    pub warp: u32,
    /// The lanes that violate the check. The finding describes the first of these lanes.
    pub first: u32,
}

/// The state of a running launch.
pub struct Machine<'p, 'm> {
    pub program: &'p Program,
    pub setting: &'m LaunchConstants,
    pub simd: Simd,
    pub buffers: Vec<Buffer<'m>>,
    /// The block's shared memory.
    pub shared: SharedMemory,
    pub shared_shadow: Shadow,
    /// The index of the running block in x, y, z.
    pub block: [u32; 3],
    /// Warp instructions of the blocks before the running one.
    pub spent: u64,
    /// The current epoch, counted from 1.
    pub epoch: u32,
    /// The epoch in which the block began.
    pub block_epoch: u32,
    /// The epoch of the block's last barrier.
    pub barrier_epoch: u32,
    /// The epoch of the grid's last barrier; 0 if there was none.
    pub grid_barrier_epoch: u32,
    /// The first block that has ended, if blocks run interleaved.
    pub ended: Option<[u32; 3]>,
    /// The time slices of blocks. A block that runs to its end has one.
    pub history: Vec<TimeSlice>,
    /// Whether blocks run interleaved.
    pub interleaved: bool,
    /// Whether the running block waits for blocks that have not begun, and they can begin.
    pub awaits_blocks: bool,
    /// The points at which a warp may be preempted.
    pub points: Points,
    /// The order of accesses established by fences.
    pub order: AccessOrder,
    pub findings: Findings<'p>,
    /// The text that the kernel printed.
    pub printed: Printed,
    pub statistics: Statistics,
    pub options: Options,
    /// Blocks that have not begun.
    pub waiting: u64,
    /// Whether the run is to end early.
    pub stopped: bool,
    /// The observer of the run. An observed run has every check.
    pub observer: Option<Box<dyn Observer + 'm>>,
    /// Whether the run has stored a non-finite float to a buffer.
    pub stored: StoredNonFinite,
    /// Whether an operation of a warp has returned an undefined value.
    pub undefined: bool,
    /// The registers of each block of inline PTX.
    pub inline: Vec<Registers>,
}

/// The complete state of a warp.
#[derive(Clone)]
pub struct Warp {
    /// The index of the warp in its block.
    pub index: u32,
    /// Registers.
    pub rows: Vec<Row>,
    /// The lanes that have written each element of locals.
    pub written: Vec<u32>,
    /// The lifetime of each shared array.
    pub lives: Vec<Life>,
    /// The number of executions of each instruction that begins lifetimes.
    pub lifetime_starts: Vec<u32>,
    /// For each access with fixed indices, the words that these indices select; `None` before the
    /// first execution.
    pub memos: Vec<Option<Box<Memo>>>,
    /// Copies in flight.
    pub copies: Copies,
    /// Open constructs.
    pub slots: Vec<MaskSlot>,
    /// Next instruction.
    pub pc: Pc,
    /// Active lanes.
    pub mask: u32,
    /// Lanes that have not ended.
    pub live: u32,
    /// The epoch of the warp's last barrier.
    pub barrier_epoch: u32,
    /// The barrier at which the warp waits.
    pub waits: Option<Pc>,
    /// Whether other lanes of the warp run as a separate warp
    /// ([`independent`](crate::machine::independent)).
    pub is_split: bool,
    /// The lanes of this part of the warp.
    pub own: u32,
    /// The instruction at which this part waits for the other parts.
    pub rejoins_at: Option<Pc>,
    /// The loop that the warp cannot leave unless other threads change memory.
    pub cycle: Option<Cycle>,
    /// The number of the warp's consecutive atomic operations that changed nothing and accessed no
    /// element above `highest`.
    pub idle: u32,
    /// The highest offset of an element in the atomic operation that last restarted `idle`.
    pub highest: u64,
    /// Whether the warp has ended.
    pub ended: bool,
}

impl<'p, 'm> Machine<'p, 'm> {
    /// Returns the state before the first block.
    pub fn new(
        program: &'p Program,
        setting: &'m LaunchConstants,
        mut buffers: Vec<Buffer<'m>>,
        options: &Options,
        observer: Option<Box<dyn Observer + 'm>>,
    ) -> Self {
        let code = &program.code;
        // An observer needs no more than one order of the blocks, unless they wait for each other.
        let interleaved = (observer.is_none() || program.has_grid_barriers()) && is_interleaved(program, options);
        let preemption = match options.schedule {
            Schedule::Preempted(preemption) if interleaved => preemption,
            _ => Preemption::default(),
        };
        let marks_undef =
            |inst: &Inst| matches!(inst, Inst::MarkUndef(_) | Inst::CopyAsync(_) | Inst::LifetimeStart { .. });
        let shadow = if code.insts.iter().any(marks_undef) { Shadow::with_lives } else { Shadow::new };
        let mut shared_shadow = shadow(setting.shared_bytes as usize, setting.shared_granule, setting.budget.clone());
        if code.insts.iter().any(|inst| matches!(inst, Inst::Fence(_))) {
            let mutable = buffers.iter_mut().filter(|buffer| buffer.mutable).map(|buffer| &mut buffer.shadow);
            mutable.chain([&mut shared_shadow]).for_each(Shadow::set_among_fences);
        }
        Machine {
            program,
            setting,
            simd: Simd::detect(),
            buffers,
            shared: shared_memory(options.fill),
            shared_shadow,
            block: [0; 3],
            spent: 0,
            epoch: 0,
            block_epoch: 0,
            barrier_epoch: 0,
            grid_barrier_epoch: 0,
            ended: None,
            history: Vec::new(),
            interleaved,
            awaits_blocks: false,
            points: Points::new(preemption),
            order: AccessOrder::new(interleaved),
            findings: Findings::new(program, options.limit, options.schedule),
            printed: Printed::default(),
            statistics: Statistics::default(),
            options: options.clone(),
            observer,
            stored: StoredNonFinite::Ignored,
            undefined: false,
            waiting: 0,
            stopped: false,
            inline: code.inlines.iter().map(|i| i.block.registers()).collect(),
        }
    }

    /// Runs blocks of the launch in the given order and returns whether all of them reached their
    /// end.
    pub fn run(&mut self, mut numbers: impl Iterator<Item = u64>) -> bool {
        if self.interleaved {
            return self.run_interleaved(None, numbers);
        }
        let mut warps = self.warps();
        let whole = warps.len();
        let mut scheduler = Scheduler::new(self.options.schedule, self.setting.grid);
        while let Some(n) = numbers.next() {
            self.block = scheduler.block(n);
            self.waiting = self.setting.grid.block_count() - 1 - n;
            if self.options.is_late() {
                self.exhausted(0, 0, 1);
                return false;
            }
            let observed = self.observer.as_mut().is_some_and(|observer| {
                observer.block();
                observer.observes(self.block)
            });
            match self.options.checks {
                _ if observed => self.block::<OBSERVED_TIER>(&mut warps, &mut scheduler),
                Checks::Values => self.block::<VALUES>(&mut warps, &mut scheduler),
                Checks::Accesses => self.block::<ACCESSES>(&mut warps, &mut scheduler),
                Checks::All => self.block::<ALL>(&mut warps, &mut scheduler),
            }
            if self.awaits_blocks {
                let waiting = self.suspended(warps);
                return self.run_interleaved(Some(waiting), iter::once(n).chain(numbers));
            }
            self.options.count_block();
            // The warps that were split off end with their block.
            warps.truncate(whole);
            if self.stopped || self.setting.budget.is_spent() {
                return false;
            }
        }
        true
    }

    /// Returns the number of warp instructions that the block may still run.
    pub fn fuel_left(&self) -> u64 {
        self.options.fuel.saturating_sub(self.statistics.warp_instructions - self.spent)
    }

    /// Returns the warps of a block, with the registers filled that are equal in all blocks.
    fn warps(&self) -> Vec<Warp> {
        let code = &self.program.code;
        let LaunchConstants { parameters, grid, .. } = self.setting;
        let warp = |index: u32| {
            let mut rows = vec![Row::zeroed(); code.rows as usize];
            for (register, bits) in &code.constants {
                register.fill(&mut rows, *bits);
            }
            for (register, parameter) in &code.parameters {
                register.fill(&mut rows, parameters[*parameter as usize]);
            }
            for &(row, special) in &code.specials {
                let register = FrameRegister { row, wide: false };
                match special {
                    Special::Thread(axis) => {
                        for lane in 0..LANES {
                            let thread = self.program.thread(index * 32 + lane as u32);
                            register.set(&mut rows, lane, thread[usize::from(axis)].into());
                        }
                    }
                    Special::BlockDim(axis) => register.fill(&mut rows, grid.threads[usize::from(axis)].into()),
                    Special::Grid(axis) => register.fill(&mut rows, grid.blocks[usize::from(axis)].into()),
                    Special::Block(_) => {}
                }
            }
            Warp {
                index,
                rows,
                written: vec![0; code.elements as usize],
                lives: vec![Life::default(); self.program.shared.len()],
                lifetime_starts: vec![0; code.begins as usize],
                memos: vec![None; code.memos as usize],
                copies: Copies::default(),
                slots: vec![MaskSlot::default(); code.slots as usize],
                pc: 0,
                mask: 0,
                live: 0,
                barrier_epoch: 0,
                waits: None,
                is_split: false,
                own: FULL,
                rejoins_at: None,
                cycle: None,
                idle: 0,
                highest: 0,
                ended: false,
            }
        };
        (0..grid.warp_count()).map(warp).collect()
    }

    fn block<const TIER: u8>(&mut self, warps: &mut Vec<Warp>, scheduler: &mut Scheduler) {
        self.spent = self.statistics.warp_instructions;
        self.begin_block::<TIER>(warps);
        let (search, barriers) = (Search::of_barriers(), 0);
        scheduler.run_block(&mut Running::<TIER> { machine: self, search, barriers }, warps);
    }

    /// Sets the clock and the warps to their state at the start of the running block.
    pub fn begin_block<const TIER: u8>(&mut self, warps: &mut [Warp]) {
        self.tick();
        (self.block_epoch, self.barrier_epoch) = (self.epoch, self.epoch);
        if TIER >= ALL {
            self.history.push(TimeSlice { from: self.epoch, began: self.epoch, block: self.block });
            self.order.begin(warps.len(), self.epoch);
        }
        for warp in warps.iter_mut() {
            warp.live = self.setting.grid.warp_mask(warp.index);
            (warp.mask, warp.pc, warp.ended, warp.waits) = (warp.live, 0, false, None);
            (warp.cycle, warp.is_split, warp.own, warp.rejoins_at) = (None, false, FULL, None);
            (warp.idle, warp.highest) = (0, 0);
            warp.barrier_epoch = self.epoch;
            warp.written.fill(0);
            warp.lives.fill(Life::default());
            warp.lifetime_starts.fill(0);
            warp.copies = Copies::default();
            for &(row, special) in &self.program.code.specials {
                if let Special::Block(axis) = special {
                    FrameRegister { row, wide: false }.fill(&mut warp.rows, self.block[usize::from(axis)].into());
                }
            }
        }
        self.statistics.blocks += 1;
        self.statistics.warps += warps.len() as u64;
    }

    /// Returns whether all warps of the block have ended, and reports copies in flight then.
    fn has_ended<const TIER: u8>(&mut self, warps: &[Warp]) -> bool {
        let ended = warps.iter().all(|w| w.ended);
        if ended && TIER >= ALL && self.shared_shadow.has_lives() {
            self.end_copies(warps);
        }
        ended
    }

    /// Opens the block's barrier, and reports warps that do not wait at it.
    fn open_barrier<const TIER: u8>(&mut self, warps: &mut [Warp]) {
        if TIER >= ACCESSES {
            self.report_mismatch(warps);
        }
        self.tick();
        self.pass_barrier::<TIER>(warps);
    }

    /// Resumes the warps of the running block after a barrier. The current epoch begins with the
    /// barrier.
    fn pass_barrier<const TIER: u8>(&mut self, warps: &mut [Warp]) {
        if TIER >= ALL {
            self.order.barrier();
        }
        self.barrier_epoch = self.epoch;
        for warp in warps {
            (warp.waits, warp.barrier_epoch) = (None, self.epoch);
        }
    }

    /// Reports a warp of the block that waits at another barrier or has ended.
    fn report_mismatch(&mut self, warps: &[Warp]) {
        let Some((first, site)) = warps.iter().find_map(|w| Some((w, w.waits?))) else { return };
        let insts = &self.program.code.insts;
        let name = barrier_name(&insts[site as usize]);
        for other in warps {
            let thread = self.thread(other.index, 0);
            let description = match other.waits {
                Some(there) if there == site => continue,
                Some(there) => {
                    let message = match barrier_name(&insts[there as usize]) {
                        same if same == name => format!("the warps of a block wait at different {name}s"),
                        another => format!("the warps of a block wait at different barriers, {name} and {another}"),
                    };
                    Description::new(message).against(Some(there), thread, "waits here")
                }
                None => Description::new(format!("a warp has ended without reaching a {name} that others wait at"))
                    .against(None, thread, "has ended"),
            };
            let lane = first.mask.trailing_zeros() as usize;
            self.report(Check::DivergentBarrier, site, first.index, 1 << (lane % 32), |_, _| description);
        }
    }

    /// Begins the next epoch.
    #[inline(always)]
    pub fn tick(&mut self) {
        if self.epoch == u32::MAX {
            self.forget();
        }
        self.epoch += 1;
    }

    /// Restarts the epochs and forgets all recorded accesses.
    #[cold]
    fn forget(&mut self) {
        if self.interleaved {
            // Suspended blocks keep epochs, so the launch cannot continue.
            self.exhausted(0, 0, 1);
            self.epoch = 0;
            return;
        }
        self.shared_shadow.clear();
        for buffer in &mut self.buffers {
            buffer.shadow.clear();
        }
        self.order.clear(1);
        self.history.clear();
        self.history.push(TimeSlice { from: 1, began: 1, block: self.block });
        (self.epoch, self.block_epoch, self.barrier_epoch) = (0, 1, 1);
    }

    /// Returns the clock for races of `warp` in shared memory, without the order from fences.
    pub fn clock(&self, warp: &Warp) -> Clock<'static> {
        let (block, barrier_epoch, grid) = (self.block_epoch, self.barrier_epoch, self.grid_barrier_epoch);
        Clock {
            block,
            barrier_epoch,
            warp: warp.barrier_epoch,
            grid,
            counts_earlier_blocks: false,
            known: &[],
            slices: &[],
        }
    }

    /// Returns a thread of the running block.
    pub fn thread(&self, warp: u32, lane: usize) -> Thread {
        let thread = self.program.thread(warp * 32 + lane as u32);
        Thread { block: self.block, thread, warp, lane: lane as u32 }
    }

    /// Returns a thread of the block that ran in `epoch`, by its linear index.
    pub fn thread_at(&self, epoch: u32, thread: u32) -> Thread {
        let block = TimeSlice::at(&self.history, epoch).map_or(self.block, |slice| slice.block);
        Thread { block, thread: self.program.thread(thread), warp: thread / 32, lane: thread % 32 }
    }

    /// Reports that the lanes of `mask` violate `check`; `describe` describes the first one.
    #[cold]
    pub fn report(
        &mut self,
        check: Check,
        site: Pc,
        warp: u32,
        mask: u32,
        describe: impl FnOnce(&Self, usize) -> Description,
    ) {
        if mask != 0 {
            self.report_against(check, site, None, CheckHits { count: mask.count_ones(), warp, first: mask }, describe);
        }
    }

    /// Reports a conflict with the access at `other`; each such location is listed.
    #[cold]
    pub fn report_against(
        &mut self,
        check: Check,
        site: Pc,
        other: Option<Pc>,
        CheckHits { count, warp, first }: CheckHits,
        describe: impl FnOnce(&Self, usize) -> Description,
    ) {
        let silent = self.options.without.contains(check) && !check.ends_launch();
        if silent || self.findings.count(check, site, other, count) {
            return;
        }
        let lane = lanes_of(first).next().unwrap_or(0);
        let description = describe(self, lane);
        let thread = self.thread(warp, lane);
        self.findings.add(check, site, count, thread, description);
        self.stopped |= self.findings.full();
    }
}

/// A block that runs at a tier of checks.
struct Running<'a, 'p, 'm, const TIER: u8> {
    machine: &'a mut Machine<'p, 'm>,
    search: Search,
    /// The number of barriers so far.
    barriers: u64,
}

impl<const TIER: u8> RunningBlock for Running<'_, '_, '_, TIER> {
    type Warp = Warp;

    fn is_ready(&self, warp: &Warp) -> bool {
        warp.runs()
    }

    fn run_warp(&mut self, warp: &mut Warp) {
        if TIER >= ALL && warp.is_split {
            // An access of another part of the warp is not simultaneous with an access of this
            // part.
            self.machine.tick();
        }
        self.machine.warp::<TIER>(warp);
    }

    fn is_stopped(&self) -> bool {
        self.machine.stopped
    }

    fn phase(&self) -> u64 {
        self.machine.epoch.into()
    }

    fn resume(&mut self, warps: &mut Vec<Warp>) -> bool {
        let machine = &mut *self.machine;
        let whole = machine.setting.grid.warp_count() as usize;
        if machine.join_lanes(warps, whole) || warps.iter().any(|w| w.runs() && w.cycle.is_none()) {
            return !machine.stopped;
        }
        let cycles: Vec<Cycle> = warps.iter().filter_map(|w| w.cycle).collect();
        if !cycles.is_empty() {
            if machine.split_warps(warps) || machine.has_changed_since(&cycles) {
                return true;
            }
            machine.awaits_blocks = cycles.iter().any(|cycle| machine.polls_blocks(cycle.site));
            if !machine.awaits_blocks {
                machine.report_looping_warps(warps, None);
            }
            return false;
        }
        if machine.has_ended::<TIER>(warps) {
            return false;
        }
        self.barriers += 1;
        if machine.repeats_at_barriers(&mut self.search, warps, self.barriers) {
            machine.awaits_blocks = warps.iter().any(|w| w.waits.is_some_and(|site| machine.polls_blocks(site)));
            if !machine.awaits_blocks {
                machine.report_repeated_barriers(&self.search, warps);
                return false;
            }
        }
        machine.open_barrier::<TIER>(warps);
        !machine.awaits_blocks
    }
}
