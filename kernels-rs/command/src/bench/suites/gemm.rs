//! Benchmarks of matrix products compared with cuBLAS in `f32` and with a copy of the same number
//! of bytes.

use super::cublas::{Cublas, Product};
use super::{Measurement, Timer, Trial, WorkRate, drawn, measure_all};
use crate::bench::typical::{LONG_NS, PRODUCT_FLOP_PER_NS};
use crate::error::Error;
use ::runtime::testing::{Draw, Random};
use kernel_dsl::half::f16;
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::gemm::Gemm;

/// M, N, K, and whether B is stored as [N, K].
const SHAPES: [([usize; 3], bool); 15] = [
    ([4096, 4096, 4096], false),
    ([4096, 4096, 4096], true),
    ([4100, 4100, 4100], false),
    ([2048, 2048, 2048], false),
    ([1024, 1024, 1024], false),
    ([1001, 1001, 1001], false),
    ([512, 512, 512], false),
    ([512, 6144, 2048], false),
    ([64, 6144, 2048], false),
    ([16, 6144, 2048], false),
    ([16, 6144, 2048], true),
    ([4, 6144, 2048], false),
    ([1, 6144, 2048], false),
    ([1, 8192, 8192], false),
    ([1, 8192, 8192], true),
];

/// Shapes also measured with matrices stored as `f16`.
const HALVES: [([usize; 3], bool); 4] =
    [([4096, 4096, 4096], false), ([4096, 4096, 4096], true), ([1, 8192, 8192], false), ([1, 8192, 8192], true)];

pub(super) fn measure(timer: &Timer, rounds: usize) -> Result<Vec<Measurement>, Error> {
    let cublas = Cublas::open(timer.stream())?;
    let mut measured = Vec::new();
    for (shape, transpose_b) in SHAPES {
        measured.extend(measure_product::<f32>("sgemm", timer, cublas.as_ref(), shape, transpose_b, rounds)?);
    }
    for (shape, transpose_b) in HALVES {
        measured.extend(measure_product::<f16>("hgemm", timer, None, shape, transpose_b, rounds)?);
    }
    Ok(measured)
}

/// Measures a product of matrices stored as `T`, and, on request, the `f32` product of the same
/// shape in cuBLAS.
fn measure_product<T: Draw + Float + GenericArgument>(
    kernel: &'static str,
    timer: &Timer,
    cublas: Option<&Cublas<'_>>,
    shape: [usize; 3],
    transpose_b: bool,
    rounds: usize,
) -> Result<Vec<Measurement>, Error> {
    let ([m, n, k], stream) = (shape, timer.stream());
    let device = stream.device();
    let mut random = Random::new(1);
    let (a, b) = (drawn::<T>(device, &mut random, m * k)?, drawn::<T>(device, &mut random, k * n)?);
    let zeros = |n: usize| device.zeros::<T>(n).map_err(Error::Device);
    let (mut c, theirs) = (zeros(m * n)?, zeros(m * n)?);
    // A copy reads one byte for each byte that it writes.
    let elements = m * k + k * n + m * n;
    let (source, mut target) = (zeros(elements / 2)?, zeros(elements / 2)?);
    let bytes = elements * size_of::<T>();
    let flop = 2.0 * m as f64 * n as f64 * k as f64;
    let times = (LONG_NS / (flop / PRODUCT_FLOP_PER_NS)).clamp(4.0, 100.0) as u32;

    let product = Product { shape, transpose_b, at: [a.device_address(), b.device_address(), theirs.device_address()] };
    let gemm = if transpose_b { Gemm::new().transpose_b() } else { Gemm::new() };
    let ours = || {
        let view_b = b.view(if transpose_b { [1, n, k] } else { [1, k, n] })?;
        gemm.run(stream, &a.view([1, m, k])?, &view_b, &mut c.view_mut([1, m, n])?)
    };
    let mut contenders = vec![timer.timed("ours", times, ours)];
    if let Some(cublas) = cublas {
        // SAFETY: the buffers live as long as the contenders and hold the matrices; only this
        // contender uses its C.
        contenders.push(timer.timed_peer("cublas", times, move || unsafe { cublas.queue(&product) }));
    }
    contenders.push(timer.timed("copy", times, || stream.copy(&source, &mut target)));
    let layout = if transpose_b { "A·Bᵀ" } else { "A·B" };
    let trial = Trial {
        kernel,
        shape: format!("{m}x{n}x{k}, {layout}"),
        rate: Some(if m > 8 { WorkRate::Flop(flop) } else { WorkRate::Bytes(bytes as f64) }),
        contenders,
        after: Box::new(|| ()),
    };
    measure_all(vec![trial], rounds)
}
