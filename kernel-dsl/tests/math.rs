//! The functions of `math`: a sample of their errors, and every special value.
//!
//! The largest errors over all arguments, as the documentation states them, come from `examples/ulp.rs`.

mod ulp;

use kernel_dsl::math;
use ulp::measure;

/// Arguments 4093 (a prime) apart, over all of `f32`: a million.
fn sample() -> impl Iterator<Item = u32> {
    (0..=u32::MAX).step_by(4093)
}

#[test]
fn exp_is_within_what_it_states() {
    let worst = measure(math::exp, f64::exp, sample());
    assert!(worst.ulp < 0.892, "{} ulp at {:e}", worst.ulp, worst.at);
}

#[test]
fn ln_is_within_what_it_states() {
    let worst = measure(math::ln, f64::ln, sample());
    assert!(worst.ulp < 0.934, "{} ulp at {:e}", worst.ulp, worst.at);
}

#[test]
fn exp_at_its_edges() {
    assert_eq!(math::exp(f32::NEG_INFINITY).to_bits(), 0);
    assert_eq!(math::exp(f32::INFINITY), f32::INFINITY);
    assert!(math::exp(f32::NAN).is_nan() && math::exp(-f32::NAN).is_nan());
    assert_eq!((math::exp(0.0), math::exp(-0.0)), (1.0, 1.0));
    // Overflow, the largest subnormal, and the smallest; neighbouring arguments on each side.
    for edge in [88.72284f32, -87.33654, -103.97208] {
        for x in [edge.next_down(), edge, edge.next_up()] {
            let (got, want) = (math::exp(x), f64::from(x).exp() as f32);
            let ulps = i64::from(got.to_bits()) - i64::from(want.to_bits());
            assert!(ulps.abs() <= 1 && got.is_infinite() == want.is_infinite(), "exp({x:e}) = {got:e}, not {want:e}");
        }
    }
    assert!(math::exp(88.72283).is_finite() && math::exp(88.72284).is_infinite());
    assert_eq!((math::exp(-103.97207), math::exp(-103.9721)), (f32::from_bits(1), 0.0));
}

#[test]
fn ln_at_its_edges() {
    assert_eq!((math::ln(0.0), math::ln(-0.0)), (f32::NEG_INFINITY, f32::NEG_INFINITY));
    assert_eq!((math::ln(1.0).to_bits(), math::ln(f32::INFINITY)), (0, f32::INFINITY));
    for x in [f32::NAN, -1.0, f32::NEG_INFINITY, -f32::from_bits(1)] {
        assert!(math::ln(x).is_nan(), "ln({x:e})");
    }
    // Subnormals, and the ends of the reduced interval.
    for x in [f32::from_bits(1), f32::MIN_POSITIVE.next_down(), f32::MIN_POSITIVE, f32::MAX, 2.0 / 3.0, 4.0 / 3.0] {
        for x in [x.next_down(), x, x.next_up()].into_iter().filter(|x| *x > 0.0 && x.is_finite()) {
            let (got, want) = (math::ln(x), f64::from(x).ln() as f32);
            let ulps = i64::from(got.to_bits()) - i64::from(want.to_bits());
            assert!(ulps.abs() <= 1, "ln({x:e}) = {got:e}, not {want:e}");
        }
    }
}
