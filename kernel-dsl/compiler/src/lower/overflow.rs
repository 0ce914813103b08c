//! Methods with explicit overflow: `checked_`, `overflowing_` and `saturating_`.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::Val;
use super::method::unsigned;
use crate::Scalar;
use crate::hir::{OnOverflow, Wide};
use crate::ir::{Binary, Bits, Comparison, Op, Unary};

impl Lowerer<'_> {
    /// Lowers `a` op `b` of integers of type `ty`.
    pub(super) fn on_overflow(&mut self, on: OnOverflow, op: Binary, ty: Scalar, a: MaybeConst, b: MaybeConst) -> Val {
        if let (OnOverflow::Saturating, Scalar::I32, Some(what)) = (on, ty, saturating(op)) {
            let operands = [a.value, b.value].into_iter().collect();
            return Val::Scalar(MaybeConst::unknown(self.builder.scalar(Op::Bits(what, operands), ty)));
        }
        let (value, over) = match op {
            Binary::Div | Binary::Rem => self.quotient(op, ty, a, b),
            Binary::Mul => self.whole_product(ty, a, b),
            _ => self.sum(op, ty, a, b),
        };
        match on {
            OnOverflow::Checked => {
                let fits = self.unary(Unary::Not, Scalar::Bool, over);
                Val::Option(fits, Box::new(Val::Scalar(value)))
            }
            OnOverflow::Overflowing => Val::Tuple(vec![Val::Scalar(value), Val::Scalar(over)]),
            OnOverflow::Saturating => {
                let limit = self.limit(op, ty, a, b);
                Val::Scalar(self.select(ty, over, limit, value))
            }
        }
    }

    /// Lowers the wrapped sum or difference, and whether it overflowed: whether its sign
    /// contradicts the signs of the operands.
    fn sum(&mut self, op: Binary, ty: Scalar, a: MaybeConst, b: MaybeConst) -> (MaybeConst, MaybeConst) {
        let add = op == Binary::Add;
        let wrapping = if add { Binary::WrappingAdd } else { Binary::WrappingSub };
        let value = self.binary(wrapping, ty, a, b);
        if !ty.is_signed() {
            let over =
                if add { self.compare(Comparison::Lt, ty, value, a) } else { self.compare(Comparison::Lt, ty, a, b) };
            return (value, over);
        }
        let other = if add { value } else { a };
        let apart = self.binary(Binary::Xor, ty, a, value);
        let wrong = self.binary(Binary::Xor, ty, b, other);
        let both = self.binary(Binary::And, ty, apart, wrong);
        let zero = self.number(ty, 0);
        (value, self.compare(Comparison::Lt, ty, both, zero))
    }

    /// Lowers the wrapped product, and whether it overflowed: whether the upper half is not the
    /// extension of the lower.
    fn whole_product(&mut self, ty: Scalar, a: MaybeConst, b: MaybeConst) -> (MaybeConst, MaybeConst) {
        if ty.bits() < 32 {
            let wide = if ty.is_signed() { Scalar::I32 } else { Scalar::U32 };
            let (a, b) = (self.cast(a, ty, wide), self.cast(b, ty, wide));
            let product = self.binary(Binary::WrappingMul, wide, a, b);
            let value = self.cast(product, wide, ty);
            let again = self.cast(value, ty, wide);
            return (value, self.compare(Comparison::Ne, wide, again, product));
        }
        if ty == Scalar::U128 {
            return self.double_product_overflow(a, b);
        }
        let value = self.binary(Binary::WrappingMul, ty, a, b);
        let of = if ty == Scalar::Usize { Scalar::U32 } else { ty };
        let (x, y) = (self.cast(a, ty, of), self.cast(b, ty, of));
        let high = self.upper_half(of, x, y);
        let extension = if ty.is_signed() {
            let last = self.number(Scalar::U32, u64::from(ty.bits() - 1));
            self.binary(Binary::Shr, ty, value, last)
        } else {
            self.number(of, 0)
        };
        (value, self.compare(Comparison::Ne, of, high, extension))
    }

    /// Lowers the upper half of a product of integers that fill registers.
    fn upper_half(&mut self, ty: Scalar, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        let operands = [a.value, b.value].into_iter().collect();
        MaybeConst::unknown(self.builder.scalar(Op::Bits(Bits::MultiplyHigh, operands), ty))
    }

    /// Lowers an operation of unsigned type `ty` whose result is wider. `carry` is the carry or
    /// borrow into a sum or difference.
    pub(super) fn wide(
        &mut self,
        what: Wide,
        ty: Scalar,
        a: MaybeConst,
        b: MaybeConst,
        carry: Option<MaybeConst>,
    ) -> Val {
        let (op, Some(carry)) = (if what == Wide::Sum { Binary::Add } else { Binary::Sub }, carry) else {
            let low = self.binary(Binary::WrappingMul, ty, a, b);
            let high = self.upper_half(ty, a, b);
            return Val::Tuple(vec![Val::Scalar(low), Val::Scalar(high)]);
        };
        let (value, first) = self.sum(op, ty, a, b);
        let carry = self.cast(carry, Scalar::Bool, ty);
        let (value, second) = self.sum(op, ty, value, carry);
        let over = self.binary(Binary::Or, Scalar::Bool, first, second);
        Val::Tuple(vec![Val::Scalar(value), Val::Scalar(over)])
    }

    /// Lowers the quotient or remainder, and whether it is undefined: for the divisor 0, and for
    /// `MIN` by −1. In these cases the division is by 1.
    fn quotient(&mut self, op: Binary, ty: Scalar, a: MaybeConst, b: MaybeConst) -> (MaybeConst, MaybeConst) {
        let (zero, one) = (self.number(ty, 0), self.number(ty, 1));
        let mut none = self.compare(Comparison::Eq, ty, b, zero);
        if ty.is_signed() {
            let (least, minus) = (self.number(ty, 1 << (ty.bits() - 1)), self.number(ty, u64::MAX));
            let (a, b) = (self.compare(Comparison::Eq, ty, a, least), self.compare(Comparison::Eq, ty, b, minus));
            let beyond = self.binary(Binary::And, Scalar::Bool, a, b);
            none = self.binary(Binary::Or, Scalar::Bool, none, beyond);
        }
        let by = self.select(ty, none, one, b);
        (self.binary(op, ty, a, by), none)
    }

    /// Lowers the bound of the type to which an overflowing result saturates.
    fn limit(&mut self, op: Binary, ty: Scalar, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        if !ty.is_signed() {
            return if op == Binary::Sub { self.number(ty, 0) } else { self.all_ones(ty) };
        }
        // MAX, or its complement MIN if the result is negative.
        let sign = if op == Binary::Mul { self.binary(Binary::Xor, ty, a, b) } else { a };
        let last = self.number(Scalar::U32, u64::from(ty.bits() - 1));
        let signs = self.binary(Binary::Shr, ty, sign, last);
        let most = self.number(ty, ty.mask() >> 1);
        self.binary(Binary::Xor, ty, signs, most)
    }

    /// Lowers the test that `a` is a multiple of `b`; only 0 is a multiple of 0.
    pub(super) fn is_multiple_of(&mut self, ty: Scalar, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        let (zero, one) = (self.number(ty, 0), self.number(ty, 1));
        let none = self.compare(Comparison::Eq, ty, b, zero);
        let by = self.select(ty, none, one, b);
        let rest = self.binary(Binary::Rem, ty, a, by);
        let rest = self.select(ty, none, a, rest);
        self.compare(Comparison::Eq, ty, rest, zero)
    }

    /// Lowers the position of the highest bit. For 0 the difference overflows, which is reported.
    pub(super) fn ilog2(&mut self, ty: Scalar, a: MaybeConst) -> MaybeConst {
        let bare = self.cast(a, ty, unsigned(ty));
        let zeros = self.counted(Unary::LeadingZeros, unsigned(ty), bare);
        let last = self.number(Scalar::U32, u64::from(ty.bits() - 1));
        self.binary(Binary::Sub, Scalar::U32, last, zeros)
    }
}

/// Lowers the single `i32` instruction for this method.
fn saturating(op: Binary) -> Option<Bits> {
    match op {
        Binary::Add => Some(Bits::SaturatingAdd),
        Binary::Sub => Some(Bits::SaturatingSub),
        _ => None,
    }
}
