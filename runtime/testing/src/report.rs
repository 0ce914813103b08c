//! The results of a check, as data.

use runtime_devices::Error;
use runtime_oracle::report::Allowed;
use runtime_oracle::{Check, CheckSet, Report, Schedule, Verdict};
use serde::Serialize;
use std::{fmt, iter};

/// An executor of kernels.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Executor {
    /// The interpreter, on IR as lowered, with every check.
    Lowered,
    /// The interpreter, on IR as lowered, with blocks and warps in another order.
    Scheduled(Schedule),
    /// The interpreter, on IR after all passes.
    Optimized,
    /// The interpreter, on the checked form after all passes.
    Checked,
    /// The PTX interpreter, on the PTX, with every check, in both orders of the sides of a branch.
    Ptx,
    /// A GPU, on the PTX.
    Cuda(String),
    /// A GPU, on the checked form.
    CudaChecked(String),
}

/// The results of an instance on all its cases.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct InstanceReport {
    /// The name of the instance, in Rust syntax.
    pub instance: String,
    /// The seed of the cases.
    pub seed: u64,
    /// The executors that ran the kernel.
    pub executors: Vec<Executor>,
    /// The executors that did not run, with the reason.
    pub skipped: Vec<Skipped>,
    /// Whether hardware approximations affect the outputs. If so, a GPU's outputs are compared
    /// within the kernel's tolerances.
    pub approximate: bool,
    /// Whether the reference states the contents of an output in at least one case. If not, the
    /// executors were compared with each other only.
    pub referenced: bool,
    /// Places where an approximation decides a branch, an index or an integer. The outputs of a GPU
    /// may differ there by more than any tolerance.
    pub decisions: Vec<String>,
    /// The oracle's warnings and notes. Each place appears once, with the finding of the first run
    /// that reported it.
    pub warnings: Vec<Warned>,
    /// Operations that the oracle forbids and the kernel allows. Each place appears once, with the
    /// number of occurrences in all cases.
    pub allowed: Vec<Allowed>,
    /// The reason why no case ran. Lowering or a pass failed, an executor does not support the
    /// kernel, or there were no cases.
    pub problem: Option<Problem>,
    /// The results of the cases.
    pub cases: Vec<CaseReport>,
}

/// A warning or note of the oracle.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Warned {
    /// The first case with this finding.
    pub case: String,
    /// The number of cases with this finding.
    pub cases: usize,
    /// The report of this finding alone.
    #[serde(flatten)]
    pub report: Report,
}

/// The reason why no case ran.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Problem {
    /// The verdict that the problem implies.
    pub verdict: Verdict,
    /// The description of the problem.
    pub why: String,
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        Problem { verdict: error.verdict(), why: error.to_string() }
    }
}

/// An executor that did not run, with the reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Skipped {
    /// The executor, such as `CUDA`.
    pub executor: String,
    /// The reason.
    pub why: String,
}

/// The result of one case on all executors.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CaseReport {
    /// The name of the case.
    pub case: String,
    /// The verdict of the case.
    pub verdict: Verdict,
    /// The first failure; `None` if the case passed.
    pub failure: Option<Failure>,
    /// The lines of `log!` in the first run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub printed: String,
}

impl CaseReport {
    /// Returns the report of a case with this name. The verdict follows from the failure.
    pub fn new(case: impl Into<String>, failure: Option<Failure>) -> CaseReport {
        let verdict = failure.as_ref().map_or(Verdict::Pass, Failure::verdict);
        CaseReport { case: case.into(), verdict, failure, printed: String::new() }
    }
}

