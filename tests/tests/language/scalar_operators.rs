//! Tests of every operator and cast of the language on every type, at the edges of the types.
//!
//! The kernels go through the macros and run on the interpreter (IR as lowered) and on a GPU, if
//! there is one. The expected values are those of the same operators in Rust.

use kernel_dsl::compiler::Scalar;
use kernel_dsl::{ScalarElement, prelude::*};
use runtime::{Device, DeviceBuffer};

/// Values at the edges of a type, and some between.
trait Edges: ScalarElement {
    fn edges() -> Vec<Self>;
}

macro_rules! integer_edges {
    ($($t:ident)*) => {$(
        impl Edges for $t {
            fn edges() -> Vec<$t> {
                let mut all = vec![0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 100, $t::MAX, $t::MAX - 1, $t::MAX / 2, $t::MAX / 2 + 1, $t::MIN, $t::MIN + 1];
                all.extend((0..$t::BITS).map(|b| (1 as $t) << b));
                all.extend([0x5AA5_1234_89AB_CDEFu64 as $t, 0xFEDC_BA98_7654_3210u64 as $t, (0 as $t).wrapping_sub(7)]);
                all
            }
        }
    )*};
}
integer_edges!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! float_edges {
    ($($t:ident)*) => {$(
        impl Edges for $t {
            fn edges() -> Vec<$t> {
                let positive = [
                    0.0, $t::from_bits(1), $t::MIN_POSITIVE, $t::MIN_POSITIVE / 2.0, $t::EPSILON, 0.1, 0.4999999, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0,
                    127.0, 127.5, 128.0, 255.5, 32767.5, 65535.5, 8388607.5, 16777216.0, 2147483520.0, 2147483648.0, 4294967040.0,
                    4294967296.0, 9.2233715e18, 9.223372e18, 1.8446742e19, 1.8446744e19, 1e30, $t::MAX, $t::INFINITY, $t::NAN,
                ];
                positive.into_iter().chain(positive.map(|x: $t| -x)).collect()
            }
        }
    )*};
}
float_edges!(f32 f64);

/// Returns all pairs of edges.
fn pairs<A: Edges, B: Edges>() -> (Vec<A>, Vec<B>) {
    let b = B::edges();
    A::edges().into_iter().flat_map(|a| b.iter().map(move |b| (a, *b))).unzip()
}

/// Returns whether two values have the same bits or are both NaN.
fn same<T: ScalarElement>(a: T, b: T) -> bool {
    let nan = |x: T| match T::SCALAR {
        Scalar::F32 => f32::from_bits(x.bits() as u32).is_nan(),
        Scalar::F64 => f64::from_bits(x.bits()).is_nan(),
        _ => false,
    };
    a.bits() == b.bits() || nan(a) && nan(b)
}

fn compare<T: ScalarElement + std::fmt::Debug>(name: &str, given: &[String], found: &DeviceBuffer<T>, wanted: &[T]) {
    let found = found.download().unwrap();
    for (i, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!(same(*found, *wanted), "{name} of {}: {found:?}, rustc has {wanted:?}", given[i]);
    }
}

/// Declares operators: `name: |a: A, b: B| -> R, kernel expression, equivalent Rust expression;`
macro_rules! binary {
    ($($name:ident: |$a:ident: $ta:ident, $b:ident: $tb:ident| -> $r:ident, $e:expr, $rust:expr;)*) => {
        mod kernels_of_two {
            use super::*;
            $(
                #[kernel(block = 128, grid = z.len().div_ceil(128))]
                #[requires(x.len() == z.len(), y.len() == z.len())]
                pub fn $name(x: &[$ta], y: &[$tb], z: &mut [$r]) {
                    let i = grid::index();
                    if i < z.len() {
                        let ($a, $b) = (x[i], y[i]);
                        z[i] = $e;
                    }
                }
            )*
        }
        /// Runs each operator on all pairs of edges.
        fn operators_of_two(device: &Device) {
            $({
                let (x, y) = pairs::<$ta, $tb>();
                let skip = |$a: $ta, $b: $tb| -> bool { undefined(stringify!($name), $a.bits(), $b.bits(), <$ta as ScalarElement>::SCALAR) };
                let (x, y): (Vec<$ta>, Vec<$tb>) = x.into_iter().zip(y).filter(|(a, b)| !skip(*a, *b)).unzip();
                let wanted: Vec<$r> = x.iter().zip(&y).map(|(a, b)| { let ($a, $b) = (*a, *b); $rust }).collect();
                let given: Vec<_> = x.iter().zip(&y).map(|(a, b)| format!("{a:?}, {b:?}")).collect();
                let (x, y) = (device.upload(&x).unwrap(), device.upload(&y).unwrap());
                let mut z = device.alloc::<$r>(wanted.len()).unwrap();
                // SAFETY: each thread accesses element i of each buffer, below the common length.
                unsafe { kernels_of_two::$name::launch_unchecked(device, &x, &y, &mut z) }.unwrap_or_else(|e| panic!("{}: {e}", stringify!($name)));
                compare(stringify!($name), &given, &z, &wanted);
            })*
        }
    };
}

