//! Products of few rows with weights of 8 or 4 bits: the decoding step of a language model.
//!
//! What limits them is memory: each byte of the weights is read once, and 16 of them, half a block of Q8_0 or a whole one of Q4_0, meet 16 or 32
//! activations in four or eight `dp4a` a row. So weights go from memory to registers, `W` accesses of 16 bytes a lane, `AHEAD` steps ahead of the
//! multiplications. The rows of activations are quantized by each block of threads for itself, a piece at a time, while its first weights are under
//! way: they lie in L2, and no launch goes before.
//!
//! ```text
//!   x [R, K] ──▶ shared: bytes, a scale every 32 ──┐
//!                                                  ▼
//!        ┌────────────── K ───────────────┐    sum of each chunk by dp4a, times both scales
//!      N │ lane 0 │ lane 1 │ … │ lane 31 │ … a warp: W rows, 32 · 16 bytes at a time
//!        │ lane 0 │ lane 1 │ … │ lane 31 │ …
//!        └────────────────────────────────┘    sums of lanes meet by shuffles
//! ```
//!
//! Of Q4_0 a chunk's low halves are the first 16 numbers of a block, its high halves the last 16: shared memory holds the first and the last 16
//! activations of all blocks apart, so that eight lanes read 128 bytes that follow one another. That 8 was added to each q is taken back as −8·Σ of
//! the block's activations.

use super::round::quantize_quad;
use crate::gemm::epilogue::*;
use crate::gemm::gemv::{finish, piece};
use kernel_dsl::prelude::*;

/// Where the four activations `q` of a piece of `piece` numbers lie: of 8 bits in their order; of 4 the halves of blocks apart, 64 bytes more than half
/// a piece, so that those who store both meet no bank twice.
#[device]
fn place(bits: usize, piece: usize, q: usize) -> usize {
    if bits == 4 { q % 8 / 4 * (piece / 8 + 16) + q / 8 * 4 + q % 4 } else { q }
}

/// 16 bytes of each of `W` rows of weights, and the scales of their blocks.
#[device]
#[derive(Clone, Copy)]
struct Chunks<const W: usize> {
    words: [[i32; 4]; W],
    scales: [f16; W],
}

/// The chunks that `w` begins with, a row each; zeros where it has no columns left. Rows behind the last are the last. `d` begins with their
/// scales.
#[device]
fn fetch<const BLOCKS: bool, const W: usize>(w: View<i8, 2>, d: View<f16, 2>) -> Chunks<W> {
    let mut chunks = Chunks { words: [[0i32; 4]; W], scales: [f16::from_f32(0.0); W] };
    if w.cols() > 0 {
        for i in unroll(0..W) {
            let row = i.min(w.rows() - 1);
            let q: [i8; 16] = w.load((row, 0));
            for j in unroll(0..4) {
                chunks.words[i][j] = int::word([q[4 * j], q[4 * j + 1], q[4 * j + 2], q[4 * j + 3]]);
            }
            if BLOCKS {
                chunks.scales[i] = d[(row, 0)];
            }
        }
    }
    chunks
}

/// 16 bytes of weights times what they meet of a row of activations: of four bits, the first halves of a block with `low` and the others with `high`.
#[device]
fn chunk_dot<const BITS: usize>(w: &[i32; 4], low: &[i32; 4], high: &[i32; 4], eights: i32) -> i32 {
    let mut sum = eights;
    for j in unroll(0..4) {
        if BITS == 4 {
            sum = dp4a(w[j] as u32 & 0x0f0f_0f0f, low[j], sum);
            sum = dp4a(w[j] as u32 >> 4 & 0x0f0f_0f0f, high[j], sum);
        } else {
            sum = dp4a(w[j], low[j], sum);
        }
    }
    sum
}

/// Y ← epilogue(X·Wᵀ), `R` rows of Y by `W` columns a warp; the weights are planes of [N, K] numbers of `BITS` bits.
///
/// `BLOCKS`: each 32 numbers have a scale, in `d`. Otherwise each row has one, in `scales`. X is quantized in blocks of 32 by their largest magnitude,
/// to 8 bits; behind its end it is zeros. A lane adds the chunks of a row that are 32 apart, in their order; the lanes' sums meet by a butterfly.
#[kernel(
    block = THREADS, max_registers = 128,
    grid = (y.dim(1).div_ceil(THREADS / 32 * W), y.dim(0).div_ceil(R)),
    writes(y = once),
    instances(
        f32_q8_r1_v4: X = f32, Y = f32, E = Identity, BITS = 8, BLOCKS = true, R = 1, W = 4, THREADS = 512, PIECE = 4096, AHEAD = 2, V = 4;
        f32_q4_r1_v4: X = f32, Y = f32, E = Identity, BITS = 4, BLOCKS = true, R = 1, W = 4, THREADS = 512, PIECE = 4096, AHEAD = 2, V = 4;
        f16_q8_rows_r1_v1: X = f16, Y = f16, E = Identity, BITS = 8, BLOCKS = false, R = 1, W = 4, THREADS = 512, PIECE = 4096, AHEAD = 2, V = 1;
        f32_q4_r8_v4: X = f32, Y = f32, E = Identity, BITS = 4, BLOCKS = true, R = 8, W = 3, THREADS = 256, PIECE = 2048, AHEAD = 1, V = 4
    ),
)]
#[requires(
    w.rows() == y.cols(), x.rows() == y.rows(), w.cols() % (4 * BITS) == 0, w.cols() / BITS * 8 >= x.cols(), w.aligned(16),
    if BLOCKS { d.rows() == w.rows() && d.cols() * 4 * BITS == w.cols() } else { scales.len() == w.rows() },
    x.aligned(V), x.cols() % V == 0,
)]
pub fn gemv_quantized<
    X: Float,
    Y: Float,
    E: Epilogue,
    const BITS: usize,
    const BLOCKS: bool,
    const R: usize,
    const W: usize,
    const THREADS: usize,
    const PIECE: usize,
    const AHEAD: usize,
    const V: usize,
