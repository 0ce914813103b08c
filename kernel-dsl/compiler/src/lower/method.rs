//! Methods of numbers, expressed by operators. The table of `kernel_dsl::methods` states the result
//! of each in edge cases.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use crate::Scalar;
use crate::hir::{Expr, Method};
use crate::ir::{Binary, Comparison, Op, Unary};
use crate::source::Span;

/// The largest exponent of `pow`: x⁶⁵⁵³⁵ takes 30 products.
const MAX_EXPONENT: u64 = 0xffff;

impl<'h> Lowerer<'h> {
    /// Lowers `method` of a receiver of type `ty`; `None` if an argument has no value.
    pub(super) fn method(
        &mut self,
        e: &'h Expr,
        method: Method,
        ty: Scalar,
        all: &[Option<MaybeConst>],
    ) -> Option<MaybeConst> {
        let a = all.first().copied()??;
        let b = all.get(1).copied().flatten();
        Some(match (method, ty.is_float()) {
            (Method::Clamp, true) => self.clamp_float(ty, a, b?, all.get(2).copied()??),
            (Method::Clamp, false) => {
                let raised = self.binary(Binary::Max, ty, a, b?);
                self.binary(Binary::Min, ty, raised, all.get(2).copied()??)
            }
            (Method::Signum, true) => {
                let one = self.float(ty, 1.0);
                let signed = self.copysign(ty, one, a);
                let nan = self.compare(Comparison::Ne, ty, a, a);
                self.select(ty, nan, a, signed)
            }
            (Method::Signum, false) => {
                let (one, minus) = (self.number(ty, 1), self.number(ty, u64::MAX));
                let low = self.binary(Binary::Max, ty, a, minus);
                self.binary(Binary::Min, ty, low, one)
            }
            (Method::Pow, _) => self.pow(e.span, Binary::Mul, ty, a, b?)?,
            (Method::WrappingPow, _) => self.pow(e.span, Binary::WrappingMul, ty, a, b?)?,
            (_, true) => self.float_method(method, ty, a, b)?,
            (_, false) => match self.bit_method(method, ty, a, b) {
                Some(value) => value,
                None => self.integer_method(method, ty, a, b)?,
            },
        })
    }

    fn float_method(&mut self, method: Method, ty: Scalar, a: MaybeConst, b: Option<MaybeConst>) -> Option<MaybeConst> {
        let infinity = if ty == Scalar::F32 { u64::from(f32::INFINITY.to_bits()) } else { f64::INFINITY.to_bits() };
        Some(match method {
            Method::Copysign => self.copysign(ty, a, b?),
            Method::Recip => {
                let one = self.float(ty, 1.0);
                self.binary(Binary::Div, ty, one, a)
            }
            Method::Fract => {
                let whole = self.unary(Unary::Trunc, ty, a);
                self.binary(Binary::Sub, ty, a, whole)
            }
            Method::Round => self.round(ty, a),
            Method::IsNan => self.compare(Comparison::Ne, ty, a, a),
            Method::IsFinite | Method::IsInfinite => {
                let size = self.unary(Unary::Abs, ty, a);
                let infinity = self.number(ty, infinity);
                let how = if method == Method::IsFinite { Comparison::Lt } else { Comparison::Eq };
                self.compare(how, ty, size, infinity)
            }
            Method::IsSignNegative | Method::IsSignPositive => {
                let signed = if ty == Scalar::F32 { Scalar::I32 } else { Scalar::I64 };
                let (bits, zero) = (self.bits_as(a, signed), self.number(signed, 0));
                let how = if method == Method::IsSignNegative { Comparison::Lt } else { Comparison::Ge };
                self.compare(how, signed, bits, zero)
            }
            _ => return None,
        })
    }

    /// Lowers a method that counts or moves bits; `None` for any other method.
    fn bit_method(&mut self, method: Method, ty: Scalar, a: MaybeConst, b: Option<MaybeConst>) -> Option<MaybeConst> {
        Some(match method {
            Method::CountOnes => self.counted(Unary::CountOnes, ty, a),
            Method::CountZeros => {
                let not = self.unary(Unary::Not, ty, a);
                self.counted(Unary::CountOnes, ty, not)
            }
            Method::LeadingZeros => self.counted(Unary::LeadingZeros, ty, a),
            Method::LeadingOnes => {
                let not = self.unary(Unary::Not, ty, a);
                self.counted(Unary::LeadingZeros, ty, not)
            }
            Method::TrailingZeros => self.trailing_zeros(ty, a),
            Method::TrailingOnes => {
                let not = self.unary(Unary::Not, ty, a);
                self.trailing_zeros(ty, not)
            }
            Method::ReverseBits => self.reversed(Unary::ReverseBits, ty, a),
            Method::SwapBytes if ty.bits() == 8 => a,
            Method::SwapBytes => self.reversed(Unary::SwapBytes, ty, a),
            Method::RotateLeft => self.rotate(ty, a, b?),
            Method::RotateRight => {
                let none = self.number(Scalar::U32, 0);
                let back = self.binary(Binary::WrappingSub, Scalar::U32, none, b?);
                self.rotate(ty, a, back)
            }
            _ => return None,
        })
    }

