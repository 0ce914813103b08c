//! The block of threads: its threads share the [`Shared`](crate::Shared) arrays and can wait for
//! each other.
//!
//! # Cooperative operations
//!
//! [`sum`], [`max`], [`min`], [`reduce`], [`scan`], [`all`], [`any`], [`count`] and [`broadcast`]
//! need all threads of the block at the same call, like [`sync`], and a number of threads that is a
//! multiple of 32. [A kernel that provably violates this does not compile](crate#convergence). The
//! operations accept the types that [lanes](crate::warp) can exchange.
//!
//! The order of a reduction is part of its meaning and the same on every target. Each warp reduces
//! its values in the order of [`warp`]. The results of the W warps are then combined. For [`sum`],
//! [`max`] and [`min`], let P be the least power of two that is at least W. Warp w combines its
//! value with that of warp w XOR P / 2, then P / 4, … 2, 1; a missing warp changes nothing. A
//! [`reduce`] combines neighboring warps, then neighboring pairs, and so on; a value without a
//! neighbor above it passes on unchanged. A [`scan`] runs the scan of [`warp`] in each warp, and
//! then the same scan over the last results of the warps. The prefix of a thread combines the total
//! of the warps before its warp with that of the lanes before its lane, in this order.
//!
//! | threads | barriers | shared memory |
//! |---|---|---|
//! | 32 | none | none |
//! | more | 2; only 1 for the first use of a type in a kernel, if it is outside loops | for each number in the value, one array of threads / 32 words (for the largest possible block), at a multiple of 16 bytes; a word has 8 bytes for numbers of 64 bits, else 4. All uses of a type in a kernel share its arrays; `all`, `any` and `count` use the array of `u32` and `usize` |
//!
//! The barrier after the write makes the values visible. The barrier before it keeps a fast warp
//! from overwriting a result that a slow warp still reads. The barriers order all other memory like
//! [`sync`], but the compiler may leave out the barrier before the write. Write [`sync`] where the
//! kernel itself needs a barrier.

mod share;

pub use share::{share, stride};

use crate::element::DeviceCopy;
use crate::host::context::context;
use crate::host::monitor::{BarrierScope, LANES};
use crate::warp::emulate::{self, reduced};
use crate::warp::{self, LaneNumber};

/// Returns the index of the block in the grid along x (`%ctaid.x`). Uniform for the block.
#[must_use]
#[track_caller]
pub fn x() -> usize {
    context("block::x()").block[0]
}

/// Returns the index of the block in the grid along y (`%ctaid.y`). Uniform for the block.
#[must_use]
#[track_caller]
pub fn y() -> usize {
    context("block::y()").block[1]
}

/// Returns the index of the block in the grid along z (`%ctaid.z`). Uniform for the block.
#[must_use]
#[track_caller]
pub fn z() -> usize {
    context("block::z()").block[2]
}

/// Returns the number of threads of a block along x: a constant of the kernel, or `%ntid.x` if the
/// launch chooses it.
#[must_use]
#[track_caller]
pub fn dim_x() -> usize {
    context("block::dim_x()").block_dim[0]
}

/// Returns the number of threads of a block along y: a constant of the kernel, or `%ntid.y` if the
/// launch chooses it.
#[must_use]
#[track_caller]
pub fn dim_y() -> usize {
    context("block::dim_y()").block_dim[1]
}

/// Returns the number of threads of a block along z: a constant of the kernel, or `%ntid.z` if the
/// launch chooses it.
#[must_use]
#[track_caller]
pub fn dim_z() -> usize {
    context("block::dim_z()").block_dim[2]
}

/// Returns the number of threads of a block: a constant of the kernel,
/// [or the launch's choice](crate#block-sizes-chosen-by-the-launch).
#[must_use]
#[track_caller]
pub fn threads() -> usize {
    context("block::threads()").threads()
}

/// Waits until all threads of the block arrive. The threads' earlier writes, to shared memory or
/// through mutable views, are visible to all of them afterwards.
///
/// All threads of the block must reach the same call. The call may be under an `if` or in a loop
/// only if all threads take the same path. After a `return` it is allowed only if none or all have
/// returned. A kernel that provably violates this [does not compile](crate#convergence); where
/// memory decides, the interpreter reports the missing threads. In PTX: one `bar.sync 0`.
///
/// A warp that has returned violates the rule of the language, but does not hang the machine: a
/// barrier does not wait for threads that have exited (PTX manual, `exit`; sm_61 counts warps,
/// sm_70 and later threads). The other threads would then read values that the returned warp never
/// wrote, and the operations of [`block`](self) would combine stale values. A kernel therefore
/// keeps all its threads to the end, and gives idle threads neutral values.
#[track_caller]
pub fn sync() {
    context("block::sync()").rendezvous(BarrierScope::Block, "block::sync()", ());
}

/// Sums `x` over all threads, in the [order](self#cooperative-operations) of the block. In PTX:
/// five shuffles and adds, a store, a barrier and a load. ⌈log₂ W⌉ shuffles and adds follow, where
/// W is the number of warps.
#[must_use]
#[track_caller]
pub fn sum<T: LaneNumber>(x: T) -> T {
    reduce_numbers("block::sum", x, T::sum)
}

