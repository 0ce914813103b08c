//! Products of many rows with weights in blocks: prefill, and training of layers on top of frozen
//! weights.
//!
//! Activations have the layout of
//! [`quantize_activations`](super::activations::quantize_activations), weights are in planes of any
//! format. A block of threads has 16, 32 or 64 rows of activations and 128 rows of weights. A step
//! is one unit of K, 32 numbers:
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
//! The first threads load activations to shared memory. The last 128 load a unit of weights each,
//! and store its operands, so that a unit is unpacked once for all rows. A step is 256 `dp4a` per
//! thread. A sum of integers begins with the bits of the float 1.5 · 2²³. At the end the bits of
//! the sum are a float between 2²³ and 2²⁴, from which 1.5 · 2²³ is subtracted. A conversion would
//! run at a quarter of the rate.
//!
//! If there are too few tiles for the device, K is split: each part is a separate matrix, and
//! [`add_parts`] adds them.

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
    /// The scales of weights, then their minima: two of each if the format has `HALVES`.
    ew: Shared<f32, 2>,
}

/// Stores to shared memory what a thread has loaded: the first 2 · `BM` threads 16 bytes of
/// activations, the first `BM` their factors, and the last 128 units of weights.
#[device]
fn put<F: BlockFormat, const BM: usize, const Q: usize>(
    to: Staged,
    t: usize,
    x: [i32; 4],
    e: [f32; 4],
    w: [F::Loaded; Q],
    unit: usize,
) {
    let mut to = to;
    if t < 2 * BM {
        for i in unroll(0..4) {
            to.x[(t % 2 * 4 + i, t / 2)] = x[i];
        }
        if t < BM {
            to.ex[(0, t)] = e[0];
            if F::MINS && F::HALVES {
                to.ex[(1, t)] = e[2];
                to.ex[(2, t)] = e[3];
            } else if F::MINS {
                to.ex[(1, t)] = e[1];
            }
        }
    }
    if 4 * BM <= 128 || t >= 4 * BM - 128 {
        for q in unroll(0..Q) {
            let (row, w) = (row_of_weights::<BM>(t, q), F::unpack(w[q], unit));
            for j in unroll(0..8) {
                to.w[(j, row)] = w.bytes[j];
            }
            for h in unroll(0..halves_of::<F>()) {
                if F::SCALED {
                    to.ew[(h, row)] = scale_of_one::<F>(w.scale[h]);
                }
                if F::MINS {
                    to.ew[(halves_of::<F>() + h, row)] = w.min[h];
                }
            }
        }
    }
}

/// Returns the row, among the tile's 128 rows of weights, of the `q`-th unit that thread `t` loads.
#[device]
fn row_of_weights<const BM: usize>(t: usize, q: usize) -> usize {
    if 4 * BM > 128 { t % 128 } else { t + 4 * BM * q }
}

/// Returns the number of parts of a unit with separate scales.
#[device]
fn halves_of<F: BlockFormat>() -> usize {
    if F::HALVES { 2 } else { 1 }
}

