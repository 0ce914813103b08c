//! Preemption: a launch switches to another warp although the running warp could continue.
//!
//! Blocks run interleaved. The ready warp with the highest priority runs, of all warps of the
//! resident blocks. At a few chosen *points*, a warp gets a priority below all others. The same
//! happens where a warp polls without result, at once or after some polls. The method is
//! probabilistic concurrency testing (S. Burckhardt, P. Kothari, M. Musuvathi and S. Nagarakatte,
//! *A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs*, 2010). The first
//! priorities are random, and so are the points.
//!
//! A point follows an atomic operation or a fence. Between two such operations, a warp of a kernel
//! without data races cannot observe another warp. So preemption elsewhere reveals no more (M.
//! Musuvathi and S. Qadeer, *Iterative Context Bounding for Systematic Testing of Multithreaded
//! Programs*, 2007). The oracle reports data races themselves in any order.
//!
//! The method has a guarantee. A bug of depth d appears only under d orderings between operations
//! of different warps. Let n warps pass k points in total. One run with d − 1 points then finds the
//! bug with probability 1 / (n · k^(d − 1)) or more. [`Preemption::random`] draws 0 to
//! [`MAX_POINTS`] points, so every depth up to [`MAX_POINTS`] + 1 has a nonzero probability, and
//! greater depths have no guarantee. Most bugs in practice have depth 1 or 2.

use crate::schedule::mixed;
use std::fmt;
use std::str::FromStr;

/// The largest number of points of a schedule.
pub const MAX_POINTS: usize = 3;

/// The largest number of polls after which a warp loses its priority.
const MAX_PATIENCE: u32 = 1 << 11;

/// An interleaving: the first priorities of warps, and the points at which the running warp loses
/// its priority.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Preemption {
    /// The seed of the first priorities; 0 orders blocks and warps by index.
    order: u64,
    /// The points in ascending order, counted from 1 through the whole launch; 0 is none.
    points: [u32; MAX_POINTS],
}

impl Preemption {
    /// Returns the interleaving of a seed for a launch that passes about `length` points.
    pub fn random(seed: u64, length: u64) -> Preemption {
        let mut state = mixed(seed);
        let count = (seed % (MAX_POINTS as u64 + 1)) as usize;
        let mut points = [0; MAX_POINTS];
        for point in &mut points[..count] {
            state = mixed(state);
            *point = (state % length.clamp(1, u32::MAX.into())) as u32 + 1;
        }
        Preemption::at(seed, points)
    }

    /// Returns the interleaving with these points, in any order; 0 is none.
    fn at(order: u64, mut points: [u32; MAX_POINTS]) -> Preemption {
        points.sort_unstable();
        Preemption { order, points }
    }

    /// Returns the points in ascending order.
    fn points(self) -> impl DoubleEndedIterator<Item = u32> {
        self.points.into_iter().filter(|point| *point != 0)
    }

    /// Returns the first priority of warp `warp` of the block that begins as the `block`th; the
    /// smallest number runs first.
    pub(crate) fn priority(self, block: u64, warp: usize) -> u64 {
        let number = block << 10 | warp as u64;
        // The highest bit stays 0: it marks warps that have lost their first priority.
        if self.order == 0 { number } else { mixed(self.order ^ mixed(number)) >> 1 }
    }

    /// Returns the number of atomic operations without effect after which a polling warp loses its
    /// priority. A warp that polls a limited number of times reaches its limit only under a
    /// schedule that lets it poll so often. Half of the seeds let a warp poll more than once. A
    /// quarter of the seeds let it poll 2^5 to 2^11 times, with the same share for each power of
    /// two. After that number a warp polls once in each of its time slices. A time slice of the PTX
    /// interpreter ends earlier, after some hundred polls.
    pub(crate) fn patience(self) -> u32 {
        let draw = mixed(!self.order);
        match draw % 4 {
            _ if self.order == 0 => 1,
            0 | 1 => 1,
            2 => 4,
            _ => 1 << (5 + (draw >> 2) % (u64::from(MAX_PATIENCE.ilog2()) - 4)),
        }
    }

    /// Returns a simpler interleaving for which `fails` still holds. Points and the random order
    /// are removed one by one, as long as `fails` holds. `fails` must hold for `self`.
    pub fn shrunk(self, mut fails: impl FnMut(Preemption) -> bool) -> Preemption {
        let mut best = self;
        loop {
            let ordered = (best.order != 0).then_some(Preemption { order: 0, ..best });
            let fewer = best
                .points()
                .map(|gone| Preemption::at(best.order, best.points.map(|point| if point == gone { 0 } else { point })));
            let Some(simpler) = fewer.chain(ordered).find(|simpler| fails(*simpler)) else { return best };
            best = simpler;
        }
    }
}

