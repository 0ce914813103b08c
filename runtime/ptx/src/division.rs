//! Quotients and remainders of integers, row by row.
//!
//! Operands below 2^51 are divided as doubles, with vector instructions where the processor has
//! them. The quotient is rounded to a double, then to an integer. The result is the true quotient
//! or one more. A negative remainder shows the second case.

use super::arithmetic::integer::IntegerFormat;
use super::code::Body;
use super::registers::{LANES, RegisterPlace, RegisterScalar, Registers};
use super::rows::{is_wide, write_lanes};

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
            Some(Box::new(move |registers, mask| divide::<u32, 32, SIGNED, REST>(registers, mask, d, [a, b])))
        }
        (RegisterPlace::Wide(d), RegisterPlace::Wide(a), RegisterPlace::Wide(b), 64) => {
            Some(Box::new(move |registers, mask| divide::<u64, 64, SIGNED, REST>(registers, mask, d, [a, b])))
        }
        _ => None,
    }
}

/// An integer of a register's width.
trait DividedInteger: RegisterScalar + Into<u64> {
    /// Returns the low bits of `value`.
    fn low(value: u64) -> Self;
}

impl DividedInteger for u32 {
    #[inline(always)]
    fn low(value: u64) -> u32 {
        value as u32
    }
}

impl DividedInteger for u64 {
    #[inline(always)]
    fn low(value: u64) -> u64 {
        value
    }
}

/// Divides the lanes of `mask` of two rows, with vector instructions where the processor has them.
/// Returns the lanes whose divisor is 0.
fn divide<L: DividedInteger, const BITS: u32, const SIGNED: bool, const REST: bool>(
    registers: &mut Registers,
    mask: u32,
    to: u32,
    from: [u32; 2],
) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if is_wide() {
        #[target_feature(enable = "avx2,fma")]
        fn wide<L: DividedInteger, const BITS: u32, const SIGNED: bool, const REST: bool>(
            registers: &mut Registers,
            mask: u32,
            to: u32,
            from: [u32; 2],
        ) -> u32 {
            divide_row::<L, BITS, SIGNED, REST, true>(registers, mask, to, from)
        }
        // SAFETY: the processor supports AVX2 and FMA, as just checked.
        return unsafe { wide::<L, BITS, SIGNED, REST>(registers, mask, to, from) };
    }
    divide_row::<L, BITS, SIGNED, REST, false>(registers, mask, to, from)
}

#[inline(always)]
fn divide_row<L: DividedInteger, const BITS: u32, const SIGNED: bool, const REST: bool, const FUSED: bool>(
    registers: &mut Registers,
    mask: u32,
    to: u32,
    [a, b]: [u32; 2],
) -> u32 {
    let (x, y) = (L::row(registers, a), L::row(registers, b));
    if !SIGNED && are_small(x, y) {
        write_lanes(registers, mask, to, [a, b, a], |_, x: L, y: L, _: L| {
            L::low(small::<REST, FUSED>(x.into(), y.into()))
        });
        return 0;
    }
    let (results, undefined) = lanes::<BITS, SIGNED, REST, FUSED>(&x.map(L::into), &y.map(L::into));
    registers.put(to, mask, &results.map(L::low));
    undefined & mask
}

/// Returns whether all numbers are below [`EXACT_BOUND`] and no divisor is 0.
#[inline(always)]
fn are_small<L: DividedInteger>(x: &[L; LANES], y: &[L; LANES]) -> bool {
    let union = x.iter().zip(y).fold(0, |union, (x, y)| {
        let (x, y): (u64, u64) = ((*x).into(), (*y).into());
        // A divisor of 0 sets all bits.
        union | x | y | y.wrapping_sub(1)
    });
    union < EXACT_BOUND
}

/// Divides each lane. Returns the results, and the lanes whose divisor is 0.
#[inline(always)]
fn lanes<const BITS: u32, const SIGNED: bool, const REST: bool, const FUSED: bool>(
    x: &[u64; LANES],
    y: &[u64; LANES],
) -> ([u64; LANES], u32) {
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
        std::array::from_fn(|lane| small::<REST, FUSED>(x[lane], y[lane]))
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

/// Divides numbers below [`EXACT_BOUND`], with a fused multiply-add if `FUSED`.
#[inline(always)]
fn small<const REST: bool, const FUSED: bool>(x: u64, y: u64) -> u64 {
    let double = |n: u64| f64::from_bits(n | SHIFTER.to_bits()) - SHIFTER;
    let integer = |n: f64| (n + SHIFTER).to_bits() ^ SHIFTER.to_bits();
    let (dividend, divisor) = (double(x), double(y));
    let quotient = integer(dividend / divisor);
    if FUSED {
        // The remainder is exact: an integer of less than 52 bits. If the quotient was rounded up,
        // the remainder is negative.
        let remainder = (-double(quotient)).mul_add(divisor, dividend);
        let above = remainder < 0.0;
        return if REST { integer(remainder + if above { divisor } else { 0.0 }) } else { quotient - u64::from(above) };
    }
    let remainder = x.wrapping_sub(quotient.wrapping_mul(y));
    // All ones if the quotient was rounded up, otherwise 0.
    let above = (remainder as i64 >> 63) as u64;
    if REST { remainder.wrapping_add(above & y) } else { quotient.wrapping_add(above) }
}

#[cfg(test)]
mod tests {
    use super::super::registers::{FULL, Sizes};
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
            compare::<u64, 64, false, false>(&x, &y);
            compare::<u64, 64, false, true>(&x, &y);
            compare::<u64, 64, true, false>(&x, &y);
            compare::<u64, 64, true, true>(&x, &y);
            let (x, y) = (x.map(|value| value as u32), y.map(|value| value as u32));
            compare::<u32, 32, false, false>(&x, &y);
            compare::<u32, 32, false, true>(&x, &y);
            compare::<u32, 32, true, false>(&x, &y);
            compare::<u32, 32, true, true>(&x, &y);
        }
    }

    fn compare<L: DividedInteger, const BITS: u32, const SIGNED: bool, const REST: bool>(
        x: &[L; LANES],
        y: &[L; LANES],
    ) {
        let mut registers = Registers::new(Sizes { rows: 6, predicates: 0, ids: 0 });
        registers.put(0, FULL, x);
        registers.put(2, FULL, y);
        let mut plain = registers.clone();
        let undefined = divide::<L, BITS, SIGNED, REST>(&mut registers, FULL, 4, [0, 2]);
        // A processor without vectors divides in the same way.
        assert_eq!(undefined, divide_row::<L, BITS, SIGNED, REST, false>(&mut plain, FULL, 4, [0, 2]));
        assert!(registers == plain, "{BITS} bits, signed: {SIGNED}, remainder: {REST}");
        let integers = IntegerFormat { bits: BITS, signed: SIGNED };
        for lane in 0..LANES {
            let (a, b) = (x[lane].into(), y[lane].into());
            let expected = if REST { integers.rem(a, b) } else { integers.div(a, b) };
            assert_eq!(undefined >> lane & 1 == 1, expected.is_none());
            let expected = expected.unwrap_or(integers.mask());
            let result: u64 = L::row(&registers, 4)[lane].into();
            assert_eq!(result, expected, "{a} by {b}, {integers:?}, remainder: {REST}");
        }
    }
}
