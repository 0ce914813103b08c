//! The kernel for attention of one or a few tokens a sequence, over keys in a cache.
//!
//! The kernel is limited by memory: each key and value is read once and multiplied with the queries
//! of its group, which are few. Therefore the keys are split over enough blocks to fill the device.
//! A block computes all query heads of a group, and stages no keys or values in shared memory.
//!
//! ```text
//!             ┌─ split 0 ─┬─ split 1 ─┬─ … ┐            a warp: 32 / LANES keys at once, a key by LANES lanes,
//!   keys of   │ block     │ block     │    │            IN_FLIGHT keys of a lane
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
//!              tokens 0, 0, 1, 1, 2, 2, 3, 3     a warp: GROUP columns; COLUMN_SETS warps have the same keys
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
//! eight columns a warp, the kernel would spill 364 bytes on sm_61. Four tokens of 2 heads take
//! 22.9 µs on an H100 (f16, 8192 keys). The sums are scaled only in iterations in which a logit
//! exceeds all earlier ones of its column.
//!
//! Issue slots limit four tokens. For `f16`, the loop of a warp has 523 instructions on sm_90 for
//! four columns and 8 keys, of which 256 are fused multiply-adds. On sm_61 the instructions take
//! 465 issue slots. Four tokens of 2 heads over 8192 keys of 8 heads take 16,384 iterations of
//! warps. The 528 schedulers of an H100 execute these in 9.2 µs or more at 1.755 GHz, and the
//! multiply-adds alone in 4.5. The latencies of [few keys](#few-keys) add to that: a step over 1024
//! keys takes 8.0 µs. So this loop does not reach 1.25 times the 10.5 µs of one token.
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
//! below serves all caches. By `kernels bench --suite decode` on an H100, with conversions and with
//! `dp2a`, for three keys in flight:
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
//! A group of lanes has `GROUP · IN_FLIGHT` logits, and each lane has a partial sum of each. In
//! each step a lane gives half of its sums to its partner and takes the other half. Each lane ends
//! with one logit. So 16 logits of 16 lanes take 15 exchanges. Sums of one logit after another took
//! 64. Each lane then computes one weight instead of 16, and sends it to its group:
//!
//! ```text
//!   step     lane 0 has parts of   lane 1          lane 2          lane 3
//!   before   s₀ s₁ s₂ s₃           s₀ s₁ s₂ s₃     s₀ s₁ s₂ s₃     s₀ s₁ s₂ s₃
//!   1        s₀ s₁                 s₀ s₁           s₂ s₃           s₂ s₃
//!   2        s₀                    s₁              s₂              s₃
//! ```
//!
//! Values are converted after the weights are known. Conversions before the test of a new maximum
//! make caches of integers spill 180 to 552 bytes. With late conversions, four keys of a lane are
//! in flight for all caches of integers, without spills on sm_61 and sm_90. The table compares
//! early and late conversions. Times are in µs, by `kernels bench --suite decode` on an H100, for
//! 16 query heads and 8 key heads, with the hint:
//!
//! | cache | keys | tokens | early | late | copy |
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
//! next values after the sums. Without loads ahead 32,768 keys took 31.3 µs. With loads ahead,
//! 32,768 keys take 30.0, 0.91 of a copy, and 131,072 keys take 96.4 µs instead of 101.2. If L2
//! holds the keys, loads ahead make a step slower: 8192 keys take 11.5 µs instead of 9.9. With the
//! hint, 8192 keys took 13.3 µs. Loads ahead over q4_0 took 32.5 µs instead of 27.2 for 32,768
//! keys. Over `f16`, four tokens that load ahead spill.
//!
//! With 16 lanes of a key and eight keys in flight, q8_0 takes 35.0 µs for 32,768 keys. Three
//! blocks a multiprocessor instead of two take 41.3 µs. For `f32`, 16 lanes have 8 logits: the last
//! exchange adds the same logit in both lanes.
//!
//! # Parts
//!
//! Partial softmaxes are merged between lanes by shuffles, between warps in shared memory, and
//! between blocks in global memory. A warp merges its groups in the same way as it sums logits:
//! each lane keeps a part of the elements. All threads of the block then merge an element each.
//! Each block writes its part and then increments a counter atomically. The last block reads all
//! parts in their order, so the result does not depend on which block is last. This block loads the
//! range and the sums of `SPLITS_AHEAD` splits at a time, so that it waits for memory once, not
//! twice.

