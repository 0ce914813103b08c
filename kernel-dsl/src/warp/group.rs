//! Groups of neighboring lanes.

use super::LaneNumber;
use super::emulate::{self, is_width};
use crate::element::DeviceCopy;
use crate::host::context::context;

/// Returns the group of `W` neighboring lanes that contains this lane. `W` is 2, 4, 8, 16 or 32,
/// and the first lane is a multiple of `W`.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// # fn of_a_thread(x: View<f32, 2>) {
/// let row = warp::group::<8>();                 // four rows a warp
/// let total = row.sum(x[(row.index(), row.lane())]);
/// # }
/// ```
pub fn group<const W: usize>() -> Group<W> {
    const { assert!(is_width(W), "a group must have 2, 4, 8, 16 or 32 lanes") }
    Group(())
}

/// `W` neighboring lanes of a warp, with the operations of a warp; [`group`] makes it. A device
/// function takes one as `warp::Group<8>` or `warp::Group<W>`.
///
/// One instruction serves all groups of a warp. As with the operations of the warp, all 32 lanes
/// must be at the same call, including lanes whose group has no work.
#[derive(Clone, Copy, Debug)]
pub struct Group<const W: usize>(());

impl<const W: usize> Group<W> {
    /// Returns the index of this thread in its group, 0 to W − 1: `thread::index() % W`.
    #[track_caller]
    pub fn lane(self) -> usize {
        context("Group::lane").index % W
    }

    /// Returns the index of this group in its block: `thread::index() / W`. Uniform for the lanes
    /// of the group.
    #[track_caller]
    pub fn index(self) -> usize {
        context("Group::index").index / W
    }

    /// Sums the group's `x` in all its lanes: a butterfly, widest step first. In PTX: log₂ W times
    /// `shfl.sync.bfly` and `add` (two shuffles each for 64-bit types).
    #[track_caller]
    pub fn sum<T: LaneNumber>(self, x: T) -> T {
        emulate::butterfly("Group::sum", x, W, T::sum)
    }

    /// Returns the largest `x` of the group; for floats as [`warp::max`](super::max).
    #[track_caller]
    pub fn max<T: LaneNumber>(self, x: T) -> T {
        emulate::butterfly("Group::max", x, W, T::larger)
    }

    /// Returns the smallest `x` of the group; for floats as [`warp::min`](super::min).
    #[track_caller]
    pub fn min<T: LaneNumber>(self, x: T) -> T {
        emulate::butterfly("Group::min", x, W, T::smaller)
    }

    /// Combines the group's values pairwise, as [`warp::reduce`](super::reduce): log₂ W steps.
    #[track_caller]
    pub fn reduce<T: DeviceCopy, F: Fn(T, T) -> T>(self, x: T, combine: F) -> T {
        emulate::reduce("Group::reduce", x, W, &combine)
    }

    /// Combines the values of the group's lanes up to this one, as [`warp::scan`](super::scan):
    /// log₂ W steps.
    #[track_caller]
    pub fn scan<T: DeviceCopy, F: Fn(T, T) -> T>(self, x: T, combine: F) -> T {
        emulate::scan("Group::scan", x, W, W, &combine)
    }

    /// Combines the values of the group's lanes before this one, as
    /// [`warp::exclusive_scan`](super::exclusive_scan). The first lane gets `identity`.
    #[track_caller]
    pub fn exclusive_scan<T: DeviceCopy, F: Fn(T, T) -> T>(self, x: T, identity: T, combine: F) -> T {
        emulate::exclusive_scan("Group::exclusive_scan", x, identity, W, &combine)
    }

    /// Returns `x` of the group's lane `lane` mod W. Each lane may name another one. In PTX:
    /// `shfl.sync.idx`.
    #[track_caller]
    pub fn shuffle<T: DeviceCopy>(self, x: T, lane: usize) -> T {
        emulate::shuffle("Group::shuffle", x, lane, W)
    }

    /// Returns `x` of the lane whose index in the group is this lane's XOR `mask`. The oracle
    /// reports a `mask` of W or more (`shuffle-selector`). In PTX: `shfl.sync.bfly`.
    #[track_caller]
    pub fn shuffle_xor<T: DeviceCopy>(self, x: T, mask: usize) -> T {
        emulate::shuffle_xor("Group::shuffle_xor", x, mask, W)
    }

    /// Returns `x` of the lane `by` below in the group, or `None` if the group has no such lane. In
    /// PTX: `shfl.sync.up`, and a comparison of the lane where the program tests the option.
    #[track_caller]
    pub fn shuffle_up<T: DeviceCopy>(self, x: T, by: usize) -> Option<T> {
        emulate::shuffle_up("Group::shuffle_up", x, by, W)
    }

    /// Returns `x` of the lane `by` above in the group, or `None` if the group has no such lane. In
    /// PTX: `shfl.sync.down`, and a comparison of the lane where the program tests the option.
    #[track_caller]
    pub fn shuffle_down<T: DeviceCopy>(self, x: T, by: usize) -> Option<T> {
        emulate::shuffle_down("Group::shuffle_down", x, by, W)
    }

    /// Returns `x` of the group's lane `from`. All lanes of the group must pass the same `from`,
    /// which is less than W. The compiler rejects a larger constant, and the oracle reports others
    /// (`shuffle-selector`). In PTX: `shfl.sync.idx`.
    ///
    /// # Panics
    /// On the host, if `from` is W or more.
    #[track_caller]
    pub fn broadcast<T: DeviceCopy>(self, x: T, from: usize) -> T {
        emulate::broadcast("Group::broadcast", x, from, W)
    }

    /// Returns the group's `p`, lane l in bit l; bits from W on are 0. In PTX:
    /// `vote.sync.ballot.b32`, and a shift and a mask for less than a warp.
    #[track_caller]
    pub fn ballot(self, p: bool) -> u32 {
        emulate::ballot("Group::ballot", p, W)
    }

    /// Returns whether `p` holds in all lanes of the group. In PTX: a ballot and a comparison; for
    /// a warp `vote.sync.all.pred`.
    #[track_caller]
    pub fn all(self, p: bool) -> bool {
        emulate::ballot("Group::all", !p, W) == 0
    }

    /// Returns whether `p` holds in any lane of the group. In PTX: a ballot and a comparison; for a
    /// warp `vote.sync.any.pred`.
    #[track_caller]
    pub fn any(self, p: bool) -> bool {
        emulate::ballot("Group::any", p, W) != 0
    }
}
