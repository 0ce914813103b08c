//! Benchmarks of memory-bound kernels compared with a device-to-device copy of the same number of
//! bytes.

use super::{Measurement, Timer, Trial, WorkRate, measure_all};
use crate::error::Error;
use ::runtime::DeviceBuffer;
use ::runtime::testing::{Draw, Random};
use kernel_dsl::half::{bf16, f16};
use kernel_dsl::{Float, GenericArgument, Number};
use kernels_rs::activation::{fast_silu, fast_swiglu, silu, swiglu};
use kernels_rs::elementwise::{gate, map, map2};
use kernels_rs::histogram::histogram;
use kernels_rs::optimizer::AdamW;
use kernels_rs::permute::{copy, fill, gather, transpose_batch};
use kernels_rs::reduce::{self, ArgMax, Sum};
use kernels_rs::rotary::{PairLayout, Rotary};
use kernels_rs::scan::inclusive;

/// Target traffic of one measurement in bytes, enough on an H200 to hide launch overhead and clock
/// resolution.
const LONG_BYTES: usize = 8 << 30;

/// Rows and columns.
const SHAPES: [[usize; 2]; 3] = [[32768, 4096], [4096, 4096], [8192, 1024]];

pub(super) fn measure(timer: &Timer, rounds: usize) -> Result<Vec<Measurement>, Error> {
    let mut measured = Vec::new();
    for shape in SHAPES {
        let mut bench = MemoryBench { timer, shape, rounds, measured: &mut measured };
        bench.measure_copies()?;
        bench.measure_maps()?;
        bench.reductions()?;
        bench.tokens::<f32>("rotary", "rotary in place", "gather")?;
        bench.tokens::<f16>("rotary f16", "rotary f16 in place", "gather f16")?;
        bench.counts()?;
        bench.optimizer()?;
    }
    Ok(measured)
}

/// Kernels on matrices of one shape.
struct MemoryBench<'a> {
    timer: &'a Timer,
    shape: [usize; 2],
    rounds: usize,
    measured: &'a mut Vec<Measurement>,
}

