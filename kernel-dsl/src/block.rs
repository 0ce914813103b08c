//! The block of threads that this thread is in, which shares its [`Shared`](crate::Shared) arrays and can wait for one
//! another.
//!
//! # What the threads of a block do together
//!
//! [`sum`], [`max`], [`min`], [`all`], [`any`] and [`broadcast`] give every thread the result. They need whole warps (a
//! block whose number of threads is a multiple of 32), and all threads of the block at the same call, as [`sync`] does;
//! [a kernel that is seen to go other ways does not compile](crate#who-comes-together).
//!
//! A reduction's order is part of its meaning, and the same on every target: in each warp the butterfly of
//! [`warp`](crate::warp), and then the butterfly over the warps' results, W of them, in which warp w combines its value
//! with that of warp w XOR P / 2, then P / 4, … 2, 1, where P is the least power of two that is W or more, and a warp
//! that is not there changes nothing.
//!
//! | threads | barriers | shared memory |
//! |---|---|---|
//! | 32 | none | none |
//! | more | 2; the first use of a type in a kernel, outside of loops, 1 | threads / 32 values of 4 or 8 bytes, one array a kernel for all uses of a type; `all` and `any` use that of `u32`, and `usize` too |
//!
//! The barrier after the values are written makes them seen; the one before keeps a fast warp from writing while a slow
//! one still reads the last result. They order all other memory as [`sync`] does, but where one of them is left out
//! a kernel that relies on it is wrong: write [`sync`] where the kernel itself needs one.

use crate::host::context::context;
use crate::host::monitor::{LANES, Scope};
use crate::warp::{LaneValue, reduced};

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

/// Threads of a block along x: a constant of the kernel.
#[must_use]
#[track_caller]
pub fn dim_x() -> usize {
    context("block::dim_x()").block_dim[0]
}

/// Threads of a block along y: a constant of the kernel.
#[must_use]
#[track_caller]
pub fn dim_y() -> usize {
    context("block::dim_y()").block_dim[1]
}

/// Threads of a block along z: a constant of the kernel.
#[must_use]
#[track_caller]
pub fn dim_z() -> usize {
    context("block::dim_z()").block_dim[2]
}

/// Threads of a block: a constant of the kernel.
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
/// not compile](crate#who-comes-together). In PTX one `bar.sync 0`.
#[track_caller]
pub fn sync() {
    context("block::sync()").meet(Scope::Block, "block::sync()", 0);
}

/// The sum of all threads' `x`, in the [order](self#what-the-threads-of-a-block-do-together) of the block. In PTX five
/// shuffles and adds, a store, a barrier, a load, and log₂ of the number of warps, rounded up, shuffles and adds.
#[must_use]
#[track_caller]
pub fn sum<T: LaneValue>(x: T) -> T {
    reduce("block::sum", x, T::sum)
}

/// The largest of all threads' `x`; of floats as [`warp::max`](crate::warp::max). In PTX as [`sum`], with `max`.
#[must_use]
#[track_caller]
pub fn max<T: LaneValue>(x: T) -> T {
    reduce("block::max", x, T::larger)
}

/// The smallest of all threads' `x`; of floats as [`warp::max`](crate::warp::max). In PTX as [`sum`], with `min`.
#[must_use]
#[track_caller]
pub fn min<T: LaneValue>(x: T) -> T {
    reduce("block::min", x, T::smaller)
}

/// Whether `p` holds in all threads. In PTX a vote, a store, a barrier, a load and a vote.
#[must_use]
#[track_caller]
pub fn all(p: bool) -> bool {
    context("block::all").gather("block::all", u64::from(p)).iter().all(|p| *p == 1)
}

/// Whether `p` holds in any thread. In PTX a vote, a store, a barrier, a load and a vote.
#[must_use]
#[track_caller]
pub fn any(p: bool) -> bool {
    context("block::any").gather("block::any", u64::from(p)).contains(&1)
}

/// The `x` of the thread whose [`thread::index`](crate::thread::index) is `from`, for all threads; `from` is less than
/// [`threads`], and all threads name the same one. In PTX a store, a barrier and a load; in a block of one warp a
/// shuffle.
#[must_use]
#[track_caller]
pub fn broadcast<T: LaneValue>(x: T, from: usize) -> T {
    let all = context("block::broadcast").gather("block::broadcast", x.to_lane());
    assert!(from < all.len(), "block::broadcast from thread {from} of {}", all.len());
    T::from_lane(all[from])
}

/// One exchange, then all that the block would do, in each thread.
#[track_caller]
fn reduce<T: LaneValue>(operation: &'static str, x: T, combine: impl Fn(T, T) -> T) -> T {
    let all = context(operation).gather(operation, x.to_lane());
    let warp = |lanes: &[u64]| {
        let lanes: Vec<_> = lanes.iter().map(|bits| Some(T::from_lane(*bits))).collect();
        reduced(&lanes, &combine)[0]
    };
    let mut warps: Vec<_> = all.chunks(LANES).map(warp).collect();
    warps.resize(warps.len().next_power_of_two(), None);
    reduced(&warps, &combine)[0].expect("a block has a warp")
}
