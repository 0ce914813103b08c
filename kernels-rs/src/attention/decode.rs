//! The kernel for attention of one query a sequence, over keys in a cache.
//!
//! It is limited by memory: each key and value is read once and multiplied with the queries of its
//! group, which are few. Therefore the keys are split over enough blocks to fill the device. A
//! block computes all query heads of a group, and stages no data in shared memory.
//!
//! ```text
//!             ┌─ split 0 ─┬─ split 1 ─┬─ … ┐            a warp: 32 / LANES keys at once, a key by LANES lanes,
//!   keys of   │ block     │ block     │    │            U keys of a lane in flight
//!   a head    │ max, Σ, O │ max, Σ, O │    │            ┌──────┬──────┐
//!             └─────┬─────┴─────┬─────┴────┘            │ key 0│ key 1│  piece p of lane l: elements
//!                   └── the block that ends last        │ l 0 …│ l 0 …│  (p·LANES + l)·WIDE and on
//!                       reduces their sums              └──────┴──────┘
//! ```
//!
//! Partial softmaxes are merged between lanes by shuffles, between warps in shared memory, and
//! between blocks in global memory. Each block writes its part and then increments a counter
//! atomically. The last block reads all parts in their order, so the result does not depend on
//! which block is last.

use super::cache::*;
use super::tile::{lowered, reciprocal};
use crate::fold::{along_x, along_y, along_z, block_at};
use kernel_dsl::prelude::*;

/// A partial softmax over some keys: Σ 2^(s − base) and Σ 2^(s − base)·v of logits s in units of
/// log₂ e. Without keys the base is −∞. Otherwise it exceeds the largest s by enough that sums
/// cannot overflow if the mean is finite.
#[device]
#[derive(Clone, Copy, DeviceCopy)]
struct Partial<const E: usize> {
    base: f32,
    sum: f32,
    o: [f32; E],
}

/// Merges the partial softmaxes of two sets of keys.
#[device]
fn merge<const E: usize>(a: Partial<E>, b: Partial<E>) -> Partial<E> {
    let base = a.base.max(b.base);
    let finite = base.max(f32::MIN);
    let (x, y) = (fast::exp2(a.base - finite), fast::exp2(b.base - finite));
    let mut o = [0.0; E];
    for e in unroll(0..E) {
        o[e] = a.o[e].mul_add(x, b.o[e] * y);
    }
    Partial { base, sum: a.sum.mul_add(x, b.sum * y), o }
}

/// Threads of a block.
#[device]
const THREADS: usize = 128;

/// Computes O ← softmax(scale·q·Kᵀ)·V for each head of each sequence, over its first `lengths`
/// keys.
///
/// A block has `GROUP` query heads, and a lane has `U` keys in flight.
///
/// q and o are [sequence, head, element]. `parts`, [sequence, head, split, element], and `logs`,
/// [sequence, head, split, 2], are scratch memory. `ended` counts finished blocks. It is 0 for each
/// sequence and block of heads before and after the launch. A sequence without keys gives zeros.
#[kernel(
    block = THREADS, max_registers = 128,
    grid = (
        along_x(splits, (q.dim(1) / groups).div_ceil(GROUP) * groups, q.dim(0)),
        along_y((q.dim(1) / groups).div_ceil(GROUP) * groups, q.dim(0)),
        along_z((q.dim(1) / groups).div_ceil(GROUP) * groups, q.dim(0)),
    ),
    instances(
        f32: T = f32, K = f32, C = Unscaled, P = Contiguous | Paged, LANES = 16, WIDE = 4, E = 8, GROUP = 2, U = 4;
        f16_contiguous: T = f16, K = f16, C = Unscaled, P = Contiguous, LANES = 16, WIDE = 8, E = 8, GROUP = 2, U = 8;
        f32_i8_contiguous: T = f32, K = i8, C = Scaled, P = Contiguous, LANES = 16, WIDE = 8, E = 8, GROUP = 2, U = 4
    ),
    tolerance(o(relative = 1e-4, absolute = 1e-5), parts(relative = 1e-4, absolute = 1e-4), logs(relative = 1e-5, absolute = 1e-5)),
)]
#[requires(
    splits > 0, groups > 0, q.dim(1) % groups == 0, o.dim(0) == q.dim(0), o.dim(1) == q.dim(1), o.dim(2) == q.dim(2),
    lengths.len() == q.dim(0), q.dim(2) % WIDE == 0, q.dim(2) <= LANES * E,
    parts.dim(0) == q.dim(0), parts.dim(1) == q.dim(1), parts.dim(2) == splits, parts.dim(3) == q.dim(2),
    logs.dim(0) == q.dim(0), logs.dim(1) == q.dim(1), logs.dim(2) == splits, logs.dim(3) == 2,
    ended.len() >= q.dim(0) * ((q.dim(1) / groups).div_ceil(GROUP) * groups),
    k.dim(1) == groups, k.dim(3) == q.dim(2), v.dim(0) == k.dim(0), v.dim(1) == groups, v.dim(2) == k.dim(2), v.dim(3) == q.dim(2),
    q.aligned(4), k.aligned(WIDE), v.aligned(WIDE), parts.aligned(4), logs.aligned(2),
)]
pub fn flash_decode<
    T: Float,
    K: Stored,
    C: Scales,
    P: Pages,
    const LANES: usize,
    const WIDE: usize,
    const E: usize,
    const GROUP: usize,
    const U: usize,
