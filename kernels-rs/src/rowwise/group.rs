//! Group norm (Wu, He, 2018): a sample's channels are divided into groups, and each group is
//! normalized as a row.
//!
//! ```text
//!   x of a sample   │ channel 0: spatial │ channel 1 │ … │ channel C/G │ …
//!                   ├─ a row: group 0 ────────────────┤├─ group 1 ─ …
//!   y = (x − μ) / √(σ² + ε) · weight[channel] + bias[channel]        μ, σ² of the group
//! ```
//!
//! Statistics and saved values are those of [`norm`](super::norm). The gradient is that of
//! [`backward`](super::backward), with the incoming gradient multiplied by the channel's weight.
//! Only weight and bias are read in another way: a piece of a row lies within one channel, so that
//! it needs one number, and some instructions to find the channel.
//!
//! # Rows that few waves of blocks read
//!
//! Groups are few and long: 256 rows of 10,240 elements are two for each multiprocessor of an H200.
//! The limit is a copy, 4.9 µs from the L2 cache. Two reductions in a row, each with a barrier,
//! need some 2 µs more, if no other block works in the meantime. Designs, µs on an H200 (× of a
//! copy):
//!
//! | threads · elements each | norm 256 × 10,240 | gradient | norm 512 × 8192 | gradient |
//! |---|---|---|---|---|
//! | 1024 · 16 (gradient 1024 · 8) | 10.0 (0.49) | 10.8 (0.61) | 17.3 (0.40) | 19.4 (0.72) |
//! | 512 · 16 | 8.1 (0.60) | 8.1 (0.78) | 12.1 (0.57) | 16.4 (0.84) |
//! | 640 · 16 | 7.5 (0.64) | 9.2 (0.68) | 12.1 (0.56) | 19.1 (0.71) |
//! | 320 · 32 | 8.1 (0.61) | 7.7 (0.82) | 11.4 (0.59) | 16.1 (0.86) |
//! | 256 · 32 (gradient 256 · 40 for 10,240) | 8.3 (0.59) | 7.5 (0.86) | 10.4 (0.68) | 15.5 (0.89) |
//! | as above, channels read while x is in flight: 320 · 32, 256 · 32 | **6.7 (0.71)** | – | **9.5 (0.71)** | – |
//!
//! Blocks with more elements per thread let all rows be in flight from the beginning. Weight and
//! bias depend on a division, and cost a second wait if they are read after the reductions. A block
//! of 1024 threads has a multiprocessor for itself: nothing is in flight while it reduces.
//!
//! The exact scaling of rows made the gradient of 256 rows of 10,240 elements 1.7 % slower on an
//! H100.

use super::backward::{projected, subtract_projection};
use super::moments::{Moments, inverse, normalized, restored, saved as to_save};
use super::norm::{statistics, subtract_mean};
use super::row::{begins, for_each_unkept, for_each_unkept_rolled, is_row, put, sum, take};
use crate::permute::rows::div_rem;
use kernel_dsl::prelude::*;

/// Returns the weight and the bias of each piece's channel, or 1 and 0 where they are absent. Rows
/// consist of channels of `spatial` elements, beginning with channel `first`. The first channel is
/// found by two divisions, and the next ones by increments.
#[device]
fn channel_weights<W: Float, const BIASED: bool, const L: usize, const V: usize, const N: usize>(
    weight: View<W, 1>,
    bias: View<W, 1>,
    of: [usize; 2],
    at: usize,
    cols: usize,
) -> [[f32; 2]; N] {
    let [first, spatial] = of;
    let mut own = [[1.0f32, 0.0]; N];
    let any = !weight.is_empty() || BIASED && !bias.is_empty();
    if any && begins::<L, V>(at, 0) < cols {
        let (step, left) = div_rem(L * V, spatial);
        let (mut channel, mut within) = div_rem(begins::<L, V>(at, 0), spatial);
        channel += first;
        for i in unroll(0..N) {
            if begins::<L, V>(at, i) < cols {
                // Without a bias there is a weight: the condition above requires one of them.
                if !BIASED || !weight.is_empty() {
                    own[i][0] = weight[channel].to_f32();
                }
                if BIASED && !bias.is_empty() {
                    own[i][1] = bias[channel].to_f32();
                }
            }
            channel += step;
            within += left;
            if within >= spatial {
                within -= spatial;
                channel += 1;
            }
        }
    }
    own
}

