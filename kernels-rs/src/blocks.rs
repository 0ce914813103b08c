//! Layers of transformers, composed of the library's kernels in plain Rust.
//!
//! | | description | launches |
//! |---|---|---|
//! | [`DecoderLayer`] | a layer of a language model in the style of Qwen3 | 6 for a step of up to 8 tokens; 9 for more tokens, or more if a product is split |
//! | [`VisionLayer`] | a layer of a vision tower in the style of Qwen3-VL | 9 for all images |
//! | [`heads::heads`] | the step between projection and attention: norm of heads, rotary embedding, cache | 1 |
//!
//! Each function takes a [`Queue`](crate::Queue): a stream runs the layer, and a recording makes a
//! graph of it, whose replay is one driver call. Data that changes from step to step, such as the
//! tokens' positions and the number of keys, is on the device ([`cache::Tokens`]). Therefore one
//! graph serves every step.
//!
//! ```text
//!   stream    prefill(prompt)                                      ─▶ cache
//!   recording decode ─▶ Graph ─ replay, replay, …  positions, slots and lengths are written between replays
//! ```
//!
//! The residual stream of a token, x, is `f32` and is updated in place: each half of a layer ends
//! with a product that adds to it (β = 1). Therefore the sum needs no launch. With 16-bit storage
//! only the operands of products are rounded.

pub mod cache;
mod decoder;
pub mod heads;
mod vision;

pub use decoder::{DecoderLayer, DecoderShape, DecoderWeights};
pub use vision::{LayerNorm, Linear, VisionLayer, VisionShape, VisionWeights};
