//! The two products of attention by a block of threads: what the kernels of [`prefill`](super::prefill) and [`backward`](super::backward) are made of.
//!
//! [`scores`] is A·Bᵀ of a tile of rows with a tile of 64 rows of another matrix, along the head's dimension; [`accumulate`] adds P·B, P
//! the tile that came of it, to accumulators as wide as a head. The page of [`attention`](super) has a picture.

use super::span::KEYS;
use crate::gemm::tile::{outer, outer_by_squares};
use kernel_dsl::prelude::*;

/// Of the head's dimension, products that a slice of [`scores`] has; of keys, those that one of [`accumulate`] has.
#[device]
pub const SLICE: usize = 8;

/// Which row and column of the block's tile a thread's first square of 4 × 4 begins at. A warp has 16 rows and all columns, lanes as
/// 4 × 8 where a thread has `R` = 1 piece of four rows, and as 2 × 16 where it has 2, of which the second lies [`BELOW`] the first. Eight lanes in a
/// row, of which each asks for 16 bytes, ask for two pieces of rows and four of columns.
#[device]
pub fn corner<const R: usize>(thread: usize) -> (usize, usize) {
    let (warp, lane) = (thread / 32, thread % 32);
    (warp * 16 + (lane / (16 * R) * 2 + lane % 2) * 4, lane % (16 * R) / 2 * 4)
}

/// Rows from a thread's first piece of them to its second.
#[device]
pub const BELOW: usize = 8;

/// The combination of all lanes that have the same rows.
#[device]
pub fn of_row<const R: usize>(x: f32, combine: impl Fn(f32, f32) -> f32) -> f32 {
    let mut x = x;
    for step in unroll(1..3 + R) {
        x = combine(x, warp::shuffle_xor(x, 1 << step));
    }
    x
}

/// A thread's share of a slice of [`scores`]: of rows from `first` on, as many as the block has room for, products from `at` on, zeros behind
/// the last of `depth`. Behind the last row it is repeated: what comes of it counts for nothing. In one access where `V` is 4, which says that rows
/// end at a whole slice.
#[device]
pub fn fetch_rows<T: Float, const N: usize, const V: usize>(
    g: View<T, 2>,
    thread: usize,
    first: usize,
    rows: usize,
    at: usize,
    depth: usize,
) -> [T; N] {
    let row = (first + thread / (SLICE / N)).min(rows - 1);
    let col = at + thread % (SLICE / N) * N;
    let mut x = [T::from_f32(0.0); N];
    if V == 4 {
        if at < depth {
            x = g.load((row, col));
        }
    } else {
        for i in unroll(0..N) {
            if col + i < depth {
                x[i] = g[(row, col + i)];
            }
        }
    }
    x
}

/// The same from registers to shared memory, turned: row k of `to` is product k, and the rows begin at column `col`.
#[device]
pub fn put_rows<T: Float, const N: usize>(mut to: Shared<f32, 3>, buf: usize, col: usize, thread: usize, from: [T; N]) {
    for i in unroll(0..N) {
        to[(buf, thread % (SLICE / N) * N + i, col + thread / (SLICE / N))] = from[i].to_f32();
    }
}

/// A thread's share of a slice of [`accumulate`]: rows from `first` on, zeros behind the last, and behind the last column.
#[device]
pub fn fetch_keys<T: Float, const L: usize, const W: usize, const V: usize>(
    g: View<T, 2>,
    thread: usize,
    first: usize,
    rows: usize,
) -> [[T; 4]; L] {
    let mut out = [[T::from_f32(0.0); 4]; L];
    for s in unroll(0..L) {
        let id = thread + s * block::threads();
        let (key, col) = (first + id / (W / 4), id % (W / 4) * 4);
        if (L * block::threads() == SLICE * W / 4 || id < SLICE * W / 4) && key < rows {
            if V == 4 {
                if col < g.cols() {
                    out[s] = g.load((key, col));
                }
            } else {
                for i in unroll(0..4) {
                    if col + i < g.cols() {
                        out[s][i] = g[(key, col + i)];
                    }
                }
            }
        }
    }
    out
}

/// The same from registers to shared memory.
#[device]
pub fn put_keys<T: Float, const L: usize, const W: usize>(to: Shared<f32, 2>, thread: usize, from: &[[T; 4]; L]) {
    for s in unroll(0..L) {
        let id = thread + s * block::threads();
        if L * block::threads() == SLICE * W / 4 || id < SLICE * W / 4 {
            to.store((id / (W / 4), id % (W / 4) * 4), from[s].map(T::to_f32));
        }
    }
}

/// Two slices of both operands of [`scores`] side by side, of so many rows together. What is turned on its way is stored down a column: four more a row keep the stores of
/// a warp in banks of their own.
#[device]
pub fn slices(rows: usize) -> Shared<f32, 3> {
    Shared::with_pitch([2, SLICE, rows], rows + 4)
}

