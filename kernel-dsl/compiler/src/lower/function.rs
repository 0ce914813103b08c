//! Inlining: each call has a frame.

use super::lowerer::Lowerer;
use super::lowerer::frame::{Exit, FunctionFrame, LocalBinding};
use super::lowerer::value::Val;
use crate::hir::{self, Expr, FunctionId, TypeId};
use crate::ir::{Location, Op, Values};
use crate::source::Span;
use std::collections::HashMap;

/// The largest depth of nested calls. Only a program that `check` did not make has more.
const MAX_CALL_DEPTH: usize = 128;

impl<'h> Lowerer<'h> {
    pub(super) fn enter_function(
        &mut self,
        function: &'h hir::Function,
        caller: Option<Location>,
    ) -> FunctionFrame<'h> {
        let source = self.sources.source(&mut self.builder.kernel, function);
        let bindings = vec![LocalBinding::Unset; function.locals.len()];
        FunctionFrame {
            id: self.inliner.next_call(),
            function,
            bindings,
            constants: HashMap::new(),
            source,
            caller,
            loops: Vec::new(),
            exit: None,
        }
    }

    pub(super) fn call(&mut self, span: Span, id: FunctionId, arguments: &'h [Expr]) -> Val {
        if !self.check_call_depth(span) {
            return Val::Unit;
        }
        let arguments: Vec<_> = arguments.iter().map(|a| self.expr(a)).collect();
        self.inline(span, id, arguments)
    }

    /// Returns whether there is room for one more call; reports an error if not.
    pub(super) fn check_call_depth(&mut self, span: Span) -> bool {
        let room = self.inliner.has_room(self.builder.kernel.values.len());
        if !room && self.inliner.report_too_large() {
            self.error(span, "the kernel is too large: all calls are inlined, and there are too many");
        }
        room
    }

    /// Lowers a call of a device function.
    pub(super) fn inline(&mut self, span: Span, id: FunctionId, arguments: Vec<Val>) -> Val {
        let Some(function) = self.program.functions.get(id.0 as usize) else {
            self.error(span, "call of a missing function");
            return Val::Unit;
        };
        if self.inliner.depth() >= MAX_CALL_DEPTH {
            self.error(span, format!("`{}` calls itself, or the calls are nested too deeply to inline", function.name));
            return Val::Unit;
        }
        if !self.check_call_depth(span) {
            return Val::Unit;
        }
        self.at(span);
        let frame = self.enter_function(function, Some(self.builder.location));
        self.inliner.push(frame);
        for (i, value) in arguments.into_iter().enumerate() {
            self.bind_local(hir::LocalId(i as u32), value);
        }
        let end = function.body.value.as_ref().map_or(Span::default(), |v| v.span);
        let value = self.lower_with_returns(function.returns, end, |l| l.block(&function.body));
        self.inliner.pop();
        self.at(span);
        value
    }

    /// Lowers a body that `return` can leave. Returns its value.
    pub(super) fn lower_with_returns(
        &mut self,
        returns: TypeId,
        end: Span,
        body: impl FnOnce(&mut Self) -> Val,
    ) -> Val {
        let label = self.label();
        let result = self.storage(returns, "result");
        let outer = self.frame_mut().exit.replace(Exit { label, result: result.clone(), returns, used: false });

        self.builder.enter([]);
        let mut value = body(self);
        let used = self.frame().exit.as_ref().is_some_and(|e| e.used);
        if used {
            self.at(end);
            self.write_storage(&result, value);
            value = Val::Unit;
        }
        let region = self.builder.leave();
        if used {
            self.builder.effect(Op::Block { label, body: region });
            value = self.read_storage(&result, returns);
        } else {
            // Without `return` the values of the body are visible here.
            self.builder.splice(region);
        }
        self.frame_mut().exit = outer;
        value
    }

    pub(super) fn return_from(&mut self, span: Span, value: Val) {
        match self.frame_mut().exit.as_mut() {
            None => self.builder.effect(Op::Return),
            Some(exit) => {
                exit.used = true;
                let (label, result, returns) = (exit.label, exit.result.clone(), exit.returns);
                if !self.storable(returns) {
                    self.error_with_help(
                        span,
                        "an early `return` cannot return a shared array, a reference or a closure",
                        "make the function's last expression `if … { a } else { b }`",
                    );
                }
                self.write_storage(&result, value);
                self.builder.effect(Op::Break(label, Values::new()));
            }
        }
    }
}
