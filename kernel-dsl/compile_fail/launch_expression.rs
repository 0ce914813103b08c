//! Mistakes in launch expressions: an unknown name, and other types than `usize` and `bool`.
use kernel_dsl::prelude::*;

#[kernel(block = 256, grid = z.len().div_ceil(256))]
pub fn one(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(block = 256, grid = a)]
#[requires(y.len())]
pub fn two(a: f32, y: &mut [f32]) {
    y[0] = a;
}

fn main() {
    println!("{} {}", one::PTX, two::PTX);
}
