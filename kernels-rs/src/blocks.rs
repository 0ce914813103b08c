//! Layers of transformers.

pub mod cache;
mod decoder;
pub mod heads;
mod vision;

pub use decoder::{DecoderLayer, DecoderShape, DecoderWeights};
pub use vision::{LayerNorm, Linear, VisionLayer, VisionShape, VisionWeights};
