//! Shrinking of a failing case to the smallest case that fails in the same way: first the sizes,
//! then the values.
//!
//! A size shrinks by bisection between a value that passes and one that fails. If all sizes from
//! some threshold on fail, the bisection finds this threshold. When an array becomes shorter,
//! values are removed at its end, or else at its beginning. Values become 0, 1 or a power of two:
//! first in whole arrays, then in halves, down to single values.

use super::check::FailedCase;
use super::generate::{FixedDraws, Gen};
use super::{Case, Simple};

/// The maximum number of trials; each trial runs the kernel on all executors.
const TRIALS: usize = 3000;

/// A failing case.
pub(super) struct Failing {
    pub plan: FixedDraws,
    /// The draws that made the case.
    pub drawn: Gen,
    pub failed: FailedCase,
}

/// A search for smaller cases. `draw` makes a case from fixed draws; `run` returns the failure of a
/// case.
pub(super) struct Shrink<D, R> {
    draw: D,
    run: R,
    best: Failing,
    trials: usize,
}

impl<D, R> Shrink<D, R>
where
    D: Fn(FixedDraws) -> (Gen, Case),
    R: FnMut(Case) -> Result<(), Box<FailedCase>>,
{
    /// Returns the smallest case found that fails as `first` does, and the number of cases tried.
    pub fn from(first: Failing, draw: D, run: R) -> (Failing, usize) {
        let mut shrink = Shrink { draw, run, best: first, trials: 0 };
        while shrink.sizes() {}
        for array in 0..shrink.best.drawn.arrays.len() {
            shrink.values(array);
        }
        (shrink.best, shrink.trials)
    }

    /// Returns whether the case with these fixed draws fails in the same way as the first. Keeps
    /// such a case as the best.
    fn fails(&mut self, plan: FixedDraws) -> bool {
        if self.trials >= TRIALS {
            return false;
        }
        self.trials += 1;
        let (drawn, case) = (self.draw)(plan.clone());
        match (self.run)(case) {
            Err(failed) if failed.failure.is_like(&self.best.failed.failure) => {
                self.best = Failing { plan, drawn, failed: *failed };
                true
            }
            _ => false,
        }
    }

    fn size(&self, number: usize) -> Option<usize> {
        self.best.drawn.sizes.get(number).map(|size| size.value)
    }

    /// Tries to make each size smaller; returns whether one became smaller.
    fn sizes(&mut self) -> bool {
        let mut any = false;
        for number in 0..self.best.drawn.sizes.len() {
            let Some(size) = self.best.drawn.sizes.get(number) else { break };
            let (least, before) = (size.least, size.value);
            if before == least {
                continue;
            }
            if !self.fails_with_size(number, least) {
                // The least size passes, and the best case fails.
                let mut passes = least;
                while let Some(fails) = self.size(number).filter(|fails| *fails > passes + 1) {
                    let middle = passes + (fails - passes) / 2;
                    if !self.fails_with_size(number, middle) {
                        passes = middle;
                    }
                }
            }
            any |= self.size(number).is_some_and(|size| size < before);
        }
        any
    }

    /// Returns whether the case still fails with size `number` reduced to `value`. Arrays lose
    /// values at their end, or else at their beginning.
    fn fails_with_size(&mut self, number: usize, value: usize) -> bool {
        let mut plan = self.best.plan.clone();
        plan.sizes = self.best.drawn.sizes.iter().map(|size| size.value).collect();
        plan.sizes[number] = value;
        if self.fails(plan.clone()) {
            return true;
        }
        let before = &self.best.drawn.arrays;
        let now = (self.draw)(plan.clone()).0.arrays;
        plan.arrays.resize_with(before.len(), Default::default);
        let mut moved = false;
        for ((window, before), now) in plan.arrays.iter_mut().zip(before).zip(&now) {
            window.first += before.saturating_sub(*now);
            moved |= now < before;
        }
        moved && self.fails(plan)
    }

    /// Simplifies the values of an array.
    fn values(&mut self, array: usize) {
        let len = self.best.drawn.arrays[array];
        let mut chunk = len;
        while chunk > 0 {
            for first in (0..len).step_by(chunk) {
                let last = (first + chunk).min(len);
                for to in Simple::ALL {
                    let mut plan = self.best.plan.clone();
                    plan.arrays.resize_with(self.best.drawn.arrays.len(), Default::default);
                    let simple = &mut plan.arrays[array].simple;
                    simple.resize(len, None);
                    // Values that are already as simple stay unchanged.
                    let mut changed = false;
                    for value in simple[first..last].iter_mut().filter(|value| value.is_none_or(|before| to < before)) {
                        (*value, changed) = (Some(to), true);
                    }
                    if changed && self.fails(plan) {
                        break;
                    }
                }
            }
            chunk /= 2;
        }
    }
}
