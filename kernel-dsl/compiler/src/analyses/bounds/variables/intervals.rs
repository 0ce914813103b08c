//! Bounds and values of polynomials that follow from their variables alone, without elimination.

use super::super::linear::{LinearVariable, Monomial, Polynomial};
use super::{VariableOrigin, VariableTable};
use crate::ir::Special;
use crate::launch::MAX_GRID;

/// The largest `usize`.
pub const MAX_USIZE: i128 = u32::MAX as i128;

/// Maximum number of remainders that a bound separates from a polynomial one after another.
const MAX_REMAINDERS: usize = 3;

impl VariableTable {
    /// Returns an upper bound of a polynomial in a kernel whose blocks have at most these extents.
    pub fn upper_bound(&self, number: &Polynomial, block: [u32; 3]) -> i128 {
        self.upper_bound_with(number, block, MAX_REMAINDERS)
    }

    /// Returns an upper bound that separates at most `remainders` remainders from the polynomial.
    fn upper_bound_with(&self, number: &Polynomial, block: [u32; 3], remainders: usize) -> i128 {
        let bound = self.upper_bound_of_terms(number, block);
        if remainders == 0 {
            return bound;
        }
        let separated = number.terms().filter_map(|(monomial, coefficient)| {
            let (rest, most) = self.without_remainder(number, monomial, coefficient)?;
            Some(self.upper_bound_with(&rest, block, remainders - 1).saturating_add(most))
        });
        separated.fold(bound, i128::min)
    }

    /// Separates a multiple of a remainder from a polynomial, if that removes terms. The remainder
    /// a − b · ⌊a / b⌋ is at least 0 and at most b − 1. The term with this monomial and coefficient
    /// has the quotient. Returns the rest, and an upper bound of the multiple.
    fn without_remainder(
        &self,
        number: &Polynomial,
        monomial: &Monomial,
        coefficient: i128,
    ) -> Option<(Polynomial, i128)> {
        let [quotient] = monomial[..] else { return None };
        let VariableOrigin::Quotient([a, b]) = self.origin(quotient) else { return None };
        let b = b.as_constant().filter(|b| *b > 0 && coefficient % b == 0)?;
        let factor = -coefficient / b;
        let remainder = a.plus_multiple(&Polynomial::variable(quotient), -b);
        let rest = number.plus_multiple(&remainder, -factor);
        let most = factor.max(0).saturating_mul(b - 1);
        (rest.term_count() < number.term_count()).then_some((rest, most))
    }

    /// Returns the sum of an upper bound of each term.
    fn upper_bound_of_terms(&self, number: &Polynomial, block: [u32; 3]) -> i128 {
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

#[cfg(test)]
mod tests {
    use super::super::super::linear::Polynomial;
    use super::super::{VariableOrigin, VariableTable};
    use super::threads_of;
    use crate::ir::{Binary, Special};

    const BLOCK: [u32; 3] = [128, 1, 1];

    /// Checks the bounds of a polynomial of thread indices against the values in all threads.
    #[track_caller]
    fn has_bounds(table: &VariableTable, number: &Polynomial, [min, max]: [i128; 2]) {
        let values: Vec<i128> = threads_of(BLOCK).map(|t| table.value_in_thread(number, t).unwrap()).collect();
        assert_eq!([*values.iter().min().unwrap(), *values.iter().max().unwrap()], [min, max]);
        assert_eq!(table.upper_bound(number, BLOCK), max);
        assert_eq!(-table.upper_bound(&number.negated(), BLOCK), min);
    }

    #[test]
    fn remainders_are_bounded_by_their_divisors() {
        let mut table = VariableTable::default();
        let thread = table.variable(VariableOrigin::Special(Special::Thread(0)));
        let divided = |table: &mut VariableTable, operator, a: &Polynomial, b: i128| {
            table.binary(operator, a, &Polynomial::constant(b)).unwrap()
        };
        let rem = |table: &mut VariableTable, a: &Polynomial, b| divided(table, Binary::Rem, a, b);
        let div = |table: &mut VariableTable, a: &Polynomial, b| divided(table, Binary::Div, a, b);
        let zero = Polynomial::default();

        let lane = rem(&mut table, &thread, 32);
        has_bounds(&table, &lane, [0, 31]);
        // A remainder of a remainder.
        let low = rem(&mut table, &lane, 16);
        has_bounds(&table, &zero.plus_multiple(&low, 4).plus_constant(3), [3, 63]);
        // The first row of a thread, in groups of four rows.
        let (warp, high) = (div(&mut table, &thread, 32), div(&mut table, &lane, 16));
        let odd = rem(&mut table, &lane, 2);
        let row = zero.plus_multiple(&warp, 16).plus_multiple(&high, 8).plus_multiple(&odd, 4);
        has_bounds(&table, &row, [0, 60]);
        // A sum of two remainders whose dividends differ.
        let other = rem(&mut table, &thread.plus_constant(5), 8);
        assert_eq!(table.upper_bound(&lane.plus(&other), BLOCK), 38);
        // A bound of the quotient alone.
        has_bounds(&table, &zero.plus_multiple(&warp, -3), [-9, 0]);
    }
}
