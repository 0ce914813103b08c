//! Destructuring assignments.

use super::{Assignee, ExprKind, Reader};

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
}
