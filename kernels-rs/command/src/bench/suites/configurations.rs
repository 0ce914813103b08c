//! Benchmarks of fixed configurations: products by a given plan, and other kernels at shapes from
//! small to large. The benchmarks validate the estimate, which must order the configurations of a
//! family as their times do.

use super::{Measurement, Timer, Trial, WorkRate, drawn, measure_all};
use crate::bench::typical::ATTENTION_FLOP_PER_NS;
use crate::error::Error;
use ::runtime::DeviceBuffer;
use ::runtime::testing::{Draw, Random};
use kernel_dsl::half::f16;
use kernels_rs::activation::{fast_silu, fast_swiglu};
use kernels_rs::attention::{Attention, Qkv};
use kernels_rs::elementwise::{map, map2};
use kernels_rs::gemm::Gemm;
use kernels_rs::gemm::plan::{GemmPlan, GemmTile, GemvWidth};
use kernels_rs::permute::transpose_batch;
use kernels_rs::rowwise::{Norm, Softmax};

/// Products by tiles: M, N, K.
const PRODUCTS: [[usize; 3]; 6] =
    [[4096; 3], [2048; 3], [1024; 3], [3072, 1024, 2048], [512, 6144, 2048], [256, 4096, 4096]];

/// Products of few rows by tiles of 16 rows, with the number of parts of the depth.
const FEW_ROWS: [([usize; 3], usize); 6] = [
    ([16, 6144, 2048], 1),
    ([16, 6144, 2048], 4),
    ([16, 6144, 2048], 8),
    ([32, 4096, 4096], 2),
    ([32, 4096, 4096], 8),
    ([64, 2048, 8192], 4),
];

/// Products of a row, N and K.
const MATRICES: [[usize; 2]; 4] = [[8192, 8192], [4096, 4096], [6144, 2048], [2048, 6144]];

/// Sequences, heads, queries and keys, elements of a head, and whether attention is causal.
const ATTENTION: [([usize; 4], bool); 12] = [
    ([1, 16, 2048, 128], false),
    ([1, 16, 2048, 128], true),
    ([4, 16, 512, 64], false),
    ([4, 16, 512, 64], true),
    ([1, 16, 1024, 128], false),
    ([1, 8, 1024, 64], true),
    ([2, 32, 512, 128], true),
    ([1, 4, 4096, 64], false),
    ([1, 16, 2048, 80], false),
    ([8, 8, 256, 64], false),
    ([1, 2, 512, 128], false),
    ([1, 32, 128, 128], true),
];

/// Rows and columns.
const MATRICES_OF_ROWS: [[usize; 2]; 6] =
    [[8192, 4096], [4096, 4096], [8192, 1024], [16_384, 256], [512, 32_768], [64, 4096]];

/// Target duration of one measurement.
const LONG_NS: f64 = 4e6;
/// Bytes per nanosecond that a configuration reads at least, on an H100.
const BYTES_PER_NS: f64 = 2e3;

/// Measures every configuration, family by family.
pub(super) fn measure(timer: &Timer, rounds: usize) -> Result<Vec<Measurement>, Error> {
    let mut bench = ConfigurationBench { timer, rounds, measured: Vec::new() };
    for shape in PRODUCTS {
        bench.product("gemm", shape, false, GemmPlan::Tiles(GemmTile::T128x128, 1))?;
        bench.product("gemm", shape, true, GemmPlan::Tiles(GemmTile::T128x128, 1))?;
        bench.product("gemm", shape, false, GemmPlan::Tiles(GemmTile::T64x128, 1))?;
    }
    for (shape, parts) in FEW_ROWS {
        bench.product("gemm", shape, false, GemmPlan::Tiles(GemmTile::T16x128, parts))?;
    }
    for [n, k] in MATRICES {
        bench.product("gemv", [1, n, k], false, GemmPlan::GemvN(1, GemvWidth::Columns32))?;
        bench.product("gemv", [1, n, k], false, GemmPlan::GemvN(1, GemvWidth::Columns16))?;
        bench.product("gemv", [1, n, k], true, GemmPlan::GemvT(1))?;
    }
    bench.product("gemv", [4, 6144, 2048], false, GemmPlan::GemvN(4, GemvWidth::Columns32))?;
    bench.product("gemv", [4, 4096, 4096], true, GemmPlan::GemvT(4))?;
    for (shape, causal) in ATTENTION {
        bench.attention(shape, causal)?;
    }
    for shape in MATRICES_OF_ROWS {
        bench.rows(shape)?;
    }
    Ok(bench.measured)
}

struct ConfigurationBench<'a> {
    timer: &'a Timer,
    rounds: usize,
    measured: Vec<Measurement>,
}

