//! GPU kernels in Rust.

extern crate self as kernel_dsl;

pub mod artifact;
pub mod block;
pub mod grid;
pub mod host;
mod iterate;
pub mod launcher;
mod layout;
pub mod math;
pub mod prelude;
mod shared;
mod slice;
pub mod thread;
mod view;
pub mod warp;

pub use artifact::{Artifact, Declared, Kernel, kernels};
pub use iterate::{rolled, unroll};
pub use kernel_dsl_compiler as compiler;
pub use launcher::{Argument, Element, Launcher};
pub use layout::Position;
pub use shared::Shared;
pub use slice::SliceExt;
pub use view::{View, ViewMut};
