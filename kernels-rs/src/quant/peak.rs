//! A kernel of `dp4a` only, whose rate is the limit of products of bytes.

use kernel_dsl::prelude::*;

/// Executes 64 `dp4a` a round in each thread. `out` is the sum of the dot products of `x` rotated
/// left by 0 to 7 with `x` rotated right by 0 to 7, times `rounds`, modulo 2³².
#[kernel(block = 256, grid = out.len() / 256, writes(out = once))]
#[requires(x.len() == out.len(), out.len() % 256 == 0)]
pub fn dp4a_peak(x: &[i32], rounds: usize, out: &mut [i32]) {
    let x = x[grid::index()];
    let mut sums = [[0i32; 8]; 8];
    for _ in rolled(0..rounds) {
        for i in unroll(0..8) {
            for j in unroll(0..8) {
                sums[i][j] = dp4a(x.rotate_left(i as u32), x.rotate_right(j as u32), sums[i][j]);
            }
        }
    }
    let mut sum = 0i32;
    for i in unroll(0..8) {
        for j in unroll(0..8) {
            sum = sum.wrapping_add(sums[i][j]);
        }
    }
    out[grid::index()] = sum;
}
