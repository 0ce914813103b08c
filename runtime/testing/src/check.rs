//! The check of a spec: runs its cases on all executors and compares the results.

use super::compare::{differ, gaps, reference};
use super::lines::Lines;
use super::log::same_lines;
use super::parallel::on_every_core;
use super::ptx;
use super::signature::{Outputs, Signature};
use super::{
    Case, CaseReport, Executor, Expected, Failure, Input, InstanceReport, KernelSpec, Mismatch, Problem, Random,
    Skipped, Stop, Warned,
};
use kernel_dsl::compiler::analyses::approximate::Approximations;
use kernel_dsl::compiler::hir::{Constant, Instance, Monomorphic, Program, Tolerance, monomorphic};
use kernel_dsl::compiler::lower::checked::CheckedKernel;
use kernel_dsl::compiler::{Compilation, Target, emit, ir};
use kernel_dsl::{Argument, Artifact, Launcher};
use runtime_devices::executor;
use runtime_devices::executor::Executable;
use runtime_devices::executor::ValidatedArgs;
use runtime_devices::{Device, Error, Result};
use runtime_oracle::report::{Allowed, CodeLocation, Finding};
use runtime_oracle::{self as interpreter, Check, Checks, Preemption, Report, Schedule, Severity, Verdict};
use runtime_ptx::{BranchPolicy, Options};
use std::cell::{LazyCell, RefCell};
use std::collections::BTreeMap;
use std::iter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

/// The number of interleavings under which a short case with atomic operations runs.
const INTERLEAVINGS: u64 = 8;

/// Warp instructions of all interleavings of a case.
const INTERLEAVED_INSTRUCTIONS: u64 = 1 << 20;

/// Warp instructions for which warps that wait for each other may poll.
const POLLING: u64 = 1 << 25;

/// A checker of kernels, which runs them on the interpreters, and on a GPU if it has one.
#[derive(Clone, Debug)]
pub struct Checker {
    cpu: Device,
    gpu: Option<Device>,
    /// Held by the thread whose case runs on the GPU: one case's memory is there at a time.
    gpu_turn: Arc<Mutex<()>>,
    /// The options of the oracle.
    options: interpreter::Options,
    /// The number of seeded schedules for every kernel. `None`: one, and only for kernels whose
    /// result may depend on the order.
    orders: Option<u64>,
    /// Whether the check stops at the first failing case.
    stop_at_first: bool,
    /// Whether a warning of the oracle is a failure.
    warnings_denied: bool,
    /// Whether every run reports the origins of NaNs and infinities.
    origins: bool,
}

impl Checker {
    /// Creates a checker that also uses `gpu`, if given. A CPU device is ignored, because the
    /// interpreters run anyway.
    pub fn new(gpu: Option<Device>) -> Checker {
        let (cpu, gpu) = (Device::cpu(), gpu.filter(|device| !device.is_cpu()));
        Checker {
            cpu,
            gpu,
            gpu_turn: Arc::default(),
            options: interpreter::Options::default(),
            orders: None,
            stop_at_first: false,
            warnings_denied: false,
            origins: false,
        }
    }

    /// Sets the options of the oracle. The other executors of IR use the same set of checks and the
    /// same initial memory. A GPU is skipped if a check is disabled, because it runs only kernels
    /// that passed every check.
    pub fn with_options(self, options: interpreter::Options) -> Checker {
        Checker { options, ..self }
    }

    /// Runs every kernel under several schedules and compares the results. The schedules are: in
    /// order, reversed, `seeded` random orders with seeds from 1, and `seeded` interleavings
    /// ([`Schedule::Preempted`]). By default only kernels with atomic operations run in other
    /// orders: reversed, one seeded order, and up to 8 interleavings if the case is short. Without
    /// atomics, a result depends on the order only through a race.
    pub fn with_orders(self, seeded: u64) -> Checker {
        Checker { orders: Some(seeded), ..self }
    }

