//! Tests of the functions of `math`: a sample of their errors, and every special value.
//!
//! `benches/ulp.rs` measures the largest errors over all arguments, which the documentation
//! states.

use super::ulp;
use kernel_dsl::math;
use std::fs;
use ulp::{FUNCTIONS, PAIRWISE, error, measure, measure_pairs};

/// Iterates over arguments 32749 (a prime) apart, over all of `f32`, and all arguments within 2000
/// steps of numbers at which the algorithm changes.
fn sample() -> impl Iterator<Item = u32> {
    // Some values are near constants that clippy knows by name.
    #[allow(clippy::approx_constant)]
    let edges = [
        1e-7f32, 1.2207e-4, 0.25, 0.3466, 0.5, 0.7071, 0.7854, 1.0, 1.4142, 1.5, 1.5708, 3.92, 8.0, 9.01, 87.3, 89.416,
        103.9, 4096.0, 105615.0,
    ];
    let about = |x: f32| x.to_bits() - 2000..x.to_bits() + 2000;
    let near = edges.into_iter().flat_map(about).flat_map(|bits| [bits, bits | 0x8000_0000]);
    (0..=u32::MAX).step_by(32749).chain(near)
}

#[test]
fn each_function_is_within_its_stated_bound() {
    for function in FUNCTIONS {
        let worst = measure(function, sample());
        assert!(worst.ulp < function.bound, "{}: {} ulp at {:e}", function.name, worst.ulp, worst.at);
    }
    for function in PAIRWISE {
        let worst = measure_pairs(function, 0, 1, 400_000);
        assert!(worst.ulp < function.bound, "{}: {} ulp at {:?}", function.name, worst.ulp, worst.at);
    }
}

/// Checks that the first paragraph of a function's documentation ends with its bound in
/// [`FUNCTIONS`].
#[test]
fn the_documentation_states_the_bounds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/math");
    let files = fs::read_dir(folder).expect("src/math").map(|f| f.expect("a file").path());
    let text: String = files.filter(|f| f.is_file()).map(|f| fs::read_to_string(f).expect("Rust")).collect();
    let pairwise = PAIRWISE.iter().map(|f| (f.name, f.bound));
    for (name, bound) in FUNCTIONS.iter().map(|f| (f.name, f.bound)).chain(pairwise) {
        let at = text.find(&format!("\npub fn {name}(")).unwrap_or_else(|| panic!("no `{name}`"));
        let documentation = &text[text[..at].rfind("\n\n").expect("an item before it")..at];
        let lines = documentation.trim_start().lines().map(|line| line.trim_start_matches("///").trim());
        let first = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        assert!(first.ends_with(&format!(", to {bound} ulp.")), "{name} is to {bound} ulp, and says: {first}");
    }
}

#[test]
fn exp_has_defined_results_at_its_edges() {
    assert_eq!(math::exp(f32::NEG_INFINITY).to_bits(), 0);
    assert_eq!(math::exp(f32::INFINITY), f32::INFINITY);
    assert!(math::exp(f32::NAN).is_nan() && math::exp(-f32::NAN).is_nan());
    assert_eq!((math::exp(0.0), math::exp(-0.0)), (1.0, 1.0));
    assert!(math::exp(88.72283).is_finite() && math::exp(88.72284).is_infinite());
    assert_eq!((math::exp(-103.97207), math::exp(-103.9721)), (f32::from_bits(1), 0.0));
}

/// Special arguments: signed zeros, infinities, NaNs, the smallest and largest numbers, integers,
/// and neighbors of these.
const SPECIAL_VALUES: [f32; 17] = [
    0.0,
    f32::from_bits(1),
    f32::MIN_POSITIVE,
    0.5,
    2.0 / 3.0,
    1.0,
    4.0 / 3.0,
    2.0,
    3.0,
    4.0,
    88.72284,
    87.33654,
    103.97208,
    128.0,
    f32::MAX,
    f32::INFINITY,
    f32::NAN,
];

#[test]
fn special_values_have_defined_results() {
    let near = SPECIAL_VALUES.into_iter().flat_map(|x| [x.next_down(), x, x.next_up()]);
    let special: Vec<f32> = near.flat_map(|x| [x, -x]).collect();
    for function in FUNCTIONS {
        for x in &special {
            let (got, want) = ((function.of)(*x), (function.exact)(f64::from(*x)) as f32);
            let (name, ulps) = (function.name, i64::from(got.to_bits()) - i64::from(want.to_bits()));
            // Zeros, infinities and NaNs must match exactly; the bits show a zero's sign.
            let exact = want == 0.0 || want.is_infinite() || want.is_nan();
            let right = if want.is_nan() { got.is_nan() } else { ulps.abs() <= i64::from(!exact) * 2 };
            assert!(right, "{name}({x:e}) = {got:e}, not {want:e}");
        }
    }
}

