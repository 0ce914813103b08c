//! The variables that a closure captures.

use crate::hir::{self, Expr, ExprKind, LocalId, Pattern, Statement};
use std::collections::HashSet;

/// Returns whether a closure captures a variable.
pub(super) fn captures(parameters: &[Pattern], body: &Expr) -> bool {
    let (mut own, mut used) = (HashSet::new(), HashSet::new());
    parameters.iter().for_each(|p| bound(p, &mut own));
    let mut body = body.clone();
    hir::visit::expr(&mut body, &mut |e| match &e.kind {
        ExprKind::Local(id) => _ = used.insert(*id),
        ExprKind::Closure { parameters, .. } => parameters.iter().for_each(|p| bound(p, &mut own)),
        ExprKind::For { pattern, .. } => bound(pattern, &mut own),
        ExprKind::Match { arms, .. } => arms.iter().for_each(|arm| bound(&arm.pattern, &mut own)),
        ExprKind::Block(b) | ExprKind::Loop { body: b, .. } | ExprKind::While { body: b, .. } => {
            lets(b, &mut own);
        }
        ExprKind::If { then, .. } => lets(then, &mut own),
        _ => {}
    });
    !used.is_subset(&own)
}

fn lets(block: &hir::Block, own: &mut HashSet<LocalId>) {
    for statement in &block.statements {
        if let Statement::Let { pattern, .. } | Statement::LetElse { pattern, .. } = statement {
            bound(pattern, own);
        }
    }
}

fn bound(pattern: &Pattern, own: &mut HashSet<LocalId>) {
    match pattern {
        Pattern::Local(id) => _ = own.insert(*id),
        Pattern::Named(id, p) | Pattern::Borrowed(id, p) => {
            own.insert(*id);
            bound(p, own);
        }
        Pattern::Parts(parts) | Pattern::Any(parts) => parts.iter().for_each(|p| bound(p, own)),
        Pattern::Some(p) | Pattern::Dereference(p) => bound(p, own),
        Pattern::Ignore | Pattern::None | Pattern::Value(_) | Pattern::Range { .. } => {}
    }
}
