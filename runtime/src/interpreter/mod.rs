//! The oracle: runs a kernel's IR on the CPU, a warp at a time in lockstep, and tells what is wrong with the kernel.
//!
//! # How it runs
//!
//! [`Program::decode`] makes flat code of a kernel once (`code`); [`Program::run`] runs it for a launch. A warp is a frame of
//! registers, each a row of 32 lanes, and a mask of active lanes; one dispatch computes a whole row, in a loop that the
//! compiler vectorises (`lanes`). A block runs each warp to a barrier or its end, then the next (`machine`).
//! Blocks run one after the other, in the order of a [`Schedule`], on each core some of them (`parallel`).
//!
//! Values are those of `ir`'s essay, bit for bit, save for the payload and sign of a NaN that arithmetic makes.
//!
//! # What it checks
//!
//! Each [`Check`] is defined at its variant. Accesses are held against the buffer that their address was computed from,
//! wherever the address has got to; conflicts are found from what orders accesses (`shadow`), not from the results of
//! one order. What violates a check is skipped (a load gives 0) and the run goes on, so that one run tells all.
//! [`Checks`] chooses how much is checked; what is off costs nothing. Bytes outside a launch's buffers are never
//! touched, checks or none.
//!
//! ```text
//! decode ─▶ code ─▶ parallel ─▶ machine ─▶ warp ─▶ lanes, cast         values
//!   origin, uniform, fuse         ├──▶ fused                      runs of instructions that go as one
//!                                 └──▶ words, row, access, address ─▶ memory    loads and stores
//!                                        └─▶ noted, shadow, further    who touched what
//!                                livelock, independent  loops that cannot end, and lanes that need not wait for those
//!         describe ─▶ findings ─▶ report ─▶ render         what was found
//!                       record ─────┘                      what the checked form reports of itself
//!                       watch ─▶ trace, profile            what one thread did, what accesses ask of memory
//!                          └──▶ provenance ─▶ operation    where a NaN or an infinity that was stored comes from: a second run
//!                          └──▶ precision, twice  what additions lose: another run
//!                          └──▶ poison            where undefined values go: another run
//! outputs                              what of its buffers a launch reads and writes
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
    /// Each table with its bytes.
    tables: Vec<(Table, Vec<u8>)>,
    sources: Vec<Source>,
    locations: Vec<SourceLocation>,
    declared: Declared,
    code: Code,
    /// Whether it is as lowered: then it can be asked where values come from, and go.
    lowered: bool,
    /// And whether it stores floats to buffers, so that there may be origins of NaNs and infinities.
    traced: bool,
}

/// A launch.
#[derive(Debug)]
pub struct Launch<'m> {
    /// Blocks in x, y, z. If one is 0, nothing runs.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z; of a kernel that leaves its launches no choice, `None` is what it says.
    pub block: Option<[u32; 3]>,
    /// One for each argument of the kernel in Rust.
    pub arguments: Vec<Binding<'m>>,
    /// How to run.
    pub options: Options,
}

/// What an argument of the kernel is.
#[derive(Debug)]
pub enum Binding<'m> {
    /// A scalar's bits, zero-extended.
    Scalar(u64),
    /// A slice or view.
    Memory {
        /// All elements that it spans, from its first.
        bytes: Bytes<'m>,
        /// Elements in each dimension, outermost first; one for a slice.
        extents: Vec<u32>,
        /// Elements from one index to the next in each dimension. The last may be left out: it is 1.
        strides: Vec<u32>,
    },
}