/// S ← A·Bᵀ: `BM` rows of `a` from `a0` on, and `N` times [`KEYS`] rows of `b` from each of `b0` on, the first of `R` or all, which make `Q` squares a
/// piece. The first slices are there already. The block meets once a slice, at its end.
#[device]
pub fn scores<
    A: Float,
    B: Float,
    const BM: usize,
    const NA: usize,
    const NB: usize,
    const V: usize,
    const R: usize,
    const N: usize,
    const Q: usize,
>(
    a: View<A, 2>,
    a0: usize,
    rows: usize,
    b: View<B, 2>,
    b0: [usize; N],
    keys: usize,
    depth: usize,
    ab: Shared<f32, 3>,
    thread: usize,
) -> [[[[f32; 4]; 4]; Q]; R] {
    let (row, col) = corner::<R>(thread);
    let mut s = [[[[0.0f32; 4]; 4]; Q]; R];
    for at in rolled((0..depth).step_by(2 * SLICE)) {
        for buf in unroll(0..2) {
            let next = at + (buf + 1) * SLICE;
            // Each piece that is fetched is under way for its share of the slice's products, and in registers for no longer.
            let na = fetch_rows::<A, NA, V>(a, thread, a0, rows, next, depth);
            let mut nb = [B::from_f32(0.0); NB];
            for piece in unroll(0..N + 1) {
                for k in unroll(SLICE * piece / (N + 1)..SLICE * (piece + 1) / (N + 1)) {
                    step(&mut s, ab, [buf, k, row, BM + col]);
                }
                if piece == 0 {
                    put_rows::<A, NA>(ab, 1 - buf, 0, thread, na);
                } else {
                    put_rows::<B, NB>(ab, 1 - buf, BM + (piece - 1) * KEYS, thread, nb);
                }
                if piece < N {
                    nb = fetch_rows::<B, NB, V>(b, thread, b0[piece], keys, next, depth);
                }
            }
            block::sync();
        }
    }
    s
}

/// [`scores`] of tiles of 64 rows each, with its first slices, by a block of 128 threads.
#[device]
pub fn product<T: Float, const V: usize>(
    a: View<T, 2>,
    a0: usize,
    rows: usize,
    b: View<T, 2>,
    b0: usize,
    others: usize,
    depth: usize,
    ab: Shared<f32, 3>,
    thread: usize,
) -> [[[[f32; 4]; 4]; 2]; 1] {
    put_rows::<T, 4>(ab, 0, 0, thread, fetch_rows::<T, 4, V>(a, thread, a0, rows, 0, depth));
    put_rows::<T, 4>(ab, 0, KEYS, thread, fetch_rows::<T, 4, V>(b, thread, b0, others, 0, depth));
    block::sync();
    scores::<T, T, KEYS, 4, 4, V, 1, 1, 2>(a, a0, rows, b, [b0], others, depth, ab, thread)
}

/// One product of each element of S.
#[device]
fn step<const R: usize, const Q: usize>(s: &mut [[[[f32; 4]; 4]; Q]; R], ab: Shared<f32, 3>, at: [usize; 4]) {
    let [buf, k, row, col] = at;
    let mut fa = [[0.0f32; 4]; R];
    for r in unroll(0..R) {
        fa[r] = ab.load::<4>((buf, k, row + r * BELOW));
    }
    let mut fb = [[0.0f32; 4]; Q];
    for q in unroll(0..Q) {
        fb[q] = ab.load::<4>((buf, k, col + 32 * R * q));
    }
    multiply::<R, Q>(s, &fa, &fb);
}

/// acc += a·bᵀ, in the order that leaves registers for what is loaded next.
#[device]
fn multiply<const R: usize, const Q: usize>(acc: &mut [[[[f32; 4]; 4]; Q]; R], a: &[[f32; 4]; R], b: &[[f32; 4]; Q]) {
    if R == 1 {
        outer::<R, Q>(acc, a, b);
    } else {
        outer_by_squares::<R, Q>(acc, a, b);
    }
}

/// Room for P, a row of it for each key, four apart from the next.
#[device]
pub fn weights(rows: usize) -> Shared<f32, 2> {
    Shared::with_pitch([KEYS, rows], rows + 4)
}

/// Where the piece of four rows that begins at `row` is found in the row of P for key `key`: in another order for every other eight keys, so that
/// eight lanes that store one each, at four keys, ask each bank once.
#[device]
pub fn turned(row: usize, key: usize) -> usize {
    row ^ (key / 8 % 2 * 8)
}

/// What a thread has of [`KEYS`] keys goes to shared memory, for its warp to read by rows of keys.
#[device]
pub fn share<const R: usize>(p: Shared<f32, 2>, thread: usize, s: &[[[[f32; 4]; 4]; 2]; R]) {
    let (row, col) = corner::<R>(thread);
    for r in unroll(0..R) {
        for q in unroll(0..2 / R) {
            for j in unroll(0..4) {
                let key = col + 32 * q + j;
                let at = (key, turned(row + r * BELOW, col));
                p.store(at, [s[r][q][0][j], s[r][q][1][j], s[r][q][2][j], s[r][q][3][j]]);
            }
        }
    }
}

