//! Indices beyond their extents.

use crate::{Bug, bug, counted, zeros};
use kernel_dsl::prelude::*;
use runtime::testing::Input;

pub const BUGS: &[Bug] = &[
    bug!(guard_off_by_one, OutOfBounds, [counted(100), zeros(100)]),
    bug!(no_guard, OutOfBounds, [counted(100), zeros(100)]),
    bug!(right_neighbor, OutOfBounds, [counted(64), zeros(64)]),
    bug!(window_at_the_end, OutOfBounds, [counted(70), zeros(70)]),
    bug!(tile_turned, OutOfBounds, [counted(256), zeros(256)]),
    bug!(padding_of_a_row, OutOfBounds, [counted(32), zeros(32)]),
    bug!(into_the_next_row, OutOfBounds, [Input::view(&[1f32; 40], [4, 10]), zeros(4)]),
    bug!(rows_for_columns, OutOfBounds, [Input::view(&[1f32; 24], [3, 8]), Input::view(&[0f32; 24], [8, 3])]),
    bug!(last_bin, OutOfBounds, [Input::slice(&[0.0f32, 0.5, 1.0, 0.25]), Input::slice(&[0u32; 16])]),
    bug!(stride_over_the_other, OutOfBounds, [counted(200), zeros(150)]),
    bug!(beyond_a_table, OutOfBounds, [counted(32), zeros(32)]),
    bug!(vector_at_the_end, OutOfBounds, [counted(126), zeros(32)]),
    bug!(halo_without_room, OutOfBounds, [counted(64), zeros(64)]),
    bug!(ring_of_one_more, OutOfBounds, [counted(64), zeros(64)]),
    bug!(sized_by_the_other, OutOfBounds, [counted(48), zeros(64)]),
    bug!(gather_of_missing, OutOfBounds, [Input::slice(&[3u32, 0, u32::MAX, 2]), counted(4), zeros(4)]),
];

/// the guard admits one thread too many
#[kernel(block = 64, grid = y.len().div_ceil(64), instances(MENDED = false | true))]
#[requires(x.len() == y.len())]
fn guard_off_by_one<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if if MENDED { i < y.len() } else { i <= y.len() } {
        y[i] = 2.0 * x[i]; //~ out-of-bounds
    }
}

/// no guard, and a length that is not a multiple of the block size
#[kernel(block = 64, grid = y.len().div_ceil(64), instances(MENDED = false | true))]
#[requires(x.len() == y.len())]
fn no_guard<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if !MENDED || i < y.len() {
        y[i] = 2.0 * x[i]; //~ out-of-bounds
    }
}

/// a difference reads the right neighbor of the last element
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn right_neighbor<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let next = if MENDED { (i + 1).min(x.len() - 1) } else { i + 1 };
    y[i] = x[next] - x[i]; //~ out-of-bounds
}

/// a window of three elements begins at the last element
#[kernel(block = 64, grid = y.len().div_ceil(64), instances(MENDED = false | true))]
#[requires(x.len() == y.len())]
fn window_at_the_end<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        let mut sum = 0.0;
        for k in 0..3 {
            if !MENDED || i + k < x.len() {
                sum += x[i + k]; //~ out-of-bounds
            }
        }
        y[i] = sum;
    }
}

/// a tile is read with row and column exchanged
#[kernel(block = (32, 8), grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 256, y.len() == 256)]
fn tile_turned<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let (row, col, i) = (thread::y(), thread::x(), thread::index());
    let mut tile = Shared::<f32, 2>::new([8, 32]);
    tile[(row, col)] = x[i];
    block::sync();
    let (r, c) = if MENDED { (row, 31 - col) } else { (col, row) };
    y[i] = tile[(r, c)]; //~ out-of-bounds
}

/// an index reaches the padding of a row, which belongs to the array's memory
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn padding_of_a_row<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 2>::with_pitch([2, 32], 33);
    let one = if MENDED { 0 } else { 1 };
    tile[(0, t + one)] = x[t]; //~ out-of-bounds
    tile[(1, t)] = 1.0;
    block::sync();
    y[t] = tile[(1, t)];
}