mod keys;
mod parts;
mod query;

use self::keys::*;
use self::parts::*;
use self::query::*;
use super::cache::*;
use super::tile::lowered;
use crate::counters::count_block;
use crate::fold::{along_x, along_y, along_z, block_at};
use kernel_dsl::prelude::*;

/// Computes O ← softmax(scale·q·Kᵀ)·V for each head of each token, over the first `lengths` keys of
/// its sequence, except those of later tokens.
///
/// A sequence has `tokens` tokens, which are its last keys; without `TOKENS` it has one. A column
/// is a query head of a token. A block has `GROUP · COLUMN_SETS` columns of a group, and a lane has
/// `IN_FLIGHT` keys of `GROUP` columns in flight.
///
/// q and o are [sequence · token, head, element]. `parts`,
/// [sequence · token, head, split, element], and `logs`, [sequence · token, head, split, 2], are
/// scratch memory. `ended` counts finished blocks. The count is 0 for each sequence and block of
/// columns before and after the launch. A token without keys gives zeros.
#[kernel(
    block = THREADS, max_registers = 128,
    grid = (
        along_x(splits, (q.dim(1) / groups * tokens).div_ceil(GROUP * COLUMN_SETS) * groups, lengths.len()),
        along_y((q.dim(1) / groups * tokens).div_ceil(GROUP * COLUMN_SETS) * groups, lengths.len()),
        along_z((q.dim(1) / groups * tokens).div_ceil(GROUP * COLUMN_SETS) * groups, lengths.len()),
    ),
    instances(
        f32: T = f32, O = f32, K = f32, C = Unscaled, P = Contiguous | Paged, LANES = 16, WIDE = 4, ELEMENTS = 8, GROUP = 2, IN_FLIGHT = 4, TOKENS = false, COLUMN_SETS = 1, THREADS = 128, STREAMED = true;
        f16: T = f16, O = f16, K = f16, C = Unscaled, P = Contiguous, LANES = 16, WIDE = 8, ELEMENTS = 8, GROUP = 2, IN_FLIGHT = 4, TOKENS = false, COLUMN_SETS = 1, THREADS = 256, STREAMED = false;
        f16_streamed: T = f16, O = f16, K = f16, C = Unscaled, P = Contiguous, LANES = 16, WIDE = 8, ELEMENTS = 8, GROUP = 2, IN_FLIGHT = 8, TOKENS = false, COLUMN_SETS = 1, THREADS = 256, STREAMED = true;
        f32_i8_contiguous: T = f32, O = f32, K = i8, C = Scaled, P = Contiguous, LANES = 16, WIDE = 8, ELEMENTS = 8, GROUP = 2, IN_FLIGHT = 8, TOKENS = false, COLUMN_SETS = 1, THREADS = 256, STREAMED = true;
        q8_0: T = f16, O = f16, K = i8, C = Blocks, P = Contiguous, LANES = 8, WIDE = 16, ELEMENTS = 16, GROUP = 2, IN_FLIGHT = 4, TOKENS = false, COLUMN_SETS = 1, THREADS = 256, STREAMED = false | true;
        q4_0: T = f32, O = bf16, K = u32, C = Blocks, P = Paged, LANES = 8, WIDE = 16, ELEMENTS = 16, GROUP = 2, IN_FLIGHT = 4, TOKENS = false, COLUMN_SETS = 1, THREADS = 256, STREAMED = true;
        f16_tokens: T = f16, O = f16, K = f16, C = Unscaled, P = Contiguous, LANES = 16, WIDE = 8, ELEMENTS = 8, GROUP = 4, IN_FLIGHT = 4, TOKENS = true, COLUMN_SETS = 2 | 4, THREADS = 256, STREAMED = true;
        f32_tokens: T = f32, O = f32, K = f32, C = Unscaled, P = Contiguous | Paged, LANES = 16, WIDE = 4, ELEMENTS = 8, GROUP = 4, IN_FLIGHT = 2, TOKENS = true, COLUMN_SETS = 1, THREADS = 256, STREAMED = true;
        f32_tokens_of_4: T = f32, O = f32, K = f32, C = Unscaled, P = Contiguous, LANES = 16, WIDE = 4, ELEMENTS = 8, GROUP = 4, IN_FLIGHT = 2, TOKENS = true, COLUMN_SETS = 4, THREADS = 256, STREAMED = true;
        f32_i8_tokens: T = f32, O = f32, K = i8, C = Scaled, P = Contiguous, LANES = 16, WIDE = 8, ELEMENTS = 8, GROUP = 4, IN_FLIGHT = 2, TOKENS = true, COLUMN_SETS = 2, THREADS = 256, STREAMED = true;
        q8_0_tokens: T = f32, O = f32, K = i8, C = Blocks, P = Paged, LANES = 16, WIDE = 8, ELEMENTS = 8, GROUP = 4, IN_FLIGHT = 2, TOKENS = true, COLUMN_SETS = 1, THREADS = 256, STREAMED = true;
        q4_0_tokens: T = f16, O = f16, K = u32, C = Blocks, P = Contiguous, LANES = 16, WIDE = 8, ELEMENTS = 8, GROUP = 4, IN_FLIGHT = 2, TOKENS = true, COLUMN_SETS = 2, THREADS = 256, STREAMED = true
    ),
    derived(COLS = GROUP.min(2), SPLITS_AHEAD = 4 * GROUP, SUMS = GROUP * IN_FLIGHT),
    tolerance(o(relative = 1e-4, absolute = 1e-5), parts(relative = 1e-4, absolute = 1e-4), logs(relative = 1e-5, absolute = 1e-5)),
)]
#[requires(
    splits > 0, groups > 0, q.dim(1) % groups == 0, o.dim(0) == q.dim(0), o.dim(1) == q.dim(1), o.dim(2) == q.dim(2),
    TOKENS || tokens == 1, tokens > 0, lengths.len() * tokens == q.dim(0), q.dim(2) % WIDE == 0, q.dim(2) <= LANES * ELEMENTS,
    parts.dim(0) == q.dim(0), parts.dim(1) == q.dim(1), parts.dim(2) == splits, parts.dim(3) == q.dim(2),
    logs.dim(0) == q.dim(0), logs.dim(1) == q.dim(1), logs.dim(2) == splits, logs.dim(3) == 2,
    ended.len() >= lengths.len() * ((q.dim(1) / groups * tokens).div_ceil(GROUP * COLUMN_SETS) * groups),
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
    const ELEMENTS: usize,
    const GROUP: usize,
    const IN_FLIGHT: usize,
    const TOKENS: bool,
    const COLUMN_SETS: usize,
    const THREADS: usize,
    const STREAMED: bool,
    const COLS: usize,
    const SPLITS_AHEAD: usize,
    const SUMS: usize,
