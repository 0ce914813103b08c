//! A walk over a kernel that tracks which facts hold at each point.
//!
//! The walk visits each instruction once, in order. `translate` gives each `usize` its polynomial
//! and each condition its definition. `control` enters regions. Inside a side of a branch or a
//! loop's body, the facts of the dominating conditions hold (`conditions`). The end of the region
//! removes these facts. `decide` tests which outcomes of a comparison contradict the facts.

mod cases;
mod conditions;
mod control;
mod decide;
mod translate;

pub use decide::MAX_SELECT_SPLITS;

use super::accesses::AccessCollector;
use super::exact::ExactState;
use super::launch::EqualExtents;
use super::linear::Polynomial;
use super::variables::{VariableOrigin, VariableTable};
use crate::ir::{Comparison, Kernel, Value};
use crate::scalar::Scalar;
use std::collections::HashMap;

/// Definition of a condition.
#[derive(Clone, Copy)]
pub enum ConditionDefinition {
    /// A comparison of numbers.
    Compare(Comparison, Value, Value),
    And(Value, Value),
    Or(Value, Value),
    Not(Value),
}

/// State of the walk over a kernel.
pub struct SymbolicAnalysis<'a> {
    pub kernel: &'a Kernel,
    pub equal: &'a EqualExtents,
    /// Values for `false` and `true`, defined for this analysis alone.
    pub constants: [Value; 2],
    pub table: VariableTable,
    /// Polynomials of the values that are numbers.
    pub numbers: HashMap<Value, Polynomial>,
    pub conditions: HashMap<Value, ConditionDefinition>,
    /// Dividend and divisor of each remainder whose divisor is at least 1.
    pub remainders: HashMap<Value, [Polynomial; 2]>,
    /// Polynomials that are ≥ 0 at this point.
    pub facts: Vec<Polynomial>,
    /// Number of facts at the last attempt to decide a comparison.
    facts_at_attempt: HashMap<Value, usize>,
    /// State of the collection of accesses, if requested.
    pub collector: Option<AccessCollector>,
    /// Set if a `usize` may wrap.
    pub exact: Option<ExactState>,
}

impl<'a> SymbolicAnalysis<'a> {
    /// Returns the state before a kernel. The values of `constants` are `false` and `true`.
    pub fn new(
        table: VariableTable,
        kernel: &'a Kernel,
        equal: &'a EqualExtents,
        constants: [Value; 2],
    ) -> SymbolicAnalysis<'a> {
        SymbolicAnalysis {
            kernel,
            equal,
            constants,
            table,
            numbers: HashMap::new(),
            conditions: HashMap::new(),
            remainders: HashMap::new(),
            facts: Vec::new(),
            facts_at_attempt: HashMap::new(),
            collector: None,
            exact: None,
        }
    }

    /// Returns the type of a value, if it is a scalar.
    pub fn scalar(&self, value: Value) -> Option<Scalar> {
        self.kernel.ty(value).scalar()
    }

    /// Returns whether a value is a `usize`.
    pub fn is_usize(&self, value: Value) -> bool {
        self.scalar(value) == Some(Scalar::Usize)
    }

    /// Returns the polynomial of a value, or else the variable of the value.
    pub fn number(&mut self, value: Value) -> Polynomial {
        match self.numbers.get(&value) {
            Some(number) => number.clone(),
            None => self.table.variable(VariableOrigin::Value(value)),
        }
    }

    /// Returns the facts that hold at this point, also those of every launch.
    pub fn known_facts(&self) -> impl Iterator<Item = &Polynomial> {
        self.table.launch_facts.iter().chain(&self.facts)
    }
}
