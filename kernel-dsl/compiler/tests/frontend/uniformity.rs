//! Tests which threads share which values, and which programs are therefore valid.

use crate::support::{Crate, KERNELS, library};
use kernel_dsl_compiler::analyses::uniformity::{UniformScope, Uniformity};
use kernel_dsl_compiler::ir::{Inst, Kernel, Op, Region, Value};
use kernel_dsl_compiler::{Target, driver, lower};

#[test]
fn converged_programs_are_accepted() {
    for text in KERNELS.into_iter().chain([include_str!("converged.rs")]) {
        let all = Crate::parse(text).expect("the file is Rust").with(&library());
        for function in all.kernels() {
            let program = all.program(function);
            for declared in &program.launch.instances {
                let name = program.instance_name(&declared.arguments);
                driver::lowered(&program, &declared.arguments, Target::SM_61)
                    .unwrap_or_else(|e| panic!("{name}:\n{e}"));
            }
        }
    }
}

#[test]
fn parameters_have_a_limited_size() {
    let refused = |numbers: usize| {
        let parameters: Vec<_> = (0..numbers).map(|i| format!("p{i}: u64")).collect();
        let text =
            format!("#[kernel(block = 32, grid = 1)] fn k(y: &mut [u64], {}) {{ y[0] = p0; }}", parameters.join(","));
        let all = Crate::parse(&text).expect("the text is Rust");
        let program = all.program(&all.functions[0]);
        driver::lowered(&program, &program.launch.instances[0].arguments, Target::SM_61).err().map(|e| e.to_string())
    };
    assert_eq!(refused(509), None);
    assert_eq!(
        refused(510).as_deref(),
        Some(
            "the parameters of `k` take 4096 bytes; the limit is 4088 bytes\n\
             help: pass the numbers in a slice, which takes 12 bytes for any length"
        )
    );
}

/// Returns a kernel with blocks of shape `block` that stores the `u32` at the end of `body`.
fn storing(block: &str, body: &str) -> Kernel {
    let text = format!(
        "#[kernel(block = {block}, grid = 1)]
        fn stores(n: usize, x: &[u32], w: &mut [u32], y: &mut [u32]) {{ y[0] = {{ {body} }}; }}"
    );
    let all = Crate::parse(&text).expect("the text is Rust");
    let program = all.program(&all.functions[0]);
    lower::lower(&program, &program.launch.instances[0].arguments, Target::SM_61).unwrap_or_else(|e| panic!("{e}"))
}

fn last_store(region: &Region) -> Option<Value> {
    let stored = |inst: &Inst| match &inst.op {
        Op::Store { values, .. } => Some(values[0]),
        op => op.regions().into_iter().find_map(last_store),
    };
    region.insts.iter().rev().find_map(stored)
}

fn scope(block: &str, body: &str) -> UniformScope {
    let kernel = storing(block, body);
    Uniformity::new(&kernel).scope_of(last_store(&kernel.body).expect("a store"))
}

