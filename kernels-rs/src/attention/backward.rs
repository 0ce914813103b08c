//! The kernels of the gradients of attention. The inputs are the output's gradient and the
//! logarithms (`lse`) of the forward pass.
//!
//! P = softmax(S) is recomputed from the logarithms. Let dO be the gradient of O, and δ = Σ dO·O
//! for each query. The gradients are (Dao and others, 2022, appendix B):
//!
//! ```text
//!   dV = Pᵀ·dO        dP = dO·Vᵀ        dS = P ∘ (dP − δ) ∘ score′·scale        dQ = dS·K        dK = dSᵀ·Q
//! ```
//!
//! One launch computes dQ, and another dK and dV. One block computes each element, in a fixed
//! order, without atomic additions: results are deterministic. For dQ a block has 64 queries and
//! iterates over keys. For dK and dV a block has 64 keys, and iterates over the queries of all
//! heads that share the keys. With a block mask, a block iterates over a list of the mask's rows
//! for dQ, and of the mask's columns for dK and dV. The tiles are those of the [forward
//! pass](super): a product in registers, its result in shared memory, and a second product that
//! accumulates the output. Both results of a tile of keys use one P, which is in shared memory:
//!
//! ```text
//!   S = K·Qᵀ, registers ──▶ P, shared ──▶ dV += P·dO, registers
//!                             │
//!   dP = V·dOᵀ, registers ────┴──▶ dS, shared, over P ──▶ dK += dS·Q, registers
//! ```
//!
//! # The limit
//!
//! The definition has five products. The two launches compute seven, because each of them needs S
//! and dP. At the forward pass's rate, five products take 2.5 times as long as that pass, and seven
//! take 3.5 times as long. To share S and dP, the launches would need L² numbers of global memory
//! for each head. The alternative is that several blocks add to dQ, in an order that is not fixed.
//!
//! A thread has 64 sums of dK and 64 of dV for heads of 128, and 32 of S or dP. Therefore all other
//! parameters of a block stay in shared memory until a product needs them. On sm_61 the kernel of
//! dK and dV then has 234 registers, the one of dQ 149, and none spills. The loops over slices have
//! 512 FFMA in 554 issue slots for S and dP, and 1024 in 1078 for the sums
//! (`tests/tests/machine_code/budgets.rs` requires 90 %).
//!
//! | queries and keys, on an H100 | three launches, ms | now, ms | forward, ms |
//! |---|---|---|---|
//! | 16 heads of 2048 × 128, full | 5.934 | 3.272 | 0.842 |
//! | 16 heads of 2048 × 128, causal | 3.784 | 1.771 | 0.433 |
//! | 64 heads of 512 × 64, full | 0.580 | 0.447 | 0.116 |
//! | 64 heads of 512 × 64, causal | 0.397 | 0.290 | 0.085 |
//!
//! For the first case the kernel of dK and dV multiplies at the forward pass's rate, and that of dQ
//! at 0.8 of it: its 512 blocks are 1.3 per slot of the device, and the last ones run alone.
//!
//! # Designs that were tried
//!
//! - **A launch for each gradient, 64 elements of a row a block**: for heads of 128 this takes 13
//!   products instead of 7. On an H100, 16 heads of 2048 × 128 took 5.93 ms, and 3.78 ms causal.
//! - **Parameters in registers**: 255 registers and 232 bytes of spills for dK and dV. Without free
//!   registers its products also lose cycles to register bank conflicts: 525 for 1084 issue slots,
//!   instead of 99 for 1078.
//! - **The blocks of a head one after the other** if queries see a band of keys: the long blocks of
//!   the last heads start late. The case above then takes 2.36 ms causal instead of 1.77. If all
//!   keys are seen that order is used, because it is better for the cache: with all heads at once,
//!   3.37 instead of 3.27 ms, and 0.484 instead of 0.447 for 64 heads of 512 × 64.
//! - **A separate second pass** for sums that are NaN, with its own sums: 496 bytes of spills, and
//!   the same bank conflicts.
//!
//! # The cost of keys that are not seen
//!
//! A key that a query does not see may contain an infinity or a NaN, and 0 times either is NaN.
//! Therefore a block whose sums are NaN computes them again, without the weights of 0. Any other
//! block only compares its sums, at most 128 of each thread, after its last tile. The comparison
//! took 0.8 to 1.7 % of the time of an earlier design.

