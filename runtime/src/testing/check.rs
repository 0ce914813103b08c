//! Runs the cases of a subject on all executors and compares what they leave.

use super::compare::{differ, gaps, reference};
use super::lines::Lines;
use super::parallel::on_every_core;
use super::ptx;
use super::signature::{Outputs, Signature};
use super::{
    Case, CaseReport, Executor, Expected, Failure, Input, InstanceReport, Mismatch, Problem, Random, Skipped, Stop,
    Subject, Warned,
};
use crate::contract::ValidatedArgs;
use crate::cpu::Executable;
use crate::cuda;
use crate::interpreter::report::{Allowed, Finding, Place};
use crate::interpreter::{self, Check, Checks, Report, Schedule, Severity, Verdict};
use crate::ptx::{Options, Policy};
use crate::{Device, Error, Result};
use kernel_dsl::compiler::analyses::approximate::Approximations;
use kernel_dsl::compiler::hir::{Constant, Instance, Monomorphic, Program, Tolerance, monomorphic};
use kernel_dsl::compiler::lower::checked::Checked;
use kernel_dsl::compiler::{Compilation, Target, emit, ir, passes};
use kernel_dsl::{Argument, Artifact, Launcher};
use std::cell::{LazyCell, RefCell};
use std::collections::BTreeMap;
use std::iter;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Checks kernels on the interpreter, and on a GPU if it has one.
#[derive(Clone, Debug)]
pub struct Checker {
    cpu: Device,
    gpu: Option<Device>,
    /// How the oracle runs.
    options: interpreter::Options,
    /// How many seeded orders it runs every kernel in; `None` is one, and of kernels that may tell orders apart.
    orders: Option<u64>,
    /// Whether the first case that goes wrong is the last.
    stop_at_first: bool,
    /// Whether a case of which the oracle warns goes wrong.
    warnings_denied: bool,
    /// Whether every run is asked where its NaNs and infinities come from.
    origins: bool,
}

impl Checker {
    /// A checker that uses `gpu` too. A CPU device here is no further executor and is passed over.
    pub fn new(gpu: Option<Device>) -> Checker {
        let (cpu, gpu) = (Device::cpu(), gpu.filter(|device| !device.is_cpu()));
        Checker {
            cpu,
            gpu,
            options: interpreter::Options::default(),
            orders: None,
            stop_at_first: false,
            warnings_denied: false,
            origins: false,
        }
    }

    /// The same, whose oracle runs by these options. What else runs IR leaves the same checks out, and fills memory with the same.
    /// Where checks are left out, a GPU takes no part: it runs what passed them all.
    pub fn with_options(self, options: interpreter::Options) -> Checker {
        Checker { options, ..self }
    }

    /// The same, whose oracle runs every kernel with blocks and warps in order, reversed, and in `seeded` orders by the seeds from 1 on, and
    /// holds what comes out against each other. Without this, that is done with one seeded order, of kernels that have atomic operations: in what
    /// others leave, an order is only to be seen if they race.
    pub fn with_orders(self, seeded: u64) -> Checker {
        Checker { orders: Some(seeded), ..self }
    }

    /// The same, which ends at the first case that goes wrong, and there at the first error.
    pub fn with_stop_at_first(self) -> Checker {
        let options = interpreter::Options { limit: 1, ..self.options };
        Checker { options, stop_at_first: true, ..self }
    }

    /// The same, to which a warning of the oracle is a failure ([`Failure::Warned`]).
    pub fn with_warnings_denied(self) -> Checker {
        Checker { warnings_denied: true, ..self }
    }

    /// The same, which warns of every NaN and infinity that the kernel makes and stores ([`Check::ORIGINS`]). Without this, that is asked of wrong
    /// results alone: what is right has those that it is to have.
    pub fn with_origins(self) -> Checker {
        Checker { origins: true, ..self }
    }

    /// The same, which warns of digits that cancel where what is stored is off by a relative `error` or more
    /// ([`Check::Cancellation`]).
    pub fn with_cancellation(self, error: f64) -> Checker {
        let options = interpreter::Options { cancellation: Some(error), ..self.options };
        Checker { options, ..self }
    }

    /// The same, which tells of what is right and more than is needed, too ([`Check::EqualStores`]), or may not be what is meant
    /// ([`Check::LossyCast`]).
    pub fn with_notes(self) -> Checker {
        let options = interpreter::Options { notes: true, ..self.options };
        Checker { options, ..self }
    }

