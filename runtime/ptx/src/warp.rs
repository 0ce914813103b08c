//! A running warp: all active lanes execute one instruction at a time.

use super::Check;
use super::async_copy::Copies;
use super::call::Activation;
use super::code::{
    self, AtomicAccess, Barrier, BarrierReduction, Body, Code, Condition, Data, DefinednessRule, Inst, InstructionKind,
    MemoryAccess, NO_DRIVER, Window,
};
use super::flow::{BranchPolicy, WarpFlow};
use super::machine::{BARRIERS, LaunchMemory, Machine};
use super::memory::ScratchMemory;
use super::registers::{FULL, LANES, RegisterPlace, Registers, StateId, UndefinedCause, lanes};
use smallvec::SmallVec;

/// The time slice: the number of instructions that a warp runs before the block's other warps run.
const SLICE: u64 = 1 << 12;

/// The number of consecutive atomic operations without effect after which a warp counts as
/// spinning. Further polls of a spinning warp are no points at which to preempt it.
const MAX_SPIN_ATOMICS: u32 = 4;

/// The number of atomic operations without effect after which a launch is considered to wait for a
/// store that no thread makes.
const POLLS: u64 = 1 << 22;

/// A warp.
pub struct Warp {
    /// The index of the warp in its block.
    pub index: u32,
    /// The registers of the lanes.
    pub registers: Registers,
    /// The control flow of the lanes.
    pub flow: WarpFlow,
    /// The local memory of the threads.
    pub local: ScratchMemory,
    /// The copies of the threads that are in flight.
    pub copies: Copies,
    /// The barrier at which the warp waits.
    pub waits: Option<BarrierArrival>,
    /// The calls with a stack that are in progress, outermost first.
    pub calls: Vec<Activation>,
    /// The number of consecutive atomic operations of the warp that changed nothing.
    pub idle: u32,
    /// The number of the warp's strong loads in this block, and of its fences of more than a block:
    /// weak loads after such a fence see what other blocks stored.
    pub strong_loads: u32,
    /// The number of polls of memory that the host may access: strong loads, atomic operations, and
    /// fences after weak loads.
    pub host_polls: u32,
    /// Whether a weak load has read such memory since the last fence.
    pub has_read_host: bool,
}

/// A warp at a barrier.
#[derive(Clone, Copy, Debug)]
pub struct BarrierArrival {
    /// The number of the barrier.
    pub number: usize,
    /// The instruction.
    pub site: u32,
    /// The waiting lanes.
    pub mask: u32,
    /// The reduction and the register for its result, if there is one.
    pub reduction: Option<(BarrierReduction, RegisterPlace)>,
}

impl Warp {
    /// Creates warp `index` of a block, with the local memory of each thread in bytes.
    pub fn new(index: u32, code: &Code, local_bytes: usize, policy: BranchPolicy) -> Warp {
        Warp {
            index,
            registers: Registers::new(code.sizes),
            flow: WarpFlow::new(policy, 0),
            local: ScratchMemory::new(local_bytes * LANES),
            copies: Copies::default(),
            waits: None,
            calls: Vec::new(),
            idle: 0,
            strong_loads: 0,
            host_polls: 0,
            has_read_host: false,
        }
    }

    /// Returns the bytes of a thread's local memory.
    pub fn local_bytes(&self) -> usize {
        self.local.bytes.len() / LANES
    }

    /// Starts a block with the lanes of `mask`.
    pub fn start(&mut self, policy: BranchPolicy, mask: u32) {
        self.flow = WarpFlow::new(policy, mask);
        self.registers.forget();
        self.local.forget();
        self.copies = Copies::default();
        self.waits = None;
        self.calls.clear();
        (self.idle, self.strong_loads, self.host_polls, self.has_read_host) = (0, 0, 0, false);
    }

    /// Returns whether all lanes have ended.
    pub fn ended(&self) -> bool {
        self.flow.mask == 0 && self.calls.is_empty()
    }
}

