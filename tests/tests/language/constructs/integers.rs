//! Operators and methods of integers.

use kernel_dsl::prelude::*;

pub const ALL: &[&[super::Construct]] = &[signed::ALL, unsigned::ALL, checked::ALL, machine::ALL, casts::ALL];

const SIGNED: [i32; 9] = [-100, -33, -8, -1, 0, 1, 7, 64, 99];
const UNSIGNED: [u32; 8] = [100, 127, 128, 255, 256, 1000, 4096, 65535];
const SMALL: [u32; 6] = [1, 2, 3, 7, 9, 31];

values! { signed, "Integers", (a: i32 = SIGNED, b: i32 = [1, 2, 3, 7, 31]):
    "`-a`" fn negation -> i32 { -a }
    "`a * b`" fn product -> i32 { a * b }
    "`a / b`" fn quotient -> i32 { a / b }
    "`a % b`" fn rest -> i32 { a % b }
    "`a >> b`, arithmetic" fn shifted -> i32 { a >> b }
    "`a < b`, signed" fn less -> u32 { (a < b) as u32 }
    "`a.abs()`" fn abs -> i32 { a.abs() }
    "`a.signum()`" fn signum -> i32 { a.signum() }
    "`a.is_negative()`" fn is_negative -> u32 { a.is_negative() as u32 }
    "`a.is_positive()`" fn is_positive -> u32 { a.is_positive() as u32 }
    "`a.wrapping_abs()`" fn wrapping_abs -> i32 { a.wrapping_abs() }
    "`a.unsigned_abs()`" fn unsigned_abs -> u32 { a.unsigned_abs() }
    "`a.div_euclid(b)`, signed" fn div_euclid -> i32 { a.div_euclid(b) }
    "`a.rem_euclid(b)`, signed" fn rem_euclid -> i32 { a.rem_euclid(b) }
    "`a.clamp(low, high)`" fn clamp -> i32 { a.clamp(-9, 9) }
    "`a.wrapping_div(b)`, signed" fn wrapping_div -> i32 { a.wrapping_div(b) }
    "`a.wrapping_rem(b)`, signed" fn wrapping_rem -> i32 { a.wrapping_rem(b) }
    "`a.wrapping_pow(5)`" fn wrapping_pow -> i32 { a.wrapping_pow(5) }
    "`a.wrapping_neg()`" fn wrapping_neg -> i32 { a.wrapping_neg() }
}

values! { unsigned, "Integers", (a: u32 = UNSIGNED, b: u32 = SMALL):
    "`a + b`" fn sum -> u32 { a + b }
    "`a - b`" fn difference -> u32 { a - b }
    "`a / b`, unsigned" fn quotient -> u32 { a / b }
    "`a / 10`" fn by_constant -> u32 { a / 10 }
    "`a % 8`" fn by_power -> u32 { a % 8 }
    "`a & b`" fn and -> u32 { a & b }
    "`a | b`" fn or -> u32 { a | b }
    "`a ^ b`" fn xor -> u32 { a ^ b }
    "`!a`" fn not -> u32 { !a }
    "`a << b`" fn left -> u32 { a << (b & 7) }
    "`a >> b`" fn right -> u32 { a >> b }
    "`a == b`" fn equal -> u32 { (a == b) as u32 }
    "`a != b`" fn unequal -> u32 { (a != b) as u32 }
    "`a <= b`" fn at_most -> u32 { (a <= b) as u32 }
    "`a > b`" fn more -> u32 { (a > b) as u32 }
    "`a >= b`" fn at_least -> u32 { (a >= b) as u32 }
    "`a += b`, and each operator that assigns" fn assigned -> u32 { let mut c = a; c += b; c ^= 5; c <<= 2; c |= 1; c }
    "`a.min(b)`" fn min -> u32 { a.min(b) }
    "`a.max(b)`" fn max -> u32 { a.max(b) }
    "`a.abs_diff(b)`" fn abs_diff -> u32 { b.abs_diff(a) }
    "`a.pow(3)`" fn pow -> u32 { b.pow(3) }
    "`a.count_ones()`" fn count_ones -> u32 { a.count_ones() }
    "`a.count_zeros()`" fn count_zeros -> u32 { a.count_zeros() }
    "`a.leading_zeros()`" fn leading_zeros -> u32 { a.leading_zeros() }
    "`a.leading_ones()`" fn leading_ones -> u32 { (!a).leading_ones() }
    "`a.trailing_zeros()`" fn trailing_zeros -> u32 { a.trailing_zeros() }
    "`a.trailing_ones()`" fn trailing_ones -> u32 { a.trailing_ones() }
    "`a.reverse_bits()`" fn reverse_bits -> u32 { a.reverse_bits() }
    "`a.swap_bytes()`" fn swap_bytes -> u32 { a.swap_bytes() }
    "`a.rotate_left(b)`" fn rotate_left -> u32 { a.rotate_left(b) }
    "`a.rotate_right(b)`" fn rotate_right -> u32 { a.rotate_right(b) }
    "`a.wrapping_add(b)`" fn wrapping_add -> u32 { a.wrapping_add(b | 0xffff_0000) }
    "`a.wrapping_sub(b)`" fn wrapping_sub -> u32 { b.wrapping_sub(a) }
    "`a.wrapping_mul(b)`" fn wrapping_mul -> u32 { a.wrapping_mul(b) }
    "`a.wrapping_shl(b)`" fn wrapping_shl -> u32 { a.wrapping_shl(b) }
    "`a.wrapping_shr(b)`" fn wrapping_shr -> u32 { a.wrapping_shr(b) }
    "`a.div_ceil(b)`" fn div_ceil -> u32 { a.div_ceil(b) }
    "`a.next_multiple_of(b)`" fn next_multiple_of -> u32 { a.next_multiple_of(b) }
    "`a.next_power_of_two()`" fn next_power_of_two -> u32 { a.next_power_of_two() }
    "`a.is_power_of_two()`" fn is_power_of_two -> u32 { a.is_power_of_two() as u32 }
    "`a.saturating_add(b)`" fn saturating_add -> u32 { (a | 0xffff_0000).saturating_add(b) }
    "`a.saturating_sub(b)`" fn saturating_sub -> u32 { b.saturating_sub(a) }
    "`a.div_euclid(b)`" fn div_euclid -> u32 { a.div_euclid(b) }
    "`a.rem_euclid(b)`" fn rem_euclid -> u32 { a.rem_euclid(b) }
}

