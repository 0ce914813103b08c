//! Which device functions a body names: in calls, and as arguments where a closure fits.

use super::{Assignee, Block, Expr, ExprKind, Function, Path, Pattern, Statement};
use crate::check::prelude;

impl Function {
    /// The paths of functions in the body that the language itself does not own, each once, without generic arguments, in
    /// the order in which they are first named. A name that a variable has is not one of them.
    pub fn callees(&self) -> Vec<syn::Path> {
        let mut callees = Callees { found: Vec::new(), scope: Vec::new() };
        callees.scope.extend(self.generics.iter().map(|g| g.name.to_string()));
        callees.scope.extend(self.parameters.iter().map(|p| p.name.to_string()));
        callees.block(&self.body);
        callees.found.into_iter().map(Path::to_syn).collect()
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

struct Callees<'a> {
    found: Vec<&'a Path>,
    /// Names of variables, innermost last.
    scope: Vec<String>,
}

impl<'a> Callees<'a> {
    fn named(&mut self, path: &'a Path) {
        let variable = path.single().is_some_and(|name| self.scope.iter().any(|n| name == n));
        if !variable && !prelude::owns(path) && self.found.iter().all(|p| p.written() != path.written()) {
            self.found.push(path);
        }
    }

    fn bind(&mut self, pattern: &Pattern) {
        pattern.names(&mut |name| self.scope.push(name.to_string()));
    }

    /// What is named inside goes out of scope.
    fn inside(&mut self, f: impl FnOnce(&mut Self)) {
        let depth = self.scope.len();
        f(self);
        self.scope.truncate(depth);
    }

    fn block(&mut self, b: &'a Block) {
        self.inside(|c| {
            for statement in &b.statements {
                match statement {
                    Statement::Let { pattern, value, otherwise, .. } => {
                        value.iter().for_each(|e| c.expr(e));
                        otherwise.iter().for_each(|b| c.block(b));
                        c.bind(pattern);
                    }
                    Statement::Expr(e) | Statement::Assert { condition: e, .. } => c.expr(e),
                }
            }
            b.value.iter().for_each(|e| c.expr(e));
        });
    }

    fn assignee(&mut self, into: &'a Assignee) {
        match into {
            Assignee::Ignore | Assignee::Rest(_) => {}
            Assignee::Place(e) => self.expr(e),
            Assignee::Tuple(parts, _) | Assignee::Array(parts, _) => parts.iter().for_each(|p| self.assignee(p)),
        }
    }

    /// Arguments where a function's path may stand for a closure.
    fn values(&mut self, arguments: &'a [Expr]) {
        for e in arguments {
            match &e.kind {
                ExprKind::Path(path) if path.may_be_function() => self.named(path),
                _ => self.expr(e),
            }
        }
    }

    fn expr(&mut self, e: &'a Expr) {
        match &e.kind {
            ExprKind::Integer(..) | ExprKind::Float(..) | ExprKind::Bool(_) | ExprKind::Path(_) => {}
            ExprKind::Continue { .. } | ExprKind::Refused => {}
            ExprKind::Unary(_, a) | ExprKind::Cast(a, _) | ExprKind::Field(a, _) | ExprKind::Repeat(a, _) => {
                self.expr(a)
            }
            ExprKind::Reference { place: a, .. } => self.expr(a),
            ExprKind::Binary(_, a, b)
            | ExprKind::Index(a, b)
            | ExprKind::Range(a, b)
            | ExprKind::Assign { place: a, value: b, .. } => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Destructure { into, value } => {
                self.expr(value);
                self.assignee(into);
            }
            ExprKind::Call(path, list) => {
                self.named(path);
                match prelude::owns(path) && !prelude::combines(path) {
                    true => list.iter().for_each(|e| self.expr(e)),
                    false => self.values(list),
                }
            }
            ExprKind::Tuple(list) | ExprKind::Array(list) => list.iter().for_each(|e| self.expr(e)),
            ExprKind::Method { receiver, name, arguments, .. } => {
                self.expr(receiver);
                match prelude::takes_function(&name.to_string()) {
                    true => self.values(arguments),
                    false => arguments.iter().for_each(|e| self.expr(e)),
                }
            }
            ExprKind::If { condition, then, otherwise } => {
                self.expr(condition);
                self.block(then);
                otherwise.iter().for_each(|e| self.expr(e));
            }
            ExprKind::Match { value, arms } => {
                self.expr(value);
                for arm in arms {
                    self.inside(|c| {
                        c.bind(&arm.pattern);
                        arm.guard.iter().for_each(|e| c.expr(e));
                        c.expr(&arm.body);
                    });
                }
            }
            ExprKind::Closure { parameters, body, .. } => self.inside(|c| {
                parameters.iter().for_each(|p| c.bind(&p.pattern));
                c.expr(body);
            }),
            ExprKind::Block(b) | ExprKind::Labelled { body: b, .. } | ExprKind::Loop { body: b, .. } => self.block(b),
            ExprKind::While { condition: e, body, .. } => {
                self.expr(e);
                self.block(body);
            }
            ExprKind::For { pattern, iterator: e, body, .. } => {
                self.expr(e);
                self.inside(|c| {
                    c.bind(pattern);
                    c.block(body);
                });
            }
            ExprKind::Break { value, .. } | ExprKind::Return(value) => value.iter().for_each(|e| self.expr(e)),
        }
    }
}

impl Path {
    /// Whether the path is written as a function's is: in small letters, and no constant of the language.
    fn may_be_function(&self) -> bool {
        let last = self.segments.last().map(|s| s.name.to_string()).unwrap_or_default();
        !last.starts_with(char::is_uppercase) && prelude::constant(&self.name()).is_none()
    }
}
