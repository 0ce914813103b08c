//! The gradients of softmax, layer norm and RMS norm: from the gradient of the output to those of
//! the inputs.
//!
//! Each gradient is linear in the incoming gradient g, with one or two sums per row:
//!
//! ```text
//!   softmax       dx = scale · y · (g − Σ g·y)
//!   log-softmax   dx = scale · (g − exp(y) · Σ g)
//!   layer norm    dx = f · (h − mean h − n · mean(h·n))       n = (z − μ)·f,  h = g · weight
//!   RMS norm      dx = f · (h − n · mean(h·n))                n = z·f
//! ```
//!
//! Two matrices are read and one is written; a team keeps both in registers. The gradients of
//! weight and bias are sums over columns, Σ g·n and Σ g. The sums have two stages whose order does
//! not depend on the device: partial sums of slabs of rows, and then the total sums.

use super::moments::{normalized, restored};
use super::row::{for_each_unkept, is_row, put, sum, take};
use kernel_dsl::prelude::*;

/// Adds a thread's part of a sum over a row of softmax to `own`: Σ g·y, or Σ g for the logarithm.
/// Masked elements, whose y is 0, or −∞ for the logarithm, are skipped for any gradient.
#[device]
fn add_row_sum<const LOG: bool, const V: usize, const N: usize>(g: &[[f32; V]; N], y: &[[f32; V]; N], own: f32) -> f32 {
    let masked = if LOG { f32::NEG_INFINITY } else { 0.0 };
    let mut own = own;
    for i in unroll(0..N) {
        for e in unroll(0..V) {
            let more = if LOG { own + g[i][e] } else { g[i][e].mul_add(y[i][e], own) };
            own = if y[i][e] == masked { own } else { more };
        }
    }
    own
}

/// Converts g to dx in place.
#[device]
fn apply_gradient<const LOG: bool, const V: usize, const N: usize>(
    g: &mut [[f32; V]; N],
    y: &[[f32; V]; N],
    scale: f32,
    sum: f32,
) {
    let masked = if LOG { f32::NEG_INFINITY } else { 0.0 };
    for i in unroll(0..N) {
        for e in unroll(0..V) {
            let inner = if LOG { (-math::exp(y[i][e])).mul_add(sum, g[i][e]) } else { y[i][e] * (g[i][e] - sum) };
            // 0 · ∞ would be NaN, in a row whose gradients contain an infinity.
            g[i][e] = if y[i][e] == masked { 0.0 } else { scale * inner };
        }
    }
}

/// Computes dx of y = softmax(scale · x + bias), or of its logarithm, from y and dy. Masked
/// elements get 0.
///
/// y, dy and dx are [rows, cols].
#[kernel(
    block = (L, ROWS), max_registers = 64, grid = y.rows().div_ceil(ROWS), writes(dx = once),
    derived(S = 8 / V),
    instances(
        f32_l512_v4: T = f32, LOG = false, L = 512, ROWS = 1, V = 4, N = 2;
        f32_l32_v1_log: T = f32, LOG = true, L = 32, ROWS = 8, V = 1, N = 8
    ),
)]
#[requires(
    y.rows() == dx.rows(), y.cols() == dx.cols(), dy.rows() == dx.rows(), dy.cols() == dx.cols(), dx.cols() % V == 0,
    y.aligned(V), dy.aligned(V), dx.aligned(V),
)]
pub fn softmax_backward<
    T: Float,
    const LOG: bool,
    const L: usize,
    const ROWS: usize,
    const V: usize,
    const N: usize,
    const S: usize,
>(
    scale: f32,
    y: View<T, 2>,
    dy: View<T, 2>,
    dx: ViewMut<T, 2>,
) {
    const { assert!(L == 32 || ROWS == 1) };
    let row = block::x() * ROWS + thread::y();
    let cols = if is_row::<ROWS>(row, y.rows()) { y.cols() } else { 0 };
    let (y, dy, dx) = (y.at(row), dy.at(row), dx.at(row));

    let kept = take::<T, L, V, N>(y, 0, cols, 0.0);
    let mut gradient = take::<T, L, V, N>(dy, 0, cols, 0.0);
    let mut own = add_row_sum::<LOG, V, N>(&gradient, &kept, 0.0);
    for_each_unkept::<L, V, N, S>(cols, |at| {
        let (y, g) = (take::<T, L, V, S>(y, at, cols, 0.0), take::<T, L, V, S>(dy, at, cols, 0.0));
        own = add_row_sum::<LOG, V, S>(&g, &y, own);
    });
    let of_row = sum::<L>(own);
    apply_gradient::<LOG, V, N>(&mut gradient, &kept, scale, of_row);
    put::<T, L, V, N>(dx, 0, cols, &gradient);
    for_each_unkept::<L, V, N, S>(cols, |at| {
        let (y, mut g) = (take::<T, L, V, S>(y, at, cols, 0.0), take::<T, L, V, S>(dy, at, cols, 0.0));
        apply_gradient::<LOG, V, S>(&mut g, &y, scale, of_row);
        put::<T, L, V, S>(dx, at, cols, &g);
    });
}

