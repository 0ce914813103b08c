//! IEEE 754 arithmetic in integers: any rounding, any binary format of at most 64 bits.
//!
//! An operation computes its result exactly, or with a sticky last bit, and rounds once.

use std::cmp::Ordering;

/// A rounding direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// `.rn`: to nearest, ties to even.
    Nearest,
    /// `.rz`: toward zero.
    Zero,
    /// `.rm`: toward −∞.
    Down,
    /// `.rp`: toward +∞.
    Up,
}

impl Rounding {
    /// All roundings.
    #[cfg(test)]
    pub const ALL: [Rounding; 4] = [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up];

    /// Returns whether a magnitude between two neighbors is rounded to the greater one.
    ///
    /// `odd` is the last bit of the lesser neighbor. `rest` compares the magnitude with the middle
    /// between the neighbors.
    fn away(self, negative: bool, odd: bool, rest: Ordering) -> bool {
        match self {
            Rounding::Nearest => rest == Ordering::Greater || rest == Ordering::Equal && odd,
            Rounding::Zero => false,
            Rounding::Down => negative,
            Rounding::Up => !negative,
        }
    }
}

/// The conversion of an exact result to a representable number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundingMode {
    /// The rounding direction.
    pub rounding: Rounding,
    /// `.ftz`: whether a result below the smallest normal number becomes a zero of its sign.
    pub flush: bool,
}

impl From<Rounding> for RoundingMode {
    fn from(rounding: Rounding) -> RoundingMode {
        RoundingMode { rounding, flush: false }
    }
}

/// A binary interchange format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FloatFormat {
    exponent: u32,
    fraction: u32,
}

/// Half precision.
pub const F16: FloatFormat = FloatFormat { exponent: 5, fraction: 10 };
/// The upper half of single precision.
pub const BF16: FloatFormat = FloatFormat { exponent: 8, fraction: 7 };
/// Single precision.
pub const F32: FloatFormat = FloatFormat { exponent: 8, fraction: 23 };
/// The upper half of double precision.
pub const F64_UPPER: FloatFormat = FloatFormat { exponent: 11, fraction: 20 };
/// Double precision.
pub const F64: FloatFormat = FloatFormat { exponent: 11, fraction: 52 };

/// The value that bits represent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FloatValue {
    /// Not a number.
    Nan,
    /// An infinity.
    #[allow(missing_docs)]
    Infinite { negative: bool },
    /// A finite number.
    Finite(Exact),
}

/// ±significand · 2^exponent. Zero has a sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Exact {
    pub negative: bool,
    pub significand: u128,
    pub exponent: i32,
}

impl Exact {
    /// Returns the exponent of the highest bit of a nonzero number.
    fn top(self) -> i32 {
        self.exponent + 127 - self.significand.leading_zeros() as i32
    }

    /// Returns the significand rounded to a multiple of 2^dropped, divided by 2^dropped. A negative
    /// `dropped` appends zeros.
    fn without(self, dropped: i32, rounding: Rounding) -> u64 {
        let significand = self.significand;
        if dropped <= 0 {
            return (significand << -dropped) as u64;
        }
        let kept = if dropped > 127 { 0 } else { (significand >> dropped) as u64 };
        let rest = match dropped {
            ..128 => (significand << (128 - dropped)).cmp(&(1 << 127)),
            128 => significand.cmp(&(1 << 127)),
            _ => Ordering::Less,
        };
        let exact = dropped < 128 && significand << (128 - dropped) == 0;
        kept + u64::from(!exact && rounding.away(self.negative, kept & 1 == 1, rest))
    }
}

impl FloatFormat {
    const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    const fn fraction_mask(self) -> u64 {
        (1 << self.fraction) - 1
    }

    /// Returns the bits of +∞.
    pub const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// Returns the sign bit.
    pub const fn sign(self) -> u64 {
        1 << (self.exponent + self.fraction)
    }

    /// Returns the NaN that the hardware produces from operands that are not NaNs.
    pub const fn nan(self) -> u64 {
        if self.fraction == F64.fraction { self.sign() | self.infinity() | self.quiet() } else { self.sign() - 1 }
    }

    /// Returns the bit that makes a NaN quiet.
    const fn quiet(self) -> u64 {
        1 << (self.fraction - 1)
    }

