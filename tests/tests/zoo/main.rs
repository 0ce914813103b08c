//! A zoo of bugs: kernels with one mistake each, beside their corrected twins, and the reports of
//! the oracle for both.
//!
//! A kernel here has two instances. `MENDED = false` has the mistake that the documentation names,
//! and `MENDED = true` does not. A mark in the source, `//~ out-of-bounds`, names the line at which
//! the oracle must report the bug. A mark below the line is written `//~^ loop-step`. For a race,
//! the mark is at the access that comes second when blocks and warps run in order. The oracle must
//! report exactly what is marked, and nothing for the twin.
//!
//! Some classes are found without a run. The compiler reports decisions by approximations, `//~
//! approximate-branch`. `kernels report` finds legal but slow code, `//~ bank-conflict`; only bugs
//! of this class are checked for it. Where the order of atomic operations affects the result, the
//! report names the argument and no line. Kernels that rustc or our compiler rejects are in
//! `kernel-dsl/compile_fail/zoo_*.rs`, with marks too.
//!
//! `README.md` here lists the bugs; `UPDATE=1 cargo test -p tests --test zoo` writes it.

mod alignment;
mod arithmetic;
mod asserted;
mod bare;
mod barriers;
mod bounds;
mod conflicts;
mod contended;
mod decisions;
mod global_races;
mod initialization;
mod loops;
mod machine;
mod orders;
mod page;
mod refused;
mod results;
mod shared_races;
mod slow;
mod warp_races;
mod warps;

use kernel_dsl::Artifact;
use kernel_dsl::compiler::analyses::approximate::{Approximations, DecisionKind};
use kernel_dsl::compiler::analyses::bounds::{BoundsSite, KernelAccesses};
use kernel_dsl::compiler::analyses::memory::accesses;
use kernel_dsl::compiler::analyses::slow::{Lint, lints};
use kernel_dsl::compiler::hir::{Constant, Instance, monomorphic};
use kernel_dsl::compiler::{driver, ir, passes};
use runtime::interpreter::{Check, Finding, Options, Report, Schedule};
use runtime::ptx;
use runtime::testing::{Case, Input, Oracle, PreparedInstance};
use std::collections::BTreeSet;
use std::fmt;

/// A bug in a kernel whose only constant is `MENDED`.
pub struct Bug {
    artifact: &'static Artifact,
    /// The class in which the bug is reported. Consequences of the bug may be reported as well, if
    /// they are marked.
    class: Class,
    inputs: fn() -> Vec<Input>,
}

/// The class of a bug, by the way in which it is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Found by a run.
    Check(Check),
    /// Found before any run: a decision by an approximation.
    Decides(DecisionKind),
    /// Found by runs in several orders: the argument whose contents differ.
    Order(usize),
    /// Found before any run: legal and slow code, by its name in reports.
    Slow(&'static str),
}

/// Lints of slow code that need no ptxas.
const SLOW: [&str; 10] = [
    "f64-arithmetic",
    "integer-division",
    "64-bit-multiply",
    "float-division",
    "square-root",
    "shared-atomic-loop",
    "bank-conflict",
    "constant-serialization",
    "scattered-access",
    "partial-warp",
];

impl Class {
    /// Returns the classes that no single run finds, with one representative of `Order`.
    fn others() -> impl Iterator<Item = Class> {
        let decided = [DecisionKind::Branch, DecisionKind::Index, DecisionKind::Integer].map(Class::Decides);
        decided.into_iter().chain([Class::Order(0)]).chain(SLOW.map(Class::Slow))
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Class::Check(check) => check.fmt(f),
            Class::Decides(decided) => write!(f, "approximate-{}", decided.name()),
            Class::Order(_) => f.write_str("order-dependent"),
            Class::Slow(name) => f.write_str(name),
        }
    }
}

/// Declares a row: the kernel, the check that reports it, and its arguments.
#[macro_export]
macro_rules! bug {
    ($kernel:ident, decides $decided:ident, [$($input:expr),* $(,)?]) => {
        $crate::bug!(of $kernel, Decides(kernel_dsl::compiler::analyses::approximate::DecisionKind::$decided), [$($input),*])
    };
    ($kernel:ident, order $argument:literal, [$($input:expr),* $(,)?]) => {
        $crate::bug!(of $kernel, Order($argument), [$($input),*])
    };
    ($kernel:ident, slow $name:literal, [$($input:expr),* $(,)?]) => {
        $crate::bug!(of $kernel, Slow($name), [$($input),*])
    };
    ($kernel:ident, $check:ident, [$($input:expr),* $(,)?]) => {
        $crate::bug!(of $kernel, Check(runtime::interpreter::Check::$check), [$($input),*])
    };
    (of $kernel:ident, $class:ident($what:expr), [$($input:expr),*]) => {
        $crate::Bug {
            artifact: <$kernel<false> as kernel_dsl::Kernel>::ARTIFACT,
            class: $crate::Class::$class($what),
            inputs: || vec![$($input),*],
        }
    };
}

