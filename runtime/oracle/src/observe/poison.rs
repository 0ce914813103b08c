//! Propagation of undefined values: results of shuffles that read inactive lanes, and of votes with
//! missing lanes.
//!
//! A run that executes such an operation records it and continues with zeros. After such a run, the
//! launch runs again from a copy of its initial contents. Each undefined value of a lane then
//! carries its *source*. Arithmetic, moves, selections, exchanges between lanes and memory
//! propagate sources. The behavior of the kernel is undefined, and reported, if such a value:
//!
//! - is stored to a buffer;
//! - is an operand of an atomic operation;
//! - is part of an address;
//! - decides a branch.
//!
//! A selection by a defined condition propagates only the source of the selected value.

use crate::check::Check;
use crate::code::frame::lanes_of;
use crate::code::{AccessOp, Inst, Pc, RowIndex};
use crate::machine::Machine;
use crate::observe::flow::{AccessedLanes, LabeledValue, ObservedLane, Propagation, ValueLabels, WarpStep};
use crate::report::{Description, Findings, Object, Report, Thread};
use crate::{Checks, Options, Program};

/// The index of a [`PoisonSource`].
type SourceId = u32;

/// The maximum number of distinct sources; later ones are merged with the last.
const MAX_SOURCES: usize = 1 << 16;

/// An operation whose result is undefined, in one lane.
#[derive(Clone, Copy, Debug)]
struct PoisonSource {
    site: Pc,
    thread: Thread,
}

/// The propagation of undefined values, from their sources.
pub struct Poison<'p> {
    findings: Findings<'p>,
    sources: Vec<PoisonSource>,
}

impl Program {
    /// Returns whether a run with these options tracks undefined values.
    pub(crate) fn tracks_poison(&self, options: &Options) -> bool {
        let warps = |inst: &Inst| {
            matches!(inst, Inst::Shuffle { .. } | Inst::Vote { .. } | Inst::Match { .. } | Inst::Reduce { .. })
        };
        self.lowered
            && options.checks == Checks::All
            && !options.without.contains(Check::UndefinedValue)
            && self.code.insts.iter().any(warps)
    }
}

impl<'p> Poison<'p> {
    /// Returns the propagation for a launch that is about to run.
    pub fn new(program: &'p Program, options: &Options) -> Poison<'p> {
        Poison { findings: Findings::new(program, options.limit, options.schedule), sources: Vec::new() }
    }

    fn source(&mut self, lane: ObservedLane<'_>) -> SourceId {
        if self.sources.len() < MAX_SOURCES {
            self.sources.push(PoisonSource { site: lane.site, thread: lane.thread() });
        }
        self.sources.len() as SourceId - 1
    }

    /// Reports a use of the undefined value `id` that makes the kernel's behavior depend on it.
    fn report(&mut self, lane: ObservedLane<'_>, id: SourceId, what: &str, object: Option<Object>) {
        let (check, site) = (Check::UndefinedValue, lane.site);
        if lane.machine.options.without.contains(check) || self.findings.count(check, site, None, 1) {
            return;
        }
        let source = self.sources[id as usize];
        let place = object.as_ref().map(|o| format!(": element {} of `{}`", o.element.unwrap_or(0), o.name));
        let message = format!("an undefined value {what}{}", place.unwrap_or_default());
        let mut description = Description::new(message).against(
            Some(source.site),
            source.thread,
            "gets it here, where some of the required lanes are missing",
        );
        description.object = object;
        self.findings.add(check, site, 1, lane.thread(), description);
    }

    /// Reports the lanes in which one of `rows` is undefined.
    fn report_uses(
        &mut self,
        shadow: &ValueLabels<SourceId>,
        machine: &Machine<'_, '_>,
        step: WarpStep<'_>,
        rows: &[RowIndex],
        what: &str,
    ) {
        for lane in lanes_of(step.mask) {
            if let Some(id) = rows.iter().find_map(|row| shadow.get(step.warp, *row, lane)) {
                self.report(step.lane(machine, lane), id, what, None);
            }
        }
    }

    /// Reports an access whose condition or address is undefined.
    fn addressed(
        &mut self,
        shadow: &ValueLabels<SourceId>,
        machine: &Machine<'_, '_>,
        step: WarpStep<'_>,
        access: &AccessOp,
    ) {
        self.report_uses(shadow, machine, step, access.guard.as_slice(), "decides whether memory is accessed");
        let mut rows = Vec::new();
        access.each_index(|row| rows.push(row));
        self.report_uses(shadow, machine, step, &rows, "is part of an address");
    }
}

impl Propagation for Poison<'_> {
    type Label = SourceId;

