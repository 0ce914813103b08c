//! Statistics of measured times, for benchmarks and tuners: medians with intervals, effect sizes,
//! and tests of whether two samples differ.
//!
//! No function assumes a distribution of the times except [`hedges_g`]. All are deterministic:
//! resamples come from a fixed seed.

use runtime::testing::Random;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Number of resamples of a bootstrap interval.
const RESAMPLES: usize = 2000;
/// Share of the resamples below and above a 95 % interval.
const TAIL: f64 = 0.025;
/// Probability below which a difference counts as significant.
const SIGNIFICANT: f64 = 0.05;

/// Reads the value of `--least-change`.
pub(crate) fn percent_arg(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent: &f64| percent.is_finite() && *percent >= 0.0);
    percent.ok_or_else(|| "expected a percentage of 0 or more, such as 2.5".to_string())
}

/// Returns the median; NaN without values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n => (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0,
    }
}

/// Returns the 95 % confidence interval of the median, by the percentile bootstrap.
pub(crate) fn median_interval(values: &[f64]) -> [f64; 2] {
    let mut random = Random::new(1);
    interval(|| median(&resampled(values, &mut random)))
}

/// Returns the 95 % confidence interval of the median of `values` over that of `base`, by the
/// percentile bootstrap.
pub(crate) fn ratio_interval(values: &[f64], base: &[f64]) -> [f64; 2] {
    let mut random = Random::new(1);
    interval(|| median(&resampled(values, &mut random)) / median(&resampled(base, &mut random)))
}

fn interval(mut statistic: impl FnMut() -> f64) -> [f64; 2] {
    let mut all: Vec<f64> = (0..RESAMPLES).map(|_| statistic()).collect();
    all.sort_by(f64::total_cmp);
    let skipped = (TAIL * RESAMPLES as f64) as usize;
    [all[skipped], all[RESAMPLES - 1 - skipped]]
}

/// Draws as many values as there are, with replacement.
fn resampled(values: &[f64], random: &mut Random) -> Vec<f64> {
    (0..values.len()).map(|_| values[random.below(values.len())]).collect()
}

/// Returns Hedges' g: the difference of the means in pooled standard deviations, with the usual
/// correction for small samples, 1 − 3/(4·(n + m) − 9). NaN if a sample has fewer than two values.
pub(crate) fn hedges_g(values: &[f64], base: &[f64]) -> f64 {
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let squares = |all: &[f64]| {
        let mean = mean(all);
        all.iter().map(|x| (x - mean).powi(2)).sum::<f64>()
    };
    if values.len() < 2 || base.len() < 2 {
        return f64::NAN;
    }
    let n = (values.len() + base.len()) as f64;
    let difference = mean(values) - mean(base);
    let deviation = ((squares(values) + squares(base)) / (n - 2.0)).sqrt();
    // Two constant samples: equal, or infinitely many deviations apart.
    let d = if difference == 0.0 { 0.0 } else { difference / deviation };
    d * (1.0 - 3.0 / (4.0 * n - 9.0))
}

/// Returns the two-sided p-value of the Mann–Whitney test: the probability of ranks at least as
/// uneven if both samples had one distribution. Uses the normal approximation with the corrections
/// for ties and continuity. 1 if a sample is empty or all values are equal.
pub(crate) fn mann_whitney(values: &[f64], base: &[f64]) -> f64 {
    let (n, m) = (values.len() as f64, base.len() as f64);
    let all = n + m;
    let mut ranked: Vec<(f64, bool)> =
        values.iter().map(|x| (*x, true)).chain(base.iter().map(|x| (*x, false))).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut ranks, mut ties, mut below) = (0.0, 0.0, 0.0);
    for equal in ranked.chunk_by(|a, b| a.0 == b.0) {
        let count = equal.len() as f64;
        let rank = below + (count + 1.0) / 2.0;
        ranks += rank * equal.iter().filter(|(_, first)| *first).count() as f64;
        ties += count.powi(3) - count;
        below += count;
    }
    let u = ranks - n * (n + 1.0) / 2.0;
    let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    if variance.is_nan() || variance <= 0.0 {
        return 1.0;
    }
    let z = ((u - n * m / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
    erfc(z / std::f64::consts::SQRT_2)
}

/// Returns the complementary error function of `z ≥ 0`, to 14 digits: the power series of erf below
/// 2, and above it Laplace's continued fraction.
fn erfc(z: f64) -> f64 {
    let root = std::f64::consts::PI.sqrt();
    if z < 2.0 {
        let (mut sum, mut power) = (0.0, z);
        for n in 0..60 {
            sum += power / f64::from(2 * n + 1);
            power *= -z * z / f64::from(n + 1);
        }
        return 1.0 - 2.0 / root * sum;
    }
    let fraction = (1..=100).rev().fold(z, |below, n| z + f64::from(n) / 2.0 / below);
    (-z * z).exp() / root / fraction
}

/// Median with its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub median_ms: f64,
    /// 95 % confidence interval of the true median, in milliseconds.
    pub ci95_ms: [f64; 2],
}

