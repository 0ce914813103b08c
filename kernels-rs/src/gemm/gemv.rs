//! Products with few rows: the decoding step of a language model, where each weight is read once
//! and used only a few times.
//!
//! The products are limited by memory: a matrix of 8192 × 8192 `f32` is 268 MB to read for 134
//! million multiplications a row. Therefore nothing is staged in shared memory. Each element of B
//! is loaded to a register by accesses of 16 bytes, with many of them in flight at once. The
//! element is multiplied with the `R` rows of A, whose elements come from the caches.
//!
//! ```text
//!   gemv_n: B is [K, N]                 gemv_t: B is [N, K]
//!   ┌──────── N ────────┐                    ┌──────── K ────────┐
//!   │▒▒▒▒│              │ group 0            │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│ warp 0
//! K │▒▒▒▒│              │ group 1          N │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│ warp 0
//!   │▒▒▒▒│ 4·L columns  │ …                  │▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│ warp 1
//!   │▒▒▒▒│ a block      │                    │                   │ …
//!   └────┴──────────────┘                    └───────────────────┘
//!   sums are added by shuffles,               sums are added by shuffles
//!   then in shared memory
//! ```

use super::epilogue::*;
use kernel_dsl::prelude::*;

/// Returns `P` elements of a row from `at` on, with zeros beyond `cols`, the end of the row. Unless
/// `V` is 1, the load is one access, which requires `cols` to be a multiple of `P`.
#[device]
pub fn piece<T: Float, const V: usize, const P: usize>(g: View<T, 2>, row: usize, at: usize, cols: usize) -> [T; P] {
    if V > 1 {
        if at < cols { g.load((row, at)) } else { [T::from_f32(0.0); P] }
    } else {
        std::array::from_fn(|i| if at + i < cols { g[(row, at + i)] } else { T::from_f32(0.0) })
    }
}

/// Stores c ← epilogue(α·x + β·c) for one element of C, if the indices are in bounds. c is not read
/// if β is 0.
#[device]
pub fn finish<C: Float, E: Epilogue>(
    c: ViewMut<C, 2>,
    row: usize,
    at: usize,
    x: f32,
    alpha: f32,
    beta: f32,
    batch: usize,
    epilogue: E,
) {
    if row < c.rows() && at < c.cols() {
        store(alpha, [x], beta, c, row, at, batch, epilogue);
    }
}

/// Computes C ← epilogue(α·A·B + β·C), with B row-major and `R` rows of C per block.
///
/// The block's `THREADS / L` groups of `L` lanes alternate over the rows of B, `U` rows at a time.
/// A group adds its products in the order of k. The sums of groups are added by a butterfly in each
/// warp, then warp by warp.
///
/// A is [batch, M, K], B is [batch, K, N] and C is [batch, M, N]. The epilogue counts the matrices
/// from `first`.
#[kernel(
    block = THREADS, max_registers = 128,
    grid = (c.dim(2).div_ceil(4 * L), c.dim(1).div_ceil(R), c.dim(0)),
    writes(c = once),
    instances(
        f32_l8_r1: A = f32, B = f32, C = f32, E = Identity, R = 1, L = 8, U = 16, THREADS = 256, V = 4 | 1;
        f32_l4_r1: A = f32, B = f32, C = f32, E = Identity, R = 1, L = 4, U = 8, THREADS = 256, V = 4 | 1;
        f32_l8: A = f32, B = f32, C = f32, E = Identity, R = 2 | 4, L = 8, U = 8, THREADS = 256, V = 4 | 1;
        f32_l4: A = f32, B = f32, C = f32, E = Identity, R = 2 | 4, L = 4, U = 4, THREADS = 256, V = 4 | 1;
        f32_l8_r8: A = f32, B = f32, C = f32, E = Identity, R = 8, L = 8, U = 4, THREADS = 256, V = 4 | 1;
        f32_l4_r8: A = f32, B = f32, C = f32, E = Identity, R = 8, L = 4, U = 4, THREADS = 256, V = 4 | 1;
        f16_l8_r1: A = f16, B = f16, C = f16, E = Identity, R = 1, L = 8, U = 8, THREADS = 512, V = 4 | 1;
        f16_l4_r1: A = f16, B = f16, C = f16, E = Identity, R = 1, L = 4, U = 8, THREADS = 256, V = 4 | 1;
        f16_l8: A = f16, B = f16, C = f16, E = Identity, R = 2 | 4, L = 8, U = 8, THREADS = 256, V = 4 | 1;
        f16_l4: A = f16, B = f16, C = f16, E = Identity, R = 2 | 4, L = 4, U = 4, THREADS = 256, V = 4 | 1;
        f16_l8_r8: A = f16, B = f16, C = f16, E = Identity, R = 8, L = 8, U = 4, THREADS = 256, V = 4 | 1;
        f16_l4_r8: A = f16, B = f16, C = f16, E = Identity, R = 8, L = 4, U = 4, THREADS = 256, V = 4 | 1
    ),
)]
#[requires(
    a.dim(0) == c.dim(0), b.dim(0) == c.dim(0), a.dim(1) == c.dim(1), b.dim(2) == c.dim(2), a.dim(2) == b.dim(1),
    a.aligned(V), b.aligned(V), a.dim(2) % V == 0, b.dim(2) % V == 0,
)]
pub fn gemv_n<
    A: Float,
    B: Float,
    C: Float,
    E: Epilogue,
    const R: usize,
    const L: usize,
    const U: usize,
    const THREADS: usize,
    const V: usize,
