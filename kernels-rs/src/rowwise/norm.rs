//! Layer norm and RMS norm: each row is read once and written once, whatever is fused with it.
//!
//! ```text
//!   z = x + residual                                written too, where there is one
//!   layer   y = (z − μ) / √(σ² + ε) · weight + bias      μ = Σ z / C,  σ² = Σ (z − μ)² / C     (Ba, Kiros, Hinton, 2016)
//!   RMS     y = z / √(Σ z² / C + ε) · weight + bias                                            (Zhang, Sennrich, 2019)
//! ```
//!
//! The variance is that of differences from the mean, in a second pass over the registers: Σ z² − C·μ² would lose all that the two have in
//! common. Memory limits it: on sm_61 a row's elements take a dozen instructions each for their 8 bytes. Weight and bias, which all rows
//! share, come from the first cache: x goes past it, since from the second one they would cost as much as x itself.

use super::moments::{Moments, moments, plain, saved as to_save, scale_for};
use super::row::{begins, is_row, max, put, sum, take};
use kernel_dsl::prelude::*;

/// A thread's pieces of z from `at` on, zeros behind the end.
#[device]
fn summed<T: Float, const L: usize, const V: usize, const N: usize>(
    x: View<T, 1>,
    residual: View<T, 1>,
    fused: bool,
    at: usize,
    cols: usize,
) -> [[f32; V]; N] {
    let mut z = take::<T, L, V, N>(x, at, cols, 0.0);
    if fused {
        let with = take::<T, L, V, N>(residual, at, cols, 0.0);
        for i in unroll(0..N) {
            for e in unroll(0..V) {
                z[i][e] += with[i][e];
            }
        }
    }
    z
}

/// Makes scale · z − mean of z; without `SCALED` the scale is 1.
#[device]
pub(super) fn less<const SCALED: bool, const V: usize, const N: usize>(z: &mut [[f32; V]; N], scale: f32, mean: f32) {
    for i in unroll(0..N) {
        for e in unroll(0..V) {
            z[i][e] = if SCALED { z[i][e].mul_add(scale, -mean) } else { z[i][e] - mean };
        }
    }
}

/// Returns own + Σ d², of what lies before the end.
#[device]
fn squares<const L: usize, const V: usize, const N: usize>(d: &[[f32; V]; N], at: usize, cols: usize, own: f32) -> f32 {
    let mut own = own;
    for i in unroll(0..N) {
        if begins::<L, V>(at, i) < cols {
            for e in unroll(0..V) {
                own = d[i][e].mul_add(d[i][e], own);
            }
        }
    }
    own
}

/// Makes z · factor · weight + bias, of whichever there are, of z less its mean.
#[device]
fn normed<W: Float, const L: usize, const V: usize, const N: usize>(
    z: &mut [[f32; V]; N],
    factor: f32,
    weight: View<W, 1>,
    bias: View<W, 1>,
    at: usize,
    cols: usize,
) {
    for i in unroll(0..N) {
        for e in unroll(0..V) {
            z[i][e] *= factor;
        }
    }
    if !weight.is_empty() {
        let weight = take::<W, L, V, N>(weight, at, cols, 0.0);
        for i in unroll(0..N) {
            for e in unroll(0..V) {
                z[i][e] *= weight[i][e];
            }
        }
    }
    if !bias.is_empty() {
        let bias = take::<W, L, V, N>(bias, at, cols, 0.0);
        for i in unroll(0..N) {
            for e in unroll(0..V) {
                z[i][e] += bias[i][e];
            }
        }
    }
}

/// Returns `scale` times the mean of a row, 0 where `CENTRED` is false, and the variance of as much, and takes the mean from
/// what is kept; what is not kept ends at `end`. Without `SCALED` the scale is 1.
#[device]
fn centered<
    T: Float,
    const CENTRED: bool,
    const SCALED: bool,
    const L: usize,
    const V: usize,
    const N: usize,
    const S: usize,
