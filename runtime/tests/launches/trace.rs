//! Traces of a thread by `testing::trace`, against traces written by hand.

use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use runtime::interpreter::trace::TraceEvent;
use runtime::interpreter::{Options, Trace};
use runtime::testing::{self, Input, TracedThread};

#[device]
fn half(x: f32) -> f32 {
    x * 0.5
}

fn trace<K: Kernel>(inputs: Vec<Input>, block: [u32; 3], thread: [u32; 3], limit: usize) -> runtime::Result<Trace> {
    let instance = Instance(K::CONSTANTS.to_vec());
    testing::trace(K::ARTIFACT, &instance, &inputs.into(), TracedThread { block, thread, limit }, Options::default())
        .map(|(_, trace)| trace)
}

#[kernel(block = 64, grid = y.len() / 64)]
#[requires(x.len() == y.len())]
fn walked(x: &[f32], y: &mut [f32], iterations: usize) {
    let mut tile = Shared::<f32, 2>::new([2, 32]);
    let (i, lane) = (grid::index(), thread::x() % 32);
    tile[(thread::x() / 32, lane)] = half(x[i]);
    block::sync();
    let mut sum = 0.0;
    for k in 0..iterations {
        if k == 1 {
            continue;
        }
        sum += tile[(1, k)];
    }
    let other = warp::shuffle(lane, 7);
    if lane > 2 {
        y[i] = sum;
        return;
    }
    y.fetch_add(i, other as f32);
}

fn inputs(iterations: usize) -> Vec<Input> {
    let x: Vec<f32> = (0..128).map(|i| i as f32).collect();
    vec![Input::slice(&x), Input::slice(&[0.25f32; 128]), Input::scalar(iterations)]
}

/// Returns the lines without their source positions, so that the line numbers of this file do not
/// matter.
fn words(trace: &Trace) -> Vec<String> {
    let line = |line: &runtime::interpreter::trace::TracedLine| {
        let events: Vec<_> = line.events.iter().map(TraceEvent::to_string).collect();
        format!("{} | {}", line.text, events.join("; "))
    };
    trace.lines.iter().map(line).collect()
}

#[test]
fn each_line_lists_its_events() {
    let trace = trace::<walked>(inputs(3), [1, 0, 0], [34, 0, 0], 100).unwrap();
    let expected = [
        "fn walked(x: &[f32], y: &mut [f32], iterations: usize) { | iterations = 3",
        "let (i, lane) = (grid::index(), thread::x() % 32); | i = 98; lane = 2",
        "tile[(thread::x() / 32, lane)] = half(x[i]); | load x[98]: 98.0; x = 98.0; store tile[(1, 2)] (element 34): 49.0",
        "block::sync(); | the block's barrier",
        "let mut sum = 0.0; | sum = 0.0",
        "for k in 0..iterations { | iteration 1; k = 0",
        "if k == 1 { | the condition does not hold",
        "sum += tile[(1, k)]; | load tile[(1, 0)] (element 32): 48.0; sum = 48.0",
        "for k in 0..iterations { | iteration 2; k = 1",
        "if k == 1 { | the condition holds",
        "for k in 0..iterations { | iteration 3; k = 2",
        "if k == 1 { | the condition does not hold",
        "sum += tile[(1, k)]; | load tile[(1, 2)] (element 34): 49.0; sum = 97.0",
        "for k in 0..iterations { | the loop ends after 3 iterations",
        "let other = warp::shuffle(lane, 7); | from the warp: 7; other = 7",
        "if lane > 2 { | the condition does not hold",
        "y.fetch_add(i, other as f32); | fetch_add y[98]: 7.0, before it 0.25; the thread ends",
    ];
    let found = words(&trace);
    assert_eq!(found, expected, "{found:#?}");
    assert_eq!((trace.left_out, trace.block, trace.thread), (0, [1, 0, 0], [34, 0, 0]));
}

#[kernel(block = 32, grid = 1)]
fn counted(x: &mut [u32], y: &mut [f32], z: &mut [u64]) {
    let before = x.fetch_sub(0, 3);
    y.fetch_sub(0, 0.5);
    z.exchange(thread::x(), before as u64);
}

