//! The cases of a kernel, and the results of its mutants on them.

use super::mutate::{Mutation, location, mutant};
use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::{driver, emit, ir, passes};
use runtime::interpreter::{Check, CheckSet, Options, Schedule};
use runtime::testing::{Case, Expected, KernelSpec, Oracle, OracleRun, PreparedInstance, Random};
use std::cmp::Ordering;
use std::fmt;

/// The first detection of a mutant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Caught {
    /// A check of the oracle.
    Check(Check),
    /// The IR is invalid, is not supported by the interpreter, or does not fit the launch.
    Verifier,
    /// The outputs differ from the reference.
    Reference,
    /// The outputs depend on the order of blocks and warps.
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

/// The result of a mutant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fate {
    /// The mutant is detected.
    Caught(Caught),
    /// The mutant is not detected, and the compiler generates the kernel's own PTX from it.
    Identical,
    /// The mutant is not detected.
    Survives(Beside),
}

/// A survivor compared with the kernel, on all cases.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Beside {
    /// The comparison of the numbers of instructions, counted for each active lane.
    pub work: Ordering,
    /// Whether the survivor's outputs are bit-identical to the kernel's.
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

/// A case, its expected outputs, and the kernel's own run.
struct TriedCase {
    case: Case,
    expected: Vec<Expected>,
    run: OracleRun,
}

impl TriedCase {
    /// Returns the number of warp instructions of the kernel.
    fn cost(&self) -> u64 {
        self.run.statistics().warp_instructions
    }
}

/// A kernel and its cases.
pub struct Bench {
    pub kernel: ir::Kernel,
    prepared: PreparedInstance,
    cases: Vec<TriedCase>,
    /// Checks that warn about the kernel itself.
    without: CheckSet,
    ptx: Option<String>,
}

/// Returns the lowered kernel of an instance.
pub fn lowered(artifact: &Artifact, instance: &Instance) -> ir::Kernel {
    let program = artifact.program().expect("the kernel's own HIR");
    driver::lowered(&program, instance, artifact.target).expect("a declared instance").into()
}

/// Compiles a kernel to PTX.
fn ptx(kernel: &ir::Kernel) -> Option<String> {
    let optimized = passes::optimize(kernel.clone()).ok()?;
    emit::emit(&optimized).ok().map(|module| module.to_string())
}