/// Returns the largest `x` of all threads; for floats as [`warp::max`]. In PTX: as [`sum`], with
/// `max`.
#[must_use]
#[track_caller]
pub fn max<T: LaneNumber>(x: T) -> T {
    reduce_numbers("block::max", x, T::larger)
}

/// Returns the smallest `x` of all threads; for floats as [`warp::min`]. In PTX: as [`sum`], with
/// `min`.
#[must_use]
#[track_caller]
pub fn min<T: LaneNumber>(x: T) -> T {
    reduce_numbers("block::min", x, T::smaller)
}

/// Combines the values of all threads pairwise, in the [order](self#cooperative-operations) of the
/// block, and returns the result in every thread. `combine(earlier, later)` is a closure or device
/// function, and associative. In PTX: as [`sum`] for each part of the value, with the code of
/// `combine`, and a final `shfl.sync.idx` as in [`warp::reduce`].
#[track_caller]
pub fn reduce<T: DeviceCopy, F: Fn(T, T) -> T>(x: T, combine: F) -> T {
    const NAME: &str = "block::reduce";
    let own = emulate::reduce(NAME, x, LANES, &combine);
    let warps: Vec<T> = context(NAME).gather(NAME, own).into_iter().step_by(LANES).collect();
    let segment = warps.len().next_power_of_two();
    // A lane whose number is not that of a warp takes no part in the reduction, so its start value
    // is irrelevant.
    let value = *warps.get(warp::lane() % segment).unwrap_or(&warps[0]);
    emulate::reduce_first(NAME, value, segment, warps.len(), &combine)
}

/// Returns the exclusive prefix and the total: the combined values of the threads before this one,
/// and of all threads. The [order](self#cooperative-operations) is that of the block.
/// `combine(earlier, later)` is a closure or device function, and associative. The prefix of thread
/// 0 is `identity` itself, which is not combined with other values. In PTX: a [`warp::scan`], a
/// store, a barrier, a load, a scan over the warps, and three shuffles.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// # fn of_a_thread(kept: bool) {
/// let (before, total) = block::scan(kept as u32, 0, |a, b| a + b);      // output index of a kept element, and their number
/// # }
/// ```
#[track_caller]
pub fn scan<T: DeviceCopy, F: Fn(T, T) -> T>(x: T, identity: T, combine: F) -> (T, T) {
    const NAME: &str = "block::scan";
    let through = emulate::scan(NAME, x, LANES, LANES, &combine);
    let before = emulate::exchange(NAME, through)[warp::lane().saturating_sub(1)];
    let sums: Vec<T> = context(NAME).gather(NAME, through).into_iter().skip(LANES - 1).step_by(LANES).collect();
    let own = sums.get(warp::lane()).unwrap_or(&sums[0]);
    let sums = &emulate::exchange(NAME, emulate::scan(NAME, *own, LANES, sums.len(), &combine))[..sums.len()];
    let prefix = match (warp::index(), warp::lane()) {
        (0, 0) => identity,
        (0, _) => before,
        (w, 0) => sums[w - 1],
        (w, _) => combine(sums[w - 1], before),
    };
    (prefix, sums[sums.len() - 1])
}

/// Returns whether `p` holds in all threads. In PTX: a vote, a store, a barrier, a load and a vote.
#[must_use]
#[track_caller]
pub fn all(p: bool) -> bool {
    context("block::all").gather("block::all", p).iter().all(|p| *p)
}

/// Returns whether `p` holds in any thread. In PTX: a vote, a store, a barrier, a load and a vote.
#[must_use]
#[track_caller]
pub fn any(p: bool) -> bool {
    context("block::any").gather("block::any", p).contains(&true)
}

/// Counts the threads in which `p` holds. In PTX: a ballot, `popc`, and then as [`sum`] after its
/// first five shuffles.
#[track_caller]
pub fn count(p: bool) -> usize {
    context("block::count").gather("block::count", p).iter().filter(|p| **p).count()
}

/// Returns, in every thread, the `x` of the thread whose [`thread::index`](crate::thread::index) is
/// `from`. All threads must pass the same `from`, which is less than [`threads`]. The compiler
/// rejects a constant that exceeds every block size. The oracle reports others: `shuffle-selector`
/// if blocks have one warp, otherwise `uninitialized-shared`. In PTX: a store, a barrier and a load
/// of each part of the value; in a block of one warp a shuffle.
///
/// # Panics
/// On the host, if the block has no such thread.
#[must_use]
#[track_caller]
pub fn broadcast<T: DeviceCopy>(x: T, from: usize) -> T {
    let all = context("block::broadcast").gather("block::broadcast", x);
    assert!(from < all.len(), "block::broadcast from thread {from} of {}", all.len());
    all[from]
}

/// Exchanges the values of all threads once, then computes the reduction of the whole block in each
/// thread.
#[track_caller]
fn reduce_numbers<T: LaneNumber>(operation: &'static str, x: T, combine: impl Fn(T, T) -> T) -> T {
    let all = context(operation).gather(operation, x);
    let warp = |lanes: &[T]| {
        let lanes: Vec<_> = lanes.iter().copied().map(Some).collect();
        reduced(&lanes, &combine)[0]
    };
    let mut warps: Vec<_> = all.chunks(LANES).map(warp).collect();
    warps.resize(warps.len().next_power_of_two(), None);
    reduced(&warps, &combine)[0].expect("a block has a warp")
}