    /// Runs the instance of `subject` on the cases of `seed`.
    pub fn check(&self, subject: &Subject, instance: &Instance, seed: u64) -> InstanceReport {
        let cases = (subject.cases)(instance, &mut Random::new(seed));
        let mut report = InstanceReport {
            instance: instance.name(subject.artifact.name),
            seed,
            executors: Vec::new(),
            skipped: Vec::new(),
            approximate: false,
            decisions: Vec::new(),
            warnings: Vec::new(),
            allowed: Vec::new(),
            problem: cases
                .is_empty()
                .then(|| Problem { verdict: Verdict::Unsupported, why: "its subject has no cases".to_string() }),
            cases: Vec::new(),
        };
        if self.gpu().is_none() {
            let why = match self.gpu {
                None => "no GPU was given to the check",
                Some(_) => "checks are left out, and a GPU runs what passed them all",
            };
            report.skipped.push(Skipped { executor: "CUDA".to_string(), why: why.to_string() });
        }
        match Prepared::compile(subject.artifact, instance) {
            Ok(prepared) => {
                report.executors = self.executors(&prepared);
                report.approximate = prepared.approximate.iter().any(|(reached, _)| *reached);
                report.decisions.clone_from(&prepared.decisions);
                let cases: Vec<_> = cases.iter().flat_map(|case| prepared.sized(case)).collect();
                let mut warnings = Warnings::default();
                let results = self.in_order(&cases, |case| {
                    let (expected, mut warnings) =
                        (|inputs: &[Input]| (subject.reference)(instance, inputs), Warnings::default());
                    let failure = self.warned(&prepared, case, expected, &mut warnings).err();
                    (CaseReport::new(&case.name, failure), warnings)
                });
                for (case, found) in results {
                    let last = self.stop_at_first && case.failure.is_some();
                    report.cases.push(case);
                    warnings.take(found);
                    if last {
                        break;
                    }
                }
                report.warnings = warnings.found.into_values().collect();
                report.allowed = warnings.allowed.into_values().collect();
            }
            Err(e) => report.problem = Some(e.into()),
        }
        report
    }

    /// The GPU, if it takes part.
    fn gpu(&self) -> Option<&Device> {
        let all = self.options.checks == Checks::All && self.options.without.is_empty();
        self.gpu.as_ref().filter(|_| all)
    }

    /// The other orders in which the oracle runs the kernel.
    fn others(&self, prepared: &Prepared) -> Vec<Schedule> {
        let races = Check::named("race").unwrap_or_default();
        let blind = self.options.checks != Checks::All || races.iter().any(|c| self.options.without.contains(*c));
        let seeded = match self.orders {
            Some(seeded) => seeded,
            None if prepared.lowered.has_atomics() || blind => 1,
            None => return Vec::new(),
        };
        iter::once(Schedule::Reversed).chain((1..=seeded).map(Schedule::Seeded)).collect()
    }

    /// What `run` gives for each of `cases`, in their order; where the first failure is the last, perhaps not of those behind it. Without a GPU, of
    /// which there is one, as many run at once as there are cores.
    fn in_order(
        &self,
        cases: &[Case],
        run: impl Fn(&Case) -> (CaseReport, Warnings) + Sync,
    ) -> Vec<(CaseReport, Warnings)> {
        let over = AtomicBool::new(false);
        let run = |case: &Case| {
            if over.load(Ordering::Relaxed) {
                return None;
            }
            let result = run(case);
            over.fetch_or(self.stop_at_first && result.0.failure.is_some(), Ordering::Relaxed);
            Some(result)
        };
        let results = if self.gpu().is_some() { cases.iter().map(run).collect() } else { on_every_core(cases, run) };
        results.into_iter().flatten().collect()
    }

    fn executors(&self, prepared: &Prepared) -> Vec<Executor> {
        let gpu = self.gpu().into_iter().map(|device| device.to_string());
        let gpu = gpu.flat_map(|device| [Executor::Cuda(device.clone()), Executor::CudaChecked(device)]);
        let ptx = prepared.ptx.iter().map(|_| Executor::Ptx);
        [Executor::Lowered, Executor::Optimized, Executor::Checked].into_iter().chain(ptx).chain(gpu).collect()
    }

    /// Runs one case on all executors; the first thing that goes wrong. Where the kernel leaves the size of its blocks to the
    /// launch, and the case names none, it runs in blocks of several sizes.
    pub fn case(
        &self,
        prepared: &Prepared,
        case: &Case,
        expected: impl FnOnce(&[Input]) -> Vec<Expected>,
    ) -> Result<(), Failure> {
        self.warned(prepared, case, expected, &mut Warnings::default())
    }

