//! One case on every executor: each must give the results of the oracle.

use super::Checker;
use super::prepared::PreparedInstance;
use super::warnings::Warnings;
use crate::log::same_lines;
use crate::signature::Outputs;
use crate::{Case, Executor, ExecutorStop, Failure};
use kernel_dsl::Launcher;
use runtime_devices::executor::{Executable, ValidatedArgs};
use runtime_devices::{Device, Error, Result};
use runtime_oracle::{self as interpreter, Check, Preemption, Schedule};
use runtime_ptx::{BranchPolicy, Options};
use std::cell::{LazyCell, RefCell};

/// The number of additional warp instructions of a run in another order. Warps poll while they wait
/// for each other, or until the interpreter finds a deadlock.
const POLLING: u64 = 1 << 25;

/// Compares the outputs of an executor with the reference.
pub(super) type ResultCheck<'a> = &'a mut dyn FnMut(Executor, &Outputs) -> Result<(), Failure>;

/// One case, which runs on one executor after another.
pub(super) struct Agreement<'a> {
    checker: &'a Checker,
    prepared: &'a PreparedInstance,
    case: &'a Case,
    /// Computes the arguments whose contents may depend on the schedule. The reference may not
    /// support inputs that the contract rejects, so this runs on demand.
    order_dependent: LazyCell<Vec<usize>, Box<dyn FnOnce() -> Vec<usize> + 'a>>,
    /// The text that the last run printed.
    printed: RefCell<Vec<u8>>,
}

/// The oracle's run in order: the result that every executor must give.
struct Baseline {
    outputs: Outputs,
    /// The text that the kernel printed.
    lines: Vec<u8>,
    /// Warp instructions of the run.
    instructions: u64,
    /// The number of points of the run at which a schedule can preempt a warp; 0 if the launch has
    /// a single warp.
    points: u64,
    /// The schedule of the first run, whose warnings are reported.
    first_schedule: Schedule,
    /// The options of further runs.
    options: interpreter::Options,
}

/// Outputs that may depend on the schedule, and are compared with the reference only.
type ScheduledOutputs = Vec<(Schedule, Outputs)>;