impl Machine<'_, '_> {
    /// Runs a warp to a barrier, to its end, to a point at which the schedule preempts it, or for
    /// its time slice. The slice ensures that other warps make progress.
    pub fn run_warp<const CHECKED: bool, const HAS_OBSERVER: bool>(&mut self, warp: &mut Warp) {
        let program = self.program;
        let until = self.statistics.warp_instructions + SLICE;
        while warp.waits.is_none() && !self.stopped && self.statistics.warp_instructions < until {
            if warp.flow.mask == 0 && !self.complete_calls(warp) {
                return;
            }
            if warp.flow.pc == warp.flow.stop {
                warp.flow.arrive(&program.code.structure);
                continue;
            }
            let inst = &program.code.insts[warp.flow.pc as usize];
            if !self.spend(warp, inst) {
                return;
            }
            let mask = self.guarded::<CHECKED>(warp, inst);
            // A processor without an instruction for it counts bits slowly.
            let count = if mask == FULL { LANES as u32 } else { mask.count_ones() };
            self.statistics.thread_instructions += u64::from(count);
            if HAS_OBSERVER {
                self.observe(warp, inst, mask);
                if !self.deciding[warp.flow.pc as usize] {
                    if let InstructionKind::Store(_) = inst.kind {
                        // Other warps may poll what a store changes.
                        self.polls = 0;
                    }
                    warp.flow.pc += 1;
                    continue;
                }
            }
            match &inst.kind {
                InstructionKind::Compute { body, follows, reason } => {
                    if mask != 0 {
                        self.compute::<CHECKED>(warp, inst, body, *follows, reason, mask);
                    }
                    warp.flow.pc += 1;
                }
                InstructionKind::Load(access) => {
                    let is_global = matches!(access.window, Window::Global | Window::Generic);
                    if self.notes_host_reads && is_global && !warp.has_read_host {
                        // The result may replace the address.
                        warp.has_read_host = self.is_of_host(warp, access, mask);
                    }
                    self.load_defined::<CHECKED>(warp, inst, access, mask);
                    warp.flow.pc += 1;
                }
                InstructionKind::StrongLoad(access) => {
                    // Another block cannot change shared or local memory.
                    if !matches!(access.window, Window::Shared | Window::Local) {
                        warp.strong_loads = warp.strong_loads.saturating_add(1);
                        self.count_host_poll(warp, access, mask);
                    }
                    self.load_defined::<CHECKED>(warp, inst, access, mask);
                    warp.flow.pc += 1;
                }
                InstructionKind::Copy(copy) => {
                    self.changes += 1;
                    self.copy_defined::<CHECKED>(warp, inst, copy, mask);
                    warp.flow.pc += 1;
                }
                InstructionKind::CopyCommit => {
                    self.changes += 1;
                    self.commit(warp, mask);
                    warp.flow.pc += 1;
                }
                InstructionKind::CopyWait(pending) => {
                    self.changes += 1;
                    self.complete(warp, mask, *pending);
                    warp.flow.pc += 1;
                }
                InstructionKind::Store(access) => {
                    self.store_defined::<CHECKED>(warp, inst, access, mask);
                    warp.flow.pc += 1;
                }
                InstructionKind::Atomic(atomic) => {
                    let yields = self.update_defined::<CHECKED>(warp, inst, atomic, mask);
                    warp.flow.pc += 1;
                    if yields {
                        return;
                    }
                }
                InstructionKind::Object(access) => {
                    self.changes += 1;
                    self.access_object::<CHECKED>(warp, inst, access, mask);
                    warp.flow.pc += 1;
                }
                InstructionKind::Branch(target) => self.branch(warp, *target, mask),
                InstructionKind::BranchIndexed { index, targets } => {
                    if CHECKED {
                        self.require_defined(warp, inst, index.1, mask, "branches by an index");
                    }
                    self.branch_indexed(warp, inst, index.0, targets, mask);
                }
                InstructionKind::Exit => {
                    warp.flow.pc += 1;
                    warp.end_lanes(&program.code, mask);
                }
                InstructionKind::Call(call) => self.call(warp, inst, call, mask),
                InstructionKind::Return => {
                    warp.flow.pc += 1;
                    warp.flow.end(&program.code.structure, mask);
                }
                InstructionKind::Service(service) => {
                    self.changes += 1;
                    self.serve(warp, inst, service, mask);
                    warp.flow.pc += 1;
                }
                InstructionKind::Trap(why) => {
                    if mask != 0 {
                        self.report(warp, Check::Trap, inst.site, mask, || why.to_string());
                        self.stopped = true;
                        return;
                    }
                    warp.flow.pc += 1;
                }
                InstructionKind::Barrier(barrier) => self.barrier::<CHECKED>(warp, inst, barrier, mask),
                InstructionKind::WarpBarrier { members } => {
                    if self.arrived_lanes::<CHECKED>(warp, inst, Some(*members), mask).is_some() {
                        warp.flow.pc += 1;
                    }
                }
                InstructionKind::Shuffle(shuffle) => {
                    if let Some(mask) = self.arrived_lanes::<CHECKED>(warp, inst, shuffle.members, mask) {
                        self.shuffle::<CHECKED>(warp, inst, shuffle, mask);
                        warp.flow.pc += 1;
                    }
                }
                InstructionKind::Vote(vote) => {
                    if let Some(mask) = self.arrived_lanes::<CHECKED>(warp, inst, vote.members, mask) {
                        self.vote::<CHECKED>(warp, inst, vote, mask);
                        warp.flow.pc += 1;
                    }
                }
                InstructionKind::Gather(gather) => {
                    if let Some(mask) = self.arrived_lanes::<CHECKED>(warp, inst, Some(gather.members), mask) {
                        self.gather::<CHECKED>(warp, inst, gather, mask);
                        warp.flow.pc += 1;
                    }
                }
                InstructionKind::ActiveMask(to) => {
                    let active = warp.flow.mask.into();
                    broadcast(warp, inst, *to, active, mask, (0, ""));
                    warp.flow.pc += 1;
                }
                InstructionKind::Workspace { to, high } => {
                    let half = (self.workspace >> if *high { 32 } else { 0 }) & 0xffff_ffff;
                    let undefined = if self.workspace == 0 { mask } else { 0 };
                    broadcast(warp, inst, *to, half, mask, (undefined, NO_DRIVER));
                    warp.flow.pc += 1;
                }
                InstructionKind::Clock { to, high } => {
                    let time = self.statistics.warp_instructions >> if *high { 32 } else { 0 };
                    broadcast(warp, inst, *to, time, mask, (0, ""));
                    warp.flow.pc += 1;
                }
                InstructionKind::Fence { is_of_block } => {
                    if CHECKED && mask != 0 {
                        self.fence(*is_of_block);
                    }
                    self.count_fence(warp, *is_of_block);
                    warp.flow.pc += 1;
                }
                InstructionKind::Nothing => warp.flow.pc += 1,
            }
        }
    }

