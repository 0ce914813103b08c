//! The matrix product by square tiles in shared memory.
//!
//! A block of T × T threads owns a T × T tile of C, a thread an element of it. The block walks along the inner dimension
//! tile by tile: all threads copy a tile of A and one of B to shared memory, zero beyond the edge, and each then
//! adds T products. Each element is read once a tile from global memory and T times from shared memory.

pub mod epilogue;
pub mod gemv;
mod plan;
mod product;
pub mod sgemm;
mod tile;

pub use product::{Gemm, Queue};

use kernel_dsl::prelude::*;

/// C = A·B; A is M × K, B is K × N, C is M × N, any M, N, K. Products are added in the order of k, each with one rounding.
#[kernel(block = (T, T), grid = (c.cols().div_ceil(T), c.rows().div_ceil(T)), instances(T = 16 | 32), writes(c = once))]
#[requires(a.cols() == b.rows(), c.rows() == a.rows(), c.cols() == b.cols())]
pub fn matmul<const T: usize>(a: View<f32, 2>, b: View<f32, 2>, mut c: ViewMut<f32, 2>) {
    let ta = Shared::<f32, 2>::padded([T, T]);
    let tb = Shared::<f32, 2>::padded([T, T]);
    let (row, col) = (block::y() * T + thread::y(), block::x() * T + thread::x());
    let mut acc = 0.0;
    for k in (0..a.cols()).step_by(T) {
        ta.copy_from(a.offset((block::y() * T, k)));
        tb.copy_from(b.offset((k, block::x() * T)));
        block::sync();
        for i in unroll(0..T) {
            acc = ta[(thread::y(), i)].mul_add(tb[(i, thread::x())], acc);
        }
        block::sync();
    }
    if row < c.rows() && col < c.cols() {
        c[(row, col)] = acc;
    }
}
