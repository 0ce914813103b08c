//! Tests of row-wise operations, on the CPU and on a GPU: with every team of threads the result
//! agrees with `f64`, and other memory is unchanged.

use kernel_dsl::Element;
use kernel_dsl::half::{bf16, f16};
use kernels_rs::rowwise::{CrossEntropy, GroupNorm, Norm, Softmax};
use runtime::testing::Random;
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error};

/// Contents of the gaps between rows.
const GAP: f32 = 77.0;

/// A matrix on a device whose rows are `pitch` elements apart.
struct Matrix<T: Element> {
    buffer: DeviceBuffer<T>,
    shape: [usize; 2],
    pitch: usize,
}

impl<T: Element + From32> Matrix<T> {
    fn new(device: &Device, values: &[f64], shape: [usize; 2], gap: usize) -> Matrix<T> {
        let [rows, cols] = shape;
        let pitch = cols + gap;
        let mut all = vec![T::of(GAP); rows * pitch];
        for (i, x) in values.iter().enumerate() {
            all[i / cols * pitch + i % cols] = T::of(*x as f32);
        }
        Matrix { buffer: device.upload(&all).unwrap(), shape, pitch }
    }

    fn empty(device: &Device, shape: [usize; 2], gap: usize) -> Matrix<T> {
        Matrix::new(device, &vec![0.0; shape[0] * shape[1]], shape, gap)
    }

    fn view(&self) -> BufferView<'_, T, 2> {
        self.buffer.view_strided(self.shape, [self.pitch, 1]).unwrap()
    }

    fn view_mut(&mut self) -> BufferViewMut<'_, T, 2> {
        self.buffer.view_strided_mut(self.shape, [self.pitch, 1]).unwrap()
    }

    /// Returns the elements, and checks that the gaps between rows are unchanged.
    fn values(&self, what: &str) -> Vec<f64> {
        let all = self.buffer.download().unwrap();
        let inside = |i: &usize| i % self.pitch < self.shape[1];
        let untouched = (0..all.len()).filter(|i| !inside(i)).all(|i| all[i].wide() == f64::from(GAP));
        assert!(untouched, "{what}: something between the rows was written");
        (0..all.len()).filter(inside).map(|i| all[i].wide()).collect()
    }
}

/// A type of stored numbers.
trait From32 {
    /// The spacing of numbers at 1.
    const EPSILON: f64;
    fn of(x: f32) -> Self;
    fn wide(self) -> f64;
}

macro_rules! stored {
    ($($t:ty: $epsilon:expr;)*) => {$(
        impl From32 for $t {
            const EPSILON: f64 = $epsilon;
            fn of(x: f32) -> $t { <$t as kernel_dsl::Float>::from_f32(x) }
            fn wide(self) -> f64 { f64::from(kernel_dsl::Float::to_f32(self)) }
        }
    )*};
}
stored! { f32: 1.2e-7; f16: 9.8e-4; bf16: 7.9e-3; }

/// Compares within one rounding of the stored type and some hundred of `f32`. The exact bounds of
/// each kernel are tested with its cases.
fn near<T: From32>(got: &[f64], expected: &[f64], size: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let off = (T::EPSILON + 1e-5) * expected.abs() + 2e-5 * size + T::EPSILON * 1e-4;
        assert!((got - expected).abs() <= off || got == expected, "{what}: element {i} is {got}, not {expected}");
    }
}

/// Returns random values as `T` stores them.
fn drawn<T: From32>(random: &mut Random, n: usize) -> Vec<f64> {
    random.values::<f32>(n).into_iter().map(|x| T::of(x).wide()).collect()
}

/// Shapes around the limits of the teams: rows of a warp and of a block, rows kept in registers and
/// rows read again, few rows and many.
const SHAPES: [[usize; 2]; 16] = [
    [1, 1],
    [0, 5],
    [3, 0],
    [1, 33],
    [9, 256],
    [9, 257],
    [5, 1000],
    [5, 1028],
    [3, 2047],
    [4, 4096],
    [3, 4100],
    [2, 8200],
    [1, 16388],
    [300, 17],
    [1, 20001],
    [140, 1100],
];

/// Rows that blocks share on a GPU, with accesses of 16 bytes and of one element.
const LONG_SHAPES: [[usize; 2]; 3] = [[2, 40_008], [3, 33_003], [1, 70_000]];

fn softmax_of(x: &[f64], log: bool) -> Vec<f64> {
    let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = x.iter().map(|x| (x - top).exp()).sum();
    let one = |x: &f64| if log { x - top - sum.ln() } else { (x - top).exp() / sum };
    let nothing = if log { f64::NEG_INFINITY } else { 0.0 };
    x.iter().map(|x| if top == f64::NEG_INFINITY { nothing } else { one(x) }).collect()
}