    fn integer_method(
        &mut self,
        method: Method,
        ty: Scalar,
        a: MaybeConst,
        b: Option<MaybeConst>,
    ) -> Option<MaybeConst> {
        let (zero, one) = (self.number(ty, 0), self.number(ty, 1));
        Some(match method {
            Method::AbsDiff => {
                let (more, less) = (self.binary(Binary::Max, ty, a, b?), self.binary(Binary::Min, ty, a, b?));
                let gap = self.binary(Binary::WrappingSub, ty, more, less);
                self.cast(gap, ty, unsigned(ty))
            }
            Method::IsPowerOfTwo => {
                let (ones, one) = (self.counted(Unary::CountOnes, ty, a), self.number(Scalar::U32, 1));
                self.compare(Comparison::Eq, Scalar::U32, ones, one)
            }
            Method::NextPowerOfTwo => {
                // The mask of the lower bits: all ones from the highest bit of a − 1 down.
                let below = self.binary(Binary::WrappingSub, ty, a, one);
                let (zeros, all) = (self.counted(Unary::LeadingZeros, ty, below), self.all_ones(ty));
                let mask = self.binary(Binary::WrappingShr, ty, all, zeros);
                let more = self.compare(Comparison::Gt, ty, a, one);
                let mask = self.select(ty, more, mask, zero);
                self.binary(Binary::Add, ty, mask, one)
            }
            Method::SaturatingAdd => {
                let room = self.unary(Unary::Not, ty, a);
                let fits = self.binary(Binary::Min, ty, b?, room);
                self.binary(Binary::Add, ty, a, fits)
            }
            Method::IsMultipleOf => self.is_multiple_of(ty, a, b?),
            Method::Ilog2 => self.ilog2(ty, a),
            Method::WrappingNeg => self.binary(Binary::WrappingSub, ty, zero, a),
            Method::WrappingAbs => self.magnitude(ty, a),
            Method::UnsignedAbs => {
                let size = self.magnitude(ty, a);
                self.cast(size, ty, unsigned(ty))
            }
            Method::WrappingDiv | Method::WrappingRem => {
                let op = if method == Method::WrappingDiv { Binary::Div } else { Binary::Rem };
                if !ty.is_signed() {
                    return Some(self.binary(op, ty, a, b?));
                }
                // A division by −1 is a negation, which wraps; its remainder is that of 1.
                let minus = self.number(ty, u64::MAX);
                let negates = self.compare(Comparison::Eq, ty, b?, minus);
                let divisor = self.select(ty, negates, one, b?);
                let result = self.binary(op, ty, a, divisor);
                if op == Binary::Rem {
                    return Some(result);
                }
                let negated = self.binary(Binary::WrappingSub, ty, zero, a);
                self.select(ty, negates, negated, result)
            }
            Method::IsNegative => self.compare(Comparison::Lt, ty, a, zero),
            Method::IsPositive => self.compare(Comparison::Gt, ty, a, zero),
            Method::RemEuclid => {
                let rest = self.binary(Binary::Rem, ty, a, b?);
                if !ty.is_signed() {
                    return Some(rest);
                }
                let size = self.magnitude(ty, b?);
                let raised = self.binary(Binary::WrappingAdd, ty, rest, size);
                let below = self.compare(Comparison::Lt, ty, rest, zero);
                self.select(ty, below, raised, rest)
            }
            Method::DivEuclid => {
                let quotient = self.binary(Binary::Div, ty, a, b?);
                if !ty.is_signed() {
                    return Some(quotient);
                }
                let rest = self.binary(Binary::Rem, ty, a, b?);
                let (up, down) = (
                    self.binary(Binary::WrappingAdd, ty, quotient, one),
                    self.binary(Binary::WrappingSub, ty, quotient, one),
                );
                let positive = self.compare(Comparison::Gt, ty, b?, zero);
                let away = self.select(ty, positive, down, up);
                let below = self.compare(Comparison::Lt, ty, rest, zero);
                self.select(ty, below, away, quotient)
            }
            _ => return None,
        })
    }

