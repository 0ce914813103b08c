//! `kernels check`.
//!
//! Verdicts come from `runtime::testing`. This module selects the kernels and cases, and prints the
//! results.

use super::cases;
use super::name::{self, SelectedInstance};
use super::oracle_args::OracleArgs;
use super::ordered_parallel::ordered_parallel;
use super::progress::with_bar;
use super::show;
use crate::error::{CommandOutcome, Error};
use crate::output::{counted, json};
use clap::Args;
use kernel_dsl::Artifact;
use kernel_dsl::compiler::Target;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs_estimate::ptxas::Ptxas;
use runtime::Device;
use runtime::interpreter::report::{Allowed, shown_path};
use runtime::interpreter::{self, Schedule, Unreached, Verdict};
use runtime::testing::{CaseReport, Checker, Executor, Failure, InstanceReport, KernelSpec, Warned, unreached};
use serde::Serialize;
use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::thread;
use std::time::Instant;

/// Runs kernels on every available executor and compares the results
///
/// Each instance runs on shapes at the edges of its tiles and on random ones. The executors are the
/// interpreter of the intermediate representation, which checks every access, barrier and exchange;
/// the same interpreter after all optimizations; the PTX interpreter, which is an independent
/// implementation; and the GPU, if there is one. Results must be equal bit for bit (all NaNs are
/// equal), and within a stated error of plain Rust in f64. If ptxas is found, it assembles the PTX.
///
/// An instance passes, fails, or is unsupported: it has no registered test cases, or an executor
/// lacks a required feature. An unsupported instance has not passed, and the command fails unless
/// --allow-unsupported is given.
#[derive(Args)]
pub(super) struct CheckArgs {
    /// Kernels, instances or patterns: saxpy, 'gemm*', gemm@f32_128x128_v4, or an undeclared
    /// instance, 'matmul<T = 8>'. All by default
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print every finding of a failing instance, not only the first error
    #[arg(long, short)]
    verbose: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    /// Seed of the shapes and values
    #[arg(long, default_value_t = 1, value_parser = crate::cases::seed_arg)]
    seed: u64,
    /// Also compile and assemble each kernel for every later target that ptxas supports
    #[arg(long)]
    every_target: bool,
    #[command(flatten)]
    oracle: OracleArgs,
    /// Run each kernel also reversed, in COUNT seeded orders and in COUNT interleavings of blocks,
    /// and compare the results. By default only kernels with atomic operations run so: reversed, in
    /// one seeded order, and in up to 128 interleavings
    #[arg(long, value_name = "COUNT")]
    orders: Option<u64>,
    /// Also print the lines and branches that no thread reaches in any case of an instance. Each
    /// case runs once more for that
    #[arg(long)]
    coverage: bool,
    /// Treat oracle warnings as errors
    #[arg(long)]
    deny_warnings: bool,
    /// Exit successfully if instances are only unsupported
    #[arg(long)]
    allow_unsupported: bool,
    /// The device to compare with the interpreter: cpu (none), cuda:N (a GPU), or best (the first
    /// usable GPU, if there is one)
    #[arg(long, default_value = "best", value_parser = device_arg)]
    device: DeviceArg,
}

/// Number of instances checked concurrently without a GPU. While the last cases of one instance run
/// and ptxas assembles it, the next instance begins.
const AT_ONCE: usize = 2;

/// Largest number of instances checked concurrently with a GPU, whose driver compiles two modules
/// of each. The limit bounds the memory of the instances' cases.
const MAX_AT_ONCE_ON_GPU: usize = 12;

/// Device requested with `--device`.
#[derive(Clone, Copy)]
pub(super) enum DeviceArg {
    Best,
    Cpu,
    Cuda(usize),
}

/// The selected device, and the reason for the choice.
#[derive(Serialize)]
pub(super) struct SelectedDevice {
    device: String,
    reason: String,
}

/// Unit of work: an instance and, if registered, its spec.
struct Task {
    artifact: &'static Artifact,
    instance: Instance,
    spec: Option<&'static KernelSpec>,
}