fn softmax<T: Element + From32 + kernel_dsl::Float + kernel_dsl::GenericArgument>(
    device: &Device,
    shapes: &[[usize; 2]],
    some: usize,
) {
    let mut random = Random::new(5);
    for (n, shape) in shapes.iter().copied().enumerate().step_by(some) {
        let [rows, cols] = shape;
        for gap in if some == 1 { vec![0, 8, 1] } else { vec![[0, 8, 1][n % 3]] } {
            let (log, masked, scale) = (n % 2 == gap % 2, random.below(3), [1.0, -0.5][random.below(2)]);
            let what = format!("{rows} × {cols}, gap {gap}, log {log}, masked {masked}, scale {scale}");
            let values = drawn::<T>(&mut random, rows * cols);
            let bias = drawn::<f32>(&mut random, cols);
            let keep: Vec<u8> = (0..rows * cols).map(|_| u8::from(random.below(3) > 0)).collect();
            let queries = if masked == 2 { rows.min(cols) } else { 0 };
            let x = Matrix::<T>::new(device, &values, shape, gap);
            let mut y = Matrix::<T>::empty(device, shape, gap);
            let (of_bias, of_keep) = (Matrix::<f32>::new(device, &bias, [1, cols], 0), device.upload(&keep).unwrap());
            let of_bias = of_bias.buffer.view_strided([rows, cols], [0, 1]).unwrap();
            let of_keep = of_keep.view(shape).unwrap();
            let mut call = Softmax::new().scale(scale).causal(queries);
            if log {
                call = call.log();
            }
            if masked > 0 {
                call = call.bias(&of_bias).keep(&of_keep);
            }
            call.run(device, &x.view(), &mut y.view_mut()).unwrap();
            let row = |r: usize| -> Vec<f64> {
                let logit = |c: usize| {
                    let out = masked > 0 && keep[r * cols + c] == 0 || queries > 0 && c + queries > cols + r % queries;
                    let z = f64::from(scale) * values[r * cols + c] + if masked > 0 { bias[c] } else { 0.0 };
                    if out { f64::NEG_INFINITY } else { z }
                };
                softmax_of(&(0..cols).map(logit).collect::<Vec<_>>(), log)
            };
            let expected: Vec<f64> = (0..rows).flat_map(row).collect();
            near::<T>(&y.values(&what), &expected, if log { 1.0 } else { 1e-4 }, &what);
        }
    }
}

/// Returns the mean, and the factor that normalizes a row.
fn moments(z: &[f64], centered: bool) -> (f64, f64) {
    let count = z.len().max(1) as f64;
    let mean = if centered { z.iter().sum::<f64>() / count } else { 0.0 };
    (mean, 1.0 / (z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / count + 1e-5).sqrt())
}

fn norm<T: Element + From32 + kernel_dsl::Float + kernel_dsl::GenericArgument>(
    device: &Device,
    shapes: &[[usize; 2]],
    some: usize,
) {
    let mut random = Random::new(6);
    for (n, shape) in shapes.iter().copied().enumerate().step_by(some) {
        let [rows, cols] = shape;
        for gap in if some == 1 { vec![0, 8, 1] } else { vec![[0, 8, 1][n % 3]] } {
            let (centered, added, scaled) = (n % 2 == gap % 2, random.below(2) == 0, random.below(2) == 0);
            let what = format!("{rows} × {cols}, gap {gap}, layer {centered}, residual {added}, weight {scaled}");
            let (values, more) = (drawn::<T>(&mut random, rows * cols), drawn::<T>(&mut random, rows * cols));
            let (weights, biases) = (drawn::<f32>(&mut random, cols), drawn::<f32>(&mut random, cols));
            let column = |values: &[f64]| device.upload(&values.iter().map(|x| *x as f32).collect::<Vec<_>>()).unwrap();
            let (weight, bias) = (column(&weights), column(&biases));
            let (weight, bias) = (weight.view([cols]).unwrap(), bias.view([cols]).unwrap());
            let (x, residual) =
                (Matrix::<T>::new(device, &values, shape, gap), Matrix::<T>::new(device, &more, shape, gap));
            let (mut z, mut y) = (Matrix::<T>::empty(device, shape, gap), Matrix::<T>::empty(device, shape, gap));
            let mut saved = Matrix::<f32>::empty(device, [rows, 2], 0);
            let mut call = if centered { Norm::layer(1e-5) } else { Norm::rms(1e-5) };
            if scaled {
                call = call.weight(&weight).bias(&bias);
            }
            let (of_residual, mut of_z) = (residual.view(), z.view_mut());
            let with = added.then_some((&of_residual, &mut of_z));
            call.run_added(device, &x.view(), with, &mut y.view_mut(), Some(&mut saved.view_mut())).unwrap();

            let sums: Vec<f64> = values.iter().zip(&more).map(|(x, r)| if added { x + r } else { *x }).collect();
            let row = |z: &[f64]| -> Vec<f64> {
                let (mean, factor) = moments(z, centered);
                let one = |(c, z): (usize, &f64)| {
                    let (w, b) = if scaled { (weights[c], biases[c]) } else { (1.0, 0.0) };
                    (z - mean) * factor * w + b
                };
                z.iter().enumerate().map(one).collect()
            };
            let expected: Vec<f64> = sums.chunks(cols.max(1)).flat_map(row).collect();
            // A row of one element has no deviation, and its factor is large.
            near::<T>(&y.values(&what), &expected, 4.0, &what);
            if added {
                near::<T>(&z.values(&what), &sums, 1.0, &what);
            }
            let mut q = device.zeros::<i8>(rows * cols).unwrap();
            let mut scales = device.zeros::<f32>(rows).unwrap();
            let (mut of_q, mut of_scales) = (q.view_mut(shape).unwrap(), scales.view_mut([rows]).unwrap());
            call.quantize(device, &x.view(), None, &mut of_q, &mut of_scales).unwrap();
            let (q, scales) = (q.download().unwrap(), scales.download().unwrap());
            for (r, x) in values.chunks(cols.max(1)).enumerate() {
                for (c, y) in row(x).into_iter().enumerate() {
                    let (got, step) = (f64::from(q[r * cols + c]) * f64::from(scales[r]), f64::from(scales[r]));
                    assert!((got - y).abs() <= 0.51 * step + 1e-4, "{what}: {got}, not {y}");
                }
            }
        }
    }
}

