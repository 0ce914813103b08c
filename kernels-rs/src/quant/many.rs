//! Products of many rows with weights in blocks: prefill, and training of what stands on frozen
//! weights.
//!
//! Activations come as [`quantize_activations`](super::activations::quantize_activations) makes
//! them, weights in planes of any format. A block of threads has 64 rows of activations and 128 of
//! weights, and a step is one unit of K, 32 numbers:
//!
//! ```text
//!                    weights: 128 rows × 32 numbers       a thread: 8 × 4 sums of integers, eight dp4a each,
//!                    ┌────────────────────────┐           then each times both scales onto an f32
//!   activations      │ [k, row] words, twice  │
//!   ┌───────────┐    └────────────────────────┘           a warp: 8 rows of activations, all 128 of weights
//!   │ [k, row]  │ ──▶ 8 × 4 a thread
//!   └───────────┘
//! ```
//!
//! Half of the threads bring activations to shared memory, the other half a unit of weights each,
//! as operands: what unpacking costs is paid once for 64 rows. Each step is 256 `dp4a` a thread. A
//! sum of integers begins as the bits of 1.5 · 2²³, and is then the bits of a float of that binade,
//! less 1.5 · 2²³: no conversion, which runs at a quarter of the rate.

use super::formats::device::*;
use super::formats::*;
use crate::gemm::epilogue::*;
use crate::gemm::tiled::grouped;
use kernel_dsl::prelude::*;

/// Bits of 1.5 · 2²³, on which integers are summed.
#[device]
const ONE_AND_A_HALF: i32 = 0x4b40_0000;

/// Operands of one unit in shared memory, `[word or factor, row]` each.
#[device]
#[derive(Clone, Copy)]
struct Staged {
    /// Words of activations.
    x: Shared<i32, 2>,
    /// Words of weights.
    w: Shared<i32, 2>,
    /// Factors of activations.
    ex: Shared<f32, 2>,
    /// Scales of weights, then their minima: of first and of last halves where they differ.
    ew: Shared<f32, 2>,
}

/// Brings what a thread has loaded to shared memory: the first 128 threads 16 bytes of activations,
/// the first 64 of those factors, the others a unit of weights.
#[device]
fn put<F: BlockFormat>(to: Staged, t: usize, x: [i32; 4], e: [f32; 4], w: F::Loaded, unit: usize) {
    let mut to = to;
    if t < 128 {
        for i in unroll(0..4) {
            to.x[(t % 2 * 4 + i, t / 2)] = x[i];
        }
        if t < 64 {
            to.ex[(0, t)] = e[0];
            if F::MINS && F::HALVES {
                to.ex[(1, t)] = e[2];
                to.ex[(2, t)] = e[3];
            } else if F::MINS {
                to.ex[(1, t)] = e[1];
            }
        }
    } else {
        let w = F::unpack(w, unit);
        for j in unroll(0..8) {
            to.w[(j, t - 128)] = w.bytes[j];
        }
        for h in unroll(0..halves_of::<F>()) {
            if F::SCALED {
                to.ew[(h, t - 128)] = scale_of_one::<F>(w.scale[h]);
            }
            if F::MINS {
                to.ew[(halves_of::<F>() + h, t - 128)] = w.min[h];
            }
        }
    }
}

/// Parts of a unit that have scales of their own.
#[device]
fn halves_of<F: BlockFormat>() -> usize {
    if F::HALVES { 2 } else { 1 }
}

