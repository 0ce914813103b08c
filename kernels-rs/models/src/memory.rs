//! The parameters of a model's memory, and its estimate, which
//! [`Configuration::memory`](crate::configuration::Configuration::memory) makes.

use crate::file::TensorFormat;
use serde::Serialize;

/// The format of keys and values in the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum CacheFormat {
    /// 4 bytes per element.
    F32,
    /// 2 bytes per element.
    F16,
    /// A byte per element, and a scale of 2 bytes for each 32 elements of a head.
    Q8_0,
}

impl CacheFormat {
    /// All formats.
    pub const ALL: [CacheFormat; 3] = [CacheFormat::F32, CacheFormat::F16, CacheFormat::Q8_0];

    /// Returns the format of tensors that stores elements in the same way.
    pub const fn format(self) -> TensorFormat {
        match self {
            CacheFormat::F32 => TensorFormat::F32,
            CacheFormat::F16 => TensorFormat::F16,
            CacheFormat::Q8_0 => TensorFormat::Q8_0,
        }
    }
}

/// The parameters on which the memory of a running model depends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct MemoryPlan {
    /// The capacity of the cache: the tokens of all sequences together.
    pub tokens: u64,
    /// The number of sequences that are decoded at once.
    pub sequences: u64,
    /// The number of tokens of a prompt that pass the layers at once.
    pub chunk_size: u64,
    /// The maximum number of drafts in a step, as in
    /// [`SessionOptions`](crate::engine::SessionOptions).
    pub drafts: u64,
    /// The format of keys and values.
    pub cache: CacheFormat,
}

impl Default for MemoryPlan {
    /// Returns one sequence of 4,096 tokens, with prompts in chunks of 512, no drafts and a cache
    /// of F16.
    fn default() -> MemoryPlan {
        MemoryPlan { tokens: 4096, sequences: 1, chunk_size: 512, drafts: 0, cache: CacheFormat::F16 }
    }
}

/// Bytes of the weights of a model, in the order in which a token passes them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WeightBytes {
    /// The embedding and a vision tower, which are on the first device.
    pub first: u64,
    /// The weights of each layer.
    pub layers: Vec<u64>,
    /// The last norm and the output matrix, which are on the last device.
    pub last: u64,
}

impl WeightBytes {
    /// Returns the sum of all fields.
    pub fn total(&self) -> u64 {
        self.layers.iter().fold(self.first.saturating_add(self.last), |sum, layer| sum.saturating_add(*layer))
    }
}

/// An estimate of the bytes that a model needs on a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct MemoryNeeds {
    /// Weights, as the caller counts them: see
    /// [`Configuration::memory`](crate::configuration::Configuration::memory).
    pub weights: u64,
    /// Keys and values of all tokens of the plan, in the layers of the device.
    pub cache: u64,
    /// Keys and values of one token, in the layers of the device.
    pub cache_per_token: u64,
    /// Values between the kernels of a layer, and logits on the last device: see
    /// [`Configuration::memory`](crate::configuration::Configuration::memory).
    pub activations: u64,
}

impl MemoryNeeds {
    /// Returns the sum of weights, cache and activations.
    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.cache).saturating_add(self.activations)
    }
}
