//! What the parts of a tile's keys come to, brought together.

use super::span::*;
use crate::permute::rows::divided;
use kernel_dsl::prelude::*;

/// Rows of a block, a warp each.
#[device]
const ROWS: usize = 8;

/// O and the logarithm of the sum of exponentials of the queries whose keys `flash_attention` has divided, from what its blocks left. Which those are
/// follows from the same numbers as there; all others stay as they are.
///
/// The sums of part p, relative to its own largest logit, are scaled by exp(max_p − max) and added in the order of the keys (Dao, 2023: the reduction
/// of flash decoding).
#[kernel(
    block = 32 * ROWS,
    grid = longest.div_ceil(BM) * o.dim(1) * o.dim(3).div_ceil(W) * count * (BM / ROWS),
    tolerance(o(relative = 1e-4, absolute = 1e-5), lse(relative = 1e-5, absolute = 1e-5)),
    instances(
        T = f32, P = Dense, S = Whole, W = 128, V = 4, BM = 128;
        T = f16, P = Dense, S = Packed, W = 96, V = 4, BM = 64;
        T = bf16, P = Listed, S = Padded, W = 32, V = 1, BM = 64
    ),
)]
#[requires(
    left <= 0x4000_0000, right <= 0x4000_0000, o.dim(2) < 0x4000_0000, keys < 0x4000_0000, parts > 0, each > 0,
    lse.dim(0) == o.dim(0), lse.dim(1) == o.dim(1), lse.dim(2) == o.dim(2),
    partial.dim(0) == longest.div_ceil(BM) * o.dim(1) * o.dim(3).div_ceil(W) * count * parts, partial.dim(1) == BM, partial.dim(2) == W,
    logs.dim(0) == partial.dim(0), logs.dim(1) == BM, logs.dim(2) == 2, partial.aligned(4), logs.aligned(2), o.aligned(V), o.dim(3) % V == 0,
)]
pub fn attention_join<T: Float, P: Pattern, S: Sequences, const W: usize, const V: usize, const BM: usize>(
    partial: View<f32, 3>,
    logs: View<f32, 3>,
    o: ViewMut<T, 4>,
    mut lse: ViewMut<f32, 3>,
    keys: usize,
    left: usize,
    right: usize,
    pattern: P,
    sequences: S,
    count: usize,
    longest: usize,
    parts: usize,
    each: usize,
) {
    let (heads, pieces, rows) = (o.dim(1), o.dim(3).div_ceil(W), longest.div_ceil(BM));
    let (at, group) = divided(block::x(), BM / ROWS);
    let (pair, tile) = divided(at, rows);
    let (other, head) = divided(pair, heads);
    let (sequence, piece) = divided(other, pieces);
    let row = group * ROWS + warp::index();
    let span = sequences.span(sequence, o.dim(2), keys);
    let query = tile * BM + row;
    if query >= span.queries {
        return;
    }
    let (begin, end) = span.seen(tile * BM, BM, left, right);
    let (_, all) = pattern.tiles(head, tile, begin, end);
    if all <= each {
        return;
    }
    let divided_into = all.div_ceil(each);
    let (partial, logs) = (partial.offset((at * parts, 0, 0)), logs.offset((at * parts, 0, 0)));
    let mut top = f32::NEG_INFINITY;
    for p in rolled(0..divided_into) {
        top = top.max(logs[(p, row, 0)]);
    }
    // Of nothing but −∞: exp2(−∞ − MIN) = 0, never NaN.
    let base = (top * std::f32::consts::LOG2_E).max(f32::MIN);
    let at = warp::lane() * 4;
    let (mut sum, mut acc) = (0.0, [0.0f32; 4]);
    for p in rolled(0..divided_into) {
        let [max, part] = logs.load::<2>((p, row, 0));
        let scale = fast::exp2((max * std::f32::consts::LOG2_E).max(f32::MIN) - base);
        sum = part.mul_add(scale, sum);
        if at < W {
            let x = partial.load::<4>((p, row, at));
            for e in unroll(0..4) {
                acc[e] = x[e].mul_add(scale, acc[e]);
            }
        }
    }
    let some = top > f32::NEG_INFINITY;
    let inverse = if some { 1.0 / sum } else { 0.0 };
    let o = o.at(span.batch).at(head).offset((span.query + query, piece * W));
    for x in unroll(0..4 / V) {
        let at = at + x * V;
        if at < W && at < o.cols() {
            let mut out = [T::from_f32(0.0); V];
            for e in unroll(0..V) {
                out[e] = T::from_f32(acc[x * V + e] * inverse);
            }
            o.store((0, at), out);
        }
    }
    if piece == 0 && warp::lane() == 0 {
        lse[(span.batch, head, span.query + query)] = if some { top + fast::ln(sum) } else { f32::NEG_INFINITY };
    }
}
