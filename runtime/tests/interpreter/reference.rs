//! Every operation on every type, on boundary and random values, against a definition that shares
//! no code with the interpreter. Integers use `i128`, floats `rustc_apfloat`. `arithmetic` tests
//! against the host's own arithmetic.
//!
//! `FUZZ_SEED=7 cargo test -p runtime --test interpreter reference` draws other values.

use crate::kit::{Kit, Random, run_with};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::ir::{Binary, Bits, Comparison, Op, Type, Unary, Value};
use runtime::interpreter::{ArgumentBytes, Binding, Check, Options};
use rustc_apfloat::ieee::{Double, Half, Quad, Single};
use rustc_apfloat::{Float, FloatConvert, Round};
use std::cmp::Ordering;
use std::fmt::Debug;

const INTEGERS: [Scalar; 8] =
    [Scalar::I8, Scalar::I16, Scalar::I32, Scalar::I64, Scalar::U8, Scalar::U16, Scalar::U32, Scalar::U64];
const FLOATS: [Scalar; 2] = [Scalar::F32, Scalar::F64];

/// The number of random values per operation, in addition to all boundary values.
const DRAWN: usize = 2000;

fn random() -> Random {
    let seed = std::env::var("FUZZ_SEED").ok().and_then(|seed| seed.parse::<u64>().ok()).unwrap_or(1);
    Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
}

/// Returns the bit patterns of a type's boundary values.
fn edges(ty: Scalar) -> Vec<u64> {
    let (top, mask) = (1u64 << (ty.bits() - 1), ty.mask());
    match ty {
        Scalar::Bool => vec![0, 1],
        Scalar::F32 => {
            let some =
                [0.0, 1.0, 1.5, 0.5, 2.5, 3.0, 127.5, 255.0, 65519.9, 65520.0, 8388607.5, 2147483520.0, 1e-8, 6e-8];
            let more =
                [f32::MAX, f32::MIN_POSITIVE, f32::EPSILON, f32::INFINITY, f32::NAN, f32::from_bits(1), 4294967296.0];
            some.into_iter().chain(more).flat_map(|x| [x, -x]).map(|x| x.to_bits().into()).collect()
        }
        Scalar::F64 => {
            let some =
                [0.0, 1.0, 1.5, 0.5, 2.5, 3.0, 127.5, 255.0, 9007199254740993.0, 9.3e18, 1.9e19, 2147483647.5, 3.5e38];
            let more = [f64::MAX, f64::MIN_POSITIVE, f64::EPSILON, f64::INFINITY, f64::NAN, f64::from_bits(1), 1e-45];
            some.into_iter().chain(more).flat_map(|x| [x, -x]).map(f64::to_bits).collect()
        }
        _ => [0, 1, 2, 3, 7, 31, 32, 63, 64, 100, mask, mask - 1, top, top - 1, top + 1].map(|x| x & mask).to_vec(),
    }
}

/// Draws a random value: integers of any magnitude, floats with any bits and of near magnitudes.
fn drawn(ty: Scalar, random: &mut Random) -> u64 {
    let bits = random.next();
    let sign = random.next() & 1 << 63;
    let near = |exponent: u64| sign | exponent << 52 | bits & ((1 << 52) - 1);
    match ty {
        Scalar::F32 if bits & 1 == 0 => (f64::from_bits(near(1023 - 8 + (bits >> 56 & 15))) as f32).to_bits().into(),
        Scalar::F64 if bits & 1 == 0 => near(1023 - 8 + (bits >> 56 & 15)),
        Scalar::F32 | Scalar::F64 | Scalar::F16 => random.next() & ty.mask(),
        _ => (bits >> (random.next() & 63)) & ty.mask(),
    }
}

/// Returns combinations of all operands' boundary values, thinned out if there are many, and random
/// operands.
fn operands(types: &[Scalar], random: &mut Random) -> Vec<Vec<u64>> {
    let mut all: Vec<Vec<u64>> = vec![vec![]];
    for ty in types {
        let edges = edges(*ty);
        all = all.iter().flat_map(|x| edges.iter().map(move |e| x.iter().copied().chain([*e]).collect())).collect();
    }
    // Three operands have many combinations. Take every seventh, since 7 divides no count of
    // boundary values.
    let step = if all.len() > 4000 { 7 } else { 1 };
    let mut all: Vec<_> = all.into_iter().step_by(step).collect();
    all.extend((0..DRAWN).map(|_| types.iter().map(|ty| drawn(*ty, random)).collect()));
    all
}

