//! A row shared by a team of threads: loads, stores, and reductions.
//!
//! A team is a warp, if a block has several teams, or a whole block of `L` threads. Thread t has
//! the pieces i = 0 … `N` − 1 of a stretch of the row, `V` elements each:
//!
//! ```text
//!   a row     ├─ kept: N·L·V elements ──────────────┼─ read again ────────┤
//!   piece     │ 0: t = 0 │ t = 1 │ …   │ 1: t = 0 │ …
//!   elements    V          V             V
//! ```
//!
//! Neighboring threads have neighboring pieces, so that each access of a warp has 32·V consecutive
//! elements: 512 bytes if V elements are 16 bytes. All pieces of a thread are in flight before the
//! first is used. Elements that fit are kept in registers and read from memory once. The others are
//! read once more for each reduction and once for the result. These passes find most of a recently
//! read row in the L2 cache.
//!
//! The code for the kept pieces and the code for the pieces that are read again call the same
//! functions, with `N` pieces and with `S`. [`for_each_unkept`] runs the latter code.

use kernel_dsl::prelude::*;

/// Returns whether a team's row is one of `rows`: the last block may have teams without a row.
#[device]
pub fn is_row<const ROWS: usize>(row: usize, rows: usize) -> bool {
    if ROWS == 1 { true } else { row < rows }
}

/// Returns the first element of a thread's piece `i`, in the stretch that begins at `at`.
#[device]
pub fn begins<const L: usize, const V: usize>(at: usize, i: usize) -> usize {
    at + (i * L + thread::x()) * V
}

/// Calls `f` with the beginning of each stretch that is not kept in registers: `S` pieces for each
/// thread, up to `end`.
#[device]
pub fn for_each_unkept<const L: usize, const V: usize, const N: usize, const S: usize>(
    end: usize,
    mut f: impl FnMut(usize),
) {
    for at in (N * L * V..end).step_by(S * L * V) {
        f(at);
    }
}

/// Calls `f` as [`for_each_unkept`] does, in a loop that ptxas does not unroll.
#[device]
pub fn for_each_unkept_rolled<const L: usize, const V: usize, const N: usize, const S: usize>(
    end: usize,
    mut f: impl FnMut(usize),
) {
    for at in rolled((N * L * V..end).step_by(S * L * V)) {
        f(at);
    }
}

/// Loads a thread's pieces of a stretch from `at` on, as `f32`, with `fill` beyond `end`. A piece
/// that begins before `end` is read as a whole.
#[device]
pub fn take<T: Float, const L: usize, const V: usize, const N: usize>(
    x: View<T, 1>,
    at: usize,
    end: usize,
    fill: f32,
) -> [[f32; V]; N] {
    let mut raw = [[T::from_f32(fill); V]; N];
    for i in unroll(0..N) {
        if begins::<L, V>(at, i) < end {
            raw[i] = x.load(begins::<L, V>(at, i));
        }
    }
    let mut values = [[fill; V]; N];
    for i in unroll(0..N) {
        values[i] = raw[i].map(T::to_f32);
    }
    values
}

/// Stores a thread's pieces of a stretch from `at` on.
#[device]
pub fn put<T: Float, const L: usize, const V: usize, const N: usize>(
    y: ViewMut<T, 1>,
    at: usize,
    end: usize,
    values: &[[f32; V]; N],
) {
    for i in unroll(0..N) {
        if begins::<L, V>(at, i) < end {
            y.store(begins::<L, V>(at, i), values[i].map(T::from_f32));
        }
    }
}

/// Returns the sum of the team's `x`: by a butterfly for a warp, and by two levels of butterflies
/// for a block.
#[device]
pub fn sum<const L: usize>(x: f32) -> f32 {
    if L == 32 { warp::sum(x) } else { block::sum(x) }
}

/// Returns the largest of the team's `x`, ignoring NaNs.
#[device]
pub fn max<const L: usize>(x: f32) -> f32 {
    if L == 32 { warp::max(x) } else { block::max(x) }
}
