//! The kernels of reductions.

use super::items::*;
use crate::counters::count_block;
use kernel_dsl::prelude::*;

/// The number of accesses that a thread has in flight.
#[device]
const LOADS_AHEAD: usize = 4;

/// Returns the state of thread `thread` of `T`, for a row's elements `from` to `to`, `V` at once.
/// Indices count from `base`.
#[device]
fn of_thread<X: Float, M: Monoid, const T: usize, const V: usize>(
    x: View<X, 2>,
    row: usize,
    from: usize,
    to: usize,
    base: usize,
    thread: usize,
) -> M::State {
    let mut state = [M::ZERO; V];
    for first in (from + thread * V..to).step_by(T * V * LOADS_AHEAD) {
        let held: [[X; V]; LOADS_AHEAD] = std::array::from_fn(|i| {
            if first + i * T * V < to { x.load((row, first + i * T * V)) } else { [X::default(); V] }
        });
        for i in unroll(0..LOADS_AHEAD) {
            if first + i * T * V < to {
                for e in unroll(0..V) {
                    state[e] = M::join(state[e], M::take(held[i][e].to_f32(), base + first + i * T * V + e));
                }
            }
        }
    }
    let mut all = state[0];
    for e in unroll(1..V) {
        all = M::join(all, state[e]);
    }
    all
}

/// Reduces `y[r]` ← row r, by `T` threads per row, a warp or a block of 256; `V` elements at once.
#[kernel(
    block = (T, ROWS),
    grid = x.rows().div_ceil(ROWS),
    instances(
        X = f32, M = Sum, T = 32 | 256, V = 4;
        X = f32, M = Sum, T = 256, V = 1;
        X = f16, M = Sum, T = 256, V = 8;
        X = f32, M = ArgMax, T = 32, V = 1
    ),
    derived(ROWS = 256 / T),
    writes(y = once),
)]
#[requires(y.len() == x.rows(), x.aligned(V), x.cols() % V == 0)]
pub fn reduce_rows<X: Float, M: Monoid, const T: usize, const V: usize, const ROWS: usize>(
    x: View<X, 2>,
    mut y: ViewMut<M::Out, 1>,
) {
    let row = block::x() * ROWS + thread::y();
    let to = if row < x.rows() { x.cols() } else { 0 };
    let mine = of_thread::<X, M, T, V>(x, row, 0, to, 0, thread::x());
    let all = if T == 32 { warp::reduce(mine, M::join) } else { block::reduce(mine, M::join) };
    if thread::x() == 0 && row < x.rows() {
        y[row] = M::finish(all, x.cols());
    }
}

/// Reduces each row of x to an element of y, or all rows to one element. A block has a part of
/// `chunk` elements of a row, and the last of a result's blocks to end combines the parts.
///
/// Indices of row r count from r · `pitch`. A result has a row of `parts`, and counts its blocks in
/// an element of `ended`, which is 0 before and after the launch.
#[kernel(
    block = 256,
    grid = parts.rows() * parts.cols(),
    instances(X = f32, M = Sum, V = 4 | 1; X = f32, M = ArgMax, V = 4),
    writes(y = once),
)]
#[requires(
    chunk > 0, chunk % V == 0, x.aligned(V), x.cols() % V == 0, y.len() == parts.rows(), ended.len() >= y.len(),
    y.len() == 1 || y.len() == x.rows(), parts.rows() * parts.cols() == (x.rows() * x.cols().div_ceil(chunk)).max(1),
)]
pub fn reduce_parts<X: Float, M: Monoid, const V: usize>(
    x: View<X, 2>,
    chunk: usize,
    pitch: usize,
    mut parts: ViewMut<M::State, 2>,
    ended: ViewMut<u32, 1>,
    mut y: ViewMut<M::Out, 1>,
) {
    let of_row = x.cols().div_ceil(chunk).max(1);
    let (row, from) = (block::x() / of_row, block::x() % of_row * chunk);
    let to = if row < x.rows() { x.cols().min(from + chunk) } else { 0 };
    let (result, part) = (block::x() / parts.cols(), block::x() % parts.cols());
    let mine = of_thread::<X, M, 256, V>(x, row, from, to, row * pitch, thread::x());
    let all = block::reduce(mine, M::join);
    if thread::x() == 0 {
        parts[(result, part)] = all;
    }
    if count_block(ended, || result, parts.cols()) != parts.cols() {
        return;
    }
    let mut all = M::ZERO;
    for part in (thread::x()..parts.cols()).step_by(256) {
        all = M::join(all, parts[(result, part)]);
    }
    let all = block::reduce(all, M::join);
    if thread::x() == 0 {
        y[result] = M::finish(all, x.rows() / y.len() * x.cols());
    }
}

