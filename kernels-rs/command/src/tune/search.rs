//! The search for the fastest candidate: a quick round with pruning, and a confirming round beside
//! the incumbent. The search identifies candidates by number and measures through a trait, so that
//! tests can supply the times.

use super::parzen::ParameterSpace;
use crate::error::Error;
use crate::statistics::{ComparisonVerdict, Difference, Summary, median};
use serde::Serialize;
use std::time::Duration;

/// Measurements of candidates, which have numbers from 0.
pub(super) trait CandidateMeter {
    /// Runs a candidate once and compares the results with the reference. Returns why the candidate
    /// is rejected, if it is.
    fn rejected(&mut self, candidate: usize) -> Result<Option<String>, Error>;

    /// Returns a time of a candidate in milliseconds.
    fn time(&mut self, candidate: usize) -> Result<f64, Error>;

    /// Returns the time since the search began.
    fn elapsed(&self) -> Duration;

    /// Shows the phase of the search and its best candidate so far.
    fn progress(&mut self, phase: &str, best: usize, median_ms: f64);
}

/// Numbers of measurements and limits of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchLimits {
    /// Number of evaluated candidates beside the incumbent.
    pub candidates: usize,
    /// Measurements of a candidate in the quick round.
    pub quick: usize,
    /// Measurements of the best candidate and of the incumbent in the confirming round.
    pub confirming: usize,
    /// Time after which nothing more is measured.
    pub budget: Duration,
    /// Least change of the median that counts, as a fraction.
    pub least_change: f64,
}

/// Result of a candidate.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub(super) enum CandidateResult {
    /// The candidate failed a gate.
    Rejected { why: String },
    /// The budget was spent before.
    NotTried,
    /// The median was above the median of all candidates.
    Pruned { measurements: usize, median_ms: f64 },
    /// All measurements of the quick round.
    Measured {
        #[serde(flatten)]
        summary: Summary,
    },
}

/// The confirming round.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Confirmation {
    pub best: Summary,
    pub incumbent: Summary,
    /// The best candidate compared with the incumbent.
    #[serde(flatten)]
    pub difference: Difference,
}

/// Result of a search.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct SearchResult {
    /// Results of the quick round, by candidate.
    pub candidates: Vec<CandidateResult>,
    /// The fastest candidate of the quick round.
    pub best: usize,
    /// `None` if the incumbent was the fastest, or if the budget was spent before.
    pub confirmation: Option<Confirmation>,
    /// Whether the budget ended the search.
    pub is_budget_spent: bool,
}

impl SearchResult {
    /// Returns the candidate to use: the best one if it is confirmed to be faster.
    pub fn winner(&self, incumbent: usize) -> usize {
        let confirmed = self.confirmation.is_some_and(|c| c.difference.verdict == ComparisonVerdict::Faster);
        if confirmed { self.best } else { incumbent }
    }
}

/// Measurements between two prunings.
const PRUNED_EVERY: usize = 8;
/// Candidates that no pruning goes below.
const MIN_UNPRUNED_CANDIDATES: usize = 3;
/// Measurements of a candidate that decide which one of a large space is next.
const EXPLORING_MEASUREMENTS: usize = 5;