#[test]
fn values_are_uniform_in_the_expected_scope() {
    use UniformScope::{Block, Grid, Lane, Warp};
    let all = [
        // Parameters and indices.
        ("64", "n as u32", Grid),
        ("64", "block::x() as u32", Block),
        ("64", "grid::dim_x() as u32 + 3", Grid),
        ("64", "thread::x() as u32", Lane),
        ("64", "warp::lane() as u32", Lane),
        ("64", "warp::index() as u32", Warp),
        ("64", "thread::y() as u32", Grid),
        ("(32, 2)", "thread::y() as u32", Warp),
        ("(16, 4)", "thread::y() as u32", Lane),
        ("(16, 4)", "(thread::y() / 2) as u32", Warp),
        ("(64, 2)", "thread::y() as u32", Warp),
        ("(8, 2, 8)", "(thread::z() / 2) as u32", Warp),
        // Arithmetic.
        ("64", "(thread::x() / 32) as u32", Warp),
        ("64", "(thread::x() / 64) as u32", Grid),
        ("64", "(grid::index() / 64) as u32", Block),
        ("64", "(grid::index() / 32) as u32", Warp),
        ("64", "grid::index() as u32 / 32", Warp),
        ("64", "(grid::index() >> 5) as u32", Warp),
        ("64", "(grid::index() & !31) as u32", Warp),
        ("64", "(grid::index() - thread::x()) as u32", Block),
        ("64", "((grid::index() + 3) / 32) as u32", Lane),
        ("64", "(grid::index() / n) as u32", Lane),
        ("64", "(3 * grid::index() / 96) as u32", Warp),
        ("64", "thread::x() as u32 & 0xffff_ffe0", Warp),
        ("64", "(n * 32 + thread::x() / 2) as u32 / 16", Warp),
        ("64", "(n + thread::x()) as u32 / 32", Lane),
        ("64", "((thread::x() as u64 + n as u64) & u64::MAX) as u32", Lane),
        ("64", "((grid::index() as u64 & !0 & 0xffff_ffff_ffff_ffe0) >> 5) as u32", Warp),
        ("64", "(grid::index() & 0) as u32", Grid),
        ("64", "if thread::x() < 64 { 1 } else { 2 }", Grid),
        ("64", "if thread::x() < 32 { 1 } else { 2 }", Warp),
        ("64", "if thread::x() < n { 1 } else { 2 }", Lane),
        ("64", "if n < 32 { block::x() as u32 } else { 2 }", Block),
        ("64", "let v = if thread::x() < n { 7 } else { 7 }; v", Grid),
        // Memory.
        ("64", "x[n]", Grid),
        ("64", "x[block::x()]", Block),
        ("64", "x[warp::index()]", Warp),
        ("64", "x[thread::x()]", Lane),
        ("64", "w[n]", Lane),
        ("64", "let s = Shared::<u32, 1>::new([4]); s[0]", Lane),
        // Exchanges between lanes.
        ("64", "warp::sum(x[thread::x()])", Warp),
        ("64", "warp::max(w[thread::x()])", Warp),
        ("32", "warp::min(x[thread::x()])", Block),
        ("64", "warp::ballot(thread::x() < n)", Warp),
        ("64", "warp::shuffle(x[thread::x()], 3)", Warp),
        ("64", "warp::shuffle(x[thread::x()], n)", Warp),
        ("64", "warp::shuffle(x[thread::x()], thread::x() / 2)", Lane),
        ("64", "warp::shuffle_xor(x[thread::x()], 1)", Lane),
        ("64", "warp::shuffle_xor(x[block::x()], thread::x() % 4)", Block),
        ("64", "warp::group::<8>().sum(x[thread::x()])", Lane),
        ("64", "let v = warp::group::<8>().sum(x[thread::x()]); v + warp::shuffle_xor(v, 8)", Lane),
        (
            "64",
            "let v = warp::group::<8>().sum(x[thread::x()]);
            let v = v + warp::shuffle_xor(v, 8);
            v + warp::shuffle_xor(v, 16)",
            Warp,
        ),
        ("128", "block::sum(x[thread::x()])", Block),
        ("96", "block::max(w[thread::x()])", Block),
        ("(8, 8, 2)", "block::sum(thread::x()) as u32", Block),
        ("128", "block::any(thread::x() == n) as u32", Block),
        ("96", "block::all(thread::x() == n) as u32", Block),
        ("128", "block::broadcast(w[thread::x()], 7)", Block),
        ("128", "warp::sum(warp::lane()) as u32", Block),
        // Variables, and joins of control flow.
        ("64", "let mut v = thread::x(); v = n; v as u32", Grid),
        ("64", "let mut v = n; if thread::x() < 3 { v = 1; } v as u32", Lane),
        ("64", "let mut v = n; if thread::x() < 32 { v = 1; } v as u32", Warp),
        ("64", "let mut v = n; if n < 3 { v = 1; } v as u32", Grid),
        ("64", "let mut v = 0; for i in 0..n { v += 3; } v", Grid),
        ("64", "let mut v = 0; for i in 0..n { if thread::x() == i { break; } v += 3; } v", Lane),
        ("64", "let mut v = 0; for i in 0..n { if thread::x() == i { continue; } v += 3; } v", Lane),
        ("64", "let mut v = 0; for i in 0..n { v += 3; if thread::x() == i { continue; } w[0] = 1; } v", Grid),
        ("64", "let mut v = 0; for i in thread::x()..n { v += 3; } v", Lane),
        ("64", "let mut v = thread::x(); while v < 1000 * n { v += 64; } (v / 64) as u32", Lane),
        ("64", "let mut v = thread::x(); for i in 0..n { v += 64; } (v / 32) as u32", Warp),
        ("64", "let mut v = 0; loop { v += 1; if v > n { break; } } v as u32", Grid),
        ("64", "let v = loop { if thread::x() == 3 { break n; } break 2; }; v as u32", Lane),
        ("64", "let v = loop { if n == 3 { break n; } break 2; }; v as u32", Grid),
        ("64", "let a = [n, thread::x()]; (a[0] + 1) as u32", Grid),
        ("64", "let mut a = [0, 0]; a[thread::x() % 2] = 1; a[0]", Lane),
        ("64", "let mut a = [0, 0]; a[n] = 1; a[0] + a[n]", Grid),
        ("64", "let mut a = [0, 0]; a[n] = 1; a[warp::index()]", Warp),
        ("64", "let mut a = [1, 1]; a[warp::lane()]", Lane),
    ];
    for (block, body, expected) in all {
        assert_eq!(scope(block, body), expected, "in a block of {block}: {body}");
    }
}
