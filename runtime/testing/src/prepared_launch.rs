//! Prepared launches of an instance in a case, and the cost of checking: measurements of the
//! unchecked and the checked form.

use super::Case;
use super::signature::InstanceSignature;
use kernel_dsl::compiler::analyses::memory;
use kernel_dsl::compiler::hir::{Constant, Instance, monomorphic};
use kernel_dsl::compiler::lower::lower_monomorphic;
use kernel_dsl::{Argument, Artifact, Call, Declared};
use runtime_devices::executor::{PoolKind, RawBuffer};
use runtime_devices::{Device, Error, Prepared, Result, Stream};
use std::time::{Duration, Instant};

/// The time of one launch in each form, by the device's own clock. Each round gives one value, the
/// mean over several launches in a row.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FormTimes {
    /// The kernel's own PTX, without checks.
    pub unchecked: Vec<Duration>,
    /// The checked form, in which every access is checked.
    pub checked: Vec<Duration>,
}

/// The number of initial rounds that are discarded, so that caches and clocks settle.
const WARM_UP: usize = 3;
/// The minimum number of rounds that are kept, even if they exceed the time limit.
const MIN_ROUNDS: usize = 3;
/// The largest number of launches in a row. A stream has records for this many checked launches.
const LAUNCHES: u32 = 50;
/// The largest size in bytes of all copies of written memory beyond the first. A GPU's cache holds
/// as much.
const MAX_COPIED: usize = 1 << 24;

impl FormTimes {
    /// Compiles and loads both forms, so that [`measure`](FormTimes::measure) finds them ready on
    /// the same device. Nothing is launched. Several threads may call this at once.
    ///
    /// # Errors
    /// If a form cannot be compiled or loaded, or if the arguments do not fit.
    pub fn load(device: &Device, artifact: &'static Artifact, declared: &'static Declared, case: &Case) -> Result<()> {
        with_case_memory(&device.stream()?, artifact, declared.constants, case, |memory| {
            drop(memory.checked()?);
            // SAFETY: the prepared launch is dropped, not launched.
            drop(unsafe { memory.unchecked()? });
            memory.stream.wait()
        })
    }

    /// Measures a declared instance on a case for which its kernel is correct. Each of `rounds`
    /// rounds times both forms in turn. If `rounds` rounds would take longer than about `limit`,
    /// there are fewer rounds with fewer launches.
    ///
    /// # Errors
    /// The errors of the launches.
    pub fn measure(
        device: &Device,
        artifact: &'static Artifact,
        declared: &'static Declared,
        case: &Case,
        rounds: usize,
        limit: Duration,
    ) -> Result<FormTimes> {
        let mut forms = FormTimes::default();
        let stream = device.stream()?;
        with_case_memory(&stream, artifact, declared.constants, case, |memory| {
            let mut checked = memory.checked()?;
            checked.launch()?;
            stream.wait()?;
            // SAFETY: the kernel is registered as correct for this case, and the checked launch has
            // just found no fault.
            let mut bare = unsafe { memory.unchecked()? };
            let start = Instant::now();
            let once = time(&stream, 1, &mut bare)? + time(&stream, 1, &mut checked)?;
            let of_a_round = limit.as_secs_f64() / (WARM_UP + rounds) as f64 / once.as_secs_f64().max(1e-9);
            let launches = (of_a_round as u32).clamp(1, bare.max_launches_in_a_row().unwrap_or(LAUNCHES).min(LAUNCHES));
            let mut times = Vec::new();
            while times.len() < WARM_UP + rounds && (times.len() < MIN_ROUNDS || start.elapsed() < limit) {
                times.push([time(&stream, launches, &mut bare)?, time(&stream, launches, &mut checked)?]);
            }
            let settled = WARM_UP.min(times.len().saturating_sub(MIN_ROUNDS));
            (forms.unchecked, forms.checked) = times[settled..].iter().map(|[bare, checked]| (*bare, *checked)).unzip();
            Ok(())
        })?;
        Ok(forms)
    }
}

/// A launch that is submitted many times, each time on the inputs of its case.
///
/// If the kernel reads memory that it writes, there are several copies of that memory. Launches in
/// a row use one copy each, and [`restore`](RepeatedLaunch::restore) writes the inputs to all
/// copies. Otherwise such a kernel would run on its own results, where it may even wait forever.
pub struct RepeatedLaunch<'a> {
    memory: &'a CaseMemory<'a>,
    /// The launch on each copy.
    prepared: Vec<Prepared<'a>>,
    /// The number of copies used since they were restored.
    used: usize,
}

impl RepeatedLaunch<'_> {
    /// Returns the largest number of launches in a row without a restore between them; `None` if
    /// there is no limit.
    pub fn max_launches_in_a_row(&self) -> Option<u32> {
        (!self.memory.restored.is_empty()).then_some(self.prepared.len() as u32)
    }

    /// Writes the inputs to all copies, if the kernel reads memory that it writes. The writes are
    /// submitted to the stream of the launches; the host does not wait.
    ///
    /// # Errors
    /// The errors of the copies.
    pub fn restore(&mut self) -> Result<()> {
        self.used = 0;
        let CaseMemory { stream, restored, .. } = self.memory;
        restored.iter().try_for_each(|(original, copies)| {
            // SAFETY: `CaseMemory` made all of them, equally long, on the stream's device, and only
            // this thread submits work on them.
            copies.iter().try_for_each(|copy| unsafe { stream.copy_raw(original, copy) })
        })
    }

    /// Submits one launch. If all copies are used, restores them first.
    ///
    /// # Errors
    /// The errors of the launch.
    pub fn launch(&mut self) -> Result<()> {
        if self.memory.restored.is_empty() {
            self.used = 0;
        } else if self.used == self.prepared.len() {
            self.restore()?;
        }
        self.used += 1;
        self.prepared[self.used - 1].launch()
    }
}

