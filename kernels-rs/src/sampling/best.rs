//! The token with the largest score, by two kernels: a block finds the best element of a stretch of
//! a row, and a warp the best of a row's stretches.
//!
//! Elements are compared in the [order of all kernels](crate#the-order-of-numbers).

use super::random::{RandomStream, gumbel, words};
use kernel_dsl::prelude::*;

/// Returns an integer that is larger for larger numbers, and equal for 0 and −0, and for NaN and
/// −∞.
#[device]
pub fn orderable(x: f32) -> u32 {
    let bits = (x.max(f32::NEG_INFINITY) + 0.0).to_bits();
    bits ^ ((bits as i32 >> 31) as u32 | 0x8000_0000)
}

/// Returns an integer, never 0, that is larger for elements that come first in descending
/// [order](crate#the-order-of-numbers).
#[device]
pub fn rank(score: f32, column: usize) -> u64 {
    (orderable(score) as u64) << 32 | !(column as u32) as u64
}

/// Returns the column of a rank; `u32::MAX` for 0, which is not an element's rank.
#[device]
pub fn column_of(rank: u64) -> u32 {
    !(rank as u32)
}

/// Returns the score of a rank: −∞ for a NaN, and for 0, which is not an element's rank.
#[device]
pub fn score_of(rank: u64) -> f32 {
    let bits = (rank >> 32) as u32;
    if bits == 0 { f32::NEG_INFINITY } else { f32::from_bits(if bits >> 31 == 1 { bits ^ 0x8000_0000 } else { !bits }) }
}

/// A temperature T in the kernels' form: x / T is `(scale · x) / spread`, where `scale` is a power
/// of two.
///
/// `scale` keeps `spread` and its inverse within the normal numbers. [`Temperature::of`] computes
/// the form.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
pub struct Temperature {
    /// 1; 2⁻⁶⁴ for temperatures above 2⁹⁶, whose noise would make the largest numbers infinite;
    /// 2⁻¹⁴⁹ for ∞.
    pub scale: f32,
    /// T times `scale`; 2¹⁰⁰ for ∞.
    pub spread: f32,
    /// 1 / `spread`.
    pub inverse: f32,
}

impl Temperature {
    /// Returns the kernels' form of a temperature of at least `f32::MIN_POSITIVE`.
    ///
    /// An infinite temperature has a spread of 2²⁴⁹ relative to its scale, for which all finite
    /// logits are equal.
    #[must_use]
    pub fn of(temperature: f32) -> Temperature {
        let (scale, spread) = if temperature == f32::INFINITY {
            (f32::from_bits(1), 2f32.powi(100))
        } else if temperature > 2f32.powi(96) {
            (2f32.powi(-64), temperature * 2f32.powi(-64))
        } else {
            (1.0, temperature)
        };
        Temperature { scale, spread, inverse: 1.0 / spread }
    }
}

/// An element and its score, which is exactly `high` + `low`.
#[device]
#[derive(Clone, Copy, Debug, DeviceCopy)]
#[repr(C)]
pub struct Scored {
    /// The score, rounded.
    pub high: f32,
    /// The rounding error of `high`; 0 or NaN for infinite scores.
    pub low: f32,
    /// The element's column; `u32::MAX` for no element.
    pub column: u32,
}

/// Returns a placeholder that every element is better than.
#[device]
pub fn no_element() -> Scored {
    Scored { high: f32::NEG_INFINITY, low: 0.0, column: u32::MAX }
}

/// Returns whether the score of `b` is larger than that of `a`. Infinite scores of one sign are
/// equal: a NaN in `low` is not larger.
#[device]
pub fn beats(b: Scored, a: Scored) -> bool {
    (b.high > a.high) | ((b.high == a.high) & (b.low > a.low))
}

/// Returns the element with the larger score, or for equal scores the one with the smaller column.
/// `high` is never NaN.
#[device]
pub fn better(a: Scored, b: Scored) -> Scored {
    if beats(b, a) | (!beats(a, b) & (b.column < a.column)) { b } else { a }
}