    /// Lowers a power by squaring. Every product divides the result, so that a product overflows
    /// only if the result does.
    fn pow(
        &mut self,
        span: Span,
        product_by: Binary,
        ty: Scalar,
        mut base: MaybeConst,
        exponent: MaybeConst,
    ) -> Option<MaybeConst> {
        let name = if product_by == Binary::Mul { "pow" } else { "wrapping_pow" };
        let Some(mut left) = exponent.bits.filter(|n| *n <= MAX_EXPONENT) else {
            self.error_with_help(
                span,
                format!("the exponent of `{name}` must be a constant, at most {MAX_EXPONENT}"),
                "for an exponent known only at run time, multiply in a loop",
            );
            return None;
        };
        let mut product: Option<MaybeConst> = None;
        while left > 0 {
            if left & 1 == 1 {
                product = Some(match product {
                    Some(p) => self.binary(product_by, ty, p, base),
                    None => base,
                });
            }
            left >>= 1;
            if left > 0 {
                base = self.binary(product_by, ty, base, base);
            }
        }
        Some(product.unwrap_or_else(|| self.number(ty, 1)))
    }

    /// Lowers `clamp` as Rust defines it: by comparisons, so that a NaN stays a NaN, and a zero in
    /// bounds keeps its sign.
    fn clamp_float(&mut self, ty: Scalar, a: MaybeConst, low: MaybeConst, high: MaybeConst) -> MaybeConst {
        let below = self.compare(Comparison::Lt, ty, a, low);
        let raised = self.select(ty, below, low, a);
        let above = self.compare(Comparison::Gt, ty, raised, high);
        self.select(ty, above, high, raised)
    }

    /// Lowers `round`. a − trunc(a) is exact. So is trunc(a) ± 1 if that difference is at least one
    /// half, because then |a| < 2^24 (2^53).
    fn round(&mut self, ty: Scalar, a: MaybeConst) -> MaybeConst {
        let whole = self.unary(Unary::Trunc, ty, a);
        let rest = self.binary(Binary::Sub, ty, a, whole);
        let rest = self.unary(Unary::Abs, ty, rest);
        let (half, one) = (self.float(ty, 0.5), self.float(ty, 1.0));
        let step = self.copysign(ty, one, a);
        let away = self.binary(Binary::Add, ty, whole, step);
        let far = self.compare(Comparison::Ge, ty, rest, half);
        self.select(ty, far, away, whole)
    }

    /// Lowers a float with the magnitude of `size` and the sign of `sign`.
    fn copysign(&mut self, ty: Scalar, size: MaybeConst, sign: MaybeConst) -> MaybeConst {
        let bits = if ty == Scalar::F32 { Scalar::U32 } else { Scalar::U64 };
        let (size, sign) = (self.bits_as(size, bits), self.bits_as(sign, bits));
        let (low, high) = (self.number(bits, bits.mask() >> 1), self.number(bits, !(bits.mask() >> 1)));
        let size = self.binary(Binary::And, bits, size, low);
        let sign = self.binary(Binary::And, bits, sign, high);
        let both = self.binary(Binary::Or, bits, size, sign);
        self.bits_as(both, ty)
    }

    /// Returns |a| modulo 2ⁿ: `MIN` for `MIN`.
    fn magnitude(&mut self, ty: Scalar, a: MaybeConst) -> MaybeConst {
        let zero = self.number(ty, 0);
        let negated = self.binary(Binary::WrappingSub, ty, zero, a);
        self.binary(Binary::Max, ty, a, negated)
    }

    /// Lowers the value widened to a register; narrow types are zero-extended to `u32`.
    fn widened(&mut self, ty: Scalar, a: MaybeConst) -> (Scalar, MaybeConst) {
        if ty.bits() >= 32 {
            return (ty, a);
        }
        let a = self.cast(a, ty, unsigned(ty));
        (Scalar::U32, self.cast(a, unsigned(ty), Scalar::U32))
    }

    /// Lowers `CountOnes` or `LeadingZeros` of an integer of any width, as `u32`.
    pub(super) fn counted(&mut self, op: Unary, ty: Scalar, a: MaybeConst) -> MaybeConst {
        let (wide, a) = self.widened(ty, a);
        let count = self.unary_to(op, wide, a, Scalar::U32);
        match (op, wide.bits() - ty.bits()) {
            (Unary::LeadingZeros, above @ 1..) => {
                let above = self.number(Scalar::U32, above.into());
                self.binary(Binary::Sub, Scalar::U32, count, above)
            }
            _ => count,
        }
    }

    fn trailing_zeros(&mut self, ty: Scalar, a: MaybeConst) -> MaybeConst {
        let (wide, mut a) = self.widened(ty, a);
        if ty.bits() < 32 {
            let end = self.number(wide, 1 << ty.bits());
            a = self.binary(Binary::Or, wide, a, end);
        }
        let a = self.unary(Unary::ReverseBits, wide, a);
        self.unary_to(Unary::LeadingZeros, wide, a, Scalar::U32)
    }

