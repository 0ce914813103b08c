//! A kernel on single elements, with its test cases.

use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Case, Expected, Input, Random, edges};

/// Computes y ← a·x + y, one element per thread, with one rounding.
#[kernel(block = 256, grid = y.len().div_ceil(256))]
#[requires(x.len() == y.len())]
pub fn axpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = a.mul_add(x[i], y[i]);
    }
}

runtime::register!(axpy, axpy_cases, axpy_reference);

fn axpy_cases(_: &kernel_dsl::compiler::hir::Instance, random: &mut Random) -> Vec<Case> {
    let mut case = |n| {
        let (x, y) = (random.values::<f32>(n), random.values::<f32>(n));
        Case::new(format!("{n} elements"), [Input::scalar(2.5f32), Input::slice(&x), Input::slice(&y)])
    };
    // 0, 1, and the sizes around multiples of the block.
    edges(256).into_iter().map(&mut case).collect()
}

/// Computes a·x + y in f64; one rounding is half a unit in the last place, 2⁻²⁴ of the value.
fn axpy_reference(_: &kernel_dsl::compiler::hir::Instance, inputs: &[Input]) -> Vec<Expected> {
    let (a, x, y) = (inputs[0].value(), inputs[1].values(), inputs[2].values());
    let sums = x.iter().zip(y).map(|(x, y)| a * x + y).collect();
    vec![Expected::new(2, sums, Bound::Relative(1.01 * 2f64.powi(-24)))]
}
