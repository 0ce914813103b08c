//! Two mistakes of different kinds in one kernel, and one in another: three errors.
use kernel_dsl::prelude::*;

#[kernel(block = 256, grid = y.len().div_ceil(256))]
pub fn first(y: &mut [f32]) {
    let i = grid::index();
    y[i] = 1u32;
    let v = vec![1.0, 2.0];
}

#[kernel(block = 256, grid = y.len().div_ceil(256))]
pub fn second(y: &mut [f32]) {
    y[grid::index()] = missing;
}

fn main() {
    println!("{} {}", first::PTX, second::PTX);
}
