//! Matrix products. The entry point is [`Gemm`]: any shape, stride and transpose, batches, `f32` or
//! 16-bit storage, and epilogues.
//!
//! | kernels | for | a block's work |
//! |---|---|---|
//! | [`tiled::gemm`] | more than 8 rows | a tile of C of 128 × 128, 64 × 128 or 16 × 128, double-buffered in shared memory and in registers; [`tiled::sum_splits`] if the depth is split |
//! | [`gemv::gemv_n`], [`gemv::gemv_t`] | up to 8 rows | some columns; data that is read once goes directly to registers |
//! | [`normed::gemv_normed`] | up to 8 rows, after a norm, and before a gate | some columns; the rows are normalized as they are loaded |
//! | [`matmul`] | studying | a tile of T × T, one element per thread |
//!
//! # The limits on sm_61
//!
//! A multiprocessor multiplies 128 pairs a clock and reads 128 bytes of shared memory. A thread
//! that computes 8 × 8 elements reads 16 numbers for 64 multiplications, so that shared memory is
//! busy for half of the time. The rest of the optimization is to issue little besides
//! multiplications. In the loop of the tile 128 × 128 × 8, 97.2 % of the issue slots are FFMA, and
//! 7 % of those wait for a register bank. For `f16`, 128 × 128 × 16, it is 98.7 % and 5 %. For the
//! first loop `tests/tests/machine_code/budgets.rs` requires 97 % and 20 %. The same PTX on an H200
//! is as fast as cuBLAS in `f32`. `kernels bench --suite gemm` measures the local device.
//!
//! # The simplest kernel
//!
//! In [`matmul`], a block of T × T threads owns a T × T tile of C. In each iteration, all threads
//! copy a tile of A and one of B to shared memory, with zeros beyond the edge. Each then adds T
//! products. An element is read once per tile from global memory, T times from shared memory.
//!
//! # Measured
//!
//! Measured on an H200 (driver 580.159, PTX of sm_61) by `kernels bench --suite gemm`, beside
//! cuBLAS in plain `f32` and a copy of the same number of bytes:
//!
//! | M × N × K | | |
//! |---|---|---|
//! | 4096³, 2048³ | 51.3, 50.4 TFLOP/s | 1.00 × cuBLAS |
//! | 1024³, 512³ | 41.1, 20.7 | 1.08, 1.12 |
//! | 4100³, 1001³ | 46.9, 32.4 | 1.11, 0.83 |
//! | 512, 64, 16 × 6144 × 2048 | 46.0, 36.0, 18.3 | 1.06, 1.08, 1.95 |
//! | 4, 1 × 6144 × 2048 | 3.17, 3.95 TB/s | 2.53, 1.26; 0.87 and 1.08 × a copy |
//! | 1 × 8192 × 8192, `f32`, `f16` | 4.24, 3.58 TB/s; of Bᵀ 4.22, 3.91 | 1.04, 0.93 × a copy; 1.04, 1.01 |
//! | 4096³ of `f16`, in `f32`; of Bᵀ | 52.0, 50.1 TFLOP/s | 1.01, 1.02 × ours of `f32` |

pub mod epilogue;
pub mod gemv;
pub mod normed;
pub mod plan;
mod product;
pub mod tile;
pub mod tiled;
mod tuned;

pub use plan::GemmCosts;
pub use plan::ProductShape;
pub use product::Gemm;

use kernel_dsl::prelude::*;

/// Computes C = A·B, where A is M × K, B is K × N and C is M × N, for any M, N, K. Products are
/// added in the order of k, each with one rounding.
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
