//! Partial softmaxes of [`decode`](super): their update by a step, and their merges between lanes,
//! warps and blocks.

use super::super::tile::reciprocal;
use super::query::{BlockColumns, token_and_head};
use kernel_dsl::prelude::*;

/// A partial softmax over some keys: Σ 2^(s − base) and Σ 2^(s − base)·v of logits s in units of
/// log₂ e. Without keys the base is −∞. Otherwise the base exceeds the largest s by enough that
/// sums cannot overflow if the mean is finite.
#[device]
#[derive(Clone, Copy, DeviceCopy)]
pub struct Partial<const ELEMENTS: usize> {
    /// The base.
    pub base: f32,
    /// Σ 2^(s − base).
    pub sum: f32,
    /// Elements of Σ 2^(s − base)·v.
    pub o: [f32; ELEMENTS],
}

/// Raises the base of the lane's column, as in `Partial`, to that of logits up to `top`. Scales the
/// lane's sum, and its elements of the sums of all columns, to the new bases. `raised` is the
/// distance between the largest logit and the base.
#[device]
pub fn raise_base<const LANES: usize, const ELEMENTS: usize, const GROUP: usize>(
    base: &mut f32,
    sum: &mut f32,
    o: &mut [[f32; ELEMENTS]; GROUP],
    top: f32,
    raised: f32,
) {
    if warp::any(top + raised > *base) {
        let higher = (*base).max(top + raised);
        let old = fast::exp2(*base - higher.max(f32::MIN));
        *base = higher;
        *sum *= old;
        for g in unroll(0..GROUP) {
            let old = warp::group::<LANES>().broadcast(old, g * (LANES / GROUP));
            for e in unroll(0..ELEMENTS) {
                o[g][e] *= old;
            }
        }
    }
}

/// Merges the partial softmaxes of two sets of keys.
#[device]
fn merge<const ELEMENTS: usize>(a: Partial<ELEMENTS>, b: Partial<ELEMENTS>) -> Partial<ELEMENTS> {
    let base = a.base.max(b.base);
    let finite = base.max(f32::MIN);
    let (x, y) = (fast::exp2(a.base - finite), fast::exp2(b.base - finite));
    let mut o = [0.0; ELEMENTS];
    for e in unroll(0..ELEMENTS) {
        o[e] = a.o[e].mul_add(x, b.o[e] * y);
    }
    Partial { base, sum: a.sum.mul_add(x, b.sum * y), o }
}

/// Merges the partial softmaxes of a warp's groups of `LANES` lanes. In each step a lane gives half
/// of its sums to a partner, and takes the same number of its partner's. The first `ELEMENTS` ·
/// `LANES` / 32 sums remain: those of the elements from `lane / LANES · ELEMENTS · LANES / 32` on.
#[device]
fn scattered<const LANES: usize, const ELEMENTS: usize>(x: Partial<ELEMENTS>) -> Partial<ELEMENTS> {
    let (mut base, mut sum, mut o) = (x.base, x.sum, x.o);
    for step in unroll(0..5) {
        if 16 >> step >= LANES {
            base = base.max(warp::shuffle_xor(base, 16 >> step));
        }
    }
    let factor = fast::exp2(x.base - base.max(f32::MIN));
    sum *= factor;
    for e in unroll(0..ELEMENTS) {
        o[e] *= factor;
    }
    for step in unroll(0..5) {
        if 16 >> step >= LANES {
            let half = ELEMENTS >> (step + 1);
            let upper = warp::lane() & 16 >> step != 0;
            for e in unroll(0..half) {
                let (kept, given) = if upper { (o[half + e], o[e]) } else { (o[e], o[half + e]) };
                o[e] = kept + warp::shuffle_xor(given, 16 >> step);
            }
            sum += warp::shuffle_xor(sum, 16 >> step);
        }
    }
    Partial { base, sum, o }
}

/// Merges the softmaxes of a block's warps, `COLS` columns at a time, and stores the results: the
/// sums in `parts`, [row, head, split, element], base and sum in `logs`, [row, head, split, 2].
/// `sums`, [warp, column, element], and `ranges`, [warp, column], receive the partial results of
/// the warps.
#[device]
pub fn store_part<
    const LANES: usize,
    const WIDE: usize,
    const ELEMENTS: usize,
    const GROUP: usize,
    const TOKENS: bool,
    const COLUMN_SETS: usize,
    const THREADS: usize,
    const COLS: usize,