/// Every bug, by class.
const ZOO: &[&[Bug]] = &[
    bounds::BUGS,
    alignment::BUGS,
    initialization::BUGS,
    shared_races::BUGS,
    warp_races::BUGS,
    global_races::BUGS,
    conflicts::BUGS,
    barriers::BUGS,
    warps::BUGS,
    arithmetic::BUGS,
    asserted::BUGS,
    loops::BUGS,
    results::BUGS,
    machine::BUGS,
    decisions::BUGS,
    orders::BUGS,
    slow::BUGS,
];

/// Warp instructions after which a loop here is considered endless.
const FUEL: u64 = 1 << 16;

/// Returns 0, 1, 2, …
fn counted(n: usize) -> Input {
    Input::slice(&(0..n).map(|i| i as f32).collect::<Vec<_>>())
}

fn zeros(n: usize) -> Input {
    Input::slice(&vec![0f32; n])
}

/// A class, a file and a line.
type Reported = (String, String, u32);

/// One of the two instances of a kernel, with its launch.
struct Specimen {
    prepared: PreparedInstance,
    lowered: ir::Kernel,
    case: Case,
    /// Whether slow code is reported as well.
    slow: bool,
}

impl Bug {
    fn specimen(&self, mended: bool) -> Specimen {
        let instance = Instance(vec![Constant::Bool(mended)]);
        let program = self.artifact.program().expect("the kernel's own HIR");
        let program = monomorphic(&program, &instance).expect("a declared instance");
        let lowered = driver::lowered_monomorphic(&program, self.artifact.target).expect("a declared instance");
        let prepared = PreparedInstance::compile(self.artifact, &instance).expect("a declared instance");
        let slow = matches!(self.class, Class::Slow(_));
        Specimen { prepared, lowered: lowered.into(), case: Case::new(self.artifact.name, (self.inputs)()), slow }
    }
}

