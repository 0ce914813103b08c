//! A norm fused with the following product, for few rows: the decoding step of a language model,
//! whose layers begin with both.
//!
//! No result of the norm is stored to global memory. A block first computes the mean and the factor
//! of its rows, then iterates over K with the rows of its matrix as
//! [`gemv_t`](super::gemv::gemv_t) does. The block stores its normalized rows of x in shared memory
//! for all warps, one stretch at a time:
//!
//! ```text
//!   x   ├─ Σ, Σ (x − μ)² ───────────────────────┤      by all threads, from the L2 cache
//!       ├─ stretch ──┤ (x − μ)·f·weight + bias ─▶ shared memory, f32
//!   W   ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒       a warp's rows, each read once
//! ```
//!
//! The alternative, norm(x)·Wᵀ = f·((x∘w)·Wᵀ − μ·Σ W∘w), would avoid the first pass. But this
//! difference cancels catastrophically if the mean is large relative to the deviation of x.
//! Therefore the variance is computed from differences, as in [`norm`](crate::rowwise::norm), and
//! the factors are the values that the norm would have stored, unrounded. Each block reads x three
//! times: some kilobytes from the L2 cache, compared with megabytes of W. For many rows, every
//! block would repeat this work; then the norm is a separate kernel
//! ([`Norm::project`](crate::rowwise::Norm::project) chooses).
//!
//! # Gates
//!
//! With `PAIRED` a warp has rows j and N + j of W: the gate's row and the value's row of a network
//! with a gated unit (Shazeer, 2020). The warp stores one number for both, so that neither product
//! is stored to memory.

use super::epilogue::*;
use super::gemv::piece;
use crate::activation::swiglu;
use crate::rowwise::moments::{Moments, moments, normalized, scale_for};
use kernel_dsl::prelude::*;

/// Threads of a block.
#[device]
const THREADS: usize = 256;

/// The number of normalized elements of a block in shared memory.
#[device]
const STAGED: usize = 4096;

/// Computes the [statistics](crate::rowwise::moments) of each of a block's rows: scale, mean (0 if
/// `CENTERED` is false) and factor. Other threads may read these statistics after the caller's next
/// barrier.
#[device]
fn statistics<X: Float, const CENTERED: bool, const R: usize>(
    x: View<X, 2>,
    row0: usize,
    epsilon: f32,
    of_rows: Shared<f32, 2>,
) {
    let count = x.cols() as f32;
    for r in rolled(0..R) {
        let row = (row0 + r).min(x.rows() - 1);
        let (mut scale, mut mean, mut variance) = (1.0f32, 0.0f32, 0.0f32);
        for pass in rolled(0..2) {
            if CENTERED {
                let mut own = 0.0;
                for k in (thread::x()..x.cols()).step_by(THREADS) {
                    own = x[(row, k)].to_f32().mul_add(scale, own);
                }
                mean = block::sum(own) / count;
            }
            let mut own = 0.0;
            for k in (thread::x()..x.cols()).step_by(THREADS) {
                let d = x[(row, k)].to_f32().mul_add(scale, -mean);
                own = d.mul_add(d, own);
            }
            variance = block::sum(own) / count;
            let next = scale_for(mean, variance, epsilon);
            if pass == 1 || next == 1.0 {
                break;
            }
            scale = next;
        }
        if thread::x() == 0 {
            let of_row = moments(scale, mean, variance, epsilon);
            of_rows.store((r, 0), [of_row.scale, of_row.mean, of_row.factor, 0.0]);
        }
    }
}

/// Computes y ← epilogue(norm(x)·Wᵀ), with W stored as [N, K] row-major, and `R` rows of y by
/// `COLS` sums per warp.
///
/// With `PAIRED` the result is epilogue(f(a, b)) of the sums a and b of rows j and N + j of W,
/// which has 2·N rows. The norm is a layer norm if `CENTERED`, otherwise an RMS norm. The weight
/// and the bias, one number for each column of x, are optional. A lane takes `P` products at a
/// stride of 32·`P`: 16 bytes of W if `V` allows it. A lane adds its products in the order of k;
/// the lanes' sums are added by a butterfly.
#[kernel(
    block = 256, max_registers = 128,
    grid = (y.cols().div_ceil(8 * COLS / (if PAIRED { 2 } else { 1 })), y.rows().div_ceil(R)),
    writes(y = once),
    instances(
        f32_r1_v4: X = f32, N = f32, W = f32, C = f32, E = Identity, F = swiglu, CENTERED = false, PAIRED = false, R = 1, COLS = 2, V = 4;
        f32_centered_r2_v1: X = f32, N = f32, W = f32, C = f32, E = Identity, F = swiglu, CENTERED = true, PAIRED = false, R = 2, COLS = 2, V = 1;
        f16_paired_r1_v8: X = f32, N = f16, W = f16, C = f16, E = Identity, F = swiglu, CENTERED = false, PAIRED = true, R = 1, COLS = 2, V = 8;
        f32_centered_paired_r8_v4: X = f32, N = f32, W = f32, C = f32, E = Identity, F = swiglu, CENTERED = true, PAIRED = true, R = 8, COLS = 2, V = 4
    ),
    derived(P = V.max(4), STEPS_IN_FLIGHT = 16 / V.max(4)),
)]
#[requires(
    x.rows() == y.rows(), x.cols() == w.cols(), w.rows() == y.cols() * (if PAIRED { 2 } else { 1 }),
    weight.is_empty() || weight.len() == x.cols(), bias.is_empty() || bias.len() == x.cols(),
    w.aligned(V), w.cols() % V == 0,
)]
pub fn gemv_normed<
    X: Float,
    N: Float,
    W: Float,
    C: Float,
    E: Epilogue,
    F: DeviceFn<(f32, f32), Output = f32>,
    const CENTERED: bool,
    const PAIRED: bool,
    const R: usize,
    const COLS: usize,
    const V: usize,
    const P: usize,
    const STEPS_IN_FLIGHT: usize,
