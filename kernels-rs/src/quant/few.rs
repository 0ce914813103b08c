//! Products of 1 to 8 rows with weights in blocks: the decoding step of a language model.
//!
//! The limit is memory, and on small GPUs the issue of instructions. A lane processes units of 32
//! weights, and each weight is read once. The lane unpacks a unit to operands once, and multiplies
//! them with all `R` rows of activations. A warp has `W` rows of weights, so that each read of
//! activations is used for `W` units.
//!
//! ```text
//!   activations: bytes and scales ──▶ shared, a piece of K at a time ──┐
//!                                                                      ▼
//!        ┌───────────── K ──────────────┐    R × W sums a lane: 8 dp4a, then scales, for each
//!      N │ lane 0 │ lane 1 │ … lane 31 │ …   a warp: W rows, 32 units at a time
//!        │ lane 0 │ lane 1 │ … lane 31 │ …
//!        └──────────────────────────────┘    sums of lanes meet by shuffles
//! ```
//!
//! Units are loaded to registers `STEPS` steps before they are multiplied, also while a piece of
//! the activations is staged. If there is a single row, each block quantizes it separately
//! (`FLOATS`) while its first weights are loaded. Several rows are quantized once, by a launch of
//! [`quantize_activations`](super::activations::quantize_activations).
//!
//! The weights may be those of several experts, one matrix after another. Then a list on the device
//! gives the expert that multiplies each group of rows.

use super::formats::device::*;
use super::formats::*;
use super::round::quantize_quad;
use crate::gemm::epilogue::*;
use crate::gemm::gemv::{finish, piece};
use kernel_dsl::prelude::*;

/// Returns in lane i the sum of element i of all lanes' arrays, for i < `N` ≤ 32. Lanes whose
/// numbers differ in bit 4 are added first, and those that differ in bit 0 last. The order is that
/// of [`warp::sum`], with N shuffles instead of 5 N.
#[device]
fn sum_of_lane<const N: usize>(values: [f32; N]) -> f32 {
    let mut values = values;
    for step in unroll(0..5) {
        let half = 16 >> step;
        let upper = warp::lane() / half % 2 == 1;
        for j in unroll(0..half) {
            if j + half < N {
                let (keep, send) = if upper { (values[j + half], values[j]) } else { (values[j], values[j + half]) };
                values[j] = keep + warp::shuffle_xor(send, half);
            } else if j < N {
                values[j] += warp::shuffle_xor(values[j], half);
            }
        }
    }
    values[0]
}

/// Returns the number of factors of a unit of activations that a format uses. The factors are the
/// scale, the scaled sum for `MINS`, and the scaled sums of both halves for `MINS` and `HALVES`.
#[device]
fn factors_of<F: BlockFormat>() -> usize {
    if F::MINS && F::HALVES {
        4
    } else if F::MINS {
        2
    } else {
        1
    }
}

/// Returns `sum` + Σ of the four products of words.
#[device]
fn dot(a: [i32; 4], b: [i32; 4], sum: i32) -> i32 {
    let mut sum = sum;
    for j in unroll(0..4) {
        sum = dp4a(a[j], b[j], sum);
    }
    sum
}

