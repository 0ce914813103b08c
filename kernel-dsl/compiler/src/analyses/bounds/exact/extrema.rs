//! Bounds from minima, maxima and remainders, which occur where a kernel numbers its blocks in
//! groups.

use super::super::linear::{LinearVariable, Polynomial, inequalities, is_infeasible_stepwise};
use super::super::variables::VariableOrigin;
use super::super::walk::{ConditionDefinition, SymbolicAnalysis};
use crate::ir::{Comparison, Value};

impl SymbolicAnalysis<'_> {
    /// Returns the number of a condition that is converted to `usize`. The number of `a % b != 0`
    /// is ⌈a / b⌉ − ⌊a / b⌋: kernels add it to a quotient to round up.
    pub fn number_of_condition(&mut self, condition: Value) -> Option<Polynomial> {
        if let Some(holds) = self.outcome(condition) {
            return Some(Polynomial::constant(holds.into()));
        }
        let Some(ConditionDefinition::Compare(Comparison::Ne, remainder, zero)) =
            self.conditions.get(&condition).copied()
        else {
            return None;
        };
        let [a, b] = self.remainders.get(&remainder)?.clone();
        if self.number(zero).as_constant() != Some(0) {
            return None;
        }
        let up = self.table.ceiling(&a, &b)?;
        let down = self.table.quotient(&a, &b)?;
        Some(up.minus(&down))
    }

    /// Records a bound of a quotient r / h, where r is a remainder by d, and h a minimum. Such a
    /// quotient occurs where blocks are numbered in groups of h rows. There r is a block's number
    /// within the group, and the quotient is the block's column. The column is less than the number
    /// of columns, a factor of d.
    pub fn bound_quotient_of_remainder(&mut self, a: Value, b: Value, result: Value) {
        let Some([_, divisor]) = self.remainders.get(&a).cloned() else { return };
        let Some(min) = self.number(b).as_variable() else { return };
        let VariableOrigin::Min(operands) = self.table.origin(min).clone() else { return };
        let quotient = self.number(result);
        for limit in divisor.variables() {
            let limit = Polynomial::variable(limit);
            let beyond = inequalities(Comparison::Ge, &quotient, &limit);
            if self.may_eliminate() && self.cannot_hold_for_operands(min, &operands, &beyond) {
                return self.replace_by_number_below(result, &limit);
            }
        }
    }

    /// Replaces the polynomial of a sum by a bounded variable, if the sum is below an operand of a
    /// minimum. The row of a block in a group is an example: it is less than the number of rows,
    /// which is an operand of the minimum.
    pub(super) fn replace_sum_with_remainder(&mut self, result: Value) {
        let number = self.number(result);
        let products = number.terms().filter(|(monomial, _)| monomial.len() > 1);
        let mut minima = products.flat_map(|(monomial, _)| monomial.iter()).filter_map(|variable| {
            let VariableOrigin::Min(operands) = self.table.origin(*variable) else { return None };
            Some(operands.iter().flat_map(Polynomial::variables).collect::<Vec<_>>())
        });
        let Some(limits) = minima.next() else { return };
        for limit in limits {
            let limit = Polynomial::variable(limit);
            let beyond = inequalities(Comparison::Ge, &number, &limit);
            if self.may_eliminate() && self.cannot_hold(&beyond, 0) {
                return self.replace_by_number_below(result, &limit);
            }
        }
    }

    /// Replaces the polynomial of a result by a variable below `limit`. Proofs with a polynomial of
    /// many products rarely succeed.
    fn replace_by_number_below(&mut self, result: Value, limit: &Polynomial) {
        let variable = self.table.variable(VariableOrigin::Value(result));
        self.facts.extend(inequalities(Comparison::Lt, &variable, limit));
        self.numbers.insert(result, variable);
    }

    /// Returns whether the polynomials of `query` cannot all be ≥ 0 here. The proof takes a maximum
    /// in them and tries each of its operands in its place.
    pub fn cannot_hold_for_maximum(&mut self, query: &[Polynomial]) -> bool {
        let maximum = query.iter().flat_map(Polynomial::variables).find_map(|variable| {
            let VariableOrigin::Max(operands) = self.table.origin(variable) else { return None };
            Some((variable, operands))
        });
        maximum.is_some_and(|(variable, operands)| self.cannot_hold_for_operands(variable, operands, query))
    }

    /// Returns whether the polynomials of `query` cannot all be ≥ 0 here. The proof replaces the
    /// minimum or maximum `extremum` by each of its operands in turn, and needs a contradiction in
    /// both cases.
    fn cannot_hold_for_operands(
        &self,
        extremum: LinearVariable,
        [a, b]: &[Polynomial; 2],
        query: &[Polynomial],
    ) -> bool {
        let is_min = matches!(self.table.origin(extremum), VariableOrigin::Min(_));
        let order = if is_min { Comparison::Ge } else { Comparison::Le };
        let context: Vec<&Polynomial> = self.known_facts().chain(query).collect();
        let facts = self.table.relevant_facts(&context);
        [(a, b), (b, a)].into_iter().all(|(chosen, other)| {
            let replaced = |p: &Polynomial| p.substitute(extremum, chosen);
            let mut query: Vec<Polynomial> = query.iter().filter_map(replaced).collect();
            // The operand equals a `usize`, so it is not negative.
            query.extend(query.iter().filter_map(|p| p.times(chosen)).collect::<Vec<_>>());
            let mut facts: Vec<Polynomial> = facts.iter().copied().filter_map(replaced).collect();
            facts.extend(inequalities(order, other, chosen));
            facts.push(chosen.clone());
            is_infeasible_stepwise(&facts.iter().collect::<Vec<_>>(), &query)
        })
    }
}