    /// Counts an instruction. Returns whether the block may execute it. If the block has reached
    /// its limit, reports that and stops the launch.
    #[inline(always)]
    fn spend(&mut self, warp: &Warp, inst: &Inst) -> bool {
        self.statistics.warp_instructions += 1;
        if self.statistics.warp_instructions - self.spent <= self.options.fuel {
            return true;
        }
        let fuel = self.options.fuel;
        self.report(warp, Check::FuelExhausted, inst.site, warp.flow.mask, || {
            format!("the block reached its limit of {fuel} warp instructions and was stopped")
        });
        self.stopped = true;
        false
    }

    /// Returns the active lanes that execute the instruction: those in which its guard holds.
    #[inline(always)]
    fn guarded<const CHECKED: bool>(&mut self, warp: &Warp, inst: &Inst) -> u32 {
        let active = warp.flow.mask;
        let Some(guard) = inst.guard else { return active };
        if CHECKED {
            self.require_defined(warp, inst, guard.id, active, "is guarded by a condition");
            self.warn_approximate(warp, inst, guard.id, active, "is guarded by a condition");
        }
        active & guard.holds(&warp.registers)
    }

    /// Computes registers from registers, and in which lanes the results are defined and exact.
    #[inline(always)]
    fn compute<const CHECKED: bool>(
        &self,
        warp: &mut Warp,
        inst: &Inst,
        body: &Body,
        follows: DefinednessRule,
        reason: &'static str,
        mask: u32,
    ) {
        let states = if CHECKED { defined_lanes(follows, inst, &warp.registers) } else { 0 };
        let undefined = body(&mut warp.registers, mask);
        if CHECKED {
            record_defined(&mut warp.registers, inst, mask, states & !undefined, (undefined, reason));
            let bounds = &self.program.code.bounds;
            if !bounds.is_empty() {
                approximate(&mut warp.registers, inst, mask, bounds.contains_key(&inst.site));
            }
        }
    }

