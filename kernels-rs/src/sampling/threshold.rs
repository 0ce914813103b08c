//! A draw from any number of the likeliest tokens of a row, by one block of 1024 threads, without a
//! sort.
//!
//! The kept tokens are those with at least a threshold rank, so that nothing has to be stored:
//!
//! 1. the rank of the k-th likeliest, as in [`top`](super::top): 8 bits per round from the top, by
//!    counts of digits;
//! 2. the rank of the last token whose predecessors add up to less than p: the same search, by sums
//!    of probabilities instead of counts;
//! 3. the arg-max of logits with Gumbel noise above the threshold, as in [`best`](super::best): a
//!    draw from the softmax of the kept tokens.
//!
//! Probabilities, e^((x − max) / T), are added as integer multiples of 2⁻⁴⁰ (of 2⁻³¹ if a row is so
//! long that 64 bits would overflow). These sums do not depend on their order. Therefore draws are
//! deterministic, and the threshold is exact for probabilities rounded to `f32`. A 64-bit sum is
//! two words in shared memory. The carry of the lower word is added to the upper one, so that both
//! use native atomics. A row is read once for its maximum, once for the sum, about four times for
//! each search, and once for the draw: from the L2 cache after the first time.
//!
//! [`nucleus`](super::nucleus) has the same search among the few tokens of a level.

use super::best::{Temperature, beats, better, no_element, noisy, rank, score_of};
use super::random::{RandomStream, gumbel, words};
use kernel_dsl::prelude::*;

/// Threads of a block.
#[device]
const THREADS: usize = 1024;

/// The parameters of probabilities: the row's largest logit, unscaled and scaled, the temperature,
/// and the integer that represents 1.
#[device]
#[derive(Clone, Copy)]
pub struct Measure {
    /// The largest logit.
    pub top: f32,
    /// The largest logit times the temperature's scale.
    pub scaled: f32,
    /// The temperature.
    pub temperature: Temperature,
    /// The integer that represents 1.
    pub unit: f32,
}

/// Returns the difference of a logit from the largest, divided by the temperature.
///
/// Logits are scaled before they are subtracted, so that differences are finite if the temperature
/// is large.
#[device]
pub fn distance(x: f32, of: Measure) -> f32 {
    x.mul_add(of.temperature.scale, -of.scaled) * of.temperature.inverse
}

/// Returns the probability of a logit with a [`distance`] from the largest, relative to that of the
/// largest, in units; a NaN for a NaN.
#[device]
pub fn units_below(x: f32, below: f32, of: Measure) -> f32 {
    let e = if x == of.top { 1.0 } else { math::exp(below) };
    e * of.unit
}

/// Returns the probability of a logit relative to the largest, in units; 0 for a NaN.
#[device]
pub fn weight(x: f32, of: Measure) -> u64 {
    units_below(x, distance(x, of), of) as u64
}

#[device]
mod candidates {
    use super::rank;
    use kernel_dsl::prelude::*;

    /// The tokens of a row among which a threshold is searched.
    pub trait Candidates: Copy {
        /// Returns the number of places, at least the number of candidates.
        fn places(self) -> usize;
        /// Returns the rank of the candidate at a place; 0 for none.
        fn rank(self, place: usize) -> u64;
    }

    /// The tokens with at least a rank.
    #[derive(Clone, Copy)]
    pub struct Above<T: Float> {
        /// The logits of the row.
        pub row: View<T, 1>,
        /// The least rank.
        pub floor: u64,
    }

    impl<T: Float> Candidates for Above<T> {
        fn places(self) -> usize {
            self.row.len()
        }
        fn rank(self, place: usize) -> u64 {
            let own = rank(self.row[place].to_f32(), place);
            if own >= self.floor { own } else { 0 }
        }
    }
}

pub use candidates::*;

/// A digit of ranks at which a search ended.
#[device]
#[derive(Clone, Copy)]
pub struct ReachedDigit {
    /// The upper bits of its ranks, all but the lower `bits`.
    pub prefix: u64,
    /// The number of lower bits.
    pub bits: u32,
    /// The number or weight of all candidates from the largest to the digit's smallest.
    pub all: u64,
}

