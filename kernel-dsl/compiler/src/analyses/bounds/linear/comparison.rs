//! Translation of comparisons to inequalities, or to several cases, one of which holds.

use super::polynomial::Polynomial;
use crate::ir::Comparison;

/// Sets of polynomials. In one of the sets, all polynomials are ≥ 0.
pub type Cases = Vec<Vec<Polynomial>>;

/// Maximum number of cases of one condition.
const MAX_CASES: usize = 4;

/// Returns the polynomials in a and b that are ≥ 0 where a comparison holds. Inequalities cannot
/// express a ≠ b.
pub fn inequalities(comparison: Comparison, a: &Polynomial, b: &Polynomial) -> Vec<Polynomial> {
    let above = |a: &Polynomial, b: &Polynomial, by: i128| a.minus(b).plus_constant(-by);
    match comparison {
        Comparison::Lt => vec![above(b, a, 1)],
        Comparison::Le => vec![above(b, a, 0)],
        Comparison::Gt => vec![above(a, b, 1)],
        Comparison::Ge => vec![above(a, b, 0)],
        Comparison::Eq => vec![above(a, b, 0), above(b, a, 0)],
        Comparison::Ne => Vec::new(),
    }
}

/// Returns the comparison that holds where a condition that compares equals `holds`.
pub fn comparison_where(comparison: Comparison, holds: bool) -> Comparison {
    if holds { comparison } else { comparison.inverse() }
}

/// Returns one case without facts, for a condition about which nothing is known.
pub fn unknown_case() -> Cases {
    vec![Vec::new()]
}

/// Returns the cases of a ≠ b.
pub fn cases_of_unequal(a: &Polynomial, b: &Polynomial) -> Cases {
    let cases = [Comparison::Lt, Comparison::Gt].map(|comparison| inequalities(comparison, a, b));
    let is_possible = |case: &Vec<Polynomial>| {
        // No number is below 0.
        !case.iter().any(|p| p.as_constant().is_some_and(|n| n < 0) || p.is_negative())
    };
    cases.into_iter().filter(is_possible).collect()
}

/// Returns the cases of two conditions that both hold.
pub fn cases_of_both(a: &[Vec<Polynomial>], b: &[Vec<Polynomial>]) -> Cases {
    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| [&a[..], &b[..]].concat()));
    pairs.filter(|case| !case.iter().any(Polynomial::is_negative)).collect()
}

/// Returns the possible cases, if they are few and each of them states a fact.
pub fn informative_cases(cases: Cases) -> Option<Cases> {
    let possible: Cases = cases.into_iter().filter(|case| !case.iter().any(Polynomial::is_negative)).collect();
    let is_informative = (1..=MAX_CASES).contains(&possible.len()) && possible.iter().all(|case| !case.is_empty());
    is_informative.then_some(possible)
}
