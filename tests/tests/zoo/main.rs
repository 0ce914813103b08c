//! A zoo of bugs: kernels with one mistake each, each beside its mended twin, and what the oracle says of both.
//!
//! A kernel here is two instances: `MENDED = false` has the mistake that its documentation names, `MENDED = true` has not. The line
//! at which the oracle is to report it is marked in the source, `//~ out-of-bounds`, or below it, `//~^ loop-step`; of a race, one of its two sides is
//! marked, the one that comes second when blocks and warps run in order. The oracle must report what is marked, nothing else, and nothing
//! at all of the twin. `README.md` here is the list; `UPDATE=1 cargo test -p tests --test zoo` writes it anew.

mod alignment;
mod arithmetic;
mod bare;
mod barriers;
mod bounds;
mod conflicts;
mod global_races;
mod initialisation;
mod loops;
mod page;
mod results;
mod shared_races;
mod warp_races;
mod warps;

use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::{Constant, Instance, monomorphic, serial};
use kernel_dsl::compiler::{analyses, ir};
use runtime::interpreter::{Check, Finding, Options, Report};
use runtime::ptx;
use runtime::testing::{Case, Input, Oracle, Prepared};
use std::collections::BTreeSet;

/// A bug in a kernel, which has the constant `MENDED` alone.
pub struct Bug {
    artifact: &'static Artifact,
    /// The check that is about it. Others may report what follows from it, where that is marked.
    check: Check,
    inputs: fn() -> Vec<Input>,
}

/// A row: the kernel, the check that reports it, and its arguments.
#[macro_export]
macro_rules! bug {
    ($kernel:ident, $check:ident, [$($input:expr),* $(,)?]) => {
        $crate::Bug {
            artifact: <$kernel<false> as kernel_dsl::Kernel>::ARTIFACT,
            check: runtime::interpreter::Check::$check,
            inputs: || vec![$($input),*],
        }
    };
}

/// Every bug, by class.
const ZOO: &[&[Bug]] = &[
    bounds::BUGS,
    alignment::BUGS,
    initialisation::BUGS,
    shared_races::BUGS,
    warp_races::BUGS,
    global_races::BUGS,
    conflicts::BUGS,
    barriers::BUGS,
    warps::BUGS,
    arithmetic::BUGS,
    loops::BUGS,
    results::BUGS,
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

/// A check, and a line of a file.
type Told = (Check, String, u32);

/// One of the two instances of a kernel, with its launch.
struct Specimen {
    prepared: Prepared,
    lowered: ir::Kernel,
    case: Case,
}

impl Bug {
    fn specimen(&self, mended: bool) -> Specimen {
        let instance = Instance(vec![Constant::Bool(mended)]);
        let program = serial::program(self.artifact.hir).expect("the kernel's own HIR");
        let program = monomorphic(&program, &instance).expect("a declared instance");
        let lowered = analyses::lowered_monomorphic(&program, self.artifact.target).expect("a declared instance");
        let prepared = Prepared::compile(self.artifact, &instance).expect("a declared instance");
        Specimen { prepared, lowered, case: Case::new(self.artifact.name, (self.inputs)()) }
    }

    /// The first line of the kernel's documentation.
    fn title(&self) -> &'static str {
        self.artifact.docs.lines().next().unwrap_or_default().trim()
    }
}

impl Specimen {
    fn report(&self) -> Report {
        let oracle = Oracle::new(&self.prepared, &self.lowered).expect("lowered IR is valid");
        let trial = oracle.run(&self.case, options()).unwrap_or_else(|e| panic!("{}: {e}", self.case.name));
        trial.outcome.expect("a grid that is not empty").report
    }

    /// Whether the form that runs on a GPU tells of it.
    fn told_by_checked_form(&self) -> bool {
        self.prepared.checked_form(&self.case, options()).expect("the oracle has run it").is_some()
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
                for check in mark.split(',') {
                    let check = check.trim().parse().unwrap_or_else(|e| panic!("{}: {e}", self.case.name));
                    all.insert((check, source.file.clone(), source.line + offset as u32 - above));
                }
            }
        }
        all
    }
}

fn options() -> Options {
    Options { fuel: FUEL, cancellation: Some(1e-3), notes: true, ..Default::default() }
}

fn told(finding: &Finding) -> Told {
    (finding.check, finding.place.file.clone(), finding.place.line)
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
        let found: BTreeSet<Told> = report.findings.iter().map(told).collect();
        let marks = specimen.marks();
        if found != marks || !found.iter().any(|(check, ..)| *check == bug.check) {
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
fn nothing_is_told_of_their_twins() {
    let mut wrong = Vec::new();
    for bug in bugs() {
        let twin = bug.specimen(true);
        let report = twin.report();
        if !report.findings.is_empty() {
            wrong.push(format!("{}: {report}", bug.artifact.name));
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
fn the_page_lists_them() {
    page::check();
}
