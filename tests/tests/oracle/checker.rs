//! Options of a check: orders, disabled checks, the contents of unwritten memory, fuel and where to
//! stop. The three verdicts of a check are tested, too.

use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use kernel_dsl::{Artifact, Kernel};
use runtime::Device;
use runtime::interpreter::{Check, Options, Schedule, Verdict};
use runtime::testing::{
    Bound, Case, CaseReport, Checker, ExecutorStop, Expected, Failure, Input, InstanceReport, KernelSpec, Random,
};

const N: usize = 32;

/// Returns two cases of `(y: &mut [f32])`.
fn cases(_: &Instance, _: &mut Random) -> Vec<Case> {
    ["one", "two"].map(|name| Case::new(name, [Input::slice(&[0f32; N])])).into()
}

fn no_cases(_: &Instance, _: &mut Random) -> Vec<Case> {
    Vec::new()
}

fn ones(_: &Instance, _: &[Input]) -> Vec<Expected> {
    vec![Expected::new(0, vec![1.0; N], Bound::Exact)]
}

fn check(artifact: &'static Artifact, checker: Checker) -> InstanceReport {
    checker.check(&KernelSpec { artifact, cases, reference: ones }, &Instance::default(), 1)
}

fn checker(options: Options) -> Checker {
    Checker::new(None).with_options(options)
}

/// Returns the reason why the first case stopped.
fn stop(report: &InstanceReport) -> ExecutorStop {
    match report.first_failure() {
        Some((_, Failure::Stopped { why, .. })) => *why,
        _ => panic!("{report}"),
    }
}

/// Lets the middle one of three blocks take the second ticket, both in order and in reverse order.
#[kernel(block = 32, grid = 3)]
fn by_ticket(y: &mut [f32]) {
    let mut ticket = 0.0;
    if thread::x() == 0 {
        ticket = y.fetch_add(0, 1.0);
    }
    if block::x() == 1 && thread::x() == 0 {
        y.fetch_add(1, ticket);
    }
}

fn tickets(_: &Instance, _: &[Input]) -> Vec<Expected> {
    let mut all = vec![0.0; N];
    (all[0], all[1]) = (3.0, 1.0);
    vec![Expected::new(0, all, Bound::Exact)]
}

#[test]
fn requested_number_of_orders_runs() {
    let spec = KernelSpec { artifact: by_ticket::ARTIFACT, cases, reference: tickets };
    let check = |orders| Checker::new(None).with_orders(orders).check(&spec, &Instance::default(), 1);
    let none = check(0);
    assert!(none.passed(), "{none}");
    let many = check(8);
    let Some((_, Failure::OrderDependent { schedule: Schedule::Seeded(_), mismatch })) = many.first_failure() else {
        panic!("{many}")
    };
    assert_eq!(
        (&mismatch.argument[..], &mismatch.index, &mismatch.left[..]),
        ("y", &Some(vec![1]), "1.0 (0x3f800000)")
    );
}

/// Stores the same value in all blocks.
#[kernel(block = 32, grid = 2)]
fn flagged(y: &mut [f32]) {
    y[thread::x()] = 1.0;
}

#[test]
fn reports_state_the_requested_order() {
    for schedule in [Schedule::InOrder, Schedule::Reversed, Schedule::Seeded(7)] {
        let report = check(flagged::ARTIFACT, checker(Options { schedule, ..Options::default() }));
        let Some((_, Failure::Stopped { report: Some(found), .. })) = report.first_failure() else {
            panic!("{report}")
        };
        assert_eq!(
            (found.schedule, found.verdict(), found.findings[0].check),
            (schedule, Verdict::Fail, Check::GlobalRace)
        );
    }
}

#[test]
fn disabled_checks_do_not_fail() {
    let failed = check(flagged::ARTIFACT, Checker::new(None));
    assert_eq!((failed.verdict(), stop(&failed)), (Verdict::Fail, ExecutorStop::Reported(Check::GlobalRace)));
    for without in [[Check::GlobalRace].into_iter().collect(), Check::parse("race").unwrap().into_iter().collect()] {
        let report = check(flagged::ARTIFACT, checker(Options { without, ..Options::default() }));
        assert!(report.passed(), "{report}");
    }
}

