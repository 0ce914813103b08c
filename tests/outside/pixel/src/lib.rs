//! Building blocks for images on a GPU. This crate has no kernels: its items are for kernels of
//! other crates, and for the host.
#![deny(warnings, missing_docs, clippy::all)]

pub mod border;
pub mod curve;
pub mod format;

pub use border::Border;
pub use curve::Curve;
pub use format::Pixel;
