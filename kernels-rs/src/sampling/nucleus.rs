//! A draw from the likeliest tokens of a row whose probabilities add up to p (nucleus sampling), by
//! all multiprocessors: four kernels, which read the logits three times.
//!
//! 1. [`ends_of_parts`]: the largest and the smallest logit of each part of a row.
//! 2. [`level_sums`]: the sum of the probabilities of each of 512 levels, which are equal intervals
//!    of the logits from the largest down.
//! 3. [`level_tokens`]: the level in which the sum reaches p, for each part its tokens, and the sum
//!    of the probabilities of all levels above.
//! 4. [`draw_likely`], one block for each row: the search of [`threshold`](super::threshold) among
//!    the tokens of that level, and the draw. A uniform number selects a part or the level, and
//!    then a token. A part is read once more if the number selects it.
//!
//! Probabilities are the integers of [`threshold`](super::threshold), so that all sums are exact.
//! The number selects from the tokens of the levels above in the order of their columns, and then
//! from the level's tokens in descending order. Therefore a draw does not depend on the parts.
//!
//! A level mostly has a few hundred tokens. If a part has more tokens of the level than its list
//! can hold, the search reads the whole row, as [`threshold`](super::threshold) does. An example is
//! a row of equal logits.
//!
//! # Measured
//!
//! For p = 0.9 of 151,936 logits the four kernels take 36 µs on an H100, and 112 µs for 64 rows.
//! Two of the three reads compute an exponential for each token, about 50 instructions. Other
//! designs on an H100:
//!
//! | design | 1 row | 64 rows |
//! |---|---|---|
//! | [`sample_likely`](super::threshold::sample_likely), one block for each row | 311 | 318 |
//! | the same with digits of 11 bits and eight loads in flight | 239 | 241 |
//! | a launch for each digit, sums in global memory, blocks of 4096 columns | 26 | 174 |
//! | the same with blocks of 16,384 columns | 33 | 124 |
//!
//! The designs with a launch for each digit have eight launches. Levels instead of digits of the
//! bits spread logits evenly, whatever their exponents are, so that one pass suffices.

use super::best::{Temperature, column_of, score_of};
use super::random::{RandomStream, words};
use super::threshold::{Candidates, Measure, candidate, ceil_fraction, find_digit, weight};
use kernel_dsl::prelude::*;

/// The number of levels, and of threads of the kernels of parts.
#[device]
pub const LEVELS: usize = 512;

/// Threads of the draw.
#[device]
const THREADS: usize = 1024;

/// The columns of a thread that are loaded before one is used.
#[device]
const LOADS_AHEAD: usize = 4;

/// The bits of the lower word of a probability. 2048 lower words add up to less than 2³², and so do
/// 2048 upper words, which have 20 bits.
#[device]
const LOW_BITS: u32 = 21;

/// The difference of logits, divided by the temperature, whose probability is below 2⁻⁴⁰.
#[device]
const RANGE: f32 = 28.0;

/// The largest and the smallest logit of a part; −∞ and ∞ if it has none.
#[device]
#[derive(Clone, Copy, Debug, DeviceCopy)]
#[repr(C)]
pub struct Ends {
    /// The largest.
    pub largest: f32,
    /// The smallest.
    pub smallest: f32,
}

/// Returns the ends of two parts together.
#[device]
fn merge_ends(a: Ends, b: Ends) -> Ends {
    Ends { largest: a.largest.max(b.largest), smallest: a.smallest.min(b.smallest) }
}

/// Returns the ends of no logits.
#[device]
fn no_ends() -> Ends {
    Ends { largest: f32::NEG_INFINITY, smallest: f32::INFINITY }
}

/// Returns the first column of a part and that of the next part.
#[device]
fn columns(part: usize, parts: usize, cols: usize) -> [usize; 2] {
    let each = cols.div_ceil(parts);
    let first = (part * each).min(cols);
    [first, (first + each).min(cols)]
}

