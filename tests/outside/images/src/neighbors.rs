//! Kernels on pixels with their neighbors.

use kernel_dsl::prelude::*;
use pixel::border::{Border, resolve};
use pixel::format::{Color, Gray16, Pixel, Rgba8};

/// Computes the mean of (2R + 1)² pixels, where pixels beyond the edge equal the nearest one. A
/// tile and its border are read once.
#[kernel(
    block = (16, 16),
    grid = (out.cols().div_ceil(16), out.rows().div_ceil(16)),
    instances(R = 1 | 3),
    derived(SIDE = 16 + 2 * R),
)]
#[requires(x.rows() == out.rows(), x.cols() == out.cols())]
pub fn box_blur<const R: usize, const SIDE: usize>(x: View<f32, 2>, mut out: ViewMut<f32, 2>) {
    let mut tile = Shared::<f32, 2>::new([SIDE, SIDE]);
    let (top, left) = (16 * block::y(), 16 * block::x());
    let clamped = |at: usize, len: usize| at.saturating_sub(R).min(len - 1);
    for row in (thread::y()..SIDE).step_by(16) {
        for col in (thread::x()..SIDE).step_by(16) {
            tile[(row, col)] = x[(clamped(top + row, x.rows()), clamped(left + col, x.cols()))];
        }
    }
    block::sync();
    let mut sum = 0.0;
    for row in unroll(0..2 * R + 1) {
        for col in unroll(0..2 * R + 1) {
            sum += tile[(thread::y() + row, thread::x() + col)];
        }
    }
    let (row, col) = (top + thread::y(), left + thread::x());
    if row < out.rows() && col < out.cols() {
        out[(row, col)] = sum / ((2 * R + 1) * (2 * R + 1)) as f32;
    }
}

/// Weights of a pixel and its eight neighbors.
#[device]
pub mod stencils {
    /// Nine weights, and a function of the weighted sum.
    pub trait Stencil {
        /// The weights by row.
        const WEIGHTS: [[f32; 3]; 3];
        /// Returns the result for the weighted sum.
        fn finish(sum: f32) -> f32 {
            sum
        }
    }

    /// Edges in any direction.
    #[derive(Clone, Copy)]
    pub struct Laplace;
    impl Stencil for Laplace {
        const WEIGHTS: [[f32; 3]; 3] = [[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]];
        fn finish(sum: f32) -> f32 {
            sum.abs()
        }
    }

    /// Increases the contrast at edges.
    #[derive(Clone, Copy)]
    pub struct Sharpen;
    impl Stencil for Sharpen {
        const WEIGHTS: [[f32; 3]; 3] = [[0.0, -1.0, 0.0], [-1.0, 5.0, -1.0], [0.0, -1.0, 0.0]];
    }
}
use stencils::{Laplace, Sharpen, Stencil};

/// Applies a stencil of 3 × 3 to the luma of any pixels.
#[kernel(
    block = (32, 4),
    grid = (out.cols().div_ceil(32), out.rows().div_ceil(4)),
    instances(P = Rgba8 | Gray16, S = Laplace | Sharpen),
)]
#[requires(x.rows() == out.rows(), x.cols() == out.cols())]
pub fn convolve<P: Pixel, S: Stencil>(x: View<P, 2>, mut out: ViewMut<f32, 2>, border: u32) {
    let border = match border {
        0 => Border::Clamp,
        1 => Border::Wrap,
        _ => Border::Mirror,
    };
    let (row, col) = (block::y() * 4 + thread::y(), block::x() * 32 + thread::x());
    if row >= out.rows() || col >= out.cols() {
        return;
    }
    let mut sum = 0.0;
    for (i, weights) in unroll(S::WEIGHTS).enumerate() {
        let r = resolve(border, (row + i) as i32 - 1, x.rows());
        for (j, weight) in unroll(weights).enumerate() {
            let c = resolve(border, (col + j) as i32 - 1, x.cols());
            sum = weight.mul_add(x[(r, c)].color().luma(), sum);
        }
    }
    out[(row, col)] = S::finish(sum);
}

