//! A reduction, with its test cases.

use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Case, Expected, Input, Random, edges};

/// Computes the sum of each row of x: a block adds a row.
#[kernel(block = 128, grid = sums.len(), writes(sums = once))]
#[requires(x.rows() == sums.len())]
pub fn row_sums(x: View<f32, 2>, sums: &mut [f32]) {
    let row = block::x();
    let mut sum = 0.0;
    for column in (thread::x()..x.cols()).step_by(128) {
        sum += x[(row, column)];
    }
    let sum = block::sum(sum);
    if thread::x() == 0 {
        sums[row] = sum;
    }
}

runtime::register!(row_sums, row_sums_cases, row_sums_reference);

fn row_sums_cases(_: &kernel_dsl::compiler::hir::Instance, random: &mut Random) -> Vec<Case> {
    let mut case = |columns| {
        let rows = 5;
        let x = Input::view(&random.values::<f32>(rows * columns), [rows, columns]);
        Case::new(format!("{rows} × {columns}"), [x, Input::uninitialized::<f32, 1>([rows])])
    };
    // 0, 1, and the sizes around multiples of the block.
    edges(128).into_iter().map(&mut case).collect()
}

/// Computes the sums in f64; each addition rounds by at most 2⁻²⁴ of the sum of the magnitudes.
fn row_sums_reference(_: &kernel_dsl::compiler::hir::Instance, inputs: &[Input]) -> Vec<Expected> {
    let (x, rows) = (inputs[0].values(), inputs[1].values().len());
    let columns = x.len() / rows.max(1);
    let row = |row: usize| &x[row * columns..][..columns];
    let sums = (0..rows).map(|r| row(r).iter().sum()).collect();
    let bound = |r| columns as f64 * 2f64.powi(-24) * row(r).iter().map(|x| x.abs()).sum::<f64>();
    vec![Expected::new(1, sums, Bound::Each((0..rows).map(bound).collect()))]
}
