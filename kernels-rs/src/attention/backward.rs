//! The kernels of the gradients of attention. The inputs are the output's gradient and the
//! logarithms (`lse`) of the forward pass.
//!
//! P = softmax(S) is recomputed from the logarithms. With dO the gradient of O, and δ = Σ dO·O of
//! each query (Dao and others, 2022, appendix B):
//!
//! ```text
//!   dV = Pᵀ·dO        dP = dO·Vᵀ        dS = P ∘ (dP − δ) ∘ score′·scale        dQ = dS·K        dK = dSᵀ·Q
//! ```
//!
//! A launch computes one of the three gradients. One block computes each element, in a fixed order,
//! without atomic additions: results are deterministic. For dQ a block has 64 queries and iterates
//! over keys. For dK and dV it has 64 keys, and iterates over the queries of all heads that share
//! them. With a block mask it iterates over a list of the mask's rows for dQ, and of its columns
//! for dK and dV. The tiles are those of the [forward pass](super): a product in registers, its
//! result in shared memory, and a second product that accumulates the output.
//!
//! # The cost of keys that are not seen
//!
//! A key that a query does not see may contain an infinity or a NaN, and 0 times either is NaN.
//! Therefore a block whose sums are NaN computes them again, without the weights of 0. Any other
//! block only compares its sums, at most 32 of each thread, after its last tile.
//!
//! The loop over tiles of dQ has 2362 instead of 2293 instructions on sm_61. On sm_90 it has 2493
//! instead of 2402, with six reloads of spilled registers instead of one.
//!
//! On an H100, `kernels bench --suite attention` takes 0.8 to 1.7 % longer than without the
//! comparison:
//!
//! | queries and keys | before, ms | now, ms |
//! |---|---|---|
//! | 16 heads of 2048 × 128, full | 5.888 | 5.933 |
//! | 16 heads of 2048 × 128, causal | 3.753 | 3.791 |
//! | 64 heads of 512 × 64, full | 0.5711 | 0.5807 |
//! | 64 heads of 512 × 64, causal | 0.3992 | 0.3987 |

use super::score::*;
use super::span::*;
use super::tile::*;
use crate::fold::{along_x, along_y, along_z, block_at};
use kernel_dsl::prelude::*;

/// Computes δ = Σ dO·O of each query. A warp computes one query.
#[kernel(
    block = (32, 4),
    grid = (
        along_x(delta.dim(2).div_ceil(4), delta.dim(1), delta.dim(0)),
        along_y(delta.dim(1), delta.dim(0)),
        along_z(delta.dim(1), delta.dim(0)),
    ),
    writes(delta = once), instances(T = f32),
)]
#[requires(
    o.dim(0) == delta.dim(0), o.dim(1) == delta.dim(1), o.dim(2) == delta.dim(2),
    d_o.dim(0) == o.dim(0), d_o.dim(1) == o.dim(1), d_o.dim(2) == o.dim(2), d_o.dim(3) == o.dim(3),
)]
pub fn attention_delta<T: Float>(o: View<T, 4>, d_o: View<T, 4>, mut delta: ViewMut<f32, 3>) {
    let [four, head, batch] = block_at(o.dim(2).div_ceil(4), o.dim(1));
    let query = four * 4 + thread::y();
    if query >= o.dim(2) {
        return; // all lanes of the warp: a warp is a query
    }
    let mut sum = 0.0f32;
    for c in (warp::lane()..o.dim(3)).step_by(32) {
        sum = o[(batch, head, query, c)].to_f32().mul_add(d_o[(batch, head, query, c)].to_f32(), sum);
    }
    let sum = warp::sum(sum);
    if warp::lane() == 0 {
        delta[(batch, head, query)] = sum;
    }
}

