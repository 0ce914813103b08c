//! What images on a GPU are made of. No kernels here: every item is for kernels of other crates, and for the host.
#![deny(warnings, missing_docs, clippy::all)]

pub mod border;
pub mod curve;
pub mod format;

pub use border::Border;
pub use curve::Curve;
pub use format::Pixel;