use super::score::*;
use super::span::*;
use super::tile::*;
use crate::fold::{along_x, along_y, along_z, block_at};
use crate::permute::rows::div_rem;
use kernel_dsl::prelude::*;

/// Computes δ = Σ dO·O of each query. A warp computes one query.
///
/// `o` and `d_o` are [batch, head, query, element], and `delta` is [batch, head, query].
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

/// A block's parameters, read from shared memory before each product. Views are derived from the
/// parameters again each time: the sums leave no registers for parameters and views.
#[device]
#[derive(Clone, Copy)]
struct GradientParameters<T: Float> {
    q: View<T, 2>,
    k: View<T, 2>,
    v: View<T, 2>,
    d_o: View<T, 2>,
    lse: View<f32, 1>,
    delta: View<f32, 1>,
    sequence: usize,
    head: usize,
    of_keys: usize,
    piece: usize,
    row0: usize,
    lq: usize,
    lk: usize,
    query0: usize,
    key0: usize,
    batch: usize,
    thread: usize,
}

/// The number of a block's parameters in shared memory.
#[device]
const PARAMETERS: usize = 12;

#[device]
fn load_parameters<T: Float, S: Sequences>(
    kept: Shared<u32, 1>,
    q: View<T, 4>,
    k: View<T, 4>,
    v: View<T, 4>,
    d_o: View<T, 4>,
    lse: View<f32, 3>,
    delta: View<f32, 3>,
    sequences: S,
) -> GradientParameters<T> {
    let [sequence, head, of_keys, piece] = kept.load::<4>(0).map(|x| x as usize);
    let [query0, key0, lq, lk] = kept.load::<4>(4).map(|x| x as usize);
    let [row0, zero] = kept.load::<2>(8).map(|x| x as usize);
    let batch = sequences.batch(sequence);
    GradientParameters {
        q: q.at(batch).at(head).offset((query0, 0)),
        k: k.at(batch).at(of_keys).offset((key0, 0)),
        v: v.at(batch).at(of_keys).offset((key0, 0)),
        d_o: d_o.at(batch).at(head).offset((query0, 0)),
        lse: lse.at(batch).at(head).offset(query0),
        delta: delta.at(batch).at(head).offset(query0),
        sequence,
        head,
        of_keys,
        piece,
        row0,
        lq,
        lk,
        query0,
        key0,
        batch,
        // Adds a 0 that the compiler cannot see, so that it does not keep all addresses in
        // registers across products. The minimum tells the compiler that the sum is a thread's
        // index.
        thread: thread::x().wrapping_add(zero).min(block::threads() - 1),
    }
}

/// The weights that a thread computes: those of a tile of queries and a tile of keys.
#[device]
#[derive(Clone, Copy)]
struct ComputedWeights<M: Score> {
    score: M,
    scale: f32,
    sequence: usize,
    head: usize,
    /// The first of the block's rows, and of the other rows.
    row0: usize,
    other0: usize,
    lengths: (usize, usize),
    left: usize,
    right: usize,
    thread: usize,
}

/// Returns the query and the key of element (i, j) of square (r, q) of a thread. The block's rows
/// are keys if `OF_KEYS`, and queries otherwise.
#[device]
fn query_and_key<M: Score, const OF_KEYS: bool, const ROW_GROUPS: usize>(
    of: ComputedWeights<M>,
    r: usize,
    q: usize,
    i: usize,
    j: usize,
) -> (usize, usize) {
    let (row, col) = corner::<ROW_GROUPS>(of.thread);
    let (own, other) = (of.row0 + row + r * GROUP_STEP + i, of.other0 + col + q * 32 * ROW_GROUPS + j);
    if OF_KEYS { (other, own) } else { (own, other) }
}

/// Returns an element of `numbers` for each query of a thread's tile; `missing` beyond the last.
#[device]
fn of_queries<M: Score, const OF_KEYS: bool, const ROW_GROUPS: usize, const LOGIT_SQUARES: usize>(
    numbers: View<f32, 1>,
    of: ComputedWeights<M>,
    missing: f32,
) -> [f32; 8] {
    let mut found = [missing; 8];
    for n in unroll(0..if OF_KEYS { 4 * LOGIT_SQUARES } else { 4 * ROW_GROUPS }) {
        let (query, _) = if OF_KEYS {
            query_and_key::<M, OF_KEYS, ROW_GROUPS>(of, 0, n / 4, 0, n % 4)
        } else {
            query_and_key::<M, OF_KEYS, ROW_GROUPS>(of, n / 4, 0, n % 4, 0)
        };
        if query < of.lengths.0 {
            found[n] = numbers[query];
        }
    }
    found
}

