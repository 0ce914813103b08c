//! Layer norm and RMS norm. Each row is read once and written once, including fused operations.
//!
//! ```text
//!   z = x + residual                                written too, where there is one
//!   layer   y = (z − μ) / √(σ² + ε) · weight + bias      μ = Σ z / C,  σ² = Σ (z − μ)² / C     (Ba, Kiros, Hinton, 2016)
//!   RMS     y = z / √(Σ z² / C + ε) · weight + bias                                            (Zhang, Sennrich, 2019)
//! ```
//!
//! The variance is computed from differences from the mean, in a second pass over the registers: Σ
//! z² − C·μ² would cancel. The limit is memory: on sm_61 an element of 8 bytes needs a dozen
//! instructions. Weight and bias, which all rows share, come from the L1 cache. x bypasses L1;
//! otherwise weight and bias would come from L2, and cost the same bandwidth as x itself.
//!
//! Rows of up to 32,768 elements stay in registers. Measured on an H200 for 2048 such rows, 16 kept
//! elements per thread and 32, × of a copy: RMS norm 0.84 and 0.94, layer norm 0.84 and 0.92, RMS
//! norm of a sum 0.84 and 0.96. Blocks share longer rows ([`divided`](super::divided)), as those of
//! [`softmax`](super::softmax). 1024 rows of 65,536 elements before and after: RMS norm 0.80 and
//! 0.92, layer norm 0.71 and 0.91, RMS norm of a sum 0.70 and 0.96.
//!
//! A row whose sums leave the range of `f32` is read again, with an exact scale. The test costs
//! other rows instructions: in the instance for 4096 elements, each thread executes 211 instead of
//! 180 instructions of PTX. On an H100 most calls take as long as without the test. The norm of a
//! sum of 2048 rows of 32,768 elements is 1.3 % slower.

use super::divided::{MAX_PARTS, clear, exchange};
use super::moments::{Moments, moments, plain, saved as to_save, scale_for};
use super::row::{begins, for_each_unkept, is_row, max, put, sum, take};
use crate::quant::round::{Quad, quantize_quad};
use kernel_dsl::prelude::*;

/// Returns a thread's pieces of z from `at` on, with zeros beyond the end.
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

/// Replaces z by scale · z − mean. Without `SCALED` the scale is 1.
#[device]
pub(super) fn subtract_mean<const SCALED: bool, const V: usize, const N: usize>(
    z: &mut [[f32; V]; N],
    scale: f32,
    mean: f32,
) {
    for i in unroll(0..N) {
        for e in unroll(0..V) {
            z[i][e] = if SCALED { z[i][e].mul_add(scale, -mean) } else { z[i][e] - mean };
        }
    }
}

/// Returns own + Σ d², of the elements before the end.
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

/// Computes z · factor · weight + bias, with the weight and bias that are present, where z is the
/// deviation from the mean.
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

/// Returns `scale` times the mean of a row, 0 if `CENTERED` is false, and the variance of `scale`
/// times the row. Subtracts the mean from the elements kept in registers; the other elements end at
/// `end`. Without `SCALED` the scale is 1.
#[device]
fn centered<
    T: Float,
    const CENTERED: bool,
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
    if CENTERED {
        let mut own = 0.0;
        for i in unroll(0..N) {
            for e in unroll(0..V) {
                own = if SCALED { kept[i][e].mul_add(scale, own) } else { own + kept[i][e] };
            }
        }
        for_each_unkept::<L, V, N, S>(end, |at| {
            let z = summed::<T, L, V, S>(x, residual, fused, at, cols);
            for i in unroll(0..S) {
                for e in unroll(0..V) {
                    own = if SCALED { z[i][e].mul_add(scale, own) } else { own + z[i][e] };
                }
            }
        });
        mean = sum::<L>(own) / count;
    }
    subtract_mean::<SCALED, V, N>(kept, scale, mean);
    let mut own = squares::<L, V, N>(kept, 0, cols, 0.0);
    for_each_unkept::<L, V, N, S>(end, |at| {
        let mut z = summed::<T, L, V, S>(x, residual, fused, at, cols);
        subtract_mean::<SCALED, V, S>(&mut z, scale, mean);
        own = squares::<L, V, S>(&z, at, cols, own);
    });
    [mean, sum::<L>(own) / count]
}

