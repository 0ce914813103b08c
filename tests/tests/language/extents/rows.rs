//! Row-wise calls: softmax, norms, losses, sampling, quantizers, rotary embedding.

use super::{Call, On, Written, number};
use kernels_rs::quant::Affine;
use kernels_rs::rotary::{PairLayout, Rotary};
use kernels_rs::rowwise::{CrossEntropy, GroupNorm, Norm, Softmax};
use kernels_rs::sampling::Sample;
use runtime::Error;

const ROWS: &[(&str, usize)] = &[("rows", 1), ("cols", 1)];

pub const CALLS: &[Call] = &[
    Call { name: "Softmax::run and backward", dimensions: ROWS, on_cpu: &["cols"], run: softmax },
    Call { name: "Norm::run_added, backward and backward_columns", dimensions: ROWS, on_cpu: &["cols"], run: norm },
    Call { name: "Norm::quantize", dimensions: ROWS, on_cpu: &["cols"], run: norm_quantized },
    Call {
        name: "GroupNorm::run, backward and backward_channels",
        dimensions: &[("samples", 1), ("channels", 1), ("spatial", 1)],
        on_cpu: &["spatial"],
        run: group_norm,
    },
    Call { name: "CrossEntropy::run and backward", dimensions: ROWS, on_cpu: &["cols"], run: loss },
    Call { name: "Sample::run at temperature 0", dimensions: ROWS, on_cpu: &["cols"], run: sample::<0> },
    Call { name: "Sample::run with a top-k", dimensions: ROWS, on_cpu: &[], run: sample::<1> },
    Call { name: "Sample::run with a top-p", dimensions: ROWS, on_cpu: &[], run: sample::<2> },
    Call { name: "Affine", dimensions: ROWS, on_cpu: &["cols"], run: affine },
    Call {
        name: "Rotary::run and run_in_place",
        dimensions: &[("tokens", 1), ("heads", 1), ("size", 2)],
        on_cpu: &["size"],
        run: rotary,
    },
];

/// Applies `f` to each row of `cols` numbers.
fn by_rows(x: &[f64], rows: usize, cols: usize, f: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    (0..rows).flat_map(|r| f(&x[r * cols..][..cols])).collect()
}

fn softmax(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[rows, cols] = extents else { panic!() };
    let ((x, of_x), mut y, mut dx) = (on.numbers(rows * cols, 1), on.output(rows * cols), on.output(rows * cols));
    let softmax = Softmax::new().scale(0.5);
    softmax.run(&on.device, &x.view([rows, cols]), &mut y.view_mut([rows, cols]))?;
    // With dy = x: dx = scale·y·(x − Σ y·x).
    softmax.backward(&on.device, &y.view([rows, cols]), &x.view([rows, cols]), &mut dx.view_mut([rows, cols]))?;
    let of_row = |x: &[f64]| -> Vec<f64> {
        let sum: f64 = x.iter().map(|x| (0.5 * x).exp()).sum();
        x.iter().map(|x| (0.5 * x).exp() / sum).collect()
    };
    let gradient = |x: &[f64]| -> Vec<f64> {
        let y = of_row(x);
        let dot: f64 = y.iter().zip(x).map(|(y, x)| y * x).sum();
        y.iter().zip(x).map(|(y, x)| 0.5 * y * (x - dot)).collect()
    };
    Ok(vec![
        Written::new("y", y.download(), by_rows(&of_x, rows, cols, of_row)),
        Written::new("dx", dx.download(), by_rows(&of_x, rows, cols, gradient)),
    ])
}