/// Compares the gradients with difference quotients of Σ g·y by each x, in `f64`.
fn backward(device: &Device) {
    let mut random = Random::new(8);
    for shape in [[3, 7], [9, 40], [2, 260], [140, 5], [1, 1030]] {
        let [rows, cols] = shape;
        let (x, g) = (drawn::<f32>(&mut random, rows * cols), drawn::<f32>(&mut random, rows * cols));
        let weights = drawn::<f32>(&mut random, cols);
        let (of_x, of_g) = (Matrix::<f32>::new(device, &x, shape, 1), Matrix::<f32>::new(device, &g, shape, 0));
        let mut dx = Matrix::<f32>::empty(device, shape, 3);
        let dot = |y: &[f64], g: &[f64]| y.iter().zip(g).map(|(y, g)| y * g).sum::<f64>();
        let slopes = |of: &dyn Fn(&[f64]) -> Vec<f64>| -> Vec<f64> {
            let one = |i: usize| {
                let row = i / cols * cols..(i / cols + 1) * cols;
                let moved = |by: f64| {
                    let mut row = x[row.clone()].to_vec();
                    row[i % cols] += by;
                    dot(&of(&row), &g[i / cols * cols..][..cols])
                };
                (moved(1e-4) - moved(-1e-4)) / 2e-4
            };
            (0..rows * cols).map(one).collect()
        };
        for log in [false, true] {
            let call = if log { Softmax::new().log() } else { Softmax::new() };
            let mut y = Matrix::<f32>::empty(device, shape, 0);
            call.run(device, &of_x.view(), &mut y.view_mut()).unwrap();
            call.backward(device, &y.view(), &of_g.view(), &mut dx.view_mut()).unwrap();
            let what = format!("softmax of {shape:?}, log {log}");
            near::<f32>(&dx.values(&what), &slopes(&|x| softmax_of(x, log)), 10.0, &what);
        }
        for centered in [false, true] {
            let what = format!("norm of {shape:?}, layer {centered}");
            let weight = device.upload(&weights.iter().map(|x| *x as f32).collect::<Vec<_>>()).unwrap();
            let weight = weight.view([cols]).unwrap();
            let call = if centered { Norm::layer(1e-5) } else { Norm::rms(1e-5) }.weight(&weight);
            let (mut y, mut saved) =
                (Matrix::<f32>::empty(device, shape, 0), Matrix::<f32>::empty(device, [rows, 2], 0));
            call.run_added(device, &of_x.view(), None, &mut y.view_mut(), Some(&mut saved.view_mut())).unwrap();
            call.backward(device, &of_x.view(), &saved.view(), &of_g.view(), &mut dx.view_mut()).unwrap();
            let normal = |x: &[f64]| -> Vec<f64> {
                let (mean, factor) = moments(x, centered);
                x.iter().map(|x| (x - mean) * factor).collect()
            };
            let of = |x: &[f64]| normal(x).iter().zip(&weights).map(|(n, w)| n * w).collect();
            near::<f32>(&dx.values(&what), &slopes(&of), 10.0, &what);

            let (mut dweight, mut dbias) = (device.zeros::<f32>(cols).unwrap(), device.zeros::<f32>(cols).unwrap());
            let (mut of_weight, mut of_bias) = (dweight.view_mut([cols]).unwrap(), dbias.view_mut([cols]).unwrap());
            let outputs = (Some(&mut of_weight), Some(&mut of_bias));
            call.backward_columns(device, &of_x.view(), &saved.view(), &of_g.view(), outputs.0, outputs.1).unwrap();
            let n: Vec<f64> = x.chunks(cols).flat_map(normal).collect();
            let column = |of: &dyn Fn(usize) -> f64| -> Vec<f64> {
                (0..cols).map(|c| (0..rows).map(|r| of(r * cols + c)).sum()).collect()
            };
            let wide = |x: Vec<f32>| x.into_iter().map(f64::from).collect::<Vec<_>>();
            near::<f32>(&wide(dweight.download().unwrap()), &column(&|i| g[i] * n[i]), 10.0, &what);
            near::<f32>(&wide(dbias.download().unwrap()), &column(&|i| g[i]), 10.0, &what);
        }
    }
}

