//! Barriers that not all threads of the block reach.
//!
//! The branches here depend on values in memory. Where a branch depends on thread indices alone,
//! the compiler rejects the kernel.

use crate::{Bug, bug, zeros};
use kernel_dsl::prelude::*;
use runtime::testing::Input;

pub const BUGS: &[Bug] = &[
    bug!(return_before_it, DivergentBarrier, [by_warp(), zeros(96)]),
    bug!(in_a_branch, DivergentBarrier, [by_lane(), zeros(64)]),
    bug!(in_a_loop_of_each_warp, DivergentBarrier, [by_warp(), zeros(96)]),
    bug!(one_on_each_side, DivergentBarrier, [by_warp(), zeros(96)]),
    bug!(reduction_in_a_branch, DivergentBarrier, [by_warp(), zeros(96)]),
    bug!(left_by_break, DivergentBarrier, [by_warp(), zeros(96)]),
    bug!(in_a_loop_of_each_lane, DivergentBarrier, [by_lane(), zeros(64)]),
];

/// Returns a number for each of three warps: 1, 2, 3.
fn by_warp() -> Input {
    Input::slice(&[1u32, 2, 3])
}

/// Returns 1 and 2 alternately.
fn by_lane() -> Input {
    Input::slice(&[1u32, 2].repeat(32))
}

/// warps without work return before the barrier
#[kernel(block = 96, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 3, y.len() == 96)]
fn return_before_it<const MENDED: bool>(x: &[u32], y: &mut [f32]) {
    let t = thread::x();
    if !MENDED && x[t / 32] > 1 {
        return;
    }
    let mut tile = Shared::<f32, 1>::new([96]);
    tile[t] = 1.0;
    block::sync(); //~ divergent-barrier
    y[t] = tile[t];
}

/// a barrier in a branch that only some lanes take
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn in_a_branch<const MENDED: bool>(x: &[u32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([64]);
    if MENDED {
        tile[t] = 1.0;
        block::sync();
    } else if x[t] > 1 {
        tile[t] = 1.0;
        block::sync(); //~ divergent-barrier
    }
    y[t] = if x[t] > 1 { tile[t] } else { 0.0 };
}

/// a barrier in a loop whose number of iterations depends on the warp
#[kernel(block = 96, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 3, y.len() == 96)]
fn in_a_loop_of_each_warp<const MENDED: bool>(x: &[u32], y: &mut [f32]) {
    let t = thread::x();
    let n = if MENDED { 3 } else { x[t / 32] as usize };
    let mut sum = 0.0;
    for k in 0..n {
        sum += k as f32;
        block::sync(); //~ divergent-barrier
    }
    y[t] = sum;
}

/// one barrier on each side of a branch, which are two different barriers
#[kernel(block = 96, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 3, y.len() == 96)]
fn one_on_each_side<const MENDED: bool>(x: &[u32], y: &mut [f32]) {
    let t = thread::x();
    let mut own = 1.0;
    if MENDED {
        own = if x[t / 32] > 1 { 2.0 } else { 3.0 };
        block::sync();
    } else if x[t / 32] > 1 {
        own = 2.0;
        block::sync();
    } else {
        own += 2.0;
        block::sync(); //~ divergent-barrier
    }
    y[t] = own;
}

/// a block reduction, which contains barriers, in a branch that only some warps take
#[kernel(block = 96, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 3, y.len() == 96)]
fn reduction_in_a_branch<const MENDED: bool>(x: &[u32], y: &mut [f32]) {
    let t = thread::x();
    if MENDED {
        let all = block::max(x[t / 32]) as f32;
        y[t] = if x[t / 32] > 1 { all } else { 0.0 };
    } else if x[t / 32] > 1 {
        y[t] = block::max(x[t / 32]) as f32; //~ divergent-barrier, uninitialized-shared
    }
}

/// warps leave a loop before the barrier at its end
#[kernel(block = 96, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 3, y.len() == 96)]
fn left_by_break<const MENDED: bool>(x: &[u32], y: &mut [f32]) {
    let t = thread::x();
    let mut sum = 0.0;
    for k in 0..3 {
        if !MENDED && k as u32 == x[t / 32] {
            break;
        }
        sum += 1.0;
        block::sync(); //~ divergent-barrier
    }
    y[t] = sum;
}

/// a barrier in a loop whose number of iterations depends on the lane
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn in_a_loop_of_each_lane<const MENDED: bool>(x: &[u32], y: &mut [f32]) {
    let t = thread::x();
    let n = if MENDED { 2 } else { x[t] };
    let mut sum = 0.0;
    for k in 0..n {
        sum += k as f32;
        block::sync(); //~ divergent-barrier
    }
    y[t] = sum;
}
