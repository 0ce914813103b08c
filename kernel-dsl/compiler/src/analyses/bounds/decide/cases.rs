//! Facts of which only one of several sets holds: those of `a || b`, of `a != b`, and of a choice
//! by the launch, such as a grid that a device function folds.
//!
//! A query that cannot hold in any case cannot hold. The cases of a condition need not exclude each
//! other, but one of them must hold wherever the condition does.

use super::super::linear::{LinearVariable, Polynomial, impossible_stepwise};
use super::super::promised::{NameResolver, Promised};
use super::{Decider, LaunchVariables, Truth, facts};
use crate::hir::{Block, Expr, ExprKind, Function, FunctionId, Intrinsic, LocalId, Monomorphic, Type as HirType};
use crate::ir::{Binary, Comparison, Unary, Value};
use crate::scalar::Scalar;

/// Sets of polynomials. In one of the sets, all polynomials are ≥ 0.
pub(super) type Cases = Vec<Vec<Polynomial>>;

/// Maximum number of cases of one condition.
const MAX_CASES: usize = 4;

/// Maximum number of conditions whose cases one query distinguishes.
const MAX_CONDITIONS: usize = 3;

/// Maximum number of nested calls in a launch expression.
const MAX_CALLS: usize = 4;

/// The names in an expression of a launch: those of the kernel, or the parameters of a device
/// function that the launch calls.
#[derive(Clone, Copy)]
pub(super) struct LaunchScope<'a> {
    pub reader: &'a NameResolver<'a>,
    pub promised: &'a Promised,
    pub program: &'a Monomorphic,
    /// The kernel, or the device function.
    function: &'a Function,
    /// The values of the function's parameters, where they are known; `None` in the kernel.
    bound: Option<&'a [Option<Polynomial>]>,
    /// The number of calls around the expression.
    calls: usize,
}

impl<'a> LaunchScope<'a> {
    /// Returns the scope of the kernel's own clauses.
    pub fn of(program: &'a Monomorphic, reader: &'a NameResolver<'a>, promised: &'a Promised) -> LaunchScope<'a> {
        LaunchScope { reader, promised, program, function: program.kernel(), bound: None, calls: 0 }
    }

    /// Returns whether an expression is a `usize`.
    pub fn is_usize(&self, e: &Expr) -> bool {
        matches!(self.function.types.get(e.ty.0 as usize), Some(HirType::Scalar(Scalar::Usize)))
    }

    /// Returns a function and the value of its body, if the body has no statements.
    fn called(&self, function: FunctionId) -> Option<(&'a Function, &'a Expr)> {
        let function = self.program.program().functions.get(function.0 as usize)?;
        Some((function, value(&function.body)?))
    }

    /// Returns the scope of the body of a function called here.
    fn within(self, function: &'a Function, bound: &'a [Option<Polynomial>]) -> LaunchScope<'a> {
        LaunchScope { function, bound: Some(bound), calls: self.calls + 1, ..self }
    }
}