>(
    q: View<T, 3>,
    k: View<K, 4>,
    v: View<K, 4>,
    scales: C,
    pages: P,
    lengths: View<u32, 1>,
    mut o: ViewMut<T, 3>,
    parts: ViewMut<f32, 4>,
    logs: ViewMut<f32, 4>,
    mut ended: ViewMut<u32, 1>,
    groups: usize,
    splits: usize,
    scale: f32,
) {
    // Another block computes the heads of a group beyond `GROUP`.
    let (of_group, blocks) = (q.dim(1) / groups, (q.dim(1) / groups).div_ceil(GROUP));
    let [split, heads, sequence] = block_at(splits, blocks * groups);
    let (group, first) = (heads / blocks, heads % blocks * GROUP);
    let width = q.dim(2);
    let len = (lengths[sequence] as usize).min(pages.room(k.dim(2)));
    let (k, v) = (k.streaming(), v.streaming());
    let lanes = warp::group::<LANES>();
    let keys = THREADS / LANES;
    let mine = thread::x() / LANES;

    let mut qs = [[0.0f32; E]; GROUP];
    for g in unroll(0..GROUP) {
        let head = group * of_group + (first + g).min(of_group - 1);
        for p in unroll(0..E / WIDE) {
            let d = (p * LANES + lanes.lane()) * WIDE;
            if d < width {
                let x: [T; WIDE] = q.load((sequence, head, d));
                for e in unroll(0..WIDE) {
                    qs[g][p * WIDE + e] = x[e].to_f32() * (scale * std::f32::consts::LOG2_E);
                }
            }
        }
    }
    let mut all = [Partial { base: f32::NEG_INFINITY, sum: 0.0, o: [0.0f32; E] }; GROUP];
    let raised = lowered(len);
    let each = len.div_ceil(splits).next_multiple_of(keys * U);
    let (begin, end) = ((split * each).min(len), ((split + 1) * each).min(len));
    for base in rolled((begin..end).step_by(keys * U)) {
        // Every thread runs the same number of iterations, so that the warp converges at the
        // shuffles below. All loads precede the conversions, which wait for their operands.
        let (mut raw_k, mut raw_v) = ([[K::narrow(0.0); E]; U], [[K::narrow(0.0); E]; U]);
        let mut factors = [[1.0f32; 2]; U];
        for u in unroll(0..U) {
            let t = base + u * keys + mine;
            // No read beyond the end, where a cache may contain anything, including NaNs.
            let (plane, row) = pages.place(sequence, t.min(end - 1), k.dim(2));
            let at = Entry { plane: plane.min(k.dim(0) - 1), head: group, row };
            for p in unroll(0..E / WIDE) {
                let d = (p * LANES + lanes.lane()) * WIDE;
                let (mut x, mut y) = ([K::narrow(0.0); WIDE], [K::narrow(0.0); WIDE]);
                if t < end && d < width {
                    x = k.load((at.plane, group, row, d));
                    y = v.load((at.plane, group, row, d));
                }
                for e in unroll(0..WIDE) {
                    (raw_k[u][p * WIDE + e], raw_v[u][p * WIDE + e]) = (x[e], y[e]);
                }
            }
            if C::SCALED && t < end {
                factors[u] = [scales.key(at), scales.value(at)];
            }
        }
        let (mut kk, mut vv) = ([[0.0f32; E]; U], [[0.0f32; E]; U]);
        for u in unroll(0..U) {
            for e in unroll(0..E) {
                kk[u][e] = raw_k[u][e].widen();
                vv[u][e] = raw_v[u][e].widen();
                if C::SCALED {
                    kk[u][e] *= factors[u][0];
                    vv[u][e] *= factors[u][1];
                }
            }
        }
        for g in unroll(0..GROUP) {
            let mut s = [0.0f32; U];
            let mut top = f32::NEG_INFINITY;
            for u in unroll(0..U) {
                let mut x = 0.0;
                for e in unroll(0..E) {
                    x = qs[g][e].mul_add(kk[u][e], x);
                }
                let x = lanes.sum(x);
                s[u] = if base + u * keys + mine < end { x } else { f32::NEG_INFINITY };
                top = top.max(s[u]);
            }
            // If all logits are −∞: exp2(−∞ − MIN) = 0, never NaN.
            let base = all[g].base.max(top + raised);
            let bottom = base.max(f32::MIN);
            let old = fast::exp2(all[g].base - bottom);
            all[g].base = base;
            all[g].sum *= old;
            for e in unroll(0..E) {
                all[g].o[e] *= old;
            }
            for u in unroll(0..U) {
                let w = fast::exp2(s[u] - bottom);
                all[g].sum += w;
                for e in unroll(0..E) {
                    all[g].o[e] = w.mul_add(vv[u][e], all[g].o[e]);
                }
            }
        }
    }

    // First between the groups of a warp, then between the warps.
    let mut met = Shared::<Partial<E>, 2>::new([THREADS / 32, LANES]);
    for g in unroll(0..GROUP) {
        for step in unroll(0..5) {
            if (1 << step) >= LANES {
                all[g] = merge(all[g], warp::shuffle_xor(all[g], 1 << step));
            }
        }
        if warp::lane() < LANES {
            met[(warp::index(), warp::lane())] = all[g];
        }
        block::sync();
        if thread::x() < LANES && first + g < of_group {
            let mut r = met[(0, thread::x())];
            for w in unroll(1..THREADS / 32) {
                r = merge(r, met[(w, thread::x())]);
            }
            let head = group * of_group + first + g;
            for p in unroll(0..E / WIDE) {
                let d = (p * LANES + thread::x()) * WIDE;
                if d < width {
                    let mut x = [0.0f32; WIDE];
                    for e in unroll(0..WIDE) {
                        x[e] = r.o[p * WIDE + e];
                    }
                    parts.store((sequence, head, split, d), x);
                }
            }
            // All lanes hold the same values.
            logs.store((sequence, head, split, 0), [r.base, r.sum]);
        }
        block::sync();
    }

    let mut before = 0u32;
    if thread::x() == 0 {
        let counter = sequence * blocks * groups + heads;
        fence::grid();
        before = ended.fetch_add(counter, 1);
        fence::grid();
        if before as usize + 1 == splits {
            ended[counter] = 0;
        }
    }
    if block::broadcast(before, 0) as usize + 1 != splits {
        return;
    }
    // Warps share the heads. If there are more warps than heads, they also share the splits of a
    // head: a lane sums four elements of some splits.
    const WARPS: usize = THREADS / 32;
    let mut share = Shared::<[f32; 5], 2>::new([WARPS, 32]);
    let each = WARPS / GROUP;
    let (g, turn) = (warp::index() % GROUP, warp::index() / GROUP);
    let head = group * of_group + (first + g).min(of_group - 1);
    let mut base = f32::NEG_INFINITY;
    for i in (warp::lane()..splits).step_by(32) {
        base = base.max(logs[(sequence, head, i, 0)]);
    }
    let top = warp::max(base);
    let base = top.max(f32::MIN);
    for at in rolled((0..width).step_by(128)) {
        let d = at + 4 * warp::lane();
        let mut sums = [0.0f32; 5];
        if d < width {
            for i in unroll_by::<8>((turn..splits).step_by(each)) {
                let [m, l]: [f32; 2] = logs.load((sequence, head, i, 0));
                let part: [f32; 4] = parts.load((sequence, head, i, d));
                let w = fast::exp2(m - base);
                for e in unroll(0..4) {
                    sums[e] = part[e].mul_add(w, sums[e]);
                }
                sums[4] = l.mul_add(w, sums[4]);
            }
        }
        share[(warp::index(), warp::lane())] = sums;
        block::sync();
        if turn == 0 && first + g < of_group && d < width {
            for other in unroll(1..WARPS / GROUP) {
                let more = share[(g + other * GROUP, warp::lane())];
                for e in unroll(0..5) {
                    sums[e] += more[e];
                }
            }
            let inverse = reciprocal(top, sums[4]);
            for e in unroll(0..4) {
                o[(sequence, head, d + e)] = T::from_f32(sums[e] * inverse);
            }
        }
        block::sync();
    }
}
