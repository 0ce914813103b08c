//! The kernels for attention of many queries: over keys and values as floats, and in a cache.

use super::cache::*;
use super::join::*;
use super::rows::*;
use super::score::*;
use super::span::*;
use super::tile::*;
use kernel_dsl::prelude::*;

/// A block's parameters, read from shared memory where they are needed. The products leave no
/// registers for parameters or derived values, which are recomputed.
#[device]
#[derive(Clone, Copy)]
struct BlockParameters<T: Float, G: Rows> {
    q: View<T, 2>,
    k: G,
    v: G,
    sequence: usize,
    head: usize,
    piece: usize,
    first: usize,
    row0: usize,
    lq: usize,
    lk: usize,
    tiles: usize,
    list: usize,
    thread: usize,
}

/// The operands of a launch, and the shared memory that keeps the block's parameters.
#[device]
#[derive(Clone, Copy)]
struct BlockOperands<T: Float, H: Heads, S: Sequences> {
    /// Queries, [batch, head, row, element].
    q: View<T, 4>,
    k: H,
    v: H,
    sequences: S,
    kept: Shared<u32, 1>,
}

/// The results of a launch, with the extents that [`flash_attention`] documents.
#[device]
#[derive(Clone, Copy)]
struct BlockResults<T: Float> {
    o: ViewMut<T, 4>,
    lse: ViewMut<f32, 3>,
    partial: ViewMut<f32, 3>,
    logs: ViewMut<f32, 3>,
}

/// The logit of a product: its factor, its [`Score`], and the numbers of keys that a query sees
/// before and after its position.
#[device]
#[derive(Clone, Copy)]
struct LogitRule<M: Score> {
    scale: f32,
    left: usize,
    right: usize,
    score: M,
}

/// Index of the bits of [`lowered`] in the block's parameters.
#[device]
const LOWERED_BITS: usize = 18;

/// Reads the block's parameters from shared memory, and places the operands at its rows.
#[device]
fn load_parameters<T: Float, H: Heads, S: Sequences, const WIDTH: usize>(
    operands: BlockOperands<T, H, S>,
) -> BlockParameters<T, H::Rows> {
    let BlockOperands { q, k, v, sequences, kept } = operands;
    let [sequence, head, kv, piece] = kept.load::<4>(0).map(|x| x as usize);
    let [query, key, lq, lk] = kept.load::<4>(4).map(|x| x as usize);
    let [row0, tiles, list, zero] = kept.load::<4>(8).map(|x| x as usize);
    let batch = sequences.batch(sequence);
    BlockParameters {
        q: q.at(batch).at(head).offset((query, 0)),
        k: k.of_head(batch, kv, key, 0, WIDTH),
        v: v.of_head(batch, kv, key, piece, WIDTH),
        sequence,
        head,
        piece,
        first: query,
        row0,
        lq,
        lk,
        tiles,
        list,
        // Adds a 0 that the compiler cannot see, so that it does not keep all addresses in
        // registers across tiles. The minimum tells the compiler that the sum is a thread's index.
        thread: thread::x().wrapping_add(zero).min(block::threads() - 1),
    }
}

/// Returns the first keys of the `ROW_GROUPS` tiles of the step that begins with tile `t` of a
/// list. A tile beyond the list gets `lk`, past the last key.
#[device]
fn keys_of<P: MaskPattern, const ROW_GROUPS: usize>(
    pattern: P,
    list: usize,
    t: usize,
    tiles: usize,
    lk: usize,
) -> [usize; ROW_GROUPS] {
    let mut first = [lk; ROW_GROUPS];
    for h in unroll(0..ROW_GROUPS) {
        if t + h < tiles {
            first[h] = pattern.key(list, t + h);
        }
    }
    first
}

/// Accumulates O += P·V for tile `h` of a step. `first` is the first slice of V.
#[device]
fn accumulate_tile<
    T: Float,
    G: Rows,
    const WIDTH: usize,
    const VECTOR: usize,
    const SQUARES: usize,
    const LOADS: usize,
    const ROW_GROUPS: usize,
>(
    acc: &mut [[[[f32; 4]; 4]; SQUARES]; ROW_GROUPS],
    p: Shared<f32, 2>,
    first: [G::Kept; LOADS],
    slots: Shared<f32, 3>,
    kept: Shared<u32, 1>,
    here: BlockParameters<T, G>,
    h: usize,
) {
    let key0 = kept[16 + h] as usize;
    accumulate::<G, WIDTH, SQUARES, LOADS, VECTOR, ROW_GROUPS>(
        acc,
        p,
        here.v.of_tile(h),
        key0,
        here.lk,
        first,
        slots,
        here.thread,
    );
}

