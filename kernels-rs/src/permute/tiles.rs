//! The transpose by tiles: both sides in whole sectors, the turn in shared memory.
//!
//! ```text
//!   x: a warp reads 32 columns of VX words' rows         tile: [64][65] words              y: a warp writes 32 words of 4 rows
//!   ┌─────── 64 columns ───────┐                    column 0 │w0 w1 w2 … w63│pad│         ┌───── 64·K columns ─────┐
//!   │▒▒▒▒▒▒▒▒▒▒▒▒▒│            │ K rows are a word           │              │   │         │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│
//!   │▒▒▒▒▒▒▒▒▒▒▒▒▒│            │                    column 1 │ one bank on  │   │         │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│
//!   │             │            │                    …        │              │   │         │                        │
//!   └──────────────────────────┘                                                          └────────────────────────┘
//! ```
//!
//! Shared memory has banks of 4 bytes, so what is turned is words: of `f32` one element, of `f16` two that lie one below the other in x, of `i8`
//! four. A thread reads its `VX` columns of `K` rows, makes `VX` words of them, and stores those; word w of column c lies in bank c + w mod 32. A
//! warp stores word w + l / (32 / VX) of column VX · (l mod 32 / VX) + j, for each j once, and reads word 4 · (l mod 8) + j of column l / 8: 32 banks each
//! time.

use super::rows::divided;
use kernel_dsl::prelude::*;

/// y[a, b, c, r] ← x[a, b, r, c], elements of 1, 2 or 4 bytes. A block moves a tile of 64 columns by 64·`K` rows of x, `K` elements to a word of 4
/// bytes, in accesses of `VX` elements of x and `VY` of y: 1, or `VX` up to 8 and `VY` as many as 16 bytes hold.
///
/// Blocks are numbered down the rows of x first, so that those which run at once write rows of y from end to end; of bytes, of which a tile reads
/// but two sectors a row, along its columns first; and over the matrices last.
#[kernel(
    block = 512,
    grid = x.dim(0) * x.dim(1) * x.dim(2).div_ceil(ROWS) * x.dim(3).div_ceil(64),
    instances(T = f32, VX = 4, VY = 4; T = f32, VX = 1, VY = 1; T = f16, VX = 8, VY = 8; T = i8, VX = 8, VY = 16),
    derived(K = 4 / size_of::<T>(), ROWS = 64 * K, Q = VY.div_ceil(K), STEPS = 8 / VX),
    writes(y = once),
)]
#[requires(
    x.dim(0) == y.dim(0), x.dim(1) == y.dim(1), x.dim(2) == y.dim(3), x.dim(3) == y.dim(2),
    x.aligned(VX), y.aligned(VY), x.dim(3) % VX == 0, y.dim(3) % VY == 0,
)]
pub fn transpose_tiles<
    T: Number,
    const VX: usize,
    const VY: usize,
    const K: usize,
    const ROWS: usize,
    const Q: usize,
    const STEPS: usize,
>(
    x: View<T, 4>,
    y: ViewMut<T, 4>,
) {
    let mut tile = Shared::<[T; K], 2>::with_pitch([64, 64], 65);
    let (rows, cols) = (x.dim(2), x.dim(3));
    let (across, down) = (cols.div_ceil(64), rows.div_ceil(ROWS));
    let (plane, place) = divided(block::x(), across * down);
    let (across, down) = if size_of::<T>() == 1 {
        let (down, across) = divided(place, across);
        (across, down)
    } else {
        divided(place, down)
    };
    let (row0, col0) = (down * ROWS, across * 64);
    let (outer, inner) = divided(plane, x.dim(1));
    let (x, mut y) = (x.at(outer).at(inner), y.at(outer).at(inner));

    // All loads are under way before the first store waits for one.
    let mut held = [[[T::default(); VX]; K]; STEPS];
    let (piece, below) = (warp::lane() % (32 / VX) * VX, warp::lane() / (32 / VX));
    for step in unroll(0..STEPS) {
        let at = step * 16 + warp::index();
        let (col, word) = (at % 2 * 32 + piece, at / 2 * VX + below);
        for k in unroll(0..K) {
            let (row, col) = (row0 + word * K + k, col0 + col);
            if row < rows && col < cols {
                held[step][k] = x.load((row, col));
            }
        }
    }
    for step in unroll(0..STEPS) {
        let at = step * 16 + warp::index();
        let (col, word) = (at % 2 * 32 + piece, at / 2 * VX + below);
        for j in unroll(0..VX) {
            let mut w = [T::default(); K];
            for k in unroll(0..K) {
                w[k] = held[step][k][j];
            }
            tile[(col + j, word)] = w;
        }
    }
    block::sync();
    let (piece, beside) = (warp::lane() % (32 / Q) * Q, warp::lane() / (32 / Q));
    for step in unroll(0..8 / Q) {
        let at = step * 16 + warp::index();
        let (word, col) = (at % 2 * 32 + piece, at / 2 * Q + beside);
        let mut v = [T::default(); VY];
        for q in unroll(0..Q) {
            let w = tile[(col, word + q)];
            for k in unroll(0..K) {
                if VY == 1 {
                    let (row, col) = (col0 + col, row0 + word * K + k);
                    if row < cols && col < rows {
                        y[(row, col)] = w[k];
                    }
                } else {
                    v[q * K + k] = w[k];
                }
            }
        }
        let (row, col) = (col0 + col, row0 + word * K);
        if VY > 1 && row < cols && col < rows {
            y.store((row, col), v);
        }
    }
}