#[test]
fn powers_of_two_are_exact() {
    for n in -149..128i32 {
        let power = f64::from(n).exp2() as f32;
        assert_eq!(math::exp2(n as f32).to_bits(), power.to_bits(), "exp2({n})");
        assert_eq!(math::log2(power), n as f32, "log2(2^{n})");
        assert_eq!(math::pow(2.0, n as f32).to_bits(), power.to_bits(), "pow(2, {n})");
    }
    for n in -1074..1024i32 {
        let power = f64::from(n).exp2();
        assert_eq!(math::f64::exp2(n.into()).to_bits(), power.to_bits(), "exp2({n}) of f64");
        assert_eq!(math::f64::log2(power), f64::from(n), "log2(2^{n}) of f64");
        assert_eq!(math::f64::pow(2.0, n.into()).to_bits(), power.to_bits(), "pow(2, {n}) of f64");
    }
}

/// Checks the special cases of C99, annex F.9.4.4, for both forms. Rust's `powf` has the same ones.
#[test]
fn pow_has_c99s_special_cases() {
    let mut values = vec![0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 7.0, 16777215.0, 16777216.0, 1e10, 1e30, 1e-30];
    values.extend([0.0, f64::from(f32::from_bits(1)), f64::from(f32::MAX), f64::INFINITY, f64::NAN]);
    let values: Vec<f64> = values.into_iter().flat_map(|x| [x, -x]).collect();
    for x in &values {
        for y in &values {
            let (want, wide) = (x.powf(*y) as f32, x.powf(*y));
            let (got, double) = (math::pow(*x as f32, *y as f32), math::f64::pow(*x, *y));
            let ulps = i64::from(got.to_bits()) - i64::from(want.to_bits());
            assert!(ulps.abs() <= 3 || got.is_nan() && want.is_nan(), "pow({x:e}, {y:e}) = {got:e}, not {want:e}");
            let ulps = (double.to_bits().wrapping_sub(wide.to_bits()) as i64).unsigned_abs();
            let same = ulps <= 1 || double.is_nan() && wide.is_nan();
            assert!(same, "f64: pow({x:e}, {y:e}) = {double:e}, not {wide:e}");
        }
    }
    let nan = f32::NAN;
    assert_eq!([math::pow(1.0, nan), math::pow(nan, 0.0), math::pow(-1.0, f32::INFINITY)], [1.0; 3]);
    assert!(math::pow(-8.0, 1.0 / 3.0).is_nan());
    assert_eq!(math::pow(-0.0, -3.0), f32::NEG_INFINITY);
    assert_eq!(math::pow(f32::NEG_INFINITY, -3.0).to_bits(), (-0.0f32).to_bits());
}

/// Checks the special cases of C99, annexes F.9.1.4 and F.9.4.3, which Rust's `atan2` and `hypot`
/// share: signed zeros, multiples of π/4 for infinities, and an infinite length with a NaN. Also
/// checks values near the smallest and largest numbers.
#[test]
fn points_of_the_plane_have_c99s_special_cases() {
    let values = [0.0, f32::from_bits(1), 1e-40, f32::MIN_POSITIVE, 1e-30, 0.5, 1.0, 1.5, 3.0, 4.0, 1e10, 8.5070587e37];
    let values = values.into_iter().chain([1.7014118e38, f32::MAX, f32::INFINITY, f32::NAN]);
    let values: Vec<f32> = values.flat_map(|x| [x, -x]).collect();
    for function in PAIRWISE.iter().filter(|f| f.name != "pow") {
        for (x, y) in values.iter().flat_map(|x| values.iter().map(move |y| (*x, *y))) {
            let (got, want) = ((function.of)(x, y), (function.exact)(x.into(), y.into()));
            let ulp = error(got, want);
            assert!(ulp < function.bound, "{}({x:e}, {y:e}) = {got:e}, not {want:e}", function.name);
            let zero = want != 0.0 || got.to_bits() == (want as f32).to_bits();
            assert!(zero, "{}({x:e}, {y:e}) = {got:e}, not {want:e}", function.name);
        }
    }
    assert_eq!([math::hypot(3.0, 4.0), math::hypot(-4.0, 3.0)], [5.0; 2]);
}

#[test]
fn sin_cos_has_the_bits_of_both() {
    for x in sample().step_by(7).map(f32::from_bits) {
        let ((s, c), (sin, cos)) = (math::sin_cos(x), (math::sin(x), math::cos(x)));
        assert!(x.is_nan() || x.is_infinite() || (s.to_bits(), c.to_bits()) == (sin.to_bits(), cos.to_bits()), "{x:e}");
    }
}