/// Result of checking an instance.
#[derive(Serialize)]
struct InstanceCheck {
    instance: String,
    file: &'static str,
    line: u32,
    verdict: Verdict,
    /// Seed of its cases.
    seed: u64,
    /// Number of cases.
    cases: usize,
    /// Names of the executors whose results were compared.
    executors: Vec<String>,
    /// Whether ptxas accepts the PTX for all targets that it supports; `null` if it was not run.
    assembled: Option<bool>,
    seconds: f64,
    /// Error that occurred before any case ran, or the message of ptxas.
    problem: Option<String>,
    /// Cases that failed or could not be run.
    failures: Vec<CaseReport>,
    /// Lines of `log!`, for each case that printed some.
    logs: Vec<CaseLog>,
    /// Results that depend on the hardware's approximations.
    decisions: Vec<String>,
    /// Warnings of the oracle.
    warnings: Vec<Warned>,
    /// Violations that the kernel explicitly allows.
    allowed: Vec<Allowed>,
    /// Code that no case reaches; `null` without `--coverage`.
    unreached: Option<Vec<Unreached>>,
    /// Whether the reference states the contents of an output.
    referenced: bool,
    /// The compared executors, as the line of a passing instance lists them.
    #[serde(skip)]
    compared: String,
    /// Descriptions of the problem; without `--verbose`, of one finding of a failure.
    #[serde(skip)]
    words: Vec<String>,
    /// Number of the failure's findings that `words` omits.
    #[serde(skip)]
    others: usize,
}

/// Lines of `log!` that a case printed.
#[derive(Serialize)]
struct CaseLog {
    case: String,
    text: String,
}

/// Number of lines of a log that are printed without `--verbose`.
const SHOWN_LINES: usize = 10;

/// Executors and tools that check the instances.
struct CheckBench {
    checker: Checker,
    ptxas: Option<Ptxas>,
    every_target: bool,
    verbose: bool,
    coverage: bool,
    seed: u64,
}

/// Conditions under which the instances ran.
#[derive(Serialize)]
struct CheckConditions {
    #[serde(flatten)]
    used: SelectedDevice,
    seed: u64,
    /// Order in which the oracle ran first.
    schedule: Schedule,
    /// Names of the disabled checks.
    without: Vec<interpreter::Check>,
}

/// Output of `--json`, which the documentation of [this crate](crate) describes.
#[derive(Serialize)]
struct CheckReport {
    verdict: Verdict,
    #[serde(flatten)]
    tried: CheckConditions,
    passed: usize,
    failed: usize,
    unsupported: usize,
    /// Number of instances after the first failed one, if the run ends there.
    not_tried: usize,
    seconds: f64,
    instances: Vec<InstanceCheck>,
}