/// Searches `candidates`, which are given in the order of their likely times. The incumbent is
/// never pruned, and a rejected candidate is never timed.
///
/// If there are more candidates than the limits permit, a few measurements of each decide which one
/// is next ([`ParameterSpace`]). In the quick round, all candidates are measured once, then all
/// again, and so on. After every eighth time, candidates are dropped whose median is above the
/// median of all medians. In the confirming round, the best candidate and the incumbent alternate.
/// Each is measured first in half of the pairs.
///
/// # Errors
/// Returns the errors of measurements, and an error if the incumbent is rejected.
pub(super) fn search(
    meter: &mut dyn CandidateMeter,
    candidates: &[usize],
    space: &ParameterSpace,
    incumbent: usize,
    limits: &SearchLimits,
) -> Result<SearchResult, Error> {
    let count = candidates.iter().copied().chain([incumbent]).max().unwrap_or(0) + 1;
    let mut results = vec![CandidateResult::NotTried; count];
    let mut remaining = Vec::new();
    // The incumbent is needed in any case.
    match meter.rejected(incumbent)? {
        None => remaining.push(incumbent),
        Some(why) => return Err(Error::Incumbent { why }),
    }
    let others: Vec<usize> = candidates.iter().copied().filter(|candidate| *candidate != incumbent).collect();
    let is_large = others.len() > limits.candidates;
    let mut fastest_explored = (incumbent, f64::INFINITY);
    let mut is_budget_spent = space.explore(&others, limits.candidates, |candidate| {
        if meter.elapsed() >= limits.budget {
            return Ok(None);
        }
        if let Some(why) = meter.rejected(candidate)? {
            results[candidate] = CandidateResult::Rejected { why };
            return Ok(Some(f64::INFINITY));
        }
        remaining.push(candidate);
        if !is_large {
            return Ok(Some(0.0));
        }
        let times: Result<Vec<f64>, Error> = (0..EXPLORING_MEASUREMENTS).map(|_| meter.time(candidate)).collect();
        let time = median(&times?);
        if time < fastest_explored.1 {
            fastest_explored = (candidate, time);
        }
        meter.progress("exploration", fastest_explored.0, fastest_explored.1);
        Ok::<_, Error>(Some(time))
    })?;
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); count];
    for measurement in 1..=limits.quick {
        is_budget_spent |= meter.elapsed() >= limits.budget;
        if is_budget_spent {
            break;
        }
        for &candidate in &remaining {
            times[candidate].push(meter.time(candidate)?);
        }
        if measurement % PRUNED_EVERY == 0 && measurement < limits.quick && remaining.len() > MIN_UNPRUNED_CANDIDATES {
            let medians: Vec<f64> = remaining.iter().map(|c| median(&times[*c])).collect();
            let limit = median(&medians);
            remaining.retain(|&candidate| {
                let median_ms = median(&times[candidate]);
                let is_kept = candidate == incumbent || median_ms <= limit;
                if !is_kept {
                    results[candidate] = CandidateResult::Pruned { measurements: measurement, median_ms };
                }
                is_kept
            });
        }
        let best = fastest(&remaining, &times, incumbent);
        meter.progress("quick round", best, median(&times[best]));
    }
    for &candidate in remaining.iter().filter(|candidate| !times[**candidate].is_empty()) {
        results[candidate] = CandidateResult::Measured { summary: Summary::of(&times[candidate]) };
    }
    let best = fastest(&remaining, &times, incumbent);
    let mut result = SearchResult { candidates: results, best, confirmation: None, is_budget_spent };
    if best == incumbent || is_budget_spent {
        return Ok(result);
    }
    let (mut of_best, mut of_incumbent) = (Vec::new(), Vec::new());
    for measurement in 0..limits.confirming {
        if meter.elapsed() >= limits.budget {
            result.is_budget_spent = true;
            return Ok(result);
        }
        if measurement % 2 == 0 {
            of_best.push(meter.time(best)?);
            of_incumbent.push(meter.time(incumbent)?);
        } else {
            of_incumbent.push(meter.time(incumbent)?);
            of_best.push(meter.time(best)?);
        }
        meter.progress("confirming round", best, median(&of_best));
    }
    result.confirmation = Some(Confirmation {
        best: Summary::of(&of_best),
        incumbent: Summary::of(&of_incumbent),
        difference: Difference::of(&of_best, &of_incumbent, limits.least_change),
    });
    Ok(result)
}

