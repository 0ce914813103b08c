//! Facts about a block's index in every launch: the index is below the number of blocks, which may
//! have several cases.

use super::super::linear::{Cases, Polynomial, inequalities};
use super::super::variables::CaseValue;
use super::super::walk::SymbolicAnalysis;
use crate::ir::{Comparison, Special};
use crate::launch::MAX_GRID;

impl SymbolicAnalysis<'_> {
    /// Assumes the facts about the indices of blocks.
    pub(super) fn assume_grid(&mut self) {
        for axis in 0..3 {
            let block = self.special(Special::Block(axis));
            let axis = usize::from(axis);
            let max = Polynomial::constant(MAX_GRID[axis].into());
            self.assume_facts(inequalities(Comparison::Lt, &block, &max));
            if let Some(blocks) = self.table.grid[axis].clone() {
                self.assume_facts(inequalities(Comparison::Lt, &block, &blocks));
                self.assume_facts(inequalities(Comparison::Le, &blocks, &max));
            }
            let values = std::mem::take(&mut self.table.grid_cases[axis]);
            if let Some(exact) = &mut self.exact {
                let limits = values.iter().map(|case| case.value.clone());
                exact.block_limits[axis] = limits.filter(|limit| limit.as_constant().is_none()).collect();
            }
            self.assume_grid_cases(&block, &values, &max);
        }
    }

    /// Assumes that a block's index is below the value of `grid` in each case, so a block exists
    /// only if the value is at least 1. The value is at most `max`.
    ///
    /// A fact that is assumed here must hold in all cases, and so must the facts about its
    /// variables. A quotient, minimum or maximum has facts only where the launch evaluates it.
    /// Therefore a fact is assumed only if the launch evaluates all of its variables in every case.
    fn assume_grid_cases(&mut self, block: &Polynomial, values: &[CaseValue], max: &Polynomial) {
        let cases: Cases = values.iter().map(|case| facts_of_case(block, case, max)).collect();
        let Some(first) = cases.first() else { return };
        let of_all = first.iter().filter(|fact| cases.iter().all(|case| case.contains(fact))).cloned();
        let mut facts: Vec<Polynomial> = of_all.collect();
        for CaseValue { value, .. } in values {
            let limits = [vec![value.clone()], value.partial_products()].concat();
            for limit in limits.into_iter().filter(|limit| self.is_evaluated_in_all(&cases, limit)) {
                if self.cannot_hold_in(&cases, &inequalities(Comparison::Ge, block, &limit)) {
                    facts.extend(inequalities(Comparison::Lt, block, &limit));
                }
                if self.cannot_hold_in(&cases, &inequalities(Comparison::Gt, &limit, max)) {
                    facts.extend(inequalities(Comparison::Le, &limit, max));
                }
            }
        }
        facts.sort_unstable();
        facts.dedup();
        self.facts.extend(facts);
    }

    /// Returns whether the launch evaluates each quotient, minimum and maximum of `number` in every
    /// case: the facts of each case must mention them.
    fn is_evaluated_in_all(&self, cases: &Cases, number: &Polynomial) -> bool {
        let variables = number.variables();
        let mut derived =
            variables.iter().filter(|v| self.table.operands(**v).is_some() || self.table.selected.contains_key(v));
        derived.all(|v| cases.iter().all(|case| case.iter().any(|fact| fact.variables().contains(v))))
    }

    /// Returns whether the polynomials of `query` are not all ≥ 0 in any of the cases.
    fn cannot_hold_in(&self, cases: &Cases, query: &[Polynomial]) -> bool {
        cases.iter().all(|case| self.contradicts_facts(&[query, case].concat()))
    }
}

/// Returns the facts of a block's index in one case of the number of blocks.
fn facts_of_case(block: &Polynomial, case: &CaseValue, max: &Polynomial) -> Vec<Polynomial> {
    let CaseValue { facts, value } = case;
    let mut all = facts.clone();
    let below = inequalities(Comparison::Lt, block, value);
    all.extend(below.iter().flat_map(Polynomial::bounds_of_factors));
    all.extend(below);
    all.extend(inequalities(Comparison::Le, value, max));
    // No factor is 0, so a product of some of them is not larger.
    all.extend(value.partial_products().iter().map(|part| value.minus(part)));
    all
}
