//! Matrix products.

use kernel_dsl::prelude::*;

/// Computes C = A·B by 16 × 16 tiles in shared memory, with zeros beyond the edges.
#[kernel(block = (16, 16), grid = (c.cols().div_ceil(16), c.rows().div_ceil(16)))]
#[requires(a.cols() == b.rows(), c.rows() == a.rows(), c.cols() == b.cols())]
pub fn tiled(a: View<f32, 2>, b: View<f32, 2>, mut c: ViewMut<f32, 2>) {
    let (mut ta, mut tb) = (Shared::<f32, 2>::new([16, 16]), Shared::<f32, 2>::new([16, 16]));
    let (x, y) = (thread::x(), thread::y());
    let (row, col) = (block::y() * 16 + y, block::x() * 16 + x);
    let mut acc = 0.0;
    for t in (0..a.cols()).step_by(16) {
        ta[(y, x)] = if row < a.rows() && t + x < a.cols() { a[(row, t + x)] } else { 0.0 };
        tb[(y, x)] = if t + y < b.rows() && col < b.cols() { b[(t + y, col)] } else { 0.0 };
        block::sync();
        for i in unroll(0..16) {
            acc = ta[(y, i)].mul_add(tb[(i, x)], acc);
        }
        block::sync();
    }
    if row < c.rows() && col < c.cols() {
        c[(row, col)] = acc;
    }
}

/// Computes C = A·B with 128 × 128 × 8 elements per block and 8 × 8 per thread, as 2 × 2 quads of 4
/// × 4.
///
/// Shared memory is double-buffered, and global loads are a tile ahead. Extents are multiples of
/// the tile.
#[kernel(block = 256, min_blocks = 2, grid = (c.cols() / 128, c.rows() / 128))]
#[requires(a.cols() == b.rows(), c.rows() == a.rows(), c.cols() == b.cols(), a.aligned(4), b.aligned(4), c.aligned(4))]
#[requires(c.rows() % 128 == 0, c.cols() % 128 == 0, a.cols() % 8 == 0, a.cols() > 0)]
pub fn blocked(a: View<f32, 2>, b: View<f32, 2>, c: ViewMut<f32, 2>) {
    let mut sa = Shared::<f32, 3>::with_pitch([2, 8, 128], 132);
    let sb = Shared::<f32, 3>::new([2, 8, 128]);
    let (tid, warp, lane) = (thread::x(), warp::index(), warp::lane());
    let (row0, col0) = (block::y() * 128, block::x() * 128);
    let (tr, tc) = (warp / 2 * 32 + lane / 8 * 4, warp % 2 * 64 + lane % 8 * 4);
    let (ar, av, br, bv) = (tid / 2, tid % 2 * 4, tid / 32, tid % 32 * 4);
    let (mut ag, mut bg) = (a.offset((row0, 0)), b.offset((0, col0)));
    let mut acc = [[0.0f32; 8]; 8];
    let (mut na, mut nb): ([f32; 4], [f32; 4]) = (ag.load((ar, av)), bg.load((br, bv)));
    for i in unroll(0..4) {
        sa[(0, av + i, ar)] = na[i];
    }
    sb.store((0, br, bv), nb);
    block::sync();
    let (mut buf, tiles) = (0, a.cols() / 8);
    for t in rolled(0..tiles) {
        let more = t + 1 < tiles;
        if more {
            ag = ag.offset((0, 8));
            bg = bg.offset((8, 0));
            na = ag.load((ar, av));
            nb = bg.load((br, bv));
        }
        for i in unroll(0..8) {
            let x: [[f32; 4]; 2] = [sa.load((buf, i, tr)), sa.load((buf, i, tr + 16))];
            let y: [[f32; 4]; 2] = [sb.load((buf, i, tc)), sb.load((buf, i, tc + 32))];
            for p in unroll(0..8) {
                for q in unroll(0..8) {
                    acc[p][q] = x[p / 4][p % 4].mul_add(y[q / 4][q % 4], acc[p][q]);
                }
            }
        }
        if more {
            buf ^= 1;
            for i in unroll(0..4) {
                sa[(buf, av + i, ar)] = na[i];
            }
            sb.store((buf, br, bv), nb);
            block::sync();
        }
    }
    for p in unroll(0..8) {
        for q in unroll(0..2) {
            let quad = [acc[p][4 * q], acc[p][4 * q + 1], acc[p][4 * q + 2], acc[p][4 * q + 3]];
            c.store((row0 + tr + p / 4 * 16 + p % 4, col0 + tc + q * 32), quad);
        }
    }
}
