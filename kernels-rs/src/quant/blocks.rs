//! Blocks of 32 numbers with a scale of 16 bits, as llama.cpp has them in its files (`block_q8_0` and `block_q4_0` of its
//! `ggml-common.h`), and the planes that the kernels here read.
//!
//! ```text
//! file, Q8_0: │d│ 32 bytes │d│ 32 bytes │ …     34 bytes a block: nothing is aligned to more than 2
//! file, Q4_0: │d│ 16 bytes │d│ 16 bytes │ …     18 bytes; byte j holds number j below and number j + 16 above
//!
//! planes:     │ 32 or 16 bytes │ 32 or 16 bytes │ …    a row begins at a multiple of 16 bytes
//!             │d│d│ …
//! ```
//!
//! A number is d·q of Q8_0, d·(q − 8) of Q4_0. The bytes of a block are the same in a file and in a plane, so that to
//! repack is to copy; what it is good for is that a lane then reads 16 bytes at once.

use super::round::{Quad, quantize_quad};
use crate::gemm::gemv::piece;
use kernel_dsl::prelude::*;

/// Numbers in a block.
#[device]
pub const BLOCK: usize = 32;

/// Q8_0: 32 bytes and their scale.
#[device]
#[derive(Clone, Copy, Debug, DeviceCopy)]
#[repr(C)]
pub struct Q8Block {
    /// What a unit stands for.
    pub d: f16,
    /// −128 to 127.
    pub qs: [i8; 32],
}

/// Q4_0: 32 numbers of four bits and their scale.
#[device]
#[derive(Clone, Copy, Debug, DeviceCopy)]
#[repr(C)]
pub struct Q4Block {
    /// What a unit stands for.
    pub d: f16,
    /// Byte j: number j in the low half, number j + 16 in the high one, each with 8 added.
    pub qs: [u8; 16],
}

/// Q8_0 from a file's blocks to planes: `w` is [rows, blocks]. A thread copies four bytes.
#[kernel(block = 256, grid = (w.dim(0) * w.dim(1) * 8).div_ceil(256), writes(qs = once, d = once))]
#[requires(qs.rows() == w.rows(), qs.cols() == 32 * w.cols(), d.rows() == w.rows(), d.cols() == w.cols(), qs.aligned(4))]
pub fn repack_q8(w: View<Q8Block, 2>, qs: ViewMut<i8, 2>, mut d: ViewMut<f16, 2>) {
    let (i, words) = (grid::index(), 8 * w.cols());
    if i >= w.rows() * words {
        return;
    }
    let (row, b, word) = (i / words, i % words / 8, i % 8);
    // A place in memory, indexed at run time: loads of single bytes.
    let q: [i8; 4] = std::array::from_fn(|j| w[(row, b)].qs[4 * word + j]);
    qs.store((row, 32 * b + 4 * word), q);
    if word == 0 {
        d[(row, b)] = w[(row, b)].d;
    }
}

/// Q4_0 from a file's blocks to planes: `w` is [rows, blocks]. A thread copies four bytes.
#[kernel(block = 256, grid = (w.dim(0) * w.dim(1) * 4).div_ceil(256), writes(qs = once, d = once))]
#[requires(qs.rows() == w.rows(), qs.cols() == 16 * w.cols(), d.rows() == w.rows(), d.cols() == w.cols(), qs.aligned(4))]
pub fn repack_q4(w: View<Q4Block, 2>, qs: ViewMut<i8, 2>, mut d: ViewMut<f16, 2>) {
    let (i, words) = (grid::index(), 4 * w.cols());
    if i >= w.rows() * words {
        return;
    }
    let (row, b, word) = (i / words, i % words / 4, i % 4);
    let q: [i8; 4] = std::array::from_fn(|j| w[(row, b)].qs[4 * word + j] as i8);
    qs.store((row, 16 * b + 4 * word), q);
    if word == 0 {
        d[(row, b)] = w[(row, b)].d;
    }
}

/// Rows of numbers to Q8_0 planes: eight lanes a block, four numbers a lane. What lies behind a row's end, to the end of the planes' row, is zeros.
/// Scales are stored as `D`: in `f16` for weights, in `f32` for activations.
#[kernel(
    block = 256,
    grid = (qs.dim(0) * qs.dim(1) / 4).div_ceil(256),
    writes(qs = once, d = once),
    instances(X = f32, D = f16, V = 4 | 1; X = f16, D = f32, V = 4),
)]
#[requires(
    qs.rows() == x.rows(), qs.cols() >= x.cols(), qs.cols() % 32 == 0, d.rows() == x.rows(), d.cols() == qs.cols() / 32,
    qs.aligned(4), x.aligned(V), x.cols() % V == 0,
)]
pub fn quantize_q8<X: Float, D: Float, const V: usize>(x: View<X, 2>, qs: ViewMut<i8, 2>, mut d: ViewMut<D, 2>) {
    let (i, words) = (grid::index(), qs.cols() / 4);
    let (row, at) = (i / words, i % words * 4);
    let inside = row < x.rows();
    let numbers = if inside { piece::<X, V, 4>(x, row, at, x.cols()).map(X::to_f32) } else { [0.0f32; 4] };
    // Outside every `if`: all lanes are here.
    let Quad { q, scale } = quantize_quad(numbers);
    if inside {
        qs.store((row, at), q);
        if at % 32 == 0 {
            d[(row, at / 32)] = D::from_f32(scale);
        }
    }
}

