//! Locks that ignore poisoning. The whole workspace uses these locks instead of the standard ones.
//!
//! A panic while a standard lock is held poisons it, so that every later caller panics as well.
//! A panic ends one call here, and a critical section leaves its data valid at each point where it
//! may panic. Later callers must proceed, because destructors also lock, and a panic in a
//! destructor aborts the process.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

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

    /// Locks the mutex, or returns `None` if it is held.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(value) => Some(value),
            Err(TryLockError::Poisoned(value)) => Some(value.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A condition variable for values in a [`Lock`], without poisoning.
#[derive(Default, Debug)]
pub struct WaitCondition(Condvar);

impl WaitCondition {
    /// Creates a condition for which no thread waits.
    pub const fn new() -> WaitCondition {
        WaitCondition(Condvar::new())
    }

    /// Unlocks a value until another thread notifies this condition, and locks it again. A wait may
    /// also end without a reason.
    pub fn wait<'a, T>(&self, value: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(value).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `condition` of the value is false.
    pub fn wait_while<'a, T>(
        &self,
        value: MutexGuard<'a, T>,
        condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        self.0.wait_while(value, condition).unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes a thread that waits.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all threads that wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
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
    use super::{Lock, SharedLock, WaitCondition};
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
        assert_eq!(lock.try_lock().map(|value| *value), Some(2));
    }

    #[test]
    fn a_held_lock_is_not_taken_twice() {
        let lock = Lock::new(1);
        let held = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(held);
        assert!(lock.try_lock().is_some());
    }

    #[test]
    fn a_wait_outlives_a_panic_of_the_holder() {
        let (lock, condition) = (Lock::new(0), WaitCondition::new());
        std::thread::scope(|scope| {
            let panicked = scope.spawn(|| {
                let _value = lock.lock();
                panic!("while the lock is held");
            });
            assert!(panicked.join().is_err());
            scope.spawn(|| {
                *lock.lock() += 1;
                condition.notify_all();
            });
            let value = condition.wait_while(lock.lock(), |value| *value == 0);
            assert_eq!(*value, 1);
        });
    }
}
