//! Mistakes of instances, reported at their token, with the instance unless all instances have it.
use kernel_dsl::prelude::*;

#[kernel(block = 256, grid = 1, instances(N = 64 | 128))]
pub fn too_much<const N: usize>(y: &mut [f32]) {
    let mut tile = Shared::<f32, 2>::new([N, N]);
    tile[(0, 0)] = 1.0;
    y[0] = tile[(0, 0)];
}

#[device]
fn sum(n: usize) -> f32 {
    let mut s = 0.0;
    for i in unroll(0..n) {
        s += i as f32;
    }
    s
}

#[kernel(block = 256, grid = 1)]
pub fn unrolls(n: usize, y: &mut [f32]) {
    for i in unroll(0..n) {
        y[i] = 1.0;
    }
    y[0] = sum(n);
}

#[kernel(block = N, grid = 1, instances(N = 32 | 48))]
pub fn asserted<const N: usize>(y: &mut [f32]) {
    const { assert!(N % 32 == 0, "N is a number of whole warps") };
    y[0] = 1.0;
}

fn main() {
    println!("{} {} {}", too_much::<64>::PTX, unrolls::PTX, asserted::<48>::PTX);
}