/// Stores a different value in each block; the last store remains.
#[kernel(block = 32, grid = 2)]
fn last_store_remains(y: &mut [f32]) {
    y[thread::x()] = 1.0 - block::x() as f32;
}

#[test]
fn orders_are_compared_when_race_checks_are_disabled() {
    let without = [Check::GlobalRace].into_iter().collect();
    let report = check(last_store_remains::ARTIFACT, checker(Options { without, ..Options::default() }));
    let Some((_, Failure::OrderDependent { mismatch, .. })) = report.first_failure() else { panic!("{report}") };
    assert_eq!((&mismatch.left[..], &mismatch.right[..]), ("0.0 (0x00000000)", "1.0 (0x3f800000)"));
}

#[kernel(block = 32, grid = 1)]
fn never_stored(y: &mut [f32]) {
    let tile = Shared::<u8, 1>::new([32]);
    y[thread::x()] = tile[thread::x()] as f32;
}

#[test]
fn unwritten_memory_holds_the_fill_byte() {
    let report = check(never_stored::ARTIFACT, Checker::new(None));
    assert_eq!(stop(&report), ExecutorStop::Reported(Check::UninitializedShared));
    for (fill, passes) in [(1, true), (2, false)] {
        let without = [Check::UninitializedShared].into_iter().collect();
        let report = check(never_stored::ARTIFACT, checker(Options { without, fill, ..Options::default() }));
        assert_eq!(report.passed(), passes, "{report}");
    }
}

/// Runs a loop of a hundred iterations.
#[kernel(block = 32, grid = 1)]
fn a_hundred_iterations(y: &mut [f32]) {
    let mut sum = 0.0;
    for _ in rolled(0..100) {
        sum += 0.01;
    }
    y[thread::x()] = if sum > 0.5 { 1.0 } else { sum };
}

/// Waits for a value that no thread stores.
#[kernel(block = 32, grid = 1)]
fn endless_wait(y: &mut [f32]) {
    while y.fetch_add(0, 0.0) == 0.0 {}
}

#[test]
fn a_loop_ends_with_its_fuel() {
    let fuelled = |artifact, fuel| check(artifact, checker(Options { fuel, ..Options::default() }));
    let enough = fuelled(a_hundred_iterations::ARTIFACT, 10_000);
    assert!(enough.passed(), "{enough}");
    assert_eq!(stop(&fuelled(a_hundred_iterations::ARTIFACT, 50)), ExecutorStop::Reported(Check::FuelExhausted));
    // A check that ends a launch cannot be disabled; otherwise this launch would pass.
    let without = Check::ALL.into_iter().collect();
    let report = check(endless_wait::ARTIFACT, checker(Options { without, fuel: 100_000, ..Options::default() }));
    assert!(matches!(stop(&report), ExecutorStop::Reported(Check::Livelock | Check::FuelExhausted)), "{report}");
}

/// Stores out of bounds twice.
#[kernel(block = 32, grid = 1)]
fn beyond(y: &mut [f32]) {
    y[thread::x() + 32] = 1.0;
    y[thread::x() + 64] = 1.0;
}

#[test]
fn check_can_stop_at_the_first_failure() {
    let findings = |report: &InstanceReport| match report.first_failure() {
        Some((_, Failure::Stopped { report: Some(found), .. })) => found.findings.len(),
        _ => panic!("{report}"),
    };
    let all = check(beyond::ARTIFACT, Checker::new(None));
    assert_eq!((all.cases.len(), findings(&all)), (2, 2));
    let first = check(beyond::ARTIFACT, Checker::new(None).with_stop_at_first());
    assert_eq!((first.cases.len(), findings(&first)), (1, 1));
}

