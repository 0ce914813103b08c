//! Softmax and its logarithm. Each row is read once and written once.
//!
//! Each thread computes the exponentials of its elements relative to its own maximum, without
//! waiting for the others. One factor then converts them to the row's maximum, and is part of the
//! division by the sum:
//!
//! ```text
//!   thread   m_t = max x        e = exp(x − m_t)      s_t = Σ e
//!   team     m = max m_t        s = Σ s_t · exp(m_t − m)            one barrier
//!   thread   y = e · (exp(m_t − m) / s)
//! ```
//!
//! Therefore a row needs one exponential per element and one barrier. The exponentials of one warp
//! are computed while others wait for memory. This matters on sm_61: an exponential is some 20
//! instructions, for which 4 multiprocessors of 128 lanes need as long as memory needs for its 8
//! bytes. Elements beyond the registers are read twice (Milakov, Gimelshein, *Online normalizer
//! calculation for softmax*, 2018), with two exponentials per element.
//!
//! # Long rows
//!
//! A row of 65,536 elements is longer than the registers of a block. Blocks share it
//! ([`divided`](super::divided)). Designs for 1024 such rows on an H200, where a copy takes 129 µs:
//!
//! | design | µs (× of a copy) |
//! |---|---|
//! | a block for each row keeps 32 elements per thread, and reads others again, 8 at once | 180 (0.72) |
//! | the next rows prefetched into L2, a quarter to all of each | 191 to 227 (0.68 to 0.58) |
//! | last reads evicted first | 160 (0.80) |
//! | 16 elements, 16 read again at once, evicted first | 158 (0.81) |
//! | 24, 16 and 28, 16 and two blocks of 512 threads, evicted first | 169, 171, 202 |
//! | blocks of 256 threads share a row, 24 elements per thread; a block counts itself before it ends | 153 (0.85) |
//! | 32 elements; the block counts itself before it writes | 148 (0.87) |
//! | x not evicted first | 143 to 145 (0.89) |
//! | blocks of 128 threads | 142 (0.90); 512 rows of 151,936: 176 instead of 172 |
//! | blocks of 256 threads, which poll by atomic operations instead of loads | **142.5 (0.91)** |
//! | one thread polls the last part by atomic operations, then all read by loads | 148 (0.87) |
//!
//! A block for each row occupies a multiprocessor, so that nothing is in flight while the row
//! reduces. If blocks share a row, their latency counts: 128 KiB of a multiprocessor are in flight
//! until memory answers, two reductions end, and the words of other blocks arrive. An RMS norm in
//! CUDA C, without conditions for other lengths, takes 135 µs (0.95), and with x evicted first 140.
//! With a mask, registers hold three blocks instead of four: 153 µs (0.85).
//!
//! Stores compute their columns again, relative to the part. The columns of the loads would need
//! registers until then, and threads that keep 32 elements would spill.

use super::divided::{MAX_PARTS, clear, exchange};
use super::row::{begins, for_each_unkept, is_row, put, take};
use kernel_dsl::prelude::*;

/// The mask of a row.
#[device]
#[derive(Clone, Copy)]
struct Masked {
    /// An optional bias, added to the scaled elements.
    bias: View<f32, 1>,
    /// Optional bytes, 0 for a masked element.
    keep: View<u8, 1>,
    /// The number of elements that are read; those after them are masked.
    end: usize,
}

/// Returns the mask of `row`. If `queries` is not 0, rows are the queries of consecutive sequences,
/// `queries` each. Columns are their keys, and the last key belongs to the last query.
#[device]
fn masked<const MASKED: bool>(
    bias: View<f32, 2>,
    keep: View<u8, 2>,
    queries: usize,
    row: usize,
    cols: usize,
) -> Masked {
    let mut end = cols;
    if MASKED && queries > 0 {
        end = (cols + 1 + row % queries).saturating_sub(queries).min(cols);
    }
    Masked { bias: bias.at(row), keep: keep.at(row), end }
}

