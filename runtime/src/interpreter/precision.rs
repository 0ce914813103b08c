//! What additions lose: each `f32` beside what the same operations give in `f64`, its *twin*.
//!
//! A launch that asks for it ([`Options::cancellation`]) runs a second time, from a copy of its initial contents. What is loaded
//! from outside, converted from another type, or given by a function of `math::` or `fast::` is taken to be exact: its twin is itself.
//! Twins go with values through moves, selections, shuffles and memory. Where the sum or difference of operands that are good comes
//! out bad, digits have cancelled; what is computed from that carries it on, until it is lost in something larger or stored to a buffer, where it
//! is told.
//!
//! A twin knows the bits that it belongs to, so that one of a value that has been changed by other means counts no more.

use super::address::Part;
use super::check::Check;
use super::code::{Access, Inst, Pc};
use super::describe::Target;
use super::findings::{Description, Findings};
use super::frame::{LANES, Register, Word, lanes_of};
use super::machine::{Machine, Setting, Warp};
use super::report::{Produced, Report, Thread};
use super::{Options, Program};
use crate::number::value;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::ir::{Binary, Unary};
use std::collections::HashMap;

/// By how much the relative error must grow in one operation for digits to have cancelled there: by three of them.
const GROWTH: f64 = 8.0;

/// An `f32` in `f64`.
#[derive(Clone, Copy, Debug)]
struct Twin {
    /// The bits that it belongs to.
    of: u32,
    exact: f64,
    /// Where its digits have cancelled, from 1; 0 is nowhere.
    event: u32,
}

impl Twin {
    /// Of a value that is exact.
    fn itself(of: u32) -> Twin {
        Twin { of, exact: f32::from_bits(of).into(), event: 0 }
    }

    /// How far the value is from it, relatively.
    fn error(self) -> f64 {
        let value = f64::from(f32::from_bits(self.of));
        if value == self.exact { 0.0 } else { ((value - self.exact) / self.exact).abs() }
    }
}

/// Digits have cancelled.
#[derive(Clone, Debug)]
struct Event {
    site: Pc,
    thread: Thread,
    operation: String,
    inputs: Vec<String>,
    twin: Twin,
}

/// A launch that is looked at.
pub struct Precision<'p> {
    findings: Findings<'p>,
    /// The relative error from which on a value is bad.
    bound: f64,
    /// By warp, by row, by lane.
    frames: Vec<Vec<[Twin; LANES]>>,
    /// By the first byte of what is in memory; `None` is the block's shared memory.
    memory: HashMap<(Option<usize>, u64), Twin>,
    events: Vec<Event>,
    /// The event of each instruction and warp: one stands for all.
    known: HashMap<(Pc, u32), u32>,
}

