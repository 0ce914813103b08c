//! Decisions that hold although a `usize` may wrap, for the checked form of a kernel.
//!
//! The checked form reports a sum, difference or product that wraps, and continues with the wrapped
//! number. So the polynomial of such a result is used only if it is proven not to wrap. Otherwise
//! the result is a new variable, of which nothing is known but its type. All polynomials are then
//! exact in every launch that meets the contract, and so are the facts about them.
//!
//! A counted loop of the checked form ends before its index wraps. The index is therefore always
//! the start plus a number of steps.

use super::super::linear::{Polynomial, impossible_stepwise};
use super::super::promised::{NameResolver, Promised};
use super::cases::{Cases, LaunchScope};
use super::{Decider, LaunchVariables, LinearVariable, MAX_SPLITS, Truth, VariableOrigin, facts};
use crate::hir::Monomorphic;
use crate::ir::{Binary, Comparison, Kernel, Op, Parameter, Region, Role, Special, Type, Value};
use crate::launch::MAX_GRID;
use crate::scalar::Scalar;
use std::collections::{BTreeSet, HashMap};

/// The largest `usize`.
pub(super) const MAX_USIZE: i128 = u32::MAX as i128;

/// Eliminations for one kernel, at most. Later comparisons are decided by intervals alone.
const MAX_ELIMINATIONS: usize = 2500;

/// The largest exponent of a power of two that is known to divide a wrapped number.
const MAX_POWER: u32 = 8;

/// The latest facts that decide whether to record a violation, at most: each costs time.
const MAX_UNREPORTED: usize = 24;

/// Distinctions of cases for one kernel, at most.
const MAX_DISTINCTIONS: usize = 300;

/// The state of decisions that hold although a `usize` may wrap.
#[derive(Default)]
pub(super) struct ExactDecisions {
    eliminations: usize,
    distinctions: usize,
    /// Cases of which one holds here.
    pub(super) cases: Vec<Cases>,
    /// The outcomes of decided comparisons and of constants.
    outcomes: HashMap<Value, bool>,
    /// Polynomials that are ≥ 0 here, or a violation is recorded already. These polynomials only
    /// decide whether to record another violation, which would have no effect.
    unreported: Vec<Polynomial>,
    /// The last result that may have wrapped.
    last: Option<WrappedResult>,
    /// The last result that is proven not to wrap: its check is next.
    proven: Option<ProvenResult>,
}

/// A result that may have wrapped.
struct WrappedResult {
    /// The number that is stored.
    wrapped: Polynomial,
    /// The result without wrapping.
    exact: Polynomial,
    operands: [Polynomial; 2],
}

/// A result that does not wrap.
struct ProvenResult {
    /// The number that its check compares.
    compared: Polynomial,
    /// The operands of a sum. The other results may be less than an operand.
    summands: Option<[Polynomial; 2]>,
}

/// Replaces the comparisons of the checked form by their outcomes, if every launch of `program`
/// decides them whose extents, strides and `usize` arguments are at most `largest`. Sums,
/// differences and products that are proven not to wrap become exact ones. Branches must still be
/// branches.
pub fn decide_exactly(kernel: &mut Kernel, program: &Monomorphic, largest: u32) {
    let reader = NameResolver::of(program).with_sides();
    let promised = Promised::read(program, &reader);
    let is_scalar = |(_, parameter): &(usize, &Parameter)| parameter.role == Role::Value(Scalar::Usize);
    let scalars = kernel.parameters.iter().enumerate().filter(is_scalar);
    let scalars = scalars.map(|(i, parameter)| (parameter.argument, i as u32)).collect();
    let bounds = LaunchVariables { largest: Some(largest), scalars, ..LaunchVariables::default() };
    let mut bounds = bounds.read(LaunchScope::of(program, &reader, &promised), true, true);
    bounds.substitute_multiples();
    bounds.rewrite(kernel, &promised, |decider| {
        let cases = decider.bounds.cases.clone();
        decider.exact = Some(ExactDecisions { cases, ..ExactDecisions::default() });
        let [no, yes] = decider.outcomes;
        decider.settle(no, false);
        decider.settle(yes, true);
        for axis in 0..3 {
            let block = decider.special(Special::Block(axis));
            let axis = usize::from(axis);
            let most = Polynomial::constant(MAX_GRID[axis].into());
            decider.know(facts(Comparison::Lt, &block, &most));
            if let Some(blocks) = decider.bounds.grid[axis].clone() {
                decider.know(facts(Comparison::Lt, &block, &blocks));
                decider.know(facts(Comparison::Le, &blocks, &most));
            }
            let grids = std::mem::take(&mut decider.bounds.grids[axis]);
            decider.know_grid(&block, &grids, &most);
        }
    });
}

