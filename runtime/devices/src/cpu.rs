//! The CPU device: host memory, and kernels as lowered, which the oracle runs with every check.
//!
//! Launches use the interpreter only through this module.

use crate::cache::InstanceCache;
use crate::contract::ValidatedArgs;
use crate::hazard::{SubrangeTracker, WaitSet};
use crate::pool::{DevicePool, SegmentSource};
use crate::progress;
use crate::range_lock::{HOST_RANGES, LockedRange};
use crate::trace::{event, span};
use crate::uninit::HOST;
use crate::{Error, Result};
use kernel_dsl::compiler::hir::Monomorphic;
use kernel_dsl::compiler::ir::SharedMemoryNeed;
use kernel_dsl::compiler::ir::record::WORDS;
use kernel_dsl::compiler::launch::DeviceFacts;
use kernel_dsl::compiler::lower::checked::CheckedKernel;
use kernel_dsl::compiler::{driver, ir};
use kernel_dsl::launcher::{ArgumentMemory, ArgumentShape};
use kernel_dsl::{Argument, Artifact};
use runtime_oracle::{self as interpreter, ArgumentBytes, Binding, Check, Checks, Interrupts, Launch, Outcome, Report};
use runtime_simt::{ByteRanges, Lock};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr;
use std::time::Duration;

/// The driver's alignment of allocations, so that alignment here implies alignment there.
const ALIGNMENT: usize = 256;

/// The CPU and the kernels decoded for it.
pub(crate) struct Cpu {
    facts: DeviceFacts,
    /// The decoded kernels.
    executables: InstanceCache<Executable>,
    memory: DevicePool,
    limits: Lock<RunLimits>,
    interrupts: Interrupts,
    /// Handler of launches, instead of the interpreter.
    handler: Option<Box<LaunchHandler>>,
}

