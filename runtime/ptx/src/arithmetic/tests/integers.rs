//! Tests of integers and bits, against other formulas.

use super::super::bits::{Permutation, find_nth, funnel_left, funnel_right, logic, ones, permute};
use super::super::integer::{IntegerFormat, dot};
use super::Numbers;

const S8: IntegerFormat = IntegerFormat { bits: 8, signed: true };
const U16: IntegerFormat = IntegerFormat { bits: 16, signed: false };
const S16: IntegerFormat = IntegerFormat { bits: 16, signed: true };
const U32: IntegerFormat = IntegerFormat { bits: 32, signed: false };
const S32: IntegerFormat = IntegerFormat { bits: 32, signed: true };
const U64: IntegerFormat = IntegerFormat { bits: 64, signed: false };
const S64: IntegerFormat = IntegerFormat { bits: 64, signed: true };

fn words() -> Vec<u64> {
    let edges =
        [0, 1, 2, 31, 32, 33, 63, 64, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
    let wide = [1 << 32, i64::MAX as u64, i64::MIN as u64, u64::MAX, 0x0123_4567_89ab_cdef];
    let mut numbers = Numbers::new(9);
    edges.into_iter().chain(wide).chain((0..40).map(|_| numbers.next())).collect()
}

#[test]
fn upper_halves_and_quotients_match_wide_integers() {
    for a in words() {
        for b in words() {
            assert_eq!(U64.mul_hi(a, b), ((u128::from(a) * u128::from(b)) >> 64) as u64);
            assert_eq!(S64.mul_hi(a, b), ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64);
            assert_eq!(U32.mul_hi(a, b), (u64::from(a as u32) * u64::from(b as u32)) >> 32);
            let product = i64::from(a as i32) * i64::from(b as i32);
            assert_eq!(S32.mul_hi(a, b), u64::from((product >> 32) as u32));
            assert_eq!(S16.mul_hi(a, b), u64::from(((i32::from(a as i16) * i32::from(b as i16)) >> 16) as u16));
            assert_eq!(U32.div(a, b), (a as u32).checked_div(b as u32).map(u64::from));
            assert_eq!(U64.rem(a, b), a.checked_rem(b));
            if b as i32 != 0 {
                assert_eq!(S32.div(a, b), Some(u64::from((a as i32).wrapping_div(b as i32) as u32)));
                assert_eq!(S32.rem(a, b), Some(u64::from((a as i32).wrapping_rem(b as i32) as u32)));
            }
            assert_eq!(U32.sad(a, b, 7), u64::from((a as u32).abs_diff(b as u32).wrapping_add(7)));
            assert_eq!(S32.sad(a, b, 7), u64::from((a as i32).abs_diff(b as i32).wrapping_add(7)));
        }
    }
}

#[test]
fn products_of_24_bits_match_wide_integers() {
    for a in words() {
        for b in words() {
            let (x, y) = (a & 0xff_ffff, b & 0xff_ffff);
            assert_eq!(U32.mul24(a, b, false), (x * y) & 0xffff_ffff);
            assert_eq!(U32.mul24(a, b, true), ((x * y) >> 16) & 0xffff_ffff);
            let (x, y) = (((a << 40) as i64) >> 40, ((b << 40) as i64) >> 40);
            assert_eq!(S32.mul24(a, b, false), (x * y) as u64 & 0xffff_ffff);
            assert_eq!(S32.mul24(a, b, true), ((x * y) >> 16) as u64 & 0xffff_ffff);
        }
    }
}

#[test]
fn shifts_take_the_whole_distance() {
    for a in words() {
        for n in [0u32, 1, 15, 16, 31, 32, 33, 63, 64, 65, 1 << 31, u32::MAX] {
            assert_eq!(U32.shl(a & U32.mask(), n), u64::from((a as u32).checked_shl(n).unwrap_or(0)));
            assert_eq!(U64.shr(a, n), a.checked_shr(n).unwrap_or(0));
            assert_eq!(S64.shr(a, n), (a as i64 >> n.min(63)) as u64);
            assert_eq!(S16.shr(a & 0xffff, n), u64::from((a as i16 >> n.min(15)) as u16));
            assert_eq!(U16.shl(a & 0xffff, n), if n > 15 { 0 } else { a << n & 0xffff });
        }
    }
}

#[test]
fn bit_fields_match_their_definition() {
    for a in words() {
        for at in [0u32, 1, 7, 8, 24, 31, 32, 33, 63, 255, 256] {
            for length in [0u32, 1, 3, 8, 31, 32, 33, 64, 255] {
                let (p, n) = (at & 0xff, length & 0xff);
                // Unsigned fields are shifted down and truncated.
                let cut = |x: u128| if n >= 128 { x } else { x & ((1 << n) - 1) };
                let shifted = |x: u64| if p > 127 { 0 } else { u128::from(x) >> p };
                assert_eq!(U32.extract(a & U32.mask(), at, length), cut(shifted(a & U32.mask())) as u64 & U32.mask());
                // In 64 bits, all bits of a position count.
                let expected = if at > 255 { 0 } else { cut(shifted(a)) as u64 };
                assert_eq!(U64.extract(a, at, length), expected);
                // Signed fields: the value with infinite sign extension, truncated to n bits.
                let endless = i128::from(a as i32) >> p.min(127);
                let signed = if n == 0 {
                    0
                } else if n >= 64 {
                    endless
                } else {
                    endless << (128 - n) >> (128 - n)
                };
                assert_eq!(S32.extract(a & U32.mask(), at, length), u64::from(signed as u32), "{a:#x} {at} {length}");
                let b = a.rotate_left(17) & U32.mask();
                let ones = if n >= 32 { u32::MAX } else { (1 << n) - 1 };
                let mask = u64::from(ones.checked_shl(p).unwrap_or(0));
                let moved = u64::from((a as u32).checked_shl(p).unwrap_or(0));
                assert_eq!(U32.insert(a & U32.mask(), b, at, length), b & !mask | moved & mask);
            }
        }
    }
}

#[test]
fn highest_bits_are_found() {
    assert_eq!((U32.find(0, false), S32.find(u32::MAX.into(), false)), (u32::MAX, u32::MAX));
    for a in words() {
        let low = a as u32;
        if low != 0 {
            assert_eq!(U32.find(low.into(), false), low.ilog2());
            assert_eq!(U32.find(low.into(), true), low.leading_zeros());
        }
        if (a as i64) < 0 && a != u64::MAX {
            assert_eq!(S64.find(a, false), (!a).ilog2());
        }
    }
    assert_eq!(S8.value(0x80), -128);
}

#[test]
fn permutations_match_their_definition() {
    let (a, b) = (0x8382_8180u32, 0x7776_f574u32);
    let bytes = [0x80u8, 0x81, 0x82, 0x83, 0x74, 0xf5, 0x76, 0x77];
    let pack = |parts: [u8; 4]| u32::from_le_bytes(parts);
    assert_eq!(permute(a, b, 0x7531, Permutation::Free), pack([bytes[1], bytes[3], bytes[5], bytes[7]]));
    // The highest bit replicates the sign of bytes 0, 4, 5 and 7.
    assert_eq!(permute(a, b, 0xfdc8, Permutation::Free), pack([0xff, 0x00, 0xff, 0x00]));
    for n in 0..4usize {
        let at = |i: usize| bytes[i & 7];
        let selector = n as u32;
        assert_eq!(permute(a, b, selector, Permutation::Forward), pack([at(n), at(n + 1), at(n + 2), at(n + 3)]));
        assert_eq!(permute(a, b, selector, Permutation::Backward), pack([at(n), at(n + 7), at(n + 6), at(n + 5)]));
        assert_eq!(permute(a, b, selector, Permutation::Replicate8), pack([at(n); 4]));
        assert_eq!(permute(a, b, selector, Permutation::EdgeLeft), pack([0, 1, 2, 3].map(|i| at(n.max(i)))));
        assert_eq!(permute(a, b, selector, Permutation::EdgeRight), pack([0, 1, 2, 3].map(|i| at(n.min(i)))));
        let half = 2 * (n & 1);
        assert_eq!(
            permute(a, b, selector, Permutation::Replicate16),
            pack([at(half), at(half + 1), at(half), at(half + 1)])
        );
    }
}

#[test]
fn logic_tables_and_funnels_match_their_definition() {
    let (a, b, c) = (0xf0f0_f0f0u32, 0xcccc_cccc, 0xaaaa_aaaa);
    for table in 0..256u32 {
        // Together, the operands name every row in every byte, so that the result is the table.
        assert_eq!(logic(a, b, c, table), table * 0x0101_0101);
    }
    assert_eq!(logic(5, 3, 9, 0x96), 5 ^ 3 ^ 9);
    for low in words() {
        for high in words() {
            for n in [0u32, 1, 31, 32, 33, 64, u32::MAX] {
                let (low, high) = (low as u32, high as u32);
                let wrapped = n % 32;
                let left = if wrapped == 0 { high } else { high << wrapped | low >> (32 - wrapped) };
                let right = if wrapped == 0 { low } else { low >> wrapped | high << (32 - wrapped) };
                assert_eq!(funnel_left(low, high, n, true), left);
                assert_eq!(funnel_right(low, high, n, true), right);
                let (left, right) = if n >= 32 { (low, high) } else { (left, right) };
                assert_eq!(funnel_left(low, high, n, false), left);
                assert_eq!(funnel_right(low, high, n, false), right);
            }
        }
    }
}

#[test]
fn the_nth_set_bit_is_found() {
    let mask = 0b1001_0110;
    assert_eq!([1, 2, 3, 4, 5].map(|n| find_nth(mask, 0, n)), [1, 2, 4, 7, u32::MAX]);
    assert_eq!([-1, -2, -3].map(|n| find_nth(mask, 4, n)), [4, 2, 1]);
    assert_eq!((find_nth(mask, 4, 0), find_nth(mask, 3, 0)), (4, u32::MAX));
    assert_eq!((ones(4, 8, false), ones(28, 8, false), ones(33, 1, true)), (0xff0, 0xf000_0000, 2));
}

#[test]
fn dot_products_match_their_definition() {
    let mut numbers = Numbers::new(4);
    for _ in 0..2000 {
        let (a, b, c) = (numbers.next() as u32, numbers.next() as u32, numbers.next() as u32);
        let (x, y) = (a.to_le_bytes(), b.to_le_bytes());
        let mixed: i64 = (0..4).map(|i| i64::from(x[i]) * i64::from(y[i] as i8)).sum();
        let unsigned = IntegerFormat { bits: 8, signed: false };
        assert_eq!(dot(a, unsigned, b, true, 0, c), (mixed + i64::from(c)) as u32);
        let halves = [a as i16, (a >> 16) as i16];
        let high: i64 = (0..2).map(|i| i64::from(halves[i]) * i64::from(y[2 + i] as i8)).sum();
        assert_eq!(dot(a, S16, b, true, 2, c), (high + i64::from(c)) as u32);
    }
}
