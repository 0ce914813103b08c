//! Tests of integer instructions beyond Rust's operators, on boundary values, against their meaning
//! in plain Rust.

use super::support::{agree, assemble, checker};
use kernel_dsl::prelude::*;
use runtime::Device;
use runtime::testing::{Bound, Checker, Expected, Input, Random};

const WORDS: [u32; 14] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x8000,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_fffe,
    0xffff_ffff,
    0x8081_7f01,
    0x0123_fedc,
];
const SMALL: [u32; 12] = [0, 1, 4, 7, 8, 15, 31, 32, 33, 63, 64, 255];

/// Returns triples of words; the third is partly from small numbers.
fn triples(seed: u64) -> [Vec<u32>; 3] {
    let mut random = Random::new(seed);
    let mut all = [Vec::new(), Vec::new(), Vec::new()];
    for a in WORDS {
        for b in WORDS {
            for _ in 0..3 {
                let c = if random.bits().is_multiple_of(2) { SMALL } else { WORDS[..12].try_into().unwrap() };
                all[0].push(a ^ (random.bits() as u32 & random.bits() as u32 & 0x1010_1010));
                all[1].push(b);
                all[2].push(c[random.bits() as usize % 12]);
            }
        }
    }
    all
}

/// Stores a selected value to several elements of a word, alone and beside others.
#[kernel(block = 64, grid = x.len().div_ceil(64))]
#[requires(bytes.len() == 8 * x.len(), halves.len() == 2 * x.len())]
fn spread(x: &[u32], bytes: &mut [u8], halves: &mut [i16]) {
    let i = grid::index();
    if i < x.len() {
        let all: u8 = if x[i] > 7 { 255 } else { 3 };
        bytes.store(8 * i, [all; 4]);
        let other: u8 = if x[i] > 7 { 1 } else { 2 };
        bytes.store(8 * i + 4, [all, other, all, other]);
        let half: i16 = if x[i] % 2 == 0 { -5 } else { 1000 };
        halves.store(2 * i, [half; 2]);
    }
}

#[test]
fn selected_value_may_be_several_parts_of_a_word() {
    let x: Vec<u32> = WORDS.into_iter().chain(SMALL).collect();
    let bytes = x.iter().flat_map(|x| {
        let (all, other) = if *x > 7 { (255u8, 1) } else { (3, 2) };
        [all, all, all, all, all, other, all, other]
    });
    let halves = x.iter().flat_map(|x| [if x % 2 == 0 { -5i16 } else { 1000 }; 2]);
    let expected = [Expected::exact(1, bytes), Expected::exact(2, halves)];
    let inputs = vec![Input::slice(&x), Input::slice(&vec![0u8; 8 * x.len()]), Input::slice(&vec![0i16; 2 * x.len()])];
    agree::<spread>(&checker(false), "spread", inputs, &expected);
    assemble::<spread>();
}

/// Computes all of `int::` with 32 bits, and dot products, as bits.
#[kernel(block = 64, grid = a.len().div_ceil(64))]
#[requires(b.len() == a.len(), c.len() == a.len(), y.len() == 28 * a.len())]
fn words(a: &[u32], b: &[u32], c: &[u32], y: &mut [u32]) {
    let i = grid::index();
    if i < a.len() {
        let (a, b, c) = (a[i], b[i], c[i]);
        let (s, t) = (a as i32, b as i32);
        let [a0, a1, a2, a3] = [a as i8, (a >> 8) as i8, (a >> 16) as i8, (a >> 24) as i8];
        let [b0, b1, b2, b3] = [b as u8, (b >> 8) as u8, (b >> 16) as u8, (b >> 24) as u8];
        let all = [
            int::mul_hi(a, b),
            int::mul_hi(s, t) as u32,
            int::mul24(a, b),
            int::mul24(s, t) as u32,
            int::byte_perm(a, b, c),
            int::byte_perm(a, b, 0x5410),
            int::funnel_shl(a, b, c),
            int::funnel_shr(a, b, c),
            int::funnel_shl(a, b, 7),
            int::extract(a, c % 256, b >> 28),
            int::extract(s, c % 256, b >> 28) as u32,
            int::extract(s, 5, 9) as u32,
            int::insert(a, b, c % 256, a >> 27),
            int::insert(s, t, 12, 5) as u32,
            dp4a(a, b, c),
            dp4a(s, t, c as i32) as u32,
            dp4a(a, t, c as i32) as u32,
            dp4a(s, b, c as i32) as u32,
            dp2a_lo(a, b, c),
            dp2a_hi(a, b, c),
            dp2a_lo(s, t, c as i32) as u32,
            dp2a_hi(s, t, c as i32) as u32,
            dp2a_hi(a, t, c as i32) as u32,
            dp2a_lo(s, b, c as i32) as u32,
            dp4a([a0, a1, a2, a3], [b0, b1, b2, b3], c as i32) as u32,
            dp2a_hi([a as i16, (a >> 16) as i16], [b0, b1, b2, b3], c as i32) as u32,
            int::word([a0, a1, a2, a3]) as u32,
            int::word([b3, b0, b2, b1]),
        ];
        for k in unroll(0..28) {
            y[28 * i + k] = all[k];
        }
    }
}

