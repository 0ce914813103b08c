//! Execution of a launch of a [`Program`].

use crate::code::{AccessLocation, AccessOp, Inst, Origin};
use crate::machine::interleaved::MAX_COOPERATIVE_BLOCKS;
use crate::machine::memory::Buffer;
use crate::machine::nonfinite::StoredNonFinite;
use crate::machine::observer::Observer;
use crate::machine::outputs::OutputContract;
use crate::machine::shadow::PageBudget;
use crate::machine::{LaunchConstants, Machine};
use crate::observe::flow::{Propagation, ShadowFlow};
use crate::observe::poison::Poison;
use crate::observe::precision::Precision;
use crate::observe::profile::{Counters, MemoryProfile};
use crate::observe::provenance::Tracer;
use crate::observe::reached::ReachedInstructions;
use crate::observe::trace::{Trace, TraceRecorder};
use crate::options::{Binding, Checks, Deadline, Launch, Options, Outcome};
use crate::parallel;
use crate::program::Program;
use crate::refused::{LaunchFailure, Mismatch, TooLarge};
use crate::report::{Findings, Report};
use kernel_dsl_compiler::analyses::bounds::LaunchParameters;
use kernel_dsl_compiler::ir::{Parameter, Role};
use runtime_simt::{ArgumentBytes, ByteRanges, GridShape};

impl Program {
    /// Runs a launch to its end and returns its outcome with the findings. Afterwards the
    /// arguments' bytes contain the kernel's stores, even if there are errors.
    ///
    /// # Errors
    /// If the arguments, the grid or the block do not fit the kernel, or the launch reaches the
    /// limit of shadow memory. A violation of a check is no error: the outcome reports it.
    pub fn run(&self, launch: Launch<'_>) -> Result<Outcome, LaunchFailure> {
        self.run_observed(launch, None)
    }

    /// Runs a launch with every check and returns the trace of thread `thread` of block `block`,
    /// both in x, y, z, up to `limit` lines. Variables that do not change have names only in IR
    /// lowered by [`lower_named`](kernel_dsl_compiler::lower::lower_named).
    ///
    /// # Errors
    /// Returns the errors of [`run`](Program::run), and one if the launch has no such thread.
    pub fn trace(
        &self,
        launch: Launch<'_>,
        block: [u32; 3],
        thread: [u32; 3],
        limit: usize,
    ) -> Result<(Outcome, Trace), LaunchFailure> {
        let threads = self.block_of(launch.block)?;
        let there = |what: &str, of: &str, at: [u32; 3], extents: [u32; 3]| {
            let inside = at.iter().zip(extents).all(|(i, n)| *i < n);
            let [x, y, z] = extents;
            let why = || Mismatch(vec![format!("there is no {what} {at:?}: the {of} is {x} x {y} x {z}")]);
            inside.then_some(()).ok_or_else(why)
        };
        there("block", "grid", block, launch.grid)?;
        there("thread", "block", thread, threads)?;
        let [x, y, _] = self.block.max_extents();
        let linear = thread[0] + x * (thread[1] + y * thread[2]);
        let mut recorder = TraceRecorder::new(block, linear / 32, linear as usize % 32, limit, self.code.slots);
        let outcome = self.run_observed(launch, Some(&mut recorder))?;
        Ok((outcome, recorder.trace(self, thread)))
    }

    /// Runs a launch with every check and measures the memory costs of its accesses.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Program::run).
    pub fn profile(&self, launch: Launch<'_>) -> Result<(Outcome, MemoryProfile), LaunchFailure> {
        let bits = |passed: &EntryValue| if let EntryValue::Bits(bits) = passed { Some(*bits) } else { None };
        let parameters = self.bind(&launch.arguments)?.iter().map(bits).collect();
        let launched = LaunchParameters { grid: launch.grid, block: self.block_of(launch.block)?, parameters };
        let mut counters = Counters::default();
        let outcome = self.run_observed(launch, Some(&mut counters))?;
        Ok((outcome, counters.profile(self, launched)))
    }

    /// Runs a launch with every check and adds the instructions that its threads reach to
    /// `reached`, which belongs to this program.
    ///
    /// # Errors
    /// Returns the errors of [`run`](Program::run).
    pub fn reach(&self, launch: Launch<'_>, reached: &mut ReachedInstructions) -> Result<Outcome, LaunchFailure> {
        self.run_observed(launch, Some(reached))
    }

