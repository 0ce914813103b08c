//! What checking costs: the two forms of an instance, side by side.

use super::Case;
use super::signature::Signature;
use crate::{Device, Error, Result, Stream};
use kernel_dsl::compiler::hir::{Instance, monomorphic, serial};
use kernel_dsl::{Artifact, Call, Declared};
use std::time::Duration;

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
/// Launches in a row. The records of checked launches have room for as many.
const LAUNCHES: u32 = 50;

impl Forms {
    /// Measures a declared instance on a case that its kernel is right for, in `rounds` rounds, in each of which the forms take turns.
    ///
    /// # Errors
    /// What launches give.
    pub fn measure(
        device: &Device,
        artifact: &'static Artifact,
        declared: &'static Declared,
        case: &Case,
        rounds: usize,
    ) -> Result<Forms> {
        let instance = Instance(declared.constants.to_vec());
        let program =
            serial::program(artifact.hir).map_err(|source| Error::Hir { kernel: artifact.name.to_string(), source })?;
        let program = monomorphic(&program, &instance)
            .map_err(|source| Error::Compile { instance: declared.name.to_string(), source })?;
        let signature = Signature::of(&program);
        let case = signature.sized(&program, case).pop().unwrap_or_else(|| case.clone());
        let mut forms = Forms::default();
        signature.run(device, &case, |arguments| {
            let stream = device.stream()?;
            let call = || Call::new(artifact, declared.constants, case.block, arguments.to_vec());
            let mut checked = stream.prepare(call())?;
            // SAFETY: the case is one that the kernel is registered to be right for, and every access has just been checked.
            let mut bare = unsafe {
                checked.launch()?;
                stream.wait()?;
                stream.prepare_unchecked(call())?
            };
            for round in 0..WARM_UP + rounds {
                let times = [time(&stream, || bare.launch())?, time(&stream, || checked.launch())?];
                if round >= WARM_UP {
                    forms.bare.push(times[0]);
                    forms.checked.push(times[1]);
                }
            }
            Ok(())
        })?;
        Ok(forms)
    }
}

/// The time of a launch.
fn time(stream: &Stream, mut launch: impl FnMut() -> Result<()>) -> Result<Duration> {
    let start = stream.record()?;
    (0..LAUNCHES).try_for_each(|_| launch())?;
    let end = stream.record()?;
    stream.wait()?;
    Ok(end.since(&start)? / LAUNCHES)
}
