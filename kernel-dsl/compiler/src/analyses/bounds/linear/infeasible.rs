//! Infeasibility of inequalities over the integers, by Fourier-Motzkin elimination.
//!
//! Each inequality is divided by the common factor of its coefficients, and its constant is
//! rounded. A contradiction is a proof. The absence of a contradiction proves nothing.

use super::polynomial::{LinearVariable, Monomial, Polynomial};
use std::collections::{BTreeMap, BTreeSet};

/// Bound of the coefficients. An inequality with a larger coefficient is dropped.
const MAX_COEFFICIENT: i128 = 1 << 80;
/// Maximum number of inequalities during the elimination.
const MAX_INEQUALITIES: usize = 400;
/// Maximum number of facts that are multiplied by a variable for one query.
const MAX_PRODUCTS: usize = 16;
/// Maximum number of terms of a fact that is multiplied.
const MAX_TERMS_MULTIPLIED: usize = 3;
/// Maximum number of inequalities of one query.
const MAX_QUERY_INEQUALITIES: usize = 60;

/// Returns whether the polynomials of `query` cannot all be ≥ 0. Only facts that share variables
/// with the query are used.
pub fn is_infeasible(facts: &[&Polynomial], query: &[Polynomial]) -> bool {
    has_contradiction(query_system(facts, query, usize::MAX, 0))
}

/// Returns whether the polynomials of `query` cannot all be ≥ 0. The elimination begins with few
/// facts: with many it may end without a result.
pub fn is_infeasible_stepwise(facts: &[&Polynomial], query: &[Polynomial]) -> bool {
    let mut last = Vec::new();
    for (steps, products) in [(1, 0), (2, 0), (2, MAX_PRODUCTS), (usize::MAX, 0)] {
        let system = query_system(facts, query, steps, products);
        if system == last {
            continue;
        }
        if has_contradiction(without_equalities(system.clone())) {
            return true;
        }
        last = system;
    }
    false
}

/// Substitutes a monomial in all inequalities by each equality p = 0, given as p ≥ 0 and −p ≥ 0.
/// Elimination alone would lose the fact that one number is a multiple of another.
fn without_equalities(mut system: Vec<Polynomial>) -> Vec<Polynomial> {
    while let Some((equality, monomial)) = system.iter().find_map(|p| {
        let unit = p.monomials().find(|monomial| p.coefficient(monomial) == 1)?;
        system.contains(&p.negated()).then(|| (p.clone(), unit.clone()))
    }) {
        for p in &mut system {
            *p = p.plus_multiple(&equality, -p.coefficient(&monomial));
        }
    }
    system
}

/// Returns `query` with the facts that are at most `steps` shared variables away, and products of
/// both. At most `products` of the products have a factor from the facts.
fn query_system(facts: &[&Polynomial], query: &[Polynomial], steps: usize, products: usize) -> Vec<Polynomial> {
    // If a product is at least 1, so is each of its factors.
    let query = [query.to_vec(), query.iter().flat_map(Polynomial::bounds_of_factors).collect()].concat();
    let mut system = with_near_facts(facts, &query, steps);
    let monomials: BTreeSet<Monomial> = system.iter().flat_map(|p| p.monomials().cloned()).collect();
    add_products(&mut system, query.len(), &monomials, products);
    // Variables are non-negative, and so are their products.
    system.extend(monomials.into_iter().map(|monomial| Polynomial::term(monomial, 1)));
    system
}

/// Returns `query` with the facts that are at most `steps` shared variables away.
fn with_near_facts(facts: &[&Polynomial], query: &[Polynomial], steps: usize) -> Vec<Polynomial> {
    let mut system: Vec<Polynomial> = query.to_vec();
    let mut near: BTreeSet<LinearVariable> = query.iter().flat_map(Polynomial::variables).collect();
    let mut left: Vec<&Polynomial> = facts.iter().copied().filter(|p| !query.contains(p)).collect();
    for _ in 0..steps {
        let is_near = |p: &&Polynomial| p.terms().flat_map(|(monomial, _)| monomial).any(|v| near.contains(v));
        let (next, far): (Vec<&Polynomial>, Vec<&Polynomial>) = left.into_iter().partition(is_near);
        let room = MAX_QUERY_INEQUALITIES.saturating_sub(system.len());
        if next.is_empty() || room == 0 {
            break;
        }
        near.extend(next.iter().flat_map(|p| p.variables()));
        system.extend(next.into_iter().take(room).cloned());
        left = far;
    }
    system
}

