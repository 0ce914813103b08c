//! The kernel for attention of one or a few tokens a sequence, over keys in a cache.
//!
//! The kernel is limited by memory: each key and value is read once and multiplied with the queries
//! of its group, which are few. Therefore the keys are split over enough blocks to fill the device.
//! A block computes all query heads of a group, and stages no keys or values in shared memory.
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
//! # Several tokens
//!
//! The tokens of a sequence are its last, and a token sees the keys up to its own. Each pair of a
//! token and a query head of the group is a column. The columns of a group are computed together,
//! so that keys and values are read once for all:
//!
//! ```text
//!              tokens 0, 0, 1, 1, 2, 2, 3, 3     a warp: GROUP columns; SETS neighboring warps have the same keys
//!              heads  0, 1, 0, 1, 0, 1, 0, 1
//!   key 0      █  █  █  █  █  █  █  █
//!     …        █  █  █  █  █  █  █  █           the loop without comparisons ends with the first token's keys
//!   key n−4    █  █  █  █  █  █  █  █
//!   key n−3          █  █  █  █  █  █           the rest is masked: neither a logit nor a value
//!   key n−2                █  █  █  █           beyond a column's last key reaches its sums
//!   key n−1                      █  █
//! ```
//!
//! The sums of four columns leave no registers for their queries, which lie in shared memory. With
//! eight columns a warp, the kernel spilled 364 bytes on sm_61. On an H100 four tokens of 2 heads
//! then took 1.68 times as long as one token (f16, 8192 keys). With four columns and four keys in
//! flight they take 22.9 µs, and one token 17.5 µs. The sums are scaled only in iterations in which
//! a logit exceeds all earlier ones of its column.
//!
//! Issue slots limit four tokens. For `f16`, the loop of a warp has 523 instructions on sm_90 for
//! four columns and 8 keys, of which 256 are fused multiply-adds. On sm_61 they take 465 slots of
//! issue. Four tokens of 2 heads over 8192 keys of 8 heads take 16,384 iterations of warps. The 528
//! schedulers of an H100 execute these in 9.2 µs or more at 1.755 GHz, and the multiply-adds alone
//! in 4.5. The latencies of [few keys](#few-keys) add to that: a step over 1024 keys takes 8.0 µs.
//! So this loop does not reach 1.25 times the 10.5 µs of one token.
//!
//! # Few keys
//!
//! One token over 32,768 keys of `f16` takes 49.9 µs on an H100, 0.96 of a copy's rate. L2 holds
//! 8192 keys and their values, but evict-first loads replace one another there: 7 % of the sectors
//! were hits, and a step takes 17.5 µs, 0.51 of a copy. Without this hint and with four keys in
//! flight it takes 10.5 µs, 0.84 of a copy. Keys that L2 does not hold need the hint: without it,
//! 32,768 keys take 52.1 µs, and those of q8_0 take 37.0 µs instead of 32.0. Therefore
//! [`Decode`](super::Decode) sets `STREAMED` unless L2 has space for the whole cache. If other data
//! are in L2, both loads take equally long: 19.7 and 19.6 µs.
//!
//! The remaining time does not depend on memory. In a stream of 100 launches, an empty kernel takes
//! 3.1 µs, and one that only loads the keys and values takes 7.0. With a sum over parts by the last
//! block it takes 8.9 µs. A step over 1024 keys takes 8.0 µs. The time is a chain of latencies: the
//! first loads, the products, and in the last block a store, a fence, an atomic operation and the
//! loads of all parts. Designs for 8192 keys without the hint:
//!
//! | design | µs |
//! |---|---|
//! | 256 threads, 32 parts, 8 or 4 keys of a lane in flight | 11.5, 10.5 |
//! | 512 threads, 16 parts, 4 keys | 10.7 |
//! | the next keys loaded ahead, halves packed in registers, 32 parts, 8 or 4 keys | 11.5, 11.1 |
//! | the same with 4 keys and 33 equal parts | 11.2 |
//! | the same with 128 threads and 64 parts | 12.4 |
//!
//! # Caches of integers
//!
//! A conversion of an integer to `f32` has an eighth of the rate of a multiplication on an H100,
//! and a quarter on sm_61. With conversions, one token over keys of q8_0 took nearly as long as
//! over keys of `f16`. Therefore a query is rounded to integers of 16 bits, with a unit for the 8
//! or 16 elements of a lane. `dp2a` multiplies them, two products an instruction. Values become
//! floats by a byte permutation and a sum. Measured on an H100 in a graph, for 16 query and 8 key
//! heads of 128 elements, in µs. The two numbers in a column's head are the lanes that share a key,
//! and the keys in flight. The copy moves the same number of bytes:
//!
//! | keys of q8_0 | conversions | products of `f32` after permutations, 16, 8 | `dp2a`, 16, 4 | 16, 8 | 8, 4 | 8, 3, next keys prefetched | copy |
//! |---|---|---|---|---|---|---|---|
//! | 8192 | 14.8 | 12.7 | 12.4 | 11.9 | 11.8 | 12.5 | 3.7 |
//! | 32,768 | 40.9 | 34.0 | 31.2 | 30.2 | 29.6 | 29.8 | 25.7 |
//! | 131,072 | 138.7 | 107.2 | 103.3 | 98.3 | 95.6 | 97.4 | 95.8 |
//!
//! With 8 lanes for a key, a lane has 16 elements, and there are fewer exchanges. More or
//! smaller blocks do not help. The table measures kernels for this cache alone. The kernel
//! below serves all caches; at first it had three keys in flight, because four spilled. By
//! `kernels bench --suite decode` on an H100, with conversions and with `dp2a`:
//!
//! | keys | q8_0 | of a copy | q4_0 | of a copy |
//! |---|---|---|---|---|
//! | 8192 | 15.7, 14.1 µs | 0.30, 0.33 | 16.8, 13.5 µs | 0.21, 0.26 |
//! | 32,768 | 42.0, 33.1 | 0.64, 0.82 | 47.3, 30.1 | 0.24, 0.37 |
//! | 131,072 | 139.5, 105.2 | 0.70, 0.93 | 162.0, 90.4 | 0.33, 0.59 |
//!
//! For several tokens, keys and values are still converted. For four tokens and 32,768 keys of
//! q8_0, permutations took 92.3 µs and conversions take 90.5.
//!
//! # Sums over lanes
//!
//! A group of lanes has `GROUP · U` logits, and each lane has a partial sum of each. In each step a
//! lane gives half of its sums to its partner and takes the other half. Each lane ends with one
//! logit. So 16 logits of 16 lanes take 15 exchanges. Summed one by one they took 64. Each lane
//! then computes one weight instead of 16, and sends it to its group:
//!
//! ```text
//!   step     lane 0 has parts of   lane 1          lane 2          lane 3
//!   before   s₀ s₁ s₂ s₃           s₀ s₁ s₂ s₃     s₀ s₁ s₂ s₃     s₀ s₁ s₂ s₃
//!   1        s₀ s₁                 s₀ s₁           s₂ s₃           s₂ s₃
//!   2        s₀                    s₁              s₂              s₃
//! ```
//!
//! Values are converted after the weights are known. Conversions before the test of a new maximum
//! made caches of integers spill 180 to 552 bytes. Now four keys of a lane are in flight for all
//! caches of integers, without spills on sm_61 and sm_90. Before and after this, with the merging
//! below, by `kernels bench --suite decode` on an H100, for 16 query heads and 8 key heads, in µs:
//!
//! | cache | keys | tokens | before | after | copy |
//! |---|---|---|---|---|---|
//! | f16 | 8192 | 1 | 18.1 | 17.5 | 8.9 |
//! | f16 | 8192 | 4, 16 | 24.7, 69.6 | 22.9, 63.6 | 8.9 |
//! | f16 | 32,768 | 1, 4 | 50.4, 68.9 | 50.1, 63.4 | 47.9 |
//! | f32 | 65,536 | 1 | 183.2 | 184.7 | 179.6 |
//! | f32 | 8192 | 4 | 32.0 | 33.8 | 25.4 |
//! | q8_0 | 32,768 | 1, 4 | 33.4, 91.0 | 31.4, 90.9 | 27.0 |
//! | q8_0 | 131,072 | 1 | 105.4 | 101.9 | 97.3 |
//! | q4_0 | 32,768 | 1, 4 | 30.3, 105.2 | 27.3, 98.2 | 11.2 |
//!
//! One token over q8_0 loads the next keys when the products have freed their registers, and the
//! next values after the sums. Without loads ahead 32,768 keys took 31.3 µs. Now they take 30.0,
//! 0.91 of a copy, and 131,072 keys take 96.4 µs instead of 101.2. If L2 holds the keys, loads
//! ahead make a step slower: 8192 keys take 11.5 µs instead of 9.9. With the hint they took 13.3
//! µs. Loads ahead over q4_0 took 32.5 µs instead of 27.2 for 32,768 keys. Over `f16`, four
//! tokens that load ahead spill.
//!
//! With 16 lanes of a key and eight keys in flight, q8_0 takes 35.0 µs for 32,768 keys. Three
//! blocks a multiprocessor instead of two take 41.3 µs. For `f32`, 16 lanes have 8 logits: the last
//! exchange adds the same logit in both lanes.
//!
//! # Parts
//!
//! Partial softmaxes are merged between lanes by shuffles, between warps in shared memory, and
//! between blocks in global memory. A warp merges its groups as it sums logits: each lane keeps a
//! part of the elements. All threads of the block then merge an element each. Each block writes its
//! part and then increments a counter atomically. The last block reads all parts in their order, so
//! the result does not depend on which block is last. This block loads the range and the sums of
//! `AHEAD` splits at a time, so that it waits for memory once, not twice.

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

