//! Spec of `matmul`.

use super::{TINY, gamma, matrix, size};
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::gemm::matmul;
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random, edges, shapes};

runtime::register!(matmul<16>, cases, reference);

fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let sizes = edges(size(instance));
    let mut all = Vec::new();
    for [m, n, k] in shapes([&sizes, &sizes, &sizes], random) {
        all.push(case(random, [m, n, k], 0));
    }
    // Far from square, in each direction.
    for shape in [[1, 200, 3], [200, 1, 3], [2, 3, 300]] {
        all.push(case(random, shape, 0));
    }
    let shape = [(); 3].map(|()| 1 + random.below(3 * size(instance)));
    all.push(case(random, shape, 0));
    all.push(case(random, shape, 5));
    // A row of A of each extreme, then a column of B.
    let (extremes, k) = (Extreme::ALL.len(), 9);
    let [mut rows, mut columns] = [[extremes, 5, k], [5, extremes, k]].map(|shape| case(random, shape, 0));
    rows.inputs[0] = Extreme::rows::<f32>(&Extreme::ALL, random, k, k + 1);
    columns.inputs[1] = Extreme::array::<f32, 2>(&Extreme::ALL, random, 1, [k, extremes], [extremes + 1, 1]);
    all.extend([Case { name: "extreme rows".into(), ..rows }, Case { name: "extreme columns".into(), ..columns }]);
    all
}

fn case(random: &mut Random, [m, n, k]: [usize; 3], gap: usize) -> Case {
    let gaps = if gap == 0 { String::new() } else { format!(", rows {gap} elements apart") };
    let inputs = [[m, k], [k, n], [m, n]].map(|shape| matrix(random, shape, gap));
    Case::new(format!("{m} × {k} by {k} × {n}{gaps}"), inputs)
}

/// Computes the products and their error bounds. Products are added in the order of k with one
/// rounding each. Therefore the error of c is γ_K · Σ |a·b| (Higham, section 3.1), plus half the
/// least subnormal per rounding. Zeros that pad a tile add no error. The factor 1.001 covers the
/// roundings of the reference in `f64`. If the magnitudes of finite products overflow together, any
/// result is correct.
fn reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (a, b) = (inputs[0].values(), inputs[1].values());
    let &[m, n] = inputs[2].extents() else { return Vec::new() };
    let k = inputs[0].extents().last().copied().unwrap_or(0);
    let (mut values, mut bounds) = (Vec::new(), Vec::new());
    for row in 0..m {
        for col in 0..n {
            let products = (0..k).map(|i| a[row * k + i] * b[i * n + col]);
            let size: f64 = products.clone().map(f64::abs).sum();
            let open = size.is_finite() && size > f64::from(f32::MAX) / 2.0;
            bounds.push(if open { f64::INFINITY } else { 1.001 * gamma(k) * size + k as f64 * TINY / 2.0 });
            // Not `sum`, which begins with −0.
            values.push(products.fold(0.0, |sum, product| sum + product));
        }
    }
    vec![Expected::new(2, values, Bound::Each(bounds))]
}
