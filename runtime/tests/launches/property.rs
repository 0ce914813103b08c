//! Tests of `testing::property`: a correct kernel passes, and a failure shrinks to the smallest
//! case that shows it.

use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::{Constant, Instance};
use kernel_dsl::prelude::*;
use runtime::interpreter::Check;
use runtime::testing::{self, Counterexample, ExecutorStop, Expected, Failure, Gen, Input, Property};

/// Stores x + 1 to `y`; with `WRONG`, stores a wrong value from element 36 on.
#[kernel(block = 64, grid = y.len().div_ceil(64), instances(WRONG = false | true))]
#[requires(x.len() == y.len())]
fn increment<const WRONG: bool>(x: &[u32], y: &mut [u32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = if WRONG && i >= 36 { 7 } else { x[i].wrapping_add(1) };
    }
}

fn incremented(inputs: &[Input]) -> Vec<Expected> {
    vec![Expected::exact(1, inputs[0].to_vec::<u32>().into_iter().map(|x| x.wrapping_add(1)))]
}

fn pairs(g: &mut Gen) -> [Input; 2] {
    let n = g.size("n", 64);
    [g.slice::<u32>(n), g.slice::<u32>(n)]
}

#[test]
fn correct_kernel_passes() {
    testing::property::<increment<false>>().cases(pairs).reference(incremented).check();
    // Without a reference, the executors are compared with each other.
    testing::property::<increment<false>>().cases(pairs).check();
}

fn wrong_from_37<'a>() -> Property<'a> {
    testing::property::<increment<true>>().cases(pairs).reference(incremented)
}

#[test]
fn failure_shrinks_to_the_smallest_shape_and_simplest_values() {
    let found = wrong_from_37().run().unwrap_err();
    assert_eq!(found.case.name, "n = 37");
    assert!(matches!(&found.failure, Failure::Wrong { index, .. } if index[..] == [36]), "{found}");
    assert_eq!(found.case.inputs, [Input::slice(&[0u32; 37]), Input::slice(&[0u32; 37])]);
}

#[test]
fn message_is_complete() {
    let found = wrong_from_37().run().unwrap_err();
    let Counterexample { first, seed, trials, .. } = &*found;
    let expected = format!(
        "increment<WRONG = true> fails where n = 37:
y[36] is 7 on the interpreter on IR as lowered; the reference gives 1
  x: u32[37] = 0 × 37
  y: u32[37] = 0 × 37
the smallest failing case of {trials} cases tried after the first failure, where {first}
to run it alone: `.replay({seed:#x})` before `.check()`"
    );
    assert_eq!(found.to_string(), expected);
}

/// Checks the message about a generator that draws neither sizes nor values.
#[test]
fn message_of_a_fixed_case_names_no_size() {
    let fixed = |_: &mut Gen| [Input::slice(&[5u32; 37]), Input::slice(&[0u32; 37])];
    let found = testing::property::<increment<true>>().cases(fixed).reference(incremented).run().unwrap_err();
    let expected = format!(
        "increment<WRONG = true> fails where no size is drawn:
y[36] is 7 on the interpreter on IR as lowered; the reference gives 6
  x: u32[37] = 5 × 37
  y: u32[37] = 0 × 37
shrinking found no smaller case to try
to run it alone: `.replay({:#x})` before `.check()`",
        found.seed
    );
    assert_eq!(found.to_string(), expected);
}

#[test]
fn the_same_seed_gives_the_same_failure() {
    let [a, b] = [(); 2].map(|()| wrong_from_37().run().unwrap_err());
    assert_eq!(a, b);
    assert_eq!(wrong_from_37().replay(a.seed).run().unwrap_err(), a);
    let other = wrong_from_37().seed(2).run().unwrap_err();
    assert!(other.seed != a.seed && other.case.name == a.case.name, "{other}");
}

/// Computes three times x, which may overflow.
#[kernel(block = 64, grid = x.len().div_ceil(64))]
fn tripled(x: &mut [i32]) {
    let i = grid::index();
    if i < x.len() {
        x[i] = 3 * x[i];
    }
}

#[test]
fn denied_warnings_are_failures() {
    let tried = || {
        testing::property::<tripled>().cases(|g| {
            let n = g.size("n", 64);
            [g.slice::<i32>(n)]
        })
    };
    tried().check();
    let found = tried().deny_warnings().run().unwrap_err();
    assert_eq!(found.case.name, "n = 1");
    let Failure::Warned { report } = &found.failure else { panic!("{found}") };
    assert_eq!(report.findings[0].check, Check::IntegerOverflow);
    let text = found.to_string();
    assert!(
        text.contains("the oracle warns: warning[integer-overflow]: ") && text.contains("x[i] = 3 * x[i];"),
        "{text}"
    );
    assert_eq!(text.matches("warning[").count(), 1, "{text}");
}

