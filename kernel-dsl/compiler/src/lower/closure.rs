//! Closures. A closure is inlined where it is called, and accesses the variables of the call in
//! which it was created.

use super::lowerer::Lowerer;
use super::lowerer::frame::Callable;
use super::lowerer::value::Val;
use crate::hir::{self, Expr, FunctionId, Pattern};
use crate::source::Span;

impl<'h> Lowerer<'h> {
    pub(super) fn function_value(&mut self, id: FunctionId) -> Val {
        self.callable(Callable::Function(id))
    }

    pub(super) fn closure(&mut self, e: &Expr, parameters: &'h [Pattern], body: &'h Expr) -> Val {
        let hir::Type::Function { parameters: types, returns, .. } = self.ty(e.ty) else { return Val::Unit };
        let frame = self.frame().id;
        self.callable(Callable::Closure { frame, parameters, types, returns: *returns, body })
    }

    fn callable(&mut self, callable: Callable<'h>) -> Val {
        Val::Callable(self.inliner.add_callable(callable))
    }

    pub(super) fn call_value(&mut self, span: Span, callee: &'h Expr, arguments: &'h [Expr]) -> Val {
        let callee = self.expr(callee);
        let arguments: Vec<_> = arguments.iter().map(|a| self.expr(a)).collect();
        self.call_with(span, &callee, arguments)
    }

    pub(super) fn call_with(&mut self, span: Span, callee: &Val, arguments: Vec<Val>) -> Val {
        match callee {
            Val::Callable(callee) => self.call_callable(span, *callee, arguments),
            _ => Val::Unit,
        }
    }

    /// Lowers a call of the closure or function with this index.
    pub(super) fn call_callable(&mut self, span: Span, callee: u32, arguments: Vec<Val>) -> Val {
        match self.inliner.callable(callee) {
            Callable::Function(id) => self.inline(span, id, arguments),
            Callable::Closure { frame, parameters, types, returns, body } => {
                if !self.check_call_depth(span) {
                    return Val::Unit;
                }
                self.at(span);
                let Some(raised) = self.inliner.raise(frame, self.builder.location) else {
                    self.error(span, "this closure was created in a call that has already returned");
                    return Val::Unit;
                };
                for ((pattern, ty), value) in parameters.iter().zip(types).zip(arguments) {
                    self.bind(pattern, *ty, value);
                }
                let value = self.lower_with_returns(returns, body.span, |l| l.expr(body));
                self.inliner.restore(raised);
                self.at(span);
                value
            }
        }
    }
}