    /// Returns the NaN result of an operation on these operands. In `f64`, the hardware keeps the
    /// sign and payload of the last operand that is a NaN, and makes the NaN quiet. In other
    /// formats, every resulting NaN has the same bits.
    pub fn nan_of<const N: usize>(self, operands: [u64; N]) -> u64 {
        match operands.into_iter().rev().find(|x| self.is_nan(*x)) {
            Some(nan) if self.fraction == F64.fraction => nan | self.quiet(),
            _ => self.nan(),
        }
    }

    /// Converts a NaN of another format to a NaN of this format.
    pub const fn nan_from(self, format: FloatFormat, bits: u64) -> u64 {
        if self.fraction != F64.fraction {
            return self.nan();
        }
        let sign = if bits & format.sign() != 0 { self.sign() } else { 0 };
        let payload = (bits & format.fraction_mask()) << (self.fraction - format.fraction);
        sign | self.infinity() | self.quiet() | payload
    }

    /// Returns the bits of one.
    pub const fn one(self) -> u64 {
        (self.bias() as u64) << self.fraction
    }

    /// Returns whether these bits represent a NaN.
    pub const fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.infinity()
    }

    /// Returns whether the number is nonzero and below the smallest normal one.
    pub const fn is_subnormal(self, bits: u64) -> bool {
        bits & self.infinity() == 0 && bits & self.fraction_mask() != 0
    }

    /// Applies `.ftz`: a subnormal becomes a zero of its sign.
    pub const fn flush(self, bits: u64) -> u64 {
        if self.is_subnormal(bits) { bits & self.sign() } else { bits }
    }

    /// Applies `.sat`: clamps to [+0, 1]; a NaN becomes +0.
    pub const fn saturate(self, bits: u64) -> u64 {
        if self.is_nan(bits) || bits & self.sign() != 0 {
            0
        } else if bits > self.one() {
            self.one()
        } else {
            bits
        }
    }

    fn signed(self, negative: bool, magnitude: u64) -> u64 {
        if negative { self.sign() | magnitude } else { magnitude }
    }

    /// Returns the value that the low bits of `bits` represent.
    pub fn decode(self, bits: u64) -> FloatValue {
        let negative = bits & self.sign() != 0;
        let biased = (bits & self.infinity()) >> self.fraction;
        let fraction = bits & self.fraction_mask();
        let least = 1 - self.bias() - self.fraction as i32;
        if self.is_nan(bits) {
            FloatValue::Nan
        } else if bits & self.infinity() == self.infinity() {
            FloatValue::Infinite { negative }
        } else if biased == 0 {
            FloatValue::Finite(Exact { negative, significand: fraction.into(), exponent: least })
        } else {
            let significand = u128::from(fraction | 1 << self.fraction);
            FloatValue::Finite(Exact { negative, significand, exponent: least + biased as i32 - 1 })
        }
    }

    /// Returns the number rounded to this format. The last bit of a significand may be sticky, if
    /// the significand has at least two bits more than the format: that bit then represents
    /// everything below it.
    pub fn encode(self, number: Exact, how: impl Into<RoundingMode>) -> u64 {
        let RoundingMode { rounding, flush } = how.into();
        let Exact { negative, significand, exponent } = number;
        if significand == 0 || flush && self.is_tiny(number, rounding) {
            return self.signed(negative, 0);
        }
        // The weight of the result's last bit.
        let mut last = number.top().max(1 - self.bias()) - self.fraction as i32;
        let mut kept = number.without(last - exponent, rounding);
        if kept >> (self.fraction + 1) != 0 {
            kept >>= 1;
            last += 1;
        }
        if kept >> self.fraction == 0 {
            return self.signed(negative, kept);
        }
        let biased = last + self.fraction as i32 + self.bias();
        if biased >= (1 << self.exponent) - 1 {
            let finite = match rounding {
                Rounding::Nearest => false,
                Rounding::Zero => true,
                Rounding::Down => !negative,
                Rounding::Up => negative,
            };
            return self.signed(negative, self.infinity() - u64::from(finite));
        }
        self.signed(negative, (biased as u64) << self.fraction | kept & self.fraction_mask())
    }

    /// Returns whether a nonzero number, rounded to the format's precision with an unbounded
    /// exponent, is below the smallest normal number. The hardware flushes exactly these results.
    fn is_tiny(self, number: Exact, rounding: Rounding) -> bool {
        let below = 1 - self.bias() - number.top();
        let dropped = number.top() - self.fraction as i32 - number.exponent;
        below > 1 || below == 1 && number.without(dropped, rounding) >> (self.fraction + 1) == 0
    }

    fn infinite(self, negative: bool) -> u64 {
        self.signed(negative, self.infinity())
    }

    /// Computes a + b.
    pub fn add(self, a: u64, b: u64, how: impl Into<RoundingMode>) -> u64 {
        self.sum(self.decode(a), self.decode(b), how.into()).unwrap_or_else(|| self.nan_of([a, b]))
    }

    /// Computes a − b.
    pub fn sub(self, a: u64, b: u64, how: impl Into<RoundingMode>) -> u64 {
        self.sum(self.decode(a), self.decode(b ^ self.sign()), how.into()).unwrap_or_else(|| self.nan_of([a, b]))
    }

    /// Computes a · b.
    pub fn mul(self, a: u64, b: u64, how: impl Into<RoundingMode>) -> u64 {
        match product(self.decode(a), self.decode(b)) {
            FloatValue::Nan => self.nan_of([a, b]),
            FloatValue::Infinite { negative } => self.infinite(negative),
            FloatValue::Finite(x) => self.encode(x, how),
        }
    }

    /// Computes a · b + c, rounded once.
    pub fn fma(self, a: u64, b: u64, c: u64, how: impl Into<RoundingMode>) -> u64 {
        let product = product(self.decode(a), self.decode(b));
        self.sum(product, self.decode(c), how.into()).unwrap_or_else(|| self.nan_of([a, c, b]))
    }

    /// Returns a + b, or `None` for a NaN.
    fn sum(self, a: FloatValue, b: FloatValue, how: RoundingMode) -> Option<u64> {
        match (a, b) {
            (FloatValue::Nan, _) | (_, FloatValue::Nan) => None,
            (FloatValue::Infinite { negative: a }, FloatValue::Infinite { negative: b }) if a != b => None,
            (FloatValue::Infinite { negative }, _) | (_, FloatValue::Infinite { negative }) => {
                Some(self.infinite(negative))
            }
            (FloatValue::Finite(a), FloatValue::Finite(b)) => Some(self.encode(finite_sum(a, b, how.rounding), how)),
        }
    }

    /// Computes a / b.
    pub fn div(self, a: u64, b: u64, how: impl Into<RoundingMode>) -> u64 {
        let negative = (a ^ b) & self.sign() != 0;
        match (self.decode(a), self.decode(b)) {
            (FloatValue::Nan, _) | (_, FloatValue::Nan) => self.nan_of([b, a]),
            (FloatValue::Infinite { .. }, FloatValue::Infinite { .. }) => self.nan(),
            (FloatValue::Infinite { .. }, _) => self.infinite(negative),
            (_, FloatValue::Infinite { .. }) => self.signed(negative, 0),
            (FloatValue::Finite(a), FloatValue::Finite(b)) if b.significand == 0 => {
                if a.significand == 0 {
                    self.nan()
                } else {
                    self.infinite(negative)
                }
            }
            (FloatValue::Finite(a), FloatValue::Finite(b)) => {
                // At most 53 bits each: the quotient has at least 70.
                let (a, b) = (normalized(a, 124), normalized(b, 53));
                let (quotient, rest) = (a.significand / b.significand, a.significand % b.significand);
                let significand = quotient | u128::from(rest != 0);
                self.encode(Exact { negative, significand, exponent: a.exponent - b.exponent }, how)
            }
        }
    }

    /// Computes √a.
    pub fn sqrt(self, a: u64, how: impl Into<RoundingMode>) -> u64 {
        match self.decode(a) {
            FloatValue::Finite(x) if x.significand == 0 => a,
            FloatValue::Infinite { negative: false } => self.infinity(),
            FloatValue::Finite(x) if !x.negative => {
                let x = normalized(x, 124);
                // The exponent must be even.
                let odd = x.exponent & 1;
                let significand = x.significand << odd;
                let root = significand.isqrt();
                let significand = root | u128::from(root * root != significand);
                self.encode(Exact { negative: false, significand, exponent: (x.exponent - odd) / 2 }, how)
            }
            _ => self.nan_of([a]),
        }
    }

    /// Compares a with b; `None` if one is a NaN.
    pub fn compare(self, a: u64, b: u64) -> Option<Ordering> {
        if self.is_nan(a) || self.is_nan(b) {
            return None;
        }
        // Sign and magnitude as two's complement; both zeros are 0.
        let key = |x: u64| {
            let magnitude = (x & (self.sign() - 1)) as i64;
            if x & self.sign() != 0 { -magnitude } else { magnitude }
        };
        Some(key(a).cmp(&key(b)))
    }

    /// Returns the lesser number, with −0 below +0. If one is a NaN, the result is the other.
    pub fn min(self, a: u64, b: u64) -> u64 {
        self.extreme(a, b, Ordering::Less)
    }

    /// Returns the greater number, with −0 below +0. If one is a NaN, the result is the other.
    pub fn max(self, a: u64, b: u64) -> u64 {
        self.extreme(a, b, Ordering::Greater)
    }

    fn extreme(self, a: u64, b: u64, wanted: Ordering) -> u64 {
        match (self.is_nan(a), self.is_nan(b), self.compare(a, b)) {
            (true, true, _) => self.nan_of([a, b]),
            (true, ..) => b,
            (_, true, _) => a,
            (.., Some(Ordering::Equal)) => {
                // Zeros of different signs, or identical bits.
                if wanted == Ordering::Less { a | b } else { a & b }
            }
            (.., order) => {
                if order == Some(wanted) {
                    a
                } else {
                    b
                }
            }
        }
    }
}

