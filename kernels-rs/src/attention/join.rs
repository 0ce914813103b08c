//! What the parts of a tile's keys come to, brought together.

use kernel_dsl::prelude::*;

/// Rows of a warp that are under way at once.
#[device]
pub const ROWS: usize = 4;
/// Parts of them that are.
#[device]
const AHEAD: usize = 2;
/// Parts at most: a lane knows the sums of each.
#[device]
pub const PARTS: usize = 32;

/// Of [`ROWS`] rows the sums of all keys: the largest logit, Σ exp(x − max), and four elements of Σ exp(x − max)·v, those from the lane's number · 4 on, of `W`.
///
/// `partial` and `logs` are those of the `n` parts; rows from `first` on are taken, the last again where there are no more. The lane's number is the caller's: computed anew it might be kept over all that is before. The sums of part p are scaled
/// by exp(max_p − max) and added in the order of the keys, whoever does it (Dao, 2023: the reduction of flash decoding).
#[device]
pub fn joined<const W: usize>(
    partial: ViewMut<f32, 3>,
    logs: ViewMut<f32, 3>,
    n: usize,
    first: usize,
    last: usize,
    lane: usize,
) -> [(f32, f32, [f32; 4]); ROWS] {
    let (mut scales, mut sums) = ([0.0f32; ROWS], [(f32::NEG_INFINITY, 0.0f32, [0.0f32; 4]); ROWS]);
    for i in unroll(0..ROWS) {
        let row = (first + i).min(last);
        let (mut max, mut sum) = (f32::NEG_INFINITY, 0.0);
        if lane < n {
            [max, sum] = logs.load::<2>((lane, row, 0));
        }
        let top = warp::max(max);
        // Of nothing but −∞: exp2(−∞ − MIN) = 0, never NaN.
        scales[i] = fast::exp2((max - top.max(f32::MIN)) * std::f32::consts::LOG2_E);
        sums[i] = (top, warp::sum(sum * scales[i]), [0.0; 4]);
    }
    for p in rolled((0..n).step_by(AHEAD)) {
        let mut x = [[[0.0f32; 4]; ROWS]; AHEAD];
        for a in unroll(0..AHEAD) {
            for i in unroll(0..ROWS) {
                if p + a < n && lane * 4 < W {
                    x[a][i] = partial.load::<4>((p + a, (first + i).min(last), lane * 4));
                }
            }
        }
        for a in unroll(0..AHEAD) {
            for i in unroll(0..ROWS) {
                let scale = warp::shuffle(scales[i], (p + a) % 32);
                for e in unroll(0..4) {
                    sums[i].2[e] = x[a][i][e].mul_add(scale, sums[i].2[e]);
                }
            }
        }
    }
    sums
}