impl CheckArgs {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<CommandOutcome, Error> {
        let tasks = tasks(&self.names)?;
        let (device, used) = self.device.device()?;
        let left_out = self.oracle.left_out();
        let without = interpreter::Check::ORACLE.iter().copied().filter(|check| left_out.contains(*check)).collect();
        let tried = CheckConditions { used, seed: self.seed, schedule: self.oracle.order(), without };
        let used = &tried.used;
        let ptxas = Ptxas::find().filter(Ptxas::takes_sm_61);
        if !self.json {
            writeln!(out, "device {}: {}", used.device, used.reason)?;
            let on_gpu = if device.is_cpu() { "" } else { ", that device on the PTX and on the checked form's" };
            let interpreter = "the interpreter on IR as lowered, on IR after all passes, on the checked form";
            writeln!(out, "compared bit for bit (=): {interpreter}, the PTX interpreter on the PTX{on_gpu}")?;
            let near = if device.is_cpu() { "" } else { "; that device, where a kernel uses `fast::`" };
            writeln!(out, "compared within a stated error (≈): plain Rust in f64{near}")?;
            match &ptxas {
                Some(ptxas) if self.every_target => {
                    let targets: Vec<_> = targets_from(ptxas, Target::SM_61).map(|target| target.to_string()).collect();
                    writeln!(out, "assembled for {}: by {ptxas}\n", targets.join(", "))?;
                }
                Some(ptxas) => writeln!(out, "assembled for each kernel's own target: by {ptxas}\n")?,
                None => {
                    writeln!(out, "not assembled: there is no ptxas of CUDA 12 or before on PATH or in target/tools\n")?
                }
            }
            if !tried.without.is_empty() {
                let names: Vec<_> = tried.without.iter().map(|check| check.name()).collect();
                writeln!(out, "not checked, and no GPU is used: {}\n", names.join(", "))?;
            }
            out.flush()?;
        }
        let width = tasks.iter().map(|t| t.name().chars().count()).max().unwrap_or(0);
        // The driver compiles a module on one core, which takes longer than all else.
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        let at_once = if device.is_cpu() { AT_ONCE } else { cores.clamp(AT_ONCE, MAX_AT_ONCE_ON_GPU) };
        let mut checker = Checker::new(Some(device)).with_options(self.oracle.options());
        if let Some(seeded) = self.orders {
            checker = checker.with_orders(seeded);
        }
        if self.oracle.stops_at_first() {
            checker = checker.with_stop_at_first();
        }
        if self.oracle.requests_origins() {
            checker = checker.with_origins();
        }
        if self.deny_warnings {
            checker = checker.with_warnings_denied();
        }
        let CheckArgs { every_target, verbose, coverage, seed, .. } = *self;
        let bench = CheckBench { checker, ptxas, every_target, verbose, coverage, seed };
        let started = Instant::now();
        let mut lines = Vec::new();
        with_bar(tasks.len(), |bar| {
            let make = |task: &Task| {
                bar.set_message(task.name());
                bench.run(task)
            };
            ordered_parallel(&tasks, at_once, make, |line: InstanceCheck| {
                bar.inc(1);
                if !self.json {
                    bar.suspend(|| line.print(out, width, self.verbose).and_then(|()| Ok(out.flush()?)))?;
                }
                let last = self.oracle.stops_at_first() && line.verdict == Verdict::Fail;
                lines.push(line);
                Ok::<_, Error>(if last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })
        })?;
        let not_tried = tasks.len() - lines.len();
        let report = CheckReport::new(tried, not_tried, started.elapsed().as_secs_f64(), lines);
        match self.json {
            true => json(out, &report)?,
            false => writeln!(out, "\n{report}")?,
        }
        Ok(if report.is_good(self.allow_unsupported) { CommandOutcome::Success } else { CommandOutcome::Failure })
    }
}

/// Returns the selected instances, or all declared ones; each once per spec of its kernel.
fn tasks(names: &[String]) -> Result<Vec<Task>, Error> {
    let mut tasks = Vec::new();
    for SelectedInstance { artifact, instance } in name::instances(names)? {
        let task = |spec| Task { artifact, instance: instance.clone(), spec };
        let before = tasks.len();
        tasks.extend(cases::of_kernel(artifact).map(|spec| task(Some(spec))));
        if tasks.len() == before {
            tasks.push(task(None));
        }
    }
    Ok(tasks)
}

/// Parses the name of a device.
pub(super) fn device_arg(text: &str) -> Result<DeviceArg, String> {
    match (text, text.strip_prefix("cuda:").map(str::parse)) {
        ("best", _) => Ok(DeviceArg::Best),
        ("cpu", _) => Ok(DeviceArg::Cpu),
        (_, Some(Ok(ordinal))) => Ok(DeviceArg::Cuda(ordinal)),
        _ => Err("expected cpu, best, or cuda:N with a GPU's number, such as cuda:0".to_string()),
    }
}

impl DeviceArg {
    pub(super) fn device(self) -> Result<(Device, SelectedDevice), Error> {
        let selected = |device: Device| {
            (SelectedDevice { device: device.to_string(), reason: "selected by `--device`".to_string() }, device)
        };
        let (used, device) = match self {
            DeviceArg::Cpu => selected(Device::cpu()),
            DeviceArg::Cuda(ordinal) => {
                let failed = |source| Error::NoDevice {
                    device: format!("cuda:{ordinal}"),
                    instead: "cpu",
                    source: Box::new(source),
                };
                selected(Device::cuda(ordinal).map_err(failed)?)
            }
            DeviceArg::Best => {
                let device = Device::choose().map_err(Error::Device)?;
                let reason = device.choice().map_or_else(String::new, |choice| choice.reason.clone());
                (SelectedDevice { device: device.to_string(), reason }, device)
            }
        };
        Ok((device, used))
    }
}

impl Task {
    fn name(&self) -> String {
        self.artifact.instance_name(&self.instance.0)
    }
}

/// Iterates over the targets from `first` on that `ptxas` supports.
fn targets_from(ptxas: &Ptxas, first: Target) -> impl Iterator<Item = Target> {
    Target::ALL.into_iter().filter(move |target| *target >= first && ptxas.supports(*target))
}

impl CheckBench {
    fn run(&self, task: &Task) -> InstanceCheck {
        let started = Instant::now();
        let mut line = InstanceCheck::new(task, self.seed);
        // ptxas is a separate process, so it runs concurrently with the executors.
        let refused = thread::scope(|scope| {
            let refused = scope.spawn(|| self.ptxas.as_ref().map(|ptxas| self.refused(ptxas, task)));
            if let Some(spec) = task.spec {
                line.take(self.checker.check(spec, &task.instance, self.seed), self.verbose);
                if self.coverage {
                    // A case that cannot run has already failed the check.
                    line.unreached = unreached(spec, &task.instance, self.seed).ok();
                }
            }
            refused.join().unwrap_or_else(|panic| resume_unwind(panic))
        });
        line.assembled = refused.as_ref().map(Vec::is_empty);
        for (by, why) in refused.unwrap_or_default() {
            line.verdict = Verdict::Fail;
            line.words.push(format!("{by}: {why}"));
            line.problem.get_or_insert(why);
        }
        line.seconds = started.elapsed().as_secs_f64();
        line
    }

