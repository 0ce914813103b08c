//! Device functions that call themselves, directly or through others.
use kernel_dsl::prelude::*;

#[device]
fn power(x: f32, n: u32) -> f32 {
    if n == 0 { 1.0 } else { x * power(x, n - 1) }
}

#[kernel(block = 32, grid = 1)]
pub fn powers(y: &mut [f32]) {
    y[0] = power(y[1], 3);
}

fn main() {
    println!("{} {}", powers::PTX, power(2.0, 3));
}
