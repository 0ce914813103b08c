//! Runs a warp until it ends or waits at a barrier.

use crate::check::Check;
use crate::code::bits::approximate;
use crate::code::frame::{FULL, FrameRegister, LANES, LaneWord, lanes_of};
use crate::code::{Inst, Local, Pc};
use crate::machine::cooperation::{matching, reduce};
use crate::machine::livelock::{MAX_SPIN_ATOMICS, Search};
use crate::machine::order::FenceEpochs;
use crate::machine::shadow::Life;
use crate::machine::{ACCESSES, ALL, Machine, OBSERVED_TIER, Warp};
use crate::report::Description;
use kernel_dsl_compiler::ir::{Binary, FenceScope};

impl Machine<'_, '_> {
    /// Runs `warp` from its next instruction to a barrier or its end, or until it yields to other
    /// warps. A warp yields at a point of the schedule, or in a loop that waits for other warps.
    pub fn warp<const TIER: u8>(&mut self, warp: &mut Warp) {
        #[cfg(target_arch = "x86_64")]
        if self.simd.has_avx2() {
            // A function with these features, into which the loops over lanes are inlined.
            #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
            fn fast<const TIER: u8>(machine: &mut Machine<'_, '_>, warp: &mut Warp) {
                machine.run_until_wait::<TIER>(warp);
            }
            // SAFETY: `has_avx2` is true only if the processor supports all these features.
            return unsafe { fast::<TIER>(self, warp) };
        }
        self.run_until_wait::<TIER>(warp);
    }

