//! Copies past the registers by hand, for targets from sm_80 on: groups of them, closed and waited for in order.
//!
//! [`Shared::copy_async`](crate::Shared::copy_async) gives a token for each copy, works on every target, and finds by itself how
//! many groups may still be under way where its token is waited for. Where a kernel wants to say that itself,
//! [`Shared::cp_async`](crate::Shared::cp_async) begins a copy, [`commit`] closes a group of them, and
//! [`wait`]`::<N>()` waits for all groups of the thread but the last N: what `cp.async`, `commit_group` and `wait_group` of
//! PTX are, and `__pipeline_memcpy_async`, `__pipeline_commit` and `__pipeline_wait_prior` of CUDA.
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! /// y ← column sums of x, whose rows come two ahead.
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
//!         pipeline::commit();                             // of nothing but zeros past the end, but a group still
//!         sum += s[(row % 3, 63 - thread::x())];
//!     }
//!     y[thread::x()] = sum;
//! }
//! # fn main() {}
//! ```
//!
//! A destination is undefined until the thread that began the copy has waited for its group, and for other threads until a
//! [`block::sync`](crate::block::sync) after that. The oracle tells who loads from there before (`uninitialised-shared`), who stores there, and
//! who ends without having waited for what is more than zeros (`unfinished-copy`). Tokens count too: where `copy_async` goes past
//! the registers, each of its copies is a group of its own.

use crate::host::context::context;
use std::cell::RefCell;
use std::collections::VecDeque;

/// What completes a copy.
type Store = Box<dyn FnOnce()>;

/// A thread's copies that have begun.
#[derive(Default)]
struct Groups {
    open: Vec<Store>,
    closed: VecDeque<Vec<Store>>,
}

thread_local! {
    static GROUPS: RefCell<Groups> = RefCell::default();
}

/// A thread begins, in which no copy has.
pub(crate) fn forget() {
    GROUPS.take();
}

/// Adds a copy, which `store` completes, to the open group.
pub(crate) fn begin(store: impl FnOnce() + 'static) {
    GROUPS.with_borrow_mut(|groups| groups.open.push(Box::new(store)));
}

/// Closes the group of the copies that this thread has begun since the last one, empty or not. In PTX
/// `cp.async.commit_group`, from sm_80 on.
#[track_caller]
pub fn commit() {
    context("pipeline::commit()");
    GROUPS.with_borrow_mut(|groups| {
        let group = std::mem::take(&mut groups.open);
        groups.closed.push_back(group);
    });
}

/// Waits until of the groups that this thread has closed at most the last `N` are still under way. In PTX
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
