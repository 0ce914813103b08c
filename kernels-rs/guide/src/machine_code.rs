#![doc = include_str!(concat!(env!("OUT_DIR"), "/08_machine_code.md"))]

use kernel_dsl::prelude::*;

/// Computes y ← a·x + y for four elements a thread.
#[kernel(block = 256, grid = y.len().div_ceil(1024))]
#[requires(x.len() == y.len(), x.len() % 4 == 0, x.aligned(4), y.aligned(4))]
pub fn axpy_by_four(a: f32, x: &[f32], y: &mut [f32]) {
    let i = 4 * grid::index();
    if i < y.len() {
        let (xs, mut ys): ([f32; 4], [f32; 4]) = (x.load(i), y.load(i));
        for j in unroll(0..4) {
            ys[j] = a.mul_add(xs[j], ys[j]);
        }
        y.store(i, ys);
    }
}

/// Divides each element by a number that all threads share.
#[kernel(block = 256, grid = y.len().div_ceil(256))]
pub fn divide(by: f32, y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] /= by;
    }
}
