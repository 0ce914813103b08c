//! Specs of `softmax_backward`, `norm_backward`, `norm_columns`, `norm_columns_sum`.

use super::norms::{far_apart, saved_of};
use super::rows::{RowTeam, rows_of};
use super::stored::{at_rest, drawn, extreme, extremes, numbers, scalars, stored};
use super::{TINY, U, gamma};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::rowwise::backward::{norm_backward, norm_columns, norm_columns_sum, softmax_backward};
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(softmax_backward<f32, false, 512, 1, 4, 2, 2>, softmax_cases, softmax_reference);
runtime::register!(norm_backward<f32, f32, true, 512, 1, 4, 2, 2>, norm_cases, norm_reference);
runtime::register!(norm_columns<f32, 4>, columns_cases, columns_reference);
runtime::register!(norm_columns_sum<f32>, sum_cases, sum_reference);

fn flag(instance: &Instance) -> bool {
    numbers(instance).first() == Some(&1)
}

fn softmax_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let Some(team) = RowTeam::of(instance) else { return Vec::new() };
    let one = |shape: [usize; 2]| {
        let scale = [1.0f32, -0.25][random.below(2)];
        let mut matrix = |gap| rows_of(random, stored(instance), shape, team, gap);
        let inputs = [Input::scalar(scale), matrix(0), matrix(1), matrix(1)];
        Case::new(format!("{} × {}, scale {scale}", shape[0], shape[1]), inputs)
    };
    let mut shapes = team.shapes(&mut Random::new(3));
    shapes.push([1, team.kept + team.wide]);
    let mut all: Vec<Case> = shapes.into_iter().map(one).collect();
    // A gradient for each extreme; NaN gradients where y is masked. Also rows longer than the
    // elements kept in registers.
    let short = (team.extremes(random), (3 * team.wide + 37).next_multiple_of(team.wide));
    let long = (vec![Extreme::OneHuge, Extreme::PositiveInfinity], team.kept + 5 * team.wide);
    let masked = if flag(instance) { f32::NEG_INFINITY } else { 0.0 };
    for (which, cols) in [short, long] {
        let y: Vec<f32> = random.values(which.len() * cols);
        let y: Vec<f32> = y.into_iter().map(|y| if random.below(4) == 0 { masked } else { y }).collect();
        let dy = extremes(random, &which, stored(instance), cols, cols + team.wide);
        let dy = dy.with_nan_where(|i| y[i] == masked);
        let y = super::rows::values(instance, &y, [which.len(), cols]);
        let dx = rows_of(random, stored(instance), [which.len(), cols], team, 1);
        let name = format!("extreme gradients of {cols}, NaN where masked");
        all.push(Case::new(name, [Input::scalar(1.0f32), y, dy, dx]));
    }
    all
}

/// Computes the gradient and its error bounds, with n additions per term. Σ g·y is fused, with the
/// error γ(n) · Σ |g·y|; the error of Σ g is γ(n) · Σ |g|. In y·(g − Σ) the difference and two
/// products are rounded, and the error of the sum propagates. In g − exp(y)·Σ the exponential has
/// the error 1.784·u, and the fused sum and the product are rounded. Masked elements have no
/// effect. If the terms of a sum may overflow together, any result is correct.
fn softmax_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let Some(team) = RowTeam::of(instance) else { return Vec::new() };
    let (scale, y, g) = (inputs[0].value(), inputs[1].values(), inputs[2].values());
    let (cols, log) = (inputs[1].extents()[1].max(1), flag(instance));
    let (mut values, mut bounds) = (Vec::new(), Vec::new());
    for (y, g) in y.chunks(cols).zip(g.chunks(cols)) {
        let masked = if log { f64::NEG_INFINITY } else { 0.0 };
        let terms = || y.iter().zip(g).filter(|(y, _)| **y != masked).map(|(y, g)| if log { *g } else { g * y });
        let (sum, size) = (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>());
        let off = gamma(team.additions(cols)) * size + cols as f64 * TINY;
        for (y, g) in y.iter().zip(g) {
            if *y == masked || size.is_finite() && size > f64::from(f32::MAX) / 4.0 {
                values.push(0.0);
                bounds.push(if *y == masked { 0.0 } else { f64::INFINITY });
                continue;
            }
            let (value, off) = match log {
                true => {
                    let (value, e) = (g - y.exp() * sum, y.exp());
                    (value, e * off + 1.79 * U * (e * sum).abs() + U * value.abs())
                }
                false => (y * (g - sum), y.abs() * (off + U * (g - sum).abs()) + U * (y * (g - sum)).abs()),
            };
            let off = 1.001 * scale.abs() * (off + U * value.abs()) + 4.0 * TINY;
            values.push(scale * value);
            bounds.push(off + at_rest(stored(instance), scale * value, off));
        }
    }
    vec![Expected::new(3, values, Bound::Each(bounds))]
}