/// Computes P from the products of queries and keys. The weight of a key that the query does not
/// see is 0.
#[device]
fn weights_of<M: Score, const OF_KEYS: bool, const ROW_GROUPS: usize, const LOGIT_SQUARES: usize>(
    s: &[[[[f32; 4]; 4]; LOGIT_SQUARES]; ROW_GROUPS],
    of: ComputedWeights<M>,
    lse: View<f32, 1>,
) -> [[[[f32; 4]; 4]; LOGIT_SQUARES]; ROW_GROUPS] {
    // A query beyond the last counts as one that sees no key.
    let logs = of_queries::<M, OF_KEYS, ROW_GROUPS, LOGIT_SQUARES>(lse, of, f32::NEG_INFINITY);
    let (lengths, low, high) = (of.lengths, -(of.left as i32), of.right as i32);
    let mut p = [[[[0.0f32; 4]; 4]; LOGIT_SQUARES]; ROW_GROUPS];
    for r in unroll(0..ROW_GROUPS) {
        for q in unroll(0..LOGIT_SQUARES) {
            for i in unroll(0..4) {
                for j in unroll(0..4) {
                    let (query, key) = query_and_key::<M, OF_KEYS, ROW_GROUPS>(of, r, q, i, j);
                    let log = logs[if OF_KEYS { q * 4 + j } else { r * 4 + i }];
                    let at = index(of, query, key);
                    let logit = of.score.score(s[r][q][i][j] * of.scale, at);
                    let apart = (key + lengths.0) as i32 - (query + lengths.1) as i32;
                    // A query that sees no key has a logarithm of −∞, and no weights.
                    let mut seen = key < lengths.1 && apart >= low && apart <= high && log != f32::NEG_INFINITY;
                    if M::LEAVES_OUT {
                        seen = seen && logit != f32::NEG_INFINITY;
                    }
                    let weight = fast::exp2((logit - log) * std::f32::consts::LOG2_E);
                    p[r][q][i][j] = if seen { weight } else { 0.0 };
                }
            }
        }
    }
    p
}

/// Returns the index of a weight, as the score takes it.
#[device]
fn index<M: Score>(of: ComputedWeights<M>, query: usize, key: usize) -> ScoreIndex {
    let (queries, keys) = of.lengths;
    ScoreIndex {
        sequence: of.sequence,
        head: of.head,
        query: query.min(queries - 1),
        key: key.min(keys - 1),
        lengths: of.lengths,
    }
}

/// Replaces dP with dS = P ∘ (dP − δ) ∘ score′·scale. P is in shared memory, where the thread has
/// stored it. A weight of 0 has no gradient, whatever the other factors are.
#[device]
fn score_gradient<M: Score, const OF_KEYS: bool, const ROW_GROUPS: usize, const LOGIT_SQUARES: usize>(
    t: &mut [[[[f32; 4]; 4]; LOGIT_SQUARES]; ROW_GROUPS],
    s: &[[[[f32; 4]; 4]; LOGIT_SQUARES]; ROW_GROUPS],
    p: Shared<f32, 2>,
    of: ComputedWeights<M>,
    delta: View<f32, 1>,
) {
    let deltas = of_queries::<M, OF_KEYS, ROW_GROUPS, LOGIT_SQUARES>(delta, of, 0.0);
    let (row, col) = corner::<ROW_GROUPS>(of.thread);
    for r in unroll(0..ROW_GROUPS) {
        for q in unroll(0..LOGIT_SQUARES) {
            for j in unroll(0..4) {
                let weights = p.load::<4>((col + q * 32 * ROW_GROUPS + j, group_column(row + r * GROUP_STEP, col)));
                for i in unroll(0..4) {
                    let (query, key) = query_and_key::<M, OF_KEYS, ROW_GROUPS>(of, r, q, i, j);
                    let delta = deltas[if OF_KEYS { q * 4 + j } else { r * 4 + i }];
                    let slope = of.score.slope(s[r][q][i][j] * of.scale, index(of, query, key)) * of.scale;
                    let change = weights[i] * ((t[r][q][i][j] - delta) * slope);
                    t[r][q][i][j] = if weights[i] == 0.0 { 0.0 } else { change };
                }
            }
        }
    }
}

