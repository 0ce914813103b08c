//! Activations that are stored as bytes with a scale for each 32 numbers, and quantized once for
//! all products that use them.
//!
//! Rows are stored in groups of 8, or of 1, 2 or 4 if there are fewer rows. Within a group, the
//! same unit of all rows is contiguous, so that a block of threads copies it unchanged:
//!
//! ```text
//!   bytes   group ─▶ unit 0: row 0, row 1, … │ unit 1: row 0, row 1, … │ …     8 words a row
//!   factors group ─▶ unit 0: row 0, row 1, … │ unit 1: row 0, row 1, … │ …     4 floats a row
//! ```
//!
//! A unit is 32 numbers. Let Σ be the sum of its bytes. The factors of a unit are its scale,
//! scale · Σ, scale · Σ of the first 16 bytes and scale · Σ of the last 16. Formats with a minimum
//! subtract the minimum times scale · Σ.

use super::round::{Quad, quantize_quad};
use crate::activation::swiglu;
use crate::gemm::gemv::piece;
use kernel_dsl::prelude::*;

/// Quantizes rows of numbers by `quantize_quad`, in groups of `room` rows. Eight lanes compute a
/// unit, four numbers each. The numbers are those of `x`, or F(x, y) of both if `GATED`. Output row
/// i is row i of `x`, or row `order[i]` / `chosen` if `order` is not empty. Elements beyond a row's
/// end, missing rows, and rows whose `order` is negative are zeros.
#[kernel(
    block = 256, grid = (bytes.dim(0) * bytes.dim(1)).div_ceil(256), writes(bytes = once, factors = once),
    instances(
        X = f32, F = swiglu, GATED = false, V = 4 | 1;
        X = f16, F = swiglu, GATED = false, V = 4;
        X = f32, F = swiglu, GATED = true, V = 4
    ),
)]
#[requires(
    room > 0, chosen > 0, bytes.cols() % (8 * room) == 0, factors.rows() == bytes.rows(), 2 * factors.cols() == bytes.cols(),
    if order.is_empty() { bytes.rows() * room >= x.rows() } else { order.len() == bytes.rows() * room },
    x.cols() * room <= 4 * bytes.cols(), factors.aligned(4), x.aligned(V), x.cols() % V == 0,
    !GATED || y.rows() == x.rows() && y.cols() == x.cols() && y.aligned(V),
)]
pub fn quantize_activations<X: Float, F: DeviceFn<(f32, f32), Output = f32>, const GATED: bool, const V: usize>(
    x: View<X, 2>,
    y: View<X, 2>,
    order: &[i32],
    chosen: usize,
    room: usize,
    mut bytes: ViewMut<i32, 2>,
    factors: ViewMut<f32, 2>,
) {
    let i = grid::index();
    let (group, at) = (i / bytes.cols(), i % bytes.cols());
    let (unit, word) = (at / 8 / room, at % 8);
    let mut row = group * room + at / 8 % room;
    if !order.is_empty() {
        // A negative number selects a row beyond all rows.
        let of = if row < order.len() { order[row] } else { -1 };
        row = if of < 0 { x.rows() } else { of as usize / chosen };
    }
    let mut numbers = [0.0f32; 4];
    if row < x.rows() {
        numbers = piece::<X, V, 4>(x, row, 32 * unit + 4 * word, x.cols()).map(X::to_f32);
        if GATED {
            let other = piece::<X, V, 4>(y, row, 32 * unit + 4 * word, x.cols()).map(X::to_f32);
            for e in unroll(0..4) {
                // Beyond the end, F of zeros need not be 0.
                let there = 32 * unit + 4 * word + e < x.cols();
                numbers[e] = if there { F::call((numbers[e], other[e])) } else { 0.0 };
            }
        }
    }
    // The call is outside of all branches: all lanes take part.
    let Quad { q, scale } = quantize_quad(numbers);
    let sum = warp::group::<4>().sum(dp4a(q, [1i8; 4], 0));
    let other = warp::shuffle_xor(sum, 4);
    if group < bytes.rows() {
        bytes[(group, at)] = int::word(q);
        if word == 0 {
            let (first, last) = (sum as f32, other as f32);
            factors.store((group, at / 2), [scale, scale * (first + last), scale * first, scale * last]);
        }
    }
}
