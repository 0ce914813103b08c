//! Patterns: their names are bound to the parts of a place.

use super::GraphBuilder;
use crate::hir::{Expr, LocalId, Pattern};
use crate::ownership::graph::{PlaceAccess, PlaceProjection, VariablePlace};
use crate::source::Span;

impl<'f> GraphBuilder<'f> {
    /// Binds the names of a pattern to the parts of a value.
    pub(super) fn bind_value(&mut self, pattern: &'f Pattern, value: &'f Expr, span: Span) {
        if let Pattern::Local(id) = pattern {
            let local = id.0 as usize;
            let (writes, takes) = self.closure_form(value);
            let held = self.operand(value);
            if writes {
                self.writers.insert(local);
            }
            if takes {
                self.takers.insert(local);
            }
            self.define_from(local, held, span);
            self.scope.push(local);
            return;
        }
        let place = self.place_of(value);
        self.bind(pattern, place, span);
    }

    /// Binds the names of a pattern to the parts of a place.
    pub(super) fn bind(&mut self, pattern: &'f Pattern, place: VariablePlace, span: Span) {
        match pattern {
            Pattern::Ignore => {}
            Pattern::Local(id) => self.bind_name(*id, place, span),
            Pattern::Named(id, inner) => {
                self.bind(inner, place.clone(), span);
                self.bind_name(*id, place, span);
            }
            Pattern::Borrowed(id, inner) => {
                self.bind(inner, place.clone(), span);
                let local = id.0 as usize;
                let mutable = self.ty(self.function.locals[local].ty).reference() == Some(true);
                self.define_from(local, [], span);
                self.borrow(place, mutable, local, span);
                self.scope.push(local);
            }
            Pattern::Parts(parts) => {
                for (part, at) in parts.iter().zip(0..) {
                    self.bind(part, place.clone().part(PlaceProjection::Field(at)), span);
                }
            }
            Pattern::Some(inner) => self.bind(inner, place.part(PlaceProjection::Field(0)), span),
            Pattern::Dereference(inner) => self.bind(inner, place.part(PlaceProjection::Target), span),
            Pattern::Value(_) | Pattern::Range { .. } => self.access(PlaceAccess::Read, place, span),
            Pattern::None => {}
            Pattern::Any(all) => {
                let start = self.at;
                let mut ends = Vec::new();
                let depth = self.scope.len();
                for one in all {
                    self.at = start;
                    self.scope.truncate(depth);
                    self.bind(one, place.clone(), span);
                    ends.extend(self.at.take());
                }
                self.join(&ends);
            }
        }
    }

    fn bind_name(&mut self, id: LocalId, place: VariablePlace, span: Span) {
        let local = id.0 as usize;
        let ty = self.function.locals[local].ty;
        let from = self.holds_references(ty).then_some(place.local);
        self.take(place, ty, span);
        self.define_from(local, from, span);
        self.scope.push(local);
    }
}