    /// Runs a launch with an observer. Afterwards, the launch runs again for each analysis that its
    /// findings need: lost precision, undefined values, origins of non-finite values.
    fn run_observed(&self, launch: Launch<'_>, observer: Option<&mut dyn Observer>) -> Result<Outcome, LaunchFailure> {
        let Launch { grid, block, arguments, mut options } = launch;
        options.deadline = options.deadline.or(options.time_limit.map(Deadline::after));
        options.cooperative |= self.is_cooperative();
        let parameters = self.bind(&arguments)?;
        let threads = self.block_of(block)?;
        let blocks = grid.iter().map(|n| u64::from(*n)).fold(1, u64::saturating_mul);
        if options.cooperative && blocks > MAX_COOPERATIVE_BLOCKS {
            let why = format!("{blocks} blocks of a cooperative launch are more than {MAX_COOPERATIVE_BLOCKS}");
            return Err(Mismatch(vec![why]).into());
        }
        let granules = self.granules();
        let mut by_argument = vec![None; arguments.len()];
        let arguments_given = arguments.len();
        let budget = PageBudget::new(options.shadow);
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
                buffer.contract = OutputContract {
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
            EntryValue::Bits(bits) => bits,
            EntryValue::AddressOf(argument) => by_argument[argument].map_or(0, |b| buffers[b].base),
        });
        let mut parameters: Vec<u64> = addresses.collect();
        let (dynamic, shared_bytes) = self.memory.layout(&parameters, threads).map_err(|why| Mismatch(vec![why]))?;
        parameters.extend(buffers[buffers.len() - self.tables.len()..].iter().map(|table| table.base));
        let shared_granule = granules.shared;
        let grid = GridShape { blocks: grid, threads };
        let setting = LaunchConstants { parameters, by_argument, shared_bytes, shared_granule, dynamic, grid, budget };
        let stored = if self.tracks_origins(&options) { StoredNonFinite::Finite } else { StoredNonFinite::Ignored };
        let lossy = options.cancellation.filter(|_| options.checks == Checks::All);
        let alone = observer.is_none() && lossy.is_none();
        if alone && let Some(statistics) = parallel::run(self, &setting, &mut buffers, &options, stored) {
            let report = Findings::new(self, options.limit, options.schedule).report();
            return Ok(Outcome { statistics, report, points: 0, uninit: uninit(&buffers), printed: Vec::new() });
        }
        let again = stored == StoredNonFinite::Finite || lossy.is_some() || self.tracks_poison(&options);
        let mut initial: Vec<_> = if again { buffers.iter().map(Buffer::copied).collect() } else { Vec::new() };
        let observer = observer.map(|observer| -> Box<dyn Observer> { Box::new(observer) });
        let mut machine = Machine::new(self, &setting, buffers, &options, observer);
        machine.stored = stored;
        if machine.run(0..setting.grid.block_count()) && options.checks == Checks::All {
            machine.unwritten_outputs();
        }
        let Machine { statistics, findings, printed, mut buffers, stored, undefined, stopped, points, .. } = machine;
        if setting.budget.is_spent() {
            return Err(self.too_large(&buffers, &options).into());
        }
        let mut report = findings.report();
        if let (Some(bound), false) = (lossy, stopped) {
            let precision = Precision::new(self, &options, bound);
            report.add(self.rerun(&setting, &buffers, &mut initial.clone(), &options, precision));
        }
        if undefined && !stopped && self.tracks_poison(&options) {
            let poison = Poison::new(self, &options);
            report.add(self.rerun(&setting, &buffers, &mut initial.clone(), &options, poison));
        }
        if stored == StoredNonFinite::NonFinite && !stopped {
            let tracer = Tracer::new(self, &options);
            report.add(self.rerun(&setting, &buffers, &mut initial, &options, tracer));
        }
        for buffer in buffers.iter_mut().filter(|buffer| buffer.mutable) {
            buffer.contract.uninit = buffer.shadow.unwritten_of(&buffer.contract.uninit);
        }
        Ok(Outcome { statistics, report, points: points.passed, uninit: uninit(&buffers), printed: printed.take() })
    }

    /// Runs a launch once more, on copies of the buffers' initial contents, and returns the
    /// findings of the labels that `rules` propagates.
    fn rerun(
        &self,
        setting: &LaunchConstants,
        buffers: &[Buffer<'_>],
        initial: &mut [Option<Vec<u8>>],
        options: &Options,
        rules: impl Propagation,
    ) -> Report {
        setting.budget.renew();
        options.recount_blocks();
        let copies = buffers.iter().zip(initial).map(|(buffer, copy)| buffer.over(copy));
        let mut flow = ShadowFlow::new(self, setting, rules);
        let mut machine = Machine::new(self, setting, copies.collect(), options, Some(Box::new(&mut flow)));
        machine.run(0..setting.grid.block_count());
        drop(machine);
        flow.into_report()
    }

    /// Returns the error that lists the buffers that exceed the limit of shadow memory.
    fn too_large(&self, buffers: &[Buffer<'_>], options: &Options) -> TooLarge {
        let taken = buffers.iter().map(|b| (b.name.clone(), b.bytes.get().len(), b.shadow.bytes()));
        let mut buffers: Vec<_> = taken.filter(|(.., shadow)| *shadow > 0).collect();
        buffers.sort_by_key(|(.., shadow)| std::cmp::Reverse(*shadow));
        TooLarge { kernel: self.instance.clone(), limit: options.shadow, buffers }
    }

    /// Returns the value of each parameter of the entry, computed from the arguments.
    fn bind(&self, arguments: &[Binding<'_>]) -> Result<Vec<EntryValue>, Mismatch> {
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
                Inst::Load(i) | Inst::Store(i) | Inst::MarkUndef(i) => &self.code.accesses[*i as usize],
                Inst::Atomic(i) => &self.code.atomics[*i as usize].access,
                _ => return None,
            })
        });
        for AccessOp { place, element, .. } in others.chain(copies) {
            match place {
                AccessLocation::Shared { .. }
                | AccessLocation::Dynamic { .. }
                | AccessLocation::SharedAddress { .. } => {
                    granules.shared = granules.shared.min(element.bytes());
                }
                AccessLocation::Global { origin: Origin::Argument(a), .. }
                | AccessLocation::Address { origin: Origin::Argument(a), .. } => {
                    // Tables follow the arguments and need no shadow memory: no thread writes them.
                    if let Some(granule) = granules.buffers.get_mut(*a as usize) {
                        *granule = element.bytes().min(*granule);
                    }
                }
                AccessLocation::Global { .. } | AccessLocation::Address { .. } => {
                    granules.buffers.iter_mut().for_each(|g| *g = element.bytes().min(*g));
                }
            }
        }
        granules
    }
}

