//! Origins of NaNs and infinities: the operations that produced the ones that a kernel stores to a
//! buffer.
//!
//! While a launch runs, floats are inspected only when they are stored to buffers
//! ([`nonfinite`](crate::machine::nonfinite)). If one is not finite, the launch runs a second time
//! from a copy of its initial contents. Each value of each lane then carries its *origin*: the
//! first operation that produced a NaN or an infinity from finite operands. Moves, selections,
//! shuffles, integers made from a float's bits, and memory propagate origins. Values loaded from
//! inputs and constants have no origin and are not reported.
//!
//! An origin counts only while the value is a NaN or an infinity. Conversions of 16-bit floats are
//! implemented with integers and `f32`. Integers computed from the bits of an infinity therefore
//! inherit its origin. The bits of a finite float carry the register that holds the float. A report
//! of a conversion with an infinite result can thus show the operand.

use crate::Options;
use crate::check::Check;
use crate::code::frame::{FrameRegister, LANES, lanes_of};
use crate::code::{Inst, Pc, RowIndex};
use crate::machine::Machine;
use crate::machine::memory::word;
use crate::machine::nonfinite::{FloatClass, class_of, is_any_float};
use crate::observe::flow::{
    AccessedLanes, Culprit, LabeledValue, ObservedLane, Propagation, ValueLabels, WarpStep, report_store,
};
use crate::observe::operation::describe;
use crate::program::Program;
use crate::report::{Finding, Findings, Produced, Report, Thread};
use kernel_dsl_compiler::Scalar;
use std::collections::HashMap;

/// The origin of a value.
#[derive(Clone, Copy, Debug)]
pub enum ValueOrigin {
    /// An operation produced the value, by its index in [`Tracer::events`].
    Event(u32),
    /// The value is the bits of a finite float, which the register at this row of the same lane
    /// holds.
    BitsOf(RowIndex),
}

/// The maximum number of distinct events; later ones are merged with the last of their instruction.
const MAX_EVENTS: usize = 1 << 16;

/// An operation that produced a NaN or an infinity.
#[derive(Clone, Debug)]
pub struct NonFiniteEvent {
    check: Check,
    pub site: Pc,
    thread: Thread,
    pub operands: Vec<(Scalar, u64)>,
    pub result: (Scalar, u64),
}

/// The propagation of origins.
pub struct Tracer<'p> {
    program: &'p Program,
    findings: Findings<'p>,
    events: Vec<NonFiniteEvent>,
    /// The last event of each instruction.
    last: HashMap<Pc, u32>,
    /// The bits in memory before an atomic operation, by lane.
    before: [u64; LANES],
}

impl Program {
    /// Returns whether a run with these options tracks origins.
    pub(crate) fn tracks_origins(&self, options: &Options) -> bool {
        self.traced
            && options.checks == crate::Checks::All
            && Check::ORIGINS.iter().any(|check| !options.without.contains(*check))
    }
}

type TracedValue = LabeledValue<ValueOrigin>;

impl LabeledValue<ValueOrigin> {
    fn class(&self) -> FloatClass {
        class_of(self.ty, self.bits)
    }
}

