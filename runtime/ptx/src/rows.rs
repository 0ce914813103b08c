//! Rows of results: all lanes at once, with vector instructions where the processor has them.
//!
//! A result goes from vector registers to its row: through other memory, the next instruction would
//! wait for it.

use super::registers::{FULL, LANES, RegisterScalar, Registers, lanes};

/// The most lanes that cost less one by one than all with vector instructions.
const FEW_LANES: u32 = 3;

/// Writes the lanes of `mask` of a row: the function of the lane and of its values in three rows.
///
/// The function may run on other lanes too: it has a result for any values.
#[inline(always)]
pub fn write<A: RegisterScalar, B: RegisterScalar, C: RegisterScalar, D: RegisterScalar>(
    registers: &mut Registers,
    mask: u32,
    to: u32,
    from: [u32; 3],
    f: impl Fn(usize, A, B, C) -> D,
) {
    #[cfg(target_arch = "x86_64")]
    if is_wide() {
        // SAFETY: the processor supports AVX2 and FMA, as just checked.
        return unsafe { write_wide(registers, mask, to, from, f) };
    }
    write_lanes(registers, mask, to, from, f);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn write_wide<A: RegisterScalar, B: RegisterScalar, C: RegisterScalar, D: RegisterScalar>(
    registers: &mut Registers,
    mask: u32,
    to: u32,
    from: [u32; 3],
    f: impl Fn(usize, A, B, C) -> D,
) {
    write_lanes(registers, mask, to, from, f);
}

/// Writes the lanes of `mask` of a row like [`write`], with the instructions that the caller
/// enables.
#[inline(always)]
pub fn write_lanes<A: RegisterScalar, B: RegisterScalar, C: RegisterScalar, D: RegisterScalar>(
    registers: &mut Registers,
    mask: u32,
    to: u32,
    [a, b, c]: [u32; 3],
    f: impl Fn(usize, A, B, C) -> D,
) {
    let (x, y, z) = (A::row(registers, a), B::row(registers, b), C::row(registers, c));
    if mask == FULL {
        let mut out = [D::default(); LANES];
        for (lane, value) in out.iter_mut().enumerate() {
            *value = f(lane, x[lane], y[lane], z[lane]);
        }
        *D::row_mut(registers, to) = out;
        return;
    }
    let mut out = *D::row(registers, to);
    if mask.count_ones() <= FEW_LANES {
        for lane in lanes(mask) {
            out[lane] = f(lane, x[lane], y[lane], z[lane]);
        }
    } else {
        for (lane, value) in out.iter_mut().enumerate() {
            let result = f(lane, x[lane], y[lane], z[lane]);
            *value = if mask & 1 << lane == 0 { *value } else { result };
        }
    }
    *D::row_mut(registers, to) = out;
}

/// Returns the lanes where the function of the values in two rows holds.
#[inline(always)]
pub fn holding<L: RegisterScalar>(registers: &Registers, rows: [u32; 2], f: impl Fn(L, L) -> bool) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if is_wide() {
        // SAFETY: the processor supports AVX2 and FMA, as just checked.
        return unsafe { holding_wide(registers, rows, f) };
    }
    holding_lanes(registers, rows, f)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn holding_wide<L: RegisterScalar>(registers: &Registers, rows: [u32; 2], f: impl Fn(L, L) -> bool) -> u32 {
    holding_lanes(registers, rows, f)
}

#[inline(always)]
fn holding_lanes<L: RegisterScalar>(registers: &Registers, [a, b]: [u32; 2], f: impl Fn(L, L) -> bool) -> u32 {
    let (x, y) = (L::row(registers, a), L::row(registers, b));
    let mut holds = 0;
    // A method of an iterator might be called, and would have no vector instructions.
    for lane in 0..LANES {
        holds |= u32::from(f(x[lane], y[lane])) << lane;
    }
    holds
}

/// Returns whether the processor has 256-bit vectors and fused multiply-adds.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn is_wide() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

#[cfg(test)]
mod tests {
    use super::super::registers::{RegisterPlace, Sizes};
    use super::*;

    const MASKS: [u32; 9] = [0, 1, 0x8000_0000, 0b111, 0x8001_0001, 0xf, 0xffff, 0x5a5a_0ff0, FULL];

    /// Returns registers that differ in each lane: four rows of words, then four of 64 bits.
    fn registers() -> Registers {
        let mut registers = Registers::new(Sizes { rows: 12, predicates: 0, ids: 0 });
        for lane in 0..LANES {
            for row in 0..4 {
                registers.set(RegisterPlace::Word(row), lane, 0x9e37_79b9 * (u64::from(row) * 32 + lane as u64 + 1));
                let value = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(row) * 32 + lane as u64 + 1);
                registers.set(RegisterPlace::Wide(4 + 2 * row), lane, value);
            }
        }
        registers
    }

    /// Checks every lane of a row against the function of one lane's values.
    fn check(
        change: impl Fn(&mut Registers, u32),
        to: RegisterPlace,
        from: [RegisterPlace; 3],
        f: impl Fn(usize, [u64; 3]) -> u64,
    ) {
        for mask in MASKS {
            let (before, mut after) = (registers(), registers());
            change(&mut after, mask);
            let mut expected = registers();
            for lane in lanes(mask) {
                expected.set(to, lane, f(lane, from.map(|place| before.get(place, lane))));
            }
            assert!(after == expected, "mask {mask:#x}");
        }
    }

    #[test]
    fn the_lanes_of_the_mask_alone_change() {
        use RegisterPlace::{Wide, Word};
        let f = |lane: usize, x: u32, y: u32, z: u32| x.wrapping_mul(y) ^ z ^ lane as u32;
        let one = |lane, [x, y, z]: [u64; 3]| f(lane, x as u32, y as u32, z as u32).into();
        check(|r, mask| write(r, mask, 3, [0, 1, 2], f), Word(3), [Word(0), Word(1), Word(2)], one);
        check(|r, mask| write(r, mask, 1, [0, 1, 1], f), Word(1), [Word(0), Word(1), Word(1)], one);
        let f = |_: usize, x: u64, y: u64, z: u64| x.wrapping_mul(y) ^ z;
        let one = |lane, [x, y, z]: [u64; 3]| f(lane, x, y, z);
        check(|r, mask| write(r, mask, 10, [4, 6, 8], f), Wide(10), [Wide(4), Wide(6), Wide(8)], one);
        let f = |_: usize, x: u32, y: u64, _: u32| u64::from(x) << 16 ^ y;
        check(
            |r, mask| write(r, mask, 6, [2, 6, 2], f),
            Wide(6),
            [Word(2), Wide(6), Word(2)],
            |lane, [x, y, _]| f(lane, x as u32, y, 0),
        );
        let f = |_: usize, x: u64, y: u32, _: u64| (x >> 40) as u32 & y;
        check(
            |r, mask| write(r, mask, 0, [4, 0, 4], f),
            Word(0),
            [Wide(4), Word(0), Wide(4)],
            |lane, [x, y, _]| f(lane, x, y as u32, 0).into(),
        );
    }

    #[test]
    fn a_comparison_holds_in_the_lanes_where_its_function_does() {
        let registers = registers();
        let words = holding(&registers, [0, 1], |x: u32, y: u32| x < y);
        let wide = holding(&registers, [4, 6], |x: u64, y: u64| x < y);
        for lane in 0..LANES {
            let value = |place| registers.get(place, lane);
            let (x, y) = (value(RegisterPlace::Word(0)), value(RegisterPlace::Word(1)));
            assert_eq!(words >> lane & 1 == 1, x < y, "lane {lane}");
            let (x, y) = (value(RegisterPlace::Wide(4)), value(RegisterPlace::Wide(6)));
            assert_eq!(wide >> lane & 1 == 1, x < y, "lane {lane}");
        }
        assert!(words != 0 && words != FULL && wide != 0 && wide != FULL);
    }
}
