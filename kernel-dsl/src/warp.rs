//! The warp: 32 threads with consecutive [`thread::index`](crate::thread::index) that run together,
//! and the operations that exchange values between its lanes without shared memory.
//!
//! All operations except [`lane`], [`index`] and [`count`] need whole warps (blocks whose number of
//! threads is a multiple of 32), and all 32 lanes at the same call: outside every `if`, loop or
//! `return` in which lanes diverge.
//! [A kernel that provably violates this does not compile](crate#convergence).
//!
//! The exchanged value is a number, a `bool`, or a tuple, array, option or device struct of these.
//! Each number is one shuffle, a 64-bit number two. `bool` and types narrower than 32 bits travel
//! in a word, at the cost of a conversion before and after.
//!
//! # The order of reductions and scans
//!
//! The order is part of the meaning and the same on every target. [`sum`], [`max`] and [`min`] are
//! butterflies, widest step first: lane l combines its value with that of lane l XOR 16, then 8, 4,
//! 2 and 1, so that every lane has the result.
//!
//! Operations with a closure keep the order of lanes: `combine(earlier, later)` must be
//! associative, but need not be commutative. A [`reduce`] combines neighbors, then neighboring
//! pairs, fours, eights and halves, and every lane gets that result: (v₀ v₁)(v₂ v₃) …. All lanes
//! compute, but only the first lane combines its values in lane order. If `combine` does not
//! commute, that lane's result is broadcast. In a scan each lane combines the value of the lane 1
//! below it with its own, then 2, 4, 8 and 16 below; lanes without such a lane keep their value.

pub(crate) mod emulate;
mod group;
pub(crate) mod value;

pub use group::{Group, group};
pub use value::LaneNumber;

use crate::element::DeviceCopy;
use crate::host::context::context;

/// The number of threads of a warp.
const LANES: usize = 32;

/// Returns the index of this thread in its warp, 0 to 31: `thread::index() % 32`. In PTX: `and`
/// with 31; for blocks whose x is 32, `%tid.x`.
#[must_use]
#[track_caller]
pub fn lane() -> usize {
    context("warp::lane()").index % LANES
}

/// Returns the index of this warp in its block: `thread::index() / 32`. Uniform for the warp. In
/// PTX: `shr` by 5; for blocks whose x is 32, `%tid.y`.
#[must_use]
#[track_caller]
pub fn index() -> usize {
    context("warp::index()").index / LANES
}

/// Returns the number of warps of the block: `block::threads() / 32`, a constant of the kernel.
#[must_use]
#[track_caller]
pub fn count() -> usize {
    context("warp::count()").threads() / LANES
}

/// Waits until all lanes of the warp arrive. The lanes' earlier writes, to shared memory or through
/// mutable views, are visible to all of them afterwards. In PTX: one `bar.warp.sync`.
#[track_caller]
pub fn sync() {
    context("warp::sync()").rendezvous(crate::host::monitor::BarrierScope::Warp, "warp::sync()", ());
}

/// Sums `x` over all lanes. In PTX: five times `shfl.sync.bfly` and `add` (two shuffles each for
/// 64-bit types); for 32-bit integers, from sm_80, one `redux.sync.add`.
#[must_use]
#[track_caller]
pub fn sum<T: LaneNumber>(x: T) -> T {
    emulate::butterfly("warp::sum", x, LANES, T::sum)
}

/// Returns the largest `x` of all lanes. For floats, a NaN loses against any number, and −0 is less
/// than +0. In PTX: five times `shfl.sync.bfly` and `max`; for 32-bit integers, from sm_80, one
/// `redux.sync.max`.
#[must_use]
#[track_caller]
pub fn max<T: LaneNumber>(x: T) -> T {
    emulate::butterfly("warp::max", x, LANES, T::larger)
}

/// Returns the smallest `x` of all lanes. For floats, a NaN loses against any number, and −0 is
/// less than +0. In PTX: five times `shfl.sync.bfly` and `min`; for 32-bit integers, from sm_80,
/// one `redux.sync.min`.
#[must_use]
#[track_caller]
pub fn min<T: LaneNumber>(x: T) -> T {
    emulate::butterfly("warp::min", x, LANES, T::smaller)
}

