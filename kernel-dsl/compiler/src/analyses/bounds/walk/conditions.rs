//! Conditions that dominate a point, and the facts that follow from them.

use super::super::linear::{Polynomial, comparison_where, inequalities};
use super::{ConditionDefinition, SymbolicAnalysis};
use crate::ir::{Comparison, Location, Value};

/// The numbers of facts and cases where a scope begins.
#[derive(Clone, Copy)]
pub struct FactScope {
    facts: usize,
    cases: usize,
}

impl SymbolicAnalysis<'_> {
    /// Begins a scope of facts.
    pub fn open_scope(&self) -> FactScope {
        let cases = self.exact.as_ref().map_or(0, |exact| exact.cases.len());
        FactScope { facts: self.facts.len(), cases }
    }

    /// Removes the facts of a scope.
    pub fn close_scope(&mut self, FactScope { facts, cases }: FactScope) {
        self.facts.truncate(facts);
        self.exact.iter_mut().for_each(|exact| exact.cases.truncate(cases));
        if let Some(collector) = &mut self.collector {
            while collector.fact_groups.pop_if(|(first, _)| *first >= facts).is_some() {}
        }
    }

    /// Assumes that the condition of the branch at `location` equals `holds` until the scope ends.
    pub fn enter(&mut self, location: Location, condition: Value, holds: bool) {
        self.begin_facts_of(location);
        if self.collector.is_some() && !self.is_expressed(condition, holds) {
            self.set_unexpressed_conditions(true);
        }
        self.assume(condition, holds);
    }

    /// Assumes that a condition equals `holds` until the scope ends.
    fn assume(&mut self, condition: Value, holds: bool) {
        let mut facts = Vec::new();
        self.add_condition_facts(condition, holds, &mut facts);
        if self.exact.is_some() {
            self.assume_facts(facts);
            self.assume_unexpressed_cases(condition, holds);
        } else {
            self.facts.extend(facts);
        }
    }

    /// Adds to `facts` the polynomials that are ≥ 0 where a condition equals `holds`.
    pub fn add_condition_facts(&mut self, condition: Value, holds: bool, facts: &mut Vec<Polynomial>) {
        match (self.conditions.get(&condition).copied(), holds) {
            (Some(ConditionDefinition::Compare(comparison, a, b)), _) => {
                let (a, b) = (self.number(a), self.number(b));
                facts.extend(inequalities(comparison_where(comparison, holds), &a, &b));
            }
            (Some(ConditionDefinition::And(a, b)), true) | (Some(ConditionDefinition::Or(a, b)), false) => {
                self.add_condition_facts(a, holds, facts);
                self.add_condition_facts(b, holds, facts);
            }
            (Some(ConditionDefinition::Not(a)), _) => self.add_condition_facts(a, !holds, facts),
            _ => {}
        }
    }

    /// Returns whether the facts of a condition that equals `holds` express it completely.
    pub fn is_expressed(&self, condition: Value, holds: bool) -> bool {
        match (self.conditions.get(&condition).copied(), holds) {
            (Some(ConditionDefinition::Compare(comparison, ..)), _) => {
                comparison_where(comparison, holds) != Comparison::Ne
            }
            (Some(ConditionDefinition::And(a, b)), true) | (Some(ConditionDefinition::Or(a, b)), false) => {
                self.is_expressed(a, holds) && self.is_expressed(b, holds)
            }
            (Some(ConditionDefinition::Not(a)), _) => self.is_expressed(a, !holds),
            _ => condition == self.constants[usize::from(holds)],
        }
    }
}
