//! Every operator on every type, over boundary values and random ones, against Rust's operators.

use crate::kit::{Kit, Random, input, out, run};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::ir::{Binary, Comparison, Op, Type, Unary, Value};
use std::fmt::Debug;

/// A Rust type that kernels compute with, and its boundary values.
trait Number: bytemuck::Pod + Debug {
    const SCALAR: Scalar;
    fn edges() -> Vec<Self>;
    /// Converts random bits to a value; floats get any magnitude.
    fn random(bits: u64) -> Self;
    /// Returns whether the bits are equal, or both values are NaN.
    fn same(self, other: Self) -> bool;
}

macro_rules! integers {
    ($($t:ty: $s:ident),*) => {$(
        impl Number for $t {
            const SCALAR: Scalar = Scalar::$s;
            fn edges() -> Vec<$t> {
                let (min, max) = (<$t>::MIN, <$t>::MAX);
                vec![0, 1, 2, 3, 7, 31, 32, 63, min, min + 1, max, max - 1, max / 2, max / 2 + 1, (0 as $t).wrapping_sub(1)]
            }
            fn random(bits: u64) -> $t { (bits >> (bits & 63)) as $t }
            fn same(self, other: $t) -> bool { self == other }
        }
    )*};
}
integers!(i8: I8, i16: I16, i32: I32, i64: I64, u8: U8, u16: U16, u32: U32, u64: U64);

macro_rules! floats {
    ($($t:ident: $s:ident, $bits:ty);*) => {$(
        impl Number for $t {
            const SCALAR: Scalar = Scalar::$s;
            fn edges() -> Vec<$t> {
                let least = $t::from_bits(1);
                let mut all = vec![
                    0.0, 1.0, 0.5, 1.5, 2.5, 0.1, $t::MAX, $t::MIN_POSITIVE, least, $t::INFINITY, $t::NAN, $t::EPSILON,
                    127.5, 255.0, 256.0, 32768.0, 65535.5, 2147483648.0, 4294967296.0, 9.3e18, 1.9e19, 8388607.5, 1.0e-30,
                ];
                all.extend(all.clone().into_iter().map(|x| -x));
                all
            }
            fn random(bits: u64) -> $t {
                if bits & 1 == 0 { $t::from_bits((bits >> 8) as $bits) } else { (bits as i32 as $t) / 1024.0 }
            }
            fn same(self, other: $t) -> bool { self.to_bits() == other.to_bits() || self.is_nan() && other.is_nan() }
        }
    )*};
}
floats!(f32: F32, u32; f64: F64, u64);

/// Returns every pair of boundary values, and random pairs.
fn pairs<A: Number, B: Number>() -> (Vec<A>, Vec<B>) {
    let mut random = Random(0x5eed);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for a in A::edges() {
        for b in B::edges() {
            left.push(a);
            right.push(b);
        }
    }
    for _ in 0..500 {
        left.push(A::random(random.next()));
        right.push(B::random(random.next()));
    }
    (left, right)
}

/// Computes z[i] = op(x[i], y[i]) over `x` and `y`, with the last warp partly past the end.
fn compute<A: Number, B: Number, T: Number>(x: &[A], y: &[B], op: impl Fn(Value, Value) -> Op, to: Scalar) -> Vec<T> {
    let mut k = Kit::new([64, 1, 1], "z[i] = op(x[i], y[i])");
    let (xs, ys) = (k.slice("x", A::SCALAR, false), k.slice("y", B::SCALAR, false));
    let zs = k.slice("z", T::SCALAR, true);
    let i = k.grid_index();
    let inside = k.b.compare(Comparison::Lt, i, zs.len);
    k.when(inside, |k| {
        let (a, b) = (k.load(xs.at(i), A::SCALAR), k.load(ys.at(i), B::SCALAR));
        let mut z = k.b.value(op(a, b), Type::Scalar(to));
        if to == Scalar::Bool {
            z = k.b.scalar(Op::Cast(z), T::SCALAR);
        }
        k.store(zs.at(i), T::SCALAR, z);
    });
    let kernel = k.finish();
    let mut z = vec![T::zeroed(); x.len()];
    let blocks = (x.len() as u32).div_ceil(64);
    let outcome = run(&kernel, blocks, vec![input(x), input(y), out(&mut z)]);
    let errors: Vec<_> = outcome.report.errors().map(|f| f.check.name()).collect();
    assert!(errors.iter().all(|e| e.starts_with("division")), "{}", outcome.report);
    z
}

fn check<A: Number, B: Number, T: Number>(
    what: impl Debug,
    op: impl Fn(Value, Value) -> Op,
    to: Scalar,
    reference: impl Fn(A, B) -> Option<T>,
) {
    let (x, y) = pairs::<A, B>();
    let z = compute::<A, B, T>(&x, &y, op, to);
    for ((a, b), got) in x.into_iter().zip(y).zip(z) {
        // `None` is an unspecified value.
        if let Some(expected) = reference(a, b) {
            assert!(expected.same(got), "{what:?} of {a:?} and {b:?} is {expected:?}, not {got:?}");
        }
    }
}

