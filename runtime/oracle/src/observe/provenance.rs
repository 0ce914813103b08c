//! Origins of NaNs and infinities: the operation that produced one which the kernel stores to a
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
//! inherit its origin. The bits of a finite float carry the register that holds it, so that a
//! conversion with an infinite result knows its operand.

use crate::check::Check;
use crate::code::frame::{FULL, LANES, Register, Row, Word, lanes_of};
use crate::code::{Access, Atomic, Inst, Pc, RowIndex};
use crate::machine::address::Part;
use crate::machine::describe::Target;
use crate::machine::findings::{Description, Findings};
use crate::machine::memory::word;
use crate::machine::nonfinite::{FloatClass, class_of, is_any_float};
use crate::machine::observer::Observer;
use crate::machine::{Machine, Setting, Warp};
use crate::observe::operation::describe;
use crate::report::{Finding, Produced, Thread};
use crate::{Options, Program};
use kernel_dsl_compiler::Scalar;
use std::collections::HashMap;

/// An origin. 0 is none; values from [`BITS`] on denote the bits of a finite float, by its row;
/// other values are an [`Event`], from 1.
type Id = u32;

const BITS: Id = 1 << 31;

/// The maximum number of distinct events; later ones are merged with the last of their instruction.
const MAX_EVENTS: usize = 1 << 16;

/// An operation that produced a NaN or an infinity.
#[derive(Clone, Debug)]
pub struct Event {
    check: Check,
    pub site: Pc,
    thread: Thread,
    pub operands: Vec<(Scalar, u64)>,
    pub result: (Scalar, u64),
}

/// The origins of all values in a running launch.
#[derive(Debug)]
pub struct Tracer<'p> {
    program: &'p Program,
    findings: Findings<'p>,
    events: Vec<Event>,
    /// The last event of each instruction.
    last: HashMap<Pc, Id>,
    /// The origin of each value, by warp, row and lane.
    frames: Vec<Vec<[Id; LANES]>>,
    /// The origin of each value in memory, by buffer and offset of its first byte; `None` is the
    /// block's shared memory.
    memory: HashMap<(Option<usize>, u64), Id>,
    /// The bits in memory before an atomic operation, by lane.
    before: [u64; LANES],
}

impl Program {
    /// Returns whether a run with these options tracks origins.
    pub(crate) fn wants_origins(&self, options: &Options) -> bool {
        self.traced
            && options.checks == crate::Checks::All
            && Check::ORIGINS.iter().any(|check| !options.without.contains(*check))
    }
}

impl Machine<'_, '_> {
    /// Records the bits in memory that `inst` will change, before it runs.
    fn trace_before(&mut self, t: &mut Tracer<'_>, site: Pc, warp: &Warp, mask: u32) {
        let code = &self.program.code;
        let Inst::Atomic(i) = code.insts[site as usize] else { return };
        let atomic = &code.atomics[i as usize];
        t.before = [0; LANES];
        self.each_part(site, warp, mask, &atomic.access, |machine, part| {
            let memory = machine.contents(part.target);
            lanes_of(part.lanes).for_each(|l| t.before[l] = word(memory, part.offset[l], atomic.access.element));
        });
    }

