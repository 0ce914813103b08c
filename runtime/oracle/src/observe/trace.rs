//! The trace of one thread, line by line: assignments to variables, loads and stores, and branches.
//!
//! Variables that change are locals of the IR; others have names only where the kernel was lowered
//! by [`lower_named`](kernel_dsl_compiler::lower::lower_named). The results of an instruction are
//! read when the next instruction runs.

use crate::Program;
use crate::code::frame::{FrameRegister, LaneWord};
use crate::code::{AccessLocation, AccessOp, Inst, Pc, SlotIndex};
use crate::machine::observer::Observer;
use crate::machine::{Machine, VALUES, Warp};
use crate::report::{self, Sites, shown_path};
use kernel_dsl_compiler::{Scalar, ir};
use runtime_simt::number::short;
use serde::Serialize;
use std::fmt;

/// The trace of a thread.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Trace {
    /// The instance that ran, in Rust syntax.
    pub kernel: String,
    /// Block index in x, y, z.
    pub block: [u32; 3],
    /// Thread index in its block in x, y, z.
    pub thread: [u32; 3],
    /// The executed lines, once for each execution.
    pub lines: Vec<TracedLine>,
    /// The number of lines beyond the limit.
    pub left_out: u64,
}

/// The events of a thread at one line, until it reached another.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TracedLine {
    /// The function.
    pub function: String,
    /// The file of the function.
    pub file: String,
    /// The line number in the file, from 1.
    pub line: u32,
    /// The code of the line.
    pub text: String,
    /// The events in program order.
    pub events: Vec<TraceEvent>,
}

/// An event in a thread's execution. Values are in Rust syntax.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum TraceEvent {
    /// An assignment to a variable or to an element of an array in registers.
    Assigned { name: String, value: String },
    /// A load of consecutive scalars.
    Loaded { from: AccessTarget, values: Vec<String> },
    /// A store of consecutive scalars.
    Stored { to: AccessTarget, values: Vec<String> },
    /// An atomic operation, its operand, and the previous value if the kernel uses it.
    Atomic { operation: String, at: AccessTarget, value: String, before: Option<String> },
    /// A load or store whose condition is false.
    Masked { access: &'static str, array: String },
    /// A branch and its condition.
    Branch { holds: bool },
    /// The beginning of an iteration of a loop, numbered from 1.
    Iteration { number: u64 },
    /// The end of a loop, with the number of its iterations.
    Left { iterations: u64 },
    /// A barrier.
    Barrier { scope: Threads },
    /// An exchange between lanes of the warp, and its result.
    Exchanged { value: String },
    /// A call of `log!`, and the text that it prints.
    Logged { text: String },
    /// The end of the thread.
    Ended,
}

/// The threads that wait at a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Threads {
    Grid,
    Block,
    Warp,
}

/// The target of an access.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AccessTarget {
    /// The buffer or shared array.
    pub array: String,
    /// The index in each dimension, as the kernel wrote it; empty for a computed address.
    pub index: Vec<u64>,
    /// The index of the element in the whole array; `None` if the access was out of bounds and
    /// suppressed.
    pub element: Option<i64>,
}

/// The recorder of one thread's trace.
pub(crate) struct TraceRecorder {
    pub block: [u32; 3],
    warp: u32,
    lane: usize,
    limit: usize,
    /// The instruction whose event is recorded when the next one runs.
    pending: Option<UnrecordedInstruction>,
    /// The number of iterations so far of each open construct, which counts for loops only.
    iterations: Vec<u64>,
    lines: Vec<TracedLine>,
    /// The current line: its function and number.
    at: Option<(usize, u32)>,
    left_out: u64,
}

/// An executed instruction whose results are not recorded yet.
struct UnrecordedInstruction {
    site: Pc,
    what: PendingEvent,
}

/// An event whose values are read when the next instruction runs.
enum PendingEvent {
    Load {
        from: AccessTarget,
        values: Vec<(FrameRegister, Scalar)>,
    },
    Atomic {
        operation: String,
        at: AccessTarget,
        value: String,
        before: Option<(FrameRegister, Scalar)>,
    },
    Exchange {
        to: FrameRegister,
        ty: Scalar,
    },
    /// The end of a loop's iteration, which continues at `body` or leaves the loop.
    Loop {
        slot: SlotIndex,
        body: Pc,
    },
}

impl Observer for TraceRecorder {
    fn observes(&self, block: [u32; 3]) -> bool {
        self.block == block
    }

