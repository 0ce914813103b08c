//! A block's tile of a matrix product, from global memory to accumulators in registers: the core of
//! [`gemm`](super::tiled::gemm).
//!
//! # The tile
//!
//! A block owns `BM` × `BN` elements of C and iterates over K in steps of `BK`. In shared memory k
//! is the row index of both operands, A as `[BK, BM]` and B as `[BK, BN]`. Therefore an outer
//! product reads a piece of a row of each:
//!
//! ```text
//!                 B  [BK, BN]                       a warp's piece of C: 16·QM × 32·QN
//!               ┌───────────────┐                     ┌─ 32 ──┬─ 32 ──┐
//!             k │▒▒▒▒  ▒▒▒▒     │                     │0 2 4 …│0 2 4 …│  lanes as 4 × 8; an odd lane
//!               └───────────────┘                  16 │1 3 5 …│1 3 5 …│  lies below the even one
//!   A [BK, BM]         │                              │16 18 …│16 18 …│
//!   ┌─────────┐   ┌────▼──────────┐                   │17 19 …│17 19 …│
//!   │ k │▒▒▒▒ ├──▶│ QM·4 × QN·4   │                   ├───────┼───────┤
//!   │   │▒▒▒▒ │   │ accumulators  │                16 │0 2 4 …│0 2 4 …│  each lane has a 4 × 4 square
//!   └─────────┘   │ a thread      │                   │ …     │ …     │  in each of the QM · QN pieces
//!                 └───────────────┘                   └───────┴───────┘
//! ```
//!
//! Fragments are loaded by `ld.shared.v4`, which shared memory serves for eight lanes at a time.
//! Eight lanes access 2 × 16 bytes of A's row and 4 × 16 of B's, one word in each bank: no bank
//! conflicts, and the fewest wavefronts. Fragments of k + 1 are loaded during the multiplications
//! of k.
//!
//! ```text
//!   bank           0-3  4-7  8-11 12-15 16-19 20-23 24-27 28-31
//!   A, lanes 0-7   l0   l1                                       lanes 2, 4, 6 and 3, 5, 7 read the same words
//!     lanes 16-23            l16  l17
//!   B, lanes 0-7   l0   l2   l4   l6                             an odd lane reads what the even one before it does
//!     lanes 8-15                        l8    l10   l12   l14
//! ```
//!
//! # Two tiles per iteration
//!
//! Shared memory holds two K tiles. The loop's body is unrolled for both, so that every address in
//! shared memory is a constant offset from one register. Besides the multiplications, only pointer
//! increments and one comparison remain. The next tile is loaded from global memory to registers at
//! the beginning of a tile, and stored before its last two products; there is one barrier per tile.
//! The last tile is multiplied after the loop, because no tile follows it. Therefore the loop has
//! no test for a next tile, which for 16-bit floats would be a select per element. Tiles of 16-bit
//! floats have twice the products, because their loads fill the same number of registers.
//!
//! # Edges
//!
//! K need not be a multiple of `BK`: the first tile is the partial one, and its loads are masked.
//! All later tiles are full. Rows of A and columns of B beyond the last are zeros or copies of the
//! last. The results of these rows and columns belong to no element of C. Therefore blocks at the
//! edge run the same loop as all others, and only their stores are masked.

use kernel_dsl::prelude::*;

/// Loads a thread's share of an operand's K tile from global memory to registers, as groups of four
/// elements: by one access each if `V` is 4, otherwise by four.
///
/// With `k_major`, the matrix is `[width, K]` in memory: k runs along its rows (A untransposed, B
/// transposed). Otherwise the matrix is `[K, width]` (B untransposed, A transposed). Only the first
/// `left` of the tile's `depth` products exist.
#[device]
fn fetch<T: Float, const N: usize, const V: usize>(
    g: View<T, 2>,
    k_major: bool,
    width: usize,
    depth: usize,
    left: usize,
) -> [[T; 4]; N] {
    let mut out = [[T::from_f32(0.0); 4]; N];
    if k_major {
        for (s, [w, quad]) in unroll(block::share([width, depth / 4]).enumerate()) {
            let row = w.min(g.rows() - 1);
            if V == 4 {
                if left == depth || quad * 4 < left {
                    out[s] = g.load((row, quad * 4));
                }
            } else {
                for i in unroll(0..4) {
                    if left == depth || quad * 4 + i < left {
                        out[s][i] = g[(row, quad * 4 + i)];
                    }
                }
            }
        }
    } else {
        for (s, [k, quad]) in unroll(block::share([depth, width / 4]).enumerate()) {
            if left == depth || k < left {
                if V == 4 {
                    out[s] = g.load((k, (quad * 4).min(g.cols() - 4)));
                } else {
                    for i in unroll(0..4) {
                        if quad * 4 + i < g.cols() {
                            out[s][i] = g[(k, quad * 4 + i)];
                        }
                    }
                }
            }
        }
    }
    out
}

