//! Products of many rows with weights of 8 or 4 bits in blocks: prefill, and training of what stands on frozen weights.
//!
//! Activations come as planes of Q8 blocks with scales of `f32`, which [`quantize_q8`](super::blocks::quantize_q8) makes of rows once. A
//! block of threads has 64 rows of activations and 128 of weights, and a step is one block of K:
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
//! Each step is 256 `dp4a` a thread and 96 operations of `f32`: the sum of integers, which begins as the bits of 1.5 · 2²³, is
//! then the bits of a float of that binade, less 1.5 · 2²³, and no conversion, which runs at a quarter of the rate. 8 × 8 a thread would halve
//! the reads of shared memory, but needs 64 integers and 64 floats beside one another, more registers than there are. Four bits become bytes
//! on the way to shared memory, in two operations for four numbers.

use crate::gemm::epilogue::*;
use crate::gemm::tiled::grouped;
use kernel_dsl::prelude::*;

/// Words of a block of 32 bytes.
#[device]
const WORDS: usize = 8;

/// Four numbers of four bits, each in a byte with 8 added, as signed bytes. No byte overflows into the next: n + 120 < 136.
#[device]
fn centered(word: u32) -> i32 {
    ((word + 0x7878_7878) ^ 0x8080_8080) as i32
}

/// 16 bytes from byte `at` of a row as words; zeros where nothing is to be loaded.
#[device]
fn words(g: View<i8, 2>, there: bool, row: usize, at: usize) -> [i32; 4] {
    let mut out = [0i32; 4];
    if there {
        let q: [i8; 16] = g.load((row, at));
        for j in unroll(0..4) {
            out[j] = int::word([q[4 * j], q[4 * j + 1], q[4 * j + 2], q[4 * j + 3]]);
        }
    }
    out
}

