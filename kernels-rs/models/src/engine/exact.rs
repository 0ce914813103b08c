//! Attention without approximations, whose order of sums is the same on every device.
//!
//! The kernels of `kernels_rs::attention` use the hardware's exponential, whose bits differ between
//! GPUs, and split keys by the number of multiprocessors. This kernel is slower, but every device
//! computes equal bits. A warp computes a head in the three passes of the definition: logits and
//! their maximum, weights and their sum, the weighted mean of the values.

use kernel_dsl::prelude::*;

/// Computes o ← softmax(scale·q·Kᵀ)·V for each token, over the first `lengths` keys of its
/// sequence.
///
/// q and o are [token, head, element]. k and v are [sequence, group, row, element], where
/// neighboring heads share a group. `sequences`, [token, 1], is the sequence of each token.
/// `weights`, [token, head, row], is scratch memory. Lane l adds keys l, l + 32, … in order; the
/// lanes' sums follow the order of [`warp::sum`]. A token without keys gives zeros.
#[kernel(block = 32, grid = (q.dim(1), q.dim(0)), instances(f32: K = f32; f16: K = f16))]
#[requires(
    o.dim(0) == q.dim(0), o.dim(1) == q.dim(1), o.dim(2) == q.dim(2), lengths.len() == q.dim(0),
    sequences.rows() == q.dim(0), sequences.cols() == 1, k.dim(0) > 0, k.dim(3) == q.dim(2), v.dim(0) == k.dim(0),
    v.dim(1) == k.dim(1), v.dim(2) == k.dim(2), v.dim(3) == q.dim(2), weights.dim(0) == q.dim(0),
    weights.dim(1) == q.dim(1), weights.dim(2) == k.dim(2), k.dim(1) > 0, q.dim(1) % k.dim(1) == 0,
)]
pub fn textbook_decode<K: Float>(
    q: View<f32, 3>,
    k: View<K, 4>,
    v: View<K, 4>,
    lengths: View<u32, 1>,
    sequences: View<u32, 2>,
    mut o: ViewMut<f32, 3>,
    mut weights: ViewMut<f32, 3>,
    scale: f32,
) {
    let (head, token) = (block::x(), block::y());
    let group = head / (q.dim(1) / k.dim(1));
    let sequence = (sequences[(token, 0)] as usize).min(k.dim(0) - 1);
    let keys = (lengths[token] as usize).min(k.dim(2));
    let mut top = f32::NEG_INFINITY;
    for t in (warp::lane()..keys).step_by(32) {
        let mut sum = 0.0f32;
        for d in 0..q.dim(2) {
            sum = q[(token, head, d)].mul_add(k[(sequence, group, t, d)].to_f32(), sum);
        }
        weights[(token, head, t)] = sum * scale;
        top = top.max(sum * scale);
    }
    let base = warp::max(top).max(f32::MIN);
    let mut sum = 0.0f32;
    for t in (warp::lane()..keys).step_by(32) {
        let weight = math::exp(weights[(token, head, t)] - base);
        weights[(token, head, t)] = weight;
        sum += weight;
    }
    let sum = warp::sum(sum);
    let factor = if sum == 0.0 { 0.0 } else { 1.0 / sum };
    warp::sync();
    for d in (warp::lane()..q.dim(2)).step_by(32) {
        let mut mean = 0.0f32;
        for t in 0..keys {
            mean = weights[(token, head, t)].mul_add(v[(sequence, group, t, d)].to_f32(), mean);
        }
        o[(token, head, d)] = mean * factor;
    }
}
