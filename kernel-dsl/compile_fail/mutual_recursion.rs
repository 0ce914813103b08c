//! Device functions that call each other.
use kernel_dsl::prelude::*;

#[device]
fn even(n: u32) -> bool {
    if n == 0 { true } else { odd(n - 1) }
}

#[device]
fn odd(n: u32) -> bool {
    if n == 0 { false } else { even(n - 1) }
}

#[kernel(block = 32, grid = 1)]
pub fn parity(y: &mut [u32]) {
    y[0] = even(y[1]) as u32;
}

fn main() {
    println!("{} {}", parity::PTX, even(2));
}