    /// Returns the tools that reject the instance and their messages: ptxas, for each requested
    /// target.
    fn refused(&self, ptxas: &Ptxas, task: &Task) -> Vec<(String, String)> {
        let own = task.artifact.target;
        let targets = targets_from(ptxas, own).filter(|target| self.every_target || *target == own);
        let refused = targets.filter_map(|target| {
            let ptx = show::ptx(task.artifact, &task.instance, target).map_err(|e| e.to_string());
            let why = ptx.and_then(|ptx| ptxas.assemble(&ptx, target)).err()?;
            Some((format!("{ptxas} for {target}"), why))
        });
        refused.collect()
    }
}

impl InstanceCheck {
    /// Returns the line of an instance without registered test cases.
    fn new(task: &Task, seed: u64) -> InstanceCheck {
        InstanceCheck {
            instance: task.name(),
            file: task.artifact.file,
            line: task.artifact.line,
            verdict: Verdict::Unsupported,
            seed,
            cases: 0,
            executors: Vec::new(),
            assembled: None,
            seconds: 0.0,
            problem: None,
            failures: Vec::new(),
            logs: Vec::new(),
            decisions: Vec::new(),
            warnings: Vec::new(),
            allowed: Vec::new(),
            unreached: None,
            referenced: false,
            compared: String::new(),
            words: Vec::new(),
            others: 0,
        }
    }