/// A subtraction is an addition of the negated value to the device, and a subtraction in a trace.
#[test]
fn atomic_operations_have_the_names_of_their_methods() {
    let inputs = vec![Input::slice(&[100u32]), Input::slice(&[1.0f32]), Input::slice(&[7u64; 32])];
    let found = words(&trace::<counted>(inputs, [0, 0, 0], [0, 0, 0], 100).unwrap());
    let expected = [
        "let before = x.fetch_sub(0, 3); | fetch_sub x[0]: 3, before it 100; before = 100",
        "y.fetch_sub(0, 0.5); | fetch_sub y[0]: 0.5, before it 1.0",
        "z.exchange(thread::x(), before as u64); | exchange z[0]: 100, before it 7; the thread ends",
    ];
    assert_eq!(found, expected, "{found:#?}");
}

#[test]
fn threads_take_different_paths() {
    let found = words(&trace::<walked>(inputs(1), [0, 0, 0], [40, 0, 0], 100).unwrap());
    let last = ["if lane > 2 { | the condition holds", "y[i] = sum; | store y[40]: 16.0", "return; | the thread ends"];
    assert_eq!(found[found.len() - 3..], last, "{found:#?}");
}

#[test]
fn events_beyond_the_limit_are_counted() {
    let all = trace::<walked>(inputs(9), [0, 0, 0], [1, 0, 0], 1000).unwrap();
    let some = trace::<walked>(inputs(9), [0, 0, 0], [1, 0, 0], 10).unwrap();
    assert_eq!(some.lines, all.lines[..10]);
    assert_eq!(some.left_out as usize, all.lines.len() - 10);
    assert!(some.to_string().ends_with(&format!("\n… and {} more", some.left_out)), "{some}");
}

#[test]
fn missing_threads_are_rejected() {
    for (block, thread, why) in [
        ([2, 0, 0], [0, 0, 0], "there is no block [2, 0, 0]: the grid is 2 x 1 x 1"),
        ([0, 0, 0], [0, 1, 0], "there is no thread [0, 1, 0]: the block is 64 x 1 x 1"),
    ] {
        let refused = trace::<walked>(inputs(1), block, thread, 10).unwrap_err().to_string();
        assert_eq!(refused, format!("walked has no such thread: {why}"));
    }
    let none = [Input::slice(&[0f32; 0]), Input::slice(&[0f32; 0]), Input::scalar(0usize)];
    let refused = trace::<walked>(none.to_vec(), [0; 3], [0; 3], 10).unwrap_err().to_string();
    assert_eq!(refused, "walked has no such thread: the grid of this case has no block");
}

#[test]
fn accesses_out_of_bounds_are_reported_and_skipped() {
    let instance = Instance(walked::CONSTANTS.to_vec());
    let thread = TracedThread { block: [0; 3], thread: [0; 3], limit: 1000 };
    let (outcome, trace) =
        testing::trace(walked::ARTIFACT, &instance, &inputs(40).into(), thread, Options::default()).unwrap();
    assert!(outcome.report.errors().any(|f| f.check.name() == "out-of-bounds"), "{}", outcome.report);
    assert!(words(&trace).iter().any(|line| line.contains("load tile[(1, 32)]")), "{trace}");
}

/// Logs each element below 0.
#[kernel(block = 32, grid = x.len().div_ceil(32))]
fn logged(x: &[f32]) {
    let i = grid::index();
    if i < x.len() && x[i] < 0.0 {
        log!("x[{i}] = {}", x[i]);
    }
}

/// Checks that a trace has the lines of its thread, and no lines of other threads.
#[test]
fn a_log_is_an_event_of_its_thread() {
    let x: Vec<f32> = (0..40).map(|i| if i < 34 { 1.0 } else { -0.5 * i as f32 }).collect();
    let of = |thread| words(&trace::<logged>(vec![Input::slice(&x)], [1, 0, 0], [thread, 0, 0], 100).unwrap());
    let line = "log!(\"x[{i}] = {}\", x[i]); | load x[37]: -18.5; ";
    let log = "log: block [1, 0, 0], thread [5, 0, 0]: x[37] = -18.5; the thread ends";
    assert_eq!(of(5).last().unwrap(), &format!("{line}{log}"));
    assert!(!of(1).iter().any(|line| line.contains("log:")), "{:?}", of(1));
}
