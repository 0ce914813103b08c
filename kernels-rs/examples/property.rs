//! Property tests of a kernel: random sizes and values, every executor, and a failing case that is
//! shrunk.
//!
//! ```text
//! cargo run --release -p kernels-rs --example property
//! ```
//!
//! In a crate's tests the property ends with `.check()`, which panics with the same text.

use kernel_dsl::prelude::*;
use runtime::testing::{Expected, Input, property};
use std::error::Error;

/// Computes y ← the running maximum of each pair of neighbors.
#[kernel(block = 64, grid = y.len().div_ceil(64))]
#[requires(x.len() == y.len())]
pub fn neighbors(x: &[i32], y: &mut [i32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = if i > 0 { x[i].max(x[i - 1]) } else { x[i] };
    }
}

/// A copy of `neighbors` that is wrong at the first thread of each block.
#[kernel(block = 64, grid = y.len().div_ceil(64))]
#[requires(x.len() == y.len())]
pub fn neighbors_wrong(x: &[i32], y: &mut [i32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = if thread::x() > 0 { x[i].max(x[i - 1]) } else { x[i] };
    }
}

/// Returns what a kernel of (x, y) must write to y.
fn reference(inputs: &[Input]) -> Vec<Expected> {
    let x = inputs[0].to_vec::<i32>();
    let y = (0..x.len()).map(|i| x[i].max(x[i.saturating_sub(1)]));
    vec![Expected::exact(1, y.collect::<Vec<_>>())]
}

/// Tests the correct kernel and the wrong one.
pub fn main() -> Result<(), Box<dyn Error>> {
    let cases = |g: &mut runtime::testing::Gen| {
        let n = g.size("n", 64); // 0, 1, 63, 64, 65, 128, primes … and others
        [g.slice::<i32>(n), g.slice::<i32>(n)]
    };
    if let Err(counterexample) = property::<neighbors>().cases(cases).reference(reference).count(50).run() {
        return Err(counterexample.to_string().into());
    }
    println!("neighbors: 50 cases agree on every executor and with plain Rust\n");

    let wrong = property::<neighbors_wrong>().cases(cases).reference(reference).run();
    println!("{}", wrong.expect_err("65 elements show the fault"));
    Ok(())
}
