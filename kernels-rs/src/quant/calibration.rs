//! Scales of symmetric quantization from samples, on the host. The scale is the value of the
//! integer 1.
//!
//! The largest magnitude wastes the range on outliers. A percentile of the magnitudes clips them.
//! The least mean-square error balances clipping and the error of a coarser unit. See Nagel et al.,
//! *A White Paper on Neural Network Quantization*, 2021, section 3.1. Samples that are not finite
//! are ignored. Without samples, or with zeros only, the scale is 0.

/// Returns the largest magnitude / `most`, which is 127 for bytes and 7 for four bits.
#[must_use]
pub fn max_abs(samples: &[f32], most: u8) -> f32 {
    magnitudes(samples).fold(0.0, f32::max) / f32::from(most)
}

/// Returns a percentile of the magnitudes / `most`. Among n magnitudes in order, it is the one of
/// rank ⌈fraction · n⌉, clamped to 1 and n. `fraction` is 0.999, for example.
#[must_use]
pub fn percentile(samples: &[f32], fraction: f64, most: u8) -> f32 {
    let mut all: Vec<f32> = magnitudes(samples).collect();
    let rank = (fraction * all.len() as f64).ceil().clamp(1.0, all.len().max(1) as f64) as usize;
    if rank > all.len() {
        return 0.0;
    }
    let (_, found, _) = all.select_nth_unstable_by(rank - 1, f32::total_cmp);
    *found / f32::from(most)
}

/// Returns the scale with the least [`mean_square_error`] among [`max_abs`] times 1/100, 2/100, …
/// 1, and the largest of equals.
#[must_use]
pub fn least_mean_square(samples: &[f32], most: u8) -> f32 {
    let largest = max_abs(samples, most);
    let error = |scale: f32| mean_square_error(samples, scale, most);
    let mut best = (largest, error(largest));
    for step in (1..100u8).rev() {
        // In `f64`, where the product does not overflow.
        let scale = (f64::from(largest) * f64::from(step) / 100.0) as f32;
        let error = error(scale);
        if error < best.1 {
            best = (scale, error);
        }
    }
    best.0
}

/// Returns the mean of (x − scale · q)², with q = x / scale rounded to even and clipped to ±`most`.
#[must_use]
pub fn mean_square_error(samples: &[f32], scale: f32, most: u8) -> f64 {
    let (scale, most) = (f64::from(scale), f64::from(most));
    let error = |x: f32| {
        let x = f64::from(x);
        let q = if scale > 0.0 { (x / scale).round_ties_even().clamp(-most, most) } else { 0.0 };
        (x - scale * q).powi(2)
    };
    let (sum, n) = samples.iter().filter(|x| x.is_finite()).fold((0.0, 0u64), |(sum, n), x| (sum + error(*x), n + 1));
    sum / n.max(1) as f64
}

fn magnitudes(samples: &[f32]) -> impl Iterator<Item = f32> + '_ {
    samples.iter().map(|x| x.abs()).filter(|x| x.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_magnitude_gives_the_scale() {
        assert_eq!(max_abs(&[1.0, -254.0, f32::NAN, f32::INFINITY], 127), 2.0);
        assert_eq!(max_abs(&[], 127), 0.0);
    }

    #[test]
    fn fractions_select_ranks_of_magnitudes() {
        let samples: Vec<f32> = (1..=1000).map(|i| if i % 2 == 0 { i as f32 } else { -(i as f32) }).collect();
        for (fraction, magnitude) in
            [(0.0, 1.0), (0.5, 500.0), (0.999, 999.0), (0.9991, 1000.0), (1.0, 1000.0), (7.0, 1000.0)]
        {
            assert_eq!(percentile(&samples, fraction, 1), magnitude, "{fraction}");
        }
        assert_eq!(percentile(&[], 0.5, 127), 0.0);
        assert_eq!(percentile(&[f32::NAN, 3.0], 0.5, 1), 3.0);
    }

    /// Compares the scales for an outlier among many small numbers, and for equal numbers.
    #[test]
    fn errors_are_weighed() {
        let mut samples: Vec<f32> = (0..10_000).map(|i| (i % 201) as f32 / 100.0 - 1.0).collect();
        assert_eq!(least_mean_square(&samples, 127), max_abs(&samples, 127));
        samples.push(10.0);
        let scale = least_mean_square(&samples, 7);
        assert!(scale < 0.5 * max_abs(&samples, 7), "{scale}");
        let least = mean_square_error(&samples, scale, 7);
        for other in [max_abs(&samples, 7), percentile(&samples, 0.9, 7), percentile(&samples, 0.999, 7)] {
            assert!(least <= mean_square_error(&samples, other, 7) * 1.01, "{other}");
        }
        assert_eq!(least_mean_square(&[0.0; 5], 7), 0.0);
        assert_eq!(mean_square_error(&[3.0, -4.0], 0.0, 7), 12.5);
    }
}