/// Computes a quotient that is undefined where x is zero.
#[kernel(block = 64, grid = x.len().div_ceil(64))]
fn of_itself(x: &mut [f32]) {
    let i = grid::index();
    if i < x.len() {
        x[i] = x[i] / x[i];
    }
}

#[test]
fn wrong_result_is_reported_with_the_origin_of_its_nans() {
    let tried = testing::property::<of_itself>().cases(|g| {
        let n = g.size("n", 64);
        [g.special_slice::<f32>(n)]
    });
    let found = tried.reference(|inputs| vec![Expected::exact(0, vec![1.0; inputs[0].to_vec::<f32>().len()])]).run();
    let found = found.unwrap_err();
    assert!(matches!(found.failure, Failure::Wrong { .. }), "{found}");
    assert_eq!(found.warnings.len(), 1, "{found}");
    assert!(found.to_string().contains("\nwarning[nan-produced]: `0.0 / 0.0` is a NaN"), "{found}");
}

/// Computes the magnitude of `x` by a comparison that ignores a zero's sign.
#[kernel(block = 64, grid = x.len().div_ceil(64))]
fn magnitude(x: &mut [f32]) {
    let i = grid::index();
    if i < x.len() && x[i] < 0.0 {
        x[i] = -x[i];
    }
}

#[test]
fn a_value_shrinks_to_one_element() {
    // The sign of a zero affects only its quotient, which the reference computes.
    let found = testing::property::<divided>()
        .cases(|g| {
            let n = g.size("n", 64);
            [g.special_slice::<f32>(n), Input::slice(&vec![0.0f32; n])]
        })
        .reference(|inputs| {
            let sign = |x: f32| if x.is_nan() { x } else { 1.0 / x.abs() };
            vec![Expected::exact(1, inputs[0].to_vec::<f32>().into_iter().map(sign))]
        })
        .run()
        .unwrap_err();
    assert_eq!(found.case.name, "n = 1");
    assert_eq!(found.case.inputs[0].to_vec::<f32>()[0].to_bits(), (-0.0f32).to_bits(), "{found}");
}

/// Computes 1 / |x| with that comparison.
#[kernel(block = 64, grid = y.len().div_ceil(64))]
#[requires(x.len() == y.len())]
fn divided(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        let positive = if x[i] < 0.0 { -x[i] } else { x[i] };
        y[i] = 1.0 / positive;
    }
}

#[test]
fn indistinguishable_results_pass() {
    testing::property::<magnitude>()
        .cases(|g| {
            let n = g.size("n", 64);
            [g.special_slice::<f32>(n)]
        })
        .reference(|inputs| vec![Expected::exact(0, inputs[0].to_vec::<f32>().into_iter().map(f32::abs))])
        .check();
}

/// Reverses blocks of `y` through shared memory, without the barrier.
#[kernel(block = 64, grid = y.len() / 64)]
#[requires(x.len() == y.len(), y.len() % 64 == 0)]
fn reversed(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([64]);
    tile[thread::x()] = x[grid::index()];
    y[grid::index()] = tile[63 - thread::x()];
}

#[test]
fn a_race_is_reported_in_its_smallest_launch() {
    let found = testing::property::<reversed>()
        .cases(|g| {
            let n = 64 * g.within("blocks", 0..=9);
            [g.slice::<f32>(n), g.slice::<f32>(n)]
        })
        .run()
        .unwrap_err();
    assert_eq!(found.case.name, "blocks = 1");
    let Failure::Stopped { why: ExecutorStop::Reported(check), error, .. } = &found.failure else { panic!("{found}") };
    assert!(matches!(*check, Check::SharedRace | Check::UninitializedShared), "{found}");
    assert!(error.contains("tile[63 - thread::x()]"), "{found}");
}

/// Doubles a matrix with arbitrary row stride; wrong in the last column of a row of 5.
#[kernel(block = (16, 4), grid = (m.cols().div_ceil(16), m.rows().div_ceil(4)))]
fn doubled(mut m: ViewMut<f32, 2>) {
    let (row, col) = (block::y() * 4 + thread::y(), block::x() * 16 + thread::x());
    if row < m.rows() && col < m.cols() {
        m[(row, col)] = if row > 1 && col > 4 { 0.5 } else { m[(row, col)] * 2.0 };
    }
}

