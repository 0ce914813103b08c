//! Errors of the functions of `math`, in units in the last place (ulp) of the result.
//!
//! The C library computes the exact value in f64. Crate `libm` computes the error function and the
//! inverse hyperbolic functions, which Rust derives from logarithms. The libraries' own errors,
//! about 1 ulp of f64, are 2⁻²⁹ ulp of f32.

#![allow(dead_code, reason = "the example and the tests each use a part")]

use kernel_dsl::math;

/// Function of one `f32`.
pub struct Function {
    pub name: &'static str,
    pub of: fn(f32) -> f32,
    pub exact: fn(f64) -> f64,
    /// The largest error over all arguments, as documented: in ulp, rounded up.
    pub bound: f64,
}

const fn function(name: &'static str, of: fn(f32) -> f32, exact: fn(f64) -> f64, bound: f64) -> Function {
    Function { name, of, exact, bound }
}

/// All functions of one `f32`.
pub const FUNCTIONS: &[Function] = &[
    function("exp", math::exp, f64::exp, 0.892),
    function("exp2", math::exp2, f64::exp2, 0.919),
    function("exp_m1", math::exp_m1, f64::exp_m1, 1.289),
    function("ln", math::ln, f64::ln, 0.934),
    function("log2", math::log2, f64::log2, 0.987),
    function("log10", math::log10, f64::log10, 1.02),
    function("ln_1p", math::ln_1p, f64::ln_1p, 1.269),
    function("sin", math::sin, f64::sin, 1.225),
    function("cos", math::cos, f64::cos, 1.217),
    function("tan", math::tan, f64::tan, 1.08),
    function("asin", math::asin, f64::asin, 1.011),
    function("acos", math::acos, f64::acos, 1.047),
    function("atan", math::atan, f64::atan, 1.237),
    function("sinh", math::sinh, f64::sinh, 1.446),
    function("cosh", math::cosh, f64::cosh, 1.297),
    function("tanh", math::tanh, f64::tanh, 1.279),
    function("asinh", math::asinh, libm::asinh, 1.272),
    // Far below 1, `libm` returns cancellation errors instead of a NaN.
    function("acosh", math::acosh, |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }, 1.262),
    function("atanh", math::atanh, libm::atanh, 0.883),
    function("sigmoid", math::sigmoid, |x| 1.0 / (1.0 + (-x).exp()), 1.041),
    function("erf", math::erf, libm::erf, 1.444),
    function("rsqrt", math::rsqrt, |x| 1.0 / x.sqrt(), 1.199),
    function("cbrt", math::cbrt, f64::cbrt, 0.886),
];

/// Function of two `f32`.
pub struct Pairwise {
    pub name: &'static str,
    pub of: fn(f32, f32) -> f32,
    pub exact: fn(f64, f64) -> f64,
    /// The largest error over 2³² of its pairs, as documented: in ulp, rounded up.
    pub bound: f64,
    /// Pair with this number; the strata alternate.
    pub pair: fn(u64) -> (f32, f32),
}

/// All functions of two `f32`.
pub const PAIRWISE: &[Pairwise] = &[
    Pairwise { name: "pow", of: math::pow, exact: f64::powf, bound: 2.525, pair: power },
    Pairwise { name: "atan2", of: math::atan2, exact: f64::atan2, bound: 1.718, pair: point },
    Pairwise { name: "hypot", of: math::hypot, exact: f64::hypot, bound: 1.024, pair: point },
];

/// Largest error among a set of arguments.
#[derive(Clone, Copy, Default)]
pub struct Worst<A> {
    /// Error in ulp; infinite if exactly one of the result and the exact value is infinite or a
    /// NaN.
    pub ulp: f64,
    /// Arguments with the largest error.
    pub at: A,
    /// Number of results that are not the `f32` nearest to the exact value.
    pub not_nearest: u64,
}

impl<A> Worst<A> {
    /// Returns the larger of two errors.
    pub fn or(self, other: Worst<A>) -> Worst<A> {
        let not_nearest = self.not_nearest + other.not_nearest;
        Worst { not_nearest, ..if other.ulp > self.ulp { other } else { self } }
    }
}

