//! The keys and values of a lane of [`decode`](super): their loads, the logits of the keys, and the
//! sums of the weighted values.

use super::super::cache::*;
use super::query::{WarpQueries, staged_query};
use kernel_dsl::prelude::*;

/// The cache of a key head of a sequence, and the keys of a block in it.
#[device]
#[derive(Clone, Copy)]
pub struct HeadCache<K: StoredElement, C: Scales, P: Pages> {
    /// Keys, [plane, key head, row, element].
    pub keys: View<K, 4>,
    /// Values, in the same order.
    pub values: View<K, 4>,
    /// The scales of keys and values.
    pub scales: C,
    /// The planes and rows of a sequence's keys.
    pub pages: P,
    /// The sequence.
    pub sequence: usize,
    /// The key head.
    pub head: usize,
    /// The number of elements of a head.
    pub width: usize,
    /// The distance between two keys of a lane: the number of keys that a set of warps loads at
    /// once.
    pub step: usize,
    /// The end of the block's keys.
    pub end: usize,
}

/// A lane's numbers of `IN_FLIGHT` keys or values, as the cache holds them, and the scale of each
/// piece of `WIDE` numbers.
#[device]
#[derive(Clone, Copy)]
pub struct LaneNumbers<K: StoredElement, const ELEMENTS: usize, const IN_FLIGHT: usize> {
    /// The numbers. An element of `K::Kept` has `K::KEPT_NUMBERS` of them.
    pub raw: [[K::Kept; ELEMENTS]; IN_FLIGHT],
    /// The scales, 1 without scales.
    pub scales: [[f32; ELEMENTS]; IN_FLIGHT],
}

/// Loads a lane's numbers of `IN_FLIGHT` keys or, with `VALUES`, of values. The keys are `first`,
/// `first + cache.step`, and so on. Keys from `cache.end` on may contain anything, even NaNs, and
/// are never read: with `every`, the last key before the end takes their place. For keys and
/// elements that a lane does not load, the result is `before`.
#[device]
pub fn load_numbers<
    K: StoredElement,
    C: Scales,
    P: Pages,
    const LANES: usize,
    const WIDE: usize,
    const ELEMENTS: usize,
    const IN_FLIGHT: usize,
    const VALUES: bool,
>(
    cache: HeadCache<K, C, P>,
    first: usize,
    every: bool,
    before: LaneNumbers<K, ELEMENTS, IN_FLIGHT>,
) -> LaneNumbers<K, ELEMENTS, IN_FLIGHT> {
    let mut loaded = before;
    let (scales, head, end) = (cache.scales, cache.head, cache.end);
    let numbers = if VALUES { cache.values } else { cache.keys };
    for u in unroll(0..IN_FLIGHT) {
        let t = first + u * cache.step;
        let (plane, row) = cache.pages.place(cache.sequence, t.min(end - 1), numbers.dim(2));
        let at = CacheEntry { plane: plane.min(numbers.dim(0) - 1), head, row };
        for p in unroll(0..ELEMENTS / WIDE) {
            let d = (p * LANES + warp::lane() % LANES) * WIDE;
            if (every || t < end) && d < cache.width {
                let mut x = [K::narrow(0.0); WIDE];
                if K::NUMBERS == 1 {
                    x = numbers.load((at.plane, head, row, d));
                } else {
                    for e in unroll(0..WIDE / K::NUMBERS) {
                        x[e] = numbers[(at.plane, head, row, d / K::NUMBERS + e)];
                    }
                }
                for i in unroll(0..WIDE / K::KEPT_NUMBERS) {
                    let (kept, e) = (p * (WIDE / K::KEPT_NUMBERS) + i, i * (K::KEPT_NUMBERS / K::NUMBERS));
                    let neighbors = [e, (e + 1) % WIDE, (e + 2) % WIDE, (e + 3) % WIDE];
                    loaded.raw[u][kept] = K::keep(neighbors.map(|e| x[e]));
                }
                if C::SCALED {
                    loaded.scales[u][p] = (if VALUES { scales.value(at, d) } else { scales.key(at, d) }).to_f32();
                }
            }
        }
    }
    loaded
}