/// Computes Y ← epilogue(X·Wᵀ). X has the layout of `quantize_activations` in groups of 8 rows. W
/// is in planes of format `F`; if `scales` is not empty, each row of W is multiplied by its scale.
/// Units are added in the order of k. One fused multiply-add adds a unit's sum times the product of
/// its scales, and another subtracts each minimum.
///
/// Y has `rows` rows for each of `splits` parts of K. Each part is a separate product.
///
/// With `EXPERTS`, W is the matrices of all experts. `experts` has a number for each 8 rows of X,
/// which are multiplied with the matrix of that number. If the number is negative, these rows of Y
/// are epilogue(0). `tiles` has a number for each tile: the first group of 8 rows, or a negative
/// number for an empty tile. A tile ends after `BM` rows, or before the first group of another
/// expert. The warps of absent groups only load, so that an expert with few rows costs few
/// products. `EXPERTS` is a constant because this test in the loop makes products up to 5 % slower
/// on an H200.
///
/// In tiles of 16 rows each thread loads two units of weights at once. Therefore a thread may have
/// 16 more registers, or 32 more with `EXPERTS`.
///
/// Y is [`splits` · `rows`, N]. `words` and `halves` have a row for each row of W, and `bytes` and
/// `factors` one for each group of rows of X.
#[kernel(
    block = T, min_blocks = 512 / T - 64 / T * if EXPERTS { 2 } else { 1 }, max_registers = 128 + 64 / T * if EXPERTS { 32 } else { 16 },
    grid = (if EXPERTS { tiles.len() } else { rows.div_ceil(BM) } * y.dim(1).div_ceil(128), splits),
    writes(y = once),
    instances(
        q4_0_f32_64_v4: F = Q4_0, Y = f32, E = Identity, BM = 64, V = 4, EXPERTS = false;
        q8_0_f32_64_v4: F = Q8_0, Y = f32, E = Identity, BM = 64, V = 4, EXPERTS = false;
        q4_k_f32_64_v4: F = Q4K, Y = f32, E = Identity, BM = 64, V = 4, EXPERTS = false;
        q6_k_f32_64_v4: F = Q6K, Y = f32, E = Identity, BM = 64, V = 4, EXPERTS = false;
        q2_k_f16_64_v1: F = Q2K, Y = f16, E = Identity, BM = 64, V = 1, EXPERTS = false;
        q4_0_f32_32_v4: F = Q4_0, Y = f32, E = Identity, BM = 32, V = 4, EXPERTS = false;
        q6_k_f32_32_v4: F = Q6K, Y = f32, E = Identity, BM = 32, V = 4, EXPERTS = false;
        q4_0_f32_16_v4: F = Q4_0, Y = f32, E = Identity, BM = 16, V = 4, EXPERTS = false;
        q4_k_f16_16_v1: F = Q4K, Y = f16, E = Identity, BM = 16, V = 1, EXPERTS = false;
        experts_q4_k_f32_64_v4: F = Q4K, Y = f32, E = Identity, BM = 64, V = 4, EXPERTS = true;
        experts_q4_k_f32_32_v4: F = Q4K, Y = f32, E = Identity, BM = 32, V = 4, EXPERTS = true;
        experts_q8_0_f16_16_v1: F = Q8_0, Y = f16, E = Identity, BM = 16, V = 1, EXPERTS = true
    ),
    derived(Q = (128 / (4 * BM)).max(1), T = 4 * BM),
)]
#[requires(
    units > 0, splits > 0, y.rows() == splits * rows, bytes.rows() == rows.div_ceil(8), bytes.cols() >= 64 * units,
    bytes.aligned(4), factors.rows() == bytes.rows(), factors.cols() >= 32 * units, factors.aligned(4),
    words.rows() == y.cols() || rows == 0 || EXPERTS && words.rows() > 0, words.cols() == F::words(units), words.aligned(4),
    halves.rows() == words.rows(), halves.cols() == F::halves(units), scales.is_empty() || scales.len() == words.rows(),
    !EXPERTS || experts.len() == bytes.rows() && (rows > 0 || tiles.is_empty()), y.aligned(V), y.cols() % V == 0,
)]
pub fn gemm_blocks<
    F: BlockFormat,
    Y: Float,
    E: Epilogue,
    const BM: usize,
    const V: usize,
    const EXPERTS: bool,
    const Q: usize,
    const T: usize,
