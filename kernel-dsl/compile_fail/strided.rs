//! Views with arbitrary strides are not views of rows.

use kernel_dsl::prelude::*;

#[kernel(block = 32, grid = 1)]
fn at_once(x: Strided<f32, 1>, y: &mut [f32]) {
    let four: [f32; 4] = x.load(thread::x() * 4);
    y[thread::x()] = four[0];
}

#[kernel(block = 32, grid = 1)]
#[requires(x.aligned(4))]
fn aligned(x: Strided<f32, 1>, y: &mut [f32]) {
    y[thread::x()] = x[0];
}

#[kernel(block = 32, grid = 1)]
fn written(mut x: Strided<f32, 1>, y: &mut [f32]) {
    x[thread::x()] = 1.0;
    y[thread::x()] = x[0];
}

#[device]
fn first(x: View<f32, 1>) -> f32 {
    x[0]
}

#[kernel(block = 32, grid = 1)]
fn as_a_view(x: Strided<f32, 1>, y: &mut [f32]) {
    y[thread::x()] = first(x);
}

#[kernel(block = 32, grid = 1)]
fn flat(x: Strided<f32, 3>, y: &mut [f32]) {
    y[thread::x()] = x.transposed()[(0, 0, 0)];
}

#[kernel(block = 32, grid = 1)]
fn of_rank_six(x: Strided<f32, 6>, y: &mut [f32]) {
    y[thread::x()] = x.stride(0) as f32;
}

fn main() {}
