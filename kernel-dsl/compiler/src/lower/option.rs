//! `Option`: a flag and the parts of the value.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::{LoweredPlace, Val};
use crate::Scalar;
use crate::hir::{self, Expr, TypeId};
use crate::ir::Op;
use crate::source::Span;

impl<'h> Lowerer<'h> {
    pub(super) fn some(&mut self, value: Val) -> Val {
        Val::Option(self.truth(true), Box::new(value))
    }

    pub(super) fn none(&mut self, e: &Expr) -> Val {
        let hir::Type::Option(inner) = self.ty(e.ty) else { return Val::Unit };
        let unused = self.unused_value(*inner, e.span);
        Val::Option(self.truth(false), Box::new(unused))
    }

    pub(super) fn truth(&mut self, truth: bool) -> MaybeConst {
        let bits = u64::from(truth);
        MaybeConst::new(self.builder.constant(Scalar::Bool, bits), Some(bits))
    }

    /// Lowers an unused value of type `ty`.
    pub(super) fn unused_value(&mut self, ty: TypeId, span: Span) -> Val {
        match self.ty(ty) {
            hir::Type::Unit | hir::Type::Never => Val::Unit,
            hir::Type::Scalar(s) => Val::Scalar(MaybeConst { bits: None, ..self.number(*s, 0) }),
            hir::Type::Tuple(parts) => Val::Tuple(parts.iter().map(|p| self.unused_value(*p, span)).collect()),
            hir::Type::Option(inner) => {
                let unused = self.unused_value(*inner, span);
                Val::Option(self.truth(false), Box::new(unused))
            }
            hir::Type::Array(element, _) => {
                let unused = self.unused_value(*element, span);
                self.repeated(ty, "none", unused)
            }
            // A place that nothing reads.
            hir::Type::Reference { to, mutable: false } if self.storable(*to) => {
                let unused = self.unused_value(*to, span);
                Val::Reference(self.temporary_place(*to, unused))
            }
            hir::Type::Slice { .. } | hir::Type::View { .. } => {
                let parts = self.parts(ty).unwrap_or_default();
                let mut parts = parts.into_iter().map(|part| self.builder.value(Op::Constant(0), part));
                let parts: Vec<_> = parts.by_ref().collect();
                self.rebuild(ty, &mut parts.into_iter())
            }
            _ => {
                self.error_with_help(
                    span,
                    "an `Option` that can be `None`, or an enum, cannot hold a shared array, reference or closure",
                    "keep the value in a variable, with a separate `bool`",
                );
                Val::Unit
            }
        }
    }

    /// Lowers `get`: the element at `at` if it is in bounds. The result holds the value for a view
    /// or shared array, and a reference for a slice.
    pub(super) fn get(&mut self, e: &Expr, of: &Val, at: &[MaybeConst]) -> Val {
        let extents = self.extents(of);
        if extents.is_empty() || extents.len() != at.len() {
            return Val::Unit;
        }
        let inside = self.bounds_test(&extents, at);
        let Some(place) = self.memory_place(of, at) else { return Val::Unit };
        let reference = Val::Option(inside, Box::new(Val::Reference(place)));
        match self.ty(e.ty) {
            hir::Type::Option(inner) if matches!(self.ty(*inner), hir::Type::Reference { .. }) => reference,
            _ => self.copied(e, reference),
        }
    }

    /// Lowers `copied`: a load in the lanes whose option holds a reference.
    pub(super) fn copied(&mut self, e: &Expr, option: Val) -> Val {
        let Val::Option(some, reference) = option else { return Val::Unit };
        let hir::Type::Option(inner) = self.ty(e.ty) else { return Val::Unit };
        let value = match *reference {
            Val::Reference(LoweredPlace::Memory { place, mem_layout, policy }) => {
                let zeros = self.zeros(&mem_layout);
                self.load_mem_layout(&place, &mem_layout, *inner, policy, Some((some, &zeros)))
            }
            Val::Reference(LoweredPlace::Registers(storage)) => self.read_storage(&storage, *inner),
            _ => return Val::Unit,
        };
        Val::Option(some, Box::new(value))
    }
}