/// Merges the partial softmaxes of a warp's groups of `LANES` lanes. In each step a lane gives half
/// of its sums away and takes as many. The first `E` · `LANES` / 32 sums remain: those of the
/// elements from `lane / LANES · E · LANES / 32` on.
#[device]
fn scattered<const LANES: usize, const E: usize>(x: Partial<E>) -> Partial<E> {
    let (mut base, mut sum, mut o) = (x.base, x.sum, x.o);
    for step in unroll(0..5) {
        if 16 >> step >= LANES {
            base = base.max(warp::shuffle_xor(base, 16 >> step));
        }
    }
    let factor = fast::exp2(x.base - base.max(f32::MIN));
    sum *= factor;
    for e in unroll(0..E) {
        o[e] *= factor;
    }
    for step in unroll(0..5) {
        if 16 >> step >= LANES {
            let half = E >> (step + 1);
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

/// Returns the token of a column, and the query head within its group. A group has `of_group` query
/// heads.
#[device]
fn token_and_head<const TOKENS: bool>(column: usize, of_group: usize) -> (usize, usize) {
    if TOKENS { (column / of_group, column % of_group) } else { (0, column) }
}

/// Sums each of `N` numbers over the lanes of a group. A lane receives `N / LANES` sums, or one,
/// from sum `lane · N / LANES` on. In each step a lane gives half of its numbers away, and takes as
/// many.
#[device]
fn sums_of_lane<const LANES: usize, const N: usize>(x: [f32; N]) -> [f32; N] {
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

/// Returns the place of element `d` of a query in shared memory. A lane reads `WIDE` neighboring
/// elements by fours; in this order neighboring lanes read neighboring fours.
#[device]
fn staged_at<const LANES: usize, const WIDE: usize>(d: usize) -> usize {
    let within = d % (LANES * WIDE);
    d - within + within % WIDE / 4 * (LANES * 4) + within / WIDE * 4 + d % 4
}

/// Returns the product of a query and a key in pieces of `WIDE` numbers, each with its scale.
#[device]
fn product<C: Scales, const E: usize, const WIDE: usize>(q: [f32; E], k: [f32; E], scales: [f32; E]) -> f32 {
    let mut sum = 0.0;
    for p in unroll(0..E / WIDE) {
        let mut of_piece = if C::SCALED { 0.0 } else { sum };
        for e in unroll(p * WIDE..(p + 1) * WIDE) {
            of_piece = q[e].mul_add(k[e], of_piece);
        }
        sum = if C::SCALED { of_piece.mul_add(scales[p], sum) } else { of_piece };
    }
    sum
}

/// Returns numbers of a query as integers of 16 bits, and their unit, a power of two. The unit is
/// 2⁻¹⁴ to 2⁻¹⁵ of the largest magnitude, at least 2⁻¹²⁶, and NaN if a number is not finite.
#[device]
fn integers<const E: usize>(x: [f32; E]) -> ([i32; E], f32) {
    let (mut top, mut invalid) = (0.0f32, 0.0f32);
    for e in unroll(0..E) {
        top = top.max(x[e].abs());
        invalid = x[e].mul_add(0.0, invalid);
    }
    // 2ᵉ ≤ top < 2ᵉ⁺¹, as the bits of an `f32`. The unit is 2ᵉ⁻¹⁴.
    let power = (top.to_bits() & 0x7f80_0000).max(15 << 23);
    let inverse = f32::from_bits((268 << 23) - power);
    let n = x.map(|x| ((x * inverse).round_ties_even() as i32).min(32_767));
    (n, f32::from_bits(power - (14 << 23)) + invalid)
}

/// Returns o + w·v of a value in pieces of `WIDE` numbers, each with its scale.
#[device]
fn weighted<C: Scales, const E: usize, const WIDE: usize>(
    w: f32,
    v: [f32; E],
    scales: [f32; E],
    o: [f32; E],
) -> [f32; E] {
    let mut o = o;
    for e in unroll(0..E) {
        let w = if C::SCALED { w * scales[e / WIDE] } else { w };
        o[e] = w.mul_add(v[e], o[e]);
    }
    o
}

/// Returns a lane's numbers of `U` keys of a head of a sequence or, with `VALUES`, of values,
/// and the scale of each piece. The keys are `first`, `first + keys`, and so on. Keys from `end`
/// on may contain anything, even NaNs, and are never read: with `every`, the last key before
/// `end` takes their place. For keys and elements that a lane does not load, the result is
/// `before`.
#[device]
#[allow(clippy::too_many_arguments, reason = "the cache, and the keys of a lane")]
fn numbers<
    K: StoredElement,
    C: Scales,
    P: Pages,
    const LANES: usize,
    const WIDE: usize,
    const E: usize,
    const U: usize,
    const VALUES: bool,
>(
    cache: View<K, 4>,
    scales: C,
    pages: P,
    at: [usize; 2],
    first: usize,
    keys: usize,
    end: usize,
    every: bool,
    width: usize,
    before: ([[K::Kept; E]; U], [[f32; E]; U]),
) -> ([[K::Kept; E]; U], [[f32; E]; U]) {
    let ([sequence, head], (mut raw, mut factors)) = (at, before);
    for u in unroll(0..U) {
        let t = first + u * keys;
        let (plane, row) = pages.place(sequence, t.min(end - 1), cache.dim(2));
        let at = CacheEntry { plane: plane.min(cache.dim(0) - 1), head, row };
        for p in unroll(0..E / WIDE) {
            let d = (p * LANES + warp::lane() % LANES) * WIDE;
            if (every || t < end) && d < width {
                let mut x = [K::narrow(0.0); WIDE];
                if K::NUMBERS == 1 {
                    x = cache.load((at.plane, head, row, d));
                } else {
                    for e in unroll(0..WIDE / K::NUMBERS) {
                        x[e] = cache[(at.plane, head, row, d / K::NUMBERS + e)];
                    }
                }
                for i in unroll(0..WIDE / K::TOGETHER) {
                    let (kept, e) = (p * (WIDE / K::TOGETHER) + i, i * (K::TOGETHER / K::NUMBERS));
                    let neighbors = [e, (e + 1) % WIDE, (e + 2) % WIDE, (e + 3) % WIDE];
                    raw[u][kept] = K::keep(neighbors.map(|e| x[e]));
                }
                if C::SCALED {
                    factors[u][p] = (if VALUES { scales.value(at, d) } else { scales.key(at, d) }).to_f32();
                }
            }
        }
    }
    (raw, factors)
}

/// Computes O ← softmax(scale·q·Kᵀ)·V for each head of each token, over the first `lengths` keys of
/// its sequence, except those of later tokens.
///
/// A sequence has `tokens` tokens, which are its last keys; without `TOKENS` it has one. A column
/// is a query head of a token. A block has `GROUP · SETS` columns of a group, and a lane has `U`
/// keys of `GROUP` columns in flight.
///
/// q and o are [sequence · token, head, element]. `parts`,
/// [sequence · token, head, split, element], and `logs`, [sequence · token, head, split, 2], are
/// scratch memory. `ended` counts finished blocks. The count is 0 for each sequence and block of
/// columns before and after the launch. A token without keys gives zeros.
#[kernel(
    block = THREADS, max_registers = 128,
    grid = (
        along_x(splits, (q.dim(1) / groups * tokens).div_ceil(GROUP * SETS) * groups, lengths.len()),
        along_y((q.dim(1) / groups * tokens).div_ceil(GROUP * SETS) * groups, lengths.len()),
        along_z((q.dim(1) / groups * tokens).div_ceil(GROUP * SETS) * groups, lengths.len()),
    ),
    instances(
        f32: T = f32, O = f32, K = f32, C = Unscaled, P = Contiguous | Paged, LANES = 16, WIDE = 4, E = 8, GROUP = 2, U = 4, TOKENS = false, SETS = 1, THREADS = 128, STREAMED = true;
        f16: T = f16, O = f16, K = f16, C = Unscaled, P = Contiguous, LANES = 16, WIDE = 8, E = 8, GROUP = 2, U = 4, TOKENS = false, SETS = 1, THREADS = 256, STREAMED = false;
        f16_streamed: T = f16, O = f16, K = f16, C = Unscaled, P = Contiguous, LANES = 16, WIDE = 8, E = 8, GROUP = 2, U = 8, TOKENS = false, SETS = 1, THREADS = 256, STREAMED = true;
        f32_i8_contiguous: T = f32, O = f32, K = i8, C = Scaled, P = Contiguous, LANES = 16, WIDE = 8, E = 8, GROUP = 2, U = 8, TOKENS = false, SETS = 1, THREADS = 256, STREAMED = true;
        q8_0: T = f16, O = f16, K = i8, C = Blocks, P = Contiguous, LANES = 8, WIDE = 16, E = 16, GROUP = 2, U = 4, TOKENS = false, SETS = 1, THREADS = 256, STREAMED = false | true;
        q4_0: T = f32, O = bf16, K = u32, C = Blocks, P = Paged, LANES = 8, WIDE = 16, E = 16, GROUP = 2, U = 4, TOKENS = false, SETS = 1, THREADS = 256, STREAMED = true;
        f16_tokens: T = f16, O = f16, K = f16, C = Unscaled, P = Contiguous, LANES = 16, WIDE = 8, E = 8, GROUP = 4, U = 4, TOKENS = true, SETS = 2 | 4, THREADS = 256, STREAMED = true;
        f32_tokens: T = f32, O = f32, K = f32, C = Unscaled, P = Contiguous | Paged, LANES = 16, WIDE = 4, E = 8, GROUP = 4, U = 2, TOKENS = true, SETS = 1, THREADS = 256, STREAMED = true;
        f32_tokens_of_4: T = f32, O = f32, K = f32, C = Unscaled, P = Contiguous, LANES = 16, WIDE = 4, E = 8, GROUP = 4, U = 2, TOKENS = true, SETS = 4, THREADS = 256, STREAMED = true;
        f32_i8_tokens: T = f32, O = f32, K = i8, C = Scaled, P = Contiguous, LANES = 16, WIDE = 8, E = 8, GROUP = 4, U = 2, TOKENS = true, SETS = 2, THREADS = 256, STREAMED = true;
        q8_0_tokens: T = f32, O = f32, K = i8, C = Blocks, P = Paged, LANES = 16, WIDE = 8, E = 8, GROUP = 4, U = 2, TOKENS = true, SETS = 1, THREADS = 256, STREAMED = true;
        q4_0_tokens: T = f16, O = f16, K = u32, C = Blocks, P = Contiguous, LANES = 16, WIDE = 8, E = 8, GROUP = 4, U = 2, TOKENS = true, SETS = 2, THREADS = 256, STREAMED = true
    ),
    derived(FEW = GROUP.min(2), AHEAD = 4 * GROUP, SUMS = GROUP * U),
    tolerance(o(relative = 1e-4, absolute = 1e-5), parts(relative = 1e-4, absolute = 1e-4), logs(relative = 1e-5, absolute = 1e-5)),
)]
#[requires(
    splits > 0, groups > 0, q.dim(1) % groups == 0, o.dim(0) == q.dim(0), o.dim(1) == q.dim(1), o.dim(2) == q.dim(2),
    TOKENS || tokens == 1, tokens > 0, lengths.len() * tokens == q.dim(0), q.dim(2) % WIDE == 0, q.dim(2) <= LANES * E,
    parts.dim(0) == q.dim(0), parts.dim(1) == q.dim(1), parts.dim(2) == splits, parts.dim(3) == q.dim(2),
    logs.dim(0) == q.dim(0), logs.dim(1) == q.dim(1), logs.dim(2) == splits, logs.dim(3) == 2,
    ended.len() >= lengths.len() * ((q.dim(1) / groups * tokens).div_ceil(GROUP * SETS) * groups),
    k.dim(1) == groups, k.dim(3) * K::NUMBERS == q.dim(2), v.dim(0) == k.dim(0), v.dim(1) == groups, v.dim(2) == k.dim(2), v.dim(3) == k.dim(3),
    q.aligned(4), k.aligned(WIDE / K::NUMBERS), v.aligned(WIDE / K::NUMBERS), parts.aligned(4), logs.aligned(2),
)]
pub fn flash_decode<
    T: Float,
    O: Float,
    K: StoredElement,
    C: Scales,
    P: Pages,
    const LANES: usize,
    const WIDE: usize,
    const E: usize,
    const GROUP: usize,
    const U: usize,
    const TOKENS: bool,
    const SETS: usize,
    const THREADS: usize,
    const STREAMED: bool,
    const FEW: usize,
    const AHEAD: usize,
    const SUMS: usize,
