//! Property tests of kernels of kernels-rs with random shapes and values, on every executor.
//! Failing cases are shrunk.

use kernels_rs::{matmul, saxpy, softmax, transpose};
use proptest::prelude::*;
use runtime::testing::strategy::{self, agree};
use runtime::testing::{Bound, Case, Expected, Gen, Input, property};

/// Generates a matrix of any values, including NaNs and infinities, and one for the output.
fn matrices(g: &mut Gen) -> [Input; 2] {
    let [m, n] = [g.size("m", 32), g.size("n", 32)];
    [Input::view(&g.special_values::<f32>(m * n), [m, n]), g.view::<f32, 2>([n, m])]
}

/// Generates integers so small that sums of their products are exact in any order.
fn small(g: &mut Gen, extents: [usize; 2]) -> Input {
    let numbers = g.values::<i8>(extents.iter().product());
    Input::view(&numbers.iter().map(|x| f32::from(x % 9)).collect::<Vec<_>>(), extents)
}

#[test]
fn saxpy_is_a_fused_product_and_sum() {
    let cases = |g: &mut Gen| {
        let n = g.size("n", 256);
        let a = g.special_values::<f32>(1)[0];
        [Input::scalar(a), g.special_slice::<f32>(n), g.special_slice::<f32>(n)]
    };
    let reference = |inputs: &[Input]| {
        let [a, x, y] = [0, 1, 2].map(|i| inputs[i].to_vec::<f32>());
        vec![Expected::exact(2, x.iter().zip(y).map(|(x, y)| a[0].mul_add(*x, y)))]
    };
    property::<saxpy>().cases(cases).reference(reference).check();
}

#[test]
fn transpose_moves_every_value() {
    let reference = |inputs: &[Input]| {
        let (x, extents) = (inputs[0].to_vec::<f32>(), inputs[0].extents());
        let [m, n] = [extents[0], extents[1]];
        vec![Expected::exact(1, (0..m * n).map(|i| x[i % m * n + i / m]))]
    };
    property::<transpose>().cases(matrices).reference(reference).check();
}

#[test]
fn matmul_is_exact_on_small_integers() {
    let cases = |g: &mut Gen| {
        let [m, n, k] = ["m", "n", "k"].map(|name| g.within(name, 0..=39));
        [small(g, [m, k]), small(g, [k, n]), g.view::<f32, 2>([m, n])]
    };
    let reference = |inputs: &[Input]| {
        let (a, b) = (inputs[0].to_vec::<f32>(), inputs[1].to_vec::<f32>());
        let (k, n) = (inputs[0].extents()[1], inputs[2].extents()[1]);
        let product = |i: usize| (0..k).map(|j| a[i / n * k + j] * b[j * n + i % n]).sum::<f32>();
        vec![Expected::exact(2, (0..inputs[2].extents()[0] * n).map(product))]
    };
    property::<matmul<16>>().cases(cases).reference(reference).check();
}

#[test]
fn rows_of_softmax_are_quotients_that_sum_to_one() {
    let cases = |g: &mut Gen| {
        let [m, n] = [g.within("m", 1..=20), g.within("n", 1..=100)];
        let x: Vec<f32> = g.values::<f32>(m * n).into_iter().map(|x| 80.0 * x).collect();
        [Input::view(&x, [m, n]), g.view::<f32, 2>([m, n])]
    };
    let reference = |inputs: &[Input]| {
        let (x, n) = (inputs[0].values(), inputs[0].extents()[1]);
        let row = |row: &[f64]| {
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = row.iter().map(|x| (x - top).exp()).sum();
            row.iter().map(|x| (x - top).exp() / sum).collect::<Vec<_>>()
        };
        // Each quotient has an error of at most a few units in the last place per addend.
        vec![Expected::new(1, x.chunks(n).flat_map(row).collect(), Bound::Absolute(1e-6))]
    };
    property::<softmax<4>>().cases(cases).reference(reference).check();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

    /// Checks rows with any pitch, with the proptest strategies of the kit.
    #[test]
    fn softmax_accepts_strided_rows(x in strategy::matrix::<f32>([4, 32])) {
        let [m, n] = [x.extents()[0], x.extents()[1]];
        let case = Case::from([x, Input::view(&vec![0.0f32; m * n], [m, n])]);
        let sums = |inputs: &[Input]| {
            let rows = inputs[0].values();
            let row = |row: &[f64]| {
                let sum: f64 = row.iter().map(|x| x.exp()).sum();
                row.iter().map(|x| x.exp() / sum).collect::<Vec<_>>()
            };
            let values = rows.chunks(n.max(1)).flat_map(row).collect();
            vec![Expected::new(1, values, Bound::Absolute(1e-6))]
        };
        agree::<softmax<4>>(&case, sums)?;
    }
}
