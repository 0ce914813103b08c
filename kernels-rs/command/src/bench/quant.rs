//! Benchmarks of integer products: large ones compared with cuBLAS in `f32` and with the peak rate
//! of `dp4a`, those of few rows compared with a copy.

use super::cublas::{Cublas, Product};
use super::device::{Timer, drawn};
use super::{Contender, Error, Measured, Rate, Trial, all};
use ::runtime::testing::{Draw, Random};
use ::runtime::{Device, DeviceBuffer};
use kernel_dsl::half::f16;
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::quant::formats::{self, host};
use kernels_rs::quant::igemm::Output;
use kernels_rs::quant::peak::dp4a_peak;
use kernels_rs::quant::{Format, Igemm, Quantized, Weights};

/// M, N, K, and whether B is stored as [N, K].
const PRODUCTS: [([usize; 3], bool); 6] = [
    ([4096, 4096, 4096], true),
    ([4096, 4096, 4096], false),
    ([2048, 2048, 2048], true),
    ([1024, 1024, 1024], true),
    ([1001, 1001, 1001], true),
    ([512, 6144, 2048], true),
];

/// M, N, K of products with weights of 8 and 4 bits.
const WEIGHTS: [[usize; 3]; 8] = [
    [1, 8192, 8192],
    [4, 8192, 8192],
    [8, 8192, 8192],
    [1, 6144, 2048],
    [16, 4096, 4096],
    [64, 4096, 4096],
    [512, 6144, 2048],
    [4096, 4096, 4096],
];

/// Weight formats and the names of their products.
const FORMATS: [(Format, &str); 5] = [
    (Format::Q8_0, "Q8_0"),
    (Format::Q4_0, "Q4_0"),
    (Format::Q4K, "Q4_K"),
    (Format::Q6K, "Q6_K"),
    (Format::Int8, "int8"),
];

/// Target duration of one measurement, long enough to hide launch overhead and clock resolution.
const LONG_NS: f64 = 5e6;
/// Estimated speed of an H100, which determines the number of launches in one measurement.
const OPERATIONS_PER_NS: f64 = 1e5;

pub(super) fn measure(rounds: usize) -> Result<Vec<Measured>, Error> {
    let device = Device::cuda(0).map_err(Error::Device)?;
    let timer = Timer::new(&device)?;
    let cublas = Cublas::open(timer.stream())?;
    let drawn = Drawn::new(&device)?;
    let on = On { timer: &timer, cublas: cublas.as_ref(), drawn: &drawn, rounds };
    let mut measured = Vec::new();
    for (shape, transpose_b) in PRODUCTS {
        measured.extend(on.product::<f32>("igemm, f32", shape, transpose_b)?);
    }
    measured.extend(on.product::<i32>("igemm, i32", [4096; 3], true)?);
    measured.extend(on.product::<i8>("igemm, i8", [4096; 3], true)?);
    for (format, name) in FORMATS {
        for shape in WEIGHTS {
            measured.extend(on.weighted::<f32>(name, format, shape)?);
        }
        measured.extend(on.weighted::<f16>(name, format, WEIGHTS[0])?);
    }
    Ok(measured)
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
struct On<'a> {
    timer: &'a Timer,
    cublas: Option<&'a Cublas<'a>>,
    drawn: &'a Drawn,
    rounds: usize,
}

