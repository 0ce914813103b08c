//! The warp, 32 threads of consecutive [`thread::index`](crate::thread::index) that run together, and what its lanes
//! can hand each other without shared memory.
//!
//! All operations here but [`lane`], [`index`] and [`count`] need whole warps (a block whose number of threads is a multiple of
//! 32), and all 32 lanes at the same call: outside of any `if`, loop or `return` in which lanes part. [A kernel that is
//! seen to do otherwise does not compile](crate#convergence).
//!
//! What is handed over is a number, a `bool`, or a tuple, array, option or device struct of such: each number is a shuffle of
//! its own, one of 64 bits two. `bool` and what is narrower than 32 bits travel in a word, at the cost of a conversion
//! before and after.
//!
//! # The order of reductions and scans
//!
//! It is part of their meaning, and the same on every target. [`sum`], [`max`] and [`min`] are butterflies, widest first:
//! lane l combines its value with that of lane l XOR 16, then 8, 4, 2 and 1, so that every lane has the result. What takes
//! a closure keeps the order of lanes: `combine(earlier, later)` is associative, and need not be commutative. A [`reduce`]
//! combines neighbours, then neighbouring pairs, fours, eights and halves, and every lane gets that result: (v₀ v₁)(v₂ v₃) ….
//! All lanes compute along, each from its own end of the butterfly; where `combine` does not commute theirs is dropped. In a
//! scan each lane combines the value of the lane 1 below it with its own, then 2, 4, 8 and 16 below; lanes that have none
//! there keep theirs.

pub(crate) mod emulate;
mod group;
pub(crate) mod value;

pub use group::{Group, group};
pub use value::LaneNumber;

use crate::element::DeviceCopy;
use crate::host::context::context;

/// Threads of a warp.
const LANES: usize = 32;

/// Index of this thread in its warp, 0 to 31: `thread::index() % 32`. In PTX `and` with 31; for blocks whose x is 32,
/// `%tid.x`.
#[must_use]
#[track_caller]
pub fn lane() -> usize {
    context("warp::lane()").index % LANES
}

/// Index of this warp in its block: `thread::index() / 32`. The same for all lanes. In PTX `shr` by 5; for blocks whose
/// x is 32, `%tid.y`.
#[must_use]
#[track_caller]
pub fn index() -> usize {
    context("warp::index()").index / LANES
}

/// Warps of the block: `block::threads() / 32`, a constant of the kernel.
#[must_use]
#[track_caller]
pub fn count() -> usize {
    context("warp::count()").threads() / LANES
}

/// Waits until all lanes of the warp are here; what they wrote before, to shared memory or through mutable
/// views, all of them see after. In PTX one `bar.warp.sync`.
#[track_caller]
pub fn sync() {
    context("warp::sync()").meet(crate::host::monitor::Scope::Warp, "warp::sync()", ());
}

/// The sum of all lanes' `x`. In PTX five times `shfl.sync.bfly` and `add` (two shuffles each for 64-bit types); of integers
/// of 32 bits, from sm_80, one `redux.sync.add`.
#[must_use]
#[track_caller]
pub fn sum<T: LaneNumber>(x: T) -> T {
    emulate::butterfly("warp::sum", x, LANES, T::sum)
}

/// The largest of all lanes' `x`. Of floats, a NaN loses against any number, and −0 is less than +0. In PTX five times
/// `shfl.sync.bfly` and `max`; of integers of 32 bits, from sm_80, one `redux.sync.max`.
#[must_use]
#[track_caller]
pub fn max<T: LaneNumber>(x: T) -> T {
    emulate::butterfly("warp::max", x, LANES, T::larger)
}

/// The smallest of all lanes' `x`. Of floats, a NaN loses against any number, and −0 is less than +0. In PTX five times
/// `shfl.sync.bfly` and `min`; of integers of 32 bits, from sm_80, one `redux.sync.min`.
#[must_use]
#[track_caller]
pub fn min<T: LaneNumber>(x: T) -> T {
    emulate::butterfly("warp::min", x, LANES, T::smaller)
}

