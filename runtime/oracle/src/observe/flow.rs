//! The flow of labels through a launch: each register and each scalar in memory has an optional
//! label.
//!
//! [`ShadowFlow`] walks the instructions of a run and moves the labels as the machine moves the
//! values: through copies, variables, selections, shuffles and memory. A [`Propagation`] defines
//! the label of a computed value, and reports the labels that reach a place where they matter.
//! Origins of NaNs ([`provenance`](super::provenance)), undefined values
//! ([`poison`](super::poison)) and canceled digits ([`precision`](super::precision)) are three
//! propagations.
//!
//! Registers of inactive lanes keep old labels. No instruction reads such a register: a value is
//! computed in all lanes that use it.

use crate::Program;
use crate::check::Check;
use crate::code::frame::{FULL, FrameRegister, LANES, LaneWord, lanes_of};
use crate::code::{AccessOp, AtomicAccess, Inst, Pc, RowIndex};
use crate::machine::address::TargetLanes;
use crate::machine::cooperation::sources;
use crate::machine::describe::DescribedTarget;
use crate::machine::observer::Observer;
use crate::machine::{LaunchConstants, Machine, Warp};
use crate::report::{Description, Findings, Object, Produced, Report, Thread};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir;
use std::collections::HashMap;

/// The buffer of a scalar in memory, or `None` for the block's shared memory, and the offset of its
/// first byte.
type ScalarLocation = (Option<usize>, u64);

/// The labels of all values of a running launch.
pub struct ValueLabels<L> {
    /// The label of each value, by warp, row and lane.
    frames: Vec<Vec<[Option<L>; LANES]>>,
    /// The label of each labeled scalar in memory.
    memory: HashMap<ScalarLocation, L>,
}

impl<L: Copy> ValueLabels<L> {
    /// Returns the label of a lane of the register at `row`.
    pub fn get(&self, warp: &Warp, row: RowIndex, lane: usize) -> Option<L> {
        self.frames[warp.index as usize][row as usize][lane]
    }

    /// Sets the label of a lane of the register at `row`.
    pub fn set(&mut self, warp: &Warp, row: RowIndex, lane: usize, label: Option<L>) {
        self.frames[warp.index as usize][row as usize][lane] = label;
    }

    fn store(&mut self, location: ScalarLocation, label: Option<L>) {
        match label {
            Some(label) => _ = self.memory.insert(location, label),
            None if self.memory.is_empty() => {}
            None => _ = self.memory.remove(&location),
        }
    }
}

/// An instruction of a warp.
#[derive(Clone, Copy)]
pub struct WarpStep<'s> {
    pub site: Pc,
    pub inst: &'s Inst,
    pub warp: &'s Warp,
    /// The active lanes.
    pub mask: u32,
}

impl<'s> WarpStep<'s> {
    /// Returns lane `index` of the instruction.
    pub fn lane(self, machine: &'s Machine<'s, 's>, index: usize) -> ObservedLane<'s> {
        let WarpStep { site, inst, warp, .. } = self;
        ObservedLane { machine, site, inst, warp, index }
    }

    /// Returns the active lanes among `mask`.
    pub fn lanes(self, machine: &'s Machine<'s, 's>, mask: u32) -> impl Iterator<Item = ObservedLane<'s>> {
        lanes_of(mask).map(move |index| self.lane(machine, index))
    }
}

/// A lane of an instruction.
#[derive(Clone, Copy)]
pub struct ObservedLane<'s> {
    pub machine: &'s Machine<'s, 's>,
    pub site: Pc,
    pub inst: &'s Inst,
    pub warp: &'s Warp,
    pub index: usize,
}

impl ObservedLane<'_> {
    /// Returns the lane's thread.
    pub fn thread(self) -> Thread {
        self.machine.thread(self.warp.index, self.index)
    }

    /// Returns the bits of a register.
    pub fn bits(self, of: FrameRegister) -> u64 {
        of.get(&self.warp.rows, self.index)
    }
}

/// The value of a register in one lane.
#[derive(Clone, Copy, Debug)]
pub struct LabeledValue<L> {
    pub ty: Scalar,
    pub row: RowIndex,
    pub bits: u64,
    pub label: Option<L>,
}

/// The lanes of a memory access that go to one target.
#[derive(Clone, Copy)]
pub struct AccessedLanes<'a> {
    pub access: &'a AccessOp,
    pub part: &'a TargetLanes,
}

impl AccessedLanes<'_> {
    /// Returns the accessed object in a lane.
    pub fn object(self, lane: ObservedLane<'_>) -> Object {
        lane.machine.object(self.part.target, self.part.offset[lane.index], self.access)
    }

    /// Returns whether the target is a buffer.
    pub fn is_buffer(self) -> bool {
        matches!(self.part.target, DescribedTarget::Buffer(_))
    }
}