/// Checks the loss of logits of some columns, and its gradient, against their softmax.
fn loss(device: &Device) {
    let mut random = Random::new(9);
    for [rows, cols] in [[1, 3], [4, 1000], [150, 40], [3, 4099], [2, 20_000], [0, 4], [2, 0]] {
        for smoothing in [0.0f32, 0.25] {
            let what = format!("{rows} × {cols}, smoothing {smoothing}");
            let x = drawn::<f32>(&mut random, rows * cols);
            let g = drawn::<f32>(&mut random, rows);
            let labels: Vec<u32> =
                (0..rows).map(|r| if r == 1 { u32::MAX } else { random.below(cols.max(1)) as u32 }).collect();
            let target = |r: usize, c: usize| {
                let here = if labels[r] as usize == c { 1.0 - f64::from(smoothing) } else { 0.0 };
                here + f64::from(smoothing) / cols as f64
            };
            let logits = Matrix::<f32>::new(device, &x, [rows, cols], 0);
            let mut dx = Matrix::<f32>::empty(device, [rows, cols], 1);
            let of_labels = device.upload(&labels).unwrap();
            let of_g = device.upload(&g.iter().map(|g| *g as f32).collect::<Vec<_>>()).unwrap();
            let (mut loss, mut log_sum) = (device.zeros::<f32>(rows).unwrap(), device.zeros::<f32>(rows).unwrap());
            let (of_labels, of_g) = (of_labels.view([rows]).unwrap(), of_g.view([rows]).unwrap());
            let call = CrossEntropy::new().smoothing(smoothing);
            let outputs = (&mut loss.view_mut([rows]).unwrap(), &mut log_sum.view_mut([rows]).unwrap());
            call.run(device, &logits.view(), &of_labels, outputs.0, outputs.1).unwrap();
            let of_sum = log_sum.view([rows]).unwrap();
            call.backward(device, &logits.view(), &of_labels, &of_sum, &of_g, &mut dx.view_mut()).unwrap();

            let (mut losses, mut slopes) = (Vec::new(), Vec::new());
            for r in 0..rows {
                let logs = softmax_of(&x[r * cols..(r + 1) * cols], true);
                let ignored = labels[r] as usize >= cols;
                losses.push(if ignored { 0.0 } else { -(0..cols).map(|c| target(r, c) * logs[c]).sum::<f64>() });
                slopes.extend((0..cols).map(|c| if ignored { 0.0 } else { g[r] * (logs[c].exp() - target(r, c)) }));
            }
            let got: Vec<f64> = loss.download().unwrap().into_iter().map(f64::from).collect();
            near::<f32>(&got, &losses, 1.0, &what);
            near::<f32>(&dx.values(&what), &slopes, 0.1, &what);
        }
    }
}

/// Samples, groups, channels of a group and elements of a channel.
const GROUPED: [[usize; 4]; 9] = [
    [1, 1, 1, 1],
    [2, 3, 2, 20],
    [1, 2, 5, 7],
    [3, 4, 1, 9],
    [2, 1, 6, 100],
    [1, 2, 4, 1031],
    [0, 2, 3, 4],
    [2, 2, 2, 0],
    [2, 0, 0, 5],
];

/// Group norms of two to four long rows: few for a device with one multiprocessor.
const GROUPED_IN_FEW_WAVES: [[usize; 4]; 4] = [[1, 3, 10, 1024], [2, 2, 8, 616], [1, 2, 3, 4096], [2, 1, 4, 1032]];

