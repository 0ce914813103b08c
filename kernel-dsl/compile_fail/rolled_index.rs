//! A register array indexed by the variable of a rolled loop; also in a device function.
use kernel_dsl::prelude::*;

#[device]
fn total(v: [f32; 8], n: usize) -> f32 {
    let mut sum = 0.0;
    for i in 0..n {
        sum += v[i];
    }
    sum
}

#[kernel(block = 32, grid = 1)]
pub fn reverse(n: usize, y: &mut [f32]) {
    let mut v = [0.0; 8];
    for i in rolled(0..8) {
        v[i] = y[7 - i];
    }
    y[0] = v[0];
}

#[kernel(block = 32, grid = 1)]
pub fn sum(n: usize, y: &mut [f32]) {
    y[0] = total([y[1]; 8], n);
}

fn main() {
    println!("{} {}", reverse::PTX, sum::PTX);
}
