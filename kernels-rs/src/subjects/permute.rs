//! `transpose`.

use super::with_gaps;
use crate::permute::transpose;
use kernel_dsl::compiler::hir::Instance;
use runtime::testing::{Bound, Case, Expected, Input, Random, edges, shapes};

runtime::register!(transpose, cases, reference);

fn cases(_: &Instance, random: &mut Random) -> Vec<Case> {
    let sizes = edges(32);
    let mut all = Vec::new();
    for shape in shapes([&sizes, &sizes], random).into_iter().chain([[1, 1000], [1000, 1], [131, 257]]) {
        all.push(case(random, shape, 0));
    }
    let shape = [(); 2].map(|()| 1 + random.below(200));
    all.push(case(random, shape, 0));
    all.push(case(random, shape, 3));
    all
}

fn case(random: &mut Random, [rows, cols]: [usize; 2], gap: usize) -> Case {
    let apart = if gap == 0 { String::new() } else { format!(", rows {gap} elements apart") };
    let mut matrix = |[rows, cols]: [usize; 2]| {
        with_gaps(&random.special_values::<f32>(rows * (cols + gap) + gap), [rows, cols], gap)
    };
    let inputs = [matrix([rows, cols]), matrix([cols, rows])];
    Case::new(format!("{rows} × {cols}{apart}"), inputs)
}

/// Values move, and nothing is computed.
fn reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let x = inputs[0].values();
    let &[rows, cols] = inputs[0].extents() else { return Vec::new() };
    let y = (0..cols).flat_map(|col| (0..rows).map(move |row| row * cols + col)).map(|i| x[i]).collect();
    vec![Expected::new(1, y, Bound::Exact)]
}
