//! Collective operations that not all threads reach: the operation, and the reason, line by line.
use kernel_dsl::prelude::*;

#[kernel(block = 256, grid = y.len().div_ceil(256))]
pub fn normalized(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i >= y.len() {
        return;
    }
    let total = block::sum(x[i]);
    y[i] = x[i] / total;
}

#[device]
fn odd(i: usize) -> bool {
    i & 1 == 1
}

#[device]
fn handed_on(x: f32, i: usize) -> f32 {
    if odd(i) { warp::shuffle_xor(x, 1) } else { x }
}

#[kernel(block = 64, grid = 1)]
pub fn pairs(y: &mut [f32]) {
    let lane = warp::lane();
    y[lane] = handed_on(y[lane], lane);
}

#[kernel(block = N, grid = 1, instances(N = 32 | 64))]
pub fn by_instance<const N: usize>(y: &mut [f32]) {
    let mut best = 0.0;
    if thread::x() / 32 == 0 {
        best = block::max(y[thread::x()]);
    }
    y[0] = best;
}

fn main() {
    println!("{} {} {}", normalized::PTX, pairs::PTX, by_instance::<32>::PTX);
}