/// Computes x · factor · weight + bias of the channel, where x is the deviation from the mean.
#[device]
fn scaled<W: Float, const V: usize, const N: usize>(
    x: &mut [[f32; V]; N],
    factor: f32,
    weight: View<W, 1>,
    bias: View<W, 1>,
    own: &[[f32; 2]; N],
) {
    for i in unroll(0..N) {
        for e in unroll(0..V) {
            x[i][e] *= factor;
        }
    }
    if !weight.is_empty() {
        for i in unroll(0..N) {
            for e in unroll(0..V) {
                x[i][e] *= own[i][0];
            }
        }
    }
    // A sum with 0 would change the sign of −0.
    if !bias.is_empty() {
        for i in unroll(0..N) {
            for e in unroll(0..V) {
                x[i][e] += own[i][1];
            }
        }
    }
}

/// Computes y = group norm of x, both [sample, group, `channels` · `spatial`].
///
/// Weight and bias have one number per channel, groups · `channels` in total, and either may be
/// absent. `saved`, [sample, group, 2], receives mean and 1 / √(σ² + ε), and may be absent, too.
#[kernel(
    block = (L, ROWS), max_registers = if N * V > 16 { 80 } else if V > 1 || N > 8 { 64 } else { 48 }, grid = (x.dim(0) * x.dim(1)).div_ceil(ROWS), writes(y = once, saved = once),
    derived(S = 8 / V),
    instances(
        f32_l256_v4: T = f32, W = f32, O = f32, L = 256, ROWS = 1, V = 4, N = 4;
        f32_l256_v4_n8: T = f32, W = f32, O = f32, L = 256, ROWS = 1, V = 4, N = 8;
        f32_l32_v1: T = f32, W = f32, O = f32, L = 32, ROWS = 8, V = 1, N = 8
    ),
)]
#[requires(
    y.dim(0) == x.dim(0), y.dim(1) == x.dim(1), y.dim(2) == x.dim(2), x.dim(2) == channels * spatial, spatial % V == 0,
    weight.is_empty() || weight.len() == x.dim(1) * channels, bias.is_empty() || bias.len() == x.dim(1) * channels,
    saved.is_empty() || saved.dim(0) == x.dim(0) && saved.dim(1) == x.dim(1) && saved.dim(2) == 2,
    x.aligned(V), y.aligned(V),
)]
pub fn group_norm<
    T: Float,
    W: Float,
    O: Float,
    const L: usize,
    const ROWS: usize,
    const V: usize,
    const N: usize,
    const S: usize,
>(
    epsilon: f32,
    x: View<T, 3>,
    channels: usize,
    spatial: usize,
    weight: View<W, 1>,
    bias: View<W, 1>,
    y: ViewMut<O, 3>,
    mut saved: ViewMut<f32, 3>,
) {
    const { assert!(L == 32 || ROWS == 1) };
    let row = block::x() * ROWS + thread::y();
    let there = is_row::<ROWS>(row, x.dim(0) * x.dim(1));
    let cols = if there { x.dim(2) } else { 0 };
    let (sample, group) = div_rem(row, x.dim(1));
    let (x, y) = (x.at(sample).at(group), y.at(sample).at(group));
    let of = [group * channels, spatial];

    let mut kept = take::<T, L, V, N>(x.streaming(), 0, cols, 0.0);
    // In flight with x, unless each element is a piece, which would take too many registers.
    let mut own =
        if V > 1 { channel_weights::<W, true, L, V, N>(weight, bias, of, 0, cols) } else { [[1.0f32, 0.0]; N] };
    let of_row = statistics::<T, true, L, V, N, S>(&mut kept, x, x, false, cols, cols, epsilon);
    if !saved.is_empty() && thread::x() == 0 && there {
        // Stored one by one: the caller's rows may begin at any element.
        let [mean, factor] = to_save(of_row);
        saved[(sample, group, 0)] = mean;
        saved[(sample, group, 1)] = factor;
    }
    if V == 1 {
        own = channel_weights::<W, true, L, V, N>(weight, bias, of, 0, cols);
    }
    scaled::<W, V, N>(&mut kept, of_row.factor, weight, bias, &own);
    put::<O, L, V, N>(y, 0, cols, &kept);
    for_each_unkept::<L, V, N, S>(cols, |at| {
        let mut again = take::<T, L, V, S>(x, at, cols, 0.0);
        subtract_mean::<true, V, S>(&mut again, of_row.scale, of_row.mean);
        let own = channel_weights::<W, true, L, V, S>(weight, bias, of, at, cols);
        scaled::<W, V, S>(&mut again, of_row.factor, weight, bias, &own);
        put::<O, L, V, S>(y, at, cols, &again);
    });
}

