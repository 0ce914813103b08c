//! Quotients and remainders of integers, row by row.
//!
//! Operands below 2^51 are divided as doubles, with vector instructions where the processor has
//! them. The quotient is rounded to a double, then to an integer. The result is the true quotient
//! or one more. A negative remainder shows the second case.

use super::arithmetic::integer::IntegerFormat;
use super::code::Body;
use super::registers::{LANES, RegisterPlace, RegisterScalar, Registers};
use super::rows::is_wide;

/// The bound of the operands that are divided as doubles.
const EXACT_BOUND: u64 = 1 << 51;

/// 2^52: its bits plus a smaller integer are the bits of their sum as a double.
const SHIFTER: f64 = (1u64 << 52) as f64;

/// Returns the body of a division of registers of 32 or 64 bits; `None` for others. The body stores
/// the remainders if `rest`, otherwise the quotients. Results for a divisor of 0 have all bits set
/// and are undefined.
pub fn division(to: RegisterPlace, operands: [RegisterPlace; 2], integers: IntegerFormat, rest: bool) -> Option<Body> {
    match (integers.signed, rest) {
        (false, false) => body::<false, false>(to, operands, integers.bits),
        (false, true) => body::<false, true>(to, operands, integers.bits),
        (true, false) => body::<true, false>(to, operands, integers.bits),
        (true, true) => body::<true, true>(to, operands, integers.bits),
    }
}

fn body<const SIGNED: bool, const REST: bool>(
    to: RegisterPlace,
    [a, b]: [RegisterPlace; 2],
    bits: u32,
) -> Option<Body> {
    match (to, a, b, bits) {
        (RegisterPlace::Word(d), RegisterPlace::Word(a), RegisterPlace::Word(b), 32) => {
            Some(Box::new(move |registers, mask| {
                let row = |registers: &Registers, at: u32| u32::row(registers, at).map(u64::from);
                let (x, y) = (row(registers, a), row(registers, b));
                let (results, undefined) = divided::<32, SIGNED, REST>(&x, &y);
                registers.put(d, mask, &results.map(|value| value as u32));
                undefined & mask
            }))
        }
        (RegisterPlace::Wide(d), RegisterPlace::Wide(a), RegisterPlace::Wide(b), 64) => {
            Some(Box::new(move |registers, mask| {
                let (results, undefined) = divided::<64, SIGNED, REST>(u64::row(registers, a), u64::row(registers, b));
                registers.put(d, mask, &results);
                undefined & mask
            }))
        }
        _ => None,
    }
}

/// Divides each lane, with vector instructions where the processor has them. Returns the results,
/// and the lanes whose divisor is 0.
fn divided<const BITS: u32, const SIGNED: bool, const REST: bool>(
    x: &[u64; LANES],
    y: &[u64; LANES],
) -> ([u64; LANES], u32) {
    #[cfg(target_arch = "x86_64")]
    if is_wide() {
        #[target_feature(enable = "avx2,fma")]
        fn wide<const BITS: u32, const SIGNED: bool, const REST: bool>(
            x: &[u64; LANES],
            y: &[u64; LANES],
        ) -> ([u64; LANES], u32) {
            lanes::<BITS, SIGNED, REST>(x, y)
        }
        // SAFETY: the processor supports AVX2 and FMA, as just checked.
        return unsafe { wide::<BITS, SIGNED, REST>(x, y) };
    }
    lanes::<BITS, SIGNED, REST>(x, y)
}

