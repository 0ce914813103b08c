//! Tests of `math::f64` on sampled arguments, against values with more than 250 bits
//! (`f64/samples.txt`).

use kernel_dsl::math::f64 as math;

/// Documented error bounds in ulp.
const BOUNDS: [(&str, f64); 9] = [
    ("exp", 0.9),
    ("exp2", 0.9),
    ("exp_m1", 1.5),
    ("ln", 0.6),
    ("log2", 0.6),
    ("sin", 0.8),
    ("cos", 0.8),
    ("tanh", 2.5),
    ("pow", 1.0),
];

#[test]
fn each_function_is_within_its_stated_bound() {
    let mut samples = 0;
    for line in include_str!("f64/samples.txt").lines().filter(|l| !l.starts_with('#')) {
        let fields: Vec<&str> = line.split(' ').collect();
        let [name, x, y, nearest, above] = fields[..] else { panic!("{line}") };
        let float = |bits: &str| f64::from_bits(u64::from_str_radix(bits, 16).unwrap_or_default());
        let (x, nearest) = (float(x), float(nearest));
        let above: f64 = above.parse().expect("a number of ulp");
        let got = match name {
            "exp" => math::exp(x),
            "exp2" => math::exp2(x),
            "exp_m1" => math::exp_m1(x),
            "ln" => math::ln(x),
            "log2" => math::log2(x),
            "sin" => math::sin(x),
            "cos" => math::cos(x),
            "tanh" => math::tanh(x),
            "pow" => math::pow(x, float(y)),
            _ => panic!("{line}"),
        };
        // The bits of values of one sign are consecutive; for negative numbers the distance counts
        // towards 0.
        let places = got.to_bits().wrapping_sub(nearest.to_bits()) as i64 as f64;
        let error = (places * nearest.signum() + above).abs();
        let (_, bound) = BOUNDS.iter().find(|(n, _)| *n == name).expect("a bound");
        assert!(error < *bound, "{name}({x:e}): {got:e} is off by {error} ulp, {bound} is stated");
        samples += 1;
    }
    assert!(samples > 1400);
}

#[test]
fn special_values_have_defined_results() {
    let (infinity, nan) = (f64::INFINITY, f64::NAN);
    let bits = |x: f64| x.to_bits();
    for f in [math::exp, math::exp2, math::exp_m1, math::ln, math::log2, math::sin, math::cos, math::tanh] {
        assert!(f(nan).is_nan());
    }
    assert_eq!([math::exp(-infinity), math::exp2(-infinity), math::exp_m1(-infinity)], [0.0, 0.0, -1.0]);
    assert_eq!([math::exp(infinity), math::exp2(infinity), math::exp_m1(infinity)], [infinity; 3]);
    assert_eq!([math::ln(0.0), math::log2(-0.0), math::ln(infinity)], [-infinity, -infinity, infinity]);
    assert!(math::ln(-1.0).is_nan() && math::log2(-infinity).is_nan());
    assert!(math::sin(infinity).is_nan() && math::cos(-infinity).is_nan());
    assert_eq!([math::tanh(infinity), math::tanh(-infinity)], [1.0, -1.0]);
    for f in [math::exp_m1, math::sin, math::tanh] {
        assert_eq!([bits(f(0.0)), bits(f(-0.0))], [bits(0.0), bits(-0.0)]);
        assert_eq!(bits(f(-f64::from_bits(1))), bits(-f64::from_bits(1)));
    }
    for x in [0.5, 1.0, 3.0, 1e6, 1e10, 1e300] {
        assert_eq!(math::sin_cos(x), (math::sin(x), math::cos(x)));
        assert_eq!(math::sin_cos(-x), (-math::sin(x), math::cos(x)));
    }
}
