//! Decisions that hold although a `usize` may wrap, for the checked form of a kernel.
//!
//! The checked form reports a sum, difference or product that wraps, and continues with the wrapped
//! number. So the polynomial of such a result is used only if it is proven not to wrap. Otherwise
//! the result is a new variable, of which nothing is known but its type. All polynomials are then
//! exact in every launch that meets the contract, and so are the facts about them.
//!
//! A counted loop of the checked form ends before its index wraps. The index is therefore always
//! the start plus a number of steps.

use super::super::linear::Polynomial;
use super::super::promised::{NameResolver, Promised};
use super::{Decider, LaunchVariables, LinearVariable, MAX_SPLITS, Truth, VariableOrigin, facts};
use crate::hir::Monomorphic;
use crate::ir::{Binary, Comparison, Kernel, Op, Region, Special, Type, Value};
use crate::launch::MAX_GRID;
use crate::scalar::Scalar;
use std::collections::{BTreeSet, HashMap};

/// The largest `usize`.
const MAX_USIZE: i128 = u32::MAX as i128;

/// Eliminations for one kernel, at most. Later comparisons are decided by intervals alone.
const MAX_ELIMINATIONS: usize = 1500;

/// The largest exponent of a power of two that is known to divide a wrapped number.
const MAX_POWER: u32 = 8;

/// The latest facts that decide whether to record a violation, at most: each costs time.
const MAX_UNREPORTED: usize = 24;

/// The state of decisions that hold although a `usize` may wrap.
#[derive(Default)]
pub(super) struct ExactDecisions {
    eliminations: usize,
    /// The outcomes of decided comparisons and of constants.
    outcomes: HashMap<Value, bool>,
    /// Polynomials that are ≥ 0 here, or a violation is recorded already. These polynomials only
    /// decide whether to record another violation, which would have no effect.
    unreported: Vec<Polynomial>,
    /// The last result that may have wrapped.
    last: Option<WrappedResult>,
}

/// A result that may have wrapped.
struct WrappedResult {
    /// The number that is stored.
    wrapped: Polynomial,
    /// The result without wrapping.
    exact: Polynomial,
    operands: [Polynomial; 2],
}

/// Replaces the comparisons of the checked form by their outcomes, if every launch of `program`
/// decides them whose extents, strides and `usize` arguments are at most `largest`. Sums,
/// differences and products that are proven not to wrap become exact ones. Branches must still be
/// branches.
pub fn decide_exactly(kernel: &mut Kernel, program: &Monomorphic, largest: u32) {
    let reader = NameResolver::of(program).with_sides();
    let promised = Promised::read(program, &reader);
    let mut bounds = LaunchVariables::read(program, &promised, &reader, true, true);
    bounds.limit(largest);
    bounds.rewrite(kernel, &promised, |decider| {
        decider.exact = Some(ExactDecisions::default());
        let [no, yes] = decider.outcomes;
        decider.settle(no, false);
        decider.settle(yes, true);
        for axis in 0..3 {
            let block = decider.special(Special::Block(axis));
            if let Some(blocks) = decider.bounds.grid[usize::from(axis)].clone() {
                decider.here.push(blocks.plus(&block, -1).plus(&Polynomial::constant(1), -1));
            }
        }
    });
}

impl LaunchVariables {
    /// Assumes that extents, strides and `usize` arguments are at most `largest`.
    fn limit(&mut self, largest: u32) {
        self.largest = Some(largest);
        for variable in 0..self.named.len() as LinearVariable {
            if matches!(self.named[variable as usize], VariableOrigin::Extent(_) | VariableOrigin::Parameter(_)) {
                let argument = Polynomial::variable(variable);
                self.at_least(&argument, &Polynomial::constant(largest.into()), &argument);
            }
        }
    }