/// Returns means and factors of rows, as if they had been saved.
fn saved(random: &mut Random, rows: usize) -> Input {
    let all: Vec<f32> = random.values(2 * rows);
    Input::view(&all, [rows, 2])
}

fn norm_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let (Some(team), &[element, weights]) = (RowTeam::of(instance), scalars(instance).as_slice()) else {
        return Vec::new();
    };
    let one = |(i, shape): (usize, [usize; 2])| {
        let [rows, cols] = shape;
        let z = rows_of(random, element, shape, team, 1);
        let saved = saved(random, rows);
        let n = [cols, 0][i % 2];
        let weight = drawn(random, weights, n, [n], [1]);
        let inputs =
            [z, saved, weight, rows_of(random, element, shape, team, 0), rows_of(random, element, shape, team, 1)];
        Case::new(format!("{rows} × {cols}, weight: {}", n > 0), inputs)
    };
    let mut shapes = team.shapes(&mut Random::new(3));
    // Longer than the elements kept in registers, with a weight and without.
    shapes.extend([[1, team.kept + team.wide]; 2]);
    let mut all: Vec<Case> = shapes.into_iter().enumerate().map(one).collect();
    // Saved statistics for rows of each extreme, and gradients of each extreme.
    let (which, cols) = (team.extremes(random), (3 * team.wide + 37).next_multiple_of(team.wide));
    let shape = [which.len(), cols];
    let extreme = extremes(random, &which, element, cols, cols + team.wide);
    let of_rows = Input::view(&saved_of(&extreme.values(), cols, flag(instance), 1e-5), [which.len(), 2]);
    let mut none = || drawn(random, weights, 0, [0], [1]);
    let weights = [none(), none()];
    let mut rows = |gap| rows_of(random, element, shape, team, gap);
    let of_gradients = [rows(0), Input::view(&vec![1f32; 2 * shape[0]], [shape[0], 2]), rows(1)];
    let [no_weight, none] = weights;
    all.push(Case::new("extreme rows", [extreme.clone(), of_rows, no_weight, rows(0), rows(1)]));
    let [z, saved, dz] = of_gradients;
    all.push(Case::new("extreme gradients", [z, saved, none.clone(), extreme, dz]));
    let shape = [2, team.kept + 5 * team.wide];
    let z = far_apart(element, shape);
    let saved = Input::view(&saved_of(&z.values(), shape[1], flag(instance), 1e-5), [2, 2]);
    let mut rows = |gap| rows_of(random, element, shape, team, gap);
    all.push(Case::new("rows whose differences overflow", [z, saved, none, rows(0), rows(1)]));
    all
}