/// Returns a row's statistics, with a mean of 0 if `CENTERED` is false. Replaces the elements in
/// registers by scale · z − mean. The other elements end at `end`. Rows whose sums or squares
/// exceed the range of `f32` are read again for a second pass ([`moments`](super::moments)).
#[device]
pub(super) fn statistics<
    T: Float,
    const CENTERED: bool,
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
    let [mean, variance] = centered::<T, CENTERED, false, L, V, N, S>(kept, x, residual, fused, cols, end, 1.0);
    let scale = scale_for(mean, variance, epsilon);
    let mut of_row = plain(mean, variance, epsilon);
    if scale != 1.0 {
        *kept = summed::<T, L, V, N>(x, residual, fused, 0, cols);
        let [mean, variance] = centered::<T, CENTERED, true, L, V, N, S>(kept, x, residual, fused, cols, end, scale);
        of_row = moments(scale, mean, variance, epsilon);
    }
    of_row
}

/// Reads a thread's pieces of z from `at` on, writes them if `store`, and returns their norm: the
/// elements of a row that are not kept in registers.
#[device]
fn norm_of_unkept<T: Float, W: Float, const L: usize, const V: usize, const S: usize>(
    x: View<T, 1>,
    residual: View<T, 1>,
    z: ViewMut<T, 1>,
    fused: bool,
    store: bool,
    of_row: Moments,
    weight: View<W, 1>,
    bias: View<W, 1>,
    at: usize,
    cols: usize,
) -> [[f32; V]; S] {
    let mut again = summed::<T, L, V, S>(x, residual, fused, at, cols);
    if store {
        put::<T, L, V, S>(z, at, cols, &again);
    }
    subtract_mean::<true, V, S>(&mut again, of_row.scale, of_row.mean);
    normed::<W, L, V, S>(&mut again, of_row.factor, weight, bias, at, cols);
    again
}

/// Computes y = norm of the rows of x, or if `FUSED` of z = x + residual, which is written, too.
///
/// The norm is a layer norm if `CENTERED`, else an RMS norm. Weight and bias may be absent, and so
/// may `saved`, which receives each row's mean and 1 / √(σ² + ε). A team of `L` threads per row
/// keeps the first `N · L · V` elements in registers, and reads the others again, 8 per thread at
/// once. With `WHOLE` there are no others: the omitted code needs no registers, and the loads of
/// all pieces are in flight at once.
///
/// x, `residual`, z and y are [rows, cols], `weight` and `bias` are `[cols]`, and `saved` is [rows,
/// 2].
#[kernel(
    block = (L, ROWS), max_registers = if N * V > 16 { 64 } else { 48 }, grid = x.rows().div_ceil(ROWS), writes(y = once, z = once, saved = once),
    instances(
        f32_l512_v4: T = f32, W = f32, O = f32, CENTERED = true | false, FUSED = false | true, WHOLE = true, L = 512, ROWS = 1, V = 4, N = 2, S = 2;
        f32_l1024_v4: T = f32, W = f32, O = f32, CENTERED = true, FUSED = false, WHOLE = true, L = 1024, ROWS = 1, V = 4, N = 8, S = 2;
        f32_l32_v1_centered_fused: T = f32, W = f32, O = f32, CENTERED = true, FUSED = true, WHOLE = false, L = 32, ROWS = 8, V = 1, N = 8, S = 8;
        f16_l32_v8: T = f16, W = f16, O = f16, CENTERED = false, FUSED = false, WHOLE = false, L = 32, ROWS = 8, V = 8, N = 1, S = 1
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
    const CENTERED: bool,
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

    // Bypasses L1, which keeps weight and bias for the next row.
    let mut kept = summed::<T, L, V, N>(x.bypass_l1(), residual.bypass_l1(), FUSED, 0, cols);
    if FUSED {
        put::<T, L, V, N>(z, 0, cols, &kept);
    }
    // The end of the elements that are not in registers, if any.
    let end = if WHOLE { 0 } else { cols };
    let of_row = statistics::<T, CENTERED, L, V, N, S>(&mut kept, x, residual, FUSED, cols, end, epsilon);
    if !saved.is_empty() && thread::x() == 0 && is_row::<ROWS>(row, saved.rows()) {
        // Stored one by one: the caller's rows may begin at any element.
        let [mean, factor] = to_save(of_row);
        saved[(row, 0)] = mean;
        saved[(row, 1)] = factor;
    }
    normed::<W, L, V, N>(&mut kept, of_row.factor, weight, bias, 0, cols);
    put::<O, L, V, N>(y, 0, cols, &kept);
    for_each_unkept::<L, V, N, S>(end, |at| {
        let again = norm_of_unkept::<T, W, L, V, S>(x, residual, z, FUSED, FUSED, of_row, weight, bias, at, cols);
        put::<O, L, V, S>(y, at, cols, &again);
    });
}

