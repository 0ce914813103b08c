//! Tests of sums, products, quotients and roots.

use super::super::float::{F16, F32, F64, FloatFormat, FloatValue, Rounding};
use super::super::native;
use super::{Numbers, doubles, singles};
use std::cmp::Ordering;

fn same(format: FloatFormat, a: u64, b: u64) -> bool {
    a == b || format.is_nan(a) && format.is_nan(b)
}

#[test]
fn rounding_to_nearest_agrees_with_the_processor_in_single() {
    let near = Rounding::Nearest;
    for &a in &singles() {
        let x = f32::from_bits(a);
        assert!(same(F32, F32.sqrt(a.into(), near), x.sqrt().to_bits().into()), "sqrt {a:#x}");
        assert_eq!(F32.sqrt(a.into(), near) as u32, native::sqrt32(a));
        for &b in &singles() {
            let y = f32::from_bits(b);
            let pairs = [
                (F32.add(a.into(), b.into(), near), x + y, native::add32(a, b)),
                (F32.sub(a.into(), b.into(), near), x - y, native::sub32(a, b)),
                (F32.mul(a.into(), b.into(), near), x * y, native::mul32(a, b)),
                (F32.div(a.into(), b.into(), near), x / y, native::div32(a, b)),
            ];
            for (i, (ours, theirs, native)) in pairs.into_iter().enumerate() {
                assert!(same(F32, ours, theirs.to_bits().into()), "{i}: {a:#x} {b:#x}: {ours:#x}");
                assert_eq!(ours as u32, native, "{i}: {a:#x} {b:#x}");
            }
            for &c in &singles()[..72] {
                let ours = F32.fma(a.into(), b.into(), c.into(), near);
                let theirs = x.mul_add(y, f32::from_bits(c)).to_bits();
                assert!(same(F32, ours, theirs.into()), "{a:#x} {b:#x} {c:#x}: {ours:#x} {theirs:#x}");
                assert_eq!(ours as u32, native::fma32(a, b, c));
            }
        }
    }
}

#[test]
fn rounding_to_nearest_agrees_with_the_processor_in_double() {
    let near = Rounding::Nearest;
    for &a in &doubles() {
        let x = f64::from_bits(a);
        assert_eq!(F64.sqrt(a, near), native::sqrt64(a), "sqrt {a:#x}");
        for &b in &doubles() {
            let y = f64::from_bits(b);
            for (ours, theirs) in [
                (F64.add(a, b, near), native::add64(a, b)),
                (F64.sub(a, b, near), native::sub64(a, b)),
                (F64.mul(a, b, near), native::mul64(a, b)),
                (F64.div(a, b, near), native::div64(a, b)),
            ] {
                assert_eq!(ours, theirs, "{a:#x} {b:#x}");
            }
            for &c in doubles().iter().step_by(3) {
                let ours = F64.fma(a, b, c, near);
                assert!(same(F64, ours, x.mul_add(y, f64::from_bits(c)).to_bits()), "{a:#x} {b:#x} {c:#x}: {ours:#x}");
            }
        }
    }
}

#[test]
fn fused_product_cancels_exactly() {
    // Close operands, where all bits except the last ones cancel.
    let mut numbers = Numbers::new(3);
    for _ in 0..200_000 {
        let random = numbers.next();
        let a = 0x3f80_0000 | random as u32 & 0x7f_ffff;
        let b = 0x3f80_0000 | (random >> 23) as u32 & 0x7f_ffff;
        let c = (-(f32::from_bits(a) * f32::from_bits(b))).to_bits() ^ (random >> 62) as u32;
        let exact = f64::from(f32::from_bits(a)) * f64::from(f32::from_bits(b)) + f64::from(f32::from_bits(c));
        // The product has 48 bits, and so has the sum: it is exact in double precision, and then
        // rounded once.
        assert_eq!(F32.fma(a.into(), b.into(), c.into(), Rounding::Nearest) as u32, (exact as f32).to_bits());
    }
}

/// Returns every finite half in ascending order, in units of 2^-24: the bits and the value, with
/// one zero.
fn halves() -> Vec<(u64, i128)> {
    let mut all: Vec<(u64, i128)> =
        (0..0x10000u64).filter(|x| *x & 0x7c00 != 0x7c00 && *x != 0x8000).map(|x| (x, units(x))).collect();
    all.sort_by_key(|(_, v)| *v);
    all
}

