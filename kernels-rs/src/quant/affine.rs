//! The conversion of numbers to bytes and back, with a scale and a zero point for a matrix or for
//! each of its rows: x ≈ scale · (q − zero).
//!
//! ```text
//!   x [rows, cols] ── extremes ──▶ [rows, parts] least and greatest ── affine_fit ──▶ scale, zero ──┐
//!        └──────────────────────────────── quantize_affine ◀────────────────────────────────────────┘
//! ```
//!
//! All kernels are limited by memory: x is read once for its extremes and once to be quantized, by
//! accesses of four elements.

use super::round::unit;
use crate::gemm::gemv::piece;
use kernel_dsl::prelude::*;

/// Computes the least and the greatest finite number of each part of a row. A block reads every
/// `parts`th piece of 1024 elements, four per thread. Without finite numbers, the least is +∞ and
/// the greatest −∞.
///
/// x is [rows, cols], and `lows` and `highs` are [rows, parts].
#[kernel(
    block = 256, grid = lows.dim(0) * lows.dim(1), writes(lows = once, highs = once),
    instances(X = f32 | f16, V = 4),
)]
#[requires(
    lows.rows() == x.rows(), highs.rows() == x.rows(), lows.cols() > 0, highs.cols() == lows.cols(),
    x.aligned(V), x.cols() % V == 0,
)]
pub fn extremes<X: Float, const V: usize>(x: View<X, 2>, mut lows: ViewMut<f32, 2>, mut highs: ViewMut<f32, 2>) {
    let parts = lows.cols();
    let (row, part) = (block::x() / parts, block::x() % parts);
    let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
    for at in (part * 1024..x.cols()).step_by(parts * 1024) {
        let k = at + 4 * thread::index();
        let numbers = piece::<X, V, 4>(x, row, k, x.cols());
        for j in unroll(0..4) {
            let number = numbers[j].to_f32();
            if k + j < x.cols() && number.abs() < f32::INFINITY {
                low = low.min(number);
                high = high.max(number);
            }
        }
    }
    let (low, high) = (block::min(low), block::max(high));
    if thread::index() == 0 {
        lows[(row, part)] = low;
        highs[(row, part)] = high;
    }
}

/// Computes the scale and zero point of each row of extremes. A warp handles a row.
///
/// If symmetric, scale = max(|low|, |high|) / 127, and the zero point is 0. Otherwise low ≤ 0 ≤
/// high and scale = (high − low) / 255. The zero point is −128 − low / scale, rounded to even, so
/// that 0 is exact (Jacob et al., 2018, section 3). If all numbers are 0, both are 0. The scale is
/// finite even if high − low is not. A subnormal scale is rounded up.
///
/// `lows` and `highs` are [rows, parts], and `scale` and `zero` have one element for each row.
#[kernel(block = 256, grid = scale.len().div_ceil(8), writes(scale = once, zero = once), instances(SYMMETRIC = true | false))]
#[requires(lows.rows() == scale.len(), highs.rows() == scale.len(), highs.cols() == lows.cols(), zero.len() == scale.len())]
pub fn affine_fit<const SYMMETRIC: bool>(lows: View<f32, 2>, highs: View<f32, 2>, scale: &mut [f32], zero: &mut [i32]) {
    let row = block::x() * 8 + warp::index();
    if row >= scale.len() {
        return;
    }
    let (mut low, mut high) = (0.0f32, 0.0f32);
    for i in (warp::lane()..lows.cols()).step_by(32) {
        low = low.min(lows[(row, i)]);
        high = high.max(highs[(row, i)]);
    }
    let (low, high) = (warp::min(low), warp::max(high));
    // If the difference overflows, it is computed from halves.
    let half = if high - low < f32::INFINITY { 1.0 } else { 0.5 };
    let unit = if SYMMETRIC { unit(high.max(-low), 127.0) } else { unit(high * half - low * half, 255.0 * half) };
    if warp::lane() == 0 {
        scale[row] = unit;
        zero[row] = if SYMMETRIC || unit == 0.0 { 0 } else { (-128.0 - (low / unit).round_ties_even()) as i32 };
    }
}

/// Computes q = x · (1 / scale), rounded to even, + zero. Results beyond the range of bytes,
/// infinities included, become the nearest byte; a NaN becomes the byte 0. There is one scale and
/// zero point, or one for each row.
///
/// x and q are [rows, cols].
#[kernel(
    block = 256, grid = (x.dim(0) * x.dim(1).div_ceil(4)).div_ceil(256), writes(q = once),
    instances(X = f32, V = 4 | 1; X = f16, V = 4),
)]
#[requires(
    q.rows() == x.rows(), q.cols() == x.cols(), scale.len() == 1 || scale.len() == x.rows(), zero.len() == scale.len(),
    x.aligned(V), q.aligned(V), x.cols() % V == 0,
)]
pub fn quantize_affine<X: Float, const V: usize>(x: View<X, 2>, scale: &[f32], zero: &[i32], q: ViewMut<i8, 2>) {
    let (i, quads) = (grid::index(), x.cols().div_ceil(4));
    if i >= x.rows() * quads {
        return;
    }
    let (row, at) = (i / quads, i % quads * 4);
    let which = row.min(scale.len() - 1);
    // The factor is 2⁶⁴ for scales below 2⁻¹⁰⁰, so that the inverse of a subnormal scale is finite.
    // Numbers that become infinite by it are out of range in any case.
    let lift = if scale[which] < 7.888_609e-31 { 18_446_744_073_709_551_616.0f32 } else { 1.0 };
    let (inverse, zero) = (1.0 / (scale[which] * lift), zero[which] as f32);
    let byte = |x: X| ((x.to_f32() * lift * inverse).round_ties_even() + zero) as i8;
    if V == 4 {
        q.store((row, at), x.load::<4>((row, at)).map(byte));
    } else {
        q.store_in((row, at), x.load_or::<4>((row, at), X::from_f32(0.0)).map(byte));
    }
}

/// Computes x = scale · (q − zero). The product is rounded to `f32`, clamped to ±`f32::MAX`, and
/// rounded to the type of x. There is one scale and zero point, or one for each row.
///
/// q and x are [rows, cols].
#[kernel(
    block = 256, grid = (x.dim(0) * x.dim(1).div_ceil(4)).div_ceil(256), writes(x = once),
    instances(X = f32, V = 4 | 1),
)]
#[requires(
    q.rows() == x.rows(), q.cols() == x.cols(), scale.len() == 1 || scale.len() == x.rows(), zero.len() == scale.len(),
    x.aligned(V), q.aligned(V), x.cols() % V == 0,
)]
pub fn dequantize_affine<X: Float, const V: usize>(q: View<i8, 2>, scale: &[f32], zero: &[i32], x: ViewMut<X, 2>) {
    let (i, quads) = (grid::index(), x.cols().div_ceil(4));
    if i >= x.rows() * quads {
        return;
    }
    let (row, at) = (i / quads, i % quads * 4);
    let which = row.min(scale.len() - 1);
    let (scale, zero) = (scale[which], zero[which]);
    // The least and the greatest byte may represent numbers half a unit beyond the extremes.
    let number = |q: i8| X::from_f32((scale * (q as i32 - zero) as f32).max(f32::MIN).min(f32::MAX));
    if V == 4 {
        x.store((row, at), q.load::<4>((row, at)).map(number));
    } else {
        x.store_in((row, at), q.load_or::<4>((row, at), 0).map(number));
    }
}