/// Returns a thread's pieces of n and of dy · weight, with zeros beyond the end.
#[device]
fn normal<T: Float, W: Float, const L: usize, const V: usize, const N: usize>(
    x: View<T, 1>,
    dy: View<T, 1>,
    weight: View<W, 1>,
    of_row: Moments,
    of: [usize; 2],
    at: usize,
    cols: usize,
) -> ([[f32; V]; N], [[f32; V]; N]) {
    let mut n = take::<T, L, V, N>(x, at, cols, of_row.mean * inverse(of_row.scale));
    let mut h = take::<T, L, V, N>(dy, at, cols, 0.0);
    for i in unroll(0..N) {
        for e in unroll(0..V) {
            n[i][e] = normalized(n[i][e], of_row);
        }
    }
    let own = channel_weights::<W, false, L, V, N>(weight, weight, of, at, cols);
    if !weight.is_empty() {
        for i in unroll(0..N) {
            for e in unroll(0..V) {
                h[i][e] *= own[i][0];
            }
        }
    }
    (n, h)
}

/// Computes dx of y = group norm of x, from dy and the saved statistics of each group, with the
/// extents of [`group_norm`].
#[kernel(
    block = (L, ROWS), max_registers = if N * V > 16 { 128 } else { 64 }, grid = (x.dim(0) * x.dim(1)).div_ceil(ROWS), writes(dx = once),
    derived(S = 8 / V),
    instances(
        f32_l512_v4: T = f32, W = f32, L = 512, ROWS = 1, V = 4, N = 2;
        f32_l256_v4_n8: T = f32, W = f32, L = 256, ROWS = 1, V = 4, N = 8;
        f32_l32_v1: T = f32, W = f32, L = 32, ROWS = 8, V = 1, N = 8
    ),
)]
#[requires(
    x.dim(0) == dx.dim(0), x.dim(1) == dx.dim(1), x.dim(2) == dx.dim(2),
    dy.dim(0) == dx.dim(0), dy.dim(1) == dx.dim(1), dy.dim(2) == dx.dim(2), x.dim(2) == channels * spatial, spatial % V == 0,
    weight.is_empty() || weight.len() == x.dim(1) * channels,
    saved.dim(0) == x.dim(0), saved.dim(1) == x.dim(1), saved.dim(2) == 2,
    x.aligned(V), dy.aligned(V), dx.aligned(V),
)]
pub fn group_norm_backward<
    T: Float,
    W: Float,
    const L: usize,
    const ROWS: usize,
    const V: usize,
    const N: usize,
    const S: usize,
