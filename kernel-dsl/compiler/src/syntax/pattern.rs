//! Patterns, and the constructs that match them: `match`, `if let`, `while let`.

use super::expression::member;
use super::{Arm, Block, Expr, ExprKind, Member, Pattern, Reader, SpanPair, Statement, Unary};
use proc_macro2::Ident;
use syn::visit_mut::{self, VisitMut};
use syn::{Lit, Pat, RangeLimits};

impl Reader {
    pub(super) fn pattern(&mut self, pattern: &Pat) -> Pattern {
        match pattern {
            Pat::Wild(_) => Pattern::Ignore,
            Pat::Rest(p) => Pattern::Rest(self.mark(p)),
            Pat::Paren(p) => self.pattern(&p.pat),
            Pat::Ident(p) if p.ident == "None" && p.by_ref.is_none() && p.subpat.is_none() => {
                Pattern::None(self.mark(p))
            }
            Pat::Ident(p) if p.by_ref.is_none() => {
                let (name, mutable) = (p.ident.clone(), p.mutability.is_some());
                match &p.subpat {
                    None => Pattern::Name { name, mutable },
                    Some((_, inner)) => Pattern::Named { name, mutable, pattern: Box::new(self.pattern(inner)) },
                }
            }
            Pat::Tuple(p) => Pattern::Tuple(p.elems.iter().map(|p| self.pattern(p)).collect(), self.mark(p)),
            Pat::Slice(p) => Pattern::Array(p.elems.iter().map(|p| self.pattern(p)).collect(), self.mark(p)),
            Pat::Lit(l) => {
                let mark = self.mark(l);
                Pattern::Value(Box::new(self.number(&l.lit, mark)))
            }
            Pat::Path(p) if p.qself.is_none() && is_variant(&p.path, "None") => Pattern::None(self.mark(p)),
            Pat::Path(p) if p.qself.is_none() => {
                let (path, mark) = (self.path(&p.path), self.mark(p));
                Pattern::Value(Box::new(Expr { kind: ExprKind::Path(path), mark }))
            }
            Pat::Range(r) => Pattern::Range {
                low: r.start.as_ref().map(|e| self.bound(e)),
                high: r.end.as_ref().map(|e| self.bound(e)),
                closed: matches!(r.limits, RangeLimits::Closed(_)),
            },
            Pat::Or(o) => Pattern::Any(o.cases.iter().map(|p| self.pattern(p)).collect(), self.mark(o)),
            Pat::Reference(r) if r.mutability.is_none() => {
                Pattern::Reference(Box::new(self.pattern(&r.pat)), self.mark(r))
            }
            Pat::TupleStruct(t) if t.qself.is_none() && t.elems.len() == 1 && is_variant(&t.path, "Some") => {
                Pattern::Some(Box::new(self.pattern(&t.elems[0])), self.mark(t))
            }
            Pat::Struct(s) if s.qself.is_none() => Pattern::Struct {
                path: self.path(&s.path),
                fields: s.fields.iter().map(|f| (member(&f.member), self.pattern(&f.pat))).collect(),
                rest: s.rest.is_some(),
                mark: self.mark(s),
            },
            Pat::TupleStruct(t) if t.qself.is_none() => Pattern::Struct {
                path: self.path(&t.path).with_result(),
                fields: t.elems.iter().enumerate().map(|(i, p)| (Member::Index(i as u32), self.pattern(p))).collect(),
                rest: false,
                mark: self.mark(t),
            },
            other => {
                self.refuse(syn::Error::new_spanned(
                    other,
                    "this pattern is not supported in kernels; supported are names, `_`, numbers, ranges, tuples, arrays, structs, `Some(…)`, `None`, `&…`, and alternatives with `|`",
                ));
                Pattern::Ignore
            }
        }
    }

    /// Reads a refutable pattern. A name with a capital names a constant or a variant, as every
    /// such name does in Rust that follows its conventions.
    pub(super) fn refutable_pattern(&mut self, pattern: &Pat) -> Pattern {
        let mut pattern = pattern.clone();
        let mut names = ConstantNames { variants: Vec::new() };
        names.visit_pat_mut(&mut pattern);
        for name in names.variants {
            let message = format!(
                "`{name}` in a pattern would be a variant that `use` imports: write the variant with its enum, `Enum::{name}`, or a name of a variable in lower case"
            );
            self.refuse(syn::Error::new(name.span(), message));
        }
        self.pattern(&pattern)
    }

