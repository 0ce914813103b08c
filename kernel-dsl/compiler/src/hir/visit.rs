//! Traversal of the expressions of a function.

use super::{Block, Expr, ExprKind, Pattern, Statement};

/// Calls `f` for each expression of `b`, inner expressions first.
pub fn block(b: &mut Block, f: &mut dyn FnMut(&mut Expr)) {
    for statement in &mut b.statements {
        match statement {
            Statement::Let { pattern: p, value, .. } => {
                if let Some(value) = value {
                    expr(value, f);
                }
                pattern(p, f);
            }
            Statement::LetElse { pattern: p, value, otherwise, .. } => {
                expr(value, f);
                pattern(p, f);
                block(otherwise, f);
            }
            Statement::Expr(e) | Statement::Assert { condition: e, .. } => expr(e, f),
        }
    }
    if let Some(value) = &mut b.value {
        expr(value, f);
    }
}

/// Calls `f` for each expression in `e`, then for `e`.
pub fn expr(e: &mut Expr, f: &mut dyn FnMut(&mut Expr)) {
    match &mut e.kind {
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
        | ExprKind::Dereference(a) => expr(a, f),
        ExprKind::Binary(_, a, b)
        | ExprKind::Compare(_, a, b)
        | ExprKind::AndAlso(a, b)
        | ExprKind::OrElse(a, b)
        | ExprKind::Index { base: a, index: b }
        | ExprKind::Assign { place: a, value: b, .. } => {
            expr(a, f);
            expr(b, f);
        }
        ExprKind::Intrinsic { arguments, .. }
        | ExprKind::Inline { arguments, .. }
        | ExprKind::Log { values: arguments, .. }
        | ExprKind::Call { arguments, .. }
        | ExprKind::CallMethod { arguments, .. }
        | ExprKind::CallItem { arguments, .. } => {
            arguments.iter_mut().for_each(|e| expr(e, f));
        }
        ExprKind::Assertion { condition, values, .. } => {
            condition.iter_mut().for_each(|e| expr(e, f));
            values.iter_mut().for_each(|e| expr(e, f));
        }
        ExprKind::Struct { fields, rest } => {
            fields.iter_mut().for_each(|(_, e)| expr(e, f));
            if let Some(e) = rest {
                expr(e, f);
            }
        }
        ExprKind::Tuple(all) | ExprKind::Array(all) => all.iter_mut().for_each(|e| expr(e, f)),
        ExprKind::If { condition, then, otherwise } => {
            expr(condition, f);
            block(then, f);
            if let Some(e) = otherwise {
                expr(e, f);
            }
        }
        ExprKind::Match { value, arms } => {
            expr(value, f);
            for arm in arms {
                pattern(&mut arm.pattern, f);
                if let Some(guard) = &mut arm.guard {
                    expr(guard, f);
                }
                expr(&mut arm.body, f);
            }
        }
        ExprKind::Closure { parameters, body } => {
            parameters.iter_mut().for_each(|p| pattern(p, f));
            expr(body, f);
        }
        ExprKind::CallValue { callee, arguments } => {
            expr(callee, f);
            arguments.iter_mut().for_each(|e| expr(e, f));
        }
        ExprKind::Block(b) | ExprKind::Labeled { body: b, .. } | ExprKind::Loop { body: b, .. } => block(b, f),
        ExprKind::While { condition, body, .. } => {
            expr(condition, f);
            block(body, f);
        }
        ExprKind::For { pattern: p, range, body, .. } => {
            pattern(p, f);
            expr(&mut range.start, f);
            expr(&mut range.end, f);
            if let Some(step) = &mut range.step {
                expr(step, f);
            }
            block(body, f);
        }
        ExprKind::Break { value, .. } | ExprKind::Return(value) => {
            if let Some(e) = value {
                expr(e, f);
            }
        }
    }
    f(e);
}

/// Calls `f` for each expression of `p`.
fn pattern(p: &mut Pattern, f: &mut dyn FnMut(&mut Expr)) {
    match p {
        Pattern::Ignore | Pattern::Local(_) | Pattern::None => {}
        Pattern::Parts(parts) | Pattern::Any(parts) => parts.iter_mut().for_each(|p| pattern(p, f)),
        Pattern::Value(e) => expr(e, f),
        Pattern::Range { low, high, .. } => low.iter_mut().chain(high).for_each(|e| expr(e, f)),
        Pattern::Named(_, p) | Pattern::Borrowed(_, p) | Pattern::Some(p) | Pattern::Dereference(p) => pattern(p, f),
    }
}
