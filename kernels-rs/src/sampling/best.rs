//! The token of the largest score, by two kernels: a block finds the best of a stretch of a row, a warp the best of a row's stretches.
//!
//! Scores and columns are compared as one integer of 64 bits, ordered as they are: the larger score, then the smaller column.

use super::random::{Stream, gumbel, words};
use kernel_dsl::prelude::*;

/// In the order of floats, −0 as 0; a NaN is below all.
#[device]
pub fn orderable(x: f32) -> u32 {
    let bits = (x + 0.0).to_bits();
    if x.is_nan() { 0 } else { bits ^ ((bits as i32 >> 31) as u32 | 0x8000_0000) }
}

/// The larger score first, then the smaller column. Never 0.
#[device]
pub fn rank(score: f32, column: usize) -> u64 {
    (orderable(score) as u64) << 32 | !(column as u32) as u64
}

/// The column of a rank.
#[device]
pub fn column_of(rank: u64) -> u32 {
    !(rank as u32)
}

/// The score of a rank; a NaN, which is below all, comes back as −∞.
#[device]
pub fn score_of(rank: u64) -> f32 {
    let bits = (rank >> 32) as u32;
    if bits == 0 { f32::NEG_INFINITY } else { f32::from_bits(if bits >> 31 == 1 { bits ^ 0x8000_0000 } else { !bits }) }
}

/// Columns that a block takes at once, 4 a thread.
#[device]
const AT_ONCE: usize = 4 * 256;

/// The best score of each stretch of a row, `scores.cols()` of them, and its column: of the logits, or where `NOISE` is true of those over the
/// temperature with noise. A stretch without elements has −∞, and `u32::MAX` for a column.
#[kernel(
    block = 256, grid = (logits.rows(), scores.cols()), writes(scores = once, columns = once),
    instances(T = f32, NOISE = false | true, V = 4; T = f16, NOISE = true, V = 1),
)]
#[requires(
    scores.rows() == logits.rows(), columns.rows() == logits.rows(), columns.cols() == scores.cols(), scores.cols() > 0, logits.aligned(V), logits.cols() % V == 0,
    inverse_temperature > 0.0,
)]
pub fn best_parts<T: Float, const NOISE: bool, const V: usize>(
    logits: View<T, 2>,
    inverse_temperature: f32,
    stream: Stream,
    mut scores: ViewMut<f32, 2>,
    mut columns: ViewMut<u32, 2>,
) {
    let (row, part) = (block::x(), block::y());
    let each = logits.cols().div_ceil(scores.cols()).next_multiple_of(4);
    let first = (part * each).min(logits.cols());
    let end = (first + each).min(logits.cols());
    let of_row = logits.at(row);
    let mut best = 0u64;
    for at in (first + 4 * thread::x()..end).step_by(AT_ONCE) {
        let mut x = [T::from_f32(0.0); 4];
        if V == 4 {
            x = of_row.load(at);
        } else {
            for i in unroll(0..4) {
                if at + i < end {
                    x[i] = of_row[at + i];
                }
            }
        }
        let mut x = x.map(T::to_f32);
        if NOISE {
            let words = words(stream, row, (at / 4) as u32);
            for i in unroll(0..4) {
                x[i] = x[i] * inverse_temperature + gumbel(words[i]);
            }
        }
        for i in unroll(0..4) {
            if V == 4 || at + i < end {
                best = best.max(rank(x[i], at + i));
            }
        }
    }
    let best = block::max(best);
    if thread::x() == 0 {
        scores[(row, part)] = score_of(best);
        columns[(row, part)] = column_of(best);
    }
}

/// The column of each row's best score, a warp a row.
#[kernel(block = (32, 8), grid = scores.rows().div_ceil(8), writes(tokens = once))]
#[requires(tokens.len() == scores.rows(), columns.rows() == scores.rows(), columns.cols() == scores.cols())]
pub fn best_of_parts(scores: View<f32, 2>, columns: View<u32, 2>, mut tokens: ViewMut<u32, 1>) {
    let row = block::x() * 8 + thread::y();
    let parts = if row < scores.rows() { scores.cols() } else { 0 };
    let mut best = 0u64;
    for part in (thread::x()..parts).step_by(32) {
        best = best.max(rank(scores[(row, part)], columns[(row, part)] as usize));
    }
    let best = warp::max(best);
    if thread::x() == 0 && row < tokens.len() {
        tokens[row] = column_of(best);
    }
}
