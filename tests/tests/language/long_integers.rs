//! `u128` on all executors, against rustc's own `u128`.

use super::support::{agree, assemble, checker};
use kernel_dsl::prelude::*;
use runtime::Device;
use runtime::interpreter::Check;
use runtime::testing::{self, Checker, Expected, Failure, Input, Random};

const EDGES: [u128; 14] = [
    0,
    1,
    2,
    0xffff_ffff,
    0x1_0000_0000,
    u64::MAX as u128 - 1,
    u64::MAX as u128,
    1 << 64,
    (1 << 64) + 1,
    0xffff_ffff_ffff_ffff_0000_0000_0000_0000,
    0x0000_0001_0000_0000_0000_0000_0000_0001,
    1 << 127,
    u128::MAX - 1,
    u128::MAX,
];

/// Returns pairs of operands and a distance: all edges, and random numbers of all lengths.
fn operands(random: &mut Random) -> (Vec<u128>, Vec<u128>, Vec<u32>) {
    let mut number = || {
        let bits = u128::from(random.bits()) << 64 | u128::from(random.bits());
        bits >> (random.bits() % 128)
    };
    let mut pairs: Vec<(u128, u128)> = EDGES.iter().flat_map(|a| EDGES.map(|b| (*a, b))).collect();
    for _ in 0..300 {
        let (a, b) = (number(), number());
        // Quotients whose first estimate is too large are near multiples.
        pairs.extend([(a, b), (a.wrapping_mul(b).wrapping_sub(1), b), (a, a ^ b >> 70)]);
    }
    let distances = (0..pairs.len() as u32).map(|i| i * 37 % 128).collect();
    let (a, b) = pairs.into_iter().unzip();
    (a, b, distances)
}

#[device]
const NUMBERS: usize = 43;

/// Computes all operations with a result of type `u128`.
#[device]
fn numbers(a: u128, b: u128, n: u32) -> [u128; NUMBERS] {
    let (c, d) = (a >> 1, b >> 1);
    let divisor = if b == 0 { 3 } else { b };
    let mut changed = a;
    changed ^= b;
    changed |= 0x8000_0000_0000_0001_8000_0000_0000_0001;
    changed &= b;
    changed <<= n;
    changed >>= 5u8;
    changed += 7;
    changed -= 1;
    changed /= divisor;
    changed %= 1_000_003;
    changed *= 1u128 << 70;
    let (sum, carry) = a.overflowing_add(b);
    let (product, _) = a.overflowing_mul(b);
    [
        c + d,
        a.max(b) - a.min(b),
        (a & u64::MAX as u128) * (b >> 64),
        a / divisor,
        a % divisor,
        a & b,
        a | b,
        a ^ b,
        !a,
        a << n,
        a >> n,
        a << 64,
        a >> 77,
        changed,
        a.wrapping_add(b),
        a.wrapping_sub(b),
        a.wrapping_mul(b),
        a.wrapping_neg(),
        a.wrapping_shl(n + 128),
        a.wrapping_shr(n + 64),
        a.wrapping_pow(5),
        a.rotate_left(n),
        a.rotate_right(n),
        a.reverse_bits(),
        a.swap_bytes(),
        a.abs_diff(b),
        a.saturating_add(b),
        a.saturating_sub(b),
        a.saturating_mul(b),
        sum + carry as u128 % 1,
        product,
        a.checked_add(b).unwrap_or(11),
        a.checked_sub(b).unwrap_or(12),
        a.checked_mul(b).unwrap_or(13),
        a.checked_div(b).unwrap_or(14),
        a.checked_rem(b).unwrap_or(15),
        a.div_euclid(divisor),
        a.rem_euclid(divisor),
        a.clamp(1 << 20, 1 << 100),
        (a >> 2).next_multiple_of((b >> 3).max(1) & 0xffff | 1),
        a.div_ceil(divisor),
        (a >> 1).next_power_of_two(),
        u128::MAX - a,
    ]
}

#[device]
const WORDS: usize = 26;