/// Returns a thread's pieces of n and h from `at` on, with zeros beyond the end.
#[device]
fn normal<T: Float, W: Float, const L: usize, const V: usize, const N: usize>(
    z: View<T, 1>,
    dy: View<T, 1>,
    weight: View<W, 1>,
    of_row: [f32; 2],
    at: usize,
    cols: usize,
) -> ([[f32; V]; N], [[f32; V]; N]) {
    let mut n = take::<T, L, V, N>(z, at, cols, of_row[0]);
    let mut h = take::<T, L, V, N>(dy, at, cols, 0.0);
    for i in unroll(0..N) {
        for e in unroll(0..V) {
            n[i][e] = normalized(n[i][e], restored(of_row));
        }
    }
    if !weight.is_empty() {
        let weight = take::<W, L, V, N>(weight, at, cols, 0.0);
        for i in unroll(0..N) {
            for e in unroll(0..V) {
                h[i][e] *= weight[i][e];
            }
        }
    }
    (n, h)
}

/// Returns own + (Σ h, Σ h·n).
#[device]
pub(super) fn projected<const V: usize, const N: usize>(
    n: &[[f32; V]; N],
    h: &[[f32; V]; N],
    own: [f32; 2],
) -> [f32; 2] {
    let mut own = own;
    for i in unroll(0..N) {
        for e in unroll(0..V) {
            own[0] += h[i][e];
            own[1] = h[i][e].mul_add(n[i][e], own[1]);
        }
    }
    own
}

/// Converts h to dx in place.
#[device]
pub(super) fn subtract_projection<const V: usize, const N: usize>(
    h: &mut [[f32; V]; N],
    n: &[[f32; V]; N],
    factor: f32,
    mean: f32,
    projection: f32,
) {
    for i in unroll(0..N) {
        for e in unroll(0..V) {
            h[i][e] = factor * (-n[i][e]).mul_add(projection, h[i][e] - mean);
        }
    }
}

/// Computes dz of y = norm(z), from dy and the saved statistics of each row.
///
/// z, dy and dz are [rows, cols], `saved` is [rows, 2], and `weight` is `[cols]` or empty.
#[kernel(
    block = (L, ROWS), max_registers = 64, grid = z.rows().div_ceil(ROWS), writes(dz = once),
    derived(S = 8 / V),
    instances(
        f32_l512_v4_centered: T = f32, W = f32, CENTERED = true, L = 512, ROWS = 1, V = 4, N = 2;
        f32_l32_v1: T = f32, W = f32, CENTERED = false, L = 32, ROWS = 8, V = 1, N = 8
    ),
)]
#[requires(
    z.rows() == dz.rows(), z.cols() == dz.cols(), dy.rows() == dz.rows(), dy.cols() == dz.cols(), dz.cols() % V == 0,
    saved.rows() == dz.rows(), saved.cols() == 2,
    weight.is_empty() || weight.len() == dz.cols() && weight.aligned(V), z.aligned(V), dy.aligned(V), dz.aligned(V),
)]
pub fn norm_backward<
    T: Float,
    W: Float,
    const CENTERED: bool,
    const L: usize,
    const ROWS: usize,
    const V: usize,
    const N: usize,
    const S: usize,
>(
    z: View<T, 2>,
    saved: View<f32, 2>,
    weight: View<W, 1>,
    dy: View<T, 2>,
    dz: ViewMut<T, 2>,
) {
    const { assert!(L == 32 || ROWS == 1) };
    let row = block::x() * ROWS + thread::y();
    let cols = if is_row::<ROWS>(row, z.rows()) { z.cols() } else { 0 };
    let mut of_row = [0.0f32; 2];
    if is_row::<ROWS>(row, saved.rows()) {
        of_row = [saved[(row, 0)], saved[(row, 1)]];
    }
    let (z, dy, dz) = (z.at(row), dy.at(row), dz.at(row));

    let (kept, mut gradient) = normal::<T, W, L, V, N>(z, dy, weight, of_row, 0, cols);
    let mut own = projected::<V, N>(&kept, &gradient, [0.0; 2]);
    for_each_unkept::<L, V, N, S>(cols, |at| {
        let (n, h) = normal::<T, W, L, V, S>(z, dy, weight, of_row, at, cols);
        own = projected::<V, S>(&n, &h, own);
    });
    let count = cols as f32;
    let mean = if CENTERED { sum::<L>(own[0]) / count } else { 0.0 };
    let projection = sum::<L>(own[1]) / count;
    subtract_projection::<V, N>(&mut gradient, &kept, of_row[1], mean, projection);
    put::<T, L, V, N>(dz, 0, cols, &gradient);
    for_each_unkept::<L, V, N, S>(cols, |at| {
        let (n, mut h) = normal::<T, W, L, V, S>(z, dy, weight, of_row, at, cols);
        subtract_projection::<V, S>(&mut h, &n, of_row[1], mean, projection);
        put::<T, L, V, S>(dz, at, cols, &h);
    });
}

