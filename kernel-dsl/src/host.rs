//! Kernels on the host as rustc compiled them: each thread of a block is a thread of the operating
//! system.
//!
//! The compiler of this crate reads a kernel's Rust itself. [`run`] executes the same Rust as rustc
//! compiled it, so a test can compare the two. [`run`] is meant for small blocks: it is slow,
//! checks bounds and barriers but not races, and does not model the machine. To run kernels without
//! a GPU, launch them on the CPU device of crate `runtime`, whose interpreter checks everything.
//!
//! ```
//! use kernel_dsl::host;
//! use kernel_dsl::prelude::*;
//!
//! fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
//!     let i = grid::index();
//!     if i < y.len() {
//!         y[i] = a.mul_add(x[i], y[i]);
//!     }
//! }
//!
//! let x = [1.0, 2.0, 3.0];
//! let mut y = [10.0, 20.0, 30.0];
//! let ys = host::SliceMut::new(&mut y);
//! // SAFETY: each thread touches one element, its own.
//! unsafe { host::run([2, 1, 1], [2, 1, 1], || saxpy(2.0, &x, &mut ys.of_thread())) };
//! drop(ys);
//! assert_eq!(y, [12.0, 24.0, 36.0]);
//! ```
//!
//! # Differences from a device
//!
//! * Blocks run one after another. `usize` has the host's width.
//! * Each call that makes a [`Shared`](crate::Shared) array makes a new one; on a device it is the
//!   same memory. Contents are undefined in both cases.
//! * Rust's `max` and `min` of floats may return either of −0 and +0.
//! * A `&mut [T]` is a separate copy for each thread: see [`SliceMut`].

pub(crate) mod context;
pub(crate) mod monitor;
mod slice;

pub use slice::SliceMut;

use context::EmulatedThread;
use monitor::{BlockFailure, Canceled, Monitor};
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Threads that a block may have: those of the hardware.
const MAX_THREADS: usize = 1024;

/// Runs `kernel` once for each thread of a grid of `grid` blocks of `block` threads each (x, y, z).
///
/// A panic in one thread ends the block: threads that wait for it unwind, and `run` panics with
/// that thread's message and position in the grid. Threads that diverge before a barrier have the
/// same effect.
///
/// # Safety
/// `kernel` must be a kernel without races, and keep no access after its end:
/// * between two barriers that both pass, two threads may not access one element of a shared array
///   or mutable view if one of them writes;
/// * a reference to such an element may not be in use during another access to that element;
/// * no [`Shared`](crate::Shared) handle, nor a reference obtained through it, may be kept beyond
///   the end of the kernel.
///
/// # Panics
/// If the kernel panics, if threads diverge before a barrier, and if the block has no threads or
/// more than 1024.
#[track_caller]
pub unsafe fn run(grid: [usize; 3], block: [usize; 3], kernel: impl Fn() + Sync) {
    let threads = block.iter().try_fold(1, |n: usize, d| n.checked_mul(*d)).unwrap_or(usize::MAX);
    assert!(
        (1..=MAX_THREADS).contains(&threads),
        "a block of {} × {} × {} threads: a block has 1 to {MAX_THREADS} threads",
        block[0],
        block[1],
        block[2]
    );
    for z in 0..grid[2] {
        for y in 0..grid[1] {
            for x in 0..grid[0] {
                let at = [x, y, z];
                if let Err(failure) = run_block(at, grid, block, threads, &kernel) {
                    panic!("{}", describe(&failure, at, block));
                }
            }
        }
    }
}

fn run_block(
    at: [usize; 3],
    grid: [usize; 3],
    block: [usize; 3],
    threads: usize,
    kernel: &(impl Fn() + Sync),
) -> Result<(), BlockFailure> {
    let monitor = Arc::new(Monitor::new(threads));
    std::thread::scope(|scope| {
        for index in 0..threads {
            let thread = unravel(index, block);
            let context = EmulatedThread {
                thread,
                index,
                block: at,
                block_dim: block,
                grid_dim: grid,
                monitor: monitor.clone(),
                arrays: Cell::new(0),
            };
            let name = format!("thread {thread:?} of block {at:?}");
            if let Err(e) = std::thread::Builder::new().name(name).spawn_scoped(scope, || run_thread(context, kernel)) {
                let message = format!("the system gave {index} of the block's {threads} threads: {e}");
                monitor.fail(BlockFailure { thread: None, message });
                break;
            }
        }
    });
    monitor.failure().map_or(Ok(()), Err)
}

fn run_thread(context: EmulatedThread, kernel: &impl Fn()) {
    let (index, monitor) = (context.index, context.monitor.clone());
    // An unfinished change after a panic lies in the block's memory. A failed block's results reach
    // the caller only through its own slices, which are plain data.
    let outcome = context::enter(context, || catch_unwind(AssertUnwindSafe(kernel)));
    if let Err(payload) = outcome
        && !payload.is::<Canceled>()
    {
        monitor.fail(BlockFailure { thread: Some(index), message: text(&*payload) });
    }
    monitor.end(index);
}

/// Returns the indices in x, y, z of thread `index` of a block.
fn unravel(index: usize, block: [usize; 3]) -> [usize; 3] {
    [index % block[0], index / block[0] % block[1], index / block[0] / block[1]]
}

fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_string()
}

fn describe(failure: &BlockFailure, at: [usize; 3], block: [usize; 3]) -> String {
    let [x, y, z] = at;
    let message = &failure.message;
    match failure.thread.map(|t| unravel(t, block)) {
        Some([tx, ty, tz]) => format!("thread ({tx}, {ty}, {tz}) of block ({x}, {y}, {z}): {message}"),
        None => format!("block ({x}, {y}, {z}): {message}"),
    }
}
