//! Tests of the methods of numbers on every pair of boundary values, against rustc's own on the
//! same expressions.

use super::support::{agree, assemble, checker};
use kernel_dsl::prelude::*;
use runtime::Device;
use runtime::testing::{Bound, Checker, Expected, Input, Random};

/// Distances of shifts and rotations: within, at and beyond the widths.
const DISTANCES: [u32; 11] = [0, 1, 5, 7, 8, 15, 31, 32, 33, 63, u32::MAX];

/// Declares a kernel and a Rust function that write the values of the expressions as `u64`.
macro_rules! spec {
    ($module:ident, $t:ty, $count:literal, |$a:ident, $b:ident, $n:ident| $($e:expr,)*) => {
        mod $module {
            use super::*;

            #[kernel(block = 64, grid = xs.len().div_ceil(64), instances(N = $count))]
            #[requires(xs.len() == ys.len(), ns.len() == xs.len(), out.len() == xs.len() * N)]
            pub fn compute<const N: usize>(xs: &[$t], ys: &[$t], ns: &[u32], out: &mut [u64]) {
                let i = grid::index();
                if i < xs.len() {
                    let ($a, $b, $n) = (xs[i], ys[i], ns[i]);
                    let results = [$(($e) as u64),*];
                    for k in unroll(0..N) {
                        out[i * N + k] = results[k];
                    }
                }
            }

            fn reference($a: $t, $b: $t, $n: u32) -> [u64; $count] {
                [$(($e) as u64),*]
            }

            pub fn test(checker: &Checker, pool: &[$t]) {
                let (mut xs, mut ys, mut ns) = (Vec::new(), Vec::new(), Vec::new());
                for a in pool {
                    for (i, b) in pool.iter().enumerate() {
                        xs.push(*a);
                        ys.push(*b);
                        ns.push(DISTANCES[(xs.len() + i) % DISTANCES.len()]);
                    }
                }
                let expected: Vec<_> = (0..xs.len()).flat_map(|i| reference(xs[i], ys[i], ns[i])).collect();
                let out = vec![0u64; expected.len()];
                let inputs = vec![Input::slice(&xs), Input::slice(&ys), Input::slice(&ns), Input::slice(&out)];
                // All 64 bits are compared below.
                let any = Expected::new(3, vec![0.0; out.len()], Bound::Absolute(f64::INFINITY));
                agree::<compute<$count>>(checker, stringify!($module), inputs, &[any]);

                let device = Device::cpu();
                let [x, y] = [&xs, &ys].map(|v| device.upload(v).unwrap());
                let (n, mut out) = (device.upload(&ns).unwrap(), device.upload(&out).unwrap());
                compute::<$count>::launch(&device, &x, &y, &n, &mut out).unwrap();
                let expressions = [$(stringify!($e)),*];
                for (i, (got, expected)) in out.download().unwrap().iter().zip(expected).enumerate() {
                    let (e, i) = (expressions[i % $count], i / $count);
                    assert!(
                        *got == expected,
                        "`{e}` of {:?}, {:?}, {}: {got:#x}, not {expected:#x}", xs[i], ys[i], ns[i]
                    );
                }
                assemble::<compute<$count>>();
            }
        }
    };
}

macro_rules! integers {
    ($module:ident, $t:ty) => {
        spec!(
            $module,
            $t,
            36,
            |a, b, n| a.rotate_left(n),
            a.rotate_right(n),
            a.rotate_left(3),
            a.rotate_right(9),
            a.wrapping_shl(n),
            a.wrapping_shr(n),
            a.wrapping_neg(),
            a.count_ones(),
            a.count_zeros(),
            a.leading_zeros(),
            a.leading_ones(),
            a.trailing_zeros(),
            a.trailing_ones(),
            a.swap_bytes(),
            a.reverse_bits(),
            a.abs_diff(b),
            a.clamp(b.min(7), b.max(7)),
            (a % 3).pow(4),
            (a % 3).pow(0),
            a.pow(1),
            (a % 3).pow(3),
            (a >> 1).div_euclid(b | 1),
            (a >> 1).rem_euclid(if b == 0 { 2 } else { b }),
            a.checked_add(b).map_or(77, |x| x as u64),
            a.checked_sub(b).map_or(77, |x| x as u64),
            a.checked_mul(b).map_or(77, |x| x as u64),
            a.checked_div(b).map_or(77, |x| x as u64),
            a.checked_rem(b).map_or(77, |x| x as u64),
            (a.overflowing_add(b).0 as u64).wrapping_mul(3).wrapping_add(a.overflowing_add(b).1 as u64),
            (a.overflowing_sub(b).0 as u64).wrapping_mul(3).wrapping_add(a.overflowing_sub(b).1 as u64),
            (a.overflowing_mul(b).0 as u64).wrapping_mul(3).wrapping_add(a.overflowing_mul(b).1 as u64),
            a.saturating_mul(b),
            a.clamp(1, 100).ilog2(),
            a.wrapping_div(if b == 0 { 2 } else { b }),
            a.wrapping_rem(if b == 0 { 2 } else { b }),
            a.wrapping_pow(7),
        );
    };
}
macro_rules! signed {
    ($module:ident, $t:ty) => {
        spec!(
            $module,
            $t,
            7,
            |a, b, _n| a.signum(),
            a.is_negative(),
            a.is_positive(),
            a.wrapping_abs(),
            a.unsigned_abs(),
            a.saturating_add(b),
            a.saturating_sub(b),
        );
    };
}
macro_rules! unsigned {
    ($module:ident, $t:ty) => {
        spec!(
            $module,
            $t,
            6,
            |a, b, _n| a.is_power_of_two(),
            (a >> 1).next_power_of_two(),
            a.saturating_add(b),
            a.saturating_sub(b),
            a.is_multiple_of(b),
            a.is_multiple_of(b & 3),
        );
    };
}
/// Returns the bits, with one pattern for every NaN, since the sign and payload of a computed NaN
/// are unspecified.
#[device]
fn bits32(x: f32) -> u32 {
    if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() }
}

