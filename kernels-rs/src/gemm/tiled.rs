//! Kernels that compute C ← α·op(A)·op(B) + β·C by tiles, in `f32` for any storage format.

use super::epilogue::*;
use super::tile::{corner, product};
use kernel_dsl::prelude::*;

/// Returns the row and column of the tile of block `id`. Blocks are ordered in groups of `group`
/// rows of blocks, so that concurrent blocks share rows of A and columns of B in the L2 cache.
#[device]
pub fn grouped(id: usize, blocks_m: usize, blocks_n: usize, group: usize) -> (usize, usize) {
    let per = group * blocks_n;
    let first = id / per * group;
    let height = (blocks_m - first).min(group);
    (first + id % per % height, id % per / height)
}

/// Computes C ← epilogue(α·op(A)·op(B) + β·C), for each matrix of a batch. The epilogue counts the
/// matrices from `first`.
///
/// A is [batch, M, K], or [batch, K, M] with `TA`. B is [batch, K, N], or [batch, N, K] with `TB`.
/// C is [batch · `splits`, M, N]: with several `splits`, a part of each product, which
/// [`sum_splits`] adds.
#[kernel(
    block = T, min_blocks = 2, max_registers = 128,
    grid = (c.dim(1).div_ceil(BM) * c.dim(2).div_ceil(BN), splits, a.dim(0)),
    writes(c = once),
    instances(
        f32_128x128: A = f32, B = f32, C = f32, E = Identity, BM = 128, BN = 128, BK = 8, QM = 2, QN = 2, V = 4 | 1, TA = false | true, TB = false | true, T = 256;
        f16_128x128: A = f16, B = f16, C = f16, E = Identity, BM = 128, BN = 128, BK = 16, QM = 2, QN = 2, V = 4 | 1, TA = false, TB = false, T = 256;
        f16_128x128_v4_tb: A = f16, B = f16, C = f16, E = Identity, BM = 128, BN = 128, BK = 8, QM = 2, QN = 2, V = 4, TA = false, TB = true, T = 256;
        f16_128x128_v1_tb: A = f16, B = f16, C = f16, E = Identity, BM = 128, BN = 128, BK = 8, QM = 2, QN = 2, V = 1, TA = false, TB = true, T = 256;
        f32_64x128: A = f32, B = f32, C = f32, E = Identity, BM = 64, BN = 128, BK = 8, QM = 2, QN = 2, V = 4 | 1, TA = false | true, TB = false | true, T = 128;
        f16_64x128: A = f16, B = f16, C = f16, E = Identity, BM = 64, BN = 128, BK = 8, QM = 2, QN = 2, V = 4 | 1, TA = false, TB = false | true, T = 128;
        f32_16x128: A = f32, B = f32, C = f32, E = Identity, BM = 16, BN = 128, BK = 32, QM = 1, QN = 1, V = 4 | 1, TA = false | true, TB = false | true, T = 128;
        f16_16x128: A = f16, B = f16, C = f16, E = Identity, BM = 16, BN = 128, BK = 32, QM = 1, QN = 1, V = 4 | 1, TA = false, TB = false | true, T = 128
    ),
    derived(LA = BM * BK / (4 * T), LB = BK * BN / (4 * T)),
)]
#[requires(
    splits > 0, c.dim(0) == a.dim(0) * splits, b.dim(0) == a.dim(0),
    if TA { a.dim(2) == c.dim(1) } else { a.dim(1) == c.dim(1) },
    if TB { b.dim(1) == c.dim(2) } else { b.dim(2) == c.dim(2) },
    (if TA { a.dim(1) } else { a.dim(2) }) == (if TB { b.dim(2) } else { b.dim(1) }),
    a.aligned(V), b.aligned(V), c.aligned(V), a.dim(2) % V == 0, b.dim(2) % V == 0, c.dim(2) % V == 0,
    (if TA { a.dim(1) } else { a.dim(2) }) % V == 0,
)]
pub fn gemm<
    A: Float,
    B: Float,
    C: Float,
    E: Epilogue,
    const BM: usize,
    const BN: usize,
    const BK: usize,
    const QM: usize,
    const QN: usize,
    const V: usize,
    const TA: bool,
    const TB: bool,
    const T: usize,
    const LA: usize,
    const LB: usize,
