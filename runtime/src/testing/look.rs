//! A case of a kernel looked at closely: what one thread of it does, and what it asks of memory.

use super::Case;
use super::check::program;
use super::signature::Signature;
use crate::contract::Approved;
use crate::cpu::Executable;
use crate::interpreter::{Launch, Mismatch, Options, Outcome, Profile, Program, Trace};
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

/// What a thread of the instance does on a case, line by line, under every check. A case whose grid has no block has no thread,
/// and is refused.
pub fn trace(
    artifact: &'static Artifact,
    instance: &Instance,
    case: &Case,
    Thread { block, thread, limit }: Thread,
) -> Result<(Outcome, Trace)> {
    let form = |program: &Monomorphic| Ok(Form::Lowered(lower::lower_named(program, artifact.target)?));
    let run = |program: &Program, launch: Launch<'_>| program.trace(launch, block, thread, limit);
    let name = instance.name(artifact.name);
    let none = || Error::Arguments {
        instance: name,
        source: Mismatch(vec!["the grid of this case has no block".to_string()]),
    };
    look(artifact, instance, case, form, run)?.ok_or_else(none)
}

/// What the instance's accesses ask of memory on a case, compiled for `target`: those of the code whose loops are unrolled and
/// whose invariants are moved, of which the compiler's own analysis tells. `None` where the grid has no block.
pub fn profile(
    artifact: &'static Artifact,
    instance: &Instance,
    target: Target,
    case: &Case,
) -> Result<Option<(Outcome, Profile)>> {
    let form = |program: &Monomorphic| {
        lower::lower_monomorphic(program, target).and_then(passes::with_places).map(Form::Optimised)
    };
    look(artifact, instance, case, form, |program, launch| program.profile(launch))
}

/// IR, and how its arithmetic is taken.
enum Form {
    Lowered(ir::Kernel),
    Optimised(ir::Kernel),
}

/// What `run` tells of the instance, in the form that `form` makes, on a case. Where the kernel leaves the size of its blocks
/// to the launch and the case names none, they are the smallest that are tried.
fn look<T>(
    artifact: &'static Artifact,
    instance: &Instance,
    case: &Case,
    form: impl FnOnce(&Monomorphic) -> Result<Form, Errors>,
    run: impl FnOnce(&Program, Launch<'_>) -> Result<T, Mismatch>,
) -> Result<Option<T>> {
    let compile = |source| Error::Compile { instance: instance.name(artifact.name), source };
    let program = monomorphic(&program(artifact)?, instance).map_err(compile)?;
    let executable = match form(&program).map_err(compile)? {
        Form::Lowered(kernel) => Executable::new(&kernel)?,
        Form::Optimised(kernel) => Executable::optimised(&kernel)?,
    };
    let signature = Signature::of(&program);
    let sized = signature.sized(&program, case);
    let case = sized.first().unwrap_or(case);
    let (device, mut told) = (Device::cpu(), None);
    signature.run(&device, case, |arguments| {
        let approved = Approved::new(artifact.name, &program, &device, case.block, arguments)?;
        told = executable.launch(&approved, None, Options::default(), run)?;
        Ok(())
    })?;
    Ok(told)
}
