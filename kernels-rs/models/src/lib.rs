//! Language models: their files, tokenizers, chat templates and configurations.
//!
//! ```text
//!   GGUF ───────────────┐
//!                       ├─ file ─┬─ tokenizer      text ↔ tokens
//!   safetensors, JSON ──┘        ├─ template       a conversation → text
//!                                ├─ configuration  architecture and extents, of either source
//!                                ├─ tensors        names and extents of the tensors it needs
//!                                └─ memory         bytes of weights, cache and activations
//! ```
//!
//! The crate reads files that others made, so that no input may end the program: a damaged file, or
//! one that needs something unknown, gives an [`Error`] with the file, the byte offset or field,
//! and what was expected.
//!
//! It is a workspace by itself. Tokenizers, regular expressions and templates need some hundred
//! other crates, which the kernels do without.

mod error;
pub mod file;
pub mod tokenizer;

pub use error::{Error, Result};
