//! Logits of the cases, and their order and scale in references.

use crate::stored::{drawn, stored};
use kernel_dsl::Element;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::sampling::best::{rank, score_of};
use runtime::testing::{Input, Random};

/// Temperatures, and magnitudes of logits: both ends of the ranges, and logits that are so large
/// that the sum loses the noise.
pub(super) const EXTREMES: [(f32, f64); 8] = [
    (f32::MIN_POSITIVE, 1.0),
    (f32::MIN_POSITIVE, 1e-38),
    (1.0, 1e8),
    (1.0, f32::MAX as f64),
    (3e28, f32::MAX as f64),
    (f32::MAX, f32::MAX as f64),
    (f32::INFINITY, 1.0),
    (f32::INFINITY, f32::MAX as f64),
];

/// The warps whose threads have the first and the second digit of a row's 1024th logit.
pub(super) const DIGIT_WARPS: [[usize; 2]; 3] = [[5, 8], [9, 16], [0, 17]];

/// The logits of a draw.
#[derive(Clone, Copy, Debug)]
pub(super) enum Among {
    /// Ordinary logits.
    Drawn,
    /// Logits with nearly equal weights in a warp, and a draw that differs with either of these
    /// bounds.
    Near([f64; 2]),
    /// Logits with an equal first half of their bits, and such a draw.
    Fine([f64; 2]),
    /// Logits whose second eight bits have every value once, and such a draw.
    Digits([f64; 2]),
    /// Logits with nearly equal weights, and such a draw. In even rows another logit dominates, the
    /// first of a thread's second iteration. Odd rows begin after the least and end with the
    /// largest logit.
    Long([f64; 2]),
    /// Logits with digits of each warp. The 1024th has digits of the warps in [`DIGIT_WARPS`].
    Spread,
    /// Equal logits.
    Equal,
    /// NaNs, −∞, both zeros, and repeated numbers.
    Special,
}

impl Among {
    /// Returns a matrix of such logits.
    pub(super) fn logits(self, random: &mut Random, instance: &Instance, [rows, cols]: [usize; 2]) -> Input {
        let special = [f32::NAN, f32::NEG_INFINITY, -0.0, 0.0, 1.5, -2.0, -0.5];
        match self {
            Among::Equal => Input::view(&vec![0.25f32; rows * cols], [rows, cols]),
            Among::Special => {
                let x: Vec<f32> = (0..rows * cols).map(|_| special[random.below(special.len())]).collect();
                Input::view(&x, [rows, cols])
            }
            Among::Near(_) => {
                let mut x: Vec<f32> = random.values(rows * cols);
                // Neighbors in a warp have similar weights, and warps differ. Columns 1023 and 1024
                // are large, the second in the threads' second iteration.
                x.iter_mut().enumerate().for_each(|(i, x)| *x += 40.0 * (i / 32 % 5) as f32);
                if let Some(x) = x.get_mut(1023..1025) {
                    x.fill(200.0);
                }
                // Large enough that one of the last is drawn.
                if let Some(x) = x.get_mut(3000..).and_then(|x| x.last_chunk_mut::<3>()) {
                    x.fill(3000.0);
                }
                Input::view(&x, [rows, cols])
            }
            Among::Fine(_) => {
                let x: Vec<f32> =
                    (0..rows * cols).map(|_| f32::from_bits(0x3e80_0000 + random.below(1 << 16) as u32)).collect();
                Input::view(&x, [rows, cols])
            }
            Among::Digits(_) => {
                let x: Vec<f32> =
                    (0..rows * cols).map(|i| f32::from_bits(0x3f00_0000 | (i as u32 * 77 % 256) << 16)).collect();
                Input::view(&x, [rows, cols])
            }
            Among::Long(_) => {
                let mut x: Vec<f32> = random.values(rows * cols);
                for (i, row) in x.chunks_mut(cols).enumerate() {
                    let (at, last) = if i % 2 == 0 { ((8192, 1e4), -5.0) } else { ((0, -5.0), 5.0) };
                    row[at.0] = at.1;
                    row[cols - 1] = last;
                }
                Input::view(&x, [rows, cols])
            }
            Among::Spread => {
                // The middle of the digits of a warp, whose threads have two digits each.
                let digit = |warp: usize| (2047 - 64 * warp - 32) as u64;
                let score = |first: u64, second: u64| score_of(first << 53 | second << 42);
                let element = |row: usize, i: usize| {
                    let [first, second] = DIGIT_WARPS[row].map(digit);
                    match i {
                        0..32 => score(digit(i), second),
                        32..64 => score(first, digit(i - 32)),
                        // The digit of another thread of the warp.
                        64 => score(first + 2, second),
                        65 => score(first, second + 2),
                        // More than half of the tokens that are still needed.
                        66..666 => score(digit(0), second),
                        666..916 => score(first, digit(0)),
                        _ => score(first, second),
                    }
                };
                let x: Vec<f32> = (0..rows * cols).map(|i| element(i / cols, i % cols)).collect();
                Input::view(&x, [rows, cols])
            }
            Among::Drawn => drawn(random, stored(instance), rows * cols, [rows, cols], [cols, 1]),
        }
    }

    /// Returns a temperature for such logits.
    pub(super) fn temperature(self, random: &mut Random) -> f32 {
        match self {
            Among::Near(_) | Among::Digits(_) | Among::Long(_) => 100.0,
            _ => [1.0f32, 0.125, 2.0][random.below(3)],
        }
    }

    /// Returns whether each bound that should give another draw does; `own` is the case's bound.
    pub(super) fn bounds_change_draw(self, own: f64, differs: impl Fn(f64) -> bool) -> bool {
        match self {
            Among::Near(bounds) | Among::Fine(bounds) | Among::Digits(bounds) | Among::Long(bounds) => {
                bounds.iter().all(|bound| *bound == own || differs(*bound))
            }
            _ => true,
        }
    }
}

/// Returns the sort key of a score: a NaN counts as −∞, and −0 as 0.
pub(crate) fn order(score: f64) -> f64 {
    if score.is_nan() { -1e300 } else { score.max(-1e300) + 0.0 }
}

/// Returns the temperature in a case's inputs, from `first` on: the scale and the spread.
pub(crate) fn temperature(inputs: &[Input], first: usize) -> f64 {
    inputs[first + 1].value() / inputs[first].value()
}

/// Returns the largest finite element, or 0.
pub(super) fn largest(x: &[f64]) -> f64 {
    x.iter().copied().filter(|x| x.is_finite()).reduce(f64::max).unwrap_or(0.0)
}

/// Returns the ranks of logits, row by row.
pub(super) fn ranks(x: &[f64], cols: usize) -> Vec<u64> {
    x.iter().enumerate().map(|(i, x)| rank(*x as f32, i % cols.max(1))).collect()
}

/// Returns elements with the extents of another matrix.
pub(super) fn shaped<T: Element>(like: &Input, elements: &[T]) -> Input {
    Input::view(elements, [like.extents()[0], like.extents()[1]])
}