/// Loads the thread's logits of the columns from `base` on, all before the first is used. A column
/// from `end` on gives a NaN.
#[device]
fn loaded<T: Float>(logits: View<T, 2>, row: usize, base: usize, end: usize) -> [T; LOADS_AHEAD] {
    let mut x = [T::from_f32(f32::NAN); LOADS_AHEAD];
    for u in unroll(0..LOADS_AHEAD) {
        let i = base + u * LEVELS + thread::x();
        if i < end {
            x[u] = logits[(row, i)];
        }
    }
    x
}

/// The levels of a row's logits.
#[device]
#[derive(Clone, Copy)]
pub struct Levels {
    /// The parameters of probabilities.
    pub measure: Measure,
    /// The number of levels per unit of the difference of logits divided by the temperature.
    pub per: f32,
}

/// Returns the level of a logit: 0 for the largest. A larger logit never has a larger level, and a
/// NaN has the level of −∞.
#[device]
pub fn level_of(x: f32, levels: Levels) -> usize {
    let of = levels.measure;
    let below = x.max(f32::NEG_INFINITY).mul_add(of.temperature.scale, -of.scaled) * of.temperature.inverse;
    let level = (-below * levels.per) as usize;
    if x == of.top { 0 } else { level.min(LEVELS - 1) }
}

/// Returns the levels of a row whose logits have these ends.
#[device]
pub fn levels_between(ends: Ends, temperature: Temperature, unit: f32) -> Levels {
    let scaled = ends.largest * temperature.scale;
    let lowest = ends.smallest.mul_add(temperature.scale, -scaled) * temperature.inverse;
    // The difference of equal infinities is a NaN, which `min` replaces by `RANGE`.
    let range = (-lowest).min(RANGE).max(f32::MIN_POSITIVE);
    let per = (LEVELS as f32 / range).min(f32::MAX);
    Levels { measure: Measure { top: ends.largest, scaled, temperature, unit }, per }
}

/// Returns the levels of a row from the ends of its parts, and ends with a barrier.
#[device]
fn levels(ends: View<Ends, 1>, temperature: Temperature, unit: f32) -> Levels {
    let mut own = no_ends();
    for part in (thread::x()..ends.len()).step_by(LEVELS) {
        own = merge_ends(own, ends[part]);
    }
    levels_between(block::reduce(own, merge_ends), temperature, unit)
}

/// The level in which the sum of probabilities reaches p.
#[device]
#[derive(Clone, Copy)]
struct Cut {
    level: usize,
    /// The sum of all levels above.
    above: u64,
    /// The sum that the tokens of the level must reach.
    need: u64,
}

/// Returns the level in which the sum reaches `top_p` / 2³² of the total. If the largest logit is
/// ∞, the first token suffices. The search ends with a barrier.
#[device]
fn cut(sums: View<u64, 1>, top_p: u32, of: Measure) -> Cut {
    let t = thread::x();
    let mut found = Shared::<u32, 1>::new([1]);
    let mut rest = Shared::<u64, 1>::new([2]);
    if t == 0 {
        // A row without probabilities has no cut.
        found[0] = 0;
        rest[0] = 0;
        rest[1] = 0;
    }
    let here = if t < LEVELS { sums[t] } else { 0 };
    let (before, total) = block::scan(here, 0u64, |a, b| a + b);
    let need = if of.top == f32::INFINITY { 1 } else { ceil_fraction(total, top_p) };
    if before < need && need <= before + here {
        found[0] = t as u32;
        rest[0] = before;
        rest[1] = need - before;
    }
    block::sync();
    Cut { level: found[0] as usize, above: rest[0], need: rest[1] }
}