/// Computes all operations with a result of at most 32 bits.
#[device]
fn words(a: u128, b: u128) -> [u32; WORDS] {
    [
        (a == b) as u32,
        (a != b) as u32,
        (a < b) as u32,
        (a <= b) as u32,
        (a > b) as u32,
        (a >= b) as u32,
        a.count_ones(),
        a.count_zeros(),
        a.leading_zeros(),
        a.leading_ones(),
        a.trailing_zeros(),
        a.trailing_ones(),
        (a | 1).ilog2(),
        a.is_power_of_two() as u32,
        a.is_multiple_of(b) as u32,
        a.overflowing_add(b).1 as u32,
        a.overflowing_sub(b).1 as u32,
        a.overflowing_mul(b).1 as u32,
        a as u8 as u32,
        a as i8 as u32,
        a as u16 as u32,
        a as i32 as u32,
        a as u32,
        (a & 0xffff_ffff) as usize as u32,
        match a {
            0 => 1,
            1..=0xffff_ffff_ffff_ffff => 2,
            0x1_0000_0000_0000_0000 => 3,
            _ => 4,
        },
        u128::BITS,
    ]
}

#[device]
const CASTS: usize = 12;

/// Converts to `u128`.
#[device]
fn casts(a: u128) -> [u128; CASTS] {
    let low = a as u64;
    [
        low as u128,
        low as i64 as u128,
        low as i32 as u128,
        low as u32 as u128,
        low as i16 as u128,
        low as u8 as u128,
        (low & 0xffff) as usize as u128,
        (low % 3 == 0) as u128,
        f64::from_bits(low) as u128,
        f32::from_bits(low as u32) as u128,
        (a as f64) as u128,
        (a as f32) as u128,
    ]
}

#[kernel(block = 64, grid = a.len().div_ceil(64))]
#[requires(b.len() == a.len(), n.len() == a.len(), y.len() == NUMBERS * a.len(), z.len() == WORDS * a.len())]
#[requires(casted.len() == CASTS * a.len(), floats.len() == 2 * a.len())]
fn all_of_long_integers(
    a: &[u128],
    b: &[u128],
    n: &[u32],
    y: &mut [u128],
    z: &mut [u32],
    casted: &mut [u128],
    floats: &mut [u64],
) {
    let i = grid::index();
    if i < a.len() {
        let (a, b, n) = (a[i], b[i], n[i]);
        let results = numbers(a, b, n);
        for k in unroll(0..NUMBERS) {
            y[NUMBERS * i + k] = results[k];
        }
        let results = words(a, b);
        for k in unroll(0..WORDS) {
            z[WORDS * i + k] = results[k];
        }
        let results = casts(a);
        for k in unroll(0..CASTS) {
            casted[CASTS * i + k] = results[k];
        }
        floats[2 * i] = (a as f64).to_bits();
        floats[2 * i + 1] = (a as f32).to_bits() as u64;
    }
}

fn arithmetic(checker: &Checker) {
    let (a, b, n) = operands(&mut Random::new(1));
    let each = || a.iter().zip(&b).zip(&n).map(|((a, b), n)| (*a, *b, *n));
    let expected = [
        Expected::exact(3, each().flat_map(|(a, b, n)| numbers(a, b, n))),
        Expected::exact(4, each().flat_map(|(a, b, _)| words(a, b))),
        Expected::exact(5, each().flat_map(|(a, ..)| casts(a))),
        Expected::exact(6, each().flat_map(|(a, ..)| [(a as f64).to_bits(), (a as f32).to_bits().into()])),
    ];
    let len = a.len();
    let inputs = vec![
        Input::slice(&a),
        Input::slice(&b),
        Input::slice(&n),
        Input::slice(&vec![0u128; NUMBERS * len]),
        Input::slice(&vec![0u32; WORDS * len]),
        Input::slice(&vec![0u128; CASTS * len]),
        Input::slice(&vec![0u64; 2 * len]),
    ];
    agree::<all_of_long_integers>(checker, "edges and random numbers", inputs, &expected);
}

/// A generator's state: fields of 128 and 64 bits.
#[device]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
struct Stream {
    state: u128,
    step: u64,
    count: u64,
}

#[device]
const FACTOR: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;

#[device]
const POWERS: [u128; 4] = [1, 10_000_000_000 * 10_000_000_000, 1 << 64, u128::MAX / 7 % FACTOR];

#[device]
fn advance(state: &mut u128, increment: u128) -> Option<u128> {
    const HALF: u128 = u128::MAX / 2;
    *state = state.wrapping_mul(FACTOR).wrapping_add(increment);
    if *state > HALF { Some(*state - HALF) } else { None }
}

#[device]
fn pick<T: Element>(pair: (T, T), second: bool) -> T {
    if second { pair.1 } else { pair.0 }
}

