//! The block of threads that this thread is in, which shares its [`Shared`](crate::Shared) arrays and can wait for one
//! another.
//!
//! # What the threads of a block do together
//!
//! [`sum`], [`max`], [`min`], [`reduce`], [`scan`], [`all`], [`any`], [`count`] and [`broadcast`] need whole warps (a
//! block whose number of threads is a multiple of 32), and all threads of the block at the same call, as [`sync`] does;
//! [a kernel that is seen to go other ways does not compile](crate#convergence). What they take is what
//! [lanes](crate::warp) can hand each other.
//!
//! A reduction's order is part of its meaning, and the same on every target: that of [`warp`] in each warp,
//! and then over the warps' results, W of them. In a [`sum`], [`max`] or [`min`] warp w combines its value with that of
//! warp w XOR P / 2, then P / 4, … 2, 1, where P is the least power of two that is W or more, and a warp that is not there
//! changes nothing. A [`reduce`] combines neighbouring warps, then neighbouring pairs, and so on; what has no neighbour
//! above it stays as it is. A scan is that of [`warp`] in each warp, and then the same over the warps' last
//! results; a thread's prefix is that of the warps before its own combined with that of the lanes before its own, in this
//! order.
//!
//! | threads | barriers | shared memory |
//! |---|---|---|
//! | 32 | none | none |
//! | more | 2; the first use of a type in a kernel, outside of loops, 1 | for each number in the value threads / 32 times 4 or 8 bytes (as many threads as there can be), of `bool` and narrow numbers too 4: one array a kernel for all uses of a type, each at a multiple of 16 bytes; `all`, `any` and `count` use that of `u32`, and `usize` too |
//!
//! The barrier after the values are written makes them seen; the one before keeps a fast warp from writing while a slow
//! one still reads the last result. They order all other memory as [`sync`] does, but where one of them is left out
//! a kernel that relies on it is wrong: write [`sync`] where the kernel itself needs one.

mod share;

pub use share::{share, stride};

use crate::element::DeviceCopy;
use crate::host::context::context;
use crate::host::monitor::{LANES, Scope};
use crate::warp::emulate::{self, reduced};
use crate::warp::{self, LaneNumber};

/// Index of the block in the grid along x (`%ctaid.x`). The same for all threads of a block.
#[must_use]
#[track_caller]
pub fn x() -> usize {
    context("block::x()").block[0]
}

/// Index of the block in the grid along y (`%ctaid.y`). The same for all threads of a block.
#[must_use]
#[track_caller]
pub fn y() -> usize {
    context("block::y()").block[1]
}

/// Index of the block in the grid along z (`%ctaid.z`). The same for all threads of a block.
#[must_use]
#[track_caller]
pub fn z() -> usize {
    context("block::z()").block[2]
}

/// Threads of a block along x: a constant of the kernel, or where the launch decides it, `%ntid.x`.
#[must_use]
#[track_caller]
pub fn dim_x() -> usize {
    context("block::dim_x()").block_dim[0]
}

/// Threads of a block along y: a constant of the kernel, or where the launch decides it, `%ntid.y`.
#[must_use]
#[track_caller]
pub fn dim_y() -> usize {
    context("block::dim_y()").block_dim[1]
}

/// Threads of a block along z: a constant of the kernel, or where the launch decides it, `%ntid.z`.
#[must_use]
#[track_caller]
pub fn dim_z() -> usize {
    context("block::dim_z()").block_dim[2]
}

/// Threads of a block: a constant of the kernel, [or what the launch decides](crate#block-sizes-chosen-by-the-launch).
#[must_use]
#[track_caller]
pub fn threads() -> usize {
    context("block::threads()").threads()
}

/// Waits until all threads of the block are here; what they wrote before, to shared memory or through mutable
/// views, all of them see after.
///
/// All threads of the block must come to the same call: it may stand under an `if` or in a loop only where all of them
/// take the same way, and after a `return` only where none or all have returned; a kernel that is seen not to be so [does
/// not compile](crate#convergence), and where memory decides, the interpreter reports who is missing. In PTX one
/// `bar.sync 0`.
///
/// A warp that has returned is missing to the language, and not to the machine: a thread that exits is not waited for (the
/// PTX manual says so of `exit`; on sm_61 a barrier counts warps, from sm_70 on threads, and neither counts those that have
/// ended). So such a kernel does not hang. But what the others then read, nobody of that warp has written: the operations
/// of [`block`](self) would combine what was there before. That is why a kernel keeps its threads to the end, and gives
/// those that have nothing to do values that do not count.
#[track_caller]
pub fn sync() {
    context("block::sync()").meet(Scope::Block, "block::sync()", ());
}

