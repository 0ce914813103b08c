//! The kernel that copies windows of a volume to rows of a matrix.

use crate::fold::{along_x, along_y, block_at};
use crate::permute::rows::div_rem;
use kernel_dsl::prelude::*;

/// Windows of a thread.
#[device]
pub const WINDOWS_PER_THREAD: usize = 8;

/// The positions of windows, along depth, height and width.
#[device]
#[derive(Clone, Copy, Debug, DeviceCopy)]
pub struct Lattice {
    /// Elements of a window.
    pub kernel: [u32; 3],
    /// The distance between windows, in elements.
    pub stride: [u32; 3],
    /// Zeros before the first element.
    pub padding: [u32; 3],
    /// The distance between elements of a window.
    pub dilation: [u32; 3],
    /// The number of windows.
    pub windows: [u32; 3],
}

/// Computes cols[w, (c, i, j, k)] = x[sample, c, element (i, j, k) of window w], `V` elements at
/// once.
///
/// Windows are counted through samples, depth, height and width; the first row is window `first`.
/// Elements outside of x are zeros. With `INSIDE`, no window extends beyond x, so the kernel does
/// not compare positions.
#[kernel(
    block = 256,
    grid = (
        along_x(cols.rows().div_ceil(8), cols.cols().div_ceil(256 * V), 1),
        along_y(cols.cols().div_ceil(256 * V), 1),
    ),
    writes(cols = once),
    instances(T = f32, INSIDE = false, V = 1; T = f32, INSIDE = true, V = 4 | 1; T = f16, INSIDE = false, V = 1),
)]
#[requires(x.aligned(V), cols.aligned(V), cols.cols() % V == 0, INSIDE || V == 1)]
pub fn im2col<T: Number, const INSIDE: bool, const V: usize>(
    x: View<T, 5>,
    lattice: Lattice,
    first: usize,
    cols: ViewMut<T, 2>,
) {
    let [of_rows, of_cols, _] = block_at(cols.rows().div_ceil(WINDOWS_PER_THREAD), cols.cols().div_ceil(256 * V));
    let col = (of_cols * 256 + thread::x()) * V;
    if col >= cols.cols() {
        return;
    }
    let kernel = lattice.kernel.map(|n| n as usize);
    let windows = lattice.windows.map(|n| n as usize);
    let (stride, dilation) = (lattice.stride.map(|n| n as usize), lattice.dilation.map(|n| n as usize));
    let padding = lattice.padding.map(|n| n as usize);
    // The offset of the column's element from the first of its window.
    let (rest, k) = div_rem(col, kernel[2]);
    let (rest, j) = div_rem(rest, kernel[1]);
    let (channel, i) = div_rem(rest, kernel[0]);
    let from = [i * dilation[0], j * dilation[1], k * dilation[2]];
    // The first of the thread's windows; the others are computed incrementally.
    let row = of_rows * WINDOWS_PER_THREAD;
    let (rest, mut c) = div_rem(first + row, windows[2]);
    let (rest, mut b) = div_rem(rest, windows[1]);
    let (mut sample, mut a) = div_rem(rest, windows[0]);
    let mut found = [[T::default(); V]; WINDOWS_PER_THREAD];
    for r in unroll(0..WINDOWS_PER_THREAD) {
        if row + r < cols.rows() {
            let at = [a * stride[0] + from[0], b * stride[1] + from[1], c * stride[2] + from[2]];
            if INSIDE {
                found[r] = x.load((sample, channel, at[0], at[1], at[2]));
            } else {
                let below =
                    at[0] < x.dim(2) + padding[0] && at[1] < x.dim(3) + padding[1] && at[2] < x.dim(4) + padding[2];
                if below && at[0] >= padding[0] && at[1] >= padding[1] && at[2] >= padding[2] {
                    found[r] = x.load((sample, channel, at[0] - padding[0], at[1] - padding[1], at[2] - padding[2]));
                }
            }
        }
        c += 1;
        if c == windows[2] {
            c = 0;
            b += 1;
            if b == windows[1] {
                b = 0;
                a += 1;
                if a == windows[0] {
                    a = 0;
                    sample += 1;
                }
            }
        }
    }
    for r in unroll(0..WINDOWS_PER_THREAD) {
        if row + r < cols.rows() {
            cols.store((row + r, col), found[r]);
        }
    }
}