>(
    x: View<T, 3>,
    saved: View<f32, 3>,
    channels: usize,
    spatial: usize,
    weight: View<W, 1>,
    dy: View<T, 3>,
    dx: ViewMut<T, 3>,
) {
    const { assert!(L == 32 || ROWS == 1) };
    let row = block::x() * ROWS + thread::y();
    let there = is_row::<ROWS>(row, x.dim(0) * x.dim(1));
    let cols = if there { x.dim(2) } else { 0 };
    let (sample, group) = div_rem(row, x.dim(1));
    let mut of_row = [0.0f32; 2];
    if there {
        of_row = [saved[(sample, group, 0)], saved[(sample, group, 1)]];
    }
    let of_row = restored(of_row);
    let (x, dy, dx) = (x.at(sample).at(group), dy.at(sample).at(group), dx.at(sample).at(group));
    let of = [group * channels, spatial];

    let (kept, mut gradient) = normal::<T, W, L, V, N>(x, dy, weight, of_row, of, 0, cols);
    let mut own = projected::<V, N>(&kept, &gradient, [0.0; 2]);
    for_each_unkept_rolled::<L, V, N, S>(cols, |at| {
        let (n, h) = normal::<T, W, L, V, S>(x, dy, weight, of_row, of, at, cols);
        own = projected::<V, S>(&n, &h, own);
    });
    let count = cols as f32;
    let mean = sum::<L>(own[0]) / count;
    let projection = sum::<L>(own[1]) / count;
    subtract_projection::<V, N>(&mut gradient, &kept, of_row.factor * of_row.scale, mean, projection);
    put::<T, L, V, N>(dx, 0, cols, &gradient);
    for_each_unkept_rolled::<L, V, N, S>(cols, |at| {
        let (n, mut h) = normal::<T, W, L, V, S>(x, dy, weight, of_row, of, at, cols);
        subtract_projection::<V, S>(&mut h, &n, of_row.factor * of_row.scale, mean, projection);
        put::<T, L, V, S>(dx, at, cols, &h);
    });
}

/// Computes the gradients of weight, Σ dy·n, and of bias, Σ dy, of each channel, if present; one
/// block per channel.
///
/// x and dy are [sample, channel, spatial], and `saved` is [sample, group, 2]. A thread adds its
/// pieces sample by sample. Sums are combined by a butterfly in each warp, and one over the warps.
#[kernel(
    block = 256, grid = x.dim(1), writes(dweight = once, dbias = once),
    instances(T = f32, W = f32, V = 4 | 1),
)]
#[requires(
    dy.dim(0) == x.dim(0), dy.dim(1) == x.dim(1), dy.dim(2) == x.dim(2), saved.dim(0) == x.dim(0), saved.dim(2) == 2,
    channels > 0, x.dim(1) == saved.dim(1) * channels,
    dweight.is_empty() || dweight.len() == x.dim(1), dbias.is_empty() || dbias.len() == x.dim(1),
    x.dim(2) % V == 0, x.aligned(V), dy.aligned(V),
)]
pub fn group_norm_channels<T: Float, W: Float, const V: usize>(
    x: View<T, 3>,
    saved: View<f32, 3>,
    dy: View<T, 3>,
    channels: usize,
    mut dweight: ViewMut<W, 1>,
    mut dbias: ViewMut<W, 1>,
) {
    let channel = block::x();
    let group = channel / channels;
    let mut sums = [0.0f32; 2];
    for sample in rolled(0..x.dim(0)) {
        let of_row = restored([saved[(sample, group, 0)], saved[(sample, group, 1)]]);
        let (x, dy) = (x.at(sample).at(channel), dy.at(sample).at(channel));
        let (mut projection, mut own) = (0.0f32, 0.0f32);
        for at in (V * thread::x()..x.len()).step_by(256 * V) {
            let n = x.load::<V>(at).map(T::to_f32);
            let g = dy.load::<V>(at).map(T::to_f32);
            for e in unroll(0..V) {
                projection = g[e].mul_add(normalized(n[e], of_row), projection);
                own += g[e];
            }
        }
        sums = [sums[0] + projection, sums[1] + own];
    }
    let (projection, own) = (block::sum(sums[0]), block::sum(sums[1]));
    if thread::x() == 0 {
        if !dweight.is_empty() {
            dweight[channel] = W::from_f32(projection);
        }
        if !dbias.is_empty() {
            dbias[channel] = W::from_f32(own);
        }
    }
}
