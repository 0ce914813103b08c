//! Declarations of kernels and options of runs: allowances, outputs, and the contents of unwritten
//! memory.

use super::support::{AlignedMemory, checks, run, run_on};
use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use runtime::interpreter::{Check, Options, Verdict};
use runtime::testing::{Bound, Case, Checker, Expected, Failure, Input, PreparedInstance};

/// Stores the same value in all blocks.
#[kernel(block = 32, grid = 2)]
fn flagged(x: &[f32], y: &mut [f32]) {
    #[allow(global_race, reason = "every block stores the same")]
    if x[thread::x()] >= 0.0 {
        y[thread::x()] = 1.0;
    }
    // Lints of rustc are left to rustc.
    #[allow(unused_variables)]
    let unused = 1;
}

#[test]
fn allowed_findings_are_listed_separately() {
    let (report, _) = run(flagged::ARTIFACT, 2);
    assert!(report.findings.is_empty(), "{report}");
    let [allowed] = &report.allowed[..] else { panic!("{:?}", report.allowed) };
    assert_eq!(
        (allowed.check, allowed.count, &allowed.reason[..]),
        (Check::GlobalRace, 32, "every block stores the same")
    );
    let text = report.to_string();
    assert!(text.starts_with("allowed: global-race at tests/tests/oracle/declarations.rs:"), "{text}");
    assert!(text.ends_with(", 32 times: every block stores the same"), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["allowed"][0]["check"], "global-race");
}

/// Calls a device function twice. An allowance on a call covers the statements of the device
/// function for that call only.
#[kernel(block = 32, grid = 2)]
fn by_a_call(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    #[allow(race, reason = "every block stores the same")]
    store(y, i, x[0]);
    store(y, i + 32, x[0]);
}

#[device]
fn store(y: &mut [f32], i: usize, v: f32) {
    y[i] = v;
}

#[test]
fn allowance_does_not_cover_other_statements() {
    let (report, _) = run(by_a_call::ARTIFACT, 2);
    assert_eq!((checks(&report), report.allowed.len()), (vec![Check::GlobalRace], 1), "{report}");
    assert_eq!(report.findings[0].place.callers.len(), 1);
}

/// Races one load with two stores, of which the first is allowed.
#[kernel(block = 96, grid = 1)]
fn one_of_two(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([2]);
    if thread::x() == 0 {
        #[allow(shared_race, reason = "a flag")]
        {
            tile[0] = 1.0;
        }
    }
    if thread::x() == 32 {
        tile[1] = x[1];
    }
    if thread::x() == 64 {
        let mut sum = 0.0;
        for k in rolled(0..2) {
            sum += tile[k];
        }
        y[0] = sum;
    }
}

#[test]
fn allowance_does_not_cover_races_with_other_statements() {
    let (report, _) = run(one_of_two::ARTIFACT, 1);
    assert_eq!((checks(&report), report.allowed.len()), (vec![Check::SharedRace], 1), "{report}");
}

/// Causes a warning, and then an error.
#[kernel(block = 32, grid = 1)]
fn warned_and_wrong(x: &[f32], y: &mut [f32]) {
    let large = i32::MAX + thread::x() as i32;
    y[thread::x()] = large as f32 + x[0];
    y[thread::x() + 1_000_000] = 0.0;
}

#[test]
fn warnings_do_not_end_a_run() {
    let options = Options { limit: 1, ..Options::default() };
    let (report, _) = run_on(warned_and_wrong::ARTIFACT, 1, &AlignedMemory::new(|i| i as f32), options);
    assert_eq!(checks(&report), [Check::IntegerOverflow, Check::OutOfBounds], "{report}");
    assert_eq!(report.verdict(), Verdict::Fail);
}

#[device]
fn store_one(y: &mut [f32], i: usize) {
    #[allow(global_race, reason = "a flag")]
    {
        y[i] = 1.0;
    }
}

/// Uses an allowance in a device function, and one with the name as reports print it.
#[kernel(block = 32, grid = 2)]
fn in_a_function(x: &[f32], y: &mut [f32]) {
    store_one(y, thread::x());
    #[allow(global-race, reason = "another flag")]
    y.store(32 + thread::x(), [x[0]]);
}

