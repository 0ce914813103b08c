//! The kernels of rotary embedding.

use crate::permute::rows::div_rem;
use kernel_dsl::prelude::*;

/// The maximum number of pairs of a head.
#[device]
pub const MAX_PAIRS: usize = 256;

/// Computes the cosine and sine of each pair, for up to `TOKENS` existing tokens from `first` on,
/// and ends with a barrier.
#[device]
fn angles<const TOKENS: usize>(
    table: Shared<f32, 3>,
    first: usize,
    positions: View<u32, 2>,
    axes: View<u32, 1>,
    frequencies: View<f32, 1>,
) {
    let mut table = table;
    for at in block::stride(TOKENS * frequencies.len()) {
        let (token, pair) = if TOKENS == 1 { (0, at) } else { div_rem(at, frequencies.len()) };
        let position = positions[(axes[pair] as usize, (first + token).min(positions.cols() - 1))];
        let (sin, cos) = math::sin_cos(position as i32 as f32 * frequencies[pair]);
        table[(token, 0, pair)] = cos;
        table[(token, 1, pair)] = sin;
    }
    block::sync();
}

/// Returns the head of piece `piece` of a token, and where its first `V` and its other `V` elements
/// begin.
#[device]
fn place<const HALVES: bool, const V: usize>(piece: usize, pairs: usize) -> (usize, usize, usize) {
    let (head, piece) = div_rem(piece, pairs / V);
    if HALVES { (head, piece * V, pairs + piece * V) } else { (head, 2 * piece * V, 2 * piece * V + V) }
}

/// Returns `V` rotated pairs, from pair `first` on. With `HALVES` element i of a and of b are a
/// pair; otherwise neighbors in a, and then in b.
#[device]
fn rotated<X: Float, const HALVES: bool, const V: usize>(
    a: [X; V],
    b: [X; V],
    table: Shared<f32, 3>,
    token: usize,
    first: usize,
) -> ([X; V], [X; V]) {
    let (mut a, mut b) = (a, b);
    if HALVES || V == 1 {
        for e in unroll(0..V) {
            let (cos, sin) = (table[(token, 0, first + e)], table[(token, 1, first + e)]);
            let (x, y) = (a[e].to_f32(), b[e].to_f32());
            a[e] = X::from_f32(x.mul_add(cos, -(y * sin)));
            b[e] = X::from_f32(y.mul_add(cos, x * sin));
        }
    } else {
        for e in unroll(0..V / 2) {
            let (cos, sin) = (table[(token, 0, first + e)], table[(token, 1, first + e)]);
            let (x, y) = (a[2 * e].to_f32(), a[2 * e + 1].to_f32());
            a[2 * e] = X::from_f32(x.mul_add(cos, -(y * sin)));
            a[2 * e + 1] = X::from_f32(y.mul_add(cos, x * sin));
            let (cos, sin) = (table[(token, 0, first + V / 2 + e)], table[(token, 1, first + V / 2 + e)]);
            let (x, y) = (b[2 * e].to_f32(), b[2 * e + 1].to_f32());
            b[2 * e] = X::from_f32(x.mul_add(cos, -(y * sin)));
            b[2 * e + 1] = X::from_f32(y.mul_add(cos, x * sin));
        }
    }
    (a, b)
}

/// Stores in y the rotated pairs of up to `TOKENS` existing tokens from `first` on. `load` returns
/// elements of a token's head from an index on.
#[device]
fn rotate_pairs<X: Float, const HALVES: bool, const V: usize, const TOKENS: usize>(
    load: impl Fn(usize, usize, usize) -> [X; V],
    first: usize,
    positions: View<u32, 2>,
    axes: View<u32, 1>,
    frequencies: View<f32, 1>,
    y: ViewMut<X, 3>,
) {
    let table = Shared::<f32, 3>::new([TOKENS, 2, MAX_PAIRS]);
    let pairs = frequencies.len();
    let (of_head, pieces) = (pairs / V, y.dim(1) * (pairs / V));
    if pieces == 0 {
        return;
    }
    // Loads overlap the angles' computation. A thread without a piece loads the last: unconditional
    // 16-bit loads need half a register each, conditional loads a whole one.
    let (head, one, other) = place::<HALVES, V>(thread::x().min(pieces - 1), pairs);
    let mut held = [[[X::default(); V]; 2]; TOKENS];
    for t in unroll(0..TOKENS) {
        let token = (first + t).min(y.dim(0) - 1);
        held[t] = [load(token, head, one), load(token, head, other)];
    }
    angles::<TOKENS>(table, first, positions, axes, frequencies);
    for t in unroll(0..TOKENS) {
        let token = first + t;
        if token < y.dim(0) {
            if thread::x() < pieces {
                let at = (thread::x() - head * of_head) * V;
                let (a, b) = rotated::<X, HALVES, V>(held[t][0], held[t][1], table, t, at);
                y.store((token, head, one), a);
                y.store((token, head, other), b);
            }
            for more in block::stride(pieces - pieces.min(256)) {
                let (head, one, other) = place::<HALVES, V>(256 + more, pairs);
                let at = (256 + more - head * of_head) * V;
                let (a, b) = (load(token, head, one), load(token, head, other));
                let (a, b) = rotated::<X, HALVES, V>(a, b, table, t, at);
                y.store((token, head, one), a);
                y.store((token, head, other), b);
            }
        }
    }
}

