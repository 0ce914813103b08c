//! A float plus an integer.
use kernel_dsl::prelude::*;

#[kernel(block = 256, grid = y.len().div_ceil(256))]
pub fn ramp(y: &mut [f32]) {
    let i = grid::index();
    y[i] = y[i] + i;
}

fn main() {
    println!("{}", ramp::PTX);
}
