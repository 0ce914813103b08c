//! Parameters that a launch cannot pass: each is reported once.
use kernel_dsl::prelude::*;

#[kernel(block = 64, grid = 1)]
pub fn optional(a: Option<f32>, y: &mut [f32]) {
    y[thread::x()] = a.unwrap_or(1.0);
}

#[kernel(block = 64, grid = 1)]
pub fn nested(a: &[&[f32]], y: &mut [f32]) {
    y[thread::x()] = a[0][1];
}

#[kernel(block = 64, grid = 1)]
pub fn of_views(a: View<&f32, 1>, y: &mut [f32]) {
    y[thread::x()] = 1.0;
}

#[kernel(block = 64, grid = 1)]
pub fn pair(a: (f32, f32), y: &mut [f32]) {
    y[thread::x()] = a.0 + a.1;
}

#[kernel(block = 64, grid = 1)]
pub fn single(y: &mut f32) {
    *y = 1.0;
}

#[kernel(block = 64, grid = 1)]
pub fn four(y: &mut [f32; 4]) {
    y[0] = 1.0;
}

#[kernel(block = 64, grid = 1)]
pub fn grown(y: &mut Vec<f32>) {
    y[0] = 1.0;
}

#[kernel(block = 64, grid = 1)]
pub fn called(f: impl Fn(f32) -> f32, y: &mut [f32]) {
    y[thread::x()] = f(y[thread::x()]);
}

#[kernel(block = 64, grid = 1)]
pub fn in_shared(tile: Shared<f32, 1>, y: &mut [f32]) {
    y[thread::x()] = tile[0];
}

fn main() {}
