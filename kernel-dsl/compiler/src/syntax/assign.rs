//! Destructuring assignments, and swaps.

use super::{Assignee, Expr, ExprKind, Reader};

impl Reader {
    /// Reads `left = right`
    pub(super) fn assignment(&mut self, a: &syn::ExprAssign) -> ExprKind {
        let value = Box::new(self.expression(&a.right));
        match self.assignee(&a.left) {
            Assignee::Place(place) => ExprKind::Assign { place, operator: None, value },
            into => ExprKind::Destructure { into, value },
        }
    }

    fn assignee(&mut self, e: &syn::Expr) -> Assignee {
        let mark = self.mark(e);
        match e {
            syn::Expr::Paren(p) => self.assignee(&p.expr),
            syn::Expr::Infer(_) => Assignee::Ignore,
            // `..`, which skips any number of parts.
            syn::Expr::Range(r) if r.start.is_none() && r.end.is_none() => Assignee::Rest(mark),
            syn::Expr::Tuple(t) => Assignee::Tuple(t.elems.iter().map(|e| self.assignee(e)).collect(), mark),
            syn::Expr::Array(a) => Assignee::Array(a.elems.iter().map(|e| self.assignee(e)).collect(), mark),
            place => Assignee::Place(Box::new(self.expression(place))),
        }
    }
    /// Reads `std::mem::swap(&mut a, &mut b)` as `(a, b) = (b, a)`.
    pub(super) fn swap(&mut self, call: &syn::ExprCall) -> ExprKind {
        let mark = self.mark(call);
        let places: Vec<_> = call.args.iter().filter_map(place_of).collect();
        let [a, b] = places[..] else {
            let message = "in a kernel, `swap` takes two variables, fields or elements: `std::mem::swap(&mut a, &mut b)`. Bind an index that is computed by a call to a name first";
            self.refuse(syn::Error::new_spanned(call, message));
            return ExprKind::Refused;
        };
        let into = Assignee::Tuple(vec![self.assignee(a), self.assignee(b)], mark);
        let value = ExprKind::Tuple(vec![self.expression(b), self.expression(a)]);
        ExprKind::Destructure { into, value: Box::new(Expr { kind: value, mark }) }
    }
}

/// Returns the place of `&mut place`, if the place can be evaluated twice.
fn place_of(e: &syn::Expr) -> Option<&syn::Expr> {
    match e {
        syn::Expr::Paren(p) => place_of(&p.expr),
        syn::Expr::Reference(r) if r.mutability.is_some() && is_repeatable(&r.expr) => Some(&r.expr),
        _ => None,
    }
}

/// Returns whether an expression has no effects and no calls.
fn is_repeatable(e: &syn::Expr) -> bool {
    match e {
        syn::Expr::Path(_) | syn::Expr::Lit(_) => true,
        syn::Expr::Paren(p) => is_repeatable(&p.expr),
        syn::Expr::Field(f) => is_repeatable(&f.base),
        syn::Expr::Index(i) => is_repeatable(&i.expr) && is_repeatable(&i.index),
        syn::Expr::Cast(c) => is_repeatable(&c.expr),
        syn::Expr::Unary(u) => is_repeatable(&u.expr),
        syn::Expr::Tuple(t) => t.elems.iter().all(is_repeatable),
        syn::Expr::Binary(b) => !is_assignment(&b.op) && is_repeatable(&b.left) && is_repeatable(&b.right),
        _ => false,
    }
}

fn is_assignment(operator: &syn::BinOp) -> bool {
    use syn::BinOp::*;
    matches!(
        operator,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitXorAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}
