//! Floats of 16 bits of any layout: a sign, an exponent of 2 to 10 bits with any bias, and a fraction.
//!
//! A code's exponent field 0 is zero and the subnormal numbers, as in IEEE 754. What the highest one is, and what becomes of
//! what is too large, the [`Policy`] says. There is one NaN to write, the code 0x7FFF; zero has a sign.
//!
//! Decoding gives the `f32` nearest to the value (the value itself, but for exponents of 9 and 10 bits and biases far from
//! those of `f32`). These functions are what the host computes by; lowering writes the same out in integers and `f32`.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The one NaN that encoding writes.
pub const NAN: u16 = 0x7FFF;

/// What the highest exponent is, and what becomes of what is too large.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Policy {
    /// As in IEEE 754: infinities and NaNs; what is too large is an infinity.
    Ieee,
    /// Numbers, but for the highest code, the NaN; what is too large, and an infinity, is a NaN.
    Finite,
    /// The same codes; what is too large, and an infinity, is the largest number of its sign.
    Saturating,
}

/// A layout.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Format {
    exponent: u8,
    bias: i16,
    policy: Policy,
}

impl Format {
    /// The layout with that many bits of exponent, 2 to 10, and that bias; `None` beyond.
    pub const fn new(exponent: u32, bias: i32, policy: Policy) -> Option<Format> {
        if exponent < 2 || exponent > 10 || bias < i16::MIN as i32 || bias > i16::MAX as i32 {
            return None;
        }
        Some(Format { exponent: exponent as u8, bias: bias as i16, policy })
    }

    /// A number of its own among all layouts, from 1 on.
    pub const fn number(self) -> u32 {
        1 + (self.policy as u32 | (self.exponent as u32) << 2 | (self.bias as u16 as u32) << 6)
    }

    /// Bits of the exponent.
    pub const fn exponent(self) -> u32 {
        self.exponent as u32
    }

    /// What an exponent's field is more than the exponent.
    pub const fn bias(self) -> i32 {
        self.bias as i32
    }

    /// What the highest exponent is.
    pub const fn policy(self) -> Policy {
        self.policy
    }

    /// Bits of the fraction.
    pub const fn fraction(self) -> u32 {
        15 - self.exponent()
    }

    /// Whether it is IEEE's binary16, which the hardware converts.
    pub const fn is_binary16(self) -> bool {
        self.exponent == 5 && self.bias == 15 && matches!(self.policy, Policy::Ieee)
    }

    /// The code of infinity, where there is one: that of the highest exponent.
    pub const fn infinity(self) -> u16 {
        ((1 << self.exponent()) - 1) << self.fraction()
    }

    /// The code of the largest number.
    pub const fn largest(self) -> u16 {
        match self.policy {
            Policy::Ieee => self.infinity() - 1,
            Policy::Finite | Policy::Saturating => NAN - 1,
        }
    }

    /// The `f32` nearest to the value of a code.
    pub const fn decode(self, code: u16) -> f32 {
        let magnitude = code & 0x7FFF;
        let size = match self.policy {
            Policy::Ieee if magnitude == self.infinity() => f32::INFINITY,
            Policy::Ieee if magnitude > self.infinity() => f32::NAN,
            Policy::Finite | Policy::Saturating if magnitude == NAN => f32::NAN,
            _ => self.size(magnitude),
        };
        if code & 0x8000 != 0 { -size } else { size }
    }

    /// The value of a code without sign that is a number.
    const fn size(self, magnitude: u16) -> f32 {
        let field = (magnitude >> self.fraction()) as i32;
        let fraction = (magnitude & ((1 << self.fraction()) - 1)) as u32;
        let (digits, field) = if field == 0 { (fraction, 1) } else { (fraction | 1 << self.fraction(), field) };
        let [low, high] = factors(field - self.bias() - self.fraction() as i32);
        // The first product is exact, so that it is rounded once.
        digits as f32 * low * high
    }

    /// The code nearest to `x`, ties to even.
    pub const fn encode(self, x: f32) -> u16 {
        self.code(x, false)
    }

    /// The code of `x` with what does not fit cut off: towards zero, and never beyond the largest number.
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
        // digits · 2^(exponent − 23), digits from 2²³ on.
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
            Policy::Ieee => sign | self.infinity(),
            Policy::Finite => NAN,
            Policy::Saturating => sign | self.largest(),
        }
    }
}

/// Two powers of two whose product is 2 to the `exponent`, or so far out that the product with up to 16 bits is 0 or infinite
/// all the same.
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

/// 2 to the `exponent`, from −126 to 127.
pub(crate) const fn power(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Float16<{}, {}", self.exponent, self.bias)?;
        match self.policy {
            Policy::Ieee => f.write_str(">"),
            policy => write!(f, ", {policy:?}>"),
        }
    }
}
