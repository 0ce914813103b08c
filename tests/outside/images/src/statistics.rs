//! Kernels on all pixels of an image.

use kernel_dsl::prelude::*;
use pixel::Pixel;
use pixel::format::{Gray16, Rgb32f, Rgba8};

/// Number of bins of a histogram.
#[device]
pub const BINS: usize = 64;

/// Adds the number of pixels of each brightness to the bins.
#[kernel(block = 128, grid = device::waves(4, x.len().div_ceil(128)), instances(P = Rgba8 | Gray16))]
#[requires(bins.len() == BINS)]
pub fn histogram<P: Pixel>(x: &[P], bins: &mut [u32]) {
    let own = Shared::<u32, 1>::new([BINS]);
    own.fill(0);
    block::sync();
    for i in grid::stride(x.len()) {
        let level = x[i].color().luma().clamp(0.0, 1.0) * (BINS - 1) as f32;
        own.fetch_add(level.round() as usize, 1);
    }
    block::sync();
    if thread::x() < BINS && own[thread::x()] > 0 {
        bins.fetch_add(thread::x(), own[thread::x()]);
    }
}

/// The minimum and the maximum, and the number of values.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
#[repr(C)]
pub struct Extent {
    /// The minimum.
    pub low: f32,
    /// The maximum.
    pub high: f32,
    /// The number of values.
    pub count: u32,
}

/// The extent of an empty set, neutral in `joined`.
#[device]
pub const NOTHING: Extent = Extent { low: f32::INFINITY, high: f32::NEG_INFINITY, count: 0 };

/// Returns the extent of the values of both.
#[device]
pub fn joined(a: Extent, b: Extent) -> Extent {
    Extent { low: a.low.min(b.low), high: a.high.max(b.high), count: a.count + b.count }
}

/// Computes the extent of each row's brightness, with one block per row.
#[kernel(block = THREADS, grid = x.rows(), instances(P = Rgba8 | Rgb32f, THREADS = 64 | 256))]
#[requires(out.len() == x.rows())]
pub fn extents<P: Pixel, const THREADS: usize>(x: View<P, 2>, out: &mut [Extent]) {
    let row = x.at(block::x());
    let mut seen = NOTHING;
    for i in block::stride(row.len()) {
        let luma = row[i].color().luma();
        seen = joined(seen, Extent { low: luma, high: luma, count: 1 });
    }
    let all = block::reduce(seen, joined);
    if thread::index() == 0 {
        out[block::x()] = all;
    }
}

/// Computes the prefix sums of each row, as for an integral image.
#[kernel(block = 128, grid = x.rows(), instances(T = u32 | f32))]
#[requires(x.rows() == out.rows(), x.cols() == out.cols())]
pub fn running<T: Number>(x: View<T, 2>, mut out: ViewMut<T, 2>) {
    let row = block::x();
    let mut carry = T::default();
    for first in (0..x.cols()).step_by(128) {
        let col = first + thread::x();
        let own = x.get((row, col)).unwrap_or(T::default());
        let (before, total) = block::scan(own, T::default(), |a, b| a + b);
        if col < x.cols() {
            out[(row, col)] = carry + before + own;
        }
        carry = carry + total;
    }
}

/// Computes the mean of each row, with one warp per row.
#[kernel(block = (32, 4), grid = x.rows().div_ceil(4), instances(T = f32 | f16))]
#[requires(means.len() == x.rows())]
pub fn row_means<T: Float>(x: View<T, 2>, means: &mut [f32]) {
    let row = 4 * block::x() + thread::y();
    let cols = if row < x.rows() { x.cols() } else { 0 };
    let mut sum = 0.0;
    for col in (warp::lane()..cols).step_by(32) {
        sum += x[(row, col)].to_f32();
    }
    let sum = warp::sum(sum);
    if row < x.rows() && warp::lane() == 0 {
        means[row] = sum / cols as f32;
    }
}