/// Extracts a field of at most `width` bits, bit by bit as in the PTX manual.
fn field(x: u64, width: u32, signed: bool, position: u32, length: u32) -> u64 {
    let (position, length) = (position & 0xff, length & 0xff);
    let last = (position + length).saturating_sub(1).min(width - 1);
    let sign = u64::from(signed && length > 0) & (x >> last);
    let bit = |i: u32| if i < length && position + i < width { x >> (position + i) & 1 } else { sign & 1 };
    (0..width).fold(0, |all, i| all | bit(i) << i)
}

fn inserted(bits: u64, into: u64, width: u32, position: u32, length: u32) -> u64 {
    let (position, length) = (position & 0xff, length & 0xff);
    let bit =
        |i: u32| if (position..position + length).contains(&i) { bits >> (i - position) & 1 } else { into >> i & 1 };
    (0..width).fold(0, |all, i| all | bit(i) << i)
}

/// Returns the results of the kernel, by 64-bit arithmetic and bit by bit.
fn expected(a: u32, b: u32, c: u32) -> [u32; 28] {
    let (s, t) = (a as i32, b as i32);
    let bytes = |x: u32, signed: bool| x.to_le_bytes().map(|b| if signed { i64::from(b as i8) } else { i64::from(b) });
    let halves = |x: u32, signed: bool| {
        [x as u16, (x >> 16) as u16].map(|h| if signed { i64::from(h as i16) } else { i64::from(h) })
    };
    let dot4 = |p: bool, q: bool| {
        let sum: i64 = bytes(a, p).into_iter().zip(bytes(b, q)).map(|(x, y)| x * y).sum();
        (i64::from(c) + sum) as u32
    };
    let dot2 = |p: bool, q: bool, high: usize| {
        let [x, y] = halves(a, p);
        let b = bytes(b, q);
        (i64::from(c) + x * b[2 * high] + y * b[2 * high + 1]) as u32
    };
    let pair = u64::from(a) << 32 | u64::from(b);
    let low = |x: u32| i64::from((x << 8) as i32 >> 8);
    let permuted = |selector: u32| {
        let bytes: Vec<u8> = a.to_le_bytes().into_iter().chain(b.to_le_bytes()).collect();
        u32::from_le_bytes(std::array::from_fn(|k| {
            let nibble = (selector >> (4 * k) & 15) as usize;
            let byte = bytes[nibble & 7];
            if nibble < 8 {
                byte
            } else if byte < 128 {
                0
            } else {
                255
            }
        }))
    };
    [
        ((u64::from(a) * u64::from(b)) >> 32) as u32,
        ((i64::from(s) * i64::from(t)) >> 32) as u32,
        (u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) as u32,
        (low(a) * low(b)) as u32,
        permuted(c),
        permuted(0x5410),
        (pair << (c % 32) >> 32) as u32,
        (pair >> (c % 32)) as u32,
        (pair << 7 >> 32) as u32,
        field(a.into(), 32, false, c, b >> 28) as u32,
        field(a.into(), 32, true, c, b >> 28) as u32,
        field(a.into(), 32, true, 5, 9) as u32,
        inserted(a.into(), b.into(), 32, c, a >> 27) as u32,
        inserted(a.into(), b.into(), 32, 12, 5) as u32,
        dot4(false, false),
        dot4(true, true),
        dot4(false, true),
        dot4(true, false),
        dot2(false, false, 0),
        dot2(false, false, 1),
        dot2(true, true, 0),
        dot2(true, true, 1),
        dot2(false, true, 1),
        dot2(true, false, 0),
        dot4(true, false),
        dot2(true, false, 1),
        a,
        permuted(0x5647),
    ]
}

/// Computes all of `int::` with 64 bits, with position and length from small numbers.
#[kernel(block = 64, grid = a.len().div_ceil(64))]
#[requires(b.len() == a.len(), at.len() == a.len(), y.len() == 6 * a.len())]
fn wide(a: &[u64], b: &[u64], at: &[u32], y: &mut [u64]) {
    let i = grid::index();
    if i < a.len() {
        let (a, b, at) = (a[i], b[i], at[i]);
        let (s, t) = (a as i64, b as i64);
        let length = (b >> 57) as u32;
        let all = [
            int::mul_hi(a, b),
            int::mul_hi(s, t) as u64,
            int::extract(a, at, length),
            int::extract(s, at, length) as u64,
            int::insert(a, b, at, length),
            int::insert(s, t, 40, 11) as u64,
        ];
        for k in unroll(0..6) {
            y[6 * i + k] = all[k];
        }
    }
}

