//! Code that is legal on sm_61 and slow there, beside a faster way to the same result.
//!
//! `kernels report` finds it in the code, without a run.

use crate::{Bug, bug, counted, zeros};
use kernel_dsl::prelude::*;
use runtime::testing::Input;

pub const BUGS: &[Bug] = &[
    bug!(factor_as_an_f64, slow "f64-arithmetic", [counted(32), zeros(32)]),
    bug!(
        row_of_an_index,
        slow "integer-division",
        [Input::scalar(32usize), Input::slice(&[2.0f32, 3.0]), counted(64), zeros(64)]
    ),
    bug!(hash_of_64_bits, slow "64-bit-multiply", [Input::slice(&[7u32; 32]), Input::slice(&[0u32; 32])]),
    bug!(quotients_summed, slow "float-division", [Input::slice(&[3.0f32]), counted(128), zeros(32)]),
    bug!(longest_of_vectors, slow "square-root", [counted(128), counted(128), zeros(32)]),
    bug!(bins_of_floats, slow "shared-atomic-loop", [counted(64), zeros(64)]),
    bug!(tile_without_pad, slow "bank-conflict", [products(), Input::view(&[0f32; 1024], [32, 32])]),
    bug!(taps_put_into_constants, slow "constant-serialization", [counted(32), zeros(32)]),
    bug!(row_of_each_lane, slow "scattered-access", [products(), zeros(32)]),
    bug!(warp_and_a_half, slow "partial-warp", [counted(48), zeros(48)]),
];

/// Returns a multiplication table, which is symmetric.
fn products() -> Input {
    let values: Vec<f32> = (0..1024).map(|i| (i / 32 * (i % 32)) as f32).collect();
    Input::view(&values, [32, 32])
}

/// an `f64` factor makes the product an `f64`
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn factor_as_an_f64<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = if MENDED { x[i] * 1.609344 } else { (x[i] as f64 * 1.609344) as f32 }; //~ f64-arithmetic
}

/// an index is split by a division, although the block index is the row
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(factors.len() == 2, x.len() == 64, y.len() == 64)]
fn row_of_an_index<const MENDED: bool>(cols: usize, factors: &[f32], x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    let row = if MENDED { block::x() } else { i / cols }; //~ integer-division
    y[i] = factors[row] * x[i];
}

/// a hash is multiplied in 64 bits, and only 24 bits are used
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn hash_of_64_bits<const MENDED: bool>(x: &[u32], y: &mut [u32]) {
    let i = thread::x();
    y[i] = if MENDED {
        x[i].wrapping_mul(0x9e37_79b9) >> 8
    } else {
        let wide = x[i] as u64;
        let hash = wide.wrapping_mul(0x9e37_79b9_7f4a_7c15); //~ 64-bit-multiply
        (hash >> 40) as u32
    };
}

/// each iteration of a loop divides by the same value
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(largest.len() == 1, y.len() == 32)]
fn quotients_summed<const MENDED: bool>(largest: &[f32], x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let by = if MENDED { 1.0 / largest[0] } else { largest[0] };
    let mut sum = 0.0;
    for k in (i..x.len()).step_by(32) {
        sum += if MENDED { x[k] * by } else { x[k] / by }; //~ float-division
    }
    y[i] = sum;
}

/// the root of each square is computed, instead of the root of the largest
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == y.len(), z.len() == 32)]
fn longest_of_vectors<const MENDED: bool>(x: &[f32], y: &[f32], z: &mut [f32]) {
    let i = thread::x();
    let mut longest: f32 = 0.0;
    for k in (i..x.len()).step_by(32) {
        let square = x[k] * x[k] + y[k] * y[k];
        longest = longest.max(if MENDED { square } else { square.sqrt() }); //~ square-root
    }
    z[i] = if MENDED { longest.sqrt() } else { longest };
}

/// atomic additions of floats in shared memory, for which there is no instruction
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn bins_of_floats<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    if MENDED {
        let bins = Shared::<u32, 1>::new([32]);
        bins.fill(0);
        block::sync();
        bins.fetch_add(t % 32, x[t] as u32);
        block::sync();
        y[t] = bins[t % 32] as f32;
    } else {
        let bins = Shared::<f32, 1>::new([32]);
        bins.fill(0.0);
        block::sync();
        bins.fetch_add(t % 32, x[t]); //~ shared-atomic-loop
        block::sync();
        y[t] = bins[t % 32];
    }
}

/// a tile whose row length is the number of banks is read by columns
#[kernel(block = (32, 32), grid = 1, instances(MENDED = false | true))]
#[requires(x.rows() == 32, x.cols() == 32, y.rows() == 32, y.cols() == 32)]
fn tile_without_pad<const MENDED: bool>(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    let mut tile = Shared::<f32, 2>::with_pitch([32, 32], if MENDED { 33 } else { 32 });
    let (row, col) = (thread::y(), thread::x());
    tile[(row, col)] = x[(row, col)];
    block::sync();
    y[(row, col)] = tile[(col, row)]; //~ bank-conflict
}

#[device(constant)]
const PINNED: [f32; 8] = [1.0, 7.0, 21.0, 35.0, 35.0, 21.0, 7.0, 1.0];

#[device]
const TAPS: [f32; 8] = [1.0, 7.0, 21.0, 35.0, 35.0, 21.0, 7.0, 1.0];

/// a table in constant memory, of which each lane reads a different element
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn taps_put_into_constants<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let weight = if MENDED { TAPS[i % 8] } else { PINNED[i % 8] }; //~ constant-serialization
    y[i] = x[i] * weight;
}

/// row sums of a symmetric matrix, where each lane reads its own row
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.rows() == 32, x.cols() == 32, y.len() == 32)]
fn row_of_each_lane<const MENDED: bool>(x: View<f32, 2>, y: &mut [f32]) {
    let t = thread::x();
    let mut sum = 0.0;
    for k in 0..x.cols() {
        sum += if MENDED { x[(k, t)] } else { x[(t, k)] }; //~ scattered-access
    }
    y[t] = sum;
}

/// the block has one and a half warps
#[kernel(block = if MENDED { 64 } else { 48 }, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == y.len())]
fn warp_and_a_half<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    //~^ partial-warp
    let i = thread::x();
    if i < y.len() {
        y[i] = 2.0 * x[i];
    }
}