/// Computes acc += P·B of [`KEYS`] rows of `b` from `b0` on. With `skips`, weights of 0 are left
/// out. The warp's weights must be in shared memory.
#[device]
fn add<
    T: Float,
    const WIDTH: usize,
    const SQUARES: usize,
    const LOADS: usize,
    const VECTOR: usize,
    const ROW_GROUPS: usize,
>(
    acc: &mut [[[[f32; 4]; 4]; SQUARES]; ROW_GROUPS],
    p: Shared<f32, 2>,
    b: View<T, 2>,
    b0: usize,
    rows: usize,
    slots: Shared<f32, 3>,
    skips: bool,
    thread: usize,
) {
    warp::sync();
    if skips {
        accumulate_weighted::<T, WIDTH, SQUARES, VECTOR, ROW_GROUPS>(acc, p, b, b0, rows, thread);
    } else {
        let first = fetch_keys::<View<T, 2>, LOADS, WIDTH, VECTOR>(b, b, thread, b0, rows);
        accumulate::<View<T, 2>, WIDTH, SQUARES, LOADS, VECTOR, ROW_GROUPS>(acc, p, b, b0, rows, first, slots, thread);
    }
}

/// Returns the block's head, counted through all sequences, and its tile of queries or keys. If
/// `is_whole`, blocks have equal work and run head by head, so that a head's rows stay in the
/// cache. Otherwise the first tiles of all heads, which have the most work, run first.
#[device]
fn head_and_tile(heads: usize, tiles: usize, is_whole: bool) -> (usize, usize) {
    let [head, tile, _] = block_at(heads, tiles);
    if is_whole { div_rem(tile * heads + head, tiles) } else { (head, tile) }
}

/// Computes dQ. There are `count` sequences, each with at most `longest` queries.
///
/// q and `d_q` are [batch, head, query, element], and k and v are [batch, key head, key, element].
/// `d_o` has the extents of O, and `lse` and `delta` are [batch, head, query].
#[kernel(
    block = 128, max_registers = if WIDTH == 128 { 168 } else { 128 },
    grid = (
        along_x(d_q.dim(1) * count, longest.div_ceil(KEYS) * d_q.dim(3).div_ceil(WIDTH), 1),
        along_y(longest.div_ceil(KEYS) * d_q.dim(3).div_ceil(WIDTH), 1),
    ),
    tolerance(d_q(relative = 1e-4, absolute = 1e-4)),
    instances(
        f32_w128: T = f32, M = Plain, P = Dense, S = Whole, WIDTH = 128, VECTOR = 4, ROW_GROUPS = 2;
        f32_w64: T = f32, M = Plain, P = Dense, S = Whole, WIDTH = 64, VECTOR = 4, ROW_GROUPS = 2;
        f32_w64_packed: T = f32, M = Plain, P = Dense, S = Packed, WIDTH = 64, VECTOR = 4, ROW_GROUPS = 2
    ),
    derived(LOGIT_SQUARES = 2 / ROW_GROUPS, SQUARES = WIDTH / (32 * ROW_GROUPS), LOADS = (WIDTH * 2).div_ceil(128)),
)]
#[requires(
    k.dim(3) == q.dim(3), v.dim(1) == k.dim(1), v.dim(2) == k.dim(2), v.dim(0) == k.dim(0), k.dim(0) == q.dim(0),
    q.dim(0) > 0, k.dim(1) > 0, q.dim(1) % k.dim(1) == 0,
    left <= 0x4000_0000, right <= 0x4000_0000, q.dim(2) < 0x4000_0000, k.dim(2) < 0x4000_0000,
    d_o.dim(0) == q.dim(0), d_o.dim(1) == q.dim(1), d_o.dim(2) == q.dim(2), d_o.dim(3) == v.dim(3),
    lse.dim(0) == q.dim(0), lse.dim(1) == q.dim(1), lse.dim(2) == q.dim(2),
    delta.dim(0) == q.dim(0), delta.dim(1) == q.dim(1), delta.dim(2) == q.dim(2),
    d_q.dim(0) == q.dim(0), d_q.dim(1) == q.dim(1), d_q.dim(2) == q.dim(2), d_q.dim(3) == q.dim(3),
    q.aligned(VECTOR), k.aligned(VECTOR), v.aligned(VECTOR), d_o.aligned(VECTOR), d_q.aligned(VECTOR),
    q.dim(3) % (if VECTOR == 4 { 8 } else { 1 }) == 0, v.dim(3) % (if VECTOR == 4 { 8 } else { 1 }) == 0,
)]
pub fn attention_gradient_q<
    T: Float,
    M: Score,
    P: MaskPattern,
    S: Sequences,
    const WIDTH: usize,
    const VECTOR: usize,
    const ROW_GROUPS: usize,
    const LOGIT_SQUARES: usize,
    const SQUARES: usize,
    const LOADS: usize,