/// Returns the value of a half by the definition of its format, in units of 2^-24.
fn units(bits: u64) -> i128 {
    let (exponent, fraction) = (bits >> 10 & 31, (bits & 0x3ff) as i128);
    let magnitude = if exponent == 0 { fraction } else { (fraction + 1024) << (exponent - 1) };
    if bits & 0x8000 != 0 { -magnitude } else { magnitude }
}

/// Rounds a number by search. `compare` compares the number with a half, and `middle` compares the
/// number with the middle of two neighbors.
fn searched(
    all: &[(u64, i128)],
    rounding: Rounding,
    negative: bool,
    compare: impl Fn(i128) -> Ordering,
    middle: impl Fn(i128, i128) -> Ordering,
) -> u64 {
    let above = all.partition_point(|(_, v)| compare(*v) == Ordering::Greater);
    let sign = if negative { 0x8000 } else { 0 };
    if above < all.len() && compare(all[above].1) == Ordering::Equal {
        let bits = all[above].0;
        return if bits & 0x7fff == 0 { sign } else { bits };
    }
    // Beyond the largest half, the next value is ±2^16, which is rounded to ±∞.
    let limit = 1i128 << 40;
    let (low, high) = match above {
        0 => ((0xfc00, -limit), all[0]),
        n if n == all.len() => (all[n - 1], (0x7c00, limit)),
        n => (all[n - 1], all[n]),
    };
    let chosen = match rounding {
        Rounding::Down => low,
        Rounding::Up => high,
        Rounding::Zero => {
            if negative {
                high
            } else {
                low
            }
        }
        Rounding::Nearest => match middle(low.1, high.1) {
            Ordering::Less => low,
            Ordering::Greater => high,
            Ordering::Equal => {
                if low.0 & 1 == 0 {
                    low
                } else {
                    high
                }
            }
        },
    };
    if chosen.0 & 0x7fff == 0 { sign } else { chosen.0 }
}

fn pool() -> Vec<u64> {
    let edges = [
        0, 1, 2, 0x3fe, 0x3ff, 0x400, 0x401, 0x7ff, 0x3bff, 0x3c00, 0x3c01, 0x3e00, 0x4000, 0x4248, 0x6400, 0x7800,
        0x7bfe, 0x7bff,
    ];
    edges.into_iter().flat_map(|x| [x, x | 0x8000]).collect()
}

#[test]
fn sums_and_products_of_halves_agree_with_a_search() {
    let all = halves();
    let finite = |x: u64| x & 0x7c00 != 0x7c00;
    for rounding in Rounding::ALL {
        for a in pool() {
            for b in (0..0x10000u64).step_by(7).filter(|b| finite(*b)).chain(pool()) {
                let (x, y) = (units(a), units(b));
                let sum = x + y;
                // An exact zero is negative if both operands are, or in rounding toward −∞.
                let zero = match (a & 0x8000 != 0, b & 0x8000 != 0) {
                    (p, q) if x == 0 && y == 0 && p == q => p,
                    _ => rounding == Rounding::Down,
                };
                let negative = if sum == 0 { zero } else { sum < 0 };
                let expected = searched(&all, rounding, negative, |v| sum.cmp(&v), |l, h| (2 * sum).cmp(&(l + h)));
                assert_eq!(F16.add(a, b, rounding), expected, "{a:#x} + {b:#x} {rounding:?}");
                let product = x * y;
                let negative = (a ^ b) & 0x8000 != 0;
                let expected = searched(
                    &all,
                    rounding,
                    negative,
                    |v| product.cmp(&(v << 24)),
                    |l, h| (2 * product).cmp(&((l + h) << 24)),
                );
                assert_eq!(F16.mul(a, b, rounding), expected, "{a:#x} * {b:#x} {rounding:?}");
            }
        }
    }
}

#[test]
fn fused_products_of_halves_agree_with_a_search() {
    let all = halves();
    let mut numbers = Numbers::new(5);
    for rounding in Rounding::ALL {
        for _ in 0..60_000 {
            let random = numbers.next();
            let [a, b, c] = [random & 0xbfff, random >> 16 & 0xbfff, random >> 32 & 0xbfff]
                .map(|x| if x & 0x7c00 == 0x7c00 { x & 0x83ff } else { x });
            let exact = units(a) * units(b) + (units(c) << 24);
            if exact == 0 {
                continue;
            }
            let expected = searched(
                &all,
                rounding,
                exact < 0,
                |v| exact.cmp(&(v << 24)),
                |l, h| (2 * exact).cmp(&((l + h) << 24)),
            );
            assert_eq!(F16.fma(a, b, c, rounding), expected, "{a:#x} * {b:#x} + {c:#x} {rounding:?}");
        }
    }
}