>(
    bytes: View<i32, 2>,
    factors: View<f32, 2>,
    words: View<u32, 2>,
    halves: View<u16, 2>,
    units: usize,
    scales: &[f32],
    experts: &[i32],
    tiles: &[i32],
    rows: usize,
    splits: usize,
    y: ViewMut<Y, 2>,
    epilogue: E,
) {
    let sx = Shared::<i32, 3>::with_pitch([2, 8, BM], BM + 4);
    let sw = Shared::<i32, 3>::with_pitch([2, 8, 128], 128 + 4);
    let ex = Shared::<f32, 3>::new([2, if F::MINS { 1 + halves_of::<F>() } else { 1 }, BM]);
    let ew = Shared::<f32, 3>::new([2, halves_of::<F>() * if F::MINS { 2 } else { 1 }, 128]);
    let staged = |buf: usize| -> Staged { Staged { x: sx.at(buf), w: sw.at(buf), ex: ex.at(buf), ew: ew.at(buf) } };
    let blocks_m = if EXPERTS { tiles.len() } else { rows.div_ceil(BM) };
    let (m, n) = grouped(block::x(), blocks_m, y.cols().div_ceil(128), 512 / BM);
    let (mut m0, n0, t) = (m * BM, n * 128, thread::x());
    let (tm, tn) = (t / 32 * 8, t % 32 * 4);
    // The tile's expert, and whether the tile has the group of rows of this warp.
    let (mut expert, mut present) = (0, true);
    if EXPERTS {
        let group = tiles[m];
        m0 = if group < 0 { rows } else { 8 * group as usize };
        expert = if group < 0 { -1 } else { experts[group as usize] };
        present = m0 + tm < rows;
        if present {
            present = experts[(m0 + tm) / 8] == expert;
        }
    }
    let matrix = if expert > 0 { expert as usize * y.cols() } else { 0 };
    // A part is complete blocks of 256 numbers, which share a header.
    let each = units.div_ceil(splits).next_multiple_of(8);
    let first = (block::y() * each).min(units);
    let end = if expert < 0 { first } else { (first + each).min(units) };

    // Rows beyond the last one, of weights and of activations, are copies of it; their results are
    // not written.
    let wr: [usize; Q] = std::array::from_fn(|q| (matrix + n0 + row_of_weights::<BM>(t, q)).min(words.rows() - 1));
    let (xr, er) = ((m0 + t / 2 % BM).min(rows - 1), (m0 + t % BM).min(rows - 1));
    let (x_at, e_at) = (8 * (xr % 8) + t % 2 * 4, 4 * (er % 8));
    // An empty part loads the last unit, but multiplies nothing.
    let begin = first.min(units - 1);
    let mut x: [i32; 4] = bytes.load((xr / 8, 64 * begin + x_at));
    let mut e: [f32; 4] = factors.load((er / 8, 32 * begin + e_at));
    let mut w: [F::Loaded; Q] =
        std::array::from_fn(|q| F::load(words, halves, PlaneUnit { row: wr[q], unit: begin, units }));
    put::<F, BM, Q>(staged(0), t, x, e, w, begin);
    block::sync();
    let mut acc = [[0.0f32; 4]; 8];
    let mut buf = 0;
    for unit in rolled(first..end) {
        // At the end, the last unit is loaded again, so that no iteration needs a condition.
        let next = (unit + 1).min(units - 1);
        if t < 2 * BM {
            x = bytes.load((xr / 8, 64 * next + x_at));
            if t < BM {
                e = factors.load((er / 8, 32 * next + e_at));
            }
        }
        if 4 * BM <= 128 || t >= 4 * BM - 128 {
            w = std::array::from_fn(|q| F::load(words, halves, PlaneUnit { row: wr[q], unit: next, units }));
        }
        let now = staged(buf);
        if !EXPERTS || present {
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
        }
        put::<F, BM, Q>(staged(buf ^ 1), t, x, e, w, next);
        block::sync();
        buf ^= 1;
    }
    for i in unroll(0..8) {
        for j in unroll(0..4 / V) {
            let (row, at) = (m0 + tm + i, n0 + tn + j * V);
            if (!EXPERTS || present) && row < rows && at < y.cols() {
                let mut out = [0.0f32; V];
                for v in unroll(0..V) {
                    out[v] = acc[i][j * V + v];
                    if !scales.is_empty() {
                        out[v] *= scales[(matrix + at + v).min(words.rows() - 1)];
                    }
                }
                store(1.0, out, 0.0, y, block::y() * rows + row, at, 0, epilogue);
            }
        }
    }
}

/// Computes Y ← epilogue(Σ parts): adds the parts of a product whose K was split, in their order.
///
/// `parts` is [`splits` · rows, N], and Y is [rows, N].
#[kernel(
    block = 256, grid = (y.dim(0) * y.dim(1).div_ceil(V)).div_ceil(256), writes(y = once),
    instances(f32: Y = f32, E = Identity, V = 4 | 1; f16: Y = f16, E = Identity, V = 4),
)]
#[requires(
    splits > 0, parts.rows() == splits * y.rows(), parts.cols() == y.cols(), parts.aligned(V), y.aligned(V), y.cols() % V == 0,
)]
pub fn add_parts<Y: Float, E: Epilogue, const V: usize>(
    parts: View<f32, 2>,
    splits: usize,
    y: ViewMut<Y, 2>,
    epilogue: E,
) {
    let (pieces, i) = (y.cols().div_ceil(V), grid::index());
    let (row, col) = (i / pieces, i % pieces * V);
    if row < y.rows() {
        let mut sum = [0.0f32; V];
        for s in 0..splits {
            let part: [f32; V] = parts.load((s * y.rows() + row, col));
            for e in unroll(0..V) {
                sum[e] += part[e];
            }
        }
        store(1.0, sum, 0.0, y, row, col, 0, epilogue);
    }
}