>(
    q: View<T, 4>,
    k: View<T, 4>,
    v: View<T, 4>,
    d_o: View<T, 4>,
    lse: View<f32, 3>,
    delta: View<f32, 3>,
    d_q: ViewMut<T, 4>,
    scale: f32,
    left: usize,
    right: usize,
    score: M,
    pattern: P,
    sequences: S,
    count: usize,
    longest: usize,
) {
    let pieces = d_q.dim(3).div_ceil(WIDTH);
    let tiles = longest.div_ceil(KEYS) * pieces;
    let is_whole = left.min(right) >= q.dim(2).max(k.dim(2));
    let (any, tile) = head_and_tile(d_q.dim(1) * count, tiles, is_whole);
    let (sequence, head) = div_rem(any, d_q.dim(1));
    // The last queries first: causal queries see the more keys, the later they are.
    let tile = tiles - 1 - tile;
    let (row0, piece) = (tile / pieces * KEYS, tile % pieces * WIDTH);
    let span = sequences.span(sequence, q.dim(2), k.dim(2));
    let (lq, lk) = (span.queries, span.keys);
    if row0 >= lq {
        return;
    }
    let of_keys = head / (q.dim(1) / k.dim(1));
    let (begin, end) = span.visible_keys(row0, KEYS, left, right);
    let (list, tiles) = pattern.tiles(head, row0, begin / KEYS * KEYS, end);
    let (ab, p) = (slices(2 * KEYS), weights(KEYS));
    let slots = Shared::<f32, 3>::over(ab, [2, SLICE, WIDTH]);
    let kept = Shared::<u32, 1>::new([PARAMETERS]);
    if thread::x() == 0 {
        kept.store(0, [sequence as u32, head as u32, of_keys as u32, piece as u32]);
        kept.store(4, [span.query as u32, span.key as u32, lq as u32, lk as u32]);
        kept.store(8, [row0 as u32, 0]);
    }
    block::sync();
    let mut acc = [[[[0.0f32; 4]; 4]; SQUARES]; ROW_GROUPS];
    // Whether to skip weights of 0: only in a second pass, after sums were NaN.
    let mut skips = false;
    loop {
        for i in rolled(0..tiles) {
            let other0 = pattern.key(list, i);
            let here = load_parameters::<T, S>(kept, q, k, v, d_o, lse, delta, sequences);
            let GradientParameters { row0, lq, lk, thread, .. } = here;
            let s = product::<T, VECTOR, ROW_GROUPS, LOGIT_SQUARES>(
                here.q,
                row0,
                lq,
                here.k,
                other0,
                lk,
                q.dim(3),
                ab,
                thread,
            );
            let here = load_parameters::<T, S>(kept, q, k, v, d_o, lse, delta, sequences);
            let of = weights_at::<T, M>(here, other0, score, scale, left, right);
            share::<ROW_GROUPS, LOGIT_SQUARES>(
                p,
                here.thread,
                &weights_of::<M, false, ROW_GROUPS, LOGIT_SQUARES>(&s, of, here.lse),
            );
            let here = load_parameters::<T, S>(kept, q, k, v, d_o, lse, delta, sequences);
            let GradientParameters { row0, lq, lk, thread, .. } = here;
            let mut t = product::<T, VECTOR, ROW_GROUPS, LOGIT_SQUARES>(
                here.d_o,
                row0,
                lq,
                here.v,
                other0,
                lk,
                v.dim(3),
                ab,
                thread,
            );
            let here = load_parameters::<T, S>(kept, q, k, v, d_o, lse, delta, sequences);
            let of = weights_at::<T, M>(here, other0, score, scale, left, right);
            score_gradient::<M, false, ROW_GROUPS, LOGIT_SQUARES>(&mut t, &s, p, of, here.delta);
            share::<ROW_GROUPS, LOGIT_SQUARES>(p, here.thread, &t);
            let with = here.k.offset((0, here.piece));
            add::<T, WIDTH, SQUARES, LOADS, VECTOR, ROW_GROUPS>(
                &mut acc,
                p,
                with,
                other0,
                here.lk,
                slots,
                skips,
                here.thread,
            );
        }
        if skips || !block::any(has_nan(&acc)) {
            break;
        }
        skips = true;
        acc = [[[[0.0f32; 4]; 4]; SQUARES]; ROW_GROUPS];
    }
    let here = load_parameters::<T, S>(kept, q, k, v, d_o, lse, delta, sequences);
    let d_q = d_q.at(here.batch).at(here.head).offset((here.query0, here.piece));
    put_sums::<T, VECTOR, SQUARES, ROW_GROUPS>(d_q, here.row0, here.lq, &acc, here.thread);
}

