//! The state of an exact analysis, in addition to that of the walk.

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
    /// Sets of cases. At this point, one case of each set holds.
    pub cases: Vec<Cases>,
    /// The possible numbers of blocks along each axis that has several, without constants.
    pub block_limits: [Vec<Polynomial>; 3],
    /// The outcomes of decided comparisons and of constants.
    pub outcomes: HashMap<Value, bool>,
    /// Polynomials that are ≥ 0 here unless a violation is already recorded. A proof may use these
    /// polynomials only to omit a check: after the first violation, another has no effect.
    pub unreported_facts: Vec<Polynomial>,
    /// The last result that may have wrapped.
    pub last_wrapped: Option<WrappedResult>,
    /// The last result that is proven not to wrap. The code continues with the check of this
    /// result.
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
    /// The operands of a sum; `None` for other operations, whose result may be less than an operand
    /// without wrapping.
    pub summands: Option<[Polynomial; 2]>,
}
