//! The kernels of prefix sums.

use kernel_dsl::prelude::*;

/// Pieces of a warp's part of a tile.
#[device]
const PIECES: usize = 4;

/// Loads four elements of a row from index `at` on, with zeros from `to` on; by one access if V is
/// 4.
#[device]
fn four<T: Number, const V: usize>(x: View<T, 2>, row: usize, at: usize, to: usize) -> [T; 4] {
    let mut v = [T::default(); 4];
    if V == 4 {
        if at < to {
            v = x.load((row, at));
        }
    } else {
        for e in unroll(0..4) {
            if at + e < to {
                v[e] = x[(row, at + e)];
            }
        }
    }
    v
}

/// Computes y ← the prefix sums of the part of row r that begins at p · chunk, by accesses of `V`
/// elements, 4 or 1.
///
/// There is one block per part. Sums are inclusive or exclusive, and begin with starts[r, p], or
/// with zero if there are no starts.
#[kernel(
    block = 256,
    grid = x.rows() * x.cols().div_ceil(chunk),
    instances(T = f32, INCLUSIVE = true | false, V = 4; T = f32, INCLUSIVE = true, V = 1; T = u32, INCLUSIVE = true, V = 4),
    writes(y = once),
)]
#[requires(
    y.rows() == x.rows(), y.cols() == x.cols(), chunk > 0, chunk % 4 == 0, x.aligned(V), y.aligned(V), x.cols() % V == 0,
    starts.is_empty() || starts.rows() == x.rows() && starts.cols() == x.cols().div_ceil(chunk),
)]
pub fn scan_rows<T: Number, const INCLUSIVE: bool, const V: usize>(
    x: View<T, 2>,
    chunk: usize,
    starts: View<T, 2>,
    mut y: ViewMut<T, 2>,
) {
    let mut sums = Shared::<T, 2>::new([2, 8]);
    let parts = x.cols().div_ceil(chunk);
    let (row, part) = (block::x() / parts, block::x() % parts);
    let (from, to) = (part * chunk, x.cols().min(part * chunk + chunk));
    let mut carry = starts.get((row, part)).unwrap_or(T::default());
    let mut buffer = 0;
    for tile in (from..to).step_by(256 * 4 * PIECES) {
        let first = tile + (warp::index() * PIECES * 32 + warp::lane()) * 4;
        let mut v = [[T::default(); 4]; PIECES];
        for i in unroll(0..PIECES) {
            v[i] = four::<T, V>(x, row, first + i * 128, to);
        }
        // First the sum before each lane's four elements, then that of the whole warp.
        let mut before = [T::default(); PIECES];
        let mut all = T::default();
        for i in unroll(0..PIECES) {
            let own = (v[i][0] + v[i][1]) + (v[i][2] + v[i][3]);
            let through = warp::scan(own, |a, b| a + b);
            before[i] = all + warp::shuffle_up(through, 1).unwrap_or(T::default());
            all = all + warp::broadcast(through, 31);
        }
        if warp::lane() == 0 {
            sums[(buffer, warp::index())] = all;
        }
        block::sync();
        let mut base = carry;
        for w in unroll(0..8) {
            let sum = sums[(buffer, w)];
            if w < warp::index() {
                base = base + sum;
            }
            carry = carry + sum;
        }
        // The next tile's sums use another buffer, so that one barrier is enough.
        buffer = 1 - buffer;
        for i in unroll(0..PIECES) {
            let mut sum = base + before[i];
            let mut out = [T::default(); 4];
            for e in unroll(0..4) {
                out[e] = if INCLUSIVE { sum + v[i][e] } else { sum };
                sum = sum + v[i][e];
            }
            let at = first + i * 128;
            if V == 4 {
                if at < to {
                    y.store((row, at), out);
                }
            } else {
                for e in unroll(0..4) {
                    if at + e < to {
                        y[(row, at + e)] = out[e];
                    }
                }
            }
        }
    }
}

/// Computes sums[r, p] ← the sum of the part of row r that begins at p · chunk; one block per part.
#[kernel(
    block = 256,
    grid = sums.rows() * sums.cols(),
    instances(T = f32 | u32, V = 4),
    writes(sums = once),
)]
#[requires(
    sums.rows() == x.rows(), chunk > 0, chunk % 4 == 0, sums.cols() == x.cols().div_ceil(chunk), x.aligned(V), x.cols() % V == 0,
)]
pub fn sum_parts<T: Number, const V: usize>(x: View<T, 2>, chunk: usize, mut sums: ViewMut<T, 2>) {
    let (row, part) = (block::x() / sums.cols(), block::x() % sums.cols());
    let (from, to) = (part * chunk, x.cols().min(part * chunk + chunk));
    let mut mine = [T::default(); 4];
    for first in (from + thread::x() * 4..to).step_by(256 * 4 * PIECES) {
        let mut v = [[T::default(); 4]; PIECES];
        for i in unroll(0..PIECES) {
            v[i] = four::<T, V>(x, row, first + i * 1024, to);
        }
        for i in unroll(0..PIECES) {
            for e in unroll(0..4) {
                mine[e] = mine[e] + v[i][e];
            }
        }
    }
    let sum = block::reduce((mine[0] + mine[1]) + (mine[2] + mine[3]), |a, b| a + b);
    if thread::x() == 0 {
        sums[(row, part)] = sum;
    }
}
