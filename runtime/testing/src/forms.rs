//! Prepared launches of an instance in a case, and the cost of checking: measurements of the
//! unchecked and the checked form.

use super::Case;
use super::signature::Signature;
use kernel_dsl::compiler::hir::{Constant, Instance, monomorphic};
use kernel_dsl::{Artifact, Call, Declared};
use runtime_devices::{Device, Error, Prepared, Result, Stream};
use std::time::{Duration, Instant};

/// The time of one launch in each form, by the device's own clock. Each round gives one value, the
/// mean over several launches in a row.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FormTimes {
    /// The kernel's own PTX, without checks.
    pub bare: Vec<Duration>,
    /// The checked form, in which every access is checked.
    pub checked: Vec<Duration>,
}

/// The number of initial rounds that are discarded, so that caches and clocks settle.
const WARM_UP: usize = 3;
/// The least number of rounds that are kept, even beyond the time limit.
const MIN_ROUNDS: usize = 3;
/// The largest number of launches in a row. The records of checked launches hold as much.
const LAUNCHES: u32 = 50;

impl FormTimes {
    /// Compiles and loads both forms, so that [`measure`](FormTimes::measure) finds them ready on
    /// the same device. Nothing is launched. Several threads may call this at once.
    ///
    /// # Errors
    /// If a form cannot be compiled or loaded, or if the arguments do not fit.
    pub fn load(device: &Device, artifact: &'static Artifact, declared: &'static Declared, case: &Case) -> Result<()> {
        with(&device.stream()?, artifact, declared.constants, case, |stream, call| {
            drop(stream.prepare(call())?);
            // SAFETY: the prepared launch is dropped, not launched.
            drop(unsafe { stream.prepare_unchecked(call())? });
            Ok(())
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
        with(&device.stream()?, artifact, declared.constants, case, |stream, call| {
            let mut checked = stream.prepare(call())?;
            // SAFETY: the kernel is registered as correct for this case, and the checked launch has
            // just found no fault.
            let mut bare = unsafe {
                checked.launch()?;
                stream.wait()?;
                stream.prepare_unchecked(call())?
            };
            let start = Instant::now();
            let once = time(stream, 1, || bare.launch())? + time(stream, 1, || checked.launch())?;
            let of_a_round = limit.as_secs_f64() / (WARM_UP + rounds) as f64 / once.as_secs_f64().max(1e-9);
            let launches = (of_a_round as u32).clamp(1, LAUNCHES);
            let mut times = Vec::new();
            while times.len() < WARM_UP + rounds && (times.len() < MIN_ROUNDS || start.elapsed() < limit) {
                times.push([time(stream, launches, || bare.launch())?, time(stream, launches, || checked.launch())?]);
            }
            let settled = WARM_UP.min(times.len().saturating_sub(MIN_ROUNDS));
            (forms.bare, forms.checked) = times[settled..].iter().map(|[bare, checked]| (*bare, *checked)).unzip();
            Ok(())
        })?;
        Ok(forms)
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
    act: impl FnOnce(&mut Prepared<'_>) -> Result<()>,
) -> Result<()> {
    with(stream, artifact, constants, case, |stream, call| {
        stream.prepare(call())?.launch()?;
        stream.wait()?;
        // SAFETY: the kernel is registered as correct for this case, and the checked launch has
        // just found no fault.
        let mut bare = unsafe { stream.prepare_unchecked(call())? };
        act(&mut bare)?;
        stream.wait()
    })
}

/// Runs `act` with a stream and with a function that makes the launch of `case`. The arguments are
/// in memory of the stream's device.
fn with(
    stream: &Stream,
    artifact: &'static Artifact,
    constants: &'static [Constant],
    case: &Case,
    act: impl for<'a> FnOnce(&'a Stream, &'a dyn Fn() -> Call<'a>) -> Result<()>,
) -> Result<()> {
    let instance = Instance(constants.to_vec());
    let program = artifact.program().map_err(|source| Error::Hir { kernel: artifact.name.to_string(), source })?;
    let program = monomorphic(&program, &instance)
        .map_err(|source| Error::Compile { instance: artifact.instance_name(constants), source })?;
    let signature = Signature::of(&program);
    let case = signature.sized(&program, case).pop().unwrap_or_else(|| case.clone());
    signature.run(stream.device(), &case, |arguments| {
        act(stream, &|| Call::new(artifact, constants, case.block, arguments.to_vec()))
    })?;
    Ok(())
}

/// Returns the mean time of one launch, measured over `launches` launches in a row.
fn time(stream: &Stream, launches: u32, mut launch: impl FnMut() -> Result<()>) -> Result<Duration> {
    let start = stream.record()?;
    (0..launches).try_for_each(|_| launch())?;
    let end = stream.record()?;
    stream.wait()?;
    Ok(end.since(&start)? / launches)
}