    /// Records the instruction at `site`, and the results of the previous one.
    fn before(&mut self, machine: &mut Machine<'_, '_>, site: Pc, warp: &Warp, mask: u32) {
        if warp.index != self.warp {
            return;
        }
        let program = machine.program;
        let active = mask >> self.lane & 1 == 1;
        self.record_pending(program, site, warp, active);
        if !active {
            // The thread may be about to continue: the loop's next iteration includes lanes that
            // have executed `continue`.
            if let Inst::Step { slot, body, .. } | Inst::StepUniform { slot, body, .. } | Inst::Again { slot, body } =
                program.code.insts[site as usize]
                && warp.slots[slot as usize].pending >> self.lane & 1 == 1
            {
                self.pending = Some(UnrecordedInstruction { site, what: PendingEvent::Loop { slot, body } });
            }
            return;
        }
        let code = &program.code;
        let lane = self.lane;
        let read = |register: FrameRegister, ty: Scalar| short(ty, register.get(&warp.rows, lane));
        let row = |row: u32| u64::from(u32::lanes(&warp.rows, row as usize)[lane]);
        match code.insts[site as usize] {
            Inst::DbgValue(i) => {
                let (name, register, ty) = &code.names[i as usize];
                self.event(program, site, TraceEvent::Assigned { name: name.clone(), value: read(*register, *ty) });
            }
            Inst::WriteLocal { local, from } => {
                let local = &code.locals[local as usize];
                if let Some(ty) = local.ty {
                    self.event(program, site, TraceEvent::Assigned { name: local.name.clone(), value: read(from, ty) });
                }
            }
            Inst::WriteElement { local, index, from } => {
                let local = &code.locals[local as usize];
                if let Some(ty) = local.ty {
                    let name = format!("{}[{}]", local.name, row(index));
                    self.event(program, site, TraceEvent::Assigned { name, value: read(from, ty) });
                }
            }
            Inst::Load(i) => {
                let access = &code.accesses[i as usize];
                if let Some(from) = self.access_target(machine, site, warp, mask, access, "load") {
                    let values = access.values.iter().map(|value| (*value, access.element)).collect();
                    self.pending = Some(UnrecordedInstruction { site, what: PendingEvent::Load { from, values } });
                }
            }
            Inst::Store(i) => {
                let access = &code.accesses[i as usize];
                if let Some(to) = self.access_target(machine, site, warp, mask, access, "store") {
                    let values = access.values.iter().map(|value| read(*value, access.element)).collect();
                    self.event(program, site, TraceEvent::Stored { to, values });
                }
            }
            Inst::CopyAsync(i) => {
                let copy = &code.copies[i as usize];
                let holds = |guard: Option<u32>| guard.is_none_or(|guard| row(guard) != 0);
                if holds(copy.guard)
                    && let Some(to) = self.access_target(machine, site, warp, mask, &copy.to, "store")
                {
                    let from = match holds(copy.inside) {
                        true => self.access_target(machine, site, warp, mask, &copy.from, "load"),
                        false => None,
                    };
                    let from = from.map_or_else(|| "zeros".to_string(), |from| from.to_string());
                    self.event(program, site, TraceEvent::Stored { to, values: vec![format!("a copy of {from}")] });
                }
            }
            Inst::Atomic(i) => {
                let atomic = &code.atomics[i as usize];
                let element = atomic.access.element;
                if let Some(at) = self.access_target(machine, site, warp, mask, &atomic.access, "atomic operation") {
                    let operation = name_of(atomic.operation, line_at(program, site));
                    let bits = atomic.access.values.last().map(|value| value.get(&warp.rows, lane));
                    let value = bits.map_or(String::new(), |bits| match operation {
                        "fetch_sub" => short(element, negated(element, bits)),
                        _ => short(element, bits),
                    });
                    let operation = operation.to_string();
                    let before = atomic.to.map(|to| (to, element));
                    self.pending = Some(UnrecordedInstruction {
                        site,
                        what: PendingEvent::Atomic { operation, at, value, before },
                    });
                }
            }
            Inst::Shuffle { .. } | Inst::Vote { .. } | Inst::Match { .. } | Inst::Reduce { .. } => {
                if let Some((to, ty)) = code.exchanges.get(&site) {
                    self.pending =
                        Some(UnrecordedInstruction { site, what: PendingEvent::Exchange { to: *to, ty: *ty } });
                }
            }
            Inst::If { condition, .. } => self.event(program, site, TraceEvent::Branch { holds: row(condition) != 0 }),
            Inst::Enter { slot } | Inst::EnterFor { slot, .. } => self.iterations[slot as usize] = 0,
            Inst::Test { slot, .. } => {
                self.pending = Some(UnrecordedInstruction { site, what: PendingEvent::Loop { slot, body: site + 1 } });
            }
            Inst::Step { slot, body, .. } | Inst::StepUniform { slot, body, .. } | Inst::Again { slot, body } => {
                self.pending = Some(UnrecordedInstruction { site, what: PendingEvent::Loop { slot, body } });
            }
            Inst::GridSync => self.event(program, site, TraceEvent::Barrier { scope: Threads::Grid }),
            Inst::BlockSync => self.event(program, site, TraceEvent::Barrier { scope: Threads::Block }),
            Inst::WarpSync => self.event(program, site, TraceEvent::Barrier { scope: Threads::Warp }),
            Inst::Log(i) => {
                let text = String::from_utf8_lossy(&code.logs[i as usize].text(warp, lane)).trim_end().to_string();
                self.event(program, site, TraceEvent::Logged { text });
            }
            Inst::Return => self.event(program, site, TraceEvent::Ended),
            // The end of the thread has no line.
            Inst::Exit if self.at.is_some() => self.push_event(TraceEvent::Ended),
            Inst::Exit => self.event(program, site, TraceEvent::Ended),
            _ => {}
        }
    }
}