/// Returns two numbers of the part of a row that begins at `at`, read piece by piece: the sum of
/// `scale` · z, 0 if `CENTERED` is false, and the sum of squared differences from the part's mean.
#[device]
fn read_part<T: Float, const CENTERED: bool, const L: usize, const V: usize, const N: usize>(
    x: View<T, 1>,
    residual: View<T, 1>,
    fused: bool,
    at: usize,
    cols: usize,
    scale: f32,
) -> [f32; 2] {
    let mut of_part = 0.0;
    if CENTERED {
        let mut own = 0.0;
        for i in rolled(0..N) {
            let z = summed::<T, L, V, 1>(x, residual, fused, at + i * L * V, cols);
            for e in unroll(0..V) {
                own = z[0][e].mul_add(scale, own);
            }
        }
        of_part = sum::<L>(own);
    }
    let mean = of_part / (cols - at).min(L * V * N) as f32;
    let mut own = 0.0;
    for i in rolled(0..N) {
        let mut z = summed::<T, L, V, 1>(x, residual, fused, at + i * L * V, cols);
        subtract_mean::<true, V, 1>(&mut z, scale, mean);
        own = squares::<L, V, 1>(&z, at + i * L * V, cols, own);
    }
    [of_part, sum::<L>(own)]
}

/// Returns the mean of a row, 0 if `CENTERED` is false, and its variance, from the sums of its
/// parts. Σ (z − μ)² of a part is Σ (z − m)² + n · (m − μ)², for the mean m of its n elements. Each
/// warp computes them, without a barrier.
#[device]
fn combined<const CENTERED: bool, const PART: usize>(sums: Shared<f32, 2>, parts: usize, cols: usize) -> [f32; 2] {
    let mut mean = 0.0;
    if CENTERED {
        let mut own = 0.0;
        for part in rolled((warp::lane()..parts).step_by(32)) {
            own += sums[(part, 0)];
        }
        mean = warp::sum(own) / cols as f32;
    }
    let mut own = 0.0;
    for part in rolled((warp::lane()..parts).step_by(32)) {
        let n = (cols - part * PART).min(PART) as f32;
        let off = sums[(part, 0)] / n - mean;
        own += if CENTERED { (n * off).mul_add(off, sums[(part, 1)]) } else { sums[(part, 1)] };
    }
    [mean, warp::sum(own) / cols as f32]
}

