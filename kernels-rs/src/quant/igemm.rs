//! C ← op(A)·op(B) of signed bytes, summed in 32 bits, with scales and zero points applied before C
//! is written.

use super::tile::product;
use crate::fold::{along_x, along_y, block_at};
use crate::gemm::epilogue::*;
use crate::gemm::tile::corner;
use crate::gemm::tiled::grouped;
use kernel_dsl::prelude::*;

pub use outputs::*;

#[device]
mod outputs {
    use kernel_dsl::prelude::*;

    /// A type of the elements of C.
    pub trait Output: Number {
        /// Whether elements are scaled numbers instead of sums.
        const HAS_SCALE: bool;
        /// Returns the element of a sum.
        fn from_sum(sum: i32) -> Self;
        /// Converts `x` to an element. An integer is `x` · `inverse`, rounded, plus
        /// `zero`.
        fn from_real(x: f32, inverse: f32, zero: f32) -> Self;
    }

    impl Output for i32 {
        const HAS_SCALE: bool = false;
        fn from_sum(sum: i32) -> i32 {
            sum
        }
        fn from_real(x: f32, _inverse: f32, _zero: f32) -> i32 {
            x as i32
        }
    }

    impl Output for f32 {
        const HAS_SCALE: bool = true;
        fn from_sum(sum: i32) -> f32 {
            sum as f32
        }
        fn from_real(x: f32, _inverse: f32, _zero: f32) -> f32 {
            x
        }
    }

    impl Output for f16 {
        const HAS_SCALE: bool = true;
        fn from_sum(sum: i32) -> f16 {
            f16::from_f32(sum as f32)
        }
        fn from_real(x: f32, _inverse: f32, _zero: f32) -> f16 {
            f16::from_f32(x)
        }
    }

    impl Output for i8 {
        const HAS_SCALE: bool = true;
        fn from_sum(sum: i32) -> i8 {
            sum.clamp(-128, 127) as i8
        }
        fn from_real(x: f32, inverse: f32, zero: f32) -> i8 {
            // `as` saturates, and converts NaN to 0.
            ((x * inverse).round_ties_even() + zero) as i8
        }
    }
}

/// Returns the number for line `i` of matrix `batch`, or `otherwise` if `of` is empty. `of` has one
/// number for all, one for each of `n` lines, or one for each line of every matrix.
#[device]
fn pick<T: Number>(of: &[T], otherwise: T, batch: usize, n: usize, i: usize) -> T {
    if of.is_empty() {
        otherwise
    } else {
        of[if of.len() == 1 {
            0
        } else if of.len() == n {
            i
        } else {
            batch * n + i
        }]
    }
}

/// Returns the zero points of 4 columns from `at` on, Σ b − K·z_b of each, and their scales. The
/// sums are read only if A has zero points. With `V` = 1 the last columns may not exist.
#[device]
fn of_columns<C: Output, const V: usize>(
    batch: usize,
    at: usize,
    depth: usize,
    c: ViewMut<C, 3>,
    scale_b: &[f32],
    zero_a: &[i32],
    zero_b: &[i32],
    sums_b: View<i32, 2>,
) -> ([i32; 4], [i32; 4], [f32; 4]) {
    let (mut zeros, mut sums, mut scales) = ([0i32; 4], [0i32; 4], [1.0f32; 4]);
    for j in unroll(0..4) {
        if V > 1 || at + j < c.dim(2) {
            zeros[j] = pick(zero_b, 0, batch, c.dim(2), at + j);
            if !zero_a.is_empty() {
                sums[j] = sums_b[(batch, at + j)].wrapping_sub((depth as i32).wrapping_mul(zeros[j]));
            }
            if C::HAS_SCALE {
                scales[j] = pick(scale_b, 1.0, batch, c.dim(2), at + j);
            }
        }
    }
    (zeros, sums, scales)
}