    fn warned(
        &self,
        prepared: &Prepared,
        case: &Case,
        expected: impl FnOnce(&[Input]) -> Vec<Expected>,
        warnings: &mut Warnings,
    ) -> Result<(), Failure> {
        // Inputs that the contract refuses may be none that the reference knows what to do with.
        let expected = LazyCell::new(|| expected(&case.inputs));
        prepared.sized(case).iter().try_for_each(|case| {
            let right = &mut |executor, outputs: &Outputs| prepared.right(case, executor, outputs, Some(&expected));
            self.agreed(prepared, case, right, warnings)
        })
    }

    /// Runs one case as [`case`](Checker::case) does; the first thing that goes wrong, and in blocks of which size. With no
    /// `expected`, executors are compared with each other alone.
    pub(super) fn first(
        &self,
        prepared: &Prepared,
        case: &Case,
        expected: Option<impl FnOnce(&[Input]) -> Vec<Expected>>,
    ) -> Result<(), Box<Failed>> {
        let expected = LazyCell::new(|| expected.map(|expected| expected(&case.inputs)));
        prepared.sized(case).into_iter().try_for_each(|case| {
            let right =
                &mut |executor, outputs: &Outputs| prepared.right(&case, executor, outputs, expected.as_deref());
            let mut warnings = Warnings::default();
            self.agreed(prepared, &case, right, &mut warnings)
                .map_err(|failure| Box::new(Failed { case: case.clone(), failure, warnings: warnings.reports() }))
        })
    }