/// Computes y = norm of the rows of x, as [`norm_rows`] does, for long rows. Blocks share a row,
/// `PART` elements each.
///
/// `links` has words of 0, two for each part of a row and one for each row; they are 0 again after
/// the launch ([`divided`](super::divided)). x, `residual`, z and y are [rows, cols], `weight` and
/// `bias` are `[cols]`, and `saved` is [rows, 2].
#[kernel(
    block = L, max_registers = 64, grid = x.rows() * x.cols().div_ceil(PART), writes(y = once, z = once, saved = once),
    instances(
        f32_l256_v4: T = f32, W = f32, O = f32, CENTERED = true | false, FUSED = false, L = 256, V = 4, N = 8;
        f32_l256_v4_fused: T = f32, W = f32, O = f32, CENTERED = true | false, FUSED = true, L = 256, V = 4, N = 6;
        f32_l64_v1: T = f32, W = f32, O = f32, CENTERED = true | false, FUSED = true, L = 64, V = 1, N = 2;
        f16_l64_v8: T = f16, W = f16, O = f16, CENTERED = true, FUSED = false, L = 64, V = 8, N = 1
    ),
    derived(PART = L * V * N),
)]
#[requires(
    y.rows() == x.rows(), y.cols() == x.cols(), x.cols() > 0, x.cols() % V == 0,
    weight.is_empty() || weight.len() == x.cols() && weight.aligned(V), bias.is_empty() || bias.len() == x.cols() && bias.aligned(V),
    !FUSED || z.rows() == x.rows() && z.cols() == x.cols() && residual.rows() == x.rows() && residual.cols() == x.cols() && residual.aligned(V) && z.aligned(V),
    saved.is_empty() || saved.rows() == x.rows() && saved.cols() == 2,
    x.aligned(V), y.aligned(V), x.cols() <= MAX_PARTS * PART,
    links.len() == x.rows() * (2 * x.cols().div_ceil(PART) + 1),
)]
pub fn norm_divided<
    T: Float,
    W: Float,
    O: Float,
    const CENTERED: bool,
    const FUSED: bool,
    const L: usize,
    const V: usize,
    const N: usize,
    const PART: usize,
>(
    epsilon: f32,
    x: View<T, 2>,
    residual: View<T, 2>,
    z: ViewMut<T, 2>,
    weight: View<W, 1>,
    bias: View<W, 1>,
    links: ViewMut<u64, 1>,
    y: ViewMut<O, 2>,
    mut saved: ViewMut<f32, 2>,
) {
    let mut sums = Shared::<f32, 2>::new([MAX_PARTS, 2]);
    let (cols, parts) = (x.cols(), x.cols().div_ceil(PART));
    let (row, part) = (block::x() / parts, block::x() % parts);
    let links = links.offset(row * (2 * parts + 1));
    let (x, residual, z, y) = (x.at(row), residual.at(row), z.at(row), y.at(row));
    let at = part * PART;

    let kept = summed::<T, L, V, N>(x, residual, FUSED, at, cols);
    if FUSED {
        put::<T, L, V, N>(z, at, cols, &kept);
    }
    let mut of_part = 0.0;
    if CENTERED {
        let mut own = 0.0;
        for i in unroll(0..N) {
            for e in unroll(0..V) {
                own += kept[i][e];
            }
        }
        of_part = sum::<L>(own);
    }
    let mut differences = kept;
    subtract_mean::<false, V, N>(&mut differences, 1.0, of_part / (cols - at).min(PART) as f32);
    let squares_of_part = sum::<L>(squares::<L, V, N>(&differences, at, cols, 0.0));
    let before = exchange::<L>(links, part, parts, [of_part, squares_of_part], sums, |part| {
        read_part::<T, CENTERED, L, V, N>(x, residual, FUSED, part * PART, cols, 1.0)
    });
    let [mean, variance] = combined::<CENTERED, PART>(sums, parts, cols);
    let scale = scale_for(mean, variance, epsilon);
    let mut of_row = plain(mean, variance, epsilon);
    if block::any(scale != 1.0) {
        for part in rolled(0..parts) {
            let scaled = read_part::<T, CENTERED, L, V, N>(x, residual, FUSED, part * PART, cols, scale);
            if thread::x() == 0 {
                sums[(part, 0)] = scaled[0];
                sums[(part, 1)] = scaled[1];
            }
            // The sums of the next part use the same shared memory.
            block::sync();
        }
        let [mean, variance] = combined::<CENTERED, PART>(sums, parts, cols);
        of_row = moments(scale, mean, variance, epsilon);
    }
    if !saved.is_empty() && thread::x() == 0 && part == 0 {
        // Stored one by one: the caller's rows may begin at any element.
        let [mean, factor] = to_save(of_row);
        saved[(row, 0)] = mean;
        saved[(row, 1)] = factor;
    }
    // Piece by piece: registers do not hold the weights and biases of all pieces as well.
    for i in unroll(0..N) {
        let (at, mut piece) = (at + i * L * V, [kept[i]]);
        subtract_mean::<true, V, 1>(&mut piece, of_row.scale, of_row.mean);
        normed::<W, L, V, 1>(&mut piece, of_row.factor, weight, bias, at, cols);
        put::<O, L, V, 1>(y, at, cols, &piece);
    }
    clear(links, parts, before);
}