/// The rules by which labels arise, spread and are reported.
pub trait Propagation {
    /// The label of a value.
    type Label: Copy;

    /// Inspects an instruction before it runs.
    fn before(&mut self, _shadow: &mut ValueLabels<Self::Label>, _machine: &mut Machine<'_, '_>, _step: WarpStep<'_>) {}

    /// Returns the label of `result`, which the lane has computed from `operands`.
    fn computed(
        &mut self,
        lane: ObservedLane<'_>,
        result: LabeledValue<Self::Label>,
        operands: &[LabeledValue<Self::Label>],
    ) -> Option<Self::Label>;

    /// Returns the label of a copy of register `from`.
    fn copied(
        &mut self,
        _lane: ObservedLane<'_>,
        _from: FrameRegister,
        label: Option<Self::Label>,
    ) -> Option<Self::Label> {
        label
    }

    /// Returns the label of a selected value. `condition` is the label of the condition, and
    /// `label` the selected value's own.
    fn selected(&mut self, _condition: Option<Self::Label>, label: Option<Self::Label>) -> Option<Self::Label> {
        label
    }

    /// Returns the label of a value that was received from another lane; `None` in `from` if that
    /// lane does not execute the shuffle.
    fn shuffled(
        &mut self,
        _lane: ObservedLane<'_>,
        _selector: Option<Self::Label>,
        from: Option<Option<Self::Label>>,
    ) -> Option<Self::Label> {
        from.flatten()
    }

    /// Returns the label of the result of an operation on all lanes: `any` is the first label among
    /// the operands, and `missing` is whether a required lane does not execute the operation.
    fn gathered(&mut self, _lane: ObservedLane<'_>, _any: Option<Self::Label>, _missing: bool) -> Option<Self::Label> {
        None
    }

    /// Returns the label in memory of `value`, which the lane has stored.
    fn stored(
        &mut self,
        lane: ObservedLane<'_>,
        to: AccessedLanes<'_>,
        value: LabeledValue<Self::Label>,
    ) -> Option<Self::Label>;

    /// Returns the labels after an atomic operation: in memory, and of the result. The memory had
    /// the label `held`.
    fn atomic(
        &mut self,
        _lane: ObservedLane<'_>,
        _to: AccessedLanes<'_>,
        held: Option<Self::Label>,
        _operands: &[LabeledValue<Self::Label>],
    ) -> [Option<Self::Label>; 2] {
        [held, None]
    }

    /// Returns the findings.
    fn into_report(self) -> Report;
}

/// The labels of a suspended block: the labels of registers, and the labels in shared memory by
/// offset.
type SuspendedLabels<L> = (Vec<Vec<[Option<L>; LANES]>>, Vec<(u64, L)>);

/// An observer that propagates labels.
pub struct ShadowFlow<P: Propagation> {
    shadow: ValueLabels<P::Label>,
    rules: P,
    /// The running block, where blocks run interleaved.
    running: Option<[u32; 3]>,
    resting: HashMap<[u32; 3], SuspendedLabels<P::Label>>,
}

impl<P: Propagation> Observer for ShadowFlow<P> {
    /// Drops the labels in shared memory.
    fn block(&mut self) {
        self.shadow.memory.retain(|(buffer, _), _| buffer.is_some());
    }

    fn switch(&mut self, block: [u32; 3]) {
        let Some(before) = self.running.replace(block).filter(|before| *before != block) else { return };
        let ValueLabels { frames, memory } = &mut self.shadow;
        let unlabeled = || frames.iter().map(|frame| vec![[None; LANES]; frame.len()]).collect();
        let (next, shared) = self.resting.remove(&block).unwrap_or_else(|| (unlabeled(), Vec::new()));
        let labels = memory.iter().filter(|((buffer, _), _)| buffer.is_none());
        let left = labels.map(|((_, offset), label)| (*offset, *label)).collect();
        memory.retain(|(buffer, _), _| buffer.is_some());
        memory.extend(shared.into_iter().map(|(offset, label)| ((None, offset), label)));
        self.resting.insert(before, (std::mem::replace(frames, next), left));
    }

    fn before(&mut self, machine: &mut Machine<'_, '_>, site: Pc, warp: &Warp, mask: u32) {
        let inst = &machine.program.code.insts[site as usize];
        self.rules.before(&mut self.shadow, machine, WarpStep { site, inst, warp, mask });
    }

    fn after(&mut self, machine: &mut Machine<'_, '_>, site: Pc, warp: &Warp, mask: u32, inst: &Inst) {
        self.follow(machine, WarpStep { site, inst, warp, mask });
    }
}

impl<P: Propagation> ShadowFlow<P> {
    /// Returns the observer of a launch that is about to run: no value has a label.
    pub fn new(program: &Program, setting: &LaunchConstants, rules: P) -> ShadowFlow<P> {
        let frame = vec![[None; LANES]; program.code.rows as usize];
        let frames = vec![frame; setting.grid.warp_count() as usize];
        let shadow = ValueLabels { frames, memory: HashMap::new() };
        ShadowFlow { shadow, rules, running: None, resting: HashMap::new() }
    }

