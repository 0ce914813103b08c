//! A matrix product by tiles in shared memory, with its test cases.

use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Case, Expected, Input, Random, shapes};

/// Computes C = A·B, where A is M × K, B is K × N and C is M × N. A block computes a tile of
/// T × T elements, and reads each element of A and B once for it.
#[kernel(
    block = (T, T),
    grid = (c.cols().div_ceil(T), c.rows().div_ceil(T)),
    instances(t16: T = 16; t32: T = 32),
    writes(c = once),
)]
#[requires(a.cols() == b.rows(), c.rows() == a.rows(), c.cols() == b.cols())]
pub fn product<const T: usize>(a: View<f32, 2>, b: View<f32, 2>, mut c: ViewMut<f32, 2>) {
    let ta = Shared::<f32, 2>::padded([T, T]);
    let tb = Shared::<f32, 2>::padded([T, T]);
    let (row, col) = (block::y() * T + thread::y(), block::x() * T + thread::x());
    let mut sum = 0.0;
    for k in (0..a.cols()).step_by(T) {
        // Elements beyond the edges are zeros.
        ta.copy_from(a.offset((block::y() * T, k)));
        tb.copy_from(b.offset((k, block::x() * T)));
        block::sync();
        for i in unroll(0..T) {
            sum = ta[(thread::y(), i)].mul_add(tb[(i, thread::x())], sum);
        }
        block::sync();
    }
    if row < c.rows() && col < c.cols() {
        c[(row, col)] = sum;
    }
}

runtime::register!(product<16>, product_cases, product_reference);

fn product_cases(_: &kernel_dsl::compiler::hir::Instance, random: &mut Random) -> Vec<Case> {
    let sizes: &[usize] = &[1, 15, 16, 33, 64];
    let all = shapes([sizes, sizes, sizes], random);
    let mut case = |[m, n, k]: [usize; 3]| {
        let a = Input::view(&random.values::<f32>(m * k), [m, k]);
        let b = Input::view(&random.values::<f32>(k * n), [k, n]);
        Case::new(format!("{m} × {n} × {k}"), [a, b, Input::uninitialized::<f32, 2>([m, n])])
    };
    all.into_iter().take(20).map(&mut case).collect()
}

/// Computes the product in f64; each of the k additions rounds by at most 2⁻²⁴ of the sum of the
/// magnitudes.
fn product_reference(_: &kernel_dsl::compiler::hir::Instance, inputs: &[Input]) -> Vec<Expected> {
    let (a, b) = (inputs[0].values(), inputs[1].values());
    // |C| = M·N, |A| = M·K and |B| = K·N give the extents.
    let c = inputs[2].values().len();
    let k = ((a.len() * b.len()) as f64 / c as f64).sqrt().round() as usize;
    let (m, n) = (a.len() / k, b.len() / k);
    let (mut sums, mut bounds) = (Vec::new(), Vec::new());
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let terms = || (0..k).map(|l| a[i * k + l] * b[l * n + j]);
        sums.push(terms().sum());
        bounds.push(k as f64 * 2f64.powi(-24) * terms().map(f64::abs).sum::<f64>());
    }
    vec![Expected::new(2, sums, Bound::Each(bounds))]
}
