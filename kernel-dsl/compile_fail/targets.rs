//! Features that a kernel's target lacks, and invalid targets.

use kernel_dsl::prelude::*;

#[kernel(block = 32, grid = 1)]
pub fn peers(x: &[u32], y: &mut [u32]) {
    let i = thread::index();
    y[i] = warp::match_any(x[i]);
}

#[kernel(target = sm_35, block = 32, grid = 1)]
pub fn kepler(y: &mut [u32]) {
    y[thread::index()] = target::SM;
}

fn main() {}
