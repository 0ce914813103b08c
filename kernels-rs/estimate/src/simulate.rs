//! Simulation of a multiprocessor: its schedulers issue the instructions of the resident warps,
//! cycle by cycle.
//!
//! - A warp issues in order. The control word of an instruction states the cycles until the next
//!   one, and the barriers to wait for; the model adds the latency of loads, exchanges and special
//!   functions, after which a barrier is cleared.
//! - A scheduler issues one instruction in a cycle, or a pair. A unit takes the next instruction
//!   after its interval. Conflicts of register banks block the scheduler.
//! - Loads, stores and exchanges of all warps go through one queue, which shared memory and the L1
//!   cache serve. Misses of the L1 cache go through a queue at the rate of the L2 cache. A part of
//!   them also goes through a queue at the rate of the memory.
//! - A barrier of a block releases its warps when the last one arrives. A block that ends makes
//!   room for the next.
//!
//! The time of a long launch is extrapolated from the rate of the second half of the simulated
//! instructions.

use crate::control::{BARRIERS, Control};
use crate::device::{DeviceModel, ExecutionUnit};
use crate::path::{BasicBlock, Choices};
use serde::Serialize;

/// Instructions that are simulated at most.
const MAX_ISSUES: u64 = 1_500_000;

/// Cycles of work that the queue of loads and stores holds before issue stops.
const QUEUE_CYCLES: f64 = 48.0;
/// Cycles of work that the queues of L2 cache and memory hold before issue stops.
const FETCH_CYCLES: f64 = 1500.0;

/// Reason why a warp does not issue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stall {
    /// The fixed latency of the previous instruction.
    Dependency,
    /// A load from global memory.
    GlobalMemory,
    /// Shared memory, an exchange, or a special function.
    ShortLatency,
    /// A barrier of the block.
    Barrier,
    /// A unit that is busy.
    Unit,
    /// A queue of memory operations that is full.
    Queue,
    /// Another warp that issues.
    NotSelected,
}

impl Stall {
    /// All reasons.
    pub const ALL: [Stall; 7] = [
        Stall::Dependency,
        Stall::GlobalMemory,
        Stall::ShortLatency,
        Stall::Barrier,
        Stall::Unit,
        Stall::Queue,
        Stall::NotSelected,
    ];

    /// Returns the reason in words.
    pub fn name(self) -> &'static str {
        match self {
            Stall::Dependency => "fixed latency",
            Stall::GlobalMemory => "global memory",
            Stall::ShortLatency => "shared memory and special functions",
            Stall::Barrier => "barrier",
            Stall::Unit => "busy unit",
            Stall::Queue => "full memory queue",
            Stall::NotSelected => "other warps issue",
        }
    }
}

/// Part of the model that can be left out, to show what it contributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelPart {
    /// The stalls and waits of control words: each instruction issues one cycle after the last.
    ControlWords,
    /// Conflicts of register banks.
    RegisterBanks,
    /// Cycles of shared memory and of the L1 cache.
    SharedMemory,
    /// The rate of the L2 cache.
    L2,
    /// The rate of the memory.
    Dram,
    /// Latencies of loads, exchanges and special functions.
    Latencies,
    /// Intervals of units other than one cycle.
    Units,
}

impl ModelPart {
    /// All parts.
    pub const ALL: [ModelPart; 7] = [
        ModelPart::ControlWords,
        ModelPart::RegisterBanks,
        ModelPart::SharedMemory,
        ModelPart::L2,
        ModelPart::Dram,
        ModelPart::Latencies,
        ModelPart::Units,
    ];