    fn take(&mut self, report: InstanceReport, verbose: bool) {
        self.verdict = report.verdict();
        if !report.passed() {
            let (first, others) = report.first_finding();
            self.words.push(if verbose { report.to_string() } else { first.to_string() });
            self.others = if verbose { 0 } else { others };
        }
        self.cases = report.cases.len();
        self.referenced = report.referenced;
        self.executors = report.executors.iter().map(executor_name).collect();
        for (executor, name) in report.executors.iter().zip(&self.executors) {
            let near = report.approximate && matches!(executor, Executor::Cuda(_) | Executor::CudaChecked(_));
            let relation = match (self.compared.is_empty(), near) {
                (true, _) => "",
                (false, true) => " ≈ ",
                (false, false) => " = ",
            };
            self.compared.push_str(relation);
            self.compared.push_str(name);
        }
        self.problem = report.problem.map(|problem| problem.why);
        self.decisions = report.decisions;
        self.warnings = report.warnings;
        self.allowed = report.allowed;
        let log = |case: &CaseReport| CaseLog { case: case.case.clone(), text: case.printed.clone() };
        self.logs = report.cases.iter().filter(|case| !case.printed.is_empty()).map(log).collect();
        self.failures = report.cases.into_iter().filter(|case| case.failure.is_some()).collect();
    }

    /// Prints the result of the instance; without `verbose`, only the first finding of a failure.
    fn print(&self, out: &mut dyn Write, width: usize, verbose: bool) -> Result<(), Error> {
        let InstanceCheck { instance, verdict, cases, seconds, .. } = self;
        // Widths count characters, not bytes: names may contain characters of several bytes.
        let name = format!("{instance}{}", " ".repeat(width.saturating_sub(instance.chars().count())));
        if *verdict == Verdict::Unsupported && self.words.is_empty() {
            let why = "not checked: no spec is registered for it (runtime::register!)";
            return Ok(writeln!(out, "{verdict:<11}  {name}  {why}")?);
        }
        let compared = match verdict {
            Verdict::Pass if self.referenced => format!("{} ≈ plain Rust", self.compared),
            Verdict::Pass => format!("{}; the reference states no output", self.compared),
            _ => self.executors.join(", "),
        };
        let assembled = if self.assembled == Some(true) { "; assembled" } else { "" };
        writeln!(out, "{verdict:<11}  {name}  {cases:>3} cases  {seconds:>6.2} s  {compared}{assembled}")?;
        let indented = |out: &mut dyn Write, text: &str| text.lines().try_for_each(|line| writeln!(out, "    {line}"));
        self.words.iter().try_for_each(|text| indented(out, text))?;
        self.unreached.iter().flatten().try_for_each(|gap| indented(out, &gap.to_string()))?;
        let failed = self.failures.first().map(|case| case.case.as_str());
        print_logs(out, &self.logs, failed, verbose)?;
        // Denied warnings are already reported as failures.
        let denied = |warned: &&Warned| {
            let mut failures = self.failures.iter().filter_map(|case| case.failure.as_ref());
            failures.any(|f| matches!(f, Failure::Warned { report } if **report == warned.report))
        };
        let warnings = self.warnings.iter().filter(|warned| !denied(warned)).map(ToString::to_string);
        let others: Vec<_> = self.decisions.iter().cloned().chain(warnings).collect();
        if verbose || *verdict == Verdict::Pass {
            let allowed = self.allowed.iter().map(ToString::to_string);
            others.into_iter().chain(allowed).try_for_each(|text| indented(out, &text))?;
        } else if let count @ 1.. = self.others + others.len() {
            let findings = if count == 1 { "finding" } else { "findings" };
            writeln!(out, "    and {count} more {findings}; -v shows them")?;
        }
        Ok(())
    }