/// Returns whether a sum of the thread is NaN although the weights of its row are not: a weight of
/// 0 times an infinity or a NaN is a NaN.
#[device]
fn has_unexplained_nan<const SQUARES: usize, const ROW_GROUPS: usize>(
    acc: &[[[[f32; 4]; 4]; SQUARES]; ROW_GROUPS],
    sums: Shared<f32, 1>,
    kept: Shared<u32, 1>,
) -> bool {
    let (row, _) = corner::<ROW_GROUPS>(thread::x() + kept[11] as usize);
    let mut found = false;
    for r in unroll(0..ROW_GROUPS) {
        let sum = sums.load::<4>(row + r * GROUP_STEP);
        for i in unroll(0..4) {
            for x in unroll(0..4 * SQUARES) {
                found |= acc[r][x / 4][i][x % 4].is_nan() && !sum[i].is_nan();
            }
        }
    }
    found
}

/// Writes the results of a thread's rows: to O and the logarithms, or as a part of a list.
#[device]
fn write_rows<
    T: Float,
    H: Heads,
    S: Sequences,
    const WIDTH: usize,
    const VECTOR: usize,
    const SQUARES: usize,
    const ROW_GROUPS: usize,
>(
    acc: &[[[[f32; 4]; 4]; SQUARES]; ROW_GROUPS],
    tops: Shared<f32, 1>,
    sums: Shared<f32, 1>,
    operands: BlockOperands<T, H, S>,
    results: BlockResults<T>,
) {
    let BlockParameters { sequence, head, piece, first, row0, lq, lk, thread, .. } =
        load_parameters::<T, H, S, WIDTH>(operands);
    let (kept, mut lse) = (operands.kept, results.lse);
    let (row, col) = corner::<ROW_GROUPS>(thread);
    let batch = operands.sequences.batch(sequence);
    let o = results.o.at(batch).at(head);
    let [part, divided, whole] = [kept[12], kept[13], kept[14]].map(|x| x as usize);
    let (partial, logs) = (results.partial.offset((whole, 0, 0)), results.logs.offset((whole, 0, 0)));
    for r in unroll(0..ROW_GROUPS) {
        let row = row + r * GROUP_STEP;
        let (max, sum) = (tops.load::<4>(row), sums.load::<4>(row));
        for i in unroll(0..4) {
            let query = row0 + row + i;
            // A factor of 1 copies the sum to registers that a store of four elements can use. The
            // accumulators' own registers would not fit both loops.
            let factor = if divided > 0 { 1.0 } else { reciprocal(max[i], sum[i]) };
            if query < lq {
                for q in unroll(0..SQUARES) {
                    let out = acc[r][q][i].map(|x| x * factor);
                    if divided > 0 {
                        partial.store((part, row + i, col + q * 32 * ROW_GROUPS), out);
                    } else {
                        put::<T, VECTOR>(o, first + query, piece * WIDTH + col + q * 32 * ROW_GROUPS, out);
                    }
                }
                if divided > 0 && col == 0 {
                    logs.store((part, row + i, 0), [max[i], sum[i]]);
                }
                if divided == 0 && piece == 0 && col == 0 {
                    lse[(batch, head, first + query)] = log_sum(max[i], sum[i], lk);
                }
            }
        }
    }
}

/// Returns `N` numbers of any row, as [`Rows::fetch_any`] loads them.
#[device]
fn numbers<G: Rows, const N: usize, const VECTOR: usize>(
    rows: G,
    row: usize,
    col: usize,
    first: usize,
    end: usize,
) -> [f32; 4] {
    let kept = rows.fetch_any::<N, VECTOR>(row, col, first, end);
    let mut x = [0.0f32; 4];
    for i in unroll(0..N) {
        x[i] = G::number(kept, col, i);
    }
    x
}

/// Computes the sums of a thread again from the largest logits, key by key. Keys with a weight of 0
/// are left out: their values have no effect. All lanes of a warp take part.
#[device]
fn recompute_sums<
    T: Float,
    H: Heads,
    M: Score,
    P: MaskPattern,
    S: Sequences,
    const WIDTH: usize,
    const VECTOR: usize,
    const SQUARES: usize,
    const ROW_GROUPS: usize,
>(
    tops: Shared<f32, 1>,
    operands: BlockOperands<T, H, S>,
    rule: LogitRule<M>,
    pattern: P,
) -> [[[[f32; 4]; 4]; SQUARES]; ROW_GROUPS] {
    let BlockParameters { q, k, v, sequence, head, row0, lq, lk, tiles, list, thread, .. } =
        load_parameters::<T, H, S, WIDTH>(operands);
    let LogitRule { scale, left, right, score } = rule;
    let (row, col) = corner::<ROW_GROUPS>(thread);
    let lower = f32::from_bits(operands.kept[LOWERED_BITS]);
    let (low, high) = (-(left as i32), right as i32);
    let mut acc = [[[[0.0f32; 4]; 4]; SQUARES]; ROW_GROUPS];
    for t in rolled(0..tiles) {
        let key0 = pattern.key(list, t);
        for key in rolled(key0..lk.min(key0 + KEYS)) {
            let mut few = [[0.0f32; 4]; SQUARES];
            for part in unroll(0..SQUARES) {
                let col = col + part * 32 * ROW_GROUPS;
                few[part] = numbers::<H::Rows, 4, VECTOR>(v, key, col, col, v.columns());
            }
            for r in unroll(0..ROW_GROUPS) {
                let max = tops.load::<4>(row + r * GROUP_STEP);
                for i in unroll(0..4) {
                    let query = (row0 + row + r * GROUP_STEP + i).min(lq - 1);
                    // Each lane of a row computes a share of the product.
                    let mut x = 0.0f32;
                    for d in rolled((col / 4..q.cols()).step_by(8 * ROW_GROUPS)) {
                        x = q[(query, d)].to_f32().mul_add(numbers::<H::Rows, 1, 4>(k, key, d, 0, 1)[0], x);
                    }
                    let at = ScoreIndex { sequence, head, query, key, lengths: (lq, lk) };
                    let mut x = score.score(of_row::<ROW_GROUPS>(x, |a, b| a + b) * scale, at);
                    let apart = (key + lq) as i32 - (query + lk) as i32;
                    if apart < low || apart > high {
                        x = f32::NEG_INFINITY;
                    }
                    let e = fast::exp2((x - max[i].max(f32::MIN)).mul_add(std::f32::consts::LOG2_E, -lower));
                    if e != 0.0 {
                        for part in unroll(0..SQUARES) {
                            for x in unroll(0..4) {
                                acc[r][part][i][x] = e.mul_add(few[part][x], acc[r][part][i][x]);
                            }
                        }
                    }
                }
            }
        }
    }
    acc
}