/// The failure of a case.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Failure {
    /// An executor rejected the launch, failed, or reported an error.
    Stopped { executor: Executor, why: ExecutorStop, error: String, report: Option<Box<Report>> },
    /// Two executors wrote different bits.
    Differ { left: Executor, right: Executor, mismatch: Box<FirstDifference> },
    /// The executor and the interpreter on IR as lowered printed different lines of a thread.
    PrintsDiffer { executor: Executor, left: String, right: String },
    /// The oracle wrote different bits under another schedule.
    OrderDependent { schedule: Schedule, mismatch: Box<FirstDifference> },
    /// The oracle warns, and warnings are failures
    /// ([`Checker::with_warnings_denied`](super::Checker::with_warnings_denied)).
    Warned { report: Box<Report> },
    /// The result differs from the reference by more than the bound; without a bound, at all.
    Wrong {
        executor: Executor,
        argument: String,
        index: Box<[usize]>,
        given: Box<str>,
        expected: Box<str>,
        bound: Option<f64>,
    },
    /// The reference rejects the contents of an argument: a multiset or a set differs, or a
    /// predicate does not accept them.
    Rejected { executor: Executor, argument: String, why: String },
    /// Approximate values reach an argument for which the kernel declares no tolerance.
    NoTolerance { argument: String },
    /// Memory between a view's elements was written.
    Outside { executor: Executor, argument: String, offset: usize, before: String, after: String },
    /// The case or its reference does not fit the kernel.
    Incomplete { why: String },
}

/// The reason why an executor stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutorStop {
    /// The first check that the kernel violated.
    Reported(Check),
    /// The arguments violate the kernel's contract; nothing has run.
    Refused,
    /// The executor itself failed.
    Failed,
    /// The executor does not support the kernel, or lacks memory for its checks. `Unsupported` is
    /// not a verdict on the kernel.
    Unsupported,
}

impl ExecutorStop {
    /// Classifies `error`.
    pub(super) fn of(error: &Error) -> ExecutorStop {
        if let Some(report) = error.report() {
            return report
                .errors()
                .next()
                .map_or(ExecutorStop::Failed, |finding| ExecutorStop::Reported(finding.check));
        }
        match error {
            Error::Refused { .. } | Error::RefusedArguments { .. } | Error::View { .. } => ExecutorStop::Refused,
            _ if error.verdict() == Verdict::Unsupported => ExecutorStop::Unsupported,
            _ => ExecutorStop::Failed,
        }
    }
}

impl ExecutorStop {
    /// Returns whether the kernel was stopped by one of `checks`.
    pub(super) fn is_of(&self, checks: CheckSet) -> bool {
        matches!(self, ExecutorStop::Reported(check) if checks.contains(*check))
    }
}

/// The first difference between two arrays.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FirstDifference {
    /// The name of the argument.
    pub argument: String,
    /// The position of the first element that differs, counted in memory.
    pub offset: usize,
    /// The index of the element; `None` if the element lies in a gap of the view.
    pub index: Option<Vec<usize>>,
    /// The value of the first executor.
    pub left: String,
    /// The value of the second executor.
    pub right: String,
    /// The number of elements that differ.
    pub count: usize,
}

impl Failure {
    /// Returns the failure of an `executor` that stopped with `error`.
    pub(super) fn stopped(executor: Executor, error: Error) -> Failure {
        let (why, text) = (ExecutorStop::of(&error), error.to_string());
        let report = error.report().cloned().map(Box::new);
        Failure::Stopped { executor, why, error: text, report }
    }

    /// Returns the failure with only the first finding of its report, and the number of the other
    /// findings.
    pub fn first_finding(&self) -> (Failure, usize) {
        match self {
            Failure::Stopped { executor, why, error, report: Some(report) } if report.findings.len() > 1 => {
                let first = report.alone(report.by_severity()[0]);
                // The error is the report, perhaps after an introduction.
                let others = report.findings.len() - 1;
                let error = error.replace(&report.to_string(), &first.to_string());
                let (executor, report) = (executor.clone(), Some(Box::new(first)));
                (Failure::Stopped { executor, why: *why, error, report }, others)
            }
            _ => (self.clone(), 0),
        }
    }

    /// Returns the name of the first violated check or the kind of the failure, and the place in
    /// the kernel, if it is known.
    pub fn cause(&self) -> (&'static str, Option<String>) {
        let of = |report: &Report| {
            let first = report.by_severity().first().copied();
            first.map_or(("stopped", None), |finding| (finding.check.name(), Some(finding.location())))
        };
        match self {
            Failure::Stopped { report: Some(report), .. } | Failure::Warned { report } => of(report),
            Failure::Stopped { why: ExecutorStop::Refused, .. } => ("refused-arguments", None),
            Failure::Stopped { why: ExecutorStop::Unsupported, .. } => ("unsupported", None),
            Failure::Stopped { .. } => ("stopped", None),
            Failure::Differ { .. } | Failure::PrintsDiffer { .. } => ("executors-differ", None),
            Failure::OrderDependent { .. } => ("order-dependent", None),
            Failure::Wrong { .. } | Failure::Rejected { .. } => ("wrong-result", None),
            Failure::NoTolerance { .. } => ("no-tolerance", None),
            Failure::Outside { .. } => ("write-outside-view", None),
            Failure::Incomplete { .. } => ("incomplete-case", None),
        }
    }

