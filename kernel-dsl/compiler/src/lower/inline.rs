//! `ptx!(…)`: checked again, now that the target is known.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::Val;
use crate::hir::Expr;
use crate::ir::{Op, Type, Values};
use crate::ptx::inline::InlineSource;
use crate::source::Span;
use std::sync::Arc;

impl<'h> Lowerer<'h> {
    pub(super) fn inline_ptx(&mut self, span: Span, source: &InlineSource, arguments: &'h [Expr]) -> Val {
        let inputs: Values = arguments.iter().map(|a| self.scalar(a).value).collect();
        self.at(span);
        let target = self.builder.kernel.target;
        let code = match source.check(Some(target)) {
            Ok(code) => code,
            Err(errors) => {
                // The front end has checked everything else.
                for error in errors {
                    self.error_with_help(
                        span,
                        error.message,
                        "compile the kernel for such a target, `#[kernel(target = …)]`, or provide code for older ones: `if target::SM >= … { … } else { … }`",
                    );
                }
                return Val::Unit;
            }
        };
        let results = source.outputs().map(|o| Type::Scalar(o.ty));
        let results = self.builder.emit(Op::Inline { code: Arc::new(code), inputs }, results);
        let mut values = results.iter().map(|value| Val::Scalar(MaybeConst::unknown(*value)));
        match results.len() {
            0 => Val::Unit,
            1 => values.next().unwrap_or(Val::Unit),
            _ => Val::Tuple(values.collect()),
        }
    }
}