/// Stores a thread's pieces times lift and inverse, rounded to the nearest integers, ties to even;
/// a NaN becomes 0.
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

/// Returns the largest of `top` and the magnitudes of the elements before the end.
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

/// Computes the norm as [`norm_rows`] does, and stores it in 8 bits: y ≈ q · scale of the row,
/// which is the row's largest magnitude / 127.
///
/// q is [rows, cols], and `scales` has one element for each row.
#[kernel(
    block = (L, ROWS), max_registers = 64, grid = x.rows().div_ceil(ROWS), writes(q = once, scales = once, z = once),
    derived(S = 8 / V),
    instances(f32_l256_v4: T = f32, W = f32, CENTERED = false | true, L = 256, ROWS = 1, V = 4, N = 4),
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
    const CENTERED: bool,
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

    let mut kept = summed::<T, L, V, N>(x.bypass_l1(), residual.bypass_l1(), fused, 0, cols);
    if fused {
        put::<T, L, V, N>(z, 0, cols, &kept);
    }
    let of_row = statistics::<T, CENTERED, L, V, N, S>(&mut kept, x, residual, fused, cols, cols, epsilon);
    normed::<W, L, V, N>(&mut kept, of_row.factor, weight, bias, 0, cols);
    let mut top = magnitude::<L, V, N>(&kept, 0, cols, 0.0);
    for_each_unkept::<L, V, N, S>(cols, |at| {
        let again = norm_of_unkept::<T, W, L, V, S>(x, residual, z, fused, fused, of_row, weight, bias, at, cols);
        top = magnitude::<L, V, S>(&again, at, cols, top);
    });
    let top = max::<L>(top);
    // The reciprocal of a subnormal would overflow, so `top` is multiplied by 2¹⁰⁰. In a row of
    // zeros the reciprocal is ∞: 0 · ∞ is NaN, which becomes 0.
    let lift = if top < 7.888_609e-31 { 1.267_650_6e30 } else { 1.0f32 };
    let inverse = 127.0 / (top * lift);
    if thread::x() == 0 && row < scales.len() {
        scales[row] = top / 127.0;
    }
    put_bytes::<L, V, N>(q, 0, cols, &kept, lift, inverse);
    for_each_unkept::<L, V, N, S>(cols, |at| {
        let again = norm_of_unkept::<T, W, L, V, S>(x, residual, z, fused, false, of_row, weight, bias, at, cols);
        put_bytes::<L, V, S>(q, at, cols, &again, lift, inverse);
    });
}