/// Returns the zero point of a row, the sum of its elements, and its scale. The sum is read only if
/// B has zero points.
#[device]
fn of_row<C: Output>(
    batch: usize,
    row: usize,
    c: ViewMut<C, 3>,
    scale_a: &[f32],
    zero_a: &[i32],
    zero_b: &[i32],
    sums_a: View<i32, 2>,
) -> (i32, i32, f32) {
    let za = pick(zero_a, 0, batch, c.dim(1), row);
    let sum = if zero_b.is_empty() { 0 } else { sums_a[(batch, row)] };
    (za, sum, if C::HAS_SCALE { pick(scale_a, 1.0, batch, c.dim(1), row) } else { 1.0 })
}

/// Converts scaled sums at `at` of row `row` to elements of C.
#[device]
fn finish<C: Output, E: Epilogue, const N: usize>(
    sum: [i32; N],
    scale: [f32; N],
    batch: usize,
    row: usize,
    at: usize,
    c: ViewMut<C, 3>,
    inverse: f32,
    zero: f32,
    epilogue: E,
) {
    let mut out = [C::from_sum(0); N];
    if C::HAS_SCALE {
        let mut x = [0.0f32; N];
        for j in unroll(0..N) {
            x[j] = scale[j] * sum[j] as f32;
        }
        let x = epilogue.apply(x, [batch, row, at]);
        for j in unroll(0..N) {
            out[j] = C::from_real(x[j], inverse, zero);
        }
    } else {
        out = sum.map(C::from_sum);
    }
    c.store((batch, row, at), out);
}

/// Computes C ← epilogue(sₐ·s_b·(A − zₐ)·(B − z_b)) for each matrix of a batch. For `i32` the
/// result is (A − zₐ)·(B − z_b).
///
/// With Σ over k, (A − zₐ)·(B − z_b) = Σ ab − zₐ·(Σ b − K·z_b) − z_b·Σ a. The kernel multiplies
/// bytes without zero points and corrects the sums. See Jacob et al., *Quantization and Training of
/// Neural Networks for Efficient Integer-Arithmetic-Only Inference*, 2018, section 2.3. If A has
/// zero points, `sums_b` has the sum of each column of B. If B has zero points, `sums_a` has the
/// sum of each row of A.
///
/// A is [batch, M, K], or [batch, K, M] with `TA`. B is [batch, K, N], or [batch, N, K] with `TB`.
/// C is [batch, M, N], `sums_a` is [batch, M], and `sums_b` is [batch, N].
#[kernel(
    block = T, min_blocks = 2, max_registers = 128,
    grid = (along_x(c.dim(1).div_ceil(BM) * c.dim(2).div_ceil(BN), c.dim(0), 1), along_y(c.dim(0), 1)),
    writes(c = once),
    instances(
        f32_128x128_v16_tb: C = f32, E = Identity, BM = 128, BN = 128, QM = 2, QN = 2, V = 16, TA = false, TB = true, T = 256;
        i32_128x128_v16: C = i32, E = Identity, BM = 128, BN = 128, QM = 2, QN = 2, V = 16, TA = false | true, TB = false, T = 256;
        i8_64x128_v4_tb: C = i8, E = Identity, BM = 64, BN = 128, QM = 2, QN = 2, V = 4, TA = false, TB = true, T = 128;
        f32_64x64_v1_tb: C = f32, E = Identity, BM = 64, BN = 64, QM = 1, QN = 2, V = 1, TA = false, TB = true, T = 128
    ),
    derived(LA = 2 * BM / T, LB = 2 * BN / T),
)]
#[requires(
    a.dim(0) == c.dim(0), b.dim(0) == c.dim(0),
    if TA { a.dim(2) == c.dim(1) } else { a.dim(1) == c.dim(1) },
    if TB { b.dim(1) == c.dim(2) } else { b.dim(2) == c.dim(2) },
    (if TA { a.dim(1) } else { a.dim(2) }) == (if TB { b.dim(2) } else { b.dim(1) }),
    if zero_a.is_empty() { true } else { sums_b.dim(0) == c.dim(0) && sums_b.dim(1) == c.dim(2) },
    if zero_b.is_empty() { true } else { sums_a.dim(0) == c.dim(0) && sums_a.dim(1) == c.dim(1) },
    scale_a.len() <= 1 || scale_a.len() == c.dim(1) || scale_a.len() == c.dim(0) * c.dim(1),
    zero_a.len() <= 1 || zero_a.len() == c.dim(1) || zero_a.len() == c.dim(0) * c.dim(1),
    scale_b.len() <= 1 || scale_b.len() == c.dim(2) || scale_b.len() == c.dim(0) * c.dim(2),
    zero_b.len() <= 1 || zero_b.len() == c.dim(2) || zero_b.len() == c.dim(0) * c.dim(2),
    a.aligned(if TA { V.min(4) } else { V }), b.aligned(if TB { V } else { V.min(4) }), c.aligned(V.min(4)),
    a.dim(2) % (if TA { V.min(4) } else { V }) == 0, b.dim(2) % (if TB { V } else { V.min(4) }) == 0, c.dim(2) % V.min(4) == 0,
)]
pub fn igemm<
    C: Output,
    E: Epilogue,
    const BM: usize,
    const BN: usize,
    const QM: usize,
    const QN: usize,
    const V: usize,
    const TA: bool,
    const TB: bool,
    const T: usize,
    const LA: usize,
    const LB: usize,