    /// Stops at the first failing case, and there at the first error.
    pub fn with_stop_at_first(self) -> Checker {
        let options = interpreter::Options { limit: 1, ..self.options };
        Checker { options, stop_at_first: true, ..self }
    }

    /// Treats a warning of the oracle as a failure ([`Failure::Warned`]).
    pub fn with_warnings_denied(self) -> Checker {
        Checker { warnings_denied: true, ..self }
    }

    /// Warns of every NaN and infinity that the kernel computes and stores ([`Check::ORIGINS`]). By
    /// default only wrong results are examined: a correct result has the NaNs that the reference
    /// expects.
    pub fn with_origins(self) -> Checker {
        Checker { origins: true, ..self }
    }

    /// Warns of cancellation if the stored value has a relative error of `error` or more
    /// ([`Check::Cancellation`]).
    pub fn with_cancellation(self, error: f64) -> Checker {
        let options = interpreter::Options { cancellation: Some(error), ..self.options };
        Checker { options, ..self }
    }

    /// Reports notes, too: correct but redundant operations ([`Check::EqualStores`]), and
    /// operations that may be unintended ([`Check::LossyCast`]).
    pub fn with_notes(self) -> Checker {
        let options = interpreter::Options { notes: true, ..self.options };
        Checker { options, ..self }
    }

