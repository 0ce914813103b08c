//! Floats. LLVM's software floats compute sums, products and quotients, and integers compute roots.
//! Doubles of the standard library compute approximations.

use super::{Given, Value};
use kernel_dsl::compiler::ptx::{Modifier, Opcode, Type};
use rustc_apfloat::ieee::{Double, Half, Quad, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

/// The opcodes for floats only.
pub const OPCODES: &[Opcode] = {
    use Opcode::*;
    &[Fma, Rcp, Sqrt, Rsqrt, Sin, Cos, Ex2, Lg2, Tanh, Copysign, Testp]
};

pub fn is_float(ty: Type) -> bool {
    matches!(ty, Type::F16 | Type::F16x2 | Type::F32 | Type::F64)
}

/// Returns the rounding that the modifiers name; without one, round to nearest.
pub fn rounding(modifiers: &[Modifier]) -> Round {
    modifiers
        .iter()
        .find_map(|m| match m {
            Modifier::Rn | Modifier::Rni => Some(Round::NearestTiesToEven),
            Modifier::Rz | Modifier::Rzi => Some(Round::TowardZero),
            Modifier::Rm | Modifier::Rmi => Some(Round::TowardNegative),
            Modifier::Rp | Modifier::Rpi => Some(Round::TowardPositive),
            _ => None,
        })
        .unwrap_or(Round::NearestTiesToEven)
}

/// Converts bits to a double, which holds each value exactly.
pub fn to_f64(ty: Type, bits: u64) -> f64 {
    match ty {
        Type::F64 => f64::from_bits(bits),
        Type::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => widened::<Half>(bits),
    }
}

fn widened<F: Float + FloatConvert<Double>>(bits: u64) -> f64 {
    let mut exact = false;
    let wide: Double = F::from_bits(bits.into()).convert(&mut exact).value;
    f64::from_bits(wide.to_bits() as u64)
}

/// Replaces a subnormal by a zero of the same sign.
pub fn flush(ty: Type, bits: u64) -> u64 {
    let (exponent, sign) = match ty {
        Type::F64 => (0x7ff << 52, 1 << 63),
        Type::F32 => (0xff << 23, 1 << 31),
        _ => (0x1f << 10, 1 << 15),
    };
    if bits & exponent == 0 { bits & sign } else { bits }
}

/// Clamps to [+0, 1]; a NaN gives +0.
pub fn saturate(ty: Type, bits: u64) -> u64 {
    let x = to_f64(ty, bits);
    let one = match ty {
        Type::F64 => 1f64.to_bits(),
        Type::F32 => 1f32.to_bits().into(),
        _ => 0x3c00,
    };
    if x >= 1.0 {
        one
    } else if x > 0.0 {
        bits
    } else {
        0
    }
}

/// Returns a value of the type; all NaNs are equal.
pub fn value(ty: Type, bits: u64) -> Value {
    let nan = match ty {
        Type::Bf16 => f32::from_bits((bits as u32) << 16).is_nan(),
        _ => to_f64(ty, bits).is_nan(),
    };
    if nan { Value::Nan(ty) } else { Value::Bits(bits) }
}

pub fn of(given: &Given<'_>) -> Value {
    let ty = given.ty();
    match ty {
        Type::F16x2 => {
            let part = |shift: u32| one(given, Type::F16, given.x.map(|x| x >> shift & 0xffff));
            match (part(0), part(16)) {
                (Ok(low), Ok(high)) => Value::Halves([low as u16, high as u16]),
                // Each approximate half has a separate bound.
                (Err(low), Err(high)) => halves(low, high),
                _ => panic!("halves differ in kind"),
            }
        }
        _ => match one(given, ty, given.x) {
            Ok(bits) if given.form.row.opcode == Opcode::Testp => Value::Bits(bits),
            // The sign of a NaN is copied too.
            Ok(bits) if given.form.row.opcode == Opcode::Copysign => Value::Bits(bits),
            Ok(bits) => value(ty, bits),
            Err(near) => near,
        },
    }
}

/// Combines two approximations: the result is compared only if both are exact.
fn halves(low: Value, high: Value) -> Value {
    match (low, high) {
        (Value::Bits(a), Value::Bits(b)) => Value::Halves([a as u16, b as u16]),
        _ => Value::Open,
    }
}

/// Returns the exact bits of the result, or an approximate value with its bound.
fn one(given: &Given<'_>, ty: Type, x: [u64; 4]) -> Result<u64, Value> {
    // Operations on doubles do not flush, except approximations.
    let ftz = given.has(Modifier::Ftz);
    let [a, b, c, _] = if ftz { x.map(|x| flush(ty, x)) } else { x };
    if let Some(near) = approximate(given, ty, a, b) {
        return Err(near);
    }
    let bits = match given.form.row.opcode {
        Opcode::Testp => return Ok(u64::from(tested(given, to_f64(ty, a), ty))),
        Opcode::Copysign => {
            let sign = 1 << (ty.bits() - 1);
            return Ok(a & sign | b & !sign);
        }
        Opcode::Neg => a ^ 1 << (ty.bits() - 1),
        Opcode::Abs => a & !(1 << (ty.bits() - 1)),
        Opcode::Min | Opcode::Max => extreme(given, ty, a, b),
        _ => match ty {
            Type::F16 => arithmetic::<Half>(given, [a, b, c]),
            Type::F32 => arithmetic::<Single>(given, [a, b, c]),
            _ => arithmetic::<Double>(given, [a, b, c]),
        },
    };
    Ok(if given.has(Modifier::Sat) { saturate(ty, bits) } else { bits })
}

fn arithmetic<F>(given: &Given<'_>, [a, b, c]: [u64; 3]) -> u64
where
    Quad: FloatConvert<F>,
    F: Float + FloatConvert<Quad>,
{
    let round = rounding(&given.form.modifiers);
    let [x, y, z] = [a, b, c].map(|bits| F::from_bits(bits.into()));
    // Returns 2^scale times the result.
    let scaled = |scale: i32| {
        let x = x.scalbn(scale);
        match given.form.row.opcode {
            Opcode::Add => x.add_r(y.scalbn(scale), round).value,
            Opcode::Sub => x.sub_r(y.scalbn(scale), round).value,
            Opcode::Mul => x.mul_r(y, round).value,
            Opcode::Fma | Opcode::Mad => x.mul_add_r(y, z.scalbn(scale), round).value,
            Opcode::Div => x.div_r(y, round).value,
            Opcode::Rcp => F::from_u128(1).value.scalbn(2 * scale).div_r(x, round).value,
            Opcode::Sqrt => root(x, round),
            other => panic!("{other}"),
        }
    };
    flushed(given, scaled(0), || scaled(SCALE))
}

/// A power of two that lifts a result at the end of a format's range away from the subnormals.
pub const SCALE: i32 = 12;

/// Returns the bits of a result, with `.ftz` applied.
///
/// A result becomes zero if it is below the smallest normal number after rounding with an unbounded
/// exponent. To decide this, the function rounds 2^SCALE times the result, which is not subnormal.
pub fn flushed<F: Float>(given: &Given<'_>, result: F, scaled: impl Fn() -> F) -> u64 {
    let least = F::smallest_normalized();
    let edge = result.abs() == least;
    let tiny = if edge { scaled().abs() < least.scalbn(SCALE) } else { result.is_denormal() };
    let result = if given.has(Modifier::Ftz) && tiny { F::ZERO.copy_sign(result) } else { result };
    result.to_bits() as u64
}

/// Computes the square root by an integer root with one additional sticky bit.
fn root<F>(x: F, round: Round) -> F
where
    Quad: FloatConvert<F>,
    F: Float + FloatConvert<Quad>,
{
    if x.is_zero() || x.is_nan() || x.is_negative() || x.is_infinite() {
        return if x.is_zero() || x.is_pos_infinity() { x } else { F::NAN };
    }
    let mut exact = false;
    let wide: Quad = x.convert(&mut exact).value;
    // x = m · 2^(2k), where m has about 120 bits. The root has 60 bits; doubles need 53, and other
    // types fewer than 30.
    let k = (wide.ilogb() - 120).div_euclid(2);
    let whole = wide.scalbn(-2 * k).to_u128(128).value;
    let root = whole.isqrt();
    let odd = root << 1 | u128::from(root * root != whole);
    Quad::from_u128(odd).value.scalbn(k - 1).convert_r(round, &mut exact).value
}

fn extreme(given: &Given<'_>, ty: Type, a: u64, b: u64) -> u64 {
    let (x, y) = (to_f64(ty, a), to_f64(ty, b));
    let keeps = given.has(Modifier::PropagateNan);
    let least = given.form.row.opcode == Opcode::Min;
    match (x.is_nan(), y.is_nan()) {
        (true, _) => {
            if keeps || y.is_nan() {
                a
            } else {
                b
            }
        }
        (_, true) => {
            if keeps {
                b
            } else {
                a
            }
        }
        // −0 is less than +0.
        _ => {
            let below = x < y || x == y && x.is_sign_negative();
            if below == least { a } else { b }
        }
    }
}

fn tested(given: &Given<'_>, x: f64, ty: Type) -> bool {
    let subnormal = match ty {
        Type::F32 => x != 0.0 && x.abs() < f64::from(f32::MIN_POSITIVE),
        _ => x.is_subnormal(),
    };
    let is = |m| given.has(m);
    match () {
        () if is(Modifier::Finite) => x.is_finite(),
        () if is(Modifier::Infinite) => x.is_infinite(),
        () if is(Modifier::Number) => !x.is_nan(),
        () if is(Modifier::NotANumber) => x.is_nan(),
        // Zeros count as normal.
        () if is(Modifier::Normal) => x.is_finite() && !subnormal,
        () => subnormal,
    }
}

/// Returns the expected value of an approximation, with the bound that the manual publishes.
fn approximate(given: &Given<'_>, ty: Type, a: u64, b: u64) -> Option<Value> {
    let (x, y) = (to_f64(ty, a), to_f64(ty, b));
    let approx = given.has(Modifier::Approx) || given.has(Modifier::Full);
    // The expected result, its relative bound, and its absolute bound.
    let (result, part, much): (f64, f64, f64) = match given.form.row.opcode {
        // The machine reads the upper half.
        Opcode::Rcp | Opcode::Rsqrt if ty == Type::F64 && given.has(Modifier::Ftz) && a as u32 != 0 => {
            return approximate(given, ty, flush(ty, a & !0xffff_ffff), b);
        }
        Opcode::Rcp if approx && ty == Type::F64 => (1.0 / x, 2f64.powi(-20), 0.0),
        Opcode::Rcp if approx => (1.0 / x, 2f64.powi(-23), 0.0),
        Opcode::Sqrt if approx => (x.sqrt(), 2f64.powi(-23), 0.0),
        // The reciprocal of the root is rounded twice.
        Opcode::Rsqrt if ty == Type::F64 && !given.has(Modifier::Ftz) => (1.0 / x.sqrt(), 2f64.powi(-52), 0.0),
        Opcode::Rsqrt if ty == Type::F64 => (1.0 / x.sqrt(), 2f64.powi(-20), 0.0),
        Opcode::Rsqrt => (1.0 / x.sqrt(), 2f64.powf(-22.9), 0.0),
        Opcode::Div if given.has(Modifier::Approx) && y.is_finite() && y.abs() > 2f64.powi(126) => {
            (x * 0.0f64.copysign(y), 0.0, 0.0)
        }
        Opcode::Div if approx => (x / y, 2f64.powi(-22), 0.0),
        Opcode::Sin | Opcode::Cos if x.abs() > 314.0 => return Some(Value::Open),
        Opcode::Sin => (x.sin(), 0.0, 2f64.powf(-14.7)),
        Opcode::Cos => (x.cos(), 0.0, 2f64.powf(-14.7)),
        Opcode::Ex2 if ty == Type::F32 => (x.exp2(), 2f64.powi(-22), 0.0),
        Opcode::Ex2 => (x.exp2(), 2f64.powf(-9.9), 0.0),
        Opcode::Lg2 if x > 0.5 && x < 2.0 => (x.log2(), 0.0, 2f64.powi(-22)),
        Opcode::Lg2 => (x.log2(), 2f64.powi(-22), 0.0),
        Opcode::Tanh => (x.tanh(), 2f64.powf(-10.9), 0.0),
        _ => return None,
    };
    let (least, greatest) = match ty {
        Type::F64 => (f64::MIN_POSITIVE, f64::MAX),
        Type::F32 => (f32::MIN_POSITIVE.into(), f32::MAX.into()),
        _ => (2f64.powi(-14), 65504.0),
    };
    let zero = |negative: bool| if negative { 1 << (ty.bits() - 1) } else { 0 };
    Some(if result.is_nan() {
        Value::Nan(ty)
    } else if result == 0.0 {
        Value::Bits(zero(result.is_sign_negative()))
    } else if result.abs() < least && given.has(Modifier::Ftz) {
        // At the edge of the subnormals both results are valid.
        if result.abs() < least * (1.0 - 2f64.powi(-20)) { Value::Bits(zero(result < 0.0)) } else { Value::Open }
    } else if result.abs() > greatest * (1.0 - 2f64.powi(-20)) && result.is_finite() {
        Value::Open
    } else {
        // The bound includes one step of the subnormals for rounding.
        let step =
            if ty == Type::F64 { 0.0 } else { least * if ty == Type::F32 { 2f64.powi(-23) } else { 2f64.powi(-10) } };
        Value::Near { ty, x: result, bound: result.abs() * part + much + step }
    })
}
