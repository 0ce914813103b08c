//! A case of a kernel looked at closely: what one thread of it does, and what it asks of memory.

use super::Case;
use super::check::program;
use super::signature::Signature;
use crate::contract::ValidatedArgs;
use crate::cpu::Executable;
use crate::interpreter::{Launch, Options, Outcome, Profile, Program, Refused, Trace};
use crate::{Device, Error, Result};
use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::{Instance, Monomorphic, monomorphic};
use kernel_dsl::compiler::{Errors, Target, ir, lower, passes};

/// A thread of a launch, and how much of what it does is to be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thread {
    /// Block index in x, y, z.
    pub block: [u32; 3],
    /// Thread index in its block in x, y, z.
    pub thread: [u32; 3],
    /// Lines at most.
    pub limit: usize,
}

/// What a thread of the instance does on a case, line by line, in a run by `options`. The thread's own block runs under every check
/// that they do not leave out. A case whose grid has no block has no thread, and is refused.
pub fn trace(
    artifact: &'static Artifact,
    instance: &Instance,
    case: &Case,
    Thread { block, thread, limit }: Thread,
    options: Options,
) -> Result<(Outcome, Trace)> {
    let named = |program: &Monomorphic| lower::lower_named(program, artifact.target);
    let look = Look::new(artifact, instance, named, Executable::new)?;
    let no_thread = |why| Error::NoThread { instance: instance.name(artifact.name), why };
    match look.run(case, options, |program, launch| Ok(program.trace(launch, block, thread, limit)))? {
        Some(Ok(traced)) => Ok(traced),
        Some(Err(mismatch)) => Err(no_thread(mismatch.to_string())),
        None => Err(no_thread("the grid of this case has no block".to_string())),
    }
}

/// Measures what an instance's accesses ask of memory: those of the code whose loops are unrolled and whose invariants are moved,
/// of which the compiler's own analysis tells
/// ([`accesses`](kernel_dsl::compiler::analyses::memory::accesses)).
pub struct Profiler(Look);

impl Profiler {
    /// Of an instance, compiled for `target`.
    pub fn new(artifact: &'static Artifact, instance: &Instance, target: Target) -> Result<Profiler> {
        let with_places =
            |program: &Monomorphic| lower::lower_monomorphic(program, target).and_then(passes::with_places);
        Look::new(artifact, instance, with_places, Executable::optimised).map(Profiler)
    }

    /// What they ask on a case, and what the oracle finds; `None` where the grid has no block.
    pub fn run(&self, case: &Case) -> Result<Option<(Outcome, Profile)>> {
        self.0.run(case, Options::default(), |program, launch| program.profile(launch))
    }
}

/// An instance in the form that is looked at.
struct Look {
    artifact: &'static Artifact,
    program: Monomorphic,
    signature: Signature,
    executable: Executable,
}

impl Look {
    fn new(
        artifact: &'static Artifact,
        instance: &Instance,
        lower: impl FnOnce(&Monomorphic) -> Result<ir::Kernel, Errors>,
        decode: impl FnOnce(&ir::Kernel) -> Result<Executable>,
    ) -> Result<Look> {
        let compile = |source| Error::Compile { instance: instance.name(artifact.name), source };
        let program = monomorphic(&program(artifact)?, instance).map_err(compile)?;
        let executable = decode(&lower(&program).map_err(compile)?)?;
        Ok(Look { artifact, signature: Signature::of(&program), program, executable })
    }

    /// What `run` tells of the launch of a case; `None` where the grid has no block. Where the kernel leaves the size of its blocks
    /// to the launch and the case names none, they are the smallest that are tried.
    fn run<T>(
        &self,
        case: &Case,
        options: Options,
        run: impl FnOnce(&Program, Launch<'_>) -> Result<T, Refused>,
    ) -> Result<Option<T>> {
        let sized = self.signature.sized(&self.program, case);
        let case = sized.first().unwrap_or(case);
        let (device, mut told) = (Device::cpu(), None);
        let options = Options { uninitialised: case.holding_nothing(), ..options };
        self.signature.run(&device, case, |arguments| {
            let approved = ValidatedArgs::new(self.artifact.name, &self.program, &device, case.block, arguments)?;
            told = self.executable.launch(&approved, None, options, run)?;
            Ok(())
        })?;
        Ok(told)
    }
}
