//! Benchmarks of integer products, compared with cuBLAS in `f32` and with the peak rate of `dp4a`.
//! Products with weights in every format are compared with a copy.

use super::cublas::{Cublas, Product};
use super::{Contender, Measurement, Timer, Trial, WorkRate, copy_of, drawn, measure_all};
use crate::bench::typical::{BYTES_PER_NS, COLD_BYTES, DP4A_OPERATIONS_PER_NS, LONG_NS};
use crate::error::Error;
use ::runtime::testing::Random;
use ::runtime::{Device, DeviceBuffer};
use kernel_dsl::GenericArgument;
use kernels_rs::gemm::epilogue::Identity;
use kernels_rs::quant::igemm::Output;
use kernels_rs::quant::peak::dp4a_peak;
use kernels_rs::quant::plan::{QuantPlan, QuantTile};
use kernels_rs::quant::{Activations, Format, Igemm, Quantized, Weights};
use std::cell::RefCell;

/// M, N, K, and whether B is stored as [N, K].
const PRODUCTS: [([usize; 3], bool); 6] = [
    ([4096, 4096, 4096], true),
    ([4096, 4096, 4096], false),
    ([2048, 2048, 2048], true),
    ([1024, 1024, 1024], true),
    ([1001, 1001, 1001], true),
    ([512, 6144, 2048], true),
];

/// N, K of matrices of weights.
const MATRICES: [[usize; 2]; 4] = [[8192, 8192], [6144, 2048], [4096, 4096], [2048, 6144]];

/// Rows of activations.
const ROWS: [usize; 18] = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 512, 4096];

/// Measures products of bytes, and products with weights in every format; with `names`, products
/// with weights in these formats alone.
pub(super) fn measure(names: &[String], rounds: usize) -> Result<Vec<Measurement>, Error> {
    let formats = named(names)?;
    let device = Device::cuda(0).map_err(Error::Device)?;
    let timer = Timer::new(&device)?;
    let cublas = Cublas::open(timer.stream())?;
    let drawn = Drawn::new(&device)?;
    let on = MeasureContext { timer: &timer, cublas: cublas.as_ref(), drawn: &drawn, rounds };
    let mut measured = Vec::new();
    if names.is_empty() {
        for (shape, transpose_b) in PRODUCTS {
            measured.extend(on.product::<f32>("igemm, f32", shape, transpose_b)?);
        }
        measured.extend(on.product::<i32>("igemm, i32", [4096; 3], true)?);
        measured.extend(on.product::<i8>("igemm, i8", [4096; 3], true)?);
    }
    for format in formats {
        for matrix in MATRICES {
            measured.extend(on.weighted(format, matrix)?);
        }
    }
    Ok(measured)
}

/// Returns the formats of these names, or all if there are none.
fn named(names: &[String]) -> Result<Vec<Format>, Error> {
    let find = |name: &String| {
        let found = Format::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name));
        let known = || Format::ALL.map(Format::name).to_vec();
        found.ok_or_else(|| Error::Format { name: name.clone(), known: known() })
    };
    if names.is_empty() { Ok(Format::ALL.to_vec()) } else { names.iter().map(find).collect() }
}

/// Random operands shared by all products: clocks and power depend on the values.
struct Drawn {
    floats: [DeviceBuffer<f32>; 2],
    bytes: [DeviceBuffer<i8>; 2],
}

impl Drawn {
    /// Draws enough bytes for the largest weights, and values for the largest other matrix.
    fn new(device: &Device) -> Result<Drawn, Error> {
        let mut random = Random::new(1);
        let (most, other) = (8192 * 8192, 4096 * 4096);
        let mut bytes = |n: usize| {
            let some: Vec<i8> = (0..1 << 20).map(|_| random.bits() as i8).collect();
            device.upload(&some.repeat(n >> 20)).map_err(Error::Device)
        };
        let bytes = [bytes(other)?, bytes(most)?];
        let mut floats = |n: usize| {
            let some: Vec<f32> = random.values(1 << 20);
            device.upload(&some.repeat(n >> 20)).map_err(Error::Device)
        };
        Ok(Drawn { floats: [floats(other)?, floats(other)?], bytes })
    }
}

/// Context of the measurements: timer, peer, operands, and number of rounds.
struct MeasureContext<'a> {
    timer: &'a Timer,
    cublas: Option<&'a Cublas<'a>>,
    drawn: &'a Drawn,
    rounds: usize,
}

