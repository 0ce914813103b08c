//! The flow of undefined values, and where it ends.

use super::support::{AlignedMemory, checks, run, run_on};
use kernel_dsl::Kernel;
use kernel_dsl::prelude::*;
use runtime::interpreter::{Check, Checks, Options, Report};

/// Returns the messages about undefined values, without their sources.
fn messages(report: &Report) -> Vec<&str> {
    report.findings.iter().filter(|f| f.check == Check::UndefinedValue).map(|f| &f.message[..]).collect()
}

/// Reads in the second half of the lanes from inactive lanes, without using the result.
#[kernel(block = 32, grid = 1)]
fn unused_shuffle(x: &[f32], y: &mut [f32]) {
    let lane = warp::lane();
    let mut own = 1.0;
    if x[lane / 16] > 0.5 {
        let other = warp::shuffle(x[lane], lane % 16);
        own = if lane < 16 { other } else { 2.0 };
    }
    y[lane] = own;
}

/// Passes an undefined value through registers, a register array and shared memory.
#[kernel(block = 32, grid = 1)]
fn passed_on(x: &[f32], y: &mut [f32]) {
    let lane = warp::lane();
    let mut tile = Shared::<f32, 1>::new([32]);
    let mut parts = [0.0; 4];
    if x[lane / 16] > 0.5 {
        parts[2] = warp::shuffle(x[lane], 0);
    }
    tile[lane] = 3.0 * (parts[2] + 1.0);
    block::sync();
    y[lane] = tile[31 - lane].sqrt();
}

#[kernel(block = 32, grid = 1)]
fn branched_on(x: &[f32], y: &mut [f32]) {
    let lane = warp::lane();
    let mut first = 0.0;
    if x[lane / 16] > 0.5 {
        first = warp::shuffle(x[lane], 0);
    }
    if first > 0.5 {
        y[lane] = 1.0;
    }
}

#[kernel(block = 32, grid = 1)]
fn looked_up(x: &[f32], y: &mut [f32]) {
    let lane = warp::lane();
    let mut at = 0;
    if x[lane / 16] > 0.5 {
        at = warp::shuffle(lane, 0);
    }
    y[lane] = x[at];
}

#[kernel(block = 32, grid = 1)]
fn added(x: &[f32], y: &mut [f32]) {
    let lane = warp::lane();
    if x[lane / 16] > 0.5 {
        y.fetch_add(0, warp::shuffle(x[lane], 0));
    }
}

#[kernel(block = 32, grid = 1)]
fn counted(x: &[f32], y: &mut [f32]) {
    let lane = warp::lane();
    if x[lane / 16] > 0.5 {
        y[lane] = warp::ballot(x[lane] > 20.0) as f32;
    }
}

#[test]
fn unused_undefined_value_is_reported_at_its_source_only() {
    let (report, y) = run(unused_shuffle::ARTIFACT, 1);
    assert_eq!(messages(&report), [""; 0], "{report}");
    assert!(report.findings.iter().any(|f| f.check == Check::ShuffleInactive), "{report}");
    assert_eq!((y[0], y[31]), (1.0, 2.0));
}

#[test]
fn undefined_value_is_followed_to_the_store() {
    let (report, _) = run(passed_on::ARTIFACT, 1);
    assert_eq!(messages(&report), ["an undefined value is stored: element 0 of `y`"], "{report}");
    let finding =
        report.findings.iter().find(|f| f.check == Check::UndefinedValue).expect("the stored value is reported");
    assert_eq!((finding.count, finding.thread.lane), (16, 0));
    let source = finding.other.as_ref().expect("its source");
    let shuffle = report.findings.iter().find(|f| f.check == Check::ShuffleInactive).expect("the shuffle is reported");
    assert_eq!(source.place.as_ref().map(|place| place.line), Some(shuffle.place.line));
    assert_eq!(source.thread.lane, 31);
}

#[test]
fn undefined_value_is_reported_at_every_kind_of_use() {
    for (kernel, what) in [
        (branched_on::ARTIFACT, "an undefined value decides a branch"),
        (looked_up::ARTIFACT, "an undefined value is part of an address"),
        (added::ARTIFACT, "an undefined value is an operand of an atomic operation: element 0 of `y`"),
        (counted::ARTIFACT, "an undefined value is stored: element 16 of `y`"),
    ] {
        let (report, _) = run(kernel, 1);
        assert_eq!(messages(&report)[..1], [what], "{}: {report}", kernel.name);
    }
}

#[test]
fn undefined_values_are_not_reported_when_disabled() {
    let numbers = || AlignedMemory::new(|i| i as f32);
    let without = Options { without: [Check::UndefinedValue].into_iter().collect(), ..Options::default() };
    let (report, _) = run_on(passed_on::ARTIFACT, 1, &numbers(), without);
    assert!(!checks(&report).contains(&Check::UndefinedValue), "{report}");
    // An undefined value is reported even where its source is not.
    let without = [Check::ShuffleInactive, Check::DivergentWarp].into_iter().collect();
    let (report, _) = run_on(passed_on::ARTIFACT, 1, &numbers(), Options { without, ..Options::default() });
    assert_eq!(checks(&report), [Check::UndefinedValue], "{report}");
    let (report, _) =
        run_on(passed_on::ARTIFACT, 1, &numbers(), Options { checks: Checks::Accesses, ..Options::default() });
    assert!(!checks(&report).contains(&Check::UndefinedValue), "{report}");
}