/// Stores a thread's pieces before `end` as row `place` of a group of `room` rows, in the layout of
/// [`activations`](crate::quant::activations). Elements from `cols` on are zeros. All lanes of the
/// warp call it.
#[device]
fn put_units<const L: usize, const V: usize, const N: usize>(
    mut bytes: ViewMut<i32, 1>,
    factors: ViewMut<f32, 1>,
    place: usize,
    room: usize,
    at: usize,
    cols: usize,
    end: usize,
    values: &[[f32; V]; N],
) {
    for i in unroll(0..N) {
        let d = begins::<L, V>(at, i);
        let mut four = [0.0f32; 4];
        if d < cols {
            for e in unroll(0..4) {
                four[e] = values[i][e];
            }
        }
        let Quad { q, scale } = quantize_quad(four);
        let sum = warp::group::<4>().sum(dp4a(q, [1i8; 4], 0));
        let other = warp::shuffle_xor(sum, 4);
        if d < end {
            let unit = d / 32 * room + place;
            bytes[8 * unit + d % 32 / 4] = int::word(q);
            if d % 32 == 0 {
                let (first, last) = (sum as f32, other as f32);
                factors.store(4 * unit, [scale, scale * (first + last), scale * first, scale * last]);
            }
        }
    }
}

/// Computes the norm as [`norm_rows`] does, and quantizes it as
/// [`quantize_activations`](crate::quant::activations::quantize_activations) does, in groups of
/// `room` rows: a norm before a product with quantized weights.
///
/// `bytes` and `factors` have a row for each group.
#[kernel(
    block = (L, ROWS), max_registers = 64, grid = (bytes.rows() * room).div_ceil(ROWS),
    writes(bytes = once, factors = once, z = once),
    derived(S = 8 / V),
    instances(
        f32_l256: T = f32, W = f32, CENTERED = false | true, L = 256, ROWS = 1, V = 4, N = 2;
        f16_l32: T = f16, W = f32, CENTERED = false, L = 32, ROWS = 8, V = 4, N = 2
    ),
)]
#[requires(
    room > 0, bytes.cols() % (8 * room) == 0, factors.rows() == bytes.rows(), 2 * factors.cols() == bytes.cols(),
    bytes.rows() * room >= x.rows(), x.cols() * room <= 4 * bytes.cols(), factors.aligned(4), x.cols() % V == 0,
    weight.is_empty() || weight.len() == x.cols() && weight.aligned(V), bias.is_empty() || bias.len() == x.cols() && bias.aligned(V),
    z.is_empty() || z.rows() == x.rows() && z.cols() == x.cols() && residual.rows() == x.rows() && residual.cols() == x.cols() && residual.aligned(V) && z.aligned(V),
    x.aligned(V),
)]
pub fn norm_activations<
    T: Float,
    W: Float,
    const CENTERED: bool,
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
    room: usize,
    bytes: ViewMut<i32, 2>,
    factors: ViewMut<f32, 2>,
) {
    const { assert!(V == 4 && (L == 32 || ROWS == 1)) };
    let row = block::x() * ROWS + thread::y();
    let cols = if row < x.rows() { x.cols() } else { 0 };
    // Missing rows of a group are zeros.
    let end = if row < bytes.rows() * room { bytes.cols() / (8 * room) * 32 } else { 0 };
    let fused = !z.is_empty();
    let (x, residual, z) = (x.at(row), residual.at(row), z.at(row));
    let (place, bytes, factors) = (row % room, bytes.at(row / room), factors.at(row / room));

    let mut kept = summed::<T, L, V, N>(x.bypass_l1(), residual.bypass_l1(), fused, 0, cols);
    if fused {
        put::<T, L, V, N>(z, 0, cols, &kept);
    }
    let of_row = statistics::<T, CENTERED, L, V, N, S>(&mut kept, x, residual, fused, cols, cols, epsilon);
    normed::<W, L, V, N>(&mut kept, of_row.factor, weight, bias, 0, cols);
    put_units::<L, V, N>(bytes, factors, place, room, 0, cols, end, &kept);
    for_each_unkept::<L, V, N, S>(end, |at| {
        let again = norm_of_unkept::<T, W, L, V, S>(x, residual, z, fused, fused, of_row, weight, bias, at, cols);
        put_units::<L, V, S>(bytes, factors, place, room, at, cols, end, &again);
    });
}