    /// Propagates origins after `inst` has run on the lanes of `mask`.
    fn trace(&mut self, t: &mut Tracer<'_>, site: Pc, warp: &Warp, mask: u32, inst: &Inst) {
        let program = self.program;
        let code = &program.code;
        let at = Where { site, warp: warp.index, rows: &warp.rows, mask };
        let reg = |row: RowIndex, ty: Scalar| Register { row, wide: ty.bits() == 64 };
        match *inst {
            Inst::Unary { ty, to, a, .. } | Inst::CheckedUnary { ty, to, a, .. } if ty.is_float() => {
                t.computed(self, at, (ty, reg(to, ty)), &[(ty, reg(a, ty))]);
            }
            Inst::Binary { ty, to, a, b, .. } if ty.is_float() => {
                t.computed(self, at, (ty, reg(to, ty)), &[(ty, reg(a, ty)), (ty, reg(b, ty))]);
            }
            Inst::MulAdd { ty, to, a, b, c } => {
                t.computed(self, at, (ty, reg(to, ty)), &[a, b, c].map(|row| (ty, reg(row, ty))));
            }
            Inst::Approximate { to, a, .. } => {
                let f32 = |row| (Scalar::F32, reg(row, Scalar::F32));
                t.computed(self, at, f32(to), &[f32(a)]);
            }
            Inst::Cast { from, into, to, a, .. } if is_any_float(from) && is_any_float(into) => {
                t.computed(self, at, (into, reg(to, into)), &[(from, reg(a, from))]);
            }
            Inst::Cast { from, into, to, a, .. } => {
                let keep = !is_any_float(from) && !is_any_float(into);
                t.ids(at.warp)[to as usize] = if keep { t.ids(at.warp)[a as usize] } else { [0; LANES] };
            }
            Inst::Bitcast { from, into, to, a } => t.bits(self, at, (into, to), (from, a)),
            // Integer operations: the operands may be a float's bits.
            Inst::Unary { to, a, .. } | Inst::CheckedUnary { to, a, .. } => t.derived(at, to, &[a]),
            Inst::Binary { to, a, b, .. } | Inst::CheckedBinary { to, a, b, .. } => t.derived(at, to, &[a, b]),
            Inst::Bits(i) => {
                let operation = &code.operations[i as usize];
                let operands: Vec<_> = operation.operands.iter().map(|r| r.row).collect();
                t.derived(at, operation.to.row, &operands);
            }
            Inst::Select { to, condition, yes, no, .. } => {
                let holds = self.simd.truth(&warp.rows, condition);
                let ids = t.ids(at.warp);
                ids[to as usize] = std::array::from_fn(|l| ids[if holds >> l & 1 == 1 { yes } else { no } as usize][l]);
            }
            Inst::Copy { to, from } => t.copied(at, to.row, from.row, FULL),
            Inst::Move { to, from } => {
                t.copied(at, to.row, from.row, mask);
                t.written_in_math(self, at, to, from);
            }
            Inst::ReadLocal { local, to } => t.copied(at, to.row, code.locals[local as usize].first.row, FULL),
            Inst::WriteLocal { local, from } => t.copied(at, code.locals[local as usize].first.row, from.row, mask),
            Inst::ReadElement { local, index, to } => {
                let (local, index) = (&code.locals[local as usize], u32::lanes(&warp.rows, index as usize));
                for l in lanes_of(mask).filter(|l| index[*l] < local.len) {
                    t.ids(at.warp)[to.row as usize][l] = t.ids(at.warp)[local.at(index[l]).row as usize][l];
                }
            }
            Inst::WriteElement { local, index, from } => {
                let (local, index) = (&code.locals[local as usize], u32::lanes(&warp.rows, index as usize));
                for l in lanes_of(mask).filter(|l| index[*l] < local.len) {
                    t.ids(at.warp)[local.at(index[l]).row as usize][l] = t.ids(at.warp)[from.row as usize][l];
                }
            }
            Inst::Shuffle { mode, width, to, from, selector } => {
                let selectors = u32::lanes(&warp.rows, selector as usize);
                let sources = crate::machine::warp::sources(mode, width.into(), selectors);
                let ids = t.ids(at.warp);
                ids[to.row as usize] = std::array::from_fn(|l| match ids[from.row as usize][sources[l]] {
                    id if id < BITS => id,
                    _ => 0,
                });
            }
            Inst::Inline(i) => {
                let inline = &code.inlines[i as usize];
                for (ty, to) in &inline.outputs {
                    t.computed(self, at, (*ty, *to), &inline.typed);
                }
            }
            Inst::Load(i) => self.trace_load(t, at, warp, &code.accesses[i as usize]),
            Inst::Store(i) => self.trace_store(t, at, warp, &code.accesses[i as usize]),
            Inst::Atomic(i) => self.trace_atomic(t, at, warp, &code.atomics[i as usize]),
            Inst::CopyAsync(i) => {
                let to = &code.copies[i as usize].to;
                self.each_part(site, warp, mask, to, |_, part| {
                    let bytes = u64::from(to.bytes());
                    t.memory.retain(|(buffer, byte), _| {
                        buffer.is_some() || !lanes_of(part.lanes).any(|l| byte.wrapping_sub(part.offset[l]) < bytes)
                    });
                });
            }
            _ => {}
        }
    }

