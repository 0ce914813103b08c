//! Copies that keep the order of the last axis, and kernels that write without reading.

use kernel_dsl::prelude::*;

/// Returns i / n and i mod n, with a single division.
#[device]
pub fn div_rem(i: usize, n: usize) -> (usize, usize) {
    let quotient = i / n;
    (quotient, i - quotient * n)
}

/// Returns the outer and inner index of plane i, with `n` inner planes. The division of twenty
/// instructions is skipped if there is one inner plane, the usual case. Up to 4096 planes have one
/// block each along y. More planes are distributed over 4096, because the grid's y axis is limited
/// to 65535; the number is small enough for a test to exceed it.
#[device]
pub fn plane(i: usize, n: usize) -> (usize, usize) {
    if n == 1 { (i, 0) } else { div_rem(i, n) }
}

/// Returns row and column of the `at`-th piece of `rows` rows with `cols` pieces.
#[device]
pub fn row_and_piece(at: usize, rows: usize, cols: usize) -> (usize, usize) {
    if rows == 1 { (0, at) } else { div_rem(at, cols) }
}

/// Loads `V` elements of a row by accesses of `VX` elements: all at once, or one by one if they are
/// not adjacent. The last axis of `x` has `VX` elements, and the one before it `PARTS` = V / VX
/// accesses per piece.
#[device]
pub fn fetch<T: Number, const V: usize, const VX: usize, const PARTS: usize>(
    x: View<T, 3>,
    row: usize,
    piece: usize,
) -> [T; V] {
    let mut v = [T::default(); V];
    for part in unroll(0..PARTS) {
        let few = x.load::<VX>((row, piece * PARTS + part, 0));
        for e in unroll(0..VX) {
            v[part * VX + e] = few[e];
        }
    }
    v
}

/// Copies y ← x, by accesses of `V` elements of y and `VX` of x.
///
/// `VX` is `V`, or 1 if elements of x are not adjacent. The last axis of each array is an access:
/// `V` elements of y, or `VX` of x, which has V / VX times the number of accesses.
///
/// y is [outer plane, inner plane, row, piece, `V`], and x is [outer plane, inner plane, row,
/// access, `VX`].
#[kernel(
    block = 256,
    grid = ((y.dim(2) * y.dim(3)).div_ceil(256), (y.dim(0) * y.dim(1)).min(4096)),
    instances(T = f32, V = 4, VX = 4 | 1; T = f32, V = 1, VX = 1; T = i8, V = 16, VX = 16),
    derived(PARTS = V / VX),
    writes(y = once),
)]
#[requires(
    x.dim(0) == y.dim(0), x.dim(1) == y.dim(1), x.dim(2) == y.dim(2), x.dim(3) == y.dim(3) * PARTS, x.dim(4) == VX,
    y.dim(4) == V, x.aligned(VX), y.aligned(V),
)]
pub fn copy_rows<T: Number, const V: usize, const VX: usize, const PARTS: usize>(x: View<T, 5>, y: ViewMut<T, 5>) {
    let (planes, rows, pieces) = (y.dim(1), y.dim(2), y.dim(3));
    for at in (block::y()..y.dim(0) * planes).step_by(grid::dim_y()) {
        let (outer, inner) = plane(at, planes);
        let (x, y) = (x.at(outer).at(inner), y.at(outer).at(inner));
        let at = grid::index();
        if at < rows * pieces {
            let (row, piece) = row_and_piece(at, rows, pieces);
            y.store((row, piece, 0), fetch::<T, V, VX, PARTS>(x, row, piece));
        }
    }
}

/// Fills y with `value`, `V` elements at once.
///
/// y is [outer plane, inner plane, row, piece, `V`].
#[kernel(
    block = 256,
    grid = ((y.dim(2) * y.dim(3)).div_ceil(256), (y.dim(0) * y.dim(1)).min(4096)),
    instances(T = f32, V = 4 | 1),
    writes(y = once),
)]
#[requires(y.dim(4) == V, y.aligned(V))]
pub fn fill_rows<T: Number, const V: usize>(value: T, y: ViewMut<T, 5>) {
    let (planes, rows, pieces) = (y.dim(1), y.dim(2), y.dim(3));
    for at in (block::y()..y.dim(0) * planes).step_by(grid::dim_y()) {
        let (outer, inner) = plane(at, planes);
        let y = y.at(outer).at(inner);
        let at = grid::index();
        if at < rows * pieces {
            let (row, piece) = row_and_piece(at, rows, pieces);
            y.store((row, piece, 0), [value; V]);
        }
    }
}
