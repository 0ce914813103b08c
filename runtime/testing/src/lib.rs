//! Tests that run one kernel on every executor and check that the results agree.
//!
//! A [`KernelSpec`] describes how to test a kernel: its arguments ([`Case`]s of type-erased
//! [`Input`]s) and the expected results. [`Checker::check`] runs an instance on these executors:
//!
//! - the interpreter, on IR as lowered, on IR after all passes, and on the checked form,
//! - the PTX interpreter ([`runtime_ptx`]),
//! - a GPU, if there is one.
//!
//! The checker compares all outputs bit for bit; all NaNs are equal. The checker also compares the
//! outputs with a reference in plain Rust, within the reference's own error bound. A kernel with
//! atomic operations runs under other schedules too. The kernel's results must not depend on the
//! schedule, except where the case allows it ([`Case::with_order_dependent`]). [`InstanceReport`]
//! holds the results as data.
//!
//! [`property`] does all of this in one call of a test. The property draws cases, runs them, and
//! shrinks a failing case: first its sizes, then its values ([`Gen`], [`Counterexample`]). With the
//! feature `proptest`, `strategy` has proptest strategies for the same purpose. [`trace`] shows
//! what one thread of a case does. [`Profiler`] measures memory accesses.
//!
//! ```
//! use kernel_dsl::prelude::*;
//! use runtime::testing::{self, Expected};
//!
//! /// y ← x + 1
//! #[kernel(block = 64, grid = y.len().div_ceil(64))]
//! #[requires(x.len() == y.len())]
//! fn increment(x: &[u32], y: &mut [u32]) {
//!     let i = grid::index();
//!     if i < y.len() {
//!         y[i] = x[i].wrapping_add(1);
//!     }
//! }
//!
//! testing::property::<increment>()
//!     .cases(|g| {
//!         let n = g.size("n", 64);
//!         [g.slice::<u32>(n), g.slice::<u32>(n)]
//!     })
//!     .reference(|inputs| vec![Expected::exact(1, inputs[0].to_vec::<u32>().into_iter().map(|x| x.wrapping_add(1)))])
//!     .check();
//! ```
//!
//! [`edges`], [`shapes`], [`Random`] and [`Extreme`] make sizes and values. All are deterministic
//! by seed, so that a failure is reproducible. A kernel is registered for `kernels check` with
//! these functions:
//!
//! ```no_run
//! # use kernel_dsl::{Artifact, compiler::hir::Instance};
//! use runtime::testing::{Bound, Case, Checker, Expected, Input, Random, KernelSpec, edges};
//!
//! fn cases(_: &Instance, random: &mut Random) -> Vec<Case> {
//!     let case = |n| Case::new(format!("n = {n}"), [Input::scalar(2.0f32), Input::slice(&random.values::<f32>(n))]);
//!     edges(256).into_iter().map(case).collect()
//! }
//!
//! /// x ← a·x in f64; one rounding is half a unit in the last place, 2⁻²⁴ of the value.
//! fn reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
//!     let a = inputs[0].value();
//!     let x: Vec<_> = inputs[1].values().into_iter().map(|x| a * x).collect();
//!     vec![Expected::new(1, x, Bound::Relative(2f64.powi(-24)))]
//! }
//!
//! // runtime::register!(scale, cases, reference);   for `kernels check` to find it
//! # fn example(artifact: &'static Artifact) {
//! let spec = KernelSpec { artifact, cases, reference };
//! let report = Checker::new(None).check(&spec, &Instance::default(), 1);
//! assert!(report.passed(), "{report}");
//! # }
//! ```

mod caught;
mod check;
mod compare;
mod extremes;
mod generate;
mod input;
mod inspect;
mod lines;
mod log;
mod oracle;
mod parallel;
mod prepared_launch;
mod property;
#[doc(hidden)]
pub mod ptx;
mod random;
mod registry;
mod report;
mod shapes;
mod shrink;
mod signature;
#[cfg(feature = "proptest")]
pub mod strategy;
mod value;

/// Items that [`register!`] and [`register_bench!`] name. Not part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
    pub use kernel_dsl::Kernel;
}

#[doc(hidden)]
pub use caught::generated;
pub use check::{Checker, PreparedInstance};
pub use compare::{Bound, Contents, Expected, Judge};
pub use extremes::Extreme;
pub use generate::Gen;
pub use input::Input;
pub use inspect::{Profiler, TracedThread, trace, trace_of_program, unreached};
#[doc(hidden)]
pub use inspect::{launch, validated};
pub use oracle::{Oracle, OracleRun};
pub use parallel::on_every_core;
pub use prepared_launch::{FormTimes, RepeatedLaunch, prepared};
pub use property::{Counterexample, Property, Tested, property};
pub use random::{Draw, Random, Simple};
pub use registry::{BenchCases, bench_cases, kernel_specs};
pub use report::{
    CaseReport, Executor, ExecutorStop, Failure, FirstDifference, InstanceReport, Problem, Skipped, Warned,
};
#[doc(hidden)]
pub use runtime_devices::executor;
pub use shapes::{edges, shapes};
pub use value::{ElementValue, IntoValues};

use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::Instance;

/// The test of a kernel: its cases and their expected results. A library registers one for each of
/// its kernels.
#[derive(Clone, Copy, Debug)]
pub struct KernelSpec {
    /// The kernel.
    pub artifact: &'static Artifact,
    /// Generates the cases of an instance. All random choices must come from the given generator.
    pub cases: fn(&Instance, &mut Random) -> Vec<Case>,
    /// Computes the expected contents of each written argument from the inputs.
    pub reference: fn(&Instance, &[Input]) -> Vec<Expected>,
}

/// The arguments of one launch.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// A short description, such as the sizes.
    pub name: String,
    /// The arguments, one for each parameter of the kernel.
    pub inputs: Vec<Input>,
    /// The block size, if the kernel leaves it to the launch; `None` tries several sizes.
    pub block: Option<usize>,
    /// The indices of arguments whose values depend on the order of atomic operations, such as a
    /// sum of floats.
    pub order_dependent: Vec<usize>,
}

impl Case {
    /// Creates a case with the given name.
    pub fn new(name: impl Into<String>, inputs: impl Into<Vec<Input>>) -> Case {
        Case { name: name.into(), inputs: inputs.into(), block: None, order_dependent: Vec::new() }
    }

    /// Allows the contents of `argument` to depend on the order of atomic operations. Executors are
    /// then not compared with each other on that argument, only with the reference. Expected
    /// contents without an order, such as [`Expected::multiset`], imply this.
    pub fn with_order_dependent(mut self, argument: usize) -> Case {
        self.order_dependent.push(argument);
        self
    }

    /// Returns the number of values of all arguments.
    pub fn value_count(&self) -> usize {
        self.inputs.iter().map(Input::value_count).sum()
    }

    /// Returns the arguments whose memory is uninitialized when the launch begins.
    pub(crate) fn uninitialized_arguments(&self) -> Vec<usize> {
        (0..self.inputs.len()).filter(|i| self.inputs[*i].is_uninitialized()).collect()
    }

    /// Sets the block size, for a kernel that leaves it to the launch.
    pub fn with_block(self, block: usize) -> Case {
        Case { name: format!("{}, block {block}", self.name), block: Some(block), ..self }
    }
}

/// Creates a case without a name.
impl From<Vec<Input>> for Case {
    fn from(inputs: Vec<Input>) -> Case {
        Case::new("", inputs)
    }
}

/// Creates a case without a name.
impl<const N: usize> From<[Input; N]> for Case {
    fn from(inputs: [Input; N]) -> Case {
        Case::new("", inputs)
    }
}
