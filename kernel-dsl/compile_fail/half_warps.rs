//! Operations of whole warps, in a block that does not divide into warps.
use kernel_dsl::prelude::*;

#[device]
fn mean(x: f32) -> f32 {
    warp::sum(x) / 32.0
}

#[kernel(block = 48, grid = 1)]
pub fn sums(y: &mut [f32]) {
    y[warp::index()] = warp::sum(y[thread::x()]) + warp::max(y[0]);
}

#[kernel(block = (8, 6), grid = 1)]
pub fn means(y: &mut [f32]) {
    y[0] = mean(y[thread::x()]);
}

fn main() {
    println!("{} {}", sums::PTX, means::PTX);
}