/// Function that handles validated launches of a CPU device instead of the interpreter, such as a
/// model of a GPU.
pub type LaunchHandler = dyn Fn(&'static Artifact, &Monomorphic, &ValidatedArgs) -> Result<()> + Send + Sync;

/// The checks of a launch, and the limits at which it is stopped.
#[derive(Clone, Copy)]
struct RunLimits {
    /// The extent of the checks.
    checks: Checks,
    /// The longest duration of a launch; `None` is no limit.
    time: Option<Duration>,
    /// The maximum of warp instructions of a block; `None` uses the interpreter's own limit.
    instructions: Option<u64>,
}

impl Default for RunLimits {
    fn default() -> RunLimits {
        RunLimits { checks: Checks::All, time: None, instructions: None }
    }
}

impl Default for Cpu {
    fn default() -> Cpu {
        // `kernel_dsl::device` documents this number.
        Cpu::with_facts(DeviceFacts { multiprocessors: kernel_dsl::device::multiprocessors() as u32 })
    }
}

impl Cpu {
    /// Makes a CPU with these facts for launch expressions and plans.
    pub fn with_facts(DeviceFacts { multiprocessors }: DeviceFacts) -> Cpu {
        let facts = DeviceFacts { multiprocessors: multiprocessors.max(1) };
        Cpu {
            facts,
            executables: InstanceCache::default(),
            memory: DevicePool::default(),
            limits: Lock::default(),
            interrupts: Interrupts::default(),
            handler: None,
        }
    }

    /// Passes all launches to `handler` instead of the interpreter. Each buffer becomes a separate
    /// allocation of zeros, which the system provides without writing them: operands of gigabytes
    /// then take no time.
    pub fn with_handler(mut self, handler: Box<LaunchHandler>) -> Cpu {
        (self.handler, self.memory) = (Some(handler), DevicePool::uncached());
        self
    }

    /// Returns whether new buffers are zeros.
    pub fn allocates_zeros(&self) -> bool {
        self.handler.is_some()
    }

    /// Returns the facts for launch expressions and plans.
    pub fn facts(&self) -> DeviceFacts {
        self.facts
    }

    /// Sets the extent of the checks.
    pub fn set_checks(&self, checks: Checks) {
        self.limits.lock().checks = checks;
    }

    /// Sets how long a launch may take.
    pub fn set_watchdog_timeout(&self, limit: Option<Duration>) {
        self.limits.lock().time = limit;
    }

    /// Sets how many warp instructions a block may run.
    pub fn set_instruction_limit(&self, limit: Option<u64>) {
        self.limits.lock().instructions = limit;
    }

    /// Stops the launches that run now.
    pub fn interrupt(&self) {
        self.interrupts.stop();
    }

    /// Returns the pool and its source of memory.
    pub fn memory(&self) -> (&DevicePool, HostMemory) {
        (&self.memory, HostMemory)
    }

    /// Runs the instance on the interpreter. The instance is lowered and decoded once.
    pub fn run(&self, artifact: &'static Artifact, program: &Monomorphic, validated: &ValidatedArgs) -> Result<()> {
        if let Some(handler) = &self.handler {
            return handler(artifact, program, validated);
        }
        span!("run", instance = %program.instance_name());
        let executable = self.executables.get_or_make(artifact, &program.instance().0, || {
            let lowered = driver::lowered_monomorphic(program, artifact.target)
                .map_err(|source| Error::Compile { instance: program.instance_name(), source })?;
            Executable::new(&lowered)
        })?;
        let limits = *self.limits.lock();
        executable.run_within(validated, limits, &self.interrupts)
    }
}

/// Sets all bytes.
///
/// # Safety
/// The bytes belong to one allocation, and no other code uses them.
pub(crate) unsafe fn fill(address: u64, bytes: usize, value: u8) {
    // SAFETY: by the caller's promise.
    unsafe { ptr::write_bytes(pointer(address), value, bytes) }
}

/// Copies bytes.
///
/// # Safety
/// `bytes` bytes at `from` belong to one initialized allocation, and no other code writes them.
/// `bytes` bytes at `to` belong to one allocation, no other code uses them, and they do not overlap
/// the source.
pub(crate) unsafe fn copy(from: u64, to: u64, bytes: usize) {
    // SAFETY: by the caller's promise.
    unsafe { ptr::copy_nonoverlapping(pointer(from).cast_const(), pointer(to), bytes) }
}

/// Host memory from the allocator, always initialized.
pub(crate) struct HostMemory;

impl SegmentSource for HostMemory {
    fn reserve(&self, bytes: u64) -> Result<u64> {
        let failed = || Error::OutOfMemory { requested: bytes as usize, device: self.name(), free: None, pool: None };
        event!(DEBUG, device = "the host", bytes, "memory reserved");
        let layout = Layout::from_size_align(bytes as usize, ALIGNMENT).map_err(|_| failed())?;
        // SAFETY: the size is not 0, because no segment is empty.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() { Err(failed()) } else { Ok(start.expose_provenance() as u64) }
    }

    fn name(&self) -> String {
        "the host".into()
    }

    fn wait_for(&self, _: &WaitSet) -> Result<()> {
        Ok(())
    }

    unsafe fn release(&self, address: u64, bytes: u64) {
        // SAFETY: the layout was valid in `reserve`; the rest by the caller's promise.
        unsafe { dealloc(pointer(address), Layout::from_size_align_unchecked(bytes as usize, ALIGNMENT)) }
    }
}

impl Drop for Cpu {
    fn drop(&mut self) {
        // Host memory is given back without fail.
        let _ = self.memory.trim(&HostMemory);
    }
}

fn pointer(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// IR that the interpreter can run.
pub struct Executable {
    instance: String,
    program: interpreter::Program,
    shared: SharedMemoryNeed,
}

impl Executable {
    /// Makes an executable from IR as lowered.
    pub fn new(kernel: &ir::Kernel) -> Result<Executable> {
        Executable::of(kernel, interpreter::Program::decode(kernel))
    }

    /// Makes an executable from IR after passes.
    pub fn optimized(kernel: &ir::Kernel) -> Result<Executable> {
        Executable::of(kernel, interpreter::Program::decode_optimized(kernel))
    }

    fn of(kernel: &ir::Kernel, program: Result<interpreter::Program, interpreter::Unsupported>) -> Result<Executable> {
        let program = program
            .map_err(|source| Error::Interpreter { instance: kernel.instance.clone(), source: source.into() })?;
        Ok(Executable { instance: kernel.instance.clone(), program, shared: kernel.shared_memory() })
    }

    /// Runs the kernel on arguments in host memory, within `limits` and until an interrupt. The
    /// effects of a faulty kernel up to its error remain.
    fn run_within(&self, validated: &ValidatedArgs, limits: RunLimits, interrupts: &Interrupts) -> Result<()> {
        // Waits for other threads' launches that use overlapping parts of the same buffers.
        let _guard = HOST_RANGES.take(parts(validated));
        // Warnings are not shown, so checks that only warn are disabled.
        let without = Check::ORIGINS.into_iter().collect();
        let deadline = limits.time.map(interpreter::Deadline::after);
        let place = |argument: &Argument| match argument {
            Argument::Memory(memory) => (memory.address(), memory.bytes() as usize),
            Argument::Scalar { .. } => (0, 0),
        };
        let places: Vec<_> = validated.arguments().iter().map(place).collect();
        let held = places.iter().enumerate().map(|(index, (address, bytes))| (index, HOST.of(*address, *bytes)));
        let held: Vec<_> = held.filter(|(_, ranges)| !ranges.is_empty()).collect();
        let RunLimits { checks, .. } = limits;
        let interrupt = Some(interrupts.begin());
        let uninit = held.clone();
        let options = interpreter::Options { checks, without, deadline, interrupt, uninit, ..Default::default() };
        let fuel = limits.instructions.unwrap_or(options.fuel);
        let blocks = validated.shape().grid.into_iter().map(u64::from).product();
        let outcome = progress::run_with_progress(&self.instance, blocks, |ended| {
            self.outcome(validated, interpreter::Options { fuel, ended, ..options })
        });
        if let Ok(Some(Outcome { printed, .. })) = &outcome
            && !printed.is_empty()
        {
            // `print!`, unlike a write to stdout, lets a test harness capture the text.
            print!("{}", String::from_utf8_lossy(printed));
        }
        for (index, _) in held {
            let (address, bytes) = places[index];
            match &outcome {
                // Only a run with all checks records the bytes that were stored.
                Ok(Some(_)) if checks < Checks::All => {
                    if validated.writes(index) {
                        HOST.stored(address, bytes);
                    }
                }
                Ok(Some(outcome)) => {
                    let left = outcome.uninit.iter().find(|(argument, _)| *argument == index);
                    HOST.set_initialized_except(address, bytes, left.map_or(&ByteRanges::default(), |(_, left)| left));
                }
                Ok(None) => {}
                // The run has failed, so the bytes that it stored are not known.
                Err(_) if validated.writes(index) => HOST.stored(address, bytes),
                Err(_) => {}
            }
        }
        check_outcome(outcome?).map(|_| ())
    }

    /// Runs the kernel; errors are part of the outcome.
    pub fn outcome(&self, validated: &ValidatedArgs, options: interpreter::Options) -> Result<Option<Outcome>> {
        self.run_with(validated, None, options)
    }

    /// Returns whether the result may depend on the order of blocks, warps and lanes.
    pub fn has_atomics(&self) -> bool {
        self.program.has_atomics()
    }

    /// Runs the checked form `form` of a kernel. Returns the violation that the form writes to its
    /// record, unless the check is disabled.
    pub fn run_checked(
        &self,
        validated: &ValidatedArgs,
        form: &CheckedKernel,
        options: interpreter::Options,
    ) -> Result<()> {
        let without = options.without;
        let (outcome, reported) = self.outcome_checked(validated, form, options)?;
        check_outcome(outcome)?;
        match reported {
            Some(report) if report.findings.iter().any(|finding| !without.contains(finding.check)) => {
                Err(Error::Violation(report.into()))
            }
            _ => Ok(()),
        }
    }

    /// Runs the checked form with other options. Returns the oracle's report, and the violation
    /// that the form writes to its record.
    pub fn outcome_checked(
        &self,
        validated: &ValidatedArgs,
        form: &CheckedKernel,
        options: interpreter::Options,
    ) -> Result<(Option<Outcome>, Option<Report>)> {
        let mut bytes = [0; 4 * WORDS];
        let outcome = self.run_with(validated, Some(&mut bytes), options)?;
        let word = |i: usize| u32::from_le_bytes([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]]);
        Ok((outcome, interpreter::reported(form, &std::array::from_fn(word))))
    }

    fn run_with(
        &self,
        validated: &ValidatedArgs,
        record: Option<&mut [u8]>,
        options: interpreter::Options,
    ) -> Result<Option<Outcome>> {
        self.launch(validated, record, options, |program, launch| program.run(launch))
    }

    /// Returns the result of `run` for a launch of the program on these arguments, or `None` if the
    /// grid has no blocks.
    pub fn launch<T>(
        &self,
        validated: &ValidatedArgs,
        record: Option<&mut [u8]>,
        options: interpreter::Options,
        run: impl FnOnce(&interpreter::Program, Launch<'_>) -> Result<T, interpreter::LaunchFailure>,
    ) -> Result<Option<T>> {
        if validated.shape().is_empty() {
            return Ok(None);
        }
        validated.shared_bytes(&self.instance, &self.shared)?;
        if validated.is_cooperative() {
            validated.require_residency(&self.instance, interpreter::MAX_COOPERATIVE_BLOCKS, "the CPU device")?;
        }
        let arguments = validated.arguments().iter().enumerate();
        let arguments = arguments.map(|(index, argument)| binding(argument, validated.writes(index)));
        let record = record.map(|bytes| Binding::Memory {
            bytes: ArgumentBytes::Exclusive(bytes),
            extents: vec![WORDS as u32],
            strides: vec![1],
        });
        let launch = Launch {
            grid: validated.shape().grid,
            block: Some(validated.shape().block),
            arguments: arguments.chain(record).collect(),
            options,
        };
        let failed = |refused| match refused {
            interpreter::LaunchFailure::Arguments(source) => {
                Error::Arguments { instance: self.instance.clone(), source }
            }
            interpreter::LaunchFailure::TooLarge(large) => Error::TooLarge(large),
        };
        run(&self.program, launch).map(Some).map_err(failed)
    }
}

/// Returns the byte ranges of the launch in shared buffers, of which other code may use other
/// parts.
fn parts(validated: &ValidatedArgs) -> Vec<LockedRange> {
    let arguments = validated.arguments().iter().enumerate();
    let parts = arguments.filter_map(|(index, argument)| match argument {
        Argument::Memory(memory) => {
            memory.owner::<SubrangeTracker>()?;
            let bytes = memory.address()..memory.address().saturating_add(memory.bytes());
            Some(LockedRange { bytes, writes: validated.writes(index) })
        }
        Argument::Scalar { .. } => None,
    });
    parts.collect()
}

/// Converts an outcome with errors into an error.
fn check_outcome(outcome: Option<Outcome>) -> Result<Option<Outcome>> {
    outcome.map(Outcome::result).transpose().map_err(Error::Violation)
}

fn binding<'a>(argument: &'a Argument, writes: bool) -> Binding<'a> {
    match argument {
        Argument::Scalar { bits, .. } => Binding::Scalar(*bits),
        Argument::Memory(memory) => {
            // The contract has found that all of them fit 32 bits.
            let narrow = |numbers: &[u64]| numbers.iter().map(|n| *n as u32).collect();
            let (extents, strides) = match memory.shape() {
                ArgumentShape::Slice(len) => (narrow(&[*len]), narrow(&[1])),
                ArgumentShape::View { extents, strides } | ArgumentShape::Strided { extents, strides } => {
                    (narrow(extents), narrow(strides))
                }
            };
            Binding::Memory { bytes: bytes(memory, writes), extents, strides }
        }
    }
}

/// Returns the bytes of an argument in host memory.
pub fn bytes<'a>(memory: &'a ArgumentMemory, writes: bool) -> ArgumentBytes<'a> {
    let (start, len) = (pointer(memory.address()), memory.bytes() as usize);
    // SAFETY: `ArgumentMemory` guarantees this number of initialized bytes in one live allocation
    // of this device, which uses host memory. No other code writes them. If the kernel writes them,
    // the contract has verified that the memory is mutable, hence exclusive, and shares no byte
    // with another argument. Other code may own the gaps of a part, so the launch holds the range
    // lock for all of it.
    unsafe {
        match (writes, len) {
            (true, 0) => ArgumentBytes::Exclusive(&mut []),
            (false, 0) => ArgumentBytes::Shared(&[]),
            (true, _) => ArgumentBytes::Exclusive(std::slice::from_raw_parts_mut(start, len)),
            (false, _) => ArgumentBytes::Shared(std::slice::from_raw_parts(start, len)),
        }
    }
}