/// Finds the ends of each part of a row, and sets the row's sums to 0.
///
/// `logits` is [rows, columns], `ends` is [rows, parts], and `sums` is [rows, 512].
#[kernel(block = 512, grid = (logits.rows(), ends.cols()), instances(T = f32), writes(ends = once, sums = once))]
#[requires(ends.rows() == logits.rows(), ends.cols() > 0, sums.rows() == logits.rows(), sums.cols() == 512)]
pub fn ends_of_parts<T: Float>(logits: View<T, 2>, mut ends: ViewMut<Ends, 2>, mut sums: ViewMut<u64, 2>) {
    let (row, part, t) = (block::x(), block::y(), thread::x());
    let [first, end] = columns(part, ends.cols(), logits.cols());
    if part == 0 {
        sums[(row, t)] = 0;
    }
    let mut own = no_ends();
    for base in (first..end).step_by(LOADS_AHEAD * LEVELS) {
        let x = loaded(logits, row, base, end);
        for u in unroll(0..LOADS_AHEAD) {
            let x = x[u].to_f32();
            own = merge_ends(own, Ends { largest: x, smallest: x });
        }
    }
    let all = block::reduce(own, merge_ends);
    if t == 0 {
        ends[(row, part)] = all;
    }
}

/// Adds the probabilities of each part's tokens to the sums of the row's levels.
///
/// `logits` is [rows, columns], `ends` is [rows, parts], and `sums` is [rows, 512].
#[kernel(block = 512, grid = (logits.rows(), ends.cols()), instances(T = f32))]
#[requires(
    ends.rows() == logits.rows(), ends.cols() > 0, sums.rows() == logits.rows(), sums.cols() == 512,
    unit >= 1.0, unit <= 1_099_511_627_776.0,
)]
pub fn level_sums<T: Float>(
    logits: View<T, 2>,
    ends: View<Ends, 2>,
    temperature: Temperature,
    unit: f32,
    sums: ViewMut<u64, 2>,
) {
    let (row, part, t) = (block::x(), block::y(), thread::x());
    let [first, end] = columns(part, ends.cols(), logits.cols());
    let levels = levels(ends.at(row), temperature, unit);
    let mut low = Shared::<u32, 1>::new([LEVELS]);
    let mut high = Shared::<u32, 1>::new([LEVELS]);
    low[t] = 0;
    high[t] = 0;
    let mut own = 0u64;
    for base in rolled((first..end).step_by(LOADS_AHEAD * LEVELS)) {
        let x = loaded(logits, row, base, end);
        block::sync();
        for u in unroll(0..LOADS_AHEAD) {
            let x = x[u].to_f32();
            let own = weight(x, levels.measure);
            if own > 0 {
                let level = level_of(x, levels);
                low.fetch_add(level, own as u32 & ((1 << LOW_BITS) - 1));
                high.fetch_add(level, (own >> LOW_BITS) as u32);
            }
        }
        block::sync();
        own += ((high[t] as u64) << LOW_BITS) + low[t] as u64;
        low[t] = 0;
        high[t] = 0;
    }
    if own > 0 {
        sums.fetch_add((row, t), own);
    }
}

