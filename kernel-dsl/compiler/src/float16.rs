//! 16-bit floats of any format: a sign, an exponent of 2 to 10 bits with any bias, and a fraction.
//!
//! As in IEEE 754, exponent field 0 encodes zero and the subnormal numbers, and zero has a sign.
//! The [`Float16Policy`] defines the highest exponent field and the encoding of values that are too
//! large. Encoding writes one NaN, the code 0x7FFF.
//!
//! Decoding gives the `f32` nearest to the value. The result is exact, except for exponents of 9
//! and 10 bits and biases far from that of `f32`. The host uses these functions; lowering expresses
//! the same computation in integer and `f32` operations.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The code of the NaN that encoding writes.
pub const NAN: u16 = 0x7FFF;

/// The meaning of the highest exponent field, and the encoding of values that are too large.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Float16Policy {
    /// The rules of IEEE 754: the highest exponent encodes infinities and NaNs. Values that are too
    /// large become an infinity.
    Ieee,
    /// The highest exponent encodes numbers, except for the highest code, which is NaN. Values that
    /// are too large, and infinities, become NaN.
    Finite,
    /// The codes of `Finite`. Values that are too large, and infinities, saturate to the largest
    /// number of the same sign.
    Saturating,
}

/// A format.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Float16Format {
    exponent: u8,
    bias: i16,
    policy: Float16Policy,
}

impl Float16Format {
    /// Returns the format with this number of exponent bits (2 to 10) and this bias; `None` if out
    /// of range.
    pub const fn new(exponent: u32, bias: i32, policy: Float16Policy) -> Option<Float16Format> {
        if exponent < 2 || exponent > 10 || bias < i16::MIN as i32 || bias > i16::MAX as i32 {
            return None;
        }
        Some(Float16Format { exponent: exponent as u8, bias: bias as i16, policy })
    }

    /// Returns a number, from 1, that identifies the format.
    pub const fn number(self) -> u32 {
        1 + (self.policy as u32 | (self.exponent as u32) << 2 | (self.bias as u16 as u32) << 6)
    }

    /// Returns the number of exponent bits.
    pub const fn exponent(self) -> u32 {
        self.exponent as u32
    }

    /// Returns the bias: the exponent field minus the exponent.
    pub const fn bias(self) -> i32 {
        self.bias as i32
    }

    /// Returns the policy.
    pub const fn policy(self) -> Float16Policy {
        self.policy
    }

    /// Returns the number of fraction bits.
    pub const fn fraction(self) -> u32 {
        15 - self.exponent()
    }

    /// Returns whether the format is IEEE binary16, which the hardware converts.
    pub const fn is_binary16(self) -> bool {
        self.exponent == 5 && self.bias == 15 && matches!(self.policy, Float16Policy::Ieee)
    }

    /// Returns the code with the highest exponent field and fraction 0, which is infinity if the
    /// format has one.
    pub const fn infinity(self) -> u16 {
        ((1 << self.exponent()) - 1) << self.fraction()
    }

    /// Returns the code of the largest number.
    pub const fn largest(self) -> u16 {
        match self.policy {
            Float16Policy::Ieee => self.infinity() - 1,
            Float16Policy::Finite | Float16Policy::Saturating => NAN - 1,
        }
    }

    /// Returns the `f32` nearest to the value of a code.
    pub const fn decode(self, code: u16) -> f32 {
        let magnitude = code & 0x7FFF;
        let size = match self.policy {
            Float16Policy::Ieee if magnitude == self.infinity() => f32::INFINITY,
            Float16Policy::Ieee if magnitude > self.infinity() => f32::NAN,
            Float16Policy::Finite | Float16Policy::Saturating if magnitude == NAN => f32::NAN,
            _ => self.size(magnitude),
        };
        if code & 0x8000 != 0 { -size } else { size }
    }

    /// Returns the value of a code without sign that encodes a number.
    const fn size(self, magnitude: u16) -> f32 {
        let field = (magnitude >> self.fraction()) as i32;
        let fraction = (magnitude & ((1 << self.fraction()) - 1)) as u32;
        let (digits, field) = if field == 0 { (fraction, 1) } else { (fraction | 1 << self.fraction(), field) };
        let [low, high] = factors(field - self.bias() - self.fraction() as i32);
        // The first product is exact, so the result is rounded only once.
        digits as f32 * low * high
    }

    /// Returns the code nearest to `x`, ties to even.
    pub const fn encode(self, x: f32) -> u16 {
        self.code(x, false)
    }

    /// Returns the code of `x` rounded towards zero, at most the largest number.
    pub const fn truncate(self, x: f32) -> u16 {
        self.code(x, true)
    }

    const fn code(self, x: f32, truncate: bool) -> u16 {
        if x.is_nan() {
            return NAN;
        }
        let sign = (x.to_bits() >> 16) as u16 & 0x8000;
        let magnitude = x.to_bits() & 0x7FFF_FFFF;
        if magnitude == 0 {
            return sign;
        }
        let finite = x.is_finite();
        // The value is digits · 2^(exponent − 23) with digits ≥ 2²³.
        let (digits, exponent) = match magnitude >> 23 {
            0 => (magnitude, -126),
            field => (magnitude & 0x7F_FFFF | 0x80_0000, field as i32 - 127),
        };
        let up = digits.leading_zeros() - 8;
        let (digits, exponent) = (digits << up, exponent - up as i32);
        let field = exponent + self.bias();
        let (base, below) = if field < 1 { (0, 1 - field) } else { ((field as u64 - 1) << self.fraction(), 0) };
        let drop = 23 - self.fraction() as i32 + below;
        let size = if drop > 25 {
            0
        } else {
            let (kept, rest, half) = (digits >> drop, digits & ((1 << drop) - 1), 1 << (drop - 1));
            let more = !truncate && (rest > half || rest == half && kept & 1 == 1);
            base + kept as u64 + more as u64
        };
        if finite && size <= self.largest() as u64 {
            return sign | size as u16;
        }
        match self.policy {
            _ if truncate && finite => sign | self.largest(),
            Float16Policy::Ieee => sign | self.infinity(),
            Float16Policy::Finite => NAN,
            Float16Policy::Saturating => sign | self.largest(),
        }
    }
}

/// Returns two powers of two whose product is 2^`exponent`. For extreme exponents the factors are
/// saturated. The product of both with a number of up to 16 bits is then still correct: 0 or
/// infinity.
pub(crate) const fn factors(exponent: i32) -> [f32; 2] {
    let exponent = if exponent < -240 {
        -240
    } else if exponent > 240 {
        240
    } else {
        exponent
    };
    let low = exponent / 2;
    [power(low), power(exponent - low)]
}

/// Returns 2^`exponent`, for −126 to 127.
pub(crate) const fn power(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

impl fmt::Display for Float16Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Float16<{}, {}", self.exponent, self.bias)?;
        match self.policy {
            Float16Policy::Ieee => f.write_str(">"),
            policy => write!(f, ", {policy:?}>"),
        }
    }
}