impl MemoryBench<'_> {
    fn measure_copies(&mut self) -> Result<(), Error> {
        let (on, [m, n]) = (self.timer.stream(), self.shape);
        let (x, mut y) = (self.drawn::<f32>(m * n)?, self.zeros::<f32>(m * n)?);
        self.trial("copy", 8 * m * n, || copy(on, x.view([m, n])?.strided(), y.view_mut([m, n])?.strided()))?;
        self.trial("copy, rows apart", 8 * m * (n - 32), || {
            let narrow = [m, n - 32];
            copy(on, x.view_strided(narrow, [n, 1])?.strided(), y.view_strided_mut(narrow, [n, 1])?.strided())
        })?;
        self.trial("transpose", 8 * m * n, || transpose_batch(on, &x.view([1, m, n])?, &mut y.view_mut([1, n, m])?))?;
        self.trial("permute 0213", 8 * m * n, || {
            let heads = [16, m / 16, 16, n / 16];
            let x = x.view(heads)?.strided().permuted([0, 2, 1, 3])?;
            copy(on, x, y.view_mut([16, 16, m / 16, n / 16])?.strided())
        })?;
        self.trial("fill", 4 * m * n, || fill(on, 1.0f32, y.view_mut([m, n])?.strided()))?;
        let (x, mut y) = (self.drawn::<f16>(m * n)?, self.zeros::<f16>(m * n)?);
        self.trial("transpose f16", 4 * m * n, || {
            transpose_batch(on, &x.view([1, m, n])?, &mut y.view_mut([1, n, m])?)
        })?;
        let (x, mut y) = (self.drawn::<i8>(m * n)?, self.zeros::<i8>(m * n)?);
        self.trial("transpose i8", 2 * m * n, || transpose_batch(on, &x.view([1, m, n])?, &mut y.view_mut([1, n, m])?))
    }

    fn measure_maps(&mut self) -> Result<(), Error> {
        let (on, [m, n]) = (self.timer.stream(), self.shape);
        let (x, mut y) = (self.drawn::<f32>(m * n)?, self.zeros::<f32>(m * n)?);
        let row = self.drawn::<f32>(n)?;
        self.trial("silu", 8 * m * n, || map(on, silu {}, x.view([m, n])?.strided(), y.view_mut([m, n])?.strided()))?;
        self.trial("silu, fast", 8 * m * n, || {
            map(on, fast_silu {}, x.view([m, n])?.strided(), y.view_mut([m, n])?.strided())
        })?;
        self.trial("swiglu, a row for all, fast", 8 * m * n, || {
            map2(on, fast_swiglu {}, x.view([m, n])?.strided(), row.view([n])?.strided(), y.view_mut([m, n])?.strided())
        })?;
        self.trial("swiglu of halves", 6 * m * n, || {
            gate(on, swiglu {}, x.view([m, n])?.strided(), y.range_mut(0..m * n / 2)?.strided().reshaped([m, n / 2])?)
        })?;
        let (x, mut y) = (self.drawn::<f16>(m * n)?, self.zeros::<f16>(m * n)?);
        self.trial("silu f16, fast", 4 * m * n, || {
            map(on, fast_silu {}, x.view([m, n])?.strided(), y.view_mut([m, n])?.strided())
        })?;
        self.trial("swiglu f16 of halves, fast", 3 * m * n, || {
            gate(
                on,
                fast_swiglu {},
                x.view([m, n])?.strided(),
                y.range_mut(0..m * n / 2)?.strided().reshaped([m, n / 2])?,
            )
        })
    }

    fn reductions(&mut self) -> Result<(), Error> {
        let (on, [m, n]) = (self.timer.stream(), self.shape);
        let (x, mut y, mut places) = (self.drawn::<f32>(m * n)?, self.zeros::<f32>(m.max(n))?, self.zeros::<u32>(m)?);
        self.trial("row sum", 4 * m * n, || reduce::rows(on, Sum, &x.view([m, n])?, &mut y.range_mut(0..m)?))?;
        self.trial("row arg-max", 4 * m * n, || {
            reduce::rows(on, ArgMax, &x.view([m, n])?, &mut places.range_mut(0..m)?)
        })?;
        self.trial("column sum", 4 * m * n, || reduce::columns(on, Sum, &x.view([1, m, n])?, &mut y.range_mut(0..n)?))?;
        self.trial("sum of all", 4 * m * n, || reduce::all(on, Sum, &x.view([m, n])?, &mut y.range_mut(0..1)?))?;
        let x = self.drawn::<f16>(m * n)?;
        self.trial("row sum f16", 2 * m * n, || reduce::rows(on, Sum, &x.view([m, n])?, &mut y.range_mut(0..m)?))
    }

    /// Measures rotary embedding with one row per token: heads of 128 elements, and table rows by
    /// index.
    fn tokens<T: Draw + Float + GenericArgument>(
        &mut self,
        rotated: &'static str,
        in_place: &'static str,
        gathered: &'static str,
    ) -> Result<(), Error> {
        let (on, [m, n]) = (self.timer.stream(), self.shape);
        let (mut x, mut y) = (self.drawn::<T>(m * n)?, self.zeros::<T>(m * n)?);
        let numbers: Vec<u32> = (0..m).map(|i| (i * 40_503 % m) as u32).collect();
        let numbers = on.device().upload(&numbers).map_err(Error::Device)?;
        let rotary =
            Rotary::new(on.device(), PairLayout::Halves, &Rotary::frequencies(10_000.0, 128)).map_err(Error::Device)?;
        let (bytes, heads) = (2 * size_of::<T>() * m * n, [m, n / 128, 128]);
        self.trial(rotated, bytes, || {
            rotary.run(on, &x.view(heads)?, &numbers.view([1, m])?, &mut y.view_mut(heads)?)
        })?;
        self.trial(gathered, bytes, || gather(on, &x.view([m, n])?, &numbers.view([m])?, &mut y.view_mut([m, n])?))?;
        self.trial(in_place, bytes, || rotary.run_in_place(on, &numbers.view([1, m])?, &mut x.view_mut(heads)?))
    }

    fn counts(&mut self) -> Result<(), Error> {
        let (on, [m, n]) = (self.timer.stream(), self.shape);
        let (x, mut y) = (self.drawn::<f32>(m * n)?, self.zeros::<f32>(m * n)?);
        self.trial("prefix sum of rows", 8 * m * n, || inclusive(on, &x.view([m, n])?, &mut y.view_mut([m, n])?))?;
        self.trial("prefix sum of all", 8 * m * n, || {
            inclusive(on, &x.view([1, m * n])?, &mut y.view_mut([1, m * n])?)
        })?;
        let (keys, mut bins) = (self.drawn::<u8>(m * n)?, self.zeros::<u32>(4096)?);
        self.trial("histogram of bytes", m * n, || {
            histogram(on, &keys.view([m * n])?, 0.0..=0.0, &mut bins.range_mut(0..256)?)
        })?;
        self.trial("histogram, 4096 bins", 4 * m * n, || {
            histogram(on, &x.view([m * n])?, -1.0..=1.0, &mut bins.view_mut([4096])?)
        })
    }

    /// Measures a step with weights and gradients of `bf16`.
    fn optimizer(&mut self) -> Result<(), Error> {
        let (on, [m, n]) = (self.timer.stream(), self.shape);
        let (g, mut w) = (self.drawn::<bf16>(m * n)?, self.drawn::<bf16>(m * n)?);
        let (mut first, mut second) = (self.zeros::<f32>(m * n)?, self.zeros::<f32>(m * n)?);
        self.trial("AdamW, weights bf16", 22 * m * n, || {
            let n = [m * n];
            let states = (&mut first.view_mut(n)?, &mut second.view_mut(n)?);
            AdamW::new(1e-3).step(on, 1, &g.view(n)?, &mut w.view_mut(n)?, states.0, states.1)
        })
    }

    /// Measures `work`, which reads and writes `bytes` bytes, and a copy with the same traffic.
    fn trial(
        &mut self,
        kernel: &'static str,
        bytes: usize,
        work: impl FnMut() -> ::runtime::Result<()>,
    ) -> Result<(), Error> {
        let (source, mut target) = (self.zeros::<u8>(bytes / 2)?, self.zeros::<u8>(bytes / 2)?);
        let times = (LONG_BYTES / bytes).clamp(4, 100) as u32;
        let contenders = vec![
            self.timer.timed("ours", times, work),
            self.timer.timed("copy", times, || self.timer.stream().copy(&source, &mut target)),
        ];
        let [m, n] = self.shape;
        let trial = Trial {
            kernel,
            shape: format!("{m}x{n}"),
            rate: Some(WorkRate::Bytes(bytes as f64)),
            contenders,
            after: Box::new(|| ()),
        };
        self.measured.extend(measure_all(vec![trial], self.rounds)?);
        Ok(())
    }

    /// Allocates `n` ordinary values: a repeated sequence of a million.
    fn drawn<T: Draw + Number + GenericArgument>(&self, n: usize) -> Result<DeviceBuffer<T>, Error> {
        let few = n.min(1 << 20);
        let some = self.timer.stream().device().upload(&Random::new(1).values::<T>(few)).map_err(Error::Device)?;
        let mut all = self.zeros::<T>(n)?;
        let again = all.view_mut([n / few, few]).map_err(Error::Device)?;
        copy(self.timer.stream(), some.view([few]).map_err(Error::Device)?.strided(), again.strided())
            .map_err(Error::Device)?;
        Ok(all)
    }

    fn zeros<T: Draw>(&self, n: usize) -> Result<DeviceBuffer<T>, Error> {
        self.timer.stream().device().zeros(n).map_err(Error::Device)
    }
}
