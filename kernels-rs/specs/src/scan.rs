//! Specs of `scan_rows`, `sum_parts`.

use super::stored::{self, numbers, scalars};
use super::{TINY, gamma};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::scan::kernels::{scan_rows, sum_parts};
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(scan_rows<f32, true, 4>, scan_cases, scan_reference);
runtime::register!(sum_parts<f32, 4>, sum_cases, sum_reference);

/// Returns a matrix with gaps after rows; integers are small, so that sums do not overflow.
fn matrix(random: &mut Random, instance: &Instance, [rows, cols]: [usize; 2], unit: usize) -> Input {
    let pitch = (cols + random.below(2) * unit).max(unit);
    let (n, extents, strides) = (rows * pitch + 1, [rows, cols], [pitch, 1]);
    if scalars(instance).contains(&Scalar::U32) {
        let small: Vec<u32> = (0..n).map(|_| random.below(1000) as u32).collect();
        return Input::strided(&small, extents, strides);
    }
    Input::strided(&random.values::<f32>(n), extents, strides)
}

/// Returns rows, columns, and elements of a part.
fn shapes(v: usize) -> [[usize; 3]; 8] {
    // In parts of 1024, the second piece of a part's first thread begins where the part ends.
    [
        [1, v, 4],
        [3, 37 * v, 512],
        [2, 130 * v, 60 * v],
        [3, 64, 32],
        [1, 4096, 4096],
        [1, 4096 + v, 8192],
        [1, 1024 + v, 1024],
        [2, 0, 4],
    ]
}

fn scan_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let Some(&v) = numbers(instance).last() else { return Vec::new() };
    let case = |[rows, cols, chunk]: [usize; 3]| {
        let chunk = chunk.next_multiple_of(4);
        let parts = cols.div_ceil(chunk);
        // An empty array has no rows, or no columns.
        let starts = if parts > 1 { [rows, parts] } else { [[0, parts], [rows, 0]][cols / 4 % 2] };
        let inputs = [
            matrix(random, instance, [rows, cols], v),
            Input::scalar(chunk),
            matrix(random, instance, starts, 1),
            matrix(random, instance, [rows, cols], v),
        ];
        Case::new(format!("{rows} × {cols}, parts of {chunk}"), inputs)
    };
    let mut all: Vec<Case> = shapes(v).map(case).into();
    if scalars(instance).contains(&Scalar::F32) {
        let (rows, cols) = (Extreme::ALL.len(), 5 * v);
        let x = stored::extremes(random, &Extreme::ALL, Scalar::F32, cols, cols + v);
        let inputs =
            [x, Input::scalar(64usize), Input::view::<f32, 2>(&[], [0, 0]), matrix(random, instance, [rows, cols], v)];
        all.push(Case::new("extremes", inputs));
    }
    all
}

/// Computes the sums and their error bounds: at most one addition per element up to there, and the
/// start, with γ of these times the sum of absolute values.
fn scan_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (x, chunk, starts) = (inputs[0].values(), inputs[1].value() as usize, inputs[2].values());
    let &[rows, cols] = inputs[0].extents() else { return Vec::new() };
    let inclusive = numbers(instance).first() == Some(&1);
    let (mut values, mut bounds) = (Vec::new(), Vec::new());
    for (row, from) in (0..rows).flat_map(|row| (0..cols).step_by(chunk).map(move |from| (row, from))) {
        let start = starts.get(row * cols.div_ceil(chunk) + from / chunk).copied().unwrap_or(0.0);
        let (mut sum, mut size) = (start, start.abs());
        for (n, x) in x[row * cols..][from..cols.min(from + chunk)].iter().enumerate() {
            let before = sum;
            (sum, size) = (sum + x, size + x.abs());
            values.push(if inclusive { sum } else { before });
            bounds.push(bound(instance, n + 2, size));
        }
    }
    vec![Expected::new(3, values, Bound::Each(bounds))]
}

/// Returns the error bound for n numbers with the sum `size` of absolute values; integers are
/// exact. If that sum overflows, partial sums may overflow.
fn bound(instance: &Instance, n: usize, size: f64) -> f64 {
    if scalars(instance).contains(&Scalar::U32) {
        return 0.0;
    }
    let bound = 1.001 * gamma(n) * size + TINY;
    if size + bound > f64::from(f32::MAX) { f64::INFINITY } else { bound }
}

fn sum_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let Some(&v) = numbers(instance).last() else { return Vec::new() };
    let case = |[rows, cols, chunk]: [usize; 3]| {
        let chunk = chunk.next_multiple_of(4);
        let x = matrix(random, instance, [rows, cols], v);
        let sums = matrix(random, instance, [rows, cols.div_ceil(chunk)], 1);
        Case::new(format!("{rows} × {cols}, parts of {chunk}"), [x, Input::scalar(chunk), sums])
    };
    let mut all: Vec<Case> = shapes(v).map(case).into();
    if scalars(instance).contains(&Scalar::F32) {
        let (rows, cols) = (Extreme::ALL.len(), 5 * v);
        let x = stored::extremes(random, &Extreme::ALL, Scalar::F32, cols, cols + v);
        all.push(Case::new("extremes", [x, Input::scalar(64usize), matrix(random, instance, [rows, 1], 1)]));
    }
    all
}

fn sum_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (x, chunk) = (inputs[0].values(), inputs[1].value() as usize);
    let &[rows, cols] = inputs[0].extents() else { return Vec::new() };
    let parts = (0..rows).flat_map(|row| (0..cols).step_by(chunk).map(move |from| (row, from)));
    let one = |(row, from): (usize, usize)| {
        let part = &x[row * cols..][from..cols.min(from + chunk)];
        (part.iter().sum::<f64>() + 0.0, bound(instance, part.len(), part.iter().map(|x| x.abs()).sum()))
    };
    let (values, bounds) = parts.map(one).unzip();
    vec![Expected::new(2, values, Bound::Each(bounds))]
}