/// Computes dK and dV. There are `count` sequences, each with at most `longest` keys. The pattern
/// gives tiles of queries.
///
/// The operands are those of [`attention_gradient_q`]. `d_k` and `d_v` have the extents of k and v.
#[kernel(
    block = 128, max_registers = if WIDTH == 128 { 255 } else { 168 },
    grid = (
        along_x(k.dim(1) * count, longest.div_ceil(KEYS) * q.dim(3).max(v.dim(3)).div_ceil(WIDTH), 1),
        along_y(longest.div_ceil(KEYS) * q.dim(3).max(v.dim(3)).div_ceil(WIDTH), 1),
    ),
    tolerance(d_k(relative = 1e-4, absolute = 1e-4), d_v(relative = 1e-4, absolute = 1e-4)),
    instances(
        f32_w128: T = f32, M = Plain, P = Dense, S = Whole, WIDTH = 128, VECTOR = 4, ROW_GROUPS = 2;
        f32_w64: T = f32, M = Plain, P = Dense, S = Whole, WIDTH = 64, VECTOR = 4, ROW_GROUPS = 2;
        f16_w128: T = f16, M = Plain, P = Dense, S = Whole, WIDTH = 128, VECTOR = 4, ROW_GROUPS = 2;
        f32_w64_packed: T = f32, M = Plain, P = Dense, S = Packed, WIDTH = 64, VECTOR = 4, ROW_GROUPS = 2;
        f32_w64_listed: T = f32, M = Plain, P = Listed, S = Whole, WIDTH = 64, VECTOR = 4, ROW_GROUPS = 2
    ),
    derived(LOGIT_SQUARES = 2 / ROW_GROUPS, SQUARES = WIDTH / (32 * ROW_GROUPS), LOADS = (WIDTH * 2).div_ceil(128)),
)]
#[requires(
    k.dim(3) == q.dim(3), v.dim(1) == k.dim(1), v.dim(2) == k.dim(2), v.dim(0) == k.dim(0), k.dim(0) == q.dim(0),
    q.dim(0) > 0, k.dim(1) > 0, q.dim(1) % k.dim(1) == 0,
    left <= 0x4000_0000, right <= 0x4000_0000, q.dim(2) < 0x4000_0000, k.dim(2) < 0x4000_0000,
    d_o.dim(0) == q.dim(0), d_o.dim(1) == q.dim(1), d_o.dim(2) == q.dim(2), d_o.dim(3) == v.dim(3),
    lse.dim(0) == q.dim(0), lse.dim(1) == q.dim(1), lse.dim(2) == q.dim(2),
    delta.dim(0) == q.dim(0), delta.dim(1) == q.dim(1), delta.dim(2) == q.dim(2),
    d_k.dim(0) == k.dim(0), d_k.dim(1) == k.dim(1), d_k.dim(2) == k.dim(2), d_k.dim(3) == k.dim(3),
    d_v.dim(0) == v.dim(0), d_v.dim(1) == v.dim(1), d_v.dim(2) == v.dim(2), d_v.dim(3) == v.dim(3),
    q.aligned(VECTOR), k.aligned(VECTOR), v.aligned(VECTOR), d_o.aligned(VECTOR), d_k.aligned(VECTOR), d_v.aligned(VECTOR),
    q.dim(3) % (if VECTOR == 4 { 8 } else { 1 }) == 0, v.dim(3) % (if VECTOR == 4 { 8 } else { 1 }) == 0,
)]
pub fn attention_gradient_kv<
    T: Float,
    M: Score,
    P: MaskPattern,
    S: Sequences,
    const WIDTH: usize,
    const VECTOR: usize,
    const ROW_GROUPS: usize,
    const LOGIT_SQUARES: usize,
    const SQUARES: usize,
    const LOADS: usize,
