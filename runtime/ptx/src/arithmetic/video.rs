//! The video instructions: parts of words, one at a time, two halves or four bytes at once.

use super::integer::Integer;

/// What they compute of two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Operation {
    Add,
    Subtract,
    Average,
    Difference,
    Min,
    Max,
}

impl Operation {
    /// Of two numbers, exactly.
    pub fn of(self, a: i64, b: i64) -> i64 {
        match self {
            Operation::Add => a + b,
            Operation::Subtract => a - b,
            // To the nearest, halves away from zero.
            Operation::Average => (a + b + i64::from(a + b >= 0)) >> 1,
            Operation::Difference => (a - b).abs(),
            Operation::Min => a.min(b),
            Operation::Max => a.max(b),
        }
    }
}

/// A part of a word: so many bits from there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Part {
    pub shift: u32,
    pub bits: u32,
}

impl Part {
    /// All of it.
    pub const WHOLE: Part = Part { shift: 0, bits: 32 };

    /// The number that the part of a word stands for.
    pub fn value(self, word: u32, signed: bool) -> i64 {
        Integer { bits: self.bits, signed }.value(u64::from(word) >> self.shift) as i64
    }

    /// The word with that part replaced.
    pub fn put(self, value: i128, into: u32) -> u32 {
        let mask = (u32::MAX >> (32 - self.bits)) << self.shift;
        into & !mask | (value as u32) << self.shift & mask
    }

    /// A number held to the range of the part.
    pub fn clamp(self, value: i128, signed: bool) -> i128 {
        let range = Integer { bits: self.bits, signed };
        value.clamp(range.least(), range.greatest())
    }
}

/// What follows a scalar operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Second {
    /// Nothing: the result is the low 32 bits.
    None,
    /// The result takes that part's place in c.
    Merge(Part),
    /// c is added.
    Add,
    /// The lesser of the result and c.
    Min,
    /// The greater of the result and c.
    Max,
}

impl Second {
    /// What becomes of a scalar operation's result.
    pub fn of(self, result: i128, c: u32, saturate: bool, signed: bool) -> u32 {
        let part = if let Second::Merge(part) = self { part } else { Part::WHOLE };
        let result = if saturate { part.clamp(result, signed) } else { result };
        let word = Integer { bits: 32, signed };
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

/// What follows an operation on several parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parts {
    /// Bits of a part: 16 or 8.
    pub bits: u32,
    /// By part, from the lowest: which of the parts of a and, after them, b it takes on the left.
    pub left: [u8; 4],
    /// The same on the right.
    pub right: [u8; 4],
    /// Which parts are computed: a bit each.
    pub mask: u32,
    /// Whether the results are all added to c, instead of taking their places in it.
    pub accumulate: bool,
}

impl Parts {
    /// The result, from what `f` computes of each pair of numbers.
    pub fn of(self, [a, b, c]: [u32; 3], signed: [bool; 2], f: impl Fn(Part, i64, i64) -> i128) -> u32 {
        let both = u64::from(b) << 32 | u64::from(a);
        let pick = |number: u8, signed: bool| {
            Part { shift: 0, bits: self.bits }.value((both >> (u32::from(number) * self.bits)) as u32, signed)
        };
        let mut result = c;
        for place in 0..32 / self.bits {
            if self.mask >> place & 1 == 0 {
                continue;
            }
            let part = Part { shift: place * self.bits, bits: self.bits };
            let value =
                f(part, pick(self.left[place as usize], signed[0]), pick(self.right[place as usize], signed[1]));
            result = if self.accumulate { result.wrapping_add(value as u32) } else { part.put(value, result) };
        }
        result
    }
}

/// How `vmad` computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MulAdd {
    /// Whether the product is negated.
    pub negate_product: bool,
    /// Whether c is.
    pub negate_c: bool,
    /// `.po`: one more.
    pub plus_one: bool,
    /// Bits to the right.
    pub scale: u32,
    /// To the range of the result.
    pub saturate: bool,
    /// Whether the result is signed.
    pub signed: bool,
}

impl MulAdd {
    /// a · b + c.
    pub fn of(self, a: i64, b: i64, c: u32) -> u32 {
        let word = Integer { bits: 32, signed: self.signed };
        let product = i128::from(a) * i128::from(b);
        let product = if self.negate_product { -product } else { product };
        let c = word.value(c.into());
        let sum = product + if self.negate_c { -c } else { c } + i128::from(self.plus_one);
        let scaled = sum >> self.scale;
        if self.saturate { word.clamp(scaled) as u32 } else { scaled as u32 }
    }
}