/// The keys of one iteration of a warp, `IN_FLIGHT` of a lane, and which of them a column sees.
#[device]
#[derive(Clone, Copy)]
pub struct KeyStep {
    /// The first key of the iteration.
    pub base: usize,
    /// The number of keys from there to the lane's first key.
    pub own: usize,
    /// The distance between two keys of a lane.
    pub step: usize,
    /// The end of the block's keys.
    pub end: usize,
    /// Whether some column may not see all of the keys.
    pub masked: bool,
    /// With several tokens, the number of keys that each column of the block sees.
    pub seen: Shared<u32, 1>,
    /// The warp's set of columns: its columns of the block are those from `set · GROUP` on.
    pub set: usize,
    /// The lane's first logit. A lane has `SUMS / LANES` logits of one column, or one.
    pub logit: usize,
    /// The column of the lane's logits, counted from the warp's first.
    pub logit_column: usize,
}

/// Returns a lane's share of the logits of `IN_FLIGHT` keys: the product of its elements of query g
/// and key u is logit g · `IN_FLIGHT` + u, in units of log₂ e.
#[device]
pub fn logits<
    K: StoredElement,
    C: Scales,
    const LANES: usize,
    const WIDE: usize,
    const ELEMENTS: usize,
    const GROUP: usize,
    const IN_FLIGHT: usize,
    const TOKENS: bool,
    const SUMS: usize,
>(
    queries: WarpQueries<ELEMENTS, GROUP>,
    keys: LaneNumbers<K, ELEMENTS, IN_FLIGHT>,
) -> [f32; SUMS] {
    let mut numbers = [[0.0f32; ELEMENTS]; IN_FLIGHT];
    for u in unroll(0..IN_FLIGHT) {
        for e in unroll(0..ELEMENTS) {
            numbers[u][e] = K::widen(keys.raw[u][e / K::KEPT_NUMBERS], e % K::KEPT_NUMBERS);
        }
    }
    let mut s = [0.0f32; SUMS];
    for g in unroll(0..GROUP) {
        let mut query = queries.own[g];
        if TOKENS {
            query = staged_query::<LANES, WIDE, ELEMENTS>(queries.staged, queries.set * GROUP + g);
        }
        for u in unroll(0..IN_FLIGHT) {
            s[g * IN_FLIGHT + u] = if K::INTEGERS && !TOKENS {
                let mut sum = 0i32;
                for i in unroll(0..ELEMENTS / K::KEPT_NUMBERS) {
                    sum = K::dot(queries.packed[g][i], keys.raw[u][i], sum);
                }
                sum as f32 * (queries.units[g] * keys.scales[u][0])
            } else {
                product::<C, ELEMENTS, WIDE>(query, numbers[u], keys.scales[u])
            };
        }
    }
    s
}

/// Returns the product of a query and a key in pieces of `WIDE` numbers, each with its scale.
#[device]
fn product<C: Scales, const ELEMENTS: usize, const WIDE: usize>(
    q: [f32; ELEMENTS],
    k: [f32; ELEMENTS],
    scales: [f32; ELEMENTS],
) -> f32 {
    let mut sum = 0.0;
    for p in unroll(0..ELEMENTS / WIDE) {
        let mut of_piece = if C::SCALED { 0.0 } else { sum };
        for e in unroll(p * WIDE..(p + 1) * WIDE) {
            of_piece = q[e].mul_add(k[e], of_piece);
        }
        sum = if C::SCALED { of_piece.mul_add(scales[p], sum) } else { of_piece };
    }
    sum
}

