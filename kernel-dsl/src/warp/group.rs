//! Neighbouring lanes that work together.

use super::LaneNumber;
use super::emulate::{self, is_width};
use crate::element::DeviceCopy;
use crate::host::context::context;

/// The group of `W` neighbouring lanes that this lane is in: 2, 4, 8, 16 or 32 of them, the first a multiple of `W`.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// # fn of_a_thread(x: View<f32, 2>) {
/// let row = warp::group::<8>();                 // four rows a warp
/// let total = row.sum(x[(row.index(), row.lane())]);
/// # }
/// ```
pub fn group<const W: usize>() -> Group<W> {
    const { assert!(is_width(W), "a group has 2, 4, 8, 16 or 32 lanes of a warp") }
    Group(())
}

/// `W` neighbouring lanes of a warp, which can hand each other values as the lanes of the warp can; made by [`group`].
/// A device function takes one as `warp::Group<8>`, or `warp::Group<W>`.
///
/// The operations of all groups of a warp are one instruction: as with those of the warp, all 32 lanes must be at the
/// same call, those too whose group has nothing to do.
#[derive(Clone, Copy, Debug)]
pub struct Group<const W: usize>(());

impl<const W: usize> Group<W> {
    /// Index of this thread in its group, 0 to W − 1: `thread::index() % W`.
    #[track_caller]
    pub fn lane(self) -> usize {
        context("Group::lane").index % W
    }

    /// Index of this group in its block: `thread::index() / W`. The same for all lanes of the group.
    #[track_caller]
    pub fn index(self) -> usize {
        context("Group::index").index / W
    }

    /// The sum of the group's `x`, for all its lanes: a butterfly, widest first. In PTX log₂ W times `shfl.sync.bfly`
    /// and `add` (two shuffles each for 64-bit types).
    #[track_caller]
    pub fn sum<T: LaneNumber>(self, x: T) -> T {
        emulate::butterfly("Group::sum", x, W, T::sum)
    }

    /// The largest of the group's `x`; of floats as [`warp::max`](super::max).
    #[track_caller]
    pub fn max<T: LaneNumber>(self, x: T) -> T {
        emulate::butterfly("Group::max", x, W, T::larger)
    }

    /// The smallest of the group's `x`; of floats as [`warp::min`](super::min).
    #[track_caller]
    pub fn min<T: LaneNumber>(self, x: T) -> T {
        emulate::butterfly("Group::min", x, W, T::smaller)
    }

    /// The group's values combined two by two, as [`warp::reduce`](super::reduce): log₂ W steps.
    #[track_caller]
    pub fn reduce<T: DeviceCopy, F: Fn(T, T) -> T>(self, x: T, combine: F) -> T {
        emulate::reduce("Group::reduce", x, W, &combine)
    }

    /// The values of the group's lanes up to this one combined, as [`warp::scan`](super::scan): log₂ W steps.
    #[track_caller]
    pub fn scan<T: DeviceCopy, F: Fn(T, T) -> T>(self, x: T, combine: F) -> T {
        emulate::scan("Group::scan", x, W, W, &combine)
    }

    /// The values of the group's lanes before this one combined, as [`warp::exclusive_scan`](super::exclusive_scan);
    /// `identity` for its first.
    #[track_caller]
    pub fn exclusive_scan<T: DeviceCopy, F: Fn(T, T) -> T>(self, x: T, identity: T, combine: F) -> T {
        emulate::exclusive_scan("Group::exclusive_scan", x, identity, W, &combine)
    }

    /// The `x` of the group's lane `lane` mod W. Lanes may name different ones. In PTX `shfl.sync.idx`.
    #[track_caller]
    pub fn shuffle<T: DeviceCopy>(self, x: T, lane: usize) -> T {
        emulate::shuffle("Group::shuffle", x, lane, W)
    }

    /// The `x` of the lane whose index in the group is this lane's XOR `mask`; `mask` < W. In PTX `shfl.sync.bfly`.
    #[track_caller]
    pub fn shuffle_xor<T: DeviceCopy>(self, x: T, mask: usize) -> T {
        emulate::shuffle_xor("Group::shuffle_xor", x, mask, W)
    }

    /// The `x` of the lane `by` below in the group; `None` for those that have none. In PTX `shfl.sync.up`, and a compare of
    /// the lane where the program asks.
    #[track_caller]
    pub fn shuffle_up<T: DeviceCopy>(self, x: T, by: usize) -> Option<T> {
        emulate::shuffle_up("Group::shuffle_up", x, by, W)
    }

    /// The `x` of the lane `by` above in the group; `None` for those that have none. In PTX `shfl.sync.down`, and a compare
    /// of the lane where the program asks.
    #[track_caller]
    pub fn shuffle_down<T: DeviceCopy>(self, x: T, by: usize) -> Option<T> {
        emulate::shuffle_down("Group::shuffle_down", x, by, W)
    }

    /// The `x` of the group's lane `from` mod W, for all its lanes: they name the same one. In PTX `shfl.sync.idx`.
    #[track_caller]
    pub fn broadcast<T: DeviceCopy>(self, x: T, from: usize) -> T {
        emulate::shuffle("Group::broadcast", x, from, W)
    }

    /// The group's `p`, lane l's in bit l; the bits from W on are 0. In PTX `vote.sync.ballot.b32`, and for less than a
    /// warp a shift and a mask.
    #[track_caller]
    pub fn ballot(self, p: bool) -> u32 {
        emulate::ballot("Group::ballot", p, W)
    }

    /// Whether `p` holds in all lanes of the group. In PTX a ballot and a compare; for a warp `vote.sync.all.pred`.
    #[track_caller]
    pub fn all(self, p: bool) -> bool {
        emulate::ballot("Group::all", !p, W) == 0
    }

    /// Whether `p` holds in any lane of the group. In PTX a ballot and a compare; for a warp `vote.sync.any.pred`.
    #[track_caller]
    pub fn any(self, p: bool) -> bool {
        emulate::ballot("Group::any", p, W) != 0
    }
}