>(
    epsilon: f32,
    x: View<X, 2>,
    weight: View<N, 1>,
    bias: View<N, 1>,
    w: View<W, 2>,
    y: ViewMut<C, 2>,
    epilogue: E,
) {
    const { assert!(V == 1 || V == P) };
    const { assert!(COLS % 2 == 0) };
    let of_rows = Shared::<f32, 2>::new([R, 4]);
    let mut staged = Shared::<f32, 2>::new([R, STAGED / R]);
    let row0 = block::y() * R;
    let col0 = (block::x() * 8 + warp::index()) * if PAIRED { COLS / 2 } else { COLS };
    let depth = x.cols();
    statistics::<X, CENTERED, R>(x, row0, epsilon, of_rows);
    let mut acc = [[0.0f32; COLS]; R];
    for k0 in rolled((0..depth).step_by(STAGED / R)) {
        block::sync();
        for r in unroll(0..R) {
            let row = x.at((row0 + r).min(x.rows() - 1));
            let of_row = Moments { scale: of_rows[(r, 0)], mean: of_rows[(r, 1)], factor: of_rows[(r, 2)] };
            for i in (thread::x()..(depth - k0).min(STAGED / R)).step_by(THREADS) {
                let mut y = normalized(row[k0 + i].to_f32(), of_row);
                if !weight.is_empty() {
                    y *= weight[k0 + i].to_f32();
                }
                if !bias.is_empty() {
                    y += bias[k0 + i].to_f32();
                }
                staged[(r, i)] = y;
            }
        }
        block::sync();
        for at in rolled((0..(depth - k0).min(STAGED / R)).step_by(32 * P * STEPS_IN_FLIGHT)) {
            let k = at + warp::lane() * P;
            let mut raw = [[[W::from_f32(0.0); P]; COLS]; STEPS_IN_FLIGHT];
            for u in unroll(0..STEPS_IN_FLIGHT) {
                for i in unroll(0..COLS) {
                    let row = if PAIRED { col0 + i / 2 + i % 2 * y.cols() } else { col0 + i };
                    raw[u][i] = piece::<W, V, P>(w, row.min(w.rows() - 1), k0 + k + u * 32 * P, depth);
                }
            }
            for u in unroll(0..STEPS_IN_FLIGHT) {
                // Pieces beyond the end are skipped: their weights are 0, but the elements in
                // shared memory may be NaN.
                if k0 + k + u * 32 * P < depth {
                    for r in unroll(0..R) {
                        let mut y = [0.0f32; P];
                        if V > 1 {
                            y = staged.load((r, k + u * 32 * P));
                        } else {
                            for j in unroll(0..P) {
                                if k0 + k + u * 32 * P + j < depth {
                                    y[j] = staged[(r, k + u * 32 * P + j)];
                                }
                            }
                        }
                        for i in unroll(0..COLS) {
                            for j in unroll(0..P) {
                                acc[r][i] = y[j].mul_add(raw[u][i][j].to_f32(), acc[r][i]);
                            }
                        }
                    }
                }
            }
        }
    }
    for r in unroll(0..R) {
        for i in unroll(0..COLS) {
            acc[r][i] = warp::sum(acc[r][i]);
        }
        if PAIRED {
            for i in unroll(0..COLS / 2) {
                let (row, col) = (row0 + r, col0 + i);
                if warp::lane() == r * COLS + i && row < y.rows() && col < y.cols() {
                    store(1.0, [F::call((acc[r][2 * i], acc[r][2 * i + 1]))], 0.0, y, row, col, 0, epilogue);
                }
            }
        } else {
            for i in unroll(0..COLS) {
                let (row, col) = (row0 + r, col0 + i);
                if warp::lane() == r * COLS + i && row < y.rows() && col < y.cols() {
                    store(1.0, [acc[r][i]], 0.0, y, row, col, 0, epilogue);
                }
            }
        }
    }
}
