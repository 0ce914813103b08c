//! Rotary positions (Su and others, 2021) and the ways to stretch them to longer sequences.

use crate::error::{Error, Result};
use serde::Serialize;
use std::f64::consts::TAU;

/// The two elements of a head that are rotated together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Pairing {
    /// Element i of the first half of a head, and element i of the second half.
    Halves,
    /// Elements 2·i and 2·i + 1. GGUF files of Llama have the rows of the matrices of queries and
    /// keys in this order.
    Neighbors,
}

/// The distribution of a head's pairs among the axes of a position: time, height, width.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct RotaryAxes {
    /// The number of pairs of each axis.
    pub sections: [usize; 3],
}

/// A way to stretch positions to sequences longer than those of the training.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub enum Scaling {
    /// Positions are not stretched.
    None,
    /// All frequencies are divided by a factor.
    Linear {
        /// The factor.
        factor: f64,
    },
    /// Llama 3: low frequencies are divided by a factor, high ones stay, and those between are
    /// blended.
    Llama3 {
        /// The factor of low frequencies.
        factor: f64,
        /// A frequency is low if its period is at least `original / low_factor` tokens.
        low_factor: f64,
        /// A frequency is high if its period is at most `original / high_factor` tokens.
        high_factor: f64,
        /// The context length without scaling, in tokens.
        original: f64,
    },
    /// YaRN (Peng and others, 2023).
    Yarn {
        /// The factor of low frequencies.
        factor: f64,
        /// A frequency with at least this many rotations over the original context stays.
        beta_fast: f64,
        /// A frequency with at most this many rotations is divided by `factor`.
        beta_slow: f64,
        /// The context length without scaling, in tokens.
        original: f64,
        /// The factor of rotated queries and keys. [`yarn_attention_factor`] has that of the paper.
        attention_factor: f64,
    },
    /// A divisor for each frequency, from the tensor `rope_freqs.weight`.
    Divisors,
}

/// Returns YaRN's factor of rotated queries and keys, if positions are stretched by `factor`:
/// 0.1·`multiplier`·ln(`factor`) + 1, or 1 if `factor` is at most 1. The paper has the multiplier 1
/// (section 3.4). Transformers and llama.cpp compute the same number (`get_mscale`).
pub fn yarn_attention_factor(factor: f64, multiplier: f64) -> f64 {
    if factor <= 1.0 { 1.0 } else { 0.1 * multiplier * factor.ln() + 1.0 }
}

/// Rotary positions of a model.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct RotaryConfiguration {
    /// The base: frequency i is `base^(-2·i/dimensions)`.
    pub base: f64,
    /// The number of rotated elements of a head.
    pub dimensions: usize,
    /// The elements that are rotated together.
    pub pairing: Pairing,
    /// The way to stretch positions.
    pub scaling: Scaling,
    /// Axes of positions; `None` for text alone. The pairs alternate among the axes:
    /// `[t, h, w, t, h, w, …]`. Time takes the place of an axis that has no more pairs.
    pub axes: Option<RotaryAxes>,
}

impl RotaryConfiguration {
    /// Returns the angle of each pair per position, in radians: `dimensions / 2` elements. Only
    /// [`Scaling::Divisors`] uses `divisors`.
    ///
    /// # Errors
    /// If the scaling uses divisors, and `divisors` does not have one for each pair.
    pub fn frequencies(&self, divisors: &[f32]) -> Result<Vec<f32>> {
        let pairs = self.dimensions / 2;
        if self.scaling == Scaling::Divisors && divisors.len() != pairs {
            let problem = format!("expected {pairs} divisors of frequencies, found {}", divisors.len());
            return Err(Error::field("rotary positions", "divisors", problem));
        }
        let frequency = |i: usize| self.base.powf(-2.0 * i as f64 / self.dimensions as f64);
        let scaled = |i: usize| {
            let f = frequency(i);
            match self.scaling {
                Scaling::None => f,
                Scaling::Linear { factor } => f / factor,
                Scaling::Divisors => f / f64::from(divisors[i]),
                Scaling::Llama3 { factor, low_factor, high_factor, original } => {
                    // The number of rotations over the original context. The blend is 0 for low
                    // frequencies and 1 for high ones.
                    let rotations = original * f / TAU;
                    let blend = ((rotations - low_factor) / (high_factor - low_factor)).clamp(0.0, 1.0);
                    f * (blend + (1.0 - blend) / factor)
                }
                Scaling::Yarn { factor, beta_fast, beta_slow, original, .. } => {
                    // Returns the pair that makes this number of rotations over the original
                    // context.
                    let pair = |rotations: f64| {
                        self.dimensions as f64 * (original / (rotations * TAU)).ln() / (2.0 * self.base.ln())
                    };
                    let last = self.dimensions as f64 - 1.0;
                    let (from, to) = (pair(beta_fast).floor().max(0.0), pair(beta_slow).ceil().min(last));
                    let ramp = ((i as f64 - from) / (to - from).max(1e-3)).clamp(0.0, 1.0);
                    f * (ramp / factor + 1.0 - ramp)
                }
            }
        };
        Ok((0..pairs).map(|i| scaled(i) as f32).collect())
    }

    /// Returns the factor by which rotated queries and keys are multiplied: 1 except with YaRN.
    pub fn attention_factor(&self) -> f32 {
        match self.scaling {
            Scaling::Yarn { attention_factor, .. } => attention_factor as f32,
            _ => 1.0,
        }
    }
}
