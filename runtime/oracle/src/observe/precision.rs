//! Precision lost by additions: each `f32`, `f16` and `f64` has a *twin*, the result of the same
//! operations in twice the digits of an `f64`.
//!
//! A launch with [`Options::cancellation`] runs a second time, from a copy of its initial contents.
//! Values that are loaded from inputs, converted from an integer, or returned by a function of
//! `math::` or `fast::` are taken as exact: their twin equals the value. Values made from bits,
//! such as `bf16` and custom float formats, are taken as exact too. Arithmetic of `f16` is that of
//! `f32`, rounded: a conversion between floats keeps the twin. Twins follow values through moves,
//! selections, shuffles and memory.
//!
//! Digits have canceled where the sum or difference of accurate operands is inaccurate. The results
//! computed from it inherit that, until a larger value absorbs the error. A store of such a result
//! to a buffer is reported.
//!
//! A twin records the bits of its value. The twin of a value that was changed by other means no
//! longer counts.

use crate::check::Check;
use crate::code::frame::Register;
use crate::code::{Inst, Pc};
use crate::observe::double_double::DoubleDouble;
use crate::observe::flow::{AccessedLanes, Culprit, LabeledValue, Lane, Propagation, report_store};
use crate::report::{Findings, Produced, Report, Thread};
use crate::{Options, Program};
use kernel_dsl_compiler::ir::{Binary, Unary};
use kernel_dsl_compiler::{Scalar, half};
use runtime_simt::number::value;
use std::collections::HashMap;

/// The growth of the relative error, as a factor in one operation, that counts as cancellation:
/// three binary digits.
const GROWTH: f64 = 8.0;

/// A float with more digits.
#[derive(Clone, Copy, Debug)]
pub struct Twin {
    ty: Scalar,
    /// The bits of the value.
    of: u64,
    exact: DoubleDouble,
    /// The event at which its digits canceled, from 1; 0 is none.
    event: u32,
}

/// Returns the value of a float of a type with twins.
fn float(ty: Scalar, bits: u64) -> f64 {
    match ty {
        Scalar::F64 => f64::from_bits(bits),
        Scalar::F16 => half::f16_to_f32(bits as u16).into(),
        _ => f32::from_bits(bits as u32).into(),
    }
}

/// Returns the least magnitude at which a type has full precision; for `f64`, at which its twin has
/// it.
fn least(ty: Scalar) -> f64 {
    match ty {
        Scalar::F64 => f64::MIN_POSITIVE * 2f64.powi(108),
        Scalar::F16 => 2f64.powi(-14),
        _ => f32::MIN_POSITIVE.into(),
    }
}

impl Twin {
    /// Returns the twin of an exact value.
    fn itself(ty: Scalar, of: u64) -> Twin {
        Twin { ty, of, exact: float(ty, of).into(), event: 0 }
    }

    /// Returns the twin of a computed value. A value beyond the range of its type counts as exact:
    /// other checks report overflow and underflow.
    fn new(ty: Scalar, of: u64, exact: DoubleDouble) -> Twin {
        let near = exact.first == 0.0 || exact.first.abs() >= least(ty);
        match float(ty, of).is_finite() && exact.first.is_finite() && near {
            true => Twin { ty, of, exact, event: 0 },
            false => Twin::itself(ty, of),
        }
    }

    /// Returns the relative error of the value.
    fn error(self) -> f64 {
        self.exact.error_of(float(self.ty, self.of))
    }

    /// Returns the value in Rust syntax.
    fn value(self) -> String {
        value(self.ty, self.of)
    }

    /// Returns the nearest value of its type to the exact result, in Rust syntax.
    fn would_be(self) -> String {
        match self.ty {
            Scalar::F64 => value(Scalar::F64, self.exact.first.to_bits()),
            _ => value(Scalar::F32, (self.exact.first as f32).to_bits().into()),
        }
    }
}

/// An operation at which digits canceled.
#[derive(Clone, Debug)]
struct Event {
    site: Pc,
    thread: Thread,
    operation: String,
    inputs: Vec<String>,
    twin: Twin,
}

/// The propagation of twins.
pub struct Precision<'p> {
    findings: Findings<'p>,
    /// The relative error from which a value counts as inaccurate.
    bound: f64,
    events: Vec<Event>,
    /// The event of each instruction and warp: one represents all lanes.
    known: HashMap<(Pc, u32), u32>,
}

impl LabeledValue<Twin> {
    /// Returns the twin of a float.
    fn twin(&self) -> Twin {
        let kept = self.label.filter(|twin| twin.ty == self.ty && twin.of == self.bits);
        kept.unwrap_or_else(|| Twin::itself(self.ty, self.bits))
    }
}

