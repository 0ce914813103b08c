//! Launch expressions with several cases: `a || b`, `a != b`, and an `if`, for example in the
//! device function that computes a grid.
//!
//! The cases of a condition need not exclude each other, but one of them must hold wherever the
//! condition does.

use super::super::linear::{
    Cases, Polynomial, cases_of_both, cases_of_unequal, comparison_where, inequalities, unknown_case,
};
use super::super::variables::{CaseValue, VariableTable};
use super::scope::{LaunchScope, block_value};
use crate::hir::{Expr, ExprKind, Intrinsic, LocalId, Type as HirType};
use crate::ir::{Binary, Comparison, Unary};

/// Maximum number of nested calls in a launch expression.
const MAX_CALLS: usize = 4;

impl VariableTable {
    /// Returns the cases in which a condition of the launch equals `holds`.
    pub(super) fn cases_of_condition(&mut self, condition: &Expr, holds: bool, scope: LaunchScope<'_>) -> Cases {
        let condition = scope.names.side(condition);
        match &condition.kind {
            ExprKind::Compare(comparison, a, b) if scope.is_usize(a) => {
                self.cases_of_comparison(comparison_where(*comparison, holds), a, b, scope)
            }
            ExprKind::AndAlso(a, b) | ExprKind::OrElse(a, b) => {
                let is_and = matches!(condition.kind, ExprKind::AndAlso(..));
                let (a, b) = (self.cases_of_condition(a, holds, scope), self.cases_of_condition(b, holds, scope));
                if is_and == holds { cases_of_both(&a, &b) } else { [a, b].concat() }
            }
            ExprKind::Unary(Unary::Not, a) => self.cases_of_condition(a, !holds, scope),
            ExprKind::Literal(bits) => {
                if (*bits != 0) == holds {
                    unknown_case()
                } else {
                    Vec::new()
                }
            }
            ExprKind::Intrinsic { intrinsic: Intrinsic::IsEmpty, arguments } => {
                match self.slice_length(arguments, scope) {
                    Some(length) => {
                        let comparison = if holds { Comparison::Eq } else { Comparison::Gt };
                        vec![inequalities(comparison, &length, &Polynomial::default())]
                    }
                    None => unknown_case(),
                }
            }
            ExprKind::If { condition, then, otherwise: Some(otherwise) } => {
                let taken = self.cases_of_condition(condition, true, scope);
                let then = block_value(then).map_or(unknown_case(), |then| self.cases_of_condition(then, holds, scope));
                let not_taken = self.cases_of_condition(condition, false, scope);
                let otherwise = self.cases_of_condition(otherwise, holds, scope);
                [cases_of_both(&taken, &then), cases_of_both(&not_taken, &otherwise)].concat()
            }
            ExprKind::Block(block) => match block_value(block) {
                Some(value) => self.cases_of_condition(value, holds, scope),
                None => unknown_case(),
            },
            ExprKind::Call { function, arguments, .. } => {
                let Some((function, body)) = scope.called(*function) else { return unknown_case() };
                let (arguments, divisors) = self.with_divisors(|table| table.call_arguments(arguments, scope));
                let Some(arguments) = arguments else { return vec![divisors] };
                cases_of_both(
                    &[divisors],
                    &self.cases_of_condition(body, holds, scope.callee_scope(function, &arguments)),
                )
            }
            _ => unknown_case(),
        }
    }

    fn cases_of_comparison(&mut self, comparison: Comparison, a: &Expr, b: &Expr, scope: LaunchScope<'_>) -> Cases {
        let (values, divisors) =
            self.with_divisors(|table| table.single_value(a, scope).zip(table.single_value(b, scope)));
        let compared = match values {
            Some((a, b)) if comparison == Comparison::Ne => cases_of_unequal(&a, &b),
            Some((a, b)) => vec![inequalities(comparison, &a, &b)],
            None => unknown_case(),
        };
        cases_of_both(&[divisors], &compared)
    }

