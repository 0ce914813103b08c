//! A simulation of a device that computes the end times of blocks.
//!
//! A block starts on the least loaded multiprocessor as soon as it has a free slot. A
//! multiprocessor with fewer blocks than slots has a lower total rate, but each of its blocks runs
//! faster. Older blocks run faster than younger ones, because schedulers prefer the oldest warp.
//! The unit of time is a step over keys while all slots are occupied. The factors are fitted to
//! measured times of some hundred schedules on an H200: 16 heads of 128 elements, with 1024 to 8192
//! queries; no mask, a causal mask, or a mask of a tenth of the blocks. The factors predict these
//! times within 3.5 % (root mean square).

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The cost of a block's work, in steps.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct BlockCost {
    /// Tiles of keys of a step.
    pub step: usize,
    /// The cost of an incomplete step.
    pub partial_step: f64,
    /// The cost of the code before and after all steps.
    pub begin: f64,
    /// The additional cost of a part of a list: storing partial results, and its share of the
    /// reduction.
    pub part: f64,
}

impl BlockCost {
    /// Returns the cost of `tiles` tiles of keys, which are a part of a list or a whole list.
    pub fn of(self, tiles: usize, part: bool) -> f64 {
        let some = if tiles.is_multiple_of(self.step) { 0.0 } else { self.partial_step };
        (tiles / self.step) as f64 + some + self.begin + if part { self.part } else { 0.0 }
    }
}

/// The slots that blocks run in.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct BlockSlots {
    pub multiprocessors: usize,
    /// The relative rate of a multiprocessor with one block, two, and so on. The length is the
    /// maximum number of blocks.
    pub pace: &'static [f64],
    /// How strongly older blocks are preferred. At 0 all blocks have equal rates. At 1 a block only
    /// gets the rate that the multiprocessor gains over the older blocks alone.
    pub age_preference: f64,
    pub cost: BlockCost,
}

/// Durations and amounts of work below this count as 0.
const MIN_WORK: f64 = 1e-6;

/// An event at which a multiprocessor ends a block, ordered earliest first.
#[derive(PartialEq)]
struct BlockEnd {
    time: f64,
    multiprocessor: usize,
}

impl Eq for BlockEnd {}

impl PartialOrd for BlockEnd {
    fn partial_cmp(&self, other: &BlockEnd) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BlockEnd {
    fn cmp(&self, other: &BlockEnd) -> Ordering {
        other.time.total_cmp(&self.time).then(other.multiprocessor.cmp(&self.multiprocessor))
    }
}

/// The remaining work of a multiprocessor's blocks at a time, oldest first.
#[derive(Clone)]
struct Multiprocessor {
    left: Vec<f64>,
    at: f64,
}

impl BlockSlots {
    /// Returns the maximum number of concurrent blocks.
    pub fn all(&self) -> usize {
        self.multiprocessors * self.pace.len()
    }

    /// Returns the rates of `n` blocks, oldest first.
    fn rates(&self, n: usize) -> Vec<f64> {
        let (all, pace) = (self.pace.len() as f64, |n: usize| if n == 0 { 0.0 } else { self.pace[n - 1] });
        (0..n)
            .map(|i| {
                all * ((1.0 - self.age_preference) * pace(n) / n as f64 + self.age_preference * (pace(i + 1) - pace(i)))
            })
            .collect()
    }

    /// Returns the end of the last block, where blocks begin in order. If this end is at or after
    /// `limit`, any time from `limit` on may be returned.
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
            |(multiprocessor, one): (usize, &Multiprocessor)| Some(BlockEnd { time: next(one)?, multiprocessor });
        let mut ends: BinaryHeap<_> = all.iter().enumerate().filter_map(moment).collect();
        let (mut end, mut now) = (0.0f64, Vec::new());
        while let Some(first) = ends.pop() {
            end = first.time;
            if end >= limit {
                break;
            }
            now.push(first.multiprocessor);
            while let Some(also) = ends.peek().filter(|m| m.time <= end + MIN_WORK) {
                now.push(also.multiprocessor);
                ends.pop();
            }
            for &i in &now {
                let one = &mut all[i];
                let passed = end - one.at;
                let rates = &rates[one.left.len()];
                one.left.iter_mut().zip(rates).for_each(|(left, rate)| *left -= passed * rate);
                one.left.retain(|left| *left > MIN_WORK);
                one.at = end;
            }
            // Give each of the least loaded multiprocessors one block before any gets two.
            for has in 0..self.pace.len() {
                for &i in &now {
                    if all[i].left.len() == has {
                        all[i].left.extend(blocks.next());
                    }
                }
            }
            ends.extend(now.drain(..).filter_map(|i| moment((i, &all[i]))));
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: BlockCost = BlockCost { step: 1, partial_step: 0.0, begin: 0.0, part: 0.0 };

    fn places(multiprocessors: usize, pace: &'static [f64]) -> BlockSlots {
        BlockSlots { multiprocessors, pace, age_preference: 0.1, cost: FREE }
    }

    fn ends(places: BlockSlots, blocks: &[f64]) -> f64 {
        places.ends(blocks.iter().copied(), f64::INFINITY)
    }

    #[test]
    fn an_empty_schedule_takes_no_time() {
        assert_eq!(ends(places(3, &[0.5, 1.0]), &[]), 0.0);
        assert_eq!(ends(places(3, &[0.5, 1.0]), &[0.0]), 0.0);
    }

    /// Checks list scheduling, with one block per multiprocessor, whose end can be computed by
    /// hand.
    #[test]
    fn blocks_start_on_the_first_free_slot() {
        assert_eq!(ends(places(2, &[1.0]), &[3.0, 2.0, 2.0, 2.0]), 5.0);
        assert_eq!(ends(places(3, &[1.0]), &[3.0, 3.0, 2.0, 2.0, 2.0]), 5.0);
    }

    /// Checks that two multiprocessors with four slots have one block each before any has two.
    #[test]
    fn multiprocessors_fill_evenly() {
        let two = places(2, &[0.5, 1.0]);
        // A single block has half of a multiprocessor's rate: twice its share of a slot.
        assert!((ends(two, &[1.0, 1.0]) - 1.0).abs() < 1e-9);
        assert!((ends(two, &[1.0; 4]) - 1.0).abs() < 0.06);
        // The fifth and sixth begin on different multiprocessors when the first end.
        assert!((ends(two, &[1.0; 6]) - 2.0).abs() < 0.12);
    }

    /// Checks that the rates of a multiprocessor's blocks add up to its full rate, however they are
    /// divided. Work that keeps every slot busy takes as long as the work divided by the rate.
    #[test]
    fn rates_add_up_to_the_full_rate() {
        let (one, blocks) = (places(1, &[0.4, 0.7, 1.0]), [1.0; 300]);
        let time = ends(one, &blocks);
        assert!((100.0..101.0).contains(&time), "{time}");
    }

    #[test]
    fn a_limit_ends_the_simulation() {
        let two = places(2, &[1.0]);
        assert!(two.ends([1.0; 40].into_iter(), 4.5) >= 4.5);
        assert_eq!(two.ends([1.0; 4].into_iter(), 4.5), 2.0);
    }
}
