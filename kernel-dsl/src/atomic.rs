//! Element types with atomic operations, and their implementation on the host.

use crate::element::{Element, ScalarElement};
use crate::wide::ElementSpace;
use kernel_dsl_compiler::lock::Lock;
use std::ptr::NonNull;

/// Elements with `fetch_add`, `fetch_sub`, `exchange`, `fetch_min` and `fetch_max`: integers, `f32`
/// and `f64`.
#[diagnostic::on_unimplemented(
    message = "sm_61 has no atomic operations on `{Self}`",
    note = "integers, f32 and f64 have them; `load_relaxed` and `store_relaxed` also take f16 and bf16"
)]
pub trait Atomic: ScalarElement {
    /// Returns the value that `fetch_add` writes.
    #[doc(hidden)]
    fn sum(self, other: Self, space: ElementSpace) -> Self;
    /// Returns the value that `fetch_sub` writes.
    #[doc(hidden)]
    fn difference(self, other: Self, space: ElementSpace) -> Self;
    /// Returns the value that `fetch_min` writes.
    #[doc(hidden)]
    fn atomic_min(self, other: Self) -> Self;
    /// Returns the value that `fetch_max` writes.
    #[doc(hidden)]
    fn atomic_max(self, other: Self) -> Self;
}

/// Elements with the other atomic operations: integers.
#[diagnostic::on_unimplemented(
    message = "sm_61 has no such atomic operation on `{Self}`",
    note = "integers have it; floats have `fetch_add`, `fetch_sub`, `exchange`, `fetch_min` and `fetch_max`"
)]
pub trait AtomicInteger: Atomic + Ord {}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Atomic for $t {
            fn sum(self, other: Self, _: ElementSpace) -> Self {
                self.wrapping_add(other)
            }
            fn difference(self, other: Self, _: ElementSpace) -> Self {
                self.wrapping_sub(other)
            }
            fn atomic_min(self, other: Self) -> Self {
                self.min(other)
            }
            fn atomic_max(self, other: Self) -> Self {
                self.max(other)
            }
        }
        impl AtomicInteger for $t {}
    )*};
}
integers!(i8 u8 i16 u16 i32 u32 i64 u64);

macro_rules! floats {
    ($($t:ty, $flushed:expr;)*) => {$(
        impl Atomic for $t {
            fn sum(self, other: Self, space: ElementSpace) -> Self {
                let flushed = |x: $t| if $flushed(space) && x.is_subnormal() { (0.0 as $t).copysign(x) } else { x };
                flushed(flushed(self) + flushed(other))
            }
            fn difference(self, other: Self, space: ElementSpace) -> Self {
                self.sum(-other, space)
            }
            // A NaN gives the other operand, and −0 is below +0.
            fn atomic_min(self, other: Self) -> Self {
                match self == other {
                    true => Self::from_bits(self.to_bits() | other.to_bits()),
                    false => self.min(other),
                }
            }
            fn atomic_max(self, other: Self) -> Self {
                match self == other {
                    true => Self::from_bits(self.to_bits() & other.to_bits()),
                    false => self.max(other),
                }
            }
        }
    )*};
}
floats! {
    f32, |space| space == ElementSpace::Global;
    f64, |_| false;
}