/// Computes O ← softmax(score(scale·Q·Kᵀ))·V, and the logarithm of the sum of exponentials.
///
/// `work` has a row of 8 numbers for each block:
///
/// - the tile of queries, its head, and its piece of a sequence (sequence · pieces + piece);
/// - how many tiles of keys of the list precede the block's, and the block's maximum number of
///   tiles;
/// - if several blocks share a list of tiles: the number of this part, the number of parts
///   (otherwise 0), and the index of the first part in `partial`.
///
/// A part stores its sums in `partial`, [part, query, element], Σ exp(x − max)·v, and in `logs`,
/// [part, query, 2], max and Σ exp(x − max). The weights exp(x − max) are divided by the power of
/// two that is at least the sequence's number of keys. Therefore sums cannot overflow if the mean
/// is finite. Each part increments the counter in `ended` at the index of the first part; it is 0
/// before and after the launch. The last block to finish reduces all parts, in their order.
///
/// q and o are [batch, head, query, element], k and v are [batch, key head, key, element], and
/// `lse` is [batch, head, query].
#[kernel(
    block = THREADS, max_registers = if ROW_GROUPS == 2 { 168 } else { 128 },
    grid = work.dim(0),
    tolerance(
        o(relative = 1e-4, absolute = 1e-5), lse(relative = 1e-5, absolute = 1e-5),
        partial(relative = 1e-4, absolute = 1e-4), logs(relative = 1e-5, absolute = 1e-5)
    ),
    instances(
        f32_w128_v4: T = f32, M = Plain, P = Dense, S = Whole, WIDTH = 128, VECTOR = 4, THREADS = 128, ROW_GROUPS = 2;
        f32_w128_v4_listed: T = f32, M = Plain, P = Listed, S = Whole, WIDTH = 128, VECTOR = 4, THREADS = 128, ROW_GROUPS = 2;
        f16_w64_v4_alibi_padded: T = f16, M = Alibi, P = Dense, S = Padded, WIDTH = 64, VECTOR = 4, THREADS = 256, ROW_GROUPS = 1;
        bf16_w32_v1_packed: T = bf16, M = Plain, P = Dense, S = Packed, WIDTH = 32, VECTOR = 1, THREADS = 128, ROW_GROUPS = 1;
        f16_w128_v4: T = f16, M = Plain, P = Dense, S = Whole, WIDTH = 128, VECTOR = 4, THREADS = 128, ROW_GROUPS = 2
    ),
    derived(BM = THREADS / 2, SQUARES = WIDTH / (32 * ROW_GROUPS), LOADS = (WIDTH * 2).div_ceil(THREADS), NK = 512 / THREADS),
)]
#[requires(
    k.dim(3) == q.dim(3), v.dim(1) == k.dim(1), v.dim(2) == k.dim(2), v.dim(0) == k.dim(0), k.dim(0) == q.dim(0),
    k.dim(1) > 0, q.dim(1) % k.dim(1) == 0, left <= 0x4000_0000, right <= 0x4000_0000, q.dim(2) < 0x4000_0000, k.dim(2) < 0x4000_0000,
    o.dim(0) == q.dim(0), o.dim(1) == q.dim(1), o.dim(2) == q.dim(2), o.dim(3) == v.dim(3),
    lse.dim(0) == q.dim(0), lse.dim(1) == q.dim(1), lse.dim(2) == q.dim(2),
    work.dim(1) == 8, work.aligned(4), ended.len() == partial.dim(0), partial.dim(1) == BM, partial.dim(2) == WIDTH, partial.aligned(4),
    logs.dim(0) == partial.dim(0), logs.dim(1) == BM, logs.dim(2) == 2, logs.aligned(2),
    q.aligned(VECTOR), k.aligned(VECTOR), v.aligned(VECTOR), o.aligned(VECTOR), q.dim(3) % (if VECTOR == 4 { 8 } else { 1 }) == 0, v.dim(3) % VECTOR == 0,
)]
pub fn flash_attention<
    T: Float,
    M: Score,
    P: MaskPattern,
    S: Sequences,
    const WIDTH: usize,
    const VECTOR: usize,
    const THREADS: usize,
    const ROW_GROUPS: usize,
    const BM: usize,
    const SQUARES: usize,
    const LOADS: usize,
    const NK: usize,
