//! Origins of NaNs and infinities, which the oracle follows through memory and registers.

use super::support::{AlignedMemory, checks, run, run_on};
use kernel_dsl::Kernel;
use kernel_dsl::prelude::*;
use runtime::interpreter::report::Finding;
use runtime::interpreter::{Check, Options};

/// Returns the only finding, with the line of its operation and that of its store.
#[track_caller]
fn only(report: &runtime::interpreter::Report, check: Check) -> (&Finding, String, String) {
    assert_eq!(checks(report), [check], "{report}");
    let finding = &report.findings[0];
    let text = |place: &runtime::interpreter::report::CodeLocation| {
        let source = &report.sources[place.source];
        source.text[(place.line - source.line) as usize].trim().to_string()
    };
    let stored = finding.other.as_ref().and_then(|o| o.place.as_ref()).expect("a store");
    (finding, text(&finding.place), text(stored))
}

/// Passes a NaN through shared memory, a shuffle, a register array and a loop to another thread.
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
fn origin_is_followed_to_the_store() {
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

/// Computes y from x, which may have non-finite elements.
#[kernel(block = 64, grid = 1)]
fn passed_through(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = x[i] * 2.0 + 1.0;
}

#[test]
fn non_finite_inputs_are_not_reported() {
    let x = AlignedMemory::new(|i| [f32::NAN, f32::INFINITY, 1.0][i % 3]);
    let (report, y) = run_on(passed_through::ARTIFACT, 1, &x, Options::default());
    assert!(report.findings.is_empty() && y[0].is_nan() && y[1].is_infinite(), "{report}");
    // An infinity computed from finite numbers is reported.
    let (report, _) = run_on(passed_through::ARTIFACT, 1, &AlignedMemory::new(|_| f32::MAX), Options::default());
    let (finding, ..) = only(&report, Check::InfinityProduced);
    assert_eq!(finding.count, 64);
}

/// Computes the scores of a fully masked row.
#[kernel(block = 32, grid = 1)]
fn masked(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let score = if x[i] < 100.0 { f32::NEG_INFINITY } else { x[i] };
    let most = warp::max(score);
    y[i] = most;
    y[i + 32] = score - most;
}

#[test]
fn nan_of_two_masks_is_reported_but_not_the_masks() {
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
fn infinity_of_a_math_function_is_reported_at_the_call() {
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
fn software_conversions_are_reported() {
    let (report, _) = run_on(as_brain_floats::ARTIFACT, 1, &AlignedMemory::new(|_| f32::MAX), Options::default());
    let (finding, ..) = only(&report, Check::ConversionOverflow);
    assert!(finding.message.starts_with("`3.4028235e38 as bf16` is beyond the type's range (inf)"), "{report}");
    let (report, _) = run_on(as_small_floats::ARTIFACT, 1, &AlignedMemory::new(|i| 1e3 * i as f32), Options::default());
    only(&report, Check::ConversionOverflow);
    // Conversions preserve infinities.
    let (report, _) = run_on(as_small_floats::ARTIFACT, 1, &AlignedMemory::new(|_| f32::INFINITY), Options::default());
    assert!(report.findings.is_empty(), "{report}");
}

/// Follows an origin through a buffer, with an atomic addition as the operation.
#[kernel(block = 64, grid = 1)]
fn summed(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y.fetch_add(0, x[i]);
}

#[test]
fn an_atomic_sum_overflows() {
    let (report, y) = run_on(summed::ARTIFACT, 1, &AlignedMemory::new(|_| 2e38), Options::default());
    assert_eq!(y[0], f32::INFINITY);
    only(&report, Check::InfinityProduced);
}

#[test]
fn disabled_checks_are_not_reported() {
    let without = [Check::NanProduced].into_iter().collect();
    let (report, _) =
        run_on(masked::ARTIFACT, 1, &AlignedMemory::new(|i| i as f32), Options { without, ..Options::default() });
    assert!(report.findings.is_empty(), "{report}");
}
