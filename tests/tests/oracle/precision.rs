//! Cancellation of leading digits, which the oracle reports where a launch requests it.

use super::kernels::squares;
use super::support::{AlignedMemory, checks, run, run_on};
use kernel_dsl::Kernel;
use kernel_dsl::prelude::*;
use runtime::interpreter::{Check, Options, Report};

fn cancellation_report(artifact: &kernel_dsl::Artifact) -> Report {
    let options = Options { cancellation: Some(1e-3), ..Options::default() };
    run_on(artifact, 1, &AlignedMemory::new(|i| i as f32), options).0
}

#[test]
fn cancellation_is_not_reported_by_default() {
    assert!(run(squares::ARTIFACT, 1).0.findings.is_empty());
}

#[test]
fn report_has_the_operation_and_its_accurate_result() {
    let report = cancellation_report(squares::ARTIFACT);
    assert_eq!(checks(&report), [Check::Cancellation], "{report}");
    let finding = &report.findings[0];
    // Thread 0 computes 1000.0009765625² − 1000² = 1.953125953674…. The first square is rounded to
    // a multiple of 1/16.
    let produced = finding.produced.as_ref().expect("the operation");
    assert_eq!(
        (&produced.inputs[..], &produced.result[..]),
        (&["1000001.94".to_string(), "1000000.0".to_string()][..], "1.9375")
    );
    assert!(finding.message.contains("1.953126"), "{}", finding.message);
    assert_eq!(finding.object.as_ref().map(|o| (&o.name[..], o.element)), Some(("y", Some(0))));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(
        (&json["findings"][0]["check"], &json["findings"][0]["severity"]),
        (&"cancellation".into(), &"warning".into())
    );
}

/// Passes a difference through shared memory, a shuffle and an array before it is stored.
#[kernel(block = 64, grid = 1)]
fn by_detours(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([64]);
    let i = thread::x();
    let third = x[i] / 3.0 + 100000.0;
    tile[i] = third - 100000.0;
    block::sync();
    let mut pair = [0.0; 2];
    pair[0] = warp::shuffle_xor(tile[63 - i], 1);
    pair[1] = 0.0;
    y[i] = pair[0] + pair[1];
}

/// Loses digits that are negligible in the final sum.
#[kernel(block = 64, grid = 1)]
fn lost_in_a_sum(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let third = x[i] / 3.0 + 100000.0;
    y[i] = (third - 100000.0) + 1.0e6;
}

/// Computes exact differences, and a sum whose many roundings lose digits slowly.
#[kernel(block = 64, grid = 1)]
fn nothing_lost(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let mut sum = x[i] - 63.0;
    for k in 0..1000 {
        sum += 0.1 * (k as f32);
    }
    y[i] = sum;
}

/// Computes exponentials, which reduce their operand by differences that cancel by design.
#[kernel(block = 64, grid = 1)]
fn exponentials(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = math::exp(-x[i]) + math::sin(x[i]) + math::ln(x[i] + 1.0);
}

/// Loses the digits of thirds in a large sum of `f64`.
#[kernel(block = 64, grid = 1)]
fn in_doubles(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let third = x[i] as f64 / 3.0 + 1.0e14;
    y[i] = (third - 1.0e14) as f32;
}

/// Loses the digits of thirds in a sum of `f16`: an `f16` near 1000 is a multiple of 1/2.
#[kernel(block = 64, grid = 1)]
fn in_halves(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let third = f16::from_f32(x[i] / 3.0) + f16::from_f32(1000.0);
    y[i] = (third - f16::from_f32(1000.0)).to_f32();
}

/// Computes with enough digits: an `f64` for digits that an `f32` loses, and an `f16` whose
/// operands are exact.
#[kernel(block = 64, grid = 1)]
fn digits_enough(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let third = x[i] as f64 / 3.0 + 100000.0;
    let rounded = f16::from_f32(x[i]) + f16::from_f32(0.5);
    y[i] = (third - 100000.0) as f32 + (rounded - f16::from_f32(0.25)).to_f32();
}

#[test]
fn f64_and_f16_are_followed_in_higher_precision() {
    let finding = |artifact| {
        let report = cancellation_report(artifact);
        assert_eq!(checks(&report), [Check::Cancellation], "{report}");
        report.findings[0].message.clone()
    };
    // Thread 1: the sum of 1/3 and 10¹⁴ is a multiple of 1/64, the sum of 1/3 and 1000 a multiple
    // of 1/2.
    let (doubles, halves) = (finding(in_doubles::ARTIFACT), finding(in_halves::ARTIFACT));
    let third = 1.0e14 + 1.0 / 3.0;
    assert!(doubles.contains(&format!("`{third:?} - {:?}` is {:?}", 1.0e14, third - 1.0e14)), "{doubles}");
    assert!(doubles.contains("but 0.3333333333333333 when computed with twice its digits"), "{doubles}");
    assert!(halves.contains("`1000.5 - 1000.0` is 0.5, but 0.33333334 when computed"), "{halves}");
    let report = cancellation_report(digits_enough::ARTIFACT);
    assert!(report.findings.is_empty(), "{report}");
}

#[test]
fn lost_digits_are_followed_to_the_store() {
    let report = cancellation_report(by_detours::ARTIFACT);
    assert_eq!(checks(&report), [Check::Cancellation], "{report}");
    let place = &report.findings[0].place;
    let source = &report.sources[place.source];
    assert_eq!(source.line_code(place.line - source.line), "tile[i] = third - 100000.0;");
    for artifact in [lost_in_a_sum::ARTIFACT, nothing_lost::ARTIFACT, exponentials::ARTIFACT] {
        let report = cancellation_report(artifact);
        assert!(report.findings.is_empty(), "{report}");
    }
}
