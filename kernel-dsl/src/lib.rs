//! GPU kernels in Rust.

extern crate self as kernel_dsl;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
pub mod artifact;
pub mod launcher;

pub use artifact::{Artifact, Declared, Kernel, kernels};
pub use kernel_dsl_compiler as compiler;
#[doc(hidden)]
pub use kernel_macros::__link;
pub use kernel_macros::{device, kernel};
pub use launcher::{Argument, Element, Launcher};
