//! Polynomials of sums, differences and products, and proofs that these do not wrap.

use super::super::linear::{LinearVariable, Polynomial, inequalities};
use super::super::variables::{MAX_USIZE, VariableOrigin};
use super::super::walk::{ConditionDefinition, MAX_SELECT_SPLITS, SymbolicAnalysis};
use super::state::{ProvenResult, WrappedResult};
use crate::ir::{Binary, Comparison, Op, Value};
use std::collections::BTreeSet;

/// Largest shift of a `usize` to the left that is a product.
const MAX_SHIFT: i128 = 31;

/// The largest tracked exponent of a power of two that divides a wrapped number.
const MAX_POWER: u32 = 8;

impl SymbolicAnalysis<'_> {
    /// Records the polynomial of a sum, difference or product if it is proven not to wrap, and a
    /// variable otherwise. Returns whether the proof succeeded. Equal operations on equal numbers
    /// have one variable.
    pub fn translate_unless_wrapped(&mut self, operator: Binary, operands: [Value; 2], result: Value) -> bool {
        let [a, b] = operands.map(|operand| self.number(operand));
        let number = match operator {
            Binary::Shl => {
                let shift = b.as_constant().filter(|n| *n <= MAX_SHIFT);
                shift.and_then(|n| a.times(&Polynomial::constant(1 << n)))
            }
            _ => self.table.binary(operator, &a, &b),
        };
        match number.filter(|number| self.fits(operator, number)) {
            Some(number) => {
                self.translate_proven(operator, [a, b], number, result);
                true
            }
            None => {
                self.translate_wrapped(operator, [a, b], result);
                false
            }
        }
    }

    fn translate_proven(&mut self, operator: Binary, operands: [Polynomial; 2], number: Polynomial, result: Value) {
        self.numbers.insert(result, number.clone());
        self.replace_sum_with_remainder(result);
        // The check of a product compares the 64-bit product; the check of a sum compares the
        // result.
        let compared = if operator == Binary::Mul { number } else { self.number(result) };
        let summands = (operator == Binary::Add).then_some(operands);
        if let Some(exact) = &mut self.exact {
            exact.last_proven = Some(ProvenResult { compared, summands });
        }
    }

    fn translate_wrapped(&mut self, operator: Binary, operands: [Polynomial; 2], result: Value) {
        let wrapped = self.table.variable(VariableOrigin::Wrapped(operator, operands.clone()));
        let exact = self.table.binary(operator, &operands[0], &operands[1]);
        // A power of two that divides the result without wrapping divides the wrapped one too.
        let power = exact.as_ref().map_or(0, |exact| exact.terms().map(|(_, n)| n.trailing_zeros()).min().unwrap_or(0));
        let multiple = Polynomial::constant(1 << power.min(MAX_POWER));
        let wrapped = wrapped.times(&multiple).unwrap_or(wrapped);
        if let Some(state) = &mut self.exact {
            state.last_proven = None;
            state.last_wrapped = exact.map(|exact| WrappedResult { wrapped: wrapped.clone(), exact, operands });
        }
        self.numbers.insert(result, wrapped);
    }

    /// Returns whether a result is a `usize` wherever its operands are.
    fn fits(&mut self, operator: Binary, number: &Polynomial) -> bool {
        if let Some(n) = number.as_constant() {
            return (0..=MAX_USIZE).contains(&n);
        }
        let beyond = match operator {
            Binary::Sub => number.negated().plus_constant(-1),
            _ => number.plus_constant(-(MAX_USIZE + 1)),
        };
        if self.table.upper_bound(&beyond, self.kernel.block.max_extents()) < 0 {
            return true;
        }
        if !self.may_eliminate() {
            return false;
        }
        let known = self.facts.len();
        if operator != Binary::Sub {
            let limits = self.usize_limits(number);
            self.facts.extend(limits);
        }
        let fits = self.cannot_hold(&[beyond], MAX_SELECT_SPLITS);
        self.facts.truncate(known);
        fits
    }

    /// Returns facts of the form variable ≤ largest `usize`, for the variables of `number` and for
    /// those that share a known fact with them.
    fn usize_limits(&self, number: &Polynomial) -> Vec<Polynomial> {
        let known: Vec<&Polynomial> = self.known_facts().collect();
        let own: BTreeSet<LinearVariable> =
            self.table.facts_about(&[number], &known).into_iter().flat_map(Polynomial::variables).collect();
        let near = known.iter().map(|fact| fact.variables());
        let near = near.filter(|variables| variables.iter().any(|variable| own.contains(variable))).flatten();
        let all: BTreeSet<LinearVariable> = near.chain(own.iter().copied()).collect();
        let max = Polynomial::constant(MAX_USIZE);
        all.into_iter().map(|variable| max.minus(&Polynomial::variable(variable))).collect()
    }

    /// Returns the fact that the last result equals its exact value, if `condition` = `holds` and
    /// the known facts prove that.
    pub(super) fn no_wrap_facts(&mut self, condition: Value, holds: bool) -> Vec<Polynomial> {
        let Some(last) = self.exact.as_mut().and_then(|exact| exact.last_wrapped.take()) else { return Vec::new() };
        let WrappedResult { wrapped, exact, operands } = last;
        let is_sum_check = match self.conditions.get(&condition).copied() {
            // A sum wraps if and only if it is less than an operand.
            Some(ConditionDefinition::Compare(Comparison::Lt, a, b)) if !holds => {
                self.number(a) == wrapped && operands.contains(&self.number(b))
            }
            _ => false,
        };
        let beyond = exact.plus_constant(-(MAX_USIZE + 1));
        let below = exact.negated().plus_constant(-1);
        if is_sum_check || self.may_eliminate() && self.cannot_hold(&[beyond], 0) && self.cannot_hold(&[below], 0) {
            return inequalities(Comparison::Eq, &wrapped, &exact);
        }
        Vec::new()
    }

    /// Records the polynomial of a `u64` in the check of a product. Casts of 32-bit numbers, and
    /// products of two of them, do not wrap in 64 bits.
    pub fn translate_u64(&mut self, op: &Op, result: Value) {
        let number = match op {
            Op::Constant(bits) => Some(Polynomial::constant((*bits).into())),
            Op::Cast(a) if self.is_usize(*a) => Some(self.number(*a)),
            Op::Binary(Binary::WrappingMul, a, b) => match (self.numbers.get(a), self.numbers.get(b)) {
                (Some(a), Some(b)) if self.are_narrow([a, b]) => a.times(b),
                _ => None,
            },
            _ => None,
        };
        if let Some(number) = number {
            self.numbers.insert(result, number);
        }
    }

    fn are_narrow(&self, numbers: [&Polynomial; 2]) -> bool {
        let block = self.kernel.block.max_extents();
        numbers.into_iter().all(|number| self.table.upper_bound(number, block) <= MAX_USIZE)
    }
}
