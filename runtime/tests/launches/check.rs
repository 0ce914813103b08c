//! Tests of `runtime::testing`: correct kernels pass, and faults are found.

use super::common;
use common::{Mistake, artifact, ir};
use kernel_dsl::compiler::hir::Instance;
use runtime::interpreter::Verdict;
use runtime::testing::{
    Bound, Case, Checker, Contents, Executor, Expected, Failure, Input, InstanceReport, KernelSpec, PreparedInstance,
    Random, edges,
};

fn prepared(lowered: Mistake, optimized: Mistake) -> PreparedInstance {
    PreparedInstance::from_ir(artifact(), &Instance::default(), &ir(lowered), &ir(optimized)).unwrap()
}

fn case(n: usize) -> Case {
    let mut random = Random::new(n as u64);
    let [x, y] = [(); 2].map(|()| random.values::<f32>(n));
    Case::new(format!("n = {n}"), [Input::scalar(0.1f32), Input::slice(&x), Input::slice(&y)])
}

/// Computes y ← a·x + y with one rounding: the error is at most half a unit in the last place, 2⁻²⁴
/// of the value.
fn saxpy(inputs: &[Input]) -> Vec<Expected> {
    let (a, x, y) = (inputs[0].value(), inputs[1].values(), inputs[2].values());
    let y = x.iter().zip(y).map(|(x, y)| a * x + y).collect();
    vec![Expected::new(2, y, Bound::Relative(2f64.powi(-24)))]
}

#[test]
fn correct_kernel_passes_at_every_edge() {
    let (checker, prepared) = (Checker::new(None), prepared(Mistake::None, Mistake::None));
    for n in edges(256) {
        assert_eq!(checker.case(&prepared, &case(n), saxpy), Ok(()), "n = {n}");
    }
}

#[test]
fn special_values_pass_too() {
    let mut random = Random::new(3);
    let [x, y] = [(); 2].map(|()| random.special_values::<f32>(1000));
    let case = Case::new("special", [Input::scalar(2.0f32), Input::slice(&x), Input::slice(&y)]);
    // Every product of two f32 is exact in f64. The sum rounds, and overflows to infinity, as f32.
    let reference = |_: &[Input]| {
        let y = x.iter().zip(&y).map(|(x, y)| f64::from(2.0f32.mul_add(*x, *y))).collect();
        vec![Expected::new(2, y, Bound::Exact)]
    };
    assert_eq!(Checker::new(None).case(&prepared(Mistake::None, Mistake::None), &case, reference), Ok(()));
}

#[test]
fn pass_that_changes_a_bit_is_detected() {
    let prepared = prepared(Mistake::None, Mistake::Unfused);
    let failure = Checker::new(None).case(&prepared, &case(1000), saxpy).unwrap_err();
    let Failure::Differ { left: Executor::Lowered, right: Executor::Optimized, mismatch } = &failure else {
        panic!("{failure}")
    };
    // The first element at which one rounding and two roundings differ.
    let inputs = case(1000).inputs;
    let (x, y) = (inputs[1].values(), inputs[2].values());
    let differs = |i: usize| {
        let (x, y) = (x[i] as f32, y[i] as f32);
        0.1f32.mul_add(x, y) != 0.1 * x + y
    };
    let first = (0..1000).find(|i| differs(*i)).unwrap();
    assert_eq!((mismatch.argument.as_str(), mismatch.index.clone()), ("y", Some(vec![first])));
    assert_eq!(mismatch.count, (0..1000).filter(|i| differs(*i)).count());
}

#[test]
fn oracle_reports_access_out_of_bounds() {
    let prepared = prepared(Mistake::OutOfBounds, Mistake::None);
    let failure = Checker::new(None).case(&prepared, &case(4), saxpy).unwrap_err();
    let Failure::Stopped { executor: Executor::Lowered, error, .. } = failure else { panic!("{failure}") };
    assert!(error.contains("tests/common.rs:3"), "{error}");
}

#[test]
fn deviation_from_the_reference_is_detected() {
    let wrong = |inputs: &[Input]| {
        let mut expected = saxpy(inputs);
        let Contents::Near(values, _) = &mut expected[0].contents else { panic!("saxpy has a bound") };
        values[3] += 1.0;
        expected
    };
    let failure = Checker::new(None).case(&prepared(Mistake::None, Mistake::None), &case(4), wrong).unwrap_err();
    assert!(
        matches!(&failure, Failure::Wrong { argument, index, .. } if argument == "y" && index[..] == [3]),
        "{failure}"
    );
}

