//! Tests of error messages of the library's calls.
//!
//! A message names the arguments of the call and the caller's values. The message mentions no
//! kernel, no parameter of a kernel, and no grid.

use kernels_rs::activation::{silu, swiglu};
use kernels_rs::attention::{Append, Attention, Decode, KvCache, KvCacheMut, Qkv, Scratch};
use kernels_rs::elementwise::{gate, map, map2};
use kernels_rs::gemm::Gemm;
use kernels_rs::histogram::histogram;
use kernels_rs::optimizer::AdamW;
use kernels_rs::permute::{copy, gather, transpose_batch};
use kernels_rs::quant::{Affine, Igemm, Quantized, Weights};
use kernels_rs::reduce::{self, Sum};
use kernels_rs::rotary::{PairLayout, Rotary};
use kernels_rs::rowwise::{CrossEntropy, GroupNorm, Norm, Softmax};
use kernels_rs::sampling::Sample;
use kernels_rs::scan;
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error};

/// Number of elements of each buffer, enough for any operand.
const BUFFER_ELEMENTS: usize = 4096;

/// Words of messages about launches, which no message of a call contains.
const WORDS_OF_KERNELS: [&str; 10] =
    ["cannot launch", "requires `", "grid", "inverse", "::<", "<f32", "@", "parts", "splits", "slab"];

/// A device, with buffers of each type for the operands' views.
struct Bench {
    device: Device,
    floats: DeviceBuffer<f32>,
    bytes: DeviceBuffer<i8>,
    words: DeviceBuffer<u32>,
    integers: DeviceBuffer<i32>,
}

impl Bench {
    fn new() -> Result<Bench, Error> {
        Bench::on(Device::cpu())
    }

    fn on(device: Device) -> Result<Bench, Error> {
        Ok(Bench {
            floats: device.zeros(BUFFER_ELEMENTS)?,
            bytes: device.zeros(BUFFER_ELEMENTS)?,
            words: device.zeros(BUFFER_ELEMENTS)?,
            integers: device.zeros(BUFFER_ELEMENTS)?,
            device,
        })
    }

    fn f<const R: usize>(&self, extents: [usize; R]) -> BufferView<'_, f32, R> {
        first(&self.floats, extents)
    }

    fn b<const R: usize>(&self, extents: [usize; R]) -> BufferView<'_, i8, R> {
        first(&self.bytes, extents)
    }

    fn w<const R: usize>(&self, extents: [usize; R]) -> BufferView<'_, u32, R> {
        first(&self.words, extents)
    }

    fn i<const R: usize>(&self, extents: [usize; R]) -> BufferView<'_, i32, R> {
        first(&self.integers, extents)
    }
}

fn first<T: kernel_dsl::Element, const R: usize>(of: &DeviceBuffer<T>, extents: [usize; R]) -> BufferView<'_, T, R> {
    of.view_strided(extents, packed(extents)).unwrap()
}

/// Returns a mutable view of the first elements.
fn out<T: kernel_dsl::Element, const R: usize>(
    of: &mut DeviceBuffer<T>,
    extents: [usize; R],
) -> BufferViewMut<'_, T, R> {
    of.view_strided_mut(extents, packed(extents)).unwrap()
}

fn packed<const R: usize>(extents: [usize; R]) -> [usize; R] {
    std::array::from_fn(|d| extents[d + 1..].iter().product())
}

/// Checks that a call is rejected, and that the message contains these words and no names of a
/// kernel.
#[track_caller]
fn refused<T>(result: Result<T, Error>, words: &[&str]) {
    let said = match result {
        Ok(_) => panic!("the call was accepted; expected an error with {words:?}"),
        Err(error) => error.to_string(),
    };
    for word in words {
        assert!(said.contains(word), "{said}\nhas not: {word}");
    }
    for word in WORDS_OF_KERNELS {
        assert!(!said.contains(word), "{said}\nhas: {word}");
    }
}