>(
    base: f32,
    sum: f32,
    o: [[f32; ELEMENTS]; GROUP],
    columns: BlockColumns,
    split: usize,
    mut sums: Shared<f32, 3>,
    mut ranges: Shared<[f32; 2], 2>,
    mut parts: ViewMut<f32, 4>,
    logs: ViewMut<f32, 4>,
) {
    let BlockColumns { sequence, tokens, group, of_group, count, first, width } = columns;
    let (lanes, of_column) = (warp::group::<LANES>(), LANES / GROUP);
    for g in unroll(0..GROUP / COLS) {
        for c in unroll(0..COLS) {
            let from = (g * COLS + c) * of_column;
            let (base, sum) = (lanes.broadcast(base, from), lanes.broadcast(sum, from));
            let of_warp = scattered::<LANES, ELEMENTS>(Partial { base, sum, o: o[g * COLS + c] });
            for e in unroll(0..ELEMENTS * LANES / 32) {
                sums[(warp::index(), c, e * 32 + warp::lane())] = of_warp.o[e];
            }
            // All lanes hold the same values.
            ranges[(warp::index(), c)] = [of_warp.base, of_warp.sum];
        }
        block::sync();
        for i in rolled((thread::x()..COLUMN_SETS * COLS * LANES * ELEMENTS).step_by(THREADS)) {
            let (set, col, at) = (i / (COLS * LANES * ELEMENTS), i / (LANES * ELEMENTS) % COLS, i % (LANES * ELEMENTS));
            let (lane, e) = (at % LANES, at % 32 / LANES * (ELEMENTS * LANES / 32) + at / 32);
            let d = (e / WIDE * LANES + lane) * WIDE + e % WIDE;
            let c = first + set * GROUP + g * COLS + col;
            if d < width && c < count {
                let mut base = f32::NEG_INFINITY;
                for w in unroll(0..THREADS / 32 / COLUMN_SETS) {
                    base = base.max(ranges[(w * COLUMN_SETS + set, col)][0]);
                }
                let (mut sum, mut x) = (0.0f32, 0.0f32);
                for w in unroll(0..THREADS / 32 / COLUMN_SETS) {
                    let [of_warp, part] = ranges[(w * COLUMN_SETS + set, col)];
                    let factor = fast::exp2(of_warp - base.max(f32::MIN));
                    sum = part.mul_add(factor, sum);
                    x = sums[(w * COLUMN_SETS + set, col, at)].mul_add(factor, x);
                }
                let (token, head) = token_and_head::<TOKENS>(c, of_group);
                let (row, head) = (sequence * tokens + token, group * of_group + head);
                parts[(row, head, split, d)] = x;
                if d == 0 {
                    logs.store((row, head, split, 0), [base, sum]);
                }
            }
        }
        block::sync();
    }
}

/// Merges parts of a column: the splits from `first` on, in steps of `step` below `splits`. Loads
/// `SPLITS_AHEAD` splits at a time. Returns four elements of the sums, from `d` on.
#[device]
fn merge_splits<const SPLITS_AHEAD: usize>(
    parts: ViewMut<f32, 4>,
    logs: ViewMut<f32, 4>,
    row: usize,
    head: usize,
    d: usize,
    first: usize,
    splits: usize,
    step: usize,
) -> Partial<4> {
    let mut r = Partial { base: f32::NEG_INFINITY, sum: 0.0, o: [0.0f32; 4] };
    for from in rolled((first..splits).step_by(step * SPLITS_AHEAD)) {
        let mut next = [Partial { base: f32::NEG_INFINITY, sum: 0.0, o: [0.0f32; 4] }; SPLITS_AHEAD];
        for i in unroll(0..SPLITS_AHEAD) {
            let split = from + i * step;
            if split < splits {
                let [base, sum]: [f32; 2] = logs.load((row, head, split, 0));
                next[i] = Partial { base, sum, o: parts.load((row, head, split, d)) };
            }
        }
        let old = r.base;
        for i in unroll(0..SPLITS_AHEAD) {
            r.base = r.base.max(next[i].base);
        }
        let finite = r.base.max(f32::MIN);
        let w = fast::exp2(old - finite);
        r.sum *= w;
        r.o = r.o.map(|x| x * w);
        for i in unroll(0..SPLITS_AHEAD) {
            let w = fast::exp2(next[i].base - finite);
            r.sum = next[i].sum.mul_add(w, r.sum);
            for e in unroll(0..4) {
                r.o[e] = next[i].o[e].mul_add(w, r.o[e]);
            }
        }
    }
    r
}

/// Stores the results of a block's columns, from the parts of all splits.
///
/// Warps share the columns. If there are more warps than columns, they also share the splits of a
/// column: a lane sums four elements of some splits, and has `SPLITS_AHEAD` of them in flight.
/// `merged`, [warp, lane], receives these sums.
#[device]
pub fn store_columns<
    O: Float,
    const TOKENS: bool,
    const GROUP: usize,
    const COLUMN_SETS: usize,
    const THREADS: usize,
    const SPLITS_AHEAD: usize,
>(
    parts: ViewMut<f32, 4>,
    logs: ViewMut<f32, 4>,
    mut o: ViewMut<O, 3>,
    columns: BlockColumns,
    splits: usize,
    mut merged: Shared<Partial<4>, 2>,
) {
    let BlockColumns { sequence, tokens, group, of_group, count, first, width } = columns;
    let each = (THREADS / 32 / (GROUP * COLUMN_SETS)).max(1);
    let together = THREADS / 32 / each;
    let (of, turn) = (warp::index() % together, warp::index() / together);
    for round in unroll(0..(GROUP * COLUMN_SETS).div_ceil(THREADS / 32)) {
        let c = first + round * together + of;
        let (token, head) = token_and_head::<TOKENS>(if c < count { c } else { first }, of_group);
        let (row, head) = (sequence * tokens + token, group * of_group + head);
        for at in rolled((0..width).step_by(128)) {
            let d = at + 4 * warp::lane();
            let mut r = Partial { base: f32::NEG_INFINITY, sum: 0.0, o: [0.0f32; 4] };
            if d < width {
                r = merge_splits::<SPLITS_AHEAD>(parts, logs, row, head, d, turn, splits, each);
            }
            merged[(warp::index(), warp::lane())] = r;
            block::sync();
            if turn == 0 && c < count && d < width {
                for other in unroll(1..THREADS / 32 / (GROUP * COLUMN_SETS)) {
                    r = merge(r, merged[(of + other * together, warp::lane())]);
                }
                let inverse = reciprocal(r.base, r.sum);
                for e in unroll(0..4) {
                    o[(row, head, d + e)] = O::from_f32(r.o[e] * inverse);
                }
            }
            block::sync();
        }
    }
}
