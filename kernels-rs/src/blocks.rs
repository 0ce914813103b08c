//! Layers of transformers, put together of the library's kernels in plain Rust.
//!
//! | | what it is | launches |
//! |---|---|---|
//! | [`DecoderLayer`] | a layer of a language model, of the form of Qwen3 | of a step 6 of up to 8 tokens, of more 9, or more where a product is split |
//! | [`VisionLayer`] | a layer of a vision tower, of the form of Qwen3-VL's | of all images 9 |
//! | [`heads::heads`] | between projection and attention: norm of heads, rotary position, the cache | 1 |
//!
//! Each function takes a [`Queue`](crate::Queue): a stream runs the layer, a recording makes a graph of it, whose replay is one call of the driver. What changes from
//! step to step, where tokens stand and how many keys there are, lies on the device ([`cache::Tokens`]), so that the same graph does every step.
//!
//! ```text
//!   stream    prefill(prompt)                                      ─▶ cache
//!   recording decode ─▶ Graph ─ replay, replay, …  positions, slots and lengths are written between replays
//! ```
//!
//! The stream of a token, x, is `f32` and stays in one place: each half of a layer ends with a product that adds to it (β = 1), so that no launch is spent on a sum, and
//! storage in 16 bits rounds no more than what goes into a product.

pub mod cache;
mod decoder;
pub mod heads;
mod vision;

pub use decoder::{DecoderLayer, DecoderShape, DecoderWeights};
pub use vision::{LayerNorm, Linear, VisionLayer, VisionShape, VisionWeights};
