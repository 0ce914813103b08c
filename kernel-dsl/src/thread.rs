//! The current thread. Values differ between threads and need no convergence.

use crate::element::DeviceCopy;
use crate::host::context::context;

/// Returns an array of this thread in local memory, whose indices may be computed: a stack, a queue
/// or a small table. The elements are undefined until the thread writes them.
///
/// An array in registers, `[0; 32]`, needs indices that are constant after unrolling. An array in
/// local memory does not. Each access to it is a load or store of the device's memory through its
/// caches: in PTX `ld.local` and `st.local`. Threads of a warp that access the same index share
/// sectors. The call must be the value of a `let`. If all its indices are constant, the array is in
/// registers. A copy, `let own = stack;`, is an array in registers. `kernels report` prints the
/// bytes of local memory per thread, and the sectors of each access.
///
/// The interpreter reports an index out of bounds and a read of an element that was never written.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// /// y[i] ← x[i] in bijective base 4, its lowest digit first in the result.
/// #[kernel(block = 128, grid = x.len().div_ceil(128))]
/// #[requires(x.len() == y.len())]
/// pub fn reversed_digits(x: &[u32], y: &mut [u32]) {
///     let i = grid::index();
///     if i < x.len() {
///         let mut stack = thread::local::<[u32; 16]>();
///         let mut depth = 0;
///         let mut rest = x[i];
///         while rest > 0 {
///             stack[depth] = (rest - 1) % 4 + 1;
///             rest = (rest - 1) / 4;
///             depth += 1;
///         }
///         let mut value = 0u32;
///         for k in 0..depth {
///             value = value.wrapping_mul(10).wrapping_add(stack[k]);
///         }
///         y[i] = value;
///     }
/// }
/// # fn main() {}
/// ```
#[must_use]
#[track_caller]
pub fn local<T: DeviceCopy>() -> T {
    context("thread::local()");
    T::undefined()
}

/// Returns the index in the block along x (`%tid.x`). Consecutive threads of a warp have
/// consecutive x.
#[must_use]
#[track_caller]
pub fn x() -> usize {
    context("thread::x()").thread[0]
}

/// Returns the index in the block along y (`%tid.y`).
#[must_use]
#[track_caller]
pub fn y() -> usize {
    context("thread::y()").thread[1]
}

/// Returns the index in the block along z (`%tid.z`).
#[must_use]
#[track_caller]
pub fn z() -> usize {
    context("thread::z()").thread[2]
}

/// Returns the index in the block, with x fastest, then y, then z: x + dim_x · (y + dim_y · z). In
/// PTX: `%tid.x` alone for a block of one dimension, otherwise `mad.lo` by constants.
#[must_use]
#[track_caller]
pub fn index() -> usize {
    context("thread::index()").index
}
