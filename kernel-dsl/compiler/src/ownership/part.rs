//! The parts of an expression.

use crate::hir::{Block, Expr, ExprKind};

/// A part of an expression.
pub(super) enum ExprPart<'e> {
    Expr(&'e Expr),
    Block(&'e Block),
}

/// Calls `f` for each part of an expression, in the order of evaluation.
pub(super) fn each_part<'e>(e: &'e Expr, f: &mut dyn FnMut(ExprPart<'e>)) {
    let mut expr = |e: &'e Expr| f(ExprPart::Expr(e));
    match &e.kind {
        ExprKind::Literal(_)
        | ExprKind::LongLiteral(_)
        | ExprKind::Local(_)
        | ExprKind::Generic(_)
        | ExprKind::Function { .. }
        | ExprKind::MethodValue { .. }
        | ExprKind::SizeOf(_)
        | ExprKind::Continue { .. } => {}
        ExprKind::Unary(_, a)
        | ExprKind::Cast(a)
        | ExprKind::Field { base: a, .. }
        | ExprKind::Repeat(a)
        | ExprKind::Reference(a)
        | ExprKind::Closure { body: a, .. }
        | ExprKind::Dereference(a) => expr(a),
        ExprKind::Binary(_, a, b)
        | ExprKind::Compare(_, a, b)
        | ExprKind::AndAlso(a, b)
        | ExprKind::OrElse(a, b)
        | ExprKind::Index { base: a, index: b }
        | ExprKind::Assign { place: a, value: b, .. } => {
            expr(a);
            expr(b);
        }
        ExprKind::Intrinsic { arguments, .. }
        | ExprKind::Inline { arguments, .. }
        | ExprKind::Log { values: arguments, .. }
        | ExprKind::Call { arguments, .. }
        | ExprKind::CallMethod { arguments, .. }
        | ExprKind::Tuple(arguments)
        | ExprKind::Array(arguments)
        | ExprKind::CallItem { arguments, .. } => arguments.iter().for_each(expr),
        ExprKind::Assertion { condition, values, .. } => {
            condition.iter().for_each(|e| expr(e));
            values.iter().for_each(expr);
        }
        ExprKind::Struct { fields, rest } => {
            fields.iter().for_each(|(_, e)| expr(e));
            rest.iter().for_each(|e| expr(e));
        }
        ExprKind::CallValue { callee, arguments } => {
            expr(callee);
            arguments.iter().for_each(expr);
        }
        ExprKind::Break { value, .. } | ExprKind::Return(value) => value.iter().for_each(|e| expr(e)),
        ExprKind::If { condition, then, otherwise } => {
            expr(condition);
            f(ExprPart::Block(then));
            otherwise.iter().for_each(|e| f(ExprPart::Expr(e)));
        }
        ExprKind::Match { value, arms } => {
            expr(value);
            for arm in arms {
                arm.guard.iter().for_each(&mut expr);
                expr(&arm.body);
            }
        }
        ExprKind::Block(b) | ExprKind::Labeled { body: b, .. } | ExprKind::Loop { body: b, .. } => {
            f(ExprPart::Block(b));
        }
        ExprKind::While { condition, body, .. } => {
            expr(condition);
            f(ExprPart::Block(body));
        }
        ExprKind::For { range, body, .. } => {
            expr(&range.start);
            expr(&range.end);
            range.step.iter().for_each(&mut expr);
            f(ExprPart::Block(body));
        }
    }
}
