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
use crate::code::frame::{LANES, Register, Word, lanes_of};
use crate::code::{Access, Inst, Pc};
use crate::machine::address::Part;
use crate::machine::findings::{Description, Findings};
use crate::machine::observer::Observer;
use crate::machine::{Machine, Setting, Warp};
use crate::observe::double_double::DoubleDouble;
use crate::report::{Produced, Report, Thread};
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
struct Twin {
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

/// The twins of all values in a running launch.
pub struct Precision<'p> {
    findings: Findings<'p>,
    /// The relative error from which a value counts as inaccurate.
    bound: f64,
    /// The twin of each value, by warp, row and lane.
    frames: Vec<Vec<[Option<Twin>; LANES]>>,
    /// The twin of each value in memory, by buffer and offset of its first byte; `None` is the
    /// block's shared memory.
    memory: HashMap<(Option<usize>, u64), Twin>,
    events: Vec<Event>,
    /// The event of each instruction and warp: one represents all lanes.
    known: HashMap<(Pc, u32), u32>,
}

impl<'p> Precision<'p> {
    /// Returns the state for a launch that is about to run.
    pub fn new(program: &'p Program, setting: &Setting, options: &Options, bound: f64) -> Precision<'p> {
        let rows = vec![[None; LANES]; program.code.rows as usize];
        Precision {
            findings: Findings::new(program, options),
            bound,
            frames: vec![rows; setting.grid.warp_count() as usize],
            memory: HashMap::new(),
            events: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Drops the twins in shared memory when a block begins.
    fn forget_shared(&mut self) {
        self.memory.retain(|(buffer, _), _| buffer.is_some());
    }

    /// Returns the findings.
    pub fn found(self) -> Report {
        self.findings.report()
    }

    /// Returns the twin of a lane of a register, unless it is exact.
    fn kept(&self, warp: &Warp, of: Register, lane: usize) -> Option<Twin> {
        let bits = of.get(&warp.rows, lane);
        self.frames[warp.index as usize][of.row as usize][lane].filter(|twin| twin.of == bits)
    }

    /// Returns the twin of a lane of a register that holds a float.
    fn twin(&self, warp: &Warp, ty: Scalar, row: u32, lane: usize) -> Twin {
        let register = Register { row, wide: ty.bits() == 64 };
        let kept = self.kept(warp, register, lane).filter(|twin| twin.ty == ty);
        kept.unwrap_or_else(|| Twin::itself(ty, register.get(&warp.rows, lane)))
    }

    /// Sets the twins of register `to` to the results of `of`, by lane.
    fn set(&mut self, warp: &Warp, mask: u32, to: u32, of: impl Fn(&Self, usize) -> Option<Twin>) {
        let mut twins = self.frames[warp.index as usize][to as usize];
        lanes_of(mask).for_each(|lane| twins[lane] = of(self, lane));
        self.frames[warp.index as usize][to as usize] = twins;
    }

    /// Copies the twins of another register in the lanes of `mask`.
    fn copied(&mut self, warp: &Warp, mask: u32, to: Register, from: Register) {
        self.set(warp, mask, to.row, |p, lane| p.kept(warp, from, lane));
    }

    /// Converts the twins of another register to those of register `to`.
    fn converted(&mut self, warp: &Warp, mask: u32, [from, into]: [Scalar; 2], to: u32, a: u32) {
        let wide = into.bits() == 64;
        self.set(warp, mask, to, |p, lane| {
            let twin = p.twin(warp, from, a, lane);
            let made = Twin::new(into, Register { row: to, wide }.get(&warp.rows, lane), twin.exact);
            Some(Twin { event: if made.error() > p.bound { twin.event } else { 0 }, ..made })
        });
    }

    /// Computes the twins of register `to` from `operands`.
    fn computed(
        &mut self,
        machine: &Machine<'_, '_>,
        at: (Pc, u32),
        warp: &Warp,
        (ty, to, inst): (Scalar, u32, &Inst),
        operands: &[u32],
        exact: impl Fn(&[DoubleDouble]) -> DoubleDouble,
    ) {
        let (site, mask) = at;
        for lane in lanes_of(mask) {
            let bits = Register { row: to, wide: ty.bits() == 64 }.get(&warp.rows, lane);
            let twins: Vec<Twin> = operands.iter().map(|row| self.twin(warp, ty, *row, lane)).collect();
            let exacts: Vec<DoubleDouble> = twins.iter().map(|twin| twin.exact).collect();
            let mut twin = Twin::new(ty, bits, exact(&exacts));
            let error = twin.error();
            if error > self.bound {
                let worst = twins.iter().map(|twin| twin.error()).fold(0.0, f64::max);
                let before = twins.iter().map(|twin| twin.event).find(|event| *event != 0);
                let sums = matches!(inst, Inst::MulAdd { .. } | Inst::Binary { op: Binary::Add | Binary::Sub, .. });
                twin.event = match before {
                    Some(event) => event,
                    None if sums && error >= GROWTH * worst => {
                        let inputs = twins.iter().map(|twin| twin.value()).collect();
                        self.event(site, machine.thread(warp.index, lane), inst, inputs, twin)
                    }
                    None => 0,
                };
            }
            self.frames[warp.index as usize][to as usize][lane] = Some(twin);
        }
    }

    fn event(&mut self, site: Pc, thread: Thread, inst: &Inst, inputs: Vec<String>, twin: Twin) -> u32 {
        let next = self.events.len() as u32 + 1;
        let event = *self.known.entry((site, thread.warp)).or_insert(next);
        if event == next {
            let operation = match (inst, &inputs[..]) {
                (Inst::Binary { op: Binary::Sub, .. }, [a, b]) => format!("{a} - {b}"),
                (Inst::MulAdd { .. }, [a, b, c]) => format!("({a}).mul_add({b}, {c})"),
                (_, inputs) => inputs.join(" + "),
            };
            self.events.push(Event { site, thread, operation, inputs, twin });
        }
        event
    }

    /// Reports that a lane stores a result of canceled digits.
    fn tell(
        &mut self,
        machine: &Machine<'_, '_>,
        at: (Pc, &Warp),
        access: &Access,
        part: &Part,
        lane: usize,
        twin: Twin,
    ) {
        let Some(event) = self.events.get(twin.event.wrapping_sub(1) as usize) else { return };
        let (check, site, thread) = (Check::Cancellation, event.site, event.thread);
        if machine.options.without.contains(check) || self.findings.count(check, site, None, 1) {
            return;
        }
        let object = machine.object(part.target, part.offset[lane], access);
        let (name, element) = (&object.name, object.element.unwrap_or(0));
        let result = event.twin.value();
        let more = if event.twin.ty == Scalar::F64 { "with twice its digits" } else { "in `f64`" };
        let message = format!(
            "digits cancel: `{}` is {result}, and would be {} if all had been computed {more}; what is stored to element {element} of \
             `{name}` is off by {}",
            event.operation,
            event.twin.would_be(),
            share(twin.error()),
        );
        let produced = Produced { operation: format!("`{}`", event.operation), inputs: event.inputs.clone(), result };
        let description = Description::new(message)
            .about(object)
            .against(Some(at.0), machine.thread(at.1.index, lane), "stores a result of it")
            .produced(produced);
        self.findings.add(check, site, 1, thread, description);
    }
}

/// A relative error, in words.
fn share(error: f64) -> String {
    match error {
        e if e < 0.01 => format!("{e:.1e} of it"),
        e if e < 10.0 => format!("{:.0} %", 100.0 * e),
        _ => "more than ten times its value".to_string(),
    }
}

impl Observer for Precision<'_> {
    fn block(&mut self) {
        self.forget_shared();
    }

    fn after(&mut self, machine: &mut Machine<'_, '_>, site: Pc, warp: &Warp, mask: u32, inst: &Inst) {
        machine.follow(self, site, warp, mask, inst);
    }
}

impl Machine<'_, '_> {
    /// Updates the twins after `inst` has run on the lanes of `mask`.
    fn follow(&mut self, p: &mut Precision<'_>, site: Pc, warp: &Warp, mask: u32, inst: &Inst) {
        let program = self.program;
        let code = &program.code;
        match *inst {
            Inst::Unary { ty, .. } | Inst::Binary { ty, .. } | Inst::MulAdd { ty, .. }
                if !ty.is_float() || program.is_math(site) => {}
            Inst::Unary { op, ty, to, a } => {
                let of: fn(DoubleDouble) -> DoubleDouble = match op {
                    Unary::Neg => DoubleDouble::neg,
                    Unary::Abs => DoubleDouble::abs,
                    Unary::Sqrt => DoubleDouble::sqrt,
                    _ => return,
                };
                p.computed(self, (site, mask), warp, (ty, to, inst), &[a], |x| of(x[0]));
            }
            Inst::Binary { op, ty, to, a, b } => {
                let of: fn(DoubleDouble, DoubleDouble) -> DoubleDouble = match op {
                    Binary::Add => DoubleDouble::add,
                    Binary::Sub => DoubleDouble::sub,
                    Binary::Mul => DoubleDouble::mul,
                    Binary::Div => DoubleDouble::div,
                    // The twin of the operand that was selected, even of two close ones.
                    Binary::Min | Binary::Max => {
                        let wide = ty.bits() == 64;
                        return p.set(warp, mask, to, |p, lane| {
                            let bits = Register { row: to, wide }.get(&warp.rows, lane);
                            [a, b].map(|row| p.twin(warp, ty, row, lane)).into_iter().find(|twin| twin.of == bits)
                        });
                    }
                    _ => return,
                };
                p.computed(self, (site, mask), warp, (ty, to, inst), &[a, b], |x| of(x[0], x[1]));
            }
            Inst::MulAdd { ty, to, a, b, c } => {
                let of = |x: &[DoubleDouble]| x[0].mul(x[1]).add(x[2]);
                p.computed(self, (site, mask), warp, (ty, to, inst), &[a, b, c], of);
            }
            Inst::Cast { from, into, to, a, .. } if is_followed(from) && is_followed(into) => {
                p.converted(warp, mask, [from, into], to, a);
            }
            Inst::Select { wide, to, condition, yes, no } => {
                let holds = self.simd.truth(&warp.rows, condition);
                let of = |lane: usize| Register { row: if holds >> lane & 1 == 1 { yes } else { no }, wide };
                p.set(warp, mask, to, |p, lane| p.kept(warp, of(lane), lane));
            }
            Inst::Copy { to, from } | Inst::Move { to, from } => p.copied(warp, mask, to, from),
            Inst::ReadLocal { local, to } => p.copied(warp, mask, to, code.locals[local as usize].first),
            Inst::WriteLocal { local, from } => p.copied(warp, mask, code.locals[local as usize].first, from),
            Inst::ReadElement { local, index, to } => {
                let (local, index) = (&code.locals[local as usize], u32::lanes(&warp.rows, index as usize));
                for lane in lanes_of(mask).filter(|lane| index[*lane] < local.len) {
                    p.copied(warp, 1 << lane, to, local.at(index[lane]));
                }
            }
            Inst::WriteElement { local, index, from } => {
                let (local, index) = (&code.locals[local as usize], u32::lanes(&warp.rows, index as usize));
                for lane in lanes_of(mask).filter(|lane| index[*lane] < local.len) {
                    p.copied(warp, 1 << lane, local.at(index[lane]), from);
                }
            }
            Inst::Shuffle { mode, width, to, from, selector } => {
                let selectors = u32::lanes(&warp.rows, selector as usize);
                let sources = crate::machine::warp::sources(mode, width.into(), selectors);
                p.set(warp, mask, to.row, |p, lane| p.kept(warp, from, sources[lane]));
            }
            Inst::Load(i) if is_followed(code.accesses[i as usize].element) => {
                let access = &code.accesses[i as usize];
                self.each_part(site, warp, mask, access, |_, part| {
                    for (i, to) in access.values.iter().enumerate() {
                        for lane in lanes_of(part.lanes) {
                            let twin = p.memory.get(&part.scalar(access, i, lane)).copied();
                            p.set(warp, 1 << lane, to.row, |_, _| twin);
                        }
                    }
                });
            }
            Inst::Store(i) if is_followed(code.accesses[i as usize].element) => {
                let access = &code.accesses[i as usize];
                self.each_part(site, warp, mask, access, |machine, part| {
                    for (i, from) in access.values.iter().enumerate() {
                        for lane in lanes_of(part.lanes) {
                            let twin = p.twin(warp, access.element, from.row, lane);
                            let place = part.scalar(access, i, lane);
                            p.memory.insert(place, twin);
                            if place.0.is_some() && twin.event != 0 && twin.error() > p.bound {
                                p.tell(machine, (site, warp), access, part, lane, twin);
                            }
                        }
                    }
                });
            }
            _ => {}
        }
    }
}

/// Returns whether floats of the type have twins.
fn is_followed(ty: Scalar) -> bool {
    ty.is_float() || ty == Scalar::F16
}
