//! A function that does not exist: one error, which suggests an existing one.
use kernel_dsl::prelude::*;

#[device]
fn square(x: f32) -> f32 {
    x * x
}

#[kernel(block = 256, grid = y.len().div_ceil(256))]
pub fn squares(y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = squaer(y[i]);
    }
}

fn main() {
    println!("{} {}", squares::PTX, square(1.0));
}