impl Propagation for Tracer<'_> {
    type Label = ValueOrigin;

    /// Records the bits in memory that an atomic operation will change.
    fn before(&mut self, _: &mut ValueLabels<ValueOrigin>, machine: &mut Machine<'_, '_>, step: WarpStep<'_>) {
        let Inst::Atomic(i) = *step.inst else { return };
        let access = &machine.program.code.atomics[i as usize].access;
        machine.each_part(step.site, step.warp, step.mask, access, |machine, part| {
            let memory = machine.contents(part.target);
            lanes_of(part.lanes).for_each(|l| self.before[l] = word(memory, part.offset[l], access.element));
        });
    }

    fn computed(
        &mut self,
        lane: ObservedLane<'_>,
        result: TracedValue,
        operands: &[TracedValue],
    ) -> Option<ValueOrigin> {
        match *lane.inst {
            Inst::Compare { .. } | Inst::Offset(_) => None,
            Inst::Bitcast { .. } => self.bitcast(lane, result, operands[0]),
            Inst::Cast { from, into, .. } if is_any_float(from) != is_any_float(into) => None,
            Inst::Cast { into, .. } if is_any_float(into) => self.float(lane, result, operands),
            Inst::Inline(_) if !result.ty.is_float() => None,
            _ if result.ty.is_float() => self.float(lane, result, operands),
            // The result is an integer, so an operand may be the bits of a float.
            _ => operands.iter().find_map(|operand| operand.label),
        }
    }

    /// Records an origin for a constant that a function of `math::` returns for operands at its
    /// limits.
    fn copied(
        &mut self,
        lane: ObservedLane<'_>,
        from: FrameRegister,
        label: Option<ValueOrigin>,
    ) -> Option<ValueOrigin> {
        match (lane.inst, self.program.code.written.get(&from.row)) {
            (Inst::Move { .. }, Some(ty)) if self.program.is_math(lane.site) => {
                let result = (*ty, lane.bits(from));
                let nan = class_of(*ty, result.1) == FloatClass::Nan;
                let check = if nan { Check::NanProduced } else { Check::InfinityProduced };
                Some(self.event(lane, check, result, Vec::new()))
            }
            _ => label,
        }
    }

    fn shuffled(
        &mut self,
        _: ObservedLane<'_>,
        _: Option<ValueOrigin>,
        from: Option<Option<ValueOrigin>>,
    ) -> Option<ValueOrigin> {
        from.flatten().filter(|origin| matches!(origin, ValueOrigin::Event(_)))
    }

    fn stored(&mut self, lane: ObservedLane<'_>, to: AccessedLanes<'_>, value: TracedValue) -> Option<ValueOrigin> {
        let float = is_any_float(value.ty);
        let Some(ValueOrigin::Event(event)) = value.label else { return None };
        if float && value.class() == FloatClass::Finite {
            return None;
        }
        if float {
            self.report(lane, to, event);
        }
        value.label
    }

    fn atomic(
        &mut self,
        lane: ObservedLane<'_>,
        to: AccessedLanes<'_>,
        held: Option<ValueOrigin>,
        operands: &[TracedValue],
    ) -> [Option<ValueOrigin>; 2] {
        let ty = to.access.element;
        if !ty.is_float() {
            return [held, None];
        }
        let bits = word(lane.machine.contents(to.part.target), to.part.offset[lane.index], ty);
        let after = TracedValue { bits, label: None, ..operands[0] };
        if after.class() == FloatClass::Finite {
            return [None, held];
        }
        let before = TracedValue { bits: self.before[lane.index], label: held, ..operands[0] };
        let origin = self.origin(lane, after, &[before, operands[0]]);
        if let Some(ValueOrigin::Event(event)) = origin {
            self.report(lane, to, event);
        }
        [origin, held]
    }

    /// Returns the findings: NaNs before infinities.
    fn into_report(self) -> Report {
        let mut report = self.findings.report();
        report.findings.sort_by_key(|f: &Finding| f.check);
        report
    }
}