/// The sum of all threads' `x`, in the [order](self#what-the-threads-of-a-block-do-together) of the block. In PTX five
/// shuffles and adds, a store, a barrier, a load, and log₂ of the number of warps, rounded up, shuffles and adds.
#[must_use]
#[track_caller]
pub fn sum<T: LaneNumber>(x: T) -> T {
    of_numbers("block::sum", x, T::sum)
}

/// The largest of all threads' `x`; of floats as [`warp::max`]. In PTX as [`sum`], with `max`.
#[must_use]
#[track_caller]
pub fn max<T: LaneNumber>(x: T) -> T {
    of_numbers("block::max", x, T::larger)
}

/// The smallest of all threads' `x`; of floats as [`warp::max`]. In PTX as [`sum`], with `min`.
#[must_use]
#[track_caller]
pub fn min<T: LaneNumber>(x: T) -> T {
    of_numbers("block::min", x, T::smaller)
}

/// All threads' values combined two by two, in the [order](self#what-the-threads-of-a-block-do-together) of the block,
/// for all of them. `combine(earlier, later)` is a closure or a device function, and associative. In PTX as [`sum`], for
/// each part of the value, with what `combine` is, and at the end one more `shfl.sync.idx` as in
/// [`warp::reduce`].
#[track_caller]
pub fn reduce<T: DeviceCopy, F: Fn(T, T) -> T>(x: T, combine: F) -> T {
    const NAME: &str = "block::reduce";
    let own = emulate::reduce(NAME, x, LANES, &combine);
    let warps: Vec<T> = context(NAME).gather(NAME, own).into_iter().step_by(LANES).collect();
    let segment = warps.len().next_power_of_two();
    // A lane without a warp combines nothing; what it starts with is of no account.
    let value = *warps.get(warp::lane() % segment).unwrap_or(&warps[0]);
    emulate::reduce_first(NAME, value, segment, warps.len(), &combine)
}

/// The values of the threads before this one combined, in their [order](self#what-the-threads-of-a-block-do-together),
/// and those of all: the exclusive prefix and the total. `combine(earlier, later)` is a closure or a device function, and
/// associative. Thread 0 gets `identity` for a prefix, which is combined with nothing. In PTX a
/// [`warp::scan`], a store, a barrier, a load, a scan over the warps, and three shuffles.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// # fn of_a_thread(kept: bool) {
/// let (before, total) = block::scan(kept as u32, 0, |a, b| a + b);      // where to put what is kept, and how much it is
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

/// Whether `p` holds in all threads. In PTX a vote, a store, a barrier, a load and a vote.
#[must_use]
#[track_caller]
pub fn all(p: bool) -> bool {
    context("block::all").gather("block::all", p).iter().all(|p| *p)
}

/// Whether `p` holds in any thread. In PTX a vote, a store, a barrier, a load and a vote.
#[must_use]
#[track_caller]
pub fn any(p: bool) -> bool {
    context("block::any").gather("block::any", p).contains(&true)
}

/// Threads in which `p` holds. In PTX a ballot, `popc`, and then as [`sum`] after its first five shuffles.
#[track_caller]
pub fn count(p: bool) -> usize {
    context("block::count").gather("block::count", p).iter().filter(|p| **p).count()
}

/// The `x` of the thread whose [`thread::index`](crate::thread::index) is `from`, for all threads; `from` is less than
/// [`threads`], and all threads name the same one. In PTX a store, a barrier and a load of each part of the value; in a block
/// of one warp a shuffle.
#[must_use]
#[track_caller]
pub fn broadcast<T: DeviceCopy>(x: T, from: usize) -> T {
    let all = context("block::broadcast").gather("block::broadcast", x);
    assert!(from < all.len(), "block::broadcast from thread {from} of {}", all.len());
    all[from]
}

/// One exchange, then all that the block would do, in each thread.
#[track_caller]
fn of_numbers<T: LaneNumber>(operation: &'static str, x: T, combine: impl Fn(T, T) -> T) -> T {
    let all = context(operation).gather(operation, x);
    let warp = |lanes: &[T]| {
        let lanes: Vec<_> = lanes.iter().copied().map(Some).collect();
        reduced(&lanes, &combine)[0]
    };
    let mut warps: Vec<_> = all.chunks(LANES).map(warp).collect();
    warps.resize(warps.len().next_power_of_two(), None);
    reduced(&warps, &combine)[0].expect("a block has a warp")
}