    /// Loads in the lanes with a defined address. The other lanes of `mask` get 0.
    #[inline(always)]
    fn load_defined<const CHECKED: bool>(&mut self, warp: &mut Warp, inst: &Inst, access: &MemoryAccess, mask: u32) {
        let whole = mask;
        let mask = if CHECKED { self.with_address(warp, inst, access.base, mask) } else { mask };
        if mask != 0 {
            self.load::<CHECKED>(warp, inst, access, mask);
        }
        if CHECKED && mask != whole {
            clear(warp, access.values.iter().flatten(), whole & !mask);
        }
    }

    /// Starts the copies of the lanes with defined addresses.
    fn copy_defined<const CHECKED: bool>(
        &mut self,
        warp: &mut Warp,
        inst: &Inst,
        copy: &code::AsyncCopyAccess,
        mut mask: u32,
    ) {
        if CHECKED {
            mask = self.with_address(warp, inst, copy.to.base, mask);
            mask = self.with_address(warp, inst, copy.from.base, mask);
            if let Some((_, id)) = copy.read {
                self.require_defined(warp, inst, id, mask, "copies a number of bytes");
            }
        }
        self.copy::<CHECKED>(warp, inst, copy, mask);
    }

    /// Stores in the lanes with a defined address.
    #[inline(always)]
    fn store_defined<const CHECKED: bool>(&mut self, warp: &mut Warp, inst: &Inst, access: &MemoryAccess, mask: u32) {
        let mask = if CHECKED { self.with_address(warp, inst, access.base, mask) } else { mask };
        if mask == 0 {
            return;
        }
        if CHECKED {
            for data in access.values.iter().flatten() {
                self.require_defined(warp, inst, data.id, mask, "stores a value");
            }
        }
        self.polls = 0;
        self.changes += 1;
        self.store::<CHECKED>(warp, inst, access, mask);
    }

    /// Runs an atomic operation in the lanes with a defined address. The results of the other lanes
    /// of `mask` are 0. Returns whether the warp yields to other warps.
    #[inline(always)]
    fn update_defined<const CHECKED: bool>(
        &mut self,
        warp: &mut Warp,
        inst: &Inst,
        atomic: &AtomicAccess,
        mask: u32,
    ) -> bool {
        let whole = mask;
        let mask = if CHECKED { self.with_address(warp, inst, atomic.access.base, mask) } else { mask };
        if CHECKED && mask != whole {
            clear(warp, atomic.result.iter(), whole & !mask);
        }
        if mask == 0 {
            return false;
        }
        if CHECKED {
            for data in &atomic.operands {
                self.require_defined(warp, inst, data.id, mask, "has an operand");
            }
        }
        if atomic.of_system {
            // The result may replace the address.
            self.count_host_poll(warp, &atomic.access, mask);
        }
        let changed = self.atomic::<CHECKED>(warp, inst, atomic, mask);
        self.yields_after_atomic(warp, inst, mask, changed)
    }

