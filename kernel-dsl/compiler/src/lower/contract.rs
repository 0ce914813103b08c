//! Contraction under `#[kernel(contract)]`: a sum or difference that contains a product becomes one
//! `mul_add`, rounded once.
//!
//! Lowering contracts, so that the oracle and every other executor round alike. Contraction applies
//! to the kernel's own body and closures. Device functions are not contracted, so that their
//! results are the same in every kernel. In a sum of two products, only the left product is
//! contracted. A product with a name (`let p = a * b;`) is rounded.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use crate::Scalar;
use crate::hir::{Expr, ExprKind};
use crate::ir::{Binary, Op, Unary};
use crate::source::Span;

impl<'h> Lowerer<'h> {
    /// Returns the factors of `e`, if a sum of type `ty` can contract this product.
    fn factors(&self, ty: Scalar, e: &'h Expr) -> Option<[&'h Expr; 2]> {
        let requested = self.program.launch.contract && ty.is_float();
        let own = self.program.functions.first().is_some_and(|kernel| std::ptr::eq(kernel, self.function()));
        match &e.kind {
            ExprKind::Binary(Binary::Mul, a, b) if requested && own => Some([a, b]),
            _ => None,
        }
    }

    /// Lowers `a` op `b` as one `mul_add`, if it can be contracted.
    pub(super) fn contracted(&mut self, span: Span, op: Binary, a: &'h Expr, b: &'h Expr) -> Option<MaybeConst> {
        if !matches!(op, Binary::Add | Binary::Sub) {
            return None;
        }
        let ty = self.scalar_type(a.ty);
        if let Some(factors) = self.factors(ty, a) {
            let [x, y] = factors.map(|e| self.scalar(e));
            let mut c = self.scalar(b);
            self.at(span);
            if op == Binary::Sub {
                c = self.unary(Unary::Neg, ty, c);
            }
            return Some(self.fused(ty, [x, y, c]));
        }
        let factors = self.factors(ty, b)?;
        let c = self.scalar(a);
        let factors = factors.map(|e| self.scalar(e));
        self.at(span);
        Some(self.added(op, ty, c, factors))
    }

    /// Returns the evaluated factors of `value`, if `place op= value` can be contracted.
    pub(super) fn contracted_value(&mut self, op: Binary, value: &'h Expr) -> Option<[MaybeConst; 2]> {
        let factors = self.factors(self.scalar_type(value.ty), value)?;
        matches!(op, Binary::Add | Binary::Sub).then(|| factors.map(|e| self.scalar(e)))
    }

    /// Lowers c ± x · y with one rounding.
    pub(super) fn added(&mut self, op: Binary, ty: Scalar, c: MaybeConst, [mut x, y]: [MaybeConst; 2]) -> MaybeConst {
        if op == Binary::Sub {
            x = self.unary(Unary::Neg, ty, x);
        }
        self.fused(ty, [x, y, c])
    }

    fn fused(&mut self, ty: Scalar, [x, y, c]: [MaybeConst; 3]) -> MaybeConst {
        MaybeConst::unknown(self.builder.scalar(Op::MulAdd(x.value, y.value, c.value), ty))
    }
}