fn binary<T: Number>(op: Binary, reference: impl Fn(T, T) -> Option<T>) {
    check(op, |a, b| Op::Binary(op, a, b), T::SCALAR, reference);
}

fn unary<T: Number>(op: Unary, reference: impl Fn(T) -> T) {
    check::<T, u8, T>(op, |a, _| Op::Unary(op, a), T::SCALAR, |a, _| Some(reference(a)));
}

fn compare<T: Number>(op: Comparison, reference: impl Fn(T, T) -> bool) {
    check::<T, T, u8>(op, |a, b| Op::Compare(op, a, b), Scalar::Bool, |a, b| Some(u8::from(reference(a, b))));
}

fn comparisons<T: Number + PartialOrd>() {
    compare::<T>(Comparison::Eq, |a, b| a == b);
    compare::<T>(Comparison::Ne, |a, b| a != b);
    compare::<T>(Comparison::Lt, |a, b| a < b);
    compare::<T>(Comparison::Le, |a, b| a <= b);
    compare::<T>(Comparison::Gt, |a, b| a > b);
    compare::<T>(Comparison::Ge, |a, b| a >= b);
}

#[test]
fn integer_operations_agree_with_rust() {
    macro_rules! of {
        ($($t:ty),*) => {$(
            binary::<$t>(Binary::Add, |a, b| Some(a.wrapping_add(b)));
            binary::<$t>(Binary::Sub, |a, b| Some(a.wrapping_sub(b)));
            binary::<$t>(Binary::Mul, |a, b| Some(a.wrapping_mul(b)));
            binary::<$t>(Binary::WrappingAdd, |a, b| Some(a.wrapping_add(b)));
            binary::<$t>(Binary::WrappingSub, |a, b| Some(a.wrapping_sub(b)));
            binary::<$t>(Binary::WrappingMul, |a, b| Some(a.wrapping_mul(b)));
            binary::<$t>(Binary::Div, <$t>::checked_div);
            binary::<$t>(Binary::Rem, <$t>::checked_rem);
            binary::<$t>(Binary::Min, |a, b| Some(a.min(b)));
            binary::<$t>(Binary::Max, |a, b| Some(a.max(b)));
            binary::<$t>(Binary::And, |a, b| Some(a & b));
            binary::<$t>(Binary::Or, |a, b| Some(a | b));
            binary::<$t>(Binary::Xor, |a, b| Some(a ^ b));
            for (op, left) in [(Binary::Shl, true), (Binary::Shr, false)] {
                check::<$t, u32, $t>(op, |a, b| Op::Binary(op, a, b), <$t>::SCALAR, |a, b| {
                    let amount = b % <$t>::BITS;
                    Some(if left { a << amount } else { a >> amount })
                });
            }
            unary::<$t>(Unary::Neg, <$t>::wrapping_neg);
            unary::<$t>(Unary::Not, |a| !a);
            comparisons::<$t>();
        )*};
    }
    of!(i8, i16, i32, i64, u8, u16, u32, u64);
}

#[test]
fn signs_and_counts_match_rust() {
    macro_rules! signed {
        ($($t:ty),*) => {$( unary::<$t>(Unary::Abs, <$t>::wrapping_abs); )*};
    }
    signed!(i8, i16, i32, i64);
    macro_rules! counting {
        ($($t:ty),*) => {$(
            check::<$t, u8, u32>("ones", |a, _| Op::Unary(Unary::CountOnes, a), Scalar::U32, |a, _| Some(a.count_ones()));
            let zeros = |a, _| Op::Unary(Unary::LeadingZeros, a);
            check::<$t, u8, u32>("zeros", zeros, Scalar::U32, |a, _| Some(a.leading_zeros()));
            unary::<$t>(Unary::ReverseBits, <$t>::reverse_bits);
            unary::<$t>(Unary::SwapBytes, <$t>::swap_bytes);
        )*};
    }
    counting!(i32, i64, u32, u64);
    macro_rules! rotating {
        ($($t:ty),*) => {$(
            check::<$t, u32, $t>("rotate", |a, b| Op::Binary(Binary::RotateLeft, a, b), <$t>::SCALAR, |a, b| {
                Some(a.rotate_left(b))
            });
        )*};
    }
    rotating!(i32, i64, u32, u64);
}

