//! Language models: their files and tokenizers, and an engine that runs them.
//!
//! ```text
//!   GGUF, safetensors ─── file ─────── metadata and tensors
//!   GGUF, JSON ────────── tokenizer ── text ↔ tokens
//!   Jinja ─────────────── template ─── conversation → text
//!   PNG, JPEG, PPM ────── image ────── patches of pixels
//!   a device ──────────── engine ───── tokens → the next token
//! ```
//!
//! [`Checkpoint::open`] opens GGUF and safetensors files. [`Model::load`] loads a model to a
//! device: a GPU, or the CPU. The CPU device interprets the kernels and can check every memory
//! access.
//!
//! The crate reads files from unknown sources, so no input may crash the program. A damaged file,
//! or one with an unsupported feature, gives an [`Error`]. The error names the file, the byte
//! offset or the field, and what was expected.
//!
//! This crate is a separate workspace: tokenizers, regular expressions and templates need about a
//! hundred other crates, which the kernels do not need.

mod checkpoint;
pub mod configuration;
pub mod engine;
mod error;
pub mod file;
pub mod image;
pub mod memory;
pub mod quantize;
pub mod template;
pub mod tensors;
pub mod tokenizer;

pub use checkpoint::{Checkpoint, Files};
pub use engine::Model;
pub use error::{Error, Result};
