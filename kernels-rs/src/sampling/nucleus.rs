//! A draw from the likeliest tokens of a row whose probabilities add up to p (nucleus sampling), by
//! all multiprocessors: four kernels, which read the logits three times.
//!
//! 1. [`ends_of_parts`]: the largest and the smallest logit of each part of a row.
//! 2. [`level_sums`]: the sums of probabilities by levels, for each part and for the row. The 512
//!    levels are equal intervals of the logits from the largest down.
//! 3. [`level_tokens`]: the level in which the sum reaches p, and its tokens in each part.
//! 4. [`draw_likely`], one block for each row: the search of [`threshold`](super::threshold) among
//!    the tokens of that level, and the draw. A uniform number selects a level, a part and a token.
//!    A part is read once more if the number selects it.
//!
//! Probabilities are the integers of [`threshold`](super::threshold), so that all sums are exact.
//! The number selects first from the tokens of the levels above, in the order of levels and then of
//! columns. The level's tokens follow in descending order. Therefore a draw does not depend on the
//! parts.
//!
//! A level mostly has a few hundred tokens, which the draw keeps in shared memory. If it has more
//! than 2048, or a part has more than its list can hold, the search reads the whole row, as
//! [`threshold`](super::threshold) does. An example is a row of equal logits.
//!
//! # Measured
//!
//! For p = 0.9 of 151,936 logits on an H200, in µs:
//!
//! | design | 1 row | 64 rows |
//! |---|---|---|
//! | tokens of the level are read from the lists in each round; each probability is computed twice | 35.5 | 105.9 |
//! | tokens of the level in shared memory; sums of parts by levels instead of exponentials in [`level_tokens`] | 25.7 | 82.2 |
//! | selection by levels, so that the draw computes few exponentials | 25.3 | 74.5 |
//! | loads of the next step in flight; all threads search the token | 24.8 | 72.8 |
//! | 512 instead of 1024 threads draw | **21.7** | **73.7** |
//!
//! For 64 rows, [`level_sums`] and the draw take a third of the time each. The first executes 58
//! instructions for each token, and the second has a block for each row. Designs before these, on
//! an H100:
//!
//! | design | 1 row | 64 rows |
//! |---|---|---|
//! | [`sample_likely`](super::threshold::sample_likely), one block for each row | 311 | 318 |
//! | the same with digits of 11 bits and eight loads in flight | 239 | 241 |
//! | a launch for each digit, sums in global memory, blocks of 4096 columns | 26 | 174 |
//! | the same with blocks of 16,384 columns | 33 | 124 |
//! | the first design above | 36 | 112 |
//!
//! The designs with a launch for each digit have eight launches. Levels instead of digits of the
//! bits spread logits evenly, whatever their exponents are, so that one pass suffices.

use super::best::{Temperature, column_of, rank};
use super::random::{RandomStream, words};
use super::threshold::{Candidates, Measure, ceil_fraction, distance, find_digit, units_below, weight};
use kernel_dsl::prelude::*;

/// The number of levels, and of threads of a block.
#[device]
pub const LEVELS: usize = 512;

/// The columns of a thread that are loaded before one is used.
#[device]
const LOADS_AHEAD: usize = 8;

/// The columns of a thread that a step loads while the step before runs. [`LOW_BITS`] limits them.
#[device]
const STEP: usize = 4;

