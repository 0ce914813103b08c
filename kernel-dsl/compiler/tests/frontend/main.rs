//! The front end as ordinary code: from Rust text to checked HIR and to IR as lowered, without
//! macros.
//!
//! - [`refused`] has invalid programs with their complete messages and locations.
//! - [`lowered`] has valid programs with their IR.
//! - [`expansions`] has the expansions of the macros as tokens.
//! - [`source_files`] reads kernels from the text of their file.
//! - [`uniformity`] tests which threads share which values.
//! - [`reference`] makes the page that lists all constructs.
//! - [`without_rustc`] has mistakes that rustc finds where it sees the kernel.
//! - [`mutations`] damages valid programs at random and looks for panics.
#![cfg(feature = "frontend")]

mod clauses;
mod damage;
mod expansions;
mod generated;
mod lowered;
mod mutations;
mod reference;
mod refused;
mod source_files;
mod support;
mod uniformity;
mod without_rustc;