/// Returns whether the operator is undefined for these operands, in the language and in Rust:
/// division by zero, MIN / −1.
fn undefined(name: &str, a: u64, b: u64, ty: Scalar) -> bool {
    let divides = name.starts_with("div") || name.starts_with("rem");
    let minimum = 1 << (ty.bits() - 1);
    divides && ty.is_integer() && (b == 0 || ty.is_signed() && a == minimum && b == ty.mask())
}

/// Computes the minimum or maximum of PTX: a NaN operand is ignored, and −0 is less than +0.
macro_rules! ordered {
    ($pick:ident, $a:expr, $b:expr) => {
        match ($a.is_nan(), $b.is_nan()) {
            (true, _) => $b,
            (_, true) => $a,
            _ if $a == $b && ordered!(@first $pick, $a) => $a,
            _ if $a == $b => $b,
            _ => $a.$pick($b),
        }
    };
    (@first min, $a:expr) => { $a.is_sign_negative() };
    (@first max, $a:expr) => { $a.is_sign_positive() };
}

binary! {
    add_i8: |a: i8, b: i8| -> i8, a + b, a.wrapping_add(b);
    add_u16: |a: u16, b: u16| -> u16, a + b, a.wrapping_add(b);
    add_i32: |a: i32, b: i32| -> i32, a + b, a.wrapping_add(b);
    add_u64: |a: u64, b: u64| -> u64, a.wrapping_add(b), a.wrapping_add(b);
    add_f32: |a: f32, b: f32| -> f32, a + b, a + b;
    add_f64: |a: f64, b: f64| -> f64, a + b, a + b;
    sub_u8: |a: u8, b: u8| -> u8, a - b, a.wrapping_sub(b);
    sub_i16: |a: i16, b: i16| -> i16, a.wrapping_sub(b), a.wrapping_sub(b);
    sub_u32: |a: u32, b: u32| -> u32, a - b, a.wrapping_sub(b);
    sub_i64: |a: i64, b: i64| -> i64, a - b, a.wrapping_sub(b);
    sub_f32: |a: f32, b: f32| -> f32, a - b, a - b;
    sub_f64: |a: f64, b: f64| -> f64, a - b, a - b;
    mul_i8: |a: i8, b: i8| -> i8, a * b, a.wrapping_mul(b);
    mul_u16: |a: u16, b: u16| -> u16, a * b, a.wrapping_mul(b);
    mul_i32: |a: i32, b: i32| -> i32, a.wrapping_mul(b), a.wrapping_mul(b);
    mul_u64: |a: u64, b: u64| -> u64, a * b, a.wrapping_mul(b);
    mul_f32: |a: f32, b: f32| -> f32, a * b, a * b;
    mul_f64: |a: f64, b: f64| -> f64, a * b, a * b;
    div_i8: |a: i8, b: i8| -> i8, a / b, a / b;
    div_u8: |a: u8, b: u8| -> u8, a / b, a / b;
    div_i16: |a: i16, b: i16| -> i16, a / b, a / b;
    div_u16: |a: u16, b: u16| -> u16, a / b, a / b;
    div_i32: |a: i32, b: i32| -> i32, a / b, a / b;
    div_u32: |a: u32, b: u32| -> u32, a / b, a / b;
    div_i64: |a: i64, b: i64| -> i64, a / b, a / b;
    div_u64: |a: u64, b: u64| -> u64, a / b, a / b;
    div_f32: |a: f32, b: f32| -> f32, a / b, a / b;
    div_f64: |a: f64, b: f64| -> f64, a / b, a / b;
    rem_i8: |a: i8, b: i8| -> i8, a % b, a % b;
    rem_u16: |a: u16, b: u16| -> u16, a % b, a % b;
    rem_i32: |a: i32, b: i32| -> i32, a % b, a % b;
    rem_u32: |a: u32, b: u32| -> u32, a % b, a % b;
    rem_i64: |a: i64, b: i64| -> i64, a % b, a % b;
    rem_u64: |a: u64, b: u64| -> u64, a % b, a % b;
    and_i8: |a: i8, b: i8| -> i8, a & b, a & b;
    and_u64: |a: u64, b: u64| -> u64, a & b, a & b;
    or_u16: |a: u16, b: u16| -> u16, a | b, a | b;
    or_i32: |a: i32, b: i32| -> i32, a | b, a | b;
    xor_i16: |a: i16, b: i16| -> i16, a ^ b, a ^ b;
    xor_i64: |a: i64, b: i64| -> i64, a ^ b, a ^ b;
    shl_i8: |a: i8, b: u32| -> i8, a << (b & 7), a << (b & 7);
    shl_u16: |a: u16, b: u8| -> u16, a << (b & 15), a << (b & 15);
    shl_i32: |a: i32, b: u32| -> i32, a << (b & 31), a << (b & 31);
    shl_u64: |a: u64, b: i32| -> u64, a << (b & 63), a << (b & 63);
    shr_i8: |a: i8, b: u32| -> i8, a >> (b & 7), a >> (b & 7);
    shr_u8: |a: u8, b: u64| -> u8, a >> (b & 7), a >> (b & 7);
    shr_i32: |a: i32, b: u32| -> i32, a >> (b & 31), a >> (b & 31);
    shr_u32: |a: u32, b: i16| -> u32, a >> (b & 31), a >> (b & 31);
    shr_i64: |a: i64, b: u32| -> i64, a >> (b & 63), a >> (b & 63);
    shr_u64: |a: u64, b: u32| -> u64, a >> (b & 63), a >> (b & 63);
    min_i8: |a: i8, b: i8| -> i8, a.min(b), a.min(b);
    min_u32: |a: u32, b: u32| -> u32, a.min(b), a.min(b);
    min_i64: |a: i64, b: i64| -> i64, a.min(b), a.min(b);
    min_f32: |a: f32, b: f32| -> f32, a.min(b), ordered!(min, a, b);
    min_f64: |a: f64, b: f64| -> f64, a.min(b), ordered!(min, a, b);
    max_u16: |a: u16, b: u16| -> u16, a.max(b), a.max(b);
    max_i32: |a: i32, b: i32| -> i32, a.max(b), a.max(b);
    max_u64: |a: u64, b: u64| -> u64, a.max(b), a.max(b);
    max_f32: |a: f32, b: f32| -> f32, a.max(b), ordered!(max, a, b);
    max_f64: |a: f64, b: f64| -> f64, a.max(b), ordered!(max, a, b);
    lt_i8: |a: i8, b: i8| -> u8, (a < b) as u8, (a < b) as u8;
    lt_u64: |a: u64, b: u64| -> u8, (a < b) as u8, (a < b) as u8;
    lt_f32: |a: f32, b: f32| -> u8, (a < b) as u8, (a < b) as u8;
    le_i32: |a: i32, b: i32| -> u8, (a <= b) as u8, (a <= b) as u8;
    le_f64: |a: f64, b: f64| -> u8, (a <= b) as u8, (a <= b) as u8;
    gt_u8: |a: u8, b: u8| -> u8, (a > b) as u8, (a > b) as u8;
    gt_f32: |a: f32, b: f32| -> u8, (a > b) as u8, (a > b) as u8;
    ge_i64: |a: i64, b: i64| -> u8, (a >= b) as u8, (a >= b) as u8;
    ge_f64: |a: f64, b: f64| -> u8, (a >= b) as u8, (a >= b) as u8;
    eq_i16: |a: i16, b: i16| -> u8, (a == b) as u8, (a == b) as u8;
    eq_f32: |a: f32, b: f32| -> u8, (a == b) as u8, (a == b) as u8;
    ne_u32: |a: u32, b: u32| -> u8, (a != b) as u8, (a != b) as u8;
    ne_f64: |a: f64, b: f64| -> u8, (a != b) as u8, (a != b) as u8;
    lazy_and: |a: f32, b: f32| -> u8, (a < b && a > 0.0) as u8, (a < b && a > 0.0) as u8;
    lazy_or: |a: i32, b: i32| -> u8, (a < b || a > 0) as u8, (a < b || a > 0) as u8;
    mul_add_f32: |a: f32, b: f32| -> f32, a.mul_add(b, 0.1), a.mul_add(b, 0.1);
    mul_add_f64: |a: f64, b: f64| -> f64, a.mul_add(b, -3.0), a.mul_add(b, -3.0);
    select_f32: |a: f32, b: f32| -> f32, if a < b { a } else { b }, if a < b { a } else { b };
    div_ceil_u32: |a: u32, b: u32| -> u32, a.div_ceil(b), a.div_ceil(b);
    saturating_sub_u64: |a: u64, b: u64| -> u64, a.saturating_sub(b), a.saturating_sub(b);
}

