//! Benchmarks of row kernels compared with a copy of the same number of bytes.

use super::{Measurement, Timer, Trial, WorkRate, drawn, measure_all};
use crate::error::Error;
use ::runtime::testing::{Draw, Random};
use ::runtime::{Device, DeviceBuffer};
use kernel_dsl::half::f16;
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::rowwise::{CrossEntropy, GroupNorm, Norm, Softmax};
use kernels_rs::sampling::Sample;

/// Rows and columns: many rows, long rows, rows of a vocabulary, short rows, and one row.
const SHAPES: [[usize; 2]; 11] = [
    [4096, 4096],
    [32768, 4096],
    [2048, 32768],
    [1024, 65536],
    [512, 151_936],
    [64, 151_936],
    [1, 151_936],
    [8192, 1024],
    [65536, 256],
    [32768, 4095],
    [1, 4096],
];

/// Target duration of one measurement, long enough to hide launch overhead and clock resolution,
/// and the maximum number of launches.
const LONG_NS: f64 = 2e6;
const MAX_REPEATS: f64 = 50.0;
/// Estimated memory bandwidth of the device.
const BYTES_PER_NS: f64 = 4e3;

/// Memory of matrices of one shape.
struct RowBuffers<T: Float> {
    shape: [usize; 2],
    x: DeviceBuffer<T>,
    y: DeviceBuffer<T>,
    column: DeviceBuffer<T>,
}

impl<T: Draw + Float + GenericArgument> RowBuffers<T> {
    fn new(device: &Device, shape: [usize; 2]) -> Result<RowBuffers<T>, Error> {
        let mut random = Random::new(1);
        let [rows, cols] = shape;
        let y = device.zeros(rows * cols).map_err(Error::Device)?;
        let (x, column) = (drawn(device, &mut random, rows * cols)?, drawn(device, &mut random, cols)?);
        Ok(RowBuffers { shape, x, y, column })
    }

    /// Returns the size of a matrix in bytes.
    fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * size_of::<T>()
    }

    fn times(&self) -> u32 {
        (LONG_NS / (2.0 * self.bytes() as f64 / BYTES_PER_NS)).clamp(3.0, MAX_REPEATS) as u32
    }

    /// Measures `work`, whose traffic is `matrices` matrices, compared with a copy that reads half
    /// of those bytes and writes half.
    fn compare_with_copy(
        &mut self,
        timer: &Timer,
        kernel: &'static str,
        matrices: usize,
        rounds: usize,
        mut work: impl FnMut(&DeviceBuffer<T>, &mut DeviceBuffer<T>, &DeviceBuffer<T>) -> ::runtime::Result<()>,
    ) -> Result<Vec<Measurement>, Error> {
        let (times, bytes, [rows, cols]) = (self.times(), matrices * self.bytes(), self.shape);
        let stream = timer.stream();
        let zeros = |n| stream.device().zeros::<u8>(n).map_err(Error::Device);
        let (source, mut target) = (zeros(bytes / 2)?, zeros(bytes / 2)?);
        let (x, y, column) = (&self.x, &mut self.y, &self.column);
        let trial = Trial {
            kernel,
            shape: format!("{rows}x{cols}, {}", T::SCALAR),
            rate: Some(WorkRate::Bytes(bytes as f64)),
            contenders: vec![
                timer.timed("ours", times, move || work(x, y, column)),
                timer.timed("copy", times, || stream.copy(&source, &mut target)),
            ],
            after: Box::new(|| ()),
        };
        measure_all(vec![trial], rounds)
    }
}

/// Measures softmax and log-softmax.
pub(super) fn softmax(timer: &Timer, rounds: usize) -> Result<Vec<Measurement>, Error> {
    let mut measured = Vec::new();
    for shape in SHAPES {
        softmax_of::<f32>(timer, shape, rounds, &mut measured)?;
    }
    softmax_of::<f16>(timer, [32768, 4096], rounds, &mut measured)?;
    Ok(measured)
}

