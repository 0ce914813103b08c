//! The two matrix products of attention by a block of threads, from which the kernels of
//! [`prefill`](super::prefill) and [`backward`](super::backward) are built.
//!
//! [`scores`] computes A·Bᵀ of a tile of rows and a tile of 64 rows of another matrix, along the
//! head's dimension. [`accumulate`] adds P·B to accumulators as wide as a head, where P is computed
//! from the result of [`scores`]. The documentation of [`attention`](super) has a diagram.
//!
//! Constants of these functions and of the kernels:
//!
//! - `WIDTH`: the elements of a head that a block computes;
//! - `VECTOR`: the elements of an access, 4 or 1;
//! - `ROW_GROUPS`: the groups of four rows of a thread, 1 or 2; a step of
//!   [`prefill`](super::prefill) has as many tiles of keys;
//! - `SQUARES`: the squares of 4 × 4 elements that a thread accumulates of each group of rows;
//! - `LOADS`: the accesses of a thread for its share of a slice of [`accumulate`].

use super::rows::Rows;
use super::span::KEYS;
use crate::gemm::tile::{outer, outer_by_squares};
use kernel_dsl::prelude::*;

/// The depth of a slice: elements of the head's dimension in [`scores`], keys in [`accumulate`].
#[device]
pub const SLICE: usize = 8;

/// Returns the first row and column of a thread's first 4 × 4 square in the block's tile. A warp
/// has 16 rows and all columns. The lanes form 4 × 8 if a thread has `ROW_GROUPS` = 1 group of four
/// rows. With 2 groups, the second [`GROUP_STEP`] rows after the first, the lanes form 2 × 16.
/// Eight consecutive lanes, which load 16 bytes each, access two groups of rows and four of
/// columns.
#[device]
pub fn corner<const ROW_GROUPS: usize>(thread: usize) -> (usize, usize) {
    let (warp, lane) = (thread / 32, thread % 32);
    (warp * 16 + (lane / (16 * ROW_GROUPS) * 2 + lane % 2) * 4, lane % (16 * ROW_GROUPS) / 2 * 4)
}

/// The distance from a thread's first group of rows to its second, in rows.
#[device]
pub const GROUP_STEP: usize = 8;

/// Combines the values of all lanes with the same rows.
#[device]
pub fn of_row<const ROW_GROUPS: usize>(x: f32, combine: impl Fn(f32, f32) -> f32) -> f32 {
    let mut x = x;
    for step in unroll(1..3 + ROW_GROUPS) {
        x = combine(x, warp::shuffle_xor(x, 1 << step));
    }
    x
}

/// Loads a thread's share of a slice of [`scores`]: the block's rows from `first` on, elements from
/// `at` on. Elements beyond `depth` are zeros. Rows beyond the last repeat the last row; their
/// results are ignored. If `VECTOR` is 4 the share is one access, which requires `depth` to be a
/// multiple of the slice.
#[device]
pub fn fetch_rows<G: Rows, const N: usize, const VECTOR: usize>(
    g: G,
    thread: usize,
    first: usize,
    rows: usize,
    at: usize,
    depth: usize,
) -> G::Kept {
    let row = (first + thread / (SLICE / N)).min(rows - 1);
    let col = at + thread % (SLICE / N) * N;
    g.fetch::<N, VECTOR>(g.start(), row, thread / (SLICE / N), true, col, at, depth)
}

/// Stores the result of [`fetch_rows`] to shared memory, transposed: row k of `to` is element k of
/// the slice, and the rows of the operand begin at column `col`.
#[device]
pub fn put_rows<G: Rows, const N: usize>(mut to: Shared<f32, 3>, buf: usize, col: usize, thread: usize, from: G::Kept) {
    for i in unroll(0..N) {
        let first = thread % (SLICE / N) * N;
        to[(buf, first + i, col + thread / (SLICE / N))] = G::number(from, first, i);
    }
}

/// Loads a thread's share of a slice of [`accumulate`]: rows from `first` rows after `from` on,
/// with zeros beyond the last row and column. The slice begins at `from` in the tile.
#[device]
pub fn fetch_keys<G: Rows, const LOADS: usize, const WIDTH: usize, const VECTOR: usize>(
    g: G,
    from: G::From,
    thread: usize,
    first: usize,
    rows: usize,
) -> [G::Kept; LOADS] {
    let mut out = [G::zeros(); LOADS];
    for s in unroll(0..LOADS) {
        let id = thread + s * block::threads();
        let (key, col) = (first + id / (WIDTH / 4), id % (WIDTH / 4) * 4);
        let is_row = (LOADS * block::threads() == SLICE * WIDTH / 4 || id < SLICE * WIDTH / 4) && key < rows;
        out[s] = g.fetch::<4, VECTOR>(from, key, id / (WIDTH / 4), is_row, col, col, g.columns());
    }
    out
}

