//! Tests against rustc: kernels compiled by rustc run one thread at a time, and are compared bit by
//! bit with the interpreter, on lowered and on optimized IR.
//!
//! The kernels are those of the compiler's tests of lowering, each with one or a few constructs of
//! the language. The macros pass them to rustc as well, with the same types.

use kernel_dsl::compiler::hir::{Instance, monomorphic};
use kernel_dsl::compiler::launch;
use kernel_dsl::prelude::{View, ViewMut};
use kernel_dsl::{Artifact, host};
use runtime::Device;
use runtime::testing::{Bound, Case, Checker, Expected, Input, PreparedInstance, Random};

/// A kernel over slices: a number, 32 elements to read, 32 to write.
type Slices = fn(usize, &[f32], &mut [f32]);
/// A kernel over views of [`ROWS`] × [`COLUMNS`] elements: one to read, one to write.
type Views = fn(View<f32, 2>, ViewMut<f32, 2>);

const ROWS: usize = 5;
const COLUMNS: usize = 37;

/// Declares each kernel twice: as the Rust function, and as the launched kernel.
macro_rules! as_written_and_launched {
    ($ty:ident: $(#[kernel($($clause:tt)*)] fn $name:ident($($parameters:tt)*) $body:tt)*) => {
        mod plain {
            use super::*;
            $(pub fn $name($($parameters)*) $body)*
        }
        mod kernels {
            use super::*;
            $(#[kernel($($clause)*)] pub fn $name($($parameters)*) $body)*
        }
        pub const ALL: &[(&kernel_dsl::Artifact, super::$ty)] =
            &[$((<kernels::$name as kernel_dsl::Kernel>::ARTIFACT, plain::$name)),*];
    };
}

macro_rules! witnessed {
    ($($all:tt)*) => { as_written_and_launched! { Slices: $($all)* } };
}
#[allow(unused, clippy::all)]
#[path = "../../../kernel-dsl/compiler/tests/frontend/lowered/cases.rs"]
mod cases;
#[allow(unused, clippy::all)]
#[path = "../../../kernel-dsl/compiler/tests/frontend/lowered/closures.rs"]
mod closures;
#[allow(unused, clippy::all)]
#[path = "../../../kernel-dsl/compiler/tests/frontend/lowered/collectives.rs"]
mod collectives;
#[allow(unused, clippy::all)]
#[path = "../../../kernel-dsl/compiler/tests/frontend/lowered/control.rs"]
mod control;
#[allow(unused, clippy::all)]
#[path = "../../../kernel-dsl/compiler/tests/frontend/lowered/functions.rs"]
mod functions;
#[allow(unused, clippy::all)]
#[path = "../../../kernel-dsl/compiler/tests/frontend/lowered/gaps.rs"]
mod gaps;
#[allow(unused, clippy::all)]
#[path = "../../../kernel-dsl/compiler/tests/frontend/lowered/iterate.rs"]
mod iterate;
#[allow(unused, clippy::all)]
#[path = "../../../kernel-dsl/compiler/tests/frontend/lowered/values.rs"]
mod values;

macro_rules! witnessed {
    ($($all:tt)*) => { as_written_and_launched! { Views: $($all)* } };
}
#[allow(unused, clippy::all)]
#[path = "../../../kernel-dsl/compiler/tests/frontend/lowered/memory.rs"]
mod memory;

/// Returns random multiples of 1/8 from 0 to 16, so that the sums in the kernels are exact.
fn eighths(n: usize, random: &mut Random) -> Vec<f32> {
    (0..n).map(|_| random.below(128) as f32 / 8.0).collect()
}

/// Runs a kernel on all executors, and checks that argument `argument` becomes `expected`.
fn check(checker: &Checker, artifact: &'static Artifact, case: &Case, argument: usize, expected: &[f32]) {
    let prepared = PreparedInstance::compile(artifact, &Instance::default()).unwrap_or_else(|e| panic!("{e}"));
    let values = expected.iter().map(|y| f64::from(*y)).collect();
    let outcome = checker.case(&prepared, case, |_| vec![Expected::new(argument, values, Bound::Exact)]);
    outcome.unwrap_or_else(|failure| panic!("{} with {}: {failure}", artifact.name, case.name));
}

fn block(artifact: &Artifact) -> [usize; 3] {
    let program = artifact.program().unwrap_or_else(|e| panic!("{}: {e}", artifact.name));
    let program = monomorphic(&program, &Instance::default()).unwrap_or_else(|e| panic!("{}: {e}", artifact.name));
    let block = launch::block(&program).unwrap_or_else(|e| panic!("{}: {e}", artifact.name));
    block.max_extents().map(|n| n as usize)
}

fn over_slices(checker: &Checker, all: &[(&'static Artifact, Slices)]) {
    let mut random = Random::new(1);
    for (artifact, plain) in all {
        for n in [0, 1, 4, 7, 32] {
            let (x, y) = (eighths(32, &mut random), eighths(32, &mut random));
            let mut expected = y.clone();
            let memory = host::SliceMut::new(&mut expected);
            // SAFETY: each thread writes the element of its index, and no kernel here reads
            // elements of other threads.
            unsafe { host::run([1, 1, 1], block(artifact), || plain(n, &x, &mut memory.of_thread())) };
            drop(memory);
            let case = Case::new(format!("n = {n}"), [Input::scalar(n), Input::slice(&x), Input::slice(&y)]);
            check(checker, artifact, &case, 2, &expected);
        }
    }
}

fn over_views(checker: &Checker, all: &[(&'static Artifact, Views)]) {
    let mut random = Random::new(2);
    for (artifact, plain) in all {
        for seed in 0..3 {
            let shape = [ROWS, COLUMNS];
            let (x, y) = (eighths(ROWS * COLUMNS, &mut random), eighths(ROWS * COLUMNS, &mut random));
            let mut expected = y.clone();
            // SAFETY: the vectors outlive the run, and nothing else accesses them meanwhile. The
            // kernels have no races.
            unsafe {
                let (from, to) = (View::host(&x, shape), ViewMut::host(&mut expected, shape));
                host::run([1, 1, 1], block(artifact), || plain(from, to));
            }
            let case = Case::new(format!("values {seed}"), [Input::view(&x, shape), Input::view(&y, shape)]);
            check(checker, artifact, &case, 1, &expected);
        }
    }
}

#[test]
fn values_agree_with_rustc() {
    over_slices(&Checker::new(None), values::ALL);
}

#[test]
fn cases_agree_with_rustc() {
    over_slices(&Checker::new(None), cases::ALL);
}

#[test]
fn closures_agree_with_rustc() {
    over_slices(&Checker::new(None), closures::ALL);
}

#[test]
fn collectives_agree_with_rustc() {
    over_slices(&Checker::new(None), collectives::ALL);
}

#[test]
fn combined_constructs_agree_with_rustc() {
    over_slices(&Checker::new(None), gaps::ALL);
}

#[test]
fn iteration_agrees_with_rustc() {
    over_slices(&Checker::new(None), iterate::ALL);
}

#[test]
fn control_flow_agrees_with_rustc() {
    over_slices(&Checker::new(None), control::ALL);
}

#[test]
fn functions_agree_with_rustc() {
    over_slices(&Checker::new(None), functions::ALL);
}

#[test]
fn memory_agrees_with_rustc() {
    over_views(&Checker::new(None), memory::ALL);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_agrees_with_rustc() {
    let checker = Checker::new(Some(Device::cuda(0).unwrap()));
    for all in [
        values::ALL,
        cases::ALL,
        closures::ALL,
        collectives::ALL,
        control::ALL,
        functions::ALL,
        gaps::ALL,
        iterate::ALL,
    ] {
        over_slices(&checker, all);
    }
    over_views(&checker, memory::ALL);
}
