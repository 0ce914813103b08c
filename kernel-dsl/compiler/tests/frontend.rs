//! From Rust text to IR as lowered, with no macro in between.
#![cfg(feature = "frontend")]

use kernel_dsl_compiler::{Target, check, hir, lower, syntax};
use quote::ToTokens;

/// The kernel in `text`, with its attribute, checked.
fn program(text: &str) -> Result<hir::Program, String> {
    let mut item: syn::ItemFn = syn::parse_str(text).map_err(|e| e.to_string())?;
    let at = item.attrs.iter().position(|a| a.path().is_ident("kernel")).expect("#[kernel(…)]");
    let attribute = item.attrs.remove(at);
    let tokens = match attribute.meta {
        syn::Meta::List(list) => list.tokens,
        other => other.into_token_stream(),
    };
    let kernel = syntax::kernel(tokens, &item)
        .map_err(|e| e.into_iter().map(|e| format!("refused: {e}")).collect::<Vec<_>>().join("\n"))?;
    check::kernel(&kernel, &[]).map(|c| c.hir).map_err(|all| {
        all.iter()
            .map(|m| format!("{}:{}: {}", m.mark.span.line, m.mark.span.column, m.message))
            .collect::<Vec<_>>()
            .join("\n")
    })
}

const SAXPY: &str = r#"
#[kernel(block = 256, grid = y.len().div_ceil(256))]
#[requires(x.len() == y.len())]
pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = grid::index();                                  // block index × block size + thread index
    if i < y.len() {
        y[i] = a.mul_add(x[i], y[i]);
    }
}"#;

const MATMUL: &str = r#"
#[kernel(block = (T, T), grid = (c.cols().div_ceil(T), c.rows().div_ceil(T)), instances(T = 16 | 32))]
#[requires(a.cols() == b.rows(), c.rows() == a.rows(), c.cols() == b.cols())]
pub fn matmul<const T: usize>(a: View<f32, 2>, b: View<f32, 2>, mut c: ViewMut<f32, 2>) {
    let ta = Shared::<f32, 2>::padded([T, T]);
    let tb = Shared::<f32, 2>::padded([T, T]);
    let (row, col) = (block::y() * T + thread::y(), block::x() * T + thread::x());
    let mut acc = 0.0;
    for k in (0..a.cols()).step_by(T) {
        ta.copy_from(a.offset((block::y() * T, k)));
        tb.copy_from(b.offset((k, block::x() * T)));
        block::sync();
        for i in unroll(0..T) {
            acc = ta[(thread::y(), i)].mul_add(tb[(i, thread::x())], acc);
        }
        block::sync();
    }
    if row < c.rows() && col < c.cols() {
        c[(row, col)] = acc;
    }
}"#;

#[test]
fn kernels_lower() {
    for text in [SAXPY, MATMUL] {
        let program = program(text).unwrap_or_else(|e| panic!("{e}"));
        for instance in &program.launch.instances {
            let kernel = lower::lower(&program, instance, Target::SM_61).unwrap_or_else(|e| panic!("{e}"));
            println!("{kernel:#?}");
        }
    }
}
