//! The first kernel: y ← a·x + y, on a GPU if there is one, otherwise on the CPU.
//!
//! ```text
//! cargo run --release -p kernels-rs --example saxpy
//! ```

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// Computes y ← a·x + y.
// A block has 256 threads, and a launch has enough blocks for all elements.
#[kernel(block = 256, grid = y.len().div_ceil(256))]
// The launch checks this condition, so that the kernel need not.
#[requires(x.len() == y.len())]
pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    // The index of this thread in the grid.
    let i = grid::index();
    // The last block may have more threads than there are elements left.
    if i < y.len() {
        y[i] = a.mul_add(x[i], y[i]);
    }
}

/// Runs the kernel and prints its PTX.
pub fn main() -> Result<(), Box<dyn Error>> {
    let n = 1000;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();

    let device = Device::best()?;
    let x = device.upload(&x)?;
    let mut y = device.upload(&vec![1.0f32; n])?;
    saxpy::launch(&device, 2.0, &x, &mut y)?;
    let y = y.download()?;
    assert!((0..n).all(|i| y[i] == 2.0 * i as f32 + 1.0));
    println!("y[999] = {}", y[999]);

    // A launch with wrong arguments is rejected before it runs.
    let mut short = device.zeros::<f32>(n - 1)?;
    let error = saxpy::launch(&device, 2.0, &x, &mut short).expect_err("y is shorter than x");
    println!("\n{error}");

    // The kernel was compiled together with this program; its PTX is a constant.
    println!("\n{}", saxpy::PTX);
    Ok(())
}