    /// Runs `warp` as [`warp`](Machine::warp) describes. Each kind of instruction has one arm, in
    /// one function: the program counter and the mask stay in registers, and an instruction costs
    /// one jump.
    #[inline(always)]
    fn run_until_wait<const TIER: u8>(&mut self, warp: &mut Warp) {
        let program = self.program;
        let code = &program.code;
        let simd = self.simd;
        let mut pc = warp.pc;
        let mut mask = warp.mask;
        let mut lanes = u64::from(mask.count_ones());
        let (mut warp_insts, mut thread_insts) = (0, 0);
        macro_rules! activate {
            ($mask:expr) => {{
                let active = $mask;
                if active != mask {
                    mask = active;
                    lanes = u64::from(mask.count_ones());
                }
            }};
        }
        // The search for infinite loops runs at the end of iterations only.
        let mut search = Search::of_instructions(warp.cycle.take().is_some());
        let fuel = self.fuel_left();
        // A warp that has polled before a barrier yields at the end of the iteration behind it.
        let polls = warp.idle > MAX_SPIN_ATOMICS && warp.idle >= self.max_idle_atomics();
        let mut alarm = if polls { 0 } else { search.next.min(fuel).min(self.options.instructions_to_clock()) };
        macro_rules! end_iteration {
            ($site:expr) => {
                // A store of the previous iteration is not simultaneous with a store of this
                // iteration.
                if TIER >= ALL {
                    self.tick();
                }
                if warp_insts > alarm || self.stopped {
                    (warp.pc, warp.mask) = (pc, mask);
                    match self.check_iteration(&mut search, $site, warp, warp_insts) {
                        Some(next) => alarm = next,
                        None => break,
                    }
                }
            };
        }
        // Instructions for all lanes: the parts of a warp wait for each other and continue as one
        // warp.
        macro_rules! join_parts {
            ($site:expr) => {
                if warp.is_split {
                    warp.rejoins_at = Some($site);
                    pc = $site;
                    break;
                }
            };
        }
        // An observer receives every instruction, so an observed run uses the code without fusion.
        let insts = if TIER >= OBSERVED_TIER { &code.insts } else { &code.quick };
        while let Some(inst) = insts.get(pc as usize) {
            let site = pc;
            let inst = match *inst {
                Inst::Fused(i) => {
                    let fused = &code.fused[i as usize];
                    // With races checked, shadow memory needs an update in each iteration.
                    if TIER < ALL
                        && let Some(uniform_loop) = fused.uniform_loop
                    {
                        let fuel =
                            self.fuel_left().saturating_sub(warp_insts).min(self.options.instructions_to_clock());
                        let run = self.run_iterations::<TIER>(warp, mask, fused, uniform_loop, fuel);
                        warp_insts += run;
                        thread_insts += run * lanes;
                    }
                    if self.fused::<TIER>(site, warp, mask, fused) {
                        pc += fused.length;
                        warp_insts += u64::from(fused.length);
                        thread_insts += u64::from(fused.length) * lanes;
                        continue;
                    }
                    &code.insts[site as usize]
                }
                _ => inst,
            };
            pc += 1;
            warp_insts += 1;
            thread_insts += lanes;
            if TIER >= OBSERVED_TIER {
                self.notify_before(site, warp, mask);
            }
            match *inst {
                Inst::Unary { op, ty, to, a } => simd.unary(&mut warp.rows, op, ty, to, a),
                Inst::CheckedUnary { op, ty, to, a } => {
                    if TIER >= ACCESSES {
                        self.check_negation(site, warp, mask, ty, a);
                    }
                    simd.unary(&mut warp.rows, op, ty, to, a);
                }
                Inst::Binary { op, ty, to, a, b } => simd.binary(&mut warp.rows, op, ty, to, a, b),
                Inst::CheckedBinary { op, ty, to, a, b } => {
                    if TIER >= ACCESSES {
                        self.check_arithmetic(site, warp, mask, op, ty, a, b);
                    }
                    simd.binary(&mut warp.rows, op, ty, to, a, b);
                }
                Inst::MulAdd { ty, to, a, b, c } => simd.mul_add(&mut warp.rows, ty, to, a, b, c),
                Inst::Compare { op, ty, to, a, b } => simd.compare(&mut warp.rows, op, ty, to, a, b),
                Inst::Select { wide, to, condition, yes, no } => {
                    simd.select(&mut warp.rows, wide, to, condition, yes, no);
                }
                Inst::Cast { from, into, to, a, lossy } => {
                    if TIER >= ACCESSES && lossy && self.options.notes {
                        self.note_lossy_cast(site, warp, mask, from, into, a);
                    }
                    simd.cast(&mut warp.rows, from, into, to, a);
                }
                Inst::Bitcast { to, a, .. } => to.copy(&mut warp.rows, a, FULL),
                Inst::Copy { to, from } => to.copy(&mut warp.rows, from, FULL),
                Inst::Move { to, from } => to.copy(&mut warp.rows, from, mask),
                Inst::Approximate { what, to, a } => approximate(&mut warp.rows, what, to, a),
                Inst::Bits(i) => code.operations[i as usize].run(&mut warp.rows, simd),
                Inst::Offset(i) => self.offset::<TIER>(site, warp, mask, &code.offsets[i as usize]),
                Inst::Load(i) => self.load::<TIER>(site, warp, mask, &code.accesses[i as usize]),
                Inst::Store(i) => {
                    let access = &code.accesses[i as usize];
                    if TIER >= ALL {
                        self.inspect_store(warp, mask, access);
                    }
                    self.store::<TIER>(site, warp, mask, access);
                }
                Inst::MarkUndef(i) => self.mark_undef::<TIER>(site, warp, mask, &code.accesses[i as usize]),
                Inst::CopyAsync(i) => self.copy_async::<TIER>(site, warp, mask, i),
                Inst::CopyCommit { to } => self.copy_commit(warp, mask, to),
                Inst::CopyWait(landing) => self.copy_wait::<TIER>(site, warp, mask, landing),
                Inst::LifetimeStart { array, number } => {
                    let time = &mut warp.lifetime_starts[number as usize];
                    *time += 1;
                    warp.lives[array as usize] = Life::new(number, *time);
                }
                Inst::Dynamic { array, to } => {
                    let start = self.setting.dynamic[array as usize];
                    FrameRegister { row: to, wide: false }.fill(&mut warp.rows, start.into());
                }
                Inst::Atomic(i) => {
                    self.atomic::<TIER>(site, warp, mask, &code.atomics[i as usize]);
                    if warp.idle >= self.max_idle_atomics() {
                        alarm = 0;
                    }
                    if warp.idle <= MAX_SPIN_ATOMICS && self.points.pass() {
                        break;
                    }
                }
                Inst::ReadLocal { local, to } => {
                    self.read_local::<TIER>(site, warp, mask, &code.locals[local as usize], to);
                }
                Inst::WriteLocal { local, from } => {
                    let local = &code.locals[local as usize];
                    local.first.copy(&mut warp.rows, from, mask);
                    if TIER >= ACCESSES {
                        warp.written[local.element as usize] |= mask;
                    }
                }
                Inst::ReadElement { local, index, to } => {
                    self.read_element::<TIER>(site, warp, mask, local, index, to);
                }
                Inst::WriteElement { local, index, from } => {
                    self.write_element::<TIER>(site, warp, mask, local, index, from);
                }
                Inst::BlockSync | Inst::GridSync => {
                    join_parts!(site);
                    if TIER >= ACCESSES {
                        self.check_convergence(Check::DivergentBarrier, barrier_name(inst), site, warp, mask);
                        if matches!(inst, Inst::GridSync) {
                            self.check_ended_lanes(site, warp, mask);
                        }
                    }
                    warp.waits = Some(site);
                    break;
                }
                Inst::WarpSync => {
                    join_parts!(site);
                    if TIER >= ACCESSES {
                        self.check_convergence(Check::DivergentWarp, "`warp::sync()`", site, warp, mask);
                    }
                    if TIER >= ALL {
                        self.warp_barrier(warp);
                    }
                }
                Inst::Shuffle { mode, width, to, from, selector } => {
                    join_parts!(site);
                    if TIER >= ACCESSES {
                        self.check_convergence(Check::DivergentWarp, "a shuffle", site, warp, mask);
                    }
                    self.shuffle::<TIER>(site, warp, mask, mode, width.into(), [to, from], selector);
                }
                Inst::Vote { mode, to, value } => {
                    join_parts!(site);
                    self.vote::<TIER>(site, warp, mask, mode, to, value);
                }
                Inst::Fence(scope) => {
                    if TIER >= ALL {
                        self.fence(warp, mask, scope);
                    }
                    if self.points.pass() {
                        break;
                    }
                }
                Inst::Match { to, from } => {
                    join_parts!(site);
                    if TIER >= ACCESSES {
                        self.check_all_lanes("`warp::match_any`", site, warp, mask);
                    }
                    matching(warp, mask, to, from);
                }
                Inst::Reduce { op, ty, to, from } => {
                    join_parts!(site);
                    if TIER >= ACCESSES {
                        self.check_all_lanes("a reduction", site, warp, mask);
                    }
                    if !reduce(warp, mask, op, ty, to, from) && TIER >= ACCESSES {
                        self.sum_overflows(site, warp, mask, ty);
                    }
                }
                Inst::DbgValue(_) => {}
                Inst::Inline(i) => {
                    let count = self.statistics.warp_instructions + warp_insts;
                    self.inline::<TIER>(site, warp, mask, i, count);
                    if self.points.pass() {
                        break;
                    }
                }
                Inst::Panic(i) => self.record_panic(site, warp, mask, &code.panics[i as usize]),
                Inst::Log(i) => self.log(warp, mask, &code.logs[i as usize]),
                Inst::RecordViolation(i) => self.record_violation(warp, mask, &code.reports[i as usize]),
                Inst::If { slot, condition, otherwise } => {
                    let holds = simd.truth(&warp.rows, condition);
                    let slot = &mut warp.slots[slot as usize];
                    (slot.pending, slot.done) = (mask & !holds, 0);
                    activate!(mask & holds);
                    if mask == 0 {
                        pc = otherwise;
                    }
                }
                Inst::Else { slot, end } => {
                    let slot = &mut warp.slots[slot as usize];
                    slot.done |= mask;
                    activate!(std::mem::take(&mut slot.pending));
                    if mask == 0 {
                        pc = end;
                    }
                }
                Inst::EndIf { slot, exit } => {
                    let slot = warp.slots[slot as usize];
                    activate!(mask | slot.pending | slot.done);
                    if mask == 0 {
                        pc = exit;
                    }
                }
                Inst::Enter { slot } => warp.slots[slot as usize] = Default::default(),
                Inst::EnterFor { ty, slot, step } => {
                    warp.slots[slot as usize] = Default::default();
                    if TIER >= ACCESSES {
                        let bad = self.report_nonpositive_step(site, warp, mask, ty, step);
                        // Ends the loop for such a lane; otherwise it would never end.
                        warp.slots[slot as usize].done |= bad;
                        activate!(mask & !bad);
                    }
                }
                Inst::Test { ty, slot, index, limit, end } => {
                    let below = simd.less(&warp.rows, ty, index, limit);
                    warp.slots[slot as usize].done |= mask & !below;
                    activate!(mask & below);
                    if mask == 0 {
                        pc = end;
                    }
                }
                Inst::Step { ty, slot, index, step, limit, body } => {
                    let continued = std::mem::take(&mut warp.slots[slot as usize].pending);
                    activate!(mask | continued);
                    if TIER >= ACCESSES {
                        let bad = simd.overflows(&warp.rows, Binary::Add, ty, index, step) & mask;
                        if bad != 0 {
                            self.overflowing(site, warp, bad, Binary::Add, ty, index, step);
                            // Ends the loop for such a lane: its index has wrapped, so the loop
                            // might never end.
                            warp.slots[slot as usize].done |= bad;
                            activate!(mask & !bad);
                        }
                    }
                    let below = simd.advance(&mut warp.rows, ty, index, step, limit);
                    warp.slots[slot as usize].done |= mask & !below;
                    activate!(mask & below);
                    if mask != 0 {
                        pc = body;
                    }
                    end_iteration!(site);
                }
                Inst::StepUniform { ty, slot, index, step, limit, body } => {
                    activate!(mask | std::mem::take(&mut warp.slots[slot as usize].pending));
                    if mask != 0 {
                        let at =
                            |row: u32| u32::lanes(&warp.rows, row as usize)[mask.trailing_zeros() as usize % LANES];
                        let (next, over) = at(index).overflowing_add(at(step));
                        if over && TIER >= ACCESSES {
                            self.overflowing(site, warp, mask, Binary::Add, ty, index, step);
                        }
                        // From a wrapped index on, the loop might never end.
                        let below = next < at(limit) && !(over && TIER >= ACCESSES);
                        *u32::lanes_mut(&mut warp.rows, index as usize) = [next; LANES];
                        if below {
                            pc = body;
                        } else {
                            warp.slots[slot as usize].done |= mask;
                            activate!(0);
                        }
                    }
                    end_iteration!(site);
                }
                Inst::Again { slot, body } => {
                    activate!(mask | std::mem::take(&mut warp.slots[slot as usize].pending));
                    if mask != 0 {
                        pc = body;
                    }
                    end_iteration!(site);
                }
                Inst::Leave { slot, exit } => {
                    activate!(mask | warp.slots[slot as usize].done);
                    if mask == 0 {
                        pc = exit;
                    }
                }
                Inst::Break { slot } => {
                    warp.slots[slot as usize].done |= mask;
                    activate!(0);
                }
                Inst::Continue { slot } => {
                    warp.slots[slot as usize].pending |= mask;
                    activate!(0);
                }
                Inst::Fused(_) => unreachable!("a fused sequence has run, or its first instruction has replaced it"),
                Inst::Return => {
                    warp.live &= !mask;
                    activate!(0);
                }
                Inst::Exit => {
                    warp.ended = true;
                    break;
                }
            }
            if TIER >= OBSERVED_TIER {
                self.notify_after(site, warp, mask, inst);
            }
        }
        (warp.pc, warp.mask) = (pc, mask);
        self.statistics.warp_instructions += warp_insts;
        self.statistics.thread_instructions += thread_insts;
    }

