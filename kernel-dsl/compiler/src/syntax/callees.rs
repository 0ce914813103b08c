//! Which device functions a body calls.

use super::{Block, Expr, ExprKind, Function, Path, Statement};
use crate::check::prelude;

impl Function {
    /// The paths called in the body that the language itself does not own, each once, without generic arguments, in
    /// the order of their first call.
    pub fn callees(&self) -> Vec<syn::Path> {
        let mut found: Vec<&Path> = Vec::new();
        block(&self.body, &mut |e| {
            if let ExprKind::Call(path, _) = &e.kind
                && !prelude::owns(path)
                && found.iter().all(|p| p.written() != path.written())
            {
                found.push(path);
            }
        });
        found.into_iter().map(Path::to_syn).collect()
    }
}

impl Path {
    /// The path as written, without generic arguments.
    pub fn written(&self) -> String {
        format!("{}{}", if self.global { "::" } else { "" }, self.name())
    }

    fn to_syn(&self) -> syn::Path {
        syn::Path {
            leading_colon: self.global.then(|| syn::Token![::](self.mark.first)),
            segments: self.segments.iter().map(|s| syn::PathSegment::from(s.name.clone())).collect(),
        }
    }
}

fn block<'a>(b: &'a Block, f: &mut dyn FnMut(&'a Expr)) {
    for statement in &b.statements {
        match statement {
            Statement::Let { value: Some(e), .. } | Statement::Expr(e) | Statement::Assert { condition: e, .. } => {
                expr(e, f)
            }
            Statement::Let { value: None, .. } => {}
        }
    }
    if let Some(e) = &b.value {
        expr(e, f);
    }
}

fn expr<'a>(e: &'a Expr, f: &mut dyn FnMut(&'a Expr)) {
    f(e);
    let mut all = |list: &'a [Expr]| list.iter().for_each(|e| expr(e, f));
    match &e.kind {
        ExprKind::Integer(..) | ExprKind::Float(..) | ExprKind::Bool(_) | ExprKind::Path(_) | ExprKind::Refused => {}
        ExprKind::Continue { .. } => {}
        ExprKind::Unary(_, a) | ExprKind::Cast(a, _) | ExprKind::Field(a, _) | ExprKind::Repeat(a, _) => expr(a, f),
        ExprKind::Reference { place: a, .. } => expr(a, f),
        ExprKind::Binary(_, a, b)
        | ExprKind::Index(a, b)
        | ExprKind::Range(a, b)
        | ExprKind::Assign { place: a, value: b, .. } => {
            expr(a, f);
            expr(b, f);
        }
        ExprKind::Call(_, list) | ExprKind::Tuple(list) | ExprKind::Array(list) => all(list),
        ExprKind::Method { receiver, arguments, .. } => {
            expr(receiver, f);
            arguments.iter().for_each(|e| expr(e, f));
        }
        ExprKind::If { condition, then, otherwise } => {
            expr(condition, f);
            block(then, f);
            if let Some(e) = otherwise {
                expr(e, f);
            }
        }
        ExprKind::Block(b) | ExprKind::Loop { body: b, .. } => block(b, f),
        ExprKind::While { condition: e, body, .. } | ExprKind::For { iterator: e, body, .. } => {
            expr(e, f);
            block(body, f);
        }
        ExprKind::Break { value, .. } | ExprKind::Return(value) => {
            if let Some(e) = value {
                expr(e, f);
            }
        }
    }
}
