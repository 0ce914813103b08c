//! Integers: arithmetic on the low `width` bits of words, each result zero-extended.

/// Width and sign of an integer type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntegerFormat {
    /// The width in bits, at most 64.
    pub bits: u32,
    /// Whether the type is two's complement.
    pub signed: bool,
}

impl IntegerFormat {
    /// Returns a mask of all bits of the type.
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// Returns the number that the low bits of `word` represent.
    #[inline(always)]
    pub const fn value(self, word: u64) -> i128 {
        let unused = 64 - self.bits;
        if self.signed { ((word << unused) as i64 >> unused) as i128 } else { (word & self.mask()) as i128 }
    }

    /// Returns the low bits of a number.
    #[inline(always)]
    pub const fn wrap(self, value: i128) -> u64 {
        value as u64 & self.mask()
    }

    /// Returns the minimum of the type.
    pub const fn least(self) -> i128 {
        if self.signed { -(1 << (self.bits - 1)) } else { 0 }
    }

    /// Returns the maximum of the type.
    pub const fn greatest(self) -> i128 {
        (1 << (self.bits - self.signed as u32)) - 1
    }

    /// Returns the bits of a number clamped to the type's range.
    pub const fn clamp(self, value: i128) -> u64 {
        let (least, greatest) = (self.least(), self.greatest());
        self.wrap(if value < least {
            least
        } else if value > greatest {
            greatest
        } else {
            value
        })
    }

    /// Returns the upper half of the product.
    pub const fn mul_hi(self, a: u64, b: u64) -> u64 {
        if self.bits == 64 && !self.signed {
            return ((a as u128 * b as u128) >> 64) as u64;
        }
        self.wrap((self.value(a) * self.value(b)) >> self.bits)
    }

    /// Computes a / b, rounded toward zero; `None` if b is 0. MIN / −1 wraps.
    pub const fn div(self, a: u64, b: u64) -> Option<u64> {
        match self.value(a).checked_div(self.value(b)) {
            Some(quotient) => Some(self.wrap(quotient)),
            None => None,
        }
    }

    /// Computes a − b · (a / b); `None` if b is 0.
    pub const fn rem(self, a: u64, b: u64) -> Option<u64> {
        match self.value(a).checked_rem(self.value(b)) {
            Some(rest) => Some(self.wrap(rest)),
            None => None,
        }
    }

    /// Computes c + |a − b|.
    pub const fn sad(self, a: u64, b: u64, c: u64) -> u64 {
        let difference = self.value(a) - self.value(b);
        self.wrap(self.value(c) + difference.abs())
    }

    /// Returns the low or high 32 of the 48 bits of the product of the operands' low 24 bits: bits
    /// 0 to 31, or 16 to 47.
    pub const fn mul24(self, a: u64, b: u64, high: bool) -> u64 {
        let part = IntegerFormat { bits: 24, ..self };
        let product = part.value(a) * part.value(b);
        (if high { product >> 16 } else { product }) as u64 & 0xffff_ffff
    }

    /// Shifts a right by the whole `distance`: beyond the width, sign bits or zeros remain.
    #[inline(always)]
    pub const fn shr(self, a: u64, distance: u32) -> u64 {
        let distance = if distance > self.bits { self.bits } else { distance };
        self.wrap(self.value(a) >> distance)
    }

    /// Shifts a left by the whole `distance`.
    #[inline(always)]
    pub const fn shl(self, a: u64, distance: u32) -> u64 {
        if distance >= self.bits { 0 } else { a << distance & self.mask() }
    }

    /// Returns the position and length of a bit field as the machine takes them: the low 8 bits of
    /// each for 32-bit words, all bits for 64-bit ones, where 64 and more act alike.
    const fn field(self, position: u32, length: u32) -> (u32, u32) {
        if self.bits == 32 {
            return (position & 0xff, length & 0xff);
        }
        (if position > 64 { 64 } else { position }, if length > 64 { 64 } else { length })
    }

    /// Computes `bfe`: `length` bits of a from `position`. Beyond the end of a, and above the
    /// field, a signed field is extended by its last bit.
    pub const fn extract(self, a: u64, position: u32, length: u32) -> u64 {
        let (position, length) = self.field(position, length);
        let last = self.bits - 1;
        let end = position + length;
        let sign_at = if end == 0 || end - 1 > last { last } else { end - 1 };
        let sign = self.signed && length != 0 && a >> sign_at & 1 != 0;
        let mut result = 0;
        let mut i = 0;
        while i < self.bits {
            let bit = if i < length && position + i <= last { a >> (position + i) & 1 != 0 } else { sign };
            result |= (bit as u64) << i;
            i += 1;
        }
        result
    }

    /// Computes `bfi`: b, with `length` bits of a inserted at `position`.
    pub const fn insert(self, a: u64, b: u64, position: u32, length: u32) -> u64 {
        let (position, length) = self.field(position, length);
        let mut result = b & self.mask();
        let mut i = 0;
        while i < length && position + i < self.bits {
            let at = position + i;
            result = result & !(1 << at) | (a >> i & 1) << at;
            i += 1;
        }
        result
    }

    /// Computes `bfind`: the position of the highest bit that differs from the sign, or 32 ones if
    /// there is none. With `distance`, the left shift that moves this bit to the top.
    pub const fn find(self, a: u64, distance: bool) -> u32 {
        let a = if self.signed && self.value(a) < 0 { !a } else { a } & self.mask();
        if a == 0 {
            return u32::MAX;
        }
        let at = 63 - a.leading_zeros();
        if distance { self.bits - 1 - at } else { at }
    }
}

/// Computes `dp4a` and `dp2a`: c plus the sum of products of the parts of a with bytes of b.
pub const fn dot(a: u32, a_part: IntegerFormat, b: u32, b_signed: bool, first_byte: u32, c: u32) -> u32 {
    let byte = IntegerFormat { bits: 8, signed: b_signed };
    let parts = 32 / a_part.bits;
    let mut sum = c as i128;
    let mut i = 0;
    while i < parts {
        let x = a_part.value((a >> (i * a_part.bits)) as u64);
        sum += x * byte.value((b >> (8 * (first_byte + i))) as u64);
        i += 1;
    }
    sum as u32
}