impl Propagation for Precision<'_> {
    type Label = Twin;

    fn computed(
        &mut self,
        lane: Lane<'_>,
        result: LabeledValue<Twin>,
        operands: &[LabeledValue<Twin>],
    ) -> Option<Twin> {
        let inst = lane.inst;
        if let Inst::Cast { from, into, .. } = *inst {
            return (is_followed(from) && is_followed(into)).then(|| self.converted(result, operands[0].twin()));
        }
        if !result.ty.is_float() || lane.machine.program.is_math(lane.site) {
            return None;
        }
        let twins: Vec<Twin> = operands.iter().map(LabeledValue::twin).collect();
        let exact: Vec<DoubleDouble> = twins.iter().map(|twin| twin.exact).collect();
        let exact = match (*inst, &exact[..]) {
            (Inst::Unary { op: Unary::Neg, .. }, [a]) => a.neg(),
            (Inst::Unary { op: Unary::Abs, .. }, [a]) => a.abs(),
            (Inst::Unary { op: Unary::Sqrt, .. }, [a]) => a.sqrt(),
            (Inst::Binary { op: Binary::Add, .. }, [a, b]) => a.add(*b),
            (Inst::Binary { op: Binary::Sub, .. }, [a, b]) => a.sub(*b),
            (Inst::Binary { op: Binary::Mul, .. }, [a, b]) => a.mul(*b),
            (Inst::Binary { op: Binary::Div, .. }, [a, b]) => a.div(*b),
            // The twin of the operand that was selected, even of two close ones.
            (Inst::Binary { op: Binary::Min | Binary::Max, .. }, _) => {
                return twins.into_iter().find(|twin| twin.of == result.bits);
            }
            (Inst::MulAdd { .. }, [a, b, c]) => a.mul(*b).add(*c),
            _ => return None,
        };
        let mut twin = Twin::new(result.ty, result.bits, exact);
        let error = twin.error();
        if error > self.bound {
            let worst = twins.iter().map(|twin| twin.error()).fold(0.0, f64::max);
            let before = twins.iter().map(|twin| twin.event).find(|event| *event != 0);
            let sums = matches!(inst, Inst::MulAdd { .. } | Inst::Binary { op: Binary::Add | Binary::Sub, .. });
            twin.event = match before {
                Some(event) => event,
                None if sums && error >= GROWTH * worst => {
                    self.event(lane, twins.iter().map(|twin| twin.value()).collect(), twin)
                }
                None => 0,
            };
        }
        Some(twin)
    }

    fn copied(&mut self, lane: Lane<'_>, from: Register, label: Option<Twin>) -> Option<Twin> {
        label.filter(|twin| twin.of == lane.bits(from))
    }

    fn stored(&mut self, lane: Lane<'_>, to: AccessedLanes<'_>, value: LabeledValue<Twin>) -> Option<Twin> {
        let twin = is_followed(value.ty).then(|| value.twin())?;
        if to.is_buffer() && twin.error() > self.bound {
            self.report(lane, to, twin);
        }
        Some(twin)
    }

    fn found(self) -> Report {
        self.findings.report()
    }
}

impl<'p> Precision<'p> {
    /// Returns the propagation for a launch that is about to run.
    pub fn new(program: &'p Program, options: &Options, bound: f64) -> Precision<'p> {
        let findings = Findings::new(program, options.limit, options.schedule);
        Precision { findings, bound, events: Vec::new(), known: HashMap::new() }
    }

    /// Returns the twin of `result`, which was converted from the value of `twin`.
    fn converted(&self, result: LabeledValue<Twin>, twin: Twin) -> Twin {
        let made = Twin::new(result.ty, result.bits, twin.exact);
        Twin { event: if made.error() > self.bound { twin.event } else { 0 }, ..made }
    }

    fn event(&mut self, lane: Lane<'_>, inputs: Vec<String>, twin: Twin) -> u32 {
        let (site, thread) = (lane.site, lane.thread());
        let next = self.events.len() as u32 + 1;
        let event = *self.known.entry((site, thread.warp)).or_insert(next);
        if event == next {
            let operation = match (lane.inst, &inputs[..]) {
                (Inst::Binary { op: Binary::Sub, .. }, [a, b]) => format!("{a} - {b}"),
                (Inst::MulAdd { .. }, [a, b, c]) => format!("({a}).mul_add({b}, {c})"),
                (_, inputs) => inputs.join(" + "),
            };
            self.events.push(Event { site, thread, operation, inputs, twin });
        }
        event
    }

    /// Reports that a lane stores a result of canceled digits to a buffer.
    fn report(&mut self, lane: Lane<'_>, to: AccessedLanes<'_>, twin: Twin) {
        let Some(event) = self.events.get(twin.event.wrapping_sub(1) as usize) else { return };
        let culprit = Culprit { check: Check::Cancellation, site: event.site, thread: event.thread };
        report_store(&mut self.findings, (lane, to), culprit, |name, element| {
            let result = event.twin.value();
            let more = if event.twin.ty == Scalar::F64 { "with twice its digits" } else { "in `f64`" };
            let message = format!(
                "cancellation: `{}` is {result}, but {} when computed {more}; the value stored to element {element} of \
                 `{name}` has an error of {}",
                event.operation,
                event.twin.would_be(),
                share(twin.error()),
            );
            let operation = format!("`{}`", event.operation);
            (Produced { operation, inputs: event.inputs.clone(), result }, message)
        });
    }
}

/// Describes a relative error.
fn share(error: f64) -> String {
    match error {
        e if e < 0.01 => format!("{e:.1e} of it"),
        e if e < 10.0 => format!("{:.0} %", 100.0 * e),
        _ => "more than ten times its value".to_string(),
    }
}

/// Returns whether floats of the type have twins.
fn is_followed(ty: Scalar) -> bool {
    ty.is_float() || ty == Scalar::F16
}
