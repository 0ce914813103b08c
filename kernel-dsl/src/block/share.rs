//! The share of a thread in the work of its block.

use crate::{block, thread};
use std::iter::StepBy;
use std::ops::Range;

/// Iterates over the indices of this thread's elements of a row-major array of that shape. Thread t
/// has elements t, t + threads, t + 2 · threads and so on.
///
/// The iterator is the range of a `for`. In `unroll(…)` the shape must be constant in every
/// instance of the kernel. There are then ⌈elements / threads⌉ copies of the body, with a
/// comparison before each if the number of threads does not divide the elements.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// # const ROWS: usize = 64;
/// # const COLS: usize = 64;
/// # fn of_a_thread(x: View<f32, 2>, part: &mut [[f32; 4]; 4]) {
/// for (s, [r, c]) in unroll(block::share([ROWS, COLS / 4]).enumerate()) {
///     part[s] = x.load::<4>((r, 4 * c));
/// }
/// # }
/// ```
///
/// In PTX: the element's number by `mad.lo`, and its indices by one division for each dimension
/// except the first: shifts and masks if the extents are powers of two.
#[track_caller]
pub fn share<const R: usize>(shape: [usize; R]) -> impl ExactSizeIterator<Item = [usize; R]> {
    let elements = shape.iter().product();
    stride(elements).map(move |mut element| {
        let mut at = [0; R];
        for d in (0..R).rev() {
            at[d] = element % shape[d];
            element /= shape[d];
        }
        at
    })
}

/// Iterates over this thread's indices below `n` among the threads of its block:
/// `(thread::index()..n).step_by(block::threads())`.
#[track_caller]
pub fn stride(n: usize) -> StepBy<Range<usize>> {
    (thread::index()..n).step_by(block::threads())
}