    /// Reads a literal in a pattern, including its minus sign.
    fn number(&mut self, lit: &Lit, mark: SpanPair) -> Expr {
        let positive = match lit {
            Lit::Int(n) => n.to_string().strip_prefix('-').map(|n| Lit::Int(syn::LitInt::new(n, lit.span()))),
            Lit::Float(x) => x.to_string().strip_prefix('-').map(|x| Lit::Float(syn::LitFloat::new(x, lit.span()))),
            _ => None,
        };
        match positive {
            None => Expr { kind: self.literal(lit), mark },
            Some(positive) => {
                let operand = Box::new(Expr { kind: self.literal(&positive), mark });
                Expr { kind: ExprKind::Unary(Unary::Neg, operand), mark }
            }
        }
    }

    fn bound(&mut self, e: &syn::Expr) -> Box<Expr> {
        let mark = self.mark(e);
        Box::new(match e {
            syn::Expr::Lit(l) => self.number(&l.lit, mark),
            other => self.expression(other),
        })
    }

    pub(super) fn cases(&mut self, m: &syn::ExprMatch) -> ExprKind {
        let value = Box::new(self.expression(&m.expr));
        let arms = m.arms.iter().map(|arm| {
            let (pattern, guard) = match &arm.pat {
                Pat::Guard(g) => (&*g.pat, Some(self.expression(&g.guard))),
                pattern => (pattern, None),
            };
            Arm {
                pattern: self.refutable_pattern(pattern),
                guard,
                body: self.expression(&arm.body),
                mark: self.mark(pattern),
            }
        });
        let arms = arms.collect();
        ExprKind::Match { value, arms }
    }

    /// Reads `matches!(value, pattern if guard)`
    pub(super) fn test_of_pattern(&mut self, call: &syn::Macro) -> ExprKind {
        let parts = |input: syn::parse::ParseStream| {
            let value: syn::Expr = input.parse()?;
            input.parse::<syn::Token![,]>()?;
            let pattern = Pat::parse_multi_with_leading_vert(input)?;
            let guard: Option<syn::Expr> = match input.parse::<Option<syn::Token![if]>>()? {
                Some(_) => Some(input.parse()?),
                None => None,
            };
            input.parse::<Option<syn::Token![,]>>()?;
            Ok((value, pattern, guard))
        };
        match call.parse_body_with(parts) {
            Ok((value, pattern, guard)) => {
                let mark = self.mark(&pattern);
                let is = |b| Expr { kind: ExprKind::Bool(b), mark };
                let value = Box::new(self.expression(&value));
                let guard = guard.map(|g| self.expression(&g));
                let matching = Arm { pattern: self.refutable_pattern(&pattern), guard, body: is(true), mark };
                let other = Arm { pattern: Pattern::Ignore, guard: None, body: is(false), mark };
                ExprKind::Match { value, arms: vec![matching, other] }
            }
            Err(error) => {
                self.refuse(error);
                ExprKind::Refused
            }
        }
    }

    /// Reads `if let pattern = value { then } else { otherwise }`, or with several conditions.
    pub(super) fn if_let(&mut self, condition: &syn::Expr, then: Block, otherwise: Expr) -> ExprKind {
        let mut all = Vec::new();
        conditions(condition, &mut all);
        if let [syn::Expr::Let(l)] = all.as_slice() {
            return self.matched(l, then, otherwise);
        }
        // The nested conditions are in a labeled block, which they leave with the value of `then`.
        let (mark, nothing) = (then.mark, Block { statements: Vec::new(), value: None, mark: then.mark });
        let label = Ident::new("all_hold", mark.first);
        let value = Some(Box::new(Expr { kind: ExprKind::Block(then), mark }));
        let mut inner = Expr { kind: ExprKind::Break { label: Some(label.clone()), value }, mark };
        for condition in all.into_iter().rev() {
            let then = Block { statements: vec![Statement::Expr(inner)], value: None, mark };
            let kind = match condition {
                syn::Expr::Let(l) => {
                    let otherwise = Expr { kind: ExprKind::Block(nothing.clone()), mark };
                    self.matched(l, then, otherwise)
                }
                plain => ExprKind::If { condition: Box::new(self.expression(plain)), then, otherwise: None },
            };
            inner = Expr { kind, mark };
        }
        let body = Block { statements: vec![Statement::Expr(inner)], value: Some(Box::new(otherwise)), mark };
        ExprKind::Labeled { label, body }
    }