#[test]
fn cpu_sampling_errors_name_arguments() -> Result<(), Error> {
    sampling_errors_name_arguments(Device::cpu())
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_sampling_errors_name_arguments() -> Result<(), Error> {
    sampling_errors_name_arguments(Device::cuda(0)?)
}

fn sampling_errors_name_arguments(device: Device) -> Result<(), Error> {
    let b = Bench::on(device)?;
    let (d, mut tokens) = (&b.device, b.device.zeros::<u32>(BUFFER_ELEMENTS)?);
    let mut run = |sample: Sample, rows| sample.run(d, &b.f([2, 40]), &mut out(&mut tokens, [rows]));
    for sample in
        [Sample::new(1), Sample::new(1).top_k(3), Sample::new(1).top_p(0.5), Sample::new(1).top_k(39).top_p(0.5)]
    {
        refused(run(sample, 3), &["tokens: extents [3]", "[2]", "a token for each row of the logits"]);
        refused(run(sample.temperature(-1.0), 2), &["the temperature is -1"]);
        refused(run(sample.temperature(f32::NAN), 2), &["the temperature is NaN"]);
        refused(run(sample.temperature(f32::NEG_INFINITY), 2), &["the temperature is -inf"]);
        refused(run(sample.top_p(0.0), 2), &["top_p is 0"]);
        for temperature in [0.0, f32::from_bits(1), f32::MIN_POSITIVE, f32::MAX, f32::INFINITY] {
            run(sample.temperature(temperature), 2)?;
        }
    }
    Ok(())
}

#[test]
fn histogram_and_reduction_errors_name_arguments() -> Result<(), Error> {
    let b = Bench::new()?;
    let d = &b.device;
    let (mut words, mut floats) = (d.zeros::<u32>(BUFFER_ELEMENTS)?, d.zeros::<f32>(BUFFER_ELEMENTS)?);
    for (low, high) in [(f32::NAN, 1.0), (0.0, f32::NAN), (f32::NEG_INFINITY, 1.0), (0.0, f32::INFINITY), (1.0, 0.5)] {
        let range = std::ops::RangeInclusive::new(low, high);
        refused(histogram(d, &b.f([9]), range, &mut out(&mut words, [4])), &["the range is", "finite"]);
    }
    // A histogram of words ignores its range, so an empty range is accepted.
    histogram(d, &b.w([9]), 1.0..=0.0, &mut out(&mut words, [4]))?;
    refused(reduce::rows(d, Sum, &b.f([3, 4]), &mut out(&mut floats, [4])), &["y: extents [4]", "[3]"]);
    refused(reduce::columns(d, Sum, &b.f([2, 3, 4]), &mut out(&mut floats, [4])), &["y: extents [4]", "[8]"]);
    refused(scan::inclusive(d, &b.f([3, 4]), &mut out(&mut floats, [3, 5])), &["y: extents [3, 5]", "[3, 4]"]);
    refused(scan::exclusive(d, &b.f([3, 4]), &mut out(&mut floats, [4, 4])), &["y: extents [4, 4]", "[3, 4]"]);
    Ok(())
}

#[test]
fn optimizers_name_settings_and_arrays() -> Result<(), Error> {
    let b = Bench::new()?;
    let d = &b.device;
    let [mut w, mut m, mut v] =
        [d.zeros::<f32>(BUFFER_ELEMENTS)?, d.zeros(BUFFER_ELEMENTS)?, d.zeros(BUFFER_ELEMENTS)?];
    let mut step = |adamw: AdamW, step: u64, n: [usize; 3]| {
        let [w, m, v] = [(&mut w, n[0]), (&mut m, n[1]), (&mut v, n[2])].map(|(x, n)| out(x, [n]));
        let (mut w, mut m, mut v) = (w, m, v);
        adamw.step(d, step, &b.f([8]), &mut w, &mut m, &mut v)
    };
    let adamw = AdamW::new(1e-3);
    refused(step(adamw, 1, [7, 8, 8]), &["w: extents [7]", "[8]", "g"]);
    refused(step(adamw, 1, [8, 7, 8]), &["m: extents [7]", "[8]", "g"]);
    refused(step(adamw, 1, [8, 8, 9]), &["v: extents [9]", "[8]", "g"]);
    refused(step(adamw, 0, [8; 3]), &["step number is 0"]);
    refused(step(AdamW::new(f64::NAN), 1, [8; 3]), &["rate is NaN"]);
    refused(step(adamw.decay(-1.0), 1, [8; 3]), &["decay is -1"]);
    refused(step(adamw.epsilon(f64::INFINITY), 1, [8; 3]), &["epsilon is inf"]);
    refused(step(adamw.betas([1.0, 0.5]), 1, [8; 3]), &["first beta is 1"]);
    refused(step(adamw.betas([0.5, -0.1]), 1, [8; 3]), &["second beta is -0.1"]);
    step(adamw, u64::MAX, [8; 3])
}

#[test]
fn copy_errors_name_arguments() -> Result<(), Error> {
    let b = Bench::new()?;
    let (d, mut y) = (&b.device, b.device.zeros::<f32>(BUFFER_ELEMENTS)?);
    refused(gather(d, &b.f([5, 4]), &b.w([3]), &mut out(&mut y, [3, 5])), &["y: extents [3, 5]", "[3, 4]", "index"]);
    refused(gather(d, &b.f([5, 4]), &b.w([3]), &mut out(&mut y, [2, 4])), &["y: extents [2, 4]", "[3, 4]"]);
    refused(transpose_batch(d, &b.f([2, 5, 4]), &mut out(&mut y, [2, 5, 4])), &["y: extents [2, 5, 4]", "[2, 4, 5]"]);
    refused(Rotary::with_axes(d, PairLayout::Halves, &[1.0; 4], &[0; 3]), &["4 frequencies and 3 axes"]);
    refused(Rotary::new(d, PairLayout::Halves, &[1.0; 257]), &["257 frequencies", "256"]);
    let rotary = Rotary::with_axes(d, PairLayout::Halves, &[1.0; 4], &[0, 0, 1, 2])?;
    let mut run = |x: [usize; 3], positions: [usize; 2], to: [usize; 3]| {
        rotary.run(d, &b.f(x), &b.w(positions), &mut out(&mut y, to))
    };
    refused(run([3, 2, 8], [3, 3], [3, 2, 9]), &["y: extents [3, 2, 9]", "the extents of x"]);
    refused(run([3, 2, 8], [2, 3], [3, 2, 8]), &["positions: extents [2, 3]", "[3, 3]"]);
    refused(run([3, 2, 8], [3, 4], [3, 2, 8]), &["positions: extents [3, 4]", "[3, 3]"]);
    refused(run([3, 2, 7], [3, 3], [3, 2, 7]), &["heads of x have 7", "4 frequencies need at least 8"]);
    run([3, 2, 8], [3, 3], [3, 2, 8])?;
    refused(
        rotary.run_in_place(d, &b.w([3, 4]), &mut out(&mut y, [3, 2, 8])),
        &["positions: extents [3, 4]", "[3, 3]"],
    );
    Ok(())
}

#[test]
fn quantization_errors_name_arguments() -> Result<(), Error> {
    let b = Bench::new()?;
    let d = &b.device;
    let (mut q, mut y, mut c) =
        (d.zeros::<i8>(BUFFER_ELEMENTS)?, d.zeros::<f32>(BUFFER_ELEMENTS)?, d.zeros::<i32>(BUFFER_ELEMENTS)?);
    let rows = Affine::fit_rows(d, &b.f([3, 8]), false)?;
    refused(rows.quantize(d, &b.f([3, 8]), &mut out(&mut q, [3, 9])), &["q: extents [3, 9]", "[3, 8]"]);
    refused(rows.quantize(d, &b.f([4, 8]), &mut out(&mut q, [4, 8])), &["3 scales", "4 rows"]);
    refused(rows.dequantize(d, &b.b([3, 8]), &mut out(&mut y, [2, 8])), &["x: extents [2, 8]", "[3, 8]"]);
    refused(rows.dequantize(d, &b.b([5, 8]), &mut out(&mut y, [5, 8])), &["3 scales", "5 rows"]);

    refused(Weights::from_rows(d, &b.b([3, 32]), d.zeros(2)?), &["scales: extents [2]", "[3]"]);
    let int8 = Weights::from_rows(d, &b.b([3, 32]), d.zeros(3)?)?;
    refused(int8.dequantize(d, &mut out(&mut y, [3, 32])), &["Affine::dequantize"]);
    for weights in [int8, Weights::quantize_q8(d, &b.f([3, 32]))?, Weights::quantize_q4(d, &b.f([3, 32]))?] {
        refused(weights.dequantize(d, &mut out(&mut y, [3, 31])), &["to: extents [3, 31]", "[3, 32]"]);
        for m in [1, 20] {
            refused(weights.product(d, &b.f([m, 31]), &mut out(&mut y, [m, 3])), &["x: extents", "31]"]);
            refused(weights.product(d, &b.f([m, 32]), &mut out(&mut y, [m, 4])), &["y: extents", "4]"]);
            refused(weights.product(d, &b.f([m, 32]), &mut out(&mut y, [m + 1, 3])), &["y: extents"]);
        }
    }

    let of = |extents| Quantized::new(b.b(extents));
    let mut run = |igemm: Igemm, a, of_b, to: [usize; 3]| igemm.run(d, a, of_b, &mut out(&mut c, to));
    refused(run(Igemm::new(), of([1, 4, 8]), of([1, 8, 5]), [2, 4, 5]), &["A: extents [1, 4, 8]", "[2, 4, 8]"]);
    refused(run(Igemm::new(), of([1, 4, 8]), of([1, 7, 5]), [1, 4, 5]), &["B: extents [1, 7, 5]", "[1, 8, 5]"]);
    refused(
        run(Igemm::new().transpose_a(), of([1, 8, 3]), of([1, 8, 5]), [1, 4, 5]),
        &["A: extents [1, 8, 3]", "[1, 8, 4]"],
    );
    refused(
        run(Igemm::new().transpose_b(), of([1, 4, 8]), of([1, 8, 5]), [1, 4, 5]),
        &["B: extents [1, 8, 5]", "[1, 5, 8]"],
    );
    let a = of([1, 4, 8]);
    for n in [0, 3, 5] {
        refused(
            run(Igemm::new(), a.scale(b.f([n])), of([1, 8, 5]), [1, 4, 5]),
            &["the scales of A are", "row of op(A)"],
        );
        refused(run(Igemm::new(), a.zero(b.i([n])), of([1, 8, 5]), [1, 4, 5]), &["the zero points of A are"]);
    }
    refused(
        run(Igemm::new(), a, of([1, 8, 5]).zero(b.i([4])), [1, 4, 5]),
        &["the zero points of B are 4", "column of op(B)"],
    );
    for scale in [0.0, -1.0, 1e-40, f32::INFINITY, f32::NAN] {
        refused(run(Igemm::new().output(scale, 0), a, of([1, 8, 5]), [1, 4, 5]), &["the scale of the output is"]);
    }
    run(Igemm::new().output(f32::MIN_POSITIVE, 0), a, of([1, 8, 5]), [1, 4, 5])
}

#[test]
fn rowwise_errors_name_arguments() -> Result<(), Error> {
    let b = Bench::new()?;
    let d = &b.device;
    let (mut y, mut z) = (d.zeros::<f32>(BUFFER_ELEMENTS)?, d.zeros::<f32>(BUFFER_ELEMENTS)?);
    let mut q = d.zeros::<i8>(BUFFER_ELEMENTS)?;
    refused(Softmax::new().run(d, &b.f([3, 8]), &mut out(&mut y, [3, 9])), &["y: extents [3, 9]", "[3, 8]"]);
    refused(
        Softmax::new().backward(d, &b.f([3, 8]), &b.f([2, 8]), &mut out(&mut y, [3, 8])),
        &["dy: extents [2, 8]", "[3, 8]"],
    );
    refused(
        Softmax::new().backward(d, &b.f([3, 8]), &b.f([3, 8]), &mut out(&mut y, [3, 7])),
        &["dx: extents [3, 7]", "[3, 8]"],
    );

    let causal = Softmax::new().causal(9);
    refused(causal.run(d, &b.f([3, 8]), &mut out(&mut y, [3, 8])), &["causal for 9 queries", "8 columns"]);

    let loss = CrossEntropy::new();
    let mut run = |labels: usize, l: usize, s: usize| {
        loss.run(d, &b.f([3, 8]), &b.w([labels]), &mut out(&mut y, [l]), &mut out(&mut z, [s]))
    };
    refused(run(4, 3, 3), &["labels: extents [4]", "a number for each row of the logits"]);
    refused(run(3, 2, 3), &["loss: extents [2]"]);
    refused(run(3, 3, 2), &["log_sum: extents [2]"]);
    let mut back = |labels: usize, s: usize, g: usize, to: [usize; 2]| {
        loss.backward(d, &b.f([3, 8]), &b.w([labels]), &b.f([s]), &b.f([g]), &mut out(&mut y, to))
    };
    refused(back(4, 3, 3, [3, 8]), &["labels: extents [4]"]);
    refused(back(3, 4, 3, [3, 8]), &["log_sum: extents [4]"]);
    refused(back(3, 3, 4, [3, 8]), &["gradient: extents [4]"]);
    refused(back(3, 3, 3, [3, 9]), &["dx: extents [3, 9]", "the extents of the logits"]);

    let norm = Norm::layer(1e-5);
    refused(norm.run(d, &b.f([3, 8]), &mut out(&mut y, [3, 9])), &["y: extents [3, 9]"]);
    refused(norm.weight(&b.f([7])).run(d, &b.f([3, 8]), &mut out(&mut y, [3, 8])), &["weight: extents [7]", "[8]"]);
    refused(
        norm.quantize(d, &b.f([3, 8]), None, &mut out(&mut q, [4, 8]), &mut out(&mut y, [3])),
        &["q: extents [4, 8]"],
    );
    refused(
        norm.quantize(d, &b.f([3, 8]), None, &mut out(&mut q, [3, 8]), &mut out(&mut y, [4])),
        &["scales: extents [4]"],
    );
    let mut back = |saved: [usize; 2], dy: [usize; 2], dz: [usize; 2]| {
        norm.backward(d, &b.f([3, 8]), &b.f(saved), &b.f(dy), &mut out(&mut y, dz))
    };
    refused(back([3, 3], [3, 8], [3, 8]), &["saved: extents [3, 3]", "[3, 2]"]);
    refused(back([3, 2], [3, 7], [3, 8]), &["dy: extents [3, 7]", "the extents of z"]);
    refused(back([3, 2], [3, 8], [2, 8]), &["dz: extents [2, 8]", "the extents of z"]);
    let columns = norm.backward_columns(d, &b.f([3, 8]), &b.f([2, 2]), &b.f([3, 8]), None, None);
    refused(columns, &["saved: extents [2, 2]", "[3, 2]"]);
    for rows in [3, 20] {
        refused(
            norm.project(d, &b.f([rows, 8]), &b.f([5, 7]), None, &mut out(&mut y, [rows, 5])),
            &["w: extents [5, 7]", "[5, 8]"],
        );
        refused(norm.project(d, &b.f([rows, 8]), &b.f([5, 8]), None, &mut out(&mut y, [rows, 4])), &["y: extents"]);
    }

    let group = GroupNorm::new(2, 1e-5);
    refused(group.run(d, &b.f([3, 4, 5]), &mut out(&mut y, [3, 4, 4]), None), &["y: extents [3, 4, 4]", "[3, 4, 5]"]);
    let saved = b.f([3, 1, 2]);
    let back = group.backward(d, &b.f([3, 4, 5]), &saved, &b.f([3, 4, 5]), &mut out(&mut y, [3, 4, 5]));
    refused(back, &["saved: extents [3, 1, 2]", "[3, 2, 2]"]);
    let channels = group.backward_channels(d, &b.f([3, 4, 5]), &saved, &b.f([3, 4, 5]), None, None);
    refused(channels, &["saved: extents [3, 1, 2]", "[3, 2, 2]"]);
    Ok(())
}

#[test]
fn product_errors_name_arguments() -> Result<(), Error> {
    let b = Bench::new()?;
    let (d, mut c) = (&b.device, b.device.zeros::<f32>(BUFFER_ELEMENTS)?);
    let mut run = |gemm: Gemm, a: [usize; 3], of_b: [usize; 3], to: [usize; 3]| {
        gemm.run(d, &b.f(a), &b.f(of_b), &mut out(&mut c, to))
    };
    // Products for each of the kernels: few rows, few columns, many of both.
    for [m, n] in [[1, 9], [9, 1], [17, 19]] {
        refused(run(Gemm::new(), [1, m, 8], [1, 8, n], [2, m, n]), &["a: extents [1,", "expected [2,"]);
        refused(run(Gemm::new(), [1, m, 8], [1, 7, n], [1, m, n]), &["b: extents [1, 7,", "expected [1, 8,"]);
        refused(run(Gemm::new().transpose_a(), [1, 8, m + 1], [1, 8, n], [1, m, n]), &["a: extents [1, 8,"]);
        refused(run(Gemm::new().transpose_b(), [1, m, 8], [1, n + 1, 8], [1, m, n]), &["b: extents [1,"]);
    }
    Ok(())
}

#[test]
fn step_errors_name_arguments() -> Result<(), Error> {
    let b = Bench::new()?;
    let d = &b.device;
    let (mut o, mut k, mut v) =
        (d.zeros::<f32>(BUFFER_ELEMENTS)?, d.zeros::<f32>(BUFFER_ELEMENTS)?, d.zeros::<f32>(BUFFER_ELEMENTS)?);
    let mut scratch = Scratch::with_splits(d, [2, 4, 8], 1)?;
    let mut run = |q: [usize; 3], keys: [usize; 4], values: [usize; 4], lengths: usize, to: [usize; 3]| {
        let cache = KvCache::new(b.f(keys), b.f(values));
        Decode::new().run(d, &b.f(q), cache, &b.w([lengths]), &mut out(&mut o, to), &mut scratch)
    };
    let (q, cache) = ([2, 4, 8], [2, 2, 5, 8]);
    run(q, cache, cache, 2, q)?;
    refused(run(q, [2, 2, 5, 9], cache, 2, q), &["keys of the cache: extents [2, 2, 5, 9]", "[2, 2, 5, 8]"]);
    refused(run(q, cache, [2, 2, 6, 8], 2, q), &["values of the cache: extents [2, 2, 6, 8]"]);
    refused(run(q, cache, cache, 3, q), &["lengths: extents [3]", "[2]"]);
    refused(run(q, cache, cache, 2, [2, 4, 7]), &["o: extents [2, 4, 7]", "the extents of q"]);
    refused(run([2, 4, 6], [2, 2, 5, 6], [2, 2, 5, 6], 2, [2, 4, 6]), &["heads of q have 6 elements"]);
    refused(run(q, [2, 3, 5, 8], [2, 3, 5, 8], 2, q), &["q has 4 heads", "the 3 key heads"]);
    refused(
        run([2, 6, 8], cache, cache, 2, [2, 6, 8]),
        &["q has extents [2, 6, 8]", "the scratch memory is for at most [2, 4, 8]"],
    );

    let mut run = |q: [usize; 4], keys: [usize; 4], values: [usize; 4], to: [usize; 4]| {
        let cache = KvCache::new(b.f(keys), b.f(values));
        Attention::new().run_cached(d, &b.f(q), cache, &mut out(&mut o, to), None)
    };
    let many = [2, 4, 3, 8];
    run(many, cache, cache, many)?;
    refused(run(many, [2, 2, 5, 9], cache, many), &["keys of the cache: extents [2, 2, 5, 9]", "[2, 2, 5, 8]"]);
    refused(run(many, cache, [2, 2, 6, 8], many), &["values of the cache: extents [2, 2, 6, 8]"]);
    refused(run(many, cache, cache, [2, 4, 3, 7]), &["o: extents [2, 4, 3, 7]"]);
    refused(run([2, 4, 3, 6], [2, 2, 5, 6], [2, 2, 5, 6], [2, 4, 3, 6]), &["heads of q have 6 elements"]);
    refused(run(many, [2, 3, 5, 8], [2, 3, 5, 8], many), &["q has 4 heads", "the 3 key heads"]);
    refused(run([3, 4, 3, 8], cache, cache, [3, 4, 3, 8]), &["the cache has 2 planes", "it needs a plane for each"]);
    let odd = d.zeros::<f32>(2 * 4 * 3 * 8 + 1)?;
    let odd = odd.view_strided([2, 4, 3, 8], [97, 24, 8, 1])?;
    let whole = KvCache::new(b.f(cache), b.f(cache));
    let to = &mut out(&mut o, many);
    refused(Attention::new().run_cached(d, &odd, whole, to, None), &["do not begin at multiples of 4 elements"]);

    let mut run = |tokens: usize| {
        let cache = KvCache::new(b.f(cache), b.f(cache));
        let step = Decode::new().tokens(tokens);
        step.run(d, &b.f(q), cache, &b.w([2]), &mut out(&mut o, q), &mut scratch)
    };
    for tokens in [0, 3, 17] {
        let rows = format!("q has 2 rows for {tokens} tokens a sequence");
        refused(run(tokens), &[rows.as_str(), "expected a multiple of 1 to 16 tokens"]);
    }
    refused(run(2), &["the cache has 2 planes", "it needs a plane for each sequence"]);

    let frequencies = b.f([4]);
    let append = Append::new(PairLayout::Halves, &frequencies);
    let mut run = |rotated: [usize; 3], new: [[usize; 3]; 2], cache: [[usize; 4]; 2], lengths: usize| {
        let new = new.map(|extents| b.f(extents));
        let cache = KvCacheMut::new(out(&mut k, cache[0]), out(&mut v, cache[1]));
        append.run(d, &b.f(q), &mut out(&mut o, rotated), [&new[0], &new[1]], cache, &b.w([lengths]))
    };
    let new = [2, 2, 8];
    run(q, [new; 2], [cache; 2], 2)?;
    refused(run([2, 4, 7], [new; 2], [cache; 2], 2), &["rotated: extents [2, 4, 7]"]);
    refused(run(q, [[2, 3, 8], new], [cache; 2], 2), &["the new keys: extents [2, 3, 8]"]);
    refused(run(q, [new, [1, 2, 8]], [cache; 2], 2), &["the new values: extents [1, 2, 8]"]);
    refused(run(q, [new; 2], [cache, [2, 2, 4, 8]], 2), &["values of the cache: extents [2, 2, 4, 8]"]);
    refused(run(q, [new; 2], [[2, 2, 5, 9], cache], 2), &["keys of the cache: extents [2, 2, 5, 9]"]);
    refused(run(q, [new; 2], [cache; 2], 1), &["lengths: extents [1]"]);
    Ok(())
}

/// Returns the left and the right halves of the columns of a matrix of [rows, 2·cols]. The halves
/// have no element in common, but their bytes overlap.
fn halves(of: &mut DeviceBuffer<f32>, rows: usize, cols: usize) -> [BufferViewMut<'_, f32, 2>; 2] {
    let columns = of.strided_mut(0, [2 * cols, rows], [1, 2 * cols]).unwrap();
    let (left, right) = columns.split_at(cols).unwrap();
    [left, right].map(|half| half.permuted([1, 0]).unwrap().side_by_side().unwrap())
}

/// A call on two overlapping matrices.
type OfHalves<'a> = dyn Fn(BufferView<'_, f32, 2>, BufferViewMut<'_, f32, 2>) -> Result<(), Error> + 'a;

/// Checks that overlapping views are rejected by the names of the call's arguments.
#[test]
fn overlaps_name_arguments() -> Result<(), Error> {
    let b = Bench::new()?;
    let (d, mut buffer) = (&b.device, b.device.zeros::<f32>(BUFFER_ELEMENTS)?);
    let mut run = |names: [&str; 2], call: &OfHalves<'_>| {
        let [x, y] = halves(&mut buffer, 4, 8);
        let words = format!("arguments `{}` and `{}` overlap, and the kernel writes", names[0], names[1]);
        refused(call(x.shared(), y), &[&words]);
    };
    run(["a", "y"], &|x, y| map(d, silu {}, x.strided(), y.strided()));
    run(["a", "y"], &|x, y| map2(d, swiglu {}, x.strided(), x.strided(), y.strided()));
    run(["x", "y"], &|x, y| {
        gate(d, swiglu {}, x.strided(), y.strided().permuted([1, 0])?.slice(0..4)?.permuted([1, 0])?)
    });
    run(["x", "y"], &|x, y| copy(d, x.strided(), y.strided()));
    run(["table", "y"], &|x, mut y| gather(d, &x, &b.w([4]), &mut y));
    run(["x", "y"], &|x, mut y| scan::inclusive(d, &x, &mut y));
    run(["x", "y"], &|x, mut y| Softmax::new().run(d, &x, &mut y));
    run(["y", "dx"], &|x, mut y| Softmax::new().backward(d, &x, &b.f([4, 8]), &mut y));
    run(["x", "y"], &|x, mut y| Norm::layer(1e-5).run(d, &x, &mut y));
    run(["z", "dz"], &|x, mut y| Norm::layer(1e-5).backward(d, &x, &b.f([4, 2]), &b.f([4, 8]), &mut y));
    run(["x", "y"], &|x, mut y| Norm::rms(1e-5).project(d, &x, &b.f([8, 8]), None, &mut y));
    Ok(())
}