/// How to run a launch.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to check.
    pub checks: Checks,
    /// Warp instructions of a block after which the loop that runs is taken to be endless. A launch
    /// of more blocks may run more.
    pub fuel: u64,
    /// When a launch that still runs is taken to be endless too.
    pub deadline: Option<Deadline>,
    /// Errors after which a run ends: with 1, at the first. Warnings and notes end none.
    pub limit: usize,
    /// In which order blocks and warps run.
    pub schedule: Schedule,
    /// Checks that report nothing. What they forbid is skipped all the same. Those that end a launch
    /// ([`Check::ends_launch`]) report in any case.
    pub without: CheckSet,
    /// Threads that blocks run on at most; `None` is as many as the machine has cores. What is left and reported is the
    /// same, save by kernels whose blocks race, where races are not checked.
    pub threads: Option<NonZeroUsize>,
    /// The byte that shared memory and variables are full of until they are stored to, and buffers that hold nothing: with
    /// 0xff, floats are NaNs.
    pub fill: u8,
    /// Arguments, by index, whose memory holds nothing when the launch begins: loads of what no thread has stored are reported.
    pub uninitialised: Vec<usize>,
    /// The same of these bytes of arguments, counted from the first.
    pub uninit: Vec<(usize, ByteRanges)>,
    /// Bytes of shadow memory that [`Checks::All`] may take: 24 for each element that the launch touches of what it may write, as
    /// many again where it makes atomic operations, and, of a kernel with fences, for each warp beyond the second that loads the
    /// element. A launch that takes more is refused, [`Refused::TooLarge`].
    ///
    /// Beside it are the copies of what a launch may write: one for each thread that runs blocks of it, and one where a run may be asked once more
    /// what came of NaNs, undefined values or lost digits. What that second run keeps is at most a record for each value of the threads of a block, and for
    /// each element that the launch stores to.
    pub shadow: usize,
    /// The relative error from which on [`Check::Cancellation`] tells of digits that have cancelled, where a launch is to be run once
    /// more for that: `Some(1e-3)`.
    pub cancellation: Option<f64>,
    /// Whether what is right, and more than is needed or perhaps not what is meant, is told of too: the checks of [`Severity::Note`].
    pub notes: bool,
}

/// The end of a launch's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    /// As much time as `limit`, from now on.
    pub fn after(limit: Duration) -> Deadline {
        // A time that cannot be told is never.
        let now = Instant::now();
        Deadline { at: now.checked_add(limit).unwrap_or(now + Duration::from_secs(u32::MAX.into())), limit }
    }

    /// Whether it has passed.
    fn is_over(&self) -> bool {
        Instant::now() >= self.at
    }
}

impl Options {
    /// Whether the launch has had its time.
    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline.is_over())
    }

    /// Instructions that a warp may run before somebody looks at the clock again.
    fn pace(&self) -> u64 {
        match self.deadline {
            None => u64::MAX,
            Some(deadline) if deadline.is_over() => 0,
            Some(_) => 1 << 16,
        }
    }

    /// Which of the bytes of an argument hold nothing.
    fn uninit_of(&self, argument: usize, bytes: usize) -> ByteRanges {
        if self.checks < Checks::All {
            return ByteRanges::default();
        }
        let some = self.uninit.iter().find(|(index, _)| *index == argument);
        match self.uninitialised.contains(&argument) {
            true => ByteRanges::whole(bytes as u64),
            false => some.map(|(_, ranges)| ranges.clone()).unwrap_or_default(),
        }
    }

    /// What a scalar holds that was never stored.
    fn filled(&self, ty: Scalar) -> u64 {
        u64::from_ne_bytes([self.fill; 8]) & ty.mask()
    }
}

/// How much is checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Checks {
    /// Nothing but whether loops end: only values are computed. Accesses outside buffers are skipped silently.
    Values,
    /// All but what needs shadow memory (races, store conflicts, uninitialised shared memory).
    Accesses,
    /// All.
    All,
}

/// How a run went.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// What it did.
    pub statistics: Statistics,
    /// What was found: errors and warnings, and notes if they are asked for.
    pub report: Report,
    /// By argument, the bytes that held nothing and do so still.
    pub uninit: Vec<(usize, ByteRanges)>,
}

impl Default for Options {
    /// Every check, 2³² warp instructions a block (some minutes), 64 errors, blocks and warps in
    /// order, 4 GiB of shadow memory; what holds
    /// nothing is zero.
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
            uninitialised: Vec::new(),
            uninit: Vec::new(),
            shadow: 4 << 30,
            cancellation: None,
            notes: false,
        }
    }
}

impl Outcome {
    /// The same, or the report if there is an error in it.
    pub fn result(self) -> Result<Outcome, Box<Report>> {
        match self.report.verdict() {
            Verdict::Pass => Ok(self),
            Verdict::Fail | Verdict::Unsupported => Err(Box::new(self.report)),
        }
    }
}