/// Adds products of inequalities with a variable whose monomials all occur already: q ≥ m gives q ·
/// n ≥ m · n. The first `queried` inequalities are all multiplied. Of the others, short ones are
/// multiplied until `products` products are added.
fn add_products(system: &mut Vec<Polynomial>, queried: usize, monomials: &BTreeSet<Monomial>, mut products: usize) {
    let factors: BTreeSet<LinearVariable> = monomials.iter().filter(|m| m.len() > 1).flatten().copied().collect();
    let product_with = |p: &Polynomial, factor: LinearVariable| {
        let product = p.times(&Polynomial::variable(factor))?;
        let occurs = product.monomials().all(|monomial| monomials.contains(monomial));
        occurs.then_some(product)
    };
    for i in 0..queried {
        for factor in &factors {
            system.extend(product_with(&system[i], *factor));
        }
    }
    let is_short = |p: &&Polynomial| p.term_count() <= MAX_TERMS_MULTIPLIED;
    for p in system[queried..].to_vec().iter().filter(is_short) {
        for factor in &factors {
            if products > 0
                && let Some(product) = product_with(p, *factor)
                && !system.contains(&product)
            {
                system.push(product);
                products -= 1;
            }
        }
    }
}

/// Sorts inequalities, and removes those that occur twice.
fn deduplicate(system: &mut Vec<Polynomial>) {
    system.sort_unstable();
    system.dedup();
}

/// Eliminates one monomial after another. Returns whether an inequality states that a negative
/// constant is ≥ 0.
fn has_contradiction(system: Vec<Polynomial>) -> bool {
    let mut system: Vec<Polynomial> = system.into_iter().map(Polynomial::tightened).collect();
    deduplicate(&mut system);
    loop {
        if system.iter().any(|p| p.as_constant().is_some_and(|n| n < 0)) {
            return true;
        }
        system.retain(|p| p.as_constant().is_none());
        let Some(next) = cheapest_monomial(&system) else { return false };
        let Some(rest) = eliminate(system, &next) else { return false };
        system = rest;
    }
}

/// Returns the monomial whose elimination makes the fewest inequalities.
fn cheapest_monomial(system: &[Polynomial]) -> Option<Monomial> {
    let mut signs: BTreeMap<&Monomial, (usize, usize)> = BTreeMap::new();
    for (monomial, coefficient) in system.iter().flat_map(Polynomial::terms).filter(|(m, _)| !m.is_empty()) {
        let (positive, negative) = signs.entry(monomial).or_default();
        *(if coefficient > 0 { positive } else { negative }) += 1;
    }
    let cheapest = signs.into_iter().min_by_key(|(_, (positive, negative))| positive * negative);
    cheapest.map(|(monomial, _)| monomial.clone())
}