macro_rules! unary {
    ($($name:ident: |$a:ident: $ta:ident| -> $r:ident, $e:expr, $rust:expr;)*) => {
        mod kernels_of_one {
            use super::*;
            $(
                #[kernel(block = 128, grid = z.len().div_ceil(128))]
                #[requires(x.len() == z.len())]
                pub fn $name(x: &[$ta], z: &mut [$r]) {
                    let i = grid::index();
                    if i < z.len() {
                        let $a = x[i];
                        z[i] = $e;
                    }
                }
            )*
        }
        /// Runs each operator on all edges.
        fn operators_of_one(device: &Device) {
            $({
                let x = <$ta>::edges();
                let wanted: Vec<$r> = x.iter().map(|a| { let $a = *a; $rust }).collect();
                let given: Vec<_> = x.iter().map(|a| format!("{a:?}")).collect();
                let x = device.upload(&x).unwrap();
                let mut z = device.alloc::<$r>(wanted.len()).unwrap();
                // SAFETY: each thread accesses element i of each buffer, below the common length.
                unsafe { kernels_of_one::$name::launch_unchecked(device, &x, &mut z) }.unwrap_or_else(|e| panic!("{}: {e}", stringify!($name)));
                compare(stringify!($name), &given, &z, &wanted);
            })*
        }
    };
}

