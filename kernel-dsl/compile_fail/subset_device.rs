//! Valid Rust that the device or the target does not support, rejected for an instance. The first
//! line over each item describes it.
#![allow(unused)]

use kernel_dsl::prelude::*;

/// A register array with an index that depends on the launch
#[kernel(block = 32, grid = 1)]
pub fn indexed(n: usize, y: &mut [f32]) {
    let v = [1.0, 2.0, 3.0];
    y[0] = v[n];
}

/// A register array with the index of a loop that is not unrolled
#[kernel(block = 32, grid = 1)]
pub fn indexed_in_loop(y: &mut [f32]) {
    let v = [1.0, 2.0, 3.0];
    for i in rolled(0..3) {
        y[i] = v[i];
    }
}

/// A constant index beyond an array
#[kernel(block = 32, grid = 1, instances(N = 4))]
pub fn beyond<const N: usize>(y: &mut [f32]) {
    let v = [1.0, 2.0, 3.0];
    y[0] = v[N];
}

/// A register array that is too large for a thread
#[kernel(block = 32, grid = 1)]
pub fn oversized(y: &mut [f32]) {
    let v = [0.0; 100_000];
    y[0] = v[1];
}

/// `unroll` of a range that depends on the launch
#[kernel(block = 32, grid = 1)]
pub fn unrolled(n: usize, y: &mut [f32]) {
    for i in unroll(0..n) {
        y[i] = 1.0;
    }
}

/// `unroll` of too many copies
#[kernel(block = 32, grid = 1)]
pub fn too_many(y: &mut [f32]) {
    for i in unroll(0..1_000_000) {
        y[i] = 1.0;
    }
}

/// A constant assertion that does not hold
#[kernel(block = 32, grid = 1, instances(N = 3))]
pub fn asserted<const N: usize>(y: &mut [f32]) {
    const { assert!(N % 2 == 0) };
    y[0] = N as f32;
}

/// A block of more than 1024 threads
#[kernel(block = 2048, grid = 1)]
pub fn large_block(y: &mut [f32]) {
    y[0] = 1.0;
}

/// A block with more than 48 KB of shared memory
#[kernel(block = 32, grid = 1)]
pub fn large_shared(y: &mut [f32]) {
    let s = Shared::<f32, 1>::new([20_000]);
    s.fill(0.0);
    block::sync();
    y[0] = s[0];
}

/// A shared array whose shape is not constant
#[kernel(block = 32, grid = 1)]
pub fn shaped_by_launch(n: usize, y: &mut [f32]) {
    let s = Shared::<f32, 1>::new([n]);
    s.fill(0.0);
    block::sync();
    y[0] = s[0];
}

/// A pitch below the row's length
#[kernel(block = 32, grid = 1)]
pub fn short_pitch(y: &mut [f32]) {
    let s = Shared::<f32, 2>::with_pitch([4, 8], 6);
    s.fill(0.0);
    block::sync();
    y[0] = s[(0, 0)];
}

/// A shared array over a smaller one
#[kernel(block = 32, grid = 1)]
pub fn over_smaller(y: &mut [f32]) {
    let s = Shared::<f32, 1>::new([8]);
    let p = Shared::<f32, 1>::over(s, [16]);
    p.fill(0.0);
    block::sync();
    y[0] = p[0];
}

/// A barrier that some threads do not reach
#[kernel(block = 64, grid = 1)]
pub fn parted_barrier(y: &mut [f32]) {
    if thread::x() < 10 {
        block::sync();
    }
    y[0] = 1.0;
}

/// A barrier after a `return` of some threads
#[kernel(block = 64, grid = 1)]
pub fn left_barrier(y: &mut [f32]) {
    if thread::x() >= y.len() {
        return;
    }
    block::sync();
    y[0] = 1.0;
}

/// A shuffle that some lanes do not reach
#[kernel(block = 64, grid = 1)]
pub fn parted_shuffle(x: &[f32], y: &mut [f32]) {
    if thread::x() % 2 == 0 {
        y[0] = warp::sum(x[0]);
    }
}

/// A reduction in a loop that lanes leave one by one
#[kernel(block = 64, grid = 1)]
pub fn parted_loop(x: &[f32], y: &mut [f32]) {
    for i in 0..thread::x() {
        y[i] = warp::max(x[i]);
    }
}

/// A block with a partial warp
#[kernel(block = 48, grid = 1)]
pub fn half_warp(x: &[f32], y: &mut [f32]) {
    y[0] = warp::sum(x[0]);
}

/// A group of lanes that is not a power of two
#[kernel(block = 64, grid = 1)]
pub fn odd_group(x: &[f32], y: &mut [f32]) {
    y[0] = warp::group::<5>().sum(x[0]);
}

/// A group of more lanes than a warp has
#[kernel(block = 64, grid = 1)]
pub fn large_group(x: &[f32], y: &mut [f32]) {
    y[0] = warp::group::<64>().sum(x[0]);
}

/// A feature that the target lacks
#[kernel(block = 64, grid = 1)]
pub fn later_target(x: &[u32], y: &mut [u32]) {
    y[0] = warp::match_any(x[0]);
}

/// A target that does not exist
#[kernel(block = 64, grid = 1, target = sm_62)]
pub fn unknown_target(y: &mut [f32]) {
    y[0] = 1.0;
}

/// A float of 16 bits in an atomic sum
#[kernel(block = 64, grid = 1)]
pub fn half_atomic(x: &[f16], y: &mut [f16]) {
    y.fetch_add(0, x[0]);
}

/// A float in an atomic comparison of bits
#[kernel(block = 64, grid = 1)]
pub fn float_exchange(y: &mut [f32]) {
    y.compare_exchange(0, 1.0, 2.0);
}

/// A `copy_async` to an array of dynamic size
#[kernel(block = 64, grid = 1)]
pub fn dynamic_ahead(x: View<f32, 1>, y: &mut [f32]) {
    let s = Shared::<f32, 1>::dynamic([x.len()]);
    s.copy_async(x).wait();
    block::sync();
    y[0] = s[0];
}

/// A `copy_async` of more elements than registers hold
#[kernel(block = 32, grid = 1)]
pub fn large_ahead(x: View<f32, 1>, y: &mut [f32]) {
    let s = Shared::<f32, 1>::new([10_000]);
    s.copy_async(x).wait();
    block::sync();
    y[0] = s[0];
}

/// A token that joins its own value with another copy
#[kernel(block = 64, grid = 1)]
pub fn growing_token(x: View<f32, 1>, y: &mut [f32]) {
    let s = Shared::<f32, 1>::new([64]);
    let mut coming = Pending::none();
    for i in 0..3 {
        coming = coming.and(s.copy_async(x));
    }
    coming.wait();
    block::sync();
    y[0] = s[0];
}

/// `load` of more than 16 elements
#[kernel(block = 64, grid = 1)]
pub fn wide_load(x: &[f32], y: &mut [f32]) {
    let v = x.load::<32>(0);
    y[0] = v[0];
}

/// `pow` with an exponent that is not constant
#[kernel(block = 64, grid = 1)]
pub fn power(n: u32, x: &[u32], y: &mut [u32]) {
    y[0] = x[0].pow(n);
}

/// A step that is a constant 0
#[kernel(block = 64, grid = 1, instances(N = 0))]
pub fn standing<const N: usize>(y: &mut [f32]) {
    for i in (0..4).step_by(N) {
        y[i] = 1.0;
    }
}

fn main() {}
