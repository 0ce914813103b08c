//! An instance, compiled for every executor.

use crate::compare::{check_gaps, differ, reference};
use crate::lines::AccessesByLine;
use crate::ptx;
use crate::signature::{InstanceSignature, Outputs};
use crate::{Case, Executor, Expected, Failure, FirstDifference};
use kernel_dsl::compiler::analyses::approximate::Approximations;
use kernel_dsl::compiler::hir::{Constant, Instance, Monomorphic, Program, Tolerance, monomorphic};
use kernel_dsl::compiler::lower::checked::CheckedKernel;
use kernel_dsl::compiler::{Compilation, Target, emit, ir};
use kernel_dsl::{Argument, Artifact};
use runtime_devices::executor::{self, Executable, ValidatedArgs};
use runtime_devices::{Device, Error, Result};
use std::sync::OnceLock;

/// An instance, prepared for all executors.
pub struct PreparedInstance {
    artifact: &'static Artifact,
    program: Monomorphic,
    pub(crate) lowered: Executable,
    pub(super) optimized: Executable,
    /// The checked form after all passes.
    pub(super) checked: (Executable, CheckedKernel),
    /// The PTX that a GPU runs; `None` if the forms were given as IR.
    pub(super) ptx: Option<ptx::DecodedPtx>,
    /// Whether [`with_ptx`](PreparedInstance::with_ptx) replaced the compiler's PTX. The atomic
    /// operations of such PTX may have another order.
    pub(super) foreign: bool,
    /// The PTX lines of each Rust line, computed on first use.
    lines: OnceLock<AccessesByLine>,
    signature: InstanceSignature,
    /// For each argument, whether approximate values reach it, and the tolerance for a GPU.
    pub(super) approximate: Vec<(bool, Option<Tolerance>)>,
    pub(super) decisions: Vec<String>,
}

/// Decodes the program of a kernel.
///
/// # Errors
/// If the HIR in the artifact cannot be read.
pub fn program(artifact: &'static Artifact) -> Result<Program> {
    artifact.program().map_err(|source| Error::Hir { kernel: artifact.name.to_string(), source })
}

impl PreparedInstance {
    /// Compiles the instance of `artifact` for its target, both as lowered and after all passes.
    ///
    /// # Errors
    /// If the instance does not compile, or the interpreters do not support it.
    pub fn compile(artifact: &'static Artifact, instance: &Instance) -> Result<PreparedInstance> {
        PreparedInstance::compile_for(artifact, instance, artifact.target)
    }

    /// Compiles the instance for another target. The interpreters run any target. A GPU always runs
    /// the kernel's own PTX.
    ///
    /// # Errors
    /// Returns the errors of [`compile`](PreparedInstance::compile).
    pub fn compile_for(artifact: &'static Artifact, instance: &Instance, target: Target) -> Result<PreparedInstance> {
        let compile = |source| Error::Compile { instance: artifact.instance_name(&instance.0), source };
        let program = monomorphic(&program(artifact)?, instance).map_err(compile)?;
        let compilation = Compilation::new(&program, target).map_err(compile)?;
        let text = executor::ptx(artifact, target, &program, &artifact.instance_name(&instance.0))?;
        let optimized = compilation.optimized().map_err(compile)?;
        let prepared =
            PreparedInstance::new(artifact, program.clone(), compilation.lowered(), optimized)?.with_ptx(&text)?;
        Ok(PreparedInstance { foreign: false, ..prepared })
    }

    /// Replaces the PTX that the PTX interpreter runs by `text`. A GPU still runs the kernel's own
    /// PTX. Arguments that may depend on the order of atomic operations are then compared with the
    /// reference only, and approximate values within the kernel's tolerance.
    ///
    /// # Errors
    /// If the PTX interpreter rejects the text.
    pub fn with_ptx(self, text: &str) -> Result<PreparedInstance> {
        let name = self.program.instance_name();
        // The checked form has the shared memory of the kernel as lowered.
        let shared = self.checked.1.kernel.shared_memory();
        Ok(PreparedInstance { ptx: Some(ptx::DecodedPtx::new(name, text, shared)?), foreign: true, ..self })
    }

    /// Prepares two given forms of the instance: the lowered form, and a form after some passes.
    ///
    /// # Errors
    /// If the artifact has no such instance, or an interpreter rejects a form.
    pub fn from_ir(
        artifact: &'static Artifact,
        instance: &Instance,
        lowered: &ir::Kernel,
        optimized: &ir::Kernel,
    ) -> Result<PreparedInstance> {
        let compile = |source| Error::Compile { instance: artifact.instance_name(&instance.0), source };
        let program = monomorphic(&program(artifact)?, instance).map_err(compile)?;
        PreparedInstance::new(artifact, program, lowered, optimized)
    }

    fn new(
        artifact: &'static Artifact,
        program: Monomorphic,
        lowered: &ir::Kernel,
        optimized: &ir::Kernel,
    ) -> Result<PreparedInstance> {
        let compile = |source| Error::Compile { instance: program.instance_name(), source };
        let form = CheckedKernel::of_instance(lowered.clone(), &program);
        let guarded = form.optimized().map_err(compile)?;
        let arguments = program.arguments();
        let approximations = Approximations::of(lowered);
        let reached = |i: usize| approximations.reached.contains(&(i as u32));
        let decisions = approximations.decisions.iter().map(|decision| decision.error(lowered).to_string());
        let checked = (Executable::optimized(&guarded)?, form);
        Ok(PreparedInstance {
            artifact,
            lowered: Executable::new(lowered)?,
            optimized: Executable::optimized(optimized)?,
            checked,
            ptx: None,
            foreign: false,
            lines: OnceLock::new(),
            signature: InstanceSignature::of(&program),
            approximate: (0..arguments.len()).map(|i| (reached(i), program.tolerance(i))).collect(),
            decisions: decisions.collect(),
            program,
        })
    }

