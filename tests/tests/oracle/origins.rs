//! Where NaNs and infinities come from, through whatever they pass on their way.

use super::support::{Memory, checks, run, run_on};
use kernel_dsl::Kernel;
use kernel_dsl::prelude::*;
use runtime::interpreter::report::Finding;
use runtime::interpreter::{Check, Options};

/// The only finding, with the line of its operation and that of its store.
#[track_caller]
fn only(report: &runtime::interpreter::Report, check: Check) -> (&Finding, String, String) {
    assert_eq!(checks(report), [check], "{report}");
    let finding = &report.findings[0];
    let text = |place: &runtime::interpreter::report::Place| {
        let source = &report.sources[place.source];
        source.text[(place.line - source.line) as usize].trim().to_string()
    };
    let stored = finding.other.as_ref().and_then(|o| o.place.as_ref()).expect("a store");
    (finding, text(&finding.place), text(stored))
}

/// By way of shared memory, a shuffle, a register array and a loop, to another thread.
#[kernel(block = 64, grid = 1)]
fn far(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([64]);
    let i = thread::x();
    let root = (x[i] - 5.0).sqrt();
    tile[i] = root;
    block::sync();
    let mut kept = [0.0; 4];
    for k in unroll(0..4) {
        kept[k] = tile[(i + 16 * k) % 64];
    }
    let mut sum = 0.0;
    for k in unroll(0..4) {
        sum += kept[k];
    }
    y[i] = warp::shuffle_xor(sum, 1);
}

#[test]
fn an_origin_is_carried_to_the_store() {
    let (report, y) = run(far::ARTIFACT, 1);
    assert!(y[1].is_nan() && !y[10].is_nan());
    let (finding, made, stored) = only(&report, Check::NanProduced);
    assert_eq!((&made[..], &stored[..]), ("let root = (x[i] - 5.0).sqrt();", "y[i] = warp::shuffle_xor(sum, 1);"));
    let produced = finding.produced.as_ref().expect("an operation");
    assert_eq!((&produced.operation[..], &produced.result[..]), ("`(-4.0).sqrt()`", "NaN"));
    assert_eq!((finding.thread.thread[0], finding.other.as_ref().unwrap().thread.thread[0]), (1, 0));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["findings"][0]["produced"]["inputs"][0], "-4.0");
}

/// y = x, and what is made of it.
#[kernel(block = 64, grid = 1)]
fn handed_through(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = x[i] * 2.0 + 1.0;
}

#[test]
fn what_comes_from_outside_is_no_finding() {
    let x = Memory::new(|i| [f32::NAN, f32::INFINITY, 1.0][i % 3]);
    let (report, y) = run_on(handed_through::ARTIFACT, 1, &x, Options::default());
    assert!(report.findings.is_empty() && y[0].is_nan() && y[1].is_infinite(), "{report}");
    // But an infinity that was made of finite numbers is.
    let (report, _) = run_on(handed_through::ARTIFACT, 1, &Memory::new(|_| f32::MAX), Options::default());
    let (finding, ..) = only(&report, Check::InfinityProduced);
    assert_eq!(finding.count, 64);
}

/// The scores of a row that a mask leaves nothing of.
#[kernel(block = 32, grid = 1)]
fn masked(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let score = if x[i] < 100.0 { f32::NEG_INFINITY } else { x[i] };
    let most = warp::max(score);
    y[i] = most;
    y[i + 32] = score - most;
}

#[test]
fn a_mask_is_no_finding_and_what_is_made_of_two_is() {
    let (report, y) = run(masked::ARTIFACT, 1);
    assert!(y[0] == f32::NEG_INFINITY && y[32].is_nan());
    let (finding, made, _) = only(&report, Check::NanProduced);
    assert_eq!(finding.produced.as_ref().unwrap().operation, "`-inf - -inf`");
    assert_eq!(made, "y[i + 32] = score - most;");
}

#[kernel(block = 64, grid = 1)]
fn logarithms(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = math::ln(x[i]);
}

#[test]
fn an_edge_of_a_function_of_math_is_its_caller_s() {
    let (report, y) = run(logarithms::ARTIFACT, 1);
    assert_eq!(y[0], f32::NEG_INFINITY);
    let (finding, ..) = only(&report, Check::InfinityProduced);
    assert!(finding.message.starts_with("the result of `math::ln` is -inf"), "{report}");
    assert!(report.to_string().contains("y[i] = math::ln(x[i]);"), "{report}");
}

#[kernel(block = 64, grid = 1)]
fn as_brain_floats(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = bf16::from_f32(x[i]).to_f32();
}

#[kernel(block = 64, grid = 1)]
fn as_small_floats(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = Float16::<4, 7>::from_f32(x[i]).to_f32();
}

#[test]
fn conversions_that_are_written_out_in_integers_are_told_too() {
    let (report, _) = run_on(as_brain_floats::ARTIFACT, 1, &Memory::new(|_| f32::MAX), Options::default());
    let (finding, ..) = only(&report, Check::ConversionOverflow);
    assert!(finding.message.starts_with("`3.4028235e38 as bf16` is beyond the type's range (inf)"), "{report}");
    let (report, _) = run_on(as_small_floats::ARTIFACT, 1, &Memory::new(|i| 1e3 * i as f32), Options::default());
    only(&report, Check::ConversionOverflow);
    // Infinities stay what they are.
    let (report, _) = run_on(as_small_floats::ARTIFACT, 1, &Memory::new(|_| f32::INFINITY), Options::default());
    assert!(report.findings.is_empty(), "{report}");
}

/// A buffer is memory on the way, too, and an atomic sum an operation.
#[kernel(block = 64, grid = 1)]
fn summed(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y.fetch_add(0, x[i]);
}

#[test]
fn an_atomic_sum_overflows() {
    let (report, y) = run_on(summed::ARTIFACT, 1, &Memory::new(|_| 2e38), Options::default());
    assert_eq!(y[0], f32::INFINITY);
    only(&report, Check::InfinityProduced);
}

#[test]
fn a_check_that_is_left_out_is_not_told() {
    let without = [Check::NanProduced].into_iter().collect();
    let (report, _) =
        run_on(masked::ARTIFACT, 1, &Memory::new(|i| i as f32), Options { without, ..Options::default() });
    assert!(report.findings.is_empty(), "{report}");
}