/// Computes one of the gradients into `out`: dQ if `OF` is 0, dK if it is 1, dV if it is 2. There
/// are `count` sequences, each with at most `longest` rows of `out`.
///
/// The pattern gives tiles of keys if `OF` is 0, and tiles of queries otherwise.
#[kernel(
    block = 128, max_registers = 168,
    grid = (
        along_x(longest.div_ceil(KEYS) * out.dim(3).div_ceil(W), out.dim(1), count),
        along_y(out.dim(1), count),
        along_z(out.dim(1), count),
    ),
    tolerance(out(relative = 1e-4, absolute = 1e-4)),
    instances(
        f32_w64: T = f32, M = Plain, P = Dense, S = Whole, W = 64, V = 4, OF = 0 | 1 | 2;
        f32_w64_packed: T = f32, M = Plain, P = Dense, S = Packed, W = 64, V = 4, OF = 0 | 1;
        f32_w64_listed: T = f32, M = Plain, P = Listed, S = Whole, W = 64, V = 4, OF = 1 | 2
    ),
    derived(Q = W / 32, L = (W * 2).div_ceil(128)),
)]
#[requires(
    k.dim(3) == q.dim(3), v.dim(1) == k.dim(1), v.dim(2) == k.dim(2), v.dim(0) == k.dim(0), k.dim(0) == q.dim(0),
    q.dim(0) > 0, k.dim(1) > 0, q.dim(1) % k.dim(1) == 0,
    left <= 0x4000_0000, right <= 0x4000_0000, q.dim(2) < 0x4000_0000, k.dim(2) < 0x4000_0000,
    d_o.dim(0) == q.dim(0), d_o.dim(1) == q.dim(1), d_o.dim(2) == q.dim(2), d_o.dim(3) == v.dim(3),
    lse.dim(0) == q.dim(0), lse.dim(1) == q.dim(1), lse.dim(2) == q.dim(2),
    delta.dim(0) == q.dim(0), delta.dim(1) == q.dim(1), delta.dim(2) == q.dim(2),
    out.dim(0) == q.dim(0),
    out.dim(1) == (if OF == 0 { q.dim(1) } else { k.dim(1) }),
    out.dim(2) == (if OF == 0 { q.dim(2) } else { k.dim(2) }),
    out.dim(3) == (if OF == 2 { v.dim(3) } else { q.dim(3) }),
    q.aligned(V), k.aligned(V), v.aligned(V), d_o.aligned(V), out.aligned(V),
    q.dim(3) % (if V == 4 { 8 } else { 1 }) == 0, v.dim(3) % (if V == 4 { 8 } else { 1 }) == 0,
)]
pub fn attention_gradient<
    T: Float,
    M: Score,
    P: Pattern,
    S: Sequences,
    const W: usize,
    const V: usize,
    const OF: usize,
    const Q: usize,
    const L: usize,