>(
    q: View<T, 4>,
    k: View<T, 4>,
    v: View<T, 4>,
    o: ViewMut<T, 4>,
    lse: ViewMut<f32, 3>,
    partial: ViewMut<f32, 3>,
    logs: ViewMut<f32, 3>,
    ended: ViewMut<u32, 1>,
    scale: f32,
    left: usize,
    right: usize,
    score: M,
    pattern: P,
    sequences: S,
    work: View<u32, 2>,
) {
    attend::<T, View<T, 4>, M, P, S, WIDTH, VECTOR, THREADS, ROW_GROUPS, BM, SQUARES, LOADS, NK>(
        q, k, v, o, lse, partial, logs, ended, scale, left, right, score, pattern, sequences, work,
    );
}

/// Computes O ← softmax(score(scale·Q·Kᵀ))·V as [`flash_attention`] does, over keys and values in
/// a [cache](super::cache).
///
/// k and v are [plane, key head, row, element]. The keys of a sequence are the rows of its plane,
/// or those of its pages in their order. Numbers are multiplied with their scales before the
/// products.
#[kernel(
    block = THREADS, max_registers = if ROW_GROUPS == 2 { 168 } else { 128 },
    grid = work.dim(0),
    tolerance(
        o(relative = 1e-4, absolute = 1e-5), lse(relative = 1e-5, absolute = 1e-5),
        partial(relative = 1e-4, absolute = 1e-4), logs(relative = 1e-5, absolute = 1e-5)
    ),
    instances(
        q8_0_w128: T = f16, K = i8, C = Blocks, G = Contiguous | Paged, M = Plain, P = Dense, S = Whole, WIDTH = 128, THREADS = 128, ROW_GROUPS = 2;
        q4_0_w128: T = f16, K = u32, C = Blocks, G = Contiguous | Paged, M = Plain, P = Dense, S = Padded, WIDTH = 128, THREADS = 128, ROW_GROUPS = 2;
        f16_w64: T = f16, K = f16, C = Unscaled, G = Paged, M = Plain, P = Dense, S = Padded, WIDTH = 64, THREADS = 256, ROW_GROUPS = 1;
        i8_w64_listed: T = f32, K = i8, C = Scaled, G = Contiguous, M = Plain, P = Listed, S = Whole, WIDTH = 64, THREADS = 128, ROW_GROUPS = 1;
        q4_0_w32_packed: T = f32, K = u32, C = Blocks, G = Paged, M = Plain, P = Dense, S = Packed, WIDTH = 32, THREADS = 128, ROW_GROUPS = 1
    ),
    derived(BM = THREADS / 2, SQUARES = WIDTH / (32 * ROW_GROUPS), LOADS = (WIDTH * 2).div_ceil(THREADS), NK = 512 / THREADS),
)]
#[requires(
    G::IN_PAGES || k.dim(0) == q.dim(0), k.dim(3) * K::NUMBERS == q.dim(3), v.dim(0) == k.dim(0), v.dim(1) == k.dim(1), v.dim(2) == k.dim(2),
    k.dim(1) > 0, q.dim(1) % k.dim(1) == 0, left <= 0x4000_0000, right <= 0x4000_0000, q.dim(2) < 0x4000_0000, k.dim(2) < 0x4000_0000,
    o.dim(0) == q.dim(0), o.dim(1) == q.dim(1), o.dim(2) == q.dim(2), o.dim(3) == v.dim(3) * K::NUMBERS,
    lse.dim(0) == q.dim(0), lse.dim(1) == q.dim(1), lse.dim(2) == q.dim(2),
    work.dim(1) == 8, work.aligned(4), ended.len() == partial.dim(0), partial.dim(1) == BM, partial.dim(2) == WIDTH, partial.aligned(4),
    logs.dim(0) == partial.dim(0), logs.dim(1) == BM, logs.dim(2) == 2, logs.aligned(2),
    q.aligned(4), k.aligned(if K::NUMBERS == 1 { 4 } else { 1 }), v.aligned(if K::NUMBERS == 1 { 4 } else { 1 }), o.aligned(4),
    q.dim(3) % 8 == 0, o.dim(3) % 4 == 0,
)]
pub fn flash_attention_cached<
    T: Float,
    K: StoredElement,
    C: Scales,
    G: Pages,
    M: Score,
    P: MaskPattern,
    S: Sequences,
    const WIDTH: usize,
    const THREADS: usize,
    const ROW_GROUPS: usize,
    const BM: usize,
    const SQUARES: usize,
    const LOADS: usize,
    const NK: usize,
