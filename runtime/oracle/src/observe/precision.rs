//! Precision lost by additions: each `f32`, `f16` and `f64` has a *twin*, the result of the same
//! operations in twice the digits of an `f64`.
//!
//! A launch with [`Options::cancellation`] runs a second time, from a copy of its initial contents.
//! Inputs, values converted from integers, and results of functions of `math::` and `fast::` are
//! taken as exact: their twin equals the value. Values made from bits, such as `bf16` and custom
//! float formats, are taken as exact too. Arithmetic of `f16` is that of `f32`, rounded: a
//! conversion between floats keeps the twin. Twins follow values through moves, selections,
//! shuffles and memory.
//!
//! Digits have canceled where the sum or difference of accurate operands is inaccurate. Results
//! computed from it are inaccurate too, until a larger value absorbs the error. A store of such a
//! result to a buffer is reported.
//!
//! A twin records the bits of its value. If the value was changed by other means, the bits differ
//! and the twin is ignored.

use crate::check::Check;
use crate::code::frame::FrameRegister;
use crate::code::{Inst, Pc};
use crate::observe::double_double::DoubleDouble;
use crate::observe::flow::{AccessedLanes, Culprit, LabeledValue, ObservedLane, Propagation, report_store};
use crate::report::{Findings, Produced, Report, Thread};
use crate::{Options, Program};
use kernel_dsl_compiler::ir::{Binary, Unary};
use kernel_dsl_compiler::{Scalar, half};
use runtime_simt::number::value;
use std::collections::HashMap;

/// The growth of the relative error, as a factor in one operation, that counts as cancellation:
/// three binary digits.
const GROWTH: f64 = 8.0;

/// The twin of a float: the result of the same operations with more digits.
#[derive(Clone, Copy, Debug)]
pub struct ShadowFloat {
    ty: Scalar,
    /// The bits of the value.
    of: u64,
    exact: DoubleDouble,
    /// The number, from 1, of the event at which the value's digits canceled; 0 without one.
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

/// Returns the smallest magnitude at which a type has full precision. For `f64`, returns the
/// smallest magnitude at which the twin has full precision.
fn min_full_precision(ty: Scalar) -> f64 {
    match ty {
        Scalar::F64 => f64::MIN_POSITIVE * 2f64.powi(108),
        Scalar::F16 => 2f64.powi(-14),
        _ => f32::MIN_POSITIVE.into(),
    }
}

impl ShadowFloat {
    /// Returns the twin of an exact value.
    fn of_exact(ty: Scalar, of: u64) -> ShadowFloat {
        ShadowFloat { ty, of, exact: float(ty, of).into(), event: 0 }
    }

    /// Returns the twin of a computed value. A value beyond the range of its type counts as exact:
    /// other checks report overflow and underflow.
    fn new(ty: Scalar, of: u64, exact: DoubleDouble) -> ShadowFloat {
        let near = exact.first == 0.0 || exact.first.abs() >= min_full_precision(ty);
        match float(ty, of).is_finite() && exact.first.is_finite() && near {
            true => ShadowFloat { ty, of, exact, event: 0 },
            false => ShadowFloat::of_exact(ty, of),
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

    /// Returns the value that is nearest to the exact result, in Rust syntax, with so many digits
    /// that it differs from the value. An `f64` may be followed by the rest of the exact result.
    fn nearest_value(self) -> String {
        let in_f64 = value(Scalar::F64, self.exact.first.to_bits());
        let nearest = match self.ty {
            Scalar::F64 => in_f64.clone(),
            _ => value(Scalar::F32, (self.exact.first as f32).to_bits().into()),
        };
        match self.ty {
            _ if nearest != self.value() => nearest,
            Scalar::F64 => format!("{nearest} {:+.1e}", self.exact.rest),
            _ => in_f64,
        }
    }
}

/// An operation at which digits canceled.
#[derive(Clone, Debug)]
struct Cancellation {
    site: Pc,
    thread: Thread,
    operation: String,
    inputs: Vec<String>,
    shadow_float: ShadowFloat,
}

/// The propagation of twins.
pub struct Precision<'p> {
    findings: Findings<'p>,
    /// The relative error from which a value counts as inaccurate.
    bound: f64,
    events: Vec<Cancellation>,
    /// The event of each instruction and warp: the first lane's event represents all lanes.
    known: HashMap<(Pc, u32), u32>,
}

impl LabeledValue<ShadowFloat> {
    /// Returns the twin of a float.
    fn shadow_float(&self) -> ShadowFloat {
        let kept = self.label.filter(|shadow_float| shadow_float.ty == self.ty && shadow_float.of == self.bits);
        kept.unwrap_or_else(|| ShadowFloat::of_exact(self.ty, self.bits))
    }
}

impl Propagation for Precision<'_> {
    type Label = ShadowFloat;

