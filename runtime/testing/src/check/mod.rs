//! The check of a spec: runs its cases on all executors and compares the results.

mod agreement;
mod prepared;
mod warnings;

pub use prepared::PreparedInstance;
pub(super) use prepared::program;

use agreement::Agreement;
use warnings::Warnings;

use crate::caught::{caught, generated};
use crate::compare::order_dependent;
use crate::parallel::on_every_core;
use crate::signature::Outputs;
use crate::{
    Case, CaseReport, Contents, Executor, Expected, Failure, Input, InstanceReport, KernelSpec, Problem, Skipped,
};
use kernel_dsl::compiler::hir::Instance;
use runtime_devices::Device;
use runtime_oracle::{self as interpreter, Check, Checks, Preemption, Report, Schedule, Verdict};
use runtime_simt::Lock;
use std::cell::{LazyCell, OnceCell};
use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Pairs for cases with atomic operations: a number of interleavings, and the maximum number of
/// warp instructions of all of them together. Short cases run under many interleavings.
const INTERLEAVINGS: [(u64, u64); 2] = [(8, 1 << 20), (128, 1 << 17)];

/// A checker of kernels, which runs them on the interpreters, and on a GPU if it has one.
#[derive(Clone, Debug)]
pub struct Checker {
    cpu: Device,
    gpu: Option<Device>,
    /// The lock that a thread holds while its case runs on the GPU, so that GPU memory holds one
    /// case at a time.
    gpu_lock: Arc<Lock<()>>,
    /// The options of the oracle.
    options: interpreter::Options,
    /// The number of seeded schedules for every kernel. With `None`, kernels whose result may
    /// depend on the order run under one, and others under none.
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
            gpu_lock: Arc::default(),
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
    /// orders: reversed, one seeded order, and up to 128 interleavings if the case is short.
    /// Without atomics, a result depends on the order only through a race.
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

