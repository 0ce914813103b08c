//! A row shared by the threads of a team: how it is read and written, and how the team comes to one number.
//!
//! A team is a warp, where a block has several, or a whole block of `L` threads. Thread t has the pieces i = 0 … `N` − 1 of a stretch
//! of the row, `V` elements each:
//!
//! ```text
//!   a row     ├─ kept: N·L·V elements ──────────────┼─ read again ────────┤
//!   piece     │ 0: t = 0 │ t = 1 │ …   │ 1: t = 0 │ …
//!   elements    V          V             V
//! ```
//!
//! Neighbors in the team have neighboring pieces, so that each access of a warp is of 32·V consecutive elements: 512 bytes where V
//! elements are 16 bytes. All pieces of a thread are under way before the first is used. What fits is kept in registers and read from
//! memory once; what lies behind is passed over once more for each reduction and once for the result. Of rows that blocks have
//! just read, these passes find most in the second cache.

use kernel_dsl::prelude::*;

/// Whether a team's row is one of `rows`: the last block of several rows has teams without one.
#[device]
pub fn is_row<const ROWS: usize>(row: usize, rows: usize) -> bool {
    if ROWS == 1 { true } else { row < rows }
}

/// Where a thread's piece `i` of the stretch that begins at `at` begins.
#[device]
pub fn begins<const L: usize, const V: usize>(at: usize, i: usize) -> usize {
    at + (i * L + thread::x()) * V
}

/// A thread's pieces of a stretch from `at` on, `fill` where they lie behind `end`, as `f32`. A piece that begins before `end` is read as a
/// whole.
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

/// The other way.
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

/// The sum of the team's `x`: of a warp by a butterfly, of a block by a butterfly of each warp's and one of the warps'.
#[device]
pub fn sum<const L: usize>(x: f32) -> f32 {
    if L == 32 { warp::sum(x) } else { block::sum(x) }
}

/// The largest of the team's `x`; a NaN loses.
#[device]
pub fn max<const L: usize>(x: f32) -> f32 {
    if L == 32 { warp::max(x) } else { block::max(x) }
}
