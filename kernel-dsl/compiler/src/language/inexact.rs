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

/// Returns the row of a method with a function of the same name in `math`. If `double`, `math::f64`
/// has one too; if `fast`, `fast` has one.
const fn named(method: &'static str, double: bool, fast: bool) -> Inexact {
    let math = Some(MathFunction { name: method, double });
    Inexact { method, math, fast: if fast { Some(method) } else { None } }
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
    named("exp", true, true),
    named("exp2", true, true),
    named("exp_m1", true, false),
    named("ln", true, true),
    named("ln_1p", false, false),
    named("log2", true, true),
    named("log10", false, false),
    without("log"),
    power("powf"),
    power("powi"),
    named("cbrt", false, false),
    named("hypot", false, false),
    named("sin", true, true),
    named("cos", true, true),
    named("sin_cos", true, false),
    named("tan", false, false),
    named("asin", false, false),
    named("acos", false, false),
    named("atan", false, false),
    named("atan2", false, false),
    named("sinh", false, false),
    named("cosh", false, false),
    named("tanh", true, true),
    named("asinh", false, false),
    named("acosh", false, false),
    named("atanh", false, false),
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
