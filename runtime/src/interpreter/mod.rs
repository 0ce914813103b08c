//! The oracle: runs a kernel's IR on the CPU, one warp at a time in lockstep, and reports the
//! kernel's errors.
//!
//! # Execution
//!
//! [`Program::decode`] translates a kernel to flat code once (`code`); [`Program::run`] executes it
//! for a launch. A warp is a frame of registers, each a row of 32 lanes, and a mask of active
//! lanes. One dispatch computes a whole row in a loop that the compiler vectorizes (`lanes`). A
//! block runs each warp to a barrier or its end, then the next (`machine`). Blocks run one after
//! the other in the order of a [`Schedule`]; each core runs a share of them (`parallel`).
//!
//! Values follow the definitions of the `ir` module bit for bit, except for the payload and sign of
//! a NaN computed by arithmetic.
//!
//! # Checks
//!
//! Each [`Check`] is defined at its variant. Every access is checked against the buffer that its
//! address was computed from, wherever the address points. Races are found from the happens-before
//! order of accesses (`shadow`), not from the results of one order. An access that violates a check
//! is suppressed (a load returns 0) and the run continues, so one run reports all errors.
//! [`Checks`] selects how much is checked; disabled checks cost nothing. Bytes outside a launch's
//! buffers are never touched, with or without checks.
//!
//! ```text
//! decode ─▶ code ─▶ parallel ─▶ machine ─▶ warp ─▶ lanes, cast         values
//!   origin, uniform, fuse         ├──▶ fused                      fused sequences of instructions
//!                                 └──▶ words, row, access, address ─▶ memory    loads and stores
//!                                        └─▶ noted, shadow, further    the last accesses to each element
//!                                livelock, independent  loops that cannot end; lanes that proceed independently of them
//!         describe ─▶ findings ─▶ report ─▶ render         what was found
//!                       record ─────┘                      reports of the checked form
//!                       watch ─▶ trace, profile            the trace of one thread; costs of memory accesses
//!                          └──▶ provenance ─▶ operation    origins of stored NaNs and infinities: a second run
//!                          └──▶ precision, twice  digits lost by additions: another run
//!                          └──▶ poison            where undefined values go: another run
//! outputs                              which elements of its buffers a launch reads and writes
//! ```

pub mod check;
pub mod profile;
pub mod report;
pub mod trace;

mod access;
mod address;
mod ahead;
mod atomic;
mod bits;
mod cast;
mod code;
mod cooperation;
mod decode;
mod describe;
mod division;
mod findings;
mod frame;
mod further;
mod fuse;
mod fused;
mod independent;
mod inline;
mod lanes;
mod livelock;
mod machine;
mod memory;
mod noted;
mod operands;
mod operation;
mod order;
mod origin;
mod outputs;
mod parallel;
mod poison;
mod precision;
mod provenance;
mod record;
mod refused;
mod render;
mod row;
mod schedule;
mod shadow;
mod twice;
mod uniform;
mod variables;
mod warp;
mod watch;
mod words;

pub use crate::statistics::Statistics;
pub use crate::uninit::ByteRanges;
pub use check::{Allowance, Check, CheckSet, Coverage, Output, Severity, UnknownCheck};
pub use memory::Bytes;
pub use profile::Profile;
pub use record::reported;
pub use refused::{Mismatch, Refused, TooLarge, Unsupported};
pub use report::{Finding, Report, Values, Verdict};
pub use schedule::{Schedule, UnknownOrder};
pub use trace::Trace;

use code::{Access, Code, Inst, Origin, Pc, Place};
use findings::Findings;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::Target;
use kernel_dsl::compiler::analyses::bounds::Launched;
use kernel_dsl::compiler::ir::{Block, Kernel, Parameter, Role, SharedArray, SharedMemory, SourceLocation, Table};
use kernel_dsl::compiler::oracle::Declared;
use kernel_dsl::compiler::source::Source;
use machine::{Machine, Setting};
use memory::Buffer;
use outputs::Duty;
use poison::Poison;
use precision::Precision;
use provenance::{Stored, Tracer};
use shadow::Budget;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};
use trace::Recorder;
use watch::Watch;

