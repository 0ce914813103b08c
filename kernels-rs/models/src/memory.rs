//! The memory that a model needs, known before anything is loaded.

use crate::configuration::Configuration;
use crate::file::Format;
use kernels_rs::attention::cache::BLOCK;
use serde::Serialize;

/// How keys and values are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum CacheFormat {
    /// 4 bytes a number.
    F32,
    /// 2 bytes a number.
    F16,
    /// A byte a number, and 2 bytes for each 32 numbers of a head.
    Q8_0,
}

impl CacheFormat {
    /// Every format.
    pub const ALL: [CacheFormat; 3] = [CacheFormat::F32, CacheFormat::F16, CacheFormat::Q8_0];

    /// Returns the format of the numbers.
    pub const fn format(self) -> Format {
        match self {
            CacheFormat::F32 => Format::F32,
            CacheFormat::F16 => Format::F16,
            CacheFormat::Q8_0 => Format::Q8_0,
        }
    }
}

/// How a model is to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Plan {
    /// Tokens that the cache has room for, of all sequences together.
    pub tokens: u64,
    /// Sequences that are decoded at once.
    pub sequences: u64,
    /// Tokens of a prompt that pass the layers at once.
    pub piece: u64,
    /// How keys and values are kept.
    pub cache: CacheFormat,
}

impl Default for Plan {
    /// Returns one sequence of 4,096 tokens, with prompts in pieces of 512 and a cache of F16.
    fn default() -> Plan {
        Plan { tokens: 4096, sequences: 1, piece: 512, cache: CacheFormat::F16 }
    }
}

/// Bytes that a model needs on its device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct MemoryNeeds {
    /// Weights, as the file has them.
    pub weights: u64,
    /// Keys and values of all tokens of the plan.
    pub cache: u64,
    /// Keys and values of one token.
    pub cache_per_token: u64,
    /// Values between the kernels of a layer, and the logits of all sequences.
    pub activations: u64,
}

impl MemoryNeeds {
    /// Returns the sum of all.
    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.cache).saturating_add(self.activations)
    }
}

impl Configuration {
    /// Returns the bytes of the keys and values of one token in all layers.
    pub fn cache_per_token(&self, cache: CacheFormat) -> u64 {
        let of_head = match cache {
            CacheFormat::F32 => 4 * self.head,
            CacheFormat::F16 => 2 * self.head,
            CacheFormat::Q8_0 => self.head + 2 * self.head.div_ceil(BLOCK),
        };
        2 * (self.layers * self.groups * of_head) as u64
    }

    /// Returns the bytes that the model needs by a plan. `weights` are the bytes of its tensors in
    /// the file.
    ///
    /// Activations are those of one layer, with 16-bit numbers beside the `f32` that layers add to:
    ///
    /// | value | bytes a token of a piece |
    /// |---|---|
    /// | x, between layers | 4·width |
    /// | x after a norm | 2·width |
    /// | queries, keys, values | 2·(heads + 2·groups)·head |
    /// | output of attention | 2·heads·head |
    /// | gate, up and their product, for each expert in use | 6·inner |
    ///
    /// The logits of each sequence are 4·vocabulary bytes.
    pub fn memory(&self, plan: Plan, weights: u64) -> MemoryNeeds {
        let Configuration { width, heads, head, inner, vocabulary, .. } = *self;
        let networks = self.experts.as_ref().map_or(1, |experts| experts.used) as u64;
        let token = 6 * width + 2 * self.projected() + 2 * heads * head;
        let token = token as u64 + 6 * inner as u64 * networks;
        let tokens = plan.piece.max(plan.sequences);
        let logits = plan.sequences.saturating_mul(4 * vocabulary as u64);
        let cache_per_token = self.cache_per_token(plan.cache);
        MemoryNeeds {
            weights,
            cache: cache_per_token.saturating_mul(plan.tokens),
            cache_per_token,
            activations: tokens.saturating_mul(token).saturating_add(logits),
        }
    }
}