    /// Runs one case on all executors: whether they leave the same, and the oracle what is `right`. Where a GPU may leave
    /// something else, that is to be right too.
    fn agreed(
        &self,
        prepared: &Prepared,
        case: &Case,
        right: &mut dyn FnMut(Executor, &Outputs) -> Result<(), Failure>,
        warnings: &mut Warnings,
    ) -> Result<(), Failure> {
        let stopped = |executor: Executor| move |e: Error| Failure::stopped(executor, prepared.located(e));
        let interpret = |run: &dyn Fn(&ValidatedArgs) -> Result<()>| {
            prepared.run(&self.cpu, case, |arguments| run(&prepared.approved(&self.cpu, case, arguments)?))
        };
        // The oracle first: no other executor runs what it reports.
        let uninitialised = case.holding_nothing();
        let oracle = |options: interpreter::Options| {
            let options = interpreter::Options { uninitialised: uninitialised.clone(), ..options };
            let outcome = RefCell::new(None);
            let run = |a: &ValidatedArgs| prepared.lowered.run_by(a, options.clone()).map(|o| _ = outcome.replace(o));
            interpret(&run).map(|outputs| (outputs, outcome.into_inner()))
        };
        // What is right has the NaNs and infinities that it is to have.
        let without = self.options.without.and(Check::ORIGINS.into_iter().collect());
        let quiet = interpreter::Options { without, ..self.options.clone() };
        let schedule = quiet.schedule;
        let options = if self.origins { &self.options } else { &quiet };
        let (first, outcome) = oracle(options.clone()).map_err(stopped(Executor::Lowered))?;
        let instructions = outcome.map_or(0, |outcome| {
            warnings.add(&case.name, &outcome.report);
            outcome.statistics.warp_instructions
        });
        // What waits for a block that has not begun, waits for ever.
        let fuel = quiet.fuel.min(8 * instructions + 10_000);
        let again = interpreter::Options { fuel, cancellation: None, notes: false, ..quiet };
        // All else runs in order.
        let lowered = match schedule {
            Schedule::InOrder => first,
            _ => {
                let in_order = interpreter::Options { schedule: Schedule::InOrder, ..again.clone() };
                let (lowered, _) = oracle(in_order).map_err(stopped(Executor::Lowered))?;
                if let Some(mismatch) = prepared.difference(case, &lowered, &first) {
                    return Err(Failure::OrderDependent { schedule, mismatch: mismatch.into() });
                }
                lowered
            }
        };
        for other in self.others(prepared).into_iter().filter(|other| *other != schedule) {
            match oracle(interpreter::Options { schedule: other, ..again.clone() }) {
                Ok((outputs, _)) => {
                    if let Some(mismatch) = prepared.difference(case, &lowered, &outputs) {
                        return Err(Failure::OrderDependent { schedule: other, mismatch: mismatch.into() });
                    }
                }
                Err(Error::Violation(report)) if report.errors().all(|f| is_endless(f.check)) => {
                    warnings.waits(&case.name, &report);
                }
                Err(e) => return Err(stopped(Executor::Lowered)(e)),
            }
        }
        // The fuel is the oracle's: how many instructions others take is their own matter.
        let in_order = interpreter::Options { schedule: Schedule::InOrder, fuel: 1 << 32, ..again };
        let optimised = interpret(&|a| prepared.optimised.run_by(a, in_order.clone()).map(drop))
            .map_err(stopped(Executor::Optimized))?;
        prepared.same(&lowered, &optimised, Executor::Optimized)?;
        let (executable, form) = &prepared.checked;
        let checked = interpret(&|a| executable.run_checked(a, form, in_order.clone()));
        let checked = checked.map_err(stopped(Executor::Checked))?;
        prepared.same(&lowered, &checked, Executor::Checked)?;
        if let Some(ptx) = &prepared.ptx {
            // Whichever side of a branch goes first.
            for policy in [Policy::PostDominator, Policy::LowestFirst] {
                let options = Options { policy, ..Options::default() };
                match interpret(&|a| ptx.run(a, &prepared.signature.names, options)) {
                    Ok(outputs) => prepared.same(&lowered, &outputs, Executor::Ptx)?,
                    // It has no checks to leave out.
                    Err(e) if Stop::of(&e).is_of(self.options.without) => break,
                    Err(e) => return Err(stopped(Executor::Ptx)(e)),
                }
            }
        }
        if let Some(gpu) = self.gpu() {
            prepared.has_tolerances()?;
            let constants = &prepared.program.instance().0;
            let executor = Executor::Cuda(gpu.to_string());
            let outputs = prepared.run(gpu, case, |arguments| {
                // SAFETY: the oracle has run the kernel on these arguments and found no fault.
                unsafe { gpu.launch_unchecked(prepared.artifact, constants, case.block, arguments) }
            });
            let outputs = outputs.map_err(stopped(executor.clone()))?;
            prepared.near(case, &lowered, &outputs, executor.clone())?;
            if !case.order_dependent.is_empty() {
                right(executor, &outputs)?;
            }
            let executor = Executor::CudaChecked(gpu.to_string());
            let outputs =
                prepared.run(gpu, case, |arguments| gpu.launch(prepared.artifact, constants, case.block, arguments));
            let outputs = outputs.map_err(stopped(executor.clone()))?;
            prepared.near(case, &lowered, &outputs, executor.clone())?;
            if !case.order_dependent.is_empty() {
                right(executor, &outputs)?;
            }
        }
        let wrong = right(Executor::Lowered, &lowered);
        if wrong.is_err()
            && !self.origins
            && let Ok((_, Some(outcome))) =
                oracle(interpreter::Options { schedule: Schedule::InOrder, ..self.options.clone() })
        {
            warnings.add(&case.name, &outcome.report);
        }
        match warnings.first() {
            Some(report) if self.warnings_denied => wrong.and(Err(Failure::Warned { report: report.into() })),
            _ => wrong,
        }
    }
}

/// An instance in the forms that the interpreter runs.
pub struct Prepared {
    artifact: &'static Artifact,
    program: Monomorphic,
    lowered: Executable,
    optimised: Executable,
    /// After all passes.
    checked: (Executable, Checked),
    /// The text that a GPU runs; of forms made elsewhere there is none.
    ptx: Option<ptx::Executable>,
    /// Where that makes the accesses of a line of Rust, once somebody has asked.
    lines: OnceLock<Lines>,
    signature: Signature,
    /// By argument: whether approximate values reach it, and how near a GPU's must be.
    approximate: Vec<(bool, Option<Tolerance>)>,
    decisions: Vec<String>,
}

pub(super) fn program(artifact: &'static Artifact) -> Result<Program> {
    artifact.program().map_err(|source| Error::Hir { kernel: artifact.name.to_string(), source })
}

/// What arguments that a kernel writes should hold, from its inputs.
pub(super) type Reference<'a> = dyn Fn(&[Input]) -> Vec<Expected> + 'a;

/// A case, and what went wrong in it.
pub(super) struct Failed {
    pub case: Case,
    pub failure: Failure,
    /// What the oracle warned of until then.
    pub warnings: Vec<Report>,
}

/// What the oracle warned of, or noted, a report each, by check, file and place there.
#[derive(Default)]
struct Warnings {
    found: BTreeMap<(Check, String, [u32; 2]), Warned>,
    /// What the kernel allows.
    allowed: BTreeMap<(Check, String, [u32; 2]), Allowed>,
}

