//! Softmax in its simplest form, a warp per row, for studying.
//!
//! The 32 lanes of a warp share a row: lane l takes columns l, l + 32, …. There are three passes
//! over the row: its maximum, the sum of exp(x − maximum), the quotients. Lanes are combined by
//! shuffles. Blocks have ROWS independent warps, so there is no barrier and no shared memory.

use kernel_dsl::prelude::*;

/// Computes y[r, c] = exp(x[r, c] − m) / Σ exp(x[r, ·] − m), where m is the largest element of row
/// r, for any shape.
///
/// A row of −∞ alone gives zeros; a row that contains a NaN or +∞ gives NaNs.
#[kernel(block = (32, ROWS), grid = x.rows().div_ceil(ROWS), instances(ROWS = 4 | 8), writes(y = once))]
#[requires(y.rows() == x.rows(), y.cols() == x.cols())]
pub fn softmax<const ROWS: usize>(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    let row = block::x() * ROWS + thread::y();
    if row >= x.rows() {
        return; // all lanes of the warp: a warp is a row
    }
    let mut top = f32::NEG_INFINITY;
    for i in (warp::lane()..x.cols()).step_by(32) {
        top = top.max(x[(row, i)]);
    }
    let top = warp::max(top);
    let base = top.max(f32::MIN); // if all are −∞: exp(−∞ − MIN) = 0, never NaN

    let mut sum = 0.0;
    for i in (warp::lane()..x.cols()).step_by(32) {
        sum += math::exp(x[(row, i)] - base);
    }
    let sum = warp::sum(sum);
    let scale = if sum == 0.0 { 0.0 } else { 1.0 / sum };

    for i in (warp::lane()..x.cols()).step_by(32) {
        y[(row, i)] = math::exp(x[(row, i)] - base) * scale;
    }
}
