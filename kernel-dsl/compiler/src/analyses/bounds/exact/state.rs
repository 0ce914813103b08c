//! The state of an exact analysis, beside that of the walk.

use super::super::linear::{Cases, Polynomial};
use crate::ir::Value;
use std::collections::HashMap;

/// The state of decisions that hold although a `usize` may wrap.
#[derive(Default)]
pub struct ExactState {
    /// Number of eliminations so far.
    pub eliminations: usize,
    /// Number of distinctions of cases so far.
    pub distinctions: usize,
    /// Cases of which one holds at this point.
    pub cases: Vec<Cases>,
    /// The outcomes of decided comparisons and of constants.
    pub outcomes: HashMap<Value, bool>,
    /// Polynomials that are ≥ 0 here, or a violation is recorded already. These polynomials only
    /// decide whether to record another violation, which would have no effect.
    pub unreported_facts: Vec<Polynomial>,
    /// The last result that may have wrapped.
    pub last_wrapped: Option<WrappedResult>,
    /// The last result that is proven not to wrap: its check is next.
    pub last_proven: Option<ProvenResult>,
}

/// A result that may have wrapped.
pub struct WrappedResult {
    /// The number that is stored.
    pub wrapped: Polynomial,
    /// The result without wrapping.
    pub exact: Polynomial,
    pub operands: [Polynomial; 2],
}

/// A result that does not wrap.
pub struct ProvenResult {
    /// The number that its check compares.
    pub compared: Polynomial,
    /// The operands of a sum. The other results may be less than an operand.
    pub summands: Option<[Polynomial; 2]>,
}