>(
    x: View<X, 2>,
    w: View<i8, 2>,
    d: View<f16, 2>,
    scales: &[f32],
    y: ViewMut<Y, 2>,
    epilogue: E,
) {
    // A block quantizes four numbers a thread at once, and a lane has one of a warp's sums.
    const { assert!(PIECE % (4 * THREADS) == 0 && R * W <= 32 && PIECE * BITS / 4096 % AHEAD == 0) };
    let mut xs = Shared::<[i8; 4], 2>::new([R, PIECE / 4 + 16]);
    let mut scale_x = Shared::<f32, 2>::new([R, PIECE / 32]);
    let mut eights = Shared::<i32, 2>::new([R, PIECE / 32]);
    let words = xs.cast::<i32>();
    let (row0, col0) = (block::y() * R, (block::x() * (THREADS / 32) + warp::index()) * W);
    let depth = w.cols() / BITS * 8;
    let mut acc = [[0.0f32; W]; R];
    // Where the lane's next chunks are; what is not there has no columns.
    let first = col0.min(w.rows() - 1);
    let (mut w, mut d) = (w.offset((first, 16 * warp::lane())), d.offset((first, 4 * warp::lane() / BITS)));
    let mut words_ahead = [[[0i32; 4]; W]; AHEAD];
    let mut scales_ahead = [[f16::from_f32(0.0); W]; AHEAD];
    for a in unroll(0..AHEAD) {
        let chunks = fetch::<BLOCKS, W>(w, d);
        (words_ahead[a], scales_ahead[a]) = (chunks.words, chunks.scales);
        (w, d) = (w.offset((0, 512)), d.offset((0, 128 / BITS)));
    }
    for k0 in (0..depth).step_by(PIECE) {
        block::sync();
        for r in unroll(0..R) {
            for s in unroll(0..PIECE / (4 * THREADS)) {
                let q = s * THREADS + thread::index();
                let row = (row0 + r).min(x.rows() - 1);
                let four = quantize_quad(piece::<X, V, 4>(x, row, k0 + 4 * q, x.cols()).map(X::to_f32));
                xs[(r, place(BITS, PIECE, q))] = four.q;
                let sum = if BITS == 4 { warp::group::<8>().sum(dp4a(four.q, [-8i8; 4], 0)) } else { 0 };
                if q % 8 == 0 {
                    scale_x[(r, q / 8)] = four.scale;
                    if BITS == 4 {
                        eights[(r, q / 8)] = sum;
                    }
                }
            }
        }
        block::sync();
        // 32 chunks a step, of 128 / BITS numbers each.
        for step in unroll(0..PIECE * BITS / 4096) {
            let a = step % AHEAD;
            let now = Chunks { words: words_ahead[a], scales: scales_ahead[a] };
            let chunks = fetch::<BLOCKS, W>(w, d);
            (words_ahead[a], scales_ahead[a]) = (chunks.words, chunks.scales);
            (w, d) = (w.offset((0, 512)), d.offset((0, 128 / BITS)));
            let chunk = step * 32 + warp::lane();
            let block = chunk * 4 / BITS;
            for r in unroll(0..R) {
                let low: [i32; 4] = words.load((r, 4 * chunk));
                let mut high = [0i32; 4];
                let mut eight = 0;
                if BITS == 4 {
                    high = words.load((r, PIECE / 8 + 16 + 4 * chunk));
                    eight = eights[(r, block)];
                }
                let scale = scale_x[(r, block)];
                for i in unroll(0..W) {
                    let dot = chunk_dot::<BITS>(&now.words[i], &low, &high, eight) as f32;
                    acc[r][i] = if BLOCKS { scale * now.scales[i].to_f32() } else { scale }.mul_add(dot, acc[r][i]);
                }
            }
        }
    }
    for r in unroll(0..R) {
        for i in unroll(0..W) {
            let mut sum = warp::sum(acc[r][i]);
            if warp::lane() == r * W + i {
                if !BLOCKS && col0 + i < y.cols() {
                    sum *= scales[col0 + i];
                }
                finish(y, row0 + r, col0 + i, sum, 1.0, 0.0, 0, epilogue);
            }
        }
    }
}