unary! {
    neg_i8: |a: i8| -> i8, -a, a.wrapping_neg();
    neg_i32: |a: i32| -> i32, -a, a.wrapping_neg();
    neg_i64: |a: i64| -> i64, -a, a.wrapping_neg();
    neg_f32: |a: f32| -> f32, -a, -a;
    neg_f64: |a: f64| -> f64, -a, -a;
    not_u8: |a: u8| -> u8, !a, !a;
    not_i16: |a: i16| -> i16, !a, !a;
    not_u64: |a: u64| -> u64, !a, !a;
    abs_i32: |a: i32| -> i32, a.abs(), a.wrapping_abs();
    abs_i64: |a: i64| -> i64, a.abs(), a.wrapping_abs();
    abs_f32: |a: f32| -> f32, a.abs(), a.abs();
    abs_f64: |a: f64| -> f64, a.abs(), a.abs();
    sqrt_f32: |a: f32| -> f32, a.sqrt(), a.sqrt();
    sqrt_f64: |a: f64| -> f64, a.sqrt(), a.sqrt();
    floor_f32: |a: f32| -> f32, a.floor(), a.floor();
    ceil_f64: |a: f64| -> f64, a.ceil(), a.ceil();
    trunc_f32: |a: f32| -> f32, a.trunc(), a.trunc();
    round_f32: |a: f32| -> f32, a.round_ties_even(), a.round_ties_even();
    round_f64: |a: f64| -> f64, a.round_ties_even(), a.round_ties_even();
    bits_f32: |a: f32| -> u32, if a == a { a.to_bits() } else { 0 }, if a.is_nan() { 0 } else { a.to_bits() };
    bits_f64: |a: f64| -> u64, if a == a { a.to_bits() } else { 0 }, if a.is_nan() { 0 } else { a.to_bits() };
    from_bits_f32: |a: u32| -> f32, f32::from_bits(a), f32::from_bits(a);
    from_bits_f64: |a: u64| -> f64, f64::from_bits(a), f64::from_bits(a);
    ones_u32: |a: u32| -> u32, a.count_ones(), a.count_ones();
    ones_i64: |a: i64| -> u32, a.count_ones(), a.count_ones();
    zeros_i32: |a: i32| -> u32, a.leading_zeros(), a.leading_zeros();
    zeros_u64: |a: u64| -> u32, a.leading_zeros(), a.leading_zeros();
    exp_f32: |a: f32| -> f32, math::exp(a), math::exp(a);
    ln_f32: |a: f32| -> f32, math::ln(a), math::ln(a);
    i8_as_i16: |a: i8| -> i16, a as i16, a as i16;
    i8_as_i32: |a: i8| -> i32, a as i32, a as i32;
    i8_as_i64: |a: i8| -> i64, a as i64, a as i64;
    i8_as_u8: |a: i8| -> u8, a as u8, a as u8;
    i8_as_u16: |a: i8| -> u16, a as u16, a as u16;
    i8_as_u32: |a: i8| -> u32, a as u32, a as u32;
    i8_as_u64: |a: i8| -> u64, a as u64, a as u64;
    i8_as_f32: |a: i8| -> f32, a as f32, a as f32;
    i8_as_f64: |a: i8| -> f64, a as f64, a as f64;
    i16_as_i8: |a: i16| -> i8, a as i8, a as i8;
    i16_as_i32: |a: i16| -> i32, a as i32, a as i32;
    i16_as_i64: |a: i16| -> i64, a as i64, a as i64;
    i16_as_u8: |a: i16| -> u8, a as u8, a as u8;
    i16_as_u16: |a: i16| -> u16, a as u16, a as u16;
    i16_as_u32: |a: i16| -> u32, a as u32, a as u32;
    i16_as_u64: |a: i16| -> u64, a as u64, a as u64;
    i16_as_f32: |a: i16| -> f32, a as f32, a as f32;
    i16_as_f64: |a: i16| -> f64, a as f64, a as f64;
    i32_as_i8: |a: i32| -> i8, a as i8, a as i8;
    i32_as_i16: |a: i32| -> i16, a as i16, a as i16;
    i32_as_i64: |a: i32| -> i64, a as i64, a as i64;
    i32_as_u8: |a: i32| -> u8, a as u8, a as u8;
    i32_as_u16: |a: i32| -> u16, a as u16, a as u16;
    i32_as_u32: |a: i32| -> u32, a as u32, a as u32;
    i32_as_u64: |a: i32| -> u64, a as u64, a as u64;
    i32_as_f32: |a: i32| -> f32, a as f32, a as f32;
    i32_as_f64: |a: i32| -> f64, a as f64, a as f64;
    i64_as_i8: |a: i64| -> i8, a as i8, a as i8;
    i64_as_i16: |a: i64| -> i16, a as i16, a as i16;
    i64_as_i32: |a: i64| -> i32, a as i32, a as i32;
    i64_as_u8: |a: i64| -> u8, a as u8, a as u8;
    i64_as_u16: |a: i64| -> u16, a as u16, a as u16;
    i64_as_u32: |a: i64| -> u32, a as u32, a as u32;
    i64_as_u64: |a: i64| -> u64, a as u64, a as u64;
    i64_as_f32: |a: i64| -> f32, a as f32, a as f32;
    i64_as_f64: |a: i64| -> f64, a as f64, a as f64;
    u8_as_i8: |a: u8| -> i8, a as i8, a as i8;
    u8_as_i16: |a: u8| -> i16, a as i16, a as i16;
    u8_as_i32: |a: u8| -> i32, a as i32, a as i32;
    u8_as_i64: |a: u8| -> i64, a as i64, a as i64;
    u8_as_u16: |a: u8| -> u16, a as u16, a as u16;
    u8_as_u32: |a: u8| -> u32, a as u32, a as u32;
    u8_as_u64: |a: u8| -> u64, a as u64, a as u64;
    u8_as_f32: |a: u8| -> f32, a as f32, a as f32;
    u8_as_f64: |a: u8| -> f64, a as f64, a as f64;
    u16_as_i8: |a: u16| -> i8, a as i8, a as i8;
    u16_as_i16: |a: u16| -> i16, a as i16, a as i16;
    u16_as_i32: |a: u16| -> i32, a as i32, a as i32;
    u16_as_i64: |a: u16| -> i64, a as i64, a as i64;
    u16_as_u8: |a: u16| -> u8, a as u8, a as u8;
    u16_as_u32: |a: u16| -> u32, a as u32, a as u32;
    u16_as_u64: |a: u16| -> u64, a as u64, a as u64;
    u16_as_f32: |a: u16| -> f32, a as f32, a as f32;
    u16_as_f64: |a: u16| -> f64, a as f64, a as f64;
    u32_as_i8: |a: u32| -> i8, a as i8, a as i8;
    u32_as_i16: |a: u32| -> i16, a as i16, a as i16;
    u32_as_i32: |a: u32| -> i32, a as i32, a as i32;
    u32_as_i64: |a: u32| -> i64, a as i64, a as i64;
    u32_as_u8: |a: u32| -> u8, a as u8, a as u8;
    u32_as_u16: |a: u32| -> u16, a as u16, a as u16;
    u32_as_u64: |a: u32| -> u64, a as u64, a as u64;
    u32_as_f32: |a: u32| -> f32, a as f32, a as f32;
    u32_as_f64: |a: u32| -> f64, a as f64, a as f64;
    u64_as_i8: |a: u64| -> i8, a as i8, a as i8;
    u64_as_i16: |a: u64| -> i16, a as i16, a as i16;
    u64_as_i32: |a: u64| -> i32, a as i32, a as i32;
    u64_as_i64: |a: u64| -> i64, a as i64, a as i64;
    u64_as_u8: |a: u64| -> u8, a as u8, a as u8;
    u64_as_u16: |a: u64| -> u16, a as u16, a as u16;
    u64_as_u32: |a: u64| -> u32, a as u32, a as u32;
    u64_as_f32: |a: u64| -> f32, a as f32, a as f32;
    u64_as_f64: |a: u64| -> f64, a as f64, a as f64;
    f32_as_i8: |a: f32| -> i8, a as i8, a as i8;
    f32_as_i16: |a: f32| -> i16, a as i16, a as i16;
    f32_as_i32: |a: f32| -> i32, a as i32, a as i32;
    f32_as_i64: |a: f32| -> i64, a as i64, a as i64;
    f32_as_u8: |a: f32| -> u8, a as u8, a as u8;
    f32_as_u16: |a: f32| -> u16, a as u16, a as u16;
    f32_as_u32: |a: f32| -> u32, a as u32, a as u32;
    f32_as_u64: |a: f32| -> u64, a as u64, a as u64;
    f32_as_f64: |a: f32| -> f64, a as f64, a as f64;
    f64_as_i8: |a: f64| -> i8, a as i8, a as i8;
    f64_as_i16: |a: f64| -> i16, a as i16, a as i16;
    f64_as_i32: |a: f64| -> i32, a as i32, a as i32;
    f64_as_i64: |a: f64| -> i64, a as i64, a as i64;
    f64_as_u8: |a: f64| -> u8, a as u8, a as u8;
    f64_as_u16: |a: f64| -> u16, a as u16, a as u16;
    f64_as_u32: |a: f64| -> u32, a as u32, a as u32;
    f64_as_u64: |a: f64| -> u64, a as u64, a as u64;
    f64_as_f32: |a: f64| -> f32, a as f32, a as f32;
}

#[test]
fn operators_agree_with_rust() {
    let device = Device::cpu();
    operators_of_two(&device);
    operators_of_one(&device);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_operators_agree_with_rust() {
    let device = Device::cuda(0).unwrap();
    operators_of_two(&device);
    operators_of_one(&device);
}
