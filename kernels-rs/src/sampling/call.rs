//! The call for sampling.

use super::best::{Scored, Temperature, best_of_parts, best_parts};
use super::nucleus::{Ends, LEVELS, draw_likely, ends_of_parts, level_sums, level_tokens};
use super::random::RandomStream;
use super::threshold::sample_likely;
use super::top::{likeliest_of_parts, sample_top};
use crate::Queue;
use crate::fold::MAX_ALONG;
use crate::operand::ArrayOperand;
use crate::queue::LibraryCall;
use crate::rowwise::plan::queue;
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::{Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, Error};

/// The maximum number of tokens that are sorted.
const MAX_SORTED: usize = 1024;

/// The number of columns among which a block finds the likeliest.
const PART_COLUMNS: usize = 8192;

/// The minimum number of columns of a block that draws from all tokens.
const MIN_DRAW_COLUMNS: usize = 4096;

/// The minimum number of columns of a block that adds probabilities of levels.
const MIN_LEVEL_COLUMNS: usize = 2048;

/// The number of tokens of a level for which the lists of a row have room. With many parts the
/// number is larger: each list holds at least 64.
const LISTED_TOKENS: usize = 8192;

/// The choice of a token for each row of logits: the likeliest token, or a draw. A draw is from the
/// softmax of the logits divided by the temperature, over all tokens or the likeliest only.
///
/// The draw is a function of seed, offset, row and logits, and is the same on every device. Random
/// numbers have 55 bits: the frequencies of tokens are correct down to a probability of 2⁻⁵⁵.
///
/// # Extreme logits and temperatures
///
/// Logits are `f32`, `f16` or `bf16`; each is exact in `f32`. Logits are compared in the
/// [order of all kernels](crate#the-order-of-numbers).
///
/// | logits | tokens |
/// |---|---|
/// | finite, of any size | depend on differences: adding one number to a whole row, without rounding, changes nothing |
/// | some −∞ or NaN | drawn only if there is nothing else: then the first of the row |
/// | some ∞ | the first of these |
/// | no columns | `u32::MAX` |
///
/// | temperature | tokens |
/// |---|---|
/// | 0, and below `f32::MIN_POSITIVE` | the likeliest, the first of equals, for any top-k and top-p |
/// | `f32::MIN_POSITIVE` to `f32::MAX` | drawn; no quotient x / T overflows |
/// | ∞ | uniform over all tokens, or over those that top-k and top-p keep, except logits of −∞ and NaN |
///
/// With top-p of more than 1024 tokens, or of all, a probability below 2⁻⁴⁰ of the largest counts
/// as 0.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::sampling::Sample;
/// let device = runtime::Device::cpu();
/// let logits = device.upload(&[0.0f32, 3.0, 1.0, f32::NEG_INFINITY, -1.0, f32::NEG_INFINITY])?;
/// let mut tokens = device.zeros::<u32>(2)?;
/// Sample::new(7).temperature(0.0).run(&device, &logits.view([2, 3])?, &mut tokens.view_mut([2])?)?;
/// assert_eq!(tokens.download()?, [1, 1]);
/// Sample::new(7).top_k(1).run(&device, &logits.view([2, 3])?, &mut tokens.view_mut([2])?)?;
/// assert_eq!(tokens.download()?, [1, 1]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
#[must_use]
pub struct Sample {
    seed: u64,
    offset: u64,
    temperature: f32,
    top_k: usize,
    top_p: f32,
}

impl Sample {
    /// Returns a draw from all tokens at temperature 1.
    pub const fn new(seed: u64) -> Sample {
        Sample { seed, offset: 0, temperature: 1.0, top_k: 0, top_p: 1.0 }
    }

    /// Sets the index of the draw in the random sequence of the seed.
    pub const fn offset(self, offset: u64) -> Sample {
        Sample { offset, ..self }
    }

    /// Sets the divisor of logits: 0 gives the likeliest token, and ∞ makes all tokens equally
    /// likely.
    pub const fn temperature(self, temperature: f32) -> Sample {
        Sample { temperature, ..self }
    }

    /// Restricts the draw to the `k` likeliest tokens; 0 keeps all.
    pub const fn top_k(self, k: usize) -> Sample {
        Sample { top_k: k, ..self }
    }

