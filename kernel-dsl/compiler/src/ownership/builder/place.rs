//! Places: the place that an expression names, and reads, moves and borrows of a place.

use super::GraphBuilder;
use crate::hir::{Expr, ExprKind, TypeId};
use crate::ownership::graph::{Loan, PlaceAccess, PlaceProjection, VariablePlace};
use crate::source::Span;

impl<'f> GraphBuilder<'f> {
    /// Returns the place of an expression, or of the temporary that holds its value.
    pub(super) fn place_of(&mut self, value: &'f Expr) -> VariablePlace {
        if let Some(place) = self.place(value) {
            return place;
        }
        let held = self.operand(value);
        let local = self.temporary();
        self.define_from(local, held, value.span);
        VariablePlace::of(local)
    }

    /// Returns the place that an expression names, and evaluates the indices in it; `None` for a
    /// value.
    pub(super) fn place(&mut self, e: &'f Expr) -> Option<VariablePlace> {
        match &e.kind {
            ExprKind::Local(id) => Some(VariablePlace::of(id.0 as usize)),
            ExprKind::Field { base, field } => Some(self.place_of(base).part(PlaceProjection::Field(*field))),
            ExprKind::Dereference(base) => Some(self.place_of(base).part(PlaceProjection::Target)),
            ExprKind::Index { base, index } => {
                let target = self.ty(base.ty).reference().is_some();
                let mut place = self.place_of(base);
                if target {
                    place = place.part(PlaceProjection::Target);
                }
                self.operand(index);
                Some(place.part(PlaceProjection::Element))
            }
            _ => None,
        }
    }

    /// Reads or moves the value of a place.
    pub(super) fn take(&mut self, place: VariablePlace, ty: TypeId, span: Span) {
        // A closure that writes to what it captures is not `Copy`.
        let writes = place.path.is_empty() && self.writers.contains(&place.local);
        if self.is_copy(ty) && !writes {
            return self.access(PlaceAccess::Read, place, span);
        }
        let behind = place.path.iter().find(|p| !matches!(p, PlaceProjection::Field(_)));
        if let (Some(behind), Some(_)) = (behind, self.at) {
            let what = match behind {
                PlaceProjection::Target => "a reference",
                _ => "an element",
            };
            let advice = match self.ty(ty).item_name(self.items) {
                Some(name) => format!("derive `Clone, Copy` for `{name}`, or use a reference to it, `&…`"),
                None => "use a reference to it, `&…`".to_string(),
            };
            self.graph.mistakes.push((span, format!("this value cannot be moved out of {what}: {advice}")));
        }
        self.access(PlaceAccess::Move, place, span);
    }

    /// Starts a loan of a place, which `holder` holds.
    pub(super) fn borrow(&mut self, place: VariablePlace, mutable: bool, holder: usize, span: Span) {
        let loan = self.graph.loans.len();
        // A reference to a target of a reference is valid no longer than that reference's loan.
        if place.path.contains(&PlaceProjection::Target) {
            self.graph.variables[holder].flows.insert(place.local);
        }
        self.graph.loans.push(Loan { place: place.clone(), mutable, span });
        self.graph.variables[holder].loans.insert(loan);
        self.access(PlaceAccess::Borrow(loan), place, span);
    }

    /// Starts a loan of a place, which a new temporary holds.
    pub(super) fn reference(&mut self, place: VariablePlace, mutable: bool, span: Span) -> usize {
        let held = self.temporary();
        self.define_from(held, [], span);
        self.borrow(place, mutable, held, span);
        held
    }

    /// Evaluates an operand. The place of a `&mut` reference is borrowed again, and written if
    /// `mutable`.
    fn reborrowed(&mut self, e: &'f Expr, mutable: bool) -> Option<usize> {
        if self.ty(e.ty).reference() == Some(true)
            && let Some(place) = self.place(e)
        {
            return Some(self.reference(place.part(PlaceProjection::Target), mutable, e.span));
        }
        self.operand(e)
    }

    /// Evaluates an argument: a `&mut` reference is borrowed again, and not moved.
    pub(super) fn argument(&mut self, e: &'f Expr) -> Option<usize> {
        self.reborrowed(e, true)
    }

    /// Evaluates the value of a block or arm. A `&mut` reference may become a `&` reference there,
    /// and counts as one.
    pub(super) fn tail(&mut self, e: &'f Expr) -> Option<usize> {
        self.reborrowed(e, false)
    }

    /// Reads the value of an expression without taking it.
    pub(super) fn compared(&mut self, e: &'f Expr) {
        match self.place(e) {
            Some(place) => self.access(PlaceAccess::Read, place, e.span),
            None => drop(self.operand(e)),
        }
    }
}