impl Program {
    /// Makes code of `kernel`, as lowered or after passes.
    pub fn decode(kernel: &Kernel) -> Result<Program, Unsupported> {
        Program::new(kernel, decode::Arithmetic::Checked)
    }

    /// Makes code of `kernel` after passes. Its arithmetic is not checked: passes let it run where the program would not,
    /// and go on with nothing of what it gives there.
    pub fn decode_optimised(kernel: &Kernel) -> Result<Program, Unsupported> {
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

    /// Whether there are atomic operations: without them, what a kernel without races leaves is the same in every order.
    pub fn has_atomics(&self) -> bool {
        !self.code.atomics.is_empty()
    }

    /// Runs a launch to its end and tells what was found. What the kernel stored is in the arguments' bytes afterwards,
    /// errors or none.
    pub fn run(&self, launch: Launch<'_>) -> Result<Outcome, Refused> {
        self.run_watched(launch, Watch::Nobody).map(|(outcome, _)| outcome)
    }

    /// Runs a launch with every check, and tells what thread `thread` of block `block` did, both in x, y, z: the first `limit`
    /// lines of it. Variables that do not change have names only in IR lowered for it
    /// ([`lower_named`](kernel_dsl::compiler::lower::lower_named)).
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
            _ => unreachable!("who looks on stays"),
        }
    }

    /// Runs a launch with every check, and counts what its accesses ask of memory.
    pub fn profile(&self, launch: Launch<'_>) -> Result<(Outcome, Profile), Refused> {
        let bits = |passed: &Passed| if let Passed::Bits(bits) = passed { Some(*bits) } else { None };
        let parameters = self.bind(&launch.arguments)?.iter().map(bits).collect();
        let launched = Launched { grid: launch.grid, block: self.block_of(launch.block)?, parameters };
        match self.run_watched(launch, Watch::Accesses(Default::default()))? {
            (outcome, Watch::Accesses(counters)) => Ok((outcome, counters.profile(self, launched))),
            _ => unreachable!("who looks on stays"),
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

    /// Runs a launch once more, on copies of what its buffers held at first, for one who looks on.
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

    /// What takes so much shadow memory.
    fn too_large(&self, buffers: &[Buffer<'_>], options: &Options) -> TooLarge {
        let taken = buffers.iter().map(|b| (b.name.clone(), b.bytes.get().len(), b.shadow.bytes()));
        let mut buffers: Vec<_> = taken.filter(|(.., shadow)| *shadow > 0).collect();
        buffers.sort_by_key(|(.., shadow)| std::cmp::Reverse(*shadow));
        TooLarge { kernel: self.instance.clone(), limit: options.shadow, buffers }
    }

    /// Where in the Rust the instruction at `site` comes from.
    fn place_of(&self, site: Pc) -> report::Place {
        let location = self.code.locations.get(site as usize).copied();
        findings::place(&self.instance, &self.sources, &self.locations, location)
    }

    /// The threads of a block in x, y, z of a launch that says `given`.
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

    /// The index in x, y, z of a thread of the block: the same, whatever the size of the block.
    fn thread(&self, linear: u32) -> [u32; 3] {
        let [x, y, _] = self.block.most();
        [linear % x, linear / x % y, linear / x / y]
    }

    /// What each parameter of the entry is, from the arguments.
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

    /// Bytes that a cell of shadow memory stands for: the smallest element that the code accesses there.
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
                    // Tables lie behind the arguments, and need none: nobody writes them.
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

/// By argument, the bytes of buffers that hold nothing.
fn uninit(buffers: &[Buffer<'_>]) -> Vec<(usize, ByteRanges)> {
    let some = buffers.iter().filter(|buffer| !buffer.duty.uninit.is_empty());
    some.map(|buffer| (buffer.argument as usize, buffer.duty.uninit.clone())).collect()
}

/// Whether floats are stored to buffers.
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

/// What a parameter of the entry carries.
enum Passed {
    Bits(u64),
    /// The address of that argument's memory.
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
            // The last element's end; in u128, for no product of these overflows there.
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
            None => Err(format!("has {} dimensions, and the kernel asks for dimension {d}", extents.len())),
        },
        Role::Stride(d) => match stride(d as usize) {
            Some(s) => Ok(Passed::Bits(s.into())),
            None => Err(format!("has no stride for dimension {d}")),
        },
    }
}
