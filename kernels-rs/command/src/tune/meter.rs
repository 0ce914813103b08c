//! The operands of a product, and measurements of its plans on a GPU. Every plan is checked against
//! a reference in f64.

use super::search::CandidateMeter;
use crate::bench::{Contender, Timer};
use crate::error::Error;
use indicatif::ProgressBar;
use kernels_rs::Queue;
use kernels_rs::gemm::plan::GemmPlan;
use kernels_rs::gemm::{Gemm, ProductShape};
use runtime::testing::{Random, on_every_core};
use runtime::{Device, DeviceBuffer};
use std::cell::RefCell;
use std::thread;
use std::time::{Duration, Instant};

/// Target duration of one measurement, which hides the resolution of the device's clock.
const LONG_NS: f64 = 1e6;
/// Speed of an H100, which determines the number of launches in one measurement.
const FLOP_PER_NS: f64 = 4e4;
/// Time under load after which clocks have settled.
const WARM_UP_TIME: Duration = Duration::from_millis(500);
/// Unit roundoff of `f32`.
const ROUNDOFF: f64 = 1.0 / (1 << 24) as f64;
/// Number of roundings of an element in addition to those of its K products, as [`Gemm`] documents.
const MORE_ROUNDS: usize = 34;

/// A, B and C of a batch of products.
pub(super) struct ProductOperands {
    shape: ProductShape,
    host_a: Vec<f32>,
    host_b: Vec<f32>,
    a: DeviceBuffer<f32>,
    b: DeviceBuffer<f32>,
    c: RefCell<DeviceBuffer<f32>>,
}

impl ProductOperands {
    /// Creates operands of zeros, for estimates.
    pub fn zeros(device: &Device, shape: ProductShape) -> Result<ProductOperands, Error> {
        let ProductShape { batch, m, n, k, .. } = shape;
        ProductOperands::new(device, shape, vec![0.0; batch * m * k], vec![0.0; batch * k * n])
    }

    /// Creates operands of ordinary values.
    pub fn drawn(device: &Device, shape: ProductShape) -> Result<ProductOperands, Error> {
        let ProductShape { batch, m, n, k, .. } = shape;
        let mut random = Random::new(1);
        let a = random.values(batch * m * k);
        let b = random.values(batch * k * n);
        ProductOperands::new(device, shape, a, b)
    }

    fn new(device: &Device, shape: ProductShape, host_a: Vec<f32>, host_b: Vec<f32>) -> Result<ProductOperands, Error> {
        let (a, b) = (device.upload(&host_a).map_err(Error::Device)?, device.upload(&host_b).map_err(Error::Device)?);
        let c = RefCell::new(device.zeros(shape.batch * shape.m * shape.n).map_err(Error::Device)?);
        Ok(ProductOperands { shape, host_a, host_b, a, b, c })
    }

    /// Queues the product.
    pub fn run(&self, on: &impl Queue, call: Gemm) -> runtime::Result<()> {
        let ProductShape { batch, m, n, k, transpose_a, transpose_b } = self.shape;
        let a = self.a.view(if transpose_a { [batch, k, m] } else { [batch, m, k] })?;
        let b = self.b.view(if transpose_b { [batch, n, k] } else { [batch, k, n] })?;
        call.run(on, &a, &b, &mut self.c.borrow_mut().view_mut([batch, m, n])?)
    }

    /// Overwrites C by NaNs, so that an earlier result fails the check.
    pub fn overwrite_result(&self, device: &Device) -> runtime::Result<()> {
        let ProductShape { batch, m, n, .. } = self.shape;
        *self.c.borrow_mut() = device.upload(&vec![f32::NAN; batch * m * n])?;
        Ok(())
    }

    /// Returns C.
    pub fn result(&self) -> runtime::Result<Vec<f32>> {
        self.c.borrow().download()
    }

    /// Computes the product in f64, and the bound of the error of each element. The bound of
    /// [`Gemm`] has Σ |aᵢ·bᵢ|; the product of the norms of a row and a column is at least as large.
    pub fn reference(&self) -> ProductReference {
        let ProductShape { batch, m, n, k, transpose_a, transpose_b } = self.shape;
        // The threads share the copies on the host, and not the buffers.
        let (host_a, host_b) = (&self.host_a, &self.host_b);
        let a = |item: usize, row: usize, i: usize| {
            f64::from(host_a[item * m * k + if transpose_a { i * m + row } else { row * k + i }])
        };
        let b = |item: usize, i: usize, col: usize| {
            f64::from(host_b[item * k * n + if transpose_b { col * k + i } else { i * n + col }])
        };
        let items: Vec<usize> = (0..batch).collect();
        // Rows of B as f64, and the norms of its columns.
        let of_b: Vec<(Vec<f64>, Vec<f64>)> = on_every_core(&items, |item| {
            let rows: Vec<f64> = (0..k * n).map(|at| b(*item, at / n, at % n)).collect();
            let mut squares = vec![0.0; n];
            for row in rows.chunks_exact(n.max(1)) {
                squares.iter_mut().zip(row).for_each(|(sum, b)| *sum += b * b);
            }
            (rows, squares.into_iter().map(f64::sqrt).collect())
        });
        let rows: Vec<usize> = (0..batch * m).collect();
        let computed = on_every_core(&rows, |row| {
            let (item, row) = (row / m, row % m);
            let (of_b, norms) = &of_b[item];
            let (mut sums, mut square) = (vec![0.0; n], 0.0);
            for (i, of_b) in of_b.chunks_exact(n.max(1)).enumerate() {
                let a = a(item, row, i);
                square += a * a;
                sums.iter_mut().zip(of_b).for_each(|(sum, b)| *sum += a * b);
            }
            let rounds = (k + MORE_ROUNDS) as f64 * ROUNDOFF;
            let gamma = rounds / (1.0 - rounds);
            let bounds = norms.iter().zip(&sums).map(|(norm, sum)| gamma * square.sqrt() * norm + ROUNDOFF * sum.abs());
            let bounds: Vec<f64> = bounds.collect();
            (sums, bounds)
        });
        let (values, bounds): (Vec<_>, Vec<_>) = computed.into_iter().unzip();
        ProductReference { values: values.concat(), bounds: bounds.concat(), columns: n }
    }
}

