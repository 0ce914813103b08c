//! Destructuring assignments, as Rust defines them: a `let` of new names, followed by assignments
//! from these names, from left to right.

use super::checker::FunctionChecker;
use super::types::{Ty, TypeIndex, UnknownKind};
use crate::hir::{self, Block, Expr, ExprKind, Pattern, Statement, TypeId};
use crate::syntax::{self, Assignee, SpanPair};

impl FunctionChecker<'_> {
    pub(super) fn destructure(
        &mut self,
        into: &Assignee,
        value: &syntax::Expr,
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let unit = self.table.add(Ty::Unit);
        let value = self.expr(value, None);
        let mut assignments = Vec::new();
        let pattern = self.assignee(into, TypeIndex(value.ty.0), mark, &mut assignments);
        let mut statements = vec![Statement::Let { pattern, value: Some(value), span: mark.span }];
        statements.extend(assignments.into_iter().map(Statement::Expr));
        (ExprKind::Block(Block { statements, value: None }), unit)
    }

    /// Returns a pattern that names the parts of a value of type `ty`, and adds the assignments
    /// from these names.
    fn assignee(&mut self, into: &Assignee, ty: TypeIndex, mark: SpanPair, assignments: &mut Vec<Expr>) -> Pattern {
        match into {
            Assignee::Ignore | Assignee::Rest(_) => Pattern::Ignore,
            Assignee::Place(place) => {
                let at = place.mark;
                let mut place = self.expr(place, None);
                self.assignable(&mut place, at);
                self.coerce(ty, TypeIndex(place.ty.0), at);
                let part = self.declare_temporary("part", ty);
                let value = Expr { kind: ExprKind::Local(part), ty: TypeId(ty.0), span: at.span };
                let kind = ExprKind::Assign { place: Box::new(place), operator: None, value: Box::new(value) };
                let unit = self.table.add(Ty::Unit);
                assignments.push(Expr { kind, ty: TypeId(unit.0), span: mark.span });
                Pattern::Local(part)
            }
            Assignee::Tuple(parts, at) => {
                let (types, skip) = self.tuple_parts(ty, parts, |p| matches!(p, Assignee::Rest(_)), *at);
                let parts = parts.iter().zip(types).map(|(p, t)| self.assignee(p, t, mark, assignments));
                Pattern::Parts(with_rest(parts.collect(), skip))
            }
            Assignee::Array(parts, at) => {
                let (element, skip) = self.array_parts(ty, parts, |p| matches!(p, Assignee::Rest(_)), *at);
                let parts = parts.iter().map(|p| self.assignee(p, element, mark, assignments));
                Pattern::Parts(with_rest(parts.collect(), skip))
            }
        }
    }

    /// Returns the type of each part of a destructured tuple, in the order of `parts`; for a `..`,
    /// also its position and the number of parts that it skips.
    pub(super) fn tuple_parts<P>(
        &mut self,
        ty: TypeIndex,
        parts: &[P],
        is_rest: impl Fn(&P) -> bool,
        at: SpanPair,
    ) -> (Vec<TypeIndex>, Option<(usize, usize)>) {
        let Some(rest) = self.rest(parts, &is_rest, at) else {
            let types: Vec<_> = parts.iter().map(|_| self.table.unknown()).collect();
            let tuple = match types.is_empty() {
                true => self.table.add(Ty::Unit),
                false => self.table.add(Ty::Tuple(types.clone())),
            };
            self.coerce(ty, tuple, at);
            return (types, None);
        };
        let named = parts.len() - 1;
        match self.table.get(ty).clone() {
            Ty::Tuple(all) if all.len() >= named => {
                let skipped = all.len() - named;
                let mut types: Vec<_> = all[..rest].to_vec();
                // A placeholder for `..`, which binds nothing.
                types.push(self.table.unknown());
                types.extend(&all[rest + skipped..]);
                (types, Some((rest, skipped)))
            }
            known => {
                if known != Ty::Wrong {
                    let name = self.named(ty);
                    self.report(
                        at,
                        format!(
                            "`..` does not match here: `{name}` has too few elements, or is not yet known to be a tuple"
                        ),
                    );
                }
                let wrong = self.wrong();
                (vec![wrong; parts.len()], None)
            }
        }
    }

    /// Returns the element type of a destructured array, and `..` as in
    /// [`FunctionChecker::tuple_parts`].
    pub(super) fn array_parts<P>(
        &mut self,
        ty: TypeIndex,
        parts: &[P],
        is_rest: impl Fn(&P) -> bool,
        at: SpanPair,
    ) -> (TypeIndex, Option<(usize, usize)>) {
        if let Ty::Slice { .. } | Ty::View { .. } = self.table.get(ty) {
            let name = self.named(ty);
            self.report(
                at,
                format!("a pattern cannot take elements of `{name}`, whose length is known only at run time: compare `len()`, and read each element by its index"),
            );
            return (self.wrong(), None);
        }
        let element = self.table.unknown();
        let Some(rest) = self.rest(parts, &is_rest, at) else {
            let size = self.table.add(Ty::Size(hir::Size::Known(parts.len() as u32)));
            let array = self.table.add(Ty::Array(element, size));
            self.coerce(ty, array, at);
            return (element, None);
        };
        let size = self.table.add(Ty::Unknown(UnknownKind::Size));
        let array = self.table.add(Ty::Array(element, size));
        self.coerce(ty, array, at);
        let named = parts.len() - 1;
        match *self.table.get(size) {
            Ty::Size(hir::Size::Known(n)) if n as usize >= named => (element, Some((rest, n as usize - named))),
            // Elements skipped at the end need not be counted.
            _ if rest == named => (element, Some((rest, 0))),
            _ => {
                if self.table.get(ty) != &Ty::Wrong {
                    self.report(
                        at,
                        "the length of this array is not known here, so `..` cannot be matched: name all elements, or index the array",
                    );
                }
                (element, None)
            }
        }
    }

    fn rest<P>(&mut self, parts: &[P], is_rest: &impl Fn(&P) -> bool, at: SpanPair) -> Option<usize> {
        let first = parts.iter().position(is_rest)?;
        if parts[first + 1..].iter().any(is_rest) {
            self.report(at, "`..` can appear only once in a pattern");
        }
        Some(first)
    }
}

/// Returns the patterns of all parts, with a pattern that binds nothing for each part that `..`
/// skips.
pub(super) fn with_rest(mut parts: Vec<Pattern>, rest: Option<(usize, usize)>) -> Vec<Pattern> {
    if let Some((at, count)) = rest {
        parts.splice(at..=at, std::iter::repeat_n(Pattern::Ignore, count));
    }
    parts
}
