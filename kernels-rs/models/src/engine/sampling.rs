//! Sampling of the next token from logits: penalties, min-p, temperature, top-k and top-p.

use crate::error::{Error, Result};
use clap::builder::TypedValueParser;
use kernel_dsl::prelude::*;
use kernels_rs::Queue;
use kernels_rs::sampling::Sample;
use runtime::{BufferViewMut, Device, DeviceBuffer};
use std::ffi::OsStr;
use std::str::FromStr;

/// The values that a parameter of sampling may have. On a command line, the range reads the value
/// of an option.
#[derive(Clone, Copy)]
struct SamplingRange {
    contains: fn(f32) -> bool,
    /// A description of the values, for messages.
    expected: &'static str,
}

const TEMPERATURE: SamplingRange = SamplingRange { contains: |x| x >= 0.0, expected: "0 or more" };
const TOP_P: SamplingRange = SamplingRange { contains: |x| x > 0.0, expected: "a number above 0" };
const MIN_P: SamplingRange = SamplingRange { contains: |x| (0.0..=1.0).contains(&x), expected: "0 to 1" };
const REPETITION_PENALTY: SamplingRange = TOP_P;
const FREQUENCY_PENALTY: SamplingRange = SamplingRange { contains: f32::is_finite, expected: "a finite number" };
const PRESENCE_PENALTY: SamplingRange = FREQUENCY_PENALTY;

impl SamplingRange {
    /// Rejects a value outside the range.
    fn check(self, value: f32) -> std::result::Result<(), String> {
        match (self.contains)(value) {
            true => Ok(()),
            false => Err(format!("expected {}, found {value}", self.expected)),
        }
    }
}

impl TypedValueParser for SamplingRange {
    type Value = f32;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> std::result::Result<f32, clap::Error> {
        let range = *self;
        let read = move |text: &str| {
            let number = text.parse::<f32>().map_err(|_| format!("expected {}", range.expected))?;
            range.check(number).map(|()| number)
        };
        read.parse_ref(command, argument, value)
    }
}

/// Reads the value of an option that is a whole number.
fn whole_number<T: FromStr>(text: &str) -> std::result::Result<T, &'static str> {
    text.parse().map_err(|_| "expected a whole number, 0 or more")
}

/// The parameters by which tokens are drawn. Penalties come first, then min-p, temperature, top-k
/// and top-p. A program can flatten the parameters into its arguments.
#[derive(Clone, Copy, PartialEq, Debug, clap::Args)]
pub struct Sampling {
    /// The seed of random numbers. Equal seeds and equal logits give equal tokens.
    #[arg(long, default_value_t = Sampling::default().seed, value_parser = whole_number::<u64>)]
    pub seed: u64,
    /// The divisor of logits, 0 or more. 0 always gives the likeliest token.
    #[arg(long, allow_negative_numbers = true, default_value_t = Sampling::default().temperature, value_parser = TEMPERATURE)]
    pub temperature: f32,
    /// The number of likeliest tokens from which a token is drawn; 0 for all.
    #[arg(long, default_value_t = Sampling::default().top_k, value_parser = whole_number::<usize>)]
    pub top_k: usize,
    /// The limit of nucleus sampling, above 0 (Holtzman and others, 2020). A token is drawn from
    /// the fewest likeliest tokens whose probabilities reach this sum; 1 keeps all tokens.
    #[arg(long, allow_negative_numbers = true, default_value_t = Sampling::default().top_p, value_parser = TOP_P)]
    pub top_p: f32,
    /// The least probability of a token that can be drawn, as a fraction of the largest
    /// probability; 0 for all tokens.
    #[arg(long, allow_negative_numbers = true, default_value_t = Sampling::default().min_p, value_parser = MIN_P)]
    pub min_p: f32,
    /// The number by which positive logits of tokens in the sequence are divided, and negative ones
    /// multiplied (Keskar and others, 2019); 1 for none.
    #[arg(long, allow_negative_numbers = true, default_value_t = Sampling::default().repetition_penalty, value_parser = REPETITION_PENALTY)]
    pub repetition_penalty: f32,
    /// The number that is subtracted from a token's logit for each time that the token was
    /// generated.
    #[arg(long, allow_negative_numbers = true, default_value_t = Sampling::default().frequency_penalty, value_parser = FREQUENCY_PENALTY)]
    pub frequency_penalty: f32,
    /// The number that is subtracted from a token's logit if the token was generated.
    #[arg(long, allow_negative_numbers = true, default_value_t = Sampling::default().presence_penalty, value_parser = PRESENCE_PENALTY)]
    pub presence_penalty: f32,
}

