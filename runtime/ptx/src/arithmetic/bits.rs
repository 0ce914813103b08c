//! Bits: permutations, selections, searches.

/// The mode in which `prmt` selects bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permutation {
    /// Each nibble of the selector names a byte. If the highest bit of the nibble is set, the sign
    /// of the byte is replicated.
    Free,
    /// `.f4e`: four bytes from the selected one upward.
    Forward,
    /// `.b4e`: four bytes from the selected one downward.
    Backward,
    /// `.rc8`: one byte four times.
    Replicate8,
    /// `.ecl`: the selected byte or the byte's own position, whichever is greater.
    EdgeLeft,
    /// `.ecr`: the selected byte or the byte's own position, whichever is less.
    EdgeRight,
    /// `.rc16`: two bytes twice.
    Replicate16,
}

/// Computes `prmt`: four of the eight bytes of b and a (bytes 0 to 3 are those of a).
pub const fn permute(a: u32, b: u32, selector: u32, mode: Permutation) -> u32 {
    let bytes = (b as u64) << 32 | a as u64;
    let low = selector & 3;
    let mut result = 0;
    let mut place = 0;
    while place < 4 {
        let nibble = selector >> (4 * place) & 0xf;
        let (number, sign) = match mode {
            Permutation::Free => (nibble & 7, nibble & 8 != 0),
            Permutation::Forward => (low + place, false),
            // Byte numbers wrap: below byte 0 comes byte 7.
            Permutation::Backward => ((low + 8 - place) & 7, false),
            Permutation::Replicate8 => (low, false),
            Permutation::EdgeLeft => (if low > place { low } else { place }, false),
            Permutation::EdgeRight => (if low < place { low } else { place }, false),
            Permutation::Replicate16 => (2 * (selector & 1) + (place & 1), false),
        };
        let byte = (bytes >> (8 * number)) as u8;
        let byte = if sign { (byte as i8 >> 7) as u8 } else { byte };
        result |= (byte as u32) << (8 * place);
        place += 1;
    }
    result
}

/// Computes `lop3`: the bits of a, b and c, from the highest, select a bit of `table`.
#[inline(always)]
pub const fn logic(a: u32, b: u32, c: u32, table: u32) -> u32 {
    let mut result = 0;
    let mut row = 0;
    while row < 8 {
        let matches = (if row & 4 != 0 { a } else { !a })
            & (if row & 2 != 0 { b } else { !b })
            & (if row & 1 != 0 { c } else { !c });
        result |= matches & (table >> row & 1).wrapping_neg();
        row += 1;
    }
    result
}

/// Computes `shf.l`: shifts the 64 bits of high:low to the left, and returns the upper 32 bits.
pub const fn funnel_left(low: u32, high: u32, distance: u32, wrap: bool) -> u32 {
    let both = (high as u64) << 32 | low as u64;
    ((both as u128) << funnel_distance(distance, wrap) >> 32) as u32
}

/// Computes `shf.r`: shifts the 64 bits of high:low to the right, and returns the lower 32 bits.
pub const fn funnel_right(low: u32, high: u32, distance: u32, wrap: bool) -> u32 {
    let both = (high as u64) << 32 | low as u64;
    (both >> funnel_distance(distance, wrap)) as u32
}

/// Returns the distance modulo 32 with `wrap`, and at most 32 without it.
const fn funnel_distance(distance: u32, wrap: bool) -> u32 {
    match distance {
        _ if wrap => distance & 31,
        0..=32 => distance,
        _ => 32,
    }
}

/// Returns the position of the |offset|-th set bit of `mask` from `base`, upwards or, for a
/// negative offset, downwards: `fns`.
///
/// For offset 0, the position is `base` itself, if that bit is set. Without such a bit, and for a
/// base above 31, the result is 32 ones. For offset −2³¹, sm_61 machine code returns 0, because it
/// compares the offset with the number of set bits as signed numbers.
pub const fn find_nth(mask: u32, base: u32, offset: i32) -> u32 {
    const NONE: u32 = u32::MAX;
    if offset == i32::MIN {
        return 0;
    }
    if base > 31 {
        return NONE;
    }
    if offset == 0 {
        return if mask >> base & 1 == 1 { base } else { NONE };
    }
    let step: i32 = if offset < 0 { -1 } else { 1 };
    let mut left = offset.unsigned_abs();
    let mut at = base as i32;
    while at >= 0 && at < 32 {
        if mask >> at & 1 == 1 {
            left -= 1;
            if left == 0 {
                return at as u32;
            }
        }
        at += step;
    }
    NONE
}

/// Computes `bmsk`: `length` ones from `position`.
pub const fn ones(position: u32, length: u32, wrap: bool) -> u32 {
    let (position, length) = if wrap { (position & 31, length & 31) } else { (position, length) };
    if position >= 32 {
        return 0;
    }
    let run = if length >= 32 { u32::MAX } else { (1 << length) - 1 };
    run << position
}

/// Computes `szext`: the low `bits` bits of a word, extended by sign or by zeros.
pub const fn extended(a: u32, bits: u32, signed: bool, wrap: bool) -> u32 {
    let bits = if wrap { bits & 31 } else { bits };
    match bits {
        0 => 0,
        1..32 if signed => (((a << (32 - bits)) as i32) >> (32 - bits)) as u32,
        1..32 => a & ((1 << bits) - 1),
        _ => a,
    }
}
