//! Variables of symbolic expressions, with the facts that hold wherever their values are used.
//!
//! A variable has a number and an origin. Equal origins have one variable: two computations of
//! ⌊n / 4⌋ give the same number. What arithmetic cannot express as a polynomial becomes a variable
//! with facts: q = ⌊a / b⌋ has q · b ≤ a < q · b + b.

mod intervals;
mod relevance;

pub use intervals::{MAX_USIZE, threads_of};

use super::launch::{EqualExtents, Extent};
use super::linear::{Cases, LinearVariable, Polynomial};
use crate::ir::{Binary, Special, Value};
use std::collections::HashMap;

/// Origin of a variable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum VariableOrigin {
    Extent(Extent),
    /// The parameter of an argument that is a number, or of a stride.
    Parameter(u32),
    Special(Special),
    /// A value of the IR that no polynomial expresses.
    Value(Value),
    /// ⌊a / b⌋
    Quotient([Polynomial; 2]),
    /// ⌈a / b⌉
    Ceiling([Polynomial; 2]),
    Min([Polynomial; 2]),
    Max([Polynomial; 2]),
    /// A sum, difference or product that may have wrapped.
    Wrapped(Binary, [Polynomial; 2]),
}

/// Value that a condition selects from two values.
#[derive(Clone, Copy)]
pub struct SelectedValue {
    pub condition: Value,
    pub yes: Value,
    pub no: Value,
}

/// Value that a launch expression has in one case.
#[derive(Clone)]
pub struct CaseValue {
    /// Polynomials that are ≥ 0 in the case.
    pub facts: Vec<Polynomial>,
    pub value: Polynomial,
}

/// Variables, and facts about them that hold in every launch.
#[derive(Clone, Default)]
pub struct VariableTable {
    numbers: HashMap<VariableOrigin, LinearVariable>,
    /// Origin of each variable, by number.
    origins: Vec<VariableOrigin>,
    /// Polynomials that are ≥ 0 in every launch.
    pub launch_facts: Vec<Polynomial>,
    /// Sets of cases. In every launch, one case of each set holds.
    pub launch_cases: Vec<Cases>,
    /// Polynomials about a variable that are ≥ 0 wherever its value is used.
    variable_facts: HashMap<LinearVariable, Vec<Polynomial>>,
    /// The variables that are selected from two values.
    pub selected: HashMap<LinearVariable, SelectedValue>,
    /// Number of blocks along each axis.
    pub grid: [Option<Polynomial>; 3],
    /// The possible numbers of blocks along each axis that has several.
    pub grid_cases: [Vec<CaseValue>; 3],
    /// Parameter of each argument that is a `usize`, if numbers must be exact.
    pub scalar_parameters: HashMap<u32, u32>,
    /// The largest extent, stride and `usize` argument, if numbers must be exact.
    max_argument: Option<u32>,
}

impl VariableTable {
    /// Returns an empty table for exact numbers: a `usize` may wrap. No extent, stride and `usize`
    /// argument is above `max_argument`, and `scalar_parameters` has the parameter of each such
    /// argument.
    pub fn exact(scalar_parameters: HashMap<u32, u32>, max_argument: u32) -> VariableTable {
        VariableTable { scalar_parameters, max_argument: Some(max_argument), ..VariableTable::default() }
    }

    /// Returns whether numbers must be exact, as a `usize` may wrap.
    pub fn is_exact(&self) -> bool {
        self.max_argument.is_some()
    }

    /// Returns the variable of an origin.
    pub fn variable(&mut self, origin: VariableOrigin) -> Polynomial {
        self.variable_or_new(origin).0
    }

    /// Returns the variable of an origin, and whether it is new.
    pub fn variable_or_new(&mut self, origin: VariableOrigin) -> (Polynomial, bool) {
        if let Some(number) = self.numbers.get(&origin) {
            return (Polynomial::variable(*number), false);
        }
        let number = self.origins.len() as LinearVariable;
        self.origins.push(origin.clone());
        self.numbers.insert(origin, number);
        (Polynomial::variable(number), true)
    }

    /// Returns the origin of a variable.
    pub fn origin(&self, variable: LinearVariable) -> &VariableOrigin {
        &self.origins[variable as usize]
    }

    /// Returns the origins of all variables, by number.
    pub fn origins(&self) -> &[VariableOrigin] {
        &self.origins
    }

    /// Returns the operands of a variable that is a quotient, minimum or maximum.
    pub fn operands(&self, variable: LinearVariable) -> Option<&[Polynomial; 2]> {
        match self.origin(variable) {
            VariableOrigin::Quotient(operands)
            | VariableOrigin::Ceiling(operands)
            | VariableOrigin::Min(operands)
            | VariableOrigin::Max(operands) => Some(operands),
            VariableOrigin::Extent(_)
            | VariableOrigin::Parameter(_)
            | VariableOrigin::Special(_)
            | VariableOrigin::Value(_)
            | VariableOrigin::Wrapped(..) => None,
        }
    }

