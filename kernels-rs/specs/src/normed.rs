//! Spec of `gemv_normed`: few normalized rows times a matrix, alone or with a gate of the halves.

use super::norms::row;
use super::rows::RowTeam;
use super::stored::{at_rest, drawn, extreme, numbers, scalars, unread};
use super::{TINY, U, gamma};
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::activation::swiglu;
use kernels_rs::gemm::epilogue::Identity;
use kernels_rs::gemm::normed::gemv_normed;
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(gemv_normed<f32, f32, f32, f32, Identity, swiglu, false, false, 1, 2, 4, 4, 4>, cases, reference);

fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[_, paired, rows, columns, wide, ..] = numbers(instance).as_slice() else { return Vec::new() };
    let &[of_x, of_norm, of_w, of_c] = scalars(instance).as_slice() else { return Vec::new() };
    let up = |n: usize| n.next_multiple_of(wide);
    let stretch = 4096 / rows;
    let shapes = [
        [1, 1, up(1)],
        [rows, 8 * columns + 1, up(37)],
        [rows + 1, 3, up(stretch + 9)],
        [rows.div_ceil(2), 2, up(stretch - 1)],
        [2, 5, 0],
        [0, 3, up(5)],
        [1, 0, up(5)],
        [1, 3, 40],
        [1, 7, up(1 + random.below(700))],
    ];
    let mut case = |n: usize, [m, cols, depth]: [usize; 3]| {
        let (with, pitch) = (n % 4, depth + random.below(2) * wide);
        let mut column =
            |there: bool| drawn(random, of_norm, if there { depth } else { 0 }, [if there { depth } else { 0 }], [1]);
        let (weight, bias) = (column(with != 1), column(with > 1));
        let inputs = [
            Input::scalar(1e-5f32),
            drawn(random, of_x, m * (depth + 3), [m, depth], [depth + 3, 1]),
            weight,
            bias,
            drawn(random, of_w, (1 + paired) * cols * pitch, [(1 + paired) * cols, depth], [pitch.max(wide), 1]),
            unread(of_c, m * (cols + 1), [m, cols], [cols + 1, 1]),
        ];
        Case::new(format!("{m} × {cols} × {depth}, weight and bias: {with}"), inputs)
    };
    let mut all: Vec<Case> = shapes.into_iter().enumerate().map(|(n, shape)| case(n, shape)).collect();
    let depth = up(37);
    // Without ε the norms of tiny rows are not tiny.
    let mut extremes = [1e-5f32, 0.0].map(|epsilon| (epsilon, case(1, [Extreme::ALL.len(), 3, depth])));
    for (epsilon, case) in &mut extremes {
        case.inputs[0] = Input::scalar(*epsilon);
        case.inputs[1] = extreme(random, &Extreme::ALL, of_x, 0, [Extreme::ALL.len(), depth], [depth + 3, 1]);
        case.name = format!("extremes, ε = {epsilon}");
    }
    all.extend(extremes.map(|(_, case)| case));
    all
}

/// Computes the products and their error bounds. The factors are the results of a norm, with its
/// errors. A sum of K fused products has ⌈K / 32⌉ additions in its lane and 5 among lanes. For a
/// gate a·s(a)·b, let α and β be the errors of a and b. The slope of a·s(a) is at most 1.1, so that
/// the error is 1.1·α·(|b| + β) + |a·s(a)|·β. An exponential, a sum, a quotient and two products
/// are rounded: 8·u.
fn reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (&[centered, paired, ..], &[_, _, _, stored]) = (numbers(instance).as_slice(), scalars(instance).as_slice())
    else {
        return Vec::new();
    };
    let [x, weight, bias, w] = [1, 2, 3, 4].map(|n| inputs[n].values());
    let (&[rows, depth], &[_, cols]) = (inputs[1].extents(), inputs[5].extents()) else { return Vec::new() };
    let team = RowTeam { rows: 1, wide: 1, kept: 0, again: 1, threads: 256, levels: 12, shared: false };
    let (mut values, mut bounds) = (Vec::new(), Vec::new());
    for r in 0..rows {
        let x = &x[r * depth..(r + 1) * depth];
        let normed = row(centered == 1, team, inputs[0].value(), x, &[], &weight, &bias).y;
        let sum = |of: usize| {
            let terms = || normed.iter().zip(&w[of * depth..(of + 1) * depth]);
            let value: f64 = terms().map(|(y, w)| y.0 * w).sum();
            let size: f64 = terms().map(|(y, w)| (y.0.abs() + y.1) * w.abs()).sum();
            let off: f64 = terms().map(|(y, w)| y.1 * w.abs()).sum();
            (value, 1.001 * (off + gamma(depth.div_ceil(32) + 6) * size) + depth as f64 * TINY)
        };
        for col in 0..cols {
            let (value, off) = match paired {
                0 => sum(col),
                _ => {
                    let ((a, of_a), (b, of_b)) = (sum(col), sum(cols + col));
                    let gate = a / (1.0 + (-a).exp());
                    let off = 1.1 * of_a * (b.abs() + of_b) + gate.abs() * of_b + 8.0 * U * (gate * b).abs();
                    (gate * b, 1.001 * off + 4.0 * TINY * (1.0 + b.abs()))
                }
            };
            // A NaN bound belongs to a row whose norm is arbitrary: any result is correct.
            let off = if value.is_finite() && off.is_nan() { f64::INFINITY } else { off };
            values.push(value);
            bounds.push(off + at_rest(stored, value, off));
        }
    }
    vec![Expected::new(5, values, Bound::Each(bounds))]
}
