//! A loop that is to be unrolled, and whose bounds are known at run time only.
use kernel_dsl::prelude::*;

#[kernel(block = 32, grid = 1)]
pub fn fill(n: usize, y: &mut [f32]) {
    for i in unroll(0..n) {
        y[i] = 1.0;
    }
}

fn main() {
    println!("{}", fill::PTX);
}