impl Summary {
    /// Summarizes times in milliseconds; zeros without times.
    pub(crate) fn of(times: &[f64]) -> Summary {
        match times {
            [] => Summary { median_ms: 0.0, ci95_ms: [0.0; 2] },
            _ => Summary { median_ms: median(times), ci95_ms: median_interval(times) },
        }
    }
}

/// Formats a time as `1.234 µs (1.200 to 1.300)`.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = match self.median_ms {
            t if t < 1e-3 => ("ns", 1e6),
            t if t < 1.0 => ("µs", 1e3),
            _ => ("ms", 1.0),
        };
        let [low, high] = self.ci95_ms;
        write!(f, "{:.3} {unit} ({:.3} to {:.3})", self.median_ms * factor, low * factor, high * factor)
    }
}

/// Comparison of two samples of times.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Difference {
    /// Median of the new times over that of the old times: above 1 is slower.
    pub ratio: f64,
    /// 95 % confidence interval of the ratio.
    pub ci95: [f64; 2],
    /// Effect size: positive is slower.
    pub hedges_g: f64,
    /// p-value of the Mann–Whitney test.
    pub p: f64,
    pub verdict: ComparisonVerdict,
}

/// Result of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ComparisonVerdict {
    Faster,
    NoSignificantDifference,
    /// A difference, by less than what counts as faster or slower.
    BelowLeastChange,
    Slower,
}

impl ComparisonVerdict {
    /// Returns the verdict on the ratio of a new figure to an old one. Neither has an uncertainty.
    pub(crate) fn of_ratio(ratio: f64, least: f64) -> ComparisonVerdict {
        match ratio {
            ratio if ratio > 1.0 + least => ComparisonVerdict::Slower,
            ratio if ratio < 1.0 - least => ComparisonVerdict::Faster,
            1.0 => ComparisonVerdict::NoSignificantDifference,
            _ => ComparisonVerdict::BelowLeastChange,
        }
    }
}

impl Difference {
    /// Compares `new` with `old`. A difference is significant if the test's p-value is below 0.05
    /// and the interval of the ratio excludes 1. A significant difference counts as faster or
    /// slower if the medians also differ by more than the fraction `least`.
    pub(crate) fn of(new: &[f64], old: &[f64], least: f64) -> Difference {
        let ratio = median(new) / median(old);
        let ci95 = ratio_interval(new, old);
        let p = mann_whitney(new, old);
        let significant = p < SIGNIFICANT && (ci95[0] > 1.0 || ci95[1] < 1.0);
        let verdict = if significant {
            ComparisonVerdict::of_ratio(ratio, least)
        } else {
            ComparisonVerdict::NoSignificantDifference
        };
        Difference { ratio, ci95, hedges_g: hedges_g(new, old), p, verdict }
    }
}