#[test]
fn reports_state_the_line_of_the_ptx() {
    let report = check(beyond::ARTIFACT, Checker::new(None));
    let Some((_, Failure::Stopped { report: Some(found), error, .. })) = report.first_failure() else {
        panic!("{report}")
    };
    let ptx: Vec<_> = beyond::PTX.lines().map(|line| line.trim().trim_end_matches(';')).collect();
    for finding in &found.findings {
        let [line] = &finding.ptx[..] else { panic!("{:?}\n{}", finding.ptx, beyond::PTX) };
        assert_eq!(ptx[line.line as usize - 1], line.text, "{}", beyond::PTX);
        assert!(line.text.starts_with("st.global.f32"), "{}", line.text);
        assert!(error.contains(&format!("= note: in the PTX, line {}: {}", line.line, line.text)), "{error}");
    }
    assert_ne!(found.findings[0].ptx, found.findings[1].ptx);
}

/// Overflows in some threads, which is a warning, and stores out of bounds.
#[kernel(block = 32, grid = 1)]
fn overflows_and_stores_beyond(y: &mut [f32]) {
    let sum = thread::x() as i32 + 2_147_483_640;
    y[thread::x() + 32] = sum as f32;
}

/// Overflows in some threads, and stores 1 to every element.
#[kernel(block = 32, grid = 1)]
fn overflows(y: &mut [f32]) {
    let sum = thread::x() as i32 + 2_147_483_640;
    y[thread::x()] = if sum == 7 { 0.0 } else { 1.0 };
}

#[test]
fn errors_come_first_and_a_warning_counts_its_cases() {
    let report = check(overflows_and_stores_beyond::ARTIFACT, Checker::new(None));
    let Some((_, failure)) = report.first_failure() else { panic!("{report}") };
    let text = failure.to_string();
    let at = |part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(at("error[out-of-bounds]") < at("warning[integer-overflow]"), "{text}");
    let (check_name, place) = failure.cause();
    assert!(check_name == "out-of-bounds" && place.is_some_and(|place| place.contains("checker.rs:")), "{text}");
    let (first, others) = report.first_finding();
    let text = first.to_string();
    assert!(others == 1 && text.contains("error[out-of-bounds]") && !text.contains("warning["), "{text}");

    let report = check(overflows::ARTIFACT, Checker::new(None));
    let [warned] = &report.warnings[..] else { panic!("{report}") };
    assert_eq!((warned.cases, report.verdict()), (report.cases.len(), Verdict::Pass));
    let end = format!("= note: in 2 cases, first in case `{}`", warned.case);
    assert!(warned.to_string().ends_with(&end), "{warned}");
}

/// Stores 1 to every element.
#[kernel(block = 32, grid = 1)]
fn one(y: &mut [f32]) {
    y[thread::x()] = 1.0;
}

#[test]
fn unsupported_neither_passes_nor_fails() {
    let right = check(one::ARTIFACT, Checker::new(None));
    assert_eq!(right.verdict(), Verdict::Pass);
    // Without a page of shadow memory, races cannot be detected.
    let report = check(one::ARTIFACT, checker(Options { shadow: 0, ..Options::default() }));
    assert_eq!(
        (report.verdict(), report.passed(), stop(&report)),
        (Verdict::Unsupported, false, ExecutorStop::Unsupported)
    );
    assert!(report.cases.iter().all(|case| case.verdict == Verdict::Unsupported));
    assert!(report.to_string().contains("2 of 2 cases could not be completed (seed 1)"), "{report}");
    let json = serde_json::to_value(&report.cases).unwrap();
    assert_eq!((&json[0]["verdict"], &json[0]["failure"]["why"]), (&"unsupported".into(), &"unsupported".into()));
    // A spec without cases.
    let spec = KernelSpec { artifact: one::ARTIFACT, cases: no_cases, reference: ones };
    assert_eq!(Checker::new(None).check(&spec, &Instance::default(), 1).verdict(), Verdict::Unsupported);
    // A failed case outweighs an unsupported one.
    let failure = Failure::Incomplete { why: String::new() };
    let cases = [report.cases, vec![CaseReport::new("wrong", Some(failure))]].concat();
    assert_eq!(InstanceReport { cases, ..right }.verdict(), Verdict::Fail);
}

#[test]
fn error_of_a_launch_has_a_verdict() {
    let device = Device::cpu();
    let mut y = device.upload(&[0f32; N]).unwrap();
    assert_eq!(beyond::launch(&device, &mut y).unwrap_err().verdict(), Verdict::Fail);
}