    fn matched(&mut self, l: &syn::ExprLet, then: Block, otherwise: Expr) -> ExprKind {
        let mark = self.mark(l);
        let body = Expr { mark: then.mark, kind: ExprKind::Block(then) };
        let value = Box::new(self.expression(&l.expr));
        let matching = Arm { pattern: self.refutable_pattern(&l.pat), guard: None, body, mark };
        let other = Arm { pattern: Pattern::Ignore, guard: None, body: otherwise, mark };
        ExprKind::Match { value, arms: vec![matching, other] }
    }
}

/// Makes a path of each name in a pattern that starts with a capital, as constants do.
struct ConstantNames {
    /// The names with lower-case letters, which variants have and constants do not.
    variants: Vec<Ident>,
}

impl VisitMut for ConstantNames {
    fn visit_pat_mut(&mut self, pattern: &mut Pat) {
        if let Pat::Ident(p) = pattern
            && p.by_ref.is_none()
            && p.mutability.is_none()
            && p.subpat.is_none()
            && p.ident.to_string().starts_with(char::is_uppercase)
            && p.ident != "None"
        {
            if p.ident.to_string().contains(char::is_lowercase) {
                self.variants.push(p.ident.clone());
            }
            *pattern = Pat::Path(syn::PatPath { attrs: Vec::new(), qself: None, path: p.ident.clone().into() });
        }
        visit_mut::visit_pat_mut(self, pattern);
    }

    fn visit_expr_mut(&mut self, _: &mut syn::Expr) {}
}

/// Returns whether a condition binds by `let`, alone or in a chain.
pub(super) fn has_let(condition: &syn::Expr) -> bool {
    let mut all = Vec::new();
    conditions(condition, &mut all);
    all.iter().any(|c| matches!(c, syn::Expr::Let(_)))
}

/// Collects the conditions that `&&` joins, from left to right.
fn conditions<'e>(condition: &'e syn::Expr, all: &mut Vec<&'e syn::Expr>) {
    match condition {
        syn::Expr::Binary(b) if matches!(b.op, syn::BinOp::And(_)) => {
            conditions(&b.left, all);
            conditions(&b.right, all);
        }
        one => all.push(one),
    }
}

/// Returns whether a path is `Some` or `Option::Some`, for `name` = `Some`.
fn is_variant(path: &syn::Path, name: &str) -> bool {
    let names: Vec<_> = path.segments.iter().map(|s| s.ident.to_string()).collect();
    match names.as_slice() {
        [last] => last == name,
        [first, last] => first == "Option" && last == name,
        _ => false,
    }
}

impl Pattern {
    /// Calls `f` for each name that the pattern binds.
    pub(super) fn names<'a>(&'a self, f: &mut dyn FnMut(&'a Ident)) {
        match self {
            Pattern::Ignore | Pattern::Value(_) | Pattern::Range { .. } | Pattern::None(_) | Pattern::Rest(_) => {}
            Pattern::Name { name, .. } => f(name),
            Pattern::Named { name, pattern, .. } => {
                f(name);
                pattern.names(f);
            }
            Pattern::Tuple(parts, _) | Pattern::Array(parts, _) | Pattern::Any(parts, _) => {
                parts.iter().for_each(|p| p.names(f));
            }
            Pattern::Some(p, _) | Pattern::Reference(p, _) => p.names(f),
            Pattern::Struct { fields, .. } => fields.iter().for_each(|(_, p)| p.names(f)),
        }
    }
}