/// Computes Y ← epilogue(X·Wᵀ), with `R` rows of Y by `W` columns per warp. W is in planes of
/// format `F` (see `device`). If `scales` is not empty, each row of W is multiplied by its scale.
///
/// With `FLOATS`, X is `x`, and each of its rows gives `chosen` rows of Y. Each unit of a row is
/// quantized by its largest magnitude; numbers beyond the row's end are zeros. Otherwise X is given
/// by `bytes` and `factors`, which `quantize_activations` makes in groups of `GROUP` rows. A lane
/// adds every 32nd unit, in order; the lanes' sums are added by a butterfly, the most distant lanes
/// first.
///
/// `experts` is empty, or has a number for each `GROUP` rows of Y. W is then the matrices of all
/// experts, and these rows are multiplied with the matrix of that number. If the number is
/// negative, these rows of Y are epilogue(0).
///
/// Y is [rows, N]. `words` and `halves` have a row for each row of W, and `bytes` and `factors` one
/// for each group of rows of X.
#[kernel(
    block = THREADS, max_registers = 128,
    grid = y.dim(0).div_ceil(R) * y.dim(1).div_ceil(THREADS / 32 * W),
    writes(y = once),
    instances(
        q4_0_r1: F = Q4_0, X = f32, Y = f32, E = Identity, FLOATS = true, R = 1, W = 4, THREADS = 512, PIECE = 4096, STEPS = 2, V = 4;
        q8_0_r1: F = Q8_0, X = f32, Y = f32, E = Identity, FLOATS = true, R = 1, W = 4, THREADS = 512, PIECE = 4096, STEPS = 1, V = 4;
        q4_k_r1: F = Q4K, X = f32, Y = f32, E = Identity, FLOATS = true, R = 1, W = 4, THREADS = 512, PIECE = 4096, STEPS = 1, V = 4;
        q6_k_r1: F = Q6K, X = f32, Y = f32, E = Identity, FLOATS = true, R = 1, W = 4, THREADS = 512, PIECE = 4096, STEPS = 1, V = 4;
        q4_0_r4: F = Q4_0, X = f32, Y = f32, E = Identity, FLOATS = false, R = 4, W = 4, THREADS = 256, PIECE = 2048, STEPS = 1, V = 4;
        q8_0_r4: F = Q8_0, X = f32, Y = f32, E = Identity, FLOATS = false, R = 4, W = 3, THREADS = 256, PIECE = 2048, STEPS = 1, V = 4;
        q4_k_r4: F = Q4K, X = f32, Y = f32, E = Identity, FLOATS = false, R = 4, W = 3, THREADS = 256, PIECE = 2048, STEPS = 1, V = 4;
        q6_k_r4: F = Q6K, X = f32, Y = f32, E = Identity, FLOATS = false, R = 4, W = 3, THREADS = 256, PIECE = 2048, STEPS = 1, V = 4;
        q4_0_r8: F = Q4_0, X = f32, Y = f32, E = Identity, FLOATS = false, R = 8, W = 3, THREADS = 256, PIECE = 2048, STEPS = 1, V = 4;
        q8_0_r8: F = Q8_0, X = f32, Y = f32, E = Identity, FLOATS = false, R = 8, W = 3, THREADS = 256, PIECE = 2048, STEPS = 1, V = 4;
        q4_k_r8: F = Q4K, X = f32, Y = f32, E = Identity, FLOATS = false, R = 8, W = 3, THREADS = 256, PIECE = 2048, STEPS = 1, V = 4;
        q6_k_r8: F = Q6K, X = f32, Y = f32, E = Identity, FLOATS = false, R = 8, W = 2, THREADS = 256, PIECE = 2048, STEPS = 1, V = 4;
        mxfp4_f16_r1_v1: F = Mxfp4, X = f16, Y = f16, E = Identity, FLOATS = true, R = 1, W = 2, THREADS = 256, PIECE = 4096, STEPS = 2, V = 1;
        q2_k_f16_r1_v1: F = Q2K, X = f16, Y = f16, E = Identity, FLOATS = true, R = 1, W = 2, THREADS = 256, PIECE = 4096, STEPS = 2, V = 1;
        q2_k_f16_r3: F = Q2K, X = f32, Y = f16, E = Identity, FLOATS = false, R = 3, W = 3, THREADS = 256, PIECE = 2048, STEPS = 1, V = 4;
        q5_1_f16_r3: F = Q5_1, X = f32, Y = f16, E = Identity, FLOATS = false, R = 3, W = 3, THREADS = 256, PIECE = 2048, STEPS = 1, V = 4
    ),
    derived(N = R * W, GROUP = 8 / (8 / R)),
)]
#[requires(
    units > 0, words.rows() == y.cols() || y.rows() == 0 || !experts.is_empty() && words.rows() > 0,
    words.cols() == F::words(units), words.aligned(4), halves.rows() == words.rows(), halves.cols() == F::halves(units),
    scales.is_empty() || scales.len() == words.rows(), experts.is_empty() || experts.len() == y.rows().div_ceil(GROUP),
    if FLOATS {
        chosen > 0 && x.rows() * chosen == y.rows() && x.cols() <= 32 * units && x.aligned(V) && x.cols() % V == 0
    } else {
        bytes.rows() == y.rows().div_ceil(GROUP) && bytes.cols() >= 8 * GROUP * units && bytes.aligned(4)
            && factors.rows() == bytes.rows() && factors.cols() >= 4 * GROUP * units && factors.aligned(4)
    },
)]
pub fn gemv_blocks<
    F: BlockFormat,
    X: Float,
    Y: Float,
    E: Epilogue,
    const FLOATS: bool,
    const R: usize,
    const W: usize,
    const THREADS: usize,
    const PIECE: usize,
    const STEPS: usize,
    const V: usize,
    const N: usize,
    const GROUP: usize,