impl<'p> Precision<'p> {
    /// Of a launch that is about to run.
    pub fn new(program: &'p Program, setting: &Setting, options: &Options, bound: f64) -> Precision<'p> {
        let rows = vec![[Twin::itself(0); LANES]; program.code.rows as usize];
        Precision {
            findings: Findings::new(program, options),
            bound,
            frames: vec![rows; setting.warps() as usize],
            memory: HashMap::new(),
            events: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// A block begins, with shared memory of its own.
    pub fn forget_shared(&mut self) {
        self.memory.retain(|(buffer, _), _| buffer.is_some());
    }

    /// What was found.
    pub fn found(self) -> Report {
        self.findings.report()
    }

    /// The twin of a lane of a register.
    fn twin(&self, warp: &Warp, row: u32, lane: usize) -> Twin {
        let bits = u32::lanes(&warp.rows, row as usize)[lane];
        let twin = self.frames[warp.index as usize][row as usize][lane];
        if twin.of == bits { twin } else { Twin::itself(bits) }
    }

    /// Register `to` has the twins that `of` gives for its lanes.
    fn set(&mut self, warp: &Warp, mask: u32, to: u32, of: impl Fn(&Self, usize) -> Twin) {
        let mut twins = self.frames[warp.index as usize][to as usize];
        lanes_of(mask).for_each(|lane| twins[lane] = of(self, lane));
        self.frames[warp.index as usize][to as usize] = twins;
    }

    /// The lanes of `mask` hold what another register held.
    fn copied(&mut self, warp: &Warp, mask: u32, to: Register, from: Register) {
        if !to.wide {
            self.set(warp, mask, to.row, |p, lane| p.twin(warp, from.row, lane));
        }
    }

    /// Register `to` was computed from `operands`.
    fn computed(
        &mut self,
        machine: &Machine<'_, '_>,
        at: (Pc, u32),
        warp: &Warp,
        (to, inst): (u32, &Inst),
        operands: &[u32],
        exact: impl Fn(&[f64]) -> f64,
    ) {
        let (site, mask) = at;
        for lane in lanes_of(mask) {
            let bits = u32::lanes(&warp.rows, to as usize)[lane];
            let twins: Vec<Twin> = operands.iter().map(|row| self.twin(warp, *row, lane)).collect();
            let exacts: Vec<f64> = twins.iter().map(|twin| twin.exact).collect();
            let mut twin = Twin { of: bits, exact: exact(&exacts), event: 0 };
            let (value, least) = (f32::from_bits(bits), f64::from(f32::MIN_POSITIVE));
            // What leaves the range of `f32` is another matter.
            if !value.is_finite() || !twin.exact.is_finite() || twin.exact != 0.0 && twin.exact.abs() < least {
                twin = Twin::itself(bits);
            }
            let error = twin.error();
            if error > self.bound {
                let worst = twins.iter().map(|twin| twin.error()).fold(0.0, f64::max);
                let before = twins.iter().map(|twin| twin.event).find(|event| *event != 0);
                let sums = matches!(inst, Inst::MulAdd { .. } | Inst::Binary { op: Binary::Add | Binary::Sub, .. });
                twin.event = match before {
                    Some(event) => event,
                    None if sums && error >= GROWTH * worst => {
                        let inputs = twins.iter().map(|twin| value_of(twin.of)).collect();
                        self.event(site, machine.thread(warp.index, lane), inst, inputs, twin)
                    }
                    None => 0,
                };
            }
            self.frames[warp.index as usize][to as usize][lane] = twin;
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

    /// Reports that a lane stores what came of digits that have cancelled.
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
        let result = value_of(event.twin.of);
        let message = format!(
            "digits cancel: `{}` is {result}, and would be {} if all had been computed in `f64`; what is stored to element {element} of \
             `{name}` is off by {}",
            event.operation,
            value_of((event.twin.exact as f32).to_bits()),
            share(twin.error()),
        );
        let produced = Produced { operation: format!("`{}`", event.operation), inputs: event.inputs.clone(), result };
        let description = Description::new(message)
            .about(object)
            .against(Some(at.0), machine.thread(at.1.index, lane), "stores what comes of it")
            .produced(produced);
        self.findings.add(check, site, 1, thread, description);
    }
}

/// A number as Rust writes it.
fn value_of(bits: u32) -> String {
    value(Scalar::F32, bits.into())
}

/// A relative error, in words.
fn share(error: f64) -> String {
    match error {
        e if e < 0.01 => format!("{e:.1e} of it"),
        e if e < 10.0 => format!("{:.0} %", 100.0 * e),
        _ => "more than ten times what it is".to_string(),
    }
}

impl<'p> Machine<'p, '_> {
    /// After `inst` has run on the lanes of `mask`.
    pub fn follow(&mut self, p: &mut Precision<'p>, site: Pc, warp: &Warp, mask: u32, inst: &Inst) {
        let program = self.program;
        let code = &program.code;
        match *inst {
            Inst::Unary { ty: Scalar::F32, .. }
            | Inst::Binary { ty: Scalar::F32, .. }
            | Inst::MulAdd { ty: Scalar::F32, .. }
                if program.is_math(site) => {}
            Inst::Unary { op, ty: Scalar::F32, to, a } => {
                let of: fn(f64) -> f64 = match op {
                    Unary::Neg => |x| -x,
                    Unary::Abs => f64::abs,
                    Unary::Sqrt => f64::sqrt,
                    _ => return,
                };
                p.computed(self, (site, mask), warp, (to, inst), &[a], |x| of(x[0]));
            }
            Inst::Binary { op, ty: Scalar::F32, to, a, b } => {
                let of: fn(f64, f64) -> f64 = match op {
                    Binary::Add => |x, y| x + y,
                    Binary::Sub => |x, y| x - y,
                    Binary::Mul => |x, y| x * y,
                    Binary::Div => |x, y| x / y,
                    // Of two that are close the one that was taken.
                    Binary::Min | Binary::Max => {
                        return p.set(warp, mask, to, |p, lane| {
                            let bits = u32::lanes(&warp.rows, to as usize)[lane];
                            let twins = [a, b].map(|row| p.twin(warp, row, lane));
                            twins.into_iter().find(|twin| twin.of == bits).unwrap_or(Twin::itself(bits))
                        });
                    }
                    _ => return,
                };
                p.computed(self, (site, mask), warp, (to, inst), &[a, b], |x| of(x[0], x[1]));
            }
            Inst::MulAdd { ty: Scalar::F32, to, a, b, c } => {
                p.computed(self, (site, mask), warp, (to, inst), &[a, b, c], |x| x[0].mul_add(x[1], x[2]));
            }
            Inst::Select { wide: false, to, condition, yes, no } => {
                let holds = self.simd.truth(&warp.rows, condition);
                p.set(warp, mask, to, |p, lane| p.twin(warp, if holds >> lane & 1 == 1 { yes } else { no }, lane));
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
            Inst::Shuffle { mode, width, to, from, selector } if !to.wide => {
                let selectors = u32::lanes(&warp.rows, selector as usize);
                let sources = super::warp::sources(mode, width.into(), selectors);
                p.set(warp, mask, to.row, |p, lane| p.twin(warp, from.row, sources[lane]));
            }
            Inst::Load(i) if code.accesses[i as usize].element == Scalar::F32 => {
                let access = &code.accesses[i as usize];
                self.each_part(site, warp, mask, access, |_, part| {
                    for (i, to) in access.values.iter().enumerate() {
                        for lane in lanes_of(part.lanes) {
                            if let Some(twin) = p.memory.get(&place(part, i, lane)).copied() {
                                p.set(warp, 1 << lane, to.row, |_, _| twin);
                            }
                        }
                    }
                });
            }
            Inst::Store(i) if code.accesses[i as usize].element == Scalar::F32 => {
                let access = &code.accesses[i as usize];
                self.each_part(site, warp, mask, access, |machine, part| {
                    for (i, from) in access.values.iter().enumerate() {
                        for lane in lanes_of(part.lanes) {
                            let (twin, place) = (p.twin(warp, from.row, lane), place(part, i, lane));
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

/// The place of scalar `i` of an access.
fn place(part: &Part, i: usize, lane: usize) -> (Option<usize>, u64) {
    let buffer = if let Target::Buffer(b) = part.target { Some(b) } else { None };
    (buffer, part.offset[lane] + 4 * i as u64)
}
