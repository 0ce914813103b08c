//! A draw from the likeliest tokens of a row, by two kernels.
//!
//! 1. [`likeliest_of_parts`], a block for each part of a row: the ranks of the part's k likeliest
//!    tokens, in any order. The part's logits stay in registers.
//! 2. [`sample_top`], a block for each row: the ranks of the k likeliest of all parts are moved to
//!    shared memory and sorted: bitonic (Batcher, 1968).
//! 3. The exponentials of the k likeliest, sums of them from the likeliest down, and the cut at p.
//! 4. Sums from the least likely up, and the draw. Small sums and small random numbers have the
//!    most bits, so that the frequencies of rare tokens are accurate.
//!
//! Both kernels find the k-th rank by a radix select: 10 or 11 bits per round from the top. A round
//! counts the digits of the ranks with the prefix found so far. The select ends early if a whole
//! digit is needed, mostly after two or three rounds. With 8 bits, the first digit would be sign
//! and exponent, which a warp's logits share: their atomic additions would wait for each other.
//!
//! Atomics only count, and their arbitrary order is removed by the sort, so that draws are
//! deterministic.

use super::best::{Temperature, column_of, orderable, score_of};
use super::random::{RandomStream, uniform, words};
use kernel_dsl::prelude::*;

/// Threads of a block.
#[device]
const THREADS: usize = 1024;

// The elements of a thread that are loaded before one is used: the latency of a load is longer than
// the work on an element.
#[device]
const LOADS_AHEAD: usize = 8;

/// The number of different digits of a round.
#[device]
const DIGITS: usize = 2048;

#[device]
mod items {
    use super::{LOADS_AHEAD, THREADS};
    use kernel_dsl::prelude::*;

    /// Elements and their ranks. A block reads `LOADS_AHEAD · THREADS` of them at once.
    pub trait Ranked: Copy {
        /// An element as it is stored.
        type Stored: Copy;
        /// Returns elements `base` + u · `THREADS` + t of thread t, with zeros from `to` on.
        fn elements(&self, base: usize, to: usize) -> [Self::Stored; LOADS_AHEAD];
        /// Returns the rank of element `i`.
        fn rank(element: Self::Stored, i: usize) -> u64;
    }

    /// The scores of a thread's columns, in registers. A score is positive; 0 means that there is
    /// no column.
    #[derive(Clone, Copy)]
    pub struct Scores {
        /// The scores as [orderable](super::super::best::orderable) integers.
        pub of: [u32; LOADS_AHEAD],
    }

    impl Ranked for Scores {
        type Stored = u32;
        fn elements(&self, _base: usize, _to: usize) -> [u32; LOADS_AHEAD] {
            self.of
        }
        fn rank(element: u32, i: usize) -> u64 {
            (element as u64) << 32 | !(i as u32) as u64
        }
    }

    /// Ranks in memory; 0 means that there is no element.
    #[derive(Clone, Copy, DeviceCopy)]
    pub struct Ranks {
        /// The ranks of a row.
        pub of: View<u64, 1>,
    }

    impl Ranked for Ranks {
        type Stored = u64;
        fn elements(&self, base: usize, to: usize) -> [u64; LOADS_AHEAD] {
            let mut ranks = [0u64; LOADS_AHEAD];
            for u in unroll(0..LOADS_AHEAD) {
                let i = base + u * THREADS + thread::x();
                if i < to {
                    ranks[u] = self.of[i];
                }
            }
            ranks
        }
        fn rank(element: u64, _i: usize) -> u64 {
            element
        }
    }
}

use items::*;

