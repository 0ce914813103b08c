//! The conversions of `cvt`.

use super::float::{Exact, F64, FloatFormat, FloatValue, Rounding, RoundingMode};
use super::integer::IntegerFormat;

/// Rounds a number to an integer. Returns `None` if the integer has more than 127 bits.
fn integral(x: Exact, rounding: Rounding) -> Option<i128> {
    if x.significand == 0 {
        return Some(0);
    }
    let magnitude = if x.exponent >= 0 {
        let room = x.significand.leading_zeros() as i32;
        if x.exponent >= room {
            return None;
        }
        x.significand << x.exponent
    } else {
        let dropped = -x.exponent;
        let (kept, rest) = match dropped {
            ..128 => (x.significand >> dropped, x.significand << (128 - dropped)),
            // The number is nonzero and far below ½, so the smallest rest has the same effect.
            _ => (0, 1),
        };
        let half = rest.cmp(&(1 << 127));
        let odd = kept & 1 == 1;
        let away = match rounding {
            Rounding::Nearest => half.is_gt() || half.is_eq() && odd,
            Rounding::Zero => false,
            Rounding::Down => x.negative,
            Rounding::Up => !x.negative,
        };
        kept + u128::from(rest != 0 && away)
    };
    let value = i128::try_from(magnitude).ok()?;
    Some(if x.negative { -value } else { value })
}

/// Converts a float to an integer: rounds and clamps to the range. A NaN becomes 0, or the highest
/// bit if 64 bits are involved.
pub fn to_integer(from: FloatFormat, to: IntegerFormat, bits: u64, rounding: Rounding) -> u64 {
    match from.decode(bits) {
        FloatValue::Nan if from == F64 || to.bits == 64 => 1 << (to.bits - 1),
        FloatValue::Nan => 0,
        FloatValue::Infinite { negative } => to.wrap(if negative { to.least() } else { to.greatest() }),
        FloatValue::Finite(x) => match integral(x, rounding) {
            Some(value) => to.clamp(value),
            None => to.wrap(if x.negative { to.least() } else { to.greatest() }),
        },
    }
}

/// Converts an integer to a float.
pub fn from_integer(from: IntegerFormat, to: FloatFormat, word: u64, rounding: Rounding) -> u64 {
    let value = from.value(word);
    to.encode(Exact { negative: value < 0, significand: value.unsigned_abs(), exponent: 0 }, rounding)
}

/// Converts a float to another format.
pub fn to_float(from: FloatFormat, to: FloatFormat, bits: u64, how: impl Into<RoundingMode>) -> u64 {
    match from.decode(bits) {
        FloatValue::Nan => to.nan_from(from, bits),
        FloatValue::Infinite { negative } => to.infinity() | if negative { to.sign() } else { 0 },
        FloatValue::Finite(x) => to.encode(x, how),
    }
}

/// Rounds a float to an integral float of the same format; a zero keeps its sign.
pub fn to_integral(format: FloatFormat, bits: u64, rounding: Rounding) -> u64 {
    match format.decode(bits) {
        FloatValue::Nan => format.nan_of([bits]),
        // With a nonnegative exponent, the number is an integer already.
        FloatValue::Finite(x) if x.exponent < 0 => {
            let value = integral(x, rounding).unwrap_or(0);
            let whole = Exact { negative: x.negative, significand: value.unsigned_abs(), exponent: 0 };
            format.encode(whole, Rounding::Nearest)
        }
        _ => bits & (format.sign() | (format.sign() - 1)),
    }
}