    /// Counts a poll if a lane polls memory that the host may access. The host may then end the
    /// waits of all warps.
    #[inline(always)]
    fn count_host_poll(&mut self, warp: &mut Warp, access: &MemoryAccess, mask: u32) {
        if self.has_host_memory && self.is_of_host(warp, access, mask) {
            warp.host_polls = warp.host_polls.saturating_add(1);
            self.polls = 0;
        }
    }

    /// Returns whether a lane accesses memory that the host may access.
    fn is_of_host(&self, warp: &Warp, access: &MemoryAccess, mask: u32) -> bool {
        let LaunchMemory { buffers, lookup, .. } = &self.memory;
        let addresses = access.addresses(&warp.registers);
        lanes(mask).any(|lane| buffers.get(lookup.index(buffers, addresses[lane])).is_some_and(|b| b.of_host))
    }

    /// Counts a fence: the weak loads after it see what other blocks and the host have stored.
    #[inline(always)]
    fn count_fence(&mut self, warp: &mut Warp, is_of_block: bool) {
        if !is_of_block {
            warp.strong_loads = warp.strong_loads.saturating_add(1);
        }
        if std::mem::take(&mut warp.has_read_host) {
            warp.host_polls = warp.host_polls.saturating_add(1);
            self.polls = 0;
        }
    }

    /// Branches to `target` in the lanes of `mask`.
    #[inline(always)]
    fn branch(&self, warp: &mut Warp, target: u32, mask: u32) {
        let (next, active) = (warp.flow.pc + 1, warp.flow.mask);
        let structure = &self.program.code.structure;
        if mask == active {
            warp.flow.jump(structure, target);
        } else if mask == 0 {
            warp.flow.pc = next;
        } else {
            warp.flow.diverge(structure, &[(next, active & !mask), (target, mask)]);
        }
    }

    /// Counts an atomic operation. Returns whether the warp yields to other warps: at a point of
    /// the schedule, or where it polls. Reports a launch that polls forever.
    fn yields_after_atomic(&mut self, warp: &mut Warp, inst: &Inst, mask: u32, changed: bool) -> bool {
        if changed {
            (warp.idle, self.polls) = (0, 0);
            self.changes += 1;
        } else {
            warp.idle = warp.idle.saturating_add(1);
            self.polls += 1;
        }
        if self.polls >= POLLS {
            self.report(warp, Check::FuelExhausted, inst.site, mask, || {
                let waits = "no thread has changed memory during the last";
                format!("a deadlock: this operation polls, but {waits} {POLLS} atomic operations of the launch")
            });
            self.stopped = true;
        }
        warp.idle <= MAX_SPIN_ATOMICS && self.points.pass() || self.interleaved && warp.idle > self.points.patience
    }

    fn branch_indexed(&mut self, warp: &mut Warp, inst: &Inst, index: RegisterPlace, targets: &[u32], mask: u32) {
        let (active, pc) = (warp.flow.mask, warp.flow.pc);
        let structure = &self.program.code.structure;
        let mut sides: SmallVec<[(u32, u32); 4]> = SmallVec::new();
        let mut add = |pc: u32, lanes: u32| match sides.iter_mut().find(|(to, _)| *to == pc) {
            Some((_, mask)) => *mask |= lanes,
            None => sides.push((pc, lanes)),
        };
        if active & !mask != 0 {
            add(pc + 1, active & !mask);
        }
        let mut beyond = 0;
        for lane in lanes(mask) {
            match targets.get(warp.registers.get(index, lane) as usize) {
                Some(target) => add(*target, 1 << lane),
                None => {
                    beyond |= 1 << lane;
                    add(pc + 1, 1 << lane);
                }
            }
        }
        self.report(warp, Check::OutOfBounds, inst.site, beyond, || {
            format!("branches by an index that is not below {}, the number of its targets", targets.len())
        });
        match sides[..] {
            [(to, _)] => warp.flow.jump(structure, to),
            _ => warp.flow.diverge(structure, &sides),
        }
    }

