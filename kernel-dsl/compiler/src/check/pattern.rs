//! Patterns and `match`.
//!
//! rustc checks that the arms of a `match` are exhaustive; for a kernel from a string,
//! [`ownership`](crate::ownership) does.

use super::checker::{FunctionChecker, Literal, VariableForm};
use super::destructure::with_rest;
use super::statement::end;
use super::types::{Ty, TypeIndex};
use crate::Scalar;
use crate::hir::{self, ExprKind};
use crate::ir;
use crate::syntax::{self, Arm, Pattern, SpanPair};
use proc_macro2::Ident;

impl FunctionChecker<'_> {
    /// Checks a pattern for values of type `ty`; its names are in scope from here on.
    pub(super) fn bind(&mut self, pattern: &Pattern, ty: TypeIndex, unset: bool, mark: SpanPair) -> hir::Pattern {
        if let Ty::Reference { to, mutable } = *self.table.get(ty)
            && !matches!(
                pattern,
                Pattern::Ignore
                    | Pattern::Rest(_)
                    | Pattern::Name { .. }
                    | Pattern::Named { .. }
                    | Pattern::Any(..)
                    | Pattern::Reference(..)
            )
        {
            let mutable = mutable && self.borrows != Some(false);
            let outer = self.borrows.replace(mutable);
            let inner = self.bind(pattern, to, unset, mark);
            self.borrows = outer;
            return hir::Pattern::Dereference(Box::new(inner));
        }
        match pattern {
            Pattern::Ignore => hir::Pattern::Ignore,
            // Tuples and arrays handle `..` themselves.
            Pattern::Rest(_) => hir::Pattern::Ignore,
            Pattern::Name { name, mutable } => {
                let mark = SpanPair { first: name.span(), last: name.span(), ..mark };
                if self.borrows.is_some() {
                    let id = self.declare_borrowed(name, ty, mark);
                    return hir::Pattern::Borrowed(id, Box::new(hir::Pattern::Ignore));
                }
                hir::Pattern::Local(self.declare_bound(name, ty, *mutable, unset, mark))
            }
            Pattern::Tuple(parts, at) => {
                let (types, rest) = self.tuple_parts(ty, parts, is_rest, *at);
                let parts = parts.iter().zip(types).map(|(p, t)| self.bind(p, t, unset, mark)).collect();
                hir::Pattern::Parts(with_rest(parts, rest))
            }
            Pattern::Array(parts, at) => {
                let (element, rest) = self.array_parts(ty, parts, is_rest, *at);
                let parts = parts.iter().map(|p| self.bind(p, element, unset, mark)).collect();
                hir::Pattern::Parts(with_rest(parts, rest))
            }
            Pattern::Value(e) => {
                if let syntax::ExprKind::Path(path) = &e.kind
                    && let Some(variant) = self.variant(path)
                {
                    return self.variant_pattern(variant, &[], ty, unset, e.mark);
                }
                let value = self.expr_of_type(e, ty);
                self.is_compared(&value, e);
                hir::Pattern::Value(Box::new(value))
            }
            Pattern::Range { low, high, closed } => {
                let mut bound = |e: &Option<Box<syntax::Expr>>| e.as_ref().map(|e| Box::new(self.expr_of_type(e, ty)));
                hir::Pattern::Range { low: bound(low), high: bound(high), closed: *closed }
            }
            Pattern::Any(parts, at) => self.alternatives(parts, ty, unset, *at, mark),
            Pattern::Named { name, mutable, pattern } => {
                let at = SpanPair { first: name.span(), last: name.span(), ..mark };
                if self.borrows.is_some() {
                    let id = self.declare_borrowed(name, ty, at);
                    return hir::Pattern::Borrowed(id, Box::new(self.bind(pattern, ty, unset, mark)));
                }
                let id = self.declare_bound(name, ty, *mutable, unset, at);
                hir::Pattern::Named(id, Box::new(self.bind(pattern, ty, unset, mark)))
            }
            Pattern::Some(inner, at) => {
                let part = self.table.unknown();
                let option = self.table.add(Ty::Option(part));
                self.coerce(ty, option, *at);
                hir::Pattern::Some(Box::new(self.bind(inner, part, unset, mark)))
            }
            Pattern::None(at) => {
                let part = self.table.unknown();
                let option = self.table.add(Ty::Option(part));
                self.coerce(ty, option, *at);
                hir::Pattern::None
            }
            Pattern::Struct { path, fields, mark: at, .. } => self.struct_pattern(path, fields, ty, unset, *at),
            Pattern::Reference(inner, at) => {
                let to = self.table.unknown();
                let reference = self.table.add(Ty::Reference { to, mutable: false });
                self.coerce(ty, reference, *at);
                let outer = self.borrows.take();
                let inner = self.bind(inner, to, unset, mark);
                self.borrows = outer;
                hir::Pattern::Dereference(Box::new(inner))
            }
        }
    }

    /// Reports a constant of a pattern that no single comparison compares.
    fn is_compared(&mut self, value: &hir::Expr, e: &syntax::Expr) {
        let ty = TypeIndex(value.ty.0);
        let compared = match self.table.get(ty) {
            Ty::Tuple(_) | Ty::Array(..) | Ty::Option(_) | Ty::Struct(..) => false,
            Ty::Enum(..) => self.is_discriminant(ty),
            _ => true,
        };
        if !compared {
            let name = self.named(ty);
            self.report(
                e.mark,
                format!(
                    "a constant in a pattern must be a number, a `bool` or an enum without data, not `{name}`: bind a name and compare in a guard, `x if x == …`"
                ),
            );
        }
    }

    /// Checks `a | b`. All alternatives bind the same names, so each name is one variable.
    fn alternatives(
        &mut self,
        parts: &[Pattern],
        ty: TypeIndex,
        unset: bool,
        at: SpanPair,
        mark: SpanPair,
    ) -> hir::Pattern {
        let outer = self.alternatives.len();
        let depth = self.scope.len();
        let mut first = Vec::new();
        let mut all = Vec::with_capacity(parts.len());
        for (i, part) in parts.iter().enumerate() {
            all.push(self.bind(part, ty, unset, mark));
            let names = self.scope.split_off(depth);
            if i == 0 {
                self.alternatives.extend(names.iter().cloned());
                first = names;
                continue;
            }
            let lacks = |of: &[(String, hir::LocalId)], name: &str| of.iter().all(|(n, _)| n != name);
            let lacking = first.iter().find(|(n, _)| lacks(&names, n)).or(names.iter().find(|(n, _)| lacks(&first, n)));
            if let Some((name, _)) = lacking {
                self.report(
                    at,
                    format!("`{name}` is not bound by all alternatives of this pattern: bind the same names in each"),
                );
            }
        }
        self.alternatives.truncate(outer);
        let written = |id: &hir::LocalId| {
            let ty = self.locals[id.0 as usize].ty;
            matches!(self.table.get(ty), Ty::Reference { mutable: true, .. })
        };
        if first.iter().any(|(_, id)| written(id)) {
            self.report(
                at,
                "alternatives separated by `|` cannot bind names to places that are written: write one arm for each",
            );
        }
        self.scope.extend(first);
        hir::Pattern::Any(all)
    }

    /// Declares a name for a reference to a value of type `to`.
    fn declare_borrowed(&mut self, name: &Ident, to: TypeIndex, mark: SpanPair) -> hir::LocalId {
        let ty = self.table.add(Ty::Reference { to, mutable: self.borrows == Some(true) });
        self.declare_bound(name, ty, false, false, mark)
    }

    /// Declares a name of a pattern. A name that the first alternative binds is the same variable
    /// in the others.
    fn declare_bound(
        &mut self,
        name: &Ident,
        ty: TypeIndex,
        mutable: bool,
        unset: bool,
        mark: SpanPair,
    ) -> hir::LocalId {
        let Some((_, id)) = self.alternatives.iter().rev().find(|(bound, _)| name == bound).cloned() else {
            return self.declare_as(VariableForm { mutable, unset }, name.to_string(), ty, mark);
        };
        let variable = &self.locals[id.0 as usize];
        let (wanted, same) = (variable.ty, variable.form.mutable == mutable);
        if !self.table.unify(ty, wanted) {
            let (ty, wanted) = (self.named(ty), self.named(wanted));
            self.report(mark, format!("`{name}` is a `{wanted}` in the first alternative, and a `{ty}` here"));
        }
        if !same {
            self.report(
                mark,
                format!("`{name}` is `mut` in one alternative only: write `mut` in all of them, or in none"),
            );
        }
        self.scope.push((name.to_string(), id));
        id
    }

    pub(super) fn cases(
        &mut self,
        value: &syntax::Expr,
        arms: &[Arm],
        expected: Option<TypeIndex>,
    ) -> (ExprKind, TypeIndex) {
        let value = self.expr(value, None);
        let of = TypeIndex(value.ty.0);
        let bool = self.table.scalar(Scalar::Bool);
        let mut ty = self.table.add(Ty::Never);
        let mut all = Vec::with_capacity(arms.len());
        for arm in arms {
            let depth = self.scope.len();
            let pattern = self.bind(&arm.pattern, of, false, arm.mark);
            let guard = arm.guard.as_ref().map(|g| self.expr_of_type(g, bool));
            let never = matches!(self.table.get(ty), Ty::Never);
            let body = self.expr(&arm.body, expected.or(if never { None } else { Some(ty) }));
            let mark = match &arm.body.kind {
                syntax::ExprKind::Block(b) => end(b),
                _ => arm.body.mark,
            };
            match never {
                true => ty = TypeIndex(body.ty.0),
                false => {
                    self.coerce(TypeIndex(body.ty.0), ty, mark);
                }
            }
            self.scope.truncate(depth);
            // Rust tests the guard with each alternative that matches, so each becomes an arm.
            let patterns = match &guard {
                Some(guard) => self.split(pattern, has_effect(guard), arm.mark),
                None => vec![pattern],
            };
            for pattern in patterns {
                all.push(hir::Arm { pattern, guard: guard.clone(), body: body.clone() });
            }
        }
        (ExprKind::Match { value: Box::new(value), arms: all }, ty)
    }
}