>(
    q: View<T, 4>,
    k: View<T, 4>,
    v: View<T, 4>,
    d_o: View<T, 4>,
    lse: View<f32, 3>,
    delta: View<f32, 3>,
    d_k: ViewMut<T, 4>,
    d_v: ViewMut<T, 4>,
    scale: f32,
    left: usize,
    right: usize,
    score: M,
    pattern: P,
    sequences: S,
    count: usize,
    longest: usize,
) {
    let pieces = q.dim(3).max(v.dim(3)).div_ceil(WIDTH);
    // The first keys first: more causal queries see them.
    let is_whole = left.min(right) >= q.dim(2).max(k.dim(2));
    let (any, tile) = head_and_tile(k.dim(1) * count, longest.div_ceil(KEYS) * pieces, is_whole);
    let (sequence, own) = div_rem(any, k.dim(1));
    let (row0, piece) = (tile / pieces * KEYS, tile % pieces * WIDTH);
    let span = sequences.span(sequence, q.dim(2), k.dim(2));
    let (lq, lk, of_group) = (span.queries, span.keys, q.dim(1) / k.dim(1));
    if row0 >= lk {
        return;
    }
    // The queries that see at least one of these keys.
    let last = (row0 + KEYS).min(lk) - 1;
    let begin = (row0 + lq).saturating_sub(lk + right) / KEYS * KEYS;
    let end = (last + lq + 1 + left).saturating_sub(lk).min(lq);
    let (ab, p) = (slices(2 * KEYS), weights(KEYS));
    let slots = Shared::<f32, 3>::over(ab, [2, SLICE, WIDTH]);
    let kept = Shared::<u32, 1>::new([PARAMETERS]);
    if thread::x() == 0 {
        kept.store(4, [span.query as u32, span.key as u32, lq as u32, lk as u32]);
        kept.store(8, [row0 as u32, 0]);
    }
    let mut of_k = [[[[0.0f32; 4]; 4]; SQUARES]; ROW_GROUPS];
    let mut of_v = [[[[0.0f32; 4]; 4]; SQUARES]; ROW_GROUPS];
    // Whether to skip weights of 0: only in a second pass, after sums were NaN.
    let mut skips = false;
    loop {
        for member in rolled(0..of_group) {
            let head = own * of_group + member;
            let (list, tiles) = pattern.tiles(head, row0, begin, end);
            // All threads have read the previous head after the last tile.
            if thread::x() == 0 {
                kept.store(0, [sequence as u32, head as u32, own as u32, piece as u32]);
            }
            block::sync();
            for i in rolled(0..tiles) {
                let other0 = pattern.key(list, i);
                let here = load_parameters::<T, S>(kept, q, k, v, d_o, lse, delta, sequences);
                let GradientParameters { row0, lq, lk, thread, .. } = here;
                let s = product::<T, VECTOR, ROW_GROUPS, LOGIT_SQUARES>(
                    here.k,
                    row0,
                    lk,
                    here.q,
                    other0,
                    lq,
                    q.dim(3),
                    ab,
                    thread,
                );
                let here = load_parameters::<T, S>(kept, q, k, v, d_o, lse, delta, sequences);
                let of = weights_at::<T, M>(here, other0, score, scale, left, right);
                share::<ROW_GROUPS, LOGIT_SQUARES>(
                    p,
                    here.thread,
                    &weights_of::<M, true, ROW_GROUPS, LOGIT_SQUARES>(&s, of, here.lse),
                );
                let with = here.d_o.offset((0, here.piece));
                add::<T, WIDTH, SQUARES, LOADS, VECTOR, ROW_GROUPS>(
                    &mut of_v,
                    p,
                    with,
                    other0,
                    here.lq,
                    slots,
                    skips,
                    here.thread,
                );
                let here = load_parameters::<T, S>(kept, q, k, v, d_o, lse, delta, sequences);
                let GradientParameters { row0, lq, lk, thread, .. } = here;
                let mut t = product::<T, VECTOR, ROW_GROUPS, LOGIT_SQUARES>(
                    here.v,
                    row0,
                    lk,
                    here.d_o,
                    other0,
                    lq,
                    v.dim(3),
                    ab,
                    thread,
                );
                let here = load_parameters::<T, S>(kept, q, k, v, d_o, lse, delta, sequences);
                let of = weights_at::<T, M>(here, other0, score, scale, left, right);
                score_gradient::<M, true, ROW_GROUPS, LOGIT_SQUARES>(&mut t, &s, p, of, here.delta);
                share::<ROW_GROUPS, LOGIT_SQUARES>(p, here.thread, &t);
                let with = here.q.offset((0, here.piece));
                add::<T, WIDTH, SQUARES, LOADS, VECTOR, ROW_GROUPS>(
                    &mut of_k,
                    p,
                    with,
                    other0,
                    here.lq,
                    slots,
                    skips,
                    here.thread,
                );
            }
        }
        if skips || !block::any(has_nan(&of_k) || has_nan(&of_v)) {
            break;
        }
        skips = true;
        of_k = [[[[0.0f32; 4]; 4]; SQUARES]; ROW_GROUPS];
        of_v = [[[[0.0f32; 4]; 4]; SQUARES]; ROW_GROUPS];
    }
    let here = load_parameters::<T, S>(kept, q, k, v, d_o, lse, delta, sequences);
    let d_k = d_k.at(here.batch).at(here.of_keys).offset((here.key0, here.piece));
    let d_v = d_v.at(here.batch).at(here.of_keys).offset((here.key0, here.piece));
    put_sums::<T, VECTOR, SQUARES, ROW_GROUPS>(d_k, here.row0, here.lk, &of_k, here.thread);
    put_sums::<T, VECTOR, SQUARES, ROW_GROUPS>(d_v, here.row0, here.lk, &of_v, here.thread);
}

