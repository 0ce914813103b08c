//! The position of the running thread in an emulated launch, which the functions of the prelude
//! read.

use super::monitor::{BarrierScope, LANES, Monitor};
use crate::element::DeviceCopy;
use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

/// One thread of an emulated launch.
pub(crate) struct EmulatedThread {
    /// Index in the block in x, y, z.
    pub thread: [usize; 3],
    /// Linear index in the block, with x fastest.
    pub index: usize,
    /// Index of the block in the grid.
    pub block: [usize; 3],
    /// Threads of a block.
    pub block_dim: [usize; 3],
    /// Blocks of the grid.
    pub grid_dim: [usize; 3],
    /// State shared by the threads of the block.
    pub monitor: Arc<Monitor>,
    /// Shared arrays that this thread has made so far.
    pub arrays: Cell<usize>,
}

impl EmulatedThread {
    /// Returns the number of threads of a block.
    pub fn threads(&self) -> usize {
        self.block_dim.iter().product()
    }

    /// Waits for all threads of `scope` at the caller's location, and returns the `value` of each.
    #[track_caller]
    pub fn rendezvous<T: Copy + Send + Sync + 'static>(
        &self,
        scope: BarrierScope,
        operation: &'static str,
        value: T,
    ) -> Vec<T> {
        let place = Location::caller();
        let offers = self.monitor.rendezvous(self.index, scope, operation, place, Arc::new(value));
        let values = offers.iter().map(|offer| offer.downcast_ref().copied());
        values.collect::<Option<_>>().unwrap_or_else(|| {
            panic!("threads diverge before {operation} in {place}: their values have different types")
        })
    }

    /// Waits for all threads of the block at the caller's location, and returns the `value` of
    /// each. Panics if the block does not consist of whole warps.
    #[track_caller]
    pub fn gather<T: Copy + Send + Sync + 'static>(&self, operation: &'static str, value: T) -> Vec<T> {
        let threads = self.threads();
        assert!(
            threads.is_multiple_of(LANES),
            "{operation} needs whole warps, but the block has {threads} threads: make it a multiple of {LANES}"
        );
        self.rendezvous(BarrierScope::Block, operation, value)
    }

    /// Returns the array of the block that belongs to this thread's next call of a constructor. The
    /// first thread that makes this call allocates the array.
    #[track_caller]
    pub fn shared_array<T: DeviceCopy>(&self, shape: Vec<usize>, elements: usize) -> NonNull<T> {
        let call = self.arrays.replace(self.arrays.get() + 1);
        self.monitor.shared_array(call, Location::caller(), shape, elements)
    }
}

thread_local! {
    static CONTEXT: RefCell<Option<Rc<EmulatedThread>>> = const { RefCell::new(None) };
}

/// Calls `run` with `context` as the context of the calling OS thread.
pub(super) fn enter<R>(context: EmulatedThread, run: impl FnOnce() -> R) -> R {
    crate::pipeline::discard_copies();
    CONTEXT.set(Some(Rc::new(context)));
    let result = run();
    CONTEXT.set(None);
    result
}

/// Returns the thread's context; `None` outside a launch.
pub(crate) fn current() -> Option<Rc<EmulatedThread>> {
    CONTEXT.with_borrow(Clone::clone)
}

/// Returns the thread's context, for `operation`. Panics outside a launch.
#[track_caller]
pub(crate) fn context(operation: &str) -> Rc<EmulatedThread> {
    current().unwrap_or_else(|| {
        panic!(
            "`{operation}` was called outside of a kernel: launch the kernel on a device, \
             or run it with `kernel_dsl::host::run`"
        )
    })
}