/// The largest number of arms that an arm with alternatives and a guard becomes.
const MAX_GUARDED_ALTERNATIVES: usize = 32;

impl FunctionChecker<'_> {
    /// Returns the patterns that together match what `pattern` matches, in order. In none of them
    /// an alternative binds a name. If the guard has an `effect`, no two alternatives match the
    /// same value: Rust tests the guard again with the second.
    fn split(&mut self, pattern: hir::Pattern, effect: bool, mark: SpanPair) -> Vec<hir::Pattern> {
        let mut all = vec![pattern];
        while let Some(at) = all.iter().position(|pattern| self.splits(pattern, effect)) {
            let pattern = all.remove(at);
            let split = self.alternatives_of(&pattern, effect);
            all.splice(at..at, split);
            if all.len() > MAX_GUARDED_ALTERNATIVES {
                let message = format!(
                    "an arm with a guard has at most {MAX_GUARDED_ALTERNATIVES} alternatives that bind names, or that match one value if the guard has an effect: write several arms"
                );
                self.report(mark, message);
                return Vec::new();
            }
        }
        all
    }

    /// Returns a pattern for each alternative of the first part that [`split`](Self::split) splits.
    fn alternatives_of(&self, pattern: &hir::Pattern, effect: bool) -> Vec<hir::Pattern> {
        use hir::Pattern as P;
        let each = |inner: &P, make: &dyn Fn(Box<P>) -> P| {
            self.alternatives_of(inner, effect).into_iter().map(|p| make(Box::new(p))).collect()
        };
        match pattern {
            P::Any(patterns) if self.splits_here(patterns, effect) => patterns.clone(),
            P::Any(patterns) => {
                let split = |pattern: &P| self.alternatives_of(pattern, effect);
                patterns.iter().flat_map(split).collect()
            }
            P::Parts(parts) => match parts.iter().position(|part| self.splits(part, effect)) {
                Some(at) => {
                    let with = |part| {
                        let mut parts = parts.clone();
                        parts[at] = part;
                        P::Parts(parts)
                    };
                    self.alternatives_of(&parts[at], effect).into_iter().map(with).collect()
                }
                None => vec![pattern.clone()],
            },
            P::Named(id, inner) => each(inner, &|inner| P::Named(*id, inner)),
            P::Borrowed(id, inner) => each(inner, &|inner| P::Borrowed(*id, inner)),
            P::Some(inner) => each(inner, &P::Some),
            P::Dereference(inner) => each(inner, &P::Dereference),
            _ => vec![pattern.clone()],
        }
    }

    /// Returns whether [`split`](Self::split) splits a part of the pattern.
    fn splits(&self, pattern: &hir::Pattern, effect: bool) -> bool {
        use hir::Pattern as P;
        match pattern {
            P::Any(patterns) => {
                self.splits_here(patterns, effect) || patterns.iter().any(|pattern| self.splits(pattern, effect))
            }
            P::Parts(parts) => parts.iter().any(|part| self.splits(part, effect)),
            P::Named(_, inner) | P::Borrowed(_, inner) | P::Some(inner) | P::Dereference(inner) => {
                self.splits(inner, effect)
            }
            _ => false,
        }
    }

    /// Returns whether each of these alternatives becomes an arm.
    fn splits_here(&self, patterns: &[hir::Pattern], effect: bool) -> bool {
        let overlap = || {
            let mut rest = patterns.iter().enumerate();
            rest.any(|(i, a)| patterns[i + 1..].iter().any(|b| !self.are_disjoint(a, b)))
        };
        patterns.iter().any(hir::Pattern::binds) || effect && overlap()
    }

    /// Returns whether certainly no value matches both patterns.
    fn are_disjoint(&self, a: &hir::Pattern, b: &hir::Pattern) -> bool {
        use hir::Pattern as P;
        match (a, b) {
            (P::Any(all), one) | (one, P::Any(all)) => all.iter().all(|pattern| self.are_disjoint(pattern, one)),
            (P::Named(_, inner) | P::Borrowed(_, inner), other)
            | (other, P::Named(_, inner) | P::Borrowed(_, inner)) => self.are_disjoint(inner, other),
            (P::Parts(a), P::Parts(b)) => a.iter().zip(b).any(|(a, b)| self.are_disjoint(a, b)),
            (P::Some(_), P::None) | (P::None, P::Some(_)) => true,
            (P::Some(a), P::Some(b)) | (P::Dereference(a), P::Dereference(b)) => self.are_disjoint(a, b),
            (P::Value(_) | P::Range { .. }, P::Value(_) | P::Range { .. }) => {
                match (self.numbers_of(a), self.numbers_of(b)) {
                    (Some((low, high)), Some((other_low, other_high))) => high < other_low || other_high < low,
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// Returns the first and last number that a pattern of literals matches.
    fn numbers_of(&self, pattern: &hir::Pattern) -> Option<(i128, i128)> {
        match pattern {
            hir::Pattern::Value(e) => {
                let number = self.number_of(e)?;
                Some((number, number))
            }
            hir::Pattern::Range { low, high, closed } => {
                let low = low.as_ref().map_or(Some(i128::MIN), |e| self.number_of(e))?;
                let high = match high {
                    None => i128::MAX,
                    Some(e) => self.number_of(e)? - i128::from(!closed),
                };
                Some((low, high))
            }
            _ => None,
        }
    }

    fn number_of(&self, e: &hir::Expr) -> Option<i128> {
        match &e.kind {
            ExprKind::Literal(at) => match self.literals[*at as usize] {
                Literal::Integer(n, _) => i128::try_from(n).ok(),
                Literal::Float(_) => None,
            },
            ExprKind::Unary(ir::Unary::Neg, operand) => Some(-self.number_of(operand)?),
            _ => None,
        }
    }
}

/// Returns whether a second evaluation of an expression may differ from the first, or may be
/// noticed.
fn has_effect(e: &hir::Expr) -> bool {
    let mut effect = false;
    hir::visit::expr(&mut e.clone(), &mut |e| effect |= is_effect(e));
    effect
}

/// Returns whether an expression has an effect besides those of its parts. Calls may have one.
fn is_effect(e: &hir::Expr) -> bool {
    use hir::Intrinsic as I;
    match &e.kind {
        ExprKind::Assign { .. }
        | ExprKind::Call { .. }
        | ExprKind::CallMethod { .. }
        | ExprKind::CallItem { .. }
        | ExprKind::CallValue { .. }
        | ExprKind::Inline { .. }
        | ExprKind::Assertion { .. }
        | ExprKind::Log { .. }
        | ExprKind::Loop { .. }
        | ExprKind::While { .. } => true,
        ExprKind::Intrinsic { intrinsic, .. } => !matches!(
            intrinsic,
            I::Thread(_)
                | I::Block(_)
                | I::BlockDim(_)
                | I::GridDim(_)
                | I::ThreadIndex
                | I::BlockThreads
                | I::GridIndex
                | I::GridThreads
                | I::WarpLane
                | I::WarpIndex
                | I::WarpCount
                | I::TargetSm
                | I::GroupLane
                | I::GroupIndex
                | I::Extent(_)
                | I::IsEmpty
                | I::Unary(_)
                | I::Binary(_)
                | I::Method(_)
                | I::Overflow(..)
                | I::Wide(_)
                | I::MulAdd
                | I::Fast(_)
                | I::Bits(_)
                | I::Bitcast
                | I::Convert
                | I::Truncate
                | I::DivCeil
                | I::NextMultipleOf
                | I::SaturatingSub
                | I::Some
                | I::None
                | I::IsSome
                | I::Get
                | I::Copied
                | I::ArrayLen
        ),
        _ => false,
    }
}

fn is_rest(pattern: &Pattern) -> bool {
    matches!(pattern, Pattern::Rest(_))
}
