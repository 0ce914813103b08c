//! Rewriting of the comparisons and checks whose outcome is decided.

use super::super::linear::Polynomial;
use super::super::variables::{MAX_USIZE, threads_of};
use super::super::walk::{ConditionDefinition, SymbolicAnalysis};
use crate::ir::{Comparison, Inst, Op, Region, Value};
use crate::scalar::Scalar;

/// Maximum number of unreported facts, the latest, in one proof. Each costs time.
const MAX_UNREPORTED_FACTS: usize = 24;

impl SymbolicAnalysis<'_> {
    /// Replaces a comparison, or the condition of a check, by its outcome if that is decided.
    /// Returns whether the instruction is a comparison or a check. The caller need not visit its
    /// regions.
    pub fn rewrite(&mut self, inst: &mut Inst) -> bool {
        match &mut inst.op {
            Op::Compare(comparison, a, b) => {
                if self.compares_exact_numbers(*a, *b)
                    && let Some(holds) = self.decide_exact(*comparison, *a, *b)
                {
                    inst.op = Op::Constant(holds.into());
                    self.set_outcome(inst.results[0], holds);
                }
                true
            }
            Op::If { condition, then, otherwise }
                if inst.results.is_empty()
                    && (only_reports(then) && does_nothing(otherwise)
                        || only_reports(otherwise) && does_nothing(then)) =>
            {
                let passes = does_nothing(then);
                if self.is_passed_check(*condition, passes) {
                    *condition = self.constants[usize::from(passes)];
                }
                true
            }
            _ => false,
        }
    }

    /// Returns the number of facts that hold unless a violation is already recorded.
    pub fn unreported_facts(&self) -> usize {
        self.exact.as_ref().map_or(0, |exact| exact.unreported_facts.len())
    }

    /// Removes the facts that hold unless a violation is already recorded, except the first `kept`.
    pub fn truncate_unreported_facts(&mut self, kept: usize) {
        if let Some(exact) = &mut self.exact {
            exact.unreported_facts.truncate(kept);
            exact.last_proven = None;
        }
    }

    /// Returns whether the condition of a check is proven to equal `passes`, unless a violation is
    /// already recorded. `passes` is the outcome without a violation, and is assumed after the
    /// check.
    fn is_passed_check(&mut self, condition: Value, passes: bool) -> bool {
        let Some(exact) = &self.exact else { return false };
        let known = self.facts.len();
        self.facts.extend(exact.unreported_facts.iter().rev().take(MAX_UNREPORTED_FACTS).cloned());
        let decided = match (self.outcome(condition), self.conditions.get(&condition).copied()) {
            (Some(holds), _) => Some(holds),
            // `rewrite` could not decide the comparison, so another attempt needs further facts.
            (None, Some(ConditionDefinition::Compare(comparison, a, b))) if self.facts.len() > known => {
                self.decide_exact(comparison, a, b)
            }
            _ => None,
        };
        let is_passed = decided == Some(passes);
        if !is_passed {
            let mut facts = Vec::new();
            self.add_condition_facts(condition, passes, &mut facts);
            self.facts.extend(facts.iter().cloned());
            facts.extend(self.no_wrap_facts(condition, passes));
            if let Some(exact) = &mut self.exact {
                exact.unreported_facts.extend(facts);
            }
        }
        self.facts.truncate(known);
        is_passed
    }

    /// Returns whether a comparison has operands with exact polynomials.
    fn compares_exact_numbers(&self, a: Value, b: Value) -> bool {
        let is_known_u64 = |v: Value| self.scalar(v) == Some(Scalar::U64) && self.numbers.contains_key(&v);
        self.is_usize(a) || is_known_u64(a) && is_known_u64(b)
    }

    /// Returns the outcome of a comparison, if the facts leave only one.
    pub fn decide_exact(&mut self, comparison: Comparison, a: Value, b: Value) -> Option<bool> {
        let (x, y) = (self.number(a), self.number(b));
        if self.is_passed_wrap_check(comparison, &x, &y) {
            return Some(false);
        }
        let by_cheap_means =
            self.decide_by_intervals(comparison, &x, &y).or_else(|| self.decide_in_all_threads(comparison, &x, &y));
        match by_cheap_means {
            None if self.may_eliminate() => self.decide(comparison, a, b),
            decided => decided,
        }
    }

    /// Returns whether a comparison tests whether the last result wrapped, and that result is
    /// proven not to wrap.
    fn is_passed_wrap_check(&self, comparison: Comparison, x: &Polynomial, y: &Polynomial) -> bool {
        let Some(proven) = self.exact.as_ref().and_then(|exact| exact.last_proven.as_ref()) else { return false };
        proven.compared == *x
            && match comparison {
                Comparison::Lt => proven.summands.as_ref().is_some_and(|summands| summands.contains(y)),
                Comparison::Gt => y.as_constant() == Some(MAX_USIZE),
                _ => false,
            }
    }

    /// Returns the outcome of a comparison that follows from an interval of y − x.
    fn decide_by_intervals(&self, comparison: Comparison, x: &Polynomial, y: &Polynomial) -> Option<bool> {
        let block = self.kernel.block.max_extents();
        let min = -self.table.upper_bound(&x.minus(y), block);
        let max = self.table.upper_bound(&y.minus(x), block);
        let (always, never) = match comparison {
            Comparison::Lt => (min > 0, max <= 0),
            Comparison::Le => (min >= 0, max < 0),
            Comparison::Gt => (max < 0, min >= 0),
            Comparison::Ge => (max <= 0, min > 0),
            Comparison::Eq | Comparison::Ne => (false, false),
        };
        always.then_some(true).or(never.then_some(false))
    }

    /// Returns the outcome of a comparison of numbers that only the thread's index determines, if
    /// it is the same in all threads of a block.
    fn decide_in_all_threads(&self, comparison: Comparison, x: &Polynomial, y: &Polynomial) -> Option<bool> {
        let outcome = |thread: [u32; 3]| {
            let (x, y) = (self.table.value_in_thread(x, thread)?, self.table.value_in_thread(y, thread)?);
            Some(match comparison {
                Comparison::Eq => x == y,
                Comparison::Ne => x != y,
                Comparison::Lt => x < y,
                Comparison::Le => x <= y,
                Comparison::Gt => x > y,
                Comparison::Ge => x >= y,
            })
        };
        let first = outcome([0, 0, 0])?;
        threads_of(self.kernel.block.max_extents()).all(|thread| outcome(thread) == Some(first)).then_some(first)
    }
}

/// Returns whether a side of a branch only records a violation.
fn only_reports(side: &Region) -> bool {
    let reports = side.insts.iter().any(|inst| matches!(inst.op, Op::RecordViolation { .. }));
    let harmless = |op: &Op| op.is_pure() || matches!(op, Op::RecordViolation { .. } | Op::Yield(_));
    reports && side.insts.iter().all(|inst| harmless(&inst.op))
}

/// Returns whether a side of a branch does nothing.
fn does_nothing(side: &Region) -> bool {
    side.insts.iter().all(|inst| matches!(inst.op, Op::Constant(_) | Op::Yield(_)))
}