/// Checks that the error names these arguments, all of which belong to another device, and no
/// other.
#[track_caller]
fn foreign(result: Result<(), Error>, names: &[&str]) {
    let said = result.unwrap_err().to_string();
    let words = ": its memory belongs to another device";
    let named: Vec<_> = said.lines().filter_map(|line| Some(line.trim().split_once(words)?.0)).collect();
    let wanted: Vec<_> = names.iter().map(|name| format!("argument `{name}`")).collect();
    assert_eq!(named, wanted, "{said}");
    for word in WORDS_OF_KERNELS {
        assert!(!said.contains(word), "{said}\nhas: {word}");
    }
}

/// Checks that memory of another device is rejected by the names of the call's arguments.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_memory_of_another_device_is_named() -> Result<(), Error> {
    let (b, d) = (Bench::new()?, &Device::cuda(0)?);
    let [mut y, mut z, mut u] =
        [b.device.zeros::<f32>(BUFFER_ELEMENTS)?, b.device.zeros(BUFFER_ELEMENTS)?, b.device.zeros(BUFFER_ELEMENTS)?];
    let (mut words, mut bytes) = (b.device.zeros::<u32>(BUFFER_ELEMENTS)?, b.device.zeros::<i8>(BUFFER_ELEMENTS)?);
    let mut integers = b.device.zeros::<i32>(BUFFER_ELEMENTS)?;
    let (m, weight) = (b.f([3, 8]), b.f([8]));

    foreign(map(d, silu {}, m.strided(), out(&mut y, [3, 8]).strided()), &["a", "y"]);
    foreign(map2(d, swiglu {}, m.strided(), m.strided(), out(&mut y, [3, 8]).strided()), &["a", "b", "y"]);
    foreign(gate(d, swiglu {}, m.strided(), out(&mut y, [3, 4]).strided()), &["x", "y"]);
    foreign(copy(d, m.strided(), out(&mut y, [3, 8]).strided()), &["x", "y"]);
    foreign(transpose_batch(d, &b.f([2, 3, 8]), &mut out(&mut y, [2, 8, 3])), &["x", "y"]);
    foreign(gather(d, &b.f([5, 4]), &b.w([3]), &mut out(&mut y, [3, 4])), &["table", "index", "y"]);
    foreign(scan::inclusive(d, &m, &mut out(&mut y, [3, 8])), &["x", "y"]);
    foreign(reduce::rows(d, Sum, &m, &mut out(&mut y, [3])), &["x", "y"]);
    foreign(reduce::columns(d, Sum, &b.f([2, 3, 4]), &mut out(&mut y, [8])), &["x"]);
    foreign(reduce::all(d, Sum, &m, &mut out(&mut y, [1])), &["x", "y"]);
    foreign(histogram(d, &weight, 0.0..=1.0, &mut out(&mut words, [4])), &["keys", "bins"]);
    foreign(Sample::new(1).run(d, &m, &mut out(&mut words, [3])), &["logits"]);
    foreign(Sample::new(1).top_k(3).run(d, &m, &mut out(&mut words, [3])), &["logits"]);
    foreign(Sample::new(1).top_p(0.5).run(d, &m, &mut out(&mut words, [3])), &["logits"]);

    foreign(Softmax::new().run(d, &m, &mut out(&mut y, [3, 8])), &["x", "y"]);
    foreign(Softmax::new().backward(d, &m, &m, &mut out(&mut y, [3, 8])), &["y", "dy", "dx"]);
    let loss = CrossEntropy::new();
    foreign(
        loss.run(d, &m, &b.w([3]), &mut out(&mut y, [3]), &mut out(&mut z, [3])),
        &["logits", "labels", "loss", "log_sum"],
    );
    foreign(
        loss.backward(d, &m, &b.w([3]), &b.f([3]), &b.f([3]), &mut out(&mut y, [3, 8])),
        &["logits", "labels", "log_sum", "gradient", "dx"],
    );
    let norm = Norm::layer(1e-5).weight(&weight).bias(&weight);
    foreign(norm.run(d, &m, &mut out(&mut y, [3, 8])), &["x", "weight", "bias", "y"]);
    foreign(
        norm.quantize(d, &m, None, &mut out(&mut bytes, [3, 8]), &mut out(&mut y, [3])),
        &["x", "weight", "bias", "q", "scales"],
    );
    foreign(norm.backward(d, &m, &b.f([3, 2]), &m, &mut out(&mut y, [3, 8])), &["z", "saved", "weight", "dy", "dz"]);
    // For many rows, the norm is a separate launch.
    for (rows, names) in [(3, &["x", "weight", "bias", "w", "y"][..]), (20, &["x", "weight", "bias"])] {
        let mut y = out(&mut y, [rows, 5]);
        foreign(norm.project(d, &b.f([rows, 8]), &b.f([5, 8]), None, &mut y), names);
    }
    let group = GroupNorm::new(2, 1e-5);
    foreign(group.run(d, &b.f([3, 4, 5]), &mut out(&mut y, [3, 4, 5]), None), &["x", "y"]);
    foreign(
        group.backward(d, &b.f([3, 4, 5]), &b.f([3, 2, 2]), &b.f([3, 4, 5]), &mut out(&mut y, [3, 4, 5])),
        &["x", "saved", "dy", "dx"],
    );

    for [rows, cols] in [[1, 9], [9, 1], [17, 19]] {
        let mut c = out(&mut y, [1, rows, cols]);
        foreign(Gemm::new().run(d, &b.f([1, rows, 8]), &b.f([1, 8, cols]), &mut c), &["a", "b", "c"]);
    }
    let (of_a, of_b) = (Quantized::new(b.b([1, 4, 8])), Quantized::new(b.b([1, 8, 5])));
    foreign(Igemm::new().run(d, of_a, of_b, &mut out(&mut integers, [1, 4, 5])), &["a", "b", "c"]);
    let rows = Affine::fit_rows(d, &d.zeros::<f32>(24)?.view([3, 8])?, false)?;
    foreign(rows.quantize(d, &m, &mut out(&mut bytes, [3, 8])), &["x", "q"]);
    foreign(rows.dequantize(d, &b.b([3, 8]), &mut out(&mut y, [3, 8])), &["q", "x"]);
    let of_weights = d.zeros::<f32>(96)?;
    for weights in
        [Weights::quantize_q8(d, &of_weights.view([3, 32])?)?, Weights::quantize_q4(d, &of_weights.view([3, 32])?)?]
    {
        foreign(weights.dequantize(d, &mut out(&mut y, [3, 32])), &["to"]);
        // For many rows, x is quantized by a separate launch.
        for (rows, names) in [(1, &["x", "y"][..]), (20, &["x"])] {
            foreign(weights.product(d, &b.f([rows, 32]), &mut out(&mut y, [rows, 3])), names);
        }
    }

    let rotary = Rotary::new(d, PairLayout::Halves, &[1.0; 4])?;
    foreign(rotary.run(d, &b.f([3, 2, 8]), &b.w([1, 3]), &mut out(&mut y, [3, 2, 8])), &["x", "positions", "y"]);
    foreign(rotary.run_in_place(d, &b.w([1, 3]), &mut out(&mut y, [3, 2, 8])), &["positions", "x"]);
    let [mut a, mut c, mut e] = [out(&mut y, [8]), out(&mut z, [8]), out(&mut u, [8])];
    foreign(AdamW::new(1e-3).step(d, 1, &weight, &mut a, &mut c, &mut e), &["g", "w", "m", "v"]);

    let (q, planes) = (b.f([2, 4, 8]), [2, 2, 5, 8]);
    let mut scratch = Scratch::with_splits(d, [2, 4, 8], 1)?;
    let cache = KvCache::new(b.f(planes), b.f(planes));
    foreign(
        Decode::new().run(d, &q, cache, &b.w([2]), &mut out(&mut y, [2, 4, 8]), &mut scratch),
        &["q", "keys", "values", "lengths", "o"],
    );
    let many = b.f([2, 4, 3, 8]);
    foreign(
        Attention::new().run_cached(d, &many, cache, &mut out(&mut y, [2, 4, 3, 8]), None),
        &["q", "keys", "values", "o"],
    );
    let (q, k) = (b.f([1, 2, 4, 8]), b.f([1, 2, 4, 8]));
    let mut kept = b.device.zeros::<f32>(BUFFER_ELEMENTS)?;
    let mut v = b.device.zeros::<f32>(BUFFER_ELEMENTS)?;
    let cache = KvCacheMut::new(out(&mut kept, planes), out(&mut v, planes));
    let frequencies = b.f([4]);
    let append = Append::new(PairLayout::Halves, &frequencies);
    let new = b.f([2, 2, 8]);
    foreign(
        append.run(d, &b.f([2, 4, 8]), &mut out(&mut y, [2, 4, 8]), [&new, &new], cache, &b.w([2])),
        &["q", "rotated", "new[0]", "new[1]", "keys", "values", "lengths", "frequencies"],
    );
    foreign(Attention::new().run(d, Qkv { q, k, v: k }, &mut out(&mut y, [1, 2, 4, 8]), None), &["q", "k", "v", "o"]);

    // Only the results belong to another device, so that the last of several launches is refused.
    let zeros = d.zeros::<f32>(BUFFER_ELEMENTS)?;
    let mine = |rows, cols| zeros.view_strided([rows, cols], [cols, 1]);
    let m = mine(3, 8)?;
    foreign(reduce::rows(d, Sum, &mine(1, 4096)?, &mut out(&mut y, [1])), &["y"]);
    foreign(reduce::columns(d, Sum, &zeros.view_strided([1, 4096, 1], [4096, 1, 1])?, &mut out(&mut y, [1])), &["y"]);
    foreign(reduce::all(d, Sum, &m, &mut out(&mut y, [1])), &["y"]);
    foreign(Sample::new(1).run(d, &m, &mut out(&mut words, [3])), &["tokens"]);
    foreign(Norm::layer(1e-5).project(d, &mine(20, 8)?, &mine(5, 8)?, None, &mut out(&mut y, [20, 5])), &["y"]);
    for weights in [Weights::quantize_q8(d, &mine(3, 32)?)?, Weights::quantize_q4(d, &mine(3, 32)?)?] {
        for rows in [1, 20] {
            foreign(weights.product(d, &mine(rows, 32)?, &mut out(&mut y, [rows, 3])), &["y"]);
        }
    }
    let mut mine_too = d.zeros::<f32>(BUFFER_ELEMENTS)?;
    foreign(gather(d, &m, &b.w([3]), &mut out(&mut mine_too, [3, 8])), &["index"]);
    Ok(())
}
