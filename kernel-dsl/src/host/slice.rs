//! `&mut [T]` parameters of kernels that run on the host.

use super::context::context;
use super::monitor::Monitor;
use crate::element::{Element, bytes};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A slice that every thread of an emulated launch can hold as a `&mut [T]`.
///
/// Rust lets only one thread hold a `&mut [T]`, so each gets a copy of the slice as it was when the block began, and
/// what it changed is written back when it drops the copy. For a kernel whose threads write elements of their own that
/// is what a device does. A thread does not see what another thread of its block wrote, though: a kernel in which
/// threads trade values through global memory, with a sync between, runs right on a device and cannot be run here,
/// unless it takes a [`ViewMut`](crate::ViewMut). Two threads of a block that change one element panic.
pub struct SliceMut<'a, T: Element> {
    state: Mutex<State<'a, T>>,
}

struct State<'a, T> {
    elements: &'a mut [T],
    /// The block whose copies are out, and what it found. Kept alive, so that no later block is taken for it.
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
    /// For kernels that are to write `elements`.
    pub fn new(elements: &'a mut [T]) -> Self {
        SliceMut { state: Mutex::new(State { elements, block: None, found: Vec::new(), writer: Vec::new() }) }
    }

    /// The calling thread's copy, which coerces to `&mut [T]`: `saxpy(a, &x, &mut y.of_thread())`.
    ///
    /// # Panics
    /// Outside of [`run`](super::run).
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

    fn lock(&self) -> MutexGuard<'_, State<'a, T>> {
        // A thread that found a conflict panics with the lock held; the elements are sound all the same.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
            // By bits: a NaN differs from itself, and −0 does not from 0.
            if bytes(value) == bytes(&state.found[i]) {
                continue;
            }
            if let Some(other) = state.writer[i].replace(self.thread).filter(|t| *t != self.thread) {
                panic!(
                    "threads {other} and {} of a block both change element {i} of a `&mut [T]`: a race, unless they sync \
                     between, and then the kernel must take a `ViewMut` to run on the host",
                    self.thread
                );
            }
            state.elements[i] = *value;
        }
    }
}