values! { checked, "Integers", (a: u32 = [1, 100, 65535, 4294967295], b: u32 = [1, 2, 3, 31, 4294967290]):
    "`a.checked_add(b)`" fn checked_add -> u32 { a.checked_add(b).unwrap_or(7) }
    "`a.checked_sub(b)`" fn checked_sub -> u32 { a.checked_sub(b).unwrap_or(7) }
    "`a.checked_mul(b)`" fn checked_mul -> u32 { a.checked_mul(b).unwrap_or(7) }
    "`a.checked_div(b)`" fn checked_div -> u32 { a.checked_div(b - 1).unwrap_or(7) }
    "`a.checked_rem(b)`" fn checked_rem -> u32 { a.checked_rem(b - 1).unwrap_or(7) }
    "`a.overflowing_add(b)`" fn overflowing_add -> u32 { let (x, over) = a.overflowing_add(b); x ^ over as u32 }
    "`a.overflowing_sub(b)`" fn overflowing_sub -> u32 { let (x, over) = a.overflowing_sub(b); x ^ over as u32 }
    "`a.overflowing_mul(b)`" fn overflowing_mul -> u32 { let (x, over) = a.overflowing_mul(b); x ^ over as u32 }
    "`a.saturating_mul(b)`" fn saturating_mul -> u32 { a.saturating_mul(b) }
    "`a.ilog2()`" fn ilog2 -> u32 { a.ilog2() }
    "`a.is_multiple_of(b)`" fn is_multiple_of -> u32 { a.is_multiple_of(b) as u32 }
}

values! { machine, "Integer instructions by name", (a: u32 = [1, 100, 65535, 4294967295, 305419896], b: u32 = [1, 3, 31, 4294967290]):
    "`int::mul_hi(a, b)`" fn mul_hi -> u32 { int::mul_hi(a, b) }
    "`int::widening_mul(a, b)`" fn widening_mul -> u32 { let (low, high) = int::widening_mul(a, b); low ^ high }
    "`int::carrying_add(a, b, carry)`" fn carrying_add -> u32 { let (x, carry) = int::carrying_add(a, b, a % 2 == 1); x ^ carry as u32 }
    "`int::borrowing_sub(a, b, borrow)`" fn borrowing_sub -> u32 { let (x, borrow) = int::borrowing_sub(a, b, a % 2 == 1); x ^ borrow as u32 }
    "`int::mul24(a, b)`" fn mul24 -> u32 { int::mul24(a & 0xff_ffff, b & 0xff_ffff) }
    "`int::byte_perm(a, b, selector)`" fn byte_perm -> u32 { int::byte_perm(a, b, 0x1604) }
    "`int::word(bytes)`" fn word_of_bytes -> u32 { int::word([a as u8, (a >> 8) as u8, b as u8, 7]) }
    "`int::funnel_shl(high, low, n)`" fn funnel_shl -> u32 { int::funnel_shl(a, b, 7) }
    "`int::funnel_shr(high, low, n)`" fn funnel_shr -> u32 { int::funnel_shr(a, b, 7) }
    "`int::extract(x, position, length)`" fn extract -> u32 { int::extract(a, 4, 9) }
    "`int::insert(bits, into, position, length)`" fn insert -> u32 { int::insert(a, b, 4, 9) }
    "`dp4a(a, b, c)`" fn dp4a_words -> u32 { dp4a(a, b, 7) }
    "`dp2a_lo(a, b, c)`" fn dp2a_low -> u32 { dp2a_lo(a, b, 7) }
    "`dp2a_hi(a, b, c)`" fn dp2a_high -> u32 { dp2a_hi(a, b, 7) }
}

values! { casts, "Casts", (a: i32 = SIGNED, b: u32 = UNSIGNED):
    "`i32 as u32`" fn same_width -> u32 { a as u32 }
    "`i32 as i64`" fn wider -> i64 { a as i64 }
    "`i32 as i8`" fn narrower -> i32 { a as i8 as i32 }
    "`u32 as u64`" fn unsigned_wider -> u64 { b as u64 }
    "`i32 as f32`" fn to_float -> f32 { a as f32 }
    "`f32 as i32`" fn from_float -> i32 { (a as f32 * 0.5) as i32 }
    "`f32 as f64`" fn float_wider -> f64 { b as f32 as f64 }
    "`f64 as f32`" fn float_narrower -> f32 { (b as f64 * 0.1) as f32 }
    "`bool as u32`" fn from_bool -> u32 { (a < 0) as u32 }
    "`u32 as usize`" fn to_index -> u32 { (b as usize + 1) as u32 }
    "`a as u64 * b as u64 >> 32`" fn high_half -> u64 { (b as u64 * 0xffff_ffff) >> 32 }
}