/// A kernel, ready to run.
#[derive(Clone, Debug)]
pub struct Program {
    instance: String,
    target: Target,
    block: Block,
    parameters: Vec<Parameter>,
    shared: Vec<SharedArray>,
    memory: SharedMemory,
    /// The tables with their bytes.
    tables: Vec<(Table, Vec<u8>)>,
    sources: Vec<Source>,
    locations: Vec<SourceLocation>,
    declared: Declared,
    code: Code,
    /// Whether the code was decoded as lowered: then the origins of values can be tracked.
    lowered: bool,
    /// Whether the code also stores floats to buffers, so that NaNs and infinities may have
    /// origins.
    traced: bool,
}

/// A launch.
#[derive(Debug)]
pub struct Launch<'m> {
    /// Blocks in x, y, z. If one is 0, nothing runs.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z. `None` selects the kernel's declared block size, if it
    /// declares a single one.
    pub block: Option<[u32; 3]>,
    /// The arguments of the kernel, in the order of its Rust signature.
    pub arguments: Vec<Binding<'m>>,
    /// Options of the run.
    pub options: Options,
}

/// An argument of the kernel.
#[derive(Debug)]
pub enum Binding<'m> {
    /// A scalar's bits, zero-extended.
    Scalar(u64),
    /// A slice or view.
    Memory {
        /// The bytes of all elements that the slice or view spans, from the first.
        bytes: Bytes<'m>,
        /// Elements in each dimension, outermost first; one for a slice.
        extents: Vec<u32>,
        /// The distance in elements between consecutive indices of each dimension. The last may be
        /// omitted: it is 1.
        strides: Vec<u32>,
    },
}

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The active checks.
    pub checks: Checks,
    /// The limit of warp instructions in a block: a loop that exceeds it is reported as endless. A
    /// launch of several blocks may run more.
    pub fuel: u64,
    /// The time at which a launch that still runs is reported as endless.
    pub deadline: Option<Deadline>,
    /// The number of errors that ends a run: 1 stops at the first. Warnings and notes do not count.
    pub limit: usize,
    /// The order in which blocks and warps run.
    pub schedule: Schedule,
    /// Checks that report nothing. The accesses that violate these checks are still suppressed.
    /// Checks that end a launch ([`Check::ends_launch`]) report in any case.
    pub without: CheckSet,
    /// The maximum number of CPU threads that run blocks; `None` is the number of cores. Results
    /// and reports do not depend on it, unless blocks race and races are not checked.
    pub threads: Option<NonZeroUsize>,
    /// The byte that fills shared memory, variables and uninitialized buffers until the first
    /// store. With 0xff, floats are NaNs.
    pub fill: u8,
    /// Arguments, by index, whose memory is uninitialized at launch: loads of elements that no
    /// thread has stored are reported.
    pub uninitialized: Vec<usize>,
    /// Byte ranges of arguments that are uninitialized at launch, counted from the first byte of
    /// the argument.
    pub uninit: Vec<(usize, ByteRanges)>,
    /// The limit of shadow memory for [`Checks::All`], in bytes. A launch that needs more is
    /// rejected with [`Refused::TooLarge`]. Each touched element of writable memory takes:
    ///
    /// - 24 bytes;
    /// - 24 more in a kernel with atomic operations;
    /// - 24 more in a kernel with fences, for each warp beyond the second that loads the element.
    ///
    /// Copies of writable buffers are not counted: one for each thread that runs blocks, and one
    /// where a second run may look for NaNs, undefined values or lost digits. A second run keeps at
    /// most one record for each value of a block's threads and one for each element that the launch
    /// stores.
    pub shadow: usize,
    /// The relative error from which [`Check::Cancellation`] reports canceled digits, such as
    /// `Some(1e-3)`. The check runs the launch a second time.
    pub cancellation: Option<f64>,
    /// Whether the checks of [`Severity::Note`] report: correct code that does more than needed or
    /// may not be what is meant.
    pub notes: bool,
}

