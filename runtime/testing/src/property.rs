//! A property of a kernel, tested on many random cases, and the smallest counterexample.

use super::check::{Checker, FailedCase, PreparedInstance, ReferenceImplementation};
use super::compare::Expected;
use super::generate::{FixedDraws, Gen};
use super::shrink::{Failing, Shrink};
use super::{Case, Failure, Input, Random};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::{Artifact, Kernel};
use runtime_oracle::Report;
use std::fmt;

/// The default number of cases for a property.
const DEFAULT_CASES: usize = 48;

/// A property of a kernel, created by [`property`]: all executors agree, the oracle finds no
/// errors, and the result matches a reference.
///
/// ```
/// use kernel_dsl::prelude::*;
/// use runtime::testing::{self, Expected};
///
/// /// x ← x + 1, except for element 36.
/// #[kernel(block = 64, grid = x.len().div_ceil(64))]
/// fn increment(x: &mut [u32]) {
///     let i = grid::index();
///     if i < x.len() && i != 36 {
///         x[i] = x[i].wrapping_add(1);
///     }
/// }
///
/// let found = testing::property::<increment>()
///     .cases(|g| {
///         let n = g.size("n", 64);
///         [g.slice::<u32>(n)]
///     })
///     .reference(|inputs| vec![Expected::exact(0, inputs[0].to_vec::<u32>().into_iter().map(|x| x.wrapping_add(1)))])
///     .run()
///     .expect_err("element 36 is forgotten");
/// assert_eq!(found.case.name, "n = 37");
/// assert_eq!(found.case.inputs[0].to_vec::<u32>(), [0; 37]);
/// ```
pub struct Property<'a> {
    kernel: Tested,
    cases: Box<dyn Fn(&mut Gen) -> Case + 'a>,
    reference: Option<Box<ReferenceImplementation<'a>>>,
    checker: Checker,
    warnings_denied: bool,
    seed: u64,
    count: usize,
    replay: Option<u64>,
}

/// A kernel instance under test.
#[derive(Clone, Debug)]
pub struct Tested {
    artifact: &'static Artifact,
    instance: Instance,
}

/// The smallest case found for which a property fails.
#[derive(Clone, PartialEq, Debug)]
pub struct Counterexample {
    /// The name of the instance, in Rust syntax.
    pub instance: String,
    /// The smallest case, named after its sizes.
    pub case: Case,
    /// The failure of the smallest case.
    pub failure: Failure,
    /// The oracle's warnings for the smallest case. For a wrong result they include the origins of
    /// NaNs and infinities.
    pub warnings: Vec<Report>,
    /// The name of the case that failed first.
    pub first: String,
    /// The argument of [`Property::replay`] that reproduces the counterexample.
    pub seed: u64,
    /// The number of cases tried while shrinking.
    pub trials: usize,
    /// The names of the parameters.
    parameters: Vec<String>,
}

/// Selects the kernel for the test of a property. A generic kernel needs an instance, such as
/// `property::<matmul<16>>()`.
pub fn property<K: Kernel>() -> Tested {
    Tested::new(K::ARTIFACT, Instance(K::CONSTANTS.to_vec()))
}

impl Tested {
    /// Selects an instance that has no type in the program.
    pub fn new(artifact: &'static Artifact, instance: Instance) -> Tested {
        Tested { artifact, instance }
    }

    /// Sets the generator of cases: `cases` makes one case from random draws. A case without a name
    /// is named after its sizes.
    pub fn cases<'a, C: Into<Case>>(self, cases: impl Fn(&mut Gen) -> C + 'a) -> Property<'a> {
        Property {
            kernel: self,
            cases: Box::new(move |draws| cases(draws).into()),
            reference: None,
            checker: Checker::new(None),
            warnings_denied: false,
            seed: 1,
            count: DEFAULT_CASES,
            replay: None,
        }
    }
}

impl<'a> Property<'a> {
    /// Sets the reference: the expected contents of each argument that the kernel writes. Without a
    /// reference, the executors are only compared with each other.
    pub fn reference(self, reference: impl Fn(&[Input]) -> Vec<Expected> + 'a) -> Property<'a> {
        Property { reference: Some(Box::new(reference)), ..self }
    }

    /// Sets the checker. The default runs on all executors except a GPU.
    pub fn checker(self, checker: Checker) -> Property<'a> {
        Property { checker, ..self }
    }

