//! Fences: the order in which other threads observe this thread's memory accesses.
//!
//! Without a fence, threads of other warps may observe a thread's accesses to writable memory in
//! any order. [`block::sync`](crate::block::sync) orders the accesses of a block. Between blocks,
//! use a fence and an atomic operation:
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! /// total[0] ← Σ x: the block that ends last adds the sums of all.
//! #[kernel(block = 256, grid = partial.len())]
//! #[requires(total.len() == 1, ended.len() == 1)]
//! pub fn sum(x: &[f32], partial: &mut [f32], ended: &mut [u32], total: &mut [f32]) {
//!     let i = grid::index();
//!     let own = block::sum(if i < x.len() { x[i] } else { 0.0 });
//!     let mut before = 0u32;
//!     if thread::index() == 0 {
//!         partial[block::x()] = own;
//!         fence::grid();                                  // the sum before the count
//!         before = ended.fetch_add(0, 1);
//!         fence::grid();                                  // the count before the others' sums
//!     }
//!     if block::broadcast(before, 0) as usize + 1 == partial.len() {
//!         let mut all = 0.0;
//!         for k in (thread::index()..partial.len()).step_by(block::threads()) {
//!             all += partial[k];
//!         }
//!         let all = block::sum(all);
//!         if thread::index() == 0 {
//!             total[0] = all;
//!         }
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! A fence both releases and acquires, as [`std::sync::atomic::fence`] with `AcqRel`. Suppose one
//! thread makes a fence and then an atomic write, and another thread reads that value atomically
//! and then makes a fence. Everything the first thread did before its fence happens-before
//! everything the second does after its fence.
//!
//! A [`block::sync`](crate::block::sync), or within a warp a [`warp::sync`](crate::warp::sync),
//! extends the order on both sides to the other threads that take part in it. The fence is not
//! sequentially consistent. A fence does not wait for other threads, and a single lane may make
//! one. Loads and stores never move across it, except loads from `&[T]` and `View`, whose memory
//! stays unwritten.

use crate::host::context::context;
use std::sync::atomic::Ordering;

/// Orders memory accesses for the threads of the block: shared memory and buffers. In PTX:
/// `membar.cta`; from sm_70 `fence.acq_rel.cta`.
#[track_caller]
pub fn block() {
    fence("fence::block()");
}

/// Orders memory for the threads of the grid. In PTX: `membar.gl`; from sm_70 `fence.acq_rel.gpu`.
#[track_caller]
pub fn grid() {
    fence("fence::grid()");
}

/// Orders memory accesses for the host and other devices too. In PTX: `membar.sys`; from sm_70
/// `fence.acq_rel.sys`.
#[track_caller]
pub fn system() {
    fence("fence::system()");
}

#[track_caller]
fn fence(operation: &str) {
    context(operation);
    std::sync::atomic::fence(Ordering::AcqRel);
}
