//! Unused results and parameters, which rustc reports once, at the tokens of the kernel.
#![deny(unused)]
use kernel_dsl::prelude::*;

#[kernel(block = 32, grid = y.len().div_ceil(n))]
pub fn drops(n: usize, scale: f32, x: View<f32, 1>, y: &mut [f32]) {
    let row = thread::x();
    let left = y.len();
    x.offset(row);
    warp::sum(1.0);
    y[row].max(0.0);
    y[0] = 1.0;
}

fn main() {
    println!("{}", drops::PTX);
}