/// By how much the exponents of weights of `keys` keys are lowered: their sum is at most 1, and no
/// sum of weighted values exceeds the largest value.
#[device]
pub fn lowered(keys: usize) -> f32 {
    keys.next_power_of_two().ilog2() as f32
}

/// ln Σ exp(x) over `keys` keys of which `max` is the largest x, and `sum` is Σ exp(x − max) with
/// [`lowered`] exponents: −∞ where every x is −∞, and NaN where one is NaN.
#[device]
pub fn log_sum(max: f32, sum: f32, keys: usize) -> f32 {
    if max == f32::NEG_INFINITY { max + sum } else { max + fast::ln(sum * keys.next_power_of_two() as f32) }
}

/// 1 / sum; the sum itself, 0 or NaN, where the largest logit is −∞.
#[device]
pub fn reciprocal(max: f32, sum: f32) -> f32 {
    if max == f32::NEG_INFINITY { sum } else { 1.0 / sum }
}

/// Whether the thread's share of what [`accumulate`] reads of `b` has an infinity or a NaN.
#[device]
pub fn has_odd<B: Float, const W: usize, const L: usize, const V: usize>(
    b: View<B, 2>,
    b0: usize,
    keys: usize,
    thread: usize,
) -> bool {
    // Zeros, and a NaN where an element is infinite or NaN.
    let mut sum = 0.0f32;
    for at in rolled((0..KEYS).step_by(SLICE)) {
        let few = fetch_keys::<B, L, W, V>(b, thread, b0 + at, keys);
        for s in unroll(0..L) {
            for x in unroll(0..4) {
                sum = few[s][x].to_f32().mul_add(0.0, sum);
            }
        }
    }
    sum.is_nan()
}

/// acc += P·B as [`accumulate`] does it, but for what has a weight of 0: that is left out, whatever
/// `b` holds there. Slow: for tiles in which [`has_odd`] finds something. The block meets at the
/// end.
#[device]
pub fn accumulate_weighted<B: Float, const W: usize, const Q: usize, const V: usize, const R: usize>(
    acc: &mut [[[[f32; 4]; 4]; Q]; R],
    p: Shared<f32, 2>,
    b: View<B, 2>,
    b0: usize,
    keys: usize,
    thread: usize,
) {
    let (row, col) = corner::<R>(thread);
    let live = (keys - b0.min(keys)).min(KEYS);
    for key in rolled(0..live) {
        for q in unroll(0..Q) {
            let col = col + q * 32 * R;
            let mut few = [B::from_f32(0.0); 4];
            if V == 4 {
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
            for r in unroll(0..R) {
                let weights: [f32; 4] = p.load::<4>((key, turned(row + r * BELOW, key)));
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

/// acc += P·B of [`KEYS`] keys: `b`'s rows from `b0` on, of `keys`; `first` is the first slice, fetched already. The block must have read what shared
/// memory held, and meets once a slice.
#[device]
pub fn accumulate<B: Float, const W: usize, const Q: usize, const L: usize, const V: usize, const R: usize>(
    acc: &mut [[[[f32; 4]; 4]; Q]; R],
    p: Shared<f32, 2>,
    b: View<B, 2>,
    b0: usize,
    keys: usize,
    first: [[B; 4]; L],
    sb: Shared<f32, 3>,
    thread: usize,
) {
    let (row, col) = corner::<R>(thread);
    // Of the tile those behind the first slice, and how many rows are left there.
    let mut rest = b.offset((b0 + SLICE, 0));
    let mut left = keys.saturating_sub(b0 + SLICE);
    let live = (keys - b0.min(keys)).min(KEYS);
    put_keys::<B, L, W>(sb.at(0), thread, &first);
    block::sync();
    for at in rolled((0..live).step_by(2 * SLICE)) {
        for buf in unroll(0..2) {
            let next = fetch_keys::<B, L, W, V>(rest, thread, 0, left);
            rest = rest.offset((SLICE, 0));
            left = left.saturating_sub(SLICE);
            for k in unroll(0..SLICE) {
                let key = at + buf * SLICE + k;
                let mut fp = [[0.0f32; 4]; R];
                for r in unroll(0..R) {
                    fp[r] = p.load::<4>((key, turned(row + r * BELOW, buf * SLICE + k)));
                }
                let mut fb = [[0.0f32; 4]; Q];
                for q in unroll(0..Q) {
                    fb[q] = sb.load::<4>((buf, k, col + 32 * R * q));
                }
                multiply::<R, Q>(acc, &fp, &fb);
            }
            put_keys::<B, L, W>(sb.at(1 - buf), thread, &next);
            block::sync();
        }
    }
}
