//! A kernel's cases, and what becomes of its mutants on them.

use super::mutate::{Mutation, location, mutant};
use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::{Instance, monomorphic, serial};
use kernel_dsl::compiler::{analyses, emit, ir, passes};
use runtime::interpreter::{Check, CheckSet, Options, Schedule};
use runtime::testing::{Case, Expected, Oracle, Prepared, Random, Subject, Trial};
use std::fmt;

/// What a mutant is caught by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Caught {
    /// A check of the oracle.
    Check(Check),
    /// The IR is not valid, or not what the interpreter runs, or asks of a launch what that does not have.
    Verifier,
    /// What it leaves is not what it should be.
    Reference,
    /// What it leaves depends on the order of blocks and warps.
    Order,
}

impl fmt::Display for Caught {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Caught::Check(check) => check.fmt(f),
            Caught::Verifier => f.write_str("the verifier"),
            Caught::Reference => f.write_str("the reference"),
            Caught::Order => f.write_str("another order"),
        }
    }
}

/// What becomes of a mutant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fate {
    /// Something notices it.
    Caught(Caught),
    /// It is compiled to the same PTX: nothing has changed.
    Same,
    /// Nothing notices it.
    Survives,
}

/// A case, what should come of it, and how long the kernel takes for it.
struct Tried {
    case: Case,
    expected: Vec<Expected>,
    /// Warp instructions.
    cost: u64,
}

/// A kernel and its cases.
pub struct Bench {
    pub kernel: ir::Kernel,
    prepared: Prepared,
    cases: Vec<Tried>,
    /// Checks that warn of the kernel itself.
    without: CheckSet,
    /// Its PTX.
    code: Option<String>,
}

/// What is compiled of it.
fn code(kernel: &ir::Kernel) -> Option<String> {
    let optimised = passes::optimise(kernel.clone()).ok()?;
    emit::emit(&optimised).ok().map(|module| module.to_string())
}

impl Bench {
    /// Lowers the instance, and runs all its cases once.
    pub fn new(subject: &Subject, artifact: &'static Artifact, instance: &Instance) -> Bench {
        let name = instance.name(artifact.name);
        let program = serial::program(artifact.hir).expect("the kernel's own HIR");
        let program = monomorphic(&program, instance).expect("a declared instance");
        let kernel = analyses::lowered_monomorphic(&program, artifact.target).expect("a declared instance");
        let prepared = Prepared::compile(artifact, instance).expect("a declared instance");
        let (mut cases, mut warned) = (Vec::new(), Vec::new());
        {
            let oracle = Oracle::new(&prepared, &kernel).expect("lowered IR is valid");
            for case in (subject.cases)(instance, &mut Random::new(1)).iter().flat_map(|case| prepared.sized(case)) {
                let expected = (subject.reference)(instance, &case.inputs);
                let trial = oracle.run(&case, Options::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
                if let Some(outcome) = &trial.outcome {
                    assert!(outcome.report.errors().next().is_none(), "{name}, {}: {}", case.name, outcome.report);
                    warned.extend(outcome.report.warnings().map(|finding| finding.check));
                }
                if let Some(failure) = oracle.wrong(&case, &trial, &expected) {
                    panic!("{name}, {}: {failure}", case.name);
                }
                cases.push(Tried { case, expected, cost: trial.statistics().warp_instructions });
            }
        }
        cases.sort_by_key(|tried| tried.cost);
        let code = code(&kernel);
        Bench { kernel, prepared, cases, without: warned.into_iter().collect(), code }
    }

    /// The function that is changed, and its line.
    pub fn site(&self, mutation: &Mutation) -> String {
        let location = location(&self.kernel, mutation);
        let place = self.kernel.locations.get(location.0 as usize);
        let source = place.and_then(|place| Some((self.kernel.sources.get(place.source as usize)?, place.span)));
        source.map_or_else(String::new, |(source, span)| {
            format!("{}: {}", source.name, source.line_code(span.line.into()))
        })
    }

    /// What becomes of the mutant.
    pub fn fate(&self, mutation: &Mutation) -> Fate {
        let kernel = mutant(&self.kernel, mutation);
        if ir::verify::verify(&kernel).is_err() {
            return Fate::Caught(Caught::Verifier);
        }
        let Ok(oracle) = Oracle::new(&self.prepared, &kernel) else { return Fate::Caught(Caught::Verifier) };
        match self.cases.iter().find_map(|tried| self.caught(&oracle, tried)) {
            Some(caught) => Fate::Caught(caught),
            None if code(&kernel).is_some_and(|code| Some(code) == self.code) => Fate::Same,
            None => Fate::Survives,
        }
    }

    fn caught(&self, oracle: &Oracle, tried: &Tried) -> Option<Caught> {
        let run = |schedule| {
            let options = Options {
                // Enough for a loop that runs once more, a tile that is a little longer.
                fuel: 3 * tried.cost + 2_000,
                limit: 1,
                schedule,
                without: self.without,
                ..Default::default()
            };
            oracle.run(&tried.case, options)
        };
        let found = |trial: &Trial| Some(trial.outcome.as_ref()?.report.findings.first()?.check);
        let Ok(trial) = run(Schedule::InOrder) else { return Some(Caught::Verifier) };
        if let Some(check) = found(&trial) {
            return Some(Caught::Check(check));
        }
        if oracle.wrong(&tried.case, &trial, &tried.expected).is_some() {
            return Some(Caught::Reference);
        }
        if !oracle.has_atomics() {
            return None;
        }
        [Schedule::Reversed, Schedule::Seeded(1)].into_iter().find_map(|schedule| {
            let Ok(other) = run(schedule) else { return Some(Caught::Verifier) };
            match found(&other) {
                Some(check) => Some(Caught::Check(check)),
                None => oracle.differ(&tried.case, &trial, &other).then_some(Caught::Order),
            }
        })
    }
}
