//! Locks that a child of `fork` can take.
//!
//! A child has only the thread that called `fork`. A lock that another thread of the parent held
//! stays locked in the child, and its value may be half changed. The child replaces such a lock by
//! a new one with an empty value.

use kernel_dsl_compiler::lock::Lock;
use std::ptr;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A lock on a value that a child of `fork` can make anew.
pub struct ForkLock<T: 'static>(AtomicPtr<Lock<T>>);

impl<T: Default + Send + 'static> ForkLock<T> {
    pub const fn new() -> ForkLock<T> {
        ForkLock(AtomicPtr::new(ptr::null_mut()))
    }

    /// Locks the value.
    pub fn lock(&self) -> MutexGuard<'static, T> {
        self.current().lock()
    }

    /// Returns the lock, made on first use. A lock is never freed.
    fn current(&self) -> &'static Lock<T> {
        let mut found = self.0.load(Ordering::Acquire);
        if found.is_null() {
            let made = Box::into_raw(Box::<Lock<T>>::default());
            found = match self.0.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => made,
                Err(other) => {
                    // SAFETY: no other thread has seen this lock.
                    drop(unsafe { Box::from_raw(made) });
                    other
                }
            };
        }
        // SAFETY: the pointer comes from a box that is never freed.
        unsafe { &*found }
    }

    /// Replaces the lock in a child of `fork` if another thread held it, or if the value `is_held`.
    /// The old value stays in memory, because it may be half changed.
    pub fn renew(&self, is_held: impl FnOnce(&T) -> bool) {
        if self.current().try_lock().is_none_or(|value| is_held(&value)) {
            self.0.store(Box::into_raw(Box::default()), Ordering::Release);
        }
    }
}

/// Returns whether another thread held a lock when the process forked.
pub fn is_held<T>(lock: &Lock<T>) -> bool {
    lock.try_lock().is_none()
}