impl MeasureContext<'_> {
    /// Measures a product that is written as `C`, with a scale for each row of both matrices.
    /// cuBLAS computes an `f32` product of the same shape.
    fn product<C: Output + GenericArgument>(
        &self,
        kernel: &'static str,
        shape: [usize; 3],
        transpose_b: bool,
    ) -> Result<Vec<Measurement>, Error> {
        let MeasureContext { timer, cublas, rounds, drawn: Drawn { floats, bytes: [a, b] } } = *self;
        let ([m, n, k], stream) = (shape, timer.stream());
        let device = stream.device();
        let scale = |n: usize| device.upload(&vec![0.01f32; n]).map_err(Error::Device);
        let (scale_a, scale_b) = (scale(m)?, scale(n)?);
        let mut c = device.zeros::<C>(m * n).map_err(Error::Device)?;
        let theirs = device.zeros::<f32>(m * n).map_err(Error::Device)?;
        let operations = 2.0 * m as f64 * n as f64 * k as f64;
        let times = (LONG_NS / (operations / DP4A_OPERATIONS_PER_NS)).clamp(4.0, 100.0) as u32;

        let igemm = if transpose_b { Igemm::new().transpose_b() } else { Igemm::new() }.output(0.1, 3);
        let ours = || {
            let (rows, cols) = if transpose_b { (n, k) } else { (k, n) };
            let (a, b) =
                (a.view_strided([1, m, k], [m * k, k, 1])?, b.view_strided([1, rows, cols], [k * n, cols, 1])?);
            let (a, b) = (Quantized::new(a).scale(scale_a.view([m])?), Quantized::new(b).scale(scale_b.view([n])?));
            igemm.run(stream, a, b, &mut c.view_mut([1, m, n])?)
        };
        let mut contenders = vec![timer.timed("ours", times, ours)];
        if let Some(cublas) = cublas {
            let at = [floats[0].device_address(), floats[1].device_address(), theirs.device_address()];
            let product = Product { shape, transpose_b, at };
            // SAFETY: the buffers live as long as the contenders and hold the matrices; only this
            // contender uses its C.
            contenders.push(timer.timed_peer("cublas, f32", times, move || unsafe { cublas.queue(&product) }));
        }
        let peak = Peak::new(device)?;
        contenders.push(peak.contender(timer, operations));
        let layout = if transpose_b { "A·Bᵀ" } else { "A·B" };
        let trial = Trial {
            kernel,
            shape: format!("{m}x{n}x{k}, {layout}"),
            rate: Some(WorkRate::Flop(operations)),
            contenders,
            after: Box::new(|| ()),
        };
        measure_all(vec![trial], rounds)
    }

    /// Measures products of `f32` activations with weights of [N, K], for each number of rows: of
    /// one matrix that stays in the L2 cache where it fits, and of many matrices alternately. Both
    /// include the quantization of activations.
    fn weighted(&self, format: Format, [n, k]: [usize; 2]) -> Result<Vec<Measurement>, Error> {
        let MeasureContext { timer, rounds, drawn: Drawn { bytes: [_, rows], .. }, .. } = *self;
        let stream = timer.stream();
        let device = stream.device();
        let [of_block, bytes_of_block] = format.block();
        let weight_bytes = n * k / of_block * bytes_of_block;
        let copies = COLD_BYTES.div_ceil(weight_bytes);
        let made = || -> ::runtime::Result<Vec<Weights>> {
            if format == Format::Int8 {
                let rows = rows.view_strided([n, k], [k, 1])?;
                return (0..copies)
                    .map(|_| Weights::from_rows(device, &rows, device.upload(&vec![0.01; n])?))
                    .collect();
            }
            // A row in the format of a file, for every row.
            let row = format.quantize(&Random::new(2).values(k)).unwrap_or_default();
            let file = device.upload(&row.repeat(n))?;
            let file = file.view([n, k / of_block * bytes_of_block])?;
            (0..copies).map(|_| Weights::from_blocks(device, format, &file)).collect()
        };
        let weights = made().map_err(Error::Device)?;
        let most = ROWS.into_iter().max().unwrap_or(1);
        let x: DeviceBuffer<f32> = drawn(device, &mut Random::new(1), most * k)?;
        let mut y = device.zeros::<f32>(most * n).map_err(Error::Device)?;
        let mut measured = Vec::new();
        for (m, cold) in ROWS.into_iter().flat_map(|m| [(m, false), (m, true)]) {
            let bytes = weight_bytes + 4 * m * (k + n);
            let operations = 2.0 * m as f64 * n as f64 * k as f64;
            let estimate = (operations / DP4A_OPERATIONS_PER_NS).max(weight_bytes as f64 / BYTES_PER_NS);
            let times = (LONG_NS / 2.0 / estimate).clamp(2.0, 200.0) as u32;
            let mut index = 0;
            let ours = || {
                index = if cold { (index + 1) % weights.len() } else { 0 };
                let mut y = y.view_strided_mut([m, n], [n, 1])?;
                weights[index].product(stream, &x.view_strided([m, k], [k, 1])?, &mut y)
            };
            let pairs = if cold { COLD_BYTES.div_ceil(bytes) } else { 1 };
            let outputs = RefCell::new(device.zeros::<f32>(if m > 8 { m * n } else { 0 }).map_err(Error::Device)?);
            let mut contenders = vec![timer.timed("ours", times, ours), copy_of(timer, times, bytes, pairs)?];
            // The plans among which `Weights::product` chooses.
            let multiprocessors = device.facts().multiprocessors.max(1) as usize;
            let tiles =
                QuantTile::ALL.into_iter().zip(["16-row tiles", "32-row tiles", "64-row tiles"]).map(|(tile, name)| {
                    let warps = m.div_ceil(tile.rows()) * n.div_ceil(128) * tile.rows() / 8;
                    let splits = (16 * multiprocessors).div_ceil(warps).clamp(1, (k / 512).clamp(1, 16));
                    (name, QuantPlan::Tiles(tile, splits))
                });
            for (name, plan) in
                [("groups of 8", QuantPlan::few(format, m))].into_iter().chain(tiles).filter(|_| (9..=512).contains(&m))
            {
                let (mut index, outputs) = (0, &outputs);
                let weights = &weights;
                let x = &x;
                contenders.push(timer.timed(name, times, move || {
                    index = if cold { (index + 1) % weights.len() } else { 0 };
                    let x = Activations::quantize(stream, &x.view_strided([m, k], [k, 1])?)?;
                    let mut y = outputs.borrow_mut();
                    // SAFETY: this epilogue accesses nothing.
                    unsafe { weights[index].product_with_plan(stream, plan, &x, &mut y.view_mut([m, n])?, Identity) }
                }));
            }
            let trial = Trial {
                kernel: format.name(),
                shape: format!("{m}x{n}x{k}, {}", if cold { "cold" } else { "warm" }),
                rate: Some(if m > 8 { WorkRate::Flop(operations) } else { WorkRate::Bytes(bytes as f64) }),
                contenders,
                after: Box::new(|| ()),
            };
            measured.extend(measure_all(vec![trial], rounds)?);
        }
        Ok(measured)
    }
}