fn expected_wide(a: u64, b: u64, at: u32) -> [u64; 6] {
    let (s, t) = (a as i64, b as i64);
    let length = (b >> 57) as u32;
    [
        ((u128::from(a) * u128::from(b)) >> 64) as u64,
        ((i128::from(s) * i128::from(t)) >> 64) as u64,
        field(a, 64, false, at, length),
        field(a, 64, true, at, length),
        inserted(a, b, 64, at, length),
        inserted(a, b, 64, 40, 11),
    ]
}

/// Adds, subtracts and multiplies numbers of two words of 64 and 32 bits.
#[kernel(block = 64, grid = a.len().div_ceil(64))]
#[requires(b.len() == a.len(), y.len() == 14 * a.len())]
fn several_words(a: &[u64], b: &[u64], y: &mut [u64]) {
    let i = grid::index();
    if i < a.len() {
        let (a, b) = (a[i], b[i]);
        let (sum, carry) = int::carrying_add(a, b, b % 2 == 1);
        let (sum_above, carry_above) = int::carrying_add(b, a, carry);
        let (difference, borrow) = int::borrowing_sub(a, b, b % 2 == 1);
        let (difference_above, borrow_above) = int::borrowing_sub(b, a, borrow);
        let (low, high) = int::widening_mul(a, b);
        let (p, q) = (a as u32, b as u32);
        let (s, s_carry) = int::carrying_add(p, q, a >> 63 == 1);
        let (d, d_borrow) = int::borrowing_sub(p, q, a >> 63 == 1);
        let (l, h) = int::widening_mul(p, q);
        let all = [
            sum,
            sum_above,
            carry_above as u64,
            difference,
            difference_above,
            borrow_above as u64,
            low,
            high,
            s as u64,
            s_carry as u64,
            d as u64,
            d_borrow as u64,
            l as u64,
            h as u64,
        ];
        for k in unroll(0..14) {
            y[14 * i + k] = all[k];
        }
    }
}

/// Returns the results of the kernel, by arithmetic of 128 and 64 bits.
fn expected_of_several_words(a: u64, b: u64) -> [u64; 14] {
    let pair = |low: u64, high: u64| u128::from(high) << 64 | u128::from(low);
    let words = |x: u128| [x as u64, (x >> 64) as u64];
    let (x, y, odd) = (pair(a, b), pair(b, a), u128::from(b % 2));
    let (sum, first) = x.overflowing_add(y);
    let (sum, second) = sum.overflowing_add(odd);
    let (difference, third) = x.overflowing_sub(y);
    let (difference, fourth) = difference.overflowing_sub(odd);
    let ([s0, s1], [d0, d1], [p0, p1]) = (words(sum), words(difference), words(u128::from(a) * u128::from(b)));
    let (p, q, top) = (a & 0xffff_ffff, b & 0xffff_ffff, a >> 63);
    let (s, d) = (p + q + top, p.wrapping_sub(q).wrapping_sub(top));
    let low = |x: u64| x & 0xffff_ffff;
    let (carry, borrow) = ((first | second).into(), (third | fourth).into());
    [s0, s1, carry, d0, d1, borrow, p0, p1, low(s), s >> 32, low(d), d >> 63, low(p * q), (p * q) >> 32]
}

/// Returns all pairs of numbers at the edges of 32 and 64 bits.
fn edges() -> (Vec<u64>, Vec<u64>) {
    let near = |x: u64| [x.wrapping_sub(1), x, x.wrapping_add(1)];
    let all: Vec<u64> = [0, 1 << 31, 1 << 32, 1 << 63, 0x0123_4567_89ab_cdef].into_iter().flat_map(near).collect();
    all.iter().flat_map(|a| all.iter().map(|b| (*a, *b))).unzip()
}

fn wide_results(checker: &Checker) {
    let (a, b) = edges();
    let wanted = a.iter().zip(&b).flat_map(|(a, b)| expected_of_several_words(*a, *b));
    let out = vec![0u64; 14 * a.len()];
    let inputs = vec![Input::slice(&a), Input::slice(&b), Input::slice(&out)];
    agree::<several_words>(checker, "several words", inputs, &[Expected::exact(2, wanted)]);
}