>(
    kept: &mut [[f32; V]; N],
    x: View<T, 1>,
    residual: View<T, 1>,
    fused: bool,
    cols: usize,
    end: usize,
    scale: f32,
) -> [f32; 2] {
    let count = cols.max(1) as f32;
    let mut mean = 0.0;
    if CENTRED {
        let mut own = 0.0;
        for i in unroll(0..N) {
            for e in unroll(0..V) {
                own = if SCALED { kept[i][e].mul_add(scale, own) } else { own + kept[i][e] };
            }
        }
        for at in (N * L * V..end).step_by(S * L * V) {
            let z = summed::<T, L, V, S>(x, residual, fused, at, cols);
            for i in unroll(0..S) {
                for e in unroll(0..V) {
                    own = if SCALED { z[i][e].mul_add(scale, own) } else { own + z[i][e] };
                }
            }
        }
        mean = sum::<L>(own) / count;
    }
    less::<SCALED, V, N>(kept, scale, mean);
    let mut own = squares::<L, V, N>(kept, 0, cols, 0.0);
    for at in (N * L * V..end).step_by(S * L * V) {
        let mut z = summed::<T, L, V, S>(x, residual, fused, at, cols);
        less::<SCALED, V, S>(&mut z, scale, mean);
        own = squares::<L, V, S>(&z, at, cols, own);
    }
    [mean, sum::<L>(own) / count]
}

/// Returns a row's statistics, with a mean of 0 where `CENTRED` is false, and makes scale · z − mean of what is kept; what is
/// not kept ends at `end`. Rows whose sums or squares leave the range of `f32` are read again, and take a second pass
/// ([`moments`](super::moments)).
#[device]
pub(super) fn statistics<
    T: Float,
    const CENTRED: bool,
    const L: usize,
    const V: usize,
    const N: usize,
    const S: usize,
>(
    kept: &mut [[f32; V]; N],
    x: View<T, 1>,
    residual: View<T, 1>,
    fused: bool,
    cols: usize,
    end: usize,
    epsilon: f32,
) -> Moments {
    let [mean, variance] = centered::<T, CENTRED, false, L, V, N, S>(kept, x, residual, fused, cols, end, 1.0);
    let scale = scale_for(mean, variance, epsilon);
    let mut of_row = plain(mean, variance, epsilon);
    if scale != 1.0 {
        *kept = summed::<T, L, V, N>(x, residual, fused, 0, cols);
        let [mean, variance] = centered::<T, CENTRED, true, L, V, N, S>(kept, x, residual, fused, cols, end, scale);
        of_row = moments(scale, mean, variance, epsilon);
    }
    of_row
}

/// y = norm of the rows of x, or, `FUSED`, of z = x + residual, which is written too; `CENTRED`: layer norm, else RMS norm.
///
/// Weight and bias may be missing, and so may `saved`, which receives each row's mean and 1 / √(σ² + ε). A team of `L` threads a row keeps the first
/// `N · L · V` elements in registers, and passes over the others 8 a thread at once. `WHOLE` says that there are none: what is
/// not compiled takes no registers, and the loads of all pieces are under way at once.
#[kernel(
    block = (L, ROWS), max_registers = 48, grid = x.rows().div_ceil(ROWS), writes(y = once, z = once, saved = once),
    derived(S = 8 / V),
    instances(
        T = f32, W = f32, O = f32, CENTRED = true | false, FUSED = false | true, WHOLE = true, L = 512, ROWS = 1, V = 4, N = 2;
        T = f32, W = f32, O = f32, CENTRED = true, FUSED = true, WHOLE = false, L = 32, ROWS = 8, V = 1, N = 8;
        T = f16, W = f16, O = f16, CENTRED = false, FUSED = false, WHOLE = false, L = 32, ROWS = 8, V = 8, N = 1
    ),
)]
#[requires(
    y.rows() == x.rows(), y.cols() == x.cols(), x.cols() % V == 0, !WHOLE || x.cols() <= N * L * V,
    weight.is_empty() || weight.len() == x.cols() && weight.aligned(V), bias.is_empty() || bias.len() == x.cols() && bias.aligned(V),
    if FUSED { z.rows() == x.rows() && z.cols() == x.cols() && residual.rows() == x.rows() && residual.cols() == x.cols() } else { z.is_empty() },
    saved.is_empty() || saved.rows() == x.rows() && saved.cols() == 2,
    x.aligned(V), y.aligned(V), !FUSED || residual.aligned(V) && z.aligned(V),
)]
pub fn norm_rows<
    T: Float,
    W: Float,
    O: Float,
    const CENTRED: bool,
    const FUSED: bool,
    const WHOLE: bool,
    const L: usize,
    const ROWS: usize,
    const V: usize,
    const N: usize,
    const S: usize,
