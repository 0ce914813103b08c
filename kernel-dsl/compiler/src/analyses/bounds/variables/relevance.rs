//! The facts about variables that a query may use.
//!
//! Facts about values that are computed from a variable of the query are left out: such a value may
//! be unused, and its operands may have wrapped. A quotient by 0 is unspecified, so a quotient has
//! facts only where its divisor is proven positive.

use super::super::linear::{LinearVariable, Polynomial, inequalities, is_infeasible, is_infeasible_stepwise};
use super::{VariableOrigin, VariableTable};
use crate::ir::Comparison;
use std::collections::{BTreeSet, HashMap};

/// Maximum number of quotients whose divisors each need the facts of the next one.
const MAX_NESTED_QUOTIENTS: usize = 2;

impl VariableTable {
    /// Returns the polynomials of `context`, and the facts about their variables and about the
    /// operands of these. A quotient has facts only where `context` keeps its divisor above 0.
    pub fn relevant_facts<'a>(&'a self, context: &[&'a Polynomial]) -> Vec<&'a Polynomial> {
        self.facts_about(context, context)
    }

    /// Returns `numbers`, and the facts about their variables and about the operands of these. A
    /// quotient has facts only where `context` keeps its divisor above 0.
    pub fn facts_about<'a>(&'a self, numbers: &[&'a Polynomial], context: &[&Polynomial]) -> Vec<&'a Polynomial> {
        let mut positive: HashMap<&Polynomial, bool> = HashMap::new();
        self.reachable_facts(numbers.to_vec(), |variable| {
            let is_positive = |divisor| *positive.entry(divisor).or_insert_with(|| self.is_positive(divisor, context));
            self.divisor(variable).is_none_or(is_positive)
        })
    }

    /// Returns `numbers`, and the facts about each variable in them or in these facts for which
    /// `has_facts` returns true.
    fn reachable_facts<'a>(
        &'a self,
        numbers: Vec<&'a Polynomial>,
        mut has_facts: impl FnMut(LinearVariable) -> bool,
    ) -> Vec<&'a Polynomial> {
        let mut facts = numbers;
        let mut seen = BTreeSet::new();
        let mut next = 0;
        while let Some(p) = facts.get(next) {
            next += 1;
            for variable in p.variables() {
                if seen.insert(variable) && has_facts(variable) {
                    facts.extend(self.variable_facts.get(&variable).into_iter().flatten());
                }
            }
        }
        facts
    }

    /// Returns the divisor of a variable that is a quotient.
    fn divisor(&self, variable: LinearVariable) -> Option<&Polynomial> {
        match self.origin(variable) {
            VariableOrigin::Quotient([_, divisor]) | VariableOrigin::Ceiling([_, divisor]) => Some(divisor),
            _ => None,
        }
    }

    /// Returns whether a number is at least 1 wherever the polynomials of `context` are ≥ 0.
    pub fn is_positive(&self, number: &Polynomial, context: &[&Polynomial]) -> bool {
        let quotients = if self.is_exact() { MAX_NESTED_QUOTIENTS } else { 0 };
        self.is_positive_with(number, context, quotients)
    }

    /// Returns whether a number is at least 1 wherever the polynomials of `context` are ≥ 0. A
    /// quotient's facts are used only if its divisor is proven positive with a smaller limit
    /// `quotients` of nested quotients. So no proof depends on itself.
    fn is_positive_with(&self, number: &Polynomial, context: &[&Polynomial], quotients: usize) -> bool {
        if let Some(n) = number.as_constant() {
            return n > 0;
        }
        if let (Some([a, b]), true) = (self.minimum_operands(number), quotients > 0) {
            return [a, b].into_iter().all(|operand| self.is_positive_with(operand, context, quotients));
        }
        let below = inequalities(Comparison::Lt, number, &Polynomial::constant(1));
        let numbers = context.iter().copied().chain(&below).collect();
        let facts = self.reachable_facts(numbers, |variable| {
            let is_positive = |divisor| quotients > 0 && self.is_positive_with(divisor, context, quotients - 1);
            self.divisor(variable).is_none_or(is_positive)
        });
        if quotients > 0 { is_infeasible_stepwise(&facts, &below) } else { is_infeasible(&facts, &below) }
    }
}