    /// Returns the verdict on the kernel: failed, or unsupported.
    pub fn verdict(&self) -> Verdict {
        match self {
            Failure::Stopped { why: ExecutorStop::Unsupported, .. } => Verdict::Unsupported,
            _ => Verdict::Fail,
        }
    }

    /// Formats the failure, followed by the oracle's warnings. A warning that is the failure itself
    /// is not repeated.
    pub(super) fn with(&self, warnings: &[Report]) -> String {
        let itself = |warning: &&Report| matches!(self, Failure::Warned { report } if **report == **warning);
        let others = warnings.iter().filter(|warning| !itself(warning)).map(ToString::to_string);
        let all: Vec<_> = iter::once(self.to_string()).chain(others).collect();
        all.iter().map(|text| text.trim_end()).collect::<Vec<_>>().join("\n")
    }

    /// Returns whether both failures have the same kind: the same check, or the same executor with
    /// a wrong value in the same argument.
    pub(super) fn is_like(&self, other: &Failure) -> bool {
        use Failure::*;
        match (self, other) {
            (Stopped { executor, why, .. }, Stopped { executor: e, why: w, .. }) => (executor, why) == (e, w),
            (Differ { right, mismatch, .. }, Differ { right: r, mismatch: m, .. }) => {
                (right, &mismatch.argument) == (r, &m.argument)
            }
            (PrintsDiffer { executor, .. }, PrintsDiffer { executor: e, .. }) => executor == e,
            (Warned { report }, Warned { report: r }) => {
                let first = |report: &Report| report.findings.first().map(|finding| finding.check);
                first(report) == first(r)
            }
            (OrderDependent { mismatch, .. }, OrderDependent { mismatch: m, .. }) => mismatch.argument == m.argument,
            (Wrong { executor, argument, .. }, Wrong { executor: e, argument: a, .. })
            | (Rejected { executor, argument, .. }, Rejected { executor: e, argument: a, .. })
            | (Outside { executor, argument, .. }, Outside { executor: e, argument: a, .. }) => {
                (executor, argument) == (e, a)
            }
            (NoTolerance { argument }, NoTolerance { argument: a }) => argument == a,
            (Incomplete { .. }, Incomplete { .. }) => true,
            _ => false,
        }
    }
}

impl InstanceReport {
    /// Returns whether there was at least one case, and all passed.
    pub fn passed(&self) -> bool {
        self.verdict() == Verdict::Pass
    }

    /// Returns the overall verdict. Any failure gives Fail. Otherwise, an unsupported case or
    /// problem gives Unsupported, and so does an empty list of cases. Otherwise the verdict is
    /// Pass.
    pub fn verdict(&self) -> Verdict {
        let problem = self.problem.iter().map(|problem| problem.verdict);
        let all: Vec<_> = problem.chain(self.cases.iter().map(|case| case.verdict)).collect();
        if all.contains(&Verdict::Fail) {
            Verdict::Fail
        } else if all.contains(&Verdict::Unsupported) || self.cases.is_empty() {
            Verdict::Unsupported
        } else {
            Verdict::Pass
        }
    }

    /// Returns the report with only the first finding of the first failure, and the number of the
    /// other findings of that failure.
    pub fn first_finding(&self) -> (InstanceReport, usize) {
        let mut report = self.clone();
        let Some((first, failure)) = self.first_failure() else { return (report, 0) };
        let (failure, others) = failure.first_finding();
        let cases = self.cases.iter().zip(&mut report.cases);
        if let Some((_, case)) = cases.into_iter().find(|(case, _)| std::ptr::eq(*case, first)) {
            case.failure = Some(failure);
        }
        (report, others)
    }