    /// Reports undefined values that decide a branch or are part of an address.
    fn before(&mut self, shadow: &mut ValueLabels<SourceId>, machine: &mut Machine<'_, '_>, step: WarpStep<'_>) {
        let code = &machine.program.code;
        let deciding = match *step.inst {
            Inst::If { condition, .. } => vec![condition],
            Inst::EnterFor { step, .. } => vec![step],
            Inst::Test { index, limit, .. } => vec![index, limit],
            Inst::Step { index, step, limit, .. } | Inst::StepUniform { index, step, limit, .. } => {
                vec![index, step, limit]
            }
            Inst::ReadElement { index, .. } | Inst::WriteElement { index, .. } => {
                return self.report_uses(shadow, machine, step, &[index], "is the index of a register array");
            }
            Inst::Load(i) | Inst::Store(i) => {
                return self.addressed(shadow, machine, step, &code.accesses[i as usize]);
            }
            Inst::Atomic(i) => return self.addressed(shadow, machine, step, &code.atomics[i as usize].access),
            Inst::CopyAsync(i) => {
                let copy = &code.copies[i as usize];
                return [&copy.to, &copy.from].iter().for_each(|of| self.addressed(shadow, machine, step, of));
            }
            _ => return,
        };
        self.report_uses(shadow, machine, step, &deciding, "decides a branch");
        // The lanes have decided by this value: a later decision by the same value is not a new
        // mistake.
        for row in deciding {
            lanes_of(step.mask).for_each(|lane| shadow.set(step.warp, row, lane, None));
        }
    }

    fn computed(
        &mut self,
        _: ObservedLane<'_>,
        _: LabeledValue<SourceId>,
        operands: &[LabeledValue<SourceId>],
    ) -> Option<SourceId> {
        operands.iter().find_map(|operand| operand.label)
    }

    fn selected(&mut self, condition: Option<SourceId>, label: Option<SourceId>) -> Option<SourceId> {
        condition.or(label)
    }

    fn shuffled(
        &mut self,
        lane: ObservedLane<'_>,
        selector: Option<SourceId>,
        from: Option<Option<SourceId>>,
    ) -> Option<SourceId> {
        selector.or_else(|| from.unwrap_or_else(|| Some(self.source(lane))))
    }

    fn gathered(&mut self, lane: ObservedLane<'_>, any: Option<SourceId>, missing: bool) -> Option<SourceId> {
        any.or_else(|| missing.then(|| self.source(lane)))
    }

    fn stored(
        &mut self,
        lane: ObservedLane<'_>,
        to: AccessedLanes<'_>,
        value: LabeledValue<SourceId>,
    ) -> Option<SourceId> {
        if let Some(id) = value.label.filter(|_| to.is_buffer()) {
            self.report(lane, id, "is stored", Some(to.object(lane)));
        }
        value.label
    }

    fn atomic(
        &mut self,
        lane: ObservedLane<'_>,
        to: AccessedLanes<'_>,
        held: Option<SourceId>,
        operands: &[LabeledValue<SourceId>],
    ) -> [Option<SourceId>; 2] {
        if let Some(id) = operands.iter().find_map(|operand| operand.label) {
            let object = to.object(lane);
            self.report(lane, id, "is an operand of an atomic operation", Some(object));
        }
        [held, None]
    }

    fn into_report(self) -> Report {
        self.findings.report()
    }
}
