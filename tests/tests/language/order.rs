//! Tests of results that depend on an unspecified order: of lanes without a barrier, and of atomic
//! operations.

use super::support::checker;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use kernel_dsl::{Artifact, Kernel};
use runtime::testing::{
    Bound, Case, Checker, Executor, Expected, Failure, Input, InstanceReport, KernelSpec, PreparedInstance, Random,
};

/// Reverses a warp through shared memory, with a warp barrier if `MET`.
#[kernel(block = 64, grid = 1, instances(MET = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn reversed<const MET: bool>(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([64]);
    tile[thread::x()] = x[thread::x()];
    if MET {
        warp::sync();
    }
    y[thread::x()] = tile[warp::index() * 32 + 31 - warp::lane()];
}

/// Reverses a warp on a target without lockstep.
#[kernel(target = sm_70, block = 64, grid = 1, instances(MET = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn reversed_on_volta<const MET: bool>(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([64]);
    tile[thread::x()] = x[thread::x()];
    if MET {
        warp::sync();
    }
    y[thread::x()] = tile[warp::index() * 32 + 31 - warp::lane()];
}

fn turned_cases(_: &Instance, random: &mut Random) -> Vec<Case> {
    vec![Case::new("reversed", [Input::slice(&random.values::<f32>(64)), Input::slice(&[0f32; 64])])]
}

fn turned_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let x = inputs[0].values();
    let reversed = (0..64).map(|t| x[t / 32 * 32 + 31 - t % 32]).collect();
    vec![Expected::new(1, reversed, Bound::Exact)]
}

fn report(artifact: &'static Artifact, met: bool) -> InstanceReport {
    let instance = artifact.instances.iter().find(|i| i.name.contains(if met { "true" } else { "false" })).unwrap();
    let spec = KernelSpec { artifact, cases: turned_cases, reference: turned_reference };
    Checker::new(None).check(&spec, &Instance(instance.constants.to_vec()), 1)
}

#[test]
fn missing_warp_barrier_is_a_warning_in_lockstep() {
    let report = report(reversed::<false>::ARTIFACT, false);
    assert!(report.passed(), "{report}");
    let [warning] = &report.warnings[..] else { panic!("{:#?}", report.warnings) };
    let json = serde_json::to_value(warning).unwrap();
    let finding = &json["findings"][0];
    assert_eq!((&finding["check"], &finding["severity"]), (&"warp-race".into(), &"warning".into()), "{json}");
    assert_eq!(finding["place"]["file"], "tests/tests/language/order.rs", "{json}");
    let warning = warning.to_string();
    for part in ["warning[warp-race]", "tile[warp::index() * 32 + 31 - warp::lane()]", "tile[thread::x()] = x", "sm_70"]
    {
        assert!(warning.contains(part), "no `{part}` in:\n{warning}");
    }
}

#[test]
fn missing_warp_barrier_is_an_error_without_lockstep() {
    let text = report(reversed_on_volta::<false>::ARTIFACT, false).to_string();
    assert!(text.contains("error[warp-race]"), "{text}");
}

#[test]
fn warp_barrier_is_sufficient() {
    for artifact in [reversed::<true>::ARTIFACT, reversed_on_volta::<true>::ARTIFACT] {
        let report = report(artifact, true);
        assert!(report.passed() && report.warnings.is_empty(), "{report}: {:?}", report.warnings);
    }
}

/// Sums `x` as floats, in any order, and as integers.
#[kernel(block = 64, grid = 4)]
#[requires(x.len() == 256, sum.len() == 1, count.len() == 1)]
fn summed(x: &[f32], sum: &mut [f32], count: &mut [u32]) {
    sum.fetch_add(0, x[grid::index()]);
    count.fetch_add(0, x[grid::index()] as u32);
}

/// Takes the next place in each thread.
#[kernel(block = 64, grid = 4)]
#[requires(taken.len() == 1, places.len() == 256)]
fn places(taken: &mut [u32], places: &mut [u32]) {
    let place = taken.fetch_add(0, 1);
    places[grid::index()] = place;
}

fn of<K: Kernel>(case: &Case, expected: &[Expected], gpu: bool) -> Result<(), Failure> {
    let instance = Instance(K::CONSTANTS.to_vec());
    let prepared = PreparedInstance::compile(K::ARTIFACT, &instance).unwrap();
    checker(gpu).case(&prepared, case, |_| expected.to_vec())
}

fn sums() -> (Case, Vec<Expected>) {
    let x: Vec<f32> = Random::new(3).values::<f32>(256).iter().map(|v| v.abs() + 1.0).collect();
    let sum: f64 = x.iter().map(|v| f64::from(*v)).sum();
    let count: u32 = x.iter().map(|v| *v as u32).sum();
    let case = Case::new("sums", [Input::slice(&x), Input::slice(&[0f32]), Input::slice(&[0u32])]);
    // The bound is 256 roundings of at most half a unit in the last place of the sum.
    let expected = vec![
        Expected::new(1, vec![sum], Bound::Relative(256.0 * 2f64.powi(-24))),
        Expected::new(2, vec![f64::from(count)], Bound::Exact),
    ];
    (case, expected)
}

