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
//! [`Checkpoint::open`] opens either kind of file. [`Model::load`] loads it to a device: a GPU, or
//! the CPU, where every access is checked.
//!
//! The crate reads files that others made, so that no input may end the program: a damaged file, or
//! one that needs something unknown, gives an [`Error`] with the file, the byte offset or field,
//! and what was expected.
//!
//! This crate is a separate workspace. Tokenizers, regular expressions and templates need some
//! hundred other crates, which the kernels do without.

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
