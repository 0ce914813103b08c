//! Assignments without `mut`: to a variable, a parameter, an element of a read-only slice.
use kernel_dsl::prelude::*;

#[kernel(block = 256, grid = x.len().div_ceil(256))]
pub fn sum(n: usize, x: &[f32], y: &mut [f32]) {
    let total = 0.0;
    for i in 0..n {
        total += x[i];
    }
    n = 1;
    x[0] = total;
    y[0] = total;
}

fn main() {
    println!("{}", sum::PTX);
}
