//! The methods of Rust's floats that kernels reject, because their result depends on the host.

use crate::Scalar;

/// A method of Rust's floats whose result depends on the host.
struct Inexact {
    method: &'static str,
    /// The bit-exact function to use instead, if there is one.
    math: Option<MathFunction>,
    /// The hardware approximation to use instead, if there is one.
    fast: Option<&'static str>,
}

/// A function of `math`.
#[derive(Clone, Copy)]
struct MathFunction {
    name: &'static str,
    /// Whether `math::f64` has the function too.
    double: bool,
}

/// Returns the row of a method with a function of the same name in `math`, but not in `math::f64`.
const fn single(method: &'static str) -> Inexact {
    Inexact { method, math: Some(MathFunction { name: method, double: false }), fast: None }
}

/// Returns the row of a method with a function of the same name in `math` and in `math::f64`.
const fn double(method: &'static str) -> Inexact {
    Inexact { method, math: Some(MathFunction { name: method, double: true }), fast: None }
}

/// Returns the row of a method with a function of the same name in `math`, `math::f64` and `fast`.
const fn double_and_fast(method: &'static str) -> Inexact {
    Inexact { fast: Some(method), ..double(method) }
}

const fn power(method: &'static str) -> Inexact {
    Inexact { method, math: Some(MathFunction { name: "pow", double: true }), fast: None }
}

const fn without(method: &'static str) -> Inexact {
    Inexact { method, math: None, fast: None }
}

/// The methods of floats whose last bits depend on the host's library.
///
/// Kernels reject these methods. Compiled as `math::` functions they would give other bits on the
/// device than the same Rust on the host, and an inherent method cannot be replaced.
const INEXACT: &[Inexact] = &[
    double_and_fast("exp"),
    double_and_fast("exp2"),
    double("exp_m1"),
    double_and_fast("ln"),
    single("ln_1p"),
    double_and_fast("log2"),
    single("log10"),
    without("log"),
    power("powf"),
    power("powi"),
    single("cbrt"),
    single("hypot"),
    double_and_fast("sin"),
    double_and_fast("cos"),
    double("sin_cos"),
    single("tan"),
    single("asin"),
    single("acos"),
    single("atan"),
    single("atan2"),
    single("sinh"),
    single("cosh"),
    double_and_fast("tanh"),
    single("asinh"),
    single("acosh"),
    single("atanh"),
];

/// Explains why a float of type `scalar` has no method `name` in a kernel, and what to use instead.
///
/// Returns `None` if `scalar` is not a float, or if Rust has no such method either.
pub fn inexact(scalar: Scalar, name: &str) -> Option<String> {
    let Inexact { method, math, fast } = INEXACT.iter().find(|x| scalar.is_float() && x.method == name)?;
    let module = match (scalar, math) {
        (Scalar::F64, Some(MathFunction { double, .. })) => double.then_some("math::f64"),
        _ => Some("math"),
    };
    let math = module.zip(*math).map(|(m, f)| format!("`{m}::{}` (bit-exact)", f.name));
    let fast = fast.filter(|_| scalar != Scalar::F64).map(|f| format!("`fast::{f}` (hardware approximation)"));
    let ways: Vec<String> = math.into_iter().chain(fast).collect();
    let way = match ways.is_empty() {
        true => "write your own device function".to_string(),
        false => format!("use {}", ways.join(" or ")),
    };
    Some(format!("`{scalar}::{method}` is not available in kernels (host-dependent result); {way}"))
}
