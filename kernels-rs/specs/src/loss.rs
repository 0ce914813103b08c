//! Specs of `cross_entropy`, `cross_entropy_backward`.

use super::stored::{at_rest, drawn, extremes, numbers, stored};
use super::{TINY, U, gamma};
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::rowwise::loss::{cross_entropy, cross_entropy_backward};
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(cross_entropy<f32, 256, 1, 4, 2>, cases, reference);
runtime::register!(cross_entropy_backward<f32, 256, 4, 4>, backward_cases, backward_reference);

/// Returns labels, some of them beyond the columns.
fn labels(random: &mut Random, rows: usize, cols: usize) -> Input {
    let one = |row| match row % 4 {
        1 => cols as u32,
        2 => u32::MAX,
        _ => random.below(cols.max(1)) as u32,
    };
    Input::view(&(0..rows).map(one).collect::<Vec<_>>(), [rows])
}

fn logits(random: &mut Random, instance: &Instance, [rows, cols]: [usize; 2], wide: usize) -> Input {
    let pitch = cols.next_multiple_of(wide) + wide;
    drawn(random, stored(instance), rows * pitch, [rows, cols], [pitch, 1])
}

fn floats(random: &mut Random, n: usize) -> Input {
    Input::view(&random.values::<f32>(n), [n])
}

fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[threads, of_block, wide, pieces] = numbers(instance).as_slice() else { return Vec::new() };
    let (up, stretch) = (|n: usize| n.next_multiple_of(wide), threads * wide * pieces);
    let shapes = [
        [1, up(1)],
        [of_block + 1, up(37)],
        [3, stretch],
        [1, up(stretch / 2 + 1 + random.below(stretch / 4))],
        [of_block, up(1 + random.below(stretch))],
        [0, up(3)],
        [3, 0],
    ];
    let mut all: Vec<_> = shapes
        .into_iter()
        .enumerate()
        .map(|(i, [rows, cols])| {
            let smoothing = [0.0f32, 0.1][i % 2];
            let x = logits(random, instance, [rows, cols], wide);
            let inputs =
                [Input::scalar(smoothing), x, labels(random, rows, cols), floats(random, rows), floats(random, rows)];
            Case::new(format!("{rows} × {cols}, smoothing {smoothing}"), inputs)
        })
        .collect();
    let of = |x: &[f32], labels: &[u32], smoothing: f32| {
        let rows = labels.len();
        let x = super::rows::values(instance, x, [rows, x.len() / rows]);
        [
            Input::scalar(smoothing),
            x,
            Input::view(labels, [rows]),
            Input::view(&vec![0f32; rows], [rows]),
            Input::view(&vec![0f32; rows], [rows]),
        ]
    };
    // Logits that increase from stretch to stretch.
    let x: Vec<f32> = random.values(2 * stretch + wide);
    let x: Vec<f32> = x.iter().enumerate().map(|(i, x)| x + 3.0 * (i / stretch) as f32).collect();
    all.push(Case::new("a row that rises, smoothing 0.1", of(&x, &[17], 0.1)));
    // One element of each thread is far larger than its others, in different pieces and positions.
    // The large elements of a warp are below those of the previous warp. An element that a maximum
    // misses would give an infinity.
    let mut x = vec![-60.0f32; stretch];
    for thread in 0..threads {
        let (piece, place) = (thread % pieces, thread / pieces % wide);
        x[(piece * threads + thread) * wide + place] = 60.0 - 3.0 * (thread / 32) as f32;
    }
    all.push(Case::new("one value of 60 or less a thread among −60", of(&x, &[0], 0.0)));
    // Large logits, and a row of −∞.
    let cols = up(40);
    let x: Vec<f32> =
        (0..2 * cols).map(|i| if i < cols { 3e38 - 1e36 * (i % 3) as f32 } else { f32::NEG_INFINITY }).collect();
    if stored(instance) == kernel_dsl::compiler::Scalar::F32 {
        all.push(Case::new("the largest logits, and a row of −∞", of(&x, &[1, 3], 0.0)));
    }
    let cols = up(37);
    for smoothing in [0.0f32, 0.1] {
        let x = extremes(random, &Extreme::ALL, stored(instance), cols, cols + wide);
        let rows = Extreme::ALL.len();
        let inputs =
            [Input::scalar(smoothing), x, labels(random, rows, cols), floats(random, rows), floats(random, rows)];
        all.push(Case::new(format!("extremes, smoothing {smoothing}"), inputs));
    }
    all
}

/// Returns m, the largest logit, and log Σ exp(x − m). The sum of both is log Σ exp(x).
fn log_sum(row: &[f64]) -> (f64, f64) {
    let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max).max(f64::from(f32::MIN));
    let sum: f64 = row.iter().map(|x| (x - top).exp()).sum();
    (top, if sum == 0.0 { 0.0 } else { sum.ln() })
}

