//! Kernels that make planes of weights, from a file's blocks in every format, from bytes and from
//! numbers, and that make numbers of planes.

use super::formats::device::*;
use super::formats::*;
use super::round::{Quad, quantize_quad};
use crate::gemm::gemv::piece;
use kernel_dsl::prelude::*;

/// Repacks blocks of a file to planes, one unit per thread. A row of `file` has `units` units in
/// complete blocks.
///
/// `file` is [rows, bytes], and `words` and `halves` have the same rows.
#[kernel(
    block = 256, grid = (file.dim(0) * units).div_ceil(256), writes(words = once, halves = once),
    instances(F = Q4_0 | Q8_0 | Q4K | Q6K | Mxfp4),
)]
#[requires(
    F::NUMBERS * file.cols() == 32 * units * F::BYTES, words.rows() == file.rows(), words.cols() == F::words(units),
    halves.rows() == file.rows(), halves.cols() == F::halves(units),
)]
pub fn repack<F: BlockFormat>(file: View<u8, 2>, units: usize, words: ViewMut<u32, 2>, halves: ViewMut<u16, 2>) {
    let i = grid::index();
    if i < file.rows() * units {
        let (row, unit) = (i / units, i % units);
        let of_block = F::NUMBERS / 32;
        let block = file.offset((row, unit / of_block * F::BYTES)).at(0);
        F::pack(block, unit % of_block, words, halves, PlaneUnit { row, unit, units });
    }
}

/// Converts planes to numbers. Eight lanes have a unit, four numbers each. A number is scale · q in
/// `f32`, minus the minimum; both are rounded, as in ggml's reference. The result is then rounded
/// to its storage format.
///
/// x is [rows, cols], and `words` and `halves` have the same rows.
#[kernel(
    block = 256, grid = (8 * words.dim(0) * units).div_ceil(256), writes(x = once),
    instances(F = Q4_0 | Q8_0 | Q4K | Q6K, X = f32, V = 4; F = Mxfp4, X = f32, V = 1),
)]
#[requires(
    words.rows() == x.rows(), words.cols() == F::words(units), words.aligned(4), halves.rows() == x.rows(),
    halves.cols() == F::halves(units), x.cols() <= 32 * units, x.aligned(V), x.cols() % V == 0,
)]
pub fn dequantize<F: BlockFormat, X: Float, const V: usize>(
    words: View<u32, 2>,
    halves: View<u16, 2>,
    units: usize,
    x: ViewMut<X, 2>,
) {
    let (i, j) = (grid::index() / 8, grid::index() % 8);
    let (row, unit) = (i / units, i % units);
    let at = 32 * unit + 4 * j;
    if row < x.rows() && at < x.cols() {
        let w = F::unpack(F::load(words, halves, PlaneUnit { row, unit, units }), unit);
        let mut bytes = w.bytes[0];
        for k in unroll(1..8) {
            if j == k {
                bytes = w.bytes[k];
            }
        }
        let (scale, min) = if j < 4 { (w.scale[0], w.min[0]) } else { (w.scale[1], w.min[1]) };
        let mut numbers = [X::from_f32(0.0); 4];
        for b in unroll(0..4) {
            let product = scale * (F::STEP * int::extract(bytes, (8 * b) as u32, 8) as f32);
            numbers[b] = X::from_f32(if F::MINS { product - min } else { product });
        }
        if V == 4 {
            x.store((row, at), numbers);
        } else {
            x.store_in((row, at), numbers);
        }
    }
}

/// Repacks rows of bytes to planes of [`Int8`], with zeros beyond their end. A thread writes four
/// bytes.
///
/// `from` is [rows, cols], and `words` has the same rows.
#[kernel(block = 256, grid = (words.dim(0) * words.dim(1)).div_ceil(256), writes(words = once))]
#[requires(words.rows() == from.rows(), words.cols() == Int8::words(units), 32 * units >= from.cols())]
pub fn repack_rows(from: View<i8, 2>, units: usize, mut words: ViewMut<u32, 2>) {
    let i = grid::index();
    if i < words.rows() * words.cols() {
        let (row, word) = (i / words.cols(), i % words.cols());
        words[(row, in_halves(word, units))] = int::word(from.load_or::<4>((row, 4 * word), 0)) as u32;
    }
}