impl On<'_> {
    /// Measures a product that is written as `C`, with a scale for each row of both matrices.
    /// cuBLAS computes an `f32` product of the same shape.
    fn product<C: Output + GenericArgument>(
        &self,
        kernel: &'static str,
        shape: [usize; 3],
        transpose_b: bool,
    ) -> Result<Vec<Measured>, Error> {
        let On { timer, cublas, rounds, drawn: Drawn { floats, bytes: [a, b] } } = *self;
        let ([m, n, k], stream) = (shape, timer.stream());
        let device = stream.device();
        let scale = |n: usize| device.upload(&vec![0.01f32; n]).map_err(Error::Device);
        let (scale_a, scale_b) = (scale(m)?, scale(n)?);
        let mut c = device.zeros::<C>(m * n).map_err(Error::Device)?;
        let theirs = device.zeros::<f32>(m * n).map_err(Error::Device)?;
        let operations = 2.0 * m as f64 * n as f64 * k as f64;
        let times = (LONG_NS / (operations / OPERATIONS_PER_NS)).clamp(4.0, 100.0) as u32;

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
            rate: Some(Rate::Flop(operations)),
            contenders,
            after: Box::new(|| ()),
        };
        all(vec![trial], rounds)
    }

    /// Measures a product of activations stored as `T` with weights.
    fn weighted<T: Draw + Float + GenericArgument>(
        &self,
        kernel: &'static str,
        format: Format,
        [m, n, k]: [usize; 3],
    ) -> Result<Vec<Measured>, Error> {
        let On { timer, rounds, drawn: Drawn { bytes: [_, rows], .. }, .. } = *self;
        let stream = timer.stream();
        let device = stream.device();
        // A row of weights in a file's format, for every row.
        let [of_block, bytes_of_block] = format.block();
        let row = match format {
            Format::Q4_0 => host::quantize::<formats::Q4_0>,
            Format::Q8_0 => host::quantize::<formats::Q8_0>,
            Format::Q4K => host::quantize::<formats::Q4K>,
            _ => host::quantize::<formats::Q6K>,
        };
        let made = || {
            if format == Format::Int8 {
                let rows = rows.view_strided([n, k], [k, 1])?;
                return Weights::from_rows(device, &rows, device.upload(&vec![0.01; n])?);
            }
            let file = device.upload(&row(&Random::new(2).values(k)).repeat(n))?;
            Weights::from_blocks(device, format, &file.view([n, k / of_block * bytes_of_block])?)
        };
        let weights = made().map_err(Error::Device)?;
        let x: DeviceBuffer<T> = drawn(device, &mut Random::new(1), m * k)?;
        let mut y = device.zeros::<T>(m * n).map_err(Error::Device)?;
        let bytes = n * k / of_block * bytes_of_block + (m * k + m * n) * size_of::<T>();
        let zeros = || device.zeros::<u32>(bytes / 8).map_err(Error::Device);
        let (source, mut target) = (zeros()?, zeros()?);
        let operations = 2.0 * m as f64 * n as f64 * k as f64;
        let ours = || weights.product(stream, &x.view([m, k])?, &mut y.view_mut([m, n])?);
        let contenders =
            vec![timer.timed("ours", 100, ours), timer.timed("copy", 100, || stream.copy(&source, &mut target))];
        let trial = Trial {
            kernel,
            shape: format!("{m}x{n}x{k}, activations of {} bits", 8 * size_of::<T>()),
            rate: Some(if m > 8 { Rate::Flop(operations) } else { Rate::Bytes(bytes as f64) }),
            contenders,
            after: Box::new(|| ()),
        };
        all(vec![trial], rounds)
    }
}

/// Kernel of only `dp4a`, on all multiprocessors.
struct Peak {
    x: DeviceBuffer<i32>,
    out: DeviceBuffer<i32>,
}

/// Iterations of 64 `dp4a` that a thread executes in a measurement.
const ROUNDS: usize = 1000;

impl Peak {
    fn new(device: &Device) -> Result<Peak, Error> {
        let threads = device.facts().multiprocessors as usize * 2048;
        let x: Vec<i32> = (0..threads as i32).collect();
        Ok(Peak { x: device.upload(&x).map_err(Error::Device)?, out: device.zeros(threads).map_err(Error::Device)? })
    }

    /// Returns a contender that runs for the time of `operations` operations; a `dp4a` counts as
    /// eight.
    fn contender(mut self, timer: &Timer, operations: f64) -> Contender<'_> {
        let share = operations / (self.x.len() as f64 * ROUNDS as f64 * 64.0 * 8.0);
        let mut all = timer.timed("dp4a alone", 1, move || {
            // SAFETY: the kernel stays within its slices for all contents: the oracle ran it
            // (`kernels check`).
            unsafe { dp4a_peak::launch_unchecked(timer.stream(), &self.x, ROUNDS, &mut self.out) }
        });
        Contender::new(all.name, move || Ok((all.run)()?.mul_f64(share)))
    }
}