/// All lanes' values combined two by two, in the [order](self#the-order-of-reductions-and-scans) of the lanes.
/// `combine(earlier, later)` is a closure or a device function, and associative. In PTX five times `shfl.sync.bfly` of each
/// part of the value, and what `combine` is; then a `shfl.sync.idx` of each part, unless `combine` gives the sum, product,
/// minimum, maximum or a bitwise operation of two numbers, or a tuple of such: they commute, and all lanes have it.
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

/// The values of the lanes up to this one combined, in the [order](self#the-order-of-reductions-and-scans) of the lanes:
/// the inclusive scan. `combine(earlier, later)` is a closure or a device function, and associative. In PTX five times
/// `shfl.sync.up` of each part of the value, `setp`, and under that predicate what `combine` is.
#[track_caller]
pub fn scan<T: DeviceCopy, F: Fn(T, T) -> T>(x: T, combine: F) -> T {
    emulate::scan("warp::scan", x, LANES, LANES, &combine)
}

/// The values of the lanes before this one combined: the exclusive scan. Lane 0 gets `identity`, which is combined with
/// nothing. In PTX a [`scan`], one more `shfl.sync.up`, `setp` and `selp`.
#[track_caller]
pub fn exclusive_scan<T: DeviceCopy, F: Fn(T, T) -> T>(x: T, identity: T, combine: F) -> T {
    emulate::exclusive_scan("warp::exclusive_scan", x, identity, LANES, &combine)
}

/// The `x` of lane `lane` mod 32. Lanes may name different ones. In PTX `shfl.sync.idx`.
#[must_use]
#[track_caller]
pub fn shuffle<T: DeviceCopy>(x: T, lane: usize) -> T {
    emulate::shuffle("warp::shuffle", x, lane, LANES)
}

/// The `x` of the lane whose index is this lane's XOR `mask`; `mask` < 32. In PTX `shfl.sync.bfly`.
#[must_use]
#[track_caller]
pub fn shuffle_xor<T: DeviceCopy>(x: T, mask: usize) -> T {
    emulate::shuffle_xor("warp::shuffle_xor", x, mask, LANES)
}

/// The `x` of the lane `by` below; `None` for those that have none. In PTX `shfl.sync.up`, and a compare of the lane where
/// the program asks.
#[track_caller]
pub fn shuffle_up<T: DeviceCopy>(x: T, by: usize) -> Option<T> {
    emulate::shuffle_up("warp::shuffle_up", x, by, LANES)
}

/// The `x` of the lane `by` above; `None` for those that have none. In PTX `shfl.sync.down`, and a compare of the lane
/// where the program asks.
#[track_caller]
pub fn shuffle_down<T: DeviceCopy>(x: T, by: usize) -> Option<T> {
    emulate::shuffle_down("warp::shuffle_down", x, by, LANES)
}

/// The `x` of lane `from` mod 32, for all lanes: they name the same one. In PTX `shfl.sync.idx`.
#[track_caller]
pub fn broadcast<T: DeviceCopy>(x: T, from: usize) -> T {
    emulate::shuffle("warp::broadcast", x, from, LANES)
}

/// The lanes whose `x` has the bits of this lane's `x`, lane l in bit l; this lane is among them. From sm_70, where it is
/// `match.any.sync` in PTX; [`target`](crate::target) shows how older targets do it.
#[must_use]
#[track_caller]
pub fn match_any<T: LaneNumber>(x: T) -> u32 {
    emulate::match_any("warp::match_any", x)
}

/// All lanes' `p`, lane l's in bit l. In PTX `vote.sync.ballot.b32`.
#[must_use]
#[track_caller]
pub fn ballot(p: bool) -> u32 {
    emulate::ballot("warp::ballot", p, LANES)
}

/// Whether `p` holds in all lanes. In PTX `vote.sync.all.pred`.
#[must_use]
#[track_caller]
pub fn all(p: bool) -> bool {
    emulate::ballot("warp::all", !p, LANES) == 0
}

/// Whether `p` holds in any lane. In PTX `vote.sync.any.pred`.
#[must_use]
#[track_caller]
pub fn any(p: bool) -> bool {
    emulate::ballot("warp::any", p, LANES) != 0
}