/// Returns the weights of the block's rows and a tile of other rows.
#[device]
fn weights_at<T: Float, M: Score>(
    here: GradientParameters<T>,
    other0: usize,
    score: M,
    scale: f32,
    left: usize,
    right: usize,
) -> ComputedWeights<M> {
    let GradientParameters { sequence, head, row0, lq, lk, thread, .. } = here;
    ComputedWeights { score, scale, sequence, head, row0, other0, lengths: (lq, lk), left, right, thread }
}

/// Writes the sums of a thread to rows of a gradient, without those beyond the last row or column.
#[device]
fn put_sums<T: Float, const VECTOR: usize, const SQUARES: usize, const ROW_GROUPS: usize>(
    to: ViewMut<T, 2>,
    row0: usize,
    rows: usize,
    acc: &[[[[f32; 4]; 4]; SQUARES]; ROW_GROUPS],
    thread: usize,
) {
    let (row, col) = corner::<ROW_GROUPS>(thread);
    for r in unroll(0..ROW_GROUPS) {
        for i in unroll(0..4) {
            let row = row0 + row + r * GROUP_STEP + i;
            if row < rows {
                for q in unroll(0..SQUARES) {
                    put::<T, VECTOR>(to, row, col + q * 32 * ROW_GROUPS, acc[r][q][i]);
                }
            }
        }
    }
}

/// Returns whether one of a thread's sums is NaN.
#[device]
fn has_nan<const SQUARES: usize, const ROW_GROUPS: usize>(acc: &[[[[f32; 4]; 4]; SQUARES]; ROW_GROUPS]) -> bool {
    let mut found = false;
    for r in unroll(0..ROW_GROUPS) {
        for i in unroll(0..4) {
            for x in unroll(0..4 * SQUARES) {
                found |= acc[r][x / 4][i][x % 4].is_nan();
            }
        }
    }
    found
}
