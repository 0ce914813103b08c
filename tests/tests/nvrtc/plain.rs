//! Kernels that copy and add.

use kernel_dsl::prelude::*;

/// Computes y ← a·x + y.
#[kernel(block = 256, grid = y.len().div_ceil(256))]
#[requires(x.len() == y.len())]
pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = a.mul_add(x[i], y[i]);
    }
}

/// Computes one sum per thread, with a stride of the number of threads.
#[kernel(block = 256, grid = sums.len() / 256)]
#[requires(sums.len() % 256 == 0)]
pub fn strided_sum(x: &[f32], sums: &mut [f32]) {
    let mut sum = 0.0;
    for i in (grid::index()..x.len()).step_by(grid::threads()) {
        sum += x[i];
    }
    sums[grid::index()] = sum;
}

/// Computes sums of 256 elements.
#[kernel(block = 256, grid = sums.len())]
#[requires(sums.len() == x.len().div_ceil(256))]
pub fn block_sum(x: &[f32], sums: &mut [f32]) {
    let i = grid::index();
    let sum = block::sum(if i < x.len() { x[i] } else { 0.0 });
    if thread::x() == 0 {
        sums[block::x()] = sum;
    }
}

/// Computes prefix sums of each 32 elements.
#[kernel(block = 256, grid = y.len().div_ceil(256))]
#[requires(x.len() == y.len())]
pub fn warp_scan(x: &[u32], y: &mut [u32]) {
    let i = grid::index();
    let mut sum = if i < x.len() { x[i] } else { 0 };
    for k in unroll(0..5) {
        if let Some(other) = warp::shuffle_up(sum, 1 << k) {
            sum = sum.wrapping_add(other);
        }
    }
    if i < y.len() {
        y[i] = sum;
    }
}

/// Transposes by 32 × 32 tiles with a padding of one element.
#[kernel(block = (32, 8), grid = (x.cols().div_ceil(32), x.rows().div_ceil(32)))]
#[requires(y.rows() == x.cols(), y.cols() == x.rows())]
pub fn transpose(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    let mut tile = Shared::<f32, 2>::padded([32, 32]);
    let (row, col) = (block::y() * 32 + thread::y(), block::x() * 32 + thread::x());
    for i in unroll(0..4) {
        if row + 8 * i < x.rows() && col < x.cols() {
            tile[(thread::y() + 8 * i, thread::x())] = x[(row + 8 * i, col)];
        }
    }
    block::sync();
    let (row, col) = (block::x() * 32 + thread::y(), block::y() * 32 + thread::x());
    for i in unroll(0..4) {
        if row + 8 * i < y.rows() && col < y.cols() {
            y[(row + 8 * i, col)] = tile[(thread::x(), thread::y() + 8 * i)];
        }
    }
}

/// Counts bytes in 256 bins in shared memory, four bytes per load, with one atomic addition per bin
/// at the end.
#[kernel(block = 256, grid = blocks as usize)]
#[requires(x.len() % 4 == 0, x.aligned(4), bins.len() == 256)]
pub fn histogram(x: &[u8], bins: &mut [u32], blocks: u32) {
    let mut h = Shared::<u32, 1>::new([256]);
    h[thread::x()] = 0;
    block::sync();
    for i in (grid::index()..x.len() / 4).step_by(grid::threads()) {
        let v: [u8; 4] = x.load(4 * i);
        for j in unroll(0..4) {
            h.fetch_add(v[j] as usize, 1);
        }
    }
    block::sync();
    bins.fetch_add(thread::x(), h[thread::x()]);
}

/// Computes the mean of a point and its four neighbors, inside a border of one element.
#[kernel(block = (32, 8), grid = (x.cols().div_ceil(32), x.rows().div_ceil(8)))]
#[requires(y.rows() == x.rows(), y.cols() == x.cols())]
pub fn stencil(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    let (c, r) = (block::x() * 32 + thread::x() + 1, block::y() * 8 + thread::y() + 1);
    if r + 1 < x.rows() && c + 1 < x.cols() {
        let mut sum = x[(r, c)] + x[(r - 1, c)];
        sum += x[(r + 1, c)];
        sum += x[(r, c - 1)];
        sum += x[(r, c + 1)];
        y[(r, c)] = sum * 0.2;
    }
}