>(
    q: View<T, 3>,
    k: View<K, 4>,
    v: View<K, 4>,
    scales: C,
    pages: P,
    lengths: View<u32, 1>,
    o: ViewMut<O, 3>,
    parts: ViewMut<f32, 4>,
    logs: ViewMut<f32, 4>,
    ended: ViewMut<u32, 1>,
    groups: usize,
    splits: usize,
    tokens: usize,
    scale: f32,
) {
    let tokens = if TOKENS { tokens } else { 1 };
    // Another block computes the columns of a group beyond `GROUP · COLUMN_SETS`.
    let of_group = q.dim(1) / groups;
    let (count, blocks) = (of_group * tokens, (of_group * tokens).div_ceil(GROUP * COLUMN_SETS));
    let [split, heads, sequence] = block_at(splits, blocks * groups);
    let (group, first) = (heads / blocks, heads % blocks * (GROUP * COLUMN_SETS));
    let width = q.dim(2);
    let columns = BlockColumns { sequence, tokens, group, of_group, count, first, width };
    let len = (lengths[sequence] as usize).min(pages.capacity(k.dim(2)));
    let (k, v) = if STREAMED { (k.streaming(), v.streaming()) } else { (k, v) };
    let lanes = warp::group::<LANES>();
    let keys = THREADS / LANES / COLUMN_SETS;
    let mine = thread::x() / (32 * COLUMN_SETS) * (32 / LANES) + warp::lane() / LANES;
    let set = if COLUMN_SETS == 1 { 0 } else { warp::index() % COLUMN_SETS };

    let staged = Shared::<f32, 2>::new([if TOKENS { GROUP * COLUMN_SETS } else { 0 }, LANES * ELEMENTS]);
    // The number of keys that a column sees.
    let seen = Shared::<u32, 1>::new([if TOKENS { GROUP * COLUMN_SETS } else { 0 }]);
    let (own, packed, units) = ([[0.0f32; ELEMENTS]; GROUP], [[[0u32; 4]; ELEMENTS]; GROUP], [0.0f32; GROUP]);
    let mut queries = WarpQueries { own, packed, units, staged, set };
    if TOKENS {
        stage_queries::<T, LANES, WIDE, ELEMENTS, GROUP, COLUMN_SETS, THREADS>(q, columns, scale, len, staged, seen);
        block::sync();
    } else {
        for g in unroll(0..GROUP) {
            let head = group * of_group + (first + g).min(of_group - 1);
            queries.own[g] = load_query::<T, LANES, WIDE, ELEMENTS>(q, sequence, head, width, scale);
            if K::INTEGERS {
                (queries.packed[g], queries.units[g]) = packed_query::<K, ELEMENTS>(queries.own[g]);
            }
        }
    }
    let mut o_sums = [[0.0f32; ELEMENTS]; GROUP];
    // The base and the sum of the column of the lane's logits.
    let (mut own_base, mut own_sum) = (f32::NEG_INFINITY, 0.0f32);
    // A lane has the logits from this one on, all of one column.
    let logit = lanes.lane() * SUMS / LANES;
    let logit_column = logit / IN_FLIGHT;
    let raised = lowered(len);
    let each = len.div_ceil(splits).next_multiple_of(keys * IN_FLIGHT);
    let (begin, end) = ((split * each).min(len), ((split + 1) * each).min(len));
    // Every column sees every key before `cut`, so no comparison is needed there.
    let mut cut = begin;
    if TOKENS {
        let every = (len + 1).saturating_sub(tokens).min(end).max(begin) - begin;
        cut = begin + every / (keys * IN_FLIGHT) * (keys * IN_FLIGHT);
    }
    let cache = HeadCache { keys: k, values: v, scales, pages, sequence, head: group, width, step: keys, end };
    // Bytes of the next keys are loaded when those of the current ones have been used. Data in L2
    // arrive in time without that, and loads ahead make four-bit numbers slower.
    let ahead = K::INTEGERS && K::NUMBERS == 1 && !TOKENS && STREAMED;
    let none = K::keep([K::narrow(0.0); 4]);
    let empty = LaneNumbers { raw: [[none; ELEMENTS]; IN_FLIGHT], scales: [[1.0f32; ELEMENTS]; IN_FLIGHT] };
    let (mut loaded_k, mut loaded_v) = (empty, empty);
    if ahead && begin < end {
        let t = begin + mine;
        loaded_k = load_numbers::<K, C, P, LANES, WIDE, ELEMENTS, IN_FLIGHT, false>(cache, t, true, empty);
        loaded_v = load_numbers::<K, C, P, LANES, WIDE, ELEMENTS, IN_FLIGHT, true>(cache, t, true, empty);
    }
    // Beyond the last key, a cache of integers loads that key again, with a weight of 0. So
    // registers need no zeros in each iteration: a lane beyond the head's width never loads.
    let clamped = K::INTEGERS && !TOKENS;
    for masked in unroll((if TOKENS { 0 } else { 1 })..2) {
        let masked = masked == 1;
        let (from, to) = if masked { (cut, end) } else { (begin, cut) };
        for base in rolled((from..to).step_by(keys * IN_FLIGHT)) {
            // Every thread runs the same number of iterations, so that the warp converges at the
            // shuffles below. All loads precede the conversions, which wait for their operands.
            let (t, next) = (base + mine, base + keys * IN_FLIGHT);
            if !ahead {
                let every = clamped || !masked;
                let (of_k, of_v) = if clamped { (loaded_k, loaded_v) } else { (empty, empty) };
                loaded_k = load_numbers::<K, C, P, LANES, WIDE, ELEMENTS, IN_FLIGHT, false>(cache, t, every, of_k);
                loaded_v = load_numbers::<K, C, P, LANES, WIDE, ELEMENTS, IN_FLIGHT, true>(cache, t, every, of_v);
            }
            let step = KeyStep { base, own: mine, step: keys, end, masked, seen, set, logit, logit_column };
            let s = logits::<K, C, LANES, WIDE, ELEMENTS, GROUP, IN_FLIGHT, TOKENS, SUMS>(queries, loaded_k);
            if ahead && next < end {
                loaded_k =
                    load_numbers::<K, C, P, LANES, WIDE, ELEMENTS, IN_FLIGHT, false>(cache, next + mine, true, empty);
            }
            let mut w = sums_of_lane::<LANES, SUMS>(s);
            let top = mask_logits::<LANES, GROUP, IN_FLIGHT, TOKENS, SUMS>(&mut w, step);
            raise_base::<LANES, ELEMENTS, GROUP>(&mut own_base, &mut own_sum, &mut o_sums, top, raised);
            for j in unroll(0..(SUMS / LANES).max(1)) {
                // If all logits are −∞: exp2(−∞ − MIN) = 0, never NaN.
                w[j] = fast::exp2(w[j] - own_base.max(f32::MIN));
                own_sum += w[j];
            }
            add_values::<K, C, LANES, WIDE, ELEMENTS, GROUP, IN_FLIGHT, TOKENS, SUMS>(&mut o_sums, w, loaded_v, step);
            if ahead && next < end {
                loaded_v =
                    load_numbers::<K, C, P, LANES, WIDE, ELEMENTS, IN_FLIGHT, true>(cache, next + mine, true, empty);
            }
        }
    }
    // Several lanes have the same logit if there are fewer logits than lanes.
    let mut own_sum = if lanes.lane() * SUMS % LANES == 0 { own_sum } else { 0.0 };
    for step in unroll(0..5) {
        if (1 << step) < LANES / GROUP {
            own_sum += warp::shuffle_xor(own_sum, 1 << step);
        }
    }
    let sums = Shared::<f32, 3>::new([THREADS / 32, COLS, LANES * ELEMENTS]);
    let ranges = Shared::<[f32; 2], 2>::new([THREADS / 32, COLS]);
    store_part::<LANES, WIDE, ELEMENTS, GROUP, TOKENS, COLUMN_SETS, THREADS, COLS>(
        own_base, own_sum, o_sums, columns, split, sums, ranges, parts, logs,
    );
    if count_block(ended, || sequence * blocks * groups + heads, splits) != splits {
        return;
    }
    let merged = Shared::<Partial<4>, 2>::new([THREADS / 32, 32]);
    store_columns::<O, TOKENS, GROUP, COLUMN_SETS, THREADS, SPLITS_AHEAD>(parts, logs, o, columns, splits, merged);
}
