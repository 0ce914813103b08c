//! Explicit groups of asynchronous copies, for targets from sm_80 on, closed and waited for in
//! order.
//!
//! [`Shared::copy_async`](crate::Shared::copy_async) returns a token for each copy, works on every
//! target, and computes how many groups may remain in flight at the wait. This module makes the
//! groups explicit. [`Shared::cp_async`](crate::Shared::cp_async) issues a copy, [`commit`] closes
//! a group of copies, and [`wait`]`::<N>()` waits for all groups of the thread except the last N.
//! The three functions are `cp.async`, `commit_group` and `wait_group` of PTX, and
//! `__pipeline_memcpy_async`, `__pipeline_commit` and `__pipeline_wait_prior` of CUDA.
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! /// y ← column sums of x, whose rows are copied two ahead.
//! #[kernel(target = sm_80, block = 64, grid = 1)]
//! #[requires(x.cols() == 64, y.len() == 64)]
//! pub fn sums(x: View<f32, 2>, y: &mut [f32]) {
//!     let s = Shared::<f32, 2>::new([3, 64]);
//!     for row in unroll(0..2) {
//!         s.at(row).cp_async(x.offset((row, 0)).at(0));
//!         pipeline::commit();
//!     }
//!     let mut sum = 0.0;
//!     for row in 0..x.rows() {
//!         pipeline::wait::<1>();                          // the row's group, and not the one after
//!         block::sync();
//!         s.at((row + 2) % 3).cp_async(x.offset((row + 2, 0)).at(0));
//!         pipeline::commit();                             // only zeros past the end, but a group still
//!         sum += s[(row % 3, 63 - thread::x())];
//!     }
//!     y[thread::x()] = sum;
//! }
//! # fn main() {}
//! ```
//!
//! A destination is undefined until the issuing thread has waited for its group, and for other
//! threads until a [`block::sync`](crate::block::sync) after that. The oracle reports loads before
//! that point (`uninitialized-shared`), stores to the destination, and threads that end without
//! waiting for a nonempty copy (`unfinished-copy`). Tokens count too: where `copy_async` bypasses
//! registers, each of its copies is a separate group.

use crate::host::context::context;
use std::cell::RefCell;
use std::collections::VecDeque;

/// The action that completes a copy.
type CopyCompletion = Box<dyn FnOnce()>;

/// The copies that a thread has issued.
#[derive(Default)]
struct Groups {
    open: Vec<CopyCompletion>,
    closed: VecDeque<Vec<CopyCompletion>>,
}

thread_local! {
    static GROUPS: RefCell<Groups> = RefCell::default();
}

/// Forgets all copies, at the start of a thread.
pub(crate) fn discard_copies() {
    GROUPS.take();
}

/// Adds a copy, which `store` completes, to the open group.
pub(crate) fn begin(store: impl FnOnce() + 'static) {
    GROUPS.with_borrow_mut(|groups| groups.open.push(Box::new(store)));
}

/// Closes the group of the copies that this thread has issued since the last group, even an empty
/// one. In PTX: `cp.async.commit_group`, from sm_80 on.
#[track_caller]
pub fn commit() {
    context("pipeline::commit()");
    GROUPS.with_borrow_mut(|groups| {
        let group = std::mem::take(&mut groups.open);
        groups.closed.push_back(group);
    });
}

/// Waits until at most the last `N` groups that this thread has closed are in flight. In PTX:
/// `cp.async.wait_group`, from sm_80 on.
#[track_caller]
pub fn wait<const N: usize>() {
    context("pipeline::wait()");
    let done: Vec<_> = GROUPS.with_borrow_mut(|groups| {
        let done = groups.closed.len().saturating_sub(N);
        groups.closed.drain(..done).flatten().collect()
    });
    done.into_iter().for_each(|store| store());
}
