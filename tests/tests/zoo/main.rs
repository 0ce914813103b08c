//! A zoo of bugs: kernels with one mistake each, each beside its mended twin, and what the oracle says of both.
//!
//! A kernel here is two instances: `MENDED = false` has the mistake that its documentation names, `MENDED = true` has not. The line
//! at which the oracle is to report it is marked in the source, `//~ out-of-bounds`, or below it, `//~^ loop-step`; of a race, one of its two sides is
//! marked, the one that comes second when blocks and warps run in order. The oracle must report what is marked, nothing else, and nothing
//! at all of the twin. What approximations decide the compiler tells before any run, `//~ approximate-branch`, and what is legal and slow,
//! `//~ bank-conflict`: that of the kernels which are here for it alone, since what is slow in the others is not what they are about. Where the order of atomic
//! operations shows, the argument is told and no line. What rustc and our compiler refuse stands in `kernel-dsl/compile_fail/zoo_*.rs`,
//! with marks too. `README.md` here is the list; `UPDATE=1 cargo test -p tests --test zoo` writes it anew.

mod alignment;
mod arithmetic;
mod bare;
mod barriers;
mod bounds;
mod conflicts;
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
use kernel_dsl::compiler::analyses::approximate::{Approximations, Decided};
use kernel_dsl::compiler::analyses::bounds::{Reach, Site};
use kernel_dsl::compiler::analyses::memory::accesses;
use kernel_dsl::compiler::analyses::slow::{Lint, lints};
use kernel_dsl::compiler::hir::{Constant, Instance, monomorphic};
use kernel_dsl::compiler::{driver, ir, passes};
use runtime::interpreter::{Check, Finding, Options, Report, Schedule};
use runtime::ptx;
use runtime::testing::{Case, Input, Oracle, Prepared};
use std::collections::BTreeSet;
use std::fmt;

/// A bug in a kernel, which has the constant `MENDED` alone.
pub struct Bug {
    artifact: &'static Artifact,
    /// What is told of it. More may be told of what follows from it, where that is marked.
    class: Class,
    inputs: fn() -> Vec<Input>,
}

/// What is told of a bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// By a run.
    Check(Check),
    /// Before any run: what an approximation decides.
    Decides(Decided),
    /// By runs in several orders: the argument in which they show.
    Order(usize),
    /// Before any run: what is legal and slow, by its name in reports.
    Slow(&'static str),
}

/// What is slow and found without ptxas.
const SLOW: [&str; 10] = [
    "f64-arithmetic",
    "integer-division",
    "64-bit-multiply",
    "float-division",
    "square-root",
    "shared-atomic-loop",
    "bank-conflict",
    "constant-turns",
    "scattered-access",
    "partial-warp",
];