impl<'p> Tracer<'p> {
    /// Returns the propagation for a launch that is about to run.
    pub fn new(program: &'p Program, options: &Options) -> Tracer<'p> {
        let findings = Findings::new(program, options.limit, options.schedule);
        Tracer { program, findings, events: Vec::new(), last: HashMap::new(), before: [0; LANES] }
    }

    /// Returns the origin of a float computed from `operands`.
    fn float(&mut self, lane: ObservedLane<'_>, result: TracedValue, operands: &[TracedValue]) -> Option<ValueOrigin> {
        if result.class() != FloatClass::Finite {
            return self.origin(lane, result, operands);
        }
        // Decoding a 16-bit infinity produces finite intermediate results.
        let finite = operands.iter().filter(|operand| operand.class() == FloatClass::Finite);
        finite.filter_map(|operand| operand.label).find(|origin| matches!(origin, ValueOrigin::Event(_)))
    }

    /// Returns the origin of a non-finite result: the origin of the operand that caused it, or a
    /// new one.
    fn origin(&mut self, lane: ObservedLane<'_>, result: TracedValue, operands: &[TracedValue]) -> Option<ValueOrigin> {
        let what = result.class();
        let alike = |operand: &&TracedValue| operand.class() == what;
        // With several infinities, the origin is that of the operand equal to the result, such as
        // the larger one.
        let same = operands.iter().filter(alike).find(|operand| operand.bits == result.bits);
        let handed_on = same.or_else(|| operands.iter().find(alike));
        // A format without infinities has NaNs in their place.
        let converted = |operand: &&TracedValue| operand.ty != result.ty && operand.class() != FloatClass::Finite;
        let handed_on = handed_on.or_else(|| operands.iter().find(|operand| operands.len() == 1 && converted(operand)));
        if let Some(operand) = handed_on {
            return operand.label.filter(|origin| matches!(origin, ValueOrigin::Event(_)));
        }
        let narrower = operands.len() == 1 && operands[0].ty.bits() > result.ty.bits();
        let check = match what {
            _ if narrower => Check::ConversionOverflow,
            FloatClass::Nan => Check::NanProduced,
            _ => Check::InfinityProduced,
        };
        let operands = operands.iter().map(|operand| (operand.ty, operand.bits)).collect();
        Some(self.event(lane, check, (result.ty, result.bits), operands))
    }

    fn event(
        &mut self,
        lane: ObservedLane<'_>,
        check: Check,
        result: (Scalar, u64),
        operands: Vec<(Scalar, u64)>,
    ) -> ValueOrigin {
        let site = lane.site;
        if self.events.len() >= MAX_EVENTS
            && let Some(event) = self.last.get(&site)
        {
            return ValueOrigin::Event(*event);
        }
        let event = self.events.len() as u32;
        self.events.push(NonFiniteEvent { check, site, thread: lane.thread(), operands, result });
        self.last.insert(site, event);
        ValueOrigin::Event(event)
    }

    /// Returns the origin of a bit cast.
    fn bitcast(&mut self, lane: ObservedLane<'_>, result: TracedValue, from: TracedValue) -> Option<ValueOrigin> {
        match from.label {
            None if from.ty == Scalar::F32 && !is_any_float(result.ty) && from.class() == FloatClass::Finite => {
                Some(ValueOrigin::BitsOf(from.row))
            }
            // A 32-bit infinity made from bits is a constant, for example in a decoder of 16-bit
            // infinities from inputs.
            Some(ValueOrigin::BitsOf(row)) if is_any_float(result.ty) => {
                let converted = result.ty.is_half() && result.class() != FloatClass::Finite;
                let operand = lane.bits(FrameRegister { row, wide: false });
                let (result, operands) = ((result.ty, result.bits), vec![(Scalar::F32, operand)]);
                converted.then(|| self.event(lane, Check::ConversionOverflow, result, operands))
            }
            origin => origin,
        }
    }

    /// Reports that a lane stores the result of an event to a buffer.
    fn report(&mut self, lane: ObservedLane<'_>, to: AccessedLanes<'_>, event: u32) {
        let event = &self.events[event as usize];
        if !to.is_buffer() {
            return;
        }
        let culprit = Culprit { check: event.check, site: event.site, thread: event.thread };
        report_store(&mut self.findings, (lane, to), culprit, |name, element| {
            let produced = describe(self.program, event);
            let Produced { operation, result, .. } = &produced;
            let stored = format!("and is stored to element {element} of `{name}`");
            let message = match event.check {
                Check::NanProduced => format!("{operation} is a NaN, {stored}"),
                Check::InfinityProduced => format!("{operation} is {result}, {stored}"),
                _ => format!("{operation} is beyond the type's range ({result}), {stored}"),
            };
            (produced, message)
        });
    }
}
