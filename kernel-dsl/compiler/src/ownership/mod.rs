//! The checks that rustc makes after types: exhaustive patterns, initialization, moves, borrows,
//! and the lints that rustc denies.
//!
//! A macro leaves these checks to rustc, which sees the same body. A kernel from a string has no
//! rustc, so [`source_file::standalone`](crate::source_file::standalone) runs them on the HIR.
//!
//! ```text
//! HIR ─┬─▶ exhaustive: the patterns of `match`, `let` and `for`
//!      ├─▶ lints: arithmetic that certainly fails, which rustc denies
//!      └─▶ graph ─▶ analysis: values that are missing, loans that are in use
//! ```
//!
//! [`graph`] lists the accesses to variables in the order of evaluation. The analysis of loans is
//! that of rustc (RFC 2094, non-lexical lifetimes): a loan lasts while a variable that may hold the
//! reference is used later.

mod analysis;
mod exhaustive;
mod graph;
mod lints;
mod types;

use crate::error::Error;
use crate::hir::{Block, Expr, ExprKind, Function, Items};

/// Returns the mistakes of a function that rustc would find after the check of its types.
pub fn check(function: &Function, items: &Items) -> Vec<Error> {
    let mut found = exhaustive::uncovered(function, items);
    found.extend(analysis::mistakes(graph::GraphBuilder::graph(function, items)));
    found.extend(lints::denied(function));
    found.into_iter().map(|(span, message)| Error::at(&function.source, span, message)).collect()
}

/// A part of an expression.
enum ExprPart<'e> {
    Expr(&'e Expr),
    Block(&'e Block),
}

/// Calls `f` for each part of an expression, in the order of evaluation.
fn each_part<'e>(e: &'e Expr, f: &mut dyn FnMut(ExprPart<'e>)) {
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