>(
    a: View<i8, 3>,
    scale_a: &[f32],
    zero_a: &[i32],
    sums_a: View<i32, 2>,
    b: View<i8, 3>,
    scale_b: &[f32],
    zero_b: &[i32],
    sums_b: View<i32, 2>,
    c: ViewMut<C, 3>,
    inverse: f32,
    zero: f32,
    epilogue: E,
) {
    const { assert!(BM % (16 * QM) == 0 && BN % (32 * QN) == 0) };
    const { assert!(T == 32 * (BM / (16 * QM)) * (BN / (32 * QN))) };
    let (blocks_m, blocks_n) = (c.dim(1).div_ceil(BM), c.dim(2).div_ceil(BN));
    let [tile, batch, _] = block_at(blocks_m * blocks_n, c.dim(0));
    let (m, n) = grouped(tile, blocks_m, blocks_n, 8);
    let (row0, col0) = (m * BM, n * BN);
    let (row, col) = corner(BN / (32 * QN), 16 * QM, 32 * QN);
    let depth = if TA { a.dim(1) } else { a.dim(2) };
    let ab = if TA { a.at(batch).offset((0, row0)) } else { a.at(batch).offset((row0, 0)) };
    let bb = if TB { b.at(batch).offset((col0, 0)) } else { b.at(batch).offset((0, col0)) };
    let acc = product::<BM, BN, QM, QN, V, TA, TB, LA, LB>(ab, bb, depth, row, col);

    let mut columns = [([0i32; 4], [0i32; 4], [1.0f32; 4]); QN];
    for q in unroll(0..QN) {
        let at = col0 + col + 32 * q;
        if at < c.dim(2) {
            columns[q] = of_columns::<C, V>(batch, at, depth, c, scale_b, zero_a, zero_b, sums_b);
        }
    }
    for i in unroll(0..4 * QM) {
        let r = row0 + row + i / 4 * 16 + i % 4;
        if r < c.dim(1) {
            let (za, sum_a, sa) = of_row(batch, r, c, scale_a, zero_a, zero_b, sums_a);
            for q in unroll(0..QN) {
                let at = col0 + col + 32 * q;
                let (zb, sum_b, sb) = columns[q];
                let mut sum = acc[i / 4][q][i % 4];
                if !zero_a.is_empty() || !zero_b.is_empty() {
                    for j in unroll(0..4) {
                        sum[j] = sum[j].wrapping_sub(za.wrapping_mul(sum_b[j])).wrapping_sub(zb[j].wrapping_mul(sum_a));
                    }
                }
                let scale = sb.map(|sb| sa * sb);
                if V == 1 {
                    for j in unroll(0..4) {
                        if at + j < c.dim(2) {
                            finish([sum[j]], [scale[j]], batch, r, at + j, c, inverse, zero, epilogue);
                        }
                    }
                } else if at < c.dim(2) {
                    finish(sum, scale, batch, r, at, c, inverse, zero, epilogue);
                }
            }
        }
    }
}
