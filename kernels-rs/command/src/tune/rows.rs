//! Softmax and norms of rows as a tuned call.

use super::call::{CallOperands, CallReference, OperandValues, ROUNDOFF, TunedCall};
use crate::bench::typical::BYTES_PER_NS;
use kernels_rs::Queue;
use kernels_rs::rowwise::{Norm, RowKernel, RowsShape, Softmax, Team};
use runtime::testing::{Random, on_every_core};
use runtime::{Device, DeviceBuffer};
use std::cell::RefCell;

/// The summand of the variance.
const EPSILON: f32 = 1e-5;
/// Roundings of an element beside those of its row's sums.
const MORE_ROUNDS: usize = 40;

impl TunedCall for RowsShape {
    const NAME: &'static str = "rows";
    const SETTER: &'static str = "`Softmax::tuned` or `Norm::tuned`";
    type Operands = RowOperands;

    fn is_empty(self) -> bool {
        self.rows == 0 || self.cols == 0
    }

    fn ranked(self, multiprocessors: u32) -> Vec<Team> {
        RowsShape::ranked(self, multiprocessors)
    }

    fn operands(self, on: &impl Queue, values: OperandValues) -> runtime::Result<RowOperands> {
        let mut random = Random::new(1);
        let device = on.device();
        let mut uploaded = |count| values.uploaded(device, &mut random, count);
        let ((host_x, x), (host_weight, weight)) = (uploaded(self.rows * self.cols)?, uploaded(self.cols)?);
        let y = RefCell::new(device.zeros(self.rows * self.cols)?);
        Ok(RowOperands { shape: self, host_x, host_weight, x, weight, y })
    }

    fn operations(self) -> f64 {
        0.0
    }

    fn typical_ns(self) -> f64 {
        (8 * self.rows * self.cols) as f64 / BYTES_PER_NS
    }
}

/// x, the weight of norms, and y.
pub(super) struct RowOperands {
    shape: RowsShape,
    host_x: Vec<f32>,
    host_weight: Vec<f32>,
    x: DeviceBuffer<f32>,
    weight: DeviceBuffer<f32>,
    y: RefCell<DeviceBuffer<f32>>,
}

impl CallOperands for RowOperands {
    type Plan = Team;

    fn run(&self, on: &impl Queue, plan: Team) -> runtime::Result<()> {
        let RowsShape { rows, cols, kernel } = self.shape;
        let (x, mut y) = (self.x.view([rows, cols])?, self.y.borrow_mut());
        let (weight, mut y) = (self.weight.view([cols])?, y.view_mut([rows, cols])?);
        match kernel {
            RowKernel::Softmax => Softmax::new().team(plan).run(on, &x, &mut y),
            RowKernel::RmsNorm => Norm::rms(EPSILON).weight(&weight).team(plan).run(on, &x, &mut y),
            RowKernel::LayerNorm => Norm::layer(EPSILON).weight(&weight).team(plan).run(on, &x, &mut y),
        }
    }

    fn overwrite_result(&self, device: &Device) -> runtime::Result<()> {
        *self.y.borrow_mut() = device.upload(&vec![f32::NAN; self.shape.rows * self.shape.cols])?;
        Ok(())
    }

    fn result(&self) -> runtime::Result<Vec<f32>> {
        self.y.borrow().download()
    }

    /// Computes the rows, and bounds of their errors. The bound of a softmax is that of
    /// [`Softmax`]. A norm's sums have a rounding for each element of a thread, and for each level
    /// of the exchange among threads. A thread has at most a 32nd of the row.
    fn reference(&self) -> CallReference {
        let RowsShape { rows, cols, kernel } = self.shape;
        // The threads share the copies on the host, and not the buffers.
        let (host_x, host_weight) = (&self.host_x, &self.host_weight);
        let rounds = (cols.div_ceil(32) + MORE_ROUNDS) as f64 * ROUNDOFF;
        let rows: Vec<usize> = (0..rows).collect();
        let computed = on_every_core(&rows, |row| {
            let x: Vec<f64> = host_x[row * cols..][..cols].iter().map(|x| f64::from(*x)).collect();
            match kernel {
                RowKernel::Softmax => softmax(&x, rounds),
                RowKernel::RmsNorm => norm(&x, host_weight, 0.0, rounds),
                RowKernel::LayerNorm => norm(&x, host_weight, x.iter().sum::<f64>() / cols as f64, rounds),
            }
        });
        let (values, bounds): (Vec<_>, Vec<_>) = computed.into_iter().flatten().unzip();
        CallReference { values, bounds, columns: cols }
    }
}

/// Returns the softmax of a row with bounds.
fn softmax(x: &[f64], rounds: f64) -> Vec<(f64, f64)> {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let largest = x.iter().map(|x| max - x).fold(0.0, f64::max);
    let sum: f64 = x.iter().map(|x| (x - max).exp()).sum();
    let element = |x: &f64| {
        let y = (x - max).exp() / sum;
        (y, y * (rounds + (2.0 * (max - x) + 2.0 * largest) * ROUNDOFF) + f64::from(f32::MIN_POSITIVE))
    };
    x.iter().map(element).collect()
}

/// Returns the norm of a row with bounds. `mean` is 0 for an RMS norm.
fn norm(x: &[f64], weight: &[f32], mean: f64, rounds: f64) -> Vec<(f64, f64)> {
    let count = x.len() as f64;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    let factor = 1.0 / (variance + f64::from(EPSILON)).sqrt();
    // The error of the mean is relative to the magnitudes.
    let size = if mean == 0.0 { 0.0 } else { x.iter().map(|x| x.abs()).sum::<f64>() / count };
    let element = |(x, weight): (&f64, &f32)| {
        let scale = f64::from(*weight) * factor;
        let y = (x - mean) * scale;
        (y, rounds * (y.abs() + scale.abs() * size) + f64::from(f32::MIN_POSITIVE))
    };
    x.iter().zip(weight).map(element).collect()
}
