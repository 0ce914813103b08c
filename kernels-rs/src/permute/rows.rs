//! Copies that keep the order of the last axis, and what writes without reading.

use kernel_dsl::prelude::*;

/// i / n and i mod n, by one division.
#[device]
pub fn divided(i: usize, n: usize) -> (usize, usize) {
    let quotient = i / n;
    (quotient, i - quotient * n)
}

/// Where plane i is among `n` inner ones: a division of twenty instructions, but where there is one, as there mostly is. Up to 4096 planes have blocks of
/// their own; of more a block has several, as a grid's second axis ends at 65535, and few enough are blocks for a test to have more planes.
#[device]
pub fn plane(i: usize, n: usize) -> (usize, usize) {
    if n == 1 { (i, 0) } else { divided(i, n) }
}

/// Row and piece of the `at`-th piece of `rows` rows of `cols`.
#[device]
pub fn place(at: usize, rows: usize, cols: usize) -> (usize, usize) {
    if rows == 1 { (0, at) } else { divided(at, cols) }
}

/// `V` elements of a row, in accesses to `VX` of them: as many, or one by one where they do not lie side by side. The last axis of `x` has `VX` elements,
/// and the one before `PARTS` = V / VX to a piece.
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

/// y ← x, `V` elements at once of y, and `VX` of x: as many, or one where they do not lie side by side there. Of both the last axis is a piece: `V`
/// elements of y, `VX` of x, which has V / VX times as many of them.
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
            let (row, piece) = place(at, rows, pieces);
            y.store((row, piece, 0), fetch::<T, V, VX, PARTS>(x, row, piece));
        }
    }
}

/// y ← value, `V` elements at once.
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
            let (row, piece) = place(at, rows, pieces);
            y.store((row, piece, 0), [value; V]);
        }
    }
}
