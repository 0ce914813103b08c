//! Blocks whose size the launch decides: required constants, and properties that are then unknown.
use kernel_dsl::prelude::*;

#[kernel(block = 32.., grid = 1)]
pub fn endless(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(block = 32..1024, grid = 1)]
pub fn half_open(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(block = y.len(), grid = 1)]
pub fn without_bound(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(block = 32..=2048, grid = 1)]
pub fn too_large(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(block = (8..=32, 8), grid = 1)]
pub fn inner(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(block = 32..=y.len(), grid = 1)]
pub fn to_an_argument(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(block = (32..=1024).step_by(16), grid = 1)]
pub fn half_warps(y: &mut [f32]) {
    y[warp::index()] = warp::sum(1.0);
}

#[kernel(block = y.len().min(256), grid = 1)]
pub fn any_number(y: &mut [f32]) {
    y[0] = block::sum(1.0);
}

#[kernel(block = 32..=1024, grid = 1)]
pub fn apart(y: &mut [f32]) {
    if thread::index() < block::threads() / 2 {
        block::sync();
    }
    y[0] = 1.0;
}

fn main() {
    println!("{}", apart::PTX);
}