>(
    alpha: f32,
    a: View<A, 3>,
    b: View<B, 3>,
    beta: f32,
    c: ViewMut<C, 3>,
    first: usize,
    epilogue: E,
) {
    let (a, b, c) = (a.at(block::z()), b.at(block::z()), c.at(block::z()));
    let (lane, group) = (thread::index() % L, thread::index() / L);
    let (row0, col0) = (block::y() * R, block::x() * 4 * L);
    let (depth, col) = (a.cols(), col0 + lane * 4);
    let mut acc = [[0.0f32; 4]; R];
    for k in (group * U..depth).step_by(U * (THREADS / L)) {
        let w: [[B; 4]; U] = std::array::from_fn(|i| {
            if k + i < depth { piece::<B, V, 4>(b, k + i, col, b.cols()) } else { [B::from_f32(0.0); 4] }
        });
        for r in unroll(0..R) {
            for q in unroll(0..U / 4) {
                let x = piece::<A, V, 4>(a, (row0 + r).min(a.rows() - 1), k + 4 * q, depth).map(A::to_f32);
                for i in unroll(0..4) {
                    for j in unroll(0..4) {
                        acc[r][j] = x[i].mul_add(w[4 * q + i][j].to_f32(), acc[r][j]);
                    }
                }
            }
        }
    }
    let mut sums = Shared::<f32, 3>::new([THREADS / 32, R, 4 * L]);
    for r in unroll(0..R) {
        for j in unroll(0..4) {
            let mut x = acc[r][j];
            for other in unroll(0..5) {
                if (1 << other) >= L {
                    x += warp::shuffle_xor(x, 1 << other);
                }
            }
            if warp::lane() < L {
                sums[(warp::index(), r, 4 * lane + j)] = x;
            }
        }
    }
    block::sync();
    for [r, j] in block::share([R, 4 * L]) {
        let mut x = 0.0f32;
        for w in unroll(0..THREADS / 32) {
            x += sums[(w, r, j)];
        }
        finish(c, row0 + r, col0 + j, x, alpha, beta, first + block::z(), epilogue);
    }
}

/// The number of products that a block stages of its rows of A.
#[device]
const STAGED: usize = 512;

/// The number of pieces of B that a lane has in flight if there is one row to multiply them with.
#[device]
const LOADS_AHEAD: usize = 4;