impl TraceRecorder {
    /// Returns the recorder of lane `lane` of warp `warp` of `block`, for `limit` lines.
    pub fn new(block: [u32; 3], warp: u32, lane: usize, limit: usize, slots: u32) -> TraceRecorder {
        TraceRecorder {
            block,
            warp,
            lane,
            limit,
            pending: None,
            iterations: vec![0; slots as usize],
            lines: Vec::new(),
            at: None,
            left_out: 0,
        }
    }

    /// Records the results of the last instruction, when the one at `site` is about to run.
    fn record_pending(&mut self, program: &Program, site: Pc, warp: &Warp, active: bool) {
        let Some(UnrecordedInstruction { site: of_site, what }) = self.pending.take() else { return };
        let lane = self.lane;
        let read = |(register, ty): (FrameRegister, Scalar)| short(ty, register.get(&warp.rows, lane));
        let event = match what {
            PendingEvent::Load { from, values } => {
                TraceEvent::Loaded { from, values: values.into_iter().map(read).collect() }
            }
            PendingEvent::Atomic { operation, at, value, before } => {
                TraceEvent::Atomic { operation, at, value, before: before.map(read) }
            }
            PendingEvent::Exchange { to, ty } => TraceEvent::Exchanged { value: read((to, ty)) },
            PendingEvent::Loop { slot, body } => {
                let iterations = &mut self.iterations[slot as usize];
                if active && site == body {
                    *iterations += 1;
                    // A loop that returns here unconditionally has already had an iteration.
                    let first = matches!(program.code.insts[of_site as usize], Inst::Again { .. });
                    TraceEvent::Iteration { number: *iterations + u64::from(first) }
                } else {
                    TraceEvent::Left { iterations: *iterations }
                }
            }
        };
        self.event(program, of_site, event);
    }

    /// Returns the target of the lane's access, or records a masked access and returns `None` if
    /// its condition is false.
    fn access_target(
        &mut self,
        machine: &mut Machine<'_, '_>,
        site: Pc,
        warp: &Warp,
        mask: u32,
        access: &AccessOp,
        what: &'static str,
    ) -> Option<AccessTarget> {
        let lane = self.lane;
        let holds = machine.guarded(warp, mask, access) >> lane & 1 == 1;
        let (address, _) = machine.addresses::<VALUES>(site, warp, 1 << lane, access);
        let part = machine.part::<VALUES>(site, warp, &mut (1 << lane), &address, access);
        let object = machine.object(part.target, part.offset[lane], access);
        if !holds {
            self.event(machine.program, site, TraceEvent::Masked { access: what, array: object.name });
            return None;
        }
        let row = |row: u32| u64::from(u32::lanes(&warp.rows, row as usize)[lane]);
        let index = match &access.place {
            AccessLocation::Global { dims, .. } | AccessLocation::Dynamic { dims, .. } => {
                dims.iter().map(|d| row(d.index)).collect()
            }
            AccessLocation::Shared { dims, .. } => dims.iter().map(|d| row(d.index)).collect(),
            AccessLocation::Address { .. } | AccessLocation::SharedAddress { .. } => Vec::new(),
        };
        let element = object.element.filter(|_| part.lanes != 0);
        Some(AccessTarget { array: object.name, index, element })
    }

    /// Records an event at the current line of the thread.
    fn push_event(&mut self, event: TraceEvent) {
        if self.left_out == 0
            && let Some(line) = self.lines.last_mut()
        {
            line.events.push(event);
        }
    }

    fn event(&mut self, program: &Program, site: Pc, event: TraceEvent) {
        let place = program.place(site);
        let at = Some((place.source, place.line));
        if self.at == at {
            return self.push_event(event);
        }
        self.at = at;
        if self.lines.len() >= self.limit {
            self.left_out += 1;
            return;
        }
        let text = line_at(program, site).to_string();
        let report::CodeLocation { function, file, line, .. } = place;
        self.lines.push(TracedLine { function, file, line, text, events: vec![event] });
    }

