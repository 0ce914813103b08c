//! `u128`: arithmetic on two words of 64 bits.
//!
//! A `u128` is a [`MaybeConst`] with an upper word. The IR has no such type, so every operation on
//! it is lowered here to operations on `u64`. Overflow and a zero divisor are mistakes that the
//! oracle reports, as for a `u64`. Operators without `wrapping_` therefore use IR operators that
//! report: one of them overflows exactly if the operation on `u128` does. The report shows words
//! instead of the whole operands.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::Val;
use crate::Scalar;
use crate::assertion::{MessagePart, Style, escaped, pieces};
use crate::hir::Expr;
use crate::ir::{Binary, Bits, Comparison, Op, Unary, Value};

const WORD: Scalar = Scalar::U64;
const WORD_BITS: u64 = 64;
/// The sign bit of a signed word, and the largest distance of a shift within a word.
const LAST_BIT: u64 = WORD_BITS - 1;

impl Lowerer<'_> {
    /// Reports an error and returns true if a collective operation on numbers gets a `u128`.
    pub(super) fn is_double(&mut self, e: &Expr) -> bool {
        let double = self.scalar_type(e.ty) == Scalar::U128;
        if double {
            self.error_with_help(
                e.span,
                "this operation supports numbers of 32 or 64 bits, not `u128`",
                "use `reduce`, which takes values of any type and the function that combines two",
            );
        }
        double
    }

    /// Returns the `u128` of two words.
    pub(super) fn double(&self, low: MaybeConst, high: MaybeConst) -> MaybeConst {
        MaybeConst { high: Some(high.value), ..MaybeConst::unknown(low.value) }
    }

    /// Returns the `u128` of the next two words.
    pub(super) fn joined(&self, words: &mut dyn Iterator<Item = Value>) -> Val {
        match (words.next(), words.next()) {
            (Some(low), high) => Val::Scalar(MaybeConst { high, ..MaybeConst::unknown(low) }),
            _ => Val::Unit,
        }
    }

    /// Lowers a `u128` constant.
    pub(super) fn double_number(&mut self, n: u128) -> MaybeConst {
        let (low, high) = (self.number(WORD, n as u64), self.number(WORD, (n >> WORD_BITS) as u64));
        self.double(low, high)
    }

    /// Returns the low and the high word of a `u128`.
    fn halves(&mut self, a: MaybeConst) -> [MaybeConst; 2] {
        let high = a.high.unwrap_or_else(|| self.number(WORD, 0).value);
        [a.value, high].map(MaybeConst::unknown)
    }

    fn word_binary(&mut self, op: Binary, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        self.binary(op, WORD, a, b)
    }

    fn word_compare(&mut self, comparison: Comparison, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        self.compare(comparison, WORD, a, b)
    }

    /// Lowers a shift of a word by a constant below 64.
    fn word_shift(&mut self, op: Binary, a: MaybeConst, distance: u64) -> MaybeConst {
        let distance = self.number(Scalar::U32, distance);
        self.word_binary(op, a, distance)
    }

    fn logic(&mut self, op: Binary, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        self.binary(op, Scalar::Bool, a, b)
    }

    /// Lowers the test that a word is not zero.
    fn is_some_bit(&mut self, a: MaybeConst) -> MaybeConst {
        let zero = self.number(WORD, 0);
        self.word_compare(Comparison::Ne, a, zero)
    }

    /// Lowers `a` op `b`. The distance `b` of a shift is a `u32`.
    pub(super) fn double_binary(&mut self, op: Binary, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        use Binary::*;
        if op.is_shift() {
            return self.double_shift(op, a, b);
        }
        match op {
            Add | WrappingAdd | Sub | WrappingSub => self.double_sum(op, a, b),
            Mul | WrappingMul => self.double_product(op, a, b),
            Div => self.double_quotient(a, b),
            Rem => {
                let quotient = self.double_quotient(a, b);
                let whole = self.double_product(WrappingMul, quotient, b);
                self.double_sum(WrappingSub, a, whole)
            }
            Min | Max => {
                let less = self.double_compare(Comparison::Lt, a, b);
                let (yes, no) = if op == Min { (a, b) } else { (b, a) };
                self.double_select(less, yes, no)
            }
            _ => {
                let ([a_low, a_high], [b_low, b_high]) = (self.halves(a), self.halves(b));
                let (low, high) = (self.word_binary(op, a_low, b_low), self.word_binary(op, a_high, b_high));
                self.double(low, high)
            }
        }
    }

    /// Lowers a sum or difference. The high words overflow exactly if the `u128` does.
    fn double_sum(&mut self, op: Binary, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        let ([a_low, a_high], [b_low, b_high]) = (self.halves(a), self.halves(b));
        let (low, carry) = if matches!(op, Binary::Add | Binary::WrappingAdd) {
            let low = self.word_binary(Binary::WrappingAdd, a_low, b_low);
            (low, self.word_compare(Comparison::Lt, low, a_low))
        } else {
            let low = self.word_binary(Binary::WrappingSub, a_low, b_low);
            (low, self.word_compare(Comparison::Lt, a_low, b_low))
        };
        let carry = self.cast(carry, Scalar::Bool, WORD);
        let high = self.word_binary(op, a_high, b_high);
        let high = self.word_binary(op, high, carry);
        self.double(low, high)
    }

    fn word_product_high(&mut self, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        let operands = [a.value, b.value].into_iter().collect();
        MaybeConst::unknown(self.builder.scalar(Op::Bits(Bits::MultiplyHigh, operands), WORD))
    }

    /// Lowers a product.
    fn double_product(&mut self, op: Binary, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        let add = if op == Binary::Mul { Binary::Add } else { Binary::WrappingAdd };
        let ([a_low, a_high], [b_low, b_high]) = (self.halves(a), self.halves(b));
        let low = self.word_binary(Binary::WrappingMul, a_low, b_low);
        let high = self.word_product_high(a_low, b_low);
        let first = self.word_binary(op, a_low, b_high);
        let second = self.word_binary(op, a_high, b_low);
        let high = self.word_binary(add, high, first);
        let high = self.word_binary(add, high, second);
        if op == Binary::Mul {
            // The product of the high words must be zero. The difference below has no use and
            // only reports.
            let (zero, both) = (self.number(WORD, 0), self.are_both_nonzero(a_high, b_high));
            let both = self.cast(both, Scalar::Bool, WORD);
            self.word_binary(Binary::Sub, zero, both);
        }
        self.double(low, high)
    }

    fn are_both_nonzero(&mut self, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        let (a, b) = (self.is_some_bit(a), self.is_some_bit(b));
        self.logic(Binary::And, a, b)
    }

    /// Lowers the wrapped product, and whether it overflowed.
    pub(super) fn double_product_overflow(&mut self, a: MaybeConst, b: MaybeConst) -> (MaybeConst, MaybeConst) {
        let product = self.double_product(Binary::WrappingMul, a, b);
        let ([a_low, a_high], [b_low, b_high]) = (self.halves(a), self.halves(b));
        let mut over = self.are_both_nonzero(a_high, b_high);
        let mut sum = self.word_product_high(a_low, b_low);
        for (x, y) in [(a_low, b_high), (a_high, b_low)] {
            let beyond = self.word_product_high(x, y);
            let beyond = self.is_some_bit(beyond);
            let part = self.word_binary(Binary::WrappingMul, x, y);
            sum = self.word_binary(Binary::WrappingAdd, sum, part);
            let carry = self.word_compare(Comparison::Lt, sum, part);
            let either = self.logic(Binary::Or, beyond, carry);
            over = self.logic(Binary::Or, over, either);
        }
        (product, over)
    }

    /// Lowers a shift by a `u32`, modulo 128.
    fn double_shift(&mut self, op: Binary, a: MaybeConst, distance: MaybeConst) -> MaybeConst {
        let left = matches!(op, Binary::Shl | Binary::WrappingShl);
        let ([low, high], zero) = (self.halves(a), self.number(WORD, 0));
        // The word that bits leave, and the word that they enter.
        let (from, to) = if left { (low, high) } else { (high, low) };
        let (out, back) = match left {
            true => (Binary::WrappingShl, Binary::WrappingShr),
            false => (Binary::WrappingShr, Binary::WrappingShl),
        };
        let (from, to) = match distance.bits.map(|n| n % (2 * WORD_BITS)) {
            Some(0) => (from, to),
            Some(n @ WORD_BITS..) => (zero, self.word_shift(out, from, n - WORD_BITS)),
            Some(n) => {
                let entering = self.word_shift(back, from, WORD_BITS - n);
                let kept = self.word_shift(out, to, n);
                (self.word_shift(out, from, n), self.word_binary(Binary::Or, kept, entering))
            }
            None => {
                if matches!(op, Binary::Shl | Binary::Shr) {
                    // Half of the distance is at least 64 exactly if the distance is at least 128.
                    // The shift has no use and only reports.
                    let one = self.number(Scalar::U32, 1);
                    let half = self.binary(Binary::WrappingShr, Scalar::U32, distance, one);
                    self.word_binary(op, from, half);
                }
                // Shifts of a word take the distance modulo 64.
                let rest = self.unary(Unary::Not, Scalar::U32, distance);
                let word = self.number(Scalar::U32, WORD_BITS);
                let crossing = self.binary(Binary::And, Scalar::U32, distance, word);
                let none = self.number(Scalar::U32, 0);
                let crossing = self.compare(Comparison::Ne, Scalar::U32, crossing, none);
                // A shift by 64 − n in two steps, 1 and 63 − n, because n may be 0.
                let entering = self.word_shift(back, from, 1);
                let entering = self.word_binary(back, entering, rest);
                let kept = self.word_binary(out, to, distance);
                let kept = self.word_binary(Binary::Or, kept, entering);
                let moved = self.word_binary(out, from, distance);
                (self.select(WORD, crossing, zero, moved), self.select(WORD, crossing, moved, kept))
            }
        };
        if left { self.double(from, to) } else { self.double(to, from) }
    }

    pub(super) fn double_compare(&mut self, comparison: Comparison, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        let (comparison, a, b) = match comparison {
            Comparison::Gt | Comparison::Ge => (comparison.mirrored(), b, a),
            other => (other, a, b),
        };
        let ([a_low, a_high], [b_low, b_high]) = (self.halves(a), self.halves(b));
        let low = self.word_compare(comparison, a_low, b_low);
        match comparison {
            Comparison::Eq | Comparison::Ne => {
                let high = self.word_compare(comparison, a_high, b_high);
                self.logic(if comparison == Comparison::Eq { Binary::And } else { Binary::Or }, low, high)
            }
            _ => {
                let less = self.word_compare(Comparison::Lt, a_high, b_high);
                let equal = self.word_compare(Comparison::Eq, a_high, b_high);
                let low = self.logic(Binary::And, equal, low);
                self.logic(Binary::Or, less, low)
            }
        }
    }

    pub(super) fn double_select(&mut self, condition: MaybeConst, yes: MaybeConst, no: MaybeConst) -> MaybeConst {
        let ([yes_low, yes_high], [no_low, no_high]) = (self.halves(yes), self.halves(no));
        let low = self.select(WORD, condition, yes_low, no_low);
        let high = self.select(WORD, condition, yes_high, no_high);
        self.double(low, high)
    }

    /// Lowers an operator of one operand. Counting operators give a `u32`.
    pub(super) fn double_unary(&mut self, op: Unary, a: MaybeConst) -> MaybeConst {
        let [low, high] = self.halves(a);
        match op {
            Unary::CountOnes => {
                let (low, high) = (self.counted(op, WORD, low), self.counted(op, WORD, high));
                self.binary(Binary::WrappingAdd, Scalar::U32, low, high)
            }
            Unary::LeadingZeros => {
                let (above, below) = (self.counted(op, WORD, high), self.counted(op, WORD, low));
                let word = self.number(Scalar::U32, WORD_BITS);
                let below = self.binary(Binary::WrappingAdd, Scalar::U32, below, word);
                let within = self.is_some_bit(high);
                self.select(Scalar::U32, within, above, below)
            }
            Unary::ReverseBits | Unary::SwapBytes => {
                let (low, high) = (self.unary(op, WORD, low), self.unary(op, WORD, high));
                self.double(high, low)
            }
            _ => {
                let (low, high) = (self.unary(op, WORD, low), self.unary(op, WORD, high));
                self.double(low, high)
            }
        }
    }

    /// Lowers `as` from or to a `u128`.
    pub(super) fn double_cast(&mut self, a: MaybeConst, from: Scalar, to: Scalar) -> MaybeConst {
        match (from, to) {
            (Scalar::U128, to) if to.is_float() => self.double_to_float(a, to),
            (Scalar::U128, to) => {
                let [low, _] = self.halves(a);
                self.cast(low, WORD, to)
            }
            (from, _) if from.is_float() => {
                let double = self.cast(a, from, Scalar::F64);
                self.double_from_float(double)
            }
            (from, _) if from.is_signed() => {
                let wide = self.cast(a, from, Scalar::I64);
                let last = self.number(Scalar::U32, LAST_BIT);
                let sign = self.binary(Binary::Shr, Scalar::I64, wide, last);
                let (low, high) = (self.cast(wide, Scalar::I64, WORD), self.cast(sign, Scalar::I64, WORD));
                self.double(low, high)
            }
            (from, _) => {
                let (low, high) = (self.cast(a, from, WORD), self.number(WORD, 0));
                self.double(low, high)
            }
        }
    }

    /// Lowers the nearest float. The 64 leading bits are rounded once; the last of them is also set
    /// if any bit below is. The scaling by a power of two is exact.
    fn double_to_float(&mut self, a: MaybeConst, to: Scalar) -> MaybeConst {
        let zeros = self.double_unary(Unary::LeadingZeros, a);
        let shifted = self.double_shift(Binary::WrappingShl, a, zeros);
        let [below, leading] = self.halves(shifted);
        let sticky = self.is_some_bit(below);
        let sticky = self.cast(sticky, Scalar::Bool, WORD);
        let leading = self.word_binary(Binary::Or, leading, sticky);
        let leading = self.cast(leading, WORD, to);
        // The bits of 2^(64 − zeros).
        let (bits, fraction, bias) = match to {
            Scalar::F32 => (Scalar::U32, 23, 127),
            _ => (WORD, 52, 1023),
        };
        let exponent = self.number(Scalar::U32, bias + WORD_BITS);
        let exponent = self.binary(Binary::WrappingSub, Scalar::U32, exponent, zeros);
        let exponent = self.cast(exponent, Scalar::U32, bits);
        let fraction = self.number(Scalar::U32, fraction);
        let scale = self.binary(Binary::WrappingShl, bits, exponent, fraction);
        let scale = self.bits_as(scale, to);
        self.binary(Binary::Mul, to, leading, scale)
    }

    /// Lowers the integer part of an `f64`. Values out of range saturate, and a NaN gives 0.
    fn double_from_float(&mut self, x: MaybeConst) -> MaybeConst {
        const WORD_RANGE: f64 = 18_446_744_073_709_551_616.0;
        let ty = Scalar::F64;
        let (range, below) = (self.float(ty, WORD_RANGE), self.float(ty, 1.0 / WORD_RANGE));
        let high = self.binary(Binary::Mul, ty, x, below);
        let high = self.cast(high, ty, WORD);
        // All products and differences are exact.
        let upper = self.cast(high, WORD, ty);
        let upper = self.binary(Binary::Mul, ty, upper, range);
        let low = self.binary(Binary::Sub, ty, x, upper);
        let low = self.cast(low, ty, WORD);
        let limit = self.float(ty, WORD_RANGE * WORD_RANGE);
        let beyond = self.compare(Comparison::Ge, ty, x, limit);
        let all = self.number(WORD, u64::MAX);
        let low = self.select(WORD, beyond, all, low);
        self.double(low, high)
    }

    /// Lowers a quotient without branches, so that equal quotients are computed once.
    ///
    /// A divisor of one word gives a digit for each word of the dividend, and a divisor of two
    /// words gives one digit. The last digit is a quotient of two words by a normalized word. For a
    /// long divisor that word is its leading 64 bits, and the digit is at most one too large: see
    /// Hacker's Delight, second edition.
    fn double_quotient(&mut self, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        use Binary::{Max, Or, WrappingAdd, WrappingMul, WrappingShl, WrappingShr, WrappingSub};
        let ([a_low, a_high], [b_low, b_high]) = (self.halves(a), self.halves(b));
        let (zero, one) = (self.number(WORD, 0), self.number(WORD, 1));
        let long = self.is_some_bit(b_high);
        // The upper digit for a divisor of one word. Only a zero divisor divides by zero.
        let divisor = self.select(WORD, long, one, b_low);
        let upper = self.word_binary(Binary::Div, a_high, divisor);
        let whole = self.word_binary(WrappingMul, upper, divisor);
        let rest = self.word_binary(WrappingSub, a_high, whole);
        // The normalized divisor.
        let leading = self.select(WORD, long, b_high, b_low);
        let leading = self.word_binary(Max, leading, one);
        let zeros = self.counted(Unary::LeadingZeros, WORD, leading);
        let last = self.number(Scalar::U32, LAST_BIT);
        let others = self.binary(Binary::Xor, Scalar::U32, zeros, last);
        let normalized = self.word_binary(WrappingShl, leading, zeros);
        let entering = self.word_shift(WrappingShr, b_low, 1);
        let entering = self.word_binary(WrappingShr, entering, others);
        let entering = self.select(WORD, long, entering, zero);
        let normalized = self.word_binary(Or, normalized, entering);
        // The dividend: the remainder and the lower word, shifted like the divisor; for a divisor
        // of two words, half of the dividend.
        let scaled = self.word_binary(WrappingShl, rest, zeros);
        let entering = self.word_shift(WrappingShr, a_low, 1);
        let entering = self.word_binary(WrappingShr, entering, others);
        let scaled = self.word_binary(Or, scaled, entering);
        let half_high = self.word_shift(WrappingShr, a_high, 1);
        let scaled = self.select(WORD, long, half_high, scaled);
        let scaled_low = self.word_binary(WrappingShl, a_low, zeros);
        let (half, top) = (self.word_shift(WrappingShr, a_low, 1), self.word_shift(WrappingShl, a_high, LAST_BIT));
        let half_low = self.word_binary(Or, half, top);
        let scaled_low = self.select(WORD, long, half_low, scaled_low);
        let digit = self.word_quotient([scaled_low, scaled], normalized);
        // With two words in the divisor: the digit of the whole dividend, corrected by one.
        let estimate = self.word_binary(WrappingShr, digit, others);
        let some = self.is_some_bit(estimate);
        let some = self.cast(some, Scalar::Bool, WORD);
        let estimate = self.word_binary(WrappingSub, estimate, some);
        let pair = self.double(estimate, zero);
        let whole = self.double_product(WrappingMul, pair, b);
        let rest = self.double_sum(WrappingSub, a, whole);
        let more = self.double_compare(Comparison::Ge, rest, b);
        let more = self.cast(more, Scalar::Bool, WORD);
        let corrected = self.word_binary(WrappingAdd, estimate, more);
        let low = self.select(WORD, long, corrected, digit);
        let high = self.select(WORD, long, zero, upper);
        self.double(low, high)
    }

    /// Lowers the quotient of two words by a word with its highest bit set, which is larger than
    /// the high word: two digits of 32 bits, each estimated from the upper half of the divisor.
    fn word_quotient(&mut self, [low, high]: [MaybeConst; 2], divisor: MaybeConst) -> MaybeConst {
        use Binary::{And, Or, WrappingAdd, WrappingMul, WrappingShl, WrappingShr, WrappingSub};
        const HALF: u64 = WORD_BITS / 2;
        let mask = self.number(WORD, Scalar::U32.mask());
        let (upper, lower) = (self.word_shift(WrappingShr, divisor, HALF), self.word_binary(And, divisor, mask));
        let digits = [self.word_shift(WrappingShr, low, HALF), self.word_binary(And, low, mask)];
        let (mut rest, mut quotient) = (high, self.number(WORD, 0));
        for next in digits {
            let mut digit = self.word_binary(Binary::Div, rest, upper);
            let whole = self.word_binary(WrappingMul, digit, upper);
            let mut left = self.word_binary(WrappingSub, rest, whole);
            // The estimate is at most two too large.
            for _ in 0..2 {
                let product = self.word_binary(WrappingMul, digit, lower);
                let part = self.word_shift(WrappingShl, left, HALF);
                let part = self.word_binary(Or, part, next);
                let large = self.word_compare(Comparison::Gt, product, part);
                let wide = self.word_compare(Comparison::Gt, digit, mask);
                let large = self.logic(Or, large, wide);
                let fits = self.word_compare(Comparison::Le, left, mask);
                let large = self.logic(And, large, fits);
                let step = self.cast(large, Scalar::Bool, WORD);
                digit = self.word_binary(WrappingSub, digit, step);
                let back = self.word_binary(WrappingMul, step, upper);
                left = self.word_binary(WrappingAdd, left, back);
            }
            let shifted = self.word_shift(WrappingShl, rest, HALF);
            let shifted = self.word_binary(WrappingAdd, shifted, next);
            let whole = self.word_binary(WrappingMul, digit, divisor);
            rest = self.word_binary(WrappingSub, shifted, whole);
            let shifted = self.word_shift(WrappingShl, quotient, HALF);
            quotient = self.word_binary(WrappingAdd, shifted, digit);
        }
        quotient
    }
}

/// Returns the words of a value that a message shows: of a `u128` the high one first.
pub(super) fn shown_words(k: MaybeConst) -> impl Iterator<Item = Value> {
    k.high.into_iter().chain([k.value])
}

/// Returns a message with a place for each word of the values that are a `u128`.
pub(super) fn with_words(message: &str, doubles: &[bool]) -> String {
    let mut doubles = doubles.iter();
    let pieces = pieces(message).unwrap_or_default().into_iter().map(|piece| match piece {
        MessagePart::Text(text) => escaped(&text),
        MessagePart::Value { style, .. } => {
            let place = style.unwrap_or(Style::Decimal).placeholder();
            if doubles.next() == Some(&true) { format!("{place} * 2^64 + {place}") } else { place.to_string() }
        }
    });
    pieces.collect()
}
