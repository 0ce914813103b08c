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

/// Index of the bits of [`lowered`] in the block's parameters.
#[device]
const LOWER: usize = 18;

#[device]
fn load_parameters<T: Float, H: Heads, S: Sequences, const W: usize>(
    kept: Shared<u32, 1>,
    q: View<T, 4>,
    k: H,
    v: H,
    sequences: S,
) -> BlockParameters<T, H::Rows> {
    let [sequence, head, kv, piece] = kept.load::<4>(0).map(|x| x as usize);
    let [query, key, lq, lk] = kept.load::<4>(4).map(|x| x as usize);
    let [row0, tiles, list, zero] = kept.load::<4>(8).map(|x| x as usize);
    let batch = sequences.batch(sequence);
    BlockParameters {
        q: q.at(batch).at(head).offset((query, 0)),
        k: k.of_head(batch, kv, key, 0, W),
        v: v.of_head(batch, kv, key, piece, W),
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
        // registers across tiles. The minimum shows it that the sum is a thread's index.
        thread: thread::x().wrapping_add(zero).min(block::threads() - 1),
    }
}

/// Returns the first keys of the `R` tiles of the step that begins with tile `t` of a list. A tile
/// beyond the list gets `lk`, past the last key.
#[device]
fn keys_of<P: Pattern, const R: usize>(pattern: P, list: usize, t: usize, tiles: usize, lk: usize) -> [usize; R] {
    let mut first = [lk; R];
    for h in unroll(0..R) {
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
    const W: usize,
    const V: usize,
    const Q: usize,
    const L: usize,
    const R: usize,
>(
    acc: &mut [[[[f32; 4]; 4]; Q]; R],
    p: Shared<f32, 2>,
    first: [G::Kept; L],
    slots: Shared<f32, 3>,
    kept: Shared<u32, 1>,
    here: BlockParameters<T, G>,
    h: usize,
) {
    let key0 = kept[16 + h] as usize;
    accumulate::<G, W, Q, L, V, R>(acc, p, here.v.of_tile(h), key0, here.lk, first, slots, here.thread);
}

/// Returns whether a sum of the thread is NaN although the weights of its row are not: a weight of
/// 0 times an infinity or a NaN is a NaN.
#[device]
fn has_unexplained_nan<const Q: usize, const R: usize>(
    acc: &[[[[f32; 4]; 4]; Q]; R],
    sums: Shared<f32, 1>,
    kept: Shared<u32, 1>,
) -> bool {
    let (row, _) = corner::<R>(thread::x() + kept[11] as usize);
    let mut found = false;
    for r in unroll(0..R) {
        let sum = sums.load::<4>(row + r * GROUP_STEP);
        for i in unroll(0..4) {
            for x in unroll(0..4 * Q) {
                found |= acc[r][x / 4][i][x % 4].is_nan() && !sum[i].is_nan();
            }
        }
    }
    found
}

/// Writes the results of a thread's rows: to O and the logarithms, or as a part of a list.
#[device]
fn write_rows<T: Float, H: Heads, S: Sequences, const W: usize, const V: usize, const Q: usize, const R: usize>(
    acc: &[[[[f32; 4]; 4]; Q]; R],
    tops: Shared<f32, 1>,
    sums: Shared<f32, 1>,
    kept: Shared<u32, 1>,
    q: View<T, 4>,
    k: H,
    v: H,
    o: ViewMut<T, 4>,
    mut lse: ViewMut<f32, 3>,
    partial: ViewMut<f32, 3>,
    logs: ViewMut<f32, 3>,
    sequences: S,
) {
    let BlockParameters { sequence, head, piece, first, row0, lq, lk, thread, .. } =
        load_parameters::<T, H, S, W>(kept, q, k, v, sequences);
    let (row, col) = corner::<R>(thread);
    let batch = sequences.batch(sequence);
    let o = o.at(batch).at(head);
    let [part, divided, whole] = [kept[12], kept[13], kept[14]].map(|x| x as usize);
    let (partial, logs) = (partial.offset((whole, 0, 0)), logs.offset((whole, 0, 0)));
    for r in unroll(0..R) {
        let row = row + r * GROUP_STEP;
        let (max, sum) = (tops.load::<4>(row), sums.load::<4>(row));
        for i in unroll(0..4) {
            let query = row0 + row + i;
            // A factor of 1 copies the sum to registers that a store of four elements can use. The
            // accumulators' own registers would not fit both loops.
            let factor = if divided > 0 { 1.0 } else { reciprocal(max[i], sum[i]) };
            if query < lq {
                for q in unroll(0..Q) {
                    let out = acc[r][q][i].map(|x| x * factor);
                    if divided > 0 {
                        partial.store((part, row + i, col + q * 32 * R), out);
                    } else {
                        put::<T, V>(o, first + query, piece * W + col + q * 32 * R, out);
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
fn numbers<G: Rows, const N: usize, const V: usize>(
    rows: G,
    row: usize,
    col: usize,
    first: usize,
    end: usize,
) -> [f32; 4] {
    let kept = rows.fetch_any::<N, V>(row, col, first, end);
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
    P: Pattern,
    S: Sequences,
    const W: usize,
    const V: usize,
    const Q: usize,
    const R: usize,
>(
    tops: Shared<f32, 1>,
    kept: Shared<u32, 1>,
    q: View<T, 4>,
    k: H,
    v: H,
    scale: f32,
    left: usize,
    right: usize,
    score: M,
    pattern: P,
    sequences: S,
) -> [[[[f32; 4]; 4]; Q]; R] {
    let BlockParameters { q, k, v, sequence, head, row0, lq, lk, tiles, list, thread, .. } =
        load_parameters::<T, H, S, W>(kept, q, k, v, sequences);
    let (row, col) = corner::<R>(thread);
    let lower = f32::from_bits(kept[LOWER]);
    let (low, high) = (-(left as i32), right as i32);
    let mut acc = [[[[0.0f32; 4]; 4]; Q]; R];
    for t in rolled(0..tiles) {
        let key0 = pattern.key(list, t);
        for key in rolled(key0..lk.min(key0 + KEYS)) {
            let mut few = [[0.0f32; 4]; Q];
            for part in unroll(0..Q) {
                let col = col + part * 32 * R;
                few[part] = numbers::<H::Rows, 4, V>(v, key, col, col, v.columns());
            }
            for r in unroll(0..R) {
                let max = tops.load::<4>(row + r * GROUP_STEP);
                for i in unroll(0..4) {
                    let query = (row0 + row + r * GROUP_STEP + i).min(lq - 1);
                    // Each lane of a row computes a share of the product.
                    let mut x = 0.0f32;
                    for d in rolled((col / 4..q.cols()).step_by(8 * R)) {
                        x = q[(query, d)].to_f32().mul_add(numbers::<H::Rows, 1, 4>(k, key, d, 0, 1)[0], x);
                    }
                    let at = ScoreIndex { sequence, head, query, key, lengths: (lq, lk) };
                    let mut x = score.score(of_row::<R>(x, |a, b| a + b) * scale, at);
                    let apart = (key + lq) as i32 - (query + lk) as i32;
                    if apart < low || apart > high {
                        x = f32::NEG_INFINITY;
                    }
                    let e = fast::exp2((x - max[i].max(f32::MIN)).mul_add(std::f32::consts::LOG2_E, -lower));
                    if e != 0.0 {
                        for part in unroll(0..Q) {
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
#[kernel(
    block = THREADS, max_registers = if R == 2 { 168 } else { 128 },
    grid = work.dim(0),
    tolerance(
        o(relative = 1e-4, absolute = 1e-5), lse(relative = 1e-5, absolute = 1e-5),
        partial(relative = 1e-4, absolute = 1e-4), logs(relative = 1e-5, absolute = 1e-5)
    ),
    instances(
        f32_w128_v4: T = f32, M = Plain, P = Dense, S = Whole, W = 128, V = 4, THREADS = 128, R = 2;
        f32_w128_v4_listed: T = f32, M = Plain, P = Listed, S = Whole, W = 128, V = 4, THREADS = 128, R = 2;
        f16_w64_v4_alibi_padded: T = f16, M = Alibi, P = Dense, S = Padded, W = 64, V = 4, THREADS = 256, R = 1;
        bf16_w32_v1_packed: T = bf16, M = Plain, P = Dense, S = Packed, W = 32, V = 1, THREADS = 128, R = 1;
        f16_w128_v4: T = f16, M = Plain, P = Dense, S = Whole, W = 128, V = 4, THREADS = 128, R = 2
    ),
    derived(BM = THREADS / 2, Q = W / (32 * R), L = (W * 2).div_ceil(THREADS), NK = 512 / THREADS),
)]
#[requires(
    k.dim(3) == q.dim(3), v.dim(1) == k.dim(1), v.dim(2) == k.dim(2), v.dim(0) == k.dim(0), k.dim(0) == q.dim(0),
    k.dim(1) > 0, q.dim(1) % k.dim(1) == 0, left <= 0x4000_0000, right <= 0x4000_0000, q.dim(2) < 0x4000_0000, k.dim(2) < 0x4000_0000,
    o.dim(0) == q.dim(0), o.dim(1) == q.dim(1), o.dim(2) == q.dim(2), o.dim(3) == v.dim(3),
    lse.dim(0) == q.dim(0), lse.dim(1) == q.dim(1), lse.dim(2) == q.dim(2),
    work.dim(1) == 8, work.aligned(4), ended.len() == partial.dim(0), partial.dim(1) == BM, partial.dim(2) == W, partial.aligned(4),
    logs.dim(0) == partial.dim(0), logs.dim(1) == BM, logs.dim(2) == 2, logs.aligned(2),
    q.aligned(V), k.aligned(V), v.aligned(V), o.aligned(V), q.dim(3) % (if V == 4 { 8 } else { 1 }) == 0, v.dim(3) % V == 0,
)]
pub fn flash_attention<
    T: Float,
    M: Score,
    P: Pattern,
    S: Sequences,
    const W: usize,
    const V: usize,
    const THREADS: usize,
    const R: usize,
    const BM: usize,
    const Q: usize,
    const L: usize,
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
    attend::<T, View<T, 4>, M, P, S, W, V, THREADS, R, BM, Q, L, NK>(
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
    block = THREADS, max_registers = if R == 2 { 168 } else { 128 },
    grid = work.dim(0),
    tolerance(
        o(relative = 1e-4, absolute = 1e-5), lse(relative = 1e-5, absolute = 1e-5),
        partial(relative = 1e-4, absolute = 1e-4), logs(relative = 1e-5, absolute = 1e-5)
    ),
    instances(
        q8_0_w128: T = f16, K = i8, C = Blocks, G = Contiguous | Paged, M = Plain, P = Dense, S = Whole, W = 128, THREADS = 128, R = 2;
        q4_0_w128: T = f16, K = u32, C = Blocks, G = Contiguous | Paged, M = Plain, P = Dense, S = Padded, W = 128, THREADS = 128, R = 2;
        f16_w64: T = f16, K = f16, C = Unscaled, G = Paged, M = Plain, P = Dense, S = Padded, W = 64, THREADS = 256, R = 1;
        i8_w64_listed: T = f32, K = i8, C = Scaled, G = Contiguous, M = Plain, P = Listed, S = Whole, W = 64, THREADS = 128, R = 1;
        q4_0_w32_packed: T = f32, K = u32, C = Blocks, G = Paged, M = Plain, P = Dense, S = Packed, W = 32, THREADS = 128, R = 1
    ),
    derived(BM = THREADS / 2, Q = W / (32 * R), L = (W * 2).div_ceil(THREADS), NK = 512 / THREADS),
)]
#[requires(
    G::IN_PAGES || k.dim(0) == q.dim(0), k.dim(3) * K::NUMBERS == q.dim(3), v.dim(0) == k.dim(0), v.dim(1) == k.dim(1), v.dim(2) == k.dim(2),
    k.dim(1) > 0, q.dim(1) % k.dim(1) == 0, left <= 0x4000_0000, right <= 0x4000_0000, q.dim(2) < 0x4000_0000, k.dim(2) < 0x4000_0000,
    o.dim(0) == q.dim(0), o.dim(1) == q.dim(1), o.dim(2) == q.dim(2), o.dim(3) == v.dim(3) * K::NUMBERS,
    lse.dim(0) == q.dim(0), lse.dim(1) == q.dim(1), lse.dim(2) == q.dim(2),
    work.dim(1) == 8, work.aligned(4), ended.len() == partial.dim(0), partial.dim(1) == BM, partial.dim(2) == W, partial.aligned(4),
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
    P: Pattern,
    S: Sequences,
    const W: usize,
    const THREADS: usize,
    const R: usize,
    const BM: usize,
    const Q: usize,
    const L: usize,
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
    let places = Shared::<u32, 2>::new([R * KEYS, 2]);
    let k = StoredHeads { numbers: k, scales, pages, are_values: false, places, step: R * KEYS };
    let v = StoredHeads { numbers: v, scales, pages, are_values: true, places, step: R * KEYS };
    attend::<T, StoredHeads<K, C, G>, M, P, S, W, 4, THREADS, R, BM, Q, L, NK>(
        q, k, v, o, lse, partial, logs, ended, scale, left, right, score, pattern, sequences, work,
    );
}

/// Stores the places of the rows of a step, whose tiles begin at `key0`. Keys beyond the last get
/// the place of the last.
#[device]
fn find_step<G: Rows, const R: usize>(k: G, key0: [usize; R], keys: usize, thread: usize) {
    if thread < KEYS {
        for h in unroll(0..R) {
            k.find((key0[h] + thread).min(keys - 1), h * KEYS + thread);
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
    P: Pattern,
    S: Sequences,
    const W: usize,
    const V: usize,
    const THREADS: usize,
    const R: usize,
    const BM: usize,
    const Q: usize,
    const L: usize,
    const NK: usize,
>(
    q: View<T, 4>,
    k: H,
    v: H,
    o: ViewMut<T, 4>,
    mut lse: ViewMut<f32, 3>,
    partial: ViewMut<f32, 3>,
    logs: ViewMut<f32, 3>,
    mut ended: ViewMut<u32, 1>,
    scale: f32,
    left: usize,
    right: usize,
    score: M,
    pattern: P,
    sequences: S,
    work: View<u32, 2>,
) {
    let (heads, pieces) = (q.dim(1), v.columns().div_ceil(W));
    let [tile, head, other, before] = work.load::<4>((block::x(), 0)).map(|x| x as usize);
    let [most, part, divided, whole] = work.load::<4>((block::x(), 4)).map(|x| x as usize);
    let (piece, sequence) = (other % pieces, other / pieces);
    let span = sequences.span(sequence, q.dim(2), k.rows());
    let (lq, lk, row0) = (span.queries, span.keys, tile * BM);
    if row0 >= lq {
        return;
    }
    let (begin, end) = span.seen(row0, BM, left, right);
    let (list, all) = pattern.tiles(head, row0, begin, end);
    let before = all.min(before);
    let (list, tiles) = (list + before, (all - before).min(most));

    let (row, _) = corner::<R>(thread::x());
    let p = weights(BM);
    // The largest logit and the sum of exponentials of each row, and the parameters that the end of
    // the kernel needs. Keeping them in registers would slow down the products.
    let (tops, sums) = (Shared::<f32, 1>::new([BM]), Shared::<f32, 1>::new([BM]));
    let ab = slices(BM + R * KEYS);
    let slots = Shared::<f32, 3>::over(ab, [2, SLICE, W]);
    let kept = Shared::<u32, 1>::new([20]);
    // All lanes of a row store the same value, which is one access.
    for r in unroll(0..R) {
        tops.store(row + r * GROUP_STEP, [f32::NEG_INFINITY; 4]);
        sums.store(row + r * GROUP_STEP, [0.0; 4]);
    }
    if thread::x() == 0 {
        let kv = head / (heads / k.heads());
        kept.store(0, [sequence as u32, head as u32, kv as u32, piece as u32]);
        kept.store(4, [span.query as u32, span.key as u32, lq as u32, lk as u32]);
        kept.store(8, [row0 as u32, tiles as u32, list as u32, 0]);
        kept.store(12, [part as u32, divided as u32, whole as u32, 0]);
        kept.store(16, keys_of::<P, R>(pattern, list, 0, tiles, lk).map(|x| x as u32));
        kept.store(LOWER, [lowered(lk).to_bits()]);
    }
    if H::ARE_FOUND && tiles > 0 {
        let own = k.of_head(sequences.batch(sequence), head / (heads / k.heads()), span.key, 0, W);
        find_step::<H::Rows, R>(own, keys_of::<P, R>(pattern, list, 0, tiles, lk), lk, thread::x());
    }
    block::sync();
    let depth = q.dim(3);
    let mut acc = [[[[0.0f32; 4]; 4]; Q]; R];
    if tiles > 0 {
        let thread = thread::x();
        let BlockParameters { q, k, .. } = load_parameters::<T, H, S, W>(kept, q, k, v, sequences);
        let key0 = kept.load::<R>(16).map(|x| x as usize);
        put_rows::<View<T, 2>, 4>(ab, 0, 0, thread, fetch_rows::<View<T, 2>, 4, V>(q, thread, row0, lq, 0, depth));
        for h in unroll(0..R) {
            let nk = fetch_rows::<H::Rows, NK, V>(k.of_tile(h), thread, key0[h], lk, 0, depth);
            put_rows::<H::Rows, NK>(ab, 0, BM + h * KEYS, thread, nk);
        }
    }
    block::sync();
    let mut t = 0;
    while t < kept[9] as usize {
        let mut s = {
            let here = load_parameters::<T, H, S, W>(kept, q, k, v, sequences);
            let key0 = kept.load::<R>(16).map(|x| x as usize);
            let (q, k) = (here.q, here.k);
            if R == 1 || t + R <= here.tiles {
                scores::<View<T, 2>, H::Rows, BM, 4, NK, V, R, R, 2>(
                    q,
                    here.row0,
                    here.lq,
                    k,
                    key0,
                    here.lk,
                    depth,
                    ab,
                    here.thread,
                )
            } else {
                // The list ends with half a step.
                let one = [key0[0]];
                let half = scores::<View<T, 2>, H::Rows, BM, 4, NK, V, R, 1, 1>(
                    q,
                    here.row0,
                    here.lq,
                    k,
                    one,
                    here.lk,
                    depth,
                    ab,
                    here.thread,
                );
                let mut s = [[[[0.0f32; 4]; 4]; 2]; R];
                for r in unroll(0..R) {
                    s[r][0] = half[r][0];
                }
                s
            }
        };
        let BlockParameters { v: values, row0, lq, lk, thread, head, sequence, .. } =
            load_parameters::<T, H, S, W>(kept, q, k, v, sequences);
        let (row, col) = corner::<R>(thread);
        let key0 = kept.load::<R>(16).map(|x| x as usize);
        let mut first = fetch_keys::<H::Rows, L, W, V>(values, values.start(), thread, key0[0], lk);
        for r in unroll(0..R) {
            for i in unroll(0..4) {
                for h in unroll(0..R) {
                    for x in unroll(0..8 / R) {
                        let (q, off) = (h + x / 4, x / 4 * 32 + x % 4);
                        let (query, key) = (row0 + row + r * GROUP_STEP + i, key0[h] + col + off);
                        let at = ScoreIndex {
                            sequence,
                            head,
                            query: query.min(lq - 1),
                            key: key.min(lk - 1),
                            lengths: (lq, lk),
                        };
                        s[r][q][i][x % 4] = score.score(s[r][q][i][x % 4] * scale, at);
                    }
                }
            }
        }
        let (low, high) = (-(left as i32), right as i32);
        for h in unroll(0..R) {
            // The distance from the position of the tile's first query to the first key.
            let ahead = (key0[h] + lq) as i32 - (row0 + lk) as i32;
            if key0[h] + KEYS > lk || is_cut(BM, ahead, low, high) {
                let ahead = ahead + col as i32 - row as i32;
                for r in unroll(0..R) {
                    for i in unroll(0..4) {
                        for x in unroll(0..8 / R) {
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
        let lower = f32::from_bits(kept[LOWER]);
        for r in unroll(0..R) {
            let (mut max, mut sum) = (tops.load::<4>(row + r * GROUP_STEP), sums.load::<4>(row + r * GROUP_STEP));
            for i in unroll(0..4) {
                let mut top = max[i];
                for x in unroll(0..8) {
                    top = top.max(s[r][x / 4][i][x % 4]);
                }
                let top = of_row::<R>(top, |a, b| a.max(b));
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
                sum[i] = sum[i].mul_add(old, of_row::<R>(part, |a, b| a + b));
                for x in unroll(0..4 * Q) {
                    acc[r][x / 4][i][x % 4] *= old;
                }
            }
            // All lanes of the row have read the old values.
            warp::sync();
            tops.store(row + r * GROUP_STEP, max);
            sums.store(row + r * GROUP_STEP, sum);
        }
        // A row of P is shared within its warp only.
        if R == 1 {
            share::<R, 2>(p, thread, &s);
            warp::sync();
            let here = load_parameters::<T, H, S, W>(kept, q, k, v, sequences);
            accumulate_tile::<T, H::Rows, W, V, Q, L, R>(&mut acc, p, first, slots, kept, here, 0);
        } else {
            // One copy of the code for all tiles of the step.
            for h in rolled(0..R) {
                share::<R, 2>(p, thread, &s);
                for r in unroll(0..R) {
                    s[r][0] = s[r][1];
                }
                warp::sync();
                let here = load_parameters::<T, H, S, W>(kept, q, k, v, sequences);
                accumulate_tile::<T, H::Rows, W, V, Q, L, R>(&mut acc, p, first, slots, kept, here, h);
                if h + 1 < R {
                    let here = load_parameters::<T, H, S, W>(kept, q, k, v, sequences);
                    let key0 = kept[17 + h] as usize;
                    let v = here.v.of_tile(h + 1);
                    first = fetch_keys::<H::Rows, L, W, V>(v, v.start(), here.thread, key0, here.lk);
                }
            }
        }
        t += R;
        let here = load_parameters::<T, H, S, W>(kept, q, k, v, sequences);
        let thread = here.thread;
        let next = keys_of::<P, R>(pattern, here.list, t, here.tiles, here.lk);
        if thread == 0 {
            kept.store(16, next.map(|x| x as u32));
        }
        if H::ARE_FOUND {
            find_step::<H::Rows, R>(here.k, next, here.lk, thread);
            block::sync();
        }
        let nq = fetch_rows::<View<T, 2>, 4, V>(here.q, here.thread, here.row0, here.lq, 0, depth);
        put_rows::<View<T, 2>, 4>(ab, 0, 0, thread, nq);
        for h in unroll(0..R) {
            let nk = fetch_rows::<H::Rows, NK, V>(here.k.of_tile(h), here.thread, next[h], here.lk, 0, depth);
            put_rows::<H::Rows, NK>(ab, 0, BM + h * KEYS, thread, nk);
        }
        block::sync();
    }
    let unexplained = has_unexplained_nan::<Q, R>(&acc, sums, kept);
    write_rows::<T, H, S, W, V, Q, R>(&acc, tops, sums, kept, q, k, v, o, lse, partial, logs, sequences);
    // A second pass with its own accumulators, after the first results are written. Accumulators
    // common to both passes would cost ptxas register bank conflicts in the products.
    if warp::any(unexplained) {
        let acc = recompute_sums::<T, H, M, P, S, W, V, Q, R>(
            tops, kept, q, k, v, scale, left, right, score, pattern, sequences,
        );
        write_rows::<T, H, S, W, V, Q, R>(&acc, tops, sums, kept, q, k, v, o, lse, partial, logs, sequences);
    }
    let BlockParameters { sequence, head, piece, first, row0, lq, lk, thread, .. } =
        load_parameters::<T, H, S, W>(kept, q, k, v, sequences);
    let batch = sequences.batch(sequence);
    let o = o.at(batch).at(head);
    let [divided, whole] = [kept[13], kept[14]].map(|x| x as usize);
    let (partial, logs) = (partial.offset((whole, 0, 0)), logs.offset((whole, 0, 0)));
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
    for from in rolled((thread / 32 * ROWS..BM).step_by(THREADS / 32 * ROWS)) {
        if row0 + from < lq {
            let all = reduce_parts::<W>(partial, logs, divided, from, lq - 1 - row0, lane);
            for i in unroll(0..ROWS) {
                let (query, (max, sum, values)) = (row0 + from + i, all[i]);
                let factor = reciprocal(max, sum);
                if query < lq {
                    if lane * 4 < W {
                        put::<T, V>(o, first + query, piece * W + lane * 4, values.map(|x| x * factor));
                    }
                    if piece == 0 && lane == 0 {
                        lse[(batch, head, first + query)] = log_sum(max, sum, lk);
                    }
                }
            }
        }
    }
}
