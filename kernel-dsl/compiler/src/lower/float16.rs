//! Conversions of `Float16` formats: [`Float16Format::decode`] and [`Float16Format::encode`], made
//! of integer and `f32` operations.
//!
//! A bfloat16 is the upper half of an `f32`. Most other formats lie within the range of `f32`. To
//! decode them, the code is shifted to the exponent and fraction of an `f32`, and one exact product
//! corrects the bias, also for subnormal numbers. To encode, one sum rounds the dropped bits, and
//! another rounds those of subnormal numbers. For the remaining formats, significand and exponent
//! are handled separately.

use super::lowerer::Lowerer;
use crate::Scalar;
use crate::float16::{Float16Format, Float16Policy, NAN, power};
use crate::ir::{Binary, Bits, Comparison, Op, Unary, Value};

const SIZE: u32 = 0x7FFF_FFFF;
const SIGN: u32 = 0x8000_0000;

impl Lowerer<'_> {
    /// Returns the `f32` of a code, a `u16`.
    pub(super) fn decoded(&mut self, format: Float16Format, code: Value) -> Value {
        if is_head(format) {
            let code = self.builder.scalar(Op::Cast(code), Scalar::U32);
            let bits = self.binary_bits(Binary::Shl, code, 16);
            return self.builder.scalar(Op::Bitcast(bits), Scalar::F32);
        }
        let shift = 23 - format.fraction();
        let near = format.exponent() <= 8 && (0..=253).contains(&format.bias());
        if !near || format.exponent() == 8 && format.policy() != Float16Policy::Ieee {
            return self.decoded_far(format, code);
        }
        // Sign-extended, so that the sign is shifted too.
        let code = self.builder.scalar(Op::Bitcast(code), Scalar::I16);
        let code = self.builder.scalar(Op::Cast(code), Scalar::I32);
        let wide = self.builder.scalar(Op::Bitcast(code), Scalar::U32);
        let placed = self.binary_bits(Binary::Shl, wide, shift);
        let placed = self.binary_bits(Binary::And, placed, SIGN | u32::from(NAN) << shift);
        let x = self.builder.scalar(Op::Bitcast(placed), Scalar::F32);
        let scale = self.real(power(127 - format.bias()));
        let y = self.builder.scalar(Op::Binary(Binary::Mul, x, scale), Scalar::F32);
        if format.exponent() == 8 {
            return y;
        }
        let size = self.builder.scalar(Op::Unary(Unary::Abs, x), Scalar::F32);
        if format.policy() == Float16Policy::Ieee {
            let infinity = self.real(f32::from_bits(u32::from(format.infinity()) << shift));
            let beyond = self.builder.compare(Comparison::Ge, size, infinity);
            let bits = self.builder.scalar(Op::Bitcast(y), Scalar::U32);
            let all = self.binary_bits(Binary::Or, bits, f32::INFINITY.to_bits());
            let all = self.builder.scalar(Op::Bitcast(all), Scalar::F32);
            return self.select_value(Scalar::F32, beyond, all, y);
        }
        let highest = self.real(f32::from_bits(u32::from(NAN) << shift));
        let is_nan = self.builder.compare(Comparison::Eq, size, highest);
        let nan = self.real(f32::NAN);
        self.select_value(Scalar::F32, is_nan, nan, y)
    }

    fn decoded_far(&mut self, format: Float16Format, code: Value) -> Value {
        let fraction = format.fraction();
        let code = self.builder.scalar(Op::Cast(code), Scalar::U32);
        let size = self.binary_bits(Binary::And, code, u32::from(NAN));
        let field = self.binary_bits(Binary::Shr, size, fraction);
        let low = self.binary_bits(Binary::And, size, (1 << fraction) - 1);
        let normal = self.compare_bits(Comparison::Ne, field, 0);
        let digits = self.binary_bits(Binary::Or, low, 1 << fraction);
        let digits = self.select_value(Scalar::U32, normal, digits, low);
        let digits = self.builder.scalar(Op::Cast(digits), Scalar::F32);
        let field = self.binary_bits(Binary::Max, field, 1);
        // The exponent split into two powers of two, as `factors` computes them.
        let field = self.builder.scalar(Op::Bitcast(field), Scalar::I32);
        let offset = self.integer(-(format.bias() + fraction as i32));
        let exponent = self.builder.scalar(Op::Binary(Binary::WrappingAdd, field, offset), Scalar::I32);
        let (least, most) = (self.integer(-240), self.integer(240));
        let exponent = self.builder.scalar(Op::Binary(Binary::Max, exponent, least), Scalar::I32);
        let exponent = self.builder.scalar(Op::Binary(Binary::Min, exponent, most), Scalar::I32);
        let one = self.builder.constant(Scalar::U32, 1);
        let half = self.builder.scalar(Op::Binary(Binary::Shr, exponent, one), Scalar::I32);
        let rest = self.builder.scalar(Op::Binary(Binary::WrappingSub, exponent, half), Scalar::I32);
        let mut y = digits;
        for exponent in [half, rest] {
            let bias = self.integer(127);
            let field = self.builder.scalar(Op::Binary(Binary::WrappingAdd, exponent, bias), Scalar::I32);
            let field = self.builder.scalar(Op::Bitcast(field), Scalar::U32);
            let bits = self.binary_bits(Binary::Shl, field, 23);
            let power = self.builder.scalar(Op::Bitcast(bits), Scalar::F32);
            y = self.builder.scalar(Op::Binary(Binary::Mul, y, power), Scalar::F32);
        }
        let infinite = u32::from(if format.policy() == Float16Policy::Ieee { format.infinity() } else { NAN });
        if format.policy() == Float16Policy::Ieee {
            let at = self.compare_bits(Comparison::Eq, size, infinite);
            let infinity = self.real(f32::INFINITY);
            y = self.select_value(Scalar::F32, at, infinity, y);
        }
        let how = if format.policy() == Float16Policy::Ieee { Comparison::Gt } else { Comparison::Eq };
        let is_nan = self.compare_bits(how, size, infinite);
        let nan = self.real(f32::NAN);
        y = self.select_value(Scalar::F32, is_nan, nan, y);
        let bits = self.builder.scalar(Op::Bitcast(y), Scalar::U32);
        let sign = self.binary_bits(Binary::And, code, 0x8000);
        let sign = self.binary_bits(Binary::Shl, sign, 16);
        let bits = self.builder.scalar(Op::Binary(Binary::Or, bits, sign), Scalar::U32);
        self.builder.scalar(Op::Bitcast(bits), Scalar::F32)
    }

    /// Lowers the code of an `f32`, as a `u32`, rounded to nearest or towards zero.
    pub(super) fn encoded(&mut self, format: Float16Format, x: Value, truncate: bool) -> Value {
        let bits = self.builder.scalar(Op::Bitcast(x), Scalar::U32);
        let nan = self.builder.constant(Scalar::U32, NAN.into());
        if is_head(format) {
            // A carry increments the exponent, up to infinity.
            let rounded = if truncate { bits } else { self.rounded(bits, 16) };
            let code = self.binary_bits(Binary::Shr, rounded, 16);
            let is_nan = self.builder.compare(Comparison::Ne, x, x);
            return self.select_value(Scalar::U32, is_nan, nan, code);
        }
        let size = self.binary_bits(Binary::And, bits, SIZE);
        let code = if near(format) {
            self.encoded_near(format, x, size, truncate)
        } else {
            self.encoded_far(format, size, truncate)
        };
        let code = self.limited(format, size, code, truncate);
        let sign = self.binary_bits(Binary::Shr, bits, 16);
        let sign = self.binary_bits(Binary::And, sign, 0x8000);
        let signed = self.builder.scalar(Op::Binary(Binary::Or, code, sign), Scalar::U32);
        // The NaN of the format has no sign.
        let is_nan = match format.policy() {
            Float16Policy::Finite => self.compare_bits(Comparison::Ge, code, NAN.into()),
            _ => self.builder.compare(Comparison::Ne, x, x),
        };
        self.select_value(Scalar::U32, is_nan, nan, signed)
    }

    /// Lowers the sum that rounds a value to nearest even before its last `drop` bits are dropped.
    fn rounded(&mut self, bits: Value, drop: u32) -> Value {
        let last = self.binary_bits(Binary::Shr, bits, drop);
        let last = self.binary_bits(Binary::And, last, 1);
        let sum = self.binary_bits(Binary::WrappingAdd, bits, (1 << (drop - 1)) - 1);
        self.builder.scalar(Op::Binary(Binary::WrappingAdd, sum, last), Scalar::U32)
    }

    /// Lowers the code without sign; above [`Float16Format::largest`] if the value is too large.
    fn encoded_near(&mut self, format: Float16Format, x: Value, size: Value, truncate: bool) -> Value {
        let (drop, bias) = (23 - format.fraction(), format.bias());
        let top = (1 << format.exponent()) - i32::from(format.policy() == Float16Policy::Ieee) - bias;
        // All values from here on are too large. The clamp keeps a rounding carry within 32 bits.
        let clamped = self.binary_bits(Binary::Min, size, power(top).to_bits());
        let rebased = self.binary_bits(Binary::WrappingSub, clamped, (127 - bias as u32) << 23);
        let normal = if truncate { rebased } else { self.rounded(rebased, drop) };
        let normal = self.binary_bits(Binary::Shr, normal, drop);
        // Subnormal numbers are multiples of 2 to the 1 − bias − fraction.
        let unit = 1 - bias - format.fraction() as i32;
        let absolute = self.builder.scalar(Op::Unary(Unary::Abs, x), Scalar::F32);
        let small = if truncate {
            let scale = self.real(power(-unit));
            let units = self.builder.scalar(Op::Binary(Binary::Mul, absolute, scale), Scalar::F32);
            self.builder.scalar(Op::Cast(units), Scalar::U32)
        } else {
            let anchor = power(unit + 23);
            let shift = self.real(anchor);
            let sum = self.builder.scalar(Op::Binary(Binary::Add, absolute, shift), Scalar::F32);
            let bits = self.builder.scalar(Op::Bitcast(sum), Scalar::U32);
            self.binary_bits(Binary::WrappingSub, bits, anchor.to_bits())
        };
        let is_small = self.compare_bits(Comparison::Lt, size, power(1 - bias).to_bits());
        self.select_value(Scalar::U32, is_small, small, normal)
    }

    fn encoded_far(&mut self, format: Float16Format, size: Value, truncate: bool) -> Value {
        let fraction = format.fraction();
        let field = self.binary_bits(Binary::Shr, size, 23);
        let low = self.binary_bits(Binary::And, size, 0x7F_FFFF);
        let digits = self.binary_bits(Binary::Or, low, 0x80_0000);
        let normal = self.compare_bits(Comparison::Ne, field, 0);
        let digits = self.select_value(Scalar::U32, normal, digits, low);
        let exponent = self.binary_bits(Binary::Max, field, 1);
        // The significand normalized to at least 2²³; zero stays zero.
        let zeros = self.builder.scalar(Op::Unary(Unary::LeadingZeros, digits), Scalar::U32);
        let up = self.binary_bits(Binary::WrappingSub, zeros, 8);
        let digits = self.builder.scalar(Op::Binary(Binary::Shl, digits, up), Scalar::U32);
        let exponent = self.builder.scalar(Op::Binary(Binary::WrappingSub, exponent, up), Scalar::U32);
        let exponent = self.binary_bits(Binary::WrappingAdd, exponent, (format.bias() - 127) as u32);
        let exponent = self.builder.scalar(Op::Bitcast(exponent), Scalar::I32);
        // Clamped: a value far too large is still too large, and the shifted field does not
        // overflow.
        let most = self.integer((1 << format.exponent()) + 1);
        let exponent = self.builder.scalar(Op::Binary(Binary::Min, exponent, most), Scalar::I32);
        let one = self.integer(1);
        let raised = self.builder.scalar(Op::Binary(Binary::Max, exponent, one), Scalar::I32);
        let below = self.builder.scalar(Op::Binary(Binary::WrappingSub, raised, exponent), Scalar::I32);
        let limit = self.integer(26);
        let below = self.builder.scalar(Op::Binary(Binary::Min, below, limit), Scalar::I32);
        let below = self.builder.scalar(Op::Bitcast(below), Scalar::U32);
        let drop = self.binary_bits(Binary::WrappingAdd, below, 23 - fraction);
        let drop = self.binary_bits(Binary::Min, drop, 31);
        let raised = self.builder.scalar(Op::Bitcast(raised), Scalar::U32);
        let base = self.binary_bits(Binary::WrappingSub, raised, 1);
        let base = self.binary_bits(Binary::Shl, base, fraction);
        let mut kept = digits;
        if !truncate {
            // The last kept bit, and half of the dropped part minus one.
            let one = self.builder.constant(Scalar::U32, 1);
            let length = self.builder.constant(Scalar::U32, 1);
            let operands = [digits, drop, length].into_iter().collect();
            let last = self.builder.scalar(Op::Bits(Bits::Extract, operands), Scalar::U32);
            let above = self.binary_bits(Binary::WrappingSub, drop, 1);
            let half = self.builder.scalar(Op::Binary(Binary::Shl, one, above), Scalar::U32);
            let half = self.binary_bits(Binary::WrappingSub, half, 1);
            let sum = self.builder.scalar(Op::Binary(Binary::WrappingAdd, digits, half), Scalar::U32);
            kept = self.builder.scalar(Op::Binary(Binary::WrappingAdd, sum, last), Scalar::U32);
        }
        let kept = self.builder.scalar(Op::Binary(Binary::Shr, kept, drop), Scalar::U32);
        let code = self.builder.scalar(Op::Binary(Binary::WrappingAdd, base, kept), Scalar::U32);
        // Zero has no significand and no exponent.
        let zero = self.builder.constant(Scalar::U32, 0);
        let any = self.compare_bits(Comparison::Ne, size, 0);
        let code = self.select_value(Scalar::U32, any, code, zero);
        // An infinity or a NaN, whatever the exponent range.
        let infinite = self.compare_bits(Comparison::Ge, size, f32::INFINITY.to_bits());
        let beyond = self.builder.constant(Scalar::U32, 0x8000);
        self.select_value(Scalar::U32, infinite, beyond, code)
    }

    /// Lowers the replacement of a code that is too large.
    fn limited(&mut self, format: Float16Format, size: Value, code: Value, truncate: bool) -> Value {
        let largest = u32::from(format.largest());
        match (format.policy(), truncate) {
            (Float16Policy::Saturating, _) => self.binary_bits(Binary::Min, code, largest),
            (Float16Policy::Ieee, false) => self.binary_bits(Binary::Min, code, format.infinity().into()),
            (Float16Policy::Finite, false) => self.binary_bits(Binary::Min, code, NAN.into()),
            (policy, true) => {
                let code = self.binary_bits(Binary::Min, code, largest);
                let infinite = self.compare_bits(Comparison::Ge, size, f32::INFINITY.to_bits());
                let bits = if policy == Float16Policy::Ieee { format.infinity() } else { NAN };
                let beyond = self.builder.constant(Scalar::U32, bits.into());
                self.select_value(Scalar::U32, infinite, beyond, code)
            }
        }
    }

    /// Lowers `a op b` of `u32` values.
    fn binary_bits(&mut self, op: Binary, a: Value, b: u32) -> Value {
        let b = self.builder.constant(Scalar::U32, b.into());
        self.builder.scalar(Op::Binary(op, a, b), Scalar::U32)
    }

    fn compare_bits(&mut self, how: Comparison, a: Value, b: u32) -> Value {
        let b = self.builder.constant(Scalar::U32, b.into());
        self.builder.compare(how, a, b)
    }

    pub(super) fn select_value(&mut self, ty: Scalar, condition: Value, yes: Value, no: Value) -> Value {
        self.builder.scalar(Op::Select { condition, yes, no }, ty)
    }

    fn real(&mut self, x: f32) -> Value {
        self.builder.constant(Scalar::F32, x.to_bits().into())
    }

    fn integer(&mut self, n: i32) -> Value {
        self.builder.constant(Scalar::I32, u64::from(n as u32))
    }
}

/// Returns whether the codes of the format are the upper 16 bits of an `f32`.
fn is_head(format: Float16Format) -> bool {
    format.exponent() == 8 && format.bias() == 127 && format.policy() == Float16Policy::Ieee
}

/// Returns whether all intermediate values of encoding are normal numbers of `f32`.
fn near(format: Float16Format) -> bool {
    let (bias, fraction) = (format.bias(), format.fraction() as i32);
    let top = (1 << format.exponent()) - bias;
    (1..=126).contains(&bias) && top <= 127 && bias + fraction - 1 <= 126
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float16::factors;

    /// Checks that both ways of splitting an exponent give the same product.
    #[test]
    fn halves_of_an_exponent_are_powers_of_two() {
        for exponent in -240..=240 {
            let [a, b] = factors(exponent).map(f64::from);
            assert_eq!(a * b, 2f64.powi(exponent));
            let low = exponent >> 1;
            assert_eq!(f64::from(power(low)) * f64::from(power(exponent - low)), 2f64.powi(exponent));
        }
    }
}