    fn trace_load(&mut self, t: &mut Tracer<'_>, at: Where<'_>, warp: &Warp, access: &Access) {
        for (i, to) in access.values.iter().enumerate() {
            t.ids(at.warp)[to.row as usize] = match access.otherwise.get(i) {
                Some(otherwise) => t.ids(at.warp)[otherwise.row as usize],
                None => [0; LANES],
            };
        }
        self.each_part(at.site, warp, at.mask, access, |_, part| {
            for (i, to) in access.values.iter().enumerate() {
                for l in lanes_of(part.lanes) {
                    let id = t.memory.get(&part.scalar(access, i, l)).copied().unwrap_or(0);
                    t.ids(at.warp)[to.row as usize][l] = id;
                }
            }
        });
    }

    fn trace_store(&mut self, t: &mut Tracer<'_>, at: Where<'_>, warp: &Warp, access: &Access) {
        self.each_part(at.site, warp, at.mask, access, |machine, part| {
            if matches!(part.target, Target::Buffer(b) if !machine.buffers[b].mutable) {
                return;
            }
            for (i, from) in access.values.iter().enumerate() {
                for l in lanes_of(part.lanes) {
                    let (bits, id) = (from.get(at.rows, l), t.ids(at.warp)[from.row as usize][l]);
                    let float = is_any_float(access.element);
                    let id = if float && class_of(access.element, bits) == FloatClass::Finite || id >= BITS {
                        0
                    } else {
                        id
                    };
                    t.store(part.scalar(access, i, l), id);
                    if float && id != 0 {
                        t.tell(machine, at, access, part, l, id);
                    }
                }
            }
        });
    }

    fn trace_atomic(&mut self, t: &mut Tracer<'_>, at: Where<'_>, warp: &Warp, atomic: &Atomic) {
        let access = &atomic.access;
        let (ty, operand) = (access.element, access.values[0]);
        if let Some(to) = atomic.to {
            t.ids(at.warp)[to.row as usize] = [0; LANES];
        }
        if !ty.is_float() {
            return;
        }
        self.each_part(at.site, warp, at.mask, access, |machine, part| {
            for l in lanes_of(part.lanes) {
                let place = part.scalar(access, 0, l);
                let after = word(machine.contents(part.target), part.offset[l], ty);
                let held = t.memory.get(&place).copied().unwrap_or(0);
                if let Some(to) = atomic.to {
                    t.ids(at.warp)[to.row as usize][l] = held;
                }
                if class_of(ty, after) == FloatClass::Finite {
                    t.store(place, 0);
                    continue;
                }
                let (bits, own) = (operand.get(at.rows, l), t.ids(at.warp)[operand.row as usize][l]);
                let operands = [(ty, t.before[l], held), (ty, bits, own)];
                let id = t.origin(machine, at, l, (ty, after), &operands);
                t.store(place, id);
                if id != 0 {
                    t.tell(machine, at, access, part, l, id);
                }
            }
        });
    }
}

/// An instruction of a warp.
#[derive(Clone, Copy)]
struct Where<'r> {
    site: Pc,
    warp: u32,
    rows: &'r [Row],
    mask: u32,
}

impl Observer for Tracer<'_> {
    fn block(&mut self) {
        self.forget_shared();
    }

    fn before(&mut self, machine: &mut Machine<'_, '_>, site: Pc, warp: &Warp, mask: u32) {
        machine.trace_before(self, site, warp, mask);
    }

    fn after(&mut self, machine: &mut Machine<'_, '_>, site: Pc, warp: &Warp, mask: u32, inst: &Inst) {
        machine.trace(self, site, warp, mask, inst);
    }
}