>(
    q: View<T, 4>,
    k: View<T, 4>,
    v: View<T, 4>,
    d_o: View<T, 4>,
    lse: View<f32, 3>,
    delta: View<f32, 3>,
    out: ViewMut<T, 4>,
    scale: f32,
    left: usize,
    right: usize,
    score: M,
    pattern: P,
    sequences: S,
    count: usize,
    longest: usize,
) {
    let (thread, pieces) = (thread::x(), out.dim(3).div_ceil(W));
    let [tile, own, sequence] = block_at(longest.div_ceil(KEYS) * pieces, out.dim(1));
    let (row0, piece) = (tile / pieces * KEYS, tile % pieces * W);
    let span = sequences.span(sequence, q.dim(2), k.dim(2));
    let (lq, lk, of_group) = (span.queries, span.keys, q.dim(1) / k.dim(1));
    let (rows, others) = if OF == 0 { (lq, lk) } else { (lk, lq) };
    if row0 >= rows {
        return;
    }
    let (batch, query0, key0) = (sequences.batch(sequence), span.query, span.key);
    let (low, high) = (-(left as i32), right as i32);
    // The range of other rows (keys for dQ, queries otherwise) that at least one of these rows
    // sees, or is seen by.
    let last = (row0 + KEYS).min(rows) - 1;
    let (before, behind) = if OF == 0 { (left, right) } else { (right, left) };
    let begin = (row0 + others).saturating_sub(rows + before) / KEYS * KEYS;
    let end = (last + others + 1 + behind).saturating_sub(rows).min(others);

    let (row, col) = corner::<1>(thread);
    let (ab, p) = (slices(2 * KEYS), weights(KEYS));
    let slots = Shared::<f32, 3>::over(ab, [2, SLICE, W]);
    let mut acc = [[[[0.0f32; 4]; 4]; Q]; 1];
    // Whether weights of 0 are skipped: only if sums are NaN without.
    let mut skips = false;
    loop {
        // For dK and dV the query heads that share these keys; for dQ the query's own head.
        for turn in rolled(0..if OF == 0 { 1 } else { of_group }) {
            let head = if OF == 0 { own } else { own * of_group + turn };
            let (qs, d_os) = (q.at(batch).at(head).offset((query0, 0)), d_o.at(batch).at(head).offset((query0, 0)));
            let of_keys = head / of_group;
            let (ks, vs) = (k.at(batch).at(of_keys).offset((key0, 0)), v.at(batch).at(of_keys).offset((key0, 0)));
            let (list, tiles) = pattern.tiles(head, row0, begin, end);
            let (a, b) = if OF == 0 { (qs, ks) } else { (ks, qs) };
            let (da, db) = if OF == 0 { (d_os, vs) } else { (vs, d_os) };
            let with = (if OF == 0 {
                ks
            } else if OF == 1 {
                qs
            } else {
                d_os
            })
            .offset((0, piece));
            for i in rolled(0..tiles) {
                let other0 = pattern.key(list, i);
                let s = product::<T, V>(a, row0, rows, b, other0, others, q.dim(3), ab, thread);
                let mut t = [[[[0.0f32; 4]; 4]; 2]; 1];
                if OF != 2 {
                    t = product::<T, V>(da, row0, rows, db, other0, others, v.dim(3), ab, thread);
                }
                // Logarithms and δ of the queries among a thread's rows or columns. A query beyond
                // the last counts as one that sees no key.
                let (mut logs, mut deltas) = ([f32::NEG_INFINITY; 8], [0.0f32; 8]);
                for n in unroll(0..if OF == 0 { 4 } else { 8 }) {
                    let query = if OF == 0 { row0 + row + n } else { other0 + col + n / 4 * 32 + n % 4 };
                    if query < lq {
                        logs[n] = lse[(batch, head, query0 + query)];
                        if OF != 2 {
                            deltas[n] = delta[(batch, head, query0 + query)];
                        }
                    }
                }
                for i in unroll(0..4) {
                    for x in unroll(0..8) {
                        let (r, c) = (row0 + row + i, other0 + col + x / 4 * 32 + x % 4);
                        let (query, key, n) = if OF == 0 { (r, c, i) } else { (c, r, x) };
                        let at = ScoreIndex {
                            sequence,
                            head,
                            query: query.min(lq - 1),
                            key: key.min(lk - 1),
                            lengths: (lq, lk),
                        };
                        let product = s[0][x / 4][i][x % 4] * scale;
                        let (logit, apart) = (score.score(product, at), (key + lq) as i32 - (query + lk) as i32);
                        // A query that sees no key has a logarithm of −∞, and no weights.
                        let mut seen = key < lk && apart >= low && apart <= high && logs[n] != f32::NEG_INFINITY;
                        if M::LEAVES_OUT {
                            seen = seen && logit != f32::NEG_INFINITY;
                        }
                        let mut made = fast::exp2((logit - logs[n]) * std::f32::consts::LOG2_E);
                        if OF != 2 {
                            made *= (t[0][x / 4][i][x % 4] - deltas[n]) * (score.slope(product, at) * scale);
                        }
                        t[0][x / 4][i][x % 4] = if seen { made } else { 0.0 };
                    }
                }
                share::<1>(p, thread, &t);
                warp::sync();
                if skips {
                    accumulate_weighted::<T, W, Q, V, 1>(&mut acc, p, with, other0, others, thread);
                } else {
                    let first = fetch_keys::<View<T, 2>, L, W, V>(with, with, thread, other0, others);
                    accumulate::<View<T, 2>, W, Q, L, V, 1>(&mut acc, p, with, other0, others, first, slots, thread);
                }
            }
        }
        if skips || !block::any(has_nan(&acc)) {
            break;
        }
        skips = true;
        acc = [[[[0.0f32; 4]; 4]; Q]; 1];
    }
    let first = if OF == 0 { query0 } else { key0 };
    let out = out.at(batch).at(own).offset((first, piece));
    for i in unroll(0..4) {
        if row0 + row + i < rows {
            for part in unroll(0..Q) {
                for x in unroll(0..4 / V) {
                    let at = col + part * 32 + x * V;
                    if at < out.cols() {
                        let mut y = [T::from_f32(0.0); V];
                        for e in unroll(0..V) {
                            y[e] = T::from_f32(acc[0][part][i][x * V + e]);
                        }
                        out.store((row0 + row + i, at), y);
                    }
                }
            }
        }
    }
}

/// Returns whether one of a thread's sums is NaN.
#[device]
fn has_nan<const Q: usize>(acc: &[[[[f32; 4]; 4]; Q]; 1]) -> bool {
    let mut found = false;
    for i in unroll(0..4) {
        for x in unroll(0..4 * Q) {
            found |= acc[0][x / 4][i][x % 4].is_nan();
        }
    }
    found
}
