//! Register arrays as a whole, and the sizes of types.

use super::Lowerer;
use super::value::{Known, Place, Val};
use crate::hir::{self, Expr, Intrinsic, TypeId};
use crate::source::Span;

impl<'h> Lowerer<'h> {
    pub(super) fn whole_array(&mut self, e: &'h Expr, intrinsic: Intrinsic, arguments: &'h [Expr]) -> Val {
        match (intrinsic, arguments) {
            (Intrinsic::ArrayMap, [array, f]) => {
                let hir::Type::Array(element, _) = self.ty(array.ty) else { return Val::Unit };
                let array = self.expr(array);
                let f = self.expr(f);
                let (Val::Array(from), Val::Callable(f)) = (array, f) else { return Val::Unit };
                self.filled(e, f, &mut |l, i| {
                    let place = l.element(&from, i);
                    l.peek_storage(&place, *element)
                })
            }
            (Intrinsic::ArrayFrom, [f]) => match self.expr(f) {
                Val::Callable(f) => self.filled(e, f, &mut |_, i| Val::Scalar(i)),
                _ => Val::Unit,
            },
            (Intrinsic::ArrayLen, [array]) => {
                let hir::Type::Array(_, size) = self.ty(array.ty) else { return Val::Unit };
                // For what it does on the way, and not for its elements.
                self.place(array);
                self.at(e.span);
                Val::Scalar(self.index(self.size(*size)))
            }
            (Intrinsic::SizeOf, [of]) => Val::Scalar(match self.bytes_of(of.ty, e.span) {
                Some(bytes) => self.index(bytes),
                None => self.index(0),
            }),
            _ => Val::Unit,
        }
    }

    /// An array of the type of `e` with `f(argument(i))` at each index i, in order.
    fn filled(&mut self, e: &Expr, f: u32, argument: &mut dyn FnMut(&mut Self, Known) -> Val) -> Val {
        let hir::Type::Array(_, size) = self.ty(e.ty) else { return Val::Unit };
        let to = self.storage(e.ty, self.name_hint.unwrap_or("array"));
        for i in 0..self.size(*size) {
            self.at(e.span);
            let i = self.index(i);
            let argument = argument(self, i);
            let value = self.call_callable(e.span, f, vec![argument]);
            let place = self.element(&to, i);
            self.write(&Place::Registers(place), value);
        }
        Val::Array(to)
    }

    /// Bytes of a value of a type whose layout Rust fixes.
    fn bytes_of(&mut self, ty: TypeId, span: Span) -> Option<u32> {
        match self.ty(ty) {
            hir::Type::Scalar(crate::Scalar::Usize) => {
                self.error_with_help(
                    span,
                    "`usize` has 4 bytes on the device and 8 on the host",
                    "ask for the size of `u32` or `u64`",
                );
                None
            }
            hir::Type::Scalar(s) => Some(s.bytes()),
            hir::Type::Array(element, size) => {
                let count = self.size(*size);
                self.bytes_of(*element, span).map(|bytes| bytes.saturating_mul(count))
            }
            _ => {
                self.error_with_help(
                    span,
                    "how this type lies in memory is nothing that Rust promises",
                    "`size_of` is for numbers, `bool` and arrays of them",
                );
                None
            }
        }
    }
}
