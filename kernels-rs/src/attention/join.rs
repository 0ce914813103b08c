//! The reduction of the partial results of a tile of queries whose keys are split over several
//! blocks.

use kernel_dsl::prelude::*;

/// Rows of a warp that are in flight at once.
#[device]
pub const ROWS_IN_FLIGHT: usize = 4;
/// Parts of these rows that are in flight at once.
#[device]
const LOADS_AHEAD: usize = 2;
/// The maximum number of parts: each lane holds the sums of one part.
#[device]
pub const MAX_PARTS: usize = 32;

/// Returns the sums over all keys of [`ROWS_IN_FLIGHT`] rows: the largest logit, Σ exp(x − max),
/// and four of the `WIDTH` elements of Σ exp(x − max)·v, from element 4 · `lane` on.
///
/// `partial` and `logs` are the results of the `n` parts. Rows start at `first`, and are clamped to
/// `last`. `lane` is an argument, because the compiler might keep a recomputed lane index in a
/// register during the preceding code. The sums of part p are scaled by exp(max_p − max) and added
/// in the order of the keys, for a deterministic result (Dao, 2023: the reduction of flash
/// decoding).
#[device]
pub fn reduce_parts<const WIDTH: usize>(
    partial: ViewMut<f32, 3>,
    logs: ViewMut<f32, 3>,
    n: usize,
    first: usize,
    last: usize,
    lane: usize,
) -> [(f32, f32, [f32; 4]); ROWS_IN_FLIGHT] {
    let (mut scales, mut sums) = ([0.0f32; ROWS_IN_FLIGHT], [(f32::NEG_INFINITY, 0.0f32, [0.0f32; 4]); ROWS_IN_FLIGHT]);
    for i in unroll(0..ROWS_IN_FLIGHT) {
        let row = (first + i).min(last);
        let (mut max, mut sum) = (f32::NEG_INFINITY, 0.0);
        if lane < n {
            [max, sum] = logs.load::<2>((lane, row, 0));
        }
        let top = warp::max(max);
        // If all logits are −∞: exp2(−∞ − MIN) = 0, never NaN.
        scales[i] = fast::exp2((max - top.max(f32::MIN)) * std::f32::consts::LOG2_E);
        sums[i] = (top, warp::sum(sum * scales[i]), [0.0; 4]);
    }
    for p in rolled((0..n).step_by(LOADS_AHEAD)) {
        let mut x = [[[0.0f32; 4]; ROWS_IN_FLIGHT]; LOADS_AHEAD];
        for a in unroll(0..LOADS_AHEAD) {
            for i in unroll(0..ROWS_IN_FLIGHT) {
                if p + a < n && lane * 4 < WIDTH {
                    x[a][i] = partial.load::<4>((p + a, (first + i).min(last), lane * 4));
                }
            }
        }
        for a in unroll(0..LOADS_AHEAD) {
            for i in unroll(0..ROWS_IN_FLIGHT) {
                let scale = warp::shuffle(scales[i], (p + a) % 32);
                for e in unroll(0..4) {
                    sums[i].2[e] = x[a][i][e].mul_add(scale, sums[i].2[e]);
                }
            }
        }
    }
    sums
}
