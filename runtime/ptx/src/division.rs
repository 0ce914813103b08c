//! Quotients and remainders of integers, row by row.
//!
//! Operands below 2^51 are divided as doubles, with vector instructions where the processor has
//! them. The quotient is rounded to a double, then to an integer. The result is the true quotient
//! or one more, which the remainder shows.

use super::arithmetic::integer::Integer;
use super::body::is_wide;
use super::code::Body;
use super::registers::{LANES, Lane, Place, Registers};

/// The bound of the operands that are divided as doubles.
const SMALL: u64 = 1 << 51;

/// 2^52, whose bits plus a smaller integer are those of the sum of both as doubles.
const SHIFTER: f64 = (1u64 << 52) as f64;

/// Returns the body of a division of registers of 32 or 64 bits; `None` for others. It stores the
/// remainders if `rest`, otherwise the quotients. Results for a divisor of 0 have all bits set and
/// are undefined.
pub fn division(to: Place, [a, b]: [Place; 2], integers: Integer, rest: bool) -> Option<Body> {
    match (to, a, b, integers.bits) {
        (Place::Word(d), Place::Word(a), Place::Word(b), 32) => Some(Box::new(move |registers, mask| {
            let row = |registers: &Registers, at: u32| u32::row(registers, at).map(u64::from);
            let (x, y) = (row(registers, a), row(registers, b));
            let (results, undefined) = divided(x, y, integers, rest);
            registers.put(d, mask, &results.map(|value| value as u32));
            undefined & mask
        })),
        (Place::Wide(d), Place::Wide(a), Place::Wide(b), 64) => Some(Box::new(move |registers, mask| {
            let (x, y) = (*u64::row(registers, a), *u64::row(registers, b));
            let (results, undefined) = divided(x, y, integers, rest);
            registers.put(d, mask, &results);
            undefined & mask
        })),
        _ => None,
    }
}

/// Divides each lane. Returns the results, and the lanes whose divisor is 0.
#[inline(always)]
fn divided(mut x: [u64; LANES], mut y: [u64; LANES], integers: Integer, rest: bool) -> ([u64; LANES], u32) {
    let mut undefined = 0;
    for (lane, divisor) in y.iter_mut().enumerate() {
        undefined |= u32::from(*divisor == 0) << lane;
        *divisor += u64::from(*divisor == 0);
    }
    let mut negative = [[0; LANES]; 2];
    if integers.signed {
        for (row, signs) in [&mut x, &mut y].into_iter().zip(&mut negative) {
            for (value, sign) in row.iter_mut().zip(signs) {
                let extended = integers.value(*value) as i64;
                (*value, *sign) = (extended.unsigned_abs(), extended >> 63);
            }
        }
    }
    let mut results = if x.iter().chain(&y).fold(0, |all, value| all | value) < SMALL {
        small(&x, &y, rest)
    } else {
        std::array::from_fn(|lane| if rest { x[lane] % y[lane] } else { x[lane] / y[lane] })
    };
    if integers.signed {
        // A remainder has the sign of the dividend.
        for (lane, result) in results.iter_mut().enumerate() {
            let sign = if rest { negative[0][lane] } else { negative[0][lane] ^ negative[1][lane] };
            *result = (*result as i64 ^ sign).wrapping_sub(sign) as u64 & integers.mask();
        }
    }
    for (lane, result) in results.iter_mut().enumerate() {
        *result |= if undefined >> lane & 1 == 1 { integers.mask() } else { 0 };
    }
    (results, undefined)
}

/// Divides numbers below [`SMALL`].
#[inline(always)]
fn small(x: &[u64; LANES], y: &[u64; LANES], rest: bool) -> [u64; LANES] {
    #[cfg(target_arch = "x86_64")]
    if is_wide() {
        #[target_feature(enable = "avx2,fma")]
        fn wide(x: &[u64; LANES], y: &[u64; LANES], rest: bool) -> [u64; LANES] {
            of(x, y, rest)
        }
        // SAFETY: the processor supports AVX2 and FMA, as just checked.
        return unsafe { wide(x, y, rest) };
    }
    of(x, y, rest)
}

#[inline(always)]
fn of(x: &[u64; LANES], y: &[u64; LANES], rest: bool) -> [u64; LANES] {
    let double = |n: u64| f64::from_bits(n | SHIFTER.to_bits()) - SHIFTER;
    let mut quotients = [0; LANES];
    for ((quotient, x), y) in quotients.iter_mut().zip(x).zip(y) {
        *quotient = (double(*x) / double(*y) + SHIFTER).to_bits() ^ SHIFTER.to_bits();
    }
    let mut results = [0; LANES];
    for (lane, result) in results.iter_mut().enumerate() {
        let remainder = x[lane].wrapping_sub(quotients[lane].wrapping_mul(y[lane]));
        // All bits, if the quotient was rounded up.
        let above = (remainder as i64 >> 63) as u64;
        *result = if rest { remainder.wrapping_add(above & y[lane]) } else { quotients[lane].wrapping_add(above) };
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_those_of_lane_by_lane_division() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33 ^ state << 31
        };
        let edges = [0, 1, 2, 3, SMALL - 1, SMALL, SMALL + 1, u64::MAX, 1 << 63, (1 << 63) - 1, u64::MAX >> 33, 1000];
        for round in 0..4000 {
            // Rows of one size, so that both ways are taken.
            let shift = [0, 13, 14, 33, 50, 60][round % 6];
            let mut value = || match random() % 8 {
                0 => edges[random() as usize % edges.len()] >> shift,
                _ => random() >> shift >> (random() % 16),
            };
            for (bits, signed) in [(64, false), (64, true), (32, false), (32, true)] {
                let integers = Integer { bits, signed };
                let x: [u64; LANES] = std::array::from_fn(|_| value() & integers.mask());
                let y: [u64; LANES] = std::array::from_fn(|_| value() & integers.mask());
                for rest in [false, true] {
                    let (results, undefined) = divided(x, y, integers, rest);
                    for lane in 0..LANES {
                        let (a, b) = (x[lane], y[lane]);
                        let expected = if rest { integers.rem(a, b) } else { integers.div(a, b) };
                        assert_eq!(undefined >> lane & 1 == 1, expected.is_none());
                        let expected = expected.unwrap_or(integers.mask());
                        assert_eq!(results[lane], expected, "{a} by {b}, {integers:?}, remainder: {rest}");
                    }
                }
            }
        }
    }
}
