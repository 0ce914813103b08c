//! GPU kernels in Rust.

extern crate self as kernel_dsl;

pub mod artifact;
pub mod launcher;

pub use artifact::{Artifact, Declared, Kernel, kernels};
pub use kernel_dsl_compiler as compiler;
pub use launcher::{Argument, Element, Launcher};
