//! A function of the host, called from a kernel: it has no `#[device]`.
use kernel_dsl::prelude::*;

fn helper(x: f32) -> f32 {
    x + 1.0
}

#[kernel(block = 256, grid = y.len().div_ceil(256))]
pub fn k(y: &mut [f32]) {
    let i = grid::index();
    y[i] = helper(y[i]);
}

fn main() {
    println!("{} {}", k::PTX, helper(1.0));
}
