//! Closures: what they capture and how, and whether a parameter's trait permits it.

use super::GraphBuilder;
use crate::hir::{CallTrait, Expr, ExprKind, Function, Pattern, Type};
use crate::ownership::analysis;
use crate::ownership::graph::{AccessGraph, PlaceAccess, PlaceProjection, VariablePlace};
use crate::source::Span;
use std::collections::{BTreeMap, BTreeSet};

impl<'f> GraphBuilder<'f> {
    /// Adds a closure: the loans of its captures, and its body on a separate path.
    pub(super) fn closure(&mut self, parameters: &'f [Pattern], body: &'f Expr, span: Span) -> usize {
        let (captures, inner) = self.captures(parameters, body);
        if self.at.is_some() {
            self.graph.mistakes.extend(analysis::mistakes(inner));
        }
        let held = self.temporary();
        self.define_from(held, [], span);
        for (place, capture) in captures {
            match capture {
                CaptureMode::Read => self.borrow(place, false, held, span),
                CaptureMode::Write => self.borrow(place, true, held, span),
                CaptureMode::Take => self.access(PlaceAccess::Move, place, span),
            }
        }
        held
    }

    /// Returns the variables that a closure captures, and how.
    fn captures(
        &mut self,
        parameters: &'f [Pattern],
        body: &'f Expr,
    ) -> (BTreeMap<VariablePlace, CaptureMode>, AccessGraph) {
        // The body's own graph has its accesses, by variables of which some are its own.
        let mut inner = GraphBuilder {
            writers: self.writers.clone(),
            takers: self.takers.clone(),
            ..GraphBuilder::new(self.function, self.functions, self.items, self.graph.variables.clone())
        };
        let mut own = BTreeSet::new();
        for parameter in parameters {
            parameter.variables(&mut |id| own.extend([id.0 as usize]));
        }
        inner.operand(body);
        let known = self.graph.variables.len();
        let mut captures: BTreeMap<VariablePlace, CaptureMode> = BTreeMap::new();
        for node in &inner.graph.nodes {
            let Some((access, place)) = &node.access else { continue };
            if matches!(access, PlaceAccess::Define | PlaceAccess::Declare) {
                own.insert(place.local);
            }
            if place.local >= known || own.contains(&place.local) || matches!(access, PlaceAccess::End) {
                continue;
            }
            let called = inner.writers.contains(&place.local) && *access == PlaceAccess::Read;
            let capture = match access {
                PlaceAccess::Write => CaptureMode::Write,
                PlaceAccess::Borrow(loan) if inner.graph.loans[*loan].mutable => CaptureMode::Write,
                PlaceAccess::Move => CaptureMode::Take,
                _ if called => CaptureMode::Write,
                _ => CaptureMode::Read,
            };
            // A place behind an element is captured as the whole array.
            let end = place.path.iter().position(|p| *p == PlaceProjection::Element).unwrap_or(place.path.len());
            let place = VariablePlace { local: place.local, path: place.path[..end].to_vec() };
            let known = captures.entry(place).or_insert(capture);
            *known = (*known).max(capture);
        }
        (captures, inner.graph)
    }

    /// Returns whether the value is a closure that writes to what it captures, and whether it takes
    /// it.
    pub(super) fn closure_form(&mut self, value: &'f Expr) -> (bool, bool) {
        match &value.kind {
            ExprKind::Closure { parameters, body } => {
                let (captures, _) = self.captures(parameters, body);
                (
                    captures.values().any(|c| *c == CaptureMode::Write),
                    captures.values().any(|c| *c == CaptureMode::Take),
                )
            }
            _ => (false, false),
        }
    }

    /// Returns the trait of a closure parameter; `None` of another parameter.
    pub(super) fn call_trait(&self, function: &Function, parameter: usize) -> Option<CallTrait> {
        match function.types[function.locals[parameter].ty.0 as usize] {
            Type::Function { calls, .. } => Some(calls),
            _ => None,
        }
    }

    /// Rejects a closure, as argument of a call, that lacks the trait of the parameter.
    pub(super) fn check_call_trait(&mut self, argument: &'f Expr, calls: CallTrait) {
        let (writes, takes) = match argument.kind {
            ExprKind::Local(id) => {
                let local = id.0 as usize;
                (self.writers.contains(&local), self.takers.contains(&local))
            }
            _ => self.closure_form(argument),
        };
        let does = match calls {
            CallTrait::Fn if writes => "changes",
            CallTrait::Fn | CallTrait::FnMut if takes => "takes",
            _ => return,
        };
        if self.at.is_some() {
            let (wanted, name) = (if does == "changes" { "FnMut" } else { "FnOnce" }, calls.name());
            let message = format!(
                "this closure {does} what it captures, and the parameter is `{name}`: declare the parameter `{wanted}`, or return the value instead"
            );
            self.graph.mistakes.push((argument.span, message));
        }
    }
}

/// How a closure captures a place, from the weakest to the strongest way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum CaptureMode {
    Read,
    Write,
    Take,
}
