//! Misspelt names in device functions: the errors of rustc.

use kernel_dsl::prelude::*;

#[device]
fn square(x: f32) -> f32 {
    x * x
}

#[device]
fn twice(x: f32) -> f32 {
    squaer(x) + squaer(x)
}

#[kernel(block = 32, grid = 1)]
pub fn k(y: &mut [f32]) {
    y[0] = twice(y[1]);
}

fn main() {}