/// Rows of numbers to Q4_0 planes, as llama.cpp does it (`quantize_row_q4_0_ref`): d is the number of the largest magnitude over −8, so that it
/// becomes 0, and q is ⌊x/d + 8.5⌋, at most 15. A NaN counts as 0. A lane has the numbers 2i, 2i + 1, 16 + 2i, 17 + 2i of a block. Zeros behind a row's end.
#[kernel(
    block = 256,
    grid = (qs.dim(0) * qs.dim(1) / 2).div_ceil(256),
    writes(qs = once, d = once),
    instances(X = f32),
)]
#[requires(
    qs.rows() == x.rows(), 2 * qs.cols() >= x.cols(), qs.cols() % 16 == 0, d.rows() == x.rows(), d.cols() == qs.cols() / 16, qs.aligned(2),
)]
pub fn quantize_q4<X: Float>(x: View<X, 2>, qs: ViewMut<i8, 2>, mut d: ViewMut<f16, 2>) {
    let (i, pairs) = (grid::index(), qs.cols() / 2);
    let (row, at) = (i / pairs, i % pairs * 2);
    let (block, first) = (at / 16, at / 16 * 32 + at % 16);
    let number = |k: usize| {
        let number = x.get((row, k)).map_or(0.0, |x: X| x.to_f32());
        if number.is_nan() { 0.0 } else { number }
    };
    let numbers = [number(first), number(first + 1), number(first + 16), number(first + 17)];
    let larger = |a: f32, b: f32| if b.abs() > a.abs() || (b.abs() == a.abs() && b > a) { b } else { a };
    let mine = larger(larger(numbers[0], numbers[1]), larger(numbers[2], numbers[3]));
    let top = warp::group::<8>().reduce(mine, larger);
    let scale = top / -8.0;
    // A subnormal scale is 0 in `f16`, and its inverse may be infinite.
    let inverse = if scale.abs() < f32::MIN_POSITIVE { 0.0 } else { 1.0 / scale };
    let q = numbers.map(|x| (x.mul_add(inverse, 8.5) as u32).min(15));
    if row < x.rows() {
        qs.store((row, at), [(q[0] | q[2] << 4) as i8, (q[1] | q[3] << 4) as i8]);
        if at % 16 == 0 {
            d[(row, block)] = f16::from_f32(scale);
        }
    }
}

/// Planes to numbers: `BITS` is 8 of Q8_0, 4 of Q4_0. A thread has two numbers, those that share bytes of Q4_0. Each is rounded once to `f32`, which
/// d·q is exact in, and once to what it is stored as.
#[kernel(
    block = 256,
    grid = (x.dim(0) * (d.dim(1) * 16)).div_ceil(256),
    writes(x = once),
    instances(X = f32, BITS = 8 | 4),
)]
#[requires(
    qs.rows() == x.rows(), qs.cols() == 4 * BITS * d.cols(), 32 * d.cols() >= x.cols(), d.rows() == x.rows(), qs.aligned(2),
)]
pub fn dequantize<X: Float, const BITS: usize>(qs: View<i8, 2>, d: View<f16, 2>, mut x: ViewMut<X, 2>) {
    let (i, pairs) = (grid::index(), 16 * d.cols());
    let (row, block, j) = (i / pairs, i % pairs / 16, i % 16);
    if row >= x.rows() {
        return;
    }
    let scale = d[(row, block)].to_f32();
    let (at, q) = if BITS == 4 {
        let both = qs[(row, 16 * block + j)] as u8 as i32;
        ([32 * block + j, 32 * block + j + 16], [both % 16 - 8, both / 16 - 8])
    } else {
        let pair: [i8; 2] = qs.load((row, 32 * block + 2 * j));
        ([32 * block + 2 * j, 32 * block + 2 * j + 1], pair.map(|q| q as i32))
    };
    for k in unroll(0..2) {
        if at[k] < x.cols() {
            x[(row, at[k])] = X::from_f32(scale * q[k] as f32);
        }
    }
}

/// Rows of bytes to a plane, zeros behind their end. A thread writes four bytes.
#[kernel(block = 256, grid = (to.dim(0) * to.dim(1) / 4).div_ceil(256), writes(to = once))]
#[requires(to.rows() == from.rows(), to.cols() >= from.cols(), to.cols() % 4 == 0, to.aligned(4))]
pub fn repack_rows(from: View<i8, 2>, to: ViewMut<i8, 2>) {
    let (i, words) = (grid::index(), to.cols() / 4);
    if i < to.rows() * words {
        let (row, at) = (i / words, i % words * 4);
        to.store((row, at), from.load_or::<4>((row, at), 0));
    }
}