    /// Returns the most important result in one line, if there is a failure or a warning: its
    /// severity, the instance, the check and the place.
    fn first(&self) -> Option<[String; 4]> {
        let of = |verdict| self.failures.iter().filter(move |case| case.verdict == verdict);
        let mut failures = of(Verdict::Fail).chain(of(Verdict::Unsupported));
        let failure = failures.find_map(|case| Some((case.verdict, case.failure.as_ref()?.cause())));
        let warning = || {
            let finding = self.warnings.iter().flat_map(|warned| warned.report.warnings()).next()?;
            Some(("warning".to_string(), (finding.check.name(), Some(finding.place.to_string()))))
        };
        let (severity, (check, place)) = match failure {
            Some((verdict, cause)) => (verdict.to_string(), cause),
            None if self.problem.is_some() => {
                let check = if self.assembled == Some(false) { "ptxas" } else { "not-run" };
                (self.verdict.to_string(), (check, None))
            }
            None => warning()?,
        };
        let place = place.unwrap_or_else(|| format!("{}:{}", shown_path(self.file), self.line));
        Some([severity, self.instance.clone(), check.to_string(), place])
    }
}

/// Prints the lines of `log!` of the failed case, or else of the first case with lines; with
/// `verbose`, all of them.
fn print_logs(out: &mut dyn Write, logs: &[CaseLog], failed: Option<&str>, verbose: bool) -> io::Result<()> {
    let one = logs.iter().position(|log| Some(log.case.as_str()) == failed).unwrap_or(0);
    for CaseLog { case, text } in logs.iter().enumerate().filter(|(i, _)| verbose || *i == one).map(|(_, log)| log) {
        writeln!(out, "    log of {case}:")?;
        let lines = text.lines().count();
        let limit = if verbose { lines } else { SHOWN_LINES };
        text.lines().take(limit).try_for_each(|line| writeln!(out, "      {line}"))?;
        if lines > limit {
            writeln!(out, "      and {} more; -v shows them", counted(lines - limit, "line"))?;
        }
    }
    Ok(())
}

/// Returns a one-word name of an executor.
fn executor_name(executor: &Executor) -> String {
    match executor {
        Executor::Lowered => "lowered".to_string(),
        Executor::Scheduled(schedule) => format!("lowered {schedule}"),
        Executor::Optimized => "optimized".to_string(),
        Executor::Checked => "checked".to_string(),
        Executor::Ptx => "ptx".to_string(),
        Executor::Cuda(device) => first_word(device).to_string(),
        Executor::CudaChecked(device) => format!("{} checked", first_word(device)),
    }
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or(text)
}

impl CheckReport {
    fn new(tried: CheckConditions, not_tried: usize, seconds: f64, instances: Vec<InstanceCheck>) -> CheckReport {
        let count = |verdict| instances.iter().filter(|line| line.verdict == verdict).count();
        let [passed, failed, unsupported] = [Verdict::Pass, Verdict::Fail, Verdict::Unsupported].map(count);
        // An instance without test cases does not pass silently, and neither does a program without
        // kernels.
        let verdict = match (failed, unsupported, passed) {
            (1.., ..) => Verdict::Fail,
            (0, 0, 1..) => Verdict::Pass,
            _ => Verdict::Unsupported,
        };
        CheckReport { verdict, tried, passed, failed, unsupported, not_tried, seconds, instances }
    }