/// Returns the first digit, from the largest down, with which the candidates so far reach `need`:
/// by their number or, if `WEIGHED` is true, by their weight. All candidates together must reach
/// `need`, which must not be 0. All ranks have the upper bits `prefix`, all but the lower `bits`.
/// The search ends with a barrier.
#[device]
pub fn find_digit<C: Candidates, const WEIGHED: bool>(
    candidates: C,
    need: u64,
    of: Measure,
    prefix: u64,
    bits: u32,
) -> ReachedDigit {
    let t = thread::x();
    let mut counts = Shared::<u32, 1>::new([256]);
    let mut low = Shared::<u32, 1>::new([256]);
    let mut high = Shared::<u32, 1>::new([256]);
    let mut found = Shared::<u32, 1>::new([2]);
    let mut rest = Shared::<u64, 1>::new([2]);
    let (mut prefix, mut left, mut bits, mut all) = (prefix, need, bits, need);
    for _round in rolled(0..8) {
        let shift = if bits > 8 { bits - 8 } else { 0 };
        if t < 256 {
            counts[t] = 0;
            if WEIGHED {
                low[t] = 0;
                high[t] = 0;
            }
        }
        block::sync();
        for i in block::stride(candidates.places()) {
            let key = candidates.rank(i);
            if key != 0 && (bits == 64 || key >> bits == prefix) {
                let digit = ((key >> shift) as u32 & ((1 << (bits - shift)) - 1)) as usize;
                counts.fetch_add(digit, 1);
                if WEIGHED {
                    let own = weight(score_of(key), of);
                    let before = low.fetch_add(digit, own as u32);
                    let carried = before.wrapping_add(own as u32) < before;
                    let upper = (own >> 32) as u32 + carried as u32;
                    if upper > 0 {
                        high.fetch_add(digit, upper);
                    }
                }
            }
        }
        block::sync();
        // From the largest digit down, finds the one that reaches `need`.
        let mut here = 0u64;
        let mut count = 0u32;
        if t < 256 {
            count = counts[255 - t];
            here = if WEIGHED { (high[255 - t] as u64) << 32 | low[255 - t] as u64 } else { count as u64 };
        }
        let (before, _all) = block::scan(here, 0u64, |a, b| a + b);
        if before < left && left <= before + here {
            found[0] = 255 - t as u32;
            found[1] = (here == left - before || WEIGHED && count == 1) as u32;
            rest[0] = left - before;
            rest[1] = here;
        }
        block::sync();
        prefix = prefix << (bits - shift) | found[0] as u64;
        bits = shift;
        left = rest[0];
        all = need - left + rest[1];
        if found[1] == 1 {
            break;
        }
    }
    block::sync();
    ReachedDigit { prefix, bits, all }
}

/// Returns ⌈total · p / 2³²⌉ for a total below 2⁶³.
#[device]
pub fn ceil_fraction(total: u64, p: u32) -> u64 {
    let low = (total & 0xffff_ffff) * p as u64;
    (total >> 32) * p as u64 + (low >> 32) + (low & 0xffff_ffff > 0) as u64
}

/// Draws a token of each row, from the `k` likeliest, or from all if `k` is 0.
///
/// The draw keeps the tokens whose predecessors have less than `top_p` / 2³² of the probability, or
/// all if `top_p` is 0. `unit`, a power of two, represents 1, and is small enough that a row's sum
/// stays below 2⁶³.
///
/// `logits` is [rows, columns], and `tokens` has one element for each row.
#[kernel(block = 1024, grid = logits.rows(), instances(T = f32), writes(tokens = once))]
#[requires(tokens.len() == logits.rows(), k <= logits.cols(), logits.cols() > 0, unit >= 1.0)]
pub fn sample_likely<T: Float>(
    logits: View<T, 2>,
    temperature: Temperature,
    k: usize,
    top_p: u32,
    unit: f32,
    stream: RandomStream,
    mut tokens: ViewMut<u32, 1>,
) {
    let of_row = logits.at(block::x());
    let t = thread::x();
    let mut of = Measure { top: 0.0, scaled: 0.0, temperature, unit };
    let mut floor = 0u64;
    if k > 0 {
        let reached = find_digit::<Above<T>, false>(Above { row: of_row, floor }, k as u64, of, 0, 64);
        floor = reached.prefix << reached.bits;
    }
    if top_p > 0 {
        let mut top = f32::NEG_INFINITY;
        for i in (t..of_row.len()).step_by(THREADS) {
            top = top.max(of_row[i].to_f32());
        }
        of.top = block::max(top);
        of.scaled = of.top * temperature.scale;
        let mut own = 0u64;
        for i in (t..of_row.len()).step_by(THREADS) {
            let x = of_row[i].to_f32();
            if rank(x, i) >= floor {
                own += weight(x, of);
            }
        }
        let total = block::sum(own);
        // If a row has only NaNs, no token is kept.
        if total > 0 {
            let need = ceil_fraction(total, top_p);
            let reached = find_digit::<Above<T>, true>(Above { row: of_row, floor }, need, of, 0, 64);
            // If a whole digit is needed, only its elements from the floor on are kept.
            floor = (reached.prefix << reached.bits).max(floor);
        }
    }
    let mut best = no_element();
    for at in (4 * t..of_row.len()).step_by(4 * THREADS) {
        let mut x = [0.0f32; 4];
        let mut kept = [false; 4];
        for i in unroll(0..4) {
            if at + i < of_row.len() {
                x[i] = of_row[at + i].to_f32();
                kept[i] = rank(x[i], at + i) >= floor;
            }
        }
        if kept[0] || kept[1] || kept[2] || kept[3] {
            let words = words(stream, block::x(), (at / 4) as u32);
            for i in unroll(0..4) {
                if kept[i] {
                    let one = noisy(x[i], gumbel(words[i], words[(i + 1) % 4]), at + i, temperature);
                    if beats(one, best) {
                        best = one;
                    }
                }
            }
        }
    }
    let best = block::reduce(best, better);
    if t == 0 {
        // If only −∞ and NaN are kept, the row has nothing else, and the first token is the
        // likeliest.
        tokens[block::x()] = if best.column == u32::MAX { 0 } else { best.column };
    }
}
