//! Operations on whole arrays in registers.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::{LoweredPlace, Val};
use crate::hir::{self, Expr, Intrinsic};

impl<'h> Lowerer<'h> {
    pub(super) fn whole_array(&mut self, e: &'h Expr, intrinsic: Intrinsic, arguments: &'h [Expr]) -> Val {
        match (intrinsic, arguments) {
            (Intrinsic::ArrayMap, [array, f]) => {
                let hir::Type::Array(element, _) = self.ty(array.ty) else { return Val::Unit };
                let array = self.expr(array);
                let f = self.expr(f);
                let Val::Callable(f) = f else { return Val::Unit };
                self.filled(e, f, &mut |l, i| match &array {
                    Val::Array(from) => {
                        let place = l.element(from, i);
                        l.peek_storage(&place, *element)
                    }
                    Val::Shared(arrays) => l.shared_at(arrays, i),
                    _ => Val::Unit,
                })
            }
            (Intrinsic::ArrayFrom, [f]) => match self.expr(f) {
                Val::Callable(f) => self.filled(e, f, &mut |_, i| Val::Scalar(i)),
                _ => Val::Unit,
            },
            (Intrinsic::ArrayLen, [array]) => {
                let hir::Type::Array(_, size) = self.ty(array.ty) else { return Val::Unit };
                // Lowered only for its effects; the elements are not used.
                self.place(array);
                self.at(e.span);
                Val::Scalar(self.index(self.size(*size)))
            }
            _ => Val::Unit,
        }
    }

    /// Lowers an array of the type of `e` with `f(argument(i))` at each index i, in order.
    fn filled(&mut self, e: &Expr, f: u32, argument: &mut dyn FnMut(&mut Self, MaybeConst) -> Val) -> Val {
        let hir::Type::Array(element, size) = *self.ty(e.ty) else { return Val::Unit };
        if !self.in_registers(e) {
            return Val::Unit;
        }
        let to = self.storage(e.ty, self.name_hint.unwrap_or("array"));
        for i in 0..self.size(size) {
            if !self.check_call_depth(e.span) {
                break;
            }
            self.at(e.span);
            let i = self.index(i);
            let argument = argument(self, i);
            let value = self.call_callable(e.span, f, vec![argument]);
            let place = self.element(&to, i);
            self.write(&LoweredPlace::Registers(place), element, value);
        }
        Val::Array(to)
    }
}