/// Stores the result of [`fetch`] to shared memory, as `f32`: row k of `to` is row k of the tile.
/// The conversion is here and not in `fetch`, where it would wait for memory.
#[device]
fn put<T: Float, const N: usize>(mut to: Shared<f32, 2>, k_major: bool, width: usize, from: &[[T; 4]; N]) {
    let depth = to.dim(0);
    if k_major {
        for (s, [w, quad]) in unroll(block::share([width, depth / 4]).enumerate()) {
            for i in unroll(0..4) {
                to[(quad * 4 + i, w)] = from[s][i].to_f32();
            }
        }
    } else {
        for (s, [k, quad]) in unroll(block::share([depth, width / 4]).enumerate()) {
            to.store((k, quad * 4), from[s].map(T::to_f32));
        }
    }
}

/// Computes acc += a·bᵀ, row by row in alternating directions. An operand that two consecutive
/// products share then stays in the multipliers' register cache, and fewer products read two
/// registers of one bank.
#[device]
pub fn outer<const QM: usize, const QN: usize>(
    acc: &mut [[[[f32; 4]; 4]; QN]; QM],
    a: &[[f32; 4]; QM],
    b: &[[f32; 4]; QN],
) {
    for i in unroll(0..4 * QM) {
        for x in unroll(0..4 * QN) {
            let j = if i % 2 == 0 { x } else { 4 * QN - 1 - x };
            let sum = acc[i / 4][j / 4][i % 4][j % 4];
            acc[i / 4][j / 4][i % 4][j % 4] = a[i / 4][i % 4].mul_add(b[j / 4][j % 4], sum);
        }
    }
}

/// Computes acc += a·bᵀ by squares of 4 × 4 elements, in alternating directions. Four registers of
/// an operand are free after each square, for the next loads. The function is for products without
/// spare registers.
#[device]
pub fn outer_by_squares<const QM: usize, const QN: usize>(
    acc: &mut [[[[f32; 4]; 4]; QN]; QM],
    a: &[[f32; 4]; QM],
    b: &[[f32; 4]; QN],
) {
    for n in unroll(0..QN) {
        for turn in unroll(0..QM) {
            let m = if n % 2 == 0 { turn } else { QM - 1 - turn };
            for i in unroll(0..4) {
                for x in unroll(0..4) {
                    let j = if i % 2 == 0 { x } else { 3 - x };
                    acc[m][n][i][j] = a[m][i].mul_add(b[n][j], acc[m][n][i][j]);
                }
            }
        }
    }
}

/// Returns the row and column of a thread's first 4 × 4 square in the block's tile: the warps row
/// by row, the lanes as the diagram shows.
#[device]
pub fn corner(wide: usize, rows: usize, cols: usize) -> (usize, usize) {
    let (warp, lane) = (warp::index(), warp::lane());
    let (r, c) = (lane / 16 * 2 + lane % 2, lane % 16 / 2);
    (warp / wide * rows + r * 4, warp % wide * cols + c * 4)
}

/// Computes A·B for one block. `a` begins at the tile's first row, `b` at its first column, and
/// both at the first of `depth` products.
#[device]
pub fn product<
    A: Float,
    B: Float,
    const BM: usize,
    const BN: usize,
    const BK: usize,
    const QM: usize,
    const QN: usize,
    const V: usize,
    const TA: bool,
    const TB: bool,
    const LA: usize,
    const LB: usize,