    /// Returns the possible values of a launch expression, each with the facts of its case.
    pub(super) fn case_values(&mut self, e: &Expr, scope: LaunchScope<'_>) -> Option<Vec<CaseValue>> {
        if let (Some(value), divisors) = self.with_divisors(|table| table.single_value(e, scope)) {
            return Some(vec![CaseValue { facts: divisors, value }]);
        }
        match &scope.names.side(e).kind {
            ExprKind::If { condition, then, otherwise: Some(otherwise) } => {
                let mut all = Vec::new();
                for (holds, side) in [(true, block_value(then)?), (false, &**otherwise)] {
                    let cases = self.cases_of_condition(condition, holds, scope);
                    for CaseValue { facts, value } in self.case_values(side, scope)? {
                        let of_side = cases_of_both(&cases, &[facts]);
                        all.extend(of_side.into_iter().map(|facts| CaseValue { facts, value: value.clone() }));
                    }
                }
                Some(all)
            }
            ExprKind::Block(block) => self.case_values(block_value(block)?, scope),
            ExprKind::Call { function, arguments, .. } => {
                let (function, body) = scope.called(*function)?;
                let (arguments, divisors) = self.with_divisors(|table| table.call_arguments(arguments, scope));
                let mut all = self.case_values(body, scope.callee_scope(function, &arguments?))?;
                all.iter_mut().for_each(|case| case.facts.extend(divisors.iter().cloned()));
                Some(all)
            }
            _ => None,
        }
    }

    /// Returns the result of `evaluate`, and the facts that the divisors in it are at least 1.
    /// These facts hold only in cases that evaluate the divisions.
    fn with_divisors<T>(&mut self, evaluate: impl FnOnce(&mut VariableTable) -> T) -> (T, Vec<Polynomial>) {
        let known = self.launch_facts.len();
        let result = evaluate(self);
        (result, self.launch_facts.split_off(known))
    }

    /// Returns the values of a call's arguments, or `None` if the call is nested too deeply.
    fn call_arguments(&mut self, arguments: &[Expr], scope: LaunchScope<'_>) -> Option<Vec<Option<Polynomial>>> {
        (scope.call_depth < MAX_CALLS).then(|| arguments.iter().map(|e| self.single_value(e, scope)).collect())
    }

    /// Returns the value of a launch expression that has only one.
    fn single_value(&mut self, e: &Expr, scope: LaunchScope<'_>) -> Option<Polynomial> {
        let Some(arguments) = scope.arguments else {
            return match &scope.names.side(e).kind {
                ExprKind::Call { .. } => constant_of_call(e, scope),
                _ => self.launch_value(e, scope.names, scope.equal),
            };
        };
        match &e.kind {
            ExprKind::Local(LocalId(local)) => arguments.get(*local as usize)?.clone(),
            ExprKind::Literal(n) => Some(Polynomial::constant((*n).into())),
            ExprKind::Binary(operator @ (Binary::Add | Binary::Sub | Binary::Mul), a, b) => {
                let (a, b) = (self.single_value(a, scope)?, self.single_value(b, scope)?);
                self.binary(*operator, &a, &b)
            }
            ExprKind::Call { .. } => constant_of_call(e, scope),
            _ => None,
        }
    }

    /// Returns the length of the slice that the argument of a method names.
    fn slice_length(&mut self, arguments: &[Expr], scope: LaunchScope<'_>) -> Option<Polynomial> {
        let (None, [Expr { kind: ExprKind::Local(local), .. }]) = (scope.arguments, arguments) else { return None };
        let kernel = scope.program.kernel();
        let ty = kernel.locals.get(local.0 as usize)?.ty;
        let HirType::Slice { .. } = kernel.types.get(ty.0 as usize)? else { return None };
        let argument = scope.names.argument(*local)?;
        Some(self.extent((argument, 0), scope.equal))
    }
}

/// Returns the value of a constant, which is a function whose body is a literal.
fn constant_of_call(e: &Expr, scope: LaunchScope<'_>) -> Option<Polynomial> {
    let ExprKind::Call { function, arguments, .. } = &e.kind else { return None };
    match scope.called(*function)?.1.kind {
        ExprKind::Literal(n) if arguments.is_empty() => Some(Polynomial::constant(n.into())),
        _ => None,
    }
}
