//! Timing of contenders in alternation, so that disturbances of the machine affect all of them.

use std::time::Duration;

/// Timed work, a function that runs once and returns its duration. Suites read all fields.
#[cfg_attr(not(feature = "library"), expect(dead_code))]
pub(crate) struct Contender<'a> {
    pub name: &'static str,
    pub run: Box<dyn FnMut() -> Result<Duration, crate::error::Error> + 'a>,
    /// Whether the duration is an estimate, which is always the same.
    pub estimated: bool,
}

impl<'a> Contender<'a> {
    pub fn new(name: &'static str, run: impl FnMut() -> Result<Duration, crate::error::Error> + 'a) -> Contender<'a> {
        Contender { name, run: Box::new(run), estimated: false }
    }

    /// Creates a contender whose duration is an estimate.
    pub fn estimated(
        name: &'static str,
        run: impl FnMut() -> Result<Duration, crate::error::Error> + 'a,
    ) -> Contender<'a> {
        Contender { estimated: true, ..Contender::new(name, run) }
    }
}

/// Number of warm-up rounds: caches, clocks and pools settle.
const WARM_UP: usize = 5;

/// Runs each contender once a round and returns their times in milliseconds, in order.
pub(super) fn in_turns(
    contenders: &mut [Contender<'_>],
    rounds: usize,
    mut after: impl FnMut(),
) -> Result<Vec<Vec<f64>>, crate::error::Error> {
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
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let times = in_turns(&mut contenders, 3, || ()).unwrap();
        assert_eq!(times, [[1.0; 3], [2.0; 3]]);
        assert_eq!(*order.borrow(), "abb".repeat(WARM_UP + 3));
    }
}