impl Bench {
    /// Lowers the instance, and runs all its cases once.
    pub fn new(spec: &KernelSpec, artifact: &'static Artifact, instance: &Instance) -> Bench {
        let name = instance.name(artifact.name);
        let kernel = lowered(artifact, instance);
        let prepared = PreparedInstance::compile(artifact, instance).expect("a declared instance");
        let (mut cases, mut warned) = (Vec::new(), Vec::new());
        {
            let oracle = Oracle::new(&prepared, &kernel).expect("lowered IR is valid");
            for case in (spec.cases)(instance, &mut Random::new(1)).iter().flat_map(|case| prepared.sized(case)) {
                let expected = (spec.reference)(instance, &case.inputs);
                let run = oracle.run(&case, Options::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
                if let Some(outcome) = &run.outcome {
                    assert!(outcome.report.errors().next().is_none(), "{name}, {}: {}", case.name, outcome.report);
                    warned.extend(outcome.report.warnings().map(|finding| finding.check));
                }
                if let Some(failure) = oracle.wrong(&case, &run, &expected) {
                    panic!("{name}, {}: {failure}", case.name);
                }
                cases.push(TriedCase { case, expected, run });
            }
        }
        cases.sort_by_key(TriedCase::cost);
        let without = warned.into_iter().collect();
        let ptx = ptx(&kernel);
        Bench { kernel, prepared, cases, without, ptx }
    }

    /// Returns the changed function and its line.
    pub fn site(&self, mutation: &Mutation) -> String {
        let location = location(&self.kernel, mutation);
        let place = self.kernel.locations.get(location.0 as usize);
        let source = place.and_then(|place| Some((self.kernel.sources.get(place.source as usize)?, place.span)));
        source.map_or_else(String::new, |(source, span)| {
            format!("{}: {}", source.name, source.line_code(span.line.into()))
        })
    }

    /// Returns the result of a mutant. A mutant with different outputs must not have the kernel's
    /// PTX. `keenest` is the case that detected the last mutant, and runs first, because it often
    /// detects the next one too.
    pub fn fate(&self, mutation: &Mutation, keenest: &mut usize) -> Fate {
        let kernel = mutant(&self.kernel, mutation);
        let fate = self.fate_of(&kernel, keenest);
        // The PTX of a mutant that another order detects has already been compared.
        if fate == Fate::Caught(Caught::Reference) && self.is_identical(&kernel) {
            panic!("{}: {} is caught by the reference, with equal PTX", self.site(mutation), mutation.change);
        }
        fate
    }

    /// Returns whether the compiler generates the kernel's own PTX from a mutant.
    fn is_identical(&self, mutant: &ir::Kernel) -> bool {
        self.ptx.is_some() && self.ptx == ptx(mutant)
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
                Ok(run) => trials.push((tried, run)),
                Err(caught) => {
                    *keenest = i;
                    return Fate::Caught(caught);
                }
            }
        }
        if self.is_identical(kernel) {
            return Fate::Identical;
        }
        let (mut more, mut bits) = (0, true);
        for (tried, run) in &trials {
            if let Err(caught) = self.in_other_orders(&oracle, tried, run) {
                return Fate::Caught(caught);
            }
            let own = !oracle.differ(&tried.case, &tried.expected, run, &tried.run);
            if !own
                && let Err(caught) = self.run(&oracle, tried, Options { without: self.without, ..Default::default() })
            {
                return Fate::Caught(caught);
            }
            let work = |run: &OracleRun| run.statistics().thread_instructions as i64;
            more += work(run) - work(&tried.run);
            bits &= own;
        }
        Fate::Survives(Beside { work: more.cmp(&0), bits })
    }

    /// Runs a case, and returns the outputs of the mutant or its detection.
    fn trial(&self, oracle: &Oracle, tried: &TriedCase) -> Result<OracleRun, Caught> {
        let run = self.run(oracle, tried, Options { without: self.without_origins(), ..Default::default() })?;
        match oracle.wrong(&tried.case, &run, &tried.expected) {
            Some(_) => Err(Caught::Reference),
            None => Ok(run),
        }
    }

    /// Runs a case in other orders of blocks, warps and lanes, and returns whether the outputs
    /// differ from `run`.
    fn in_other_orders(&self, oracle: &Oracle, tried: &TriedCase, run: &OracleRun) -> Result<(), Caught> {
        let orders: &[Schedule] = if oracle.has_atomics() { &[Schedule::Reversed, Schedule::Seeded(1)] } else { &[] };
        for schedule in orders {
            let options = Options { without: self.without_origins(), schedule: *schedule, ..Default::default() };
            if oracle.differ(&tried.case, &tried.expected, run, &self.run(oracle, tried, options)?) {
                return Err(Caught::Order);
            }
        }
        Ok(())
    }

    /// Returns the checks that are disabled at first. Following NaNs and infinities is several
    /// times slower than all other checks, and is enabled where the outputs differ from the
    /// kernel's.
    fn without_origins(&self) -> CheckSet {
        self.without.union(Check::ORIGINS.into_iter().collect())
    }

    /// Runs a case with options, and returns the outputs of the mutant or the check that detects
    /// it.
    fn run(&self, oracle: &Oracle, tried: &TriedCase, options: Options) -> Result<OracleRun, Caught> {
        // The fuel suffices for an additional iteration of a loop, or a slightly longer tile.
        let options = Options { fuel: 3 * tried.cost() + 2_000, limit: 1, ..options };
        let Ok(run) = oracle.run(&tried.case, options) else { return Err(Caught::Verifier) };
        match run.outcome.as_ref().and_then(|outcome| outcome.report.findings.first()) {
            Some(finding) => Err(Caught::Check(finding.check)),
            None => Ok(run),
        }
    }
}
