//! Locks that ignore poisoning.
//!
//! A panic while a standard lock is held poisons it, so that every later caller panics as well.
//! A panic ends one call here, and a critical section leaves its data valid at each point where it
//! may panic. Later callers must proceed, because destructors also lock, and a panic in a
//! destructor aborts the process.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A mutex without poisoning.
#[derive(Default, Debug)]
pub struct Lock<T: ?Sized>(Mutex<T>);

impl<T> Lock<T> {
    /// Creates an unlocked mutex.
    pub const fn new(value: T) -> Lock<T> {
        Lock(Mutex::new(value))
    }
}

impl<T: ?Sized> Lock<T> {
    /// Waits until no other thread holds the mutex, and locks it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lock for one writer or several readers, without poisoning.
#[derive(Default, Debug)]
pub struct SharedLock<T: ?Sized>(RwLock<T>);

impl<T> SharedLock<T> {
    /// Creates an unlocked lock.
    pub const fn new(value: T) -> SharedLock<T> {
        SharedLock(RwLock::new(value))
    }
}

impl<T: ?Sized> SharedLock<T> {
    /// Waits until no thread writes, and locks the value for reading.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other thread holds the lock, and locks the value for writing.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Lock, SharedLock};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_lock_outlives_a_panic_of_its_holder() {
        let (lock, shared) = (Lock::new(1), SharedLock::new(1));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let (mut value, mut written) = (lock.lock(), shared.write());
            (*value, *written) = (2, 3);
            panic!("while both locks are held");
        }));
        assert!(panicked.is_err());
        assert_eq!((*lock.lock(), *shared.read()), (2, 3));
        *shared.write() += 1;
        assert_eq!(*shared.read(), 4);
    }
}
