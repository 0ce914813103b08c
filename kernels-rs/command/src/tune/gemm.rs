//! Products of `f32` as a tuned call.

use super::call::{CallOperands, CallReference, OperandValues, ROUNDOFF, TunedCall};
use crate::bench::typical::PRODUCT_FLOP_PER_NS;
use kernels_rs::Queue;
use kernels_rs::gemm::plan::{GemmPlan, ranked};
use kernels_rs::gemm::{Gemm, GemmCosts, ProductShape};
use runtime::testing::{Random, on_every_core};
use runtime::{Device, DeviceBuffer};
use std::cell::RefCell;

/// Number of roundings of an element in addition to those of its K products, as [`Gemm`] documents.
const MORE_ROUNDS: usize = 34;

impl TunedCall for ProductShape {
    const NAME: &'static str = "gemm";
    const SETTER: &'static str = "`Gemm::tuned`";
    type Operands = ProductOperands;

    fn is_empty(self) -> bool {
        let ProductShape { batch, m, n, k, .. } = self;
        [batch, m, n, k].contains(&0)
    }

    fn ranked(self, multiprocessors: u32) -> Vec<GemmPlan> {
        let plans = ranked(&GemmCosts::H200, self, multiprocessors);
        plans.into_iter().map(|(_, plan)| plan).collect()
    }

    fn operands(self, on: &impl Queue, values: OperandValues) -> runtime::Result<ProductOperands> {
        let ProductShape { batch, m, n, k, .. } = self;
        let mut random = Random::new(1);
        let device = on.device();
        let mut uploaded = |count| values.uploaded(device, &mut random, count);
        let ((host_a, a), (host_b, b)) = (uploaded(batch * m * k)?, uploaded(batch * k * n)?);
        let c = RefCell::new(device.zeros(batch * m * n)?);
        Ok(ProductOperands { shape: self, host_a, host_b, a, b, c })
    }

    fn operations(self) -> f64 {
        let ProductShape { batch, m, n, k, .. } = self;
        2.0 * batch as f64 * m as f64 * n as f64 * k as f64
    }

    fn typical_ns(self) -> f64 {
        self.operations() / PRODUCT_FLOP_PER_NS
    }
}

/// A, B and C of a batch of products.
pub(super) struct ProductOperands {
    shape: ProductShape,
    host_a: Vec<f32>,
    host_b: Vec<f32>,
    a: DeviceBuffer<f32>,
    b: DeviceBuffer<f32>,
    c: RefCell<DeviceBuffer<f32>>,
}

impl CallOperands for ProductOperands {
    type Plan = GemmPlan;

    fn run(&self, on: &impl Queue, plan: GemmPlan) -> runtime::Result<()> {
        let ProductShape { batch, m, n, k, transpose_a, transpose_b } = self.shape;
        let call = if transpose_a { Gemm::new().transpose_a() } else { Gemm::new() };
        let call = if transpose_b { call.transpose_b() } else { call }.plan(plan);
        let a = self.a.view(if transpose_a { [batch, k, m] } else { [batch, m, k] })?;
        let b = self.b.view(if transpose_b { [batch, n, k] } else { [batch, k, n] })?;
        call.run(on, &a, &b, &mut self.c.borrow_mut().view_mut([batch, m, n])?)
    }

    fn overwrite_result(&self, device: &Device) -> runtime::Result<()> {
        let ProductShape { batch, m, n, .. } = self.shape;
        *self.c.borrow_mut() = device.upload(&vec![f32::NAN; batch * m * n])?;
        Ok(())
    }

    fn result(&self) -> runtime::Result<Vec<f32>> {
        self.c.borrow().download()
    }

    /// Computes the product and its bounds. The bound of [`Gemm`] has Σ |aᵢ·bᵢ|; the product of the
    /// norms of a row and a column is at least as large.
    fn reference(&self) -> CallReference {
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
        CallReference { values: values.concat(), bounds: bounds.concat(), columns: n }
    }
}