    /// Returns whether no instance failed and, unless `allow_unsupported`, none is unsupported.
    fn is_good(&self, allow_unsupported: bool) -> bool {
        let allowed = allow_unsupported && !self.instances.is_empty();
        self.verdict == Verdict::Pass || self.verdict == Verdict::Unsupported && allowed
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<_> = self.instances.iter().filter_map(InstanceCheck::first).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2)];
        for [severity, instance, check, place] in &rows {
            let [first, second, third] = widths;
            writeln!(f, "{severity:first$}  {instance:second$}  {check:third$}  {place}")?;
        }
        let cases: usize = self.instances.iter().map(|line| line.cases).sum();
        let instances = counted(self.instances.len(), "instance");
        write!(f, "{instances}, {}: {} pass", counted(cases, "case"), self.passed)?;
        if self.failed > 0 {
            write!(f, ", {} fail", self.failed)?;
        }
        if self.unsupported > 0 {
            write!(f, ", {} unsupported (neither passed nor failed)", self.unsupported)?;
        }
        if self.not_tried > 0 {
            write!(f, ", {} not tried", self.not_tried)?;
        }
        write!(f, ", in {:.1} s (seed {})", self.seconds, self.tried.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_dsl::Kernel;
    use runtime::testing::{Bound, Case, Expected, Input, Random};

    fn run(spec: Option<&'static KernelSpec>) -> InstanceCheck {
        let task = Task { artifact: kernels_rs::saxpy::ARTIFACT, instance: Instance::default(), spec };
        CheckBench {
            checker: Checker::new(None),
            ptxas: None,
            every_target: false,
            verbose: false,
            coverage: true,
            seed: 1,
        }
        .run(&task)
    }

    fn cases(_: &Instance, random: &mut Random) -> Vec<Case> {
        let inputs = [Input::scalar(2.0f32), Input::slice(&[0.5f32; 3]), Input::slice(&random.values::<f32>(3))];
        vec![Case::new("three", inputs)]
    }

    fn ones(_: &Instance, _: &[Input]) -> Vec<Expected> {
        vec![Expected::new(2, vec![1.0; 3], Bound::Exact)]
    }

    fn report(lines: Vec<InstanceCheck>) -> CheckReport {
        let used = SelectedDevice { device: String::new(), reason: String::new() };
        CheckReport::new(
            CheckConditions { used, seed: 1, schedule: Schedule::InOrder, without: Vec::new() },
            0,
            0.0,
            lines,
        )
    }

    fn print(line: &InstanceCheck) -> String {
        let mut out = Vec::new();
        line.print(&mut out, 0, false).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_wrong_result_fails_and_shows_its_first_mismatch() {
        static WRONG: KernelSpec = KernelSpec { artifact: kernels_rs::saxpy::ARTIFACT, cases, reference: ones };
        let line = run(Some(&WRONG));
        assert_eq!((line.verdict, line.cases, line.failures.len()), (Verdict::Fail, 1, 1));
        let text = print(&line);
        assert!(text.starts_with("FAIL"), "{text}");
        assert!(text.contains("three: y[0] is ") && text.contains("the reference gives 1.0"), "{text}");
        let end = report(vec![line]).to_string();
        assert!(end.starts_with("FAIL  saxpy  wrong-result  kernels-rs/src/elementwise.rs:"), "{end}");
    }

    #[test]
    fn a_kernel_without_cases_does_not_pass() {
        let line = run(None);
        assert_eq!(line.verdict, Verdict::Unsupported);
        assert!(print(&line).contains("not checked"));
        let report = report(vec![line]);
        assert_eq!((report.verdict, report.passed, report.failed, report.unsupported), (Verdict::Unsupported, 0, 0, 1));
        assert!(report.to_string().contains("0 pass, 1 unsupported"), "{report}");
        assert!(!report.is_good(false) && report.is_good(true));
        // A program without kernels never succeeds, whatever is allowed.
        assert!(!self::report(vec![]).is_good(true));
    }

    #[test]
    fn every_kernel_has_a_spec() {
        let tasks = tasks(&[]).unwrap();
        assert!(!tasks.is_empty() && tasks.iter().all(|task| task.spec.is_some()));
    }

    #[test]
    fn a_log_is_that_of_the_failed_case() {
        let log = |case: &str, lines: usize| CaseLog {
            case: case.to_string(),
            text: (0..lines).map(|i| format!("line {i}\n")).collect(),
        };
        let logs = [log("first", 1), log("second", SHOWN_LINES + 2)];
        let printed = |failed, verbose| {
            let mut out = Vec::new();
            print_logs(&mut out, &logs, failed, verbose).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(printed(None, false), "    log of first:\n      line 0\n");
        let second = printed(Some("second"), false);
        assert!(second.starts_with("    log of second:\n      line 0\n"), "{second}");
        assert!(second.ends_with("      line 9\n      and 2 lines more; -v shows them\n"), "{second}");
        let all = printed(Some("second"), true);
        assert!(all.contains("log of first") && all.ends_with("line 11\n"), "{all}");
    }
}