>(
    epsilon: f32,
    x: View<T, 2>,
    residual: View<T, 2>,
    z: ViewMut<T, 2>,
    weight: View<W, 1>,
    bias: View<W, 1>,
    y: ViewMut<O, 2>,
    mut saved: ViewMut<f32, 2>,
) {
    const { assert!(L == 32 || ROWS == 1) };
    let row = block::x() * ROWS + thread::y();
    let cols = if is_row::<ROWS>(row, x.rows()) { x.cols() } else { 0 };
    let (x, residual, z, y) = (x.at(row), residual.at(row), z.at(row), y.at(row));

    // Past the first cache, which keeps weight and bias for the next row.
    let mut kept = summed::<T, L, V, N>(x.coherent(), residual.coherent(), FUSED, 0, cols);
    if FUSED {
        put::<T, L, V, N>(z, 0, cols, &kept);
    }
    // Behind what is kept: nothing, where that is all.
    let end = if WHOLE { 0 } else { cols };
    let of_row = statistics::<T, CENTRED, L, V, N, S>(&mut kept, x, residual, FUSED, cols, end, epsilon);
    if !saved.is_empty() && thread::x() == 0 && is_row::<ROWS>(row, saved.rows()) {
        // One by one: the caller's rows begin at any element.
        let [mean, factor] = to_save(of_row);
        saved[(row, 0)] = mean;
        saved[(row, 1)] = factor;
    }
    normed::<W, L, V, N>(&mut kept, of_row.factor, weight, bias, 0, cols);
    put::<O, L, V, N>(y, 0, cols, &kept);
    for at in (N * L * V..end).step_by(S * L * V) {
        let mut again = summed::<T, L, V, S>(x, residual, FUSED, at, cols);
        if FUSED {
            put::<T, L, V, S>(z, at, cols, &again);
        }
        less::<true, V, S>(&mut again, of_row.scale, of_row.mean);
        normed::<W, L, V, S>(&mut again, of_row.factor, weight, bias, at, cols);
        put::<O, L, V, S>(y, at, cols, &again);
    }
}

/// Stores a thread's pieces times lift and inverse, in whole numbers, to nearest, ties to even; 0 of a NaN.
#[device]
fn put_bytes<const L: usize, const V: usize, const N: usize>(
    y: ViewMut<i8, 1>,
    at: usize,
    cols: usize,
    values: &[[f32; V]; N],
    lift: f32,
    inverse: f32,
) {
    for i in unroll(0..N) {
        if begins::<L, V>(at, i) < cols {
            y.store(begins::<L, V>(at, i), values[i].map(|v| (v * lift * inverse).round_ties_even() as i8));
        }
    }
}

/// The largest of `top` and the magnitudes of what lies before the end.
#[device]
fn magnitude<const L: usize, const V: usize, const N: usize>(
    values: &[[f32; V]; N],
    at: usize,
    cols: usize,
    top: f32,
) -> f32 {
    let mut top = top;
    for i in unroll(0..N) {
        if begins::<L, V>(at, i) < cols {
            for e in unroll(0..V) {
                top = top.max(values[i][e].abs());
            }
        }
    }
    top
}

