//! The transpose by tiles: both sides access whole lines, and the transposition happens in shared
//! memory.
//!
//! ```text
//!   x: a warp reads 16·VX columns of 2 words' rows       tile: [COLS][WORDS + 1] words         y: a warp writes 32 words of 4 rows
//!   ┌──────── COLS ────────┐                         column 0  │w0 w1 w2 … w31│pad│          ┌──── WORDS·K columns ───┐
//!   │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│ K rows are a word       column 1  │ one bank on  │   │          │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│
//!   │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│                         …                                     │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│
//!   │                      │                         two unused columns                     │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│
//!   │                      │                         column 32 │ two banks on │   │          │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│
//!   └──────────────────────┘                                                                └────────────────────────┘
//! ```
//!
//! Shared memory has banks of 4 bytes, so the unit of transposition is a word: one element of
//! `f32`, two of `f16` that are vertical neighbors in x, four of `i8`. A thread reads its `VX`
//! columns of `K` rows, makes `VX` words of them, and stores these: for bytes 16 words of four rows
//! by 16 permutations. Word w of column c is in bank c + 2 · (c / 32) + w mod 32. For each j, a
//! warp stores words w and w + 1 of columns `VX` · l + j, for l up to 15. Each group of 32 columns
//! has 32 / `VX` different banks; the next 32 columns are shifted by two banks. A warp reads word 4
//! · (l mod 8) + j of column l / 8: 32 banks each time.

use super::rows::div_rem;
use kernel_dsl::prelude::*;

/// Returns the position of this lane's piece of `each` elements in step `step` of 16 warps: along
/// an axis with `lanes` adjacent pieces, `strips` times, and across it.
#[device]
fn piece(step: usize, lanes: usize, each: usize, strips: usize) -> (usize, usize) {
    let at = step * 16 + warp::index();
    let along = at % strips * (lanes * each) + warp::lane() % lanes * each;
    (along, at / strips * (32 / lanes) + warp::lane() / lanes)
}

/// Returns the row of the tile in shared memory that holds a column of x.
#[device]
fn tile_row(col: usize) -> usize {
    col + col / 32 * 2
}

/// Copies y[a, b, c, r] ← x[a, b, r, c], elements of 1, 2 or 4 bytes.
///
/// A block moves a tile of `COLS` columns by `WORDS` · `K` rows of x, with `K` elements per word of
/// 4 bytes. Accesses have `VX` elements of x and `VY` of y: 1 and 1, or `VX` up to 8 and `VY`
/// elements of 16 bytes.
///
/// Blocks are numbered down the rows of x first, so that concurrent blocks write whole rows of y.
/// For bytes, whose tile has only a line of 128 bytes per row, two neighboring tiles alternate. The
/// matrices are the outermost index.
#[kernel(
    block = 512,
    grid = x.dim(0) * x.dim(1) * x.dim(2).div_ceil(ROWS) * x.dim(3).div_ceil(COLS),
    instances(
        f32_vx4_vy4: T = f32, VX = 4, VY = 4, COLS = 64, WORDS = 64;
        f32_vx1_vy1: T = f32, VX = 1, VY = 1, COLS = 64, WORDS = 64;
        f16_vx8_vy8: T = f16, VX = 8, VY = 8, COLS = 128, WORDS = 32;
        i8_vx8_vy16: T = i8, VX = 8, VY = 16, COLS = 128, WORDS = 32
    ),
    derived(
        K = 4 / size_of::<T>(), ROWS = WORDS * K, PITCH = WORDS + 1, PLACES = COLS + COLS / 32 * 2 - 2,
        AX = 32 / VX.min(2), STEPS = COLS * WORDS / VX / 512, Q = VY.div_ceil(K), AY = 32 / Q, OUT = COLS * WORDS / Q / 512
    ),
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
    const COLS: usize,
    const WORDS: usize,
    const K: usize,
    const ROWS: usize,
    const PITCH: usize,
    const PLACES: usize,
    const AX: usize,
    const STEPS: usize,
    const Q: usize,
    const AY: usize,
    const OUT: usize,
>(
    x: View<T, 4>,
    y: ViewMut<T, 4>,
) {
    let mut tile = Shared::<[T; K], 2>::with_pitch([PLACES, WORDS], PITCH);
    let (rows, cols) = (x.dim(2), x.dim(3));
    let (across, down) = (cols.div_ceil(COLS), rows.div_ceil(ROWS));
    let (mut a, mut b, mut at) = (0, 0, block::x());
    if at >= across * down {
        let (plane, rest) = div_rem(at, across * down);
        let (outer, inner) = div_rem(plane, x.dim(1));
        a = outer;
        b = inner;
        at = rest;
    }
    let (across, down) = if size_of::<T>() == 1 {
        let (pair, at) = div_rem(at, 2 * down);
        if 2 * pair + 1 == across { (2 * pair, at) } else { (2 * pair + at % 2, at / 2) }
    } else {
        div_rem(at, down)
    };
    let (row0, col0) = (down * ROWS, across * COLS);
    let (x, mut y) = (x.at(a).at(b), y.at(a).at(b));

    // All loads are in flight before the first store waits for one. Beyond the edges the last row
    // or columns are loaded again. A condition would cost more: four bytes loaded under a condition
    // would be set and unpacked one by one.
    let mut held = [[[T::default(); VX]; K]; STEPS];
    for step in unroll(0..STEPS) {
        let (col, word) = piece(step, AX, VX, COLS / VX / AX);
        for k in unroll(0..K) {
            // If y is written by several elements, all rows of a word exist, or none does.
            let row = row0 + word * K;
            let row = if VY > 1 { row.min(rows - K) + k } else { (row + k).min(rows - 1) };
            held[step][k] = x.load((row, (col0 + col).min(cols - VX)));
        }
    }
    for step in unroll(0..STEPS) {
        let (col, word) = piece(step, AX, VX, COLS / VX / AX);
        for j in unroll(0..VX) {
            let mut w = [T::default(); K];
            for k in unroll(0..K) {
                w[k] = held[step][k][j];
            }
            tile[(tile_row(col) + j, word)] = w;
        }
    }
    block::sync();
    for step in unroll(0..OUT) {
        let (word, col) = piece(step, AY, Q, WORDS / Q / AY);
        let mut v = [T::default(); VY];
        for q in unroll(0..Q) {
            let w = tile[(tile_row(col), word + q)];
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