#[device]
#[derive(Clone, Copy)]
struct Offsets {
    by: u128,
    scale: u32,
}

/// Passes `u128` through parameters, structs, tables, shared memory, lanes and threads.
#[kernel(block = 64, grid = streams.len().div_ceil(64))]
#[requires(y.len() == 12 * streams.len())]
fn through_memory(streams: &mut [Stream], offsets: Offsets, increment: u128, y: &mut [u128]) {
    let mut tile = Shared::<u128, 1>::new([64]);
    let mut pairs = Shared::<(u32, u128), 1>::new([64]);
    let i = grid::index();
    let t = thread::x();
    let there = i < streams.len();
    let mut stream = if there { streams[i] } else { Stream { state: 0, step: 1, count: 0 } };
    let advanced = advance(&mut stream.state, increment);
    stream.count += 1;
    tile[t] = stream.state;
    pairs[t] = (t as u32, offsets.by);
    block::sync();
    let neighbor = tile[(t + 1) % 64];
    let (number, by) = pairs[(t + 2) % 64];
    let shuffled = warp::shuffle_xor(stream.state, 3);
    let sum = warp::reduce(stream.state >> 8, |a, b| a + b);
    let all = block::reduce(stream.state, |a, b| a ^ b);
    let mut window = [increment; 3];
    for k in unroll(0..3) {
        window[k] += k as u128 + by;
    }
    let mut digits = 0;
    let mut rest = stream.state;
    while rest > 0 {
        rest /= 1_000_000_000_000;
        digits += 1u128;
    }
    assert!(digits <= 4, "{} digits of {:x}", digits, stream.state);
    if there {
        streams[i] = stream;
        y[12 * i] = advanced.unwrap_or(5);
        y[12 * i + 1] = neighbor;
        y[12 * i + 2] = number as u128;
        y[12 * i + 3] = shuffled;
        y[12 * i + 4] = sum;
        y[12 * i + 5] = all;
        y[12 * i + 6] = window[2];
        y[12 * i + 7] = digits;
        y[12 * i + 8] = POWERS[i % 4];
        y[12 * i + 9] = POWERS[2];
        y[12 * i + 10] = pick((by, increment), i % 2 == 1);
        y[12 * i + 11] = size_of::<u128>() as u128 * size_of::<(u64, u128)>() as u128 + offsets.scale as u128;
    }
}

fn memory(checker: &Checker) {
    let mut random = Random::new(2);
    let mut number = || u128::from(random.bits()) << 64 | u128::from(random.bits());
    let (by, increment) = (number() >> 2, number() >> 3);
    let before: Vec<Stream> = (0..128).map(|i| Stream { state: number(), step: i, count: 2 * i }).collect();
    let mut after = before.clone();
    let advanced: Vec<_> = after.iter_mut().map(|s| advance(&mut s.state, increment)).collect();
    after.iter_mut().for_each(|s| s.count += 1);
    let y = (0..before.len()).flat_map(|i| {
        let at = |t: usize| after[i / 64 * 64 + t % 64].state;
        let warp = &after[i / 32 * 32..][..32];
        let sum: u128 = warp.iter().map(|s| s.state >> 8).sum();
        let all = after[i / 64 * 64..][..64].iter().fold(0, |x, s| x ^ s.state);
        let digits = after[i].state.ilog10() as u128 / 12 + 1;
        [
            advanced[i].unwrap_or(5),
            at(i % 64 + 1),
            ((i % 64 + 2) % 64) as u128,
            after[i ^ 3].state,
            sum,
            all,
            increment + 2 + by,
            digits,
            POWERS[i % 4],
            POWERS[2],
            if i % 2 == 1 { increment } else { by },
            16 * 32 + 9,
        ]
    });
    let expected = [Expected::exact(0, after.clone()), Expected::exact(6, y)];
    let mut inputs = vec![Input::slice(&before)];
    inputs.extend(Input::value_of(by));
    inputs.push(Input::scalar(9u32));
    inputs.extend(Input::value_of(increment));
    inputs.push(Input::slice(&vec![0u128; 12 * before.len()]));
    agree::<through_memory>(checker, "structs, parameters, shared memory", inputs, &expected);
}

