//! Contraction, where `#[kernel(contract)]` asks for it: a sum or difference with a product written in it is one
//! `mul_add`, rounded once.
//!
//! It is done here, so that the oracle sees it and every executor rounds alike. It holds for what is written in the kernel
//! itself, its closures too: a device function means the same whoever calls it. Of two products the left one is it; one that
//! has a name of its own (`let p = a * b;`) is rounded.

use super::Lowerer;
use super::value::Known;
use crate::Scalar;
use crate::hir::{Expr, ExprKind};
use crate::ir::{Binary, Op, Unary};
use crate::source::Span;

impl<'h> Lowerer<'h> {
    /// The factors, if `e` is a product that a sum of type `ty` takes in.
    fn factors(&self, ty: Scalar, e: &'h Expr) -> Option<[&'h Expr; 2]> {
        let asked = self.program.launch.contract && ty.is_float();
        let own = self.program.functions.first().is_some_and(|kernel| std::ptr::eq(kernel, self.function()));
        match &e.kind {
            ExprKind::Binary(Binary::Mul, a, b) if asked && own => Some([a, b]),
            _ => None,
        }
    }

    /// `a` op `b` as one `mul_add`, where it is one.
    pub(super) fn contracted(&mut self, span: Span, op: Binary, a: &'h Expr, b: &'h Expr) -> Option<Known> {
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

    /// The factors of `value`, evaluated, if `place op= value` is one `mul_add`.
    pub(super) fn contracted_value(&mut self, op: Binary, value: &'h Expr) -> Option<[Known; 2]> {
        let factors = self.factors(self.scalar_type(value.ty), value)?;
        matches!(op, Binary::Add | Binary::Sub).then(|| factors.map(|e| self.scalar(e)))
    }

    /// c ± x · y.
    pub(super) fn added(&mut self, op: Binary, ty: Scalar, c: Known, [mut x, y]: [Known; 2]) -> Known {
        if op == Binary::Sub {
            x = self.unary(Unary::Neg, ty, x);
        }
        self.fused(ty, [x, y, c])
    }

    fn fused(&mut self, ty: Scalar, [x, y, c]: [Known; 3]) -> Known {
        Known { value: self.builder.scalar(Op::MulAdd(x.value, y.value, c.value), ty), bits: None }
    }
}
