//! Decisions: which outcomes of a comparison contradict the facts of a point.

use super::super::linear::{LinearVariable, Polynomial, inequalities, is_infeasible, is_infeasible_stepwise};
use super::super::variables::SelectedValue;
use super::{ConditionDefinition, SymbolicAnalysis};
use crate::ir::{Comparison, Value};

/// Maximum number of selected values whose two cases one query distinguishes.
pub const MAX_SELECT_SPLITS: usize = 3;

impl SymbolicAnalysis<'_> {
    /// Returns the constant that equals a comparison, if facts that were added after the last
    /// attempt decide it.
    pub fn decided_at_use(&mut self, value: Value) -> Option<Value> {
        let Some(ConditionDefinition::Compare(comparison, a, b)) = self.conditions.get(&value).copied() else {
            return None;
        };
        if self.note_attempt(value)? >= self.facts.len() {
            return None;
        }
        let holds = match self.exact {
            Some(_) => self.decide_exact(comparison, a, b)?,
            None => self.decide(comparison, a, b)?,
        };
        Some(self.constants[usize::from(holds)])
    }

    /// Records an attempt to decide a condition with the facts of this point. Returns the number of
    /// facts at the last attempt.
    pub fn note_attempt(&mut self, condition: Value) -> Option<usize> {
        self.facts_at_attempt.insert(condition, self.facts.len())
    }

    /// Returns the outcome of a comparison whose operands are used here, if the facts leave only
    /// one.
    pub fn decide(&mut self, comparison: Comparison, a: Value, b: Value) -> Option<bool> {
        let (a, b) = (self.number(a), self.number(b));
        // A comparison always holds if its opposite never does.
        let mut never_holds = |comparison| match comparison {
            Comparison::Ne => [Comparison::Lt, Comparison::Gt].into_iter().all(|c| self.never_holds(c, &a, &b)),
            _ => self.never_holds(comparison, &a, &b),
        };
        [true, false].into_iter().find(|holds| never_holds(if *holds { comparison.inverse() } else { comparison }))
    }

    /// Returns whether a comparison never holds. Both numbers are used here, so neither has
    /// wrapped.
    fn never_holds(&mut self, comparison: Comparison, a: &Polynomial, b: &Polynomial) -> bool {
        let query = [inequalities(comparison, a, b), vec![a.clone(), b.clone()]].concat();
        self.cannot_hold(&query, MAX_SELECT_SPLITS)
    }

    /// Returns whether the polynomials of `query` cannot all be ≥ 0 here. The query distinguishes
    /// the cases of at most `splits` selected values.
    pub fn cannot_hold(&mut self, query: &[Polynomial], splits: usize) -> bool {
        if self.contradicts_facts(query) {
            return true;
        }
        let mut variables = query.iter().flat_map(Polynomial::variables);
        match variables.find_map(|variable| Some((variable, *self.table.selected.get(&variable)?))) {
            Some((variable, selected)) => {
                splits > 0 && self.cannot_hold_for_either(query, variable, selected, splits - 1)
            }
            None => {
                self.exact.is_some() && (self.cannot_hold_for_maximum(query) || self.cannot_hold_in_cases(query, &[]))
            }
        }
    }

    /// Returns whether the polynomials of `query` cannot all be ≥ 0 here, without a distinction of
    /// cases.
    pub fn contradicts_facts(&self, query: &[Polynomial]) -> bool {
        let context: Vec<&Polynomial> = self.known_facts().chain(query).collect();
        let facts = self.table.relevant_facts(&context);
        match self.exact {
            Some(_) => is_infeasible_stepwise(&facts, query),
            None => is_infeasible(&facts, query),
        }
    }

    /// Returns whether the polynomials of `query` cannot all be ≥ 0 here, whichever value is
    /// selected for a variable.
    fn cannot_hold_for_either(
        &mut self,
        query: &[Polynomial],
        variable: LinearVariable,
        SelectedValue { condition, yes, no }: SelectedValue,
        splits: usize,
    ) -> bool {
        [(yes, true), (no, false)].into_iter().all(|(value, holds)| {
            let number = self.number(value);
            let substituted: Option<Vec<Polynomial>> = query.iter().map(|p| p.substitute(variable, &number)).collect();
            let Some(mut substituted) = substituted else { return false };
            self.add_condition_facts(condition, holds, &mut substituted);
            if self.exact.is_none() {
                return self.cannot_hold(&substituted, splits);
            }
            let scope = self.open_scope();
            self.assume_cases(condition, holds);
            let never = self.cannot_hold(&substituted, splits);
            self.close_scope(scope);
            never
        })
    }
}
