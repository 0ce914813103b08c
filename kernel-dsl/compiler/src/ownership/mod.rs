//! The checks that rustc makes after types: exhaustive patterns, initialization, moves, borrows,
//! and the lints that rustc denies.
//!
//! A macro leaves these checks to rustc, which sees the same body. A kernel from a string has no
//! rustc, so [`source_file::standalone`](crate::source_file::standalone) runs them on the HIR.
//!
//! ```text
//! HIR ─┬─▶ exhaustive: the patterns of `match`, `let` and `for`
//!      ├─▶ lints: arithmetic that certainly fails, which rustc denies
//!      └─▶ builder ─▶ graph ─▶ analysis: values that are missing, loans that are in use
//! ```
//!
//! A graph has the accesses to variables in the order of evaluation. The analysis of loans is
//! that of rustc (RFC 2094, non-lexical lifetimes): a loan lasts while a variable that may hold the
//! reference is used later.

mod analysis;
mod builder;
mod exhaustive;
mod graph;
mod lints;
mod part;
mod types;

use crate::error::Error;
use crate::hir::{Function, Items};

/// Returns the mistakes of a function that rustc would find after the check of its types.
/// `functions` are those of the program, which the function calls.
pub fn check(function: &Function, functions: &[Function], items: &Items) -> Vec<Error> {
    let mut found = exhaustive::uncovered(function, items);
    found.extend(analysis::mistakes(builder::GraphBuilder::graph(function, functions, items)));
    found.extend(lints::denied(function));
    found.into_iter().map(|(span, message)| Error::at(&function.source, span, message)).collect()
}
