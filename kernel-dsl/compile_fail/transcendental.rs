//! Methods whose results depend on the host's library.
use kernel_dsl::prelude::*;

#[kernel(block = 32, grid = 1)]
pub fn methods(x: &[f32], y: &mut [f32]) {
    let x = x[thread::x()];
    y[thread::x()] = x.exp() + x.sin();
    y[thread::x()] = f32::powf(x, 2.0);
}

#[kernel(block = 32, grid = 1)]
pub fn double(x: &[f64], y: &mut [f64]) {
    let x = x[thread::x()];
    y[thread::x()] = x.exp() + x.sinh();
}

#[kernel(block = 32, grid = 1)]
pub fn unknown(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = x[thread::x()].next_up();
}

fn main() {}
