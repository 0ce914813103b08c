//! What checking costs: the two forms of an instance, side by side.

use super::Case;
use super::signature::Signature;
use crate::{Device, Error, Result, Stream};
use kernel_dsl::compiler::hir::{Instance, monomorphic};
use kernel_dsl::{Artifact, Call, Declared};
use std::time::{Duration, Instant};

/// How long an instance takes in each form, by the device's own clock: a launch, of many in a row, once a round.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Forms {
    /// Its own PTX.
    pub bare: Vec<Duration>,
    /// Every access checked.
    pub checked: Vec<Duration>,
}

/// Rounds that are not counted: caches and clocks settle.
const WARM_UP: usize = 3;
/// Rounds that are counted even where time is short.
const LEAST: usize = 3;
/// Launches in a row at most. The records of checked launches have room for as many.
const LAUNCHES: u32 = 50;

impl Forms {
    /// Has the driver compile and load both forms, for [`measure`](Forms::measure) on the same device to find: nothing is launched. Several
    /// threads may do so at once.
    ///
    /// # Errors
    /// A form that cannot be compiled or loaded, and arguments that do not fit.
    pub fn load(device: &Device, artifact: &'static Artifact, declared: &'static Declared, case: &Case) -> Result<()> {
        with(device, artifact, declared, case, |stream, call| {
            drop(stream.prepare(call())?);
            // SAFETY: it is not launched.
            drop(unsafe { stream.prepare_unchecked(call())? });
            Ok(())
        })
    }

    /// Measures a declared instance on a case that its kernel is right for, in `rounds` rounds, in each of which the forms take turns; in fewer
    /// rounds, of fewer launches, where these would take longer than about `limit`.
    ///
    /// # Errors
    /// What launches give.
    pub fn measure(
        device: &Device,
        artifact: &'static Artifact,
        declared: &'static Declared,
        case: &Case,
        rounds: usize,
        limit: Duration,
    ) -> Result<Forms> {
        let mut forms = Forms::default();
        with(device, artifact, declared, case, |stream, call| {
            let mut checked = stream.prepare(call())?;
            // SAFETY: the case is one that the kernel is registered to be right for, and every access has just been checked.
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
            while times.len() < WARM_UP + rounds && (times.len() < LEAST || start.elapsed() < limit) {
                times.push([time(stream, launches, || bare.launch())?, time(stream, launches, || checked.launch())?]);
            }
            let settled = WARM_UP.min(times.len().saturating_sub(LEAST));
            (forms.bare, forms.checked) = times[settled..].iter().map(|[bare, checked]| (*bare, *checked)).unzip();
            Ok(())
        })?;
        Ok(forms)
    }
}

/// Runs `act` with the launch that the case stands for: a stream, and the arguments in memory of the device.
fn with(
    device: &Device,
    artifact: &'static Artifact,
    declared: &'static Declared,
    case: &Case,
    act: impl for<'a> FnOnce(&Stream, &'a dyn Fn() -> Call<'a>) -> Result<()>,
) -> Result<()> {
    let instance = Instance(declared.constants.to_vec());
    let program = artifact.program().map_err(|source| Error::Hir { kernel: artifact.name.to_string(), source })?;
    let program = monomorphic(&program, &instance)
        .map_err(|source| Error::Compile { instance: declared.name.to_string(), source })?;
    let signature = Signature::of(&program);
    let case = signature.sized(&program, case).pop().unwrap_or_else(|| case.clone());
    signature.run(device, &case, |arguments| {
        act(&device.stream()?, &|| Call::new(artifact, declared.constants, case.block, arguments.to_vec()))
    })?;
    Ok(())
}

/// The time of a launch, of so many.
fn time(stream: &Stream, launches: u32, mut launch: impl FnMut() -> Result<()>) -> Result<Duration> {
    let start = stream.record()?;
    (0..launches).try_for_each(|_| launch())?;
    let end = stream.record()?;
    stream.wait()?;
    Ok(end.since(&start)? / launches)
}
