//! Names of CUDA and of Rust's library: one error each, with what to write instead.
use kernel_dsl::prelude::*;

#[kernel(block = 64, grid = 1)]
pub fn variables(y: &mut [f32]) {
    let i = threadIdx.x + blockIdx.x * blockDim.x;
    y[i] = 1.0;
    let lanes = warpSize;
}

#[kernel(block = 64, grid = 1)]
pub fn functions(y: &mut [f32]) {
    let i = thread::x();
    sync_threads();
    __syncthreads();
    y[i] = __shfl_xor_sync(0xffff_ffff, y[i], 1);
    atomicAdd(&mut y[i], 1.0);
    y[i] = fmaf(y[i], 2.0, expf(1.0));
}

#[kernel(block = 64, grid = 1)]
pub fn paths(y: &mut [f32]) {
    let i = thread::y_index();
    thread::sync_threads();
    block::barrier();
    y[i] = warp::shfl(y[i], 1);
}

#[kernel(block = 64, grid = 1)]
pub fn traits(y: &mut [f32]) {
    let x: f32 = Default::default();
    y[thread::x()] = x + From::from(1.0f32);
}

#[kernel(block = 64, grid = 1)]
pub fn heap(y: &mut [f32]) {
    y[0] = String::new();
}

#[device]
fn lane() -> usize {
    threadIdx.x % warpSize
}

#[device]
fn sqrtf(x: f32) -> f32 {
    x.sqrt()
}

fn main() {
    println!("{} {}", lane(), sqrtf(1.0));
}