/// Stores the result of [`fetch_keys`] to shared memory.
#[device]
pub fn put_keys<G: Rows, const LOADS: usize, const WIDTH: usize>(
    to: Shared<f32, 2>,
    thread: usize,
    from: &[G::Kept; LOADS],
) {
    for s in unroll(0..LOADS) {
        let id = thread + s * block::threads();
        if LOADS * block::threads() == SLICE * WIDTH / 4 || id < SLICE * WIDTH / 4 {
            let col = id % (WIDTH / 4) * 4;
            let mut x = [0.0f32; 4];
            for i in unroll(0..4) {
                x[i] = G::number(from[s], col, i);
            }
            to.store((id / (WIDTH / 4), col), x);
        }
    }
}

/// Allocates two slices of both operands of [`scores`], with `rows` rows in total. Operands are
/// transposed, so that a thread stores down a column. A pitch of 4 more than the rows avoids bank
/// conflicts of a warp's stores.
#[device]
pub fn slices(rows: usize) -> Shared<f32, 3> {
    Shared::with_pitch([2, SLICE, rows], rows + 4)
}

/// Computes S ← A·Bᵀ of `BM` rows of `a` from `a0` on, and [`KEYS`] rows of `b` from each of the
/// `TILES` indices `b0` on. `SQUARES` is the number of squares of a group of rows. The first slices
/// must be in shared memory. There is one block barrier per slice, at its end.
#[device]
pub fn scores<
    A: Rows,
    B: Rows,
    const BM: usize,
    const NA: usize,
    const NB: usize,
    const VECTOR: usize,
    const ROW_GROUPS: usize,
    const TILES: usize,
    const SQUARES: usize,
>(
    a: A,
    a0: usize,
    rows: usize,
    b: B,
    b0: [usize; TILES],
    keys: usize,
    depth: usize,
    ab: Shared<f32, 3>,
    thread: usize,
) -> [[[[f32; 4]; 4]; SQUARES]; ROW_GROUPS] {
    let (row, col) = corner::<ROW_GROUPS>(thread);
    let mut s = [[[[0.0f32; 4]; 4]; SQUARES]; ROW_GROUPS];
    for at in rolled((0..depth).step_by(2 * SLICE)) {
        for buf in unroll(0..2) {
            let next = at + (buf + 1) * SLICE;
            // Each operand is in flight during its share of the slice's products, so that it
            // occupies registers only as long.
            let na = fetch_rows::<A, NA, VECTOR>(a, thread, a0, rows, next, depth);
            let mut nb = B::zeros();
            for piece in unroll(0..TILES + 1) {
                for k in unroll(SLICE * piece / (TILES + 1)..SLICE * (piece + 1) / (TILES + 1)) {
                    step(&mut s, ab, [buf, k, row, BM + col]);
                }
                if piece == 0 {
                    put_rows::<A, NA>(ab, 1 - buf, 0, thread, na);
                } else {
                    put_rows::<B, NB>(ab, 1 - buf, BM + (piece - 1) * KEYS, thread, nb);
                }
                if piece < TILES {
                    nb = fetch_rows::<B, NB, VECTOR>(b.of_tile(piece), thread, b0[piece], keys, next, depth);
                }
            }
            block::sync();
        }
    }
    s
}

/// Computes [`scores`] of two tiles of 64 rows, including the first slices, with a block of 128
/// threads. `SQUARES` is 2 / `ROW_GROUPS`.
#[device]
pub fn product<T: Float, const VECTOR: usize, const ROW_GROUPS: usize, const SQUARES: usize>(
    a: View<T, 2>,
    a0: usize,
    rows: usize,
    b: View<T, 2>,
    b0: usize,
    others: usize,
    depth: usize,
    ab: Shared<f32, 3>,
    thread: usize,
) -> [[[[f32; 4]; 4]; SQUARES]; ROW_GROUPS] {
    put_rows::<View<T, 2>, 4>(ab, 0, 0, thread, fetch_rows::<View<T, 2>, 4, VECTOR>(a, thread, a0, rows, 0, depth));
    put_rows::<View<T, 2>, 4>(
        ab,
        0,
        KEYS,
        thread,
        fetch_rows::<View<T, 2>, 4, VECTOR>(b, thread, b0, others, 0, depth),
    );
    block::sync();
    scores::<View<T, 2>, View<T, 2>, KEYS, 4, 4, VECTOR, ROW_GROUPS, 1, SQUARES>(
        a,
        a0,
        rows,
        b,
        [b0],
        others,
        depth,
        ab,
        thread,
    )
}