    /// Treats a warning of the oracle as a failure, as [`Checker::with_warnings_denied`] does.
    /// Examples are races within a warp that lockstep hides, integer overflow, and shifts by too
    /// many bits.
    pub fn deny_warnings(self) -> Property<'a> {
        Property { warnings_denied: true, ..self }
    }

    /// Sets the seed of the cases; the default is 1. One seed always gives the same cases.
    pub fn seed(self, seed: u64) -> Property<'a> {
        Property { seed, ..self }
    }

    /// Sets the number of cases; the default is 48.
    pub fn count(self, count: usize) -> Property<'a> {
        Property { count, ..self }
    }

    /// Runs only the case of a [`Counterexample::seed`], and finds the same smallest case.
    pub fn replay(self, seed: u64) -> Property<'a> {
        Property { replay: Some(seed), ..self }
    }

    /// Runs the cases, for use in tests.
    ///
    /// # Panics
    /// If the property fails, with the smallest counterexample; and if the instance does not
    /// compile.
    #[track_caller]
    pub fn check(self) {
        if let Err(found) = self.run() {
            panic!("{found}");
        }
    }

    /// Runs the cases.
    ///
    /// # Errors
    /// Returns the smallest case for which the property fails.
    ///
    /// # Panics
    /// If the instance does not compile.
    #[track_caller]
    pub fn run(mut self) -> Result<(), Box<Counterexample>> {
        if self.warnings_denied {
            self.checker = self.checker.with_warnings_denied();
        }
        let Tested { artifact, instance } = &self.kernel;
        let prepared = PreparedInstance::compile(artifact, instance).unwrap_or_else(|error| panic!("{error}"));
        let mut seeds = Random::new(self.seed);
        let seeds: Vec<_> = match self.replay {
            Some(seed) => vec![seed],
            None => (0..self.count).map(|_| seeds.bits()).collect(),
        };
        seeds.into_iter().try_for_each(|seed| self.run_seed(&prepared, seed))
    }

    /// Runs the case of one seed, and shrinks it if it fails.
    fn run_seed(&self, prepared: &PreparedInstance, seed: u64) -> Result<(), Box<Counterexample>> {
        let draw = |plan: FixedDraws| {
            let mut drawn = Gen::new(seed, plan);
            let mut case = (self.cases)(&mut drawn);
            if case.name.is_empty() {
                case.name = drawn.name();
            }
            (drawn, case)
        };
        let run = |case: Case| self.checker.first_failure(prepared, &case, self.reference.as_deref());
        let plan = FixedDraws::default();
        let (drawn, case) = draw(plan.clone());
        let Err(failed) = run(case) else { return Ok(()) };
        let first = failed.case.name.clone();
        let (Failing { failed, .. }, trials) = Shrink::from(Failing { plan, drawn, failed: *failed }, draw, run);
        let FailedCase { case, failure, warnings } = failed;
        let instance = self.kernel.artifact.instance_name(&self.kernel.instance.0);
        let parameters = prepared.names().to_vec();
        Err(Box::new(Counterexample { instance, case, failure, warnings, first, seed, trials, parameters }))
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counterexample { instance, case, failure, warnings, first, seed, trials, parameters } = self;
        writeln!(f, "{instance} fails where {}:", case.name)?;
        writeln!(f, "{}", failure.with(warnings).trim_end())?;
        for (i, input) in case.inputs.iter().enumerate() {
            let name = parameters.get(i).map_or("?", String::as_str);
            writeln!(f, "  {name}: {input}")?;
        }
        match trials {
            0 => writeln!(f, "shrinking found no smaller case to try")?,
            1 => writeln!(f, "the smallest failing case of 1 case tried after the first failure, where {first}")?,
            _ => {
                writeln!(f, "the smallest failing case of {trials} cases tried after the first failure, where {first}")?
            }
        }
        write!(f, "to run it alone: `.replay({seed:#x})` before `.check()`")
    }
}
