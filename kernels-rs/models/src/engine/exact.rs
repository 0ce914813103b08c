//! Attention without approximations, in an order of sums that is the same on every device.
//!
//! The kernels of `kernels_rs::attention` use the hardware's exponential, whose bits differ between
//! GPUs, and split keys by the number of multiprocessors. The kernel of this module is slower, but
//! every device computes equal bits. A warp computes one head of a token in three passes: logits
//! and their maximum, weights and their sum, the weighted mean of the values.

use super::cache::dequantized_element;
use kernel_dsl::half::f16;
use kernel_dsl::prelude::*;
use kernels_rs::attention::cache::StoredElement;

/// Computes o ← softmax(scale·q·Kᵀ)·V for each token, over the first `lengths[token]` keys of the
/// token's sequence. Keys beyond the pages or beyond `weights` do not count.
///
/// q and o are [token, head, element]. k and v are [page, group, row, element], with scales of
/// [page, group, row, block], or with 0 blocks if there are no scales. Neighboring heads share a
/// group. `table`, [token, page], lists the pages of each token's sequence. `weights`,
/// [token, head, key], is scratch memory. Lane l adds the weights of keys l, l + 32, … in order,
/// and [`warp::sum`] adds the lanes' sums. A token without keys gives zeros.
#[kernel(
    block = 32, grid = (q.dim(1), q.dim(0)),
    instances(f32: K = f32; f16: K = f16; q8_0: K = i8),
)]
#[requires(
    o.dim(0) == q.dim(0), o.dim(1) == q.dim(1), o.dim(2) == q.dim(2), lengths.len() == q.dim(0),
    table.rows() == q.dim(0), k.dim(0) > 0, k.dim(2) > 0, k.dim(3) == q.dim(2), v.dim(0) == k.dim(0),
    v.dim(1) == k.dim(1), v.dim(2) == k.dim(2), v.dim(3) == q.dim(2), weights.dim(0) == q.dim(0),
    weights.dim(1) == q.dim(1), k.dim(1) > 0, q.dim(1) % k.dim(1) == 0,
    k_scales.dim(0) == k.dim(0), k_scales.dim(1) == k.dim(1), k_scales.dim(2) == k.dim(2),
    v_scales.dim(0) == k.dim(0), v_scales.dim(1) == k.dim(1), v_scales.dim(2) == k.dim(2),
    k_scales.dim(3) == v_scales.dim(3), k_scales.dim(3) == 0 || 32 * k_scales.dim(3) >= k.dim(3),
)]
pub fn textbook_decode<K: StoredElement>(
    q: View<f32, 3>,
    k: View<K, 4>,
    v: View<K, 4>,
    k_scales: View<f16, 4>,
    v_scales: View<f16, 4>,
    lengths: View<u32, 1>,
    table: View<u32, 2>,
    mut o: ViewMut<f32, 3>,
    mut weights: ViewMut<f32, 3>,
    scale: f32,
) {
    let (head, token) = (block::x(), block::y());
    let group = head / (q.dim(1) / k.dim(1));
    let rows = k.dim(2);
    let keys = (lengths[token] as usize).min(table.cols() * rows).min(weights.dim(2));
    let mut top = f32::NEG_INFINITY;
    for t in (warp::lane()..keys).step_by(32) {
        let page = (table[(token, t / rows)] as usize).min(k.dim(0) - 1);
        let mut sum = 0.0f32;
        for d in 0..q.dim(2) {
            sum = q[(token, head, d)].mul_add(dequantized_element(k, k_scales, page, group, t % rows, d), sum);
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
            let page = (table[(token, t / rows)] as usize).min(k.dim(0) - 1);
            let x = dequantized_element(v, v_scales, page, group, t % rows, d);
            mean = weights[(token, head, t)].mul_add(x, mean);
        }
        o[(token, head, d)] = mean * factor;
    }
}
