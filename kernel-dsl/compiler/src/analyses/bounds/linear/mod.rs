//! Linear arithmetic over the integers: polynomials, inequalities of them, and their infeasibility.
//!
//! A fact is a [`Polynomial`] that is ≥ 0. Variables are non-negative integers. A nonlinear
//! monomial, such as n·q, counts as one more variable, so all facts are linear. A query asks
//! whether its polynomials can all be ≥ 0 beside the facts (`infeasible`).

mod comparison;
mod infeasible;
mod polynomial;

pub use comparison::{
    Cases, cases_of_both, cases_of_unequal, comparison_where, inequalities, informative_cases, unknown_case,
};
pub use infeasible::{is_infeasible, is_infeasible_stepwise};
pub use polynomial::{LinearVariable, Monomial, Polynomial};

#[cfg(test)]
mod test_support {
    use super::Polynomial;

    /// Returns the polynomial of a constant, coefficients and monomials.
    pub fn polynomial(constant: i128, terms: &[(i128, &[u32])]) -> Polynomial {
        terms.iter().fold(Polynomial::constant(constant), |sum, (coefficient, variables)| {
            let one = Polynomial::constant(*coefficient);
            let product = variables.iter().fold(one, |p, v| p.times(&Polynomial::variable(*v)).expect("few terms"));
            sum.plus(&product)
        })
    }
}
