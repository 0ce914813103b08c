//! Tests of conversions, against Rust's `as` and rounding functions, and exact comparisons.

use super::super::convert::{from_integer, to_float, to_integer, to_integral};
use super::super::float::{F16, F32, F64, Rounding};
use super::super::integer::IntegerFormat;
use super::{Numbers, doubles, singles};

const fn integer(bits: u32, signed: bool) -> IntegerFormat {
    IntegerFormat { bits, signed }
}

fn round(x: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => x.round_ties_even(),
        Rounding::Zero => x.trunc(),
        Rounding::Down => x.floor(),
        Rounding::Up => x.ceil(),
    }
}

/// Converts by Rust's saturating `as`, with the PTX result for a NaN.
fn cast(x: f64, to: IntegerFormat, wide: bool) -> u64 {
    if x.is_nan() {
        return if wide || to.bits == 64 { 1 << (to.bits - 1) } else { 0 };
    }
    match (to.signed, to.bits) {
        (true, 8) => x as i8 as u8 as u64,
        (true, 16) => x as i16 as u16 as u64,
        (true, 32) => x as i32 as u32 as u64,
        (true, _) => x as i64 as u64,
        (false, 8) => x as u8 as u64,
        (false, 16) => x as u16 as u64,
        (false, 32) => x as u32 as u64,
        (false, _) => x as u64,
    }
}

const INTEGERS: [IntegerFormat; 8] = [
    integer(8, false),
    integer(8, true),
    integer(16, false),
    integer(16, true),
    integer(32, false),
    integer(32, true),
    integer(64, false),
    integer(64, true),
];

#[test]
fn floats_convert_to_integers() {
    for rounding in Rounding::ALL {
        for to in INTEGERS {
            for &a in &singles() {
                let expected = cast(round(f64::from(f32::from_bits(a)), rounding), to, false);
                assert_eq!(to_integer(F32, to, a.into(), rounding), expected, "{a:#x} {to:?} {rounding:?}");
            }
            for &a in &doubles() {
                let expected = cast(round(f64::from_bits(a), rounding), to, true);
                assert_eq!(to_integer(F64, to, a, rounding), expected, "{a:#x} {to:?} {rounding:?}");
            }
            let mut numbers = Numbers::new(1);
            for _ in 0..2000 {
                // Numbers near the range of the integers.
                let random = numbers.next();
                let x = (random as i64 >> (random % 61)) as f64 / 4.0;
                assert_eq!(to_integer(F64, to, x.to_bits(), rounding), cast(round(x, rounding), to, true));
            }
        }
    }
}

#[test]
fn floats_round_to_integral_floats() {
    for rounding in Rounding::ALL {
        for &a in &singles() {
            let expected = round(f64::from(f32::from_bits(a)), rounding) as f32;
            let ours = to_integral(F32, a.into(), rounding) as u32;
            assert!(ours == expected.to_bits() || expected.is_nan() && f32::from_bits(ours).is_nan(), "{a:#x}");
        }
        for &a in &doubles() {
            let expected = round(f64::from_bits(a), rounding);
            let ours = to_integral(F64, a, rounding);
            assert!(ours == expected.to_bits() || expected.is_nan() && f64::from_bits(ours).is_nan(), "{a:#x}");
        }
    }
}

#[test]
fn integers_convert_to_floats() {
    let mut numbers = Numbers::new(2);
    for i in 0..20_000u64 {
        let random = numbers.next() >> (i % 64);
        for word in [random, random.wrapping_neg()] {
            let (signed, unsigned) = (integer(64, true), integer(64, false));
            let near = Rounding::Nearest;
            assert_eq!(from_integer(signed, F32, word, near) as u32, (word as i64 as f32).to_bits());
            assert_eq!(from_integer(unsigned, F32, word, near) as u32, (word as f32).to_bits());
            assert_eq!(from_integer(signed, F64, word, near), (word as i64 as f64).to_bits());
            assert_eq!(from_integer(unsigned, F64, word, near), (word as f64).to_bits());
            let low = integer(32, true);
            assert_eq!(from_integer(low, F32, word, near) as u32, (word as i32 as f32).to_bits());
            // Directed roundings give the neighbors of the exact value.
            let exact = i128::from(word as i64);
            let value = |r| f32::from_bits(from_integer(signed, F32, word, r) as u32) as i128;
            let (down, up, zero) = (value(Rounding::Down), value(Rounding::Up), value(Rounding::Zero));
            assert!(down <= exact && exact <= up);
            assert_eq!(zero, if exact < 0 { up } else { down });
            assert!(down == up || f32::from_bits((down as f32).to_bits() + 1) as i128 == up || exact < 0);
        }
    }
}

