//! Specs of `scan_rows`, `scan_linked`.

use super::rows::cleared;
use super::stored::{self, numbers, scalars};
use super::{TINY, gamma};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::{Constant, Instance};
use kernels_rs::scan::kernels::{scan_linked, scan_rows};
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(scan_rows<f32, true, 4>, cases, reference);
runtime::register!(scan_linked<f32, true, 4, 2, 1, 1024>, linked_cases, linked_reference);

/// Returns a matrix with gaps after rows; integers are small, so that sums do not overflow.
fn matrix(random: &mut Random, instance: &Instance, [rows, cols]: [usize; 2], unit: usize) -> Input {
    let pitch = (cols + random.below(2) * unit).max(unit);
    let (n, extents, strides) = (rows * pitch + 1, [rows, cols], [pitch, 1]);
    if scalars(instance).contains(&Scalar::U32) {
        let small: Vec<u32> = (0..n).map(|_| random.below(1000) as u32).collect();
        return Input::strided(&small, extents, strides);
    }
    if scalars(instance).contains(&Scalar::F64) {
        return Input::strided(&random.values::<f64>(n), extents, strides);
    }
    Input::strided(&random.values::<f32>(n), extents, strides)
}

/// Returns the width of an access.
fn width(instance: &Instance) -> usize {
    // The first number is 1 for inclusive sums; the second is the width.
    numbers(instance)[1]
}

/// Returns the elements of a tile.
fn tile(instance: &Instance) -> usize {
    1024 * numbers(instance).get(3).copied().unwrap_or(4)
}

fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let (v, tile) = (width(instance), tile(instance));
    let mut all = Vec::new();
    for [rows, cols] in [[1, v], [3, 37 * v], [2, 130 * v], [1, tile], [1, tile + v], [2, 2 * tile], [2, 0], [0, v]] {
        let inputs = [matrix(random, instance, [rows, cols], v), matrix(random, instance, [rows, cols], v)];
        all.push(Case::new(format!("{rows} × {cols}"), inputs));
    }
    if scalars(instance).contains(&Scalar::F32) {
        let (rows, cols) = (Extreme::ALL.len(), 5 * v);
        let x = stored::extremes(random, &Extreme::ALL, Scalar::F32, cols, cols + v);
        all.push(Case::new("extremes", [x, matrix(random, instance, [rows, cols], v)]));
    }
    all
}

/// Adds words of sums to the cases of rows, and rows of several groups.
fn linked_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let (v, tile, group) = (width(instance), tile(instance), numbers(instance)[2]);
    let mut all = cases(instance, random);
    // In the last row, a group is complete. The last tile of the group publishes the sum, which the
    // next tile reads. A large group takes long in reversed order.
    let complete = (group < 64).then_some([1, group * tile + v]);
    for [rows, cols] in [[2, 3 * tile - v], [1, 7 * tile + v]].into_iter().chain(complete) {
        let inputs = [matrix(random, instance, [rows, cols], v), matrix(random, instance, [rows, cols], v)];
        all.push(Case::new(format!("{rows} × {cols}"), inputs));
    }
    for case in &mut all {
        let &[rows, cols] = case.inputs[0].extents() else { continue };
        let words = rows * (1 + 2 * (cols.div_ceil(tile) + cols.div_ceil(tile * group)));
        case.inputs.insert(1, Input::view(&vec![0u64; words], [words]));
    }
    all
}

/// Computes the sums and their error bounds: at most one addition per element up to there, with γ
/// of these times the sum of absolute values.
fn sums(instance: &Instance, inputs: &[Input], y: usize) -> Expected {
    let x = inputs[0].values();
    let cols = inputs[0].extents()[1];
    let inclusive = instance.0.contains(&Constant::Bool(true));
    let (mut values, mut bounds) = (Vec::new(), Vec::new());
    for row in x.chunks(cols.max(1)) {
        let (mut sum, mut size) = (0.0, 0.0);
        for (n, x) in row.iter().enumerate() {
            let before = sum;
            (sum, size) = (sum + x, size + x.abs());
            values.push(if inclusive { sum } else { before });
            bounds.push(bound(instance, n + 2, size));
        }
    }
    Expected::new(y, values, Bound::Each(bounds))
}

fn reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    vec![sums(instance, inputs, 1)]
}

/// Computes the sums, and accepts words of 0 only.
fn linked_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    vec![cleared(inputs, 1), sums(instance, inputs, 2)]
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