/// Puts two elements in order.
#[device]
fn order(v: &mut [f32; 9], a: usize, b: usize) {
    (v[a], v[b]) = (v[a].min(v[b]), v[a].max(v[b]));
}

/// Returns the median of nine values, by a network of nineteen comparisons.
#[device]
pub fn median(mut v: [f32; 9]) -> f32 {
    const STEPS: [(usize, usize); 19] = [
        (1, 2),
        (4, 5),
        (7, 8),
        (0, 1),
        (3, 4),
        (6, 7),
        (1, 2),
        (4, 5),
        (7, 8),
        (0, 3),
        (5, 8),
        (4, 7),
        (3, 6),
        (1, 4),
        (2, 5),
        (4, 7),
        (4, 2),
        (6, 4),
        (4, 2),
    ];
    for (a, b) in unroll(STEPS) {
        order(&mut v, a, b);
    }
    v[4]
}

/// Removes specks by the median of 3 × 3 pixels.
#[kernel(block = (32, 4), grid = (out.cols().div_ceil(32), out.rows().div_ceil(4)))]
#[requires(x.rows() == out.rows(), x.cols() == out.cols())]
pub fn despeckle(x: View<f32, 2>, mut out: ViewMut<f32, 2>) {
    let (row, col) = (block::y() * 4 + thread::y(), block::x() * 32 + thread::x());
    if row < out.rows() && col < out.cols() {
        let at = |i: usize, j: usize| {
            let r = resolve(Border::Clamp, (row + i) as i32 - 1, x.rows());
            x[(r, resolve(Border::Clamp, (col + j) as i32 - 1, x.cols()))]
        };
        out[(row, col)] = median(std::array::from_fn(|k| at(k / 3, k % 3)));
    }
}

/// An affine map of the plane, from a pixel of the result to its position in the source.
#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affine {
    /// The image of (1, 0).
    pub x: (f32, f32),
    /// The image of (0, 1).
    pub y: (f32, f32),
    /// The image of the origin.
    pub origin: (f32, f32),
}

/// Returns the source position of `at`.
#[device]
pub fn mapped(map: Affine, at: (f32, f32)) -> (f32, f32) {
    let along = |x: f32, y: f32, o: f32| at.0.mul_add(x, at.1.mul_add(y, o));
    (along(map.x.0, map.y.0, map.origin.0), along(map.x.1, map.y.1, map.origin.1))
}

/// Interpolates the color between four pixels.
#[device]
fn bilinear<P: Pixel>(image: View<P, 2>, at: (f32, f32)) -> Color {
    let (x, y) = at;
    let (left, top) = (x.floor(), y.floor());
    let (fx, fy) = (x - left, y - top);
    let mut color = Color::BLACK;
    for (i, wy) in unroll([1.0 - fy, fy]).enumerate() {
        for (j, wx) in unroll([1.0 - fx, fx]).enumerate() {
            let (r, c) = (top as i32 + i as i32, left as i32 + j as i32);
            if r >= 0 && c >= 0 {
                if let Some(pixel) = image.get((r as usize, c as usize)) {
                    color.add_scaled(pixel.color(), wx * wy);
                }
            }
        }
    }
    color
}

/// Resamples the image under an affine map; it is black beyond the edge.
#[kernel(block = (16, 16), grid = (out.cols().div_ceil(16), out.rows().div_ceil(16)), instances(P = Rgba8 | Gray16))]
pub fn resample<P: Pixel>(x: View<P, 2>, mut out: ViewMut<P, 2>, map: Affine) {
    let (row, col) = (block::y() * 16 + thread::y(), block::x() * 16 + thread::x());
    if row < out.rows() && col < out.cols() {
        out[(row, col)] = P::of(bilinear(x, mapped(map, (col as f32, row as f32))));
    }
}