/// Adds the probabilities of each part's tokens above the level in which the sum reaches `top_p` /
/// 2³², and lists the columns of that level's tokens.
///
/// `counts` has the number of these tokens, which may exceed the length of the list.
///
/// `above` and `counts` are [rows, parts], and `listed` is [rows, parts, length of a list].
#[kernel(
    block = 512, grid = (logits.rows(), ends.cols()), instances(T = f32), writes(above = once, counts = once),
)]
#[requires(
    ends.rows() == logits.rows(), ends.cols() > 0, sums.rows() == logits.rows(), sums.cols() == 512,
    above.rows() == logits.rows(), above.cols() == ends.cols(), counts.rows() == logits.rows(),
    counts.cols() == ends.cols(), listed.dim(0) == logits.rows(), listed.dim(1) == ends.cols(),
)]
pub fn level_tokens<T: Float>(
    logits: View<T, 2>,
    ends: View<Ends, 2>,
    temperature: Temperature,
    unit: f32,
    top_p: u32,
    sums: View<u64, 2>,
    mut above: ViewMut<u64, 2>,
    mut counts: ViewMut<u32, 2>,
    mut listed: ViewMut<u32, 3>,
) {
    let (row, part, t) = (block::x(), block::y(), thread::x());
    let [first, end] = columns(part, ends.cols(), logits.cols());
    let levels = levels(ends.at(row), temperature, unit);
    let cut = cut(sums.at(row), top_p, levels.measure);
    let (mut own, mut count) = (0u64, 0u32);
    for base in (first..end).step_by(LOADS_AHEAD * LEVELS) {
        let x = loaded(logits, row, base, end);
        for u in unroll(0..LOADS_AHEAD) {
            let x = x[u].to_f32();
            let level = level_of(x, levels);
            if level < cut.level {
                own += weight(x, levels.measure);
            }
            if base + u * LEVELS + t < end && level == cut.level {
                count += 1;
            }
        }
    }
    let own = block::sum(own);
    let (before, total) = block::scan(count, 0u32, |a, b| a + b);
    if count > 0 {
        let mut at = before as usize;
        for i in (first + t..end).step_by(LEVELS) {
            if level_of(logits[(row, i)].to_f32(), levels) == cut.level {
                if at < listed.dim(2) {
                    listed[(row, part, at)] = i as u32;
                }
                at += 1;
            }
        }
    }
    if t == 0 {
        above[(row, part)] = own;
        counts[(row, part)] = total;
    }
}

#[device]
mod level {
    use super::{Candidates, Levels, level_of, score_of};
    use kernel_dsl::prelude::*;

    /// The tokens of a level.
    #[derive(Clone, Copy)]
    pub struct OfLevel {
        /// The number of tokens of the row.
        pub tokens: usize,
        /// The level.
        pub level: usize,
        /// The levels of the row.
        pub levels: Levels,
        /// Whether the lists of the parts have all tokens of the level.
        pub complete: bool,
        /// The number of listed tokens of each part.
        pub counts: View<u32, 1>,
        /// The columns of the parts' tokens.
        pub listed: View<u32, 2>,
    }

    impl Candidates for OfLevel {
        fn places(&self) -> usize {
            if self.complete { self.counts.len() * self.listed.cols() } else { self.tokens }
        }
        fn column(&self, place: usize) -> u32 {
            let mut column = place as u32;
            if self.complete {
                // The length of a list is a power of two.
                let part = place >> (self.listed.cols() as u32).trailing_zeros();
                let at = place & (self.listed.cols() - 1);
                column = u32::MAX;
                if (at as u32) < self.counts[part] {
                    column = self.listed[(part, at)];
                }
            }
            column
        }
        fn includes(&self, rank: u64) -> bool {
            level_of(score_of(rank), self.levels) == self.level
        }
    }
}

use level::*;