/// Y ← epilogue(X·Wᵀ), X as planes of Q8 blocks, W as planes of [N, K] numbers of `BITS` bits, with a scale a block in `d` where `BLOCKS`, else one a row
/// in `scales`. Blocks are added in the order of k, each by one fused multiplication of the product of its scales with its sum.
#[kernel(
    block = 256, min_blocks = 2, max_registers = 128,
    grid = y.dim(0).div_ceil(64) * y.dim(1).div_ceil(128),
    writes(y = once),
    instances(
        f32_q8_v4: Y = f32, E = Identity, BITS = 8, BLOCKS = true, V = 4;
        f32_q4_v4: Y = f32, E = Identity, BITS = 4, BLOCKS = true, V = 4;
        f16_q8_rows_v1: Y = f16, E = Identity, BITS = 8, BLOCKS = false, V = 1
    ),
)]
#[requires(
    qx.rows() == y.rows(), w.rows() == y.cols(), dx.rows() == y.rows(), qx.cols() % 32 == 0, w.cols() % BITS == 0, w.cols() / BITS * 8 == qx.cols(),
    dx.cols() * 32 == qx.cols(), qx.aligned(16), w.aligned(16), y.aligned(V), y.cols() % V == 0,
    if BLOCKS { d.rows() == w.rows() && d.cols() * 4 * BITS == w.cols() } else { scales.len() == w.rows() },
)]
pub fn gemm_quantized<Y: Float, E: Epilogue, const BITS: usize, const BLOCKS: bool, const V: usize>(
    qx: View<i8, 2>,
    dx: View<f32, 2>,
    w: View<i8, 2>,
    d: View<f16, 2>,
    scales: &[f32],
    y: ViewMut<Y, 2>,
    epilogue: E,
) {
    let sx = Shared::<i32, 3>::with_pitch([2, WORDS, 64], 64 + 4);
    let sw = Shared::<i32, 3>::with_pitch([2, WORDS, 128], 128 + 4);
    let (ex, ew) = (Shared::<f32, 2>::new([2, 64]), Shared::<f32, 2>::new([2, 128]));
    let (m, n) = grouped(block::x(), y.rows().div_ceil(64), y.cols().div_ceil(128), 8);
    let (m0, n0, t) = (m * 64, n * 128, thread::x());
    let (tm, tn) = (t / 32 * 8, t % 32 * 4);

    // The first 128 threads load activations, two a row; weights of eight bits all threads, two a row, of four the other 128, one a row.
    let (half, xr) = (t % 2 * 4, m0 + t / 2);
    let loads_x = t < 128 && xr < qx.rows();
    let wl = if BITS == 8 { t / 2 } else { t % 128 };
    let loads_w = (BITS == 8 || t >= 128) && n0 + wl < w.rows();
    let (scale_x, scale_w) = (t < 64, t >= 128);
    let fetch = |b: usize, there: bool| -> ([i32; 4], [i32; 4], f32) {
        let x = words(qx, there && loads_x, xr, 32 * b + 4 * half);
        let q = words(w, there && loads_w, n0 + wl, 4 * BITS * b + if BITS == 8 { 4 * half } else { 0 });
        let e = if scale_x {
            dx.get((m0 + t, b)).unwrap_or(0.0)
        } else if scale_w && BLOCKS {
            d.get((n0 + t - 128, b)).map_or(0.0, |d| d.to_f32())
        } else {
            1.0
        };
        (x, q, e)
    };
    let put = |(x, q, e): ([i32; 4], [i32; 4], f32),
               buf: usize,
               mut sx: Shared<i32, 3>,
               mut sw: Shared<i32, 3>,
               mut ex: Shared<f32, 2>,
               mut ew: Shared<f32, 2>| {
        for i in unroll(0..4) {
            if t < 128 {
                sx[(buf, half + i, t / 2)] = x[i];
            }
            if BITS == 8 {
                sw[(buf, half + i, wl)] = q[i];
            } else if t >= 128 {
                sw[(buf, i, wl)] = centered(q[i] as u32 & 0x0f0f_0f0f);
                sw[(buf, 4 + i, wl)] = centered(q[i] as u32 >> 4 & 0x0f0f_0f0f);
            }
        }
        if scale_x {
            ex[(buf, t)] = e;
        } else if scale_w {
            ew[(buf, t - 128)] = e;
        }
    };

    let mut acc = [[0.0f32; 4]; 8];
    let blocks = qx.cols() / 32;
    put(fetch(0, blocks > 0), 0, sx, sw, ex, ew);
    block::sync();
    let mut buf = 0;
    for b in rolled(0..blocks) {
        let next = fetch(b + 1, b + 1 < blocks);
        let mut dot = [[0x4b40_0000i32; 4]; 8];
        for k in unroll(0..WORDS) {
            let (low, high): ([i32; 4], [i32; 4]) = (sx.load((buf, k, tm)), sx.load((buf, k, tm + 4)));
            let q: [i32; 4] = sw.load((buf, k, tn));
            for i in unroll(0..4) {
                for j in unroll(0..4) {
                    dot[i][j] = dp4a(low[i], q[j], dot[i][j]);
                    dot[i + 4][j] = dp4a(high[i], q[j], dot[i + 4][j]);
                }
            }
        }
        let e: [f32; 4] = ew.load((buf, tn));
        for i in unroll(0..8) {
            let s = ex[(buf, tm + i)];
            for j in unroll(0..4) {
                let sum = f32::from_bits(dot[i][j] as u32) - 12_582_912.0;
                acc[i][j] = if BLOCKS { s * e[j] } else { s }.mul_add(sum, acc[i][j]);
            }
        }
        // Behind the last block, too, that of nothing: so no step asks.
        put(next, buf ^ 1, sx, sw, ex, ew);
        block::sync();
        buf ^= 1;
    }
    for i in unroll(0..8) {
        for j in unroll(0..4 / V) {
            let (row, at) = (m0 + tm + i, n0 + tn + j * V);
            if row < y.rows() && at < y.cols() {
                let mut x = [0.0f32; V];
                for e in unroll(0..V) {
                    x[e] = if BLOCKS { acc[i][j * V + e] } else { scales[at + e] * acc[i][j * V + e] };
                }
                store(1.0, x, 0.0, y, row, at, 0, epilogue);
            }
        }
    }
}
