//! When blocks end that a device runs in some order.
//!
//! A block goes to the multiprocessor that has least to do as soon as there is room for it. Where there are fewer than fit, a multiprocessor does less in
//! all, and each of them more; and the longer one has been there, the more it gets, for schedulers prefer the oldest warp. Times are in those of a step over keys
//! where all places are taken. The factors are fitted to what an H200 took for some hundred schedules of 16 heads of 128 elements, with 1024 to 8192 queries, all
//! keys, causal or a tenth of blocks: they tell its time within 3.5 % (root of the mean square).

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What a block's work costs, in steps.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Cost {
    /// Tiles of keys of a step.
    pub step: usize,
    /// Of a step's first tiles alone.
    pub some: f64,
    /// Of what comes before and behind all steps.
    pub begin: f64,
    /// More for a part of a list: what it leaves, and its share in bringing all together.
    pub part: f64,
}

impl Cost {
    /// Of so many tiles of keys, which are part of a list or all.
    pub fn of(self, tiles: usize, part: bool) -> f64 {
        let some = if tiles.is_multiple_of(self.step) { 0.0 } else { self.some };
        (tiles / self.step) as f64 + some + self.begin + if part { self.part } else { 0.0 }
    }
}

/// Where blocks run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Places {
    pub multiprocessors: usize,
    /// What part of its most a multiprocessor does with one block, two, …; it has room for no more than are here.
    pub pace: &'static [f64],
    /// By what part of the way a block's rate is from an equal share to what the multiprocessor does more with it than with the older ones alone.
    pub oldest: f64,
    pub cost: Cost,
}

/// What is less than this is no time, and no work.
const NOTHING: f64 = 1e-6;

/// A moment when a multiprocessor ends a block, the earliest first.
#[derive(PartialEq)]
struct Moment {
    time: f64,
    multiprocessor: usize,
}

impl Eq for Moment {}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Moment) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Moment) -> Ordering {
        other.time.total_cmp(&self.time).then(other.multiprocessor.cmp(&self.multiprocessor))
    }
}

/// Work left of a multiprocessor's blocks at some time, the oldest first.
#[derive(Clone)]
struct Multiprocessor {
    left: Vec<f64>,
    at: f64,
}

impl Places {
    /// Blocks at once.
    pub fn all(&self) -> usize {
        self.multiprocessors * self.pace.len()
    }

    /// Rates of `n` blocks, the oldest first.
    fn rates(&self, n: usize) -> Vec<f64> {
        let (all, pace) = (self.pace.len() as f64, |n: usize| if n == 0 { 0.0 } else { self.pace[n - 1] });
        (0..n)
            .map(|i| all * ((1.0 - self.oldest) * pace(n) / n as f64 + self.oldest * (pace(i + 1) - pace(i))))
            .collect()
    }

    /// When the last of these blocks ends, which begin in their order: or any time from `limit` on, if that is later.
    pub fn ends(&self, mut blocks: impl Iterator<Item = f64>, limit: f64) -> f64 {
        let rates: Vec<_> = (0..=self.pace.len()).map(|n| self.rates(n)).collect();
        let mut all = vec![Multiprocessor { left: Vec::new(), at: 0.0 }; self.multiprocessors];
        for one in (0..self.pace.len()).flat_map(|_| 0..self.multiprocessors) {
            all[one].left.extend(blocks.next());
        }
        let next = |one: &Multiprocessor| {
            let ends = one.left.iter().zip(&rates[one.left.len()]).map(|(left, rate)| one.at + left / rate);
            ends.min_by(f64::total_cmp)
        };
        let moment =
            |(multiprocessor, one): (usize, &Multiprocessor)| Some(Moment { time: next(one)?, multiprocessor });
        let mut moments: BinaryHeap<_> = all.iter().enumerate().filter_map(moment).collect();
        let (mut end, mut now) = (0.0f64, Vec::new());
        while let Some(first) = moments.pop() {
            end = first.time;
            if end >= limit {
                break;
            }
            now.push(first.multiprocessor);
            while let Some(also) = moments.peek().filter(|m| m.time <= end + NOTHING) {
                now.push(also.multiprocessor);
                moments.pop();
            }
            for &i in &now {
                let one = &mut all[i];
                let passed = end - one.at;
                let rates = &rates[one.left.len()];
                one.left.iter_mut().zip(rates).for_each(|(left, rate)| *left -= passed * rate);
                one.left.retain(|left| *left > NOTHING);
                one.at = end;
            }
            // One to each of those that have least, before any gets two.
            for has in 0..self.pace.len() {
                for &i in &now {
                    if all[i].left.len() == has {
                        all[i].left.extend(blocks.next());
                    }
                }
            }
            moments.extend(now.drain(..).filter_map(|i| moment((i, &all[i]))));
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Cost = Cost { step: 1, some: 0.0, begin: 0.0, part: 0.0 };

    fn places(multiprocessors: usize, pace: &'static [f64]) -> Places {
        Places { multiprocessors, pace, oldest: 0.1, cost: FREE }
    }

    fn ends(places: Places, blocks: &[f64]) -> f64 {
        places.ends(blocks.iter().copied(), f64::INFINITY)
    }

    #[test]
    fn nothing_takes_no_time() {
        assert_eq!(ends(places(3, &[0.5, 1.0]), &[]), 0.0);
        assert_eq!(ends(places(3, &[0.5, 1.0]), &[0.0]), 0.0);
    }

    /// One block to a multiprocessor: list scheduling, whose end can be told by hand.
    #[test]
    fn blocks_go_where_there_is_room_first() {
        assert_eq!(ends(places(2, &[1.0]), &[3.0, 2.0, 2.0, 2.0]), 5.0);
        assert_eq!(ends(places(3, &[1.0]), &[3.0, 3.0, 2.0, 2.0, 2.0]), 5.0);
    }

    /// Two of four places' multiprocessors have one block each before any has two.
    #[test]
    fn multiprocessors_fill_evenly() {
        let two = places(2, &[0.5, 1.0]);
        // Alone a block has half of what a multiprocessor does: twice its share of a place.
        assert!((ends(two, &[1.0, 1.0]) - 1.0).abs() < 1e-9);
        assert!((ends(two, &[1.0; 4]) - 1.0).abs() < 0.06);
        // The fifth and sixth begin on different ones when the first are over.
        assert!((ends(two, &[1.0; 6]) - 2.0).abs() < 0.12);
    }

    /// However a multiprocessor's rate is shared, it is all of it: work that keeps every place busy takes as long as there is work.
    #[test]
    fn no_work_is_lost() {
        let (one, blocks) = (places(1, &[0.4, 0.7, 1.0]), [1.0; 300]);
        let time = ends(one, &blocks);
        assert!((100.0..101.0).contains(&time), "{time}");
    }

    #[test]
    fn a_limit_ends_the_search() {
        let two = places(2, &[1.0]);
        assert!(two.ends([1.0; 40].into_iter(), 4.5) >= 4.5);
        assert_eq!(two.ends([1.0; 4].into_iter(), 4.5), 2.0);
    }
}
