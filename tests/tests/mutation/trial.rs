//! A kernel's cases, and what becomes of its mutants on them.

use super::mutate::{Mutation, location, mutant};
use super::proof::{Proof, Prover};
use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::{Instance, Monomorphic, monomorphic};
use kernel_dsl::compiler::{driver, ir};
use runtime::interpreter::{Check, CheckSet, Options, Schedule};
use runtime::testing::{Case, Expected, KernelSpec, Oracle, Prepared, Random, Trial};
use std::cmp::Ordering;
use std::fmt;
use std::sync::{Mutex, PoisonError};

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
    /// Nothing notices it, and it is proved to do what the kernel does in every launch: it is no mutant.
    Same(Proof),
    /// Nothing notices it.
    Survives(Beside),
}

/// A survivor beside the kernel, on all cases.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Beside {
    /// Its instructions, each counted once an active lane.
    pub work: Ordering,
    /// Whether it leaves the kernel's own bits.
    pub bits: bool,
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.work {
            Ordering::Less => f.write_str(" with less work")?,
            Ordering::Equal => {}
            Ordering::Greater => f.write_str(" with more work")?,
        }
        if self.bits { Ok(()) } else { f.write_str(" with other bits") }
    }
}

/// A case, what should come of it, and what the kernel itself does on it.
struct Tried {
    case: Case,
    expected: Vec<Expected>,
    trial: Trial,
}

impl Tried {
    /// Warp instructions that the kernel takes.
    fn cost(&self) -> u64 {
        self.trial.statistics().warp_instructions
    }
}

/// A kernel and its cases.
pub struct Bench {
    pub kernel: ir::Kernel,
    prepared: Prepared,
    cases: Vec<Tried>,
    /// Checks that warn of the kernel itself.
    without: CheckSet,
    program: Monomorphic,
    /// Those that nobody uses now: as many as have been wanted at once.
    provers: Mutex<Vec<Prover>>,
}

/// An instance, and what it is lowered to.
pub fn lowered(artifact: &Artifact, instance: &Instance) -> (Monomorphic, ir::Kernel) {
    let program = artifact.program().expect("the kernel's own HIR");
    let program = monomorphic(&program, instance).expect("a declared instance");
    let kernel = driver::lowered_monomorphic(&program, artifact.target).expect("a declared instance");
    (program, kernel)
}