fn softmax_of<T: Draw + Float + GenericArgument>(
    timer: &Timer,
    shape: [usize; 2],
    rounds: usize,
    measured: &mut Vec<Measurement>,
) -> Result<(), Error> {
    let mut memory = RowBuffers::<T>::new(timer.stream().device(), shape)?;
    let stream = timer.stream();
    let mut one = |kernel, softmax: Softmax<'_>| {
        let work = |x: &DeviceBuffer<T>, y: &mut DeviceBuffer<T>, _: &DeviceBuffer<T>| {
            softmax.run(stream, &x.view(shape)?, &mut y.view_mut(shape)?)
        };
        memory.compare_with_copy(timer, kernel, 2, rounds, work)
    };
    measured.extend(one("softmax", Softmax::new())?);
    measured.extend(one("log-softmax", Softmax::new().log())?);
    measured.extend(one("softmax, scaled, causal", Softmax::new().scale(0.125).causal(shape[0].min(shape[1])))?);
    Ok(())
}

/// Tokens and vocabulary size, of a training step and of decoding steps.
const LOGITS: [[usize; 2]; 2] = [[2048, 32_000], [512, 151_936]];
const DECODED: [[usize; 2]; 2] = [[1, 151_936], [64, 151_936]];

/// Measures cross-entropy and its gradient.
pub(super) fn loss(timer: &Timer, rounds: usize) -> Result<Vec<Measurement>, Error> {
    let device = timer.stream().device();
    let mut measured = Vec::new();
    for shape @ [rows, cols] in LOGITS {
        let mut memory = RowBuffers::<f32>::new(device, shape)?;
        let stream = timer.stream();
        let labels: Vec<u32> = (0..rows).map(|row| (row * 7919 % cols) as u32).collect();
        let labels = device.upload(&labels).map_err(Error::Device)?;
        let zeros = || device.zeros::<f32>(rows).map_err(Error::Device);
        let (mut losses, mut log_sums, ones) = (zeros()?, zeros()?, zeros()?);
        measured.extend(memory.compare_with_copy(timer, "cross-entropy", 1, rounds, |x, _, _| {
            let (labels, mut losses) = (labels.view([rows])?, losses.view_mut([rows])?);
            CrossEntropy::new().run(stream, &x.view(shape)?, &labels, &mut losses, &mut log_sums.view_mut([rows])?)
        })?);
        measured.extend(memory.compare_with_copy(timer, "cross-entropy backward", 2, rounds, |x, y, _| {
            let (labels, sums, ones) = (labels.view([rows])?, log_sums.view([rows])?, ones.view([rows])?);
            CrossEntropy::new().backward(stream, &x.view(shape)?, &labels, &sums, &ones, &mut y.view_mut(shape)?)
        })?);
    }
    Ok(measured)
}

/// Measures drawing a token per row: from all tokens, from the top k, and from those within a total
/// probability. The rate counts one read of the logits.
pub(super) fn sampling(timer: &Timer, rounds: usize) -> Result<Vec<Measurement>, Error> {
    let device = timer.stream().device();
    let mut measured = Vec::new();
    for shape @ [rows, _] in DECODED {
        let mut memory = RowBuffers::<f32>::new(device, shape)?;
        let (stream, mut tokens) = (timer.stream(), device.zeros::<u32>(rows).map_err(Error::Device)?);
        let mut one = |kernel, sample: Sample| {
            memory.compare_with_copy(timer, kernel, 1, rounds, |x, _, _| {
                sample.run(stream, &x.view(shape)?, &mut tokens.view_mut([rows])?)
            })
        };
        measured.extend(one("the likeliest token", Sample::new(1).temperature(0.0))?);
        measured.extend(one("a token of all", Sample::new(1))?);
        measured.extend(one("a token of the top 50", Sample::new(1).top_k(50))?);
        measured.extend(one("a token of the top 1024, p 0.9", Sample::new(1).top_k(1024).top_p(0.9))?);
        measured.extend(one("a token of p 0.9", Sample::new(1).top_p(0.9))?);
    }
    Ok(measured)
}