/// Returns the candidate with the least median; of equal ones the first. The incumbent if none has
/// a time.
fn fastest(remaining: &[usize], times: &[Vec<f64>], incumbent: usize) -> usize {
    let timed = remaining.iter().copied().filter(|candidate| !times[*candidate].is_empty());
    timed.min_by(|a, b| median(&times[*a]).total_cmp(&median(&times[*b]))).unwrap_or(incumbent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::testing::Random;

    const LIMITS: SearchLimits = SearchLimits {
        candidates: 24,
        quick: 40,
        confirming: 100,
        budget: Duration::from_secs(60),
        least_change: 0.01,
    };

    /// Returns the parameters of candidates that are numbered from 1.
    fn space(count: usize) -> ParameterSpace {
        ParameterSpace::new((0..count).map(|number| format!("plan {}", number + 1)))
    }

    /// A meter with planted medians, and noise of up to 1 %.
    struct PlantedMeter {
        medians: Vec<f64>,
        faulty: Vec<usize>,
        random: Random,
        counts: Vec<usize>,
        /// The time of one measurement, for the budget.
        cost: Duration,
        elapsed: Duration,
    }

    impl PlantedMeter {
        fn new(medians: &[f64]) -> PlantedMeter {
            PlantedMeter {
                medians: medians.to_vec(),
                faulty: Vec::new(),
                random: Random::new(3),
                counts: vec![0; medians.len()],
                cost: Duration::from_millis(1),
                elapsed: Duration::ZERO,
            }
        }

        fn search(&mut self, incumbent: usize) -> SearchResult {
            let all: Vec<usize> = (0..self.medians.len()).collect();
            search(self, &all, &space(all.len()), incumbent, &LIMITS).unwrap()
        }
    }

    impl CandidateMeter for PlantedMeter {
        fn rejected(&mut self, candidate: usize) -> Result<Option<String>, Error> {
            self.elapsed += self.cost;
            Ok(self.faulty.contains(&candidate).then(|| "element 3 is wrong".to_string()))
        }

        fn time(&mut self, candidate: usize) -> Result<f64, Error> {
            self.elapsed += self.cost;
            self.counts[candidate] += 1;
            let noise = self.random.below(1001) as f64 / 1000.0 - 0.5;
            Ok(self.medians[candidate] * (1.0 + 0.02 * noise))
        }

        fn elapsed(&self) -> Duration {
            self.elapsed
        }

        fn progress(&mut self, _: &str, _: usize, _: f64) {}
    }

    const MEDIANS: [f64; 9] = [2.0, 1.5, 1.2, 0.9, 1.1, 3.0, 2.5, 1.05, 4.0];

    #[test]
    fn the_planted_optimum_is_found_and_confirmed() {
        let mut meter = PlantedMeter::new(&MEDIANS);
        let result = meter.search(4);
        assert_eq!((result.best, result.winner(4)), (3, 3));
        let confirmation = result.confirmation.unwrap();
        assert_eq!(confirmation.difference.verdict, ComparisonVerdict::Faster);
        // The planted ratio is 0.9 / 1.1.
        let [low, high] = confirmation.difference.ci95;
        assert!(low < 0.9 / 1.1 && 0.9 / 1.1 < high, "{low} {high}");
        // 40 quick measurements and 100 confirming ones.
        assert_eq!([meter.counts[3], meter.counts[4]], [140, 140]);
        assert_eq!(meter.counts[8], PRUNED_EVERY, "the slowest is pruned first");
        assert!(matches!(result.candidates[8], CandidateResult::Pruned { measurements: 8, .. }));
        assert!(meter.counts.iter().sum::<usize>() < 9 * 40 + 200, "{:?}", meter.counts);
    }

    #[test]
    fn a_faulty_candidate_is_never_timed() {
        let mut meter = PlantedMeter::new(&MEDIANS);
        meter.faulty = vec![3];
        let result = meter.search(4);
        assert_eq!((result.best, result.winner(4)), (7, 7));
        assert_eq!(meter.counts[3], 0);
        assert_eq!(result.candidates[3], CandidateResult::Rejected { why: "element 3 is wrong".to_string() });
        meter.faulty = vec![4];
        let error = search(&mut meter, &[0, 1], &space(9), 4, &LIMITS).unwrap_err().to_string();
        assert!(error.contains("element 3 is wrong"), "{error}");
    }

    #[test]
    fn equal_candidates_keep_the_incumbent() {
        for incumbent in [0, 1] {
            let result = PlantedMeter::new(&[1.0, 1.0, 1.0001]).search(incumbent);
            assert_eq!(result.winner(incumbent), incumbent);
            if let Some(confirmation) = result.confirmation {
                let verdict = confirmation.difference.verdict;
                assert!(
                    matches!(verdict, ComparisonVerdict::NoSignificantDifference | ComparisonVerdict::BelowLeastChange),
                    "{verdict}"
                );
            }
        }
    }

    /// Searches 200 candidates whose times grow with the distance from candidate 150.
    #[test]
    fn a_large_space_is_explored() {
        let medians: Vec<f64> =
            (0..200).map(|number| 1.0 + (f64::from(number) / 150.0).log2().abs().min(8.0)).collect();
        let mut meter = PlantedMeter::new(&medians);
        let result = meter.search(0);
        let tried = result.candidates.iter().filter(|candidate| **candidate != CandidateResult::NotTried).count();
        assert_eq!(tried, 1 + LIMITS.candidates);
        assert!(medians[result.winner(0)] < 1.2, "{}", result.winner(0));
        let in_order = medians[..=LIMITS.candidates].iter().copied().fold(f64::INFINITY, f64::min);
        assert!(in_order > 3.0, "{in_order}");
    }

    #[test]
    fn the_budget_ends_the_search() {
        // The budget is 60 s: it ends among the first candidates, in the quick round, and in the
        // confirming round.
        for (cost, timed) in [(20_000, false), (1_000, true), (300, true)] {
            let mut meter = PlantedMeter::new(&MEDIANS);
            meter.cost = Duration::from_millis(cost);
            let result = meter.search(4);
            assert!(result.is_budget_spent);
            assert_eq!((result.winner(4), result.confirmation), (4, None));
            assert_eq!(meter.counts[4] > 0, timed);
            // At most one measurement of each candidate exceeds the budget.
            assert!(meter.elapsed <= LIMITS.budget + 9 * meter.cost, "{:?}", meter.elapsed);
        }
    }
}
