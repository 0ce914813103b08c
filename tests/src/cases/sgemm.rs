//! Cases of the example `sgemm`.

use super::trial::{Trial, apart, is, trials, whole, wide};
use crate::examples::sgemm::epilogue::{BiasRelu, Identity};
use crate::examples::sgemm::sgemm;
use kernel_dsl::compiler::hir::Instance;
use runtime::testing::{Bound, Expected, Input};

trials!(sgemm<Identity, 128, 128, 8, 2, 2, 1, 1>, |instance| {
    let shapes = [
        [128, 128, 24],
        [132, 132, 12],
        [1, 4, 4],
        // Columns that are not multiples of four; rows are.
        [3, 131, 18],
        [3, 6, 65],
        [5, 5, 5],
        // Whole tiles, slightly less, and slightly more; more than a group of tiles.
        [128, 128, 72],
        [127, 128, 8],
        [128, 127, 8],
        [258, 4, 4],
        [1152, 256, 4],
        [256, 128, 8],
    ];
    let mut all: Vec<Trial> = shapes.into_iter().map(|shape| product(instance, shape, shape[1])).collect();
    if is::<BiasRelu>(instance, 0) {
        // Beyond the end of a short bias the values are zeros.
        all.extend([product(instance, [128, 128, 8], 61), product(instance, [128, 128, 8], 64), product(instance, [3, 7, 5], 2)]);
    }
    all
});

/// Makes a case with a bias of `biased` columns.
fn product(instance: &Instance, [m, n, k]: [usize; 3], biased: usize) -> Trial {
    let (a, b, bias) = (whole(m * k, 1), whole(k * n, 2), whole(biased, 3));
    let mut c: Vec<f32> =
        (0..m * n).map(|i| (0..k).map(|x| a[i / n * k + x] * b[x * n + i % n]).sum::<f32>()).collect();
    let matrix = |values: &[f32], [rows, cols]: [usize; 2]| {
        apart(values, [rows, cols], cols.next_multiple_of(4) - cols, f32::NAN)
    };
    let mut inputs = vec![matrix(&a, [m, k]), matrix(&b, [k, n]), matrix(&vec![0f32; m * n], [m, n])];
    if is::<BiasRelu>(instance, 0) {
        c.iter_mut().enumerate().for_each(|(i, c)| *c = (*c * 0.5 + bias.get(i % n).unwrap_or(&0.0)).max(0.0));
        inputs.extend([Input::scalar(0.5f32), Input::view(&bias, [biased])]);
    }
    Trial::new(format!("{m} x {n} x {k}"), inputs, [Expected::new(2, wide(&c), Bound::Exact)])
}