impl LaunchVariables {
    /// Returns the cases in which a condition of the launch equals `holds`.
    pub(super) fn cases(&mut self, condition: &Expr, holds: bool, scope: LaunchScope<'_>) -> Cases {
        match &scope.reader.side(condition).kind {
            ExprKind::Compare(comparison, a, b) if scope.is_usize(a) => {
                let comparison = if holds { *comparison } else { comparison.inverse() };
                let (numbers, divisors) =
                    self.with_divisors(|bounds| bounds.number(a, scope).zip(bounds.number(b, scope)));
                let compared = match numbers {
                    Some((a, b)) if comparison == Comparison::Ne => unequal(&a, &b),
                    Some((a, b)) => vec![facts(comparison, &a, &b)],
                    None => vec![Vec::new()],
                };
                both(&[divisors], &compared)
            }
            ExprKind::AndAlso(a, b) | ExprKind::OrElse(a, b) => {
                let is_and = matches!(scope.reader.side(condition).kind, ExprKind::AndAlso(..));
                let (a, b) = (self.cases(a, holds, scope), self.cases(b, holds, scope));
                if is_and == holds { both(&a, &b) } else { [a, b].concat() }
            }
            ExprKind::Unary(Unary::Not, a) => self.cases(a, !holds, scope),
            ExprKind::Literal(bits) => {
                if (*bits != 0) == holds {
                    vec![Vec::new()]
                } else {
                    Vec::new()
                }
            }
            ExprKind::Intrinsic { intrinsic: Intrinsic::IsEmpty, arguments } => match self.length(arguments, scope) {
                Some(length) => {
                    let comparison = if holds { Comparison::Eq } else { Comparison::Gt };
                    vec![facts(comparison, &length, &Polynomial::default())]
                }
                None => vec![Vec::new()],
            },
            ExprKind::If { condition, then, otherwise: Some(otherwise) } => {
                let taken = self.cases(condition, true, scope);
                let then = value(then).map_or(vec![Vec::new()], |then| self.cases(then, holds, scope));
                let other = self.cases(condition, false, scope);
                let otherwise = self.cases(otherwise, holds, scope);
                [both(&taken, &then), both(&other, &otherwise)].concat()
            }
            ExprKind::Block(block) => match value(block) {
                Some(value) => self.cases(value, holds, scope),
                None => vec![Vec::new()],
            },
            ExprKind::Call { function, arguments, .. } => {
                let Some((function, body)) = scope.called(*function) else { return vec![Vec::new()] };
                let (bound, divisors) = self.with_divisors(|bounds| bounds.bound(arguments, scope));
                let Some(bound) = bound else { return vec![divisors] };
                both(&[divisors], &self.cases(body, holds, scope.within(function, &bound)))
            }
            _ => vec![Vec::new()],
        }
    }

    /// Returns the possible values of a launch expression, each with the facts of its case.
    pub(super) fn values(&mut self, e: &Expr, scope: LaunchScope<'_>) -> Option<Vec<(Vec<Polynomial>, Polynomial)>> {
        if let (Some(number), divisors) = self.with_divisors(|bounds| bounds.number(e, scope)) {
            return Some(vec![(divisors, number)]);
        }
        match &scope.reader.side(e).kind {
            ExprKind::If { condition, then, otherwise: Some(otherwise) } => {
                let mut all = Vec::new();
                for (holds, side) in [(true, value(then)?), (false, &**otherwise)] {
                    let cases = self.cases(condition, holds, scope);
                    for (facts, number) in self.values(side, scope)? {
                        all.extend(both(&cases, &[facts]).into_iter().map(|case| (case, number.clone())));
                    }
                }
                Some(all)
            }
            ExprKind::Block(block) => self.values(value(block)?, scope),
            ExprKind::Call { function, arguments, .. } => {
                let (function, body) = scope.called(*function)?;
                let (bound, divisors) = self.with_divisors(|bounds| bounds.bound(arguments, scope));
                let mut all = self.values(body, scope.within(function, &bound?))?;
                all.iter_mut().for_each(|(facts, _)| facts.extend(divisors.iter().cloned()));
                Some(all)
            }
            _ => None,
        }
    }

    /// Returns a result with the facts that its divisors are at least 1. The facts hold only where
    /// the divisions are evaluated, which other cases may not do.
    fn with_divisors<T>(&mut self, of: impl FnOnce(&mut LaunchVariables) -> T) -> (T, Vec<Polynomial>) {
        let known = self.known.len();
        let result = of(self);
        (result, self.known.split_off(known))
    }

    /// Returns the values of a call's arguments, if few calls are around it.
    fn bound(&mut self, arguments: &[Expr], scope: LaunchScope<'_>) -> Option<Vec<Option<Polynomial>>> {
        (scope.calls < MAX_CALLS).then(|| arguments.iter().map(|e| self.number(e, scope)).collect())
    }

    /// Returns the value of a launch expression that has only one.
    fn number(&mut self, e: &Expr, scope: LaunchScope<'_>) -> Option<Polynomial> {
        let Some(bound) = scope.bound else {
            return match &scope.reader.side(e).kind {
                ExprKind::Call { .. } => self.constant(e, scope),
                _ => self.expression(e, scope.reader, scope.promised),
            };
        };
        match &e.kind {
            ExprKind::Local(LocalId(local)) => bound.get(*local as usize)?.clone(),
            ExprKind::Literal(n) => Some(Polynomial::constant((*n).into())),
            ExprKind::Binary(operator @ (Binary::Add | Binary::Sub | Binary::Mul), a, b) => {
                let (a, b) = (self.number(a, scope)?, self.number(b, scope)?);
                self.binary(*operator, &a, &b)
            }
            ExprKind::Call { .. } => self.constant(e, scope),
            _ => None,
        }
    }

