//! Operands of comparisons: extreme values of each type, related ones, and random ones.

use kernel_dsl::compiler::ptx::Type;
use kernel_dsl::compiler::ptx::words::TypeClass;

/// A generator of random numbers: the same ones from the same seed, on every machine.
pub struct Random(u64);

impl Random {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x243f_6a88_85a3_08d3)
    }

    /// Returns 64 random bits: SplitMix64.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns a number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn one_of(&mut self, values: &[u64]) -> u64 {
        values[self.below(values.len() as u64) as usize]
    }
}

/// A binary floating-point format, by the widths of its fields.
#[derive(Clone, Copy)]
struct Format {
    exponent: u32,
    fraction: u32,
}

impl Format {
    fn of(ty: Type) -> Option<Format> {
        match ty {
            Type::F16 => Some(Format { exponent: 5, fraction: 10 }),
            Type::F32 => Some(Format { exponent: 8, fraction: 23 }),
            Type::F64 => Some(Format { exponent: 11, fraction: 52 }),
            _ => None,
        }
    }

    fn bias(self) -> i64 {
        (1 << (self.exponent - 1)) - 1
    }

    fn make(self, negative: bool, biased: i64, fraction: u64) -> u64 {
        let biased = biased.clamp(0, (1 << self.exponent) - 1) as u64;
        u64::from(negative) << (self.exponent + self.fraction)
            | biased << self.fraction
            | fraction & ((1 << self.fraction) - 1)
    }

    /// Returns a fraction: none, full, a run of ones, close to either, or random.
    fn fraction(self, random: &mut Random) -> u64 {
        let full = (1u64 << self.fraction) - 1;
        match random.below(8) {
            0 => 0,
            1 => full,
            2 => random.below(4),
            3 => full - random.below(4),
            4 => full & !((1 << random.below(self.fraction.into())) - 1),
            5 => 1 << random.below(self.fraction.into()),
            _ => random.next() & full,
        }
    }

    /// Returns an exponent at which formats and integers begin, end or lose precision.
    fn boundary(self, random: &mut Random) -> i64 {
        let at = [
            -1075, -1023, -150, -149, -127, -126, -25, -24, -15, -14, -1, 0, 1, 7, 8, 15, 16, 31, 32, 63, 64, 126, 127,
            1023,
        ];
        let chosen = at[random.below(at.len() as u64) as usize];
        (chosen + random.below(3) as i64 - 1).clamp(-self.bias() - 1, self.bias() + 1)
    }

    fn number(self, random: &mut Random) -> u64 {
        let bits = 1 + self.exponent + self.fraction;
        let negative = random.below(2) == 1;
        let top = (1 << self.exponent) - 1;
        match random.below(8) {
            0 => self.make(negative, 0, 0),
            1 => self.make(negative, 0, self.fraction(random)),
            2 => self.make(negative, top, 0),
            3 => self.make(negative, top, self.fraction(random)),
            4 => random.next() & (u64::MAX >> (64 - bits)),
            5 => self.make(negative, self.bias() + random.below(9) as i64 - 4, self.fraction(random)),
            _ => self.make(negative, self.bias() + self.boundary(random), self.fraction(random)),
        }
    }

    /// Returns three numbers whose product, quotient or sum is close to an end of the range, or
    /// cancels.
    fn related(self, random: &mut Random) -> [u64; 3] {
        let width = i64::from(self.fraction);
        let (least, most) = (1 - self.bias(), self.bias());
        let target = match random.below(4) {
            0 => most - random.below(3) as i64 + 1,
            1 => least - width + random.below(4) as i64 - 2,
            _ => least + random.below(4) as i64 - 2,
        };
        let first = random.below((most - least) as u64) as i64 + least;
        let quotient = random.below(2) == 1;
        let second = if quotient { first - target } else { target - first };
        let third = target + random.below(2 * width as u64 + 6) as i64 - width - 3;
        [first, second, third].map(|exponent| {
            let negative = random.below(2) == 1;
            let fraction = self.fraction(random);
            self.make(negative, exponent + self.bias(), fraction)
        })
    }
}

/// Returns a value of a type, zero-extended.
fn value(ty: Type, random: &mut Random) -> u64 {
    if let Some(format) = Format::of(ty) {
        return format.number(random);
    }
    if ty == Type::F16x2 {
        return value(Type::F16, random) | value(Type::F16, random) << 16;
    }
    if ty.class() == TypeClass::Predicate {
        return random.below(2);
    }
    let mask = u64::MAX >> (64 - ty.bits());
    let edges = [
        0,
        1,
        2,
        3,
        7,
        8,
        15,
        16,
        23,
        24,
        31,
        32,
        33,
        63,
        64,
        65,
        127,
        128,
        255,
        256,
        257,
        0x7fff,
        0x8000,
        0xffff,
        0x1_0000,
        0x7f_ffff,
        0x80_0000,
        0xff_ffff,
        0x100_0000,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x1_0000_0000,
        0x7fff_ffff_ffff_ffff,
        0x8000_0000_0000_0000,
        u64::MAX,
    ];
    mask & match random.below(6) {
        0 => random.one_of(&edges),
        1 => random.one_of(&edges).wrapping_neg(),
        2 => random.below(80),
        3 => random.one_of(&edges).wrapping_add(random.below(5)).wrapping_sub(2),
        // Words of bytes that are at the ends of the ranges of bytes and halves.
        4 => (0..8).fold(0, |word, _| word << 8 | random.one_of(&[0, 1, 0x7f, 0x80, 0xff, 0x55])),
        _ => random.next(),
    }
}

/// Returns the operands of one thread: up to four words, each of its type.
pub fn operands(types: &[Type], random: &mut Random) -> [u64; 4] {
    // The last word also decides the carry of forms that take one.
    let mut words = [0, 0, 0, random.next()];
    for (word, ty) in words.iter_mut().zip(types) {
        *word = value(*ty, random);
    }
    // The operation decides which of several NaNs remains.
    if types.first() == Some(&Type::F64) && types.len() > 1 && random.below(16) == 0 {
        for (word, ty) in words.iter_mut().zip(types) {
            if *ty == Type::F64 && random.below(4) != 0 {
                *word = 0x7ff0_0000_0000_0000 | random.next() >> 12 | random.next() << 63 | 1;
            }
        }
        return words;
    }
    let halves = types.first() == Some(&Type::F16x2);
    let first = if halves { Some(Type::F16) } else { types.first().copied() };
    if let Some(format) = first.and_then(Format::of)
        && random.below(2) == 1
    {
        let (low, high) = (format.related(random), format.related(random));
        for (i, word) in words.iter_mut().enumerate().take(types.len().min(3)) {
            if types[i] == types[0] {
                *word = if halves { low[i] | high[i] << 16 } else { low[i] };
            }
        }
    }
    words
}
