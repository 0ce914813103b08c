//! Sums of bytes along one dimension, which products with zero points need.

use crate::fold::{along_x, along_y, block_at};
use kernel_dsl::prelude::*;

/// Computes sums[i, r] = Σ over c of x[i, r, c], with one warp per row. Sums wrap.
#[kernel(
    block = 256, grid = (along_x(x.dim(1).div_ceil(8), x.dim(0), 1), along_y(x.dim(0), 1)),
    instances(V = 16 | 1), writes(sums = once),
)]
#[requires(sums.dim(0) == x.dim(0), sums.dim(1) == x.dim(1), x.aligned(V), x.dim(2) % V == 0)]
pub fn sum_rows<const V: usize>(x: View<i8, 3>, mut sums: ViewMut<i32, 2>) {
    let [of_matrix, batch, _] = block_at(x.dim(1).div_ceil(8), x.dim(0));
    let row = of_matrix * 8 + warp::index();
    if row >= x.dim(1) {
        return;
    }
    let mut sum = 0i32;
    for c in (warp::lane() * V..x.dim(2)).step_by(32 * V) {
        let q: [i8; V] = x.load((batch, row, c));
        if V == 1 {
            sum += q[0] as i32;
        }
        for j in unroll(0..V / 4) {
            sum = dp4a([q[4 * j], q[4 * j + 1], q[4 * j + 2], q[4 * j + 3]], [1i8; 4], sum);
        }
    }
    let sum = warp::sum(sum);
    if warp::lane() == 0 {
        sums[(batch, row)] = sum;
    }
}

/// Computes sums[i, c] = Σ over r of x[i, r, c]. A block has 32 · V columns, and each of its warps
/// every eighth row. Sums wrap.
#[kernel(
    block = 256, grid = (along_x(x.dim(2).div_ceil(32 * V), x.dim(0), 1), along_y(x.dim(0), 1)),
    instances(V = 4 | 1), writes(sums = once),
)]
#[requires(sums.dim(0) == x.dim(0), sums.dim(1) == x.dim(2), x.aligned(V), x.dim(2) % V == 0)]
pub fn sum_columns<const V: usize>(x: View<i8, 3>, mut sums: ViewMut<i32, 2>) {
    let parts = Shared::<i32, 2>::new([8, 32 * V]);
    let [of_matrix, batch, _] = block_at(x.dim(2).div_ceil(32 * V), x.dim(0));
    let (first, lane) = (of_matrix * 32 * V, warp::lane() * V);
    let col = first + lane;
    let mut sum = [0i32; V];
    if col < x.dim(2) {
        for r in (warp::index()..x.dim(1)).step_by(8) {
            let q: [i8; V] = x.load((batch, r, col));
            for j in unroll(0..V) {
                sum[j] += q[j] as i32;
            }
        }
    }
    parts.store((warp::index(), lane), sum);
    block::sync();
    let t = thread::index();
    if t < 32 * V && first + t < x.dim(2) {
        let mut all = 0i32;
        for w in unroll(0..8) {
            all += parts[(w, t)];
        }
        sums[(batch, first + t)] = all;
    }
}