/// Applies `change` to an element, atomically among all calls of this function. Returns the old
/// value.
///
/// # Safety
/// The element must be alive and initialized. During the call, only calls of this function may
/// access the element.
pub(crate) unsafe fn update<T: Element>(element: NonNull<T>, change: impl FnOnce(T) -> T) -> T {
    static ONE: Lock<()> = Lock::new(());
    // If `change` panics, the element keeps its value.
    let _one = ONE.lock();
    // SAFETY: the caller guarantees a valid element; all other changes wait for the lock.
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
        /// old one, as one indivisible step among atomic operations on the element. In PTX: `atom`,
        /// or `red` if the old value is unused.
        ///
        /// The operations are relaxed: they order no other access. Several threads may apply them
        /// to one element without a sync between. A plain access by another thread needs a sync.
        /// The order of the threads is unspecified. A result that depends on this order may vary: a
        /// rounded sum of floats, or the returned values.
        ///
        /// On elements of 8 and 16 bits each operation is a loop of `atom.cas` on the 32-bit word
        /// that contains the element. This word must be inside the buffer, so the buffer's length
        /// in bytes must be a multiple of 4.
        impl<T: Atomic, const R: usize> $Handle<T, R> {
            /// Adds `value`. Integers wrap. For `f32` in global memory the hardware flushes
            /// subnormal operands and sums to zeros of their sign; in shared memory it does not.
            #[track_caller]
            pub fn fetch_add(self, at: impl Position<R>, value: T) -> T {
                self.update(at, |x| x.sum(value, $space))
            }

            /// Subtracts `value`, as [`fetch_add`](Self::fetch_add) of the negated value. Integers
            /// wrap.
            #[track_caller]
            pub fn fetch_sub(self, at: impl Position<R>, value: T) -> T {
                self.update(at, |x| x.difference(value, $space))
            }

            /// Stores the minimum of the element and `value`. If one of them is NaN, the other is
            /// stored; −0 is below +0. For floats the operation is a loop of `atom.cas`.
            #[track_caller]
            pub fn fetch_min(self, at: impl Position<R>, value: T) -> T {
                self.update(at, |x| x.atomic_min(value))
            }

            /// Stores the maximum of the element and `value`; see [`fetch_min`](Self::fetch_min).
            #[track_caller]
            pub fn fetch_max(self, at: impl Position<R>, value: T) -> T {
                self.update(at, |x| x.atomic_max(value))
            }

            /// Stores `value`.
            #[track_caller]
            pub fn exchange(self, at: impl Position<R>, value: T) -> T {
                self.update(at, |_| value)
            }
        }

        /// Atomic loads and stores of numbers of 8 to 64 bits. Each access is performed once, at
        /// its position in the program, as a volatile access (`ld.volatile`, `st.volatile`). An
        /// acquire orders the later accesses of the thread after the load; a release orders the
        /// earlier ones before the store. On sm_61 an acquire and a release are each a fence
        /// ([`fence`](crate::fence)) and a relaxed access.
        impl<T: ScalarElement, const R: usize> $Handle<T, R> {
            /// Loads the element, without an order with other accesses.
            #[track_caller]
            pub fn load_relaxed(self, at: impl Position<R>) -> T {
                self.update(at, |x| x)
            }

            /// Loads the element. If the load reads what a
            /// [`store_release`](Self::store_release) of another thread stored, everything before
            /// that store happens-before everything after this load.
            #[track_caller]
            pub fn load_acquire(self, at: impl Position<R>) -> T {
                self.update(at, |x| x)
            }

            /// Stores `value`, without an order with other accesses.
            #[track_caller]
            pub fn store_relaxed(self, at: impl Position<R>, value: T) {
                self.update(at, |_| value);
            }

            /// Stores `value`: a [`load_acquire`](Self::load_acquire) that reads `value` also
            /// observes everything before this store.
            #[track_caller]
            pub fn store_release(self, at: impl Position<R>, value: T) {
                self.update(at, |_| value);
            }

            /// Loads the element as [`load_relaxed`](Self::load_relaxed) does. No compiler drops,
            /// repeats or merges the load.
            #[track_caller]
            pub fn read_volatile(self, at: impl Position<R>) -> T {
                self.update(at, |x| x)
            }

            /// Stores `value` as [`store_relaxed`](Self::store_relaxed) does. No compiler drops,
            /// repeats or merges the store.
            #[track_caller]
            pub fn write_volatile(self, at: impl Position<R>, value: T) {
                self.update(at, |_| value);
            }

            #[track_caller]
            fn update(self, at: impl Position<R>, change: impl FnOnce(T) -> T) -> T {
                let element = self.element(at.indices());
                // SAFETY: the element is inside initialized memory. The callers of `host` guarantee
                // that the memory is alive, and that meanwhile other threads access the element
                // only by atomic operations.
                unsafe { crate::atomic::update(element, change) }
            }
        }

        /// Atomic operations on integers; see [`fetch_add`](Self::fetch_add).
        impl<T: AtomicInteger, const R: usize> $Handle<T, R> {
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
