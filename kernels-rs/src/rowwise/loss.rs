//! Cross-entropy of logits and labels, and its gradient, without storing the probabilities.
//!
//! ```text
//!   log Σ exp(x)    online, over a row that is read once (see [`softmax`](super::softmax))
//!   loss = log Σ exp(x) − (1 − α) · x[label] − α · mean x        α: label smoothing (Szegedy and others, 2016)
//!   dx   = g · (exp(x − log Σ exp(x)) − (1 − α) · [c = label] − α / C)
//! ```
//!
//! A vocabulary is long, about 150,000. The loss reads its rows once and writes two numbers per
//! row. The gradient reads and writes once, with one block per stretch of a row. A label beyond the
//! columns is ignored: its loss and gradient are 0.

use super::row::{begins, is_row, put, sum, take};
use super::softmax::{accumulate, total};
use crate::fold::{along_x, along_y, block_at};
use kernel_dsl::prelude::*;

/// Returns the largest power of two that is at most 1 / (2·`cols`).
#[device]
fn share_of(cols: usize) -> f32 {
    let above = 33 - (cols as u32).saturating_sub(1).leading_zeros();
    f32::from_bits((127 - above) << 23)
}

/// Returns weight · (base − x) from base and half of x. The result is finite if the product is,
/// although base − x may be twice the largest number. A weight of 0 gives 0.
#[device]
fn weighted_difference(weight: f32, base: f32, half: f32) -> f32 {
    if weight == 0.0 { 0.0 } else { 2.0 * weight * (0.5 * base - half) }
}

/// Computes the loss and log Σ exp of each row, with a team of `L` threads per row, which takes
/// `N · L · V` elements at a time.
///
/// x is [rows, cols]. `labels`, `loss` and `log_sum` have one element for each row.
#[kernel(
    block = (L, ROWS), max_registers = 64, grid = x.rows().div_ceil(ROWS), writes(loss = once, log_sum = once),
    instances(
        f32_l256_v4: T = f32, L = 256, ROWS = 1, V = 4, N = 2;
        f16_l32_v1: T = f16, L = 32, ROWS = 8, V = 1, N = 8
    ),
)]
#[requires(
    labels.len() == x.rows(), loss.len() == x.rows(), log_sum.len() == x.rows(), x.cols() % V == 0, x.aligned(V),
)]
pub fn cross_entropy<T: Float, const L: usize, const ROWS: usize, const V: usize, const N: usize>(
    smoothing: f32,
    x: View<T, 2>,
    labels: View<u32, 1>,
    mut loss: ViewMut<f32, 1>,
    mut log_sum: ViewMut<f32, 1>,
) {
    const { assert!(L == 32 || ROWS == 1) };
    let row = block::x() * ROWS + thread::y();
    let cols = if is_row::<ROWS>(row, x.rows()) { x.cols() } else { 0 };
    let of_row = x.at(row);
    let (mut top, mut exponentials, mut all) = (f32::NEG_INFINITY, 0.0, 0.0);
    // A sum of logits may overflow although their mean does not. Terms are divided by a power of
    // two, which is exact.
    let part = share_of(cols);
    for at in (0..cols).step_by(N * L * V) {
        let z = take::<T, L, V, N>(of_row, at, cols, f32::NEG_INFINITY);
        accumulate(&z, &mut top, &mut exponentials);
        if smoothing > 0.0 {
            for i in unroll(0..N) {
                if begins::<L, V>(at, i) < cols {
                    for e in unroll(0..V) {
                        all = z[i][e].mul_add(part, all);
                    }
                }
            }
        }
    }
    let (base, exponentials) = total::<L>(top, exponentials);
    let all = sum::<L>(all);
    if thread::x() == 0 && is_row::<ROWS>(row, x.rows()) {
        // If all logits are −∞, no label has a probability, and the loss is ∞.
        let log = if exponentials == 0.0 { 0.0 } else { math::ln(exponentials) };
        let label = labels[row] as usize;
        let mut of_label = 0.0;
        if label < cols {
            of_label = log + weighted_difference(1.0 - smoothing, base, 0.5 * of_row[label].to_f32());
            // Without smoothing the mean was not computed.
            if smoothing > 0.0 {
                of_label += weighted_difference(smoothing, base, all / (2.0 * cols as f32 * part));
            }
        }
        loss[row] = of_label;
        log_sum[row] = base + log;
    }
}

/// Computes dx from the logits, log Σ exp of each row, and the gradient of each row's loss. A block
/// has a stretch of `N · L · V` elements.
///
/// x and dx are [rows, cols]. `labels`, `log_sum` and `gradient` have one element for each row.
#[kernel(
    block = L, max_registers = 64,
    grid = (along_x(x.rows(), x.cols().div_ceil(N * L * V), 1), along_y(x.cols().div_ceil(N * L * V), 1)),
    writes(dx = once),
    instances(T = f32, L = 256, V = 4, N = 4; T = f16, L = 256, V = 1, N = 4),
)]
#[requires(
    dx.rows() == x.rows(), dx.cols() == x.cols(), labels.len() == x.rows(), log_sum.len() == x.rows(),
    gradient.len() == x.rows(), x.cols() % V == 0, x.aligned(V), dx.aligned(V),
)]
pub fn cross_entropy_backward<T: Float, const L: usize, const V: usize, const N: usize>(
    smoothing: f32,
    x: View<T, 2>,
    labels: View<u32, 1>,
    log_sum: View<f32, 1>,
    gradient: View<f32, 1>,
    dx: ViewMut<T, 2>,
) {
    let cols = x.cols();
    let [row, stretch, _] = block_at(x.rows(), cols.div_ceil(N * L * V));
    let at = stretch * (N * L * V);
    let label = labels[row] as usize;
    let (log, gradient) = (log_sum[row], gradient[row]);
    let everywhere = smoothing / cols as f32;
    let mut z = take::<T, L, V, N>(x.at(row), at, cols, f32::NEG_INFINITY);
    // An ignored row, and one whose loss has a gradient of 0, may contain NaNs.
    let counts = label < cols && gradient != 0.0;
    for i in unroll(0..N) {
        for e in unroll(0..V) {
            let here = if begins::<L, V>(at, i) + e == label { 1.0 - smoothing } else { 0.0 };
            let own = gradient * (math::exp(z[i][e] - log) - here - everywhere);
            z[i][e] = if counts { own } else { 0.0 };
        }
    }
    put::<T, L, V, N>(dx.at(row), at, cols, &z);
}