>(
    q: View<T, 4>,
    k: View<K, 4>,
    v: View<K, 4>,
    scales: C,
    pages: G,
    o: ViewMut<T, 4>,
    lse: ViewMut<f32, 3>,
    partial: ViewMut<f32, 3>,
    logs: ViewMut<f32, 3>,
    ended: ViewMut<u32, 1>,
    scale: f32,
    left: usize,
    right: usize,
    score: M,
    pattern: P,
    sequences: S,
    work: View<u32, 2>,
) {
    let places = Shared::<u32, 2>::new([ROW_GROUPS * KEYS, 2]);
    let k = StoredHeads { numbers: k, scales, pages, are_values: false, places, step: ROW_GROUPS * KEYS };
    let v = StoredHeads { numbers: v, scales, pages, are_values: true, places, step: ROW_GROUPS * KEYS };
    attend::<T, StoredHeads<K, C, G>, M, P, S, WIDTH, 4, THREADS, ROW_GROUPS, BM, SQUARES, LOADS, NK>(
        q, k, v, o, lse, partial, logs, ended, scale, left, right, score, pattern, sequences, work,
    );
}

/// Stores the places of the rows of a step, whose tiles begin at `key0`. Keys beyond the last get
/// the place of the last.
#[device]
fn find_step<G: Rows, const ROW_GROUPS: usize>(k: G, key0: [usize; ROW_GROUPS], keys: usize, thread: usize) {
    if thread < KEYS {
        for h in unroll(0..ROW_GROUPS) {
            k.find((key0[h] + thread).min(keys - 1), h * KEYS + thread);
        }
    }
}

/// Stores the first slices of the queries from `row0` on, and of the keys of the step's tiles,
/// which begin at `key0`, to shared memory.
#[device]
fn put_first_slices<
    T: Float,
    G: Rows,
    const VECTOR: usize,
    const ROW_GROUPS: usize,
    const BM: usize,
    const NK: usize,
>(
    q: View<T, 2>,
    row0: usize,
    lq: usize,
    k: G,
    key0: [usize; ROW_GROUPS],
    lk: usize,
    depth: usize,
    ab: Shared<f32, 3>,
    thread: usize,
) {
    put_rows::<View<T, 2>, 4>(ab, 0, 0, thread, fetch_rows::<View<T, 2>, 4, VECTOR>(q, thread, row0, lq, 0, depth));
    for h in unroll(0..ROW_GROUPS) {
        let nk = fetch_rows::<G, NK, VECTOR>(k.of_tile(h), thread, key0[h], lk, 0, depth);
        put_rows::<G, NK>(ab, 0, BM + h * KEYS, thread, nk);
    }
}

/// Computes Q·Kᵀ of a step: `ROW_GROUPS` tiles of keys, or one if the list ends with half a step. A
/// thread has `ROW_GROUPS` groups of four rows, and two squares of each.
#[device]
fn step_products<
    T: Float,
    H: Heads,
    S: Sequences,
    const WIDTH: usize,
    const VECTOR: usize,
    const ROW_GROUPS: usize,
    const BM: usize,
    const NK: usize,
>(
    operands: BlockOperands<T, H, S>,
    ab: Shared<f32, 3>,
    t: usize,
    depth: usize,
) -> [[[[f32; 4]; 4]; 2]; ROW_GROUPS] {
    let BlockParameters { q, k, row0, lq, lk, tiles, thread, .. } = load_parameters::<T, H, S, WIDTH>(operands);
    let key0 = operands.kept.load::<ROW_GROUPS>(16).map(|x| x as usize);
    if ROW_GROUPS == 1 || t + ROW_GROUPS <= tiles {
        scores::<View<T, 2>, H::Rows, BM, 4, NK, VECTOR, ROW_GROUPS, ROW_GROUPS, 2>(
            q, row0, lq, k, key0, lk, depth, ab, thread,
        )
    } else {
        let one = [key0[0]];
        let half = scores::<View<T, 2>, H::Rows, BM, 4, NK, VECTOR, ROW_GROUPS, 1, 1>(
            q, row0, lq, k, one, lk, depth, ab, thread,
        );
        let mut s = [[[[0.0f32; 4]; 4]; 2]; ROW_GROUPS];
        for r in unroll(0..ROW_GROUPS) {
            s[r][0] = half[r][0];
        }
        s
    }
}

/// Replaces the products of a step by logits. `at` is the thread's first row and column in a tile.
#[device]
fn score_products<T: Float, G: Rows, M: Score, const ROW_GROUPS: usize>(
    s: &mut [[[[f32; 4]; 4]; 2]; ROW_GROUPS],
    here: BlockParameters<T, G>,
    key0: [usize; ROW_GROUPS],
    at: (usize, usize),
    rule: LogitRule<M>,
) {
    let BlockParameters { row0, lq, lk, head, sequence, .. } = here;
    let (row, col) = at;
    for r in unroll(0..ROW_GROUPS) {
        for i in unroll(0..4) {
            for h in unroll(0..ROW_GROUPS) {
                for x in unroll(0..8 / ROW_GROUPS) {
                    let (q, off) = (h + x / 4, x / 4 * 32 + x % 4);
                    let (query, key) = (row0 + row + r * GROUP_STEP + i, key0[h] + col + off);
                    let at = ScoreIndex {
                        sequence,
                        head,
                        query: query.min(lq - 1),
                        key: key.min(lk - 1),
                        lengths: (lq, lk),
                    };
                    s[r][q][i][x % 4] = rule.score.score(s[r][q][i][x % 4] * rule.scale, at);
                }
            }
        }
    }
}

