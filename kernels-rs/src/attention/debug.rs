//! A kernel for debugging that writes the logits, which attention itself never stores.

use super::score::*;
use super::span::KEYS;
use super::tile::*;
use crate::fold::{along_x, along_y, along_z, block_at};
use kernel_dsl::prelude::*;

/// Computes S ← score(scale·Q·Kᵀ), [batch, head, query, key], with −∞ for keys that a query does
/// not see.
///
/// A block computes 64 × 64 logits by the same products in the same order as attention: the results
/// are bit-identical.
#[kernel(
    block = 128,
    grid = (
        along_x(s.dim(2).div_ceil(KEYS) * s.dim(3).div_ceil(KEYS), s.dim(1), s.dim(0)),
        along_y(s.dim(1), s.dim(0)),
        along_z(s.dim(1), s.dim(0)),
    ),
    writes(s = once), instances(T = f32, M = Plain, VECTOR = 4),
)]
#[requires(
    k.dim(0) == q.dim(0), k.dim(3) == q.dim(3), k.dim(1) > 0, q.dim(1) % k.dim(1) == 0,
    s.dim(0) == q.dim(0), s.dim(1) == q.dim(1), s.dim(2) == q.dim(2), s.dim(3) == k.dim(2),
    left <= 0x4000_0000, right <= 0x4000_0000, q.dim(2) < 0x4000_0000, k.dim(2) < 0x4000_0000,
    q.aligned(VECTOR), k.aligned(VECTOR), q.dim(3) % (if VECTOR == 4 { 8 } else { 1 }) == 0,
)]
pub fn attention_scores<T: Float, M: Score, const VECTOR: usize>(
    q: View<T, 4>,
    k: View<T, 4>,
    mut s: ViewMut<f32, 4>,
    scale: f32,
    left: usize,
    right: usize,
    score: M,
) {
    let (lq, lk, of_group) = (q.dim(2), k.dim(2), q.dim(1) / k.dim(1));
    let across = lk.div_ceil(KEYS);
    let [tile, head, batch] = block_at(lq.div_ceil(KEYS) * across, s.dim(1));
    let (row0, col0) = (tile / across * KEYS, tile % across * KEYS);
    let (row, col) = corner::<1>(thread::x());
    let ab = slices(2 * KEYS);
    let (q, k) = (q.at(batch).at(head), k.at(batch).at(head / of_group));
    let x = product::<T, VECTOR, 1, 2>(q, row0, lq, k, col0, lk, q.cols(), ab, thread::x());
    for i in unroll(0..4) {
        for j in unroll(0..8) {
            let (query, key) = (row0 + row + i, col0 + col + j / 4 * 32 + j % 4);
            if query < lq && key < lk {
                let apart = (key + lq) as i32 - (query + lk) as i32;
                let at = ScoreIndex { sequence: batch, head, query, key, lengths: (lq, lk) };
                let logit = score.score(x[0][j / 4][i][j % 4] * scale, at);
                let seen = apart >= -(left as i32) && apart <= right as i32;
                s[(batch, head, query, key)] = if seen { logit } else { f32::NEG_INFINITY };
            }
        }
    }
}