    /// Returns the findings.
    pub fn into_report(self) -> Report {
        self.rules.into_report()
    }

    /// Moves the labels as the instruction, which has just run, moved the values.
    fn follow(&mut self, machine: &mut Machine<'_, '_>, step: WarpStep<'_>) {
        let code = &machine.program.code;
        let (warp, mask) = (step.warp, step.mask);
        let local = |i: u32| &code.locals[i as usize];
        let indices = |row: RowIndex| u32::lanes(&warp.rows, row as usize);
        match *step.inst {
            Inst::Copy { to, from } | Inst::Move { to, from } => self.copy(machine, step, |_| Some((to, from))),
            Inst::ReadLocal { local: i, to } => self.copy(machine, step, |_| Some((to, local(i).first))),
            Inst::WriteLocal { local: i, from } => self.copy(machine, step, |_| Some((local(i).first, from))),
            Inst::ReadElement { local: i, index, to } => {
                self.copy(machine, step, |lane| Some((to, local(i).get(indices(index)[lane])?)));
            }
            Inst::WriteElement { local: i, index, from } => {
                self.copy(machine, step, |lane| Some((local(i).get(indices(index)[lane])?, from)));
            }
            Inst::Select { wide, to, condition, yes, no } => {
                let holds = machine.simd.truth(&warp.rows, condition);
                for lane in lanes_of(mask) {
                    let from = FrameRegister { row: if holds >> lane & 1 == 1 { yes } else { no }, wide };
                    let selected = self.copied(step.lane(machine, lane), from);
                    let label = self.rules.selected(self.shadow.get(warp, condition, lane), selected);
                    self.shadow.set(warp, to, lane, label);
                }
            }
            Inst::Shuffle { mode, width, to, from, selector } => {
                let sources = sources(mode, width.into(), indices(selector));
                for lane in lanes_of(mask) {
                    let source = sources[lane];
                    let label = (mask >> source & 1 == 1).then(|| self.copied(step.lane(machine, source), from));
                    let selector = self.shadow.get(warp, selector, lane);
                    let label = self.rules.shuffled(step.lane(machine, lane), selector, label);
                    self.shadow.set(warp, to.row, lane, label);
                }
            }
            Inst::Vote { to, value, .. } => self.gather(machine, step, to, value, warp.live & !mask != 0),
            Inst::Match { to, from } => self.gather(machine, step, to, from.row, mask != FULL),
            Inst::Reduce { to, from, .. } => self.gather(machine, step, to, from, mask != FULL),
            Inst::Load(i) => self.load(machine, step, &code.accesses[i as usize]),
            Inst::Store(i) => self.store(machine, step, &code.accesses[i as usize]),
            Inst::Atomic(i) => self.atomic(machine, step, &code.atomics[i as usize]),
            Inst::CopyAsync(i) => {
                let to = &code.copies[i as usize].to;
                machine.each_part(step.site, warp, mask, to, |_, part| {
                    for lane in lanes_of(part.lanes) {
                        let (target, first) = part.scalar(to, 0, lane);
                        (0..u64::from(to.bytes())).for_each(|byte| self.shadow.store((target, first + byte), None));
                    }
                });
            }
            _ => self.compute(machine, step),
        }
    }

    /// Returns the value of a register.
    fn labeled(&self, lane: ObservedLane<'_>, (ty, register): (Scalar, FrameRegister)) -> LabeledValue<P::Label> {
        let label = self.shadow.get(lane.warp, register.row, lane.index);
        LabeledValue { ty, row: register.row, bits: lane.bits(register), label }
    }

    /// Returns the label of a copy of register `from`.
    fn copied(&mut self, lane: ObservedLane<'_>, from: FrameRegister) -> Option<P::Label> {
        let label = self.shadow.get(lane.warp, from.row, lane.index);
        self.rules.copied(lane, from, label)
    }

    /// Copies labels between the registers that `registers` returns for each lane: the destination
    /// and the source.
    fn copy(
        &mut self,
        machine: &Machine<'_, '_>,
        step: WarpStep<'_>,
        registers: impl Fn(usize) -> Option<(FrameRegister, FrameRegister)>,
    ) {
        for lane in lanes_of(step.mask) {
            if let Some((to, from)) = registers(lane) {
                let label = self.copied(step.lane(machine, lane), from);
                self.shadow.set(step.warp, to.row, lane, label);
            }
        }
    }