impl Warnings {
    fn add(&mut self, case: &str, report: &Report) {
        for finding in report.warnings().chain(report.notes()) {
            self.note(case, finding, report);
        }
        for allowed in &report.allowed {
            self.allow(allowed.clone());
        }
    }

    /// Those of `later` too; of one place, the first report stays.
    fn take(&mut self, later: Warnings) {
        for (place, warned) in later.found {
            self.found.entry(place).or_insert(warned);
        }
        later.allowed.into_values().for_each(|allowed| self.allow(allowed));
    }

    /// A run in another order came to no end.
    fn waits(&mut self, case: &str, report: &Report) {
        for finding in report.errors() {
            let message =
                "with blocks and warps in this order a loop does not end: it waits for what need not have begun";
            let finding = Finding { severity: Severity::Warning, message: message.to_string(), ..finding.clone() };
            self.note(case, &finding, report);
        }
    }

    fn note(&mut self, case: &str, finding: &Finding, report: &Report) {
        let Place { file, line, column, .. } = &finding.place;
        let place = (finding.check, file.clone(), [*line, *column]);
        self.found.entry(place).or_insert_with(|| Warned { case: case.to_string(), report: report.alone(finding) });
    }

    /// The first that is more than a note.
    fn first(&self) -> Option<Report> {
        self.found.values().map(|warned| &warned.report).find(|report| report.warnings().next().is_some()).cloned()
    }

    fn reports(self) -> Vec<Report> {
        self.found.into_values().map(|warned| warned.report).collect()
    }

    fn allow(&mut self, allowed: Allowed) {
        let Place { ref file, line, column, .. } = allowed.place;
        let place = (allowed.check, file.clone(), [line, column]);
        self.allowed.entry(place).and_modify(|known| known.count += allowed.count).or_insert(allowed);
    }
}

impl Prepared {
    /// The instance of `artifact` for its target, lowered and optimised.
    pub fn compile(artifact: &'static Artifact, instance: &Instance) -> Result<Prepared> {
        Prepared::compile_for(artifact, instance, artifact.target)
    }

    /// The same for another target. The interpreters run any; a GPU runs the kernel's own PTX all the same.
    pub fn compile_for(artifact: &'static Artifact, instance: &Instance, target: Target) -> Result<Prepared> {
        let compile = |source| Error::Compile { instance: instance.name(artifact.name), source };
        let program = monomorphic(&program(artifact)?, instance).map_err(compile)?;
        let compilation = Compilation::new(&program, target).map_err(compile)?;
        let text = cuda::ptx(artifact, target, &program, &instance.name(artifact.name))?;
        let optimised = compilation.optimized().map_err(compile)?;
        Prepared::new(artifact, program.clone(), compilation.lowered(), optimised)?.with_ptx(&text)
    }

    /// The same, whose PTX is this text; a GPU, if there is one, goes on with its own.
    pub fn with_ptx(self, text: &str) -> Result<Prepared> {
        let name = self.program.instance().name(self.artifact.name);
        // The checked form has the shared memory of the kernel as lowered.
        let shared = self.checked.1.kernel.shared_memory();
        Ok(Prepared { ptx: Some(ptx::Executable::new(name, text, shared)?), ..self })
    }

    /// The instance of `artifact` in two forms made elsewhere: as lowered, and after some pass.
    pub fn from_ir(
        artifact: &'static Artifact,
        instance: &Instance,
        lowered: &ir::Kernel,
        optimised: &ir::Kernel,
    ) -> Result<Prepared> {
        let compile = |source| Error::Compile { instance: instance.name(artifact.name), source };
        let program = monomorphic(&program(artifact)?, instance).map_err(compile)?;
        Prepared::new(artifact, program, lowered, optimised)
    }

    fn new(
        artifact: &'static Artifact,
        program: Monomorphic,
        lowered: &ir::Kernel,
        optimised: &ir::Kernel,
    ) -> Result<Prepared> {
        let compile = |source| Error::Compile { instance: program.instance().name(artifact.name), source };
        let form = Checked::of(lowered.clone());
        let guarded = passes::optimize(form.kernel.clone()).map_err(compile)?;
        let arguments = program.arguments();
        let approximations = Approximations::of(lowered);
        let reached = |i: usize| approximations.reached.contains(&(i as u32));
        let decisions = approximations.decisions.iter().map(|decision| decision.error(lowered).to_string());
        let checked = (Executable::optimised(&guarded)?, form);
        Ok(Prepared {
            artifact,
            lowered: Executable::new(lowered)?,
            optimised: Executable::optimised(optimised)?,
            checked,
            ptx: None,
            lines: OnceLock::new(),
            signature: Signature::of(&program),
            approximate: (0..arguments.len()).map(|i| (reached(i), program.tolerance(i))).collect(),
            decisions: decisions.collect(),
            program,
        })
    }