>(
    x: View<X, 2>,
    chosen: usize,
    bytes: View<i32, 2>,
    factors: View<f32, 2>,
    words: View<u32, 2>,
    halves: View<u16, 2>,
    units: usize,
    scales: &[f32],
    experts: &[i32],
    y: ViewMut<Y, 2>,
    epilogue: E,
) {
    // All threads of a block quantize four numbers each at once, and a lane stores one sum of its
    // warp.
    const { assert!(PIECE % (4 * THREADS) == 0 && R * W <= 32 && PIECE / 1024 % STEPS == 0 && (R == 1 || !FLOATS)) };
    // The pitch puts the halves of rows that lanes write at once in different banks.
    let mut xs = Shared::<i32, 3>::with_pitch([R, 2, PIECE / 8], PIECE / 8 + if FLOATS { 16 } else { 4 });
    let mut es = Shared::<f32, 3>::new([R, PIECE / 32, factors_of::<F>()]);
    // Groups of rows that read the same weights are neighbors, so that the weights are in L2.
    let groups = y.rows().div_ceil(R);
    let group = block::x() % groups;
    let (row0, col0) = (group * R, (block::x() / groups * (THREADS / 32) + warp::index()) * W);
    let expert = if experts.is_empty() { 0 } else { experts[row0 / GROUP] };
    let matrix = if expert > 0 { expert as usize * y.cols() } else { 0 };
    let fetch = |unit: usize| -> [F::Loaded; W] {
        std::array::from_fn(|i| {
            let row = (matrix + col0 + i).min(words.rows() - 1);
            F::load(words, halves, PlaneUnit { row, unit, units })
        })
    };
    let mut ahead: [[F::Loaded; W]; STEPS] = std::array::from_fn(|a| fetch((32 * a + warp::lane()).min(units - 1)));
    let mut acc = [[0.0f32; W]; R];
    for first in (0..if expert < 0 { 0 } else { units }).step_by(PIECE / 32) {
        block::sync();
        if FLOATS {
            for s in unroll(0..PIECE / (4 * THREADS)) {
                let quad = s * THREADS + thread::index();
                let row = row0 / chosen;
                let four = quantize_quad(piece::<X, V, 4>(x, row, 32 * first + 4 * quad, x.cols()).map(X::to_f32));
                xs[(0, quad % 8 / 4, quad / 8 * 4 + quad % 4)] = int::word(four.q);
                let mut e = [four.scale, 0.0, 0.0, 0.0];
                if F::MINS {
                    let sum = warp::group::<4>().sum(dp4a(four.q, [1i8; 4], 0));
                    let (first, last) = (sum as f32, warp::shuffle_xor(sum, 4) as f32);
                    e = [four.scale, four.scale * (first + last), four.scale * first, four.scale * last];
                }
                if quad % 8 == 0 {
                    for part in unroll(0..factors_of::<F>()) {
                        es[(0, quad / 8, part)] = e[part];
                    }
                }
            }
        } else {
            // Neighboring threads load the rows of a unit in their order in memory. A thread has
            // the same row for all units.
            let (r, half, u) = (thread::index() / 2 % GROUP, thread::index() % 2, thread::index() / (2 * GROUP));
            let row = (row0 + r).min(y.rows() - 1);
            let (from, at) = (row / GROUP, 8 * (row % GROUP) + 4 * half);
            for s in unroll(0..(GROUP * PIECE / 16).div_ceil(THREADS)) {
                let u = u + s * (THREADS / (2 * GROUP));
                if (R == GROUP || r < R) && (GROUP * PIECE / 16 % THREADS == 0 || u < PIECE / 32) && first + u < units {
                    let q: [i32; 4] = bytes.load((from, 8 * GROUP * (first + u) + at));
                    xs.store((r, half, 4 * u), q);
                }
            }
            let (r, u) = (thread::index() % GROUP, thread::index() / GROUP);
            let row = (row0 + r).min(y.rows() - 1);
            let (from, at) = (row / GROUP, 4 * (row % GROUP));
            for s in unroll(0..(GROUP * PIECE / 32).div_ceil(THREADS)) {
                let u = u + s * (THREADS / GROUP);
                let at = 4 * GROUP * (first + u) + at;
                if (R == GROUP || r < R) && (GROUP * PIECE / 32 % THREADS == 0 || u < PIECE / 32) && first + u < units {
                    if F::MINS && F::HALVES {
                        es.store((r, u, 0), factors.load::<4>((from, at)));
                    } else if F::MINS {
                        es.store((r, u, 0), factors.load::<2>((from, at)));
                    } else {
                        es[(r, u, 0)] = factors[(from, at)];
                    }
                }
            }
        }
        block::sync();
        for step in unroll(0..PIECE / 1024) {
            let (a, u) = (step % STEPS, 32 * step + warp::lane());
            let unit = first + u;
            let now = ahead[a];
            // At the end, the last unit is loaded again: a conditional load would need a copy of
            // the registers that it replaces.
            ahead[a] = fetch((unit + 32 * STEPS).min(units - 1));
            if unit < units {
                // The indices of a lane's units are equal modulo 32.
                let weights: [Unit; W] = std::array::from_fn(|i| F::unpack(now[i], warp::lane()));
                for r in unroll(0..R) {
                    let (low, high): ([i32; 4], [i32; 4]) = (xs.load((r, 0, 4 * u)), xs.load((r, 1, 4 * u)));
                    let mut e = [0.0f32; 4];
                    if F::MINS && F::HALVES {
                        e = es.load((r, u, 0));
                    } else if F::MINS {
                        let two: [f32; 2] = es.load((r, u, 0));
                        e[0] = two[0];
                        e[1] = two[1];
                    } else {
                        e[0] = es[(r, u, 0)];
                    }
                    for i in unroll(0..W) {
                        acc[r][i] = add::<F>(acc[r][i], weights[i], low, high, e);
                    }
                }
            }
        }
    }
    let sums: [f32; N] = std::array::from_fn(|n| acc[n / W][n % W]);
    let mut sum = sum_of_lane(sums);
    let (row, col) = (warp::lane() / W, col0 + warp::lane() % W);
    if row < R {
        if !scales.is_empty() && col < y.cols() {
            sum *= scales[(matrix + col).min(words.rows() - 1)];
        }
        finish(y, row0 + row, col, sum, 1.0, 0.0, 0, epilogue);
    }
}

/// Adds the product of a unit of weights with one of activations: bytes `low` and `high`, scale and
/// scaled sums `e`.
#[device]
fn add<F: BlockFormat>(acc: f32, w: Unit, low: [i32; 4], high: [i32; 4], e: [f32; 4]) -> f32 {
    let (first, last) =
        ([w.bytes[0], w.bytes[1], w.bytes[2], w.bytes[3]], [w.bytes[4], w.bytes[5], w.bytes[6], w.bytes[7]]);
    let scale = [scale_of_one::<F>(w.scale[0]), scale_of_one::<F>(w.scale[1])];
    let mut acc = acc;
    if F::HALVES {
        let sum = scale[1].mul_add(dot(last, high, 0) as f32, scale[0] * dot(first, low, 0) as f32);
        acc = e[0].mul_add(sum, acc);
        if F::MINS {
            acc = (-w.min[1]).mul_add(e[3], (-w.min[0]).mul_add(e[2], acc));
        }
    } else {
        acc = if F::SCALED { e[0] * scale[0] } else { e[0] }.mul_add(dot(last, high, dot(first, low, 0)) as f32, acc);
        if F::MINS {
            acc = (-w.min[0]).mul_add(e[1], acc);
        }
    }
    acc
}
