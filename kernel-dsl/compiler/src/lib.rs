//! The compiler of kernel-dsl, as ordinary library code that takes and returns values.
//!
//! # The way of a kernel
//!
//! ```text
//! tokens ─▶ syntax ─▶ check ─▶ HIR                  (feature `frontend`; what the macros run)
//! HIR × instance × target ─▶ lower ─▶ IR (─▶ analyses) ─▶ passes ─▶ IR ─▶ emit ─▶ PTX AST ─▶ text
//! ```
//!
//! * [`syntax`] turns Rust tokens into a tree of the subset that a kernel may use, with the places of its tokens, and
//!   refuses what lies outside, all of it at once.
//! * [`check`] resolves names, infers types by unification, and checks mutability. It makes [`hir`].
//! * [`hir`] is generic over the kernel's constants, closed over device functions, and serialised into the expansion.
//! * [`lower`] makes one instance of it for one target: calls inlined, aggregates taken apart, shared memory laid
//!   out. It makes [`ir`].
//! * [`ir`] is typed and structured: loops and branches are nodes. The oracle in crate `runtime` runs it as lowered.
//! * [`analyses`] look at IR as lowered, and refuse what is proven wrong with it.
//! * [`passes`] rewrite IR, each in a file of its own, none changing a value.
//! * [`emit`] turns optimised IR, and only that, into a PTX AST ([`ptx`]), whose instructions come from one table.
//! * [`analyses`] tell what a kernel will cost.
//! * [`oracle`] is what the interpreter in crate `runtime` holds a kernel to, by name.
//! * [`launch`] evaluates a kernel's launch shape and conditions on the host.
//!
//! [`compile`] goes the way from HIR to text. [`lower::checked`] makes a kernel's other form, which checks its accesses on the
//! device and reports what is wrong.

#![forbid(unsafe_code)]

#[cfg(feature = "frontend")]
pub mod check;
#[cfg(feature = "frontend")]
pub mod expand;
#[cfg(feature = "frontend")]
pub mod language;
#[cfg(feature = "frontend")]
pub mod syntax;

pub mod analyses;
pub mod approximation;
pub mod build;
pub mod driver;
pub mod element;
pub mod emit;
pub mod error;
pub mod float16;
pub mod half;
pub mod hir;
pub mod integer;
pub mod ir;
pub mod launch;
pub mod lower;
pub mod oracle;
pub mod passes;
pub mod ptx;
pub mod scalar;
pub mod source;
pub mod target;

pub use approximation::Approximation;
pub use build::{Build, FINGERPRINT};
pub use driver::{Compilation, compile, compile_monomorphic};
pub use element::ElementType;
pub use error::{Error, Errors};
pub use scalar::Scalar;
pub use target::Target;
