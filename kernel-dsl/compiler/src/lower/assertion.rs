//! Assertions: a branch whose failing arm ends the thread.

use super::double_word::{shown_words, with_words};
use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::Val;
use crate::assertion::Assertion;
use crate::hir::{Expr, ExprKind, Type};
use crate::ir::{Op, Values};
use crate::source::Span;

impl<'h> Lowerer<'h> {
    /// Lowers an assertion, or without a condition a panic. The message shows the values, and the
    /// sides of a comparison.
    pub(super) fn assertion(
        &mut self,
        span: Span,
        assertion: Assertion,
        condition: Option<&'h Expr>,
        message: &str,
        values: &'h [Expr],
    ) -> Val {
        let outcome = assertion.outcome(self.program.launch.assertions);
        let mut sides = Vec::new();
        let holds = condition.map(|e| self.tested(e, &mut sides));
        if holds.is_some_and(|holds| holds.bits == Some(1)) {
            return Val::Unit;
        }
        let fail = |l: &mut Self| {
            let mut shown: Vec<_> = values.iter().map(|v| l.scalar(v)).collect();
            shown.extend(sides);
            l.at(span);
            let doubles: Vec<_> = shown.iter().map(|k| k.high.is_some()).collect();
            let message = with_words(message, &doubles).into();
            let values = shown.into_iter().flat_map(shown_words).collect();
            l.builder.effect(Op::Panic { outcome, message, values });
            l.builder.effect(Op::Return);
        };
        let Some(holds) = holds else {
            fail(self);
            return Val::Unit;
        };
        self.at(span);
        self.builder.enter([]);
        self.builder.effect(Op::Yield(Values::new()));
        let then = self.builder.leave();
        self.builder.enter([]);
        fail(self);
        let otherwise = self.builder.leave();
        self.at(span);
        self.builder.effect(Op::If { condition: holds.value, then, otherwise });
        Val::Unit
    }

    /// Lowers a condition. If the condition is a comparison of scalars, appends both operands to
    /// `sides`.
    fn tested(&mut self, e: &'h Expr, sides: &mut Vec<MaybeConst>) -> MaybeConst {
        let ExprKind::Compare(comparison, a, b) = &e.kind else { return self.scalar(e) };
        let Type::Scalar(ty) = *self.ty(a.ty) else { return self.scalar(e) };
        let (a, b) = (self.scalar(a), self.scalar(b));
        sides.extend([a, b]);
        self.at(e.span);
        self.compare(*comparison, ty, a, b)
    }
}
