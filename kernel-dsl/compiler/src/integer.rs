//! Integer instructions of the machine beyond Rust's operators, as plain functions.
//!
//! The bodies of the prelude, constant folding and the oracle use these functions; the PTX
//! interpreter has its own.

/// Returns byte `k` of a word, sign-extended if `signed`.
const fn byte(word: u32, k: u32, signed: bool) -> i32 {
    let byte = (word >> (8 * k)) as u8;
    if signed { byte as i8 as i32 } else { byte as i32 }
}

/// Computes c + Σ aₖ·bₖ over the four bytes of two words; wraps.
pub const fn dot4([a, b]: [u32; 2], [a_signed, b_signed]: [bool; 2], c: u32) -> u32 {
    let (mut sum, mut k) = (c as i32, 0);
    while k < 4 {
        sum = sum.wrapping_add(byte(a, k, a_signed) * byte(b, k, b_signed));
        k += 1;
    }
    sum as u32
}

/// Computes c + a₀·bₖ + a₁·bₖ₊₁ for the halves of `a` and the two low or high bytes of `b`; wraps.
pub const fn dot2([a, b]: [u32; 2], [a_signed, b_signed]: [bool; 2], c: u32, high: bool) -> u32 {
    let first = if high { 2 } else { 0 };
    let (low, top) = if a_signed { (a as i16 as i32, a as i32 >> 16) } else { (a as u16 as i32, (a >> 16) as i32) };
    let sum = (c as i32).wrapping_add(low.wrapping_mul(byte(b, first, b_signed)));
    sum.wrapping_add(top.wrapping_mul(byte(b, first + 1, b_signed))) as u32
}

/// Selects four of the eight bytes of b:a, each by a nibble of `selector`. The highest bit of a
/// nibble replicates the sign of the byte instead.
pub const fn permute(a: u32, b: u32, selector: u32) -> u32 {
    let (bytes, mut word, mut k) = ((b as u64) << 32 | a as u64, 0, 0);
    while k < 4 {
        let nibble = selector >> (4 * k) & 0xF;
        let byte = (bytes >> (8 * (nibble & 7))) as u8;
        let byte = if nibble & 8 == 0 { byte } else { (byte as i8 >> 7) as u8 };
        word |= (byte as u32) << (8 * k);
        k += 1;
    }
    word
}

/// Returns the upper word of high:low shifted left by `distance` mod 32.
pub const fn funnel_left(high: u32, low: u32, distance: u32) -> u32 {
    ((((high as u64) << 32 | low as u64) << (distance & 31)) >> 32) as u32
}

/// Returns the lower word of high:low shifted right by `distance` mod 32.
pub const fn funnel_right(high: u32, low: u32, distance: u32) -> u32 {
    (((high as u64) << 32 | low as u64) >> (distance & 31)) as u32
}

/// Returns the position and length that the machine uses. In words of up to 32 bits they are taken
/// modulo 256. In words of 64 bits all values from 64 on act alike.
const fn field(width: u32, position: u32, length: u32) -> (u32, u32) {
    if width < 64 {
        return (position & 0xFF, length & 0xFF);
    }
    (if position > 64 { 64 } else { position }, if length > 64 { 64 } else { length })
}

/// Extracts `length` bits of a word of `width` bits, starting at `position`, zero- or
/// sign-extended. In words of up to 32 bits, `length` and `position` are taken modulo 256. A
/// `length` of 0 gives 0.
pub const fn extract(word: u64, width: u32, signed: bool, position: u32, length: u32) -> u64 {
    let (position, length) = field(width, position, length);
    if length == 0 {
        return 0;
    }
    let last = if position + length > width { width - 1 } else { position + length - 1 };
    let sign = signed && word >> last & 1 == 1;
    let field = if position < width { (word & mask(width)) >> position & mask(length) } else { 0 };
    // Bits of the field beyond the word are copies of the sign bit, or 0 if unsigned.
    let there = width.saturating_sub(position);
    let kept = if there < length { there } else { length };
    (if sign { field | !mask(kept) } else { field }) & mask(width)
}

/// Replaces `length` bits of `into`, starting at `position`, by the low bits of `bits`. Bits beyond
/// the word are ignored. In words of up to 32 bits, `length` and `position` are taken modulo 256.
pub const fn insert(bits: u64, into: u64, width: u32, position: u32, length: u32) -> u64 {
    let (position, length) = field(width, position, length);
    if position >= width {
        return into & mask(width);
    }
    let place = mask(length) << position;
    (into & !place | bits << position & place) & mask(width)
}

/// Returns the low 24 bits of a word, sign-extended if `signed`.
const fn low_24(word: u32, signed: bool) -> i64 {
    if signed { ((word << 8) as i32 >> 8) as i64 } else { (word & 0xFF_FFFF) as i64 }
}

/// Returns the low word of the product of the low 24 bits of two words.
pub const fn multiply_24(a: u32, b: u32, signed: bool) -> u32 {
    (low_24(a, signed) * low_24(b, signed)) as u32
}

/// Returns the upper half of the product of two integers of `width` bits, given in the low bits.
pub const fn multiply_high(a: u64, b: u64, width: u32, signed: bool) -> u64 {
    if signed {
        let unused = 64 - width;
        let (a, b) = (((a << unused) as i64 >> unused) as i128, ((b << unused) as i64 >> unused) as i128);
        ((a * b) >> width) as u64 & mask(width)
    } else {
        (((a & mask(width)) as u128 * (b & mask(width)) as u128) >> width) as u64
    }
}

/// Returns a mask of the low `n` bits.
const fn mask(n: u32) -> u64 {
    match n {
        0 => 0,
        1..64 => u64::MAX >> (64 - n),
        _ => u64::MAX,
    }
}

/// Joins numbers of 8 or 16 bits to one word, the first in the lowest bits.
pub const fn join(parts: &[u64], bits: u32) -> u64 {
    let (mut word, mut k) = (0, 0);
    while k < parts.len() {
        word |= (parts[k] & mask(bits)) << (bits * k as u32);
        k += 1;
    }
    word
}
