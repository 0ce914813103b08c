//! Blocks that no launch supports: without threads, and with too many.
use kernel_dsl::prelude::*;

#[kernel(block = (33, 32), grid = 1)]
pub fn crowded(y: &mut [f32]) {
    y[thread::index()] = 1.0;
}

#[kernel(block = T * T, grid = 1, instances(T = 0 | 32))]
pub fn deserted<const T: usize>(y: &mut [f32]) {
    y[thread::index()] = 1.0;
}

#[kernel(block = (1, 1, 128), grid = 1)]
pub fn deep(y: &mut [f32]) {
    y[thread::z()] = 1.0;
}

fn main() {
    println!("{} {} {}", crowded::PTX, deserted::<32>::PTX, deep::PTX);
}