#[test]
fn each_dimension_shrinks() {
    let found = testing::property::<doubled>()
        .cases(|g| {
            let [rows, cols] = [g.size("rows", 4), g.size("cols", 16)];
            let pitch = g.pitch("pitch", cols);
            [g.pitched::<f32>([rows, cols], pitch)]
        })
        .reference(|inputs| vec![Expected::exact(0, inputs[0].to_vec::<f32>().into_iter().map(|x| x * 2.0))])
        .run()
        .unwrap_err();
    assert_eq!(found.case.name, "rows = 3, cols = 6, pitch = 6");
    assert_eq!(found.case.inputs[0].to_vec::<f32>(), [0.0; 18]);
}

/// Fills `y` with threes; in blocks of more than 64 threads, wrongly with ones.
#[kernel(block = 32..=1024, grid = 2)]
fn filled(y: &mut [u32]) {
    for i in grid::stride(y.len()) {
        y[i] = if block::threads() > 64 { 1 } else { 3 };
    }
}

#[test]
fn block_size_is_generated_and_reported() {
    let found = testing::property::<filled>()
        .cases(|g| {
            let n = g.size("n", 32);
            testing::Case::new("", [g.slice::<u32>(n)])
        })
        .reference(|inputs| vec![Expected::exact(0, inputs[0].to_vec::<u32>().iter().map(|_| 3u32))])
        .run()
        .unwrap_err();
    assert!(found.case.name.starts_with("n = 1, block "), "{found}");
    assert!(found.case.block.is_some_and(|threads| threads > 64), "{found}");
}

#[test]
fn arguments_rejected_by_the_contract_do_not_pass() {
    let found = testing::property::<increment<false>>()
        .cases(|g| {
            let n = g.size("n", 64);
            [g.slice::<u32>(n + 1), g.slice::<u32>(n)]
        })
        .run()
        .unwrap_err();
    assert!(matches!(found.failure, Failure::Stopped { why: ExecutorStop::Refused, .. }), "{found}");
    assert!(found.to_string().contains("requires `x.len() == y.len()`"), "{found}");
    assert_eq!(found.case.name, "n = 0");
}

/// A record of a table: a key of 64 bits, and two numbers.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
#[repr(C)]
struct Record {
    key: u64,
    of: [u32; 2],
}

#[kernel(block = 64, grid = y.len().div_ceil(64), instances(LOSES = false | true))]
#[requires(x.len() == y.len())]
fn keyed<const LOSES: bool>(x: &[u32], y: &mut [Record]) {
    let i = grid::index();
    if i < y.len() {
        let low = if LOSES { 0 } else { x[i] as u64 & 1 };
        y[i] = Record { key: 1 << 60 | low, of: [x[i], x[i] & 1] };
    }
}

/// Checks that structs are compared exactly, and read back as structs.
#[test]
fn structs_are_exact() {
    fn expected(inputs: &[Input]) -> Vec<Expected> {
        let record = |x: u32| Record { key: 1 << 60 | u64::from(x & 1), of: [x, x & 1] };
        vec![Expected::exact(1, inputs[0].to_vec::<u32>().into_iter().map(record))]
    }
    let records = |n: usize| vec![Record { key: 0, of: [0; 2] }; n];
    let cases = |g: &mut Gen| {
        let n = g.size("n", 64);
        [g.slice::<u32>(n), Input::from(&records(n))]
    };
    testing::property::<keyed<false>>().cases(cases).reference(expected).check();
    let found = testing::property::<keyed<true>>().cases(cases).reference(expected).run().unwrap_err();
    let text = found.failure.to_string();
    let expected =
        "is 1152921504606846976 on the interpreter on IR as lowered; the reference gives 1152921504606846977";
    assert!(text.contains(expected), "{text}");
    let given = Input::slice(&[Record { key: u64::MAX, of: [1, 2] }]);
    assert_eq!(given.to_vec::<Record>(), [Record { key: u64::MAX, of: [1, 2] }]);
}

#[test]
fn constants_have_names() {
    let kernel = <increment<true> as Kernel>::ARTIFACT;
    let instance = Instance(<increment<true> as Kernel>::CONSTANTS.to_vec());
    assert_eq!(instance.to_string(), "<true>");
    assert_eq!(kernel.constant(&instance, "WRONG").and_then(Constant::bool), Some(true));
    assert_eq!(kernel.constant(&instance, "RIGHT"), None);
}
