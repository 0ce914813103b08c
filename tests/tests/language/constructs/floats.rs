//! Operators and methods of floats.

use kernel_dsl::prelude::*;

pub const ALL: &[&[super::Construct]] = &[single::ALL, double::ALL, half::ALL, transcendental::ALL, approximate::ALL];

const SINGLE: [f32; 14] = [
    -0.5,
    0.0,
    1.0,
    1.5,
    2.5,
    -7.75,
    100.25,
    1e-40,
    1e30,
    -3.4e38,
    f32::MIN_POSITIVE,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

values! { single, "Floats", (a: f32 = SINGLE, b: f32 = SINGLE):
    "`a + b`" fn sum -> f32 { a + b }
    "`a - b`" fn difference -> f32 { a - b }
    "`a * b`" fn product -> f32 { a * b }
    "`a / b`" fn quotient -> f32 { a / b }
    "`-a`" fn negation -> f32 { -a }
    "`a < b`" fn less -> u32 { (a < b) as u32 }
    "`a == b`" fn equal -> u32 { (a == b) as u32 }
    "`a.mul_add(b, c)`" fn mul_add -> f32 { a.mul_add(b, 1.5) }
    "`a.abs()`" fn abs -> f32 { a.abs() }
    "`a.sqrt()`" fn sqrt -> f32 { a.sqrt() }
    "`a.floor()`" fn floor -> f32 { a.floor() }
    "`a.ceil()`" fn ceil -> f32 { a.ceil() }
    "`a.trunc()`" fn trunc -> f32 { a.trunc() }
    "`a.round()`" fn round -> f32 { a.round() }
    "`a.round_ties_even()`" fn round_ties_even -> f32 { a.round_ties_even() }
    "`a.min(b)`" fn min -> f32 { a.min(b) }
    "`a.max(b)`" fn max -> f32 { a.max(b) }
    "`a.clamp(low, high)`" fn clamp -> f32 { a.clamp(-2.0, 2.0) }
    "`a.to_bits()`" fn to_bits -> u32 { if a.is_nan() { 0 } else { a.to_bits() } }
    "`f32::from_bits(n)`" fn from_bits -> f32 { f32::from_bits(if a.is_nan() { 7 } else { a.to_bits() / 2 }) }
    "`a.is_nan()`" fn is_nan -> u32 { a.is_nan() as u32 }
    "`a.is_finite()`" fn is_finite -> u32 { a.is_finite() as u32 }
    "`a.is_infinite()`" fn is_infinite -> u32 { a.is_infinite() as u32 }
    "`a.is_sign_negative()`" fn is_sign_negative -> u32 { a.is_sign_negative() as u32 }
    "`a.is_sign_positive()`" fn is_sign_positive -> u32 { a.is_sign_positive() as u32 }
    "`a.recip()`" fn recip -> f32 { a.recip() }
    "`a.fract()`" fn fract -> f32 { a.fract() }
    "`a.signum()`" fn signum -> f32 { a.signum() }
    "`a.copysign(b)`" fn copysign -> f32 { a.copysign(b) }
    "`f32::INFINITY`, and the other constants" fn constants -> f32 { a + f32::MAX + std::f32::consts::PI + f32::EPSILON }
}

values! { double, "Floats", (a: f64 = [-0.5, 0.0, 1.0, 1.5, -7.75, 1e300, f64::INFINITY, f64::NAN], b: f64 = [3.0, -0.1]):
    "`a + b` of `f64`" fn sum -> f64 { a + b }
    "`a * b` of `f64`" fn product -> f64 { a * b }
    "`a / b` of `f64`" fn quotient -> f64 { a / b }
    "`a.sqrt()` of `f64`" fn sqrt -> f64 { a.sqrt() }
}

const HALVES: [f16; 6] =
    [f16::ONE, f16::from_f32_const(-2.5), f16::from_f32_const(0.1), f16::MAX, f16::INFINITY, f16::NAN];

values! { half, "Floats of 16 bits", (a: f16 = HALVES, b: f16 = HALVES):
    "`a + b`" fn sum -> f16 { a + b }
    "`a * b`" fn product -> f16 { a * b }
    "`a / b`" fn quotient -> f16 { a / b }
    "`-a`" fn negation -> f16 { -a }
    "`a < b`" fn less -> u32 { (a < b) as u32 }
    "`a.to_f32()`" fn to_f32 -> f32 { a.to_f32() }
    "`f16::from_f32(x)`" fn from_f32 -> f16 { f16::from_f32(a.to_f32() * 0.3) }
    "`bf16::from_f32(x)`" fn brain -> f32 { bf16::from_f32(a.to_f32() * 0.3).to_f32() }
    "`a.to_bits()`" fn to_bits -> u32 { if a == a { a.to_bits() as u32 } else { 0 } }
    "`a.mul_add(b, c)`" fn mul_add -> f16 { a.mul_add(b, f16::ONE) }
    "`a.abs()`" fn abs -> f16 { a.abs() }
    "`a.min(b)`" fn min -> f16 { a.min(b) }
    "`a.max(b)`" fn max -> f16 { a.max(b) }
}

values! { transcendental, "Transcendental functions", (a: f32 = SINGLE):
    "`math::exp(x)`" fn exp -> f32 { math::exp(a) }
    "`math::exp2(x)`" fn exp2 -> f32 { math::exp2(a) }
    "`math::exp_m1(x)`" fn exp_m1 -> f32 { math::exp_m1(a) }
    "`math::ln(x)`" fn ln -> f32 { math::ln(a) }
    "`math::log2(x)`" fn log2 -> f32 { math::log2(a) }
    "`math::log10(x)`" fn log10 -> f32 { math::log10(a) }
    "`math::ln_1p(x)`" fn ln_1p -> f32 { math::ln_1p(a) }
    "`math::sin(x)`" fn sin -> f32 { math::sin(a) }
    "`math::cos(x)`" fn cos -> f32 { math::cos(a) }
    "`math::sin_cos(x)`" fn sin_cos -> f32 { let (s, c) = math::sin_cos(a); s - c }
    "`math::tan(x)`" fn tan -> f32 { math::tan(a) }
    "`math::asin(x)`" fn asin -> f32 { math::asin(a) }
    "`math::acos(x)`" fn acos -> f32 { math::acos(a) }
    "`math::atan(x)`" fn atan -> f32 { math::atan(a) }
    "`math::atan2(y, x)`" fn atan2 -> f32 { math::atan2(a, -1.75) }
    "`math::sinh(x)`" fn sinh -> f32 { math::sinh(a) }
    "`math::cosh(x)`" fn cosh -> f32 { math::cosh(a) }
    "`math::tanh(x)`" fn tanh -> f32 { math::tanh(a) }
    "`math::asinh(x)`" fn asinh -> f32 { math::asinh(a) }
    "`math::acosh(x)`" fn acosh -> f32 { math::acosh(a) }
    "`math::atanh(x)`" fn atanh -> f32 { math::atanh(a) }
    "`math::sigmoid(x)`" fn sigmoid -> f32 { math::sigmoid(a) }
    "`math::erf(x)`" fn erf -> f32 { math::erf(a) }
    "`math::pow(x, y)`" fn pow -> f32 { math::pow(a, 1.75) }
    "`math::cbrt(x)`" fn cbrt -> f32 { math::cbrt(a) }
    "`math::rsqrt(x)`" fn rsqrt -> f32 { math::rsqrt(a) }
    "`math::hypot(x, y)`" fn hypot -> f32 { math::hypot(a, 1.75) }
}

/// Numbers of moderate size, for which the tolerances of the clauses hold on a GPU.
const ORDINARY: [f32; 7] = [0.01, 0.3, 1.0, 1.5, 2.75, 7.25, 20.0];

values! { approximate, "The hardware's approximations", (tolerance(out(relative = 4e-6, absolute = 4e-6))) (a: f32 = ORDINARY):
    "`fast::exp2(x)`" fn exp2 -> f32 { fast::exp2(a) }
    "`fast::exp(x)`" fn exp -> f32 { fast::exp(a) }
    "`fast::log2(x)`" fn log2 -> f32 { fast::log2(a) }
    "`fast::ln(x)`" fn ln -> f32 { fast::ln(a) }
    "`fast::rcp(x)`" fn rcp -> f32 { fast::rcp(a) }
    "`fast::sqrt(x)`" fn sqrt -> f32 { fast::sqrt(a) }
    "`fast::rsqrt(x)`" fn rsqrt -> f32 { fast::rsqrt(a) }
    "`fast::sin(x)`" fn sin -> f32 { fast::sin(a) }
    "`fast::cos(x)`" fn cos -> f32 { fast::cos(a) }
    "`fast::tanh(x)`" fn tanh -> f32 { fast::tanh(a) }
    "`fast::div(x, y)`" fn div -> f32 { fast::div(a, 3.0) }
}
