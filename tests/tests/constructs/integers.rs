//! Operators and methods of integers.

use kernel_dsl::prelude::*;

pub const ALL: &[&[super::Construct]] = &[signed::ALL, unsigned::ALL, casts::ALL];

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
