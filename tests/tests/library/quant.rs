//! Tests of quantized operations, on the CPU and on a GPU, against plain Rust.

mod accuracy;
mod affine;
mod experts;
mod fused;
mod integers;
mod plans;
mod recorded;
mod weights;

use kernels_rs::quant::{Format, Weights};
use runtime::Device;
use runtime::testing::Random;

fn bytes(random: &mut Random, n: usize) -> Vec<i8> {
    (0..n).map(|_| random.bits() as i8).collect()
}

/// Returns rows of `k` numbers as weights in blocks of a format.
fn blocks(device: &Device, format: Format, numbers: &[f32], k: usize) -> Weights {
    let [of_block, bytes] = format.block();
    let file = device.upload(&format.quantize(numbers).unwrap()).unwrap();
    let file = file.view([numbers.len() / k, k / of_block * bytes]).unwrap();
    Weights::from_blocks(device, format, &file).unwrap()
}

/// Returns the numbers of weights.
fn dequantized(device: &Device, weights: &Weights) -> Vec<f32> {
    let [n, k] = weights.extents();
    let mut w = device.zeros::<f32>(n * k).unwrap();
    weights.dequantize(device, &mut w.view_mut([n, k]).unwrap()).unwrap();
    w.download().unwrap()
}

/// Returns the quantized values of activations, in blocks of 32, by the formula.
fn quantized(x: &[f32]) -> Vec<f64> {
    x.chunks(32)
        .flat_map(|block| {
            let top = block.iter().fold(0.0f32, |top, x| top.max(x.abs()));
            let inverse = if top > 0.0 { 127.0 / top } else { 0.0 };
            block.iter().map(move |x| f64::from((x * inverse).round_ties_even()) * f64::from(top / 127.0))
        })
        .collect()
}

/// Compares with `f64` the products of rows of weights with rows of `k` activations, which are
/// quantized to 8 bits.
fn multiplied(what: &str, y: &[f32], x: &[f32], numbers: &[f32], k: usize) {
    let seen: Vec<f64> = x.chunks(k.max(1)).flat_map(quantized).collect();
    let n = numbers.len().checked_div(k).unwrap_or(0);
    for (i, y) in y.iter().enumerate() {
        let terms = (0..k).map(|j| seen[i / n * k + j] * f64::from(numbers[i % n * k + j]));
        let size: f64 = terms.clone().map(f64::abs).sum();
        let value: f64 = terms.sum();
        // Each unit of 32 numbers rounds up to five times, and the sum of a warp five times more.
        // The rounded numbers are at most four times the sum of magnitudes.
        let off = 4.0 * (5.0 * k as f64 / 32.0 + 12.0) / f64::from(1 << 24) * size + 1e-37;
        assert!((f64::from(*y) - value).abs() <= off, "{what} at {i}: {y}, not {value}");
    }
}
