//! Walks over the expressions of a function.

use super::{Block, Expr, ExprKind, Statement};

/// Calls `f` on each expression of `block`, inner ones first.
pub fn block(block: &mut Block, f: &mut dyn FnMut(&mut Expr)) {
    for statement in &mut block.statements {
        match statement {
            Statement::Let { value: Some(value), .. } => expr(value, f),
            Statement::Let { value: None, .. } => {}
            Statement::Expr(e) | Statement::Assert { condition: e, .. } => expr(e, f),
        }
    }
    if let Some(value) = &mut block.value {
        expr(value, f);
    }
}

/// Calls `f` on each expression in `e` and then on `e`.
pub fn expr(e: &mut Expr, f: &mut dyn FnMut(&mut Expr)) {
    match &mut e.kind {
        ExprKind::Literal(_) | ExprKind::Local(_) | ExprKind::Generic(_) | ExprKind::Continue { .. } => {}
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
        ExprKind::AssignParts { places, value } => {
            places.iter_mut().for_each(|e| expr(e, f));
            expr(value, f);
        }
        ExprKind::Intrinsic { arguments, .. } | ExprKind::Call { arguments, .. } => {
            arguments.iter_mut().for_each(|e| expr(e, f));
        }
        ExprKind::Tuple(all) | ExprKind::Array(all) => all.iter_mut().for_each(|e| expr(e, f)),
        ExprKind::If { condition, then, otherwise } => {
            expr(condition, f);
            block(then, f);
            if let Some(e) = otherwise {
                expr(e, f);
            }
        }
        ExprKind::Block(b) | ExprKind::Loop { body: b, .. } => block(b, f),
        ExprKind::While { condition, body, .. } => {
            expr(condition, f);
            block(body, f);
        }
        ExprKind::For { range, body, .. } => {
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