    /// Returns an upper bound of a polynomial that follows from its variables alone.
    fn upper(&self, number: &Polynomial, block: [u32; 3]) -> i128 {
        let sum = number.terms().try_fold(0i128, |sum, (monomial, factor)| {
            let term = match (monomial.is_empty(), factor > 0) {
                (true, _) => Some(factor),
                (_, true) => monomial.iter().try_fold(factor, |term, v| term.checked_mul(self.most(*v, block))),
                // Variables are not negative.
                (_, false) => Some(0),
            };
            sum.checked_add(term?)
        });
        sum.unwrap_or(i128::MAX)
    }

    /// Returns an upper bound of a variable.
    fn most(&self, variable: LinearVariable, block: [u32; 3]) -> i128 {
        let axis = |of: [u32; 3], axis: u8| i128::from(of[usize::from(axis)]);
        let made = || self.made.get(&variable).map(|[a, b]| (self.upper(a, block), b));
        let most = match &self.named[variable as usize] {
            VariableOrigin::Special(Special::Thread(a)) => Some(axis(block, *a) - 1),
            VariableOrigin::Special(Special::BlockDim(a)) => Some(axis(block, *a)),
            VariableOrigin::Special(Special::Block(a)) => Some(axis(MAX_GRID, *a) - 1),
            VariableOrigin::Special(Special::Grid(a)) => Some(axis(MAX_GRID, *a)),
            VariableOrigin::Quotient(_) => made().and_then(|(a, b)| Some(a / b.number().filter(|b| *b > 0)?)),
            VariableOrigin::Least(_) => made().map(|(a, b)| a.min(self.upper(b, block))),
            VariableOrigin::Most(_) => made().map(|(a, b)| a.max(self.upper(b, block))),
            VariableOrigin::Extent(_) | VariableOrigin::Parameter(_) => self.largest.map(i128::from),
            VariableOrigin::Value(_) | VariableOrigin::Wrapped(..) | VariableOrigin::Ceiling(_) => None,
        };
        most.unwrap_or(MAX_USIZE).min(MAX_USIZE)
    }
}