    /// Runs the instance of `spec` on the cases of `seed`. Several threads may check instances
    /// at the same time: their cases take turns on a GPU, whose driver compiles the next modules
    /// meanwhile.
    pub fn check(&self, spec: &KernelSpec, instance: &Instance, seed: u64) -> InstanceReport {
        let cases = (spec.cases)(instance, &mut Random::new(seed));
        let mut report = InstanceReport {
            instance: spec.artifact.instance_name(&instance.0),
            seed,
            executors: Vec::new(),
            skipped: Vec::new(),
            approximate: false,
            decisions: Vec::new(),
            warnings: Vec::new(),
            allowed: Vec::new(),
            problem: cases
                .is_empty()
                .then(|| Problem { verdict: Verdict::Unsupported, why: "its spec has no cases".to_string() }),
            cases: Vec::new(),
        };
        if self.gpu().is_none() {
            let why = match self.gpu {
                None => "no GPU was given to the check",
                Some(_) => "checks are disabled, and a GPU runs only cases that passed all checks",
            };
            report.skipped.push(Skipped { executor: "CUDA".to_string(), why: why.to_string() });
        }
        match Prepared::compile(spec.artifact, instance) {
            Ok(prepared) => {
                report.executors = self.executors(&prepared);
                report.approximate = prepared.approximate.iter().any(|(reached, _)| *reached);
                report.decisions.clone_from(&prepared.decisions);
                let cases: Vec<_> = cases.iter().flat_map(|case| prepared.sized(case)).collect();
                let mut warnings = Warnings::default();
                let run = |case: &Case| {
                    let (expected, mut warnings) =
                        (|inputs: &[Input]| (spec.reference)(instance, inputs), Warnings::default());
                    let failure = self.warned(&prepared, case, expected, &mut warnings).err();
                    let printed = String::from_utf8_lossy(&std::mem::take(&mut warnings.printed)).into_owned();
                    (CaseReport { printed, ..CaseReport::new(&case.name, failure) }, warnings)
                };
                let results = thread::scope(|scope| {
                    // The GPU's driver compiles while the interpreters run. An error of loading is
                    // also an error of the first launch, which reports it.
                    scope.spawn(|| prepared.load(self.gpu()));
                    self.in_order(&cases, run)
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

    /// Returns the GPU if it takes part.
    fn gpu(&self) -> Option<&Device> {
        let all = self.options.checks == Checks::All && self.options.without.is_empty();
        self.gpu.as_ref().filter(|_| all)
    }

    /// Returns the other schedules under which the oracle runs the kernel.
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

    /// Returns the interleavings under which the oracle runs a case that passes `points` points in
    /// `instructions` warp instructions. A long case runs under few of them, or none.
    fn interleavings(&self, points: u64, instructions: u64) -> impl Iterator<Item = Preemption> {
        let affordable = (INTERLEAVED_INSTRUCTIONS / instructions.max(1)).min(INTERLEAVINGS);
        let count = if points == 0 { 0 } else { self.orders.unwrap_or(affordable) };
        (1..=count).map(move |seed| Preemption::random(seed, points))
    }

    /// Returns the result of `run` for each case, in the order of `cases`. If the checker stops at
    /// the first failure, later cases may be missing. Cases run in parallel on all cores, and one
    /// after another on a GPU.
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
        on_every_core(cases, run).into_iter().flatten().collect()
    }

    fn executors(&self, prepared: &Prepared) -> Vec<Executor> {
        let gpu = self.gpu().into_iter().map(|device| device.to_string());
        let gpu = gpu.flat_map(|device| [Executor::Cuda(device.clone()), Executor::CudaChecked(device)]);
        let ptx = prepared.ptx.iter().map(|_| Executor::Ptx);
        [Executor::Lowered, Executor::Optimized, Executor::Checked].into_iter().chain(ptx).chain(gpu).collect()
    }

    /// Runs one case on all executors and returns the first failure. If the kernel leaves the block
    /// size to the launch and the case sets none, the case runs with several block sizes.
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
        // The reference may not support inputs that the contract rejects, so it runs on demand.
        let expected = LazyCell::new(|| expected(&case.inputs));
        prepared.sized(case).iter().try_for_each(|case| {
            let right = &mut |executor, outputs: &Outputs| prepared.right(case, executor, outputs, Some(&expected));
            self.agreed(prepared, case, right, warnings)
        })
    }

    /// Runs one case as [`case`](Checker::case) does; returns the first failure and the block size
    /// in which it occurred. Without `expected`, the executors are only compared with each other.
    pub(super) fn first(
        &self,
        prepared: &Prepared,
        case: &Case,
        expected: Option<impl FnOnce(&[Input]) -> Vec<Expected>>,
    ) -> Result<(), Box<FailedCase>> {
        let expected = LazyCell::new(|| expected.map(|expected| expected(&case.inputs)));
        prepared.sized(case).into_iter().try_for_each(|case| {
            let right =
                &mut |executor, outputs: &Outputs| prepared.right(&case, executor, outputs, expected.as_deref());
            let mut warnings = Warnings::default();
            self.agreed(prepared, &case, right, &mut warnings)
                .map_err(|failure| Box::new(FailedCase { case: case.clone(), failure, warnings: warnings.reports() }))
        })
    }

    /// Runs one case on all executors. Checks that the executors agree and that the oracle's result
    /// is `right`. A GPU's result is checked with `right` too where it may differ from the
    /// oracle's.
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
        // The oracle runs first: no other executor runs a kernel that the oracle rejects.
        let uninitialized = case.holding_nothing();
        // The text of the last run.
        let printed = RefCell::new(Vec::new());
        let oracle = |options: interpreter::Options| {
            let options = interpreter::Options { uninitialized: uninitialized.clone(), ..options };
            let outcome = RefCell::new(None);
            let run =
                |a: &ValidatedArgs| logged(&prepared.lowered, a, &options, &printed).map(|o| _ = outcome.replace(o));
            interpret(&run).map(|outputs| (outputs, outcome.into_inner()))
        };
        // A correct result has the NaNs and infinities that the reference expects.
        let without = self.options.without.and(Check::ORIGINS.into_iter().collect());
        let quiet = interpreter::Options { without, ..self.options.clone() };
        let schedule = quiet.schedule;
        let options = if self.origins { &self.options } else { &quiet };
        let first = oracle(options.clone());
        warnings.printed = printed.take();
        let (first, outcome) = first.map_err(stopped(Executor::Lowered))?;
        let (instructions, points) = outcome.map_or((0, 0), |outcome| {
            warnings.add(&case.name, &outcome.report);
            // A single warp has no other to be preempted for.
            let points = if outcome.statistics.warps > 1 { outcome.points } else { 0 };
            (outcome.statistics.warp_instructions, points)
        });
        // A loop that waits for a block that has not started never ends; this budget stops it.
        let fuel = quiet.fuel.min(8 * instructions + 10_000);
        let again = interpreter::Options { fuel, cancellation: None, notes: false, ..quiet };
        // All other executors run blocks and warps in order.
        let mut lines = warnings.printed.clone();
        let lowered = match schedule {
            Schedule::InOrder => first,
            _ => {
                let in_order = interpreter::Options { schedule: Schedule::InOrder, ..again.clone() };
                let (lowered, _) = oracle(in_order).map_err(stopped(Executor::Lowered))?;
                lines = printed.take();
                if let Some(mismatch) = prepared.difference(case, &lowered, &first) {
                    return Err(Failure::OrderDependent { schedule, mismatch: mismatch.into() });
                }
                lowered
            }
        };
        // Returns the outputs, or none if a loop did not end.
        let scheduled = |schedule: Schedule, warnings: &mut Warnings| -> Result<Option<Outputs>, Failure> {
            let preempted = matches!(schedule, Schedule::Preempted(_));
            // Blocks that wait for each other poll until the interpreter finds the deadlock.
            let fuel = if preempted { fuel.saturating_add(POLLING) } else { fuel };
            let outputs = match oracle(interpreter::Options { schedule, fuel, ..again.clone() }) {
                Ok((outputs, _)) => outputs,
                Err(Error::Violation(report))
                    if report.errors().all(|f| is_endless(f.check) && !(preempted && f.check == Check::Livelock)) =>
                {
                    warnings.waits(&case.name, &report);
                    return Ok(None);
                }
                Err(e) => return Err(stopped(Executor::Lowered)(e)),
            };
            match prepared.difference(case, &lowered, &outputs) {
                Some(mismatch) => Err(Failure::OrderDependent { schedule, mismatch: mismatch.into() }),
                None => Ok(Some(outputs)),
            }
        };
        // Results that may depend on the order, and are then compared with the reference only.
        let mut free = Vec::new();
        let preempted = self.interleavings(points, instructions).map(Schedule::Preempted);
        for other in self.others(prepared).into_iter().filter(|other| *other != schedule).chain(preempted) {
            match (scheduled(other, warnings), other) {
                (Ok(Some(outputs)), _) if !case.order_dependent.is_empty() => free.push((other, outputs)),
                (Ok(_), _) => {}
                (Err(failure), Schedule::Preempted(preemption)) => {
                    let mut simplest = failure;
                    preemption.shrunk(|simpler| {
                        let run = scheduled(Schedule::Preempted(simpler), &mut Warnings::default());
                        let like = run.err().filter(|other| other.is_like(&simplest));
                        like.map(|other| simplest = other).is_some()
                    });
                    return Err(simplest);
                }
                (Err(failure), _) => return Err(failure),
            }
        }
        // The budget above is for the oracle: other executors may need more instructions.
        let in_order = interpreter::Options { schedule: Schedule::InOrder, fuel: 1 << 32, ..again };
        let optimized = interpret(&|a| logged(&prepared.optimized, a, &in_order, &printed).map(drop))
            .map_err(stopped(Executor::Optimized))?;
        prepared.same(&lowered, &optimized, Executor::Optimized)?;
        same_lines(&lines, &printed.take(), Executor::Optimized)?;
        let (executable, form) = &prepared.checked;
        let checked = interpret(&|a| executable.run_checked(a, form, in_order.clone()));
        let checked = checked.map_err(stopped(Executor::Checked))?;
        prepared.same(&lowered, &checked, Executor::Checked)?;
        if let Some(ptx) = &prepared.ptx {
            // The result must not depend on which side of a branch runs first.
            for policy in [BranchPolicy::PostDominator, BranchPolicy::LowestFirst] {
                let options = Options { policy, ..Options::default() };
                let run =
                    |a: &ValidatedArgs| ptx.run(a, &prepared.signature.names, options).map(|p| _ = printed.replace(p));
                match interpret(&run) {
                    Ok(outputs) => {
                        prepared.same(&lowered, &outputs, Executor::Ptx)?;
                        same_lines(&lines, &printed.take(), Executor::Ptx)?;
                    }
                    // The PTX interpreter cannot disable checks.
                    Err(e) if Stop::of(&e).is_of(self.options.without) => break,
                    Err(e) => return Err(stopped(Executor::Ptx)(e)),
                }
            }
            for schedule in self.interleavings(points, instructions).map(Schedule::Preempted) {
                let options = Options { schedule, ..Options::default() };
                match interpret(&|a| ptx.run(a, &prepared.signature.names, options).map(drop)) {
                    Ok(outputs) => {
                        if let Some(mismatch) = prepared.difference(case, &lowered, &outputs) {
                            return Err(Failure::OrderDependent { schedule, mismatch: mismatch.into() });
                        }
                    }
                    Err(e) if Stop::of(&e).is_of(self.options.without) => break,
                    Err(e) => return Err(stopped(Executor::Ptx)(e)),
                }
            }
        }
        if let Some(gpu) = self.gpu() {
            prepared.has_tolerances()?;
            // The wait for the compiler comes before the turn, so that other cases have theirs.
            prepared.load(Some(gpu)).map_err(stopped(Executor::Cuda(gpu.to_string())))?;
            let _turn = self.gpu_turn.lock().unwrap_or_else(PoisonError::into_inner);
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
        let mut free = free.into_iter();
        let wrong = wrong
            .and_then(|()| free.try_for_each(|(schedule, outputs)| right(Executor::Scheduled(schedule), &outputs)));
        match warnings.first() {
            Some(report) if self.warnings_denied => wrong.and(Err(Failure::Warned { report: report.into() })),
            _ => wrong,
        }
    }
}

/// An instance, prepared for all executors.
pub struct Prepared {
    artifact: &'static Artifact,
    program: Monomorphic,
    lowered: Executable,
    optimized: Executable,
    /// The checked form after all passes.
    checked: (Executable, CheckedKernel),
    /// The PTX that a GPU runs; `None` if the forms were given as IR.
    ptx: Option<ptx::Executable>,
    /// The PTX lines of each Rust line, computed on first use.
    lines: OnceLock<Lines>,
    signature: Signature,
    /// For each argument, whether approximate values reach it, and the tolerance for a GPU.
    approximate: Vec<(bool, Option<Tolerance>)>,
    decisions: Vec<String>,
}

pub(super) fn program(artifact: &'static Artifact) -> Result<Program> {
    artifact.program().map_err(|source| Error::Hir { kernel: artifact.name.to_string(), source })
}

/// Computes the expected contents of the written arguments from the inputs.
pub(super) type Reference<'a> = dyn Fn(&[Input]) -> Vec<Expected> + 'a;

/// A case and its failure.
pub(super) struct FailedCase {
    pub case: Case,
    pub failure: Failure,
    /// The oracle's warnings up to the failure.
    pub warnings: Vec<Report>,
}

/// Runs a kernel on the interpreter. Also returns the text that it printed, if it fails, too.
fn logged(
    executable: &Executable,
    approved: &ValidatedArgs,
    options: &interpreter::Options,
    printed: &RefCell<Vec<u8>>,
) -> Result<Option<interpreter::Outcome>> {
    let outcome = executable.outcome(approved, options.clone())?;
    printed.replace(outcome.as_ref().map(|outcome| outcome.printed.clone()).unwrap_or_default());
    outcome.map(interpreter::Outcome::result).transpose().map_err(Error::Violation)
}

/// The oracle's warnings and notes: one report for each check, file and position.
#[derive(Default)]
struct Warnings {
    /// The text that the last case printed.
    printed: Vec<u8>,
    found: BTreeMap<(Check, String, [u32; 2]), Warned>,
    /// Findings that the kernel allows.
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

    /// Adds the findings of another case. The first report of a position is kept.
    fn take(&mut self, later: Warnings) {
        for (place, warned) in later.found {
            self.found.entry(place).and_modify(|known| known.cases += warned.cases).or_insert(warned);
        }
        later.allowed.into_values().for_each(|allowed| self.allow(allowed));
    }

    /// Adds warnings of loops that did not end in another schedule.
    fn waits(&mut self, case: &str, report: &Report) {
        for finding in report.errors() {
            let message = "with blocks and warps in this order a loop does not end: it waits for blocks or warps that may not have begun";
            let finding = Finding { severity: Severity::Warning, message: message.to_string(), ..finding.clone() };
            self.note(case, &finding, report);
        }
    }

    fn note(&mut self, case: &str, finding: &Finding, report: &Report) {
        let CodeLocation { file, line, column, .. } = &finding.place;
        let place = (finding.check, file.clone(), [*line, *column]);
        self.found.entry(place).or_insert_with(|| {
            let (case, report) = (case.to_string(), report.alone(finding));
            Warned { case, cases: 1, report }
        });
    }

    /// Returns the first report of a warning; notes are skipped.
    fn first(&self) -> Option<Report> {
        self.found.values().map(|warned| &warned.report).find(|report| report.warnings().next().is_some()).cloned()
    }

    fn reports(self) -> Vec<Report> {
        self.found.into_values().map(|warned| warned.report).collect()
    }

    fn allow(&mut self, allowed: Allowed) {
        let CodeLocation { ref file, line, column, .. } = allowed.place;
        let place = (allowed.check, file.clone(), [line, column]);
        self.allowed.entry(place).and_modify(|known| known.count += allowed.count).or_insert(allowed);
    }
}

impl Prepared {
    /// Compiles the instance of `artifact` for its target, both as lowered and after all passes.
    pub fn compile(artifact: &'static Artifact, instance: &Instance) -> Result<Prepared> {
        Prepared::compile_for(artifact, instance, artifact.target)
    }

    /// Compiles the instance for another target. The interpreters run any target. A GPU always runs
    /// the kernel's own PTX.
    pub fn compile_for(artifact: &'static Artifact, instance: &Instance, target: Target) -> Result<Prepared> {
        let compile = |source| Error::Compile { instance: artifact.instance_name(&instance.0), source };
        let program = monomorphic(&program(artifact)?, instance).map_err(compile)?;
        let compilation = Compilation::new(&program, target).map_err(compile)?;
        let text = executor::ptx(artifact, target, &program, &artifact.instance_name(&instance.0))?;
        let optimized = compilation.optimized().map_err(compile)?;
        Prepared::new(artifact, program.clone(), compilation.lowered(), optimized)?.with_ptx(&text)
    }

    /// Replaces the PTX that the PTX interpreter runs by `text`. A GPU still runs the kernel's own
    /// PTX.
    pub fn with_ptx(self, text: &str) -> Result<Prepared> {
        let name = self.program.instance_name();
        // The checked form has the shared memory of the kernel as lowered.
        let shared = self.checked.1.kernel.shared_memory();
        Ok(Prepared { ptx: Some(ptx::Executable::new(name, text, shared)?), ..self })
    }

    /// Prepares two given forms of the instance: the lowered form, and a form after some passes.
    pub fn from_ir(
        artifact: &'static Artifact,
        instance: &Instance,
        lowered: &ir::Kernel,
        optimized: &ir::Kernel,
    ) -> Result<Prepared> {
        let compile = |source| Error::Compile { instance: artifact.instance_name(&instance.0), source };
        let program = monomorphic(&program(artifact)?, instance).map_err(compile)?;
        Prepared::new(artifact, program, lowered, optimized)
    }

    fn new(
        artifact: &'static Artifact,
        program: Monomorphic,
        lowered: &ir::Kernel,
        optimized: &ir::Kernel,
    ) -> Result<Prepared> {
        let compile = |source| Error::Compile { instance: program.instance_name(), source };
        let form = CheckedKernel::of_instance(lowered.clone(), &program);
        let guarded = form.optimized().map_err(compile)?;
        let arguments = program.arguments();
        let approximations = Approximations::of(lowered);
        let reached = |i: usize| approximations.reached.contains(&(i as u32));
        let decisions = approximations.decisions.iter().map(|decision| decision.error(lowered).to_string());
        let checked = (Executable::optimized(&guarded)?, form);
        Ok(Prepared {
            artifact,
            lowered: Executable::new(lowered)?,
            optimized: Executable::optimized(optimized)?,
            checked,
            ptx: None,
            lines: OnceLock::new(),
            signature: Signature::of(&program),
            approximate: (0..arguments.len()).map(|i| (reached(i), program.tolerance(i))).collect(),
            decisions: decisions.collect(),
            program,
        })
    }

    /// Compiles and loads the instance's modules for a GPU, once.
    fn load(&self, gpu: Option<&Device>) -> Result<()> {
        gpu.map_or(Ok(()), |gpu| gpu.load(self.artifact, &self.program.instance().0))
    }

    /// Adds the PTX lines to the oracle's report in `error`.
    fn located(&self, mut error: Error) -> Error {
        if let (Error::Violation(report), Some(_)) = (&mut error, &self.ptx) {
            self.lines.get_or_init(|| self.lines()).locate(report);
        }
        error
    }

    fn lines(&self) -> Lines {
        let texts = Compilation::new(&self.program, self.artifact.target).and_then(|compilation| {
            let text = |lines| compilation.module(lines).map(|module| module.to_string());
            Ok((text(emit::LineDirectives::Kept)?, text(emit::LineDirectives::Omitted)?))
        });
        texts.map(|(located, plain)| Lines::of(&located, &plain)).unwrap_or_default()
    }

    /// Validates the arguments of a case against the kernel's contract.
    pub(super) fn approved<'a>(
        &self,
        device: &Device,
        case: &Case,
        arguments: &'a [Argument<'a>],
    ) -> Result<ValidatedArgs<'a, 'a>> {
        ValidatedArgs::new(&self.program, device.identity(), case.block, arguments)
    }

    /// Returns the kernel, and the constants of the instance.
    pub(super) fn instance(&self) -> (&'static Artifact, &[Constant]) {
        (self.artifact, &self.program.instance().0)
    }

    /// Returns the checked form after all passes.
    pub(super) fn checked(&self) -> &(Executable, CheckedKernel) {
        &self.checked
    }

    /// Returns the PTX that a GPU runs.
    pub(super) fn ptx(&self) -> Option<&ptx::Executable> {
        self.ptx.as_ref()
    }

    /// Returns the case once for each block size to try.
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

    /// Returns the names of the parameters.
    pub(super) fn names(&self) -> &[String] {
        &self.signature.names
    }

    /// Checks that an executor's outputs match `expected`, if given, and that gaps in the outputs
    /// are unchanged.
    fn right(
        &self,
        case: &Case,
        executor: Executor,
        outputs: &Outputs,
        expected: Option<&[Expected]>,
    ) -> Result<(), Failure> {
        let wrong = || reference(&executor, &self.signature.names, outputs, case, expected?);
        gaps(&executor, &self.signature.names, outputs, case).or_else(wrong).map_or(Ok(()), Err)
    }

    /// Checks that each argument that depends on approximate values has a tolerance.
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

    /// Checks that a GPU's outputs match the oracle's, within the kernel's tolerance for
    /// approximate values.
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

    /// Returns the first value that depends on the schedule although the case does not allow it.
    pub(super) fn difference(&self, case: &Case, lowered: &Outputs, other: &Outputs) -> Option<Mismatch> {
        let mut same = lowered.iter().zip(other).filter(|((index, _), _)| !case.order_dependent.contains(index));
        same.find_map(|((index, a), (_, b))| differ(&self.signature.names[*index], a, b, None))
    }

    /// Checks that another executor's outputs match the oracle's.
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

/// Returns whether a check reports a loop that does not end.
fn is_endless(check: Check) -> bool {
    check.ends_launch()
}
