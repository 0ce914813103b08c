//! What a thread of a block has to do of a whole.

use crate::{block, thread};
use std::iter::StepBy;
use std::ops::Range;

/// The elements of a row-major array of that shape that are this thread's: thread t has the elements t, t + threads, t + 2 ·
/// threads, …, counted through, and gets their indices.
///
/// It stands in a `for`, as a range does. In `unroll(…)` the shape must be constant in every instance of the kernel: then
/// there are ⌈elements / threads⌉ copies of the body, and where threads do not divide the elements a compare before each.
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
/// In PTX the element's number by `mad.lo`, and its indices by a division for each dimension but the first: shifts and masks
/// where the extents are powers of two.
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

/// The numbers below `n` that are this thread's among those of its block: `(thread::index()..n).step_by(block::threads())`.
#[track_caller]
pub fn stride(n: usize) -> StepBy<Range<usize>> {
    (thread::index()..n).step_by(block::threads())
}