#[test]
fn quotients_and_roots_of_halves_agree_with_a_search() {
    let all = halves();
    for rounding in Rounding::ALL {
        for a in (0..0x10000u64).filter(|a| a & 0x7c00 != 0x7c00) {
            if a & 0x8000 == 0 && a != 0 {
                // √(x · 2^-24) = v · 2^-24 where x · 2^24 = v².
                let x = units(a) << 24;
                let square = |v: i128| if v < 0 { -1 } else { v * v };
                let expected =
                    searched(&all, rounding, false, |v| x.cmp(&square(v)), |l, h| (4 * x).cmp(&square(l + h)));
                assert_eq!(F16.sqrt(a, rounding), expected, "sqrt {a:#x} {rounding:?}");
            }
            for b in [1u64, 0x3ff, 0x400, 0x3c00, 0x3c01, 0x4200, 0x4248, 0x7bff, 0x8001, 0xc200] {
                let (x, y) = (units(a) << 24, units(b));
                let negative = (a ^ b) & 0x8000 != 0;
                let compare = |v: i128| if y > 0 { x.cmp(&(v * y)) } else { (v * y).cmp(&x) };
                let middle =
                    |l: i128, h: i128| if y > 0 { (2 * x).cmp(&((l + h) * y)) } else { ((l + h) * y).cmp(&(2 * x)) };
                let expected = searched(&all, rounding, negative, compare, middle);
                assert_eq!(F16.div(a, b, rounding), expected, "{a:#x} / {b:#x} {rounding:?}");
            }
        }
    }
}

#[test]
fn directed_results_are_adjacent_and_on_both_sides() {
    let key = |x: u64| if x >> 63 != 0 { -((x & !(1 << 63)) as i64) } else { x as i64 };
    for &a in &doubles() {
        for &b in &doubles() {
            type Operation = fn(FloatFormat, u64, u64, Rounding) -> u64;
            let operations: [Operation; 4] =
                [FloatFormat::add, FloatFormat::mul, FloatFormat::div, |f, a, _, r| f.sqrt(a, r)];
            for (i, operation) in operations.into_iter().enumerate() {
                let [near, zero, down, up] = Rounding::ALL.map(|r| operation(F64, a, b, r));
                if F64.is_nan(near) {
                    assert!(F64.is_nan(zero) && F64.is_nan(down) && F64.is_nan(up));
                    continue;
                }
                let apart = key(up) - key(down);
                assert!(apart == 0 || apart == 1, "{i}: {a:#x} {b:#x}");
                assert!(key(near) == key(down) || key(near) == key(up));
                let inner = if key(down).abs() < key(up).abs() { down } else { up };
                assert!(key(zero) == key(inner), "{i}: {a:#x} {b:#x}");
            }
        }
    }
}

#[test]
fn minimum_and_maximum_keep_numbers_and_order_zeros() {
    let (one, two, nan) = (1f32.to_bits().into(), 2f32.to_bits().into(), u64::from(f32::NAN.to_bits()));
    let (plus, minus) = (0, 1 << 31);
    assert_eq!((F32.min(one, two), F32.max(one, two)), (one, two));
    assert_eq!((F32.min(nan, two), F32.max(one, nan)), (two, one));
    assert!(F32.is_nan(F32.min(nan, nan)));
    for (a, b) in [(plus, minus), (minus, plus)] {
        assert_eq!((F32.min(a, b), F32.max(a, b)), (minus, plus));
    }
    for &a in &singles() {
        for &b in &singles() {
            let order = f32::from_bits(a).partial_cmp(&f32::from_bits(b));
            assert_eq!(F32.compare(a.into(), b.into()), order);
        }
    }
}

#[test]
fn subnormals_flush_and_results_saturate() {
    for &a in &singles() {
        let x = f32::from_bits(a);
        let flushed = if x.is_subnormal() { 0f32.copysign(x) } else { x };
        assert!(same(F32, F32.flush(a.into()), flushed.to_bits().into()));
        assert_eq!(native::flush32(a), F32.flush(a.into()) as u32);
        let saturated = if x.is_nan() || x <= 0.0 { 0.0 } else { x.min(1.0) };
        assert_eq!(F32.saturate(a.into()) as u32, saturated.to_bits());
        assert_eq!(native::saturate32(a), saturated.to_bits());
        assert_eq!(matches!(F32.decode(a.into()), FloatValue::Nan), x.is_nan());
    }
}