    /// Restricts the draw to the likeliest tokens whose probabilities, after top-k, add up to `p`
    /// (nucleus sampling; Holtzman and others, 2020). A token is kept if its predecessors add up to
    /// less than `p`. 1 keeps all.
    ///
    /// Without a top-k, or with one above 1024, probabilities are added as integer multiples of
    /// 2⁻⁴⁰ of the largest. For vocabularies of more than four million the unit is 2⁻³¹. `p` is
    /// rounded to 2⁻³².
    pub const fn top_p(self, p: f32) -> Sample {
        Sample { top_p: p, ..self }
    }

    /// Queues the draw, for logits of [rows, vocabulary].
    ///
    /// # Errors
    /// Returns an error if:
    /// - the numbers of tokens and rows differ, or there are more than 2³¹ − 1 rows,
    /// - the temperature is below 0 or a NaN, or top-p is not above 0,
    /// - top-k is 1 to 1024, and there are more than 536,862,720 columns, or
    /// - a buffer belongs to another device.
    pub fn run<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        logits: &BufferView<'_, T, 2>,
        tokens: &mut BufferViewMut<'_, u32, 1>,
    ) -> Result<(), Error> {
        let [rows, cols] = logits.extents();
        logits.check_grid([rows, 1, 1], format_args!("{rows} rows"))?;
        tokens.expected("tokens", [rows], "a token for each row of the logits")?;
        if self.top_p.is_nan() || self.top_p <= 0.0 {
            return Err(
                logits.refused_operand(format!("top_p is {}; it must be above 0, and 1 keeps all tokens", self.top_p))
            );
        }
        if self.temperature.is_nan() || self.temperature < 0.0 {
            return Err(logits.refused_operand(format!(
                "the temperature is {}; it must be 0, for the likeliest token, or more",
                self.temperature
            )));
        }
        let words = |n: u64| [n as u32, (n >> 32) as u32];
        let stream = RandomStream { seed: words(self.seed), offset: words(self.offset) };
        let greedy = self.temperature < f32::MIN_POSITIVE;
        let temperature = Temperature::of(if greedy { 1.0 } else { self.temperature });
        let k = self.top_k.min(cols);
        if !greedy && k > 0 && k <= MAX_SORTED {
            return self.of_likeliest(on, logits, k, temperature, stream, tokens);
        }
        if !greedy && cols > 0 && (k > 0 && k < cols || self.top_p < 1.0) {
            // The probability in units of 2⁻³², at least 1; 0 keeps all tokens.
            let part = (f64::from(self.top_p) * 2f64.powi(32)).round().max(1.0);
            let part = if self.top_p < 1.0 { part as u32 } else { 0 };
            let unit = 2f32.powi(40.min(62 - cols.next_power_of_two().trailing_zeros() as i32));
            // A k of all columns needs no search.
            if k == 0 || k == cols {
                return self.of_probability(on, logits, temperature, part, unit, stream, tokens);
            }
            // SAFETY: reads are within the row, and writes within the tokens.
            return unsafe {
                sample_likely::<T>::launch_unchecked(
                    &LibraryCall(on),
                    logits,
                    temperature,
                    k,
                    part,
                    unit,
                    stream,
                    tokens,
                )
            };
        }
        // Enough blocks to fill the device's slots, if the rows alone are too few.
        let places = 8 * on.device().facts().multiprocessors as usize;
        let parts = places.div_ceil(rows.max(1)).min(cols.div_ceil(MIN_DRAW_COLUMNS)).clamp(1, 1024);
        let shape = [rows, parts];
        let mut best = on.scratch::<Scored>(rows * parts)?;
        let quads = cols.is_multiple_of(4) && logits.aligned(4);
        let constants = [T::CONSTANT, Constant::Bool(!greedy), Constant::Usize(if quads { 4 } else { 1 })];
        let mut of_rows = best.view_mut(shape)?;
        let call = best_parts::<T, true, 1>::call(logits, temperature, stream, &mut of_rows);
        // SAFETY: the launch checks the extents, and the kernels' accesses stay within them; each
        // part is written.
        unsafe { queue(on, &call, &constants) }?;
        // SAFETY: as above.
        unsafe { best_of_parts::launch_unchecked(&LibraryCall(on), best.view(shape)?, tokens) }
    }

    /// Queues a draw from the likeliest tokens with a probability of `part` / 2³².
    #[allow(clippy::too_many_arguments, reason = "the operands and the queue")]
    fn of_probability<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        logits: &BufferView<'_, T, 2>,
        temperature: Temperature,
        part: u32,
        unit: f32,
        stream: RandomStream,
        tokens: &mut BufferViewMut<'_, u32, 1>,
    ) -> Result<(), Error> {
        let [rows, cols] = logits.extents();
        // At most as many blocks as run at once: the last of a few more would run alone.
        let places = 4 * on.device().facts().multiprocessors as usize;
        let parts = (places / rows.max(1)).min(cols.div_ceil(MIN_LEVEL_COLUMNS)).clamp(1, LEVELS);
        // The length of a list: several times the mean number of level tokens in a part.
        let longest =
            (LISTED_TOKENS / parts).next_power_of_two().clamp(64, LISTED_TOKENS).min(cols.next_power_of_two());
        let (of_parts, of_sums, of_lists) = ([rows, parts], [rows, LEVELS], [rows, parts, longest]);
        let by_parts = [rows, parts, LEVELS];
        let mut ends = on.scratch::<Ends>(rows * parts)?;
        let mut sums = on.scratch::<u64>(rows * LEVELS)?;
        let mut sums_of_parts = on.scratch::<u64>(rows * parts * LEVELS)?;
        let mut counts = on.scratch::<u32>(rows * parts)?;
        let mut listed = on.scratch::<u32>(rows * parts * longest)?;
        let on = &LibraryCall(on);
        // SAFETY: the launches check the extents. Reads are within the rows. Each kernel reads only
        // what its predecessors wrote, and a list only up to its count.
        unsafe {
            ends_of_parts::<T>::launch_unchecked(
                on,
                logits,
                &mut ends.view_mut(of_parts)?,
                &mut sums.view_mut(of_sums)?,
            )?;
            let ends = ends.view(of_parts)?;
            level_sums::<T>::launch_unchecked(
                on,
                logits,
                ends,
                temperature,
                unit,
                &mut sums.view_mut(of_sums)?,
                &mut sums_of_parts.view_mut(by_parts)?,
            )?;
            let sums = sums.view(of_sums)?;
            level_tokens::<T>::launch_unchecked(
                on,
                logits,
                ends,
                temperature,
                unit,
                part,
                sums,
                &mut counts.view_mut(of_parts)?,
                &mut listed.view_mut(of_lists)?,
            )?;
            let (counts, listed) = (counts.view(of_parts)?, listed.view(of_lists)?);
            draw_likely::<T>::launch_unchecked(
                on,
                logits,
                ends,
                temperature,
                unit,
                part,
                sums,
                sums_of_parts.view(by_parts)?,
                counts,
                listed,
                stream,
                tokens,
            )
        }
    }

    /// Queues a draw from the `k` likeliest tokens, at most [`MAX_SORTED`].
    fn of_likeliest<T: Float + GenericArgument>(
        self,
        on: &impl Queue,
        logits: &BufferView<'_, T, 2>,
        k: usize,
        temperature: Temperature,
        stream: RandomStream,
        tokens: &mut BufferViewMut<'_, u32, 1>,
    ) -> Result<(), Error> {
        let [rows, cols] = logits.extents();
        let parts = cols.div_ceil(PART_COLUMNS);
        if parts > MAX_ALONG {
            let most = MAX_ALONG * PART_COLUMNS;
            return Err(
                logits.refused_operand(format!("there are {cols} columns; a top-k of {k} supports at most {most}"))
            );
        }
        let each = cols.div_ceil(parts);
        let mut ranks = on.scratch::<u64>(rows * parts * k)?;
        let mut of_parts = ranks.view_mut([rows, parts, k])?;
        let call = likeliest_of_parts::<T>::call(logits, each, &mut of_parts);
        // SAFETY: the launch checks the rows. Reads are within them; a part has at most k ranks,
        // and each is written.
        unsafe { queue(on, &call, &[T::CONSTANT]) }?;
        let ranks = ranks.view([rows, parts * k])?;
        let constants = [Constant::Usize(if k <= 64 { 64 } else { MAX_SORTED as u32 })];
        let call = sample_top::<64>::call(ranks, temperature, k, self.top_p, stream, tokens);
        // SAFETY: the launch limits k to the kernel's capacity. The ranks of a row differ, so that
        // no more than k are sorted. Reads are within the row, and writes within the tokens.
        unsafe { queue(on, &call, &constants) }
    }
}
