//! Symbolic expressions: polynomials with integer coefficients over numbered variables.

use smallvec::{SmallVec, smallvec};
use std::cmp::Ordering;

/// Number of a variable.
pub type LinearVariable = u32;

/// Product of variables, in ascending order.
pub type Monomial = SmallVec<[LinearVariable; 4]>;

/// Sum of coefficient · monomial; the empty monomial is the constant. The monomials ascend, and no
/// coefficient is 0.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Polynomial(Vec<(Monomial, i128)>);

/// Maximum number of terms: longer polynomials are unlikely to give a result.
const MAX_TERMS: usize = 24;
/// Maximum number of variables of a monomial, each counted as often as it occurs.
const MAX_DEGREE: usize = 4;

impl Polynomial {
    /// Returns the constant polynomial n.
    pub fn constant(n: i128) -> Polynomial {
        Polynomial::term(Monomial::new(), n)
    }

    /// Returns the polynomial of one variable.
    pub fn variable(variable: LinearVariable) -> Polynomial {
        Polynomial::term(smallvec![variable], 1)
    }

    /// Returns coefficient · monomial.
    pub fn term(monomial: Monomial, coefficient: i128) -> Polynomial {
        Polynomial(if coefficient == 0 { Vec::new() } else { vec![(monomial, coefficient)] })
    }

    /// Returns the value, if the polynomial is constant.
    pub fn as_constant(&self) -> Option<i128> {
        match &self.0[..] {
            [] => Some(0),
            [(monomial, n)] if monomial.is_empty() => Some(*n),
            _ => None,
        }
    }

    /// Returns self + other.
    pub fn plus(&self, other: &Polynomial) -> Polynomial {
        self.plus_multiple(other, 1)
    }

    /// Returns self − other.
    pub fn minus(&self, other: &Polynomial) -> Polynomial {
        self.plus_multiple(other, -1)
    }

    /// Returns self + n.
    pub fn plus_constant(&self, n: i128) -> Polynomial {
        self.plus(&Polynomial::constant(n))
    }

    /// Returns −self.
    pub fn negated(&self) -> Polynomial {
        Polynomial::default().minus(self)
    }

    /// Returns self + factor · other.
    pub fn plus_multiple(&self, other: &Polynomial, factor: i128) -> Polynomial {
        Polynomial::linear_combination((self, 1), (other, factor))
    }