#[test]
fn sums_of_floats_depend_on_the_order_of_their_terms() {
    let (case, expected) = sums();
    let text = of::<summed>(&case, &expected, false).expect_err("orders differ").to_string();
    assert!(text.starts_with("sum[0] depends on the order of atomic operations: "), "{text}");
    of::<summed>(&case.with_order_dependent(1), &expected, false).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn places_depend_on_the_order_of_threads() {
    let case = Case::new("places", [Input::slice(&[0u32]), Input::slice(&[0u32; 256])]);
    let failure = of::<places>(&case, &[], false).expect_err("orders differ");
    assert!(matches!(&failure, Failure::OrderDependent { mismatch, .. } if mismatch.argument == "places"), "{failure}");
}

/// Checks that the reference judges the result of every schedule.
#[test]
fn places_are_a_permutation_in_any_order() {
    let case = Case::new("places", [Input::slice(&[0u32]), Input::slice(&[0u32; 256])]);
    let taken = Expected::exact(0, [256u32]);
    let each = Expected::multiset(1, 0..256u32);
    of::<places>(&case, &[taken.clone(), each], false).unwrap_or_else(|e| panic!("{e}"));
    let judged = Expected::judged(1, |before, after| {
        let mut places = after[1].to_vec::<u32>();
        places.sort();
        let whole = before[0].value() == 0.0 && places.into_iter().eq(0..256);
        if whole { Ok(()) } else { Err("a place was given twice".to_string()) }
    });
    of::<places>(&case, &[taken.clone(), judged], false).unwrap_or_else(|e| panic!("{e}"));
    of::<places>(&case, &[taken.clone(), Expected::unchecked(1)], false).unwrap_or_else(|e| panic!("{e}"));
    // In order, each thread takes the place of its index; in another order it does not.
    let exact = [taken.clone(), Expected::exact(1, 0..256u32)];
    let failure = of::<places>(&case, &exact, false).expect_err("orders differ");
    assert!(matches!(&failure, Failure::OrderDependent { mismatch, .. } if mismatch.argument == "places"), "{failure}");
    let failure = of::<places>(&case.clone().with_order_dependent(1), &exact, false).expect_err("orders differ");
    assert!(matches!(&failure, Failure::Wrong { executor: Executor::Scheduled(_), .. }), "{failure}");
    // In another order, another thread takes the first place.
    let halves = Expected::judged(1, |_, after| match after[1].to_vec::<u32>()[0] {
        0 => Ok(()),
        first => Err(format!("the first place is {first}")),
    });
    let failure = of::<places>(&case, &[taken, halves], false).expect_err("orders differ");
    assert!(matches!(&failure, Failure::Rejected { executor: Executor::Scheduled(_), .. }), "{failure}");
}

/// Returns the PTX of `places` with two atomic operations for one: each warp reads the count, and
/// then adds to it. Places are given twice if another warp runs between the two operations.
fn ptx_of_torn_places() -> String {
    let text = places::ARTIFACT.instances[0].ptx;
    let whole = text.lines().find(|line| line.contains("atom.global.add.u32")).unwrap_or_else(|| panic!("{text}"));
    let (operation, operands) = whole.trim().split_once(' ').expect("an operation and its operands");
    let mut operands = operands.trim_end_matches(';').split(", ");
    let (place, address) = (operands.next().expect("a result"), operands.next().expect("an address"));
    let torn = format!(
        "{{ .reg .u32 %lane, %old; mov.u32 %lane, %laneid; {operation} {place}, {address}, 0; \
         {operation} %old, {address}, 1; add.u32 {place}, {place}, %lane; }}"
    );
    text.replace(whole, &torn)
}

/// Checks that the reference judges PTX under interleavings, too: in order, each place is given
/// once.
#[test]
fn ptx_is_judged_under_interleavings() {
    let case = Case::new("places", [Input::slice(&[0u32]), Input::slice(&[0u32; 256])]);
    let expected = [Expected::exact(0, [256u32]), Expected::multiset(1, 0..256u32)];
    let prepared = PreparedInstance::compile(places::ARTIFACT, &Instance(Vec::new())).unwrap();
    let torn = prepared.with_ptx(&ptx_of_torn_places()).unwrap_or_else(|e| panic!("{e}"));
    let in_order = Checker::new(None).with_orders(0).case(&torn, &case, |_| expected.to_vec());
    assert_eq!(in_order, Ok(()));
    let failure = checker(false).case(&torn, &case, |_| expected.to_vec()).expect_err("places are given twice");
    assert!(matches!(&failure, Failure::Rejected { executor: Executor::Ptx, .. }), "{failure}");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_sums_of_floats_are_near_the_reference_in_any_order() {
    let (case, expected) = sums();
    of::<summed>(&case.with_order_dependent(1), &expected, true).unwrap_or_else(|e| panic!("{e}"));
}