impl LaunchVariables {
    /// Adds the known facts in which an extent that is a multiple is written as one: an extent
    /// times another is then a multiple too.
    fn substitute_multiples(&mut self) {
        let is_equality = |p: &&Polynomial| self.known.contains(&Polynomial::default().plus(p, -1));
        let equal: Vec<(LinearVariable, Polynomial)> =
            self.known.iter().filter(is_equality).filter_map(Polynomial::as_multiple).collect();
        for (variable, multiple) in equal {
            let of = self.known.iter().filter(|p| p.has_product_with(variable));
            let with: Vec<Polynomial> = of.filter_map(|p| p.with(variable, &multiple)).collect();
            self.known.extend(with);
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
            VariableOrigin::Ceiling(_) => made().and_then(|(a, b)| {
                let by = b.number().filter(|b| *b > 0)?;
                Some(a.checked_add(by - 1)? / by)
            }),
            VariableOrigin::Least(_) => made().map(|(a, b)| a.min(self.upper(b, block))),
            VariableOrigin::Most(_) => made().map(|(a, b)| a.max(self.upper(b, block))),
            VariableOrigin::Extent(_) | VariableOrigin::Parameter(_) => self.largest.map(i128::from),
            VariableOrigin::Value(_) | VariableOrigin::Wrapped(..) => None,
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
        let (x, y) = (self.number(a), self.number(b));
        if let Some(number) = number.filter(|number| self.fits(operator, number)) {
            self.numbers.insert(result, number.clone());
            self.simplify(result);
            // A product is compared as one of 64 bits, and a sum as the result.
            let compared = if operator == Binary::Mul { number } else { self.number(result) };
            let summands = (operator == Binary::Add).then_some([x, y]);
            if let Some(state) = &mut self.exact {
                state.proven = Some(ProvenResult { compared, summands });
            }
            return true;
        }
        self.exact.iter_mut().for_each(|exact| exact.proven = None);
        let (a, b) = (x, y);
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
            state.proven = None;
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

    /// Records polynomials that are ≥ 0 until the region ends. If they keep a product above 0, its
    /// factors are above 0 too.
    pub(super) fn know(&mut self, facts: Vec<Polynomial>) {
        let factors: Vec<Polynomial> = facts.iter().flat_map(Polynomial::factors_of_one_or_more).collect();
        self.here.extend(facts);
        self.here.extend(factors);
    }

    /// Returns the number of a condition that is converted to `usize`. The number of `a % b != 0`
    /// is ⌈a / b⌉ − ⌊a / b⌋, as where a quotient is rounded up.
    pub(super) fn rounding_up(&mut self, condition: Value) -> Option<Polynomial> {
        if let Some(holds) = self.settled(condition) {
            return Some(Polynomial::constant(holds.into()));
        }
        let Some(Truth::Compare(Comparison::Ne, rest, zero)) = self.truths.get(&condition).copied() else {
            return None;
        };
        let [a, b] = self.remainders.get(&rest)?.clone();
        if self.number(zero).number() != Some(0) {
            return None;
        }
        let up = self.bounds.ceiling(&a, &b)?;
        let down = self.bounds.quotient(&a, &b)?;
        Some(up.plus(&down, -1))
    }

    /// Records bounds of a quotient r / h, where r is a remainder by d, and h a minimum. Blocks
    /// that are numbered in groups of rows have one: r is the number within a group of h rows, so
    /// the quotient is less than the number of columns, a factor of d.
    pub(super) fn bound_quotient(&mut self, a: Value, b: Value, result: Value) {
        let Some([_, divisor]) = self.remainders.get(&a).cloned() else { return };
        let by = self.number(b);
        let Some(operands) = self.bounds.least(&by).cloned() else { return };
        let quotient = self.number(result);
        for limit in divisor.variables() {
            let limit = Polynomial::variable(limit);
            let beyond = facts(Comparison::Ge, &quotient, &limit);
            if self.may_eliminate() && self.never_for_operands(&by, &operands, &beyond) {
                return self.know_below(result, &limit);
            }
        }
    }

    /// Replaces the number of a sum with a remainder by a minimum: the row of a block in a group of
    /// rows is less than the number of rows, of which the minimum is made.
    fn simplify(&mut self, result: Value) {
        let number = self.number(result);
        let products = number.terms().filter(|(monomial, _)| monomial.len() > 1);
        let mut leasts = products.flat_map(|(monomial, _)| monomial.iter()).filter_map(|variable| {
            let operands = self.bounds.least(&Polynomial::variable(*variable))?;
            Some(operands.iter().flat_map(Polynomial::variables).collect::<Vec<_>>())
        });
        let Some(limits) = leasts.next() else { return };
        for limit in limits {
            let limit = Polynomial::variable(limit);
            let beyond = facts(Comparison::Ge, &number, &limit);
            if self.may_eliminate() && self.never(&beyond, 0) {
                return self.know_below(result, &limit);
            }
        }
    }

    /// Replaces the number of a result by a variable that is below `limit`: proofs with a number of
    /// many products rarely end.
    fn know_below(&mut self, result: Value, limit: &Polynomial) {
        let variable = self.bounds.variable(VariableOrigin::Value(result)).0;
        self.here.extend(facts(Comparison::Lt, &variable, limit));
        self.numbers.insert(result, variable);
    }

    /// Returns whether the polynomials of `asked` cannot all be ≥ 0 here, as neither operand can be
    /// the minimum `least`: in each case the operand replaces the minimum in all facts.
    fn never_for_operands(&mut self, least: &Polynomial, [a, b]: &[Polynomial; 2], asked: &[Polynomial]) -> bool {
        let variables = least.variables();
        let [variable] = variables[..] else { return false };
        self.never_with(variable, [(a, b), (b, a)], asked)
    }

    /// Returns whether the polynomials of `asked` cannot all be ≥ 0 here, whichever operand the
    /// maximum is that they have.
    pub(super) fn never_for_maximum(&mut self, asked: &[Polynomial]) -> bool {
        let is_most = |v: &LinearVariable| matches!(self.bounds.named[*v as usize], VariableOrigin::Most(_));
        let Some(variable) = asked.iter().flat_map(Polynomial::variables).find(is_most) else { return false };
        let Some([a, b]) = self.bounds.made.get(&variable).cloned() else { return false };
        self.never_with(variable, [(&a, &b), (&b, &a)], asked)
    }

    /// Returns whether the polynomials of `asked` cannot all be ≥ 0 here. In all facts, the first
    /// operand of each pair in turn replaces the variable, a minimum or maximum.
    fn never_with(
        &mut self,
        variable: LinearVariable,
        pairs: [(&Polynomial, &Polynomial); 2],
        asked: &[Polynomial],
    ) -> bool {
        let is_least = matches!(self.bounds.named[variable as usize], VariableOrigin::Least(_));
        let order = if is_least { Comparison::Ge } else { Comparison::Le };
        let all: Vec<&Polynomial> = self.bounds.known.iter().chain(&self.here).chain(asked).collect();
        let known = self.bounds.known_of(&all);
        pairs.into_iter().all(|(chosen, other)| {
            let replaced = |p: &Polynomial| p.with(variable, chosen);
            let mut asked: Vec<Polynomial> = asked.iter().filter_map(replaced).collect();
            // The operand equals a `usize`, so it is not negative.
            asked.extend(asked.iter().filter_map(|p| p.times(chosen)).collect::<Vec<_>>());
            let mut known: Vec<Polynomial> = known.iter().copied().filter_map(replaced).collect();
            known.extend(facts(order, other, chosen));
            known.push(chosen.clone());
            impossible_stepwise(&known.iter().collect::<Vec<_>>(), &asked)
        })
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
        if self.is_checked_proof(comparison, &x, &y) {
            return Some(false);
        }
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

    /// Returns whether a comparison checks that the last result wrapped, which is proven not to.
    fn is_checked_proof(&self, comparison: Comparison, x: &Polynomial, y: &Polynomial) -> bool {
        let Some(proven) = self.exact.as_ref().and_then(|exact| exact.proven.as_ref()) else { return false };
        proven.compared == *x
            && match comparison {
                Comparison::Lt => proven.summands.as_ref().is_some_and(|summands| summands.contains(y)),
                Comparison::Gt => y.number() == Some(MAX_USIZE),
                _ => false,
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

    /// Counts a distinction of cases. Returns whether there may be one more.
    pub(super) fn may_distinguish(&mut self) -> bool {
        let Some(exact) = &mut self.exact else { return false };
        exact.distinctions += 1;
        exact.distinctions <= MAX_DISTINCTIONS
    }

    /// Records the values of a branch, such as those of `a && b` and `a || b`. If the condition is
    /// a < b, and b is above the value of the other side too, the result is below b.
    pub(super) fn choose(&mut self, condition: Value, then: &Region, otherwise: &Region, results: &[Value]) {
        let (Some(yes), Some(no)) = (then.yielded(), otherwise.yielded()) else { return };
        for ((result, yes), no) in results.iter().zip(yes).zip(no) {
            if self.kernel.ty(*result) == Type::Scalar(Scalar::Bool) {
                let truth = match (self.settled(*yes), self.settled(*no)) {
                    (_, Some(false)) => Some(Truth::And(condition, *yes)),
                    (Some(true), _) => Some(Truth::Or(condition, *no)),
                    _ => None,
                };
                self.truths.extend(truth.map(|truth| (*result, truth)));
            }
            if !self.is_usize(*result) {
                continue;
            }
            if let Some(holds) = self.settled(condition) {
                let number = self.number(if holds { *yes } else { *no });
                self.numbers.insert(*result, number);
                continue;
            }
            let chosen = self.number(*result);
            for variable in chosen.variables() {
                self.bounds.either.insert(variable, (condition, *yes, *no));
            }
            let Some(Truth::Compare(Comparison::Lt, a, limit)) = self.truths.get(&condition).copied() else {
                continue;
            };
            if self.number(a) == self.number(*yes) {
                let limit = self.number(limit);
                let beyond = facts(Comparison::Ge, &chosen, &limit);
                if self.may_eliminate() && self.never(&beyond, MAX_SPLITS) {
                    self.here.extend(facts(Comparison::Lt, &chosen, &limit));
                }
            }
        }
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
        let here: Vec<&Polynomial> = self.bounds.known.iter().chain(&self.here).collect();
        let own: BTreeSet<LinearVariable> =
            self.bounds.known_where(&[number], &here).into_iter().flat_map(Polynomial::variables).collect();
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