    /// Returns the part in words.
    pub fn name(self) -> &'static str {
        match self {
            ModelPart::ControlWords => "control words",
            ModelPart::RegisterBanks => "register banks",
            ModelPart::SharedMemory => "cycles of shared memory and L1 cache",
            ModelPart::L2 => "rate of the L2 cache",
            ModelPart::Dram => "rate of the memory",
            ModelPart::Latencies => "latencies",
            ModelPart::Units => "rates of units",
        }
    }

    /// Returns the model and the instructions without this part.
    pub fn removed(
        self,
        mut model: DeviceModel,
        mut ops: Vec<SimulatedInstruction>,
    ) -> (DeviceModel, Vec<SimulatedInstruction>) {
        let architecture = &mut model.architecture;
        match self {
            ModelPart::ControlWords => ops.iter_mut().for_each(|op| {
                (op.control.stall, op.control.waits) = (op.control.stall.min(1), 0);
            }),
            ModelPart::RegisterBanks => ops.iter_mut().for_each(|op| op.bank_conflicts = 0),
            ModelPart::SharedMemory => ops.iter_mut().for_each(|op| match &mut op.effect {
                IssueEffect::Shared(cycles) | IssueEffect::Global { cycles, .. } => *cycles = 0.0,
                _ => {}
            }),
            ModelPart::L2 => architecture.l2_sectors_per_cycle.value = 1e6,
            ModelPart::Dram => architecture.dram_share.value = 1e6,
            ModelPart::Latencies => {
                for latency in [
                    &mut architecture.shared_latency,
                    &mut architecture.l1_latency,
                    &mut architecture.l2_latency,
                    &mut architecture.dram_latency,
                    &mut architecture.special_latency,
                    &mut architecture.barrier_latency,
                ] {
                    latency.value = 1.0;
                }
            }
            ModelPart::Units => architecture.intervals.values_mut().for_each(|interval| interval.value = 1.0),
        }
        (model, ops)
    }
}

/// An instruction of the simulation.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedInstruction {
    /// Control bits.
    pub control: Control,
    /// Executing unit.
    pub unit: ExecutionUnit,
    /// Effect.
    pub effect: IssueEffect,
    /// Cycles that the scheduler loses to register banks.
    pub bank_conflicts: u32,
}

/// Effect of an instruction beyond its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IssueEffect {
    /// No effect beyond the fixed latency.
    None,
    /// A result of variable latency from a unit of the scheduler.
    Special,
    /// Cycles of shared memory.
    Shared(f64),
    /// An access to global memory, on average.
    Global {
        /// Cycles of the unit of loads and stores.
        cycles: f64,
        /// Sectors requested from the L2 cache.
        sectors: f64,
        /// Share of requests that the L1 cache serves.
        hits: f64,
    },
    /// A barrier of the block.
    Barrier,
    /// Does nothing and takes no slot.
    Idle,
}

/// The work of a launch on one multiprocessor.
#[derive(Clone, Copy, Debug)]
pub struct LaunchWork {
    /// Blocks that the busiest multiprocessor runs.
    pub blocks: u64,
    /// Blocks that are resident at once.
    pub resident: u64,
    /// Warps of a block.
    pub warps: u64,
    /// Share of the L2 cache's sectors that come from the memory.
    pub from_dram: f64,
    /// Blocks of all multiprocessors as a share of what they had if all were as busy as this one.
    pub busy: f64,
}

/// Result of a simulation.
#[derive(Clone, Debug, Default)]
pub struct Simulated {
    /// Cycles of the busiest multiprocessor.
    pub cycles: f64,
    /// Cycles in which schedulers issued, summed over schedulers, in the simulated part.
    pub issue_cycles: f64,
    /// Cycles that were simulated.
    pub simulated_cycles: f64,
    /// Cycles of busy units, summed over schedulers, by unit, in the simulated part.
    pub unit_cycles: std::collections::BTreeMap<ExecutionUnit, f64>,
    /// Busy cycles of shared memory and L1 cache, of the queue from the L2 cache, and of the
    /// memory, in the simulated part.
    pub memory_cycles: [f64; 3],
    /// For each instruction, cycles of warps by reason.
    pub stalls: Vec<[f64; Stall::ALL.len()]>,
}

struct SimulatedWarp {
    /// Resident block.
    place: usize,
    /// Basic block and position of the next instruction; `None` after the end.
    at: Option<(usize, usize)>,
    /// Cycle of the last issue.
    issued: f64,
    /// Cycle from which the fixed latency permits issue.
    ready: f64,
    /// Cycles at which the barriers are cleared, and the reason for the wait.
    barriers: [(f64, Stall); BARRIERS],
    /// Whether the warp waits at a barrier of the block.
    waits: bool,
    /// Cycle at which the last barrier of the block was released.
    released: f64,
    /// Choices at the ends of basic blocks.
    choices: Choices,
}