/// The elements of a product, with the bounds of their errors.
pub(super) struct ProductReference {
    values: Vec<f64>,
    bounds: Vec<f64>,
    columns: usize,
}

impl ProductReference {
    /// Returns what is wrong with a result, if something is.
    pub fn mismatch(&self, result: &[f32]) -> Option<String> {
        if result.len() != self.values.len() {
            return Some(format!("it has {} elements instead of {}", result.len(), self.values.len()));
        }
        let expected = self.values.iter().zip(&self.bounds);
        // A NaN is not within the bound.
        let is_wrong = |(given, (value, bound)): (&f32, (&f64, &f64))| {
            let error = (f64::from(*given) - value).abs();
            error.is_nan() || error > *bound
        };
        let at = result.iter().zip(expected).position(is_wrong)?;
        let (row, col) = (at / self.columns, at % self.columns);
        Some(format!(
            "element ({row}, {col}) is {}, and the reference is {} ± {:.1e}",
            result[at], self.values[at], self.bounds[at]
        ))
    }
}

/// Measurements of plans on a GPU.
pub(super) struct ProductMeter<'a> {
    start: Instant,
    device: &'a Device,
    operands: &'a ProductOperands,
    reference: ProductReference,
    call: Gemm,
    plans: &'a [GemmPlan],
    contenders: Vec<Contender<'a>>,
    bar: &'a ProgressBar,
}

impl ProductMeter<'_> {
    /// Passes a meter of plans to `act`.
    pub fn with<T>(
        device: &Device,
        operands: &ProductOperands,
        call: Gemm,
        plans: &[GemmPlan],
        bar: &ProgressBar,
        act: impl FnOnce(&mut ProductMeter<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let start = Instant::now();
        bar.set_message("reference in f64");
        let reference = operands.reference();
        let timer = Timer::new(device)?;
        // Clocks rise under load.
        timer.busy_during(|| {
            thread::sleep(WARM_UP_TIME);
            Some(())
        });
        let ProductShape { batch, m, n, k, .. } = operands.shape;
        let flop = 2.0 * batch as f64 * m as f64 * n as f64 * k as f64;
        let launches = (LONG_NS / (flop / FLOP_PER_NS)).clamp(2.0, 100.0) as u32;
        let timer = &timer;
        let contender = |plan: &GemmPlan| {
            let call = call.plan(*plan);
            timer.timed("plan", launches, move || operands.run(timer.stream(), call))
        };
        let contenders = plans.iter().map(contender).collect();
        act(&mut ProductMeter { start, device, operands, reference, call, plans, contenders, bar })
    }
}

impl CandidateMeter for ProductMeter<'_> {
    fn rejected(&mut self, candidate: usize) -> Result<Option<String>, Error> {
        self.bar.set_message(format!("check of {}", self.plans[candidate]));
        self.operands.overwrite_result(self.device).map_err(Error::Device)?;
        if let Err(e) = self.operands.run(self.device, self.call.plan(self.plans[candidate])) {
            // The device cannot run more.
            if self.device.lost().is_some() {
                return Err(Error::Device(e));
            }
            return Ok(Some(e.to_string()));
        }
        let result = self.operands.result().map_err(Error::Device)?;
        let wrong = self.reference.mismatch(&result);
        if wrong.is_none() {
            // The first measurement does not know yet how long the host takes to queue the work.
            self.time(candidate)?;
        }
        Ok(wrong)
    }

    fn time(&mut self, candidate: usize) -> Result<f64, Error> {
        Ok((self.contenders[candidate].run)()?.as_secs_f64() * 1e3)
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn progress(&mut self, phase: &str, best: usize, median_ms: f64) {
        self.bar.set_message(format!("{phase}, best so far: {}, {:.2} µs", self.plans[best], median_ms * 1e3));
        self.bar.inc(1);
    }
}