/// Checks group norms with gaps between samples. The gradients are compared with difference
/// quotients.
fn groups<T: Element + From32 + kernel_dsl::Float + kernel_dsl::GenericArgument>(
    device: &Device,
    shapes: &[[usize; 4]],
) {
    let mut random = Random::new(12);
    for (n, [samples, groups, channels, spatial]) in shapes.iter().copied().enumerate() {
        let what = format!("{samples} samples of {groups} groups of {channels} channels of {spatial}");
        let (all, cols) = (groups * channels, channels * spatial);
        let (rows, size) = (samples * groups, all * spatial);
        let values = drawn::<T>(&mut random, samples * size);
        let g = drawn::<T>(&mut random, samples * size);
        let (weights, biases) = (drawn::<f32>(&mut random, all), drawn::<f32>(&mut random, all));
        let scaled = n % 2 == 1;
        let upload = |values: &[f64]| device.upload(&values.iter().map(|x| *x as f32).collect::<Vec<_>>()).unwrap();
        let (weight, bias) = (upload(&weights), upload(&biases));
        let (weight, bias) = (weight.view([all]).unwrap(), bias.view([all]).unwrap());
        let matrix = |values: &[f64], gap| Matrix::<T>::new(device, values, [samples, size], gap);
        // Long rows are aligned, short ones also not.
        let odd = if cols < 4100 { 1 } else { 8 };
        let (x, dy) = (matrix(&values, n % 3 * if odd == 1 { 4 } else { 8 }), matrix(&g, n % 2 * odd));
        let (mut y, mut dx) = (matrix(&vec![0.0; values.len()], 8), matrix(&vec![0.0; values.len()], odd));
        let shape = [samples, all, spatial];
        let of_x = x.view().strided().reshaped(shape).unwrap().side_by_side().unwrap();
        let of_dy = dy.view().strided().reshaped(shape).unwrap().side_by_side().unwrap();
        let mut saved = device.zeros::<f32>(2 * rows).unwrap();
        let call = if scaled {
            GroupNorm::new(groups, 1e-5).weight(&weight).bias(&bias)
        } else {
            GroupNorm::new(groups, 1e-5)
        };
        let mut of_saved = saved.view_mut([samples, groups, 2]).unwrap();
        let mut of_y = y.view_mut().strided().reshaped(shape).unwrap().side_by_side().unwrap();
        call.run(device, &of_x, &mut of_y, Some(&mut of_saved)).unwrap();
        let channel = |i: usize| i / spatial % all;
        let of_weights = |i: usize| if scaled { weights[channel(i)] } else { 1.0 };
        let normal = |x: &[f64]| -> Vec<f64> {
            let (mean, factor) = moments(x, true);
            x.iter().map(|x| (x - mean) * factor).collect()
        };
        let normals: Vec<f64> = values.chunks(cols.max(1)).flat_map(normal).collect();
        let scale = |(i, n): (usize, &f64)| n * of_weights(i) + if scaled { biases[channel(i)] } else { 0.0 };
        let expected: Vec<f64> = normals.iter().enumerate().map(scale).collect();
        near::<T>(&y.values(&what), &expected, 4.0, &what);

        let of_saved = saved.view([samples, groups, 2]).unwrap();
        let mut of_dx = dx.view_mut().strided().reshaped(shape).unwrap().side_by_side().unwrap();
        call.backward(device, &of_x, &of_saved, &of_dy, &mut of_dx).unwrap();
        let slope = |i: usize| {
            let first = i / cols * cols;
            let moved = |by: f64| {
                let mut row = values[first..first + cols].to_vec();
                row[i - first] += by;
                normal(&row).iter().enumerate().map(|(j, n)| n * of_weights(first + j) * g[first + j]).sum::<f64>()
            };
            (moved(1e-4) - moved(-1e-4)) / 2e-4
        };
        let got = dx.values(&what);
        // For long rows, some of the elements.
        let some: Vec<usize> = (0..got.len()).step_by(1 + cols / 100).collect();
        let found: Vec<f64> = some.iter().map(|i| got[*i]).collect();
        near::<T>(&found, &some.iter().map(|i| slope(*i)).collect::<Vec<_>>(), 10.0, &what);

        let (mut dweight, mut dbias) = (device.zeros::<f32>(all).unwrap(), device.zeros::<f32>(all).unwrap());
        let (mut of_weight, mut of_bias) = (dweight.view_mut([all]).unwrap(), dbias.view_mut([all]).unwrap());
        call.backward_channels(device, &of_x, &of_saved, &of_dy, Some(&mut of_weight), Some(&mut of_bias)).unwrap();
        let sums = |of: &dyn Fn(usize) -> f64| {
            let one = |c: usize| (0..values.len()).filter(|i| channel(*i) == c).map(of).sum();
            (0..all).map(one).collect::<Vec<f64>>()
        };
        let wide = |x: Vec<f32>| x.into_iter().map(f64::from).collect::<Vec<_>>();
        near::<f32>(&wide(dweight.download().unwrap()), &sums(&|i| g[i] * normals[i]), 10.0, &what);
        near::<f32>(&wide(dbias.download().unwrap()), &sums(&|i| g[i]), 10.0, &what);
    }
}

