//! Assertions: a branch whose failing arm ends the thread.

use super::Lowerer;
use super::value::{MaybeConst, Val};
use crate::assertion::Assertion;
use crate::hir::{Expr, ExprKind};
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
        let mut sides = Values::new();
        let holds = condition.map(|e| self.tested(e, &mut sides));
        if holds.is_some_and(|holds| holds.bits == Some(1)) {
            return Val::Unit;
        }
        let fail = |l: &mut Self| {
            let mut shown: Values = values.iter().map(|v| l.scalar(v).value).collect();
            shown.extend(sides);
            l.at(span);
            l.builder.effect(Op::Panic { outcome, message: message.into(), values: shown });
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

    /// Lowers a condition, and adds the sides of a comparison.
    fn tested(&mut self, e: &'h Expr, sides: &mut Values) -> MaybeConst {
        let ExprKind::Compare(comparison, a, b) = &e.kind else { return self.scalar(e) };
        let ty = self.scalar_type(a.ty);
        let (a, b) = (self.scalar(a), self.scalar(b));
        sides.extend([a.value, b.value]);
        self.at(e.span);
        self.compare(*comparison, ty, a, b)
    }
}