/// Replaces logits of keys that a query does not see by −∞, in the tiles that have such keys.
#[device]
fn mask_logits<T: Float, G: Rows, const ROW_GROUPS: usize, const BM: usize>(
    s: &mut [[[[f32; 4]; 4]; 2]; ROW_GROUPS],
    here: BlockParameters<T, G>,
    key0: [usize; ROW_GROUPS],
    at: (usize, usize),
    left: usize,
    right: usize,
) {
    let BlockParameters { row0, lq, lk, .. } = here;
    let (row, col) = at;
    let (low, high) = (-(left as i32), right as i32);
    for h in unroll(0..ROW_GROUPS) {
        // The distance from the position of the tile's first query to the first key.
        let ahead = (key0[h] + lq) as i32 - (row0 + lk) as i32;
        if key0[h] + KEYS > lk || is_cut(BM, ahead, low, high) {
            let ahead = ahead + col as i32 - row as i32;
            for r in unroll(0..ROW_GROUPS) {
                for i in unroll(0..4) {
                    for x in unroll(0..8 / ROW_GROUPS) {
                        let (q, off) = (h + x / 4, x / 4 * 32 + x % 4);
                        let apart = ahead + off as i32 - (r * GROUP_STEP + i) as i32;
                        if apart < low || apart > high || key0[h] + col + off >= lk {
                            s[r][q][i][x % 4] = f32::NEG_INFINITY;
                        }
                    }
                }
            }
        }
    }
}

/// Replaces the logits of a step by their weights, and updates the largest logit and the sum of
/// each row, from `row` on. Scales the sums of values to the new largest logit. `lower` is the
/// result of [`lowered`].
#[device]
fn update_softmax<const SQUARES: usize, const ROW_GROUPS: usize>(
    s: &mut [[[[f32; 4]; 4]; 2]; ROW_GROUPS],
    acc: &mut [[[[f32; 4]; 4]; SQUARES]; ROW_GROUPS],
    tops: Shared<f32, 1>,
    sums: Shared<f32, 1>,
    row: usize,
    lower: f32,
) {
    for r in unroll(0..ROW_GROUPS) {
        let (mut max, mut sum) = (tops.load::<4>(row + r * GROUP_STEP), sums.load::<4>(row + r * GROUP_STEP));
        for i in unroll(0..4) {
            let mut top = max[i];
            for x in unroll(0..8) {
                top = top.max(s[r][x / 4][i][x % 4]);
            }
            let top = of_row::<ROW_GROUPS>(top, |a, b| a.max(b));
            // If all logits are −∞: exp2(−∞ − MIN) = 0, never NaN. The difference precedes the
            // factor: it is exactly 0 for the largest logit, however large that is.
            let base = top.max(f32::MIN);
            let old = fast::exp2((max[i] - base) * std::f32::consts::LOG2_E);
            max[i] = top;
            let mut part = 0.0;
            for x in unroll(0..8) {
                let e = fast::exp2((s[r][x / 4][i][x % 4] - base).mul_add(std::f32::consts::LOG2_E, -lower));
                s[r][x / 4][i][x % 4] = e;
                part += e;
            }
            sum[i] = sum[i].mul_add(old, of_row::<ROW_GROUPS>(part, |a, b| a + b));
            for x in unroll(0..4 * SQUARES) {
                acc[r][x / 4][i][x % 4] *= old;
            }
        }
        // All lanes of the row have read the old values.
        warp::sync();
        tops.store(row + r * GROUP_STEP, max);
        sums.store(row + r * GROUP_STEP, sum);
    }
}

/// Makes the step that begins with tile `t` the current one: stores the first keys of its tiles,
/// and the first slices of queries and keys.
#[device]
fn begin_step<
    T: Float,
    H: Heads,
    P: MaskPattern,
    S: Sequences,
    const WIDTH: usize,
    const VECTOR: usize,
    const ROW_GROUPS: usize,
    const BM: usize,
    const NK: usize,
>(
    operands: BlockOperands<T, H, S>,
    pattern: P,
    t: usize,
    depth: usize,
    ab: Shared<f32, 3>,
) {
    let BlockParameters { q, k, row0, lq, lk, tiles, list, thread, .. } = load_parameters::<T, H, S, WIDTH>(operands);
    let next = keys_of::<P, ROW_GROUPS>(pattern, list, t, tiles, lk);
    if thread == 0 {
        operands.kept.store(16, next.map(|x| x as u32));
    }
    if H::ARE_FOUND {
        find_step::<H::Rows, ROW_GROUPS>(k, next, lk, thread);
        block::sync();
    }
    put_first_slices::<T, H::Rows, VECTOR, ROW_GROUPS, BM, NK>(q, row0, lq, k, next, lk, depth, ab, thread);
}