/// Combines the values of all lanes pairwise, in the
/// [order](self#the-order-of-reductions-and-scans) of the lanes. `combine(earlier, later)` is a
/// closure or device function, and associative. In PTX: five times `shfl.sync.bfly` of each part of
/// the value, and the code of `combine`. A final `shfl.sync.idx` of each part is left out if
/// `combine` provably commutes: the sum, product, minimum, maximum or a bitwise operation of two
/// numbers, or a tuple of these.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// # fn of_a_thread(x: f32, i: usize) {
/// let (best, place) = warp::reduce((x, i), |a, b| if b.0 > a.0 || b.0 == a.0 && b.1 < a.1 { b } else { a });
/// # }
/// ```
#[track_caller]
pub fn reduce<T: DeviceCopy, F: Fn(T, T) -> T>(x: T, combine: F) -> T {
    emulate::reduce("warp::reduce", x, LANES, &combine)
}

/// Combines the values of the lanes up to this one, in the
/// [order](self#the-order-of-reductions-and-scans) of the lanes: the inclusive scan.
/// `combine(earlier, later)` is a closure or device function, and associative. In PTX: five times
/// `shfl.sync.up` of each part of the value, `setp`, and the predicated code of `combine`.
#[track_caller]
pub fn scan<T: DeviceCopy, F: Fn(T, T) -> T>(x: T, combine: F) -> T {
    emulate::scan("warp::scan", x, LANES, LANES, &combine)
}

/// Combines the values of the lanes before this one: the exclusive scan. Lane 0 gets `identity`
/// itself, which is not combined with other values. In PTX: a [`scan`], one more `shfl.sync.up`,
/// `setp` and `selp`.
#[track_caller]
pub fn exclusive_scan<T: DeviceCopy, F: Fn(T, T) -> T>(x: T, identity: T, combine: F) -> T {
    emulate::exclusive_scan("warp::exclusive_scan", x, identity, LANES, &combine)
}

/// Returns `x` of lane `lane` mod 32. Each lane may name another one. The compiler rejects a
/// constant of 32 or more. In PTX: `shfl.sync.idx`.
#[must_use]
#[track_caller]
pub fn shuffle<T: DeviceCopy>(x: T, lane: usize) -> T {
    emulate::shuffle("warp::shuffle", x, lane, LANES)
}

/// Returns `x` of the lane whose index is this lane's XOR `mask`. The oracle reports a `mask` of 32
/// or more (`shuffle-selector`). In PTX: `shfl.sync.bfly`.
#[must_use]
#[track_caller]
pub fn shuffle_xor<T: DeviceCopy>(x: T, mask: usize) -> T {
    emulate::shuffle_xor("warp::shuffle_xor", x, mask, LANES)
}

/// Returns `x` of the lane `by` below, or `None` if there is no such lane. In PTX: `shfl.sync.up`,
/// and a comparison of the lane where the program tests the option.
#[track_caller]
pub fn shuffle_up<T: DeviceCopy>(x: T, by: usize) -> Option<T> {
    emulate::shuffle_up("warp::shuffle_up", x, by, LANES)
}

/// Returns `x` of the lane `by` above, or `None` if there is no such lane. In PTX:
/// `shfl.sync.down`, and a comparison of the lane where the program tests the option.
#[track_caller]
pub fn shuffle_down<T: DeviceCopy>(x: T, by: usize) -> Option<T> {
    emulate::shuffle_down("warp::shuffle_down", x, by, LANES)
}

/// Returns `x` of lane `from`. All lanes must pass the same `from`, which is less than 32. The
/// compiler rejects a larger constant, and the oracle reports others (`shuffle-selector`). In PTX:
/// `shfl.sync.idx`.
///
/// # Panics
/// On the host, if `from` is 32 or more.
#[track_caller]
pub fn broadcast<T: DeviceCopy>(x: T, from: usize) -> T {
    emulate::broadcast("warp::broadcast", x, from, LANES)
}

/// Returns the set of lanes whose `x` has the same bits as this lane's `x`, lane l in bit l, this
/// lane included. From sm_70 on, as `match.any.sync` in PTX; [`target`](crate::target) shows a
/// replacement for older targets.
#[must_use]
#[track_caller]
pub fn match_any<T: LaneNumber>(x: T) -> u32 {
    emulate::match_any("warp::match_any", x)
}

/// Returns `p` of all lanes, lane l in bit l. In PTX: `vote.sync.ballot.b32`.
#[must_use]
#[track_caller]
pub fn ballot(p: bool) -> u32 {
    emulate::ballot("warp::ballot", p, LANES)
}

/// Returns whether `p` holds in all lanes. In PTX: `vote.sync.all.pred`.
#[must_use]
#[track_caller]
pub fn all(p: bool) -> bool {
    emulate::ballot("warp::all", !p, LANES) == 0
}

/// Returns whether `p` holds in any lane. In PTX: `vote.sync.any.pred`.
#[must_use]
#[track_caller]
pub fn any(p: bool) -> bool {
    emulate::ballot("warp::any", p, LANES) != 0
}