impl ConfigurationBench<'_> {
    fn product(
        &mut self,
        family: &'static str,
        [m, n, k]: [usize; 3],
        transpose_b: bool,
        plan: GemmPlan,
    ) -> Result<(), Error> {
        let (a, b, mut c) = (self.drawn::<f32>(m * k)?, self.drawn::<f32>(k * n)?, self.zeros::<f32>(m * n)?);
        let gemm = if transpose_b { Gemm::new().transpose_b() } else { Gemm::new() }.plan(plan);
        let layout = if transpose_b { "A·Bᵀ" } else { "A·B" };
        let flop = 2.0 * (m * n * k) as f64;
        let rate = if m > 8 { WorkRate::Flop(flop) } else { WorkRate::Bytes((4 * (m * k + k * n + m * n)) as f64) };
        let (on, of_b) = (self.timer.stream(), if transpose_b { [1, n, k] } else { [1, k, n] });
        self.trial(family, format!("{m}x{n}x{k}, {layout}, {plan:?}"), rate, || {
            gemm.run(on, &a.view([1, m, k])?, &b.view(of_b)?, &mut c.view_mut([1, m, n])?)
        })
    }

    fn attention(&mut self, shape: [usize; 4], causal: bool) -> Result<(), Error> {
        let [batch, heads, length, width] = shape;
        let elements = batch * heads * length * width;
        let (q, k, v) = (self.drawn::<f32>(elements)?, self.drawn::<f32>(elements)?, self.drawn::<f32>(elements)?);
        let mut o = self.zeros::<f32>(elements)?;
        let attention = if causal { Attention::new().causal() } else { Attention::new() };
        let pairs = if causal { length * (length + 1) / 2 } else { length * length };
        let rate = WorkRate::Flop(4.0 * (batch * heads * pairs * width) as f64);
        let (on, seen) = (self.timer.stream(), if causal { "causal" } else { "full" });
        self.trial("attention", format!("{batch}x{heads}x{length}x{width}, {seen}"), rate, || {
            let qkv = Qkv { q: q.view(shape)?, k: k.view(shape)?, v: v.view(shape)? };
            attention.run(on, qkv, &mut o.view_mut(shape)?, None)
        })
    }

    /// Measures kernels on a matrix: transposes, maps, and kernels of rows.
    fn rows(&mut self, shape @ [m, n]: [usize; 2]) -> Result<(), Error> {
        let (on, size) = (self.timer.stream(), format!("{m}x{n}"));
        let bytes = |matrices: usize, element: usize| WorkRate::Bytes((matrices * element * m * n) as f64);
        let (x, mut y, row) = (self.drawn::<f32>(m * n)?, self.zeros::<f32>(m * n)?, self.drawn::<f32>(n)?);
        self.trial("transpose", format!("{size}, f32"), bytes(2, 4), || {
            transpose_batch(on, &x.view([1, m, n])?, &mut y.view_mut([1, n, m])?)
        })?;
        self.trial("elementwise", format!("{size}, silu, fast"), bytes(2, 4), || {
            map(on, fast_silu {}, x.view(shape)?.strided(), y.view_mut(shape)?.strided())
        })?;
        self.trial("elementwise", format!("{size}, swiglu, a row for all, fast"), bytes(2, 4), || {
            map2(on, fast_swiglu {}, x.view(shape)?.strided(), row.view([n])?.strided(), y.view_mut(shape)?.strided())
        })?;
        self.trial("rows", format!("{size}, softmax"), bytes(2, 4), || {
            Softmax::new().run(on, &x.view(shape)?, &mut y.view_mut(shape)?)
        })?;
        self.trial("rows", format!("{size}, rms norm"), bytes(2, 4), || {
            Norm::rms(1e-5).weight(&row.view([n])?).run(on, &x.view(shape)?, &mut y.view_mut(shape)?)
        })?;
        let (x, mut y) = (self.drawn::<f16>(m * n)?, self.zeros::<f16>(m * n)?);
        self.trial("transpose", format!("{size}, f16"), bytes(2, 2), || {
            transpose_batch(on, &x.view([1, m, n])?, &mut y.view_mut([1, n, m])?)
        })
    }

    fn trial(
        &mut self,
        kernel: &'static str,
        shape: String,
        rate: WorkRate,
        work: impl FnMut() -> ::runtime::Result<()>,
    ) -> Result<(), Error> {
        let estimated_ns = match rate {
            WorkRate::Flop(flop) => flop / ATTENTION_FLOP_PER_NS,
            WorkRate::Bytes(bytes) => bytes / BYTES_PER_NS,
        };
        let times = (LONG_NS / estimated_ns).clamp(2.0, 100.0) as u32;
        let contenders = vec![self.timer.timed("ours", times, work)];
        let trial = Trial { kernel, shape, rate: Some(rate), contenders, after: Box::new(|| ()) };
        self.measured.extend(measure_all(vec![trial], self.rounds)?);
        Ok(())
    }

    fn drawn<T: Draw>(&self, n: usize) -> Result<DeviceBuffer<T>, Error> {
        drawn(self.timer.stream().device(), &mut Random::new(1), n)
    }

    fn zeros<T: Draw>(&self, n: usize) -> Result<DeviceBuffer<T>, Error> {
        self.timer.stream().device().zeros(n).map_err(Error::Device)
    }
}