/// a column beyond the end of its row, still inside the buffer
#[kernel(block = 4, grid = 1, instances(MENDED = false | true))]
#[requires(x.rows() == 4, y.len() == 4)]
fn into_the_next_row<const MENDED: bool>(x: View<f32, 2>, y: &mut [f32]) {
    let row = thread::x();
    let last = if MENDED { x.cols() - 1 } else { x.cols() };
    y[row] = x[(row, last)]; //~ out-of-bounds
}

/// a transposition is guarded by the extents of its input instead of its output
#[kernel(block = (8, 8), grid = 1, instances(MENDED = false | true))]
#[requires(y.rows() == x.cols(), y.cols() == x.rows())]
fn rows_for_columns<const MENDED: bool>(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    let (row, col) = (thread::y(), thread::x());
    let inside = if MENDED { row < y.rows() && col < y.cols() } else { row < x.rows() && col < x.cols() };
    if inside {
        y[(row, col)] = x[(col, row)]; //~ out-of-bounds
    }
}

/// the largest value falls into a bin that does not exist
#[kernel(block = 4, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 4, bins.len() == 16)]
fn last_bin<const MENDED: bool>(x: &[f32], bins: &mut [u32]) {
    let bin = (x[thread::x()] * 16.0) as usize;
    let bin = if MENDED { bin.min(15) } else { bin };
    bins.fetch_add(bin, 1); //~ out-of-bounds
}

/// a grid-stride loop is bounded by the longer of two buffers
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
fn stride_over_the_other<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let n = if MENDED { x.len().min(y.len()) } else { x.len() };
    for i in grid::stride(n) {
        y[i] = x[i]; //~ out-of-bounds
    }
}

#[device]
const WEIGHTS: [f32; 5] = [1.0, 4.0, 6.0, 4.0, 1.0];

/// an index beyond the end of a table of weights
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn beyond_a_table<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let taps = if MENDED { 5 } else { 6 };
    y[t] = x[t] * WEIGHTS[t % taps]; //~ out-of-bounds
}

/// loads of four elements from a buffer whose length is not a multiple of four
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(y.len() == 32)]
fn vector_at_the_end<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let v: [f32; 4] = if MENDED { x.load_or(4 * t, 0.0) } else { x.load(4 * t) }; //~ out-of-bounds
    y[t] = v[0] + v[1] + v[2] + v[3];
}

/// a tile without room for its halo
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn halo_without_room<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([if MENDED { 66 } else { 65 }]);
    tile[t] = x[t];
    if t < 2 {
        tile[64 + t] = 0.0; //~ out-of-bounds
    }
    block::sync();
    y[t] = tile[t] + tile[t + 1];
}

/// a ring buffer is indexed modulo one more than its length
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn ring_of_one_more<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut ring = Shared::<f32, 1>::new([64]);
    ring[t] = x[t];
    block::sync();
    let length = if MENDED { 64 } else { 65 };
    y[t] = ring[(t + 1) % length]; //~ out-of-bounds
}

/// shared memory has the size of one buffer and is indexed by the length of another
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() <= 64, y.len() == 64)]
fn sized_by_the_other<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut copy = Shared::<f32, 1>::dynamic([x.len()]);
    if !MENDED || t < x.len() {
        copy[t] = 1.0; //~ out-of-bounds
    }
    block::sync();
    y[t] = if t < x.len() { copy[t] * x[t] } else { 0.0 };
}

/// a gather uses the index `u32::MAX`, which marks a missing element
#[kernel(block = 4, grid = 1, instances(MENDED = false | true))]
#[requires(index.len() == 4, y.len() == 4)]
fn gather_of_missing<const MENDED: bool>(index: &[u32], x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let i = index[t] as usize;
    y[t] = if MENDED { x.get(i).copied().unwrap_or(0.0) } else { x[i] }; //~ out-of-bounds
}