/// Computes `op` on each row of operands.
fn computed(types: &[Scalar], to: Scalar, rows: &[Vec<u64>], op: impl Fn(&[Value]) -> Op) -> Vec<u64> {
    let mut k = Kit::new([128, 1, 1], "z[i] = op(x[i], …)");
    // Memory has no `bool`, so a byte holds it.
    let held = |ty: Scalar| if ty == Scalar::Bool { Scalar::U8 } else { ty };
    let inputs: Vec<_> = types.iter().enumerate().map(|(n, ty)| k.slice(&format!("x{n}"), held(*ty), false)).collect();
    let z = k.slice("z", held(to), true);
    let i = k.grid_index();
    let inside = k.b.compare(Comparison::Lt, i, z.len);
    k.when(inside, |k| {
        let mut values = Vec::new();
        for (input, ty) in inputs.iter().zip(types) {
            let mut value = k.load(input.at(i), held(*ty));
            if *ty == Scalar::Bool {
                let zero = k.b.constant(Scalar::U8, 0);
                value = k.b.compare(Comparison::Ne, value, zero);
            }
            values.push(value);
        }
        let mut result = k.b.value(op(&values), Type::Scalar(to));
        if to == Scalar::Bool {
            result = k.b.scalar(Op::Cast(result), Scalar::U8);
        }
        k.store(z.at(i), held(to), result);
    });
    let bytes = |ty: Scalar, n: usize| -> Vec<u8> {
        rows.iter().flat_map(|row| row[n].to_le_bytes()[..ty.bytes() as usize].to_vec()).collect()
    };
    let inputs: Vec<Vec<u8>> = types.iter().enumerate().map(|(n, ty)| bytes(*ty, n)).collect();
    let width = to.bytes() as usize;
    let mut left = vec![0u8; rows.len() * width];
    let n = rows.len() as u32;
    let memory = |bytes| Binding::Memory { bytes, extents: vec![n], strides: vec![] };
    let mut arguments: Vec<Binding> = inputs.iter().map(|bytes| memory(ArgumentBytes::Shared(bytes))).collect();
    arguments.push(memory(ArgumentBytes::Exclusive(&mut left)));
    // Other tests check the reports of overflow and of division by zero.
    let without = Check::ALL.into_iter().filter(|check| *check != Check::OutOfBounds).collect();
    let options = Options { without, ..Default::default() };
    let outcome = run_with(&k.finish(), [n.div_ceil(128), 1, 1], arguments, options);
    assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
    let element = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..width].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    left.chunks(width).map(element).collect()
}

