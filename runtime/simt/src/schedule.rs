//! The order in which an interpreter runs blocks, warps and lanes that a launch leaves unordered.
//!
//! A device may run blocks, warps of a block between two barriers, and lanes of an atomic operation
//! on one element in any order. A kernel whose result depends on the order is nondeterministic: run
//! it in two orders and compare.

use crate::{LANES, Preemption, lanes_of};
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// An order of blocks, of the warps of each block, and of lanes in one atomic operation.
///
/// A schedule is parsed from and serialized as a word: `in-order`, `reversed`, `seeded:7`,
/// `preempted:7@12,40`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Schedule {
    /// Ascending index, x fastest.
    #[default]
    InOrder,
    /// Descending index.
    Reversed,
    /// A pseudorandom order from a seed; warps have a different one after each barrier.
    Seeded(u64),
    /// Several blocks at once, whose warps are preempted where they communicate
    /// ([`preemption`](crate::preemption)). Blocks begin by ascending index.
    Preempted(Preemption),
}

/// The error for a word that names no order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownOrder(String);

impl Schedule {
    /// Returns the word that parses to this schedule.
    pub fn word(self) -> String {
        match self {
            Schedule::InOrder => "in-order".to_string(),
            Schedule::Reversed => "reversed".to_string(),
            Schedule::Seeded(seed) => format!("seeded:{seed}"),
            Schedule::Preempted(preemption) => format!("preempted:{preemption}"),
        }
    }

    /// Returns the `n`th of `count` blocks to run.
    pub fn block(self, n: u64, count: u64) -> u64 {
        match self {
            Schedule::InOrder | Schedule::Preempted(_) => n,
            Schedule::Reversed => count - 1 - n,
            Schedule::Seeded(seed) => {
                // n ↦ a·n + b is one-to-one modulo the count if `a` and the count are coprime.
                let mut factor = mixed(seed) % count;
                while gcd(factor, count) != 1 {
                    factor += 1;
                }
                let start = mixed(seed ^ 1) % count;
                ((u128::from(factor) * u128::from(n) + u128::from(start)) % u128::from(count)) as u64
            }
        }
    }

    /// Fills `order` with the order in which the warps of a block run. Each interval between two
    /// barriers has its own order; `phase` is the interval's number in the launch.
    pub fn warps(self, phase: u64, order: &mut [usize]) {
        order.iter_mut().enumerate().for_each(|(n, warp)| *warp = n);
        self.arrange(phase, order);
    }

    /// Permutes ascending indices; each `salt` gives a different permutation.
    fn arrange(self, salt: u64, all: &mut [usize]) {
        match self {
            Schedule::InOrder | Schedule::Preempted(_) => {}
            Schedule::Reversed => all.reverse(),
            Schedule::Seeded(seed) => shuffle(all, mixed(seed).wrapping_add(salt)),
        }
    }

    /// Returns the lanes of `mask` in the order of an atomic operation.
    #[inline]
    pub fn lanes(self, mask: u32) -> impl Iterator<Item = usize> {
        let mut all = [0; LANES];
        let mut count = 0;
        for lane in lanes_of(mask) {
            all[count] = lane;
            count += 1;
        }
        self.arrange(0, &mut all[..count]);
        all.into_iter().take(count)
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Schedule::InOrder => f.write_str("in order"),
            Schedule::Reversed => f.write_str("in reversed order"),
            Schedule::Seeded(seed) => write!(f, "in the order of seed {seed}"),
            Schedule::Preempted(preemption) => write!(f, "preempted by {preemption}"),
        }
    }
}

impl FromStr for Schedule {
    type Err = UnknownOrder;

    fn from_str(word: &str) -> Result<Schedule, UnknownOrder> {
        let (kind, rest) = word.split_once(':').unwrap_or((word, ""));
        let schedule = match kind {
            "in-order" | "reversed" if kind != word => None,
            "in-order" => Some(Schedule::InOrder),
            "reversed" => Some(Schedule::Reversed),
            "seeded" => rest.parse().ok().map(Schedule::Seeded),
            "preempted" => rest.parse().ok().map(Schedule::Preempted),
            _ => None,
        };
        schedule.ok_or_else(|| UnknownOrder(word.to_string()))
    }
}

impl Serialize for Schedule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.word())
    }
}

impl fmt::Display for UnknownOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown order `{}`: expected in-order, reversed, seeded:N with a number, such as seeded:7, or \
             preempted:N@POINTS, such as preempted:7@12,40",
            self.0
        )
    }
}

impl std::error::Error for UnknownOrder {}

/// Shuffles a slice by the algorithm of Fisher and Yates.
fn shuffle(all: &mut [usize], mut state: u64) {
    for i in (1..all.len()).rev() {
        state = mixed(state);
        all.swap(i, (state % (i as u64 + 1)) as usize);
    }
}

/// Returns the next state of SplitMix64, mixed (Steele, Lea and Flood, *Fast Splittable
/// Pseudorandom Number Generators*, 2014).
pub(crate) fn mixed(state: u64) -> u64 {
    let z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_round_trip_through_text() {
        let preempted = Schedule::Preempted(Preemption::random(7, 100));
        for schedule in
            [Schedule::InOrder, Schedule::Reversed, Schedule::Seeded(0), Schedule::Seeded(u64::MAX), preempted]
        {
            let word = serde_json::to_value(schedule).unwrap();
            assert_eq!(word.as_str().unwrap().parse(), Ok(schedule));
        }
        for wrong in ["", "seeded", "seeded:", "seeded:-1", "Reversed", "7", "reversed:", "preempted:"] {
            assert!(wrong.parse::<Schedule>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_block_warp_and_lane_runs_once() {
        for schedule in [Schedule::InOrder, Schedule::Reversed, Schedule::Seeded(0), Schedule::Seeded(77)] {
            for count in [1u64, 2, 6, 30, 97] {
                let mut blocks: Vec<_> = (0..count).map(|n| schedule.block(n, count)).collect();
                blocks.sort_unstable();
                assert_eq!(blocks, (0..count).collect::<Vec<_>>(), "{schedule} of {count} blocks");
                let mut warps = vec![0; count as usize];
                schedule.warps(3, &mut warps);
                warps.sort_unstable();
                assert_eq!(warps, (0..count as usize).collect::<Vec<_>>(), "{schedule} of {count} warps");
            }
            let lanes = schedule.lanes(0x8000_0415).fold(0u32, |mask, lane| mask | 1 << lane);
            assert_eq!(lanes, 0x8000_0415);
        }
        let [mut before, mut after] = [[0; 32]; 2];
        Schedule::Seeded(1).warps(0, &mut before);
        Schedule::Seeded(1).warps(1, &mut after);
        assert_ne!(before, after, "another order after a barrier");
    }
}
