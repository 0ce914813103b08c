//! Tests of the places of errors, and of malformed IR that text cannot express. Other errors have
//! files in `filetests`.

use crate::examples::{Write, at, saxpy};
use kernel_dsl_compiler::ir::verify::verify;
use kernel_dsl_compiler::ir::*;
use kernel_dsl_compiler::passes::optimize;
use kernel_dsl_compiler::source::{KernelSource, Span};
use kernel_dsl_compiler::{Errors, Scalar};
use smallvec::smallvec;

/// Returns a kernel of two lines with locations for its two accesses.
fn with_source(line: &str, columns: [(u16, u16); 2]) -> Kernel {
    let mut k = crate::generator::empty();
    let text = vec!["fn k() {".to_string(), line.to_string(), "}".to_string()];
    k.sources.push(KernelSource { name: "k".into(), file: "demo/src/lib.rs".into(), line: 7, text });
    let place = |(column, end_column)| SourceLocation {
        source: 0,
        span: Span { line: 1, column, end_line: 1, end_column },
        caller: None,
    };
    k.locations = columns.map(place).to_vec();
    k.locals.push(Local { name: "acc".into(), element: Type::Scalar(Scalar::F32), len: 4, memory: false });
    k
}

#[test]
fn register_array_in_a_rolled_loop_is_an_error() {
    let line = "    for i in 0..n { acc[i] += x[i]; acc[2 * i + 1] = 0.0; }";
    let (mut w, p) = Write::new(with_source(line, [(21, 35), (37, 57)]));
    let range = [w.n(0), p[1], w.n(1)];
    w.each(0, range, Unroll::Auto, |w, i| {
        let x = w.load(at(p[0], i, p[1]));
        let old = w.read(0, Some(i));
        let new = w.add(old, x);
        w.write(0, Some(i), new);
        w.0.location = Location(1);
        let j = w.add(i, i);
        w.write(0, Some(j), x);
    });
    insta::assert_snapshot!(optimize(w.0.finish()).unwrap_err());
}

/// Returns the verifier's errors for `saxpy` after `spoil`.
fn spoiled(spoil: impl FnOnce(&mut Kernel)) -> Errors {
    let mut k = saxpy();
    assert_eq!(verify(&k), Ok(()));
    spoil(&mut k);
    verify(&k).unwrap_err()
}

#[test]
fn malformed_ir_is_an_internal_error() {
    let cases: Vec<Errors> = vec![
        spoiled(|k| k.body.insts[7].op = Op::Constant(1 << 32)),
        spoiled(|k| k.body.insts.swap(7, 8)),
        spoiled(|k| k.body.insts[9].results = smallvec![Value(8)]),
        spoiled(|k| k.body.insts[2].op = Op::Parameter(17)),
        spoiled(|k| _ = k.body.insts.pop()),
        spoiled(|k| {
            let Op::If { then, .. } = &mut k.body.insts[11].op else { panic!("the branch") };
            let Op::Store { values, .. } = &mut then.insts[3].op else { panic!("the store") };
            values[0] = Value(9);
        }),
    ];
    let text: Vec<_> = cases.iter().map(Errors::to_string).collect();
    insta::assert_snapshot!(text.join("\n\n"));
}