/// Returns the largest error of `got` relative to `want`, for equal arguments.
pub fn worst<A: Copy + Default>(
    arguments: impl Iterator<Item = A>,
    got: impl Fn(A) -> f32,
    want: impl Fn(A) -> f64,
) -> Worst<A> {
    arguments.fold(Worst::default(), |worst, at| {
        let (got, want) = (got(at), want(at));
        let nearest = want as f32;
        let not_nearest = u64::from(got != nearest && !(got.is_nan() && nearest.is_nan()));
        worst.or(Worst { ulp: error(got, want), at, not_nearest })
    })
}

/// Compares a function with the exact values at the arguments whose bits are given.
pub fn measure(function: &Function, bits: impl Iterator<Item = u32>) -> Worst<f32> {
    worst(bits.map(f32::from_bits), function.of, |x| (function.exact)(x.into()))
}

/// Measures part `share` of `shares` of the first `count` pairs.
pub fn measure_pairs(function: &Pairwise, share: u64, shares: u64, count: u64) -> Worst<(f32, f32)> {
    let pairs = (share..count).step_by(shares as usize).map(function.pair);
    worst(pairs, |(x, y)| (function.of)(x, y), |(x, y)| (function.exact)(x.into(), y.into()))
}

/// Returns a pair of arguments for powers. Some x are any positive number, others are near or very
/// near 1; each y makes log₂ of the power uniform in −152 to 130. Other pairs are small integer
/// powers of any x.
fn power(i: u64) -> (f32, f32) {
    let random = scrambled(i / 4);
    let (low, high) = (random as u32, (random >> 32) as u32);
    let x = match i % 4 {
        0 | 3 => f32::from_bits(low % 0x7F80_0000),
        1 => f32::from_bits(0x3F00_0000 + low % 0x0100_0000),
        _ => f32::from_bits(0x3F7F_0000 + low % 0x0002_0000),
    };
    let exponent = f64::from(high) / f64::from(u32::MAX) * 282.0 - 152.0;
    match i % 4 {
        3 if low & 1 == 0 => (x, (high % 41) as f32 - 20.0),
        3 => (-x, (high % 41) as f32 - 20.0),
        _ => (x, (exponent / f64::from(x).log2()) as f32),
    }
}

/// Returns a point of the plane: any x and y; y within 2⁶ of any x; both between 1/2 and 4; or both
/// near 0, subnormal or not.
fn point(i: u64) -> (f32, f32) {
    let random = scrambled(i / 4);
    let (low, high) = (random as u32, (random >> 32) as u32);
    let (x, y) = (low & 0x7FFF_FFFF, high & 0x7FFF_FFFF);
    let (x, y) = match i % 4 {
        0 => (x, y),
        1 => (x, (x + y % 0x0600_0000).saturating_sub(0x0300_0000).min(0x7F7F_FFFF)),
        2 => (0x3F00_0000 + x % 0x0180_0000, 0x3F00_0000 + y % 0x0180_0000),
        _ => (x % 0x0300_0000, y % 0x0300_0000),
    };
    (f32::from_bits(x | low & 0x8000_0000), f32::from_bits(y | high & 0x8000_0000))
}

/// Permutes `u64` pseudo-randomly (Steele, Lea and Flood's SplitMix64, OOPSLA 2014).
fn scrambled(i: u64) -> u64 {
    let z = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Returns the distance of a result from the exact value, in ulp.
pub fn error(got: f32, want: f64) -> f64 {
    let nearest = want as f32;
    if got.is_nan() && nearest.is_nan() || got.is_infinite() && got == nearest {
        0.0
    } else if got.is_finite() && nearest.is_finite() && got.is_sign_negative() == nearest.is_sign_negative() {
        (f64::from(got) - want).abs() / ulp(want)
    } else {
        f64::INFINITY
    }
}

/// Returns the distance of neighboring `f32` values near `x`.
fn ulp(x: f64) -> f64 {
    let exponent = ((x.abs().to_bits() >> 52) as i32 - 1023).max(-126);
    f64::powi(2.0, exponent - 23)
}