impl Bench {
    /// Lowers the instance, and runs all its cases once.
    pub fn new(spec: &KernelSpec, artifact: &'static Artifact, instance: &Instance) -> Bench {
        let name = instance.name(artifact.name);
        let (program, kernel) = lowered(artifact, instance);
        let prepared = Prepared::compile(artifact, instance).expect("a declared instance");
        let (mut cases, mut warned) = (Vec::new(), Vec::new());
        {
            let oracle = Oracle::new(&prepared, &kernel).expect("lowered IR is valid");
            for case in (spec.cases)(instance, &mut Random::new(1)).iter().flat_map(|case| prepared.sized(case)) {
                let expected = (spec.reference)(instance, &case.inputs);
                let trial = oracle.run(&case, Options::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
                if let Some(outcome) = &trial.outcome {
                    assert!(outcome.report.errors().next().is_none(), "{name}, {}: {}", case.name, outcome.report);
                    warned.extend(outcome.report.warnings().map(|finding| finding.check));
                }
                if let Some(failure) = oracle.wrong(&case, &trial, &expected) {
                    panic!("{name}, {}: {failure}", case.name);
                }
                cases.push(Tried { case, expected, trial });
            }
        }
        cases.sort_by_key(Tried::cost);
        let without = warned.into_iter().collect();
        Bench { kernel, prepared, cases, without, program, provers: Mutex::default() }
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

    /// What becomes of the mutant. What leaves something else must not be proved to do the same. `keenest` is the case that noticed the last one: often
    /// it notices the next one too, and is tried first.
    pub fn fate(&self, mutation: &Mutation, keenest: &mut usize) -> Fate {
        let kernel = mutant(&self.kernel, mutation);
        let fate = self.fate_of(&kernel, keenest);
        // What another order tells has been given to the prover before.
        if fate == Fate::Caught(Caught::Reference)
            && let Some(proof) = self.proof(&kernel)
        {
            panic!("{}: {} is caught by the reference, and proved: {proof}", self.site(mutation), mutation.change);
        }
        fate
    }

    /// By what a mutant is proved to be none, if it is.
    fn proof(&self, mutant: &ir::Kernel) -> Option<Proof> {
        let idle = || self.provers.lock().unwrap_or_else(PoisonError::into_inner);
        let prover = idle().pop();
        let prover = prover.unwrap_or_else(|| Prover::new(&self.program, &self.kernel));
        let proof = prover.proof(mutant);
        idle().push(prover);
        proof
    }

    fn fate_of(&self, kernel: &ir::Kernel, keenest: &mut usize) -> Fate {
        if ir::verify::verify(kernel).is_err() {
            return Fate::Caught(Caught::Verifier);
        }
        let Ok(oracle) = Oracle::new(&self.prepared, kernel) else { return Fate::Caught(Caught::Verifier) };
        let first = *keenest;
        let mut trials = Vec::new();
        for i in [first].into_iter().chain((0..self.cases.len()).filter(|i| *i != first)) {
            let tried = &self.cases[i];
            match self.trial(&oracle, tried) {
                Ok(trial) => trials.push((tried, trial)),
                Err(caught) => {
                    *keenest = i;
                    return Fate::Caught(caught);
                }
            }
        }
        if let Some(proof) = self.proof(kernel) {
            return Fate::Same(proof);
        }
        let (mut more, mut bits) = (0, true);
        for (tried, trial) in &trials {
            if let Err(caught) = self.in_other_orders(&oracle, tried, trial) {
                return Fate::Caught(caught);
            }
            let own = !oracle.differ(&tried.case, trial, &tried.trial);
            if !own
                && let Err(caught) = self.run(&oracle, tried, Options { without: self.without, ..Default::default() })
            {
                return Fate::Caught(caught);
            }
            let work = |trial: &Trial| trial.statistics().thread_instructions as i64;
            more += work(trial) - work(&tried.trial);
            bits &= own;
        }
        Fate::Survives(Beside { work: more.cmp(&0), bits })
    }

    /// What the mutant leaves of a case, or what it is caught by.
    fn trial(&self, oracle: &Oracle, tried: &Tried) -> Result<Trial, Caught> {
        let trial = self.run(oracle, tried, Options { without: self.without_origins(), ..Default::default() })?;
        match oracle.wrong(&tried.case, &trial, &tried.expected) {
            Some(_) => Err(Caught::Reference),
            None => Ok(trial),
        }
    }

    /// By what else a mutant that leaves `trial` of a case is caught: by what it leaves when blocks, warps and lanes run in other orders.
    fn in_other_orders(&self, oracle: &Oracle, tried: &Tried, trial: &Trial) -> Result<(), Caught> {
        let orders: &[Schedule] = if oracle.has_atomics() { &[Schedule::Reversed, Schedule::Seeded(1)] } else { &[] };
        for schedule in orders {
            let options = Options { without: self.without_origins(), schedule: *schedule, ..Default::default() };
            if oracle.differ(&tried.case, trial, &self.run(oracle, tried, options)?) {
                return Err(Caught::Order);
            }
        }
        Ok(())
    }

    /// Checks that are left out at first: where NaNs and infinities come from takes several times as long as all else, and is asked where the kernel's own
    /// bits are not what a mutant leaves.
    fn without_origins(&self) -> CheckSet {
        self.without.and(Check::ORIGINS.into_iter().collect())
    }

    /// What the mutant leaves of a case, or the check that it is caught by.
    fn run(&self, oracle: &Oracle, tried: &Tried, options: Options) -> Result<Trial, Caught> {
        // Enough for a loop that runs once more, a tile that is a little longer.
        let options = Options { fuel: 3 * tried.cost() + 2_000, limit: 1, ..options };
        let Ok(trial) = oracle.run(&tried.case, options) else { return Err(Caught::Verifier) };
        match trial.outcome.as_ref().and_then(|outcome| outcome.report.findings.first()) {
            Some(finding) => Err(Caught::Check(finding.check)),
            None => Ok(trial),
        }
    }
}
