//! `Option`: a truth value, and the value's parts.

use super::Lowerer;
use super::value::{Known, Place, Val};
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
        let nothing = self.nothing(*inner, e.span);
        Val::Option(self.truth(false), Box::new(nothing))
    }

    fn truth(&mut self, truth: bool) -> Known {
        let bits = u64::from(truth);
        Known { value: self.builder.constant(Scalar::Bool, bits), bits: Some(bits) }
    }

    /// Something of type `ty` that nobody looks at.
    fn nothing(&mut self, ty: TypeId, span: Span) -> Val {
        match self.ty(ty) {
            hir::Type::Unit | hir::Type::Never => Val::Unit,
            hir::Type::Scalar(s) => Val::Scalar(Known { value: self.builder.constant(*s, 0), bits: None }),
            hir::Type::Tuple(parts) => Val::Tuple(parts.iter().map(|p| self.nothing(*p, span)).collect()),
            hir::Type::Option(inner) => {
                let nothing = self.nothing(*inner, span);
                Val::Option(self.truth(false), Box::new(nothing))
            }
            hir::Type::Array(element, _) => {
                let nothing = self.nothing(*element, span);
                self.repeated(ty, "none", nothing)
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
                    "an `Option` that can be `None` cannot hold a shared array, reference or closure",
                    "keep the value in a variable, with a separate `bool`",
                );
                Val::Unit
            }
        }
    }

    /// The element at `at`, where it lies inside: of a view or shared array its value, of a slice a reference to it.
    pub(super) fn get(&mut self, e: &Expr, of: &Val, at: &[Known]) -> Val {
        let extents = self.extents(of);
        if extents.is_empty() || extents.len() != at.len() {
            return Val::Unit;
        }
        let inside = self.inside(&extents, at);
        let Some(place) = self.memory_place(of, at) else { return Val::Unit };
        let reference = Val::Option(inside, Box::new(Val::Reference(place)));
        match self.ty(e.ty) {
            hir::Type::Option(inner) if matches!(self.ty(*inner), hir::Type::Reference { .. }) => reference,
            _ => self.copied(e, reference),
        }
    }

    /// What an optional reference names: a load that only lanes with a reference do.
    pub(super) fn copied(&mut self, e: &Expr, option: Val) -> Val {
        let Val::Option(some, reference) = option else { return Val::Unit };
        let hir::Type::Option(inner) = self.ty(e.ty) else { return Val::Unit };
        let value = match *reference {
            Val::Reference(Place::Memory { place, cell, policy }) => {
                let zeros = self.zeros(&cell);
                self.load_cell(&place, &cell, *inner, policy, Some((some, &zeros)))
            }
            Val::Reference(Place::Registers(storage)) => self.read_storage(&storage, *inner),
            _ => return Val::Unit,
        };
        Val::Option(some, Box::new(value))
    }
}