    fn compute(&mut self, machine: &Machine<'_, '_>, step: WarpStep<'_>) {
        let Some(computation) = machine.program.code.computation(step.inst) else { return };
        let mut operands = Vec::with_capacity(computation.operands.len());
        for lane in step.lanes(machine, step.mask) {
            operands.clear();
            operands.extend(computation.operands.iter().map(|operand| self.labeled(lane, *operand)));
            for result in &computation.results {
                let label = self.rules.computed(lane, self.labeled(lane, *result), &operands);
                self.shadow.set(step.warp, result.1.row, lane.index, label);
            }
        }
    }

    fn gather(&mut self, machine: &Machine<'_, '_>, step: WarpStep<'_>, to: RowIndex, from: RowIndex, missing: bool) {
        let any = lanes_of(step.mask).find_map(|lane| self.shadow.get(step.warp, from, lane));
        let first = step.lane(machine, step.mask.trailing_zeros() as usize % LANES);
        let label = self.rules.gathered(first, any, missing);
        lanes_of(step.mask).for_each(|lane| self.shadow.set(step.warp, to, lane, label));
    }

    fn load(&mut self, machine: &mut Machine<'_, '_>, step: WarpStep<'_>, access: &AccessOp) {
        for (i, to) in access.values.iter().enumerate() {
            for lane in lanes_of(step.mask) {
                let otherwise = access.otherwise.get(i).and_then(|other| self.shadow.get(step.warp, other.row, lane));
                self.shadow.set(step.warp, to.row, lane, otherwise);
            }
        }
        machine.each_part(step.site, step.warp, step.mask, access, |_, part| {
            for (i, to) in access.values.iter().enumerate() {
                for lane in lanes_of(part.lanes) {
                    let label = self.shadow.memory.get(&part.scalar(access, i, lane)).copied();
                    self.shadow.set(step.warp, to.row, lane, label);
                }
            }
        });
    }

    fn store(&mut self, machine: &mut Machine<'_, '_>, step: WarpStep<'_>, access: &AccessOp) {
        machine.each_part(step.site, step.warp, step.mask, access, |machine, part| {
            if matches!(part.target, DescribedTarget::Buffer(b) if !machine.buffers[b].mutable) {
                return;
            }
            for (i, from) in access.values.iter().enumerate() {
                for lane in step.lanes(machine, part.lanes) {
                    let value = self.labeled(lane, (access.element, *from));
                    let label = self.rules.stored(lane, AccessedLanes { access, part }, value);
                    self.shadow.store(part.scalar(access, i, lane.index), label);
                }
            }
        });
    }

    fn atomic(&mut self, machine: &mut Machine<'_, '_>, step: WarpStep<'_>, atomic: &AtomicAccess) {
        let access = &atomic.access;
        if let Some(to) = atomic.to {
            lanes_of(step.mask).for_each(|lane| self.shadow.set(step.warp, to.row, lane, None));
        }
        let registers: Vec<FrameRegister> = access.values.iter().chain(&atomic.expected).copied().collect();
        machine.each_part(step.site, step.warp, step.mask, access, |machine, part| {
            for lane in step.lanes(machine, part.lanes) {
                let location = part.scalar(access, 0, lane.index);
                let held = self.shadow.memory.get(&location).copied();
                let operands = registers.iter().map(|register| self.labeled(lane, (access.element, *register)));
                let operands: Vec<_> = operands.collect();
                let [memory, result] = match (atomic.operation, &operands[..]) {
                    (ir::AtomicOperator::Load, _) => [held, held],
                    (ir::AtomicOperator::Store, [value]) => {
                        [self.rules.stored(lane, AccessedLanes { access, part }, *value), None]
                    }
                    _ => self.rules.atomic(lane, AccessedLanes { access, part }, held, &operands),
                };
                self.shadow.store(location, memory);
                if let Some(to) = atomic.to {
                    self.shadow.set(step.warp, to.row, lane.index, result);
                }
            }
        });
    }
}

/// An operation whose result a lane has stored to a buffer.
pub struct Culprit {
    pub check: Check,
    pub site: Pc,
    pub thread: Thread,
}

/// Reports `culprit` at its own instruction, with the store of its result as the other side.
/// `describe` receives the name of the buffer and the element, and returns the operation and the
/// message.
pub fn report_store(
    findings: &mut Findings<'_>,
    (lane, to): (ObservedLane<'_>, AccessedLanes<'_>),
    culprit: Culprit,
    describe: impl FnOnce(&str, i64) -> (Produced, String),
) {
    let Culprit { check, site, thread } = culprit;
    if lane.machine.options.without.contains(check) || findings.count(check, site, None, 1) {
        return;
    }
    let object = to.object(lane);
    let (produced, message) = describe(&object.name, object.element.unwrap_or(0));
    let description = Description::new(message)
        .about(object)
        .against(Some(lane.site), lane.thread(), "stores a result of it")
        .produced(produced);
    findings.add(check, site, 1, thread, description);
}