/// The time limit of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    /// Returns the deadline `limit` from now.
    pub fn after(limit: Duration) -> Deadline {
        // A time that is not representable is effectively never.
        let now = Instant::now();
        Deadline { at: now.checked_add(limit).unwrap_or(now + Duration::from_secs(u32::MAX.into())), limit }
    }

    /// Returns whether the deadline has passed.
    fn is_over(&self) -> bool {
        Instant::now() >= self.at
    }
}

impl Options {
    /// Returns whether the launch has exceeded its deadline.
    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline.is_over())
    }

    /// Returns the number of instructions that a warp may run before the next look at the clock.
    fn pace(&self) -> u64 {
        match self.deadline {
            None => u64::MAX,
            Some(deadline) if deadline.is_over() => 0,
            Some(_) => 1 << 16,
        }
    }

    /// Returns the uninitialized bytes of an argument.
    fn uninit_of(&self, argument: usize, bytes: usize) -> ByteRanges {
        if self.checks < Checks::All {
            return ByteRanges::default();
        }
        let some = self.uninit.iter().find(|(index, _)| *index == argument);
        match self.uninitialized.contains(&argument) {
            true => ByteRanges::whole(bytes as u64),
            false => some.map(|(_, ranges)| ranges.clone()).unwrap_or_default(),
        }
    }

    /// Returns the bits of a scalar in memory that was never stored.
    fn filled(&self, ty: Scalar) -> u64 {
        u64::from_ne_bytes([self.fill; 8]) & ty.mask()
    }
}

/// The extent of the checks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Checks {
    /// Only the termination of loops: values are computed, and accesses outside buffers are
    /// suppressed silently.
    Values,
    /// All checks except those that need shadow memory (races, store conflicts, uninitialized
    /// shared memory).
    Accesses,
    /// All checks.
    All,
}

/// The outcome of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Counts of executed operations.
    pub statistics: Statistics,
    /// The findings: errors and warnings, and notes if [`Options::notes`] is set.
    pub report: Report,
    /// The bytes that are still uninitialized, by argument.
    pub uninit: Vec<(usize, ByteRanges)>,
}

impl Default for Options {
    /// Returns the defaults: every check, 2³² warp instructions a block (some minutes), 64 errors,
    /// blocks and warps in order, and 4 GiB of shadow memory. Uninitialized memory is zero.
    fn default() -> Options {
        Options {
            checks: Checks::All,
            fuel: 1 << 32,
            deadline: None,
            limit: 64,
            schedule: Schedule::InOrder,
            without: CheckSet::default(),
            threads: None,
            fill: 0,
            uninitialized: Vec::new(),
            uninit: Vec::new(),
            shadow: 4 << 30,
            cancellation: None,
            notes: false,
        }
    }
}

impl Outcome {
    /// Returns the outcome, or its report if that contains an error.
    pub fn result(self) -> Result<Outcome, Box<Report>> {
        match self.report.verdict() {
            Verdict::Pass => Ok(self),
            Verdict::Fail | Verdict::Unsupported => Err(Box::new(self.report)),
        }
    }
}

impl Program {
    /// Decodes `kernel`, as lowered or after passes.
    pub fn decode(kernel: &Kernel) -> Result<Program, Unsupported> {
        Program::new(kernel, decode::Arithmetic::Checked)
    }

    /// Decodes `kernel` after passes. Its arithmetic is not checked: passes may execute an
    /// operation speculatively where the program would not, and discard its result.
    pub fn decode_optimized(kernel: &Kernel) -> Result<Program, Unsupported> {
        Program::new(kernel, decode::Arithmetic::Speculative)
    }