/// Kernel of only `dp4a`, on all multiprocessors.
struct Peak {
    x: DeviceBuffer<i32>,
    out: DeviceBuffer<i32>,
}

/// Iterations of 64 `dp4a` that a thread executes in a measurement.
const ITERATIONS: usize = 1000;

impl Peak {
    fn new(device: &Device) -> Result<Peak, Error> {
        let threads = device.facts().multiprocessors as usize * 2048;
        let x: Vec<i32> = (0..threads as i32).collect();
        Ok(Peak { x: device.upload(&x).map_err(Error::Device)?, out: device.zeros(threads).map_err(Error::Device)? })
    }

    /// Returns a contender that runs for the time of `operations` operations; a `dp4a` counts as
    /// eight.
    fn contender(mut self, timer: &Timer, operations: f64) -> Contender<'_> {
        let share = operations / (self.x.len() as f64 * ITERATIONS as f64 * 64.0 * 8.0);
        let mut all = timer.timed("dp4a alone", 1, move || {
            // SAFETY: the kernel stays within its slices for all contents: the oracle ran it
            // (`kernels check`).
            unsafe { dp4a_peak::launch_unchecked(timer.stream(), &self.x, ITERATIONS, &mut self.out) }
        });
        Contender::new(all.name, move || Ok((all.run)()?.mul_f64(share)))
    }
}