/// Warps of a block that share a strip of columns.
#[device]
const WARPS: usize = 8;

/// Computes sums over columns: parts[s, 0, c] = Σ dy · n and parts[s, 1, c] = Σ dy over the `slab`
/// rows of slab s.
///
/// A block has 32 · `V` columns of a slab. The 8 warps alternate over the rows, and their sums are
/// added in order.
#[kernel(
    block = (32, 8), grid = (z.cols().div_ceil(32 * V), parts.dim(0)), writes(parts = once),
    instances(T = f32, V = 4; T = f16, V = 1),
)]
#[requires(
    dy.rows() == z.rows(), dy.cols() == z.cols(), saved.rows() == z.rows(), saved.cols() == 2, slab > 0,
    parts.dim(0) * slab >= z.rows(), parts.dim(1) == 2, parts.dim(2) == z.cols(), z.cols() % V == 0,
    z.aligned(V), dy.aligned(V), parts.aligned(V),
)]
pub fn norm_columns<T: Float, const V: usize>(
    z: View<T, 2>,
    saved: View<f32, 2>,
    dy: View<T, 2>,
    slab: usize,
    parts: ViewMut<f32, 3>,
) {
    let col = (block::x() * 32 + thread::x()) * V;
    let first = (block::y() * slab).min(z.rows());
    let end = (first + slab).min(z.rows());
    let mut sums = [[0.0f32; V]; 2];
    for row in (first + thread::y()..end).step_by(WARPS) {
        let of_row = restored([saved[(row, 0)], saved[(row, 1)]]);
        if col < z.cols() {
            let n: [f32; V] = z.load::<V>((row, col)).map(T::to_f32);
            let g: [f32; V] = dy.load::<V>((row, col)).map(T::to_f32);
            for e in unroll(0..V) {
                sums[0][e] = g[e].mul_add(normalized(n[e], of_row), sums[0][e]);
                sums[1][e] += g[e];
            }
        }
    }
    let shared = Shared::<f32, 4>::new([2, WARPS, V, 32]);
    for which in unroll(0..2) {
        for e in unroll(0..V) {
            shared.store((which, thread::y(), e, thread::x()), [sums[which][e]]);
        }
    }
    block::sync();
    if thread::y() < 2 && col < z.cols() {
        let mut total = [0.0f32; V];
        for warp in unroll(0..WARPS) {
            for e in unroll(0..V) {
                total[e] += shared[(thread::y(), warp, e, thread::x())];
            }
        }
        parts.store((block::y(), thread::y(), col), total);
    }
}

/// Computes dweight and dbias from the parts of all slabs; either may be absent.
///
/// A block has 32 columns. The 8 warps alternate over the slabs, with 4 of them in flight, and
/// their sums are added in order.
///
/// `parts` is [slabs, 2, cols], and `dweight` and `dbias` are `[cols]` or empty.
#[kernel(
    block = (32, 8), grid = parts.dim(2).div_ceil(32), writes(dweight = once, dbias = once),
    instances(W = f32),
)]
#[requires(
    parts.dim(1) == 2, dweight.is_empty() || dweight.len() == parts.dim(2), dbias.is_empty() || dbias.len() == parts.dim(2),
)]
pub fn norm_columns_sum<W: Float>(parts: View<f32, 3>, mut dweight: ViewMut<W, 1>, mut dbias: ViewMut<W, 1>) {
    let col = block::x() * 32 + thread::x();
    let slabs = if col < parts.dim(2) { parts.dim(0) } else { 0 };
    let mut sums = [0.0f32; 2];
    for first in (thread::y()..slabs).step_by(4 * WARPS) {
        let mut held = [[0.0f32; 2]; 4];
        for i in unroll(0..4) {
            if first + i * WARPS < slabs {
                held[i] = [parts[(first + i * WARPS, 0, col)], parts[(first + i * WARPS, 1, col)]];
            }
        }
        for i in unroll(0..4) {
            for which in unroll(0..2) {
                sums[which] += held[i][which];
            }
        }
    }
    let mut shared = Shared::<f32, 3>::new([2, WARPS, 32]);
    for which in unroll(0..2) {
        shared[(which, thread::y(), thread::x())] = sums[which];
    }
    block::sync();
    if thread::y() < 2 && col < parts.dim(2) {
        let mut total = 0.0f32;
        for warp in unroll(0..WARPS) {
            total += shared[(thread::y(), warp, thread::x())];
        }
        if thread::y() == 0 && !dweight.is_empty() {
            dweight[col] = W::from_f32(total);
        }
        if thread::y() == 1 && !dbias.is_empty() {
            dbias[col] = W::from_f32(total);
        }
    }
}