/// Draws a token of each row from the results of [`ends_of_parts`], [`level_sums`] and
/// [`level_tokens`] for the same logits, temperature, `unit` and `top_p`.
///
/// If all logits are −∞ or NaN, the first token is drawn.
///
/// `tokens` has one element for each row. The other arrays have the extents of [`level_sums`] and
/// [`level_tokens`].
#[kernel(block = 1024, grid = logits.rows(), instances(T = f32), writes(tokens = once))]
#[requires(
    ends.rows() == logits.rows(), ends.cols() > 0, ends.cols() <= 1024, sums.rows() == logits.rows(),
    sums.cols() == 512, above.rows() == logits.rows(), above.cols() == ends.cols(),
    counts.rows() == logits.rows(), counts.cols() == ends.cols(), listed.dim(0) == logits.rows(),
    listed.dim(1) == ends.cols(), listed.dim(2) > 0, listed.dim(2) & (listed.dim(2) - 1) == 0,
    tokens.len() == logits.rows(), logits.cols() > 0, top_p > 0,
)]
pub fn draw_likely<T: Float>(
    logits: View<T, 2>,
    ends: View<Ends, 2>,
    temperature: Temperature,
    unit: f32,
    top_p: u32,
    sums: View<u64, 2>,
    above: View<u64, 2>,
    counts: View<u32, 2>,
    listed: View<u32, 3>,
    stream: RandomStream,
    mut tokens: ViewMut<u32, 1>,
) {
    let (row, t, parts) = (block::x(), thread::x(), ends.cols());
    let of_row = logits.at(row);
    let levels = levels(ends.at(row), temperature, unit);
    if levels.measure.top == f32::NEG_INFINITY {
        if t == 0 {
            tokens[row] = 0;
        }
        return;
    }
    let cut = cut(sums.at(row), top_p, levels.measure);
    let count = if t < parts { counts[(row, t)] } else { 0 };
    let longest = block::max(count);
    let complete = longest as usize <= listed.dim(2);
    let of = OfLevel {
        tokens: logits.cols(),
        level: cut.level,
        levels,
        complete,
        counts: counts.at(row),
        listed: listed.at(row),
    };

    // The bits that all ranks of the level have in common need no search.
    let (mut least, mut most) = (u64::MAX, 0u64);
    for place in (t..of.places()).step_by(THREADS) {
        let rank = candidate::<T, OfLevel>(of_row, of, place);
        if rank != 0 {
            least = least.min(rank);
            most = most.max(rank);
        }
    }
    let least = block::reduce(least, |a, b| a.min(b));
    let most = block::reduce(most, |a, b| a.max(b));
    let bits = 64 - (least ^ most).leading_zeros().min(63);
    let prefix = if bits == 64 { 0 } else { most >> bits };

    let words = words(stream, row, u32::MAX);
    let random = (words[0] as u64) << 32 | words[1] as u64;
    let mut need = cut.need;
    let mut aim = 0u64;
    let mut token = 0u32;
    // Pass 0 finds the threshold; pass 1, if the draw is in the level, finds the drawn token.
    for pass in rolled(0..2) {
        let reached = find_digit::<T, OfLevel, true>(of_row, of, need, levels.measure, prefix, bits);
        if pass == 0 {
            aim = int::mul_hi(random, cut.above + reached.all);
            if aim < cut.above {
                break;
            }
            need = aim - cut.above + 1;
        } else {
            // Finds the smallest rank of the digit.
            let mut last = u64::MAX;
            for place in (t..of.places()).step_by(THREADS) {
                let rank = candidate::<T, OfLevel>(of_row, of, place);
                if rank != 0 && rank >> reached.bits == reached.prefix {
                    last = last.min(rank);
                }
            }
            token = column_of(block::reduce(last, |a, b| a.min(b)));
        }
    }
    if aim >= cut.above {
        if t == 0 {
            tokens[row] = token;
        }
        return;
    }
    // Finds the part.
    let mut chosen = Shared::<u32, 1>::new([1]);
    let mut rest = Shared::<u64, 1>::new([1]);
    let own = if t < parts { above[(row, t)] } else { 0 };
    let (before, _all) = block::scan(own, 0u64, |a, b| a + b);
    if before <= aim && aim < before + own {
        chosen[0] = t as u32;
        rest[0] = aim - before;
    }
    block::sync();
    let [first, end] = columns(chosen[0] as usize, parts, logits.cols());
    let aim = rest[0];
    // Finds the thread, whose columns follow each other, and its token.
    let each = (end - first).div_ceil(THREADS);
    let from = (first + t * each).min(end);
    let to = (from + each).min(end);
    let mut own = 0u64;
    for i in from..to {
        let x = of_row[i].to_f32();
        if level_of(x, levels) < cut.level {
            own += weight(x, levels.measure);
        }
    }
    let (before, _all) = block::scan(own, 0u64, |a, b| a + b);
    if before <= aim && aim < before + own {
        let mut left = aim - before;
        for i in from..to {
            let x = of_row[i].to_f32();
            if level_of(x, levels) < cut.level {
                let own = weight(x, levels.measure);
                if left < own {
                    tokens[row] = i as u32;
                    break;
                }
                left -= own;
            }
        }
    }
}