/// Sums each of `N` numbers over the lanes of a group. A lane receives `N / LANES` sums, or one,
/// from sum `lane · N / LANES` on. In each step a lane gives half of its numbers to a partner, and
/// takes the same number of its partner's.
#[device]
pub fn sums_of_lane<const LANES: usize, const N: usize>(x: [f32; N]) -> [f32; N] {
    let mut x = x;
    for step in unroll(0..5) {
        let apart = LANES >> (step + 1);
        if apart > 0 && N >> step > 1 {
            let half = N >> (step + 1);
            let upper = warp::lane() & apart != 0;
            for i in unroll(0..half) {
                let (kept, given) = if upper { (x[half + i], x[i]) } else { (x[i], x[half + i]) };
                x[i] = kept + warp::shuffle_xor(given, apart);
            }
        } else if apart > 0 {
            x[0] += warp::shuffle_xor(x[0], apart);
        }
    }
    x
}

/// Replaces the lane's logits of keys that its column does not see by −∞. Returns the largest logit
/// of the column.
#[device]
pub fn mask_logits<
    const LANES: usize,
    const GROUP: usize,
    const IN_FLIGHT: usize,
    const TOKENS: bool,
    const SUMS: usize,
>(
    w: &mut [f32; SUMS],
    keys: KeyStep,
) -> f32 {
    let mut top = f32::NEG_INFINITY;
    let column = keys.set * GROUP + keys.logit_column;
    for j in unroll(0..(SUMS / LANES).max(1)) {
        let t = keys.base + (keys.logit + j) % IN_FLIGHT * keys.step + keys.own;
        if keys.masked && t >= (if TOKENS { keys.end.min(keys.seen[column] as usize) } else { keys.end }) {
            w[j] = f32::NEG_INFINITY;
        }
        top = top.max(w[j]);
    }
    for step in unroll(0..5) {
        if (1 << step) < LANES / GROUP {
            top = top.max(warp::shuffle_xor(top, 1 << step));
        }
    }
    top
}

/// Adds the weighted values of an iteration. `w` has the weights of the lane's logits.
#[device]
pub fn add_values<
    K: StoredElement,
    C: Scales,
    const LANES: usize,
    const WIDE: usize,
    const ELEMENTS: usize,
    const GROUP: usize,
    const IN_FLIGHT: usize,
    const TOKENS: bool,
    const SUMS: usize,
>(
    o: &mut [[f32; ELEMENTS]; GROUP],
    w: [f32; SUMS],
    values: LaneNumbers<K, ELEMENTS, IN_FLIGHT>,
    keys: KeyStep,
) {
    for u in unroll(0..IN_FLIGHT) {
        let mut numbers = [0.0f32; ELEMENTS];
        for e in unroll(0..ELEMENTS) {
            let (kept, i) = (values.raw[u][e / K::KEPT_NUMBERS], e % K::KEPT_NUMBERS);
            numbers[e] = if TOKENS { K::widen(kept, i) } else { K::widen_by_sum(kept, i) };
        }
        for g in unroll(0..GROUP) {
            let i = g * IN_FLIGHT + u;
            let w = warp::group::<LANES>().broadcast(w[i % (SUMS / LANES).max(1)], i * LANES / SUMS);
            let t = keys.base + u * keys.step + keys.own;
            if !TOKENS || !keys.masked || t < keys.end.min(keys.seen[keys.set * GROUP + g] as usize) {
                o[g] = weighted::<C, ELEMENTS, WIDE>(w, numbers, values.scales[u], o[g]);
            }
        }
    }
}

/// Returns o + w·v of a value in pieces of `WIDE` numbers, each with its scale.
#[device]
fn weighted<C: Scales, const ELEMENTS: usize, const WIDE: usize>(
    w: f32,
    v: [f32; ELEMENTS],
    scales: [f32; ELEMENTS],
    o: [f32; ELEMENTS],
) -> [f32; ELEMENTS] {
    let mut o = o;
    for e in unroll(0..ELEMENTS) {
        let w = if C::SCALED { w * scales[e / WIDE] } else { w };
        o[e] = w.mul_add(v[e], o[e]);
    }
    o
}