/// Copies through shared and local memory, with several elements in an access.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() == 64, y.len() == 64)]
fn copies(x: View<u128, 1>, y: &mut [u128]) {
    let tile = Shared::<u128, 1>::new([32]);
    let token = tile.copy_async(x.offset(32));
    let t = thread::x();
    let pair: [u128; 2] = x.load(t / 2 * 2);
    token.wait();
    block::sync();
    let mut stack = thread::local::<[u128; 4]>();
    for k in 0..4 {
        stack[k] = tile[31 - t] + k as u128;
    }
    let popped = stack[pair[0] as u32 as usize % 4];
    y.store(2 * t, [(if t % 2 == 0 { pair[0] } else { pair[1] }).max(popped), x.get(t + 40).map_or(7, |n| n >> 1)]);
}

#[test]
fn long_integers_are_copied_together() {
    let mut random = Random::new(3);
    let x: Vec<u128> = (0..64).map(|_| u128::from(random.bits()) << 60).collect();
    let y = (0..32).flat_map(|t| {
        let popped = x[63 - t] + (x[t / 2 * 2] as u32 % 4) as u128;
        [x[t].max(popped), x.get(t + 40).map_or(7, |n| n >> 1)]
    });
    let expected = [Expected::exact(1, y)];
    let inputs = vec![Input::view(&x, [64]), Input::slice(&[0u128; 64])];
    agree::<copies>(&checker(false), "copies", inputs, &expected);
    assemble::<copies>();
}

#[test]
fn long_integers_are_those_of_rustc() {
    arithmetic(&checker(false));
    assemble::<all_of_long_integers>();
}

