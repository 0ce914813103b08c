//! Bounds and values of polynomials that follow from their variables alone, without elimination.

use super::super::linear::{LinearVariable, Polynomial};
use super::{VariableOrigin, VariableTable};
use crate::ir::Special;
use crate::launch::MAX_GRID;

/// The largest `usize`.
pub const MAX_USIZE: i128 = u32::MAX as i128;

impl VariableTable {
    /// Returns an upper bound of a polynomial in a kernel whose blocks have at most these extents.
    pub fn upper_bound(&self, number: &Polynomial, block: [u32; 3]) -> i128 {
        let sum = number.terms().try_fold(0i128, |sum, (monomial, coefficient)| {
            let term = match (monomial.is_empty(), coefficient > 0) {
                (true, _) => Some(coefficient),
                (_, true) => monomial
                    .iter()
                    .try_fold(coefficient, |term, v| term.checked_mul(self.upper_bound_of_variable(*v, block))),
                // Variables are not negative.
                (_, false) => Some(0),
            };
            sum.checked_add(term?)
        });
        sum.unwrap_or(i128::MAX)
    }

    fn upper_bound_of_variable(&self, variable: LinearVariable, block: [u32; 3]) -> i128 {
        let along = |extents: [u32; 3], axis: u8| i128::from(extents[usize::from(axis)]);
        let of = |number: &Polynomial| self.upper_bound(number, block);
        let positive = |divisor: &Polynomial| divisor.as_constant().filter(|n| *n > 0);
        let bound = match self.origin(variable) {
            VariableOrigin::Special(Special::Thread(axis)) => Some(along(block, *axis) - 1),
            VariableOrigin::Special(Special::BlockDim(axis)) => Some(along(block, *axis)),
            VariableOrigin::Special(Special::Block(axis)) => Some(along(MAX_GRID, *axis) - 1),
            VariableOrigin::Special(Special::Grid(axis)) => Some(along(MAX_GRID, *axis)),
            VariableOrigin::Quotient([a, b]) => positive(b).map(|b| of(a) / b),
            VariableOrigin::Ceiling([a, b]) => positive(b).and_then(|b| Some(of(a).checked_add(b - 1)? / b)),
            VariableOrigin::Min([a, b]) => Some(of(a).min(of(b))),
            VariableOrigin::Max([a, b]) => Some(of(a).max(of(b))),
            VariableOrigin::Extent(_) | VariableOrigin::Parameter(_) => self.max_argument.map(i128::from),
            VariableOrigin::Value(_) | VariableOrigin::Wrapped(..) => None,
        };
        bound.unwrap_or(MAX_USIZE).min(MAX_USIZE)
    }

    /// Returns the value of a polynomial in the thread with these indices, if it depends on the
    /// thread's indices alone.
    pub fn value_in_thread(&self, number: &Polynomial, thread: [u32; 3]) -> Option<i128> {
        number.terms().try_fold(0i128, |sum, (monomial, coefficient)| {
            let product = monomial
                .iter()
                .try_fold(coefficient, |product, v| product.checked_mul(self.variable_in_thread(*v, thread)?))?;
            sum.checked_add(product)
        })
    }

    fn variable_in_thread(&self, variable: LinearVariable, thread: [u32; 3]) -> Option<i128> {
        let both =
            |[a, b]: &[Polynomial; 2]| Some((self.value_in_thread(a, thread)?, self.value_in_thread(b, thread)?));
        match self.origin(variable) {
            VariableOrigin::Special(Special::Thread(axis)) => {
                thread.get(usize::from(*axis)).map(|index| i128::from(*index))
            }
            VariableOrigin::Quotient(operands) => both(operands).filter(|(_, b)| *b > 0).map(|(a, b)| a.div_euclid(b)),
            VariableOrigin::Ceiling(operands) => {
                both(operands).filter(|(_, b)| *b > 0).map(|(a, b)| -(-a).div_euclid(b))
            }
            VariableOrigin::Min(operands) => both(operands).map(|(a, b)| a.min(b)),
            VariableOrigin::Max(operands) => both(operands).map(|(a, b)| a.max(b)),
            VariableOrigin::Extent(_)
            | VariableOrigin::Parameter(_)
            | VariableOrigin::Special(_)
            | VariableOrigin::Value(_)
            | VariableOrigin::Wrapped(..) => None,
        }
    }
}

/// Iterates over the indices of all threads of a block.
pub fn threads_of([x_extent, y_extent, z_extent]: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    (0..z_extent).flat_map(move |z| (0..y_extent).flat_map(move |y| (0..x_extent).map(move |x| [x, y, z])))
}