/// Finds the `need` largest ranks of elements `from` to `to`. If the smallest of them occurs
/// several times, all occurrences are found. The found ranks are those with r >> bits ≥ prefix.
/// Returns prefix and bits, and ends with a barrier.
///
/// The zeros of threads beyond `to` are counted as well, but have the smallest digit, and therefore
/// do not affect the result.
#[device]
fn largest<R: Ranked>(of: R, from: usize, to: usize, need: u32) -> (u64, u32) {
    let t = thread::x();
    let mut counts = Shared::<u32, 1>::new([DIGITS]);
    let mut found = Shared::<u32, 1>::new([3]);
    let (mut prefix, mut need, mut bits) = (0u64, need, 64u32);
    // Digits of 11, 11 and 10 bits of the score, and of the column.
    for round in rolled(0..6) {
        let shift = 53 + (round > 1) as u32 + (round > 4) as u32 - 11 * round as u32;
        counts[t] = 0;
        counts[t + THREADS] = 0;
        block::sync();
        for base in rolled((from..to).step_by(LOADS_AHEAD * THREADS)) {
            let elements = of.elements(base, to);
            for u in unroll(0..LOADS_AHEAD) {
                let rank = R::rank(elements[u], base + u * THREADS + t);
                if bits == 64 || rank >> bits == prefix {
                    let digit = (rank >> shift) as u32 & ((1 << (bits - shift)) - 1);
                    counts.fetch_add(digit as usize, 1);
                }
            }
        }
        block::sync();
        // From the largest digit down, finds the one that contains the last needed rank.
        let high = DIGITS - 1 - 2 * t;
        let (of_high, of_low) = (counts[high], counts[high - 1]);
        let (before, _all) = block::scan(of_high + of_low, 0, |a, b| a + b);
        let lower = need > before + of_high;
        let (before, here) = if lower { (before + of_high, of_low) } else { (before, of_high) };
        if before < need && need <= before + here {
            found[0] = (high - lower as usize) as u32;
            found[1] = need - before;
            found[2] = here;
        }
        block::sync();
        prefix = prefix << (bits - shift) | found[0] as u64;
        bits = shift;
        need = found[1];
        if found[2] == need {
            break;
        }
    }
    block::sync();
    (prefix, bits)
}

/// Finds the ranks of the `ranks.dim(2)` likeliest elements of each part of a row, or of all
/// elements of a smaller part. The remaining ranks are 0.
///
/// A part has `each` columns, and the last parts of a row may have fewer. A row is read once.
///
/// `logits` is [rows, columns], and `ranks` is [rows, parts, k].
#[kernel(
    block = 1024, max_registers = 32, grid = (logits.rows(), ranks.dim(1)), writes(ranks = once),
    instances(T = f32 | f16),
)]
#[requires(ranks.dim(0) == logits.rows(), ranks.dim(2) > 0, each <= 8192)]
pub fn likeliest_of_parts<T: Float>(logits: View<T, 2>, each: usize, mut ranks: ViewMut<u64, 3>) {
    let (row, part) = (block::x(), block::y());
    let k = ranks.dim(2);
    let from = (part * each).min(logits.cols());
    let to = (from + each).min(logits.cols());
    let mut scores = Scores { of: [0; LOADS_AHEAD] };
    for u in unroll(0..LOADS_AHEAD) {
        let i = from + u * THREADS + thread::x();
        if i < to {
            scores.of[u] = orderable(logits[(row, i)].to_f32());
        }
    }
    let (mut prefix, mut bits) = (0u64, 0u32);
    if to - from > k {
        (prefix, bits) = largest::<Scores>(scores, from, to, k as u32);
    }
    // A bit for each kept column.
    let mut kept = 0u32;
    for u in unroll(0..LOADS_AHEAD) {
        let i = from + u * THREADS + thread::x();
        let keep = scores.of[u] != 0 && Scores::rank(scores.of[u], i) >> bits >= prefix;
        kept |= (keep as u32) << u as u32;
    }
    let (before, total) = block::scan(kept.count_ones(), 0, |a, b| a + b);
    let mut at = before as usize;
    for u in unroll(0..LOADS_AHEAD) {
        if kept >> u as u32 & 1 == 1 {
            ranks[(row, part, at)] = Scores::rank(scores.of[u], from + u * THREADS + thread::x());
            at += 1;
        }
    }
    for i in (total as usize + thread::x()..k).step_by(THREADS) {
        ranks[(row, part, i)] = 0;
    }
}