    /// Lowers `ReverseBits` or `SwapBytes` of an integer of any width.
    fn reversed(&mut self, op: Unary, ty: Scalar, a: MaybeConst) -> MaybeConst {
        let (wide, a) = self.widened(ty, a);
        let reordered = self.unary(op, wide, a);
        if wide == ty {
            return reordered;
        }
        let above = self.number(Scalar::U32, u64::from(wide.bits() - ty.bits()));
        let low = self.binary(Binary::Shr, wide, reordered, above);
        self.cast(low, wide, ty)
    }

    fn rotate(&mut self, ty: Scalar, a: MaybeConst, distance: MaybeConst) -> MaybeConst {
        if Binary::RotateLeft.takes(ty) {
            return self.binary(Binary::RotateLeft, ty, a, distance);
        }
        // Shifts take the amount modulo the width, so a shift by −n moves in the bits from the
        // other side.
        let bare = unsigned(ty);
        let a = self.cast(a, ty, bare);
        let none = self.number(Scalar::U32, 0);
        let back = self.binary(Binary::WrappingSub, Scalar::U32, none, distance);
        let high = self.binary(Binary::WrappingShl, bare, a, distance);
        let low = self.binary(Binary::WrappingShr, bare, a, back);
        let reordered = self.binary(Binary::Or, bare, high, low);
        self.cast(reordered, bare, ty)
    }

    pub(super) fn unary(&mut self, op: Unary, ty: Scalar, a: MaybeConst) -> MaybeConst {
        self.unary_to(op, ty, a, ty)
    }

    fn unary_to(&mut self, op: Unary, ty: Scalar, a: MaybeConst, to: Scalar) -> MaybeConst {
        if ty == Scalar::U128 {
            return self.double_unary(op, a);
        }
        MaybeConst::new(self.builder.scalar(Op::Unary(op, a.value), to), known_unary(op, ty, a))
    }

    pub(super) fn select(&mut self, ty: Scalar, condition: MaybeConst, yes: MaybeConst, no: MaybeConst) -> MaybeConst {
        if ty == Scalar::U128 {
            return self.double_select(condition, yes, no);
        }
        let op = Op::Select { condition: condition.value, yes: yes.value, no: no.value };
        let bits = condition.bits.and_then(|c| if c != 0 { yes.bits } else { no.bits });
        MaybeConst::new(self.builder.scalar(op, ty), bits)
    }

    pub(super) fn bits_as(&mut self, a: MaybeConst, to: Scalar) -> MaybeConst {
        MaybeConst::unknown(self.builder.scalar(Op::Bitcast(a.value), to))
    }

    /// Lowers a constant with these bits; bits beyond the width of the type are dropped.
    pub(super) fn number(&mut self, ty: Scalar, bits: u64) -> MaybeConst {
        if ty == Scalar::U128 {
            return self.double_number(bits.into());
        }
        MaybeConst::new(self.builder.constant(ty, bits), Some(bits & ty.mask()))
    }

    /// Lowers the constant of an integer type with all bits set.
    pub(super) fn all_ones(&mut self, ty: Scalar) -> MaybeConst {
        match ty {
            Scalar::U128 => self.double_number(u128::MAX),
            _ => self.number(ty, u64::MAX),
        }
    }

    pub(super) fn float(&mut self, ty: Scalar, x: f64) -> MaybeConst {
        self.number(ty, if ty == Scalar::F32 { u64::from((x as f32).to_bits()) } else { x.to_bits() })
    }
}

/// Returns the unsigned type of the same width.
pub(super) fn unsigned(ty: Scalar) -> Scalar {
    match ty {
        Scalar::I8 => Scalar::U8,
        Scalar::I16 => Scalar::U16,
        Scalar::I32 => Scalar::U32,
        Scalar::I64 => Scalar::U64,
        other => other,
    }
}

/// Returns the constant bits of `op a` for an unsigned 32-bit `a`, if known, so that shapes can
/// depend on them.
fn known_unary(op: Unary, ty: Scalar, a: MaybeConst) -> Option<u64> {
    if !matches!(ty, Scalar::Usize | Scalar::U32) {
        return None;
    }
    let x = a.bits? as u32;
    Some(u64::from(match op {
        Unary::Not => !x,
        Unary::CountOnes => x.count_ones(),
        Unary::LeadingZeros => x.leading_zeros(),
        Unary::ReverseBits => x.reverse_bits(),
        Unary::SwapBytes => x.swap_bytes(),
        _ => return None,
    }))
}