/// Checks some of the shapes: each team and each access width is another instance, compiled on
/// first use.
fn all(device: &Device, some: usize) {
    softmax::<f32>(device, &SHAPES, some);
    softmax::<f16>(device, &SHAPES, some + 2);
    norm::<f32>(device, &SHAPES, some);
    norm::<bf16>(device, &SHAPES, some + 2);
    backward(device);
    groups::<f32>(device, &GROUPED);
    groups::<f16>(device, &GROUPED);
    loss(device);
}

#[test]
fn cpu_groups_in_few_waves_agree_with_the_reference() {
    let mut facts = Device::cpu().facts();
    facts.multiprocessors = 1;
    let device = Device::cpu_with_facts(facts);
    groups::<f32>(&device, &GROUPED_IN_FEW_WAVES);
    groups::<f16>(&device, &GROUPED_IN_FEW_WAVES);
}

#[test]
fn cpu_rows_of_every_length_agree_with_the_reference() {
    all(&Device::cpu(), 5);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_rows_of_every_length_agree_with_the_reference() {
    all(&Device::cuda(0).unwrap(), 1);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_rows_that_blocks_share_agree_with_the_reference() {
    let device = Device::cuda(0).unwrap();
    softmax::<f32>(&device, &LONG_SHAPES, 1);
    softmax::<f16>(&device, &LONG_SHAPES, 2);
    norm::<f32>(&device, &LONG_SHAPES, 1);
    norm::<bf16>(&device, &LONG_SHAPES, 2);
}

/// Rejects operands whose extents do not match, with a message.
#[test]
fn extents_are_compared() {
    let device = Device::cpu();
    let (x, mut y) = (device.upload(&[1.0f32; 12]).unwrap(), device.zeros::<f32>(12).unwrap());
    let (three, four) = (x.view([3, 4]).unwrap(), x.view([4, 3]).unwrap());
    let refusal = Softmax::new().run(&device, &three, &mut y.view_mut([4, 3]).unwrap()).unwrap_err().to_string();
    assert!(refusal.contains("y: extents [4, 3], expected [3, 4]"), "{refusal}");
    let refusal =
        Softmax::new().bias(&four).run(&device, &three, &mut y.view_mut([3, 4]).unwrap()).unwrap_err().to_string();
    assert!(refusal.contains("bias: extents [4, 3], expected [3, 4]"), "{refusal}");
    let refusal =
        Softmax::new().causal(5).run(&device, &three, &mut y.view_mut([3, 4]).unwrap()).unwrap_err().to_string();
    assert!(refusal.contains("causal for 5 queries, and x has 4 columns"), "{refusal}");
    let weight = x.view([12]).unwrap();
    let call = Norm::rms(0.0).weight(&weight);
    let refusal = call.run(&device, &three, &mut y.view_mut([3, 4]).unwrap()).unwrap_err().to_string();
    assert!(refusal.contains("weight: extents [12], expected [4] (a number for each column of x"), "{refusal}");
    let (cube, mut to) = (x.view([1, 4, 3]).unwrap(), device.zeros::<f32>(12).unwrap());
    let refusal = |groups, extents: [usize; 3], to: &mut DeviceBuffer<f32>| {
        let refused = GroupNorm::new(groups, 0.0).run(&device, &cube, &mut to.view_mut(extents).unwrap(), None);
        refused.unwrap_err().to_string()
    };
    let said = refusal(3, [1, 4, 3], &mut to);
    assert!(said.contains("4 channels are not divided by 3 groups"), "{said}");
    let said = refusal(2, [1, 2, 6], &mut to);
    assert!(said.contains("y: extents [1, 2, 6], expected [1, 4, 3] (the extents of x"), "{said}");
}

/// Checks that operands without elements are compared too: they do not count as missing.
#[test]
fn operands_without_elements_are_rejected() {
    let device = Device::cpu();
    let (x, mut y) = (device.upload(&[1.0f32; 12]).unwrap(), device.zeros::<f32>(12).unwrap());
    let (mut nothing, no_bytes) = (device.zeros::<f32>(0).unwrap(), device.zeros::<u8>(0).unwrap());
    let (empty, mut nowhere) = (device.zeros::<f32>(0).unwrap(), device.zeros::<f32>(0).unwrap());
    let (of_x, column, none) = (x.view([3, 4]).unwrap(), x.range(0..4).unwrap(), empty.view([0]).unwrap());
    let says = |called: Result<(), Error>, wanted: &str| {
        let said = called.unwrap_err().to_string();
        assert!(said.contains(wanted), "{said}");
    };
    let mut of_y = y.view_mut([3, 4]).unwrap();

    let (weight, bias) = (Norm::rms(0.0).weight(&none), Norm::rms(0.0).weight(&column).bias(&none));
    says(weight.run(&device, &of_x, &mut of_y), "weight: extents [0], expected [4]");
    says(bias.run(&device, &of_x, &mut of_y), "bias: extents [0], expected [4]");
    let mut of_nothing = nothing.view_mut([0, 2]).unwrap();
    let saved = Norm::rms(0.0).run_added(&device, &of_x, None, &mut of_y, Some(&mut of_nothing));
    says(saved, "saved: extents [0, 2], expected [3, 2]");
    let (mut q, mut scales) = (device.zeros::<i8>(12).unwrap(), device.zeros::<f32>(3).unwrap());
    let (mut q, mut scales) = (q.view_mut([3, 4]).unwrap(), scales.view_mut([3]).unwrap());
    says(weight.quantize(&device, &of_x, None, &mut q, &mut scales), "weight: extents [0], expected [4]");
    let (residual, mut z) = (x.view([3, 4]).unwrap(), nowhere.view_mut([0, 4]).unwrap());
    let added = Norm::rms(0.0).quantize(&device, &of_x, Some((&residual, &mut z)), &mut q, &mut scales);
    says(added, "z: extents [0, 4], expected [3, 4] (the extents of x");
    Norm::rms(0.0).weight(&column).quantize(&device, &of_x, None, &mut q, &mut scales).unwrap();
    let of_saved = x.view_strided([3, 2], [2, 1]).unwrap();
    let backward = weight.backward(&device, &of_x, &of_saved, &of_x, &mut of_y);
    says(backward, "weight: extents [0], expected [4]");
    let mut of_none = nothing.view_mut([0]).unwrap();
    let columns = Norm::rms(0.0).backward_columns(&device, &of_x, &of_saved, &of_x, Some(&mut of_none), None);
    says(columns, "dweight: extents [0], expected [4]");
    let columns = Norm::rms(0.0).backward_columns(&device, &of_x, &of_saved, &of_x, None, Some(&mut of_none));
    says(columns, "dbias: extents [0], expected [4]");

    let (bias, keep) = (empty.view([0, 4]).unwrap(), no_bytes.view([0, 4]).unwrap());
    says(Softmax::new().bias(&bias).run(&device, &of_x, &mut of_y), "bias: extents [0, 4], expected [3, 4]");
    says(Softmax::new().keep(&keep).run(&device, &of_x, &mut of_y), "keep: extents [0, 4], expected [3, 4]");

    let (cube, mut to) = (x.view([1, 4, 3]).unwrap(), device.zeros::<f32>(12).unwrap());
    let (of_saved, mut to) = (x.view_strided([1, 2, 2], [4, 2, 1]).unwrap(), to.view_mut([1, 4, 3]).unwrap());
    let (weight, bias) = (GroupNorm::new(2, 0.0).weight(&none), GroupNorm::new(2, 0.0).weight(&column).bias(&none));
    says(weight.run(&device, &cube, &mut to, None), "weight: extents [0], expected [4]");
    says(bias.run(&device, &cube, &mut to, None), "bias: extents [0], expected [4]");
    let mut of_nothing = nothing.view_mut([1, 0, 2]).unwrap();
    let saved = GroupNorm::new(2, 0.0).run(&device, &cube, &mut to, Some(&mut of_nothing));
    says(saved, "saved: extents [1, 0, 2], expected [1, 2, 2]");
    let backward = weight.backward(&device, &cube, &of_saved, &cube, &mut to);
    says(backward, "weight: extents [0], expected [4]");
    let mut of_none = nothing.view_mut([0]).unwrap();
    let call = GroupNorm::new(2, 0.0);
    let channels = call.backward_channels(&device, &cube, &of_saved, &cube, Some(&mut of_none), None);
    says(channels, "dweight: extents [0], expected [4]");
    let channels = call.backward_channels(&device, &cube, &of_saved, &cube, None, Some(&mut of_none));
    says(channels, "dbias: extents [0], expected [4]");
}

/// Checks norms of rows whose sums or squares exceed the range of `f32`, against values computed by
/// hand.
fn norms_of_huge_and_tiny_rows(device: &Device) {
    let run = |norm: Norm, x: &[f32]| {
        let (x, mut y) = (device.upload(x).unwrap(), device.zeros::<f32>(x.len()).unwrap());
        let shape = [1, y.len()];
        norm.run(device, &x.view(shape).unwrap(), &mut y.view_mut(shape).unwrap()).unwrap();
        y.download().unwrap()
    };
    let group = |epsilon, x: &[f32]| {
        let (x, mut y) = (device.upload(x).unwrap(), device.zeros::<f32>(x.len()).unwrap());
        let shape = [1, 1, y.len()];
        let norm = GroupNorm::new(1, epsilon);
        norm.run(device, &x.view(shape).unwrap(), &mut y.view_mut(shape).unwrap(), None).unwrap();
        y.download().unwrap()
    };
    let near = |got: Vec<f32>, expected: &[f32]| {
        let all = got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-5);
        assert!(all && got.len() == expected.len(), "{got:?}, expected {expected:?}");
    };
    // Squares of 2·10¹⁹, the sum of four times 3·10³⁸, and differences of the largest numbers
    // overflow.
    for [a, b] in [[2e19f32, -2e19], [f32::MAX, f32::MIN], [1e38, 3e38]] {
        let (layer, root) =
            ([(a - b).signum(), (b - a).signum()], (0.5 * (f64::from(a).powi(2) + f64::from(b).powi(2))).sqrt());
        near(run(Norm::layer(1e-5), &[a, b]), &layer);
        near(run(Norm::rms(1e-5), &[a, b]), &[a, b].map(|x| (f64::from(x) / root) as f32));
        near(group(1e-5, &[a, b]), &layer);
    }
    near(
        run(Norm::layer(1e-5), &[f32::MAX, f32::MIN, f32::MIN, f32::MIN]),
        &[3f32.sqrt(), -1.0 / 3f32.sqrt(), -1.0 / 3f32.sqrt(), -1.0 / 3f32.sqrt()],
    );
    near(run(Norm::layer(1e-5), &[3e38; 4]), &[0.0; 4]);
    // Squares underflow, and some deviations are subnormal: with ε = 0, and with an ε that
    // dominates.
    for x in [1e-23f32, 1e-38, 1e-44] {
        near(run(Norm::layer(0.0), &[x, -x]), &[1.0, -1.0]);
        near(run(Norm::rms(0.0), &[x, -x]), &[1.0, -1.0]);
        near(group(0.0, &[x, -x]), &[1.0, -1.0]);
        near(run(Norm::layer(1e-5), &[x, -x]), &[0.0, 0.0]);
    }
}

#[test]
fn cpu_norms_of_huge_and_tiny_rows_are_finite() {
    norms_of_huge_and_tiny_rows(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_norms_of_huge_and_tiny_rows_are_finite() {
    norms_of_huge_and_tiny_rows(&Device::cuda(0).unwrap());
}

/// Checks that ignored rows have no effect, and that sums may overflow where the result does not.
fn losses_of_extreme_logits(device: &Device) {
    let run = |loss: CrossEntropy, x: &[f32], label: u32| {
        let n = x.len();
        let (x, label, gradient) =
            (device.upload(x).unwrap(), device.upload(&[label]).unwrap(), device.upload(&[1f32]).unwrap());
        let (mut of_row, mut log_sum, mut dx) =
            (device.zeros::<f32>(1).unwrap(), device.zeros::<f32>(1).unwrap(), device.zeros::<f32>(n).unwrap());
        let (x, label, gradient) = (x.view([1, n]).unwrap(), label.view([1]).unwrap(), gradient.view([1]).unwrap());
        let outputs = (&mut of_row.view_mut([1]).unwrap(), &mut log_sum.view_mut([1]).unwrap());
        loss.run(device, &x, &label, outputs.0, outputs.1).unwrap();
        let log_sum = log_sum.view([1]).unwrap();
        loss.backward(device, &x, &label, &log_sum, &gradient, &mut dx.view_mut([1, n]).unwrap()).unwrap();
        (of_row.download().unwrap()[0], dx.download().unwrap())
    };
    let smoothed = CrossEntropy::new().smoothing(0.1);
    assert!((0.0..1e32).contains(&run(smoothed, &[3e38, 3e38], 0).0));
    // log Σ exp is 3·10³⁸, and the mean logit is 0. The loss is 0.1 · (log Σ exp − mean) + 0.9 ·
    // (log Σ exp − the label's logit), where the last difference may overflow.
    let near = |got: f32, expected: f32| assert!((got / expected - 1.0).abs() < 1e-6, "{got}, expected {expected}");
    near(run(smoothed, &[3e38, -3e38], 0).0, 3e37);
    assert_eq!(run(smoothed, &[3e38, -3e38], 1).0, f32::INFINITY);
    near(run(smoothed.smoothing(0.75), &[1.5e38, -1.5e38], 1).0, 0.25 * 3e38 + 0.75 * 1.5e38);
    assert_eq!(run(CrossEntropy::new(), &[f32::NAN, 1.0], u32::MAX), (0.0, vec![0.0, 0.0]));
}

#[test]
fn cpu_losses_of_extreme_logits_have_documented_results() {
    losses_of_extreme_logits(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_losses_of_extreme_logits_have_documented_results() {
    losses_of_extreme_logits(&Device::cuda(0).unwrap());
}