/// Loads a thread's pieces from `at` on, scaled and masked, with −∞ beyond the end.
#[device]
fn logits<T: Float, const MASKED: bool, const L: usize, const V: usize, const N: usize>(
    x: View<T, 1>,
    scale: f32,
    mask: Masked,
    at: usize,
) -> [[f32; V]; N] {
    let mut z = take::<T, L, V, N>(x, at, mask.end, f32::NEG_INFINITY);
    for i in unroll(0..N) {
        // Elements beyond the end remain −∞ for any scale.
        if begins::<L, V>(at, i) < mask.end {
            for e in unroll(0..V) {
                z[i][e] *= scale;
            }
        }
    }
    if MASKED {
        if !mask.bias.is_empty() {
            let bias = take::<f32, L, V, N>(mask.bias, at, mask.end, 0.0);
            for i in unroll(0..N) {
                for e in unroll(0..V) {
                    // −∞ masks any element, including a NaN. A selection after the sum would make
                    // ptxas spill on sm_90.
                    let x = if bias[i][e] == f32::NEG_INFINITY { 0.0 } else { z[i][e] };
                    z[i][e] = x + bias[i][e];
                }
            }
        }
        if !mask.keep.is_empty() {
            for i in unroll(0..N) {
                let col = begins::<L, V>(at, i);
                if col < mask.end {
                    let keep: [u8; V] = mask.keep.load(col);
                    for e in unroll(0..V) {
                        if keep[e] == 0 {
                            z[i][e] = f32::NEG_INFINITY;
                        }
                    }
                }
            }
        }
        if mask.end % V != 0 {
            for i in unroll(0..N) {
                for e in unroll(0..V) {
                    if begins::<L, V>(at, i) + e >= mask.end {
                        z[i][e] = f32::NEG_INFINITY;
                    }
                }
            }
        }
    }
    z
}

/// Returns the largest of the elements and `top`.
#[device]
fn largest<const V: usize, const N: usize>(z: &[[f32; V]; N], top: f32) -> f32 {
    let mut top = top;
    for i in unroll(0..N) {
        for e in unroll(0..V) {
            top = top.max(z[i][e]);
        }
    }
    top
}

/// Returns eˣ for x ≤ 0, with the bits of `math::exp`. The method and coefficients are the same,
/// without four of its twenty instructions: results up to 1 need no upper limit, and one constant
/// factor handles its subnormals.
#[device]
pub fn decay(x: f32) -> f32 {
    let c = if x < -104.0 { -104.0 } else { x };
    // 12583103 is 1.5·2²³ + 127 + 64: the low bits of the sum are the exponent of 2ⁿ⁺⁶⁴.
    let shifted = c.mul_add(1.442695, 12583103.0);
    let k = shifted - 12583103.0;
    let r = k.mul_add(-1.42860677e-6, k.mul_add(-0.693145752, c));
    let q = 0.00138213031f32;
    let q = q.mul_add(r, 0.00836866815);
    let q = q.mul_add(r, 0.0416682586);
    let q = q.mul_add(r, 0.166665211);
    let q = q.mul_add(r, 0.49999994);
    let p = q.mul_add(r, 1.0).mul_add(r, 1.0);
    // The first product is exact, so that a subnormal result is rounded once.
    p * f32::from_bits(shifted.to_bits() << 23) * 5.421_010_9e-20
}

/// Returns the value that exponentials are relative to. If all elements are −∞, exp(−∞ − MIN) = 0,
/// and never a NaN.
#[device]
fn base(top: f32) -> f32 {
    top.max(f32::MIN)
}

/// Adds the elements of `z` to a running maximum, and to a sum of exponentials relative to it.
#[device]
pub fn accumulate<const V: usize, const N: usize>(z: &[[f32; V]; N], top: &mut f32, sum: &mut f32) {
    let higher = largest(z, *top);
    *sum *= decay(base(*top) - base(higher));
    *top = higher;
    for i in unroll(0..N) {
        for e in unroll(0..V) {
            *sum += decay(z[i][e] - base(higher));
        }
    }
}