    fn computed(
        &mut self,
        lane: ObservedLane<'_>,
        result: LabeledValue<ShadowFloat>,
        operands: &[LabeledValue<ShadowFloat>],
    ) -> Option<ShadowFloat> {
        let inst = lane.inst;
        if let Inst::Cast { from, into, .. } = *inst {
            return (is_followed(from) && is_followed(into))
                .then(|| self.converted(result, operands[0].shadow_float()));
        }
        if !result.ty.is_float() || lane.machine.program.is_math(lane.site) {
            return None;
        }
        let shadow_floats: Vec<ShadowFloat> = operands.iter().map(LabeledValue::shadow_float).collect();
        let exact: Vec<DoubleDouble> = shadow_floats.iter().map(|shadow_float| shadow_float.exact).collect();
        let exact = match (*inst, &exact[..]) {
            (Inst::Unary { op: Unary::Neg, .. }, [a]) => a.neg(),
            (Inst::Unary { op: Unary::Abs, .. }, [a]) => a.abs(),
            (Inst::Unary { op: Unary::Sqrt, .. }, [a]) => a.sqrt(),
            (Inst::Binary { op: Binary::Add, .. }, [a, b]) => a.add(*b),
            (Inst::Binary { op: Binary::Sub, .. }, [a, b]) => a.sub(*b),
            (Inst::Binary { op: Binary::Mul, .. }, [a, b]) => a.mul(*b),
            (Inst::Binary { op: Binary::Div, .. }, [a, b]) => a.div(*b),
            // The twin is that of the selected operand, even if the twins are in the other order.
            (Inst::Binary { op: Binary::Min | Binary::Max, .. }, _) => {
                return shadow_floats.into_iter().find(|shadow_float| shadow_float.of == result.bits);
            }
            (Inst::MulAdd { .. }, [a, b, c]) => a.mul(*b).add(*c),
            _ => return None,
        };
        let mut shadow_float = ShadowFloat::new(result.ty, result.bits, exact);
        let error = shadow_float.error();
        if error > self.bound {
            let worst = shadow_floats.iter().map(|shadow_float| shadow_float.error()).fold(0.0, f64::max);
            let before = shadow_floats.iter().map(|shadow_float| shadow_float.event).find(|event| *event != 0);
            let sums = matches!(inst, Inst::MulAdd { .. } | Inst::Binary { op: Binary::Add | Binary::Sub, .. });
            shadow_float.event = match before {
                Some(event) => event,
                None if sums && error >= GROWTH * worst => self.event(
                    lane,
                    shadow_floats.iter().map(|shadow_float| shadow_float.value()).collect(),
                    shadow_float,
                ),
                None => 0,
            };
        }
        Some(shadow_float)
    }

    fn copied(
        &mut self,
        lane: ObservedLane<'_>,
        from: FrameRegister,
        label: Option<ShadowFloat>,
    ) -> Option<ShadowFloat> {
        label.filter(|shadow_float| shadow_float.of == lane.bits(from))
    }

    fn stored(
        &mut self,
        lane: ObservedLane<'_>,
        to: AccessedLanes<'_>,
        value: LabeledValue<ShadowFloat>,
    ) -> Option<ShadowFloat> {
        let shadow_float = is_followed(value.ty).then(|| value.shadow_float())?;
        if to.is_buffer() && shadow_float.error() > self.bound {
            self.report(lane, to, shadow_float);
        }
        Some(shadow_float)
    }