#[inline(always)]
fn lanes<const BITS: u32, const SIGNED: bool, const REST: bool>(
    x: &[u64; LANES],
    y: &[u64; LANES],
) -> ([u64; LANES], u32) {
    if !SIGNED {
        let (union, zeros) =
            x.iter().zip(y).fold((0, 0), |(union, zeros), (x, y)| (union | x | y, zeros + u32::from(*y == 0)));
        if zeros == 0 && union < EXACT_BOUND {
            return (small::<REST>(x, y), 0);
        }
    }
    let integers = IntegerFormat { bits: BITS, signed: SIGNED };
    let (mut x, mut y) = (*x, *y);
    let mut undefined = 0;
    for (lane, divisor) in y.iter_mut().enumerate() {
        undefined |= u32::from(*divisor == 0) << lane;
        *divisor += u64::from(*divisor == 0);
    }
    let mut negative = [[0; LANES]; 2];
    if SIGNED {
        for (row, signs) in [&mut x, &mut y].into_iter().zip(&mut negative) {
            for (value, sign) in row.iter_mut().zip(signs) {
                let extended = integers.value(*value) as i64;
                (*value, *sign) = (extended.unsigned_abs(), extended >> 63);
            }
        }
    }
    let mut results = if x.iter().chain(&y).fold(0, |all, value| all | value) < EXACT_BOUND {
        small::<REST>(&x, &y)
    } else {
        std::array::from_fn(|lane| if REST { x[lane] % y[lane] } else { x[lane] / y[lane] })
    };
    if SIGNED {
        // A remainder has the sign of the dividend.
        for (lane, result) in results.iter_mut().enumerate() {
            let sign = if REST { negative[0][lane] } else { negative[0][lane] ^ negative[1][lane] };
            *result = (*result as i64 ^ sign).wrapping_sub(sign) as u64 & integers.mask();
        }
    }
    for (lane, result) in results.iter_mut().enumerate() {
        *result |= if undefined >> lane & 1 == 1 { integers.mask() } else { 0 };
    }
    (results, undefined)
}

/// Divides numbers below [`EXACT_BOUND`].
#[inline(always)]
fn small<const REST: bool>(x: &[u64; LANES], y: &[u64; LANES]) -> [u64; LANES] {
    let double = |n: u64| f64::from_bits(n | SHIFTER.to_bits()) - SHIFTER;
    let mut results = [0; LANES];
    for ((result, x), y) in results.iter_mut().zip(x).zip(y) {
        let quotient = (double(*x) / double(*y) + SHIFTER).to_bits() ^ SHIFTER.to_bits();
        let remainder = x.wrapping_sub(quotient.wrapping_mul(*y));
        // All ones if the quotient was rounded up, otherwise 0.
        let above = (remainder as i64 >> 63) as u64;
        *result = if REST { remainder.wrapping_add(above & y) } else { quotient.wrapping_add(above) };
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
        let edges = [
            0,
            1,
            2,
            3,
            EXACT_BOUND - 1,
            EXACT_BOUND,
            EXACT_BOUND + 1,
            u64::MAX,
            1 << 63,
            (1 << 63) - 1,
            u64::MAX >> 33,
            1000,
        ];
        for round in 0..4000 {
            // All operands of a row have about the same size, so that rows take either path.
            let shift = [0, 13, 14, 33, 50, 60][round % 6];
            let mut value = || match random() % 8 {
                0 => edges[random() as usize % edges.len()] >> shift,
                _ => random() >> shift >> (random() % 16),
            };
            let (x, y): ([u64; LANES], [u64; LANES]) =
                (std::array::from_fn(|_| value()), std::array::from_fn(|_| value()));
            compare::<64, false, false>(&x, &y);
            compare::<64, false, true>(&x, &y);
            compare::<64, true, false>(&x, &y);
            compare::<64, true, true>(&x, &y);
            let (x, y) = (x.map(|value| value & 0xffff_ffff), y.map(|value| value & 0xffff_ffff));
            compare::<32, false, false>(&x, &y);
            compare::<32, false, true>(&x, &y);
            compare::<32, true, false>(&x, &y);
            compare::<32, true, true>(&x, &y);
        }
    }

    fn compare<const BITS: u32, const SIGNED: bool, const REST: bool>(x: &[u64; LANES], y: &[u64; LANES]) {
        let integers = IntegerFormat { bits: BITS, signed: SIGNED };
        let (results, undefined) = divided::<BITS, SIGNED, REST>(x, y);
        for lane in 0..LANES {
            let (a, b) = (x[lane], y[lane]);
            let expected = if REST { integers.rem(a, b) } else { integers.div(a, b) };
            assert_eq!(undefined >> lane & 1 == 1, expected.is_none());
            let expected = expected.unwrap_or(integers.mask());
            assert_eq!(results[lane], expected, "{a} by {b}, {integers:?}, remainder: {REST}");
        }
    }
}