/// Reduces the parts of a list, if several blocks share it and this block is the last of them to
/// finish: writes O and the logarithms.
#[device]
fn reduce_list<
    T: Float,
    H: Heads,
    S: Sequences,
    const WIDTH: usize,
    const VECTOR: usize,
    const THREADS: usize,
    const BM: usize,
>(
    operands: BlockOperands<T, H, S>,
    results: BlockResults<T>,
    mut ended: ViewMut<u32, 1>,
) {
    let BlockParameters { sequence, head, piece, first, row0, lq, lk, thread, .. } =
        load_parameters::<T, H, S, WIDTH>(operands);
    let (kept, mut lse) = (operands.kept, results.lse);
    let batch = operands.sequences.batch(sequence);
    let o = results.o.at(batch).at(head);
    let [divided, whole] = [kept[13], kept[14]].map(|x| x as usize);
    let (partial, logs) = (results.partial.offset((whole, 0, 0)), results.logs.offset((whole, 0, 0)));
    if divided == 0 {
        return;
    }
    block::sync();
    if thread == 0 {
        fence::grid();
        let before = ended.fetch_add(whole, 1);
        fence::grid();
        kept.store(15, [before]);
        if before as usize + 1 == divided {
            ended[whole] = 0;
        }
    }
    block::sync();
    if kept[15] as usize + 1 != divided {
        return;
    }
    let lane = thread % 32;
    for from in rolled((thread / 32 * ROWS_IN_FLIGHT..BM).step_by(THREADS / 32 * ROWS_IN_FLIGHT)) {
        if row0 + from < lq {
            let all = reduce_parts::<WIDTH>(partial, logs, divided, from, lq - 1 - row0, lane);
            for i in unroll(0..ROWS_IN_FLIGHT) {
                let (query, (max, sum, values)) = (row0 + from + i, all[i]);
                let factor = reciprocal(max, sum);
                if query < lq {
                    if lane * 4 < WIDTH {
                        put::<T, VECTOR>(o, first + query, piece * WIDTH + lane * 4, values.map(|x| x * factor));
                    }
                    if piece == 0 && lane == 0 {
                        lse[(batch, head, first + query)] = log_sum(max, sum, lk);
                    }
                }
            }
        }
    }
}

/// Computes O ← softmax(score(scale·Q·Kᵀ))·V as [`flash_attention`] does, over any keys and values.
#[device]
#[allow(clippy::too_many_arguments, reason = "the arguments of the kernels")]
fn attend<
    T: Float,
    H: Heads,
    M: Score,
    P: MaskPattern,
    S: Sequences,
    const WIDTH: usize,
    const VECTOR: usize,
    const THREADS: usize,
    const ROW_GROUPS: usize,
    const BM: usize,
    const SQUARES: usize,
    const LOADS: usize,
    const NK: usize,
