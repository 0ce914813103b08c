//! A draw from the likeliest tokens of a row, by one block of 1024 threads.
//!
//! 1. Radix select: the rank of the k-th likeliest, 8 bits per round from the top. A round counts
//!    the digits of the ranks with the prefix found so far. It ends early if a whole digit is
//!    needed, mostly after three or four rounds.
//! 2. The k tokens above are moved to shared memory, in any order, and sorted: bitonic (Batcher,
//!    1968).
//! 3. Their exponentials, sums of them from the likeliest down, and the cut at p.
//! 4. Sums from the least likely up, and the draw. Small sums and small random numbers have the
//!    most bits, so that the frequencies of rare tokens are accurate.
//!
//! Atomics only count, and their arbitrary order is removed by the sort, so that draws are
//! deterministic.

use super::best::{Temperature, column_of, rank, score_of};
use super::random::{Stream, uniform, words};
use kernel_dsl::prelude::*;

/// Threads of a block.
#[device]
const THREADS: usize = 1024;

/// Sorts in descending order; the length is a power of two. It ends with a barrier.
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

/// Draws a token of each row, from the `k` likeliest, `K` at most, whose predecessors have less
/// than `top_p` of their probability.
#[kernel(block = 1024, grid = logits.rows(), instances(T = f32, K = 64 | 1024), writes(tokens = once))]
#[requires(
    tokens.len() == logits.rows(), k > 0, k <= K, k <= logits.cols(), top_p > 0.0,
)]
pub fn sample_top<T: Float, const K: usize>(
    logits: View<T, 2>,
    temperature: Temperature,
    k: usize,
    top_p: f32,
    stream: Stream,
    mut tokens: ViewMut<u32, 1>,
) {
    let of_row = logits.at(block::x());
    let t = thread::x();
    let mut found = Shared::<u32, 1>::new([3]);
    let (mut prefix, mut need, mut bits) = (0u64, k as u32, 64u32);
    {
        let mut counts = Shared::<u32, 1>::new([256]);
        for round in rolled(0..8) {
            let shift = (56 - 8 * round) as u32;
            if t < 256 {
                counts[t] = 0;
            }
            block::sync();
            for i in (t..of_row.len()).step_by(THREADS) {
                let key = rank(of_row[i].to_f32(), i);
                if bits == 64 || key >> bits == prefix {
                    counts.fetch_add((key >> shift) as usize & 255, 1);
                }
            }
            block::sync();
            // From the largest digit down, finds the one that contains the k-th.
            let mut here = 0;
            if t < 256 {
                here = counts[255 - t];
            }
            let (before, _all) = block::scan(here, 0, |a, b| a + b);
            if before < need && need <= before + here {
                found[0] = 255 - t as u32;
                found[1] = need - before;
                found[2] = here;
            }
            block::sync();
            prefix = prefix << 8 | found[0] as u64;
            bits = shift;
            need = found[1];
            if found[2] == need {
                break;
            }
        }
    }

    let mut s = Shared::<u64, 1>::new([K]);
    let mut count = Shared::<u32, 1>::new([1]);
    block::sync();
    if t < K {
        s[t] = 0;
    }
    if t == 0 {
        count[0] = 0;
    }
    block::sync();
    for i in (t..of_row.len()).step_by(THREADS) {
        let key = rank(of_row[i].to_f32(), i);
        if key >> bits >= prefix {
            s[count.fetch_add(0, 1) as usize] = key;
        }
    }
    block::sync();
    sort_descending::<K>(s);

    let top = score_of(s[0]).max(f32::MIN) * temperature.scale;
    // The unused elements of the array are zeros, with a score of −∞ and a probability of 0.
    let weight = |rank: u64| math::exp((score_of(rank) * temperature.scale - top) * temperature.inverse);
    let p = if t < K { weight(s[t]) } else { 0.0 };
    let (before, total) = block::scan(p, 0.0, |a, b| a + b);
    // All tokens if top_p is 1: the sum of the predecessors may be rounded to the total.
    let within = (top_p >= 1.0) | (before < top_p * total);
    let kept = block::reduce(if p > 0.0 && within { t + 1 } else { 0 }, |a, b| a.max(b));
    // The least likely of the kept tokens first.
    let p = if t < kept { weight(s[kept - 1 - t]) } else { 0.0 };
    let (before, mass) = block::scan(p, 0.0, |a, b| a + b);
    let words = words(stream, block::x(), u32::MAX);
    let aim = uniform(words[0], words[1]) * mass;
    // The last token that begins at or below the target; if none has a probability, the first of
    // the k.
    let who = block::reduce(if p > 0.0 && before <= aim { t + 1 } else { 0 }, |a, b| a.max(b));
    if t == 0 {
        tokens[block::x()] = column_of(s[kept - who]);
    }
}
