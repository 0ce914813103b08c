//! Numbers known separately for each thread.
//!
//! Values that depend on thread indices and constants alone are computed for each thread of the
//! largest possible block. In a smaller block a thread has the same indices. Other numbers have the
//! form m·U + tₙ in thread n: m a constant, U an opaque number that is uniform or not, and tₙ known
//! for each thread. `grid::index()` is 256·U + n in a block of 256 threads, with U the block's
//! index. So a division by 32 gives 8·U + n / 32, which is uniform across a warp, and a remainder
//! by 32 does not depend on U.

use super::fact::{ALL_LANES, WARPS};
use super::verdict::UniformScope;
use crate::ir::Kernel;
use std::rc::Rc;

/// Number of lanes of a warp.
const LANES: usize = 32;

/// Numbers of the threads of a block.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ThreadNumbers {
    /// One number for all threads.
    Same(u64),
    /// One number per thread, by linear thread index.
    Each(Rc<[u64]>),
}

impl ThreadNumbers {
    /// Returns the thread indices along `axis`.
    pub fn index(kernel: &Kernel, axis: u8) -> ThreadNumbers {
        let [x, y, z] = kernel.block.max_extents();
        let each = (0..z).flat_map(|k| (0..y).flat_map(move |j| (0..x).map(move |i| [i, j, k])));
        ThreadNumbers::of(each.map(|at| u64::from(at[usize::from(axis.min(2))])).collect())
    }

    fn of(each: Vec<u64>) -> ThreadNumbers {
        match each.split_first() {
            Some((first, rest)) if rest.iter().any(|n| n != first) => ThreadNumbers::Each(each.into()),
            Some((first, _)) => ThreadNumbers::Same(*first),
            None => ThreadNumbers::Same(0),
        }
    }

    /// Applies `f` to each number; returns `None` if `f` returns `None` for any number.
    pub fn map(&self, mut f: impl FnMut(u64) -> Option<u64>) -> Option<ThreadNumbers> {
        match self {
            ThreadNumbers::Same(n) => f(*n).map(ThreadNumbers::Same),
            ThreadNumbers::Each(each) => each.iter().map(|n| f(*n)).collect::<Option<_>>().map(ThreadNumbers::of),
        }
    }

    /// Applies `f` to each pair of numbers; returns `None` if `f` returns `None` for any pair.
    pub fn zip(&self, other: &ThreadNumbers, mut f: impl FnMut(u64, u64) -> Option<u64>) -> Option<ThreadNumbers> {
        match (self, other) {
            (a, ThreadNumbers::Same(b)) => a.map(|a| f(a, *b)),
            (ThreadNumbers::Same(a), b) => b.map(|b| f(*a, b)),
            (ThreadNumbers::Each(a), ThreadNumbers::Each(b)) => {
                a.iter().zip(&**b).map(|(a, b)| f(*a, *b)).collect::<Option<_>>().map(ThreadNumbers::of)
            }
        }
    }

    /// Returns whether all threads of the scope have the same number.
    pub fn are_equal_in(&self, scope: UniformScope) -> bool {
        match self {
            ThreadNumbers::Same(_) => true,
            ThreadNumbers::Each(_) if scope != UniformScope::Warp => scope == UniformScope::Lane,
            ThreadNumbers::Each(each) => each.chunks(LANES).all(|warp| warp.iter().all(|n| *n == warp[0])),
        }
    }

    /// Returns the bits of the lane index, and [`WARPS`], that the number does not depend on.
    pub fn independent_lane_bits(&self) -> u8 {
        let each = match self {
            ThreadNumbers::Same(_) => return ALL_LANES | WARPS,
            ThreadNumbers::Each(each) if each.len() % LANES != 0 => return 0,
            ThreadNumbers::Each(each) => each,
        };
        let warps = if each[LANES..] == each[..each.len() - LANES] { WARPS } else { 0 };
        let over = |bit: &u8| (0..each.len()).all(|t| each[t] == each[t ^ usize::from(*bit)]);
        [1, 2, 4, 8, 16].into_iter().filter(over).fold(warps, |merged, bit| merged | bit)
    }

    /// Returns the number that all threads have in common, if there is one.
    pub fn common_number(&self) -> Option<u64> {
        match self {
            ThreadNumbers::Same(n) => Some(*n),
            ThreadNumbers::Each(_) => None,
        }
    }
}

/// Returns the greatest common divisor; of 0 and n it is n.
pub(super) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