/// Computes the gradient and its error bounds. n = (z − μ)·f is rounded twice, and h = g·w once if
/// there is a weight. With k additions per term, the means of h and h·n have the error γ(k + 1) of
/// their terms' magnitudes, plus the terms' errors. h − mean, the fused h − n · mean(h·n) and the
/// product with f are rounded.
fn norm_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (Some(team), &[element, _]) = (RowTeam::of(instance), scalars(instance).as_slice()) else { return Vec::new() };
    let [z, saved, weight, g] = [0, 1, 2, 3].map(|i| inputs[i].values());
    let cols = inputs[0].extents()[1].max(1);
    let sums = gamma(team.additions(cols) + 1);
    let (mut values, mut bounds) = (Vec::new(), Vec::new());
    for (r, (z, g)) in z.chunks(cols).zip(g.chunks(cols)).enumerate() {
        let (mean, f) = (saved[2 * r], saved[2 * r + 1]);
        let pair = |i: usize| ((z[i] - mean) * f, g[i] * weight.get(i).unwrap_or(&1.0));
        let over =
            |term: &dyn Fn(f64, f64) -> f64| (0..cols).map(pair).map(|(n, h)| term(n, h)).sum::<f64>() / cols as f64;
        let (of_h, of_hn) = if flag(instance) { (over(&|_, h| h), over(&|_, h| h.abs())) } else { (0.0, 0.0) };
        let (along, size) = (over(&|n, h| h * n), over(&|n, h| (h * n).abs()));
        let (off_h, off_along) = ((sums + 1.001 * U) * of_hn + TINY, (sums + 3.01 * U) * size + 4.0 * TINY);
        // Sums that overflow, although their mean may not, are ∞ or NaN.
        let largest = of_hn.max(size) * cols as f64 * 16.0;
        if largest.is_finite() && largest > f64::from(f32::MAX) {
            values.resize(values.len() + cols, 0.0);
            bounds.resize(values.len(), f64::INFINITY);
            continue;
        }
        for i in 0..cols {
            let (n, h) = pair(i);
            let inner = h - of_h - n * along;
            let off = U * h.abs()
                + off_h
                + U * (h - of_h).abs()
                + n.abs() * off_along
                + 2.0 * U * (n * along).abs()
                + U * inner.abs();
            let value = f * inner;
            let off = 1.001 * (f.abs() * off + U * value.abs()) + 4.0 * TINY * (1.0 + f.abs());
            values.push(value);
            bounds.push(off + at_rest(element, value, off));
        }
    }
    vec![Expected::new(4, values, Bound::Each(bounds))]
}

fn columns_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[wide] = numbers(instance).as_slice() else { return Vec::new() };
    let up = |n: usize| n.next_multiple_of(wide);
    let one = |[rows, cols, slab]: [usize; 3]| {
        let mut matrix = || {
            let pitch = (cols + wide).max(wide);
            drawn(random, stored(instance), rows * pitch, [rows, cols], [pitch, 1])
        };
        let (z, dy) = (matrix(), matrix());
        let slabs = rows.div_ceil(slab);
        let parts = Input::view(&vec![0f32; slabs * 2 * cols], [slabs, 2, cols]);
        Case::new(format!("{rows} × {cols} by {slab}"), [z, saved(random, rows), dy, Input::scalar(slab), parts])
    };
    let mut all: Vec<Case> =
        [[1, up(1), 64], [70, up(33), 64], [7, 32 * wide, 3], [40, 32 * wide + wide, 20], [0, up(3), 1]]
            .map(one)
            .into();
    // A column of gradients of each extreme; the extremes repeat.
    let (rows, cols) = (5, up(Extreme::ALL.len()));
    let z = drawn(random, stored(instance), rows * cols, [rows, cols], [cols, 1]);
    let dy = extreme(random, &Extreme::ALL, stored(instance), 1, [rows, cols], [cols, 1]);
    let parts = Input::view(&vec![0f32; 2 * cols], [1, 2, cols]);
    all.push(Case::new("extreme gradients", [z, saved(random, rows), dy, Input::scalar(rows), parts]));
    // Rows of each finite extreme, whose norms are summed.
    let (which, cols) = (Extreme::finite(), up(33));
    let z = extremes(random, which, stored(instance), cols, cols + wide);
    let saved = Input::view(&saved_of(&z.values(), cols, true, 1e-5), [which.len(), 2]);
    let dy = drawn(random, stored(instance), which.len() * cols, [which.len(), cols], [cols, 1]);
    let parts = Input::view(&vec![0f32; 2 * cols], [1, 2, cols]);
    all.push(Case::new("extreme rows", [z, saved, dy, Input::scalar(which.len()), parts]));
    let z = far_apart(stored(instance), [2, cols]);
    let saved = Input::view(&saved_of(&z.values(), cols, true, 1e-5), [2, 2]);
    let dy = drawn(random, stored(instance), 2 * cols, [2, cols], [cols, 1]);
    let parts = Input::view(&vec![0f32; 2 * cols], [1, 2, cols]);
    all.push(Case::new("rows whose differences overflow", [z, saved, dy, Input::scalar(2usize), parts]));
    all
}

