//! Expressions.

use super::assertion::{is_assertion, is_log};
use super::function::macro_refusal;
use super::inline::is_inline;
use super::pattern::has_let;
use super::{
    Arm, Binary, Block, ClosureParameter, Expr, ExprKind, FloatLiteral, Member, Path, Pattern, Reader, Segment,
    SpanPair, Unary, foreign,
};
use crate::Scalar;
use crate::ir;
use proc_macro2::Ident;
use quote::ToTokens;
use syn::{BinOp, Lit, RangeLimits, UnOp};

/// The maximum depth of nested expressions. The compiler visits them recursively.
const MAX_EXPRESSION_DEPTH: u32 = 2048;

impl Reader {
    pub(super) fn expression(&mut self, e: &syn::Expr) -> Expr {
        let mark = self.mark(e);
        self.depth += 1;
        let kind = if self.depth <= MAX_EXPRESSION_DEPTH {
            self.kind(e, mark)
        } else {
            // One error is enough: the other operands of an expression are equally deep.
            if !std::mem::replace(&mut self.is_too_deep, true) {
                self.refuse(syn::Error::new(
                    mark.first,
                    format!(
                        "expressions are nested more than {MAX_EXPRESSION_DEPTH} deep here: compute parts of the \
                         expression in `let` statements before it"
                    ),
                ));
            }
            ExprKind::Refused
        };
        self.depth -= 1;
        Expr { kind, mark }
    }

    fn boxed(&mut self, e: &syn::Expr) -> Box<Expr> {
        Box::new(self.expression(e))
    }