#[test]
fn float_operations_agree_with_rust() {
    macro_rules! of {
        ($($t:ty),*) => {$(
            binary::<$t>(Binary::Add, |a, b| Some(a + b));
            binary::<$t>(Binary::Sub, |a, b| Some(a - b));
            binary::<$t>(Binary::Mul, |a, b| Some(a * b));
            binary::<$t>(Binary::Div, |a, b| Some(a / b));
            binary::<$t>(Binary::Rem, |a, b| Some(a % b));
            // The cases of the table in the PTX manual.
            binary::<$t>(Binary::Min, |a, b| Some(match (a.is_nan(), b.is_nan()) {
                (true, _) => b,
                (_, true) => a,
                _ if a == 0.0 && b == 0.0 => if a.is_sign_negative() { a } else { b },
                _ => if a < b { a } else { b },
            }));
            binary::<$t>(Binary::Max, |a, b| Some(match (a.is_nan(), b.is_nan()) {
                (true, _) => b,
                (_, true) => a,
                _ if a == 0.0 && b == 0.0 => if a.is_sign_negative() { b } else { a },
                _ => if a > b { a } else { b },
            }));
            unary::<$t>(Unary::Neg, |a| -a);
            unary::<$t>(Unary::Abs, <$t>::abs);
            unary::<$t>(Unary::Sqrt, <$t>::sqrt);
            unary::<$t>(Unary::Floor, <$t>::floor);
            unary::<$t>(Unary::Ceil, <$t>::ceil);
            unary::<$t>(Unary::Trunc, <$t>::trunc);
            unary::<$t>(Unary::RoundEven, <$t>::round_ties_even);
            comparisons::<$t>();
            check::<$t, $t, $t>("mul_add", |a, b| Op::MulAdd(a, b, a), <$t>::SCALAR, |a, b| Some(a.mul_add(b, a)));
        )*};
    }
    of!(f32, f64);
}

#[test]
fn casts_round_as_in_rust() {
    macro_rules! between {
        ($($from:ty),* => $to:tt) => {$( between!(@ $from => $to); )*};
        (@ $from:ty => ($($to:ty),*)) => {$(
            let what = concat!(stringify!($from), " as ", stringify!($to));
            check::<$from, u8, $to>(what, |a, _| Op::Cast(a), <$to>::SCALAR, |a, _| Some(a as $to));
        )*};
    }
    between!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64 => (i8, i16, i32, i64, u8, u16, u32, u64, f32, f64));
}

#[test]
fn bitcasts_keep_the_bits() {
    check::<f32, u8, u32>("f32 bits", |a, _| Op::Bitcast(a), Scalar::U32, |a, _| Some(a.to_bits()));
    check::<u32, u8, f32>("f32", |a, _| Op::Bitcast(a), Scalar::F32, |a, _| Some(f32::from_bits(a)));
    check::<f64, u8, u64>("f64 bits", |a, _| Op::Bitcast(a), Scalar::U64, |a, _| Some(a.to_bits()));
    check::<i64, u8, f64>("f64", |a, _| Op::Bitcast(a), Scalar::F64, |a, _| Some(f64::from_bits(a as u64)));
}

/// Checks the operators of `bool`, and its casts to integers.
#[test]
fn truth_values_combine_as_in_rust() {
    let (x, y): (Vec<u32>, Vec<u32>) = (0..4).map(|i| (i & 1, i >> 1)).unzip();
    let mut k = Kit::new([32, 1, 1], "z[i] = bits");
    let (xs, ys) = (k.slice("x", Scalar::U32, false), k.slice("y", Scalar::U32, false));
    let zs = k.slice("z", Scalar::U32, true);
    let (i, zero) = (k.thread(), k.b.constant(Scalar::U32, 0));
    let inside = k.b.compare(Comparison::Lt, i, zs.len);
    k.when(inside, |k| {
        let (a, b) = (k.load(xs.at(i), Scalar::U32), k.load(ys.at(i), Scalar::U32));
        let (a, b) = (k.b.compare(Comparison::Ne, a, zero), k.b.compare(Comparison::Gt, b, zero));
        let mut bits = vec![
            k.binary(Binary::And, a, b),
            k.binary(Binary::Or, a, b),
            k.binary(Binary::Xor, a, b),
            k.b.compare(Comparison::Eq, a, b),
        ];
        bits.push(k.b.scalar(Op::Unary(Unary::Not, a), Scalar::Bool));
        bits.push(k.b.scalar(Op::Select { condition: a, yes: b, no: a }, Scalar::Bool));
        let mut word = zero;
        for (n, bit) in bits.into_iter().enumerate() {
            let bit = k.b.scalar(Op::Cast(bit), Scalar::U32);
            let n = k.b.constant(Scalar::U32, n as u64);
            let bit = k.binary(Binary::Shl, bit, n);
            word = k.binary(Binary::Or, word, bit);
        }
        k.store(zs.at(i), Scalar::U32, word);
    });
    let mut z = [0u32; 4];
    let outcome = run(&k.finish(), 1, vec![input(&x), input(&y), out(&mut z)]);
    assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
    for i in 0..4 {
        let (a, b) = (x[i] != 0, y[i] != 0);
        let bits = [a & b, a | b, a ^ b, a == b, !a, if a { b } else { a }];
        let expected = bits.iter().enumerate().fold(0, |w, (n, bit)| w | u32::from(*bit) << n);
        assert_eq!(z[i], expected, "{a} and {b}");
    }
}