>(
    q: View<T, 3>,
    k: View<K, 4>,
    v: View<K, 4>,
    scales: C,
    pages: P,
    lengths: View<u32, 1>,
    mut o: ViewMut<O, 3>,
    mut parts: ViewMut<f32, 4>,
    logs: ViewMut<f32, 4>,
    mut ended: ViewMut<u32, 1>,
    groups: usize,
    splits: usize,
    tokens: usize,
    scale: f32,
) {
    let tokens = if TOKENS { tokens } else { 1 };
    // Another block computes the columns of a group beyond `GROUP · SETS`.
    let of_group = q.dim(1) / groups;
    let (columns, blocks) = (of_group * tokens, (of_group * tokens).div_ceil(GROUP * SETS));
    let [split, heads, sequence] = block_at(splits, blocks * groups);
    let (group, first) = (heads / blocks, heads % blocks * (GROUP * SETS));
    let width = q.dim(2);
    let len = (lengths[sequence] as usize).min(pages.room(k.dim(2)));
    let (k, v) = if STREAMED { (k.streaming(), v.streaming()) } else { (k, v) };
    let lanes = warp::group::<LANES>();
    let keys = THREADS / LANES / SETS;
    let mine = thread::x() / (32 * SETS) * (32 / LANES) + warp::lane() / LANES;
    let set = if SETS == 1 { 0 } else { warp::index() % SETS };

    let mut qs = [[0.0f32; E]; GROUP];
    // The queries as packed integers for a cache of integers, and their units.
    let (mut packed, mut units) = ([[[0u32; 4]; E]; GROUP], [0.0f32; GROUP]);
    let queries = Shared::<f32, 2>::new([if TOKENS { GROUP * SETS } else { 0 }, LANES * E]);
    // The number of keys that a column sees.
    let mut seen = Shared::<u32, 1>::new([if TOKENS { GROUP * SETS } else { 0 }]);
    if TOKENS {
        for i in rolled((thread::x()..GROUP * SETS * LANES * E / 4).step_by(THREADS)) {
            let (c, d) = (i / (LANES * E / 4), i % (LANES * E / 4) * 4);
            let (token, head) = token_and_head::<TOKENS>((first + c).min(columns - 1), of_group);
            let mut x = [0.0f32; 4];
            if d < width {
                let y: [T; 4] = q.load((sequence * tokens + token, group * of_group + head, d));
                for e in unroll(0..4) {
                    x[e] = y[e].to_f32() * (scale * std::f32::consts::LOG2_E);
                }
            }
            queries.store((c, staged_at::<LANES, WIDE>(d)), x);
        }
        if thread::x() < GROUP * SETS {
            let (token, _) = token_and_head::<TOKENS>((first + thread::x()).min(columns - 1), of_group);
            seen[thread::x()] = (len + token + 1).saturating_sub(tokens) as u32;
        }
        block::sync();
    } else {
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
            if K::INTEGERS {
                let (n, unit) = integers(qs[g]);
                units[g] = unit * K::UNIT;
                for i in unroll(0..E / K::TOGETHER) {
                    let mut together = [0i32; 8];
                    for e in unroll(0..K::TOGETHER) {
                        together[e] = n[i * K::TOGETHER + e];
                    }
                    packed[g][i] = K::pack(together);
                }
            }
        }
    }
    let mut o_sums = [[0.0f32; E]; GROUP];
    // A lane has the logits number `lane · SUMS / LANES` and on, all of one column. The lane keeps
    // the base and the sum of that column.
    let (mut own_base, mut own_sum) = (f32::NEG_INFINITY, 0.0f32);
    let own = lanes.lane() * SUMS / LANES;
    let (own_column, of_column) = (own / U, LANES / GROUP);
    let (at, raised) = ([sequence, group], lowered(len));
    let each = len.div_ceil(splits).next_multiple_of(keys * U);
    let (begin, end) = ((split * each).min(len), ((split + 1) * each).min(len));
    // Every column sees every key before `cut`, so no comparison is needed there.
    let mut cut = begin;
    if TOKENS {
        let every = (len + 1).saturating_sub(tokens).min(end).max(begin) - begin;
        cut = begin + every / (keys * U) * (keys * U);
    }
    // Bytes of the next keys are loaded when those of the current ones have been used. Data in L2
    // arrive in time without that, and loads ahead make four-bit numbers slower.
    let ahead = K::INTEGERS && K::NUMBERS == 1 && !TOKENS && STREAMED;
    let none = K::keep([K::narrow(0.0); 4]);
    // The numbers of keys and values, and the scales of their pieces.
    let empty = ([[none; E]; U], [[1.0f32; E]; U]);
    let ((mut raw_k, mut of_keys), (mut raw_v, mut of_values)) = (empty, empty);
    if ahead && begin < end {
        let t = begin + mine;
        (raw_k, of_keys) =
            numbers::<K, C, P, LANES, WIDE, E, U, false>(k, scales, pages, at, t, keys, end, true, width, empty);
        (raw_v, of_values) =
            numbers::<K, C, P, LANES, WIDE, E, U, true>(v, scales, pages, at, t, keys, end, true, width, empty);
    }
    // Beyond the last key, a cache of integers loads that key again, with a weight of 0. So
    // registers need no zeros in each iteration: a lane beyond the head's width never loads.
    let clamped = K::INTEGERS && !TOKENS;
    for masked in unroll((if TOKENS { 0 } else { 1 })..2) {
        let masked = masked == 1;
        let (from, to) = if masked { (cut, end) } else { (begin, cut) };
        for base in rolled((from..to).step_by(keys * U)) {
            // Every thread runs the same number of iterations, so that the warp converges at the
            // shuffles below. All loads precede the conversions, which wait for their operands.
            let (t, next) = (base + mine, base + keys * U);
            if !ahead {
                let every = clamped || !masked;
                let (of_k, of_v) = if clamped { ((raw_k, of_keys), (raw_v, of_values)) } else { (empty, empty) };
                (raw_k, of_keys) = numbers::<K, C, P, LANES, WIDE, E, U, false>(
                    k, scales, pages, at, t, keys, end, every, width, of_k,
                );
                (raw_v, of_values) =
                    numbers::<K, C, P, LANES, WIDE, E, U, true>(v, scales, pages, at, t, keys, end, every, width, of_v);
            }
            let mut kk = [[0.0f32; E]; U];
            for u in unroll(0..U) {
                for e in unroll(0..E) {
                    kk[u][e] = K::widen(raw_k[u][e / K::TOGETHER], e % K::TOGETHER);
                }
            }
            let mut s = [0.0f32; SUMS];
            for g in unroll(0..GROUP) {
                let mut x = qs[g];
                if TOKENS {
                    for i in unroll(0..E / 4) {
                        let d = i * 4 / WIDE * (LANES * WIDE) + i * 4 % WIDE * LANES + lanes.lane() * 4;
                        let four: [f32; 4] = queries.load((set * GROUP + g, d));
                        for e in unroll(0..4) {
                            x[i * 4 + e] = four[e];
                        }
                    }
                }
                for u in unroll(0..U) {
                    s[g * U + u] = if K::INTEGERS && !TOKENS {
                        let mut sum = 0i32;
                        for i in unroll(0..E / K::TOGETHER) {
                            sum = K::dot(packed[g][i], raw_k[u][i], sum);
                        }
                        sum as f32 * (units[g] * of_keys[u][0])
                    } else {
                        product::<C, E, WIDE>(x, kk[u], of_keys[u])
                    };
                }
            }
            if ahead && next < end {
                let t = next + mine;
                (raw_k, of_keys) = numbers::<K, C, P, LANES, WIDE, E, U, false>(
                    k, scales, pages, at, t, keys, end, true, width, empty,
                );
            }
            let mut w = sums_of_lane::<LANES, SUMS>(s);
            let mut top = f32::NEG_INFINITY;
            let column = set * GROUP + own_column;
            for j in unroll(0..(SUMS / LANES).max(1)) {
                let t = base + (own + j) % U * keys + mine;
                if masked && t >= (if TOKENS { end.min(seen[column] as usize) } else { end }) {
                    w[j] = f32::NEG_INFINITY;
                }
                top = top.max(w[j]);
            }
            for step in unroll(0..5) {
                if (1 << step) < of_column {
                    top = top.max(warp::shuffle_xor(top, 1 << step));
                }
            }
            if warp::any(top + raised > own_base) {
                let base = own_base.max(top + raised);
                let old = fast::exp2(own_base - base.max(f32::MIN));
                own_base = base;
                own_sum *= old;
                for g in unroll(0..GROUP) {
                    let old = lanes.broadcast(old, g * of_column);
                    for e in unroll(0..E) {
                        o_sums[g][e] *= old;
                    }
                }
            }
            for j in unroll(0..(SUMS / LANES).max(1)) {
                // If all logits are −∞: exp2(−∞ − MIN) = 0, never NaN.
                w[j] = fast::exp2(w[j] - own_base.max(f32::MIN));
                own_sum += w[j];
            }
            for u in unroll(0..U) {
                let mut values = [0.0f32; E];
                for e in unroll(0..E) {
                    let (kept, i) = (raw_v[u][e / K::TOGETHER], e % K::TOGETHER);
                    values[e] = if TOKENS { K::widen(kept, i) } else { K::widen_by_sum(kept, i) };
                }
                for g in unroll(0..GROUP) {
                    let i = g * U + u;
                    let w = lanes.broadcast(w[i % (SUMS / LANES).max(1)], i * LANES / SUMS);
                    let t = base + u * keys + mine;
                    if !TOKENS || !masked || t < end.min(seen[set * GROUP + g] as usize) {
                        o_sums[g] = weighted::<C, E, WIDE>(w, values, of_values[u], o_sums[g]);
                    }
                }
            }
            if ahead && next < end {
                let t = next + mine;
                (raw_v, of_values) =
                    numbers::<K, C, P, LANES, WIDE, E, U, true>(v, scales, pages, at, t, keys, end, true, width, empty);
            }
        }
    }
    // Several lanes have the same logit if there are fewer logits than lanes.
    let mut own_sum = if lanes.lane() * SUMS % LANES == 0 { own_sum } else { 0.0 };
    for step in unroll(0..5) {
        if (1 << step) < of_column {
            own_sum += warp::shuffle_xor(own_sum, 1 << step);
        }
    }

    // Merges the groups of a warp, then the warps, for a few columns at a time.
    let mut met = Shared::<f32, 3>::new([THREADS / 32, FEW, LANES * E]);
    let mut ranges = Shared::<[f32; 2], 2>::new([THREADS / 32, FEW]);
    for g in unroll(0..GROUP / FEW) {
        for c in unroll(0..FEW) {
            let from = (g * FEW + c) * of_column;
            let (base, sum) = (lanes.broadcast(own_base, from), lanes.broadcast(own_sum, from));
            let of_warp = scattered::<LANES, E>(Partial { base, sum, o: o_sums[g * FEW + c] });
            for e in unroll(0..E * LANES / 32) {
                met[(warp::index(), c, e * 32 + warp::lane())] = of_warp.o[e];
            }
            // All lanes hold the same values.
            ranges[(warp::index(), c)] = [of_warp.base, of_warp.sum];
        }
        block::sync();
        for i in rolled((thread::x()..SETS * FEW * LANES * E).step_by(THREADS)) {
            let (set, few, at) = (i / (FEW * LANES * E), i / (LANES * E) % FEW, i % (LANES * E));
            let (lane, e) = (at % LANES, at % 32 / LANES * (E * LANES / 32) + at / 32);
            let d = (e / WIDE * LANES + lane) * WIDE + e % WIDE;
            let c = first + set * GROUP + g * FEW + few;
            if d < width && c < columns {
                let mut base = f32::NEG_INFINITY;
                for w in unroll(0..THREADS / 32 / SETS) {
                    base = base.max(ranges[(w * SETS + set, few)][0]);
                }
                let (mut sum, mut x) = (0.0f32, 0.0f32);
                for w in unroll(0..THREADS / 32 / SETS) {
                    let [of_warp, part] = ranges[(w * SETS + set, few)];
                    let factor = fast::exp2(of_warp - base.max(f32::MIN));
                    sum = part.mul_add(factor, sum);
                    x = met[(w * SETS + set, few, at)].mul_add(factor, x);
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
    // Warps share the columns. If there are more warps than columns, they also share the splits of
    // a column: a lane sums four elements of some splits, and has `AHEAD` of them in flight.
    let mut share = Shared::<Partial<4>, 2>::new([THREADS / 32, 32]);
    let each = (THREADS / 32 / (GROUP * SETS)).max(1);
    let together = THREADS / 32 / each;
    let (of, turn) = (warp::index() % together, warp::index() / together);
    for round in unroll(0..(GROUP * SETS).div_ceil(THREADS / 32)) {
        let c = first + round * together + of;
        let (token, head) = token_and_head::<TOKENS>(if c < columns { c } else { first }, of_group);
        let (row, head) = (sequence * tokens + token, group * of_group + head);
        for at in rolled((0..width).step_by(128)) {
            let d = at + 4 * warp::lane();
            let mut r = Partial { base: f32::NEG_INFINITY, sum: 0.0, o: [0.0f32; 4] };
            if d < width {
                for from in rolled((turn..splits).step_by(each * AHEAD)) {
                    let mut next = [Partial { base: f32::NEG_INFINITY, sum: 0.0, o: [0.0f32; 4] }; AHEAD];
                    for i in unroll(0..AHEAD) {
                        let split = from + i * each;
                        if split < splits {
                            let [base, sum]: [f32; 2] = logs.load((row, head, split, 0));
                            next[i] = Partial { base, sum, o: parts.load((row, head, split, d)) };
                        }
                    }
                    let old = r.base;
                    for i in unroll(0..AHEAD) {
                        r.base = r.base.max(next[i].base);
                    }
                    let finite = r.base.max(f32::MIN);
                    let w = fast::exp2(old - finite);
                    r.sum *= w;
                    r.o = r.o.map(|x| x * w);
                    for i in unroll(0..AHEAD) {
                        let w = fast::exp2(next[i].base - finite);
                        r.sum = next[i].sum.mul_add(w, r.sum);
                        for e in unroll(0..4) {
                            r.o[e] = next[i].o[e].mul_add(w, r.o[e]);
                        }
                    }
                }
            }
            share[(warp::index(), warp::lane())] = r;
            block::sync();
            if turn == 0 && c < columns && d < width {
                for other in unroll(1..THREADS / 32 / (GROUP * SETS)) {
                    r = merge(r, share[(of + other * together, warp::lane())]);
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
