//! A sum of all elements: grid-stride loops, reductions of a block, and a fixed order of addition.
//!
//! ```text
//! cargo run --release -p kernels-rs --example reduce
//! ```
//!
//! Atomic additions would add the blocks' sums in an arbitrary order, and floats would give another
//! result each time. Two launches give the same bits on every device.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// Computes the dot product of each block's part of x and y.
#[kernel(block = 256, grid = parts.len(), writes(parts = once))]
#[requires(x.len() == y.len(), !parts.is_empty())]
pub fn dot_parts(x: &[f32], y: &[f32], parts: &mut [f32]) {
    let mut sum = 0.0f32;
    // Any grid computes all elements: each thread continues after the whole grid.
    for i in (grid::index()..x.len()).step_by(grid::threads()) {
        sum = x[i].mul_add(y[i], sum);
    }
    // All threads of the block take part, in an order that is stated and the same everywhere.
    let sum = block::sum(sum);
    if thread::index() == 0 {
        parts[block::x()] = sum;
    }
}

/// Adds up the parts, in one block.
#[kernel(block = 256, grid = 1, writes(total = once))]
#[requires(total.len() == 1)]
pub fn dot_total(parts: &[f32], total: &mut [f32]) {
    let mut sum = 0.0f32;
    for i in (thread::index()..parts.len()).step_by(256) {
        sum += parts[i];
    }
    let sum = block::sum(sum);
    if thread::index() == 0 {
        total[0] = sum;
    }
}

/// Computes a dot product twice, and compares it with plain Rust in `f64`.
pub fn main() -> Result<(), Box<dyn Error>> {
    let n = 10_000;
    let x: Vec<f32> = (0..n).map(|i| (i % 1000) as f32 / 1000.0).collect();
    let y: Vec<f32> = (0..n).map(|i| 1.0 / (1 + i % 7) as f32).collect();
    let exact: f64 = x.iter().zip(&y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();

    let device = Device::best()?;
    let (x, y) = (device.upload(&x)?, device.upload(&y)?);
    let mut parts = device.zeros::<f32>(8)?;
    let mut totals = [0.0f32; 2];
    for result in &mut totals {
        let mut total = device.zeros::<f32>(1)?;
        dot_parts::launch(&device, &x, &y, &mut parts)?;
        dot_total::launch(&device, &parts, &mut total)?;
        *result = total.download()?[0];
    }
    assert_eq!(totals[0].to_bits(), totals[1].to_bits());
    assert!((f64::from(totals[0]) - exact).abs() < 1e-6 * exact);
    println!("x · y = {} twice; in f64 {exact:.4}", totals[0]);
    Ok(())
}