    /// Returns the lanes of `mask` that execute the instruction now. Of their members, all have
    /// arrived or can no longer arrive.
    ///
    /// The other lanes of `mask` wait. If all lanes wait, the result is `None`, and lanes outside
    /// of `mask` run first.
    fn arrived_lanes<const CHECKED: bool>(
        &mut self,
        warp: &mut Warp,
        inst: &Inst,
        members: Option<(RegisterPlace, StateId)>,
        mask: u32,
    ) -> Option<u32> {
        let Some((place, id)) = members else { return Some(mask) };
        let Some(first) = lanes(mask).next() else { return Some(mask) };
        if CHECKED {
            self.require_defined(warp, inst, id, mask, "has a mask of members");
        }
        let named: [u32; LANES] = std::array::from_fn(|lane| warp.registers.get(place, lane) as u32);
        let live = warp.flow.live;
        if named[first] & live == mask && lanes(mask).all(|lane| named[lane] == named[first]) {
            return Some(mask);
        }
        let those = |mask: u32, holds: &dyn Fn(usize) -> bool| {
            lanes(mask).filter(|lane| holds(*lane)).fold(0, |all, lane| all | 1 << lane)
        };
        let may_arrive = warp.flow.may_arrive() & !mask;
        let mut waiting = those(mask, &|lane| named[lane] & may_arrive != 0);
        let mut before = 0;
        while waiting != before {
            before = waiting;
            waiting |= those(mask, &|lane| named[lane] & before != 0);
        }
        if waiting != 0 {
            // Lanes that the guard excludes wait too, so that all lanes continue together.
            let all = waiting == mask;
            warp.flow.wait(&self.program.code.structure, if all { warp.flow.mask } else { waiting });
            if all {
                return None;
            }
        }
        let now = mask & !waiting;
        if CHECKED {
            let strange = those(now, &|lane| {
                let other = those(now & named[lane], &|member| named[member] != named[lane]);
                named[lane] >> lane & 1 == 0 || named[lane] & live & !now != 0 || other != 0
            });
            if strange != 0 {
                let first = strange.trailing_zeros() as usize;
                let members = named[first];
                let message = || {
                    let others = those(now & members, &|member| named[member] != members);
                    let others =
                        if others == 0 { String::new() } else { format!("; lanes {others:#010x} of them name others") };
                    format!(
                        "is executed by lanes {now:#010x} together; its members are {members:#010x} in lane {first}, and of \
                         these {:#010x} have not ended{others}",
                        members & live
                    )
                };
                self.report(warp, Check::DivergentWarp, inst.site, strange, message);
            }
        }
        Some(now)
    }