/// Reduces parts[b, p, c] ← elements p · chunk to (p + 1) · chunk of column c of matrix b.
///
/// A block has 32 · `V` columns. The warps alternate over the rows, and their states are combined
/// in order. Up to 4096 matrices have one block each along z.
#[kernel(
    block = (32, 8),
    grid = (x.dim(2).div_ceil(32 * V) * parts.dim(1), x.dim(0).min(4096)),
    instances(X = f32, M = Sum, V = 4 | 1; X = f32, M = ArgMax, V = 4),
    writes(parts = once),
)]
#[requires(
    parts.dim(0) == x.dim(0), parts.dim(2) == x.dim(2), chunk > 0, parts.dim(1) == x.dim(1).div_ceil(chunk),
    x.aligned(V), x.dim(2) % V == 0,
)]
pub fn reduce_columns<X: Float, M: Monoid, const V: usize>(
    x: View<X, 3>,
    chunk: usize,
    mut parts: ViewMut<M::State, 3>,
) {
    let mut of_warps = Shared::<M::State, 3>::new([V, 8, 32]);
    let (strip, part) = (block::x() / parts.dim(1), block::x() % parts.dim(1));
    let (from, col) = (part * chunk, (strip * 32 + thread::x()) * V);
    let to = x.dim(1).min(from + chunk);
    for matrix in (block::y()..x.dim(0)).step_by(grid::dim_y()) {
        let mut state = [M::ZERO; V];
        let rows = if col < x.dim(2) { to } else { 0 };
        for first in (from + thread::y()..rows).step_by(8 * LOADS_AHEAD) {
            let held: [[X; V]; LOADS_AHEAD] = std::array::from_fn(|i| {
                if first + 8 * i < rows { x.load((matrix, first + 8 * i, col)) } else { [X::default(); V] }
            });
            for i in unroll(0..LOADS_AHEAD) {
                if first + 8 * i < rows {
                    for e in unroll(0..V) {
                        state[e] = M::join(state[e], M::take(held[i][e].to_f32(), first + 8 * i));
                    }
                }
            }
        }
        for e in unroll(0..V) {
            of_warps[(e, thread::y(), thread::x())] = state[e];
        }
        block::sync();
        if thread::y() < V {
            let mut all = of_warps[(thread::y(), 0, thread::x())];
            for warp in unroll(1..8) {
                all = M::join(all, of_warps[(thread::y(), warp, thread::x())]);
            }
            if col < x.dim(2) {
                parts[(matrix, part, col + thread::y())] = all;
            }
        }
        block::sync();
    }
}

/// Computes y[b, c] from the parts of column c of matrix b, over `n` elements.
///
/// A block has 32 columns. The warps alternate over the parts, with four of them in flight, and
/// their states are combined in order. Up to 4096 matrices have one block each along y.
#[kernel(
    block = (32, 8),
    grid = (y.cols().div_ceil(32), y.rows().min(4096)),
    instances(M = Sum | ArgMax),
    writes(y = once),
)]
#[requires(y.rows() == parts.dim(0), y.cols() == parts.dim(2))]
pub fn join_columns<M: Monoid>(parts: View<M::State, 3>, n: usize, mut y: ViewMut<M::Out, 2>) {
    let mut of_warps = Shared::<M::State, 2>::new([8, 32]);
    let col = block::x() * 32 + thread::x();
    let to = if col < parts.dim(2) { parts.dim(1) } else { 0 };
    for matrix in (block::y()..parts.dim(0)).step_by(grid::dim_y()) {
        let mut state = M::ZERO;
        for first in (thread::y()..to).step_by(8 * LOADS_AHEAD) {
            let held: [M::State; LOADS_AHEAD] =
                std::array::from_fn(|i| if first + 8 * i < to { parts[(matrix, first + 8 * i, col)] } else { M::ZERO });
            for i in unroll(0..LOADS_AHEAD) {
                state = M::join(state, held[i]);
            }
        }
        of_warps[(thread::y(), thread::x())] = state;
        block::sync();
        if thread::y() == 0 && col < parts.dim(2) {
            for warp in unroll(1..8) {
                state = M::join(state, of_warps[(warp, thread::x())]);
            }
            y[(matrix, col)] = M::finish(state, n);
        }
        block::sync();
    }
}