/// Combines each lower bound of a monomial with each upper bound. Returns `None` if there are too
/// many inequalities.
fn eliminate(system: Vec<Polynomial>, monomial: &Monomial) -> Option<Vec<Polynomial>> {
    let (with, mut rest): (Vec<Polynomial>, Vec<Polynomial>) =
        system.into_iter().partition(|p| p.coefficient(monomial) != 0);
    let of_sign = |sign: i128| {
        let coefficients = with.iter().map(|p| (p, sign * p.coefficient(monomial)));
        coefficients.filter(|(_, coefficient)| *coefficient > 0).collect::<Vec<_>>()
    };
    let (lower, upper) = (of_sign(1), of_sign(-1));
    for (low, a) in lower {
        for (high, b) in &upper {
            let sum = Polynomial::linear_combination((low, *b), (high, a)).tightened();
            // A coefficient that saturated is wrong, so a sum with one is dropped.
            if sum.terms().all(|(_, coefficient)| coefficient.unsigned_abs() < MAX_COEFFICIENT.unsigned_abs()) {
                rest.push(sum);
            }
        }
        if rest.len() > 2 * MAX_INEQUALITIES {
            deduplicate(&mut rest);
            if rest.len() > MAX_INEQUALITIES {
                return None;
            }
        }
    }
    deduplicate(&mut rest);
    (rest.len() <= MAX_INEQUALITIES).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::super::test_support::polynomial;
    use super::{Polynomial, is_infeasible, is_infeasible_stepwise};

    #[test]
    fn unsatisfiable_conditions_are_infeasible() {
        // x ≥ 5, and x ≤ 4.
        assert!(is_infeasible(&[&polynomial(-5, &[(1, &[0])])], &[polynomial(4, &[(-1, &[0])])]));
        // 4x ≤ 4y + 3 and x > y: these contradict each other only for integers.
        assert!(is_infeasible(
            &[&polynomial(3, &[(4, &[1]), (-4, &[0])])],
            &[polynomial(-1, &[(1, &[0]), (-1, &[1])])]
        ));
        // q · n ≤ a < m · n, and q ≥ m.
        let facts = [&polynomial(0, &[(1, &[3]), (-1, &[0, 1])]), &polynomial(-1, &[(1, &[1, 2]), (-1, &[3])])];
        assert!(is_infeasible(&facts, &[polynomial(0, &[(1, &[0]), (-1, &[2])])]));
    }

    #[test]
    fn multiples_stay_multiples() {
        // x and y are multiples of 4, and x > y. Then x is at least 4.
        let facts = [polynomial(0, &[(1, &[0]), (-4, &[1])]), polynomial(0, &[(-1, &[0]), (4, &[1])])];
        let above = polynomial(-1, &[(1, &[0]), (-4, &[2])]);
        let query = polynomial(3, &[(-1, &[0])]);
        let facts: Vec<&Polynomial> = facts.iter().chain([&above]).collect();
        assert!(is_infeasible_stepwise(&facts, std::slice::from_ref(&query)));
        assert!(!is_infeasible_stepwise(&facts[1..], std::slice::from_ref(&query)));
    }

    #[test]
    fn facts_are_multiplied() {
        // x ≤ m − 1 and y ≤ n − 1: then x · n + y is less than m · n.
        let facts = [polynomial(-1, &[(1, &[2]), (-1, &[0])]), polynomial(-1, &[(1, &[3]), (-1, &[1])])];
        let beyond = polynomial(0, &[(1, &[0, 3]), (1, &[1]), (-1, &[2, 3])]);
        let both: Vec<&Polynomial> = facts.iter().collect();
        assert!(is_infeasible_stepwise(&both, std::slice::from_ref(&beyond)));
        // Without the bound of y, or where x may equal m, the sum may reach the product.
        assert!(!is_infeasible_stepwise(&both[..1], std::slice::from_ref(&beyond)));
        let reaching = polynomial(0, &[(1, &[2]), (-1, &[0])]);
        assert!(!is_infeasible_stepwise(&[&reaching, &facts[1]], std::slice::from_ref(&beyond)));
    }

    #[test]
    fn satisfiable_conditions_are_feasible() {
        let facts = [&polynomial(0, &[(1, &[3]), (-1, &[0, 1])]), &polynomial(0, &[(1, &[1, 2]), (-1, &[3])])];
        // q · n ≤ a ≤ m · n: q may be m.
        assert!(!is_infeasible(&facts, &[polynomial(0, &[(1, &[0]), (-1, &[2])])]));
        // Exhaustive test over small numbers: a system reported as infeasible has no solution.
        let lines = (-2..=2).flat_map(|a| (-2..=2).map(move |b| polynomial(-1, &[(a, &[0]), (b, &[1])])));
        let holds = |p: &Polynomial, x: i128, y: i128| {
            let p = p.substitute(0, &Polynomial::constant(x)).and_then(|p| p.substitute(1, &Polynomial::constant(y)));
            p.and_then(|p| p.as_constant()).is_some_and(|n| n >= 0)
        };
        // A bit for each point at which the inequality holds.
        let points = |p: &Polynomial| (0..64).fold(0u64, |all, i| all | u64::from(holds(p, i % 8, i / 8)) << i);
        let lines: Vec<(Polynomial, u64)> = lines.map(|p| (p.clone(), points(&p))).collect();
        for (i, (p, at)) in lines.iter().enumerate() {
            for (q, at_q) in &lines[..i] {
                for (r, at_r) in &lines[..i] {
                    let found = at & at_q & at_r != 0;
                    let (facts, query) = ([p, q], std::slice::from_ref(r));
                    assert!(
                        !(found && (is_infeasible(&facts, query) || is_infeasible_stepwise(&facts, query))),
                        "{p:?} {q:?} {r:?}"
                    );
                }
            }
        }
    }
}
