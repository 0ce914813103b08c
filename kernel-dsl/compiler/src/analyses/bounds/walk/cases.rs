//! Conditions with several cases, such as `a || b` and `a != b`: the facts of at least one case
//! hold.
//!
//! A query that cannot hold in any case cannot hold. The cases of a condition need not exclude each
//! other, but one of them must hold wherever the condition does.

use super::super::linear::{Cases, Polynomial, cases_of_unequal, comparison_where, informative_cases};
use super::{ConditionDefinition, SymbolicAnalysis};
use crate::ir::{Comparison, Value};

/// Maximum number of conditions whose cases one query distinguishes.
const MAX_CONDITIONS: usize = 3;

impl SymbolicAnalysis<'_> {
    /// Returns the cases in which a condition equals `holds`.
    fn cases_of(&mut self, condition: Value, holds: bool) -> Cases {
        match (self.conditions.get(&condition).copied(), holds) {
            (Some(ConditionDefinition::Compare(comparison, a, b)), _)
                if comparison_where(comparison, holds) == Comparison::Ne =>
            {
                let (a, b) = (self.number(a), self.number(b));
                cases_of_unequal(&a, &b)
            }
            (Some(ConditionDefinition::Or(a, b)), true) | (Some(ConditionDefinition::And(a, b)), false) => {
                [self.cases_of(a, holds), self.cases_of(b, holds)].concat()
            }
            (Some(ConditionDefinition::Not(a)), _) => self.cases_of(a, !holds),
            _ => {
                let mut facts = Vec::new();
                self.add_condition_facts(condition, holds, &mut facts);
                vec![facts]
            }
        }
    }

    /// Assumes the cases of each part of a condition that equals `holds`.
    pub fn assume_cases(&mut self, condition: Value, holds: bool) {
        for part in self.parts_of(condition, holds) {
            self.assume_cases_of_part(part, holds);
        }
    }

    /// Assumes the cases of each part of a condition that equals `holds`, except parts that facts
    /// already express completely.
    pub fn assume_unexpressed_cases(&mut self, condition: Value, holds: bool) {
        for part in self.parts_of(condition, holds) {
            if !self.is_expressed(part, holds) {
                self.assume_cases_of_part(part, holds);
            }
        }
    }

    /// Returns the conditions that all equal `holds` where `condition` does.
    fn parts_of(&self, condition: Value, holds: bool) -> Vec<Value> {
        match (self.conditions.get(&condition).copied(), holds) {
            (Some(ConditionDefinition::And(a, b)), true) | (Some(ConditionDefinition::Or(a, b)), false) => {
                [self.parts_of(a, holds), self.parts_of(b, holds)].concat()
            }
            _ => vec![condition],
        }
    }

    fn assume_cases_of_part(&mut self, condition: Value, holds: bool) {
        let cases = self.cases_of(condition, holds);
        match informative_cases(cases) {
            // A comparison with 0 has one case, so its facts hold without a distinction.
            Some(mut cases) if cases.len() == 1 => self.facts.append(&mut cases[0]),
            Some(cases) => self.exact.iter_mut().for_each(|exact| exact.cases.push(cases.clone())),
            None => {}
        }
    }

    /// Returns whether the polynomials of `query` cannot all be ≥ 0, because they cannot in any of
    /// the known cases. The conditions with the indices `used` have been distinguished.
    pub fn cannot_hold_in_cases(&mut self, query: &[Polynomial], used: &[usize]) -> bool {
        let Some(exact) = self.exact.as_ref().filter(|_| used.len() < MAX_CONDITIONS) else { return false };
        let variables: Vec<_> = query.iter().flat_map(Polynomial::variables).collect();
        let shared = |cases: &Cases| {
            let mut own: Vec<_> = cases.iter().flatten().flat_map(Polynomial::variables).collect();
            own.sort_unstable();
            own.dedup();
            own.iter().filter(|variable| variables.contains(variable)).count()
        };
        let scored = exact.cases.iter().enumerate().filter(|(i, _)| !used.contains(i));
        let scored = scored.map(|(i, cases)| (shared(cases), i)).filter(|(shared, _)| *shared > 0);
        let Some((_, next)) = scored.max() else { return false };
        let cases = exact.cases[next].clone();
        let used = [used, &[next]].concat();
        cases.into_iter().all(|case| {
            let with = [query, &case].concat();
            self.try_distinguish() && (self.contradicts_facts(&with) || self.cannot_hold_in_cases(&with, &used))
        })
    }
}