    /// Returns the value of a constant, which is a function whose body is a literal.
    fn constant(&self, e: &Expr, scope: LaunchScope<'_>) -> Option<Polynomial> {
        let ExprKind::Call { function, arguments, .. } = &e.kind else { return None };
        match scope.called(*function)?.1.kind {
            ExprKind::Literal(n) if arguments.is_empty() => Some(Polynomial::constant(n.into())),
            _ => None,
        }
    }

    /// Returns the length of the slice that `of` names.
    fn length(&mut self, of: &[Expr], scope: LaunchScope<'_>) -> Option<Polynomial> {
        let (None, [Expr { kind: ExprKind::Local(local), .. }]) = (scope.bound, of) else { return None };
        let kernel = scope.program.kernel();
        let ty = kernel.locals.get(local.0 as usize)?.ty;
        let HirType::Slice { .. } = kernel.types.get(ty.0 as usize)? else { return None };
        let argument = scope.reader.argument(*local)?;
        Some(self.extent((argument, 0), scope.promised))
    }
}

impl Decider<'_> {
    /// Records what every launch keeps of a block's index: it is less than the value of `grid` in
    /// each case, so a block exists only if the value is at least 1. The value is at most `most`.
    ///
    /// A fact that is recorded here holds in all cases, and so does what is known of its variables.
    /// A quotient, minimum or maximum has its facts only where the launch evaluates it. Therefore a
    /// fact is recorded only if the launch evaluates all of its variables in every case.
    pub(super) fn know_grid(
        &mut self,
        block: &Polynomial,
        values: &[(Vec<Polynomial>, Polynomial)],
        most: &Polynomial,
    ) {
        let of_case = |(case, value): &(Vec<Polynomial>, Polynomial)| -> Vec<Polynomial> {
            let mut all = case.clone();
            let below = facts(Comparison::Lt, block, value);
            all.extend(below.iter().flat_map(Polynomial::factors_of_one_or_more));
            all.extend(below);
            all.extend(facts(Comparison::Le, value, most));
            // No factor is 0, so a product of some of them is not larger.
            all.extend(value.partial_products().iter().map(|part| value.plus(part, -1)));
            all
        };
        let cases: Cases = values.iter().map(of_case).collect();
        let Some(first) = cases.first() else { return };
        let of_all = first.iter().filter(|fact| cases.iter().all(|case| case.contains(fact))).cloned();
        let mut known: Vec<Polynomial> = of_all.collect();
        for (_, limit) in values {
            let limits = [vec![limit.clone()], limit.partial_products()].concat();
            for limit in limits.into_iter().filter(|limit| self.is_evaluated_in_all(&cases, limit)) {
                let beyond = facts(Comparison::Ge, block, &limit);
                if self.never_in(&cases, &beyond) {
                    known.extend(facts(Comparison::Lt, block, &limit));
                }
                if self.never_in(&cases, &facts(Comparison::Gt, &limit, most)) {
                    known.extend(facts(Comparison::Le, &limit, most));
                }
            }
        }
        known.sort_unstable();
        known.dedup();
        self.here.extend(known);
    }

    /// Returns whether every case has each quotient, minimum and maximum of `number`, so that the
    /// launch evaluates them in any case.
    fn is_evaluated_in_all(&self, cases: &Cases, number: &Polynomial) -> bool {
        let is_derived = |of: &LinearVariable| self.bounds.made.contains_key(of) || self.bounds.either.contains_key(of);
        let has = |case: &[Polynomial], of: &LinearVariable| case.iter().any(|fact| fact.variables().contains(of));
        number.variables().iter().filter(|of| is_derived(of)).all(|of| cases.iter().all(|case| has(case, of)))
    }

    /// Returns whether the polynomials of `asked` are not all ≥ 0 in any of the cases.
    fn never_in(&self, cases: &Cases, asked: &[Polynomial]) -> bool {
        cases.iter().all(|case| self.contradicts(&[asked, case].concat()))
    }

    /// Returns whether the polynomials of `asked` cannot all be ≥ 0 here, without a distinction of
    /// cases.
    fn contradicts(&self, asked: &[Polynomial]) -> bool {
        let here: Vec<&Polynomial> = self.bounds.known.iter().chain(&self.here).chain(asked).collect();
        impossible_stepwise(&self.bounds.known_of(&here), asked)
    }

    /// Returns the cases in which a truth value equals `holds`.
    fn cases_of(&mut self, condition: Value, holds: bool) -> Cases {
        match (self.truths.get(&condition).copied(), holds) {
            (Some(Truth::Compare(comparison, a, b)), _)
                if (if holds { comparison } else { comparison.inverse() }) == Comparison::Ne =>
            {
                let (a, b) = (self.number(a), self.number(b));
                unequal(&a, &b)
            }
            (Some(Truth::Or(a, b)), true) | (Some(Truth::And(a, b)), false) => {
                [self.cases_of(a, holds), self.cases_of(b, holds)].concat()
            }
            (Some(Truth::Not(a)), _) => self.cases_of(a, !holds),
            _ => {
                let mut found = Vec::new();
                self.meaning(condition, holds, &mut found);
                vec![found]
            }
        }
    }

    /// Records the cases of each part of a truth value that equals `holds`.
    pub(super) fn know_cases(&mut self, condition: Value, holds: bool) {
        if let (Some(Truth::And(a, b)), true) | (Some(Truth::Or(a, b)), false) =
            (self.truths.get(&condition).copied(), holds)
        {
            self.know_cases(a, holds);
            return self.know_cases(b, holds);
        }
        let cases = self.cases_of(condition, holds);
        match useful(cases) {
            // A comparison with 0.
            Some(mut cases) if cases.len() == 1 => self.here.append(&mut cases[0]),
            Some(cases) => self.exact.iter_mut().for_each(|exact| exact.cases.push(cases.clone())),
            None => {}
        }
    }

    /// Returns whether the polynomials of `asked` cannot all be ≥ 0, as they cannot in any of the
    /// known cases. Conditions that have been distinguished are `used`.
    pub(super) fn never_in_cases(&mut self, asked: &[Polynomial], used: &[usize]) -> bool {
        let Some(exact) = self.exact.as_mut().filter(|_| used.len() < MAX_CONDITIONS) else { return false };
        let variables: Vec<_> = asked.iter().flat_map(Polynomial::variables).collect();
        let shared = |cases: &Cases| {
            let mut own: Vec<_> = cases.iter().flatten().flat_map(Polynomial::variables).collect();
            own.sort_unstable();
            own.dedup();
            own.iter().filter(|variable| variables.contains(variable)).count()
        };
        let scored = exact.cases.iter().enumerate().filter(|(i, _)| !used.contains(i));
        let scored = scored.map(|(i, cases)| (shared(cases), i)).filter(|(shared, _)| *shared > 0);
        let Some((_, next)) = scored.max() else { return false };
        let cases = exact.cases[next].clone();
        let used = [used, &[next]].concat();
        cases.into_iter().all(|case| {
            let with = [asked, &case].concat();
            self.may_distinguish() && (self.contradicts(&with) || self.never_in_cases(&with, &used))
        })
    }
}