#[test]
fn long_integers_pass_through_memory() {
    memory(&checker(false));
    assemble::<through_memory>();
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_long_integers_agree_with_the_interpreter() {
    let checker = Checker::new(Some(Device::cuda(0).expect("an NVIDIA GPU")));
    arithmetic(&checker);
    memory(&checker);
}

/// Defines a kernel that computes `x[1]` from `x[0]` and `n`.
macro_rules! operations {
    ($($name:ident |$a:ident, $n:ident| $e:expr;)*) => {$(
        #[kernel(block = 1, grid = 1)]
        #[requires(x.len() == 2)]
        fn $name(x: &mut [u128], n: u128) {
            let ($a, $n) = (x[0], n);
            x[1] = $e;
        }
    )*};
}
operations! {
    sum |a, n| a + n;
    difference |a, n| a - n;
    product |a, n| a * n;
    quotient |a, n| a / n;
    left |a, n| a << n;
    right |a, n| a >> n;
}

#[test]
fn the_oracle_reports_overflow() {
    // Whether a mistake is reported, for operands just inside and outside of the range.
    macro_rules! reports {
        ($operation:ident, $a:expr, $n:expr) => {{
            let property = testing::property::<$operation>().cases(|_| {
                let mut inputs = vec![Input::slice(&[$a, 0u128])];
                let n: u128 = $n;
                inputs.extend(Input::value_of(n));
                inputs
            });
            match property.deny_warnings().run() {
                Ok(_) => None,
                Err(found) => match found.failure {
                    Failure::Warned { report } | Failure::Stopped { report: Some(report), .. } => {
                        Some(report.findings[0].check)
                    }
                    other => panic!("{other:?}"),
                },
            }
        }};
    }
    const MAX: u128 = u128::MAX;
    let over = Some(Check::IntegerOverflow);
    assert_eq!([reports!(sum, MAX - 1, 1), reports!(sum, MAX, 1)], [None, over]);
    assert_eq!([reports!(sum, MAX << 64, 1 << 63), reports!(sum, MAX << 64, 1 << 64)], [None, over]);
    assert_eq!([reports!(difference, 5, 5), reports!(difference, 1 << 64, (1 << 64) + 1)], [None, over]);
    assert_eq!([reports!(product, MAX, 1), reports!(product, MAX, 2)], [None, over]);
    assert_eq!([reports!(product, 1 << 63, 1 << 64), reports!(product, 1 << 64, 1 << 64)], [None, over]);
    assert_eq!([reports!(product, 1 << 126, 3), reports!(product, 3, 1 << 127)], [None, over]);
    assert_eq!([reports!(quotient, MAX, 1), reports!(quotient, MAX, 0)], [None, Some(Check::DivisionByZero)]);
    let shift = Some(Check::ShiftOverflow);
    assert_eq!([reports!(left, 1, 127), reports!(left, 1, 128)], [None, shift]);
    assert_eq!([reports!(right, 1, 127), reports!(right, 1, 129)], [None, shift]);
}

#[test]
fn sums_take_the_carry_flag() {
    for (ptx, low, high) in [(sum::PTX, "add.cc.u64", "addc.u64"), (difference::PTX, "sub.cc.u64", "subc.u64")] {
        assert!(ptx.contains(low) && ptx.contains(high) && !ptx.contains("setp"), "{ptx}");
    }
}

#[device]
mod masks {
    #[derive(Clone, Copy, PartialEq, PartialOrd)]
    pub struct Masked<const MASK: u128> {
        pub number: u128,
    }

    impl<const MASK: u128> Masked<MASK> {
        pub const BITS: u32 = MASK.count_ones();

        pub fn get(self) -> u128 {
            self.number & MASK
        }
    }

    pub fn raised<const BY: u128>(x: u128) -> u128 {
        x.wrapping_add(BY)
    }
}
use masks::{Masked, raised};

/// Uses generic constants of 128 bits; rustc's code is the witness.
#[device]
fn of_constants<const N: u128>(x: u128) -> u128 {
    let masked = Masked::<N> { number: x };
    let other = Masked::<0x1_0000_0000_0000_0001> { number: x };
    let same = (masked.get() == other.get()) as u128;
    raised::<N>(masked.get() ^ other.get()) + same + Masked::<N>::BITS as u128 % 2 + raised::<7>(0) % 3
}

#[kernel(block = 64, grid = x.len().div_ceil(64), instances(N = 5 | 0x7fff_0000_0000_0000_0000_0000_0000_00f0))]
fn generic<const N: u128>(x: &mut [u128]) {
    let i = grid::index();
    if i < x.len() {
        x[i] = of_constants::<N>(x[i]) ^ N;
    }
}

#[test]
fn generic_constants_have_128_bits() {
    let x: Vec<u128> = (0..100u128).map(|i| i * 0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978).collect();
    fn run<const N: u128>(x: &[u128]) {
        let expected: Vec<u128> = x.iter().map(|x| of_constants::<N>(*x) ^ N).collect();
        agree::<generic<N>>(&checker(false), "generic", vec![Input::slice(x)], &[Expected::exact(0, expected)]);
        assemble::<generic<N>>();
    }
    run::<5>(&x);
    run::<0x7fff_0000_0000_0000_0000_0000_0000_00f0>(&x);
    // An instance that the kernel does not declare.
    run::<0x4000_0000_0000_0000_0000_0000_0000_0001>(&x);
}

/// Adds a number to each element.
#[kernel(block = 64, grid = x.len().div_ceil(64))]
#[requires(y.len() == x.len())]
fn shifted(by: u128, x: &[u128], y: &mut [u128]) {
    let i = grid::index();
    if i < x.len() {
        y[i] = x[i].wrapping_add(by);
    }
}

#[test]
fn inputs_are_drawn() {
    let property = testing::property::<shifted>().cases(|g| {
        let n = g.size("n", 64);
        let mut inputs = g.value_of::<u128>();
        inputs.extend([g.special_slice::<u128>(n), Input::slice(&vec![0u128; n])]);
        inputs
    });
    let property = property.reference(|inputs| {
        let by = inputs[0].numbers()[0].bits() as u128 | (inputs[1].numbers()[0].bits() as u128) << 64;
        let x = inputs[2].to_vec::<u128>();
        vec![Expected::exact(3, x.iter().map(|x| x.wrapping_add(by)).collect::<Vec<_>>())]
    });
    property.run().unwrap();
}

/// Fails if the numbers differ.
#[kernel(block = 1, grid = 1)]
fn equal(a: u128, b: u128, y: &mut [u32]) {
    assert_eq!(a, b, "{:#x}", a);
    y[0] = 1;
}

#[test]
fn a_message_shows_both_words() {
    let property = testing::property::<equal>().cases(|_| {
        let numbers = [(7u128 << 64) + 9, 3];
        numbers.into_iter().flat_map(Input::value_of).chain([Input::slice(&[0u32])]).collect::<Vec<_>>()
    });
    let text = property.run().unwrap_err().to_string();
    let shown = "`a == b` does not hold: 0x7 * 2^64 + 0x9 (left: 7 * 2^64 + 9, right: 0 * 2^64 + 3)";
    assert!(text.contains(shown), "{text}");
}