/// Computes the sums and their error bounds. Each term of Σ dy·n has two roundings, and is part of
/// the additions of its warp, ⌈slab / 8⌉, and 8 more. If the magnitudes of finite terms overflow
/// together, any result is correct.
fn columns_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let [z, saved, g] = [0, 1, 2].map(|i| inputs[i].values());
    let (&[rows, cols], slab) = (inputs[0].extents(), inputs[3].value() as usize) else { return Vec::new() };
    let (mut values, mut bounds) = (Vec::new(), Vec::new());
    for first in (0..rows).step_by(slab) {
        for which in 0..2 {
            for c in 0..cols {
                let term = |r: usize| {
                    let n = (z[r * cols + c] - saved[2 * r]) * saved[2 * r + 1];
                    g[r * cols + c] * if which == 0 { n } else { 1.0 }
                };
                let terms = || (first..(first + slab).min(rows)).map(term);
                values.push(terms().fold(0.0, |sum, x| sum + x));
                let size: f64 = terms().map(f64::abs).sum();
                let open = size.is_finite() && size > f64::from(f32::MAX) / 2.0;
                let off = 1.001 * gamma(slab.div_ceil(8) + 10) * size + slab as f64 * 4.0 * TINY;
                bounds.push(if open { f64::INFINITY } else { off });
            }
        }
    }
    vec![Expected::new(4, values, Bound::Each(bounds))]
}

fn sum_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let one = |([slabs, cols], which): ([usize; 2], usize)| {
        let parts = Input::view(&random.values::<f32>(slabs * 2 * cols), [slabs, 2, cols]);
        let mut output = |there: bool| {
            let n = if there { cols } else { 0 };
            drawn(random, stored(instance), n, [n], [1])
        };
        let outputs = [output(which != 1), output(which != 2)];
        let [weight, bias] = outputs;
        Case::new(format!("{slabs} slabs of {cols} columns, outputs {which}"), [parts, weight, bias])
    };
    let mut all: Vec<Case> =
        [([1, 1], 0), ([5, 257], 1), ([3, 300], 2), ([0, 7], 0), ([9, 256], 0), ([70, 33], 0)].map(one).into();
    // A column of each extreme in all slabs.
    let cols = Extreme::ALL.len();
    let parts = extreme(random, &Extreme::ALL, Scalar::F32, 2, [3, 2, cols], [2 * cols, cols, 1]);
    let [weight, bias] = [(); 2].map(|()| drawn(random, stored(instance), cols, [cols], [1]));
    all.push(Case::new("extreme columns", [parts, weight, bias]));
    all
}

/// Computes the sums and their error bounds, with one addition per slab. If the magnitudes of
/// finite terms overflow together, any result is correct.
fn sum_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let parts = inputs[0].values();
    let &[slabs, _, cols] = inputs[0].extents() else { return Vec::new() };
    let one = |which: usize| {
        let there = !inputs[1 + which].extents().contains(&0);
        let sum = |c: usize| {
            let terms = || (0..slabs).map(|s| parts[(s * 2 + which) * cols + c]);
            let value = terms().fold(0.0, |sum, x| sum + x);
            let size: f64 = terms().map(f64::abs).sum();
            let off = 1.001 * gamma(slabs) * size;
            let open = size.is_finite() && size > f64::from(f32::MAX) / 2.0;
            (value, if open { f64::INFINITY } else { off + at_rest(stored(instance), value, off) })
        };
        let (values, bounds) = (0..if there { cols } else { 0 }).map(sum).unzip();
        Expected::new(1 + which, values, Bound::Each(bounds))
    };
    vec![one(0), one(1)]
}
