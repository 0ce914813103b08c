//! Mean and deviation of rows whose sums or squares exceed the range of `f32`.
//!
//! The square of 2·10¹⁹ overflows, that of 10⁻²³ is zero, and four numbers of 10³⁸ have a sum of ∞.
//! Nevertheless the mean and the deviation of each of these rows are ordinary numbers. Therefore a
//! norm multiplies its row by a power of two, which is exact:
//!
//! ```text
//!   scale   1 for most rows: the statistics are what they would be without it, bit for bit
//!           2⁻¹⁰⁰ where variance + ε is not finite
//!           2¹⁰⁰ where variance + ε is below 2⁻¹²⁰, and the mean below 2⁻⁸
//!   y       (scale · x − mean) · factor           one fused multiplication and one product, the same as without the scale
//! ```
//!
//! Statistics are computed with a scale of 1. Only a row that fails the test computes them a second
//! time. The test needs no additional reduction, and all threads of a row have the same result.
//!
//! # Why two scales suffice
//!
//! A row has fewer than 2³² elements, and is scaled down only if
//!
//! * the sum of its squared differences from the mean is 2¹²⁸ or more. Scaled it is 2⁻⁷² or more,
//!   of which underflow loses at most 2³² · 2⁻¹⁵⁰; or
//! * the sum of its magnitudes is 2¹²⁸ or more. Then some are 2⁹⁶ or more, and different ones
//!   differ by at least 2⁷². Scaled they differ by 2⁻²⁸.
//!
//! No scaled magnitude exceeds 2²⁸, so 2³² squares have a sum of at most 2⁸⁸. A row is scaled up
//! only if its deviation is below 2⁻⁶⁰, so that no difference from the mean exceeds 2⁻⁴⁴. With a
//! mean below 2⁻⁸, the 2³² scaled elements have a sum below 2¹²⁵. With a larger mean, different
//! elements differ by 2⁻³² or more: a deviation below 2⁻⁶⁰ is then 0, and correct.

use kernel_dsl::prelude::*;

pub use items::*;

#[device]
mod items {
    /// The statistics of a row: its norm is (scale · x − mean) · factor.
    #[derive(Clone, Copy)]
    pub struct Moments {
        /// A power of two, 1 for most rows.
        pub scale: f32,
        /// The mean of scale · x; 0 for an RMS norm.
        pub mean: f32,
        /// 1 / √(variance of scale · x + scale² · ε).
        pub factor: f32,
    }
}

/// Returns the scale for a row whose mean and variance, computed with a scale of 1, are `mean` and
/// `variance`.
#[device]
pub fn scale_for(mean: f32, variance: f32, epsilon: f32) -> f32 {
    let spread = variance + epsilon;
    // Infinite sums may give a NaN; the second computation is then correct.
    let large = !(spread <= f32::MAX);
    // 2⁻¹²⁰, 2⁻⁸, 2¹⁰⁰ and 2⁻¹⁰⁰.
    let small = spread < 7.523_164e-37 && mean.abs() < 0.003_906_25;
    if large {
        7.888_609e-31
    } else if small {
        1.267_650_6e30
    } else {
        1.0
    }
}

/// Returns the statistics of an unscaled row.
#[device]
pub fn plain(mean: f32, variance: f32, epsilon: f32) -> Moments {
    Moments { scale: 1.0, mean, factor: 1.0 / (variance + epsilon).sqrt() }
}

/// Returns the statistics of a row from the mean and variance of `scale` times its elements.
#[device]
pub fn moments(scale: f32, mean: f32, variance: f32, epsilon: f32) -> Moments {
    let mut factor = 1.0 / (variance + epsilon * scale * scale).sqrt();
    if variance == 0.0 {
        // All elements are equal, and the scaled ε may be 0 or subnormal.
        factor = inverse(scale) / epsilon.sqrt();
    }
    Moments { scale, mean, factor }
}

/// Returns 1 / scale for a power of two.
#[device]
pub(super) fn inverse(scale: f32) -> f32 {
    f32::from_bits(0x7f00_0000 - scale.to_bits())
}

/// Returns the values that a norm saves for a row: the mean, and 1 / √(variance + ε), of the
/// unscaled elements.
#[device]
pub fn saved(of_row: Moments) -> [f32; 2] {
    let mean = of_row.mean * inverse(of_row.scale);
    // The mean of the largest `f32`s may round to more than `f32::MAX`; a row with an infinity has
    // a factor of NaN.
    let within = mean.max(f32::MIN).min(f32::MAX);
    [if of_row.factor >= 0.0 { within } else { mean }, of_row.factor * of_row.scale]
}

/// Returns the statistics from which [`saved`] was computed, with a scale that keeps differences
/// from the mean finite.
#[device]
pub fn restored(of_row: [f32; 2]) -> Moments {
    let [mean, factor] = of_row;
    // With a deviation below 2¹⁰⁰, none of 2³² elements differs from the mean by 2¹²⁷.
    let scale = if factor < 7.888_609e-31 { 7.888_609e-31 } else { 1.0f32 };
    Moments { scale, mean: mean * scale, factor: factor * inverse(scale) }
}

/// Returns the normalized element.
#[device]
pub fn normalized(x: f32, of_row: Moments) -> f32 {
    x.mul_add(of_row.scale, -of_row.mean) * of_row.factor
}

#[cfg(test)]
mod tests {
    use super::{inverse, moments, normalized, restored, saved, scale_for};

    #[test]
    fn scales_are_powers_of_two() {
        assert_eq!(scale_for(0.0, f32::INFINITY, 1e-5), 2f32.powi(-100));
        assert_eq!(scale_for(0.0, f32::NAN, 1e-5), 2f32.powi(-100));
        assert_eq!(scale_for(0.0, 0.0, 0.0), 2f32.powi(100));
        assert_eq!(scale_for(1.0, 0.0, 0.0), 1.0);
        assert_eq!(scale_for(0.0, 0.0, 1e-5), 1.0);
        assert_eq!(scale_for(3.0, 2f32.powi(-120), 0.0), 1.0);
        assert_eq!((2f32.powi(-120), 2f32.powi(-8)), (7.523_164e-37, 0.003_906_25));
        assert_eq!(restored([0.0, 1e-38]).scale, 2f32.powi(-100));
        assert_eq!([-100, 0, 100].map(|n| inverse(2f32.powi(n))), [100, 0, -100].map(|n| 2f32.powi(n)));
    }

    #[test]
    fn saved_statistics_give_the_same_norm() {
        for [scale, mean, variance] in [[1.0, 3.0, 4.0], [2f32.powi(-100), 5.0, 9.0], [2f32.powi(100), 0.5, 0.25]] {
            let of_row = moments(scale, mean, variance, 0.0);
            let x = (mean + 1.0) / scale;
            assert_eq!(normalized(x, of_row), 1.0 / variance.sqrt());
            assert_eq!(normalized(x, restored(saved(of_row))), 1.0 / variance.sqrt());
        }
    }
}