    /// Returns the first case that failed; if none failed, the first unsupported case.
    pub fn first_failure(&self) -> Option<(&CaseReport, &Failure)> {
        let of = |verdict| self.cases.iter().filter(move |c| c.verdict == verdict);
        of(Verdict::Fail).chain(of(Verdict::Unsupported)).find_map(|c| Some((c, c.failure.as_ref()?)))
    }
}

impl fmt::Display for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Executor::Lowered => f.write_str("the interpreter on IR as lowered"),
            Executor::Scheduled(schedule) => write!(f, "the interpreter on IR as lowered, {schedule}"),
            Executor::Optimized => f.write_str("the interpreter on IR after passes"),
            Executor::Checked => f.write_str("the interpreter on the checked form"),
            Executor::Ptx => f.write_str("the PTX interpreter"),
            Executor::Cuda(device) => f.write_str(device),
            Executor::CudaChecked(device) => write!(f, "{device}, checked"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Stopped { executor, error, .. } => write!(f, "on {executor}: {error}"),
            Failure::Differ { left, right, mismatch } => {
                write!(f, "{}", mismatch.argument)?;
                match &mismatch.index {
                    Some(index) => write!(f, "{index:?}")?,
                    None => write!(f, ", between its elements at {},", mismatch.offset)?,
                }
                let FirstDifference { left: a, right: b, count, .. } = &**mismatch;
                write!(f, " is {a} on {left}, {b} on {right} ({count} differ)")
            }
            Failure::PrintsDiffer { executor, left, right } => {
                let shown =
                    |text: &str| if text.is_empty() { "no line of the thread\n".to_string() } else { text.to_string() };
                write!(f, "the lines of a thread differ; {}:\n{}", Executor::Lowered, shown(left))?;
                write!(f, "{executor}:\n{}", shown(right).trim_end())
            }
            Failure::OrderDependent { schedule, mismatch } => {
                let FirstDifference { argument, index, left, right, count, .. } = &**mismatch;
                let index = index.as_ref().map(|index| format!("{index:?}")).unwrap_or_default();
                write!(
                    f,
                    "{argument}{index} depends on the order of atomic operations: {left} with blocks and warps in order, {right} {schedule} ({count} differ); if this is intended, mark the case `with_order_dependent`"
                )
            }
            Failure::Warned { report } => write!(f, "the oracle warns: {report}"),
            Failure::Wrong { executor, argument, index, given, expected, bound } => {
                write!(f, "{argument}{index:?} is {given} on {executor}; the reference gives {expected}")?;
                bound.map_or(Ok(()), |bound| write!(f, " ± {bound:e}"))
            }
            Failure::Rejected { executor, argument, why } => write!(f, "{argument} is wrong on {executor}: {why}"),
            Failure::NoTolerance { argument } => write!(
                f,
                "values of `fast::` functions reach `{argument}` and differ on a GPU: declare a tolerance, `#[kernel(tolerance({argument}(relative = 1e-6)), …)]`"
            ),
            Failure::Outside { executor, argument, offset, before, after } => write!(
                f,
                "{argument}: the element at {offset}, which is outside the view, changed from {before} to {after} on {executor}"
            ),
            Failure::Incomplete { why } => f.write_str(why),
        }
    }
}

impl fmt::Display for Warned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n   = note: in ", self.report)?;
        if self.cases > 1 {
            write!(f, "{} cases, first in ", self.cases)?;
        }
        write!(f, "case `{}`", self.case)
    }
}

impl fmt::Display for InstanceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.instance)?;
        match (&self.problem, self.first_failure()) {
            (Some(problem), _) => f.write_str(&problem.why),
            (None, Some((case, failure))) => {
                let alike = self.cases.iter().filter(|c| c.verdict == case.verdict).count();
                let end = if case.verdict == Verdict::Fail { "fail" } else { "could not be completed" };
                write!(f, "{alike} of {} cases {end} (seed {}); {}: {failure}", self.cases.len(), self.seed, case.case)
            }
            (None, None) => write!(f, "{} cases pass on {} executors", self.cases.len(), self.executors.len()),
        }
    }
}