/// Adds one product to each element of S.
#[device]
fn step<const ROW_GROUPS: usize, const SQUARES: usize>(
    s: &mut [[[[f32; 4]; 4]; SQUARES]; ROW_GROUPS],
    ab: Shared<f32, 3>,
    at: [usize; 4],
) {
    let [buf, k, row, col] = at;
    let mut fa = [[0.0f32; 4]; ROW_GROUPS];
    for r in unroll(0..ROW_GROUPS) {
        fa[r] = ab.load::<4>((buf, k, row + r * GROUP_STEP));
    }
    let mut fb = [[0.0f32; 4]; SQUARES];
    for q in unroll(0..SQUARES) {
        fb[q] = ab.load::<4>((buf, k, col + 32 * ROW_GROUPS * q));
    }
    multiply::<ROW_GROUPS, SQUARES>(s, &fa, &fb);
}

/// Computes acc += a·bᵀ, in the order that leaves registers free for the next loads.
#[device]
fn multiply<const ROW_GROUPS: usize, const SQUARES: usize>(
    acc: &mut [[[[f32; 4]; 4]; SQUARES]; ROW_GROUPS],
    a: &[[f32; 4]; ROW_GROUPS],
    b: &[[f32; 4]; SQUARES],
) {
    if ROW_GROUPS == 1 {
        outer::<ROW_GROUPS, SQUARES>(acc, a, b);
    } else {
        outer_by_squares::<ROW_GROUPS, SQUARES>(acc, a, b);
    }
}

/// Allocates P, with a row for each key and a pitch of 4 more than the rows.
#[device]
pub fn weights(rows: usize) -> Shared<f32, 2> {
    Shared::with_pitch([KEYS, rows], rows + 4)
}

/// Returns the column at which the group of four rows beginning at `row` is stored in the row of P
/// for key `key`. Every second group of eight keys has another order. Eight lanes that store a
/// group each, for four keys, then access each bank once.
#[device]
pub fn group_column(row: usize, key: usize) -> usize {
    row ^ (key / 8 % 2 * 8)
}

/// Stores a thread's part of [`KEYS`] keys to shared memory, from which its warp reads rows of
/// keys. If S has more squares, only those of the first 64 keys are stored.
#[device]
pub fn share<const ROW_GROUPS: usize, const SQUARES: usize>(
    p: Shared<f32, 2>,
    thread: usize,
    s: &[[[[f32; 4]; 4]; SQUARES]; ROW_GROUPS],
) {
    let (row, col) = corner::<ROW_GROUPS>(thread);
    for r in unroll(0..ROW_GROUPS) {
        for q in unroll(0..2 / ROW_GROUPS) {
            for j in unroll(0..4) {
                let key = col + 32 * q + j;
                let at = (key, group_column(row + r * GROUP_STEP, col));
                p.store(at, [s[r][q][0][j], s[r][q][1][j], s[r][q][2][j], s[r][q][3][j]]);
            }
        }
    }
}

/// Returns the amount that the exponents of weights are lowered by for `keys` keys. The sum of
/// weights is then at most 1, and no sum of weighted values exceeds the largest value.
#[device]
pub fn lowered(keys: usize) -> f32 {
    keys.next_power_of_two().ilog2() as f32
}

/// Returns ln Σ exp(x) over `keys` keys. `max` is the largest x, and `sum` is Σ exp(x − max) with
/// [`lowered`] exponents. The result is −∞ if every x is −∞, and NaN if one is NaN.
#[device]
pub fn log_sum(max: f32, sum: f32, keys: usize) -> f32 {
    if max == f32::NEG_INFINITY { max + sum } else { max + fast::ln(sum * keys.next_power_of_two() as f32) }
}

/// Returns 1 / sum. If the largest logit is −∞ it returns the sum itself, which is 0 or NaN.
#[device]
pub fn reciprocal(max: f32, sum: f32) -> f32 {
    if max == f32::NEG_INFINITY { sum } else { 1.0 / sum }
}

