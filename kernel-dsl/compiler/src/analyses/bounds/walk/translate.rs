//! Translation of IR values: numbers to polynomials, and conditions to their definitions.

use super::super::launch::extent_of;
use super::super::linear::{Polynomial, inequalities};
use super::super::variables::{MAX_USIZE, SelectedValue, VariableOrigin, is_division};
use super::{ConditionDefinition, SymbolicAnalysis};
use crate::ir::{Binary, Comparison, Op, Region, Special, Unary, Value};
use crate::scalar::Scalar;

/// Number of bits of a `usize`.
const USIZE_BITS: i128 = 32;

impl SymbolicAnalysis<'_> {
    /// Records the polynomial or the definition of a result. A sum, difference or product that is
    /// proven not to wrap becomes an exact one.
    pub fn translate(&mut self, op: &mut Op, result: Value) {
        match self.scalar(result) {
            Some(Scalar::Bool) => self.translate_condition(op, result),
            Some(Scalar::Usize) => self.translate_usize(op, result),
            Some(Scalar::U64) if self.exact.is_some() => self.translate_u64(op, result),
            _ => {}
        }
    }

    fn translate_condition(&mut self, op: &Op, result: Value) {
        let definition = match op {
            Op::Compare(comparison, a, b) if self.is_usize(*a) => {
                Some(ConditionDefinition::Compare(*comparison, *a, *b))
            }
            Op::Binary(Binary::And, a, b) => Some(ConditionDefinition::And(*a, *b)),
            Op::Binary(Binary::Or, a, b) => Some(ConditionDefinition::Or(*a, *b)),
            Op::Unary(Unary::Not, a) => Some(ConditionDefinition::Not(*a)),
            _ => None,
        };
        if let Op::Constant(bits) = op {
            self.set_outcome(result, *bits != 0);
        }
        self.conditions.extend(definition.map(|definition| (result, definition)));
        self.note_attempt(result);
    }

    fn translate_usize(&mut self, op: &mut Op, result: Value) {
        if self.exact.is_some()
            && let Op::Binary(own, a, b) = op
            && let Some(operator) = unwrapped(*own)
        {
            if self.translate_unless_wrapped(operator, [*a, *b], result) {
                *own = operator;
            }
            return;
        }
        let number = match &*op {
            Op::Constant(bits) => Some(Polynomial::constant((*bits).into())),
            Op::Parameter(p) => Some(match extent_of(self.kernel, *p) {
                Some(extent) => self.table.extent(extent, self.equal),
                None => self.table.argument(VariableOrigin::Parameter(*p)),
            }),
            Op::Special(special) => Some(self.special(*special)),
            Op::Binary(operator, a, b) => self.binary(*operator, *a, *b, result),
            Op::Cast(condition) if self.exact.is_some() => self.number_of_condition(*condition),
            Op::Select { condition, yes, no } => Some(match self.outcome(*condition) {
                Some(holds) => self.number(if holds { *yes } else { *no }),
                None => {
                    let variable = self.table.variable(VariableOrigin::Value(result));
                    self.table.select(&variable, SelectedValue { condition: *condition, yes: *yes, no: *no });
                    variable
                }
            }),
            _ => None,
        };
        if let Some(number) = number {
            self.numbers.insert(result, number);
        }
        if let (Op::Binary(Binary::Div, a, b), true) = (&*op, self.exact.is_some()) {
            self.bound_quotient_of_remainder(*a, *b, result);
        }
    }

    /// Returns the polynomial of an operation, if it has one.
    fn binary(&mut self, operator: Binary, a: Value, b: Value, result: Value) -> Option<Polynomial> {
        let shift = |n: &i128| *n < USIZE_BITS;
        match (operator, self.numbers.get(&b).and_then(Polynomial::as_constant)) {
            // Factors and divisors that are powers of two.
            (Binary::Shl, n) => n.filter(shift).and_then(|n| self.binary_with_constant(Binary::Mul, a, 1 << n)),
            (Binary::Shr | Binary::WrappingShr, n) => {
                n.filter(shift).and_then(|n| self.binary_with_constant(Binary::Div, a, 1 << n))
            }
            (Binary::And, n) => n.filter(|n| (n + 1) & n == 0).and_then(|n| {
                let operands = [self.number(a), Polynomial::constant(n + 1)];
                self.remainders.insert(result, operands);
                self.binary_with_constant(Binary::Rem, a, n + 1)
            }),
            (Binary::Xor, n) => n.filter(|n| n.count_ones() == 1).and_then(|n| self.with_inverted_bit(a, n, result)),
            _ => {
                let (a, b) = (self.number(a), self.number(b));
                if is_division(operator) {
                    let facts: Vec<&Polynomial> = self.known_facts().collect();
                    if !self.table.is_positive(&b, &facts) {
                        return None;
                    }
                }
                if operator == Binary::Rem {
                    self.remainders.insert(result, [a.clone(), b.clone()]);
                }
                self.table.binary(operator, &a, &b)
            }
        }
    }

    fn binary_with_constant(&mut self, operator: Binary, a: Value, n: i128) -> Option<Polynomial> {
        let a = self.number(a);
        self.table.binary(operator, &a, &Polynomial::constant(n))
    }

    /// Returns a multiple of a variable for `result`, which is `a` with the bit of value n
    /// inverted. The result has the quotient of `a` by 2n, and is a multiple of each power of two
    /// up to n that divides `a`.
    fn with_inverted_bit(&mut self, a: Value, n: i128, result: Value) -> Option<Polynomial> {
        let a = self.number(a);
        let period = 2 * n;
        let first = self.table.quotient(&a, &Polynomial::constant(period))?.times(&Polynomial::constant(period))?;
        let power = a.terms().map(|(_, coefficient)| coefficient.trailing_zeros()).min().unwrap_or(0);
        let multiple = 1 << power.min(n.trailing_zeros());
        let variable = self.table.variable(VariableOrigin::Value(result));
        let number = variable.times(&Polynomial::constant(multiple))?;
        let last = period - multiple;
        self.table.add_order(&variable, &number, &first);
        self.table.add_order(&variable, &first.plus_constant(last), &number);
        let most = self.table.upper_bound(&a, self.kernel.block.max_extents());
        if most <= MAX_USIZE {
            self.table.add_order(&variable, &Polynomial::constant(most / period * period + last), &number);
        }
        Some(number)
    }

    /// Returns the polynomial of an index or extent of threads or blocks.
    pub fn special(&mut self, special: Special) -> Polynomial {
        let axis = special.axis();
        match special {
            Special::BlockDim(_) => {
                if let Some(extent) = self.kernel.block.extent(axis) {
                    return Polynomial::constant(extent.into());
                }
            }
            Special::Grid(_) => {
                if let Some(blocks) = &self.table.grid[usize::from(axis)] {
                    return blocks.clone();
                }
            }
            Special::Thread(_) | Special::Block(_) => {}
        }
        let (variable, new) = self.table.variable_or_new(VariableOrigin::Special(special));
        if new {
            let extent = match special {
                Special::Thread(_) => {
                    Some(Polynomial::constant(self.kernel.block.max_extents()[usize::from(axis)].into()))
                }
                Special::Block(_) => self.table.grid[usize::from(axis)].clone(),
                Special::Grid(_) | Special::BlockDim(_) => None,
            };
            if let Some(extent) = extent {
                self.table.add_order(&variable, &extent.plus_constant(-1), &variable);
            }
        }
        variable
    }

    /// Records the results of a branch, such as those of `a && b` and `a || b`. The result of `if a
    /// < b { a } else { c }` is recorded as below b, if c is below b too.
    pub fn translate_branch_results(&mut self, condition: Value, then: &Region, otherwise: &Region, results: &[Value]) {
        let (Some(then), Some(otherwise)) = (then.yielded(), otherwise.yielded()) else { return };
        for ((result, yes), no) in results.iter().zip(then).zip(otherwise) {
            let selected = SelectedValue { condition, yes: *yes, no: *no };
            match self.scalar(*result) {
                Some(Scalar::Bool) => self.translate_selected_condition(*result, selected),
                Some(Scalar::Usize) => self.translate_selected_number(*result, selected),
                _ => {}
            }
        }
    }

    fn translate_selected_condition(&mut self, result: Value, selected: SelectedValue) {
        let SelectedValue { condition, yes, no } = selected;
        let definition = match (self.outcome(yes), self.outcome(no)) {
            (_, Some(false)) => Some(ConditionDefinition::And(condition, yes)),
            (Some(true), _) => Some(ConditionDefinition::Or(condition, no)),
            _ => None,
        };
        self.conditions.extend(definition.map(|definition| (result, definition)));
    }

    fn translate_selected_number(&mut self, result: Value, selected: SelectedValue) {
        let SelectedValue { condition, yes, no } = selected;
        if let Some(holds) = self.outcome(condition) {
            let number = self.number(if holds { yes } else { no });
            self.numbers.insert(result, number);
            return;
        }
        let number = self.number(result);
        self.table.select(&number, selected);
        let yes = self.number(yes);
        let mut limits = self.block_limits(&yes);
        if let Some(ConditionDefinition::Compare(Comparison::Lt, a, limit)) = self.conditions.get(&condition).copied()
            && self.number(a) == yes
        {
            let limit = self.number(limit);
            limits.retain(|known| *known != limit);
            limits.push(limit);
        }
        for limit in limits {
            let beyond = inequalities(Comparison::Ge, &number, &limit);
            if self.may_eliminate() && self.cannot_hold(&beyond, super::MAX_SELECT_SPLITS) {
                self.facts.extend(inequalities(Comparison::Lt, &number, &limit));
            }
        }
    }

    /// Returns the possible numbers of blocks along an axis, if `number` is the block's index along
    /// this axis. A kernel whose grid is folded along x selects this index, or computes it.
    fn block_limits(&self, number: &Polynomial) -> Vec<Polynomial> {
        let origin = number.as_variable().map(|variable| self.table.origin(variable));
        match (origin, &self.exact) {
            (Some(VariableOrigin::Special(Special::Block(axis))), Some(exact)) => {
                exact.block_limits[usize::from(*axis)].clone()
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the operation without wrapping of a sum, difference or product.
fn unwrapped(operator: Binary) -> Option<Binary> {
    match operator {
        Binary::WrappingAdd => Some(Binary::Add),
        Binary::WrappingSub => Some(Binary::Sub),
        Binary::WrappingMul => Some(Binary::Mul),
        Binary::Add | Binary::Sub | Binary::Mul | Binary::Shl => Some(operator),
        _ => None,
    }
}
