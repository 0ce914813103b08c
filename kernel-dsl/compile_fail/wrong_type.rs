//! A value of the wrong type, in a kernel and in a device function: rustc's own errors, once each.
use kernel_dsl::prelude::*;

#[device]
fn half(x: f32) -> f32 {
    let y: f64 = x / 2.0;
    y
}

#[kernel(block = 256, grid = y.len().div_ceil(256))]
pub fn fill(y: &mut [f32]) {
    let i: u32 = grid::index();
    y[0] = half(1.0);
}

fn main() {
    println!("{}", fill::PTX);
}
