//! How far a function of `f32` is from the exact value, in units of the last place (ulp) of the result.
//!
//! The exact value is computed in f64 by the C library, whose own error, below 1 ulp of f64, is 2⁻²⁹ ulp of f32.

/// The largest error among some arguments.
#[derive(Clone, Copy, Default)]
pub struct Worst {
    /// In ulp; infinite where a result is infinite or a NaN and ought not to be, or the other way round.
    pub ulp: f64,
    /// Where.
    pub at: f32,
    /// Results that are not the `f32` nearest to the exact value.
    pub not_nearest: u64,
}

impl Worst {
    /// The worse of two.
    pub fn or(self, other: Worst) -> Worst {
        let not_nearest = self.not_nearest + other.not_nearest;
        Worst { not_nearest, ..if other.ulp > self.ulp { other } else { self } }
    }
}

/// Compares `f` with `exact` at the arguments whose bits are given.
pub fn measure(f: fn(f32) -> f32, exact: fn(f64) -> f64, bits: impl Iterator<Item = u32>) -> Worst {
    bits.fold(Worst::default(), |worst, b| {
        let at = f32::from_bits(b);
        let (got, want) = (f(at), exact(at.into()));
        let nearest = want as f32;
        let not_nearest = u64::from(got != nearest && !(got.is_nan() && nearest.is_nan()));
        worst.or(Worst { ulp: error(got, want), at, not_nearest })
    })
}

pub fn error(got: f32, want: f64) -> f64 {
    let nearest = want as f32;
    if got.is_nan() && nearest.is_nan() || got.is_infinite() && got == nearest {
        0.0
    } else if got.is_finite() && nearest.is_finite() {
        (f64::from(got) - want).abs() / ulp(want)
    } else {
        f64::INFINITY
    }
}

/// The distance of neighbouring `f32` values where `x` lies.
fn ulp(x: f64) -> f64 {
    let exponent = ((x.abs().to_bits() >> 52) as i32 - 1023).max(-126);
    f64::powi(2.0, exponent - 23)
}
