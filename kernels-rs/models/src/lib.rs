//! Language models: their files and tokenizers.
//!
//! ```text
//!   GGUF, safetensors ─── file ─────── metadata and tensors
//!   GGUF, JSON ────────── tokenizer ── text ↔ tokens
//! ```
//!
//! [`Checkpoint::open`] opens either kind of file, and gives all of these.
//!
//! The crate reads files that others made, so that no input may end the program: a damaged file, or
//! one that needs something unknown, gives an [`Error`] with the file, the byte offset or field,
//! and what was expected.
//!
//! This crate is a separate workspace. Tokenizers, regular expressions and templates need some
//! hundred other crates, which the kernels do without.

mod checkpoint;
pub mod configuration;
mod error;
pub mod file;
pub mod memory;
pub mod template;
pub mod tensors;
pub mod tokenizer;

pub use checkpoint::{Checkpoint, Files};
pub use error::{Error, Result};