    /// Runs the instance of `spec` on the cases that `seed` generates, and returns the results.
    /// Several threads may check instances at the same time. The cases of these threads take turns
    /// on a GPU, while its driver compiles the next modules.
    pub fn check(&self, spec: &KernelSpec, instance: &Instance, seed: u64) -> InstanceReport {
        let (cases, problem) = match generated(spec.cases, instance, seed) {
            Ok(cases) => {
                let none = || Problem { verdict: Verdict::Unsupported, why: "its spec has no cases".to_string() };
                let problem = cases.is_empty().then(none);
                (cases, problem)
            }
            Err(why) => (Vec::new(), Some(Problem { verdict: Verdict::Fail, why })),
        };
        let mut report = InstanceReport {
            instance: spec.artifact.instance_name(&instance.0),
            seed,
            executors: Vec::new(),
            skipped: Vec::new(),
            approximate: false,
            referenced: false,
            decisions: Vec::new(),
            warnings: Vec::new(),
            allowed: Vec::new(),
            problem,
            cases: Vec::new(),
        };
        if self.gpu().is_none() {
            let why = match self.gpu {
                None => "no GPU was given to the check",
                Some(_) => "checks are disabled, and a GPU runs only cases that passed all checks",
            };
            report.skipped.push(Skipped { executor: "CUDA".to_string(), why: why.to_string() });
        }
        match PreparedInstance::compile(spec.artifact, instance) {
            Ok(prepared) => {
                report.executors = self.executors(&prepared);
                report.approximate = prepared.approximate.iter().any(|(reached, _)| *reached);
                report.decisions.clone_from(&prepared.decisions);
                let cases: Vec<_> = cases.iter().flat_map(|case| prepared.sized(case)).collect();
                let (mut warnings, referenced) = (Warnings::default(), AtomicBool::new(false));
                let run = |case: &Case| {
                    let (panicked, mut warnings) = (OnceCell::new(), Warnings::default());
                    let expected = |inputs: &[Input]| {
                        let expected = caught("the reference", || (spec.reference)(instance, inputs));
                        let expected = expected.unwrap_or_else(|why| {
                            panicked.get_or_init(|| why);
                            Vec::new()
                        });
                        let states = expected.iter().any(|e| !matches!(e.contents, Contents::Unchecked));
                        referenced.fetch_or(states, Ordering::Relaxed);
                        expected
                    };
                    let failure = self.check_case(&prepared, case, expected, &mut warnings).err();
                    // Without a reference, the rest of the check has no meaning.
                    let failure = panicked.into_inner().map(|why| Failure::Incomplete { why }).or(failure);
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
                report.referenced = referenced.into_inner();
                report.warnings = warnings.found.into_values().collect();
                report.allowed = warnings.allowed.into_values().collect();
            }
            Err(e) => report.problem = Some(e.into()),
        }
        report
    }

    /// Returns the GPU, if the checker runs kernels on it.
    fn gpu(&self) -> Option<&Device> {
        let all = self.options.checks == Checks::All && self.options.without.is_empty();
        self.gpu.as_ref().filter(|_| all)
    }

    /// Returns the other schedules under which the oracle runs the kernel.
    fn other_schedules(&self, prepared: &PreparedInstance) -> Vec<Schedule> {
        let races = Check::parse("race").unwrap_or_default();
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
        let affordable = INTERLEAVINGS.map(|(count, all)| count.min(all / instructions.max(1)));
        let count = if points == 0 { 0 } else { self.orders.unwrap_or(affordable[0].max(affordable[1])) };
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

    fn executors(&self, prepared: &PreparedInstance) -> Vec<Executor> {
        let gpu = self.gpu().into_iter().map(|device| device.to_string());
        let gpu = gpu.flat_map(|device| [Executor::Cuda(device.clone()), Executor::CudaChecked(device)]);
        let ptx = prepared.ptx.iter().map(|_| Executor::Ptx);
        [Executor::Lowered, Executor::Optimized, Executor::Checked].into_iter().chain(ptx).chain(gpu).collect()
    }

    /// Runs one case on all executors. If the kernel leaves the block size to the launch and the
    /// case sets none, the case runs with several block sizes.
    ///
    /// # Errors
    /// Returns the first failure: a violation, a result that differs, or a launch that is rejected.
    pub fn case(
        &self,
        prepared: &PreparedInstance,
        case: &Case,
        expected: impl FnOnce(&[Input]) -> Vec<Expected>,
    ) -> Result<(), Failure> {
        self.check_case(prepared, case, expected, &mut Warnings::default())
    }

    fn check_case(
        &self,
        prepared: &PreparedInstance,
        case: &Case,
        expected: impl FnOnce(&[Input]) -> Vec<Expected>,
        warnings: &mut Warnings,
    ) -> Result<(), Failure> {
        // The reference may not support inputs that the contract rejects, so it runs on demand.
        let expected = LazyCell::new(|| expected(&case.inputs));
        prepared.sized(case).iter().try_for_each(|case| {
            let right =
                &mut |executor, outputs: &Outputs| prepared.check_outputs(case, executor, outputs, Some(&expected));
            Agreement::new(self, prepared, case, || order_dependent(case, prepared.lowered.has_atomics(), &expected))
                .check(right, warnings)
        })
    }

    /// Runs one case as [`case`](Checker::case) does; returns the first failure and the block size
    /// in which it occurred. Without `expected`, the executors are only compared with each other.
    pub(super) fn first_failure(
        &self,
        prepared: &PreparedInstance,
        case: &Case,
        expected: Option<impl FnOnce(&[Input]) -> Vec<Expected>>,
    ) -> Result<(), Box<FailedCase>> {
        let expected = LazyCell::new(|| expected.map(|expected| expected(&case.inputs)));
        prepared.sized(case).into_iter().try_for_each(|case| {
            let right = &mut |executor, outputs: &Outputs| {
                prepared.check_outputs(&case, executor, outputs, expected.as_deref())
            };
            let mut warnings = Warnings::default();
            let free =
                || order_dependent(&case, prepared.lowered.has_atomics(), expected.as_deref().unwrap_or_default());
            Agreement::new(self, prepared, &case, free)
                .check(right, &mut warnings)
                .map_err(|failure| Box::new(FailedCase { case: case.clone(), failure, warnings: warnings.reports() }))
        })
    }
}

/// Computes the expected contents of the written arguments from the inputs.
pub(super) type ReferenceImplementation<'a> = dyn Fn(&[Input]) -> Vec<Expected> + 'a;

/// A case and its failure.
pub(super) struct FailedCase {
    pub case: Case,
    pub failure: Failure,
    /// The oracle's warnings up to the failure.
    pub warnings: Vec<Report>,
}