/// Y ← epilogue(X·Wᵀ), X as `quantize_activations` makes it, W in planes of format `F`, times a
/// number for each row of W where `scales` has any. Units are added in the order of k, each by one
/// fused multiplication of the product of its scales with its sum, and one for each minimum.
#[kernel(
    block = 256, min_blocks = 2, max_registers = 128,
    grid = y.dim(0).div_ceil(64) * y.dim(1).div_ceil(128),
    writes(y = once),
    instances(
        q4_0_f32_v4: F = Q4_0, Y = f32, E = Identity, V = 4;
        q8_0_f32_v4: F = Q8_0, Y = f32, E = Identity, V = 4;
        q4_k_f32_v4: F = Q4K, Y = f32, E = Identity, V = 4;
        q6_k_f32_v4: F = Q6K, Y = f32, E = Identity, V = 4;
        q2_k_f16_v1: F = Q2K, Y = f16, E = Identity, V = 1
    ),
)]
#[requires(
    units > 0, bytes.rows() == y.rows().div_ceil(64), bytes.cols() == 512 * units, bytes.aligned(4),
    factors.rows() == bytes.rows(), factors.cols() == 256 * units, factors.aligned(4), words.rows() == y.cols(), words.cols() == F::words(units),
    words.aligned(4), halves.rows() == y.cols(), halves.cols() == F::halves(units), scales.is_empty() || scales.len() == y.cols(),
    y.aligned(V), y.cols() % V == 0,
)]
pub fn gemm_blocks<F: BlockFormat, Y: Float, E: Epilogue, const V: usize>(
    bytes: View<i32, 2>,
    factors: View<f32, 2>,
    words: View<u32, 2>,
    halves: View<u16, 2>,
    units: usize,
    scales: &[f32],
    y: ViewMut<Y, 2>,
    epilogue: E,
) {
    let sx = Shared::<i32, 3>::with_pitch([2, 8, 64], 64 + 4);
    let sw = Shared::<i32, 3>::with_pitch([2, 8, 128], 128 + 4);
    let ex = Shared::<f32, 3>::new([2, if F::MINS { 1 + halves_of::<F>() } else { 1 }, 64]);
    let ew = Shared::<f32, 3>::new([2, halves_of::<F>() * if F::MINS { 2 } else { 1 }, 128]);
    let staged = |buf: usize| -> Staged { Staged { x: sx.at(buf), w: sw.at(buf), ex: ex.at(buf), ew: ew.at(buf) } };
    let (m, n) = grouped(block::x(), y.rows().div_ceil(64), y.cols().div_ceil(128), 8);
    let (m0, n0, t) = (m * 64, n * 128, thread::x());
    let (tm, tn) = (t / 32 * 8, t % 32 * 4);

    // Rows of weights beyond the last are the last: nothing of them is written.
    let wr = (n0 + t % 128).min(y.cols() - 1);
    let mut x: [i32; 4] = bytes.load((m, 4 * (t % 128)));
    let mut e: [f32; 4] = factors.load((m, 4 * (t % 64)));
    let mut w = F::load(words, halves, Place { row: wr, unit: 0, units });
    put::<F>(staged(0), t, x, e, w, 0);
    block::sync();
    let mut acc = [[0.0f32; 4]; 8];
    let mut buf = 0;
    for unit in rolled(0..units) {
        // After the last unit, that again: so no step asks.
        let next = (unit + 1).min(units - 1);
        if t < 128 {
            x = bytes.load((m, 512 * next + 4 * t));
            if t < 64 {
                e = factors.load((m, 256 * next + 4 * t));
            }
        } else {
            w = F::load(words, halves, Place { row: wr, unit: next, units });
        }
        let now = staged(buf);
        for h in unroll(0..halves_of::<F>()) {
            let mut dot = [[ONE_AND_A_HALF; 4]; 8];
            for k in unroll(0..8 / halves_of::<F>()) {
                let k = k + 4 * h;
                let (low, high): ([i32; 4], [i32; 4]) = (now.x.load((k, tm)), now.x.load((k, tm + 4)));
                let q: [i32; 4] = now.w.load((k, tn));
                for i in unroll(0..4) {
                    for j in unroll(0..4) {
                        dot[i][j] = dp4a(low[i], q[j], dot[i][j]);
                        dot[i + 4][j] = dp4a(high[i], q[j], dot[i + 4][j]);
                    }
                }
            }
            let mut scale = [1.0f32; 4];
            if F::SCALED {
                scale = now.ew.load((h, tn));
            }
            let mut min = [0.0f32; 4];
            if F::MINS {
                min = now.ew.load((halves_of::<F>() + h, tn));
            }
            for i in unroll(0..8) {
                let s = now.ex[(0, tm + i)];
                for j in unroll(0..4) {
                    let sum = f32::from_bits(dot[i][j] as u32) - 12_582_912.0;
                    acc[i][j] = if F::SCALED { s * scale[j] } else { s }.mul_add(sum, acc[i][j]);
                    if F::MINS {
                        acc[i][j] = (-min[j]).mul_add(now.ex[(1 + h, tm + i)], acc[i][j]);
                    }
                }
            }
        }
        put::<F>(staged(buf ^ 1), t, x, e, w, next);
        block::sync();
        buf ^= 1;
    }
    for i in unroll(0..8) {
        for j in unroll(0..4 / V) {
            let (row, at) = (m0 + tm + i, n0 + tn + j * V);
            if row < y.rows() && at < y.cols() {
                let mut out = [0.0f32; V];
                for v in unroll(0..V) {
                    out[v] = acc[i][j * V + v];
                    if !scales.is_empty() {
                        out[v] *= scales[at + v];
                    }
                }
                store(1.0, out, 0.0, y, row, at, 0, epilogue);
            }
        }
    }
}
