//! Common parts of accesses to several elements at once.

use crate::element::DeviceCopy;

/// The memory that holds an element.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ElementSpace {
    /// Global memory.
    Global,
    /// The block's shared memory.
    Shared,
}

/// Maximum number of bytes that one machine access moves.
const MAX_VECTOR_BYTES: usize = 16;

/// Returns the number of elements of type `T` that one machine access moves, for an access to `n`.
/// Panics if the language has no access to `n` elements.
#[track_caller]
pub(crate) fn elements_per_access<T: DeviceCopy>(n: usize) -> usize {
    assert!(matches!(n, 1 | 2 | 4 | 8 | 16), "an access must have 1, 2, 4, 8 or 16 elements, not {n}");
    n.min(MAX_VECTOR_BYTES / size_of::<T>())
}

/// Panics if an access to `n` elements from `first` on is not aligned.
#[track_caller]
pub(crate) fn aligned<T: DeviceCopy>(first: *const T, n: usize) {
    let bytes = elements_per_access::<T>(n) * size_of::<T>();
    assert!(
        first.addr().is_multiple_of(bytes),
        "misaligned: {first:p} is not a multiple of the {bytes} bytes of an access"
    );
}

/// Returns the indices of the element that is `n` elements after `at` in the last dimension.
pub(crate) fn advance_last<const R: usize>(mut at: [usize; R], n: usize) -> [usize; R] {
    at[R - 1] = at[R - 1].saturating_add(n);
    at
}