impl Default for Sampling {
    /// Returns parameters that always give the likeliest token, without penalties.
    fn default() -> Sampling {
        Sampling {
            seed: 0,
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
        }
    }
}

impl Sampling {
    /// Rejects numbers outside their ranges.
    ///
    /// # Errors
    /// If a number is outside its range.
    pub fn check(&self) -> Result<()> {
        let Sampling { temperature, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty, .. } = *self;
        for (name, value, range) in [
            ("temperature", temperature, TEMPERATURE),
            ("top-p", top_p, TOP_P),
            ("min-p", min_p, MIN_P),
            ("repetition-penalty", repetition_penalty, REPETITION_PENALTY),
            ("frequency-penalty", frequency_penalty, FREQUENCY_PENALTY),
            ("presence-penalty", presence_penalty, PRESENCE_PENALTY),
        ] {
            range.check(value).map_err(|problem| Error::field("sampling", name, problem))?;
        }
        Ok(())
    }

    /// Tells whether logits depend on earlier tokens.
    fn has_penalties(&self) -> bool {
        self.repetition_penalty != 1.0 || self.frequency_penalty != 0.0 || self.presence_penalty != 0.0
    }
}

/// Records a token in its row of `token_counts`. Column 0 is 1 if the token is in the sequence.
/// Column 1 counts how often the token was generated, and grows by `generated`.
#[kernel(block = 32, grid = token.len().div_ceil(32))]
#[requires(token_counts.cols() == 2)]
fn count_token(token: &[u32], generated: u32, mut token_counts: ViewMut<u32, 2>) {
    let i = grid::index();
    if i < token.len() {
        let token = token[i] as usize;
        if token < token_counts.rows() {
            token_counts[(token, 0)] = 1;
            token_counts[(token, 1)] += generated;
        }
    }
}

/// Applies the penalties to the logits of the tokens that `token_counts` records: first that of
/// repetition, then those of frequency and presence.
#[kernel(block = 256, grid = logits.len().div_ceil(256))]
#[requires(token_counts.rows() == logits.len(), token_counts.cols() == 2)]
fn penalize(
    repetition_penalty: f32,
    frequency_penalty: f32,
    presence_penalty: f32,
    token_counts: View<u32, 2>,
    logits: &mut [f32],
) {
    let i = grid::index();
    if i < logits.len() && token_counts[(i, 0)] != 0 {
        let times = token_counts[(i, 1)];
        let logit = logits[i];
        let logit = if logit > 0.0 { logit / repetition_penalty } else { logit * repetition_penalty };
        logits[i] = if times > 0 { logit - frequency_penalty * times as f32 - presence_penalty } else { logit };
    }
}

/// Computes kept ← logits, with −∞ for logits that are more than `max_logit_gap` below the largest
/// one. `likeliest` is the token with the largest logit.
#[kernel(block = 256, grid = logits.len().div_ceil(256))]
#[requires(likeliest.len() == 1)]
fn keep_min_p(max_logit_gap: f32, likeliest: &[u32], logits: &[f32], kept: &mut [f32]) {
    let i = grid::index();
    let top = likeliest[0] as usize;
    if i < kept.len() && i < logits.len() && top < logits.len() {
        kept[i] = if logits[i] < logits[top] - max_logit_gap { f32::NEG_INFINITY } else { logits[i] };
    }
}

