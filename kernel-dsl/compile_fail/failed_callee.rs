//! A mistake in a device function is reported there, and not again in its callers.
use kernel_dsl::prelude::*;

#[device]
fn broken(x: f32) -> f32 {
    let text = "x";
    x
}

#[device]
fn middle(x: f32) -> f32 {
    broken(x)
}

#[kernel(block = 256, grid = 1)]
pub fn k(y: &mut [f32]) {
    y[0] = middle(y[0]);
}

fn main() {
    println!("{} {}", k::PTX, middle(1.0));
}