    fn list<'e>(&mut self, all: impl IntoIterator<Item = &'e syn::Expr>) -> Vec<Expr> {
        all.into_iter().map(|e| self.expression(e)).collect()
    }

    fn refused(&mut self, tokens: &impl ToTokens, message: &str) -> ExprKind {
        self.refuse(syn::Error::new_spanned(tokens, message));
        ExprKind::Refused
    }

    fn kind(&mut self, e: &syn::Expr, mark: SpanPair) -> ExprKind {
        match e {
            syn::Expr::Lit(l) => self.literal(&l.lit),
            syn::Expr::Path(p) if p.qself.is_none() => match foreign::variable(&p.path) {
                Some(message) => self.refused(&p.path, &message),
                None => ExprKind::Path(self.path(&p.path).with_result()),
            },
            syn::Expr::Paren(p) => self.expression(&p.expr).kind,
            syn::Expr::Group(g) => self.expression(&g.expr).kind,
            syn::Expr::Unary(u) => self.unary(u),
            syn::Expr::Binary(b) => self.binary(b),
            syn::Expr::Assign(a) => self.assignment(a),
            syn::Expr::Cast(c) => ExprKind::Cast(self.character(&c.expr), self.ty(&c.ty)),
            syn::Expr::Call(c) => match &*c.func {
                syn::Expr::Path(p) if p.qself.is_none() => {
                    let path = self.path(&p.path).with_result();
                    if matches!(path.name().as_str(), "std::mem::swap" | "core::mem::swap" | "mem::swap") {
                        return self.swap(c);
                    }
                    let arguments = self.list(&c.args);
                    if let Some(message) = foreign::function(&p.path) {
                        return self.refused(&p.path, &message);
                    }
                    ExprKind::Call(path, arguments)
                }
                other => self.refused(
                    other,
                    "cannot call the value of an expression: bind the closure to a name with `let`, then call that name",
                ),
            },
            syn::Expr::MethodCall(m) => match tested_range(m) {
                Some(range) => self.is_in_range(m, range),
                None => ExprKind::Method {
                    receiver: self.boxed(&m.receiver),
                    name: m.method.clone(),
                    generics: m.turbofish.as_ref().map(|t| self.arguments(t)).unwrap_or_default(),
                    arguments: self.list(&m.args),
                },
            },
            syn::Expr::Index(i) if is_half_open(&i.index) => {
                self.refused(&i.index, "a kernel cannot take a part of a slice or array: add its start to each index")
            }
            syn::Expr::Index(i) => ExprKind::Index(self.boxed(&i.expr), self.boxed(&i.index)),
            syn::Expr::Field(f) => ExprKind::Field(self.boxed(&f.base), member(&f.member)),
            syn::Expr::Tuple(t) => ExprKind::Tuple(self.list(&t.elems)),
            syn::Expr::Array(a) => ExprKind::Array(self.list(&a.elems)),
            syn::Expr::Repeat(r) => {
                let length = self.length(&r.len);
                ExprKind::Repeat(self.boxed(&r.expr), length)
            }
            syn::Expr::Reference(r) => {
                ExprKind::Reference { mutable: r.mutability.is_some(), place: self.boxed(&r.expr) }
            }
            syn::Expr::Range(r) => match (&r.start, &r.limits, &r.end) {
                (Some(start), limits, Some(end)) => ExprKind::Range {
                    start: self.boxed(start),
                    end: self.boxed(end),
                    closed: matches!(limits, RangeLimits::Closed(_)),
                },
                _ => self.refused(r, "a range in a kernel needs both bounds: `start..end`"),
            },
            syn::Expr::If(i) => self.branch(i),
            syn::Expr::Block(b) => match &b.label {
                None => ExprKind::Block(self.block(&b.block)),
                Some(label) => ExprKind::Labeled { label: label.name.ident.clone(), body: self.block(&b.block) },
            },
            syn::Expr::Loop(l) => ExprKind::Loop { label: label(&l.label), body: self.block(&l.body) },
            syn::Expr::While(w) if has_let(&w.cond) => {
                // A `loop` that ends when the pattern does not match, as Rust defines `while let`.
                let then = self.block(&w.body);
                let stop = Expr { kind: ExprKind::Break { label: None, value: None }, mark };
                let step = Expr { kind: self.if_let(&w.cond, then, stop), mark };
                let body = Block { statements: vec![super::Statement::Expr(step)], value: None, mark };
                ExprKind::Loop { label: label(&w.label), body }
            }
            syn::Expr::While(w) => {
                ExprKind::While { label: label(&w.label), condition: self.boxed(&w.cond), body: self.block(&w.body) }
            }
            syn::Expr::ForLoop(f) => ExprKind::For {
                label: label(&f.label),
                pattern: self.pattern(&f.pat),
                iterator: self.boxed(&f.expr),
                body: self.block(&f.body),
            },
            syn::Expr::Break(b) => ExprKind::Break {
                label: b.label.as_ref().map(|l| l.ident.clone()),
                value: b.expr.as_ref().map(|e| self.boxed(e)),
            },
            syn::Expr::Continue(c) => ExprKind::Continue { label: c.label.as_ref().map(|l| l.ident.clone()) },
            syn::Expr::Return(r) => ExprKind::Return(r.expr.as_ref().map(|e| self.boxed(e))),
            syn::Expr::Macro(m) if m.mac.path.is_ident("matches") => self.test_of_pattern(&m.mac),
            syn::Expr::Macro(m) if is_inline(&m.mac) => self.inline(&m.mac),
            syn::Expr::Macro(m) if is_assertion(&m.mac) => self.assertion(&m.mac),
            syn::Expr::Macro(m) if is_log(&m.mac) => self.log(&m.mac),
            syn::Expr::Macro(m) => {
                self.refuse(macro_refusal(&m.mac));
                ExprKind::Refused
            }
            syn::Expr::Match(m) => self.cases(m),
            syn::Expr::Let(l) => self.refused(
                l,
                "`let` is a condition only in `if` and `while`, alone or joined by `&&`: use `match` here",
            ),
            syn::Expr::Closure(c) => self.closure(c),
            syn::Expr::Struct(s) if s.qself.is_none() => ExprKind::Struct {
                path: self.path(&s.path),
                fields: s.fields.iter().map(|f| (member(&f.member), self.expression(&f.expr))).collect(),
                rest: s.rest.as_ref().map(|e| self.boxed(e)),
            },
            syn::Expr::Try(t) if self.in_kernel => self.refused(
                &t.question_token,
                "`?` leaves a function that returns an `Option` or a `Result`, and a kernel returns nothing: use `match`, `if let`, `unwrap_or` or `let … else { return };`",
            ),
            syn::Expr::Try(t) => ExprKind::Try(self.boxed(&t.expr)),
            syn::Expr::Unsafe(u) => {
                self.refused(&u.unsafe_token, "`unsafe` is not supported in kernels: remove it; the oracle checks every memory access")
            }
            syn::Expr::Async(a) => self.refused(&a.async_token, "`async` is not supported in kernels"),
            syn::Expr::Await(a) => self.refused(&a.await_token, "`await` is not supported in kernels"),
            syn::Expr::Const(c) => {
                self.refused(&c.const_token, "a `const` block in a kernel must be a statement that contains only `assert!(…)`")
            }
            syn::Expr::Infer(i) => self.refused(i, "`_` cannot be used as a value"),
            other => {
                let _ = mark;
                self.refused(other, "this kind of expression is not supported in kernels")
            }
        }
    }

    pub(super) fn literal(&mut self, literal: &Lit) -> ExprKind {
        match literal {
            Lit::Int(n) => {
                // Rust has no 16-bit float literals.
                let suffix = Scalar::from_name(n.suffix()).filter(|s| !s.is_half());
                if suffix.is_none() && !n.suffix().is_empty() {
                    return self.refused(
                        n,
                        "literals of `i128`, `isize` and half-precision floats are not supported in kernels: write a `u128`, an `i64` or `f16::from_f32(1.0)`",
                    );
                }
                if suffix.is_some_and(Scalar::is_float) {
                    return match (n.base10_parse(), n.base10_parse()) {
                        (Ok(single), Ok(double)) => ExprKind::Float(FloatLiteral { single, double }, suffix),
                        _ => self.refused(n, "invalid number"),
                    };
                }
                match n.base10_parse::<u128>() {
                    Ok(value) => ExprKind::Integer(value, suffix),
                    Err(_) => self.refused(n, "this integer does not fit in 128 bits"),
                }
            }
            Lit::Float(x) => {
                let suffix = Scalar::from_name(x.suffix());
                match (x.base10_parse(), x.base10_parse()) {
                    (Ok(single), Ok(double)) if suffix.map_or(x.suffix().is_empty(), Scalar::is_float) => {
                        ExprKind::Float(FloatLiteral { single, double }, suffix)
                    }
                    _ => self
                        .refused(x, "a float literal must be `f32` or `f64`: for 16 bits write `f16::from_f32(1.0)`"),
                }
            }
            Lit::Bool(b) => ExprKind::Bool(b.value),
            Lit::Byte(b) => ExprKind::Integer(b.value().into(), Some(Scalar::U8)),
            Lit::ByteStr(text) => {
                let mark = self.mark(text);
                let byte = |b| Expr { kind: ExprKind::Integer(u128::from(b), Some(Scalar::U8)), mark };
                let bytes = ExprKind::Array(text.value().into_iter().map(byte).collect());
                ExprKind::Reference { mutable: false, place: Box::new(Expr { kind: bytes, mark }) }
            }
            Lit::Char(c) => {
                let text = c.token().to_string();
                let instead =
                    if c.value().is_ascii() { format!("`b{text}`, a `u8`") } else { format!("`{text} as u32`") };
                self.refused(c, &format!("a kernel has no type `char`: write {instead}"))
            }
            other => self.refused(
                other,
                "text is not supported in kernels: `b\"text\"` is an array of bytes, and `log!` prints text",
            ),
        }
    }

    /// Reads the value of a cast, which may be a character: `'a' as u32`.
    fn character(&mut self, value: &syn::Expr) -> Box<Expr> {
        match without_parentheses(value) {
            syn::Expr::Lit(syn::ExprLit { lit: Lit::Char(c), .. }) => {
                let kind = ExprKind::Integer(u32::from(c.value()).into(), Some(Scalar::U32));
                Box::new(Expr { kind, mark: self.mark(value) })
            }
            _ => self.boxed(value),
        }
    }

    fn unary(&mut self, u: &syn::ExprUnary) -> ExprKind {
        let operator = match u.op {
            UnOp::Neg(_) => Unary::Neg,
            UnOp::Not(_) => Unary::Not,
            UnOp::Deref(_) => Unary::Dereference,
            _ => return self.refused(u, "this operator is not supported in kernels"),
        };
        ExprKind::Unary(operator, self.boxed(&u.expr))
    }

    fn binary(&mut self, b: &syn::ExprBinary) -> ExprKind {
        use Binary::{AndAlso, Arithmetic, Compare, OrElse};
        use ir::Binary::*;
        use ir::Comparison::*;
        let (operator, assign) = match b.op {
            BinOp::Add(_) => (Arithmetic(Add), false),
            BinOp::Sub(_) => (Arithmetic(Sub), false),
            BinOp::Mul(_) => (Arithmetic(Mul), false),
            BinOp::Div(_) => (Arithmetic(Div), false),
            BinOp::Rem(_) => (Arithmetic(Rem), false),
            BinOp::BitAnd(_) => (Arithmetic(And), false),
            BinOp::BitOr(_) => (Arithmetic(Or), false),
            BinOp::BitXor(_) => (Arithmetic(Xor), false),
            BinOp::Shl(_) => (Arithmetic(Shl), false),
            BinOp::Shr(_) => (Arithmetic(Shr), false),
            BinOp::AddAssign(_) => (Arithmetic(Add), true),
            BinOp::SubAssign(_) => (Arithmetic(Sub), true),
            BinOp::MulAssign(_) => (Arithmetic(Mul), true),
            BinOp::DivAssign(_) => (Arithmetic(Div), true),
            BinOp::RemAssign(_) => (Arithmetic(Rem), true),
            BinOp::BitAndAssign(_) => (Arithmetic(And), true),
            BinOp::BitOrAssign(_) => (Arithmetic(Or), true),
            BinOp::BitXorAssign(_) => (Arithmetic(Xor), true),
            BinOp::ShlAssign(_) => (Arithmetic(Shl), true),
            BinOp::ShrAssign(_) => (Arithmetic(Shr), true),
            BinOp::Eq(_) => (Compare(Eq), false),
            BinOp::Ne(_) => (Compare(Ne), false),
            BinOp::Lt(_) => (Compare(Lt), false),
            BinOp::Le(_) => (Compare(Le), false),
            BinOp::Gt(_) => (Compare(Gt), false),
            BinOp::Ge(_) => (Compare(Ge), false),
            BinOp::And(_) => (AndAlso, false),
            BinOp::Or(_) => (OrElse, false),
            _ => return self.refused(b, "this operator is not supported in kernels"),
        };
        let (left, right) = (self.boxed(&b.left), self.boxed(&b.right));
        match assign {
            true => ExprKind::Assign { place: left, operator: Some(operator), value: right },
            false => ExprKind::Binary(operator, left, right),
        }
    }

    /// Reads `(low..high).contains(&x)` as
    /// `match (low, high, x) { (low, high, item) => low <= item && item < high }`.
    fn is_in_range(&mut self, m: &syn::ExprMethodCall, range: &syn::ExprRange) -> ExprKind {
        let mark = self.mark(m);
        let at = |kind| Expr { kind, mark };
        let named = |name: &str| Ident::new(name, mark.first);
        let local = |name: &str| {
            let segment = Segment { name: named(name), arguments: Vec::new() };
            Box::new(at(ExprKind::Path(Path { global: false, segments: vec![segment], mark })))
        };
        let compare =
            |comparison, left, right| at(ExprKind::Binary(Binary::Compare(comparison), local(left), local(right)));
        let below = match range.limits {
            RangeLimits::HalfOpen(_) => ir::Comparison::Lt,
            RangeLimits::Closed(_) => ir::Comparison::Le,
        };
        let (mut names, mut values, mut tests) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(low) = &range.start {
            names.push("low");
            values.push(self.expression(low));
            tests.push(compare(ir::Comparison::Le, "low", "item"));
        }
        if let Some(high) = &range.end {
            names.push("high");
            values.push(self.expression(high));
            tests.push(compare(below, "item", "high"));
        }
        names.push("item");
        values.push(match &m.args[0] {
            syn::Expr::Reference(r) if r.mutability.is_none() => self.expression(&r.expr),
            other => {
                let reference = self.boxed(other);
                at(ExprKind::Unary(Unary::Dereference, reference))
            }
        });
        let tests = tests.into_iter().reduce(|a, b| at(ExprKind::Binary(Binary::AndAlso, Box::new(a), Box::new(b))));
        let names = names.into_iter().map(|name| Pattern::Name { name: named(name), mutable: false }).collect();
        let pattern = Pattern::Tuple(names, mark);
        let body = tests.unwrap_or_else(|| at(ExprKind::Bool(true)));
        let value = Box::new(at(ExprKind::Tuple(values)));
        ExprKind::Match { value, arms: vec![Arm { pattern, guard: None, body, mark }] }
    }

    fn branch(&mut self, i: &syn::ExprIf) -> ExprKind {
        if has_let(&i.cond) {
            let then = self.block(&i.then_branch);
            let otherwise = match &i.else_branch {
                Some((_, e)) => self.expression(e),
                None => Expr { kind: ExprKind::unit(), mark: then.mark },
            };
            return self.if_let(&i.cond, then, otherwise);
        }
        ExprKind::If {
            condition: self.boxed(&i.cond),
            then: self.block(&i.then_branch),
            otherwise: i.else_branch.as_ref().map(|(_, e)| self.boxed(e)),
        }
    }

    fn closure(&mut self, c: &syn::ExprClosure) -> ExprKind {
        if let Some(token) = &c.capture {
            self.refuse(syn::Error::new_spanned(
                token,
                "`move` is not supported: a closure in a kernel is inlined at each call and captures by reference. Remove `move`",
            ));
        }
        if c.asyncness.is_some() || c.constness.is_some() || c.lifetimes.is_some() {
            return self.refused(c, "this form of closure is not supported in kernels: write `|a, b| …`");
        }
        // `?` leaves the closure.
        let outside = std::mem::take(&mut self.in_kernel);
        let parameters = c.inputs.iter().map(|p| {
            let (pattern, ty) = match p {
                syn::Pat::Type(t) => (self.pattern(&t.pat), Some(self.ty(&t.ty))),
                other => (self.pattern(other), None),
            };
            ClosureParameter { pattern, ty, mark: self.mark(p) }
        });
        let parameters = parameters.collect();
        let returns = match &c.output {
            syn::ReturnType::Default => None,
            syn::ReturnType::Type(_, ty) => Some(self.ty(ty)),
        };
        let body = self.boxed(&c.body);
        self.in_kernel = outside;
        ExprKind::Closure { parameters, returns, body }
    }
}

/// Returns the range of `(low..high).contains(&x)`.
fn tested_range(m: &syn::ExprMethodCall) -> Option<&syn::ExprRange> {
    match without_parentheses(&m.receiver) {
        syn::Expr::Range(range) if m.method == "contains" && m.args.len() == 1 => Some(range),
        _ => None,
    }
}

fn without_parentheses(mut expression: &syn::Expr) -> &syn::Expr {
    while let syn::Expr::Paren(p) = expression {
        expression = &p.expr;
    }
    expression
}

fn label(label: &Option<syn::Label>) -> Option<proc_macro2::Ident> {
    label.as_ref().map(|l| l.name.ident.clone())
}

/// Returns the field that a member expression names, by name or by index.
pub(super) fn member(member: &syn::Member) -> Member {
    match member {
        syn::Member::Named(name) => Member::Name(name.clone()),
        syn::Member::Unnamed(index) => Member::Index(index.index),
    }
}

/// Returns whether an index is a range that lacks a bound, such as `3..`.
fn is_half_open(index: &syn::Expr) -> bool {
    matches!(index, syn::Expr::Range(range) if range.start.is_none() || range.end.is_none())
}