impl Decider<'_> {
    /// Records the number of a result that may wrap: `number`, the result without wrapping, if it
    /// is proven that it does not wrap, and otherwise a variable. Returns whether it is proven.
    /// Equal operations on equal numbers have one variable.
    pub(super) fn learn_exactly(
        &mut self,
        operator: Binary,
        [a, b]: [Value; 2],
        number: Option<Polynomial>,
        result: Value,
    ) -> bool {
        if let Some(number) = number.filter(|number| self.fits(operator, number)) {
            self.numbers.insert(result, number);
            return true;
        }
        let (a, b) = (self.number(a), self.number(b));
        let wrapped = self.bounds.variable(VariableOrigin::Wrapped(operator, [a.clone(), b.clone()])).0;
        let exact = self.bounds.binary(operator, &a, &b);
        // A power of two that divides the result without wrapping divides the wrapped one too.
        let power = exact.as_ref().map_or(0, |exact| exact.terms().map(|(_, n)| n.trailing_zeros()).min().unwrap_or(0));
        let multiple = Polynomial::constant(1 << power.min(MAX_POWER));
        let wrapped = wrapped.times(&multiple).unwrap_or(wrapped);
        if let Some(state) = &mut self.exact {
            state.last = exact.map(|exact| WrappedResult { wrapped: wrapped.clone(), exact, operands: [a, b] });
        }
        self.numbers.insert(result, wrapped);
        false
    }

    /// Records the outcome of a comparison, or a constant.
    pub(super) fn settle(&mut self, value: Value, holds: bool) {
        if let Some(state) = &mut self.exact {
            state.outcomes.insert(value, holds);
        }
    }

    /// Returns the side of a choice that is decided.
    pub(super) fn settled(&self, condition: Value) -> Option<bool> {
        self.exact.as_ref()?.outcomes.get(&condition).copied()
    }

    /// Returns the number of facts under which violations are recorded.
    pub(super) fn unreported(&self) -> usize {
        self.exact.as_ref().map_or(0, |state| state.unreported.len())
    }

    /// Forgets the facts under which violations are recorded, except the first `kept`.
    pub(super) fn forget_unreported(&mut self, kept: usize) {
        if let Some(state) = &mut self.exact {
            state.unreported.truncate(kept);
        }
    }

    /// Returns `holds`, the outcome without a violation of the condition of a check, and assumes it
    /// from there on. Returns `None` if the other outcome is possible before any violation is
    /// recorded.
    pub(super) fn decided_check(&mut self, condition: Value, holds: bool) -> Option<bool> {
        let known = self.here.len();
        let unreported = self.exact.as_ref()?.unreported.iter().rev().take(MAX_UNREPORTED).cloned();
        let mut unreported: Vec<Polynomial> = unreported.collect();
        self.here.append(&mut unreported);
        let decided = match (self.settled(condition), self.truths.get(&condition).copied()) {
            (Some(holds), _) => Some(holds),
            // Without further facts, the comparison was not decided where it stands.
            (None, Some(Truth::Compare(comparison, a, b))) if self.here.len() > known => {
                self.decided_exactly(comparison, a, b)
            }
            _ => None,
        };
        if decided != Some(holds) {
            let mut facts = Vec::new();
            self.meaning(condition, holds, &mut facts);
            self.here.extend(facts.iter().cloned());
            facts.extend(self.unwrapped(condition, holds));
            if let Some(state) = &mut self.exact {
                state.unreported.extend(facts);
            }
        }
        self.here.truncate(known);
        decided.filter(|decided| *decided == holds)
    }

    /// Returns the facts that the last result did not wrap, if it does not where `condition` is
    /// `holds` and the known facts hold.
    fn unwrapped(&mut self, condition: Value, holds: bool) -> Vec<Polynomial> {
        let Some(last) = self.exact.as_mut().and_then(|state| state.last.take()) else { return Vec::new() };
        let WrappedResult { wrapped, exact, operands } = last;
        let sum = match self.truths.get(&condition).copied() {
            // A sum wraps if and only if it is less than an operand.
            Some(Truth::Compare(Comparison::Lt, a, b)) if !holds => {
                self.number(a) == wrapped && operands.contains(&self.number(b))
            }
            _ => false,
        };
        let beyond = exact.plus(&Polynomial::constant(MAX_USIZE + 1), -1);
        let below = Polynomial::constant(-1).plus(&exact, -1);
        if sum || self.may_eliminate() && self.never(&[beyond], 0) && self.never(&[below], 0) {
            return facts(Comparison::Eq, &wrapped, &exact);
        }
        Vec::new()
    }

    /// Records the number of a `u64` that the test of a product consists of. Casts and products of
    /// numbers of 32 bits do not wrap.
    pub(super) fn learn_wide(&mut self, op: &Op, result: Value) {
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
        let block = self.kernel.block.most();
        numbers.into_iter().all(|number| self.bounds.upper(number, block) <= MAX_USIZE)
    }

    /// Returns whether a comparison is one of numbers that are known exactly.
    pub(super) fn compares_exactly(&self, a: Value, b: Value) -> bool {
        let wide = |v: Value| self.kernel.ty(v) == Type::Scalar(Scalar::U64) && self.numbers.contains_key(&v);
        self.is_usize(a) || wide(a) && wide(b)
    }

    /// Returns the outcome of a comparison, if there is one.
    pub(super) fn decided_exactly(&mut self, comparison: Comparison, a: Value, b: Value) -> Option<bool> {
        let (x, y) = (self.number(a), self.number(b));
        let block = self.kernel.block.most();
        let [least, most] = [-self.bounds.upper(&x.plus(&y, -1), block), self.bounds.upper(&y.plus(&x, -1), block)];
        // y − x is between `least` and `most`.
        let decided = match comparison {
            Comparison::Lt => (least > 0).then_some(true).or((most <= 0).then_some(false)),
            Comparison::Le => (least >= 0).then_some(true).or((most < 0).then_some(false)),
            Comparison::Gt => (most < 0).then_some(true).or((least >= 0).then_some(false)),
            Comparison::Ge => (most <= 0).then_some(true).or((least > 0).then_some(false)),
            Comparison::Eq | Comparison::Ne => None,
        };
        let decided = decided.or_else(|| self.decided_in_all_threads(comparison, &x, &y));
        match decided {
            None if self.may_eliminate() => self.decided(comparison, a, b),
            decided => decided,
        }
    }

    /// Returns the outcome of a comparison of numbers that only the thread's index determines, if
    /// it is the same in all threads of a block.
    fn decided_in_all_threads(&self, comparison: Comparison, x: &Polynomial, y: &Polynomial) -> Option<bool> {
        let [nx, ny, nz] = self.kernel.block.most();
        let outcome = |thread: [u32; 3]| {
            let (x, y) = (self.bounds.in_thread(x, thread)?, self.bounds.in_thread(y, thread)?);
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
        let mut all = (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [x, y, z])));
        all.all(|thread| outcome(thread) == Some(first)).then_some(first)
    }

    /// Counts an elimination. Returns whether there may be one more.
    fn may_eliminate(&mut self) -> bool {
        let Some(exact) = &mut self.exact else { return true };
        exact.eliminations += 1;
        exact.eliminations <= MAX_ELIMINATIONS
    }

    /// Returns whether a result is a `usize` wherever its operands are.
    fn fits(&mut self, operator: Binary, number: &Polynomial) -> bool {
        if let Some(n) = number.number() {
            return (0..=MAX_USIZE).contains(&n);
        }
        let block = self.kernel.block.most();
        let beyond = match operator {
            Binary::Sub => Polynomial::constant(0).plus(number, -1).plus(&Polynomial::constant(1), -1),
            _ => number.plus(&Polynomial::constant(MAX_USIZE + 1), -1),
        };
        if self.bounds.upper(&beyond, block) < 0 {
            return true;
        }
        if !self.may_eliminate() {
            return false;
        }
        let known = self.here.len();
        if operator != Binary::Sub {
            let limits = self.limits(number);
            self.here.extend(limits);
        }
        let fits = self.never(&[beyond], MAX_SPLITS);
        self.here.truncate(known);
        fits
    }

    /// Returns the facts that variables of a number, and those that the known facts compare with
    /// it, are at most the largest `usize`.
    fn limits(&self, number: &Polynomial) -> Vec<Polynomial> {
        let own: BTreeSet<LinearVariable> =
            self.bounds.known_of(&[number]).into_iter().flat_map(Polynomial::variables).collect();
        let near = self.here.iter().chain(&self.bounds.known).map(Polynomial::variables);
        let near = near.filter(|variables| variables.iter().any(|variable| own.contains(variable))).flatten();
        let all: BTreeSet<LinearVariable> = near.chain(own.iter().copied()).collect();
        let most = Polynomial::constant(MAX_USIZE);
        all.into_iter().map(|variable| most.plus(&Polynomial::variable(variable), -1)).collect()
    }
}

/// Returns whether a side of a branch only records a violation.
pub(super) fn only_reports(side: &Region) -> bool {
    let reports = side.insts.iter().any(|inst| matches!(inst.op, Op::RecordViolation { .. }));
    let harmless = |op: &Op| op.is_pure() || matches!(op, Op::RecordViolation { .. } | Op::Yield(_));
    reports && side.insts.iter().all(|inst| harmless(&inst.op))
}

/// Returns whether a side of a branch does nothing.
pub(super) fn does_nothing(side: &Region) -> bool {
    side.insts.iter().all(|inst| matches!(inst.op, Op::Constant(_) | Op::Yield(_)))
}