/// Returns an element with T · noise added to its logit, exactly. Therefore two sums are compared
/// without rounding, however large the logits are.
///
/// The sum and its error are those of Knuth's TwoSum (Møller, *Quasi double-precision in floating
/// point addition*, 1965). These sums have the order of x/T + noise, which need not be finite.
#[device]
pub fn noisy(x: f32, noise: f32, column: usize, of: Temperature) -> Scored {
    let noise = noise * of.spread;
    // Products with a power of two are exact, and each sum is rounded once.
    let high = x.mul_add(of.scale, noise);
    let of_noise = x.mul_add(-of.scale, high);
    let low = x.mul_add(of.scale, of_noise - high) + (noise - of_noise);
    Scored { high, low, column: column as u32 }
}

/// The number of columns that a block takes at once, 4 per thread.
#[device]
const COLUMNS_PER_STEP: usize = 4 * 256;

/// Finds the best element of each of the `parts.cols()` stretches of a row: by its logit, or if
/// `NOISE` is true by its logit with noise.
///
/// A stretch without elements has [none](no_element).
///
/// `logits` is [rows, columns], and `parts` is [rows, stretches].
#[kernel(
    block = 256, grid = (logits.rows(), parts.cols()), writes(parts = once),
    instances(T = f32, NOISE = false | true, V = 4; T = f16, NOISE = true, V = 1),
)]
#[requires(parts.rows() == logits.rows(), parts.cols() > 0, logits.aligned(V), logits.cols() % V == 0)]
pub fn best_parts<T: Float, const NOISE: bool, const V: usize>(
    logits: View<T, 2>,
    temperature: Temperature,
    stream: RandomStream,
    mut parts: ViewMut<Scored, 2>,
) {
    let (row, part) = (block::x(), block::y());
    let each = logits.cols().div_ceil(parts.cols()).next_multiple_of(4);
    let first = (part * each).min(logits.cols());
    let end = (first + each).min(logits.cols());
    let of_row = logits.at(row);
    let mut best = no_element();
    for at in (first + 4 * thread::x()..end).step_by(COLUMNS_PER_STEP) {
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
        let x = x.map(T::to_f32);
        let words = if NOISE { words(stream, row, (at / 4) as u32) } else { [0u32; 4] };
        for i in unroll(0..4) {
            if V == 4 || at + i < end {
                // The first of equal scores is kept; −∞ and NaN never replace it.
                if NOISE {
                    let one = noisy(x[i], gumbel(words[i], words[(i + 1) % 4]), at + i, temperature);
                    if beats(one, best) {
                        best = one;
                    }
                } else if x[i] > best.high {
                    (best.high, best.column) = (x[i], (at + i) as u32);
                }
            }
        }
    }
    let mut best = block::reduce(best, better);
    if best.column == u32::MAX && first < end {
        // The stretch contains only −∞ and NaN.
        best.column = first as u32;
    }
    if thread::x() == 0 {
        parts[(row, part)] = best;
    }
}

/// Finds the column of each row's best element, with one warp per row.
///
/// `parts` is [rows, stretches], and `tokens` has one element for each row.
#[kernel(block = (32, 8), grid = parts.rows().div_ceil(8), writes(tokens = once))]
#[requires(tokens.len() == parts.rows())]
pub fn best_of_parts(parts: View<Scored, 2>, mut tokens: ViewMut<u32, 1>) {
    let row = block::x() * 8 + thread::y();
    let of_row = if row < parts.rows() { parts.cols() } else { 0 };
    let mut best = no_element();
    for part in (thread::x()..of_row).step_by(32) {
        best = better(best, parts[(row, part)]);
    }
    let best = warp::reduce(best, better);
    if thread::x() == 0 && row < tokens.len() {
        tokens[row] = best.column;
    }
}