    fn new(kernel: &Kernel, arithmetic: decode::Arithmetic) -> Result<Program, Unsupported> {
        let code = decode::decode(kernel, arithmetic)?;
        Ok(Program {
            instance: kernel.instance.clone(),
            target: kernel.target,
            block: kernel.block,
            parameters: kernel.parameters.clone(),
            shared: kernel.shared.clone(),
            memory: kernel.shared_memory(),
            tables: kernel.tables.iter().map(|t| (t.clone(), t.contents())).collect(),
            sources: kernel.sources.clone(),
            locations: kernel.locations.clone(),
            declared: kernel.declared.clone(),
            lowered: arithmetic == decode::Arithmetic::Checked,
            traced: arithmetic == decode::Arithmetic::Checked && stores_floats(&code),
            code,
        })
    }

    /// Returns whether the kernel has atomic operations. Without them, the result of a kernel
    /// without races does not depend on the order of execution.
    pub fn has_atomics(&self) -> bool {
        !self.code.atomics.is_empty()
    }

    /// Runs a launch to its end and reports the findings. The kernel's stores are in the arguments'
    /// bytes afterwards, even if there are errors.
    pub fn run(&self, launch: Launch<'_>) -> Result<Outcome, Refused> {
        self.run_watched(launch, Watch::Nobody).map(|(outcome, _)| outcome)
    }

    /// Runs a launch with every check and returns the trace of thread `thread` of block `block`,
    /// both in x, y, z, up to `limit` lines. Variables that do not change have names only in IR
    /// lowered by [`lower_named`](kernel_dsl::compiler::lower::lower_named).
    pub fn trace(
        &self,
        launch: Launch<'_>,
        block: [u32; 3],
        thread: [u32; 3],
        limit: usize,
    ) -> Result<(Outcome, Trace), Refused> {
        let threads = self.block_of(launch.block)?;
        let there = |what: &str, of: &str, at: [u32; 3], extents: [u32; 3]| {
            let inside = at.iter().zip(extents).all(|(i, n)| *i < n);
            let [x, y, z] = extents;
            let why = || Mismatch(vec![format!("there is no {what} {at:?}: the {of} is {x} x {y} x {z}")]);
            inside.then_some(()).ok_or_else(why)
        };
        there("block", "grid", block, launch.grid)?;
        there("thread", "block", thread, threads)?;
        let [x, y, _] = self.block.most();
        let linear = thread[0] + x * (thread[1] + y * thread[2]);
        let recorder = Recorder::new(block, linear / 32, linear as usize % 32, limit, self.code.slots);
        match self.run_watched(launch, Watch::Thread(recorder.into()))? {
            (outcome, Watch::Thread(recorder)) => Ok((outcome, recorder.trace(self, thread))),
            _ => unreachable!("run_watched returns the watcher it was given"),
        }
    }

    /// Runs a launch with every check and measures the memory costs of its accesses.
    pub fn profile(&self, launch: Launch<'_>) -> Result<(Outcome, Profile), Refused> {
        let bits = |passed: &Passed| if let Passed::Bits(bits) = passed { Some(*bits) } else { None };
        let parameters = self.bind(&launch.arguments)?.iter().map(bits).collect();
        let launched = Launched { grid: launch.grid, block: self.block_of(launch.block)?, parameters };
        match self.run_watched(launch, Watch::Accesses(Default::default()))? {
            (outcome, Watch::Accesses(counters)) => Ok((outcome, counters.profile(self, launched))),
            _ => unreachable!("run_watched returns the watcher it was given"),
        }
    }