    fn barrier<const CHECKED: bool>(&mut self, warp: &mut Warp, inst: &Inst, barrier: &Barrier, mask: u32) {
        if mask == 0 {
            warp.flow.pc += 1;
            return;
        }
        if warp.flow.may_arrive() & !mask != 0 {
            let active = warp.flow.mask;
            return warp.flow.wait(&self.program.code.structure, active);
        }
        warp.flow.pc += 1;
        let first = mask.trailing_zeros() as usize;
        let (live, site) = (warp.live(), inst.site);
        let number = warp.registers.get(barrier.number.0, first) as u32;
        let threads = barrier.threads.map(|(place, _)| warp.registers.get(place, first) as u32);
        if CHECKED {
            for (_, id) in [Some(barrier.number), barrier.threads].into_iter().flatten() {
                self.require_defined(warp, inst, id, mask, "has an operand");
            }
            if let Some((_, condition, _)) = barrier.reduction {
                self.require_defined(warp, inst, condition.id, mask, "reduces a predicate");
            }
        }
        if mask != live {
            self.report(warp, Check::DivergentBarrier, site, live & !mask, || {
                format!("is reached by lanes {mask:#010x} of a warp of which {live:#010x} have not ended")
            });
            return;
        }
        if number as usize >= BARRIERS || threads.is_some_and(|n| n == 0 || n % 32 != 0) {
            self.report(warp, Check::DivergentBarrier, site, mask, || match threads {
                Some(n) if number < 16 => format!("is for {n} threads, no multiple of 32"),
                _ => format!("is barrier {number}; there are 16"),
            });
            return;
        }
        let state = &mut self.barriers[number as usize];
        let first_here = state.arrived == 0;
        let before = std::mem::replace(&mut state.threads, threads);
        state.arrived += 32;
        // Arrivals that do not wait can complete a barrier after several rounds of a loop.
        self.changes += u64::from(barrier.arrive);
        if let Some((_, condition, _)) = barrier.reduction {
            let holds = condition.holds(&warp.registers) & mask;
            state.counts.0 += holds.count_ones();
            state.counts.1 += mask.count_ones();
        }
        if !first_here && before != threads {
            self.report(warp, Check::DivergentBarrier, site, mask, || {
                let say = |n: Option<u32>| n.map_or("all".to_string(), |n| n.to_string());
                format!("is for {} threads, and for {} where another warp came to it", say(threads), say(before))
            });
        }
        if !barrier.arrive {
            let reduction = barrier.reduction.map(|(reduction, _, place)| (reduction, place));
            warp.waits = Some(BarrierArrival { number: number as usize, site, mask, reduction });
            record_defined(&mut warp.registers, inst, mask, mask, (0, ""));
        }
    }

    /// Returns the lanes with a defined address; reports the other lanes, which do nothing.
    fn with_address(&mut self, warp: &Warp, inst: &Inst, base: Option<(RegisterPlace, StateId)>, mask: u32) -> u32 {
        let Some((_, id)) = base else { return mask };
        self.require_defined(warp, inst, id, mask, "has an address");
        self.warn_approximate(warp, inst, id, mask, "has an address");
        mask & warp.registers.defined[id as usize]
    }

    /// Reports lanes in which the instruction uses an undefined value.
    #[inline(always)]
    pub fn require_defined(&mut self, warp: &Warp, inst: &Inst, id: StateId, mask: u32, what: &str) {
        let undefined = mask & !warp.registers.defined[id as usize];
        if undefined != 0 {
            self.undefined(warp, inst, id, undefined, what);
        }
    }

    /// Warns about lanes in which a condition or an address depends on an approximation.
    #[inline(always)]
    pub fn warn_approximate(&mut self, warp: &Warp, inst: &Inst, id: StateId, mask: u32, what: &str) {
        let lanes = mask & warp.registers.approximate[id as usize];
        if lanes == 0 {
            return;
        }
        let code = &self.program.code;
        let origin = warp.registers.approximations[id as usize];
        let (site, bound) = (&code.sites[origin as usize], code.bounds.get(&origin).copied().unwrap_or_default());
        let line = site.line.map_or(String::new(), |n| format!(" in line {n}"));
        let message = || format!("{what} that depends on an approximation, `{}`{line} (within {bound})", site.text);
        self.report(warp, Check::Approximate, inst.site, lanes, message);
    }

    #[cold]
    fn undefined(&mut self, warp: &Warp, inst: &Inst, id: StateId, mask: u32, what: &str) {
        let because = match warp.registers.causes[id as usize] {
            UndefinedCause::Unwritten => "a register that was never written".to_string(),
            UndefinedCause::Instruction { site, why } => {
                let site = &self.program.code.sites[site as usize];
                let line = site.line.map_or(String::new(), |n| format!(" in line {n}"));
                format!("`{}`{line}: {why}", site.text)
            }
        };
        self.report(warp, Check::UndefinedValue, inst.site, mask, || {
            format!("{what} that is undefined because of {because}")
        });
    }
}