    /// Reports that the block or the launch has reached its limit or was interrupted, and stops the
    /// run.
    #[cold]
    pub fn exhausted(&mut self, site: Pc, warp: u32, mask: u32) {
        let message = match self.options.deadline {
            _ if self.options.is_interrupted() => "the launch was interrupted".to_string(),
            Some(deadline) if deadline.is_over() => {
                format!("the launch reached its time limit of {:?} and was stopped", deadline.limit)
            }
            _ => format!("the block reached its limit of {} warp instructions and was stopped", self.options.fuel),
        };
        // The loop may just have ended for all lanes: then the report names the first lane.
        self.report(Check::FuelExhausted, site, warp, if mask == 0 { 1 } else { mask }, |_, _| {
            Description::new(message)
        });
        self.stopped = true;
    }

    #[inline(always)]
    fn read_local<const TIER: u8>(&mut self, site: Pc, warp: &mut Warp, mask: u32, local: &Local, to: FrameRegister) {
        to.copy(&mut warp.rows, local.first, FULL);
        if TIER >= ACCESSES {
            let missing = mask & !warp.written[local.element as usize];
            if missing != 0 {
                self.report_unwritten(site, warp.index, missing, local, |_| 0);
                let fill = self.options.filled(local.scalar());
                for lane in lanes_of(missing) {
                    to.set(&mut warp.rows, lane, fill);
                }
            }
        }
    }

    /// Orders the accesses of a warp before and after a barrier of its lanes.
    fn warp_barrier(&mut self, warp: &mut Warp) {
        self.tick();
        warp.barrier_epoch = self.epoch;
        self.order.warp_barrier(warp.index);
    }

    fn fence(&mut self, warp: &Warp, mask: u32, scope: FenceScope) {
        let at = FenceEpochs { block: self.barrier_epoch, warp: warp.barrier_epoch, now: self.epoch };
        self.order.fence(warp.index, mask, scope, at);
        // A new epoch separates the warp's later accesses from those that the fence releases.
        self.tick();
    }
}

/// Returns the name of a barrier in messages.
pub fn barrier_name(barrier: &Inst) -> &'static str {
    if matches!(barrier, Inst::GridSync) { "`grid::sync()`" } else { "`block::sync()`" }
}