/// Returns the base b of the team's largest `top`, and Σ `sum · exp(base(top) − b)` over the team.
#[device]
pub fn total<const L: usize>(top: f32, sum: f32) -> (f32, f32) {
    let of_warp = base(warp::max(top));
    let sum = warp::sum(sum * decay(base(top) - of_warp));
    if L == 32 {
        (of_warp, sum)
    } else {
        let mut parts = Shared::<f32, 2>::new([2, L / 32]);
        if warp::lane() == 0 {
            parts[(0, warp::index())] = of_warp;
            parts[(1, warp::index())] = sum;
        }
        block::sync();
        let (mut top, mut sum) = (f32::MIN, 0.0);
        if warp::lane() < L / 32 {
            top = parts[(0, warp::lane())];
            sum = parts[(1, warp::lane())];
        }
        let of_all = warp::max(top);
        (of_all, warp::sum(sum * decay(top - of_all)))
    }
}

/// Returns the sum of the exponentials of elements relative to `first`. Without `LOG` the elements
/// become their exponentials.
#[device]
fn exponentials<const LOG: bool, const V: usize, const N: usize>(z: &mut [[f32; V]; N], first: f32) -> f32 {
    let mut sum = 0.0;
    for i in unroll(0..N) {
        for e in unroll(0..V) {
            let exponential = decay(z[i][e] - first);
            sum += exponential;
            if !LOG {
                z[i][e] = exponential;
            }
        }
    }
    sum
}

/// Returns the base of a row, the reciprocal of its sum of exponentials relative to the base, and
/// the logarithm of the sum. A fully masked row gives zeros, or −∞ as their logarithms.
#[device]
fn scales_of(base: f32, sum: f32) -> [f32; 3] {
    let share = if sum == 0.0 { 0.0 } else { 1.0 / sum };
    let log = if sum == 0.0 { 0.0 } else { math::ln(sum) };
    [base, share, log]
}

/// Replaces what [`exponentials`] left, relative to `first`, by the softmax or its logarithm. `by`
/// are the numbers of [`scales_of`].
#[device]
fn scale_kept<const LOG: bool, const V: usize, const N: usize>(kept: &mut [[f32; V]; N], first: f32, by: [f32; 3]) {
    let [base, share, log] = by;
    let factor = decay(first - base) * share;
    for i in unroll(0..N) {
        for e in unroll(0..V) {
            kept[i][e] = if LOG { kept[i][e] - base - log } else { kept[i][e] * factor };
        }
    }
}

/// Returns the softmax of elements, or its logarithm. `by` are the numbers of [`scales_of`].
#[device]
fn shares<const LOG: bool, const V: usize, const N: usize>(z: [[f32; V]; N], by: [f32; 3]) -> [[f32; V]; N] {
    let [base, share, log] = by;
    let mut y = z;
    for i in unroll(0..N) {
        for e in unroll(0..V) {
            y[i][e] = if LOG { z[i][e] - base - log } else { decay(z[i][e] - base) * share };
        }
    }
    y
}

