//! Layers of transformers.

pub mod heads;