/// Returns the first line of a kernel's documentation.
fn title(artifact: &'static Artifact) -> &'static str {
    artifact.docs.lines().next().unwrap_or_default().trim()
}

impl Specimen {
    fn report(&self) -> Report {
        self.report_in(Schedule::InOrder)
    }

    fn report_in(&self, schedule: Schedule) -> Report {
        let oracle = Oracle::new(&self.prepared, &self.lowered).expect("lowered IR is valid");
        let trial = oracle
            .run(&self.case, Options { schedule, ..self.options() })
            .unwrap_or_else(|e| panic!("{}: {e}", self.case.name));
        trial.outcome.expect("the grid is not empty").report
    }

    fn options(&self) -> Options {
        let inputs = self.case.inputs.iter().enumerate();
        let uninitialized = inputs.filter(|(_, input)| input.is_uninitialized()).map(|(i, _)| i).collect();
        Options { fuel: FUEL, cancellation: Some(1e-3), notes: true, uninitialized, ..Default::default() }
    }

    /// Returns all reports with their lines: those of a run, of decisions by approximations, and of
    /// slow code.
    fn reported(&self, report: &Report) -> BTreeSet<Reported> {
        let decisions = Approximations::of(&self.lowered).decisions.into_iter().map(|decision| {
            let (file, line) = place(&self.lowered, decision.location);
            (Class::Decides(decision.decided).to_string(), file, line)
        });
        let slow = if self.slow { self.slow_places() } else { Vec::new() };
        report.findings.iter().map(reported).chain(decisions).chain(slow).collect()
    }

    /// Returns the reports of slow code with their lines. A report for the whole kernel has the
    /// line of its `fn`.
    fn slow_places(&self) -> Vec<Reported> {
        let sites = accesses(&passes::with_places(self.lowered.clone()).expect("lowered IR is valid"));
        let kernel = passes::optimize(self.lowered.clone()).expect("lowered IR is valid");
        let own = &self.lowered.sources[0];
        let reported = |lint: &Lint| {
            let whole = || (own.file.clone(), own.line);
            let (file, line) = lint.location.map_or_else(whole, |location| place(&kernel, location));
            (lint.slow.name().to_string(), file, line)
        };
        lints(&kernel, &sites).iter().map(reported).collect()
    }

    /// Returns whether another order of blocks, warps and lanes changes the results in any argument
    /// except `but_for`.
    fn depends_on_order(&self, but_for: Option<usize>) -> bool {
        let oracle = Oracle::new(&self.prepared, &self.lowered).expect("lowered IR is valid");
        let case = but_for.into_iter().fold(self.case.clone(), Case::with_order_dependent);
        let run = |schedule| {
            oracle.run(&case, Options { schedule, ..self.options() }).expect("the run in order succeeds too")
        };
        let first = run(Schedule::InOrder);
        [Schedule::Reversed, Schedule::Seeded(1)]
            .into_iter()
            .any(|other| oracle.differ(&case, &[], &first, &run(other)))
    }

    /// Returns whether the checked form, which runs on a GPU, reports the bug.
    fn reported_by_checked_form(&self) -> bool {
        self.prepared.checked_form(&self.case, self.options()).expect("the oracle has run it").is_some()
    }

    /// Returns the first check that the PTX interpreter reports.
    fn reported_by_ptx(&self) -> Option<Check> {
        let options = ptx::Options { fuel: FUEL, ..Default::default() };
        let report = self.prepared.ptx_report(&self.case, options).expect("the oracle has run it")?;
        report.findings.first().map(|finding| finding.check)
    }

    /// Returns the marks in the source of the kernel and of the functions that it calls.
    fn marks(&self) -> BTreeSet<Reported> {
        let mut all = BTreeSet::new();
        for source in &self.lowered.sources {
            for (offset, line) in source.text.iter().enumerate() {
                let Some((_, mark)) = line.split_once("//~") else { continue };
                let (mark, above) = mark.strip_prefix('^').map_or((mark, 0), |mark| (mark, 1));
                for class in mark.split(',').map(str::trim) {
                    if !Class::others().any(|known| known.to_string() == class) {
                        let _: Check = class.parse().unwrap_or_else(|e| panic!("{}: {e}", self.case.name));
                    }
                    all.insert((class.to_string(), source.file.clone(), source.line + offset as u32 - above));
                }
            }
        }
        all
    }
}

fn reported(finding: &Finding) -> Reported {
    (finding.check.to_string(), finding.place.file.clone(), finding.place.line)
}

fn at(finding: &Finding) -> (String, u32) {
    (finding.place.file.clone(), finding.place.line)
}

/// Returns the file and the line.
fn place(kernel: &ir::Kernel, location: ir::Location) -> (String, u32) {
    let at = kernel.locations[location.0 as usize];
    let source = &kernel.sources[at.source as usize];
    (source.file.clone(), source.line + u32::from(at.span.line))
}

fn bugs() -> impl Iterator<Item = &'static Bug> {
    ZOO.iter().copied().flatten()
}