/// Computes y = softmax of scale · x + bias, row by row, or its logarithm, without the elements
/// that `keep` and `queries` mask.
///
/// `bias` and `keep` may be empty; without `MASKED` both and `queries` are ignored. A team of `L`
/// threads per row keeps the first `N · L · V` elements in registers, and reads the others again, 8
/// per thread at once.
///
/// x, y, `bias` and `keep` are [rows, cols].
#[kernel(
    block = (L, ROWS), grid = x.rows().div_ceil(ROWS), writes(y = once),
    instances(
        f32_l256_v4: T = f32, LOG = false, MASKED = false, L = 256, ROWS = 1, V = 4, N = 4, S = 2;
        f32_l1024_v4: T = f32, LOG = false, MASKED = false, L = 1024, ROWS = 1, V = 4, N = 8, S = 2;
        f32_l32_v1_masked: T = f32, LOG = false | true, MASKED = true, L = 32, ROWS = 8, V = 1, N = 8, S = 8;
        f16_l32_v8_masked: T = f16, LOG = false, MASKED = true, L = 32, ROWS = 8, V = 8, N = 1, S = 1;
        f16_l256_v8_log: T = f16, LOG = true, MASKED = false, L = 256, ROWS = 1, V = 8, N = 2, S = 1
    ),
)]
#[requires(
    y.rows() == x.rows(), y.cols() == x.cols(), x.cols() % V == 0, queries <= x.cols(),
    !MASKED || bias.is_empty() || bias.rows() == x.rows() && bias.cols() == x.cols() && bias.aligned(V),
    !MASKED || keep.is_empty() || keep.rows() == x.rows() && keep.cols() == x.cols() && keep.aligned(V),
    x.aligned(V), y.aligned(V),
)]
pub fn softmax_rows<
    T: Float,
    const LOG: bool,
    const MASKED: bool,
    const L: usize,
    const ROWS: usize,
    const V: usize,
    const N: usize,
    const S: usize,
>(
    scale: f32,
    x: View<T, 2>,
    bias: View<f32, 2>,
    keep: View<u8, 2>,
    queries: usize,
    y: ViewMut<T, 2>,
) {
    let row = block::x() * ROWS + thread::y();
    let cols = if is_row::<ROWS>(row, x.rows()) { x.cols() } else { 0 };
    let mask = masked::<MASKED>(bias, keep, queries, row, cols);
    let (x, y) = (x.at(row), y.at(row));
    const { assert!(L == 32 || ROWS == 1) };

    let mut kept = logits::<T, MASKED, L, V, N>(x, scale, mask, 0);
    let mut top = largest(&kept, f32::NEG_INFINITY);
    let first = base(top);
    let mut sum = exponentials::<LOG, V, N>(&mut kept, first);
    for_each_unkept::<L, V, N, S>(mask.end, |at| {
        let z = logits::<T, MASKED, L, V, S>(x, scale, mask, at);
        accumulate(&z, &mut top, &mut sum);
    });
    let (base, sum) = total::<L>(top, sum);

    let by = scales_of(base, sum);
    scale_kept::<LOG, V, N>(&mut kept, first, by);
    put::<T, L, V, N>(y, 0, cols, &kept);
    for_each_unkept::<L, V, N, S>(cols, |at| {
        let z = logits::<T, MASKED, L, V, S>(x, scale, mask, at);
        put::<T, L, V, S>(y, at, cols, &shares::<LOG, V, S>(z, by));
    });
}

/// Returns the largest logit of a thread's elements of a part, at least `f32::MIN`, and the sum of
/// exponentials relative to it: those of the part that begins at `at`, read piece by piece.
#[device]
fn read_part<T: Float, const MASKED: bool, const L: usize, const V: usize, const N: usize>(
    x: View<T, 1>,
    scale: f32,
    mask: Masked,
    at: usize,
) -> [f32; 2] {
    let mut top = f32::NEG_INFINITY;
    for i in rolled(0..N) {
        top = largest(&logits::<T, MASKED, L, V, 1>(x, scale, mask, at + i * L * V), top);
    }
    let first = base(top);
    let mut sum = 0.0;
    for i in rolled(0..N) {
        let z = logits::<T, MASKED, L, V, 1>(x, scale, mask, at + i * L * V);
        for e in unroll(0..V) {
            sum += decay(z[0][e] - first);
        }
    }
    [top, sum]
}

