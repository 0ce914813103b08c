//! The engine that runs models: weights on a device, layers made of library kernels, and sessions.
//!
//! ```text
//!   tokens ─ Embedding ─▶ x ─┬─ Block 0 ─ Block 1 ─ … ─┬─ RMS norm ─ output matrix ─▶ logits ─ Sampler ─▶ token
//!                            │                         │
//!   a block:  x ─ RMS norm ─ Attention ─ + ─ RMS norm ─ Network ─ + ─▶ x
//! ```
//!
//! | module | use |
//! |---|---|
//! | [`linear`] | products of activations with a matrix, in any format of a file |
//! | [`embedding`] | rows of the embedding by token |
//! | [`attention`] | queries, keys and values, and the matrix after attention |
//! | [`cache`] | keys and values of sequences: formats, and pages that sequences share |
//! | [`network`] | the gated network of a block |
//! | [`experts`] | a mixture of experts, which replaces that network |
//! | [`block`] | a block, and the stream of activations between blocks |
//! | [`stage`] | blocks of one device, and the split of a model over devices |
//! | `operand` | activations in the form that a product reads: `f32`, 16 bits, or quantized |
//! | `exact` | attention whose bits are equal on all devices |
//! | `memory_needs` | estimates of the memory of a model |
//! | `load` | the layers of a model from the tensors of a checkpoint |
//! | [`vision`] | the features of an image |
//! | [`prompt`] | the tokens of a sequence, and the images in it |
//! | [`model`] | a whole model and its loading |
//! | [`sampling`] | the next token from logits: penalties, temperature, top-k, top-p, min-p |
//! | [`batch`] | sequences that are decoded together, each step by a replayed graph |
//! | `executor` | the work of a batch on devices: prompts without graphs, and steps as replayed graphs |
//! | `step_graph` | the graphs of a step, which keep tokens on the device |
//! | `layer_cache` | buffers of keys and values, and their slots in graphs |
//! | [`session`] | a single sequence: its prompt, and the tokens that follow |
//! | [`generation`] | generated tokens: when generation stops, and their text |
//! | [`timing`] | the time of a step, and of each of its kernels alone |
//!
//! A GPU and the CPU device run the same code, and the CPU device can check every access.
//! Activations between blocks are `f32`. Products with weights of 16 bits round the activations to
//! the format of the weights. Products with quantized weights quantize the activations to 8 bits in
//! blocks of 32.
//!
//! # Equal tokens on different devices
//!
//! Attention and the gate use the hardware's approximate exponential, whose last bits differ
//! between devices. Norms, attention and products of prompts add in an order that depends on the
//! number of multiprocessors. A last bit can change how an activation is rounded to 8 bits. After
//! some layers the logits differ by a few hundredths of the largest logit. If two tokens are nearly
//! equally likely, devices may then choose different ones. With [`SessionOptions::exact`], models
//! with quantized matrices give equal bits on all devices, at a lower speed.

pub mod attention;
pub mod batch;
pub mod block;
pub mod cache;
pub mod embedding;
mod exact;
mod executor;
pub mod experts;
pub mod generation;
mod layer_cache;
pub mod linear;
mod load;
mod memory_needs;
pub mod model;
pub mod network;
mod operand;
pub mod prompt;
pub mod sampling;
pub mod session;
pub mod stage;
mod step_graph;
pub mod timing;
pub mod vision;

pub use batch::Batch;
pub use generation::{GeneratedToken, Generation, OutputText, StopReason};
pub use model::Model;
pub use prompt::Prompt;
pub use sampling::{Sampler, Sampling};
pub use session::{Session, SessionOptions};
pub use stage::LayerSplit;
