//! Complete reports, as users read them.

use crate::kit::{Kit, in_shared, input, out, run};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::ir::{Comparison, Location, Op, SourceLocation};
use kernel_dsl::compiler::source::{KernelSource, Span};

#[test]
fn an_error_shows_the_line() {
    let text = "pub fn copy(x: &[f32], y: &mut [f32]) {\n    let i = grid::index();\n    y[i] = x[i];\n}";
    let mut k = Kit::new([32, 1, 1], text);
    let (x, y) = (k.slice("x", Scalar::F32, false), k.slice("y", Scalar::F32, true));
    let i = k.grid_index();
    k.at("x[i]");
    let v = k.load(x.at(i), Scalar::F32);
    k.at("y[i]");
    k.store(y.at(i), Scalar::F32, v);
    let outcome = run(&k.finish(), 1, vec![input(&[0.0f32; 30]), out(&mut [0.0f32; 32])]);
    assert_eq!(
        outcome.report.to_string(),
        "\
error[out-of-bounds]: index 30 is out of bounds of `x`, which has 30 elements
  --> zoo/src/lib.rs:12:12
   |
12 |     y[i] = x[i];
   |            ^^^^ thread [30, 0, 0] of block [0, 0, 0] (warp 0, lane 30)
   |
   = note: this happened 2 times here
   = help: guard the access with `if index < length`, or use a masked load or store"
    );
}

#[test]
fn a_race_shows_both_sides() {
    let mut k = Kit::new([64, 1, 1], "pub fn race() {\n    s[i] = 0;\n    let t = s[63 - i];\n}");
    let s = k.shared("s", Scalar::U32, &[64], &[1]);
    let (i, last, zero) = (k.thread(), k.b.index(63), k.b.constant(Scalar::U32, 0));
    k.at("s[i] = 0");
    k.store(in_shared(s, &[i]), Scalar::U32, zero);
    // Only the second warp loads, and it runs after the store of the first.
    let half = k.b.index(32);
    let second = k.b.compare(Comparison::Ge, i, half);
    k.when(second, |k| {
        k.at("s[63 - i]");
        let j = k.binary(kernel_dsl::compiler::ir::Binary::Sub, last, i);
        k.load(in_shared(s, &[j]), Scalar::U32);
    });
    let report = run(&k.finish(), 1, vec![]).report.to_string();
    assert_eq!(
        report,
        "\
error[shared-race]: a race: this loads element 31 of `s`, another thread stores it, and nothing orders them
  --> zoo/src/lib.rs:12:13
   |
11 |     s[i] = 0;
   |     -------- thread [31, 0, 0] of block [0, 0, 0] (warp 0, lane 31) stores it
12 |     let t = s[63 - i];
   |             ^^^^^^^^^ thread [32, 0, 0] of block [0, 0, 0] (warp 1, lane 0)
   |
   = note: the other stored 0, this loads 0
   = note: this happened 32 times here
   = help: add `block::sync()` between the two accesses"
    );
}

#[test]
fn an_inlined_function_shows_its_call() {
    let mut k = Kit::new([1, 1, 1], "pub fn kernel(n: u32) {\n    let x = third(n);\n}");
    k.at("third(n)");
    let call = k.b.location;
    let text = vec!["fn third(n: u32) -> u32 {".to_string(), "    3 / n".to_string(), "}".to_string()];
    k.b.kernel.sources.push(KernelSource { name: "third".into(), file: "zoo/src/third.rs".into(), line: 40, text });
    let span = Span { line: 1, column: 5, end_line: 1, end_column: 10 };
    k.b.kernel.locations.push(SourceLocation { source: 1, span, caller: Some(call) });
    k.b.location = Location(k.b.kernel.locations.len() as u32 - 1);
    let (three, zero) = (k.b.constant(Scalar::U32, 3), k.b.constant(Scalar::U32, 0));
    k.b.scalar(Op::Binary(kernel_dsl::compiler::ir::Binary::Div, three, zero), Scalar::U32);
    let report = run(&k.finish(), 1, vec![]).report.to_string();
    assert_eq!(
        report,
        "\
error[division-by-zero]: division by zero: `3 / 0` in `u32`
  --> zoo/src/third.rs:41:5
   |
41 |     3 / n
   |     ^^^^^ thread [0, 0, 0] of block [0, 0, 0] (warp 0, lane 0)
   |
   = help: guard the division with `if divisor != 0`
note: inlined into `kernel` here
  --> zoo/src/lib.rs:11:13
   |
11 |     let x = third(n);
   |             ^^^^^^^^"
    );
}