#[test]
fn case_rejected_by_the_contract_does_not_pass() {
    let mut case = case(4);
    case.inputs[1] = Input::slice(&[1.0f32; 5]);
    let failure = Checker::new(None).case(&prepared(Mistake::None, Mistake::None), &case, saxpy).unwrap_err();
    assert!(failure.to_string().contains("requires `x.len() == y.len()`: x.len() is 5, y.len() is 4"), "{failure}");
    case.inputs.truncate(1);
    let failure = Checker::new(None).case(&prepared(Mistake::None, Mistake::None), &case, saxpy).unwrap_err();
    assert!(failure.to_string().contains("expected 3 arguments"), "{failure}");
    case.inputs.push(Input::strided(&[1.0f32; 4], [3], [2]));
    let failure = Checker::new(None).case(&prepared(Mistake::None, Mistake::None), &case, saxpy).unwrap_err();
    assert!(failure.to_string().contains("the view spans 5 elements"), "{failure}");
}

#[test]
fn faulty_ptx_is_detected() {
    let text = artifact().instances[0].ptx;
    let checked = |text: &str| {
        let prepared = prepared(Mistake::None, Mistake::None).with_ptx(text).unwrap();
        Checker::new(None).case(&prepared, &case(1000), saxpy)
    };
    assert_eq!(checked(text), Ok(()));
    // A different rounding; one element too many.
    let rounded = text.replace("fma.rn.f32", "fma.rz.f32");
    assert!(matches!(checked(&rounded), Err(Failure::Differ { right: Executor::Ptx, .. })), "{text}");
    let unguarded = text.replace("setp.ge.u32", "setp.gt.u32");
    let Err(Failure::Stopped { executor: Executor::Ptx, error, .. }) = checked(&unguarded) else { panic!("{text}") };
    assert!(error.contains("past the end of `x`"), "{error}");
    // Unknown instructions are rejected before the launch.
    let Err(refused) = prepared(Mistake::None, Mistake::None).with_ptx(&text.replace("fma.rn.f32", "fmb.rn.f32"))
    else {
        panic!("{text}")
    };
    assert!(refused.to_string().contains("fmb"), "{refused}");
}

/// Checks a spec of the kernel `saxpy`, of which one function may panic.
fn checked(
    cases: fn(&Instance, &mut Random) -> Vec<Case>,
    reference: fn(&Instance, &[Input]) -> Vec<Expected>,
) -> InstanceReport {
    Checker::new(None).check(&KernelSpec { artifact: artifact(), cases, reference }, &Instance::default(), 1)
}

#[test]
fn panics_of_a_spec_are_failures_of_its_kernel() {
    let report = checked(|_, _| panic!("no sizes"), |_, inputs| saxpy(inputs));
    assert_eq!(report.verdict(), Verdict::Fail);
    assert_eq!(report.to_string(), "saxpy: the function that generates its cases panicked: no sizes",);
    let report = checked(|_, _| vec![case(5)], |_, inputs| vec![Expected::new(2, inputs[3].values(), Bound::Exact)]);
    let why = "the reference panicked: index out of bounds: the len is 3 but the index is 3".to_string();
    assert_eq!(report.cases[0].failure, Some(Failure::Incomplete { why }));
    let judged = |_: &Instance, _: &[Input]| vec![Expected::judged(2, |_, after| panic!("{} arguments", after.len()))];
    let report = checked(|_, _| vec![case(5)], judged);
    let Some(Failure::Rejected { why, .. }) = &report.cases[0].failure else { panic!("{report}") };
    assert_eq!(why, "the predicate panicked: 3 arguments");
}

#[test]
fn reference_states_each_output_at_most_once() {
    let cases = |_: &Instance, _: &mut Random| vec![case(5)];
    let report = checked(cases, |_, inputs| saxpy(inputs));
    assert!(report.passed() && report.referenced, "{report}");
    // The executors agree with each other, and nothing else was compared.
    let report = checked(cases, |_, _| vec![Expected::unchecked(2)]);
    assert!(report.passed() && !report.referenced, "{report}");
    let report = checked(cases, |_, inputs| [saxpy(inputs), vec![Expected::unchecked(2)]].concat());
    let why = "the reference has values for `y` more than once".to_string();
    assert_eq!(report.cases[0].failure, Some(Failure::Incomplete { why }));
}