/// Checks norms, where x + residual is 2·x, ε is 1 and dy is 1.
fn norm(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[rows, cols] = extents else { panic!() };
    let ((x, of_x), (residual, _)) = (on.numbers(rows * cols, 1), on.numbers(rows * cols, 1));
    let [mut y, mut z, mut dz] = [(); 3].map(|()| on.output(rows * cols));
    let (mut saved, [mut dweight, mut dbias]) = (on.output(2 * rows), [(); 2].map(|()| on.output(cols)));
    let (ones, weight) = (on.array(&vec![1f32; rows * cols]), on.array(&vec![2f32; cols]));
    let weight = weight.view([cols]);
    let norm = Norm::layer(1.0).weight(&weight);
    let shape = [rows, cols];
    {
        let (mut z, residual) = (z.view_mut(shape), residual.view(shape));
        let mut saved = saved.view_mut([rows, 2]);
        norm.run_added(
            &on.device,
            &x.view(shape),
            Some((&residual, &mut z)),
            &mut y.view_mut(shape),
            Some(&mut saved),
        )?;
    }
    let (z, saved, ones) = (z.view(shape), saved.view([rows, 2]), ones.view(shape));
    norm.backward(&on.device, &z, &saved, &ones, &mut dz.view_mut(shape))?;
    let [mut of_weight, mut of_bias] = [dweight.view_mut([cols]), dbias.view_mut([cols])];
    norm.backward_columns(&on.device, &z, &saved, &ones, Some(&mut of_weight), Some(&mut of_bias))?;
    let normed = |x: &[f64]| -> Vec<f64> {
        let n = x.len() as f64;
        let mean = x.iter().map(|x| 2.0 * x).sum::<f64>() / n;
        let variance = x.iter().map(|x| (2.0 * x - mean).powi(2)).sum::<f64>() / n;
        x.iter().map(|x| (2.0 * x - mean) / (variance + 1.0).sqrt()).collect()
    };
    let of_y = by_rows(&of_x, rows, cols, normed);
    let sums = (0..cols).map(|c| (0..rows).map(|r| of_y[r * cols + c]).sum()).collect();
    Ok(vec![
        Written::new("y", y.download(), of_y.iter().map(|y| 2.0 * y).collect()),
        // The gradient of a sum that is equal in all rows.
        Written::new("dz", dz.download(), vec![0.0; rows * cols]),
        Written::new("dweight", dweight.download(), sums),
        Written::new("dbias", dbias.download(), vec![rows as f64; cols]),
    ])
}

/// Checks rows of ±1, which RMS norm leaves unchanged.
fn norm_quantized(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[rows, cols] = extents else { panic!() };
    let sign: Vec<f32> = (0..rows * cols).map(|i| number(i).signum()).collect();
    let (x, mut q, mut scales) = (on.array(&sign), on.array(&vec![7i8; rows * cols]), on.output(rows));
    let (mut of_q, mut of_scales) = (q.view_mut([rows, cols]), scales.view_mut([rows]));
    Norm::rms(0.0).quantize(&on.device, &x.view([rows, cols]), None, &mut of_q, &mut of_scales)?;
    let of_row = if cols == 0 { 0.0 } else { 1.0 / 127.0 };
    Ok(vec![
        Written::new("q", q.download(), sign.iter().map(|x| 127.0 * f64::from(*x)).collect()),
        Written::new("scales", scales.download(), vec![of_row; rows]),
    ])
}

/// Checks one group of all channels, with ε = 1 and dy = 1.
fn group_norm(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[samples, channels, spatial] = extents else { panic!() };
    let (shape, n, each) = ([samples, channels, spatial], samples * channels * spatial, channels * spatial);
    let ((x, of_x), mut y, mut dx) = (on.numbers(n, 1), on.output(n), on.output(n));
    let (mut saved, [mut dweight, mut dbias]) = (on.output(2 * samples), [(); 2].map(|()| on.output(channels)));
    let ones = on.array(&vec![1f32; n]);
    let (norm, x, ones) = (GroupNorm::new(1, 1.0), x.view(shape), ones.view(shape));
    norm.run(&on.device, &x, &mut y.view_mut(shape), Some(&mut saved.view_mut([samples, 1, 2])))?;
    let saved = saved.view([samples, 1, 2]);
    norm.backward(&on.device, &x, &saved, &ones, &mut dx.view_mut(shape))?;
    let [mut of_weight, mut of_bias] = [dweight.view_mut([channels]), dbias.view_mut([channels])];
    norm.backward_channels(&on.device, &x, &saved, &ones, Some(&mut of_weight), Some(&mut of_bias))?;
    let normed = |x: &[f64]| -> Vec<f64> {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        x.iter().map(|x| (x - mean) / (variance + 1.0).sqrt()).collect()
    };
    let of_y = by_rows(&of_x, samples, each, normed);
    let of_channel =
        |c: usize| (0..samples).flat_map(move |s| (0..spatial).map(move |i| (s * channels + c) * spatial + i));
    let sums = (0..channels).map(|c| of_channel(c).map(|i| of_y[i]).sum()).collect();
    Ok(vec![
        Written::new("y", y.download(), of_y.clone()),
        Written::new("dx", dx.download(), vec![0.0; n]),
        // Terms of both signs cancel.
        Written::new("dweight", dweight.download(), sums).within(2e-7 * (samples * spatial) as f64),
        Written::new("dbias", dbias.download(), vec![(samples * spatial) as f64; channels]),
    ])
}

