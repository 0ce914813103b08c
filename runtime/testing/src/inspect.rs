//! Close inspection of cases of a kernel: a trace of one thread, a profile of the memory accesses,
//! and the code that no case reaches.

use super::caught::generated;
use super::check::program;
use super::signature::InstanceSignature;
use super::{Case, KernelSpec};
use kernel_dsl::compiler::hir::{Instance, Monomorphic, monomorphic};
use kernel_dsl::compiler::{Errors, Target, ir, lower, passes};
use kernel_dsl::{Artifact, LaunchForm, Launcher};
use runtime_devices::executor::Executable;
use runtime_devices::executor::ValidatedArgs;
use runtime_devices::{Device, Error, Result};
use runtime_oracle::{
    Launch, LaunchFailure, MemoryProfile, Options, Outcome, Program, ReachedInstructions, Trace, Unreached,
};

/// A thread of a launch, and the length of its trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TracedThread {
    /// Block index in x, y, z.
    pub block: [u32; 3],
    /// Thread index in its block in x, y, z.
    pub thread: [u32; 3],
    /// The largest number of lines in the trace.
    pub limit: usize,
}

/// Traces the execution of one thread of the instance in a case, line by line. The oracle runs with
/// `options`. The thread's own block runs under every check that `options` leaves enabled.
///
/// # Errors
/// If the instance does not compile, the case violates the kernel's contract, or the launch has no
/// such thread.
pub fn trace(
    artifact: &'static Artifact,
    instance: &Instance,
    case: &Case,
    thread: TracedThread,
    options: Options,
) -> Result<(Outcome, Trace)> {
    let compile = |source| Error::Compile { instance: artifact.instance_name(&instance.0), source };
    let program = monomorphic(&program(artifact)?, instance).map_err(compile)?;
    trace_of_program(program, artifact.target, case, thread, options)
}

/// Traces a thread of a program as [`trace`] does. The program may come from source text, for
/// example.
///
/// # Errors
/// Returns the errors of [`trace`].
pub fn trace_of_program(
    program: Monomorphic,
    target: Target,
    case: &Case,
    TracedThread { block, thread, limit }: TracedThread,
    options: Options,
) -> Result<(Outcome, Trace)> {
    let instance = program.instance_name();
    let named = |program: &Monomorphic| lower::lower_named(program, target);
    let inspection = InspectedInstance::of(program, named, Executable::new)?;
    let no_thread = |why| Error::NoThread { instance, why };
    match inspection.run(case, options, |program, launch| Ok(program.trace(launch, block, thread, limit)))? {
        Some(Ok(traced)) => Ok(traced),
        Some(Err(mismatch)) => Err(no_thread(mismatch.to_string())),
        None => Err(no_thread("the grid of this case has no block".to_string())),
    }
}

/// Calls `act` with the validated arguments of a program's launch in a case. The arguments are in
/// memory of `device`.
#[doc(hidden)]
pub fn validated<T>(
    program: &Monomorphic,
    case: &Case,
    device: &Device,
    act: impl FnOnce(&ValidatedArgs<'_, '_>) -> Result<T>,
) -> Result<T> {
    let signature = InstanceSignature::of(program);
    let sized = signature.sized(program, case);
    let case = sized.first().unwrap_or(case);
    let mut result = None;
    signature.run(device, case, |arguments| {
        let validated = ValidatedArgs::new(program, device.identity(), case.block, arguments)?;
        result = Some(act(&validated)?);
        Ok(())
    })?;
    Ok(result.expect("`run` calls the closure, or fails"))
}

/// Launches a case on `device`.
#[doc(hidden)]
pub fn launch(artifact: &'static Artifact, instance: &Instance, case: &Case, device: &Device) -> Result<()> {
    let compile = |source| Error::Compile { instance: artifact.instance_name(&instance.0), source };
    let program = monomorphic(&program(artifact)?, instance).map_err(compile)?;
    let signature = InstanceSignature::of(&program);
    let sized = signature.sized(&program, case);
    let case = sized.first().unwrap_or(case);
    signature.run(device, case, |arguments| {
        // SAFETY: the checked form has no safety requirements.
        unsafe { device.submit(LaunchForm::Checked, artifact, &instance.0, case.block, arguments) }
    })?;
    Ok(())
}