/// Simulates a multiprocessor. `ops` has the instructions of the listing.
pub fn simulate(
    ops: &[SimulatedInstruction],
    blocks: &[BasicBlock],
    work: &LaunchWork,
    model: &DeviceModel,
) -> Simulated {
    MultiprocessorSimulation::new(ops, blocks, work, model).run()
}

struct MultiprocessorSimulation<'a> {
    ops: &'a [SimulatedInstruction],
    blocks: &'a [BasicBlock],
    work: &'a LaunchWork,
    model: &'a DeviceModel,
    warps: Vec<SimulatedWarp>,
    /// For each place of a resident block, its live warps and the warps at the barrier.
    places: Vec<(u64, u64)>,
    started: u64,
    schedulers: usize,
    /// For each scheduler, the cycle from which it may issue, and from which each unit is free.
    free: Vec<f64>,
    units: Vec<[f64; 11]>,
    /// Cycles of busy units, summed over schedulers.
    unit_cycles: [f64; 11],
    /// Cycle from which loads and stores, the L2 cache and the memory are free.
    queue: f64,
    l2: f64,
    dram: f64,
    out: Simulated,
    issues: u64,
    ended_warps: u64,
    now: f64,
}

impl<'a> MultiprocessorSimulation<'a> {
    fn new(
        ops: &'a [SimulatedInstruction],
        blocks: &'a [BasicBlock],
        work: &'a LaunchWork,
        model: &'a DeviceModel,
    ) -> MultiprocessorSimulation<'a> {
        let schedulers = model.architecture.schedulers.value as usize;
        let resident = work.resident.min(work.blocks).max(1) as usize;
        let mut machine = MultiprocessorSimulation {
            ops,
            blocks,
            work,
            model,
            warps: Vec::new(),
            places: vec![(0, 0); resident],
            started: 0,
            schedulers,
            free: vec![0.0; schedulers],
            units: vec![[0.0; 11]; schedulers],
            unit_cycles: [0.0; 11],
            queue: 0.0,
            l2: 0.0,
            dram: 0.0,
            out: Simulated { stalls: vec![Default::default(); ops.len()], ..Simulated::default() },
            issues: 0,
            ended_warps: 0,
            now: 0.0,
        };
        for place in 0..resident {
            for _ in 0..work.warps {
                machine.warps.push(SimulatedWarp {
                    place,
                    at: None,
                    issued: 0.0,
                    ready: 0.0,
                    barriers: [(0.0, Stall::Dependency); BARRIERS],
                    waits: false,
                    released: 0.0,
                    choices: Choices::new(blocks, 0, 0.0),
                });
            }
            machine.start_block(place, 0.0);
        }
        machine
    }

    /// Starts the next block instead of an ended one, if there is one.
    fn start_block(&mut self, place: usize, at: f64) {
        if self.started == self.work.blocks {
            return;
        }
        self.places[place] = (self.work.warps, 0);
        let (first, of_block) = (self.started * self.work.warps, self.started as f64);
        self.started += 1;
        let own = self.warps.iter_mut().filter(|warp| warp.place == place);
        for (number, warp) in (first..).zip(own) {
            *warp = SimulatedWarp {
                place,
                at: Some((0, self.blocks[0].range.start)),
                issued: at,
                ready: at,
                barriers: [(at, Stall::Dependency); BARRIERS],
                waits: false,
                released: at,
                choices: Choices::new(self.blocks, number, of_block),
            };
        }
    }

    fn run(mut self) -> Simulated {
        let total_warps = (self.work.blocks * self.work.warps) as f64;
        // Cycle and progress at half of the simulated instructions.
        let mut half: Option<(f64, u64)> = None;
        let ids: Vec<Vec<usize>> = (0..self.schedulers)
            .map(|s| (0..self.warps.len()).filter(|w| w % self.schedulers == s).collect())
            .collect();
        let mut last = vec![0usize; self.schedulers];
        loop {
            let mut next = f64::INFINITY;
            for scheduler in 0..self.schedulers {
                if self.free[scheduler] > self.now {
                    next = next.min(self.free[scheduler]);
                    continue;
                }
                let own = &ids[scheduler];
                // The warp that issued last continues if it can, else the next one that can.
                let mut chosen = None;
                for i in 0..own.len() {
                    let warp = own[(last[scheduler] + i) % own.len()];
                    let Some(earliest) = self.earliest(scheduler, warp) else { continue };
                    if earliest <= self.now {
                        chosen = Some((warp, (last[scheduler] + i) % own.len()));
                        break;
                    }
                    next = next.min(earliest);
                }
                if let Some((warp, number)) = chosen {
                    last[scheduler] = number;
                    self.issue(scheduler, warp);
                    next = next.min(self.free[scheduler]);
                }
            }
            if self.issues >= MAX_ISSUES / 2 && half.is_none() {
                half = Some((self.now, self.issues));
            }
            if self.issues >= MAX_ISSUES {
                break;
            }
            if !next.is_finite() {
                // Warps of a block may differ in the number of barriers, because counts are means.
                let Some(place) = self.warps.iter().find(|warp| warp.waits).map(|warp| warp.place) else { break };
                self.places[place].1 = self.places[place].0;
                self.release(place);
                next = self.now;
            }
            // Advances to a whole cycle, at least the next one.
            self.now = next.ceil().max(self.now + 1.0);
        }
        let end = self.now.max(self.queue).max(self.l2).max(self.dram);
        self.out.simulated_cycles = self.now.max(1.0);
        self.out.unit_cycles = self.ops.iter().map(|op| (op.unit, self.unit_cycles[op.unit as usize])).collect();
        self.out.cycles = match half {
            Some((cycle, issues)) if self.warps.iter().any(|warp| warp.at.is_some()) => {
                // The number of instructions of all warps, by the counts.
                let of_warp: f64 = self.blocks.iter().map(|b| b.count * self.slots(b)).sum();
                let rest = (total_warps * of_warp - self.issues as f64).max(0.0);
                let rate = (self.issues - issues) as f64 / (self.now - cycle).max(1.0);
                self.now + rest / rate
            }
            _ => end,
        };
        self.out
    }

    /// Returns the instructions of a block that take a slot or share one.
    fn slots(&self, block: &BasicBlock) -> f64 {
        self.ops[block.range.clone()].iter().filter(|op| op.effect != IssueEffect::Idle).count() as f64
    }

    /// Returns the cycle from which a warp can issue; `None` if an event must come first.
    fn earliest(&self, scheduler: usize, warp: usize) -> Option<f64> {
        let warp = &self.warps[warp];
        let (_, at) = warp.at?;
        if warp.waits {
            return None;
        }
        let op = &self.ops[at];
        let mut earliest = warp.ready.max(warp.released);
        for (barrier, (cleared, _)) in warp.barriers.iter().enumerate() {
            if op.control.waits >> barrier & 1 == 1 {
                earliest = earliest.max(*cleared);
            }
        }
        earliest = earliest.max(self.units[scheduler][op.unit as usize]);
        match op.effect {
            IssueEffect::Shared(_) => earliest = earliest.max(self.queue - QUEUE_CYCLES),
            IssueEffect::Global { .. } => {
                let fetch = self.l2.max(self.dram) - FETCH_CYCLES;
                earliest = earliest.max(self.queue - QUEUE_CYCLES).max(fetch);
            }
            _ => {}
        }
        Some(earliest)
    }

    /// Issues the next instruction of a warp, and a second one that pairs with it.
    fn issue(&mut self, scheduler: usize, number: usize) {
        let mut slot = 1.0;
        while let Some((_, at)) = self.warps[number].at {
            let op = self.ops[at];
            self.explain(scheduler, number, at, &op);
            let interval = self.model.interval(op.unit);
            let unit = &mut self.units[scheduler][op.unit as usize];
            *unit = unit.max(self.now) + interval;
            self.unit_cycles[op.unit as usize] += interval;
            slot += f64::from(op.bank_conflicts);
            self.issues += 1;
            self.effect(number, &op);
            let stall = f64::from(op.control.stall);
            let warp = &mut self.warps[number];
            warp.issued = self.now;
            warp.ready = self.now + stall + f64::from(op.bank_conflicts);
            self.advance(number);
            let paired = stall == 0.0 && slot == 1.0 && self.warps[number].at.is_some();
            if !paired || self.earliest(scheduler, number).is_none_or(|earliest| earliest > self.now) {
                break;
            }
        }
        self.free[scheduler] = self.now + slot;
        self.out.issue_cycles += slot;
    }

    /// Adds the cycles since the warp's last issue to the reasons.
    fn explain(&mut self, scheduler: usize, number: usize, at: usize, op: &SimulatedInstruction) {
        let warp = &self.warps[number];
        let stalls = &mut self.out.stalls[at];
        let mut from = warp.issued + 1.0;
        let mut add = |reason: Stall, until: f64| {
            let until = until.min(self.now);
            if until > from {
                stalls[reason as usize] += until - from;
                from = until;
            }
        };
        add(Stall::Dependency, warp.ready);
        add(Stall::Barrier, warp.released);
        let waits = |barrier: &usize| op.control.waits >> barrier & 1 == 1;
        let longest = (0..BARRIERS).filter(waits).map(|barrier| warp.barriers[barrier]);
        if let Some((cleared, reason)) = longest.max_by(|a, b| a.0.total_cmp(&b.0)) {
            add(reason, cleared);
        }
        add(Stall::Unit, self.units[scheduler][op.unit as usize]);
        if matches!(op.effect, IssueEffect::Shared(_) | IssueEffect::Global { .. }) {
            let full = (self.queue - QUEUE_CYCLES).max(self.l2.max(self.dram) - FETCH_CYCLES);
            add(Stall::Queue, full);
        }
        add(Stall::NotSelected, self.now);
    }

    fn effect(&mut self, number: usize, op: &SimulatedInstruction) {
        let architecture = &self.model.architecture;
        let (read, written, reason) = match op.effect {
            IssueEffect::None | IssueEffect::Idle | IssueEffect::Barrier => {
                (self.now + 6.0, self.now + 12.0, Stall::Dependency)
            }
            IssueEffect::Special => {
                let done = self.now + architecture.special_latency.value;
                (done, done, Stall::ShortLatency)
            }
            IssueEffect::Shared(cycles) => {
                let start = self.queue.max(self.now);
                self.queue = start + cycles;
                self.out.memory_cycles[0] += cycles;
                (self.queue + 4.0, self.queue + architecture.shared_latency.value, Stall::ShortLatency)
            }
            IssueEffect::Global { cycles, sectors, hits } => {
                let start = self.queue.max(self.now);
                self.queue = start + cycles;
                self.out.memory_cycles[0] += cycles;
                let l2_cycles = sectors / architecture.l2_sectors_per_cycle.value;
                let dram_cycles = sectors * self.work.from_dram * self.work.busy / self.model.dram_sectors_per_cycle();
                self.l2 = self.l2.max(self.queue) + l2_cycles;
                self.dram = self.dram.max(self.queue) + dram_cycles;
                self.out.memory_cycles[1] += l2_cycles;
                self.out.memory_cycles[2] += dram_cycles;
                let (l2, dram) = (architecture.l2_latency.value, architecture.dram_latency.value);
                let far = l2 + self.work.from_dram * (dram - l2);
                let latency = hits * architecture.l1_latency.value + (1.0 - hits) * far;
                let fetched = if sectors > 0.0 { self.l2.max(self.dram) } else { self.queue };
                (self.queue + 10.0, fetched + latency, Stall::GlobalMemory)
            }
        };
        let warp = &mut self.warps[number];
        let mut set = |barrier: Option<u8>, cleared: f64| {
            if let Some(barrier) = barrier {
                let slot = &mut warp.barriers[usize::from(barrier)];
                if cleared > slot.0 {
                    *slot = (cleared, reason);
                }
            }
        };
        set(op.control.read_barrier, read);
        set(op.control.write_barrier, written);
        if op.effect == IssueEffect::Barrier {
            let place = warp.place;
            warp.waits = true;
            self.places[place].1 += 1;
            self.release(place);
        }
    }

    /// Releases the warps of a block if all that live have arrived.
    fn release(&mut self, place: usize) {
        let (live, arrived) = self.places[place];
        if arrived < live || arrived == 0 {
            return;
        }
        self.places[place].1 = 0;
        let released = self.now + self.model.architecture.barrier_latency.value;
        for warp in self.warps.iter_mut().filter(|warp| warp.place == place && warp.waits) {
            warp.waits = false;
            warp.released = released;
        }
    }

    /// Moves a warp to its next instruction that is not idle, or ends it.
    fn advance(&mut self, number: usize) {
        let Some((mut block, mut at)) = self.warps[number].at else { return };
        at += 1;
        loop {
            while at == self.blocks[block].range.end {
                match self.warps[number].choices.next(self.blocks, block) {
                    Some(next) => (block, at) = (next, self.blocks[next].range.start),
                    None => return self.end(number),
                }
            }
            if self.ops[at].effect != IssueEffect::Idle {
                break;
            }
            at += 1;
        }
        self.warps[number].at = Some((block, at));
    }

    fn end(&mut self, number: usize) {
        let place = self.warps[number].place;
        self.warps[number].at = None;
        self.ended_warps += 1;
        self.places[place].0 -= 1;
        if self.places[place].0 == 0 {
            self.start_block(place, self.now + self.model.architecture.block_cycles.value);
        } else {
            self.release(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::BlockEdge;

    fn op(stall: u8, unit: ExecutionUnit, effect: IssueEffect) -> SimulatedInstruction {
        let control = Control { stall, write_barrier: None, read_barrier: None, waits: 0 };
        SimulatedInstruction { control, unit, effect, bank_conflicts: 0 }
    }

    fn run(ops: &[SimulatedInstruction], work: LaunchWork) -> Simulated {
        let end = BlockEdge { to: None, share: 1.0, leaves: None };
        let blocks = [BasicBlock { range: 0..ops.len(), count: 1.0, next: vec![end] }];
        simulate(ops, &blocks, &work, &DeviceModel::named("gtx1080ti").unwrap())
    }

    const ONE: LaunchWork = LaunchWork { blocks: 1, resident: 1, warps: 1, from_dram: 0.0, busy: 1.0 };

    #[test]
    fn stalls_and_pairs_take_the_cycles_that_control_words_state() {
        // Ten instructions of 6 cycles; the last one issues in cycle 54 and takes a cycle.
        let dependent = run(&[op(6, ExecutionUnit::Float, IssueEffect::None); 10], ONE);
        assert_eq!(dependent.cycles, 55.0);
        // Four warps, one on each scheduler, take as long; so do 24 that fill the gaps.
        assert_eq!(
            run(&[op(6, ExecutionUnit::Float, IssueEffect::None); 10], LaunchWork { warps: 4, ..ONE }).cycles,
            55.0
        );
        let full = run(&[op(6, ExecutionUnit::Float, IssueEffect::None); 10], LaunchWork { warps: 24, ..ONE });
        assert!((59.0..=66.0).contains(&full.cycles), "{}", full.cycles);
        // A pair in each cycle.
        let pair = [op(0, ExecutionUnit::Float, IssueEffect::None), op(1, ExecutionUnit::Special, IssueEffect::None)];
        assert_eq!(run(&pair, ONE).issue_cycles, 1.0);
    }

    #[test]
    fn a_load_delays_what_waits_for_it() {
        let load = SimulatedInstruction {
            control: Control { stall: 1, write_barrier: Some(2), read_barrier: None, waits: 0 },
            ..op(1, ExecutionUnit::Memory, IssueEffect::Global { cycles: 1.0, sectors: 4.0, hits: 0.0 })
        };
        let used = SimulatedInstruction {
            control: Control { stall: 1, write_barrier: None, read_barrier: None, waits: 0b100 },
            ..op(1, ExecutionUnit::Float, IssueEffect::None)
        };
        let simulated = run(&[load, used], ONE);
        // One cycle of the queue, two of the L2 cache, its latency of 216, and the issue.
        assert_eq!(simulated.cycles, 220.0);
        assert_eq!(simulated.stalls[1][Stall::GlobalMemory as usize], 218.0);
    }

    #[test]
    fn the_rate_of_the_memory_bounds_many_loads() {
        let load = op(1, ExecutionUnit::Memory, IssueEffect::Global { cycles: 1.0, sectors: 4.0, hits: 0.0 });
        let ops = vec![load; 1000];
        let simulated = run(&ops, LaunchWork { blocks: 8, resident: 8, warps: 4, from_dram: 1.0, busy: 1.0 });
        let model = DeviceModel::named("gtx1080ti").unwrap();
        let bytes = 8.0 * 4.0 * 1000.0 * 128.0 * 28.0;
        let seconds = simulated.cycles / (model.device.clock_mhz.value * 1e6);
        let share = bytes / seconds / (484e9 * model.architecture.dram_share.value);
        assert!((0.98..=1.0).contains(&share), "{share}");
    }
}