    /// Compiles and loads the instance's modules for a GPU, once.
    pub(super) fn load(&self, gpu: Option<&Device>) -> Result<()> {
        gpu.map_or(Ok(()), |gpu| gpu.load(self.artifact, &self.program.instance().0))
    }

    /// Adds the PTX lines to the oracle's report in `error`.
    pub(super) fn located(&self, mut error: Error) -> Error {
        if let (Error::Violation(report), Some(_)) = (&mut error, &self.ptx) {
            self.lines.get_or_init(|| self.lines()).locate(report);
        }
        error
    }

    fn lines(&self) -> AccessesByLine {
        let texts = Compilation::new(&self.program, self.artifact.target).and_then(|compilation| {
            let text = |lines| compilation.module(lines).map(|module| module.to_string());
            Ok((text(emit::LineDirectives::Kept)?, text(emit::LineDirectives::Omitted)?))
        });
        texts.map(|(located, plain)| AccessesByLine::of(&located, &plain)).unwrap_or_default()
    }

    /// Validates the arguments of a case against the kernel's contract.
    pub(crate) fn validated<'a>(
        &self,
        device: &Device,
        case: &Case,
        arguments: &'a [Argument<'a>],
    ) -> Result<ValidatedArgs<'a, 'a>> {
        ValidatedArgs::new(&self.program, device.identity(), case.block, arguments)
    }

    /// Returns the kernel, and the constants of the instance.
    pub(crate) fn instance(&self) -> (&'static Artifact, &[Constant]) {
        (self.artifact, &self.program.instance().0)
    }

    /// Returns the checked form after all passes.
    pub(crate) fn checked(&self) -> &(Executable, CheckedKernel) {
        &self.checked
    }

    /// Returns the PTX that a GPU runs.
    pub(crate) fn ptx(&self) -> Option<&ptx::DecodedPtx> {
        self.ptx.as_ref()
    }

    /// Returns copies of the case, one for each block size to try.
    pub fn sized(&self, case: &Case) -> Vec<Case> {
        self.signature.sized(&self.program, case)
    }

    /// Runs `launch` on copies of the case's inputs in memory of `device`.
    pub(crate) fn run(
        &self,
        device: &Device,
        case: &Case,
        launch: impl FnOnce(&[Argument]) -> Result<()>,
    ) -> Result<Outputs> {
        self.signature.run(device, case, launch)
    }

    /// Returns the names of the parameters.
    pub(crate) fn names(&self) -> &[String] {
        &self.signature.names
    }

    /// Checks that an executor's outputs match `expected`, if it is given. Also checks that gaps
    /// between the elements of outputs are unchanged.
    pub(super) fn check_outputs(
        &self,
        case: &Case,
        executor: Executor,
        outputs: &Outputs,
        expected: Option<&[Expected]>,
    ) -> Result<(), Failure> {
        let wrong = || reference(&executor, &self.signature.names, outputs, case, expected?);
        check_gaps(&executor, &self.signature.names, outputs, case).or_else(wrong).map_or(Ok(()), Err)
    }

    /// Checks that each argument that depends on approximate values has a tolerance.
    pub(super) fn has_tolerances(&self) -> Result<(), Failure> {
        match self
            .approximate
            .iter()
            .zip(&self.signature.names)
            .find(|((reached, tolerance), _)| *reached && tolerance.is_none())
        {
            Some((_, argument)) => Err(Failure::NoTolerance { argument: argument.clone() }),
            None => Ok(()),
        }
    }

    /// Checks that a GPU's outputs match the oracle's, within the kernel's tolerance for
    /// approximate values.
    pub(super) fn check_near(
        &self,
        order_dependent: &[usize],
        lowered: &Outputs,
        other: &Outputs,
        executor: Executor,
    ) -> Result<(), Failure> {
        let same = lowered.iter().zip(other).filter(|((index, _), _)| !order_dependent.contains(index));
        for ((index, a), (_, b)) in same {
            let (reached, tolerance) = self.approximate[*index];
            if let Some(mismatch) = differ(&self.signature.names[*index], a, b, tolerance.filter(|_| reached)) {
                return Err(Failure::Differ { left: Executor::Lowered, right: executor, mismatch: mismatch.into() });
            }
        }
        Ok(())
    }

    /// Returns the first value that differs between two schedules, except in the arguments of
    /// `order_dependent`.
    pub(crate) fn difference(
        &self,
        order_dependent: &[usize],
        lowered: &Outputs,
        other: &Outputs,
    ) -> Option<FirstDifference> {
        let mut same = lowered.iter().zip(other).filter(|((index, _), _)| !order_dependent.contains(index));
        same.find_map(|((index, a), (_, b))| differ(&self.signature.names[*index], a, b, None))
    }

    /// Checks that another executor's outputs match the oracle's.
    pub(super) fn check_equal(&self, lowered: &Outputs, other: &Outputs, executor: Executor) -> Result<(), Failure> {
        let differences = lowered
            .iter()
            .zip(other)
            .find_map(|((index, a), (_, b))| differ(&self.signature.names[*index], a, b, None));
        match differences {
            Some(mismatch) => {
                Err(Failure::Differ { left: Executor::Lowered, right: executor, mismatch: mismatch.into() })
            }
            None => Ok(()),
        }
    }
}