impl Class {
    /// All that no run tells; of orders, one.
    fn others() -> impl Iterator<Item = Class> {
        let decided = [Decided::Branch, Decided::Index, Decided::Integer].map(Class::Decides);
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

/// A row: the kernel, the check that reports it, and its arguments.
#[macro_export]
macro_rules! bug {
    ($kernel:ident, decides $decided:ident, [$($input:expr),* $(,)?]) => {
        $crate::bug!(of $kernel, Decides(kernel_dsl::compiler::analyses::approximate::Decided::$decided), [$($input),*])
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
    loops::BUGS,
    results::BUGS,
    machine::BUGS,
    decisions::BUGS,
    orders::BUGS,
    slow::BUGS,
];

/// Warp instructions after which a loop here is endless.
const FUEL: u64 = 1 << 16;

/// 0, 1, 2, …
fn counted(n: usize) -> Input {
    Input::slice(&(0..n).map(|i| i as f32).collect::<Vec<_>>())
}

fn zeros(n: usize) -> Input {
    Input::slice(&vec![0f32; n])
}

/// A class, and a line of a file.
type Told = (String, String, u32);

/// One of the two instances of a kernel, with its launch.
struct Specimen {
    prepared: Prepared,
    lowered: ir::Kernel,
    case: Case,
    /// Whether what is slow is told too.
    slow: bool,
}

impl Bug {
    fn specimen(&self, mended: bool) -> Specimen {
        let instance = Instance(vec![Constant::Bool(mended)]);
        let program = self.artifact.program().expect("the kernel's own HIR");
        let program = monomorphic(&program, &instance).expect("a declared instance");
        let lowered = driver::lowered_monomorphic(&program, self.artifact.target).expect("a declared instance");
        let prepared = Prepared::compile(self.artifact, &instance).expect("a declared instance");
        let slow = matches!(self.class, Class::Slow(_));
        Specimen { prepared, lowered, case: Case::new(self.artifact.name, (self.inputs)()), slow }
    }

    /// The first line of the kernel's documentation.
    fn title(&self) -> &'static str {
        self.artifact.docs.lines().next().unwrap_or_default().trim()
    }
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
        trial.outcome.expect("a grid that is not empty").report
    }

    fn options(&self) -> Options {
        let inputs = self.case.inputs.iter().enumerate();
        let uninitialized = inputs.filter(|(_, input)| input.holds_nothing()).map(|(i, _)| i).collect();
        Options { fuel: FUEL, cancellation: Some(1e-3), notes: true, uninitialized, ..Default::default() }
    }

    /// What is told, with the lines: of a run, of what approximations decide, and of what is slow.
    fn told(&self, report: &Report) -> BTreeSet<Told> {
        let decisions = Approximations::of(&self.lowered).decisions.into_iter().map(|decision| {
            let (file, line) = place(&self.lowered, decision.location);
            (Class::Decides(decision.decided).to_string(), file, line)
        });
        let slow = if self.slow { self.slow_places() } else { Vec::new() };
        report.findings.iter().map(told).chain(decisions).chain(slow).collect()
    }

    /// What is slow, with the lines; of the whole kernel, that of its `fn`.
    fn slow_places(&self) -> Vec<Told> {
        let sites = accesses(&passes::with_places(self.lowered.clone()).expect("lowered IR is valid"));
        let kernel = passes::optimize(self.lowered.clone()).expect("lowered IR is valid");
        let own = &self.lowered.sources[0];
        let told = |lint: &Lint| {
            let whole = || (own.file.clone(), own.line);
            let (file, line) = lint.location.map_or_else(whole, |location| place(&kernel, location));
            (lint.slow.name().to_string(), file, line)
        };
        lints(&kernel, &sites).iter().map(told).collect()
    }

    /// Whether another order of blocks, warps and lanes leaves something else in other arguments than these.
    fn depends_on_order(&self, but_for: Option<usize>) -> bool {
        let oracle = Oracle::new(&self.prepared, &self.lowered).expect("lowered IR is valid");
        let case = but_for.into_iter().fold(self.case.clone(), Case::with_order_dependent);
        let run = |schedule| oracle.run(&case, Options { schedule, ..self.options() }).expect("as in order");
        let first = run(Schedule::InOrder);
        [Schedule::Reversed, Schedule::Seeded(1)].into_iter().any(|other| oracle.differ(&case, &first, &run(other)))
    }

    /// Whether the form that runs on a GPU tells of it.
    fn told_by_checked_form(&self) -> bool {
        self.prepared.checked_form(&self.case, self.options()).expect("the oracle has run it").is_some()
    }

    /// What the interpreter of PTX says first.
    fn told_by_ptx(&self) -> Option<ptx::Check> {
        let options = ptx::Options { fuel: FUEL, ..Default::default() };
        let report = self.prepared.ptx_report(&self.case, options).expect("the oracle has run it")?;
        report.findings.first().map(|finding| finding.check)
    }

    /// What is marked in the source of the kernel, and of the functions that it calls.
    fn marks(&self) -> BTreeSet<Told> {
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

fn told(finding: &Finding) -> Told {
    (finding.check.to_string(), finding.place.file.clone(), finding.place.line)
}

fn at(finding: &Finding) -> (String, u32) {
    (finding.place.file.clone(), finding.place.line)
}

/// The file and the line.
fn place(kernel: &ir::Kernel, location: ir::Location) -> (String, u32) {
    let at = kernel.locations[location.0 as usize];
    let source = &kernel.sources[at.source as usize];
    (source.file.clone(), source.line + u32::from(at.span.line))
}

fn bugs() -> impl Iterator<Item = &'static Bug> {
    ZOO.iter().copied().flatten()
}

#[test]
fn each_bug_is_told_where_it_is_and_nothing_else() {
    let mut wrong = Vec::new();
    for bug in bugs() {
        let specimen = bug.specimen(false);
        let report = specimen.report();
        let found = specimen.told(&report);
        let marks = specimen.marks();
        let is_told = match bug.class {
            Class::Order(argument) => specimen.depends_on_order(None) && !specimen.depends_on_order(Some(argument)),
            class => found.iter().any(|(told, ..)| *told == class.to_string()),
        };
        if found != marks || !is_told {
            let list = |told: &BTreeSet<Told>| {
                told.iter().map(|(check, _, line)| format!("{check} at {line}")).collect::<Vec<_>>().join(", ")
            };
            let (name, marks, found) = (bug.artifact.name, list(&marks), list(&found));
            wrong.push(format!("{name}: marked {marks}; told {found}\n{report}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn races_are_told_in_other_orders_too() {
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

/// No access that goes out of bounds is proved not to.
#[test]
fn no_proof_is_of_what_goes_out_of_bounds() {
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
        let sites = Reach::of(&program, &kernel).sites;
        for beyond in &beyond {
            let here = |site: &&Site| place(&kernel, site.location) == *beyond;
            let open = sites.iter().filter(here).filter(|site| site.proof.is_none()).count();
            unproved += open;
            assert!(open > 0, "{}: what goes out of bounds in line {} is proved", bug.artifact.name, beyond.1);
        }
    }
    assert!(unproved >= 16, "{unproved}");
}

#[test]
fn nothing_is_told_of_their_twins() {
    let mut wrong = Vec::new();
    for bug in bugs() {
        let twin = bug.specimen(true);
        let report = twin.report();
        let told = twin.told(&report);
        if !told.is_empty() {
            wrong.push(format!("{}: {told:?}\n{report}", bug.artifact.name));
        }
        if matches!(bug.class, Class::Order(_)) && twin.depends_on_order(None) {
            wrong.push(format!("{}: another order shows", bug.artifact.name));
        }
        if let Some(check) = twin.told_by_ptx() {
            wrong.push(format!("{}: the interpreter of PTX tells {check}", bug.artifact.name));
        }
        if twin.told_by_checked_form() {
            wrong.push(format!("{}: the checked form reports", bug.artifact.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_does_not_compile_is_told_where_it_is() {
    let untold: Vec<_> = refused::all().into_iter().filter(|bug| bug.code.is_none()).collect();
    assert!(untold.is_empty(), "rustc says nothing there: {untold:?}");
}

#[test]
fn the_page_lists_them() {
    page::check();
}

#[test]
fn the_comparison_has_every_class() {
    page::compared();
}