/// Quantizes rows of numbers to planes of Q8_0. Eight lanes have a unit, four numbers each (see
/// `quantize_quad`). Numbers beyond a row's end are zeros.
///
/// x is [rows, cols], and `words` and `halves` have the same rows.
#[kernel(
    block = 256, grid = (8 * words.dim(0) * units).div_ceil(256), writes(words = once, halves = once),
    instances(X = f32, V = 4 | 1),
)]
#[requires(
    words.rows() == x.rows(), words.cols() == Q8_0::words(units), halves.rows() == x.rows(), halves.cols() == Q8_0::halves(units),
    x.cols() <= 32 * units, x.aligned(V), x.cols() % V == 0,
)]
pub fn quantize_q8<X: Float, const V: usize>(
    x: View<X, 2>,
    units: usize,
    mut words: ViewMut<u32, 2>,
    mut halves: ViewMut<u16, 2>,
) {
    let i = grid::index();
    let (row, word) = (i / (8 * units), i % (8 * units));
    let inside = row < x.rows();
    let numbers = if inside { piece::<X, V, 4>(x, row, 4 * word, x.cols()).map(X::to_f32) } else { [0.0f32; 4] };
    // The call is outside of all branches: all lanes take part.
    let Quad { q, scale } = quantize_quad(numbers);
    if inside {
        words[(row, in_halves(word, units))] = int::word(q) as u32;
        if word % 8 == 0 {
            halves[(row, word / 8)] = f16::from_f32(scale).to_bits();
        }
    }
}

/// Quantizes rows of numbers to planes of Q4_0, as llama.cpp does (`quantize_row_q4_0_ref`). Let m
/// be the number with the largest magnitude. Then d is m / −8, so that m becomes 0, and q is ⌊x/d +
/// 8.5⌋, at most 15. A NaN counts as 0. Numbers beyond a row's end are zeros. A lane has the
/// numbers 2i, 2i + 1, 16 + 2i and 17 + 2i of a block. Even lanes write the results of two lanes.
///
/// x is [rows, cols], and `words` and `halves` have the same rows.
#[kernel(block = 256, grid = (8 * words.dim(0) * units).div_ceil(256), writes(words = once, halves = once), instances(X = f32))]
#[requires(
    words.rows() == x.rows(), words.cols() == Q4_0::words(units), halves.rows() == x.rows(), halves.cols() == Q4_0::halves(units),
    x.cols() <= 32 * units,
)]
pub fn quantize_q4<X: Float>(x: View<X, 2>, units: usize, mut words: ViewMut<u32, 2>, mut halves: ViewMut<u16, 2>) {
    let i = grid::index();
    let (row, pair) = (i / (8 * units), i % (8 * units));
    let first = pair / 8 * 32 + pair % 8 * 2;
    let number = |k: usize| {
        let number = x.get((row, k)).map_or(0.0, |x: X| x.to_f32());
        if number.is_nan() { 0.0 } else { number }
    };
    let numbers = [number(first), number(first + 1), number(first + 16), number(first + 17)];
    let larger = |a: f32, b: f32| if b.abs() > a.abs() || (b.abs() == a.abs() && b > a) { b } else { a };
    let mine = larger(larger(numbers[0], numbers[1]), larger(numbers[2], numbers[3]));
    let top = warp::group::<8>().reduce(mine, larger);
    // Zeros of either sign have the scale 0.
    let scale = top / -8.0 + 0.0;
    // A subnormal scale is 0 in `f16`, and its inverse may be infinite.
    let inverse = if scale.abs() < f32::MIN_POSITIVE { 0.0 } else { 1.0 / scale };
    // The highest bit of each number is inverted in the plane.
    let q = numbers.map(|x| (x.mul_add(inverse, 8.5) as u32).min(15) ^ 8);
    let bytes = q[0] | q[2] << 4 | q[1] << 8 | q[3] << 12;
    let other = warp::shuffle_xor(bytes, 1);
    if row < x.rows() && pair % 2 == 0 {
        words[(row, pair / 2)] = bytes | other << 16;
        if pair % 8 == 0 {
            halves[(row, pair / 8)] = f16::from_f32(scale).to_bits();
        }
    }
}

/// Returns the index of word `word` of a row of bytes, in planes of first and of last halves.
#[device]
fn in_halves(word: usize, units: usize) -> usize {
    word % 8 / 4 * 4 * units + word / 8 * 4 + word % 4
}