#[test]
fn operations_of_several_words_agree_with_plain_rust() {
    wide_results(&checker(false));
    assemble::<several_words>();
    let (a, b) = edges();
    for (a, b) in a.into_iter().zip(b) {
        let expected = expected_of_several_words(a, b);
        let (sum, carry) = int::carrying_add(a, b, b % 2 == 1);
        let (above, carry) = int::carrying_add(b, a, carry);
        assert_eq!([sum, above, u64::from(carry)], expected[..3]);
        let (difference, borrow) = int::borrowing_sub(a, b, b % 2 == 1);
        let (above, borrow) = int::borrowing_sub(b, a, borrow);
        assert_eq!([difference, above, u64::from(borrow)], expected[3..6]);
        assert_eq!(<[u64; 2]>::from(int::widening_mul(a, b)), expected[6..8]);
        let (p, q) = (a as u32, b as u32);
        let ((s, carry), (d, borrow)) = (int::carrying_add(p, q, a >> 63 == 1), int::borrowing_sub(p, q, a >> 63 == 1));
        assert_eq!([u64::from(s), carry.into(), d.into(), borrow.into()], expected[8..12]);
        assert_eq!(<[u32; 2]>::from(int::widening_mul(p, q)).map(u64::from), expected[12..]);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_operations_of_several_words_agree_with_plain_rust() {
    wide_results(&checker(true));
}

fn all(checker: &Checker) {
    let [a, b, c] = triples(11);
    let out = vec![0u32; 28 * a.len()];
    let inputs = vec![Input::slice(&a), Input::slice(&b), Input::slice(&c), Input::slice(&out)];
    let wanted: Vec<f64> = (0..a.len()).flat_map(|i| expected(a[i], b[i], c[i])).map(f64::from).collect();
    agree::<words>(checker, "words", inputs, &[Expected::new(3, wanted, Bound::Exact)]);

    let mut random = Random::new(5);
    let long = |random: &mut Random| {
        let word = WORDS[random.bits() as usize % WORDS.len()];
        u64::from(word) << 32 | random.bits() & u64::from(WORDS[random.bits() as usize % WORDS.len()])
    };
    let (x, y): (Vec<u64>, Vec<u64>) = (0..300).map(|_| (long(&mut random), long(&mut random))).unzip();
    let at: Vec<u32> = (0..300).map(|i| SMALL[i % SMALL.len()]).collect();
    let inputs = vec![Input::slice(&x), Input::slice(&y), Input::slice(&at), Input::slice(&vec![0u64; 1800])];
    let any = Expected::new(3, vec![0.0; 1800], Bound::Absolute(f64::INFINITY));
    agree::<wide>(checker, "wide", inputs, &[any]);
    let device = Device::cpu();
    let [u, v] = [&x, &y].map(|v| device.upload(v).unwrap());
    let (at_device, mut out) = (device.upload(&at).unwrap(), device.zeros::<u64>(1800).unwrap());
    wide::launch(&device, &u, &v, &at_device, &mut out).unwrap();
    for (i, given) in out.download().unwrap().chunks(6).enumerate() {
        assert_eq!(given, expected_wide(x[i], y[i], at[i]), "of {:#x}, {:#x}, {}", x[i], y[i], at[i]);
    }
}

#[test]
fn instructions_agree_with_plain_rust() {
    all(&checker(false));
    assemble::<words>();
    assemble::<wide>();
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_instructions_agree_with_the_interpreter() {
    all(&checker(true));
}

#[test]
fn each_function_is_its_instruction() {
    let count = |word: &str| words::PTX.lines().filter(|line| line.trim_start().starts_with(word)).count();
    assert_eq!(["dp4a.", "dp2a.lo", "dp2a.hi", "mul.hi", "mul24.lo"].map(count), [5, 3, 4, 2, 2]);
    assert_eq!(["shf.l.wrap", "shf.r.wrap", "bfe.u32", "bfe.s32", "bfi.b32"].map(count), [2, 1, 1, 2, 2]);
    assert!(words::PTX.contains(".version 5.0"));
}

/// Calls the bodies on the host, as a user's own test may do.
#[test]
fn bodies_agree_with_plain_rust() {
    let [a, b, c] = triples(3);
    for ((a, b), c) in a.into_iter().zip(b).zip(c) {
        let (s, t) = (a as i32, b as i32);
        let e = expected(a, b, c);
        assert_eq!(int::mul_hi(s, t) as u32, e[1]);
        assert_eq!(int::mul24(s, t) as u32, e[3]);
        assert_eq!(int::byte_perm(a, b, c), e[4]);
        assert_eq!([int::funnel_shl(a, b, c), int::funnel_shr(a, b, c)], [e[6], e[7]]);
        assert_eq!(int::extract(s, c, b >> 28) as u32, e[10]);
        assert_eq!(int::insert(a, b, c % 256, a >> 27), e[12]);
        assert_eq!(dp4a(s.to_le_bytes().map(|b| b as i8), b.to_le_bytes(), c as i32) as u32, e[17]);
        assert_eq!(dp2a_hi(a, t, c as i32) as u32, e[22]);
    }
}
