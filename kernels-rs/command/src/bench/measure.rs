//! Timing of contenders in alternation, so that disturbances of the machine affect all of them.

use serde::Serialize;
use std::time::Duration;

/// Timed work: it runs once and returns its duration.
pub(super) struct Contender<'a> {
    pub name: &'static str,
    pub run: Box<dyn FnMut() -> Result<Duration, super::Error> + 'a>,
    /// Whether the duration is an estimate, which is always the same.
    pub estimated: bool,
}

impl<'a> Contender<'a> {
    pub fn new(name: &'static str, run: impl FnMut() -> Result<Duration, super::Error> + 'a) -> Contender<'a> {
        Contender { name, run: Box::new(run), estimated: false }
    }

    /// Creates a contender whose duration is an estimate.
    pub fn estimated(name: &'static str, run: impl FnMut() -> Result<Duration, super::Error> + 'a) -> Contender<'a> {
        Contender { estimated: true, ..Contender::new(name, run) }
    }
}

/// Summary of a contender's times.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Summary {
    pub median_ms: f64,
    /// 95 % confidence interval of the true median, in milliseconds.
    pub ci95_ms: [f64; 2],
}

/// Number of warm-up rounds: caches, clocks and pools settle.
const WARM_UP: usize = 5;

/// Runs each contender once a round and returns their summaries in order.
pub(super) fn in_turns(
    contenders: &mut [Contender<'_>],
    rounds: usize,
    mut after: impl FnMut(),
) -> Result<Vec<Summary>, super::Error> {
    let mut times = vec![Vec::with_capacity(rounds); contenders.len()];
    for round in 0..WARM_UP + rounds {
        for (contender, times) in contenders.iter_mut().zip(&mut times) {
            let time = (contender.run)()?;
            if round >= WARM_UP {
                times.push(time.as_secs_f64() * 1e3);
            }
        }
        after();
    }
    Ok(times.into_iter().map(Summary::of).collect())
}

impl Summary {
    /// Computes the median and the 95 % confidence interval, whatever the distribution of the
    /// times. The bounds are order statistics: of n sorted times, those at n/2 ± 0.98 √n (the
    /// normal approximation of the binomial distribution).
    pub fn of(mut times: Vec<f64>) -> Summary {
        times.sort_by(f64::total_cmp);
        let n = times.len();
        let Some(last) = n.checked_sub(1) else { return Summary { median_ms: 0.0, ci95_ms: [0.0; 2] } };
        let median_ms = (times[last / 2] + times[n / 2]) / 2.0;
        let reach = 0.98 * (n as f64).sqrt();
        let low = (n as f64 / 2.0 - reach).floor().max(0.0) as usize;
        let high = ((n as f64 / 2.0 + reach).ceil() as usize).min(last);
        Summary { median_ms, ci95_ms: [times[low], times[high]] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_its_interval() {
        let summary = Summary::of((1..=100).rev().map(f64::from).collect());
        assert_eq!(summary, Summary { median_ms: 50.5, ci95_ms: [41.0, 61.0] });
        assert_eq!(Summary::of(vec![7.0]), Summary { median_ms: 7.0, ci95_ms: [7.0, 7.0] });
        assert_eq!(Summary::of(vec![]).median_ms, 0.0);
    }

    #[test]
    fn contenders_alternate() {
        let order = std::cell::RefCell::new(String::new());
        let contender = |name: &'static str| {
            let order = &order;
            Contender::new(name, move || {
                order.borrow_mut().push_str(name);
                Ok(Duration::from_millis(name.len() as u64))
            })
        };
        let mut contenders = [contender("a"), contender("bb")];
        let summaries = in_turns(&mut contenders, 3, || ()).unwrap();
        assert_eq!(summaries.iter().map(|s| s.median_ms).collect::<Vec<_>>(), [1.0, 2.0]);
        assert_eq!(*order.borrow(), "abb".repeat(WARM_UP + 3));
    }
}