fn is_nan(ty: Scalar, bits: u64) -> bool {
    match ty {
        Scalar::F16 => Half::from_bits(bits.into()).is_nan(),
        Scalar::F32 => f32::from_bits(bits as u32).is_nan(),
        Scalar::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

/// Checks an operation against its definition, which returns `None` where the language leaves the
/// result open.
fn check(
    what: impl Debug,
    types: &[Scalar],
    to: Scalar,
    op: impl Fn(&[Value]) -> Op,
    definition: impl Fn(&[u64]) -> Option<u64>,
) {
    let rows = operands(types, &mut random());
    for (row, found) in rows.iter().zip(computed(types, to, &rows, op)) {
        let Some(expected) = definition(row) else { continue };
        let same = found == expected || is_nan(to, found) && is_nan(to, expected);
        assert!(same, "{what:?} of {types:?} {row:x?} gives {found:#x}, by definition {expected:#x}");
    }
}

/// Converts an integer's bits to its value.
fn number(ty: Scalar, bits: u64) -> i128 {
    let unused = 64 - ty.bits();
    if ty.is_signed() { i128::from((bits << unused) as i64 >> unused) } else { i128::from(bits & ty.mask()) }
}

/// Truncates a number to the bits of the type.
fn cut(ty: Scalar, x: i128) -> u64 {
    x as u64 & ty.mask()
}

#[test]
fn binary_integer_operations_match_their_definition() {
    use Binary::*;
    for ty in INTEGERS {
        let two = |op: Binary, definition: &dyn Fn(i128, i128) -> Option<i128>| {
            check(
                op,
                &[ty, ty],
                ty,
                |v| Op::Binary(op, v[0], v[1]),
                |x| definition(number(ty, x[0]), number(ty, x[1])).map(|x| cut(ty, x)),
            );
        };
        for op in [Add, WrappingAdd] {
            two(op, &|a, b| Some(a + b));
        }
        for op in [Sub, WrappingSub] {
            two(op, &|a, b| Some(a - b));
        }
        for op in [Mul, WrappingMul] {
            two(op, &|a, b| Some(a.wrapping_mul(b)));
        }
        // Undefined for a zero divisor, and for a quotient that overflows.
        let least = number(ty, 1 << (ty.bits() - 1));
        let defined = |a: i128, b: i128| b != 0 && !(ty.is_signed() && a == least && b == -1);
        two(Div, &|a, b| defined(a, b).then(|| a / b));
        two(Rem, &|a, b| defined(a, b).then(|| a % b));
        two(Min, &|a, b| Some(if a < b { a } else { b }));
        two(Max, &|a, b| Some(if a < b { b } else { a }));
        two(And, &|a, b| Some(a & b));
        two(Or, &|a, b| Some(a | b));
        two(Xor, &|a, b| Some(a ^ b));
        for op in [Shl, WrappingShl, Shr, WrappingShr] {
            check(
                op,
                &[ty, Scalar::U32],
                ty,
                |v| Op::Binary(op, v[0], v[1]),
                |x| {
                    let distance = x[1] as u32 % ty.bits();
                    let a = number(ty, x[0]);
                    let by = 1i128 << distance;
                    Some(cut(ty, if matches!(op, Shl | WrappingShl) { a.wrapping_mul(by) } else { a.div_euclid(by) }))
                },
            );
        }
        if matches!(ty.bits(), 32 | 64) {
            check(
                RotateLeft,
                &[ty, Scalar::U32],
                ty,
                |v| Op::Binary(RotateLeft, v[0], v[1]),
                |x| {
                    let width = ty.bits();
                    let twice = u128::from(x[0]) << width | u128::from(x[0]);
                    Some((twice >> (width - x[1] as u32 % width)) as u64 & ty.mask())
                },
            );
        }
    }
}

#[test]
fn unary_integer_operations_match_their_definition() {
    use Unary::*;
    for ty in INTEGERS {
        let bit = |x: u64, n: u32| x >> n & 1;
        let width = ty.bits();
        let one = |op: Unary, to: Scalar, definition: &dyn Fn(u64) -> u64| {
            check(op, &[ty], to, |v| Op::Unary(op, v[0]), |x| Some(definition(x[0])));
        };
        one(Neg, ty, &|x| cut(ty, -number(ty, x)));
        one(Not, ty, &|x| cut(ty, -1 - number(ty, x)));
        if ty.is_signed() {
            one(Abs, ty, &|x| cut(ty, number(ty, x).abs()));
        }
        if width >= 32 {
            one(CountOnes, Scalar::U32, &|x| (0..width).map(|n| bit(x, n)).sum());
            one(LeadingZeros, Scalar::U32, &|x| (0..width).rev().take_while(|n| bit(x, *n) == 0).count() as u64);
            one(ReverseBits, ty, &|x| (0..width).map(|n| bit(x, n) << (width - 1 - n)).sum());
            one(SwapBytes, ty, &|x| (0..width / 8).map(|n| (x >> (8 * n) & 0xff) << (width - 8 - 8 * n)).sum());
        }
    }
}

fn compared(ordering: Option<Ordering>, op: Comparison) -> bool {
    match op {
        Comparison::Eq => ordering == Some(Ordering::Equal),
        Comparison::Ne => ordering != Some(Ordering::Equal),
        Comparison::Lt => ordering == Some(Ordering::Less),
        Comparison::Le => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Gt => ordering == Some(Ordering::Greater),
        Comparison::Ge => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
    }
}

#[test]
fn comparisons_match_their_definition() {
    use Comparison::*;
    for op in [Eq, Ne, Lt, Le, Gt, Ge] {
        for ty in INTEGERS.into_iter().chain(FLOATS) {
            check(
                op,
                &[ty, ty],
                Scalar::Bool,
                |v| Op::Compare(op, v[0], v[1]),
                |x| {
                    let ordering = match ty {
                        Scalar::F32 => Single::from_bits(x[0].into()).partial_cmp(&Single::from_bits(x[1].into())),
                        Scalar::F64 => Double::from_bits(x[0].into()).partial_cmp(&Double::from_bits(x[1].into())),
                        _ => Some(number(ty, x[0]).cmp(&number(ty, x[1]))),
                    };
                    Some(compared(ordering, op).into())
                },
            );
        }
    }
}

/// Computes the square root by an integer root with one additional sticky bit.
fn root<F: Float + FloatConvert<Quad>>(x: F) -> F
where
    Quad: FloatConvert<F>,
{
    if x.is_zero() || x.is_nan() || x.is_negative() || x.is_infinite() {
        return if x.is_zero() || x.is_pos_infinity() { x } else { F::NAN };
    }
    let mut exact = false;
    let wide: Quad = x.convert(&mut exact).value;
    let k = (wide.ilogb() - 120).div_euclid(2);
    let whole = wide.scalbn(-2 * k).to_u128(128).value;
    let root = whole.isqrt();
    let odd = root << 1 | u128::from(root * root != whole);
    Quad::from_u128(odd).value.scalbn(k - 1).convert(&mut exact).value
}

fn floats_of<F: Float + FloatConvert<Quad>>(ty: Scalar)
where
    Quad: FloatConvert<F>,
{
    let float = |bits: u64| F::from_bits(bits.into());
    let bits = |x: F| x.to_bits() as u64;
    let round = Round::NearestTiesToEven;
    for op in [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::Min, Binary::Max] {
        check(
            op,
            &[ty, ty],
            ty,
            |v| Op::Binary(op, v[0], v[1]),
            |x| {
                let (a, b) = (float(x[0]), float(x[1]));
                Some(bits(match op {
                    Binary::Add => a.add_r(b, round).value,
                    Binary::Sub => a.sub_r(b, round).value,
                    Binary::Mul => a.mul_r(b, round).value,
                    Binary::Div => a.div_r(b, round).value,
                    _ if a.is_nan() => b,
                    _ if b.is_nan() => a,
                    // −0 is less than +0.
                    _ => {
                        let below = a < b || a == b && a.is_negative();
                        if below == (op == Binary::Min) { a } else { b }
                    }
                }))
            },
        );
    }
    for op in [Unary::Neg, Unary::Abs, Unary::Sqrt, Unary::Floor, Unary::Ceil, Unary::Trunc, Unary::RoundEven] {
        check(
            op,
            &[ty],
            ty,
            |v| Op::Unary(op, v[0]),
            |x| {
                let a = float(x[0]);
                let integral = |round| a.round_to_integral(round).value;
                Some(bits(match op {
                    Unary::Neg => -a,
                    Unary::Abs => a.abs(),
                    Unary::Sqrt => root(a),
                    Unary::Floor => integral(Round::TowardNegative),
                    Unary::Ceil => integral(Round::TowardPositive),
                    Unary::Trunc => integral(Round::TowardZero),
                    _ => integral(Round::NearestTiesToEven),
                }))
            },
        );
    }
    check(
        "mul_add",
        &[ty, ty, ty],
        ty,
        |v| Op::MulAdd(v[0], v[1], v[2]),
        |x| Some(bits(float(x[0]).mul_add_r(float(x[1]), float(x[2]), round).value)),
    );
}

#[test]
fn float_operations_match_their_definition() {
    floats_of::<Single>(Scalar::F32);
    floats_of::<Double>(Scalar::F64);
}

/// Rounds towards zero and saturates; a NaN gives 0.
fn whole<F: Float>(x: F, to: Scalar) -> u64 {
    if x.is_nan() {
        return 0;
    }
    let mut exact = false;
    match to.is_signed() {
        true => cut(to, x.to_i128_r(to.bits() as usize, Round::TowardZero, &mut exact).value),
        false => x.to_u128_r(to.bits() as usize, Round::TowardZero, &mut exact).value as u64,
    }
}

fn converted<A: FloatConvert<B>, B: Float>(bits: u64) -> u64 {
    let mut exact = false;
    A::from_bits(bits.into()).convert(&mut exact).value.to_bits() as u64
}

fn of_whole<F: Float>(x: i128) -> u64 {
    let float = if x < 0 { F::from_i128(x) } else { F::from_u128(x as u128) };
    float.value.to_bits() as u64
}

#[test]
fn casts_match_their_definition() {
    let cast = |from: Scalar, to: Scalar, definition: &dyn Fn(u64) -> u64| {
        check(format!("as {to}"), &[from], to, |v| Op::Cast(v[0]), |x| Some(definition(x[0])));
    };
    for from in INTEGERS {
        for to in INTEGERS {
            cast(from, to, &|x| cut(to, number(from, x)));
        }
        cast(from, Scalar::F32, &|x| of_whole::<Single>(number(from, x)));
        cast(from, Scalar::F64, &|x| of_whole::<Double>(number(from, x)));
        cast(Scalar::F32, from, &|x| whole(Single::from_bits(x.into()), from));
        cast(Scalar::F64, from, &|x| whole(Double::from_bits(x.into()), from));
        cast(Scalar::Bool, from, &|x| x);
    }
    cast(Scalar::F32, Scalar::F64, &converted::<Single, Double>);
    cast(Scalar::F64, Scalar::F32, &converted::<Double, Single>);
    cast(Scalar::F32, Scalar::F16, &converted::<Single, Half>);
}

/// Checks all 2¹⁶ values.
#[test]
fn halves_match_their_definition() {
    let rows: Vec<Vec<u64>> = (0..0x1_0000).map(|bits| vec![bits]).collect();
    let found = computed(&[Scalar::F16], Scalar::F32, &rows, |v| Op::Cast(v[0]));
    for (bits, found) in (0..).zip(found) {
        let expected = converted::<Half, Single>(bits);
        let same = found == expected || is_nan(Scalar::F32, found) && is_nan(Scalar::F32, expected);
        assert!(same, "{bits:#x} as f32 is {found:#x}, by definition {expected:#x}");
    }
}

/// Checks named instructions against definitions on single bits, bytes and wide products.
#[test]
fn named_instructions_match_their_definition() {
    use Scalar::{I32, I64, U32, U64};
    let named = |op: Bits, types: &[Scalar], definition: &dyn Fn(&[u64]) -> u64| {
        let to = op.result(types).expect("types that it takes");
        check(op, types, to, |v| Op::Bits(op, v.iter().copied().collect()), |x| Some(definition(x)));
    };
    for ty in [I32, U32, I64, U64] {
        let high = |x: &[u64]| cut(ty, (number(ty, x[0]).wrapping_mul(number(ty, x[1]))) >> ty.bits());
        // The product of two u64 fits in a u128.
        let wide = |x: &[u64]| ((u128::from(x[0]) * u128::from(x[1])) >> 64) as u64;
        named(Bits::MultiplyHigh, &[ty, ty], if ty == U64 { &wide } else { &high });
    }
    named(Bits::Multiply24, &[U32, U32], &|x| cut(U32, i128::from(x[0] & 0xff_ffff) * i128::from(x[1] & 0xff_ffff)));
    let funnel = |x: &[u64]| (x[0] << 32 | x[1], x[2] % 32);
    named(Bits::FunnelLeft, &[U32, U32, U32], &|x| {
        let (both, n) = funnel(x);
        both << n >> 32 & 0xffff_ffff
    });
    named(Bits::FunnelRight, &[U32, U32, U32], &|x| {
        let (both, n) = funnel(x);
        both >> n & 0xffff_ffff
    });
    let limit = |x: i128| cut(I32, x.clamp(i32::MIN.into(), i32::MAX.into()));
    named(Bits::SaturatingAdd, &[I32, I32], &|x| limit(number(I32, x[0]) + number(I32, x[1])));
    named(Bits::SaturatingSub, &[I32, I32], &|x| limit(number(I32, x[0]) - number(I32, x[1])));
    for (a, b) in [(I32, I32), (I32, U32), (U32, I32), (U32, U32)] {
        let sum = if a == U32 && b == U32 { U32 } else { I32 };
        let byte = |ty: Scalar, x: u64, n: u32| {
            let byte = x >> (8 * n) & 0xff;
            if ty == I32 { i128::from(byte as u8 as i8) } else { i128::from(byte) }
        };
        let half = |ty: Scalar, x: u64, n: u32| {
            let half = x >> (16 * n) & 0xffff;
            if ty == I32 { i128::from(half as u16 as i16) } else { i128::from(half) }
        };
        named(Bits::Dot4, &[a, b, sum], &|x| {
            cut(sum, number(sum, x[2]) + (0..4).map(|n| byte(a, x[0], n) * byte(b, x[1], n)).sum::<i128>())
        });
        for high in [false, true] {
            let first = if high { 2 } else { 0 };
            named(Bits::Dot2 { high }, &[a, b, sum], &|x| {
                cut(sum, number(sum, x[2]) + (0..2).map(|n| half(a, x[0], n) * byte(b, x[1], first + n)).sum::<i128>())
            });
        }
    }
}