/// Computes acc += P·B as [`accumulate`] does, but skips every weight of 0, so that its values in
/// `b` have no effect. The function is slow, used only where sums became NaN, and ends with a block
/// barrier.
#[device]
pub fn accumulate_weighted<
    B: Float,
    const WIDTH: usize,
    const SQUARES: usize,
    const VECTOR: usize,
    const ROW_GROUPS: usize,
>(
    acc: &mut [[[[f32; 4]; 4]; SQUARES]; ROW_GROUPS],
    p: Shared<f32, 2>,
    b: View<B, 2>,
    b0: usize,
    keys: usize,
    thread: usize,
) {
    let (row, col) = corner::<ROW_GROUPS>(thread);
    let live = (keys - b0.min(keys)).min(KEYS);
    for key in rolled(0..live) {
        for q in unroll(0..SQUARES) {
            let col = col + q * 32 * ROW_GROUPS;
            let mut few = [B::from_f32(0.0); 4];
            if VECTOR == 4 {
                if col < b.cols() {
                    few = b.load((b0 + key, col));
                }
            } else {
                for x in unroll(0..4) {
                    if col + x < b.cols() {
                        few[x] = b[(b0 + key, col + x)];
                    }
                }
            }
            for r in unroll(0..ROW_GROUPS) {
                let weights: [f32; 4] = p.load::<4>((key, group_column(row + r * GROUP_STEP, key)));
                for i in unroll(0..4) {
                    if weights[i] != 0.0 {
                        for x in unroll(0..4) {
                            acc[r][q][i][x] = weights[i].mul_add(few[x].to_f32(), acc[r][q][i][x]);
                        }
                    }
                }
            }
        }
    }
    block::sync();
}

/// Computes acc += P·B of [`KEYS`] keys: the rows of `b` from `b0` on, of `keys` in total. `first`
/// is the first slice, loaded in advance. The block must have read the previous contents of shared
/// memory. There is one block barrier per slice.
#[device]
pub fn accumulate<
    B: Rows,
    const WIDTH: usize,
    const SQUARES: usize,
    const LOADS: usize,
    const VECTOR: usize,
    const ROW_GROUPS: usize,
>(
    acc: &mut [[[[f32; 4]; 4]; SQUARES]; ROW_GROUPS],
    p: Shared<f32, 2>,
    b: B,
    b0: usize,
    keys: usize,
    first: [B::Kept; LOADS],
    sb: Shared<f32, 3>,
    thread: usize,
) {
    let (row, col) = corner::<ROW_GROUPS>(thread);
    // The rows of the tile after the first slice, and the number of rows left there.
    let mut rest = B::after(b.start(), b0 + SLICE, SLICE);
    let mut left = keys.saturating_sub(b0 + SLICE);
    let live = (keys - b0.min(keys)).min(KEYS);
    put_keys::<B, LOADS, WIDTH>(sb.at(0), thread, &first);
    block::sync();
    for at in rolled((0..live).step_by(2 * SLICE)) {
        for buf in unroll(0..2) {
            let next = fetch_keys::<B, LOADS, WIDTH, VECTOR>(b, rest, thread, 0, left);
            rest = B::after(rest, SLICE, SLICE);
            left = left.saturating_sub(SLICE);
            for k in unroll(0..SLICE) {
                let key = at + buf * SLICE + k;
                let mut fp = [[0.0f32; 4]; ROW_GROUPS];
                for r in unroll(0..ROW_GROUPS) {
                    fp[r] = p.load::<4>((key, group_column(row + r * GROUP_STEP, buf * SLICE + k)));
                }
                let mut fb = [[0.0f32; 4]; SQUARES];
                for q in unroll(0..SQUARES) {
                    fb[q] = sb.load::<4>((buf, k, col + 32 * ROW_GROUPS * q));
                }
                multiply::<ROW_GROUPS, SQUARES>(acc, &fp, &fb);
            }
            put_keys::<B, LOADS, WIDTH>(sb.at(1 - buf), thread, &next);
            block::sync();
        }
    }
}

/// Stores four elements of a row, without those beyond the last column.
#[device]
pub fn put<T: Float, const VECTOR: usize>(o: ViewMut<T, 2>, row: usize, col: usize, from: [f32; 4]) {
    for x in unroll(0..4 / VECTOR) {
        if col + x * VECTOR < o.cols() {
            let mut few = [T::from_f32(0.0); VECTOR];
            for e in unroll(0..VECTOR) {
                few[e] = T::from_f32(from[x * VECTOR + e]);
            }
            o.store((row, col + x * VECTOR), few);
        }
    }
}
