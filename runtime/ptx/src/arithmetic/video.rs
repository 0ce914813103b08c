//! Video instructions: operations on one part of a word, or on two halves or four bytes at once.

use super::integer::IntegerFormat;

/// An operation on two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum VideoOperation {
    Add,
    Subtract,
    Average,
    Difference,
    Min,
    Max,
}

impl VideoOperation {
    /// Computes the exact result.
    pub fn of(self, a: i64, b: i64) -> i64 {
        match self {
            VideoOperation::Add => a + b,
            VideoOperation::Subtract => a - b,
            // Rounded to nearest, ties away from zero.
            VideoOperation::Average => (a + b + i64::from(a + b >= 0)) >> 1,
            VideoOperation::Difference => (a - b).abs(),
            VideoOperation::Min => a.min(b),
            VideoOperation::Max => a.max(b),
        }
    }
}

/// A part of a word: `bits` bits from `shift`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct WordPart {
    pub shift: u32,
    pub bits: u32,
}

impl WordPart {
    /// The whole word.
    pub const WHOLE: WordPart = WordPart { shift: 0, bits: 32 };

    /// Returns the number that the part of a word represents.
    pub fn value(self, word: u32, signed: bool) -> i64 {
        IntegerFormat { bits: self.bits, signed }.value(u64::from(word) >> self.shift) as i64
    }

    /// Returns the word with this part replaced.
    pub fn put(self, value: i128, into: u32) -> u32 {
        let mask = (u32::MAX >> (32 - self.bits)) << self.shift;
        into & !mask | (value as u32) << self.shift & mask
    }

    /// Clamps a number to the range of the part.
    pub fn clamp(self, value: i128, signed: bool) -> i128 {
        let range = IntegerFormat { bits: self.bits, signed };
        value.clamp(range.least(), range.greatest())
    }
}

/// The secondary operation of a scalar instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Second {
    /// None: the result is the low 32 bits.
    None,
    /// The result replaces this part of c.
    Merge(WordPart),
    /// Adds c.
    Add,
    /// The lesser of the result and c.
    Min,
    /// The greater of the result and c.
    Max,
}

impl Second {
    /// Applies the secondary operation to the result.
    pub fn of(self, result: i128, c: u32, saturate: bool, signed: bool) -> u32 {
        let part = if let Second::Merge(part) = self { part } else { WordPart::WHOLE };
        let result = if saturate { part.clamp(result, signed) } else { result };
        let word = IntegerFormat { bits: 32, signed };
        let (x, y) = (word.value(result as u32 as u64), word.value(c.into()));
        match self {
            Second::None => result as u32,
            Second::Merge(part) => part.put(result, c),
            Second::Add => (result as u32).wrapping_add(c),
            Second::Min => x.min(y) as u32,
            Second::Max => x.max(y) as u32,
        }
    }
}

/// The operands and results of an operation on several parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parts {
    /// Width of a part in bits: 16 or 8.
    pub bits: u32,
    /// For each part, from the lowest: the left operand among the parts of a and then b.
    pub left: [u8; 4],
    /// For each part, from the lowest: the right operand among the parts of a and then b.
    pub right: [u8; 4],
    /// The computed parts, a bit for each.
    pub mask: u32,
    /// Whether all results are added to c, instead of replacing its parts.
    pub accumulate: bool,
}

impl Parts {
    /// Returns the result, where `f` computes each pair of numbers.
    pub fn of(self, [a, b, c]: [u32; 3], signed: [bool; 2], f: impl Fn(WordPart, i64, i64) -> i128) -> u32 {
        let both = u64::from(b) << 32 | u64::from(a);
        let pick = |number: u8, signed: bool| {
            WordPart { shift: 0, bits: self.bits }.value((both >> (u32::from(number) * self.bits)) as u32, signed)
        };
        let mut result = c;
        for place in 0..32 / self.bits {
            if self.mask >> place & 1 == 0 {
                continue;
            }
            let part = WordPart { shift: place * self.bits, bits: self.bits };
            let value =
                f(part, pick(self.left[place as usize], signed[0]), pick(self.right[place as usize], signed[1]));
            result = if self.accumulate { result.wrapping_add(value as u32) } else { part.put(value, result) };
        }
        result
    }
}

/// The variant of `vmad`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MulAdd {
    /// Whether the product is negated.
    pub negate_product: bool,
    /// Whether c is negated.
    pub negate_c: bool,
    /// `.po`: whether one is added.
    pub plus_one: bool,
    /// Distance of the right shift, in bits.
    pub scale: u32,
    /// Whether the result saturates to its range.
    pub saturate: bool,
    /// Whether the result is signed.
    pub signed: bool,
}

impl MulAdd {
    /// Computes a · b + c.
    pub fn of(self, a: i64, b: i64, c: u32) -> u32 {
        let word = IntegerFormat { bits: 32, signed: self.signed };
        let product = i128::from(a) * i128::from(b);
        let product = if self.negate_product { -product } else { product };
        let c = word.value(c.into());
        let sum = product + if self.negate_c { -c } else { c } + i128::from(self.plus_one);
        let scaled = sum >> self.scale;
        if self.saturate { word.clamp(scaled) as u32 } else { scaled as u32 }
    }
}
