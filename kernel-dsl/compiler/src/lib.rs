//! The compiler of kernel-dsl, as ordinary library code.
//!
//! # The stages of compilation
//!
//! ```text
//! tokens ─▶ syntax ─▶ check ─▶ HIR                  (feature `frontend`; what the macros run)
//! HIR × instance × target ─▶ lower ─▶ IR (─▶ analyses) ─▶ passes ─▶ IR ─▶ emit ─▶ PTX AST ─▶ text
//! ```
//!
//! * [`syntax`] turns Rust tokens into a tree of the supported subset, with token positions, and
//!   rejects all other Rust. [`language`] lists the built-in names.
//! * [`check`] resolves names, infers types by unification, checks mutability, and produces
//!   [`hir`].
//! * [`ownership`] checks what rustc checks after types, for kernels that rustc does not see.
//! * [`hir`] is generic, contains all device functions of a kernel, and is serialized into the
//!   expansion.
//! * [`lower`] produces [`ir`] for one instance and target: it inlines calls, splits aggregates and
//!   lays out shared memory.
//! * [`ir`] is typed and structured: loops and branches are nodes. The oracle in crate `runtime`
//!   runs the lowered IR.
//! * [`analyses`] reject lowered IR with a proven mistake, and estimate the cost of a kernel.
//! * [`passes`] rewrite IR without changing any value; each pass has its own file.
//! * [`emit`] turns optimized IR into a PTX AST ([`ptx`]), whose instructions come from one table.
//! * [`oracle`] defines the checks of the interpreter in crate `runtime`.
//! * [`launch`] evaluates the launch shape and conditions of a kernel on the host.
//!
//! [`driver`] connects the stages from HIR to text. [`source_file`] reads a kernel from the text of
//! its file. [`lower::checked`] makes the checked form of a kernel, which checks its accesses on
//! the device and reports violations.

#![forbid(unsafe_code)]

#[cfg(feature = "frontend")]
pub mod check;
#[cfg(feature = "frontend")]
pub mod expand;
#[cfg(feature = "frontend")]
pub mod language;
#[cfg(feature = "frontend")]
pub mod ownership;
#[cfg(feature = "frontend")]
pub mod source_file;
#[cfg(feature = "frontend")]
pub mod syntax;

pub mod analyses;
mod approximation;
pub mod assertion;
pub mod build;
pub mod driver;
pub mod element;
pub mod emit;
pub mod error;
pub mod float16;
pub mod half;
mod hash;
pub mod hir;
pub mod integer;
pub mod ir;
pub mod launch;
pub mod lock;
pub mod lower;
#[cfg(feature = "frontend")]
mod names;
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