/// As [`norm_rows`], stored in 8 bits: y ≈ q · scale of the row, which is the row's largest magnitude over 127.
#[kernel(
    block = (L, ROWS), max_registers = 64, grid = x.rows().div_ceil(ROWS), writes(q = once, scales = once, z = once),
    derived(S = 8 / V),
    instances(T = f32, W = f32, CENTRED = false | true, L = 256, ROWS = 1, V = 4, N = 4),
)]
#[requires(
    q.rows() == x.rows(), q.cols() == x.cols(), x.cols() % V == 0, scales.len() == x.rows(),
    weight.is_empty() || weight.len() == x.cols() && weight.aligned(V), bias.is_empty() || bias.len() == x.cols() && bias.aligned(V),
    z.is_empty() || z.rows() == x.rows() && z.cols() == x.cols() && residual.rows() == x.rows() && residual.cols() == x.cols() && residual.aligned(V) && z.aligned(V),
    x.aligned(V), q.aligned(V),
)]
pub fn norm_quantized<
    T: Float,
    W: Float,
    const CENTRED: bool,
    const L: usize,
    const ROWS: usize,
    const V: usize,
    const N: usize,
    const S: usize,
>(
    epsilon: f32,
    x: View<T, 2>,
    residual: View<T, 2>,
    z: ViewMut<T, 2>,
    weight: View<W, 1>,
    bias: View<W, 1>,
    q: ViewMut<i8, 2>,
    mut scales: ViewMut<f32, 1>,
) {
    const { assert!(L == 32 || ROWS == 1) };
    let row = block::x() * ROWS + thread::y();
    let cols = if row < x.rows() { x.cols() } else { 0 };
    let fused = !z.is_empty();
    let (x, residual, z, q) = (x.at(row), residual.at(row), z.at(row), q.at(row));

    let mut kept = summed::<T, L, V, N>(x.coherent(), residual.coherent(), fused, 0, cols);
    if fused {
        put::<T, L, V, N>(z, 0, cols, &kept);
    }
    let of_row = statistics::<T, CENTRED, L, V, N, S>(&mut kept, x, residual, fused, cols, cols, epsilon);
    normed::<W, L, V, N>(&mut kept, of_row.factor, weight, bias, 0, cols);
    let mut top = magnitude::<L, V, N>(&kept, 0, cols, 0.0);
    for at in (N * L * V..cols).step_by(S * L * V) {
        let mut again = summed::<T, L, V, S>(x, residual, fused, at, cols);
        if fused {
            put::<T, L, V, S>(z, at, cols, &again);
        }
        less::<true, V, S>(&mut again, of_row.scale, of_row.mean);
        normed::<W, L, V, S>(&mut again, of_row.factor, weight, bias, at, cols);
        top = magnitude::<L, V, S>(&again, at, cols, top);
    }
    let top = max::<L>(top);
    // The reciprocal of a subnormal overflows, that of the same times 2¹⁰⁰ does not. Of zeros ∞: 0 · ∞ is NaN, which becomes 0.
    let lift = if top < 7.888_609e-31 { 1.267_650_6e30 } else { 1.0f32 };
    let inverse = 127.0 / (top * lift);
    if thread::x() == 0 && row < scales.len() {
        scales[row] = top / 127.0;
    }
    put_bytes::<L, V, N>(q, 0, cols, &kept, lift, inverse);
    for at in (N * L * V..cols).step_by(S * L * V) {
        let mut again = summed::<T, L, V, S>(x, residual, fused, at, cols);
        less::<true, V, S>(&mut again, of_row.scale, of_row.mean);
        normed::<W, L, V, S>(&mut again, of_row.factor, weight, bias, at, cols);
        put_bytes::<L, V, S>(q, at, cols, &again, lift, inverse);
    }
}