    fn into_report(self) -> Report {
        self.findings.report()
    }
}

impl<'p> Precision<'p> {
    /// Returns the propagation for a launch that is about to run.
    pub fn new(program: &'p Program, options: &Options, bound: f64) -> Precision<'p> {
        let findings = Findings::new(program, options.limit, options.schedule);
        Precision { findings, bound, events: Vec::new(), known: HashMap::new() }
    }

    /// Returns the twin of `result`, which was converted from the value of `shadow_float`.
    fn converted(&self, result: LabeledValue<ShadowFloat>, shadow_float: ShadowFloat) -> ShadowFloat {
        let made = ShadowFloat::new(result.ty, result.bits, shadow_float.exact);
        ShadowFloat { event: if made.error() > self.bound { shadow_float.event } else { 0 }, ..made }
    }

    fn event(&mut self, lane: ObservedLane<'_>, inputs: Vec<String>, shadow_float: ShadowFloat) -> u32 {
        let (site, thread) = (lane.site, lane.thread());
        let next = self.events.len() as u32 + 1;
        let event = *self.known.entry((site, thread.warp)).or_insert(next);
        if event == next {
            let operation = match (lane.inst, &inputs[..]) {
                (Inst::Binary { op: Binary::Sub, .. }, [a, b]) => format!("{a} - {b}"),
                (Inst::MulAdd { .. }, [a, b, c]) => format!("({a}).mul_add({b}, {c})"),
                (_, inputs) => inputs.join(" + "),
            };
            self.events.push(Cancellation { site, thread, operation, inputs, shadow_float });
        }
        event
    }

    /// Reports that a lane stores a result of canceled digits to a buffer.
    fn report(&mut self, lane: ObservedLane<'_>, to: AccessedLanes<'_>, shadow_float: ShadowFloat) {
        let Some(event) = self.events.get(shadow_float.event.wrapping_sub(1) as usize) else { return };
        let culprit = Culprit { check: Check::Cancellation, site: event.site, thread: event.thread };
        report_store(&mut self.findings, (lane, to), culprit, |name, element| {
            let result = event.shadow_float.value();
            let more = if event.shadow_float.ty == Scalar::F64 { "with twice its digits" } else { "in `f64`" };
            let message = format!(
                "cancellation: `{}` is {result}, but {} when computed {more}; the value stored to element {element} of \
                 `{name}` has an error of {}",
                event.operation,
                event.shadow_float.nearest_value(),
                share(shadow_float.error()),
            );
            let operation = format!("`{}`", event.operation);
            (Produced { operation, inputs: event.inputs.clone(), result }, message)
        });
    }
}

/// Describes a relative error.
fn share(error: f64) -> String {
    match error {
        e if e < 0.01 => format!("{e:.1e} of its value"),
        e if e < 10.0 => format!("{:.0} %", 100.0 * e),
        _ => "more than ten times its value".to_string(),
    }
}

/// Returns whether floats of the type have twins.
fn is_followed(ty: Scalar) -> bool {
    ty.is_float() || ty == Scalar::F16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_values_differ_from_the_value() {
        let shown = |ty: Scalar, of: u64, first: f64, rest: f64| {
            let shadow_float = ShadowFloat { ty, of, exact: DoubleDouble { first, rest }, event: 0 };
            (shadow_float.value(), shadow_float.nearest_value())
        };
        let pair = |value: &str, nearest: &str| (value.to_string(), nearest.to_string());
        let third = (1.0f32 / 3.0).to_bits().into();
        assert_eq!(shown(Scalar::F32, third, 0.5, 0.0), pair("0.33333334", "0.5"));
        assert_eq!(shown(Scalar::F32, third, 1.0 / 3.0, 0.0), pair("0.33333334", "0.3333333333333333"));
        assert_eq!(shown(Scalar::F64, 1f64.to_bits(), 1.0, 2e-20), pair("1.0", "1.0 +2.0e-20"));
    }
}