/// Returns the same number with `bits` bits of significand. The number must be nonzero and have at
/// most that many bits.
fn normalized(x: Exact, bits: u32) -> Exact {
    let shift = x.significand.leading_zeros() as i32 - (128 - bits as i32);
    Exact { significand: x.significand << shift, exponent: x.exponent - shift, ..x }
}

/// Computes a · b exactly: each has at most 53 bits.
fn product(a: FloatValue, b: FloatValue) -> FloatValue {
    match (a, b) {
        (FloatValue::Nan, _) | (_, FloatValue::Nan) => FloatValue::Nan,
        (FloatValue::Finite(a), FloatValue::Finite(b)) => FloatValue::Finite(Exact {
            negative: a.negative != b.negative,
            significand: a.significand * b.significand,
            exponent: a.exponent + b.exponent,
        }),
        (FloatValue::Infinite { .. }, FloatValue::Finite(x)) | (FloatValue::Finite(x), FloatValue::Infinite { .. })
            if x.significand == 0 =>
        {
            FloatValue::Nan
        }
        (a, b) => FloatValue::Infinite { negative: is_negative(a) != is_negative(b) },
    }
}

fn is_negative(x: FloatValue) -> bool {
    match x {
        FloatValue::Nan => false,
        FloatValue::Infinite { negative } => negative,
        FloatValue::Finite(x) => x.negative,
    }
}