    /// Returns the trace of the thread with index `thread`.
    pub fn trace(self, program: &Program, thread: [u32; 3]) -> Trace {
        Trace {
            kernel: program.instance.clone(),
            block: self.block,
            thread,
            lines: self.lines,
            left_out: self.left_out,
        }
    }
}

/// Returns the value whose negation `fetch_sub` adds.
fn negated(ty: Scalar, bits: u64) -> u64 {
    let (width, sign) = (ty.bits(), 1 << (ty.bits() - 1));
    match ty.is_float() || ty.is_half() {
        true => bits ^ sign,
        false => bits.wrapping_neg() & (u64::MAX >> (64 - width)),
    }
}

/// Returns the line of code of an instruction; empty if its source is unknown.
fn line_at(program: &Program, site: Pc) -> &str {
    let place = program.place(site);
    let source = program.sources.get(place.source);
    source.map_or("", |source| source.line_code(place.line.saturating_sub(source.line)))
}

/// Returns the method of an atomic operation at a line of code. `fetch_sub` is an addition of the
/// negated value.
fn name_of(operation: ir::AtomicOperator, line: &str) -> &'static str {
    match operation {
        ir::AtomicOperator::Add if line.contains(".fetch_sub(") && !line.contains(".fetch_add(") => "fetch_sub",
        ir::AtomicOperator::Add => "fetch_add",
        ir::AtomicOperator::Min => "fetch_min",
        ir::AtomicOperator::Max => "fetch_max",
        ir::AtomicOperator::And => "fetch_and",
        ir::AtomicOperator::Or => "fetch_or",
        ir::AtomicOperator::Xor => "fetch_xor",
        ir::AtomicOperator::Exchange => "exchange",
        ir::AtomicOperator::CompareExchange => "compare_exchange",
        ir::AtomicOperator::Load => "atomic load",
        ir::AtomicOperator::Store => "atomic store",
    }
}

impl fmt::Display for AccessTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AccessTarget { array, index, element } = self;
        f.write_str(array)?;
        match &index[..] {
            [] => {}
            [one] => write!(f, "[{one}]")?,
            several => {
                write!(f, "[({})]", several.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))?;
            }
        }
        match (element, &index[..]) {
            (Some(element), [one]) if u64::try_from(*element) == Ok(*one) => Ok(()),
            (Some(element), _) => write!(f, " (element {element})"),
            (None, _) => f.write_str(" (outside, and skipped)"),
        }
    }
}

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceEvent::Assigned { name, value } => write!(f, "{name} = {value}"),
            TraceEvent::Loaded { from, values } => write!(f, "load {from}: {}", values.join(", ")),
            TraceEvent::Stored { to, values } => write!(f, "store {to}: {}", values.join(", ")),
            TraceEvent::Atomic { operation, at, value, before } => {
                write!(f, "{operation} {at}: {value}")?;
                before.as_ref().map_or(Ok(()), |before| write!(f, ", before it {before}"))
            }
            TraceEvent::Masked { access, array } => write!(f, "no {access} of {array}: its condition does not hold"),
            TraceEvent::Branch { holds: true } => f.write_str("the condition holds"),
            TraceEvent::Branch { holds: false } => f.write_str("the condition does not hold"),
            TraceEvent::Iteration { number } => write!(f, "iteration {number}"),
            TraceEvent::Left { iterations: 1 } => f.write_str("the loop ends after 1 iteration"),
            TraceEvent::Left { iterations } => write!(f, "the loop ends after {iterations} iterations"),
            TraceEvent::Barrier { scope: Threads::Grid } => f.write_str("the grid's barrier"),
            TraceEvent::Barrier { scope: Threads::Block } => f.write_str("the block's barrier"),
            TraceEvent::Barrier { scope: Threads::Warp } => f.write_str("the warp's barrier"),
            TraceEvent::Exchanged { value } => write!(f, "from the warp: {value}"),
            TraceEvent::Logged { text } => write!(f, "log: {text}"),
            TraceEvent::Ended => f.write_str("the thread ends"),
        }
    }
}

/// The lines of Rust, each followed by its events.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trace { kernel, block, thread, lines, left_out } = self;
        write!(f, "{kernel}, thread {thread:?} of block {block:?}")?;
        if lines.is_empty() && *left_out == 0 {
            write!(f, "\nit executes no operations")?;
        }
        for TracedLine { file, line, text, events, .. } in lines {
            write!(f, "\n{}:{line}  {text}", shown_path(file))?;
            for event in events {
                write!(f, "\n    {event}")?;
            }
        }
        if *left_out > 0 { write!(f, "\n… and {left_out} more") } else { Ok(()) }
    }
}
