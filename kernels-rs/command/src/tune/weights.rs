//! Products with quantized weights as a tuned call.

use super::call::{CallOperands, CallReference, OperandValues, ROUNDOFF, TunedCall};
use crate::bench::typical::{BYTES_PER_NS, COLD_BYTES, DP4A_OPERATIONS_PER_NS};
use kernels_rs::Queue;
use kernels_rs::gemm::epilogue::Identity;
use kernels_rs::quant::plan::{QuantCosts, QuantExtents, QuantPlan, ranked};
use kernels_rs::quant::{Format, WeightedShape, Weights};
use runtime::testing::{Random, on_every_core};
use runtime::{Device, DeviceBuffer};
use std::cell::{Cell, RefCell};

/// Maximum number of copies of weights. Copies of small weights have fewer bytes than
/// [`COLD_BYTES`].
const MAX_COPIES: usize = 256;
/// The scale of the rows of bytes.
const BYTE_SCALE: f32 = 1.0 / 128.0;

impl TunedCall for WeightedShape {
    const NAME: &'static str = "weights";
    const SETTER: &'static str = "`Weights::tuned`";
    type Operands = WeightedOperands;

    fn is_empty(self) -> bool {
        let WeightedShape { m, n, k, .. } = self;
        [m, n, k].contains(&0)
    }

    fn ranked(self, multiprocessors: u32) -> Vec<QuantPlan> {
        let WeightedShape { m, n, k, format } = self;
        ranked(&QuantCosts::P40, format, QuantExtents { rows: m, cols: n, k }, multiprocessors as usize)
    }

    fn operands(self, on: &impl Queue, values: OperandValues) -> runtime::Result<WeightedOperands> {
        let copies = match values {
            OperandValues::Zeros => 1,
            OperandValues::Drawn => COLD_BYTES.div_ceil(weight_bytes(self).max(1)).min(MAX_COPIES),
        };
        WeightedOperands::new(on, self, values, copies)
    }

    fn operations(self) -> f64 {
        let WeightedShape { m, n, k, .. } = self;
        2.0 * m as f64 * n as f64 * k as f64
    }

    fn typical_ns(self) -> f64 {
        (self.operations() / DP4A_OPERATIONS_PER_NS).max(weight_bytes(self) as f64 / BYTES_PER_NS)
    }
}

/// Returns the bytes of the weights.
fn weight_bytes(WeightedShape { n, k, format, .. }: WeightedShape) -> usize {
    let [numbers, bytes] = format.block();
    n * k / numbers * bytes
}

/// X, W and Y of a product.
pub(super) struct WeightedOperands {
    shape: WeightedShape,
    host_x: Vec<f32>,
    /// The numbers of the weights.
    host_w: Vec<f32>,
    x: DeviceBuffer<f32>,
    /// Equal weights, which the products read alternately.
    weights: Vec<Weights>,
    next: Cell<usize>,
    y: RefCell<DeviceBuffer<f32>>,
}

impl WeightedOperands {
    /// Creates operands with `copies` equal weights.
    pub fn new(
        on: &impl Queue,
        shape: WeightedShape,
        values: OperandValues,
        copies: usize,
    ) -> runtime::Result<WeightedOperands> {
        let device = on.device();
        let WeightedShape { m, n, k, .. } = shape;
        let mut random = Random::new(1);
        let (host_x, x) = values.uploaded(device, &mut random, m * k)?;
        let (host_w, weights) = match values {
            OperandValues::Zeros => (Vec::new(), vec![zero_weights(on, shape)?]),
            OperandValues::Drawn => {
                let numbers: Vec<f32> = random.values(n * k);
                quantized_weights(on, shape, &numbers, copies)?
            }
        };
        let y = RefCell::new(device.zeros(m * n)?);
        Ok(WeightedOperands { shape, host_x, host_w, x, weights, next: Cell::new(0), y })
    }
}

/// Makes weights of zeros, without numbers on the host.
fn zero_weights(on: &impl Queue, shape: WeightedShape) -> runtime::Result<Weights> {
    let (WeightedShape { n, k, format, .. }, device) = (shape, on.device());
    if format == Format::Int8 {
        return Weights::from_rows(on, &device.zeros(n * k)?.view([n, k])?, device.zeros(n)?);
    }
    let [numbers, bytes] = format.block();
    let row = k / numbers * bytes;
    Weights::from_blocks(on, format, &device.zeros(n * row)?.view([n, row])?)
}