>(
    q: View<T, 4>,
    k: H,
    v: H,
    o: ViewMut<T, 4>,
    lse: ViewMut<f32, 3>,
    partial: ViewMut<f32, 3>,
    logs: ViewMut<f32, 3>,
    ended: ViewMut<u32, 1>,
    scale: f32,
    left: usize,
    right: usize,
    score: M,
    pattern: P,
    sequences: S,
    work: View<u32, 2>,
) {
    let (heads, pieces) = (q.dim(1), v.columns().div_ceil(WIDTH));
    let [tile, head, other, before] = work.load::<4>((block::x(), 0)).map(|x| x as usize);
    let [most, part, divided, whole] = work.load::<4>((block::x(), 4)).map(|x| x as usize);
    let (piece, sequence) = (other % pieces, other / pieces);
    let span = sequences.span(sequence, q.dim(2), k.rows());
    let (lq, lk, row0) = (span.queries, span.keys, tile * BM);
    if row0 >= lq {
        return;
    }
    let (begin, end) = span.visible_keys(row0, BM, left, right);
    let (list, all) = pattern.tiles(head, row0, begin, end);
    let before = all.min(before);
    let (list, tiles) = (list + before, (all - before).min(most));

    let (row, _) = corner::<ROW_GROUPS>(thread::x());
    let p = weights(BM);
    // The largest logit and the sum of exponentials of each row, and the parameters that the end of
    // the kernel needs. Keeping them in registers would slow down the products.
    let (tops, sums) = (Shared::<f32, 1>::new([BM]), Shared::<f32, 1>::new([BM]));
    let ab = slices(BM + ROW_GROUPS * KEYS);
    let slots = Shared::<f32, 3>::over(ab, [2, SLICE, WIDTH]);
    let kept = Shared::<u32, 1>::new([20]);
    // All lanes of a row store the same value, which is one access.
    for r in unroll(0..ROW_GROUPS) {
        tops.store(row + r * GROUP_STEP, [f32::NEG_INFINITY; 4]);
        sums.store(row + r * GROUP_STEP, [0.0; 4]);
    }
    if thread::x() == 0 {
        let kv = head / (heads / k.heads());
        kept.store(0, [sequence as u32, head as u32, kv as u32, piece as u32]);
        kept.store(4, [span.query as u32, span.key as u32, lq as u32, lk as u32]);
        kept.store(8, [row0 as u32, tiles as u32, list as u32, 0]);
        kept.store(12, [part as u32, divided as u32, whole as u32, 0]);
        kept.store(16, keys_of::<P, ROW_GROUPS>(pattern, list, 0, tiles, lk).map(|x| x as u32));
        kept.store(LOWERED_BITS, [lowered(lk).to_bits()]);
    }
    if H::ARE_FOUND && tiles > 0 {
        let own = k.of_head(sequences.batch(sequence), head / (heads / k.heads()), span.key, 0, WIDTH);
        find_step::<H::Rows, ROW_GROUPS>(own, keys_of::<P, ROW_GROUPS>(pattern, list, 0, tiles, lk), lk, thread::x());
    }
    block::sync();
    let depth = q.dim(3);
    let (operands, results) = (BlockOperands { q, k, v, sequences, kept }, BlockResults { o, lse, partial, logs });
    let rule = LogitRule { scale, left, right, score };
    let mut acc = [[[[0.0f32; 4]; 4]; SQUARES]; ROW_GROUPS];
    if tiles > 0 {
        let BlockParameters { q, k, .. } = load_parameters::<T, H, S, WIDTH>(operands);
        let key0 = kept.load::<ROW_GROUPS>(16).map(|x| x as usize);
        put_first_slices::<T, H::Rows, VECTOR, ROW_GROUPS, BM, NK>(q, row0, lq, k, key0, lk, depth, ab, thread::x());
    }
    block::sync();
    let mut t = 0;
    while t < kept[9] as usize {
        let mut s = step_products::<T, H, S, WIDTH, VECTOR, ROW_GROUPS, BM, NK>(operands, ab, t, depth);
        let here = load_parameters::<T, H, S, WIDTH>(operands);
        let at = corner::<ROW_GROUPS>(here.thread);
        let key0 = kept.load::<ROW_GROUPS>(16).map(|x| x as usize);
        let mut first =
            fetch_keys::<H::Rows, LOADS, WIDTH, VECTOR>(here.v, here.v.start(), here.thread, key0[0], here.lk);
        score_products::<T, H::Rows, M, ROW_GROUPS>(&mut s, here, key0, at, rule);
        mask_logits::<T, H::Rows, ROW_GROUPS, BM>(&mut s, here, key0, at, left, right);
        update_softmax::<SQUARES, ROW_GROUPS>(&mut s, &mut acc, tops, sums, at.0, f32::from_bits(kept[LOWERED_BITS]));
        // A row of P is shared within its warp only.
        if ROW_GROUPS == 1 {
            share::<ROW_GROUPS, 2>(p, here.thread, &s);
            warp::sync();
            let here = load_parameters::<T, H, S, WIDTH>(operands);
            accumulate_tile::<T, H::Rows, WIDTH, VECTOR, SQUARES, LOADS, ROW_GROUPS>(
                &mut acc, p, first, slots, kept, here, 0,
            );
        } else {
            // One copy of the code for all tiles of the step.
            for h in rolled(0..ROW_GROUPS) {
                share::<ROW_GROUPS, 2>(p, here.thread, &s);
                for r in unroll(0..ROW_GROUPS) {
                    s[r][0] = s[r][1];
                }
                warp::sync();
                let here = load_parameters::<T, H, S, WIDTH>(operands);
                accumulate_tile::<T, H::Rows, WIDTH, VECTOR, SQUARES, LOADS, ROW_GROUPS>(
                    &mut acc, p, first, slots, kept, here, h,
                );
                if h + 1 < ROW_GROUPS {
                    let here = load_parameters::<T, H, S, WIDTH>(operands);
                    let key0 = kept[17 + h] as usize;
                    let v = here.v.of_tile(h + 1);
                    first = fetch_keys::<H::Rows, LOADS, WIDTH, VECTOR>(v, v.start(), here.thread, key0, here.lk);
                }
            }
        }
        t += ROW_GROUPS;
        begin_step::<T, H, P, S, WIDTH, VECTOR, ROW_GROUPS, BM, NK>(operands, pattern, t, depth, ab);
        block::sync();
    }
    let unexplained = has_unexplained_nan::<SQUARES, ROW_GROUPS>(&acc, sums, kept);
    write_rows::<T, H, S, WIDTH, VECTOR, SQUARES, ROW_GROUPS>(&acc, tops, sums, operands, results);
    // A second pass with its own accumulators, after the first results are written. Accumulators
    // common to both passes would cost ptxas register bank conflicts in the products.
    if warp::any(unexplained) {
        let acc = recompute_sums::<T, H, M, P, S, WIDTH, VECTOR, SQUARES, ROW_GROUPS>(tops, operands, rule, pattern);
        write_rows::<T, H, S, WIDTH, VECTOR, SQUARES, ROW_GROUPS>(&acc, tops, sums, operands, results);
    }
    reduce_list::<T, H, S, WIDTH, VECTOR, THREADS, BM>(operands, results, ended);
}