/// The number of tokens of a level that a block keeps in shared memory.
#[device]
const MAX_GATHERED: usize = 2048;

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
fn loaded<T: Float, const N: usize>(logits: View<T, 2>, row: usize, base: usize, end: usize) -> [T; N] {
    let mut x = [T::from_f32(f32::NAN); N];
    for u in unroll(0..N) {
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
    let x = x.max(f32::NEG_INFINITY);
    level_below(x, distance(x, levels.measure), levels)
}

/// Returns the level of a logit with a [`distance`] from the largest.
#[device]
fn level_below(x: f32, below: f32, levels: Levels) -> usize {
    let level = (-below * levels.per) as usize;
    if x == levels.measure.top { 0 } else { level.min(LEVELS - 1) }
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
    let here = sums[t];
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
        let x = loaded::<T, LOADS_AHEAD>(logits, row, base, end);
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

/// Computes the sums of the probabilities of each part's tokens by levels, and adds them to the
/// sums of the row.
///
/// `logits` is [rows, columns], `ends` is [rows, parts], `sums` is [rows, 512], and `of_parts` is
/// [rows, parts, 512].
#[kernel(block = 512, grid = (logits.rows(), ends.cols()), instances(T = f32), writes(of_parts = once))]
#[requires(
    ends.rows() == logits.rows(), ends.cols() > 0, sums.rows() == logits.rows(), sums.cols() == 512,
    of_parts.dim(0) == logits.rows(), of_parts.dim(1) == ends.cols(), of_parts.dim(2) == 512,
    unit >= 1.0, unit <= 1_099_511_627_776.0,
)]
pub fn level_sums<T: Float>(
    logits: View<T, 2>,
    ends: View<Ends, 2>,
    temperature: Temperature,
    unit: f32,
    sums: ViewMut<u64, 2>,
    mut of_parts: ViewMut<u64, 3>,
) {
    let (row, part, t) = (block::x(), block::y(), thread::x());
    let [first, end] = columns(part, ends.cols(), logits.cols());
    // Loads are in flight while the levels are computed, and while a step is.
    let mut next = loaded::<T, STEP>(logits, row, first, end);
    let levels = levels(ends.at(row), temperature, unit);
    let mut low = Shared::<u32, 1>::new([LEVELS]);
    let mut high = Shared::<u32, 1>::new([LEVELS]);
    low[t] = 0;
    high[t] = 0;
    let mut own = 0u64;
    for base in rolled((first..end).step_by(STEP * LEVELS)) {
        let x = next;
        next = loaded::<T, STEP>(logits, row, base + STEP * LEVELS, end);
        block::sync();
        for u in unroll(0..STEP) {
            let x = x[u].to_f32().max(f32::NEG_INFINITY);
            let below = distance(x, levels.measure);
            let [lower, upper] = words_of(units_below(x, below, levels.measure));
            if lower | upper > 0 {
                let level = level_below(x, below, levels);
                low.fetch_add(level, lower);
                high.fetch_add(level, upper);
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
    of_parts[(row, part, t)] = own;
}

/// Returns the lower [`LOW_BITS`] bits of a number of units, and the upper bits. Conversions to
/// 64-bit integers are slow.
#[device]
fn words_of(units: f32) -> [u32; 2] {
    let upper = (units * (1.0 / (1 << LOW_BITS) as f32)) as u32;
    // The difference of these numbers is exact.
    let lower = units - upper as f32 * (1 << LOW_BITS) as f32;
    [lower as u32, upper]
}

/// Lists the columns of each part's tokens of the level in which the sum of probabilities reaches
/// `top_p` / 2³².
///
/// `counts` has the number of these tokens, which may exceed the length of the list.
///
/// `counts` is [rows, parts], and `listed` is [rows, parts, length of a list].
#[kernel(block = 512, grid = (logits.rows(), ends.cols()), instances(T = f32), writes(counts = once))]
#[requires(
    ends.rows() == logits.rows(), ends.cols() > 0, sums.rows() == logits.rows(), sums.cols() == 512,
    counts.rows() == logits.rows(), counts.cols() == ends.cols(), listed.dim(0) == logits.rows(),
    listed.dim(1) == ends.cols(),
)]
pub fn level_tokens<T: Float>(
    logits: View<T, 2>,
    ends: View<Ends, 2>,
    temperature: Temperature,
    unit: f32,
    top_p: u32,
    sums: View<u64, 2>,
    mut counts: ViewMut<u32, 2>,
    mut listed: ViewMut<u32, 3>,
) {
    let (row, part, t) = (block::x(), block::y(), thread::x());
    let [first, end] = columns(part, ends.cols(), logits.cols());
    // Loads are in flight while the levels are computed, and while a step is.
    let mut next = loaded::<T, STEP>(logits, row, first, end);
    let levels = levels(ends.at(row), temperature, unit);
    let cut = cut(sums.at(row), top_p, levels.measure);
    let mut count = 0u32;
    for chunk in rolled((first..end).step_by(32 * LEVELS)) {
        // The bits of a word are the thread's columns of a chunk.
        let mut kept = 0u32;
        let within = (end - chunk).div_ceil(LEVELS).min(32);
        for step in rolled((0..within).step_by(STEP)) {
            let base = chunk + step * LEVELS;
            let x = next;
            next = loaded::<T, STEP>(logits, row, base + STEP * LEVELS, end);
            for u in unroll(0..STEP) {
                let of_level = level_of(x[u].to_f32(), levels) == cut.level;
                if of_level & (base + u * LEVELS + t < end) {
                    kept |= 1 << (step + u) as u32;
                }
            }
        }
        let (before, total) = block::scan(kept.count_ones(), 0u32, |a, b| a + b);
        let mut at = (count + before) as usize;
        while kept != 0 {
            if at < listed.dim(2) {
                listed[(row, part, at)] = (chunk + kept.trailing_zeros() as usize * LEVELS + t) as u32;
            }
            kept &= kept - 1;
            at += 1;
        }
        count += total;
    }
    if t == 0 {
        counts[(row, part)] = count;
    }
}

#[device]
mod level {
    use super::{Candidates, Levels, level_of, rank};
    use kernel_dsl::prelude::*;

    /// The tokens of a level.
    #[derive(Clone, Copy)]
    pub struct OfLevel<T: Float> {
        /// The logits of the row.
        pub row: View<T, 1>,
        /// The level.
        pub level: usize,
        /// The levels of the row.
        pub levels: Levels,
        /// The number of tokens of the level.
        pub count: usize,
        /// Whether `gathered` has their ranks.
        pub complete: bool,
        /// The ranks of the level's tokens.
        pub gathered: Shared<u64, 1>,
    }

    impl<T: Float> Candidates for OfLevel<T> {
        fn places(self) -> usize {
            if self.complete { self.count } else { self.row.len() }
        }
        fn rank(self, place: usize) -> u64 {
            let mut own = 0u64;
            if self.complete {
                own = self.gathered[place];
            } else {
                let x = self.row[place].to_f32();
                if level_of(x, self.levels) == self.level {
                    own = rank(x, place);
                }
            }
            own
        }
    }
}

use level::*;

/// The least and the largest of several ranks.
#[device]
#[derive(Clone, Copy, DeviceCopy)]
#[repr(C)]
struct RankRange {
    least: u64,
    most: u64,
}

/// Returns the range of two ranges together.
#[device]
fn merge_ranks(a: RankRange, b: RankRange) -> RankRange {
    RankRange { least: a.least.min(b.least), most: a.most.max(b.most) }
}

/// Draws a token of each row from the results of [`ends_of_parts`], [`level_sums`] and
/// [`level_tokens`] for the same logits, temperature, `unit` and `top_p`.
///
/// If all logits are −∞ or NaN, the first token is drawn.
///
/// `tokens` has one element for each row. The other arrays have the extents of [`level_sums`] and
/// [`level_tokens`].
#[kernel(block = 512, grid = logits.rows(), instances(T = f32), writes(tokens = once))]
#[requires(
    ends.rows() == logits.rows(), ends.cols() > 0, ends.cols() <= 512, sums.rows() == logits.rows(),
    sums.cols() == 512, of_parts.dim(0) == logits.rows(), of_parts.dim(1) == ends.cols(),
    of_parts.dim(2) == 512, counts.rows() == logits.rows(), counts.cols() == ends.cols(),
    listed.dim(0) == logits.rows(), listed.dim(1) == ends.cols(),
    tokens.len() == logits.rows(), logits.cols() > 0, top_p > 0,
)]
pub fn draw_likely<T: Float>(
    logits: View<T, 2>,
    ends: View<Ends, 2>,
    temperature: Temperature,
    unit: f32,
    top_p: u32,
    sums: View<u64, 2>,
    of_parts: View<u64, 3>,
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
    // All tokens of the level in shared memory, part by part.
    let count = if t < parts { counts[(row, t)] } else { 0 };
    let (before, count_of_level) = block::scan(count, 0u32, |a, b| a + b);
    let mut gathered = Shared::<u64, 1>::new([MAX_GATHERED]);
    let mut begins = Shared::<u32, 1>::new([LEVELS]);
    begins[t] = before;
    let complete = !block::any(count as usize > listed.dim(2)) && count_of_level as usize <= MAX_GATHERED;
    if complete {
        for part in rolled((warp::index()..parts).step_by(LEVELS / 32)) {
            let begin = begins[part] as usize;
            for at in rolled((warp::lane()..counts[(row, part)] as usize).step_by(32)) {
                let column = listed[(row, part, at)] as usize;
                gathered[begin + at] = rank(of_row[column].to_f32(), column);
            }
        }
    }
    block::sync();
    let of = OfLevel { row: of_row, level: cut.level, levels, count: count_of_level as usize, complete, gathered };

    // The bits that all ranks of the level have in common need no search.
    let mut own = RankRange { least: u64::MAX, most: 0 };
    for place in block::stride(of.places()) {
        let rank = of.rank(place);
        if rank != 0 {
            own = merge_ranks(own, RankRange { least: rank, most: rank });
        }
    }
    let all = block::reduce(own, merge_ranks);
    let bits = 64 - (all.least ^ all.most).leading_zeros().min(63);
    let prefix = if bits == 64 { 0 } else { all.most >> bits };

    let words = words(stream, row, u32::MAX);
    let random = (words[0] as u64) << 32 | words[1] as u64;
    let mut need = cut.need;
    let mut aim = 0u64;
    let mut token = 0u32;
    // Pass 0 finds the threshold; pass 1, if the draw is in the level, finds the drawn token.
    for pass in rolled(0..2) {
        let reached = find_digit::<OfLevel<T>, true>(of, need, levels.measure, prefix, bits);
        if pass == 0 {
            aim = int::mul_hi(random, cut.above + reached.all);
            if aim < cut.above {
                break;
            }
            need = aim - cut.above + 1;
        } else {
            // Finds the smallest rank of the digit.
            let mut last = u64::MAX;
            for place in block::stride(of.places()) {
                let rank = of.rank(place);
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
    // Finds the level, and then the part.
    let mut chosen = Shared::<u32, 1>::new([2]);
    let mut rest = Shared::<u64, 1>::new([2]);
    let own = sums[(row, t)];
    let (before, _all) = block::scan(own, 0u64, |a, b| a + b);
    if before <= aim && aim < before + own {
        chosen[0] = t as u32;
        rest[0] = aim - before;
    }
    block::sync();
    let (level, aim) = (chosen[0] as usize, rest[0]);
    let own = if t < parts { of_parts[(row, t, level)] } else { 0 };
    let (before, _all) = block::scan(own, 0u64, |a, b| a + b);
    if before <= aim && aim < before + own {
        chosen[1] = t as u32;
        rest[1] = aim - before;
    }
    block::sync();
    let [first, end] = columns(chosen[1] as usize, parts, logits.cols());
    let aim = rest[1];
    // Finds the warp, whose columns follow each other.
    let each = (end - first).div_ceil(LEVELS).max(1) * 32;
    let from = (first + warp::index() * each).min(end);
    let weight_at = |i: usize, end: usize| {
        let mut own = 0u64;
        if i < end {
            let x = of_row[i].to_f32();
            if level_of(x, levels) == level {
                own = weight(x, levels.measure);
            }
        }
        own
    };
    let to = (from + each).min(end);
    let mut own = 0u64;
    for base in rolled((from..to).step_by(LOADS_AHEAD * 32)) {
        for u in unroll(0..LOADS_AHEAD) {
            own += weight_at(base + u * 32 + warp::lane(), to);
        }
    }
    let of_warp = warp::sum(own);
    let (before, _all) = block::scan(if warp::lane() == 0 { of_warp } else { 0 }, 0u64, |a, b| a + b);
    if warp::lane() == 0 && before <= aim && aim < before + of_warp {
        chosen[0] = from as u32;
        rest[0] = aim - before;
    }
    block::sync();
    // Finds the token.
    let (from, mut left) = (chosen[0] as usize, rest[0]);
    let to = (from + each).min(end);
    for base in rolled((from..to).step_by(LEVELS)) {
        let own = weight_at(base + t, to);
        let (before, all) = block::scan(own, 0u64, |a, b| a + b);
        if before <= left && left < before + own {
            tokens[row] = (base + t) as u32;
        }
        // After the token, this exceeds all sums.
        left = left.wrapping_sub(all);
    }
}
