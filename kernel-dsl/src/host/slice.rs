//! `&mut [T]` parameters of kernels that run on the host.

use super::context::context;
use super::monitor::Monitor;
use crate::element::{Element, bytes};
use kernel_dsl_compiler::lock::Lock;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, MutexGuard};

/// A slice that every thread of an emulated launch can hold as a `&mut [T]`.
///
/// Rust lets only one thread hold a `&mut [T]`. Each thread therefore gets a copy of the slice,
/// taken at the start of the block. The thread's changes are written back when it drops the copy.
/// This matches a device if each thread writes separate elements. A thread does not observe the
/// writes of other threads of its block. A kernel whose threads exchange values through global
/// memory must take a [`ViewMut`](crate::ViewMut) to run here. Two threads of a block that change
/// one element panic.
pub struct SliceMut<'a, T: Element> {
    state: Lock<SliceState<'a, T>>,
}

struct SliceState<'a, T> {
    elements: &'a mut [T],
    /// The block that uses the copies, and its findings. Kept alive so that a later block has
    /// another address.
    block: Option<Arc<Monitor>>,
    found: Vec<T>,
    /// The thread of the block that changed each element.
    writer: Vec<Option<usize>>,
}

/// A thread's copy of the slice.
pub struct OfThread<'s, 'a, T: Element> {
    slice: &'s SliceMut<'a, T>,
    thread: usize,
    copy: Vec<T>,
}

impl<'a, T: Element> SliceMut<'a, T> {
    /// Wraps `elements` for kernels that write them.
    pub fn new(elements: &'a mut [T]) -> Self {
        SliceMut { state: Lock::new(SliceState { elements, block: None, found: Vec::new(), writer: Vec::new() }) }
    }

    /// Returns the calling thread's copy, which coerces to `&mut [T]`:
    /// `saxpy(a, &x, &mut y.of_thread())`.
    ///
    /// # Panics
    /// Outside [`run`](super::run).
    #[track_caller]
    pub fn of_thread(&self) -> OfThread<'_, 'a, T> {
        let context = context("SliceMut::of_thread");
        let mut state = self.lock();
        if !state.block.as_ref().is_some_and(|b| Arc::ptr_eq(b, &context.monitor)) {
            state.block = Some(context.monitor.clone());
            state.found = state.elements.to_vec();
            state.writer = vec![None; state.elements.len()];
        }
        OfThread { slice: self, thread: context.index, copy: state.found.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, SliceState<'a, T>> {
        // A thread that finds a conflict panics with the lock held. The elements remain valid.
        self.state.lock()
    }
}

impl<T: Element> Deref for OfThread<'_, '_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.copy
    }
}

impl<T: Element> DerefMut for OfThread<'_, '_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.copy
    }
}

impl<T: Element> Drop for OfThread<'_, '_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let mut state = self.slice.lock();
        let state = &mut *state;
        for (i, value) in self.copy.iter().enumerate() {
            // Compared by bits: as numbers, a NaN would differ from itself, and −0 would equal 0.
            if bytes(value) == bytes(&state.found[i]) {
                continue;
            }
            if let Some(other) = state.writer[i].replace(self.thread).filter(|t| *t != self.thread) {
                panic!(
                    "threads {other} and {} of a block both store to element {i} of a `&mut [T]`: a race, unless the \
                     threads synchronize in between; then the kernel must take a `ViewMut` to run on the host",
                    self.thread
                );
            }
            state.elements[i] = *value;
        }
    }
}
