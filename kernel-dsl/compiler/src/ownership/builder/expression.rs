//! Expressions in the order of their evaluation, and the variable that holds the loans of a value.

use super::GraphBuilder;
use crate::hir::{Expr, ExprKind, Size, Type};
use crate::ownership::graph::PlaceAccess;
use crate::source::Span;

impl<'f> GraphBuilder<'f> {
    /// Evaluates an expression. Returns the variable that holds the loans of its value, if any.
    pub(super) fn operand(&mut self, e: &'f Expr) -> Option<usize> {
        if let Some(place) = self.place(e) {
            let local = place.local;
            self.take(place, e.ty, e.span);
            return self.holding(e.ty, &[Some(local)], e.span);
        }
        match &e.kind {
            ExprKind::Literal(_)
            | ExprKind::LongLiteral(_)
            | ExprKind::Generic(_)
            | ExprKind::Function { .. }
            | ExprKind::MethodValue { .. }
            | ExprKind::SizeOf(_) => None,
            // A place, for which the function returned above.
            ExprKind::Local(_) | ExprKind::Field { .. } | ExprKind::Index { .. } | ExprKind::Dereference(_) => None,
            ExprKind::Unary(_, a) | ExprKind::Cast(a) => {
                self.operand(a);
                None
            }
            ExprKind::Repeat(a) => self.repeat(e, a),
            ExprKind::Binary(_, a, b) => {
                self.operand(a);
                self.operand(b);
                None
            }
            ExprKind::Compare(_, a, b) => {
                for side in [a, b] {
                    self.compared(side);
                }
                None
            }
            ExprKind::AndAlso(a, b) | ExprKind::OrElse(a, b) => {
                self.operand(a);
                let short: Vec<usize> = self.at.into_iter().collect();
                self.operand(b);
                self.join(&short);
                None
            }
            ExprKind::Assign { place, operator, value } => {
                self.assign(e.span, place, operator.is_some(), value);
                None
            }
            ExprKind::Intrinsic { intrinsic, arguments } => self.intrinsic(e, intrinsic, arguments),
            ExprKind::Call { function, arguments, .. } => {
                self.check_call_traits(*function, arguments);
                self.call(e, arguments)
            }
            ExprKind::CallMethod { arguments, .. } | ExprKind::CallItem { arguments, .. } => self.call(e, arguments),
            ExprKind::Tuple(all) | ExprKind::Array(all) => {
                let held = self.all(all);
                self.holding(e.ty, &held, e.span)
            }
            ExprKind::Struct { fields, rest } => {
                let held = self.all(fields.iter().map(|(_, e)| e));
                if let Some(rest) = rest {
                    self.rest_of_fields(rest);
                }
                self.holding(e.ty, &held, e.span)
            }
            ExprKind::Inline { arguments, .. } | ExprKind::Log { values: arguments, .. } => {
                arguments.iter().for_each(|e| self.compared(e));
                None
            }
            ExprKind::Assertion { condition, values, .. } => {
                self.assertion(condition.as_deref(), values);
                None
            }
            ExprKind::Reference(inner) => {
                let mutable = self.ty(e.ty).reference() == Some(true);
                let place = self.place_of(inner);
                Some(self.reference(place, mutable, e.span))
            }
            ExprKind::If { condition, then, otherwise } => self.if_else(e, condition, then, otherwise.as_deref()),
            ExprKind::Match { value, arms } => self.match_arms(e, value, arms),
            ExprKind::Closure { parameters, body } => Some(self.closure(parameters, body, e.span)),
            ExprKind::CallValue { callee, arguments } => self.call_value(e, callee, arguments),
            ExprKind::Block(block) => self.block(block),
            ExprKind::Labeled { label, body } => self.labeled(e, *label, body),
            ExprKind::Loop { label, body } => self.infinite_loop(e, *label, body),
            ExprKind::While { label, condition, body } => {
                self.while_loop(*label, condition, body);
                None
            }
            ExprKind::For { label, pattern, range, body } => {
                self.for_loop(e.span, *label, (pattern, range), body);
                None
            }
            ExprKind::Break { label, value } => {
                self.break_from(e.span, *label, value.as_deref());
                None
            }
            ExprKind::Continue { label } => {
                self.continue_at(*label);
                None
            }
            ExprKind::Return(value) => {
                self.return_from(e.span, value.as_deref());
                None
            }
        }
    }

    /// Evaluates `[value; n]`.
    fn repeat(&mut self, e: &'f Expr, value: &'f Expr) -> Option<usize> {
        let few = matches!(self.function.ty(e.ty), Type::Array(_, Size::Known(0 | 1)));
        if !few && !self.is_copy(value.ty) && self.at.is_some() {
            let message = "`[value; n]` copies its value, which is not `Copy`: write each element".to_string();
            self.graph.mistakes.push((value.span, message));
        }
        let held = self.operand(value);
        self.holding(e.ty, &[held], e.span)
    }

    /// Evaluates an assignment, `compound` if it has an operator, as `+=`.
    fn assign(&mut self, span: Span, place: &'f Expr, compound: bool, value: &'f Expr) {
        let held = if compound { self.operand(value) } else { self.argument(value) };
        if let Some(place) = self.place(place) {
            self.graph.variables[place.local].flows.extend(held);
            if compound {
                self.access(PlaceAccess::Read, place.clone(), span);
            }
            if let Some(node) = self.add(Some((PlaceAccess::Write, place)), span) {
                self.graph.nodes[node].uses = held.into_iter().collect();
            }
        }
    }

    /// Evaluates the value after `..` in a struct literal.
    fn rest_of_fields(&mut self, rest: &'f Expr) {
        match self.place(rest) {
            // Only the other fields are taken, which are mostly numbers.
            Some(place) if self.is_copy(rest.ty) => self.access(PlaceAccess::Read, place, rest.span),
            Some(_) => {}
            None => drop(self.operand(rest)),
        }
    }
}