/// Returns the uninitialized bytes of buffers, by argument.
fn uninit(buffers: &[Buffer<'_>]) -> Vec<(usize, ByteRanges)> {
    let some = buffers.iter().filter(|buffer| !buffer.contract.uninit.is_empty());
    some.map(|buffer| (buffer.argument as usize, buffer.contract.uninit.clone())).collect()
}

/// The bytes per cell of shadow memory: of shared memory, and of each buffer.
struct Granules {
    shared: u32,
    buffers: Vec<u32>,
}

/// The value of an entry parameter.
enum EntryValue {
    Bits(u64),
    /// The address of the argument's memory.
    AddressOf(usize),
}

fn pass(parameter: &Parameter, binding: &Binding<'_>) -> Result<EntryValue, String> {
    let (bytes, extents, strides) = match (binding, parameter.role) {
        (Binding::Scalar(bits), Role::Value(ty)) if bits & !ty.mask() == 0 => return Ok(EntryValue::Bits(*bits)),
        (Binding::Scalar(bits), Role::Value(ty)) => return Err(format!("has bits {bits:#x}: too many for `{ty}`")),
        (Binding::Scalar(_), _) => return Err("expects memory, found a scalar".into()),
        (Binding::Memory { .. }, Role::Value(ty)) => return Err(format!("expects a `{ty}`, found memory")),
        (Binding::Memory { bytes, extents, strides }, _) => (bytes, extents, strides),
    };
    let stride = |d: usize| match strides.get(d) {
        Some(s) => Some(*s),
        None if d + 1 == extents.len() => Some(1),
        None => None,
    };
    match parameter.role {
        Role::Value(_) => Err("is a scalar".into()),
        Role::Address { mutable: true, .. } if matches!(bytes, ArgumentBytes::Shared(_)) => {
            Err("is written by the kernel, but its bytes are read-only".into())
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
            Ok(EntryValue::AddressOf(parameter.argument as usize))
        }
        Role::Extent(d) => match extents.get(d as usize) {
            Some(n) => Ok(EntryValue::Bits((*n).into())),
            None => Err(format!("has {} dimensions, and the kernel uses dimension {d}", extents.len())),
        },
        Role::Stride(d) => match stride(d as usize) {
            Some(s) => Ok(EntryValue::Bits(s.into())),
            None => Err(format!("has no stride for dimension {d}")),
        },
    }
}
