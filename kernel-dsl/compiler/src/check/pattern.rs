//! Patterns and `match`.
//!
//! rustc checks that the arms of a `match` are exhaustive.

use super::{
    FunctionChecker, VariableForm,
    destructure::with_rest,
    statement::end,
    types::{Ty, TypeIndex},
};
use crate::Scalar;
use crate::hir::{self, ExprKind};
use crate::syntax::{self, Arm, Pattern, SpanPair};

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
                let form = VariableForm { mutable: *mutable, unset };
                hir::Pattern::Local(self.declare_as(form, name.to_string(), ty, mark))
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
                hir::Pattern::Value(Box::new(self.expr_of_type(e, ty)))
            }
            Pattern::Range { low, high, closed } => {
                let mut bound = |e: &Option<Box<syntax::Expr>>| e.as_ref().map(|e| Box::new(self.expr_of_type(e, ty)));
                hir::Pattern::Range { low: bound(low), high: bound(high), closed: *closed }
            }
            Pattern::Any(parts, at) => {
                let depth = self.scope.len();
                let parts = parts.iter().map(|p| self.bind(p, ty, unset, mark)).collect();
                if self.scope.len() != depth {
                    self.report(
                        *at,
                        "alternatives separated by `|` cannot bind names in a kernel: write one arm for each",
                    );
                }
                hir::Pattern::Any(parts)
            }
            Pattern::Named { name, mutable, pattern } => {
                let at = SpanPair { first: name.span(), last: name.span(), ..mark };
                if self.borrows.is_some() {
                    let id = self.declare_borrowed(name, ty, at);
                    return hir::Pattern::Borrowed(id, Box::new(self.bind(pattern, ty, unset, mark)));
                }
                let form = VariableForm { mutable: *mutable, unset };
                let id = self.declare_as(form, name.to_string(), ty, at);
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

    /// Declares a name for a reference to a value of type `to`.
    fn declare_borrowed(&mut self, name: &proc_macro2::Ident, to: TypeIndex, mark: SpanPair) -> hir::LocalId {
        let ty = self.table.add(Ty::Reference { to, mutable: self.borrows == Some(true) });
        self.declare(name.to_string(), ty, mark)
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
            all.push(hir::Arm { pattern, guard, body });
        }
        (ExprKind::Match { value: Box::new(value), arms: all }, ty)
    }
}

fn is_rest(pattern: &Pattern) -> bool {
    matches!(pattern, Pattern::Rest(_))
}