/// Computes the loss and its error bounds. The sum's relative error e is that of
/// `softmax_rows`: |d| + 7.5 per term, 2.8 for each stretch that increases the maximum, and γ of
/// the additions. The error e shifts the logarithm, which has an error of 2·u; m + log is rounded.
/// In the loss, m − x[label] is rounded, also with its weight. The mean has the error
/// γ(additions + 1) of the mean of |x|, the difference and the product; and the sums.
fn reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let &[threads, _, wide, pieces] = numbers(instance).as_slice() else { return Vec::new() };
    let (smoothing, x, labels) = (inputs[0].value(), inputs[1].values(), inputs[2].values());
    let &[rows, cols] = inputs[1].extents() else { return Vec::new() };
    let additions = cols.div_ceil(threads) + wide + 12;
    let stretches = cols.div_ceil(threads * wide * pieces) as f64;
    let (mut losses, mut sums) = (Vec::new(), Vec::new());
    for r in 0..rows {
        let row = &x[r * cols..(r + 1) * cols];
        let (top, log) = log_sum(row);
        let exponentials = || row.iter().map(|x| ((x - top).exp(), (x - top).abs().min(150.0)));
        let sum: f64 = exponentials().map(|(e, _)| e).sum::<f64>().max(f64::MIN_POSITIVE);
        let mean = exponentials().map(|(e, d)| e * (d + 7.5 + 2.8 * stretches) * U).sum::<f64>() / sum;
        let of_log = 1.001 * (mean + gamma(additions) + 2.0 * U * log.abs());
        sums.push((top + log, of_log + 1.001 * U * (top + log).abs()));
        let label = labels[r] as usize;
        if label >= cols {
            losses.push((0.0, 0.0));
            continue;
        }
        let far = top - row[label];
        let count = cols as f64;
        let (all, size) = (row.iter().sum::<f64>() / count, row.iter().map(|x| x.abs()).sum::<f64>() / count);
        let smooth = if smoothing > 0.0 { smoothing * (top - all) } else { 0.0 };
        let value = log + (1.0 - smoothing) * far + smooth;
        let parts = log.abs() + far.abs() + smooth.abs();
        let off = of_log
            + 8.0 * U * parts
            + if smoothing > 0.0 { 1.001 * smoothing * gamma(additions + 1) * size + 4.0 * count * TINY } else { 0.0 };
        losses.push((value, if value.is_finite() { off + 4.0 * TINY } else { 0.0 }));
    }
    let expected = |argument: usize, all: Vec<(f64, f64)>| {
        let (values, bounds) = all.into_iter().unzip();
        Expected::new(argument, values, Bound::Each(bounds))
    };
    vec![expected(3, losses), expected(4, sums)]
}

fn backward_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[threads, wide, pieces] = numbers(instance).as_slice() else { return Vec::new() };
    let (up, stretch) = (|n: usize| n.next_multiple_of(wide), threads * wide * pieces);
    let one = |[rows, cols]: [usize; 2]| {
        let smoothing = [0.0f32, 0.1][random.below(2)];
        let inputs = [
            Input::scalar(smoothing),
            logits(random, instance, [rows, cols], wide),
            labels(random, rows, cols),
            floats(random, rows),
            floats(random, rows),
            logits(random, instance, [rows, cols], wide),
        ];
        Case::new(format!("{rows} × {cols}, smoothing {smoothing}"), inputs)
    };
    let mut all: Vec<Case> =
        [[1, up(1)], [5, up(37)], [2, stretch + wide], [1, up(stretch / 2 + 1)], [0, up(3)], [3, 0]].map(one).into();
    // NaNs in rows that are ignored, because of their label or a gradient of 0.
    let (rows, cols) = (Extreme::ALL.len(), up(37));
    let label = |r: usize| if r % 8 == 5 { u32::MAX } else { random.below(cols) as u32 };
    let labels = Input::slice(&(0..rows).map(label).collect::<Vec<_>>());
    let gradients: Vec<f32> = (0..rows).map(|r| if r % 8 == 3 { 0.0 } else { 0.5 }).collect();
    let by_row = labels.values();
    let x = extremes(random, &Extreme::ALL, stored(instance), cols, cols + wide);
    let x = x.with_nan_where(|i| by_row[i / cols] as usize >= cols || gradients[i / cols] == 0.0);
    let log_sum = |row: &[f64]| {
        let (top, log) = log_sum(row);
        (top + log) as f32
    };
    let log_sums: Vec<f32> = x.values().chunks(cols).map(log_sum).collect();
    let (log_sums, gradients) = (Input::view(&log_sums, [rows]), Input::view(&gradients, [rows]));
    let dx = logits(random, instance, [rows, cols], wide);
    all.push(Case::new("extremes, NaN in ignored rows", [Input::scalar(0.1f32), x, labels, log_sums, gradients, dx]));
    all
}

/// Computes the gradient and its error bounds. x − log is rounded, |x − log|·u; the exponential has
/// the error 1.784·u; the weights, α / C, two differences and the product are rounded.
fn backward_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let [x, labels, logs, gradients] = [1, 2, 3, 4].map(|i| inputs[i].values());
    let (smoothing, &[_, cols]) = (inputs[0].value(), inputs[1].extents()) else { return Vec::new() };
    let one = |(i, x): (usize, &f64)| {
        let (r, c) = (i / cols, i % cols);
        let (label, d) = (labels[r] as usize, x - logs[r]);
        if label >= cols || gradients[r] == 0.0 {
            return (0.0, 0.0);
        }
        let (here, everywhere) = (if c == label { 1.0 - smoothing } else { 0.0 }, smoothing / cols as f64);
        let value = gradients[r] * (d.exp() - here - everywhere);
        let parts = d.exp() * (d.abs().min(150.0) + 5.0) + 3.0 * here + 3.0 * everywhere;
        let off = 1.001 * gradients[r].abs() * (parts * U + TINY) + 2.0 * TINY;
        (value, off + at_rest(stored(instance), value, off))
    };
    let (values, bounds) = x.iter().enumerate().map(one).unzip();
    vec![Expected::new(5, values, Bound::Each(bounds))]
}
