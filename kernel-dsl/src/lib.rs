//! GPU kernels in Rust.

extern crate self as kernel_dsl;

pub mod artifact;
pub mod launcher;
#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

pub use artifact::{Artifact, Declared, Kernel, kernels};
pub use kernel_dsl_compiler as compiler;
pub use launcher::{Argument, Element, Launcher};
#[doc(hidden)]
pub use kernel_macros::__link;
pub use kernel_macros::{device, kernel};
