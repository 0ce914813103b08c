//! Conversions.

use super::float::{SCALE, flush, flushed, is_float, rounding, saturate, to_f64, value};
use super::integer::{clamp, cut, number, signed};
use super::{Given, Value};
use kernel_dsl::compiler::ptx::{Modifier, Type};
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round, Status};

pub fn of(given: &Given<'_>) -> Value {
    let types = given.named();
    let (to, from) = (types[0], types[1]);
    let round = rounding(&given.form.modifiers);
    let (ftz, sat) = (given.has(Modifier::Ftz), given.has(Modifier::Sat));
    // The machine's conversion to f16 has no `.FTZ`.
    let a = if ftz && from == Type::F32 && to != Type::F16 { flush(from, given.x[0]) } else { given.x[0] };
    // A result of an integer type fills a wider register.
    let fill = |bits: u64| {
        let wide = number(bits, to) as u64;
        Value::Bits(wide & u64::MAX >> (64 - given.form.width))
    };
    if to == Type::F16x2 {
        let half = |x: u64| narrowed::<Single, Half>(x, round) as u16;
        return Value::Halves([half(given.x[1]), half(given.x[0])]);
    }
    if to == Type::Bf16 {
        return value(to, narrowed::<Single, BFloat>(a, round));
    }
    match (is_float(from), is_float(to)) {
        (false, false) => fill(if sat { clamp(number(a, from), to) } else { cut(number(a, from), to) }),
        (true, false) => fill(match from {
            Type::F16 => whole::<Half>(a, to, round, from),
            Type::F32 => whole::<Single>(a, to, round, from),
            _ => whole::<Double>(a, to, round, from),
        }),
        (false, true) => finish(
            given,
            to,
            match to {
                Type::F16 => of_whole::<Half>(a, from, round),
                Type::F32 => of_whole::<Single>(a, from, round),
                _ => of_whole::<Double>(a, from, round),
            },
        ),
        (true, true) if from == to => {
            let integral = given
                .form
                .modifiers
                .iter()
                .any(|m| matches!(m, Modifier::Rni | Modifier::Rzi | Modifier::Rmi | Modifier::Rpi));
            let bits = match from {
                _ if !integral => a,
                Type::F16 => Half::from_bits(a.into()).round_to_integral(round).value.to_bits() as u64,
                Type::F32 => Single::from_bits(a.into()).round_to_integral(round).value.to_bits() as u64,
                _ => Double::from_bits(a.into()).round_to_integral(round).value.to_bits() as u64,
            };
            finish(given, to, bits)
        }
        (true, true) => finish(
            given,
            to,
            match (from, to) {
                (Type::F16, Type::F32) => narrowed::<Half, Single>(a, round),
                (Type::F16, _) => narrowed::<Half, Double>(a, round),
                (Type::F32, Type::F16) => narrowed::<Single, Half>(a, round),
                (Type::F32, _) => narrowed::<Single, Double>(a, round),
                (_, Type::F16) => narrowed::<Double, Half>(a, round),
                _ => {
                    let x = Double::from_bits(a.into());
                    let single = |x: Double| -> Single { x.convert_r(round, &mut false).value };
                    flushed(given, single(x), || single(x.scalbn(SCALE)))
                }
            },
        ),
    }
}

/// Applies the modifiers to a float result.
fn finish(given: &Given<'_>, to: Type, bits: u64) -> Value {
    value(to, if given.has(Modifier::Sat) { saturate(to, bits) } else { bits })
}

fn narrowed<A: FloatConvert<B>, B: Float>(bits: u64, round: Round) -> u64 {
    let mut exact = false;
    A::from_bits(bits.into()).convert_r(round, &mut exact).value.to_bits() as u64
}

/// Converts to an integer and saturates. A NaN gives 0, or the highest bit set if either type has
/// 64 bits.
fn whole<F: Float>(bits: u64, to: Type, round: Round, from: Type) -> u64 {
    if to_f64(from, bits).is_nan() {
        return if from == Type::F64 || to.bits() == 64 { 1 << (to.bits() - 1) } else { 0 };
    }
    let (x, mut exact) = (F::from_bits(bits.into()), false);
    if signed(to) {
        let whole = x.to_i128_r(to.bits() as usize, round, &mut exact);
        assert!(whole.status != Status::INVALID_OP || whole.value != 0);
        cut(whole.value, to)
    } else {
        x.to_u128_r(to.bits() as usize, round, &mut exact).value as u64
    }
}

fn of_whole<F: Float>(bits: u64, from: Type, round: Round) -> u64 {
    let x = number(bits, from);
    let float = if x < 0 { F::from_i128_r(x, round) } else { F::from_u128_r(x as u128, round) };
    float.value.to_bits() as u64
}
