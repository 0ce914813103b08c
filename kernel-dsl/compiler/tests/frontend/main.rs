//! The front end as ordinary code: from Rust text to checked HIR and to IR as lowered, without
//! macros.
//!
//! - [`refused`] has invalid programs with their complete messages and locations.
//! - [`lowered`] has valid programs with their IR.
//! - [`uniformity`] tests which threads share which values.
//! - [`reference`] makes the page that lists all constructs.
//! - [`mutations`] damages valid programs at random and looks for panics.
#![cfg(feature = "frontend")]

mod clauses;
mod damage;
mod generated;
mod lowered;
mod mutations;
mod reference;
mod refused;
mod support;
mod uniformity;