/// Computes y = softmax of scale · x + bias, or its logarithm, as [`softmax_rows`] does, for long
/// rows. Blocks share a row, `PART` elements each.
///
/// `links` has words of 0, two for each part of a row and one for each row; they are 0 again after
/// the launch ([`divided`](super::divided)). x, y, `bias` and `keep` are [rows, cols].
#[kernel(
    block = L, max_registers = if MASKED { 80 } else { 64 }, grid = x.rows() * x.cols().div_ceil(PART), writes(y = once),
    instances(
        f32_l256_v4: T = f32, LOG = false | true, MASKED = false, L = 256, V = 4, N = 8;
        f32_l256_v4_masked: T = f32, LOG = false, MASKED = true, L = 256, V = 4, N = 8;
        f32_l64_v1_masked: T = f32, LOG = false, MASKED = true, L = 64, V = 1, N = 2;
        f16_l64_v8_log_masked: T = f16, LOG = true, MASKED = true, L = 64, V = 8, N = 1
    ),
    derived(PART = L * V * N),
)]
#[requires(
    y.rows() == x.rows(), y.cols() == x.cols(), x.cols() % V == 0, queries <= x.cols(),
    !MASKED || bias.is_empty() || bias.rows() == x.rows() && bias.cols() == x.cols() && bias.aligned(V),
    !MASKED || keep.is_empty() || keep.rows() == x.rows() && keep.cols() == x.cols() && keep.aligned(V),
    x.aligned(V), y.aligned(V), x.cols() <= MAX_PARTS * PART,
    links.len() == x.rows() * (2 * x.cols().div_ceil(PART) + 1),
)]
pub fn softmax_divided<
    T: Float,
    const LOG: bool,
    const MASKED: bool,
    const L: usize,
    const V: usize,
    const N: usize,
    const PART: usize,
>(
    scale: f32,
    x: View<T, 2>,
    bias: View<f32, 2>,
    keep: View<u8, 2>,
    queries: usize,
    links: ViewMut<u64, 1>,
    y: ViewMut<T, 2>,
) {
    let numbers = Shared::<f32, 2>::new([MAX_PARTS, 2]);
    let (cols, parts) = (x.cols(), x.cols().div_ceil(PART));
    let (row, part) = (block::x() / parts, block::x() % parts);
    let links = links.offset(row * (2 * parts + 1));
    let mask = masked::<MASKED>(bias, keep, queries, row, cols);
    let (x, y) = (x.at(row), y.at(row));

    let mut kept = logits::<T, MASKED, L, V, N>(x, scale, mask, part * PART);
    let top = largest(&kept, f32::NEG_INFINITY);
    let first = base(top);
    let sum = exponentials::<LOG, V, N>(&mut kept, first);
    let (base_of_part, sum_of_part) = total::<L>(top, sum);
    let before = exchange::<L>(links, part, parts, [base_of_part, sum_of_part], numbers, |part| {
        let [top, sum] = read_part::<T, MASKED, L, V, N>(x, scale, mask, part * PART);
        let (base, sum) = total::<L>(top, sum);
        [base, sum]
    });
    let mut top = f32::MIN;
    for part in rolled((warp::lane()..parts).step_by(32)) {
        top = top.max(numbers[(part, 0)]);
    }
    let base = warp::max(top);
    let mut sum = 0.0;
    for part in rolled((warp::lane()..parts).step_by(32)) {
        sum += numbers[(part, 1)] * decay(numbers[(part, 0)] - base);
    }
    scale_kept::<LOG, V, N>(&mut kept, first, scales_of(base, warp::sum(sum)));
    // Relative to the part: the columns of the loads would occupy registers until here.
    put::<T, L, V, N>(y.offset(part * PART), 0, cols - part * PART, &kept);
    clear(links, parts, before);
}

#[cfg(test)]
mod tests {
    use super::decay;
    use kernel_dsl::math;

    #[test]
    fn decay_has_the_bits_of_exp() {
        // All exponents, and some significands of each.
        for bits in (0x8000_0000u32..=0xff80_0000).step_by(9973).chain([0, 0x8000_0000, 0xff80_0000]) {
            let x = f32::from_bits(bits);
            assert_eq!(decay(x).to_bits(), math::exp(x).to_bits(), "{x:e}");
        }
        assert!(decay(f32::NAN).is_nan());
    }
}