    /// The same error, with the PTX's lines in what the oracle reports.
    fn located(&self, mut error: Error) -> Error {
        if let (Error::Violation(report), Some(_)) = (&mut error, &self.ptx) {
            self.lines.get_or_init(|| self.lines()).locate(report);
        }
        error
    }

    fn lines(&self) -> Lines {
        let texts = Compilation::new(&self.program, self.artifact.target).and_then(|compilation| {
            let text = |lines| compilation.module(lines).map(|module| module.to_string());
            Ok((text(emit::Lines::Kept)?, text(emit::Lines::Left)?))
        });
        texts.map(|(located, plain)| Lines::of(&located, &plain)).unwrap_or_default()
    }

    /// The arguments of a case, if they meet the kernel's contract.
    pub(super) fn approved<'a>(
        &self,
        device: &Device,
        case: &Case,
        arguments: &'a [Argument<'a>],
    ) -> Result<ValidatedArgs<'a, 'a>> {
        ValidatedArgs::new(self.artifact.name, &self.program, device, case.block, arguments)
    }

    /// The kernel, and the constants of the instance.
    pub(super) fn instance(&self) -> (&'static Artifact, &[Constant]) {
        (self.artifact, &self.program.instance().0)
    }

    /// The checked form after all passes.
    pub(super) fn checked(&self) -> &(Executable, Checked) {
        &self.checked
    }

    /// The text that a GPU runs.
    pub(super) fn ptx(&self) -> Option<&ptx::Executable> {
        self.ptx.as_ref()
    }

    /// The case in blocks of each size that is to be tried.
    pub fn sized(&self, case: &Case) -> Vec<Case> {
        self.signature.sized(&self.program, case)
    }

    /// Runs `launch` on copies of the case's inputs in memory of `device`.
    pub(super) fn run(
        &self,
        device: &Device,
        case: &Case,
        launch: impl FnOnce(&[Argument]) -> Result<()>,
    ) -> Result<Outputs> {
        self.signature.run(device, case, launch)
    }

    /// The parameters' names.
    pub(super) fn names(&self) -> &[String] {
        &self.signature.names
    }

    /// Whether what an executor left is `expected`, if that is known, and lies where it may.
    fn right(
        &self,
        case: &Case,
        executor: Executor,
        outputs: &Outputs,
        expected: Option<&[Expected]>,
    ) -> Result<(), Failure> {
        let wrong = || reference(&executor, &self.signature.names, outputs, expected?);
        gaps(&executor, &self.signature.names, outputs, case).or_else(wrong).map_or(Ok(()), Err)
    }

    /// Whether each argument that approximate values reach says how near they must be.
    fn has_tolerances(&self) -> Result<(), Failure> {
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

    /// Whether a GPU left what the oracle left, within the kernel's tolerance where approximate values may be.
    fn near(&self, case: &Case, lowered: &Outputs, other: &Outputs, executor: Executor) -> Result<(), Failure> {
        let same = lowered.iter().zip(other).filter(|((index, _), _)| !case.order_dependent.contains(index));
        for ((index, a), (_, b)) in same {
            let (reached, tolerance) = self.approximate[*index];
            if let Some(mismatch) = differ(&self.signature.names[*index], a, b, tolerance.filter(|_| reached)) {
                return Err(Failure::Differ { left: Executor::Lowered, right: executor, mismatch: mismatch.into() });
            }
        }
        Ok(())
    }

    /// The first value that the oracle left otherwise in another order, and should not.
    fn difference(&self, case: &Case, lowered: &Outputs, other: &Outputs) -> Option<Mismatch> {
        let mut same = lowered.iter().zip(other).filter(|((index, _), _)| !case.order_dependent.contains(index));
        same.find_map(|((index, a), (_, b))| differ(&self.signature.names[*index], a, b, None))
    }

    /// Whether another executor left what the oracle left.
    fn same(&self, lowered: &Outputs, other: &Outputs, executor: Executor) -> Result<(), Failure> {
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

/// Whether a check tells of a loop that does not end.
fn is_endless(check: Check) -> bool {
    check.ends_launch()
}