/// A sampler that draws the tokens of a sequence one after another.
#[derive(Debug)]
pub struct Sampler {
    sampling: Sampling,
    /// The number of draws so far, which is the offset in the random sequence of the seed.
    draws: u64,
    /// `[vocabulary, 2]`: whether each token is in the sequence, and how often the token was
    /// generated. `None` without penalties.
    token_counts: Option<DeviceBuffer<u32>>,
    /// Memory for the likeliest token and for the logits that min-p keeps. `None` without min-p.
    min_p_memory: Option<(DeviceBuffer<u32>, DeviceBuffer<f32>)>,
    vocabulary: usize,
}

impl Sampler {
    /// Makes a sampler for logits on `device`. `text` has the tokens of the sequence so far, which
    /// do not count as generated.
    ///
    /// # Errors
    /// If a parameter is outside its range, or memory runs out.
    pub fn new(device: &Device, sampling: Sampling, vocabulary: usize, text: &[u32]) -> Result<Sampler> {
        sampling.check()?;
        let mut token_counts = None;
        if sampling.has_penalties() {
            let mut counts = vec![0; 2 * vocabulary];
            for token in text.iter().filter(|token| (**token as usize) < vocabulary) {
                counts[2 * *token as usize] = 1;
            }
            token_counts = Some(device.upload(&counts)?);
        }
        let min_p_memory = match sampling.min_p > 0.0 && sampling.temperature > 0.0 {
            true => Some((device.zeros(1)?, device.zeros(vocabulary)?)),
            false => None,
        };
        Ok(Sampler { sampling, draws: 0, token_counts, min_p_memory, vocabulary })
    }

    /// Tells whether each draw is the likeliest token of the unchanged logits: the temperature is
    /// 0, or subnormal, and there are no penalties.
    pub fn is_greedy(&self) -> bool {
        self.sampling.temperature < f32::MIN_POSITIVE && self.token_counts.is_none()
    }

    /// Queues a draw from `logits`, `[1, vocabulary]`, to `token`. Penalties change `logits`.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    pub fn draw(
        &mut self,
        on: &impl Queue,
        logits: &mut BufferViewMut<'_, f32, 2>,
        token: &mut BufferViewMut<'_, u32, 1>,
    ) -> Result<()> {
        let Sampling {
            seed,
            temperature,
            top_k,
            top_p,
            min_p,
            repetition_penalty,
            frequency_penalty,
            presence_penalty,
        } = self.sampling;
        let n = self.vocabulary;
        if let Some(token_counts) = &self.token_counts {
            let logits = logits.reborrow().strided().reshaped([n])?.side_by_side()?;
            // SAFETY: the kernel compares its index with the logits, and the launch their extents.
            unsafe {
                penalize::launch_unchecked(
                    on,
                    repetition_penalty,
                    frequency_penalty,
                    presence_penalty,
                    token_counts.view([n, 2])?,
                    logits,
                )?
            };
        }
        let sample = Sample::new(seed).offset(self.draws).temperature(temperature).top_k(top_k).top_p(top_p);
        let all = logits.reborrow().shared();
        match &mut self.min_p_memory {
            None => sample.run(on, &all, token)?,
            Some((likeliest, kept)) => {
                Sample::new(0).temperature(0.0).run(on, &all, &mut likeliest.view_mut([1])?)?;
                let all = all.strided().reshaped([n])?.side_by_side()?;
                let max_logit_gap = -temperature * min_p.ln();
                // SAFETY: the kernel compares its indices with the extents.
                unsafe { keep_min_p::launch_unchecked(on, max_logit_gap, &*likeliest, all, &mut *kept)? };
                sample.run(on, &kept.view([1, n])?, token)?;
            }
        }
        if let Some(token_counts) = &mut self.token_counts {
            let token = token.reborrow().shared();
            // SAFETY: the kernel compares the token with the extents. There is one token, so
            // threads do not write the same row.
            unsafe { count_token::launch_unchecked(on, token, 1, token_counts.view_mut([n, 2])?)? };
        }
        self.draws += 1;
        Ok(())
    }
}