/// Marks results as approximate if an operand or the instruction is.
fn approximate(registers: &mut Registers, inst: &Inst, mask: u32, bound: bool) {
    let from = inst.reads.iter().find(|id| registers.approximate[**id as usize] & mask != 0);
    let (lanes, site) = match (bound, from) {
        (true, _) => (mask, inst.site),
        (false, Some(id)) => (
            inst.reads.iter().fold(0, |all, id| all | registers.approximate[*id as usize]),
            registers.approximations[*id as usize],
        ),
        (false, None) => (0, 0),
    };
    for id in &inst.writes {
        let state = &mut registers.approximate[*id as usize];
        *state = *state & !mask | lanes & mask;
        if lanes & mask != 0 {
            registers.approximations[*id as usize] = site;
        }
    }
}

/// Sets a register to one value in the lanes of `mask`. In the lanes `undefined`, the value is
/// marked as undefined, with the reason `why`.
fn broadcast(
    warp: &mut Warp,
    inst: &Inst,
    to: RegisterPlace,
    value: u64,
    mask: u32,
    (undefined, why): (u32, &'static str),
) {
    for lane in lanes(mask) {
        warp.registers.set(to, lane, value);
    }
    record_defined(&mut warp.registers, inst, mask, mask & !undefined, (undefined, why));
}

/// Sets values that could not be loaded to 0.
pub fn clear<'a>(warp: &mut Warp, to: impl Iterator<Item = &'a Data>, mask: u32) {
    for data in to {
        for lane in lanes(mask) {
            warp.registers.set(data.place, lane, 0);
        }
        warp.registers.defined[data.id as usize] |= mask;
    }
}

/// Returns the lanes in which the result is defined, judged by the operands alone.
#[inline(always)]
fn defined_lanes(follows: DefinednessRule, inst: &Inst, registers: &Registers) -> u32 {
    let defined = |id: StateId| registers.defined[id as usize];
    let all = inst.reads.iter().fold(u32::MAX, |all, id| all & defined(*id));
    if all == u32::MAX {
        return all;
    }
    match follows {
        DefinednessRule::All => all,
        DefinednessRule::Always => u32::MAX,
        DefinednessRule::Chosen { yes, no, condition, predicate } => {
            let chosen = registers.predicates[predicate as usize];
            defined(condition) & (defined(yes) & chosen | defined(no) & !chosen)
        }
        DefinednessRule::Decided { a, b, by } => {
            let of = |(id, predicate): (StateId, u32)| {
                let value = registers.predicates[predicate as usize];
                (defined(id), defined(id) & if by { value } else { !value })
            };
            let ((a, a_decides), (b, b_decides)) = (of(a), of(b));
            a & b | a_decides | b_decides
        }
    }
}

/// Records in which lanes the results are defined, and the reason for the other lanes.
#[inline(always)]
pub fn record_defined(registers: &mut Registers, inst: &Inst, mask: u32, defined: u32, own: (u32, &'static str)) {
    for id in &inst.writes {
        let state = &mut registers.defined[*id as usize];
        *state = *state & !mask | defined & mask;
    }
    if defined & mask != mask {
        record_cause(registers, inst, own);
    }
}

/// Records why the results of an instruction are undefined.
#[cold]
fn record_cause(registers: &mut Registers, inst: &Inst, (undefined, why): (u32, &'static str)) {
    let inherited = inst.reads.iter().find(|id| registers.defined[**id as usize] != u32::MAX);
    let cause = match inherited {
        Some(id) if undefined == 0 => registers.causes[*id as usize],
        _ => UndefinedCause::Instruction { site: inst.site, why },
    };
    for id in &inst.writes {
        registers.causes[*id as usize] = cause;
    }
}

impl Condition {
    /// Returns the lanes of `mask` in which the condition holds.
    pub fn lanes_of(self, registers: &Registers, mask: u32) -> u32 {
        self.holds(registers) & mask
    }
}
