//! Calls: their arguments, and the loans that they pass on to the result.

use super::GraphBuilder;
use crate::hir::{CallTrait, Expr, ExprKind, FunctionId, Intrinsic, Type};
use crate::ownership::graph::{PlaceAccess, PlaceProjection};
use crate::source::Span;

impl<'f> GraphBuilder<'f> {
    /// Evaluates a call of an operation of the language.
    pub(super) fn intrinsic(&mut self, e: &'f Expr, intrinsic: &Intrinsic, arguments: &'f [Expr]) -> Option<usize> {
        let (mut held, mut lent) = (Vec::new(), None);
        let calls = match intrinsic {
            Intrinsic::ArrayFrom | Intrinsic::ArrayMap => CallTrait::FnMut,
            _ => CallTrait::Fn,
        };
        for (i, argument) in arguments.iter().enumerate() {
            let ty = &self.function.types[argument.ty.0 as usize];
            if matches!(ty, Type::Function { .. }) {
                self.check_call_trait(argument, calls);
            }
            let handle = matches!(ty, Type::Slice { .. } | Type::Shared { .. } | Type::View { .. });
            let by_reference = matches!(intrinsic, Intrinsic::IsSome | Intrinsic::ArrayLen);
            if i == 0 && (handle || by_reference) {
                let place = self.place_of(argument);
                held.push(Some(place.local));
                self.access(PlaceAccess::Read, place.clone(), argument.span);
                lent = handle.then_some(place);
            } else {
                held.push(self.argument(argument));
            }
        }
        let holder = self.holding(e.ty, &held, e.span);
        if let (Some(holder), Some(place)) = (holder, lent) {
            self.borrow(place.part(PlaceProjection::Target), false, holder, e.span);
        }
        holder
    }

    /// Rejects closures, as arguments of a call, that lack the trait of their parameter.
    pub(super) fn check_call_traits(&mut self, function: FunctionId, arguments: &'f [Expr]) {
        let called = &self.functions[function.0 as usize];
        for (index, argument) in arguments.iter().enumerate() {
            if let Some(calls) = self.call_trait(called, index) {
                self.check_call_trait(argument, calls);
            }
        }
    }

    /// Evaluates a call of a function.
    pub(super) fn call(&mut self, e: &'f Expr, arguments: &'f [Expr]) -> Option<usize> {
        let held = self.all(arguments);
        self.consumed(&held, e.span);
        self.holding(e.ty, &held, e.span)
    }

    /// Evaluates a call of a closure.
    pub(super) fn call_value(&mut self, e: &'f Expr, callee: &'f Expr, arguments: &'f [Expr]) -> Option<usize> {
        let mut held = self.all(arguments);
        if let Some(place) = self.place(callee) {
            let local = place.local;
            let name = &self.graph.variables[local].name;
            if self.writers.contains(&local) && !self.graph.variables[local].mutable && self.at.is_some() {
                let message = if local < self.function.parameters as usize {
                    format!("`{name}` is `FnMut`, and a call may change what it captures: declare it `mut {name}`")
                } else {
                    format!(
                        "the closure `{name}` changes what it captures, so its variable must be `mut`: `let mut {name} = …`"
                    )
                };
                self.graph.mistakes.push((callee.span, message));
            }
            let takes = self.takers.contains(&local);
            self.access(if takes { PlaceAccess::Move } else { PlaceAccess::Read }, place, callee.span);
            if takes {
                self.consumed(&held, e.span);
                held.push(Some(local));
                return self.holding(e.ty, &held, e.span);
            }
            held.push(Some(local));
        } else {
            held.push(self.operand(callee));
        }
        self.consumed(&held, e.span);
        self.holding(e.ty, &held, e.span)
    }

    /// Evaluates the arguments of a call.
    pub(super) fn all(&mut self, all: impl IntoIterator<Item = &'f Expr>) -> Vec<Option<usize>> {
        // The receiver of a method is borrowed mutably once the arguments are evaluated.
        let mut all = all.into_iter().peekable();
        let receiver = all.next_if(|e| match &e.kind {
            ExprKind::Reference(inner) => e.span == inner.span && self.ty(e.ty).reference() == Some(true),
            _ => false,
        });
        let mut values: Vec<_> = all.map(|e| self.argument(e)).collect();
        if let Some(receiver) = receiver {
            values.push(self.argument(receiver));
        }
        values
    }

    /// Uses the values that a call takes, so that their loans last until it.
    pub(super) fn consumed(&mut self, values: &[Option<usize>], span: Span) {
        for value in values.iter().flatten() {
            self.use_of(*value, span);
        }
    }
}