/// Copies y ← x with rotated pairs, both `[tokens, heads, head size]`, `V` elements at once,
/// `TOKENS` tokens per block.
///
/// Pair i is rotated by `positions[axes[i], token]` · `frequencies[i]`, where axes are below
/// `rows`, and positions are the bits of `i32`. Elements after the pairs are copied. The number of
/// blocks per multiprocessor is limited by the registers that a thread needs for each token.
#[kernel(
    block = 256, min_blocks = 11 - 3 * TOKENS,
    grid = x.dim(0).div_ceil(TOKENS),
    instances(X = f32, HALVES = true | false, V = 4 | 1, TOKENS = 1; X = f16, HALVES = true, V = 4, TOKENS = 1 | 2),
    writes(y = once),
)]
#[requires(
    y.dim(0) == x.dim(0), y.dim(1) == x.dim(1), y.dim(2) == x.dim(2), positions.cols() == x.dim(0), rows <= positions.rows(), axes.len() == frequencies.len(),
    frequencies.len() <= 256, 2 * frequencies.len() <= x.dim(2), frequencies.len() % V == 0, x.dim(2) % V == 0, x.aligned(V), y.aligned(V),
)]
pub fn rotate<X: Float, const HALVES: bool, const V: usize, const TOKENS: usize>(
    x: View<X, 3>,
    positions: View<u32, 2>,
    rows: usize,
    axes: View<u32, 1>,
    frequencies: View<f32, 1>,
    y: ViewMut<X, 3>,
) {
    let first = block::x() * TOKENS;
    let load = |token: usize, head: usize, d: usize| x.load::<V>((token, head, d));
    rotate_pairs::<X, HALVES, V, TOKENS>(load, first, positions, axes, frequencies, y);
    let rotated = 2 * frequencies.len();
    let behind = (x.dim(2) - rotated) / V;
    for t in unroll(0..TOKENS) {
        let token = first + t;
        if token < x.dim(0) {
            for piece in block::stride(x.dim(1) * behind) {
                let (head, piece) = div_rem(piece, behind);
                let d = rotated + piece * V;
                y.store((token, head, d), x.load::<V>((token, head, d)));
            }
        }
    }
}

/// Rotates the pairs of x in place, as [`rotate`] does. Elements after the pairs are not accessed.
///
/// x is `[tokens, heads, head size]`.
#[kernel(
    block = 256, min_blocks = 11 - 3 * TOKENS,
    grid = x.dim(0).div_ceil(TOKENS),
    instances(X = f32, HALVES = true, V = 4, TOKENS = 1; X = f16, HALVES = true, V = 4, TOKENS = 1 | 2),
)]
#[requires(
    positions.cols() == x.dim(0), rows <= positions.rows(), axes.len() == frequencies.len(), frequencies.len() <= 256,
    2 * frequencies.len() <= x.dim(2), frequencies.len() % V == 0, x.aligned(V),
)]
pub fn rotate_in_place<X: Float, const HALVES: bool, const V: usize, const TOKENS: usize>(
    positions: View<u32, 2>,
    rows: usize,
    axes: View<u32, 1>,
    frequencies: View<f32, 1>,
    x: ViewMut<X, 3>,
) {
    let load = |token: usize, head: usize, d: usize| x.load::<V>((token, head, d));
    rotate_pairs::<X, HALVES, V, TOKENS>(load, block::x() * TOKENS, positions, axes, frequencies, x);
}