>(
    alpha: f32,
    a: View<A, 3>,
    b: View<B, 3>,
    beta: f32,
    c: ViewMut<C, 3>,
    splits: usize,
    first: usize,
    epilogue: E,
) {
    const { assert!(BK % 4 == 0 && BM % (16 * QM) == 0 && BN % (32 * QN) == 0) };
    const { assert!(T == 32 * (BM / (16 * QM)) * (BN / (32 * QN))) };
    let (rows, cols) = (c.dim(1), c.dim(2));
    let (blocks_m, blocks_n) = (rows.div_ceil(BM), cols.div_ceil(BN));
    let (split, batch) = (block::y(), block::z());
    let (m, n) = grouped(block::x(), blocks_m, blocks_n, 8);
    let (row0, col0) = (m * BM, n * BN);
    let (row, col) = corner(BN / (32 * QN), 16 * QM, 32 * QN);
    let depth = if TA { a.dim(1) } else { a.dim(2) };
    let each = depth.div_ceil(splits).next_multiple_of(BK);
    let k0 = (split * each).min(depth);
    let depth = (depth - k0).min(each);
    let ab = if TA { a.at(batch).offset((k0, row0)) } else { a.at(batch).offset((row0, k0)) };
    let bb = if TB { b.at(batch).offset((col0, k0)) } else { b.at(batch).offset((k0, col0)) };
    let acc = product::<A, B, BM, BN, BK, QM, QN, V, TA, TB, LA, LB>(ab, bb, depth, row, col);

    let c = c.at(batch * splits + split);
    for i in unroll(0..4 * QM) {
        let r = row0 + row + i / 4 * 16 + i % 4;
        if r < rows {
            for q in unroll(0..QN) {
                for j in unroll(0..4 / V) {
                    let to = col0 + col + 32 * q + j * V;
                    if to < cols {
                        let mut x = [0.0f32; V];
                        for e in unroll(0..V) {
                            x[e] = acc[i / 4][q][i % 4][j * V + e];
                        }
                        store(alpha, x, beta, c, r, to, first + batch, epilogue);
                    }
                }
            }
        }
    }
}

/// Computes C ← epilogue(α·Σ parts + β·C): adds the parts of a product whose depth was split, in
/// their order.
///
/// `parts` is [batch · `splits`, M, N], and C is [batch, M, N].
#[kernel(
    block = 256,
    grid = ((c.dim(1) * c.dim(2).div_ceil(V)).div_ceil(256), c.dim(0)),
    writes(c = once),
    instances(f32: C = f32, E = Identity, V = 4 | 1; f16: C = f16, E = Identity, V = 4 | 1),
)]
#[requires(
    splits > 0, parts.dim(0) == c.dim(0) * splits, parts.dim(1) == c.dim(1), parts.dim(2) == c.dim(2),
    parts.aligned(V), c.aligned(V), c.dim(2) % V == 0,
)]
pub fn sum_splits<C: Float, E: Epilogue, const V: usize>(
    alpha: f32,
    parts: View<f32, 3>,
    splits: usize,
    beta: f32,
    c: ViewMut<C, 3>,
    first: usize,
    epilogue: E,
) {
    let batch = block::y();
    let (quads, id) = (c.dim(2).div_ceil(V), block::x() * 256 + thread::index());
    let (row, col) = (id / quads, id % quads * V);
    if row < c.dim(1) {
        let mut sum = [0.0f32; V];
        for s in 0..splits {
            let part: [f32; V] = parts.load((batch * splits + s, row, col));
            for e in unroll(0..V) {
                sum[e] += part[e];
            }
        }
        store(alpha, sum, beta, c.at(batch), row, col, first + batch, epilogue);
    }
}