>(
    a: View<A, 2>,
    b: View<B, 2>,
    depth: usize,
    row: usize,
    col: usize,
) -> [[[[f32; 4]; 4]; QN]; QM] {
    // Transposed operands are stored down a column. A pitch of 4 more than the width avoids bank
    // conflicts of a warp's stores.
    let sa = Shared::<f32, 3>::with_pitch([2, BK, BM], if TA { BM } else { BM + 4 });
    let sb = Shared::<f32, 3>::with_pitch([2, BK, BN], if TB { BN + 4 } else { BN });

    let mut acc = [[[[0.0f32; 4]; 4]; QN]; QM];
    let (mut fa, mut fb) = ([[[0.0f32; 4]; QM]; 2], [[[0.0f32; 4]; QN]; 2]);

    // The partial tile first: its size is the pointers' first increment.
    let mut tiles = depth.div_ceil(BK).max(1);
    let short = depth - (tiles - 1) * BK;
    put::<A, LA>(sa.at(0), !TA, BM, &fetch::<A, LA, V>(a, !TA, BM, BK, short));
    put::<B, LB>(sb.at(0), TB, BN, &fetch::<B, LB, V>(b, TB, BN, BK, short));
    let (mut ag, mut bg) = (skip_products(a, !TA, short), skip_products(b, TB, short));
    block::sync();
    for p in unroll(0..QM) {
        fa[0][p] = sa.load((0, 0, row + 16 * p));
    }
    for q in unroll(0..QN) {
        fb[0][q] = sb.load((0, 0, col + 32 * q));
    }

    // Computes all tiles but the last. `last` becomes the buffer of the last tile.
    let mut last = 0;
    'tiles: while tiles > 1 {
        for buf in unroll(0..2) {
            let na = fetch::<A, LA, V>(ag, !TA, BM, BK, BK);
            let nb = fetch::<B, LB, V>(bg, TB, BN, BK, BK);
            let (of_a, of_b) = (sa.at(buf), sb.at(buf));
            for k in unroll(0..BK - 2) {
                read(&mut fa[(k + 1) % 2], &mut fb[(k + 1) % 2], of_a, of_b, k + 1, row, col);
                outer(&mut acc, &fa[k % 2], &fb[k % 2]);
            }
            put::<A, LA>(sa.at(1 - buf), !TA, BM, &na);
            put::<B, LB>(sb.at(1 - buf), TB, BN, &nb);
            read(&mut fa[1], &mut fb[1], of_a, of_b, BK - 1, row, col);
            outer(&mut acc, &fa[0], &fb[0]);
            block::sync();
            for p in unroll(0..QM) {
                fa[0][p] = sa.load((1 - buf, 0, row + 16 * p));
            }
            for q in unroll(0..QN) {
                fb[0][q] = sb.load((1 - buf, 0, col + 32 * q));
            }
            outer(&mut acc, &fa[1], &fb[1]);
            (ag, bg) = (skip_products(ag, !TA, BK), skip_products(bg, TB, BK));
            tiles -= 1;
            last = 1 - buf;
            if buf == 0 && tiles == 1 {
                break 'tiles;
            }
        }
    }
    let (sa, sb) = (sa.at(last), sb.at(last));
    // Unrolling would keep too many fragments in registers.
    for k in rolled((0..BK).step_by(2)) {
        two_products(&mut acc, &mut fa, &mut fb, sa, sb, k, row, col);
    }
    acc
}

/// Loads the fragments of product k of a tile.
#[device]
fn read<const QM: usize, const QN: usize>(
    fa: &mut [[f32; 4]; QM],
    fb: &mut [[f32; 4]; QN],
    sa: Shared<f32, 2>,
    sb: Shared<f32, 2>,
    k: usize,
    row: usize,
    col: usize,
) {
    for q in unroll(0..QN) {
        fb[q] = sb.load((k, col + 32 * q));
    }
    for p in unroll(0..QM) {
        fa[p] = sa.load((k, row + 16 * p));
    }
}

/// Computes products k and k + 1 of a tile. The fragments of k must be loaded; those of k + 2 are
/// loaded on return.
#[device]
fn two_products<const QM: usize, const QN: usize>(
    acc: &mut [[[[f32; 4]; 4]; QN]; QM],
    fa: &mut [[[f32; 4]; QM]; 2],
    fb: &mut [[[f32; 4]; QN]; 2],
    sa: Shared<f32, 2>,
    sb: Shared<f32, 2>,
    k: usize,
    row: usize,
    col: usize,
) {
    for i in unroll(0..2) {
        if k + i + 1 < sa.dim(0) {
            read(&mut fa[1 - i], &mut fb[1 - i], sa, sb, k + i + 1, row, col);
        }
        outer::<QM, QN>(acc, &fa[i], &fb[i]);
    }
}

/// Returns the matrix from its `k`-th product on.
#[device]
fn skip_products<T: Float>(g: View<T, 2>, k_major: bool, k: usize) -> View<T, 2> {
    if k_major { g.offset((0, k)) } else { g.offset((k, 0)) }
}
