//! Inequalities over the integers, and their consequences.
//!
//! A polynomial has integer coefficients and non-negative variables. A nonlinear monomial, such as
//! n·q, counts as one variable. Infeasibility is decided by Fourier-Motzkin elimination. Each
//! inequality is divided by the common factor of its coefficients, and its constant is rounded. A
//! contradiction is a proof. The absence of a contradiction proves nothing.

use smallvec::{SmallVec, smallvec};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// LinearVariable number.
pub type LinearVariable = u32;

/// Product of variables, in ascending order.
pub type Monomial = SmallVec<[LinearVariable; 4]>;

/// Sum of coefficient · monomial; the empty monomial is the constant. The monomials ascend, and no
/// coefficient is 0.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Polynomial(Vec<(Monomial, i128)>);

/// Maximum number of terms: longer polynomials are unlikely to give a result.
const MAX_TERMS: usize = 24;
/// Bound of the coefficients; larger ones are given up.
const MAX_COEFFICIENT: i128 = 1 << 80;
/// Maximum number of inequalities during the elimination.
const MAX_INEQUALITIES: usize = 400;
/// Maximum number of known inequalities that are multiplied by a variable for one query.
const MAX_PRODUCTS: usize = 16;
/// Maximum number of terms of a known inequality that is multiplied.
const MAX_TERMS_MULTIPLIED: usize = 3;
/// Maximum number of inequalities of one query.
const MAX_QUERY_INEQUALITIES: usize = 60;

impl Polynomial {
    /// Returns the constant polynomial n.
    pub fn constant(n: i128) -> Polynomial {
        Polynomial::term(Monomial::new(), n)
    }

    /// Returns the polynomial of one variable.
    pub fn variable(variable: LinearVariable) -> Polynomial {
        Polynomial::term(smallvec![variable], 1)
    }

    fn term(monomial: Monomial, factor: i128) -> Polynomial {
        Polynomial(if factor == 0 { Vec::new() } else { vec![(monomial, factor)] })
    }

    /// Returns the number, if the polynomial is constant.
    pub fn number(&self) -> Option<i128> {
        match &self.0[..] {
            [] => Some(0),
            [(monomial, n)] if monomial.is_empty() => Some(*n),
            _ => None,
        }
    }

    /// Returns whether the polynomial is one variable, or constant.
    pub fn is_variable_or_number(&self) -> bool {
        self.number().is_some() || matches!(&self.0[..], [(monomial, 1)] if monomial.len() == 1)
    }

    /// Returns self + factor · other.
    pub fn plus(&self, other: &Polynomial, factor: i128) -> Polynomial {
        Polynomial::combined((self, 1), (other, factor))
    }