/// Computes C ← epilogue(α·A·Bᵀ + β·C), with B stored as [N, K] row-major, and `R` rows of C by `W`
/// columns per warp.
///
/// A lane takes `P` products at a stride of 32·`P`: 16 bytes of B if `V` allows it. A lane adds its
/// products in the order of k; the lanes' sums are added by a butterfly. A single row of A is read
/// by each warp separately. Several rows are staged in shared memory for all warps of the block,
/// 512 products at a time.
///
/// A is [batch, M, K], B is [batch, N, K] and C is [batch, M, N]. The epilogue counts the matrices
/// from `first`.
#[kernel(
    block = 256, max_registers = 128,
    grid = (c.dim(2).div_ceil(8 * W), c.dim(1).div_ceil(R), c.dim(0)),
    writes(c = once),
    instances(
        f32_r1: A = f32, B = f32, C = f32, E = Identity, R = 1, W = 1, V = 4 | 1;
        f32: A = f32, B = f32, C = f32, E = Identity, R = 2 | 4, W = 4, V = 4 | 1;
        f32_r8: A = f32, B = f32, C = f32, E = Identity, R = 8, W = 2, V = 4 | 1;
        f16_r1: A = f16, B = f16, C = f16, E = Identity, R = 1, W = 1, V = 8 | 1;
        f16: A = f16, B = f16, C = f16, E = Identity, R = 2 | 4, W = 4, V = 8 | 1;
        f16_r8: A = f16, B = f16, C = f16, E = Identity, R = 8, W = 2, V = 8 | 1
    ),
    derived(P = V.max(4)),
)]
#[requires(
    a.dim(0) == c.dim(0), b.dim(0) == c.dim(0), a.dim(1) == c.dim(1), b.dim(1) == c.dim(2), a.dim(2) == b.dim(2),
    a.aligned(V), b.aligned(V), a.dim(2) % V == 0,
)]
pub fn gemv_t<
    A: Float,
    B: Float,
    C: Float,
    E: Epilogue,
    const R: usize,
    const W: usize,
    const V: usize,
    const P: usize,
>(
    alpha: f32,
    a: View<A, 3>,
    b: View<B, 3>,
    beta: f32,
    c: ViewMut<C, 3>,
    first: usize,
    epilogue: E,
) {
    const { assert!(V == 1 || V == P) };
    let (a, b, c) = (a.at(block::z()), b.at(block::z()), c.at(block::z()));
    let (row0, col0) = (block::y() * R, (block::x() * 8 + warp::index()) * W);
    let depth = a.cols();
    let mut acc = [[0.0f32; W]; R];
    if R == 1 {
        for k0 in (0..depth).step_by(32 * P * LOADS_AHEAD) {
            let k = k0 + warp::lane() * P;
            let mut w = [[[B::from_f32(0.0); P]; W]; LOADS_AHEAD];
            for u in unroll(0..LOADS_AHEAD) {
                for i in unroll(0..W) {
                    w[u][i] = piece::<B, V, P>(b, (col0 + i).min(b.rows() - 1), k + u * 32 * P, depth);
                }
            }
            for u in unroll(0..LOADS_AHEAD) {
                let x = piece::<A, V, P>(a, row0, k + u * 32 * P, depth).map(A::to_f32);
                for i in unroll(0..W) {
                    for j in unroll(0..P) {
                        acc[0][i] = x[j].mul_add(w[u][i][j].to_f32(), acc[0][i]);
                    }
                }
            }
        }
    } else {
        let staged = Shared::<A, 2>::new([R, STAGED]);
        for k0 in (0..depth).step_by(STAGED) {
            block::sync();
            staged.copy_from(a.offset((row0, k0)));
            block::sync();
            for step in unroll(0..STAGED / (32 * P)) {
                let at = (step * 32 + warp::lane()) * P;
                let mut w = [[B::from_f32(0.0); P]; W];
                for i in unroll(0..W) {
                    w[i] = piece::<B, V, P>(b, (col0 + i).min(b.rows() - 1), k0 + at, depth);
                }
                for r in unroll(0..R) {
                    let x = staged.load::<P>((r, at)).map(A::to_f32);
                    for i in unroll(0..W) {
                        for j in unroll(0..P) {
                            acc[r][i] = x[j].mul_add(w[i][j].to_f32(), acc[r][i]);
                        }
                    }
                }
            }
        }
    }
    for r in unroll(0..R) {
        for i in unroll(0..W) {
            let x = warp::sum(acc[r][i]);
            if warp::lane() == r * W + i {
                finish(c, row0 + r, col0 + i, x, alpha, beta, first + block::z(), epilogue);
            }
        }
    }
}