/// Returns the cases of a ≠ b.
fn unequal(a: &Polynomial, b: &Polynomial) -> Cases {
    let cases = [Comparison::Lt, Comparison::Gt].map(|comparison| facts(comparison, a, b));
    let is_possible = |case: &Vec<Polynomial>| {
        // No number is below 0.
        !case.iter().any(|p| p.number().is_some_and(|n| n < 0) || p.is_negative())
    };
    cases.into_iter().filter(is_possible).collect()
}

/// Returns the cases of two conditions that both hold.
fn both(a: &[Vec<Polynomial>], b: &[Vec<Polynomial>]) -> Cases {
    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| [&a[..], &b[..]].concat()));
    pairs.filter(|case| !case.iter().any(Polynomial::is_negative)).collect()
}

/// Returns cases of which each says something, if there are few.
pub(super) fn useful(cases: Cases) -> Option<Cases> {
    let possible: Cases = cases.into_iter().filter(|case| !case.iter().any(Polynomial::is_negative)).collect();
    let is_useful = (1..=MAX_CASES).contains(&possible.len()) && possible.iter().all(|case| !case.is_empty());
    is_useful.then_some(possible)
}

/// Returns the value of a block without statements.
fn value(block: &Block) -> Option<&Expr> {
    block.value.as_deref().filter(|_| block.statements.is_empty())
}