/// The arguments of a case in memory of a stream's device.
struct CaseMemory<'a> {
    stream: &'a Stream,
    artifact: &'static Artifact,
    constants: &'static [Constant],
    block: Option<usize>,
    /// The arguments of each copy.
    arguments: Vec<Vec<Argument<'a>>>,
    /// The memory to restore: the inputs, and the memory of each copy.
    restored: Vec<(&'a RawBuffer, Vec<&'a RawBuffer>)>,
}

impl CaseMemory<'_> {
    fn calls(&self) -> impl Iterator<Item = Call<'_>> {
        let of = |arguments: &Vec<_>| Call::new(self.artifact, self.constants, self.block, arguments.clone());
        self.arguments.iter().map(of)
    }

    fn of_prepared<'a>(&'a self, prepared: Result<Vec<Prepared<'a>>>) -> Result<RepeatedLaunch<'a>> {
        let mut launch = RepeatedLaunch { memory: self, prepared: prepared?, used: 0 };
        launch.restore()?;
        Ok(launch)
    }

    /// Prepares launches of the checked form.
    fn checked(&self) -> Result<RepeatedLaunch<'_>> {
        self.of_prepared(self.calls().map(|call| self.stream.prepare(call)).collect())
    }

    /// Prepares launches of the kernel's own PTX.
    ///
    /// # Safety
    /// The kernel is correct for this case.
    unsafe fn unchecked(&self) -> Result<RepeatedLaunch<'_>> {
        // SAFETY: by the caller's promise. Each launch runs on the inputs of the case.
        self.of_prepared(self.calls().map(|call| unsafe { self.stream.prepare_unchecked(call) }).collect())
    }
}

/// Prepares the launch of an instance's PTX, without checks, on copies of a case's inputs in memory
/// of the stream's device, and passes it to `act`. The kernel must be correct for the case; a
/// checked launch runs first and finds faults.
///
/// # Errors
/// The errors of the launches, and those of `act`.
pub fn prepared(
    stream: &Stream,
    artifact: &'static Artifact,
    constants: &'static [Constant],
    case: &Case,
    act: impl FnOnce(&mut RepeatedLaunch<'_>) -> Result<()>,
) -> Result<()> {
    with_case_memory(stream, artifact, constants, case, |memory| {
        memory.checked()?.launch()?;
        stream.wait()?;
        // SAFETY: the kernel is registered as correct for this case, and the checked launch has
        // just found no fault.
        act(&mut unsafe { memory.unchecked()? })?;
        stream.wait()
    })
}

/// Runs `act` with the arguments of `case` in memory of the stream's device.
fn with_case_memory(
    stream: &Stream,
    artifact: &'static Artifact,
    constants: &'static [Constant],
    case: &Case,
    act: impl FnOnce(&CaseMemory<'_>) -> Result<()>,
) -> Result<()> {
    let instance = Instance(constants.to_vec());
    let program = artifact.program().map_err(|source| Error::Hir { kernel: artifact.name.to_string(), source })?;
    let compile = |source| Error::Compile { instance: artifact.instance_name(constants), source };
    let program = monomorphic(&program, &instance).map_err(compile)?;
    let lowered = lower_monomorphic(&program, artifact.target).map_err(compile)?;
    let signature = InstanceSignature::of(&program);
    let case = signature.sized(&program, case).pop().unwrap_or_else(|| case.clone());
    let inputs = signature.buffers(stream.device(), &case)?;
    let restored = if memory::may_read_written_memory(&lowered) { signature.written(&inputs) } else { Vec::new() };
    let bytes: usize = restored.iter().map(|(_, input)| input.bytes()).sum();
    let copies = match restored.is_empty() {
        true => 0,
        false => MAX_COPIED.checked_div(bytes).map_or(1, |copies| copies.clamp(1, LAUNCHES as usize)),
    };
    let copies = (0..copies)
        .map(|_| restored.iter().map(|(_, b)| RawBuffer::new(b.device(), PoolKind::Device, b.bytes())).collect())
        .collect::<Result<Vec<Vec<RawBuffer>>>>()?;
    let mut sets: Vec<Vec<_>> = vec![inputs.iter().map(Option::as_ref).collect(); copies.len().max(1)];
    for (set, copy) in sets.iter_mut().zip(&copies) {
        restored.iter().zip(copy).for_each(|((argument, _), copy)| set[*argument] = Some(copy));
    }
    // SAFETY: the buffers are those of the case's arrays, or equally long copies, which are written
    // before the first launch. All outlive the arguments, and no launch has one buffer twice.
    let arguments = sets.iter().map(|buffers| unsafe { signature.arguments(&case, buffers) }).collect();
    let restored = restored.iter().enumerate().map(|(i, (_, input))| (*input, copies.iter().map(|c| &c[i]).collect()));
    let restored = restored.collect();
    act(&CaseMemory { stream, artifact, constants, block: case.block, arguments, restored })
}

/// Returns the mean time of one launch, measured over `launches` launches in a row on restored
/// memory.
fn time(stream: &Stream, launches: u32, launch: &mut RepeatedLaunch<'_>) -> Result<Duration> {
    launch.restore()?;
    let start = stream.record()?;
    (0..launches).try_for_each(|_| launch.launch())?;
    let end = stream.record()?;
    stream.wait()?;
    Ok(end.duration_since(&start)? / launches)
}