    /// Returns m · p + n · q.
    fn combined((p, m): (&Polynomial, i128), (q, n): (&Polynomial, i128)) -> Polynomial {
        let mut sum = Vec::with_capacity(p.0.len() + q.0.len());
        let mut push = |monomial: &Monomial, factor: i128| {
            if factor != 0 {
                sum.push((monomial.clone(), factor));
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
            let factor =
                |of: Option<&(Monomial, i128)>, by: i128| of.map_or(0, |(_, factor)| factor.saturating_mul(by));
            if let Some((monomial, _)) = of_left.or(of_right) {
                push(monomial, factor(of_left, m).saturating_add(factor(of_right, n)));
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
        terms.dedup_by(|(next, factor), (monomial, sum)| {
            let equal = next == monomial;
            if equal {
                *sum = sum.saturating_add(*factor);
            }
            equal
        });
        terms.retain(|(_, factor)| *factor != 0);
        (terms.len() <= MAX_TERMS && terms.iter().all(|(monomial, _)| monomial.len() <= 4)).then_some(Polynomial(terms))
    }

    /// Returns the polynomials of variable ≥ 1 for each factor of a product. The inequality
    /// `self` ≥ 0 must have the form n · product ≥ m + others, with n, m ≥ 1 and others ≥ 0.
    pub fn factors_of_one_or_more(&self) -> Vec<Polynomial> {
        let mut positive = self.0.iter().filter(|(_, factor)| *factor > 0);
        match (&self.0[..], positive.next(), positive.next()) {
            ([(constant, m), ..], Some((only, _)), None) if constant.is_empty() && *m < 0 => {
                let one = Polynomial::constant(-1);
                only.iter().map(|variable| one.plus(&Polynomial::variable(*variable), 1)).collect()
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

    /// Returns whether a monomial of two or more variables has this one.
    pub fn has_product_with(&self, variable: LinearVariable) -> bool {
        self.monomials().any(|monomial| monomial.len() > 1 && monomial.contains(&variable))
    }

    /// Returns whether the polynomial is below 0 for all values of its variables.
    pub fn is_negative(&self) -> bool {
        let constant = self.0.first().filter(|(monomial, _)| monomial.is_empty());
        constant.is_some_and(|(_, n)| *n < 0) && self.0.iter().all(|(_, factor)| *factor < 0)
    }

    /// Returns the products of some of the factors, if the polynomial is a product of variables.
    pub fn partial_products(&self) -> Vec<Polynomial> {
        match &self.0[..] {
            [(product, 1)] => {
                let of = |chosen: u32| {
                    let factors = product.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1);
                    Polynomial::term(factors.map(|(_, variable)| *variable).collect(), 1)
                };
                (1..(1 << product.len()) - 1).map(of).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Iterates over the monomials, without the constant.
    fn monomials(&self) -> impl Iterator<Item = &Monomial> {
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

    /// Replaces a variable by a polynomial. Returns `None` if the result has too many terms.
    pub fn with(&self, variable: LinearVariable, other: &Polynomial) -> Option<Polynomial> {
        let mut all = Polynomial::default();
        for (monomial, factor) in &self.0 {
            let mut product = Polynomial::constant(*factor);
            for of in monomial {
                product = product.times(&if *of == variable { other.clone() } else { Polynomial::variable(*of) })?;
            }
            all = all.plus(&product, 1);
        }
        Some(all)
    }

    /// Iterates over the monomials and their coefficients, with the constant.
    pub fn terms(&self) -> impl Iterator<Item = (&Monomial, i128)> {
        self.0.iter().map(|(monomial, factor)| (monomial, *factor))
    }

    fn factor(&self, monomial: &Monomial) -> i128 {
        self.0.binary_search_by(|(of, _)| of.cmp(monomial)).map_or(0, |at| self.0[at].1)
    }

    /// Returns the inequality `self` ≥ 0 divided by the common factor of its coefficients. The
    /// constant is rounded down, as all variables are integers.
    fn reduced(mut self) -> Polynomial {
        let factors = self.0.iter().filter(|(monomial, _)| !monomial.is_empty());
        let common = factors.map(|(_, factor)| factor.unsigned_abs()).fold(0, gcd);
        if common > 1 {
            let common = common as i128;
            for (monomial, factor) in &mut self.0 {
                *factor = if monomial.is_empty() { factor.div_euclid(common) } else { *factor / common };
            }
            self.0.retain(|(_, factor)| *factor != 0);
        }
        self
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    match (a, b) {
        (a, 0) => a,
        // Once a number is 1, the others make no difference.
        (1, _) => 1,
        (a, b) => gcd(b, a % b),
    }
}

/// Returns whether the polynomials of `asked` cannot all be ≥ 0. The polynomials of `known` are
/// used if they share variables with the query.
pub fn impossible(known: &[&Polynomial], asked: &[Polynomial]) -> bool {
    eliminated(related(known, asked, usize::MAX, 0))
}

/// Returns whether the polynomials of `asked` cannot all be ≥ 0. The elimination begins with few
/// polynomials of `known`: with many it may end without a result.
pub fn impossible_stepwise(known: &[&Polynomial], asked: &[Polynomial]) -> bool {
    let mut last = Vec::new();
    for (steps, products) in [(1, 0), (2, 0), (2, MAX_PRODUCTS), (usize::MAX, 0)] {
        let all = related(known, asked, steps, products);
        if all == last {
            continue;
        }
        if eliminated(without_equalities(all.clone())) {
            return true;
        }
        last = all;
    }
    false
}

/// Substitutes a monomial in all inequalities by each equality p = 0, given as p ≥ 0 and −p ≥ 0.
/// Elimination would lose that a multiple of a number is one.
fn without_equalities(mut all: Vec<Polynomial>) -> Vec<Polynomial> {
    while let Some((equality, monomial)) = all.iter().find_map(|p| {
        let unit = p.monomials().find(|monomial| p.factor(monomial) == 1)?;
        all.contains(&Polynomial::default().plus(p, -1)).then(|| (p.clone(), unit.clone()))
    }) {
        for p in &mut all {
            *p = p.plus(&equality, -p.factor(&monomial));
        }
    }
    all
}

/// Returns `asked` with the polynomials of `known` that are at most `steps` shared variables away,
/// and products of them. At most `products` of the products have a factor from `known`.
fn related(known: &[&Polynomial], asked: &[Polynomial], steps: usize, mut products: usize) -> Vec<Polynomial> {
    // If a product is at least 1, so is each of its factors.
    let asked = &[asked.to_vec(), asked.iter().flat_map(Polynomial::factors_of_one_or_more).collect()].concat()[..];
    let mut all: Vec<Polynomial> = asked.to_vec();
    let mut near: BTreeSet<LinearVariable> = asked.iter().flat_map(Polynomial::variables).collect();
    let mut left: Vec<&Polynomial> = known.iter().copied().filter(|p| !asked.contains(p)).collect();
    for _ in 0..steps {
        let is_near = |p: &&Polynomial| p.0.iter().flat_map(|(monomial, _)| monomial).any(|v| near.contains(v));
        let (next, far): (Vec<&Polynomial>, Vec<&Polynomial>) = left.into_iter().partition(is_near);
        let room = MAX_QUERY_INEQUALITIES.saturating_sub(all.len());
        if next.is_empty() || room == 0 {
            break;
        }
        near.extend(next.iter().flat_map(|p| p.variables()));
        all.extend(next.into_iter().take(room).cloned());
        left = far;
    }
    let reached: BTreeSet<Monomial> = all.iter().flat_map(|p| p.monomials().cloned()).collect();
    // Queried inequalities are multiplied by a variable if all resulting products occur: q ≥ m
    // gives q · n ≥ m · n.
    let factors: BTreeSet<LinearVariable> = reached.iter().filter(|m| m.len() > 1).flatten().copied().collect();
    for of in asked {
        for factor in &factors {
            if let Some(product) = of.times(&Polynomial::variable(*factor))
                && product.monomials().all(|monomial| reached.contains(monomial))
            {
                all.push(product);
            }
        }
    }
    // The same for short known inequalities.
    for of in all[asked.len()..].to_vec().iter().filter(|of| of.0.len() <= MAX_TERMS_MULTIPLIED) {
        for factor in &factors {
            if products > 0
                && let Some(product) = of.times(&Polynomial::variable(*factor))
                && product.monomials().all(|monomial| reached.contains(monomial))
                && !all.contains(&product)
            {
                all.push(product);
                products -= 1;
            }
        }
    }
    // Variables are non-negative, and so are their products.
    all.extend(reached.into_iter().map(|monomial| Polynomial::term(monomial, 1)));
    all
}

/// Sorts inequalities, and removes those that occur twice.
fn unique(all: &mut Vec<Polynomial>) {
    all.sort_unstable();
    all.dedup();
}

fn eliminated(all: Vec<Polynomial>) -> bool {
    let mut all: Vec<Polynomial> = all.into_iter().map(Polynomial::reduced).collect();
    unique(&mut all);
    loop {
        if all.iter().any(|p| p.number().is_some_and(|n| n < 0)) {
            return true;
        }
        all.retain(|p| p.number().is_none());
        let mut signs: BTreeMap<&Monomial, (usize, usize)> = BTreeMap::new();
        for (monomial, factor) in all.iter().flat_map(|p| &p.0).filter(|(monomial, _)| !monomial.is_empty()) {
            let (up, down) = signs.entry(monomial).or_default();
            *(if *factor > 0 { up } else { down }) += 1;
        }
        let next = signs.into_iter().min_by_key(|(_, (up, down))| up * down);
        let Some((next, _)) = next.map(|(monomial, n)| (monomial.clone(), n)) else { return false };
        let (with, mut rest): (Vec<Polynomial>, Vec<Polynomial>) = all.into_iter().partition(|p| p.factor(&next) != 0);
        let of_sign = |sign: i128| {
            let factors = with.iter().map(|p| (p, sign * p.factor(&next)));
            factors.filter(|(_, factor)| *factor > 0).collect::<Vec<_>>()
        };
        let (above, below) = (of_sign(1), of_sign(-1));
        for (up, a) in above {
            for (down, b) in &below {
                let sum = Polynomial::combined((up, *b), (down, a)).reduced();
                // Saturated coefficients make the sum useless.
                if sum.0.iter().all(|(_, factor)| factor.unsigned_abs() < MAX_COEFFICIENT.unsigned_abs()) {
                    rest.push(sum);
                }
            }
            if rest.len() > 2 * MAX_INEQUALITIES {
                unique(&mut rest);
                if rest.len() > MAX_INEQUALITIES {
                    return false;
                }
            }
        }
        unique(&mut rest);
        if rest.len() > MAX_INEQUALITIES {
            return false;
        }
        all = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::{Polynomial, impossible, impossible_stepwise};

    fn of(n: i128, terms: &[(i128, &[u32])]) -> Polynomial {
        terms.iter().fold(Polynomial::constant(n), |sum, (factor, variables)| {
            let one = Polynomial::constant(*factor);
            let product = variables.iter().fold(one, |p, v| p.times(&Polynomial::variable(*v)).expect("few terms"));
            sum.plus(&product, 1)
        })
    }

    #[test]
    fn unsatisfiable_conditions_are_impossible() {
        // x ≥ 5, and x ≤ 4.
        assert!(impossible(&[&of(-5, &[(1, &[0])])], &[of(4, &[(-1, &[0])])]));
        // 4x ≤ 4y + 3, and x > y: among integers alone.
        assert!(impossible(&[&of(3, &[(4, &[1]), (-4, &[0])])], &[of(-1, &[(1, &[0]), (-1, &[1])])]));
        // q · n ≤ a < m · n, and q ≥ m.
        let known = [&of(0, &[(1, &[3]), (-1, &[0, 1])]), &of(-1, &[(1, &[1, 2]), (-1, &[3])])];
        assert!(impossible(&known, &[of(0, &[(1, &[0]), (-1, &[2])])]));
    }

    #[test]
    fn multiples_stay_multiples() {
        // x is a multiple of 4, and above y, which is another: then x is at least 4.
        let known = [of(0, &[(1, &[0]), (-4, &[1])]), of(0, &[(-1, &[0]), (4, &[1])])];
        let above = of(-1, &[(1, &[0]), (-4, &[2])]);
        let asked = of(3, &[(-1, &[0])]);
        let known: Vec<&Polynomial> = known.iter().chain([&above]).collect();
        assert!(impossible_stepwise(&known, std::slice::from_ref(&asked)));
        assert!(!impossible_stepwise(&known[1..], std::slice::from_ref(&asked)));
    }

    #[test]
    fn known_inequalities_are_multiplied() {
        // x ≤ m − 1 and y ≤ n − 1: then x · n + y is less than m · n.
        let known = [of(-1, &[(1, &[2]), (-1, &[0])]), of(-1, &[(1, &[3]), (-1, &[1])])];
        let beyond = of(0, &[(1, &[0, 3]), (1, &[1]), (-1, &[2, 3])]);
        let both: Vec<&Polynomial> = known.iter().collect();
        assert!(impossible_stepwise(&both, std::slice::from_ref(&beyond)));
        // Without the bound of y, or where x may equal m, the sum may reach the product.
        assert!(!impossible_stepwise(&both[..1], std::slice::from_ref(&beyond)));
        let reaching = of(0, &[(1, &[2]), (-1, &[0])]);
        assert!(!impossible_stepwise(&[&reaching, &known[1]], std::slice::from_ref(&beyond)));
    }

    #[test]
    fn factors_of_products_above_zero() {
        // 2 · x · y ≥ 1 + z.
        let one = |v: u32| of(-1, &[(1, &[v])]);
        assert_eq!(of(-1, &[(2, &[0, 1]), (-1, &[2])]).factors_of_one_or_more(), [one(0), one(1)]);
        // x · y + z ≥ 1, and x · y ≥ z, which may be 0.
        assert!(of(-1, &[(1, &[0, 1]), (1, &[2])]).factors_of_one_or_more().is_empty());
        assert!(of(0, &[(1, &[0, 1]), (-1, &[2])]).factors_of_one_or_more().is_empty());
        // x · y · z, without one or two factors.
        assert_eq!(of(0, &[(1, &[0, 1, 2])]).partial_products().len(), 6);
        assert!(of(0, &[(2, &[0, 1])]).partial_products().is_empty());
        assert_eq!(of(0, &[(1, &[0]), (-4, &[1])]).as_multiple(), Some((0, of(0, &[(4, &[1])]))));
        assert_eq!(of(0, &[(1, &[0]), (4, &[1])]).as_multiple(), None);
        assert!(of(-1, &[(-1, &[0])]).is_negative() && !of(0, &[(-1, &[0])]).is_negative());
    }

    #[test]
    fn satisfiable_conditions_are_possible() {
        let known = [&of(0, &[(1, &[3]), (-1, &[0, 1])]), &of(0, &[(1, &[1, 2]), (-1, &[3])])];
        // q · n ≤ a ≤ m · n: q may be m.
        assert!(!impossible(&known, &[of(0, &[(1, &[0]), (-1, &[2])])]));
        // Exhaustive test over small numbers: a system reported as infeasible has no solution.
        let lines = (-2..=2).flat_map(|a| (-2..=2).map(move |b| of(-1, &[(a, &[0]), (b, &[1])])));
        let holds = |p: &Polynomial, x: i128, y: i128| {
            let p = p.with(0, &Polynomial::constant(x)).and_then(|p| p.with(1, &Polynomial::constant(y)));
            p.and_then(|p| p.number()).is_some_and(|n| n >= 0)
        };
        // A bit for each point at which the inequality holds.
        let points = |p: &Polynomial| (0..64).fold(0u64, |all, i| all | u64::from(holds(p, i % 8, i / 8)) << i);
        let lines: Vec<(Polynomial, u64)> = lines.map(|p| (p.clone(), points(&p))).collect();
        for (i, (p, at)) in lines.iter().enumerate() {
            for (q, at_q) in &lines[..i] {
                for (r, at_r) in &lines[..i] {
                    let found = at & at_q & at_r != 0;
                    let (known, asked) = ([p, q], std::slice::from_ref(r));
                    assert!(
                        !(found && (impossible(&known, asked) || impossible_stepwise(&known, asked))),
                        "{p:?} {q:?} {r:?}"
                    );
                }
            }
        }
    }
}
