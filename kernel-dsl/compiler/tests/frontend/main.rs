//! The front end as ordinary code: from Rust text to checked HIR and to IR as lowered, with no macro in between.
//!
//! [`refused`] holds wrong programs and what is said about each, whole and with its place; [`lowered`] holds right ones
//! and the IR that they become; [`uniformity`] what is
//! the same for which threads; [`reference`] makes the page that lists all constructs; [`mutations`] damages right programs at random and looks for panics.
#![cfg(feature = "frontend")]

mod damage;
mod lowered;
mod mutations;
mod reference;
mod refused;
mod support;
mod uniformity;