fn loss(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[rows, cols] = extents else { panic!() };
    let ((x, of_x), shape) = (on.numbers(rows * cols, 1), [rows, cols]);
    let label = |row: usize| row % cols.max(1);
    let (labels, ones) =
        (on.array(&(0..rows).map(|r| label(r) as u32).collect::<Vec<_>>()), on.array(&vec![1f32; rows]));
    let ([mut loss, mut log_sum], mut dx) = ([(); 2].map(|()| on.output(rows)), on.output(rows * cols));
    let (x, labels) = (x.view(shape), labels.view([rows]));
    let (mut of_loss, mut of_sum) = (loss.view_mut([rows]), log_sum.view_mut([rows]));
    CrossEntropy::new().run(&on.device, &x, &labels, &mut of_loss, &mut of_sum)?;
    let (of_sum, ones) = (log_sum.view([rows]), ones.view([rows]));
    CrossEntropy::new().backward(&on.device, &x, &labels, &of_sum, &ones, &mut dx.view_mut(shape))?;
    let sums: Vec<f64> = by_rows(&of_x, rows, cols, |x| vec![x.iter().map(|x| x.exp()).sum::<f64>().ln()]);
    // Without columns no label is valid, and the row is ignored.
    let of_row = |r: usize| if cols == 0 { 0.0 } else { sums[r] - of_x[r * cols + label(r)] };
    let gradient = |i: usize| (of_x[i] - sums[i / cols]).exp() - f64::from(u8::from(i % cols == label(i / cols)));
    Ok(vec![
        Written::new("loss", loss.download(), (0..rows).map(of_row).collect()),
        Written::new("log_sum", log_sum.download(), sums.clone()),
        Written::new("dx", dx.download(), (0..rows * cols).map(gradient).collect()),
    ])
}

/// Checks rows with one likely token, which every kind of draw returns.
fn sample<const WAY: usize>(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[rows, cols] = extents else { panic!() };
    let likely = |row: usize| if cols == 0 { u32::MAX as usize } else { (row * 5 + 60_000) % cols };
    let logits: Vec<f32> = (0..rows * cols).map(|i| if i % cols == likely(i / cols) { 100.0 } else { 0.0 }).collect();
    let (logits, mut tokens) = (on.array(&logits), on.array(&vec![7u32; rows]));
    let sample = match WAY {
        0 => Sample::new(1).temperature(0.0),
        1 => Sample::new(1).top_k(3),
        _ => Sample::new(1).top_p(0.5),
    };
    sample.run(&on.device, &logits.view([rows, cols]), &mut tokens.view_mut([rows]))?;
    Ok(vec![Written::new("tokens", tokens.download(), (0..rows).map(|r| likely(r) as f64).collect())])
}

/// Checks scales of the whole matrix and of each row, with numbers that bytes represent exactly.
fn affine(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[rows, cols] = extents else { panic!() };
    let whole: Vec<f32> = (0..rows * cols).map(|i| 127.0 * number(i).signum()).collect();
    let (x, shape) = (on.array(&whole), [rows, cols]);
    let mut written = Vec::new();
    for each in [false, true] {
        let fit = if each { Affine::fit_rows } else { Affine::fit };
        let affine = fit(&on.device, &x.view(shape), true)?;
        let (mut q, mut back) = (on.array(&vec![7i8; rows * cols]), on.output(rows * cols));
        affine.quantize(&on.device, &x.view(shape), &mut q.view_mut(shape))?;
        affine.dequantize(&on.device, &q.view(shape), &mut back.view_mut(shape))?;
        let reference: Vec<f64> = whole.iter().map(|x| f64::from(*x)).collect();
        written.push(Written::new("q", q.download(), reference.clone()));
        written.push(Written::new("back", back.download(), reference));
    }
    Ok(written)
}

/// Rotates only the first pair, by a quarter of a circle at position 1: (a, b) becomes (−b, a).
fn rotary(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[tokens, heads, size] = extents else { panic!() };
    let n = tokens * heads * size;
    let pairs = usize::from(size >= 2);
    let rotary = Rotary::new(&on.device, PairLayout::Interleaved, &vec![std::f32::consts::FRAC_PI_2; pairs])?;
    let ((x, of_x), (mut again, _), mut y) = (on.numbers(n, 1), on.numbers(n, 1), on.output(n));
    let positions = on.array(&vec![1u32; tokens * pairs]);
    let (positions, shape) = (positions.view([pairs, tokens]), [tokens, heads, size]);
    rotary.run(&on.device, &x.view(shape), &positions, &mut y.view_mut(shape))?;
    rotary.run_in_place(&on.device, &positions, &mut again.view_mut(shape))?;
    let rotated = |i: usize| match i % size {
        0 if pairs > 0 => -of_x[i + 1],
        1 if pairs > 0 => of_x[i - 1],
        _ => of_x[i],
    };
    let reference: Vec<f64> = (0..n).map(rotated).collect();
    Ok(vec![Written::new("y", y.download(), reference.clone()), Written::new("x", again.download(), reference)])
}