/// Samples, groups, channels and elements per channel of the stages of a U-Net.
const GROUPED: [[usize; 4]; 3] = [[8, 32, 320, 64 * 64], [8, 32, 1280, 16 * 16], [64, 8, 64, 32 * 32]];

/// Measures group norm and its gradient with respect to x.
fn groups(timer: &Timer, rounds: usize) -> Result<Vec<Measurement>, Error> {
    let mut measured = Vec::new();
    for [samples, groups, channels, spatial] in GROUPED {
        let (stream, shape) = (timer.stream(), [samples, channels, spatial]);
        let mut memory = RowBuffers::<f32>::new(stream.device(), [samples * groups, channels / groups * spatial])?;
        let zeros = |n| stream.device().zeros::<f32>(n).map_err(Error::Device);
        let (mut saved, of_saved) = (zeros(samples * groups * 2)?, [samples, groups, 2]);
        let mut dx = zeros(samples * channels * spatial)?;
        measured.extend(memory.compare_with_copy(timer, "group norm", 2, rounds, |x, y, w| {
            let w = w.view_strided([channels], [1])?;
            let norm = GroupNorm::new(groups, 1e-5).weight(&w).bias(&w);
            let mut saved = saved.view_mut(of_saved)?;
            norm.run(stream, &x.view(shape)?, &mut y.view_mut(shape)?, Some(&mut saved))
        })?);
        measured.extend(memory.compare_with_copy(timer, "group norm backward", 3, rounds, |x, dy, w| {
            let (w, saved, mut dx) = (w.view_strided([channels], [1])?, saved.view(of_saved)?, dx.view_mut(shape)?);
            let norm = GroupNorm::new(groups, 1e-5).weight(&w);
            norm.backward(stream, &x.view(shape)?, &saved, &dy.view(shape)?, &mut dx)
        })?);
    }
    Ok(measured)
}

/// Measures layer norm and RMS norm, each alone and with the residual added, and group norm.
pub(super) fn norm(timer: &Timer, rounds: usize) -> Result<Vec<Measurement>, Error> {
    let mut measured = Vec::new();
    for shape in SHAPES {
        norm_of::<f32>(timer, shape, rounds, &mut measured)?;
    }
    norm_of::<f16>(timer, [32768, 4096], rounds, &mut measured)?;
    measured.extend(groups(timer, rounds)?);
    Ok(measured)
}

fn norm_of<T: Draw + Float + GenericArgument>(
    timer: &Timer,
    shape: [usize; 2],
    rounds: usize,
    measured: &mut Vec<Measurement>,
) -> Result<(), Error> {
    const EPSILON: f32 = 1e-5;
    let mut memory = RowBuffers::<T>::new(timer.stream().device(), shape)?;
    let (stream, elements) = (timer.stream(), shape.iter().product());
    let residual: DeviceBuffer<T> = drawn(stream.device(), &mut Random::new(2), elements)?;
    let mut z = stream.device().zeros::<T>(elements).map_err(Error::Device)?;
    measured.extend(memory.compare_with_copy(timer, "rms norm", 2, rounds, |x, y, w| {
        Norm::rms(EPSILON).weight(&w.view([shape[1]])?).run(stream, &x.view(shape)?, &mut y.view_mut(shape)?)
    })?);
    measured.extend(memory.compare_with_copy(timer, "layer norm", 2, rounds, |x, y, w| {
        let w = w.view([shape[1]])?;
        Norm::layer(EPSILON).weight(&w).bias(&w).run(stream, &x.view(shape)?, &mut y.view_mut(shape)?)
    })?);
    measured.extend(memory.compare_with_copy(timer, "rms norm of a sum", 4, rounds, |x, y, w| {
        let (w, residual, mut z) = (w.view([shape[1]])?, residual.view(shape)?, z.view_mut(shape)?);
        let added = Some((&residual, &mut z));
        Norm::rms(EPSILON).weight(&w).run_added(stream, &x.view(shape)?, added, &mut y.view_mut(shape)?, None)
    })?);
    Ok(())
}