impl<'a> Agreement<'a> {
    pub fn new(
        checker: &'a Checker,
        prepared: &'a PreparedInstance,
        case: &'a Case,
        order_dependent: impl FnOnce() -> Vec<usize> + 'a,
    ) -> Agreement<'a> {
        let order_dependent = LazyCell::new(Box::new(order_dependent) as Box<_>);
        Agreement { checker, prepared, case, order_dependent, printed: RefCell::default() }
    }

    /// Runs the case on all executors. Checks that the executors agree and that `judge` accepts the
    /// oracle's result. A GPU's result is judged too if it may differ from the oracle's.
    pub fn check(&self, judge: ResultCheck, warnings: &mut Warnings) -> Result<(), Failure> {
        // The oracle runs first: no other executor runs a kernel that the oracle rejects.
        let baseline = self.baseline(warnings)?;
        let scheduled = self.other_schedules(&baseline, warnings)?;
        self.forms(&baseline)?;
        self.ptx(&baseline, judge)?;
        let interleaved = self.interleaved_ptx(&baseline)?;
        if let Some(gpu) = self.checker.gpu() {
            self.cuda(gpu, &baseline, judge)?;
        }
        let judged = self.check_results(&baseline, scheduled, judge, warnings);
        let judged = judged.and_then(|()| interleaved.iter().try_for_each(|outputs| judge(Executor::Ptx, outputs)));
        match warnings.first() {
            Some(report) if self.checker.warnings_denied => judged.and(Err(Failure::Warned { report: report.into() })),
            _ => judged,
        }
    }

    /// Runs the oracle under the checker's schedule, and then in order if that is another schedule.
    fn baseline(&self, warnings: &mut Warnings) -> Result<Baseline, Failure> {
        // A correct result has the NaNs and infinities that the reference expects.
        let without = self.checker.options.without.union(Check::ORIGINS.into_iter().collect());
        let quiet = interpreter::Options { without, ..self.checker.options.clone() };
        let schedule = quiet.schedule;
        let options = if self.checker.origins { &self.checker.options } else { &quiet };
        let first = self.oracle(options.clone());
        warnings.printed = self.printed.take();
        let (first, outcome) = first.map_err(self.stopped(Executor::Lowered))?;
        let (instructions, points) = outcome.map_or((0, 0), |outcome| {
            warnings.add(&self.case.name, &outcome.report);
            // With a single warp, no other warp could run instead.
            let points = if outcome.statistics.warps > 1 { outcome.points } else { 0 };
            (outcome.statistics.warp_instructions, points)
        });
        // A loop that waits for a block that has not started never ends; this budget stops it.
        let fuel = quiet.fuel.min(8 * instructions + 10_000);
        let options = interpreter::Options { fuel, cancellation: None, notes: false, ..quiet };
        let (outputs, lines) = match schedule {
            Schedule::InOrder => (first, warnings.printed.clone()),
            _ => {
                let in_order = interpreter::Options { schedule: Schedule::InOrder, ..options.clone() };
                let (outputs, _) = self.oracle(in_order).map_err(self.stopped(Executor::Lowered))?;
                self.same_in_schedule(&outputs, &first, schedule)?;
                (outputs, self.printed.take())
            }
        };
        Ok(Baseline { outputs, lines, instructions, points, first_schedule: schedule, options })
    }

    /// Runs the oracle under the other schedules. Returns the outputs that may depend on the
    /// schedule.
    fn other_schedules(&self, baseline: &Baseline, warnings: &mut Warnings) -> Result<ScheduledOutputs, Failure> {
        let mut free = Vec::new();
        let seeded =
            self.checker.other_schedules(self.prepared).into_iter().filter(|other| *other != baseline.first_schedule);
        for other in seeded.chain(self.interleavings(baseline)) {
            match (self.scheduled(baseline, other, warnings), other) {
                (Ok(Some(outputs)), _) if !self.order_dependent.is_empty() => free.push((other, outputs)),
                (Ok(_), _) => {}
                (Err(failure), Schedule::Preempted(preemption)) => {
                    return Err(self.simplest(baseline, failure, preemption));
                }
                (Err(failure), _) => return Err(failure),
            }
        }
        Ok(free)
    }

    /// Runs the lowered form on the oracle under a schedule. Returns the outputs, or `None` if a
    /// loop did not end.
    fn scheduled(
        &self,
        baseline: &Baseline,
        schedule: Schedule,
        warnings: &mut Warnings,
    ) -> Result<Option<Outputs>, Failure> {
        let preempted = matches!(schedule, Schedule::Preempted(_));
        let fuel = baseline.options.fuel.saturating_add(POLLING);
        match self.oracle(interpreter::Options { schedule, fuel, ..baseline.options.clone() }) {
            Ok((outputs, _)) => {
                self.same_in_schedule(&baseline.outputs, &outputs, schedule)?;
                Ok(Some(outputs))
            }
            Err(Error::Violation(report))
                if report.errors().all(|f| f.check.ends_launch() && !(preempted && f.check == Check::Livelock)) =>
            {
                warnings.waits(&self.case.name, &report);
                Ok(None)
            }
            Err(e) => Err(self.stopped(Executor::Lowered)(e)),
        }
    }

    /// Returns a failure of the same kind as `failure`, under the simplest interleaving that causes
    /// one.
    fn simplest(&self, baseline: &Baseline, failure: Failure, preemption: Preemption) -> Failure {
        let mut simplest = failure;
        preemption.shrunk(|simpler| {
            let run = self.scheduled(baseline, Schedule::Preempted(simpler), &mut Warnings::default());
            let like = run.err().filter(|other| other.is_like(&simplest));
            like.map(|other| simplest = other).is_some()
        });
        simplest
    }

    /// Runs the optimized form and the checked form on the interpreter, in order.
    fn forms(&self, baseline: &Baseline) -> Result<(), Failure> {
        // The baseline's budget is for the lowered form: other forms may need more instructions.
        let in_order = interpreter::Options { schedule: Schedule::InOrder, fuel: 1 << 32, ..baseline.options.clone() };
        let optimized = self
            .interpret(&|a| self.logged(&self.prepared.optimized, a, &in_order).map(drop))
            .map_err(self.stopped(Executor::Optimized))?;
        self.prepared.check_equal(&baseline.outputs, &optimized, Executor::Optimized)?;
        same_lines(&baseline.lines, &self.printed.take(), Executor::Optimized)?;
        let (executable, form) = &self.prepared.checked;
        let checked = self.interpret(&|a| executable.run_checked(a, form, in_order.clone()));
        let checked = checked.map_err(self.stopped(Executor::Checked))?;
        self.prepared.check_equal(&baseline.outputs, &checked, Executor::Checked)
    }

    /// Runs the PTX under each policy for branches: the result must not depend on which side of a
    /// branch runs first.
    fn ptx(&self, baseline: &Baseline, judge: ResultCheck) -> Result<(), Failure> {
        for policy in [BranchPolicy::PostDominator, BranchPolicy::LowestFirst] {
            let Some(outputs) = self.interpreted_ptx(Options { policy, ..Options::default() })? else { break };
            if self.prepared.foreign {
                self.prepared.check_near(&self.order_dependent, &baseline.outputs, &outputs, Executor::Ptx)?;
                judge(Executor::Ptx, &outputs)?;
            } else {
                self.prepared.check_equal(&baseline.outputs, &outputs, Executor::Ptx)?;
            }
            same_lines(&baseline.lines, &self.printed.take(), Executor::Ptx)?;
        }
        Ok(())
    }

    /// Runs the PTX under interleavings. Returns the outputs that may depend on the schedule.
    fn interleaved_ptx(&self, baseline: &Baseline) -> Result<Vec<Outputs>, Failure> {
        let mut free = Vec::new();
        for schedule in self.interleavings(baseline) {
            let Some(outputs) = self.interpreted_ptx(Options { schedule, ..Options::default() })? else { break };
            self.same_in_schedule(&baseline.outputs, &outputs, schedule)?;
            if !self.order_dependent.is_empty() {
                free.push(outputs);
            }
        }
        Ok(free)
    }

    /// Runs the PTX. Returns `None` if there is none, or if the PTX interpreter stopped at a check
    /// that the checker disables: that interpreter cannot disable checks.
    fn interpreted_ptx(&self, options: Options) -> Result<Option<Outputs>, Failure> {
        let Some(ptx) = &self.prepared.ptx else { return Ok(None) };
        let names = self.prepared.names();
        match self.interpret(&|a| ptx.run(a, names, options).map(|printed| _ = self.printed.replace(printed))) {
            Ok(outputs) => Ok(Some(outputs)),
            Err(e) if ExecutorStop::of(&e).is_of(self.checker.options.without) => Ok(None),
            Err(e) => Err(self.stopped(Executor::Ptx)(e)),
        }
    }

    /// Runs the PTX and then the PTX of the checked form on a GPU.
    fn cuda(&self, gpu: &Device, baseline: &Baseline, judge: ResultCheck) -> Result<(), Failure> {
        let Agreement { prepared, case, .. } = *self;
        prepared.has_tolerances()?;
        // Waits for the compiler before taking the lock, so that other cases can run on the GPU in
        // the meantime.
        prepared.load(Some(gpu)).map_err(self.stopped(Executor::Cuda(gpu.to_string())))?;
        let _lock = self.checker.gpu_lock.lock();
        let (artifact, constants) = prepared.instance();
        let mut compare = |executor: Executor, outputs: Result<Outputs>| {
            let outputs = outputs.map_err(self.stopped(executor.clone()))?;
            prepared.check_near(&self.order_dependent, &baseline.outputs, &outputs, executor.clone())?;
            if self.order_dependent.is_empty() { Ok(()) } else { judge(executor, &outputs) }
        };
        let outputs = prepared.run(gpu, case, |arguments| {
            // SAFETY: the oracle has run the kernel on these arguments and found no fault.
            unsafe { gpu.launch_unchecked(artifact, constants, case.block, arguments) }
        });
        compare(Executor::Cuda(gpu.to_string()), outputs)?;
        let outputs = prepared.run(gpu, case, |arguments| gpu.launch(artifact, constants, case.block, arguments));
        compare(Executor::CudaChecked(gpu.to_string()), outputs)
    }

    /// Compares the baseline, and then the outputs that may depend on the schedule, with the
    /// reference. Adds the origins of NaNs and infinities to the warnings of a wrong baseline.
    fn check_results(
        &self,
        baseline: &Baseline,
        scheduled: ScheduledOutputs,
        judge: ResultCheck,
        warnings: &mut Warnings,
    ) -> Result<(), Failure> {
        let result = judge(Executor::Lowered, &baseline.outputs);
        let options = interpreter::Options { schedule: Schedule::InOrder, ..self.checker.options.clone() };
        if result.is_err()
            && !self.checker.origins
            && let Ok((_, Some(outcome))) = self.oracle(options)
        {
            warnings.add(&self.case.name, &outcome.report);
        }
        result?;
        scheduled.into_iter().try_for_each(|(schedule, outputs)| judge(Executor::Scheduled(schedule), &outputs))
    }

    /// Returns the interleavings for a case of the baseline's length.
    fn interleavings(&self, baseline: &Baseline) -> impl Iterator<Item = Schedule> {
        self.checker.interleavings(baseline.points, baseline.instructions).map(Schedule::Preempted)
    }

    /// Runs the lowered form on the oracle. Returns its outputs, and its outcome if the grid is not
    /// empty.
    fn oracle(&self, options: interpreter::Options) -> Result<(Outputs, Option<interpreter::Outcome>)> {
        let options = interpreter::Options { uninitialized: self.case.uninitialized_arguments(), ..options };
        let outcome = RefCell::new(None);
        let run = |a: &ValidatedArgs| self.logged(&self.prepared.lowered, a, &options).map(|o| _ = outcome.replace(o));
        self.interpret(&run).map(|outputs| (outputs, outcome.into_inner()))
    }

    /// Runs a form on the interpreter, and keeps the text that it printed, even if the run fails.
    fn logged(
        &self,
        executable: &Executable,
        arguments: &ValidatedArgs,
        options: &interpreter::Options,
    ) -> Result<Option<interpreter::Outcome>> {
        let outcome = executable.outcome(arguments, options.clone())?;
        self.printed.replace(outcome.as_ref().map(|outcome| outcome.printed.clone()).unwrap_or_default());
        outcome.map(interpreter::Outcome::result).transpose().map_err(Error::Violation)
    }

    /// Calls `run` with the validated arguments of the case, in host memory. Returns the outputs.
    fn interpret(&self, run: &dyn Fn(&ValidatedArgs) -> Result<()>) -> Result<Outputs> {
        let cpu = &self.checker.cpu;
        self.prepared.run(cpu, self.case, |arguments| run(&self.prepared.validated(cpu, self.case, arguments)?))
    }

    /// Checks that outputs under a schedule equal `expected`, except in arguments that may depend
    /// on the order.
    fn same_in_schedule(&self, expected: &Outputs, outputs: &Outputs, schedule: Schedule) -> Result<(), Failure> {
        match self.prepared.difference(&self.order_dependent, expected, outputs) {
            Some(mismatch) => Err(Failure::OrderDependent { schedule, mismatch: mismatch.into() }),
            None => Ok(()),
        }
    }

    /// Returns a function that converts an error of the executor to a failure.
    fn stopped(&self, executor: Executor) -> impl Fn(Error) -> Failure {
        move |e| Failure::stopped(executor.clone(), self.prepared.located(e))
    }
}