/// Returns the lines and branches of an instance that no thread reaches in any case of `spec`. The
/// cases are generated from `seed`. If that panics, the result is empty.
///
/// # Errors
/// If the instance does not compile, or a case violates the kernel's contract.
pub fn unreached(spec: &KernelSpec, instance: &Instance, seed: u64) -> Result<Vec<Unreached>> {
    let lowered = |program: &Monomorphic| lower::lower_monomorphic(program, spec.artifact.target);
    let inspection = InspectedInstance::new(spec.artifact, instance, lowered, Executable::new)?;
    let (mut reached, mut unreached) = (ReachedInstructions::default(), Vec::new());
    for case in generated(spec.cases, instance, seed).unwrap_or_default() {
        for case in inspection.signature.sized(&inspection.program, &case) {
            inspection.run(&case, Options::default(), |program, launch| {
                program.reach(launch, &mut reached)?;
                unreached = program.unreached(&reached);
                Ok(())
            })?;
        }
    }
    Ok(unreached)
}

/// Profiles the memory accesses of an instance. The profile measures the code after loop unrolling
/// and loop-invariant code motion, which is the form that the compiler's static analysis reports
/// ([`accesses`](kernel_dsl::compiler::analyses::memory::accesses)).
pub struct Profiler(InspectedInstance);

impl Profiler {
    /// Compiles an instance for `target`.
    ///
    /// # Errors
    /// If the instance does not compile.
    pub fn new(artifact: &'static Artifact, instance: &Instance, target: Target) -> Result<Profiler> {
        let compile = |source| Error::Compile { instance: artifact.instance_name(&instance.0), source };
        Profiler::of_program(monomorphic(&program(artifact)?, instance).map_err(compile)?, target)
    }

    /// Compiles a program for `target`, for example a program that was read from source text.
    ///
    /// # Errors
    /// If the program does not compile.
    pub fn of_program(program: Monomorphic, target: Target) -> Result<Profiler> {
        let with_places =
            |program: &Monomorphic| lower::lower_monomorphic(program, target).and_then(passes::with_places);
        InspectedInstance::of(program, with_places, Executable::optimized).map(Profiler)
    }

    /// Returns the profile of a case and the oracle's outcome; `None` if the grid has no block.
    ///
    /// # Errors
    /// If the case violates the kernel's contract.
    pub fn run(&self, case: &Case) -> Result<Option<(Outcome, MemoryProfile)>> {
        self.0.run(case, Options::default(), |program, launch| program.profile(launch))
    }
}

/// An instance in the form under inspection.
struct InspectedInstance {
    program: Monomorphic,
    signature: InstanceSignature,
    executable: Executable,
}

impl InspectedInstance {
    fn new(
        artifact: &'static Artifact,
        instance: &Instance,
        lower: impl FnOnce(&Monomorphic) -> Result<ir::Kernel, Errors>,
        decode: impl FnOnce(&ir::Kernel) -> Result<Executable>,
    ) -> Result<InspectedInstance> {
        let compile = |source| Error::Compile { instance: artifact.instance_name(&instance.0), source };
        InspectedInstance::of(monomorphic(&program(artifact)?, instance).map_err(compile)?, lower, decode)
    }

    fn of(
        program: Monomorphic,
        lower: impl FnOnce(&Monomorphic) -> Result<ir::Kernel, Errors>,
        decode: impl FnOnce(&ir::Kernel) -> Result<Executable>,
    ) -> Result<InspectedInstance> {
        let compile = |source| Error::Compile { instance: program.instance_name(), source };
        let executable = decode(&lower(&program).map_err(compile)?)?;
        Ok(InspectedInstance { signature: InstanceSignature::of(&program), program, executable })
    }

    /// Returns the result of `run` for the launch of a case; `None` if the grid has no block. If
    /// the kernel leaves the block size to the launch and the case sets none, the smallest size is
    /// used.
    fn run<T>(
        &self,
        case: &Case,
        options: Options,
        run: impl FnOnce(&Program, Launch<'_>) -> Result<T, LaunchFailure>,
    ) -> Result<Option<T>> {
        let options = Options { uninitialized: case.uninitialized_arguments(), ..options };
        validated(&self.program, case, &Device::cpu(), |validated| {
            self.executable.launch(validated, None, options, run)
        })
    }
}