#[test]
fn each_bug_is_reported_at_its_mark_and_nothing_else() {
    let mut wrong = Vec::new();
    for bug in bugs() {
        let specimen = bug.specimen(false);
        let report = specimen.report();
        let found = specimen.reported(&report);
        let marks = specimen.marks();
        let is_reported = match bug.class {
            Class::Order(argument) => specimen.depends_on_order(None) && !specimen.depends_on_order(Some(argument)),
            class => found.iter().any(|(reported, ..)| *reported == class.to_string()),
        };
        if found != marks || !is_reported {
            let list = |reported: &BTreeSet<Reported>| {
                reported.iter().map(|(check, _, line)| format!("{check} at {line}")).collect::<Vec<_>>().join(", ")
            };
            let (name, marks, found) = (bug.artifact.name, list(&marks), list(&found));
            wrong.push(format!("{name}: marked {marks}; reported {found}\n{report}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn races_are_reported_in_other_orders_too() {
    let mut wrong = Vec::new();
    for bug in bugs() {
        let Class::Check(check @ (Check::SharedRace | Check::WarpRace | Check::GlobalRace)) = bug.class else {
            continue;
        };
        let specimen = bug.specimen(false);
        for schedule in [Schedule::Reversed, Schedule::Seeded(1), Schedule::Seeded(2)] {
            if !specimen.report_in(schedule).findings.iter().any(|finding| finding.check == check) {
                wrong.push(format!("{} in order {schedule}: no {check}", bug.artifact.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks that no access out of bounds is proved in bounds.
#[test]
fn accesses_out_of_bounds_are_not_proved() {
    let mut unproved = 0;
    for bug in bugs() {
        let specimen = bug.specimen(false);
        let report = specimen.report();
        let beyond = |finding: &&Finding| finding.check == Check::OutOfBounds;
        let beyond: Vec<(String, u32)> = report.findings.iter().filter(beyond).map(at).collect();
        if beyond.is_empty() || report.findings.iter().any(|finding| finding.check == Check::UsizeOverflow) {
            continue;
        }
        let program = bug.artifact.program().expect("the kernel's own HIR");
        let program = monomorphic(&program, &Instance(vec![Constant::Bool(false)])).expect("a declared instance");
        let kernel = passes::with_places(specimen.lowered.clone()).expect("lowered IR is valid");
        let sites = KernelAccesses::of(&program, &kernel).sites;
        for beyond in &beyond {
            let here = |site: &&BoundsSite| place(&kernel, site.location) == *beyond;
            let open = sites.iter().filter(here).filter(|site| site.proof.is_none()).count();
            unproved += open;
            assert!(
                open > 0,
                "{}: the access out of bounds in line {} is proved in bounds",
                bug.artifact.name,
                beyond.1
            );
        }
    }
    assert!(unproved >= 16, "{unproved}");
}

#[test]
fn nothing_is_reported_for_twins() {
    let mut wrong = Vec::new();
    for bug in bugs() {
        let twin = bug.specimen(true);
        let report = twin.report();
        let reported = twin.reported(&report);
        if !reported.is_empty() {
            wrong.push(format!("{}: {reported:?}\n{report}", bug.artifact.name));
        }
        if matches!(bug.class, Class::Order(_)) && twin.depends_on_order(None) {
            wrong.push(format!("{}: the result depends on the order", bug.artifact.name));
        }
        if let Some(check) = twin.reported_by_ptx() {
            wrong.push(format!("{}: the PTX interpreter reports {check}", bug.artifact.name));
        }
        if twin.reported_by_checked_form() {
            wrong.push(format!("{}: the checked form reports", bug.artifact.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Bugs with a race that the PTX interpreter does not report. Two of them store equal values, and
/// one has an atomic operation and a load, but no store. In the others, a fence or its lanes are
/// missing on one side, and the PTX interpreter ignores these.
const RACES_BEYOND_PTX: [&str; 9] = [
    "tiles_that_overlap",
    "block_index_folded",
    "plain_and_atomic",
    "signed_off_too_early",
    "fence_of_one_lane",
    "acquired_by_one_lane",
    "one_of_the_readers_without_fence",
    "flag_read_relaxed",
    "exchange_that_fails",
];

/// Checks the races that the PTX interpreter finds, which are those between warps: at no twin, and
/// at each other bug for which the oracle reports such a race.
#[test]
fn the_ptx_interpreter_finds_races_between_warps() {
    let races = [Check::GlobalRace, Check::SharedRace];
    let found = |specimen: &Specimen| -> BTreeSet<String> {
        let options = ptx::Options { fuel: FUEL, races: true, ..Default::default() };
        let report = specimen.prepared.ptx_report(&specimen.case, options).expect("the oracle has run it");
        let findings = report.into_iter().flat_map(|report| report.findings);
        findings.filter(|finding| races.contains(&finding.check)).map(|finding| finding.check.to_string()).collect()
    };
    let (mut wrong, mut count) = (Vec::new(), 0);
    for bug in bugs() {
        let (of_bug, of_twin) = (found(&bug.specimen(false)), found(&bug.specimen(true)));
        let report = bug.specimen(false).report();
        let checks = report.findings.iter().map(|finding| finding.check).filter(|check| races.contains(check));
        let mut expected: BTreeSet<String> = checks.map(|check| check.to_string()).collect();
        if RACES_BEYOND_PTX.contains(&bug.artifact.name) {
            expected.clear();
        }
        count += expected.len();
        if of_bug != expected || !of_twin.is_empty() {
            wrong.push(format!("{}: {of_bug:?}, not {expected:?}; its twin: {of_twin:?}", bug.artifact.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 10, "the zoo has {count} races between warps");
}

#[test]
fn compile_errors_are_at_the_marks() {
    let unreported: Vec<_> = refused::all().into_iter().filter(|bug| bug.code.is_none()).collect();
    assert!(unreported.is_empty(), "rustc reports no error at these marks: {unreported:?}");
}

#[test]
fn the_page_lists_the_bugs() {
    page::check();
}

#[test]
fn the_comparison_has_every_class() {
    page::compared();
}