/// Computes a + b, where each has at most 106 bits. The last bit of the result is sticky.
fn finite_sum(a: Exact, b: Exact, rounding: Rounding) -> Exact {
    if a.significand == 0 && b.significand == 0 {
        let negative = if a.negative == b.negative { a.negative } else { rounding == Rounding::Down };
        return Exact { negative, ..a };
    }
    if a.significand == 0 {
        return b;
    }
    if b.significand == 0 {
        return a;
    }
    // 126 bits leave one bit for the carry. The bits that the lesser operand loses affect only the
    // sticky last bit.
    let (a, b) = (normalized(a, 126), normalized(b, 126));
    let (greater, lesser) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
    let distance = (greater.exponent - lesser.exponent) as u32;
    let moved = match distance {
        0 => lesser.significand,
        1..128 => {
            let lost = lesser.significand << (128 - distance) != 0;
            lesser.significand >> distance | u128::from(lost)
        }
        _ => 1,
    };
    let signed = |x: u128, negative: bool| if negative { -(x as i128) } else { x as i128 };
    let sum = signed(greater.significand, greater.negative) + signed(moved, lesser.negative);
    let negative = if sum == 0 { rounding == Rounding::Down } else { sum < 0 };
    Exact { negative, significand: sum.unsigned_abs(), exponent: greater.exponent }
}