#[test]
fn singles_and_doubles_convert_as_defined() {
    for &a in &doubles() {
        let x = f64::from_bits(a);
        let ours = to_float(F64, F32, a, Rounding::Nearest) as u32;
        assert!(ours == (x as f32).to_bits() || x.is_nan() && f32::from_bits(ours).is_nan(), "{a:#x}");
        let value = |r| f64::from(f32::from_bits(to_float(F64, F32, a, r) as u32));
        if !x.is_nan() {
            let (down, up, zero) = (value(Rounding::Down), value(Rounding::Up), value(Rounding::Zero));
            assert!(down <= x && x <= up, "{a:#x}");
            assert_eq!(zero, if x < 0.0 { up } else { down });
        }
    }
    for &a in &singles() {
        let ours = to_float(F32, F64, a.into(), Rounding::Nearest);
        let theirs = f64::from(f32::from_bits(a));
        assert!(ours == theirs.to_bits() || theirs.is_nan() && f64::from_bits(ours).is_nan());
    }
}

#[test]
fn halves_and_singles_convert_as_defined() {
    let value = |bits: u64| -> f64 {
        let (exponent, fraction) = ((bits >> 10 & 31) as i32, (bits & 0x3ff) as f64);
        let magnitude =
            if exponent == 0 { fraction * 2f64.powi(-24) } else { (1024.0 + fraction) * 2f64.powi(exponent - 25) };
        if bits & 0x8000 != 0 { -magnitude } else { magnitude }
    };
    for half in (0..0x10000u64).filter(|h| h & 0x7c00 != 0x7c00) {
        let single = to_float(F16, F32, half, Rounding::Nearest);
        assert_eq!(single as u32, (value(half) as f32).to_bits());
        assert_eq!(to_float(F32, F16, single, Rounding::Nearest), half);
        // Half way to the next value, and next to that.
        if half & 0x7fff < 0x7bff {
            let (low, high) = (value(half), value(half + 1));
            let middle = (low + high) / 2.0;
            let even = if half & 1 == 0 { half } else { half + 1 };
            let convert = |x: f64, r| to_float(F64, F16, x.to_bits(), r);
            assert_eq!(convert(middle, Rounding::Nearest), even);
            let inwards = f64::from_bits(middle.to_bits() - 1);
            let outwards = f64::from_bits(middle.to_bits() + 1);
            assert_eq!(convert(inwards, Rounding::Nearest), half);
            assert_eq!(convert(outwards, Rounding::Nearest), half + 1);
            assert_eq!(convert(middle, Rounding::Zero), half);
            let (down, up) = if half & 0x8000 != 0 { (half + 1, half) } else { (half, half + 1) };
            assert_eq!(convert(middle, Rounding::Down), down);
            assert_eq!(convert(middle, Rounding::Up), up);
        }
    }
    let big = |x: f32, r| to_float(F32, F16, x.to_bits().into(), r);
    assert_eq!(big(65519.0, Rounding::Nearest), 0x7bff);
    assert_eq!(big(65520.0, Rounding::Nearest), 0x7c00);
    assert_eq!(big(1e9, Rounding::Zero), 0x7bff);
    assert_eq!(big(-1e9, Rounding::Up), 0xfbff);
    assert_eq!(big(f32::NAN, Rounding::Nearest), 0x7fff);
}