/// Quantizes numbers. Returns the numbers that the weights have, and `copies` equal weights.
fn quantized_weights(
    on: &impl Queue,
    shape: WeightedShape,
    numbers: &[f32],
    copies: usize,
) -> runtime::Result<(Vec<f32>, Vec<Weights>)> {
    let (WeightedShape { n, k, format, .. }, device) = (shape, on.device());
    let (host_w, weights): (_, runtime::Result<Vec<Weights>>) = match format.quantize(numbers) {
        Some(blocks) => {
            let (file, [numbers, bytes]) = (device.upload(&blocks)?, format.block());
            let file = file.view([n, k / numbers * bytes])?;
            let weights = (0..copies).map(|_| Weights::from_blocks(on, format, &file)).collect();
            (format.dequantize(&blocks).unwrap_or_default(), weights)
        }
        None => {
            let bytes: Vec<i8> = numbers.iter().map(|w| (w * 64.0) as i8).collect();
            let rows = device.upload(&bytes)?;
            let rows = rows.view([n, k])?;
            let one = |_| Weights::from_rows(on, &rows, device.upload(&vec![BYTE_SCALE; n])?);
            (bytes.iter().map(|q| f32::from(*q) * BYTE_SCALE).collect(), (0..copies).map(one).collect())
        }
    };
    Ok((host_w, weights?))
}

impl CallOperands for WeightedOperands {
    type Plan = QuantPlan;

    fn run(&self, on: &impl Queue, plan: QuantPlan) -> runtime::Result<()> {
        let WeightedShape { m, n, k, .. } = self.shape;
        let at = self.next.get();
        self.next.set((at + 1) % self.weights.len());
        let (x, mut y) = (self.x.view([m, k])?, self.y.borrow_mut());
        // SAFETY: this epilogue accesses nothing.
        unsafe { self.weights[at].product_by(on, plan, &x, &mut y.view_mut([m, n])?, Identity) }
    }

    fn overwrite_result(&self, device: &Device) -> runtime::Result<()> {
        *self.y.borrow_mut() = device.upload(&vec![f32::NAN; self.shape.m * self.shape.n])?;
        Ok(())
    }

    fn result(&self) -> runtime::Result<Vec<f32>> {
        self.y.borrow().download()
    }

    /// Computes the product of the quantized activations with the numbers of the weights, and its
    /// bounds. Each 32 products are rounded up to five times, and the sum of a warp five times
    /// more. Rounded numbers are at most four times the sum of magnitudes, because a minimum is
    /// subtracted.
    fn reference(&self) -> CallReference {
        let WeightedShape { m, n, k, .. } = self.shape;
        let x: Vec<f64> = self.host_x.chunks(32).flat_map(quantized).collect();
        let rounds = 4.0 * (5.0 * k as f64 / 32.0 + 12.0) * ROUNDOFF;
        // The threads share the copy on the host, and not the buffers.
        let (columns, host_w): (Vec<usize>, _) = ((0..n).collect(), &self.host_w);
        let computed = on_every_core(&columns, |col| {
            let w: Vec<f64> = host_w[col * k..][..k].iter().map(|w| f64::from(*w)).collect();
            let element = |row: usize| {
                let terms = x[row * k..][..k].iter().zip(&w).map(|(x, w)| x * w);
                terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()))
            };
            (0..m).map(element).collect::<Vec<(f64, f64)>>()
        });
        let (mut values, mut bounds) = (vec![0.0; m * n], vec![0.0; m * n]);
        for (col, column) in computed.iter().enumerate() {
            for (row, (sum, size)) in column.iter().enumerate() {
                values[row * n + col] = *sum;
                bounds[row * n + col] = rounds * size + f64::from(f32::MIN_POSITIVE);
            }
        }
        CallReference { values, bounds, columns: n }
    }
}

/// Returns the numbers that the product has for 32 finite activations: bytes times a scale, by the
/// largest magnitude A, as [`Weights::product`] documents.
fn quantized(x: &[f32]) -> Vec<f64> {
    let top = x.iter().fold(2f32.powi(-120), |top, x| top.max(x.abs()));
    let (inverse, scale) = (127.0 / top, f64::from(top / 127.0));
    x.iter().map(|x| f64::from((x * inverse).round_ties_even()) * scale).collect()
}