impl<'p> Tracer<'p> {
    /// Returns the tracer of a launch that is about to run.
    pub fn new(program: &'p Program, setting: &Setting, options: &Options) -> Tracer<'p> {
        Tracer {
            program,
            findings: Findings::new(program, options),
            events: Vec::new(),
            last: HashMap::new(),
            frames: vec![vec![[0; LANES]; program.code.rows as usize]; setting.grid.warp_count() as usize],
            memory: HashMap::new(),
            before: [0; LANES],
        }
    }

    /// Drops the origins in shared memory when a block begins.
    fn forget_shared(&mut self) {
        self.memory.retain(|(buffer, _), _| buffer.is_some());
    }

    fn ids(&mut self, warp: u32) -> &mut Vec<[Id; LANES]> {
        &mut self.frames[warp as usize]
    }

    fn store(&mut self, place: (Option<usize>, u64), id: Id) {
        if id != 0 {
            self.memory.insert(place, id);
        } else if !self.memory.is_empty() {
            self.memory.remove(&place);
        }
    }

    fn copied(&mut self, at: Where<'_>, to: RowIndex, from: RowIndex, mask: u32) {
        let ids = self.ids(at.warp);
        let from = ids[from as usize];
        lanes_of(mask).for_each(|l| ids[to as usize][l] = from[l]);
    }

    /// Propagates origins to an integer computed from others.
    fn derived(&mut self, at: Where<'_>, to: RowIndex, from: &[RowIndex]) {
        let ids = self.ids(at.warp);
        let of = |l: usize| from.iter().map(|row| ids[*row as usize][l]).find(|id| *id != 0).unwrap_or(0);
        ids[to as usize] = std::array::from_fn(of);
    }

    /// Propagates origins to a float computed from `operands`.
    fn computed(
        &mut self,
        machine: &Machine<'_, '_>,
        at: Where<'_>,
        to: (Scalar, Register),
        operands: &[(Scalar, Register)],
    ) {
        self.ids(at.warp)[to.1.row as usize] = [0; LANES];
        for l in lanes_of(at.mask) {
            let result = (to.0, to.1.get(at.rows, l));
            let of = |(ty, register): &(Scalar, Register)| {
                (*ty, register.get(at.rows, l), self.frames[at.warp as usize][register.row as usize][l])
            };
            let operands: Vec<_> = operands.iter().map(of).collect();
            let id = match class_of(result.0, result.1) {
                // Decoding a 16-bit infinity produces finite intermediate results.
                FloatClass::Finite => {
                    let within =
                        |(ty, bits, id): &&(Scalar, u64, Id)| *id < BITS && class_of(*ty, *bits) == FloatClass::Finite;
                    operands.iter().filter(within).map(|(.., id)| *id).find(|id| *id != 0).unwrap_or(0)
                }
                _ => self.origin(machine, at, l, result, &operands),
            };
            self.ids(at.warp)[to.1.row as usize][l] = id;
        }
    }

    /// Returns the origin of a non-finite result: the origin of the operand that caused it, or a
    /// new one.
    fn origin(
        &mut self,
        machine: &Machine<'_, '_>,
        at: Where<'_>,
        lane: usize,
        result: (Scalar, u64),
        operands: &[(Scalar, u64, Id)],
    ) -> Id {
        let what = class_of(result.0, result.1);
        let alike = |(ty, bits, _): &&(Scalar, u64, Id)| class_of(*ty, *bits) == what;
        // With several infinities, the origin is that of the operand equal to the result, such as
        // the larger one.
        let same = operands.iter().filter(alike).find(|(_, bits, _)| *bits == result.1);
        let handed_on = same.or_else(|| operands.iter().find(alike));
        // A format without infinities has NaNs in their place.
        let handed_on = handed_on.or_else(|| {
            operands.iter().find(|(ty, bits, _)| {
                operands.len() == 1 && *ty != result.0 && class_of(*ty, *bits) != FloatClass::Finite
            })
        });
        if let Some((.., id)) = handed_on {
            return if *id < BITS { *id } else { 0 };
        }
        let narrower = operands.len() == 1 && operands[0].0.bits() > result.0.bits();
        let check = match what {
            _ if narrower => Check::ConversionOverflow,
            FloatClass::Nan => Check::NanProduced,
            _ => Check::InfinityProduced,
        };
        self.event(machine, at, lane, check, result, operands.iter().map(|(ty, bits, _)| (*ty, *bits)).collect())
    }

    fn event(
        &mut self,
        machine: &Machine<'_, '_>,
        at: Where<'_>,
        lane: usize,
        check: Check,
        result: (Scalar, u64),
        operands: Vec<(Scalar, u64)>,
    ) -> Id {
        if self.events.len() >= MAX_EVENTS
            && let Some(id) = self.last.get(&at.site)
        {
            return *id;
        }
        self.events.push(Event { check, site: at.site, thread: machine.thread(at.warp, lane), operands, result });
        let id = self.events.len() as Id;
        self.last.insert(at.site, id);
        id
    }

    /// Propagates origins through a bit cast.
    fn bits(&mut self, machine: &Machine<'_, '_>, at: Where<'_>, to: (Scalar, Register), from: (Scalar, Register)) {
        let mut of = self.ids(at.warp)[from.1.row as usize];
        if from.0 == Scalar::F32 && !is_any_float(to.0) {
            for l in lanes_of(at.mask) {
                if of[l] == 0 && class_of(from.0, from.1.get(at.rows, l)) == FloatClass::Finite {
                    of[l] = BITS | from.1.row;
                }
            }
        } else if is_any_float(to.0) {
            for l in lanes_of(at.mask) {
                if of[l] < BITS {
                    continue;
                }
                let result = (to.0, to.1.get(at.rows, l));
                let operand = Register { row: of[l] - BITS, wide: false }.get(at.rows, l);
                // A 32-bit infinity made from bits is a constant, for example in a decoder of
                // 16-bit infinities from inputs.
                let converted = to.0.is_half() && class_of(result.0, result.1) != FloatClass::Finite;
                of[l] = match converted {
                    true => {
                        let operands = vec![(Scalar::F32, operand)];
                        self.event(machine, at, l, Check::ConversionOverflow, result, operands)
                    }
                    false => 0,
                };
            }
        }
        self.ids(at.warp)[to.1.row as usize] = of;
    }

    /// Records an origin for a constant that a function of `math::` returns for operands at its
    /// limits.
    fn written_in_math(&mut self, machine: &Machine<'_, '_>, at: Where<'_>, to: Register, from: Register) {
        let Some(ty) = self.program.code.written.get(&from.row).copied() else { return };
        if !self.program.is_math(at.site) {
            return;
        }
        for l in lanes_of(at.mask) {
            let result = (ty, to.get(at.rows, l));
            let check =
                if class_of(ty, result.1) == FloatClass::Nan { Check::NanProduced } else { Check::InfinityProduced };
            self.ids(at.warp)[to.row as usize][l] = self.event(machine, at, l, check, result, Vec::new());
        }
    }

    /// Reports that lane `lane` stores the result of event `id`.
    fn tell(&mut self, machine: &Machine<'_, '_>, at: Where<'_>, access: &Access, part: &Part, lane: usize, id: Id) {
        let Some(event) = self.events.get(id as usize - 1) else { return };
        let Target::Buffer(_) = part.target else { return };
        let (check, site) = (event.check, event.site);
        if machine.options.without.contains(check) || self.findings.count(check, site, None, 1) {
            return;
        }
        let object = machine.object(part.target, part.offset[lane], access);
        let Produced { operation, result, .. } = describe(self.program, event);
        let (name, element) = (&object.name, object.element.unwrap_or(0));
        let message = match check {
            Check::NanProduced => format!("{operation} is a NaN, and is stored to element {element} of `{name}`"),
            Check::InfinityProduced => {
                format!("{operation} is {result}, and is stored to element {element} of `{name}`")
            }
            _ => format!(
                "{operation} is beyond the type's range ({result}), and is stored to element {element} of `{name}`"
            ),
        };
        let description = Description::new(message)
            .about(object)
            .against(Some(at.site), machine.thread(at.warp, lane), "stores a result of it")
            .produced(describe(self.program, event));
        let thread = event.thread;
        self.findings.add(check, site, 1, thread, description);
    }

    /// Returns the findings: NaNs before infinities.
    pub fn found(self) -> crate::Report {
        let mut report = self.findings.report();
        report.findings.sort_by_key(|f: &Finding| f.check);
        report
    }
}