    fn run_watched<'p>(&'p self, launch: Launch<'_>, watch: Watch<'p>) -> Result<(Outcome, Watch<'p>), Refused> {
        let Launch { grid, block, arguments, options } = launch;
        let parameters = self.bind(&arguments)?;
        let threads = self.block_of(block)?;
        let granules = self.granules();
        let mut by_argument = vec![None; arguments.len()];
        let arguments_given = arguments.len();
        let budget = Budget::new(options.shadow);
        let mut buffers = Vec::new();
        for (argument, binding) in arguments.into_iter().enumerate() {
            let role = self.parameters.iter().find_map(|p| match p.role {
                Role::Address { element, mutable } if p.argument as usize == argument => Some((p, element, mutable)),
                _ => None,
            });
            if let (Some((parameter, element, mutable)), Binding::Memory { bytes, extents, strides }) = (role, binding)
            {
                by_argument[argument] = Some(buffers.len());
                let granule = granules.buffers[argument].min(element.align());
                let (name, index) = (parameter.name.clone(), parameter.argument);
                let mut buffer = Buffer::new(name, index, element, mutable, bytes, granule, budget.clone());
                buffer.duty = Duty {
                    uninit: options.uninit_of(argument, buffer.bytes.get().len()),
                    coverage: self.declared.outputs.iter().find(|o| o.index == index).map(|o| o.coverage),
                    shape: extents.iter().copied().zip(strides.iter().copied().chain([1])).collect(),
                };
                buffers.push(buffer);
            }
        }
        for (i, (table, bytes)) in self.tables.iter().enumerate() {
            by_argument.push(Some(buffers.len()));
            buffers.push(Buffer::table(table, (arguments_given + i) as u32, bytes));
        }
        let addresses = parameters.into_iter().map(|p| match p {
            Passed::Bits(bits) => bits,
            Passed::AddressOf(argument) => by_argument[argument].map_or(0, |b| buffers[b].base),
        });
        let mut parameters: Vec<u64> = addresses.collect();
        let (dynamic, shared_bytes) = self.memory.layout(&parameters, threads).map_err(|why| Mismatch(vec![why]))?;
        parameters.extend(buffers[buffers.len() - self.tables.len()..].iter().map(|table| table.base));
        let shared_granule = granules.shared;
        let setting = Setting { parameters, by_argument, shared_bytes, shared_granule, dynamic, threads, grid, budget };
        let stored = if self.wants_origins(&options) { Stored::Finite } else { Stored::Ignored };
        let lossy = options.cancellation.filter(|_| options.checks == Checks::All);
        let alone = matches!(watch, Watch::Nobody) && lossy.is_none();
        if alone && let Some(statistics) = parallel::run(self, &setting, &mut buffers, &options, stored) {
            let report = Findings::new(self, &options).report();
            return Ok((Outcome { statistics, report, uninit: uninit(&buffers) }, watch));
        }
        let again = stored == Stored::Finite || lossy.is_some() || self.wants_poison(&options);
        let mut initial: Vec<_> = if again { buffers.iter().map(Buffer::copied).collect() } else { Vec::new() };
        let mut machine = Machine::new(self, &setting, buffers, &options, watch);
        machine.stored = stored;
        if machine.run(0..setting.blocks()) && options.checks == Checks::All {
            machine.unwritten_outputs();
        }
        let Machine { statistics, findings, mut buffers, stored, undefined, stopped, watch, .. } = machine;
        if setting.budget.is_spent() {
            return Err(self.too_large(&buffers, &options).into());
        }
        let mut report = findings.report();
        if let (Some(bound), false) = (lossy, stopped) {
            let precision = Precision::new(self, &setting, &options, bound);
            let watch = Watch::Precision(precision.into());
            if let Watch::Precision(precision) =
                self.once_more(&setting, &buffers, &mut initial.clone(), &options, watch)
            {
                report.add(precision.found());
            }
        }
        if undefined && !stopped && self.wants_poison(&options) {
            let watch = Watch::Poison(Poison::new(self, &setting, &options).into());
            if let Watch::Poison(poison) = self.once_more(&setting, &buffers, &mut initial.clone(), &options, watch) {
                report.add(poison.found());
            }
        }
        if stored == Stored::Strange && !stopped {
            let watch = Watch::Origins(Tracer::new(self, &setting, &options).into());
            if let Watch::Origins(tracer) = self.once_more(&setting, &buffers, &mut initial, &options, watch) {
                report.add(tracer.found());
            }
        }
        for buffer in buffers.iter_mut().filter(|buffer| buffer.mutable) {
            buffer.duty.uninit = buffer.shadow.unwritten_of(&buffer.duty.uninit);
        }
        Ok((Outcome { statistics, report, uninit: uninit(&buffers) }, watch))
    }

    /// Runs a launch once more with a watcher, on copies of the buffers' initial contents.
    fn once_more<'p>(
        &'p self,
        setting: &Setting,
        buffers: &[Buffer<'_>],
        initial: &mut [Option<Vec<u8>>],
        options: &Options,
        watch: Watch<'p>,
    ) -> Watch<'p> {
        setting.budget.renew();
        let copies = buffers.iter().zip(initial).map(|(buffer, copy)| buffer.over(copy));
        let mut machine = Machine::new(self, setting, copies.collect(), options, watch);
        machine.run(0..setting.blocks());
        machine.watch
    }

    /// Returns the error that lists the buffers that exceed the limit of shadow memory.
    fn too_large(&self, buffers: &[Buffer<'_>], options: &Options) -> TooLarge {
        let taken = buffers.iter().map(|b| (b.name.clone(), b.bytes.get().len(), b.shadow.bytes()));
        let mut buffers: Vec<_> = taken.filter(|(.., shadow)| *shadow > 0).collect();
        buffers.sort_by_key(|(.., shadow)| std::cmp::Reverse(*shadow));
        TooLarge { kernel: self.instance.clone(), limit: options.shadow, buffers }
    }

    /// Returns the Rust source location of the instruction at `site`.
    fn place_of(&self, site: Pc) -> report::Place {
        let location = self.code.locations.get(site as usize).copied();
        findings::place(&self.instance, &self.sources, &self.locations, location)
    }

    /// Returns the block size in x, y, z of a launch that specifies `given`.
    fn block_of(&self, given: Option<[u32; 3]>) -> Result<[u32; 3], Mismatch> {
        match (given, self.block.extents()) {
            (Some(given), _) if self.block.has(given) => Ok(given),
            (None, Some(extents)) => Ok(extents),
            (given, _) => {
                let given = given.map_or("none".to_string(), |[x, y, z]| format!("{x} x {y} x {z}"));
                Err(Mismatch(vec![format!("`{}` has blocks of {}; given {given}", self.instance, self.block)]))
            }
        }
    }

    /// Returns the index in x, y, z of a thread of the block. The index does not depend on the
    /// block size.
    fn thread(&self, linear: u32) -> [u32; 3] {
        let [x, y, _] = self.block.most();
        [linear % x, linear / x % y, linear / x / y]
    }

    /// Returns the value of each parameter of the entry, computed from the arguments.
    fn bind(&self, arguments: &[Binding<'_>]) -> Result<Vec<Passed>, Mismatch> {
        let mut wrong = Vec::new();
        let expected = self.parameters.iter().map(|p| p.argument as usize + 1).max().unwrap_or(0);
        if arguments.len() != expected {
            wrong.push(format!("`{}` takes {expected} arguments, and {} are given", self.instance, arguments.len()));
            return Err(Mismatch(wrong));
        }
        let mut passed = Vec::new();
        for parameter in &self.parameters {
            match pass(parameter, &arguments[parameter.argument as usize]) {
                Ok(p) => passed.push(p),
                Err(message) => wrong.push(format!("argument {} (`{}`) {message}", parameter.argument, parameter.name)),
            }
        }
        if wrong.is_empty() { Ok(passed) } else { Err(Mismatch(wrong)) }
    }

    /// Returns the bytes per cell of shadow memory: the size of the smallest element that the code
    /// accesses in each buffer.
    fn granules(&self) -> Granules {
        let arguments = self.parameters.iter().map(|p| p.argument as usize + 1).max().unwrap_or(0);
        let mut granules = Granules { shared: 8, buffers: vec![8; arguments] };
        let copies = self.code.copies.iter().flat_map(|copy| [&copy.to, &copy.from]);
        let others = self.code.insts.iter().filter_map(|inst| {
            Some(match inst {
                Inst::Load(i) | Inst::Store(i) | Inst::Poison(i) => &self.code.accesses[*i as usize],
                Inst::Atomic(i) => &self.code.atomics[*i as usize].access,
                _ => return None,
            })
        });
        for Access { place, element, .. } in others.chain(copies) {
            match place {
                Place::Shared { .. } | Place::Dynamic { .. } | Place::SharedAddress { .. } => {
                    granules.shared = granules.shared.min(element.bytes());
                }
                Place::Global { origin: Origin::Argument(a), .. }
                | Place::Address { origin: Origin::Argument(a), .. } => {
                    // Tables follow the arguments and need no shadow memory: no thread writes them.
                    if let Some(granule) = granules.buffers.get_mut(*a as usize) {
                        *granule = element.bytes().min(*granule);
                    }
                }
                Place::Global { .. } | Place::Address { .. } => {
                    granules.buffers.iter_mut().for_each(|g| *g = element.bytes().min(*g));
                }
            }
        }
        granules
    }
}

/// Returns the uninitialized bytes of buffers, by argument.
fn uninit(buffers: &[Buffer<'_>]) -> Vec<(usize, ByteRanges)> {
    let some = buffers.iter().filter(|buffer| !buffer.duty.uninit.is_empty());
    some.map(|buffer| (buffer.argument as usize, buffer.duty.uninit.clone())).collect()
}

/// Returns whether the code stores floats to buffers.
fn stores_floats(code: &Code) -> bool {
    code.insts.iter().any(|inst| {
        let access = match inst {
            Inst::Store(i) => &code.accesses[*i as usize],
            Inst::Atomic(i) => &code.atomics[*i as usize].access,
            _ => return false,
        };
        !access.place.is_shared() && (access.element.is_float() || access.element.is_half())
    })
}

struct Granules {
    shared: u32,
    buffers: Vec<u32>,
}

/// The value of an entry parameter.
enum Passed {
    Bits(u64),
    /// The address of the argument's memory.
    AddressOf(usize),
}

fn pass(parameter: &Parameter, binding: &Binding<'_>) -> Result<Passed, String> {
    let (bytes, extents, strides) = match (binding, parameter.role) {
        (Binding::Scalar(bits), Role::Value(ty)) if bits & !ty.mask() == 0 => return Ok(Passed::Bits(*bits)),
        (Binding::Scalar(bits), Role::Value(ty)) => return Err(format!("has bits {bits:#x}: too many for `{ty}`")),
        (Binding::Scalar(_), _) => return Err("is memory, and a scalar is given".into()),
        (Binding::Memory { .. }, Role::Value(ty)) => return Err(format!("is a `{ty}`, and memory is given")),
        (Binding::Memory { bytes, extents, strides }, _) => (bytes, extents, strides),
    };
    let stride = |d: usize| match strides.get(d) {
        Some(s) => Some(*s),
        None if d + 1 == extents.len() => Some(1),
        None => None,
    };
    match parameter.role {
        Role::Value(_) => Err("is a scalar".into()),
        Role::Address { mutable: true, .. } if matches!(bytes, Bytes::Shared(_)) => {
            Err("is written by the kernel, and its bytes are given to be read only".into())
        }
        Role::Address { element, .. } => {
            // The end of the last element; computed in u128, which the products cannot overflow.
            let mut last = 0u128;
            for (d, n) in extents.iter().enumerate() {
                let stride = stride(d).ok_or_else(|| format!("has no stride for dimension {d}"))?;
                last += u128::from(n.saturating_sub(1)) * u128::from(stride);
            }
            let span = if extents.contains(&0) { 0 } else { (last + 1) * u128::from(element.bytes()) };
            if span > bytes.get().len() as u128 {
                return Err(format!("spans {span} bytes by its extents and strides, and has {}", bytes.get().len()));
            }
            Ok(Passed::AddressOf(parameter.argument as usize))
        }
        Role::Extent(d) => match extents.get(d as usize) {
            Some(n) => Ok(Passed::Bits((*n).into())),
            None => Err(format!("has {} dimensions, and the kernel uses dimension {d}", extents.len())),
        },
        Role::Stride(d) => match stride(d as usize) {
            Some(s) => Ok(Passed::Bits(s.into())),
            None => Err(format!("has no stride for dimension {d}")),
        },
    }
}
