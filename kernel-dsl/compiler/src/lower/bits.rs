//! Instructions on integers beyond the operators, and the dot products of packed numbers.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::Val;
use crate::Scalar;
use crate::hir::{self, Expr};
use crate::ir::{Bits, Op};
use smallvec::SmallVec;

impl<'h> Lowerer<'h> {
    /// Lowers the instruction `what` applied to `values`, the lowered `arguments`.
    pub(super) fn instruction(&mut self, e: &'h Expr, what: Bits, arguments: &'h [Expr], values: &[Val]) -> Val {
        let words: Option<Vec<MaybeConst>> =
            arguments.iter().zip(values).map(|(a, value)| self.packed(a, value)).collect();
        let Some(words) = words else { return Val::Unit };
        // The array is packed already.
        if let (Bits::Join, [word]) = (what, words.as_slice()) {
            return Val::Scalar(*word);
        }
        let operands: SmallVec<[_; 4]> = words.iter().map(|k| k.value).collect();
        let types: Option<Vec<Scalar>> = operands.iter().map(|v| self.builder.kernel.ty(*v).scalar()).collect();
        let Some(to) = types.and_then(|types| what.result(&types)) else {
            self.error(e.span, "this instruction does not support operands of these types");
            return Val::Unit;
        };
        Val::Scalar(MaybeConst::unknown(self.builder.scalar(Op::Bits(what, operands), to)))
    }

    /// Lowers an operand: a number as it is, an array of small numbers as one word.
    fn packed(&mut self, e: &'h Expr, value: &Val) -> Option<MaybeConst> {
        let (storage, element, size) = match (value, self.ty(e.ty)) {
            (Val::Array(storage), hir::Type::Array(element, size)) => (storage.clone(), *element, *size),
            _ => return value.scalar(),
        };
        let mut parts: SmallVec<[_; 4]> = SmallVec::new();
        for i in 0..self.size(size) {
            let i = self.index(i);
            let part = self.element(&storage, i);
            parts.push(self.peek_storage(&part, element).scalar()?.value);
        }
        let to = if self.scalar_type(element).is_signed() { Scalar::I32 } else { Scalar::U32 };
        Some(MaybeConst::unknown(self.builder.scalar(Op::Bits(Bits::Join, parts), to)))
    }
}