/// Returns the bits, with one pattern for every NaN.
#[device]
fn bits64(x: f64) -> u64 {
    if x.is_nan() { 0x7ff8_0000_0000_0000 } else { x.to_bits() }
}

macro_rules! floats {
    ($module:ident, $t:ty, $bits:ident) => {
        spec!(
            $module,
            $t,
            15,
            |a, b, _n| a.is_nan(),
            a.is_finite(),
            a.is_infinite(),
            a.is_sign_negative(),
            a.is_sign_positive(),
            $bits(a.recip()),
            $bits(a.signum()),
            $bits(a.copysign(b)),
            $bits(a.round()),
            $bits(a.fract()),
            $bits(a.clamp(-1.5, 0.0)),
            $bits(a.clamp(-0.0, 2.5)),
            $bits(a.trunc()),
            $bits(a.floor()),
            $bits(a.round_ties_even()),
        );
    };
}

integers!(i8_all, i8);
integers!(u8_all, u8);
integers!(i16_all, i16);
integers!(u16_all, u16);
integers!(i32_all, i32);
integers!(u32_all, u32);
integers!(i64_all, i64);
integers!(u64_all, u64);
signed!(i8_signed, i8);
signed!(i16_signed, i16);
signed!(i32_signed, i32);
signed!(i64_signed, i64);
unsigned!(u8_unsigned, u8);
unsigned!(u16_unsigned, u16);
unsigned!(u32_unsigned, u32);
unsigned!(u64_unsigned, u64);
floats!(f32_all, f32, bits32);
floats!(f64_all, f64, bits64);

macro_rules! integer_pool {
    ($t:ty) => {{
        let mut random = Random::new(7);
        let mut pool = vec![<$t>::MIN, <$t>::MIN + 1, <$t>::MAX, <$t>::MAX - 1, 0, 1, 2, 3, 7, 8, 9, 64, 100];
        pool.extend([0, 1, 2].map(|x: $t| x.wrapping_neg()));
        pool.extend([0x55u64, 0xff00_ff00_12, 0x0123_4567_89ab_cdef].map(|x| x as $t));
        pool.extend((0..6).map(|_| random.bits() as $t));
        pool
    }};
}
macro_rules! float_pool {
    ($t:ty, $exact:expr) => {{
        let exact: $t = $exact;
        let mut pool =
            vec![0.0, 0.25, 0.5, 1.0, 1.5, 2.5, 3.5, 1e-3, 7.75, 1e30, exact, exact - 0.5, exact / 2.0 + 0.5];
        pool.extend([<$t>::MIN_POSITIVE, <$t>::MAX, <$t>::INFINITY, <$t>::EPSILON, <$t>::from_bits(1)]);
        pool.push((0.5 as $t).next_down());
        pool.push((1.5 as $t).next_down());
        for i in 0..pool.len() {
            let negative: $t = -pool[i];
            pool.push(negative);
        }
        pool.push(<$t>::NAN);
        pool.extend(Random::new(5).values::<$t>(6));
        pool
    }};
}

fn all(checker: &Checker) {
    macro_rules! run {
        ($($t:ty: $($module:ident)*;)*) => {$(
            let pool = integer_pool!($t);
            $($module::test(checker, &pool);)*
        )*};
    }
    run! {
        i8: i8_all i8_signed;
        i16: i16_all i16_signed;
        i32: i32_all i32_signed;
        i64: i64_all i64_signed;
        u8: u8_all u8_unsigned;
        u16: u16_all u16_unsigned;
        u32: u32_all u32_unsigned;
        u64: u64_all u64_unsigned;
    }
    f32_all::test(checker, &float_pool!(f32, 8388608.0));
    f64_all::test(checker, &float_pool!(f64, 4503599627370496.0));
}

#[test]
fn methods_agree_with_rust() {
    all(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_methods_agree_with_the_interpreter() {
    all(&checker(true));
}

/// Uses methods of constants in shapes and loops.
#[kernel(block = 32, grid = 1, instances(N = 5))]
#[requires(out.len() == N.next_power_of_two(), N.is_power_of_two() == (N.count_ones() == 1), N.clamp(2, 4) == 4)]
fn constants<const N: usize>(out: &mut [u32]) {
    let s = Shared::<u32, 1>::new([N.next_power_of_two()]);
    if thread::x() < s.dim(0) {
        out[thread::x()] = N.leading_zeros() + (N as u32).pow(2);
    }
}

#[test]
fn methods_of_constants_are_constants() {
    let device = Device::cpu();
    let mut out = device.upload(&[0u32; 8]).unwrap();
    constants::<5>::launch(&device, &mut out).unwrap();
    assert_eq!(out.download().unwrap(), [29 + 25; 8]);
    let mut short = device.upload(&[0u32; 5]).unwrap();
    let refused = constants::<5>::launch(&device, &mut short).unwrap_err().to_string();
    assert!(refused.contains("next_power_of_two"), "{refused}");
}
