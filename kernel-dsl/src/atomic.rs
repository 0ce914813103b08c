//! Element types with atomic operations, and their implementation on the host.

use crate::element::{Element, ScalarElement};
use crate::wide::Space;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// Elements with `fetch_add` and `exchange`: integers and floats of 32 and 64 bits.
#[diagnostic::on_unimplemented(
    message = "sm_61 has no atomic operations on `{Self}`",
    note = "`fetch_add` and `exchange` support i32, u32, i64, u64, f32 and f64; the other operations support these integers"
)]
pub trait Atomic: ScalarElement {
    /// Returns the value that `fetch_add` writes.
    #[doc(hidden)]
    fn sum(self, other: Self, space: Space) -> Self;
}

/// Elements with the other atomic operations: integers of 32 and 64 bits.
#[diagnostic::on_unimplemented(
    message = "sm_61 has no such atomic operation on `{Self}`",
    note = "supported are i32, u32, i64 and u64; floats support `fetch_add` and `exchange`"
)]
pub trait AtomicInteger: Atomic + Ord {}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Atomic for $t {
            fn sum(self, other: Self, _: Space) -> Self {
                self.wrapping_add(other)
            }
        }
        impl AtomicInteger for $t {}
    )*};
}
integers!(i32 u32 i64 u64);

impl Atomic for f32 {
    fn sum(self, other: f32, space: Space) -> f32 {
        let flushed = |x: f32| if space == Space::Global && x.is_subnormal() { 0f32.copysign(x) } else { x };
        flushed(flushed(self) + flushed(other))
    }
}

impl Atomic for f64 {
    fn sum(self, other: f64, _: Space) -> f64 {
        self + other
    }
}

/// Replaces an element by `change` of its value, in one step without another such change between,
/// and returns the old value.
///
/// # Safety
/// The element must be alive, initialized, and accessed by no other code than this function
/// meanwhile.
pub(crate) unsafe fn update<T: Element>(element: NonNull<T>, change: impl FnOnce(T) -> T) -> T {
    static ONE: Mutex<()> = Mutex::new(());
    // A panic of `change` leaves the element as it was.
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the caller's duty; all other changes wait for the lock.
    unsafe {
        let before = element.read();
        element.write(change(before));
        before
    }
}

/// Applies a bitwise operation in the element's own type.
pub(crate) fn bitwise<T: ScalarElement>(a: T, b: T, operation: fn(u64, u64) -> u64) -> T {
    T::from_bits(operation(a.bits(), b.bits()))
}

/// The atomic operations of a handle to memory in `$space`; its `element(at)` returns a checked
/// address.
macro_rules! atomics {
    ($Handle:ident, $space:expr) => {
        /// Atomic operations. Each reads the element at `at`, writes a new value, and returns the
        /// old one, as one indivisible step among atomic operations on the element. In PTX `atom`,
        /// or `red` if the old value is unused.
        ///
        /// They are relaxed: they order no other access. Several threads may apply them to one
        /// element without a sync between; a plain access by another thread needs one. The order of
        /// the threads is unspecified, so a result that depends on it may vary: a rounded sum of
        /// floats, or the returned values.
        impl<T: Atomic, const R: usize> $Handle<T, R> {
            /// Adds `value`. Integers wrap. For `f32` in global memory the hardware flushes
            /// subnormal operands and sums to zeros of their sign; in shared memory it does not.
            #[track_caller]
            pub fn fetch_add(self, at: impl Position<R>, value: T) -> T {
                self.update(at, |x| x.sum(value, $space))
            }

            /// `value` itself.
            #[track_caller]
            pub fn exchange(self, at: impl Position<R>, value: T) -> T {
                self.update(at, |_| value)
            }

            #[track_caller]
            fn update(self, at: impl Position<R>, change: impl FnOnce(T) -> T) -> T {
                let element = self.element(at.indices());
                // SAFETY: the element is inside initialized memory. The callers of `host` guarantee
                // that the memory is alive and that no other thread accesses the element otherwise
                // meanwhile.
                unsafe { crate::atomic::update(element, change) }
            }
        }

        /// Atomic operations on integers; see [`fetch_add`](Self::fetch_add).
        impl<T: AtomicInteger, const R: usize> $Handle<T, R> {
            /// Stores the minimum of the element and `value`.
            #[track_caller]
            pub fn fetch_min(self, at: impl Position<R>, value: T) -> T {
                self.update(at, |x| x.min(value))
            }

            /// Stores the maximum of the element and `value`.
            #[track_caller]
            pub fn fetch_max(self, at: impl Position<R>, value: T) -> T {
                self.update(at, |x| x.max(value))
            }

            /// Stores the bitwise and of the element and `value`.
            #[track_caller]
            pub fn fetch_and(self, at: impl Position<R>, value: T) -> T {
                self.update(at, |x| crate::atomic::bitwise(x, value, |a, b| a & b))
            }

            /// Stores the bitwise or of the element and `value`.
            #[track_caller]
            pub fn fetch_or(self, at: impl Position<R>, value: T) -> T {
                self.update(at, |x| crate::atomic::bitwise(x, value, |a, b| a | b))
            }

            /// Stores the bitwise exclusive or of the element and `value`.
            #[track_caller]
            pub fn fetch_xor(self, at: impl Position<R>, value: T) -> T {
                self.update(at, |x| crate::atomic::bitwise(x, value, |a, b| a ^ b))
            }

            /// Stores `new` if the element equals `expected`. Returns the old value in either case.
            #[track_caller]
            pub fn compare_exchange(self, at: impl Position<R>, expected: T, new: T) -> T {
                self.update(at, |x| if x == expected { new } else { x })
            }
        }
    };
}
pub(crate) use atomics;