    /// Returns m · p + n · q.
    pub fn linear_combination((p, m): (&Polynomial, i128), (q, n): (&Polynomial, i128)) -> Polynomial {
        let mut sum = Vec::with_capacity(p.0.len() + q.0.len());
        let mut push = |monomial: &Monomial, coefficient: i128| {
            if coefficient != 0 {
                sum.push((monomial.clone(), coefficient));
            }
        };
        let (mut left, mut right) = (p.0.iter().peekable(), q.0.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((a, _)), Some((b, _))) => a.cmp(b),
            };
            let of_left = left.next_if(|_| order.is_le());
            let of_right = right.next_if(|_| order.is_ge());
            let scaled = |term: Option<&(Monomial, i128)>, by: i128| {
                term.map_or(0, |(_, coefficient)| coefficient.saturating_mul(by))
            };
            if let Some((monomial, _)) = of_left.or(of_right) {
                push(monomial, scaled(of_left, m).saturating_add(scaled(of_right, n)));
            }
        }
        Polynomial(sum)
    }

    /// Returns self · other, or `None` if the product has too many terms.
    pub fn times(&self, other: &Polynomial) -> Option<Polynomial> {
        let mut terms: Vec<(Monomial, i128)> = Vec::with_capacity(self.0.len() * other.0.len());
        for (a, m) in &self.0 {
            for (b, n) in &other.0 {
                let mut monomial: Monomial = a.iter().chain(b).copied().collect();
                monomial.sort_unstable();
                terms.push((monomial, m.saturating_mul(*n)));
            }
        }
        terms.sort_by(|(a, _), (b, _)| a.cmp(b));
        terms.dedup_by(|(next, coefficient), (monomial, sum)| {
            let equal = next == monomial;
            if equal {
                *sum = sum.saturating_add(*coefficient);
            }
            equal
        });
        terms.retain(|(_, coefficient)| *coefficient != 0);
        let is_small = terms.len() <= MAX_TERMS && terms.iter().all(|(monomial, _)| monomial.len() <= MAX_DEGREE);
        is_small.then_some(Polynomial(terms))
    }

    /// Replaces a variable by a polynomial. Returns `None` if the result has too many terms.
    pub fn substitute(&self, variable: LinearVariable, replacement: &Polynomial) -> Option<Polynomial> {
        let mut sum = Polynomial::default();
        for (monomial, coefficient) in &self.0 {
            let mut product = Polynomial::constant(*coefficient);
            for factor in monomial {
                let factor = if *factor == variable { replacement.clone() } else { Polynomial::variable(*factor) };
                product = product.times(&factor)?;
            }
            sum = sum.plus(&product);
        }
        Some(sum)
    }

    /// Returns variable − 1 for each factor of a product, if `self` ≥ 0 implies that the product is
    /// at least 1: each factor is then at least 1 too. The inequality `self` ≥ 0 must have the form
    /// n · product ≥ m + others, with n, m ≥ 1 and others ≥ 0.
    pub fn bounds_of_factors(&self) -> Vec<Polynomial> {
        let mut positive = self.0.iter().filter(|(_, coefficient)| *coefficient > 0);
        match (&self.0[..], positive.next(), positive.next()) {
            ([(constant, m), ..], Some((only, _)), None) if constant.is_empty() && *m < 0 => {
                let one = Polynomial::constant(-1);
                only.iter().map(|variable| one.plus(&Polynomial::variable(*variable))).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns x and n · y of the form x − n · y, with n ≥ 2.
    pub fn as_multiple(&self) -> Option<(LinearVariable, Polynomial)> {
        let [one, other] = &self.0[..] else { return None };
        let ((x, 1), (y, n)) = (if one.1 == 1 { (one, other) } else { (other, one) }) else { return None };
        let ([variable], 1) = (&x[..], y.len()) else { return None };
        (*n < -1).then(|| (*variable, Polynomial::term(y.clone(), -n)))
    }

    /// Returns the variable that the polynomial consists of.
    pub fn as_variable(&self) -> Option<LinearVariable> {
        match &self.0[..] {
            [(monomial, 1)] if monomial.len() == 1 => Some(monomial[0]),
            _ => None,
        }
    }

    /// Returns whether a monomial of two or more variables has this one.
    pub fn has_product_with(&self, variable: LinearVariable) -> bool {
        self.monomials().any(|monomial| monomial.len() > 1 && monomial.contains(&variable))
    }

    /// Returns whether the polynomial is below 0 for all values of its variables.
    pub fn is_negative(&self) -> bool {
        let constant = self.0.first().filter(|(monomial, _)| monomial.is_empty());
        constant.is_some_and(|(_, n)| *n < 0) && self.0.iter().all(|(_, coefficient)| *coefficient < 0)
    }

    /// Returns the products of some of the factors, if the polynomial is a product of variables.
    pub fn partial_products(&self) -> Vec<Polynomial> {
        match &self.0[..] {
            [(product, 1)] => {
                let of_chosen = |chosen: u32| {
                    let factors = product.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1);
                    Polynomial::term(factors.map(|(_, variable)| *variable).collect(), 1)
                };
                (1..(1 << product.len()) - 1).map(of_chosen).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Iterates over the monomials, without the constant.
    pub fn monomials(&self) -> impl Iterator<Item = &Monomial> {
        self.0.iter().map(|(monomial, _)| monomial).filter(|monomial| !monomial.is_empty())
    }

    /// Returns all variables of the polynomial, each once, in ascending order.
    pub fn variables(&self) -> SmallVec<[LinearVariable; 8]> {
        let mut all: SmallVec<[LinearVariable; 8]> =
            self.0.iter().flat_map(|(monomial, _)| monomial).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Iterates over the monomials and their coefficients, with the constant.
    pub fn terms(&self) -> impl Iterator<Item = (&Monomial, i128)> {
        self.0.iter().map(|(monomial, coefficient)| (monomial, *coefficient))
    }

    /// Returns the number of terms, with the constant.
    pub fn term_count(&self) -> usize {
        self.0.len()
    }

    /// Returns the coefficient of a monomial, which is 0 if the monomial does not occur.
    pub fn coefficient(&self, monomial: &Monomial) -> i128 {
        self.0.binary_search_by(|(own, _)| own.cmp(monomial)).map_or(0, |at| self.0[at].1)
    }

    /// Returns the inequality `self` ≥ 0 divided by the common factor of its coefficients. The
    /// constant is rounded down, as all variables are integers.
    pub fn tightened(mut self) -> Polynomial {
        let factors = self.0.iter().filter(|(monomial, _)| !monomial.is_empty());
        let common = factors.map(|(_, coefficient)| coefficient.unsigned_abs()).fold(0, gcd);
        if common > 1 {
            let common = common as i128;
            for (monomial, coefficient) in &mut self.0 {
                *coefficient = if monomial.is_empty() { coefficient.div_euclid(common) } else { *coefficient / common };
            }
            self.0.retain(|(_, coefficient)| *coefficient != 0);
        }
        self
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    match (a, b) {
        (a, 0) => a,
        // A common divisor of 1 cannot get smaller.
        (1, _) => 1,
        (a, b) => gcd(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::polynomial;

    #[test]
    fn bounds_of_factors_need_a_product_above_zero() {
        // 2 · x · y ≥ 1 + z.
        let at_least_one = |variable: u32| polynomial(-1, &[(1, &[variable])]);
        let bounds = polynomial(-1, &[(2, &[0, 1]), (-1, &[2])]).bounds_of_factors();
        assert_eq!(bounds, [at_least_one(0), at_least_one(1)]);
        // x · y + z ≥ 1, and x · y ≥ z, which may be 0.
        assert!(polynomial(-1, &[(1, &[0, 1]), (1, &[2])]).bounds_of_factors().is_empty());
        assert!(polynomial(0, &[(1, &[0, 1]), (-1, &[2])]).bounds_of_factors().is_empty());
    }

    #[test]
    fn forms_are_recognized() {
        // x · y · z, without one or two factors.
        assert_eq!(polynomial(0, &[(1, &[0, 1, 2])]).partial_products().len(), 6);
        assert!(polynomial(0, &[(2, &[0, 1])]).partial_products().is_empty());
        let multiple = polynomial(0, &[(1, &[0]), (-4, &[1])]).as_multiple();
        assert_eq!(multiple, Some((0, polynomial(0, &[(4, &[1])]))));
        assert_eq!(polynomial(0, &[(1, &[0]), (4, &[1])]).as_multiple(), None);
        assert_eq!(polynomial(0, &[(1, &[3])]).as_variable(), Some(3));
        assert_eq!(polynomial(0, &[(2, &[3])]).as_variable(), None);
        assert!(polynomial(-1, &[(-1, &[0])]).is_negative() && !polynomial(0, &[(-1, &[0])]).is_negative());
    }
}