impl fmt::Display for ComparisonVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ComparisonVerdict::Faster => "faster",
            ComparisonVerdict::NoSignificantDifference => "no significant difference",
            ComparisonVerdict::BelowLeastChange => "a change below --least-change",
            ComparisonVerdict::Slower => "slower",
        })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { ratio, ci95: [low, high], hedges_g, p, verdict } = self;
        let p = if *p < 0.001 { "p < 0.001".to_string() } else { format!("p = {p:.3}") };
        write!(f, "{verdict}: {ratio:.3} × ({low:.3} to {high:.3}), Hedges' g {hedges_g:.2}, {p}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [f64; 10] = [10.1, 10.2, 10.2, 10.4, 10.1, 10.3, 10.2, 10.5, 10.2, 10.3];
    const B: [f64; 11] = [10.2, 10.4, 10.4, 10.6, 10.3, 10.5, 10.4, 10.4, 10.2, 10.7, 10.3];

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-10 * b.abs()
    }

    /// Compares with SciPy 1.17: `scipy.stats.mannwhitneyu(a, b, method="asymptotic").pvalue`.
    #[test]
    fn p_values_are_those_of_scipy() {
        let first = mann_whitney(&[19.0, 22.0, 16.0, 29.0, 24.0], &[20.0, 11.0, 17.0, 12.0]);
        assert!(near(first, 0.11134688653314041), "{first}");
        let ties = mann_whitney(&A, &B);
        assert!(near(ties, 0.03076903870922544), "{ties}");
        assert!(near(ties, mann_whitney(&B, &A)));
        let constant = mann_whitney(&[1.0; 12], &[2.0; 12]);
        assert!(near(constant, 1.911834771154503e-06), "{constant}");
        let n = |from: f64| (0..50).map(|i| f64::from(i) + from).collect::<Vec<_>>();
        let p_value = mann_whitney(&n(0.0), &n(60.5));
        assert!(near(p_value, 7.066071930388932e-18), "{p_value}");
        assert_eq!([mann_whitney(&[1.0; 5], &[1.0; 5]), mann_whitney(&[], &[1.0])], [1.0, 1.0]);
    }

    /// Compares with SciPy 1.17: `scipy.special.erfc`.
    #[test]
    fn erfc_is_that_of_scipy() {
        let known = [
            (0.0, 1.0),
            (0.5, 0.4795001221869535),
            (1.0, 0.15729920705028516),
            (2.0, 0.004677734981047266),
            (3.0, 2.2090496998585445e-05),
            (5.0, 1.5374597944280347e-12),
            (8.0, 1.1224297172982928e-29),
        ];
        for (z, value) in known {
            assert!(near(erfc(z), value), "{z}: {}", erfc(z));
        }
    }

    /// Compares with values by NumPy, from the definition.
    #[test]
    fn effect_sizes_are_those_of_numpy() {
        let g = hedges_g(&[19.0, 22.0, 16.0, 29.0, 24.0], &[20.0, 11.0, 17.0, 12.0]);
        assert!(near(g, 1.3352812282117033), "{g}");
        assert!(near(hedges_g(&A, &B), -1.0116002495724625));
        assert_eq!(hedges_g(&[2.0; 3], &[2.0; 3]), 0.0);
        assert!(hedges_g(&[2.0], &B).is_nan());
    }

    /// Compares with binomial probabilities: the median of 11 resampled values is at most the k-th
    /// value if 6 of them are. The median is at most the second value with probability 0.007, and
    /// at most the third with 0.051. The ratio is that of SciPy 1.17,
    /// `scipy.stats.bootstrap(…, method="percentile")` with 99,999 resamples; medians of these
    /// values have few ratios.
    #[test]
    fn intervals_are_those_of_the_exact_distribution() {
        let values: Vec<f64> = (1..=10).map(f64::from).chain([100.0]).collect();
        assert_eq!(median_interval(&values), [3.0, 9.0]);
        let [low, high] = ratio_interval(&B, &A);
        assert!(near(low, 1.0) && near(high, 1.0294117647058825), "{low} {high}");
        assert_eq!(Summary::of(&[7.0]), Summary { median_ms: 7.0, ci95_ms: [7.0, 7.0] });
        assert_eq!(Summary::of(&[]).median_ms, 0.0);
        assert!(median(&[]).is_nan());
        assert_eq!(median(&[3.0, 1.0, 2.0, 4.0]), 2.5);
    }

    #[test]
    fn a_verdict_needs_significance_and_size() {
        let times = |median: f64| (0..40).map(|i| median * (1.0 + f64::from(i % 7 - 3) * 1e-3)).collect::<Vec<_>>();
        let verdict = |new: f64, least| Difference::of(&times(new), &times(10.0), least).verdict;
        assert_eq!(verdict(10.0, 0.0), ComparisonVerdict::NoSignificantDifference);
        assert_eq!(verdict(10.5, 0.01), ComparisonVerdict::Slower);
        assert_eq!(verdict(9.5, 0.01), ComparisonVerdict::Faster);
        // Significant, but smaller than the limit.
        assert_eq!(verdict(10.05, 0.01), ComparisonVerdict::BelowLeastChange);
        // Large, but not significant with so few values.
        assert_eq!(Difference::of(&[2.0, 3.0], &[1.0, 2.5], 0.01).verdict, ComparisonVerdict::NoSignificantDifference);
        let text = Difference::of(&times(10.5), &times(10.0), 0.01).to_string();
        assert!(text.starts_with("slower: 1.050 × (1.04") && text.ends_with("p < 0.001"), "{text}");
    }
}
