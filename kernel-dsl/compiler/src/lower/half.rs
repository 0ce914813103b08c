//! Arithmetic of 16-bit floats: operands are widened to `f32`, and the `f32` result is rounded to
//! nearest even.
//!
//! The result equals direct 16-bit arithmetic for +, −, × and ÷: rounding to 24 bits first changes
//! nothing, because 24 ≥ 2 · 11 + 2. The result of `mul_add` may differ, because its sum is rounded
//! twice. Sign operations work on bits, also for a NaN.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use crate::Scalar;
use crate::half::NAN;
use crate::ir::{Binary, Comparison, Op, Unary, Value};

const SIGN: u64 = 0x8000;

impl Lowerer<'_> {
    /// Lowers the exact conversion of a `ty` to `f32`.
    pub(super) fn widen(&mut self, ty: Scalar, a: MaybeConst) -> MaybeConst {
        let value = match ty {
            Scalar::F16 => self.builder.scalar(Op::Cast(a.value), Scalar::F32),
            Scalar::Custom(format) if format.is_binary16() => {
                let code = self.builder.scalar(Op::Bitcast(a.value), Scalar::F16);
                self.builder.scalar(Op::Cast(code), Scalar::F32)
            }
            Scalar::Custom(format) => {
                let code = self.builder.scalar(Op::Bitcast(a.value), Scalar::U16);
                self.decoded(format, code)
            }
            _ => {
                let code = self.builder.scalar(Op::Bitcast(a.value), Scalar::U16);
                let code = self.builder.scalar(Op::Cast(code), Scalar::U32);
                let bits = self.bits(Binary::Shl, code, 16);
                self.builder.scalar(Op::Bitcast(bits), Scalar::F32)
            }
        };
        MaybeConst::unknown(value)
    }

    /// Lowers the conversion of an `f32` to the nearest `ty`; any NaN becomes the canonical NaN.
    pub(super) fn narrow(&mut self, ty: Scalar, x: MaybeConst) -> MaybeConst {
        let value = match ty {
            Scalar::F16 => self.builder.scalar(Op::Cast(x.value), Scalar::F16),
            Scalar::Custom(format) if format.is_binary16() => {
                let code = self.builder.scalar(Op::Cast(x.value), Scalar::F16);
                self.builder.scalar(Op::Bitcast(code), ty)
            }
            Scalar::Custom(format) => {
                let code = self.encoded(format, x.value, false);
                let code = self.builder.scalar(Op::Cast(code), Scalar::U16);
                self.builder.scalar(Op::Bitcast(code), ty)
            }
            _ => {
                let code = self.bf16_code(x.value);
                let code = self.builder.scalar(Op::Cast(code), Scalar::U16);
                self.builder.scalar(Op::Bitcast(code), ty)
            }
        };
        MaybeConst::unknown(value)
    }

    /// Lowers the conversion of an `f32` to a `Float16` format, rounded towards zero.
    pub(super) fn truncated(&mut self, ty: Scalar, x: MaybeConst) -> Option<MaybeConst> {
        let Scalar::Custom(format) = ty else { return None };
        let code = self.encoded(format, x.value, true);
        let code = self.builder.scalar(Op::Cast(code), Scalar::U16);
        Some(MaybeConst::unknown(self.builder.scalar(Op::Bitcast(code), ty)))
    }

    /// Lowers [`bf16_from_f32`](crate::half::bf16_from_f32), as a `u32`.
    fn bf16_code(&mut self, x: Value) -> Value {
        let bits = self.builder.scalar(Op::Bitcast(x), Scalar::U32);
        let last = self.bits(Binary::Shr, bits, 16);
        let last = self.bits(Binary::And, last, 1);
        let carried = self.bits(Binary::WrappingAdd, bits, 0x7FFF);
        let carried = self.builder.scalar(Op::Binary(Binary::WrappingAdd, carried, last), Scalar::U32);
        let rounded = self.bits(Binary::Shr, carried, 16);
        let condition = self.builder.compare(Comparison::Ne, x, x);
        let nan = self.builder.constant(Scalar::U32, u64::from(NAN));
        self.builder.scalar(Op::Select { condition, yes: nan, no: rounded }, Scalar::U32)
    }

    /// Lowers `a op b` of bits.
    fn bits(&mut self, op: Binary, a: Value, b: u64) -> Value {
        let b = self.builder.constant(Scalar::U32, b);
        self.builder.scalar(Op::Binary(op, a, b), Scalar::U32)
    }

    pub(super) fn half_binary(&mut self, op: Binary, ty: Scalar, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        let (a, b) = (self.widen(ty, a), self.widen(ty, b));
        let x = self.binary(op, Scalar::F32, a, b);
        self.narrow(ty, x)
    }

    pub(super) fn half_compare(
        &mut self,
        comparison: Comparison,
        ty: Scalar,
        a: MaybeConst,
        b: MaybeConst,
    ) -> MaybeConst {
        let (a, b) = (self.widen(ty, a), self.widen(ty, b));
        self.compare(comparison, Scalar::F32, a, b)
    }

    pub(super) fn half_mul_add(&mut self, ty: Scalar, operands: [MaybeConst; 3]) -> MaybeConst {
        let [a, b, c] = operands.map(|k| self.widen(ty, k).value);
        let value = self.builder.scalar(Op::MulAdd(a, b, c), Scalar::F32);
        self.narrow(ty, MaybeConst::unknown(value))
    }

    pub(super) fn half_unary(&mut self, op: Unary, ty: Scalar, a: MaybeConst) -> MaybeConst {
        let (op, mask) = match op {
            Unary::Neg => (Binary::Xor, SIGN),
            Unary::Abs => (Binary::And, SIGN - 1),
            // The language has no other unary operation on 16-bit floats.
            _ => {
                let x = self.widen(ty, a).value;
                let value = self.builder.scalar(Op::Unary(op, x), Scalar::F32);
                return self.narrow(ty, MaybeConst::unknown(value));
            }
        };
        let code = self.builder.scalar(Op::Bitcast(a.value), Scalar::U16);
        let mask = self.builder.constant(Scalar::U16, mask);
        let code = self.builder.scalar(Op::Binary(op, code, mask), Scalar::U16);
        MaybeConst::unknown(self.builder.scalar(Op::Bitcast(code), ty))
    }
}
