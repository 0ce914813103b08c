//! The work of the streams.

use kernel_dsl::prelude::*;

/// Computes y ← y + x, `times` times per element: long enough for the host to return while it runs.
#[kernel(block = 256, grid = y.len().div_ceil(256))]
#[requires(x.len() == y.len())]
pub fn add(times: u32, x: &[u32], y: &mut [u32]) {
    let i = grid::index();
    if i < y.len() {
        let mut sum = y[i];
        for _ in rolled(0..times) {
            sum = sum.wrapping_mul(3).wrapping_add(x[i]);
        }
        y[i] = sum;
    }
}

/// Returns the result of `add` for one element.
pub fn added(times: u32, x: u32, y: u32) -> u32 {
    (0..times).fold(y, |y, _| y.wrapping_mul(3).wrapping_add(x))
}