/// Sorts in descending order, and ends with a barrier; the length is a power of two.
#[device]
fn sort_descending<const K: usize>(mut s: Shared<u64, 1>) {
    let mut run = 2;
    while run <= K {
        let mut apart = run / 2;
        while apart > 0 {
            if thread::x() < K / 2 {
                let i = (thread::x() & !(apart - 1)) * 2 + (thread::x() & (apart - 1));
                let (a, b) = (s[i], s[i + apart]);
                if (a < b) == (i & run == 0) {
                    s[i] = b;
                    s[i + apart] = a;
                }
            }
            block::sync();
            apart /= 2;
        }
        run *= 2;
    }
}

/// Draws a token of each row from its `k` ≤ `K` largest ranks: those whose predecessors have less
/// than `top_p` of the probability. Ranks of a row differ, except zeros, which are not elements.
///
/// `ranks` is [rows, ranks of all parts], and `tokens` has one element for each row.
#[kernel(block = 1024, grid = ranks.rows(), instances(K = 64 | 1024), writes(tokens = once))]
#[requires(
    tokens.len() == ranks.rows(), k > 0, k <= K, k <= ranks.cols(), top_p > 0.0,
)]
pub fn sample_top<const K: usize>(
    ranks: View<u64, 2>,
    temperature: Temperature,
    k: usize,
    top_p: f32,
    stream: RandomStream,
    mut tokens: ViewMut<u32, 1>,
) {
    let (row, t) = (block::x(), thread::x());
    let of = Ranks { of: ranks.at(row) };
    let (mut prefix, mut bits) = (0u64, 0u32);
    if k < ranks.cols() {
        (prefix, bits) = largest::<Ranks>(of, 0, ranks.cols(), k as u32);
    }
    let mut s = Shared::<u64, 1>::new([K]);
    let mut count = Shared::<u32, 1>::new([1]);
    if t < K {
        s[t] = 0;
    }
    if t == 0 {
        count[0] = 0;
    }
    block::sync();
    for base in rolled((0..ranks.cols()).step_by(LOADS_AHEAD * THREADS)) {
        let all = of.elements(base, ranks.cols());
        for u in unroll(0..LOADS_AHEAD) {
            if all[u] != 0 && all[u] >> bits >= prefix {
                s[count.fetch_add(0, 1) as usize] = all[u];
            }
        }
    }
    block::sync();
    sort_descending::<K>(s);

    let top = score_of(s[0]).max(f32::MIN) * temperature.scale;
    // The unused elements of the array are zeros, with a score of −∞ and a probability of 0.
    let weight = |rank: u64| math::exp((score_of(rank) * temperature.scale - top) * temperature.inverse);
    let p = if t < K { weight(s[t]) } else { 0.0 };
    let (before, total) = block::scan(p, 0.0, |a, b| a + b);
    // `top_p` = 1 keeps all tokens, although the predecessors' sum may be rounded to the total.
    let within = (top_p >= 1.0) | (before < top_p * total);
    let kept = block::reduce(if p > 0.0 && within { t + 1 } else { 0 }, |a, b| a.max(b));
    // The least likely of the kept tokens first.
    let p = if t < kept { weight(s[kept - 1 - t]) } else { 0.0 };
    let (before, mass) = block::scan(p, 0.0, |a, b| a + b);
    let words = words(stream, row, u32::MAX);
    let aim = uniform(words[0], words[1]) * mass;
    // The last token that begins at or below the target; if none has a probability, the first of
    // the k.
    let who = block::reduce(if p > 0.0 && before <= aim { t + 1 } else { 0 }, |a, b| a.max(b));
    if t == 0 {
        tokens[row] = column_of(s[kept - who]);
    }
}