#[test]
fn allowance_in_a_device_function_covers_its_calls() {
    let (report, _) = run(in_a_function::ARTIFACT, 2);
    let reasons: Vec<_> = report.allowed.iter().map(|a| (&a.reason[..], a.count)).collect();
    assert_eq!((checks(&report), reasons), (vec![], vec![("a flag", 32), ("another flag", 32)]), "{report}");
}

#[kernel(block = 64, grid = 1)]
fn never_stored(x: &[f32], y: &mut [f32]) {
    let tile = Shared::<f32, 1>::new([64]);
    let flags = Shared::<u8, 1>::new([64]);
    y[thread::x()] = x[0] + tile[thread::x()] + flags[thread::x()] as f32;
}

#[test]
fn unwritten_memory_holds_the_fill_byte() {
    let x = AlignedMemory::new(|_| 0.0);
    for (fill, expected) in [(0x00, 0.0), (0x40, f32::from_bits(0x4040_4040) + 64.0)] {
        let (report, y) = run_on(never_stored::ARTIFACT, 1, &x, Options { fill, ..Options::default() });
        assert_eq!(checks(&report), [Check::UninitializedShared; 2]);
        assert!(y.iter().all(|v| *v == expected), "{fill:#x}: {y:?}");
    }
    let (_, y) = run_on(never_stored::ARTIFACT, 1, &x, Options { fill: 0xff, ..Options::default() });
    assert!(y.iter().all(|v| v.is_nan()), "{y:?}");
}

#[kernel(block = 32, grid = y.len().div_ceil(32), writes(y = once))]
#[requires(x.len() == y.len())]
fn copied(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = x[i];
    }
}

#[kernel(block = 32, grid = y.len().div_ceil(32), writes(y = all))]
#[requires(x.len() == y.len())]
fn added(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] += x[i];
    }
}

fn of<K: Kernel>(y: Input) -> Result<(), Failure> {
    let x: Vec<f32> = (0..50).map(|i| i as f32).collect();
    let prepared = PreparedInstance::compile(K::ARTIFACT, &Instance::default()).unwrap();
    let case = Case::new("50", [Input::slice(&x), y]);
    let expected = vec![Expected::new(1, (0..50).map(f64::from).collect(), Bound::Exact)];
    Checker::new(None).case(&prepared, &case, |_| expected)
}

#[test]
fn uninitialized_outputs_may_only_be_written() {
    of::<copied>(Input::uninitialized::<f32, 1>([50])).unwrap_or_else(|e| panic!("{e}"));
    of::<added>(Input::slice(&[0f32; 50])).unwrap_or_else(|e| panic!("{e}"));
    let failure = of::<added>(Input::uninitialized::<f32, 1>([50])).expect_err("it reads").to_string();
    assert!(failure.contains("error[uninitialized-buffer]"), "{failure}");
}

/// Adds to an output atomically, which counts as writing.
#[kernel(block = 64, grid = 1, writes(y = all))]
fn counted(x: &[f32], y: &mut [f32]) {
    y.fetch_add(thread::x(), x[thread::x()]);
}

/// Writes the first of the rows of a view that has gaps between its rows.
#[kernel(block = 8, grid = 1, writes(y = all))]
fn first_row(mut y: ViewMut<f32, 2>) {
    y[(0, thread::x())] = 1.0;
}

#[test]
fn outputs_are_the_elements_of_the_argument() {
    let (report, _) = run(counted::ARTIFACT, 1);
    assert!(report.findings.is_empty(), "{report}");
    let prepared = PreparedInstance::compile(first_row::ARTIFACT, &Instance::default()).unwrap();
    let check = |rows| {
        let case = Case::new("rows", [Input::strided(&[0f32; 40], [rows, 8], [20, 1])]);
        let expected = vec![Expected::new(0, vec![1.0; 8 * rows], Bound::Exact)];
        Checker::new(None).case(&prepared, &case, |_| expected)
    };
    check(1).unwrap_or_else(|e| panic!("{e}"));
    let failure = check(2).expect_err("the second row is not written").to_string();
    assert!(failure.contains("element 20 of `y`, the first of 8 among 16, is written by no thread"), "{failure}");
}