/// Prints the word that parses to this interleaving: the seed and the points, such as `7@12,40`.
impl fmt::Display for Preemption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.order)?;
        for (i, point) in self.points().enumerate() {
            write!(f, "{}{point}", if i == 0 { '@' } else { ',' })?;
        }
        Ok(())
    }
}

impl FromStr for Preemption {
    type Err = ();

    fn from_str(word: &str) -> Result<Preemption, ()> {
        let (order, rest) = word.split_once('@').map_or((word, None), |(order, rest)| (order, Some(rest)));
        let mut points = [0; MAX_POINTS];
        let mut places = points.iter_mut();
        for point in rest.into_iter().flat_map(|rest| rest.split(',')) {
            let point = point.parse().ok().filter(|point| *point > 0).ok_or(())?;
            *places.next().ok_or(())? = point;
        }
        Ok(Preemption::at(order.parse().map_err(|_| ())?, points))
    }
}

/// The points that a launch has passed, and the next point at which the launch preempts the running
/// warp.
#[derive(Clone, Copy, Debug)]
pub struct Points {
    /// The number of points passed.
    pub passed: u64,
    /// The number of atomic operations without effect after which a polling warp yields.
    pub patience: u32,
    preemption: Preemption,
    /// The next point at which to preempt the running warp; 0 is none.
    next: u64,
}

impl Default for Points {
    fn default() -> Points {
        Points::new(Preemption::default())
    }
}

impl Points {
    /// Returns the points of a launch that has passed none.
    pub fn new(preemption: Preemption) -> Points {
        let mut points = Points { passed: 0, patience: preemption.patience(), preemption, next: 0 };
        points.advance();
        points
    }

    /// Passes a point. Returns whether the running warp is preempted here.
    #[inline(always)]
    pub fn pass(&mut self) -> bool {
        self.passed += 1;
        let leaves = self.passed == self.next;
        if leaves {
            self.advance();
        }
        leaves
    }

    #[cold]
    fn advance(&mut self) {
        let later = self.preemption.points().map(u64::from).find(|point| *point > self.passed);
        self.next = later.unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleavings_round_trip_through_text() {
        for seed in 0..40 {
            let one = Preemption::random(seed, 100);
            assert_eq!(one.to_string().parse(), Ok(one));
            assert_eq!(one.points().count(), seed as usize % (MAX_POINTS + 1));
            assert!(one.points().all(|point| (1..=100).contains(&point)));
        }
        assert_eq!(Preemption::at(7, [40, 0, 12]).to_string(), "7@12,40");
        for wrong in ["", "@", "7@", "7@0", "7@1,2,3,4", "x", "7@a"] {
            assert!(wrong.parse::<Preemption>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn seeds_have_all_patiences() {
        let all: Vec<u32> = (1..=1000).map(|seed| Preemption::random(seed, 100).patience()).collect();
        let count = |least: u32| all.iter().filter(|patience| **patience >= least).count();
        assert!((400..600).contains(&count(2)), "{}", count(2));
        assert!((200..300).contains(&count(5)), "{}", count(5));
        assert!((20..60).contains(&count(MAX_PATIENCE)), "{}", count(MAX_PATIENCE));
        assert!(all.iter().all(|patience| *patience <= MAX_PATIENCE));
        assert_eq!(Preemption::default().patience(), 1);
    }

    #[test]
    fn points_leave_where_they_are() {
        let mut points = Points::new(Preemption::at(0, [5, 2, 0]));
        let left: Vec<u64> = (1..=9).filter(|_| points.pass()).collect();
        assert_eq!(left, [2, 5]);
        assert_eq!(points.passed, 9);
        let mut none = Points::default();
        assert!((0..9).all(|_| !none.pass()));
    }

    #[test]
    fn shrinking_keeps_what_fails() {
        let needs = |point| move |one: Preemption| one.points().any(|p| p == point);
        let whole = Preemption::at(9, [3, 8, 20]);
        assert_eq!(whole.shrunk(needs(8)), Preemption::at(0, [8, 0, 0]));
        assert_eq!(whole.shrunk(|one| one == whole), whole);
        assert_eq!(whole.shrunk(|one| one.order == 9), Preemption::at(9, [0; 3]));
    }
}