    /// Returns the operands of a number that is a minimum.
    pub fn minimum_operands(&self, number: &Polynomial) -> Option<&[Polynomial; 2]> {
        match self.origin(number.as_variable()?) {
            VariableOrigin::Min(operands) => Some(operands),
            _ => None,
        }
    }

    /// Returns an extent. Extents that every launch keeps equal are one variable.
    pub fn extent(&mut self, extent: Extent, equal: &EqualExtents) -> Polynomial {
        self.argument(VariableOrigin::Extent(equal.representative(extent)))
    }

    /// Returns the variable of an extent, a stride or an argument.
    pub fn argument(&mut self, origin: VariableOrigin) -> Polynomial {
        let (argument, new) = self.variable_or_new(origin);
        if let (true, Some(max)) = (new, self.max_argument) {
            self.add_order(&argument, &Polynomial::constant(max.into()), &argument);
        }
        argument
    }

    /// Records that a variable is selected from two values.
    pub fn select(&mut self, variable: &Polynomial, selected: SelectedValue) {
        for variable in variable.variables() {
            self.selected.insert(variable, selected);
        }
    }

    /// Records the fact a ≥ b about a variable.
    pub fn add_order(&mut self, variable: &Polynomial, a: &Polynomial, b: &Polynomial) {
        for variable in variable.variables() {
            self.variable_facts.entry(variable).or_default().push(a.minus(b));
        }
    }

    /// Returns ⌊a / b⌋ for b ≥ 1. A quotient by 0 is unspecified, so no fact holds for it.
    pub fn quotient(&mut self, a: &Polynomial, b: &Polynomial) -> Option<Polynomial> {
        let (quotient, new) = match (a.as_constant(), b.as_constant()) {
            (_, Some(1)) => return Some(a.clone()),
            (Some(a), Some(b)) if b > 0 => return Some(Polynomial::constant(a / b)),
            _ => self.variable_or_new(VariableOrigin::Quotient([a.clone(), b.clone()])),
        };
        if new {
            let product = quotient.times(b)?;
            self.add_order(&quotient, a, &product);
            self.add_order(&quotient, &product.plus(b).plus_constant(-1), a);
            self.add_positive_divisor(&quotient, b);
        }
        Some(quotient)
    }

    /// Returns ⌈a / b⌉ for b ≥ 1.
    pub fn ceiling(&mut self, a: &Polynomial, b: &Polynomial) -> Option<Polynomial> {
        let (quotient, new) = match (a.as_constant(), b.as_constant()) {
            (_, Some(1)) => return Some(a.clone()),
            (Some(a), Some(b)) if b > 0 => return Some(Polynomial::constant((a + b - 1) / b)),
            _ => self.variable_or_new(VariableOrigin::Ceiling([a.clone(), b.clone()])),
        };
        if new {
            let product = quotient.times(b)?;
            self.add_order(&quotient, &product, a);
            self.add_order(&quotient, &a.plus(b).plus_constant(-1), &product);
            self.add_positive_divisor(&quotient, b);
        }
        Some(quotient)
    }

    /// Records that the divisor of a quotient is at least 1. The facts of a quotient are used only
    /// where its divisor is.
    fn add_positive_divisor(&mut self, quotient: &Polynomial, divisor: &Polynomial) {
        if self.is_exact() && divisor.as_constant().is_none() {
            self.add_order(quotient, divisor, &Polynomial::constant(1));
        }
    }

    fn min(&mut self, a: &Polynomial, b: &Polynomial) -> Polynomial {
        let (min, new) = self.variable_or_new(VariableOrigin::Min([a.clone(), b.clone()]));
        if new {
            self.add_order(&min, a, &min);
            self.add_order(&min, b, &min);
        }
        min
    }

    fn max(&mut self, a: &Polynomial, b: &Polynomial) -> Polynomial {
        let (max, new) = self.variable_or_new(VariableOrigin::Max([a.clone(), b.clone()]));
        if new {
            self.add_order(&max, &max, a);
            self.add_order(&max, &max, b);
        }
        max
    }

    /// Returns the result of an operation that does not wrap. A divisor must be at least 1.
    pub fn binary(&mut self, operator: Binary, a: &Polynomial, b: &Polynomial) -> Option<Polynomial> {
        match operator {
            Binary::Add => Some(a.plus(b)),
            Binary::Sub => Some(a.minus(b)),
            Binary::Mul => a.times(b),
            Binary::Div => self.quotient(a, b),
            Binary::Rem => Some(a.minus(&self.quotient(a, b)?.times(b)?)),
            Binary::Min => Some(self.min(a, b)),
            Binary::Max => Some(self.max(a, b)),
            _ => None,
        }
    }
}

/// Returns whether the result of an operation is unspecified where its second operand is 0.
pub fn is_division(operator: Binary) -> bool {
    matches!(operator, Binary::Div | Binary::Rem)
}
