//! A product of `f32` matrices at the speed of a library: C = epilogue(A·B).
//!
//! ```text
//! cargo run --release -p kernels-rs --example sgemm
//! ```
//!
//! Tiles have 128 × 128 × 8 elements, blocks 256 threads. A thread has 8 × 8 elements, as 2 × 2
//! quads of 4 × 4; QN = 4 gives 8 × 16. The file shows:
//!
//! - shared loads of 128 bits, with A transposed and padded to a pitch of BM + 4;
//! - double-buffered shared memory and fragments, and global loads a tile ahead;
//! - blocks grouped for the L2 cache, and a separate path for edges;
//! - an epilogue that the user provides: a struct with a trait, passed by value.

use kernel_dsl::prelude::*;
use kernels_rs::gemm::tiled::grouped;
use runtime::Device;
use std::error::Error;

/// The epilogue of a finished 1 × 4 piece of C at (row, col), passed by value: a struct of scalars
/// and views, which is an argument of the kernel.
#[device]
pub mod epilogue {
    use kernel_dsl::prelude::*;
    /// The operation on four finished elements of a row of C.
    pub trait Epilogue: Copy {
        /// Returns the elements to store, from the sums.
        fn apply(&self, x: [f32; 4], row: usize, col: usize) -> [f32; 4];
    }
    /// The sums themselves.
    #[derive(Clone, Copy, DeviceCopy)]
    pub struct Identity;
    impl Epilogue for Identity {
        fn apply(&self, x: [f32; 4], _: usize, _: usize) -> [f32; 4] {
            x
        }
    }
    /// Computes relu(s·x + bias[col]).
    #[derive(Clone, Copy, DeviceCopy)]
    pub struct BiasRelu {
        /// The factor of the sums.
        pub scale: f32,
        /// The summand of each column; zeros beyond its end.
        pub bias: View<f32, 1>,
    }
    impl Epilogue for BiasRelu {
        fn apply(&self, mut x: [f32; 4], _row: usize, col: usize) -> [f32; 4] {
            let b: [f32; 4] = self.bias.load_or(col, 0.0);
            for j in unroll(0..4) {
                x[j] = x[j].mul_add(self.scale, b[j]).max(0.0);
            }
            x
        }
    }
}
use epilogue::*;

/// Loads a thread's share of a tile from global memory to registers. `[usize; 2]` is a value that
/// folds after inlining, so that no type contains `{BK / 4}`.
#[device]
fn fetch<const N: usize, const EDGE: bool>(g: View<f32, 2>, tile: [usize; 2]) -> [[f32; 4]; N] {
    let mut out = [[0.0; 4]; N];
    for (s, [r, v]) in unroll(block::share([tile[0], tile[1] / 4]).enumerate()) {
        out[s] = if EDGE { g.load_or((r, 4 * v), 0.0) } else { g.load((r, 4 * v)) };
    }
    out
}

/// Stores registers to shared memory: A transposed, B unchanged. Handles are passed by value: the
/// other buffer, `sa.at(buf)`, may be read meanwhile.
#[device]
fn put<const LA: usize, const LB: usize>(
    mut sa: Shared<f32, 2>,
    sb: Shared<f32, 2>,
    na: &[[f32; 4]; LA],
    nb: &[[f32; 4]; LB],
) {
    let (bk, bm, bn) = (sa.dim(0), sa.dim(1), sb.dim(1));
    for (s, [r, v]) in unroll(block::share([bm, bk / 4]).enumerate()) {
        for i in unroll(0..4) {
            sa[(4 * v + i, r)] = na[s][i];
        }
    }
    for (s, [r, v]) in unroll(block::share([bk, bn / 4]).enumerate()) {
        sb.store((r, 4 * v), nb[s]);
    }
}

/// Computes acc += a·bᵀ, quad by quad. References are aliases of the caller's places (always
/// inlined): registers remain registers.
#[device]
fn outer<const QM: usize, const QN: usize>(
    acc: &mut [[[[f32; 4]; 4]; QN]; QM],
    a: &[[f32; 4]; QM],
    b: &[[f32; 4]; QN],
) {
    for p in unroll(0..QM) {
        for i in unroll(0..4) {
            for q in unroll(0..QN) {
                for j in unroll(0..4) {
                    acc[p][q][i][j] = a[p][i].mul_add(b[q][j], acc[p][q][i][j]);
                }
            }
        }
    }
}

#[device]
fn tile<
    E: Epilogue,
    const BM: usize,
    const BN: usize,
    const BK: usize,
    const QM: usize,
    const QN: usize,
    const LA: usize,
    const LB: usize,
    const EDGE: bool,
>(
    a: View<f32, 2>,
    b: View<f32, 2>,
    c: ViewMut<f32, 2>,
    row0: usize,
    col0: usize,
    epilogue: E,
) {
    // the pitch is a value: stable Rust allows its arithmetic, and our compiler folds it
    let sa = Shared::<f32, 3>::with_pitch([2, BK, BM], BM + 4);
    let sb = Shared::<f32, 3>::new([2, BK, BN]);

    let (wm, wn) = (QM * 16, QN * 32); // a warp's piece: 4 × 8 lanes, each with QM × QN quads
    let (warp, lane) = (warp::index(), warp::lane());
    let warps_n = BN / wn;
    let (tr, tc) = (warp / warps_n * wm + lane / 8 * 4, warp % warps_n * wn + lane % 8 * 4);

    let mut acc = [[[[0.0f32; 4]; 4]; QN]; QM];
    let (mut fa, mut fb) = ([[[0.0f32; 4]; QM]; 2], [[[0.0f32; 4]; QN]; 2]);

    // moving views, including their extents
    let (mut ag, mut bg) = (a.offset((row0, 0)), b.offset((0, col0)));
    let (mut na, mut nb) = (fetch::<LA, EDGE>(ag, [BM, BK]), fetch::<LB, EDGE>(bg, [BK, BN]));
    put(sa.at(0), sb.at(0), &na, &nb);
    block::sync();
    for p in unroll(0..QM) {
        fa[0][p] = sa.load((0, 0, tr + 16 * p));
    }
    for q in unroll(0..QN) {
        fb[0][q] = sb.load((0, 0, tc + 32 * q));
    }

    let mut buf = 0;
    let tiles = a.cols().div_ceil(BK);
    for t in rolled(0..tiles) {
        // at an edge, elements beyond the last tile are zeros, which are not used
        let more = EDGE || t + 1 < tiles;
        if more {
            // A tile ahead: loaded here, stored 7/8 of a tile later.
            ag = ag.offset((0, BK));
            bg = bg.offset((BK, 0));
            na = fetch::<LA, EDGE>(ag, [BM, BK]);
            nb = fetch::<LB, EDGE>(bg, [BK, BN]);
        }
        for k in unroll(0..BK) {
            let (now, next) = (k & 1, (k + 1) & 1); // constant once unrolled
            if k + 1 == BK && more {
                put(sa.at(buf ^ 1), sb.at(buf ^ 1), &na, &nb);
                block::sync();
                buf ^= 1;
            }
            // After the last tile, the same tile is loaded again and not used.
            let k1 = (k + 1) % BK;
            for p in unroll(0..QM) {
                fa[next][p] = sa.load((buf, k1, tr + 16 * p));
            }
            for q in unroll(0..QN) {
                fb[next][q] = sb.load((buf, k1, tc + 32 * q));
            }
            outer(&mut acc, &fa[now], &fb[now]);
        }
    }

    for p in unroll(0..QM) {
        for i in unroll(0..4) {
            for q in unroll(0..QN) {
                let (r, col) = (row0 + tr + 16 * p + i, col0 + tc + 32 * q);
                let v = epilogue.apply(acc[p][q][i], r, col);
                if EDGE { c.store_in((r, col), v) } else { c.store((r, col), v) }
            }
        }
    }
}

/// Computes C = epilogue(A·B); A is M × K, B is K × N, C is M × N, all row-major.
#[kernel(
    block = 256, min_blocks = 2, max_registers = 128,
    // the launch computes the grid from the arguments
    grid = c.rows().div_ceil(BM) * c.cols().div_ceil(BN),
    writes(c = once),
    instances(BM = 128, BN = 128, BK = 8, QM = 2, QN = 2, E = Identity | BiasRelu),
    // const parameters that are functions of others
    derived(LA = BM * BK / (4 * 256), LB = BK * BN / (4 * 256)),
)]
#[requires(a.cols() == b.rows(), c.rows() == a.rows(), c.cols() == b.cols(), a.aligned(4), b.aligned(4), c.aligned(4))]
pub fn sgemm<
    E: Epilogue,
    const BM: usize,
    const BN: usize,
    const BK: usize,
    const QM: usize,
    const QN: usize,
    const LA: usize,
    const LB: usize,
>(
    a: View<f32, 2>,
    b: View<f32, 2>,
    c: ViewMut<f32, 2>,
    epilogue: E,
) {
    // Rust's static assertion; our compiler evaluates it for each instance
    const { assert!(BK % 4 == 0 && BK % 2 == 0) };
    let (bm, bn) = grouped(block::x(), c.rows().div_ceil(BM), c.cols().div_ceil(BN), 8);
    let (row0, col0) = (bm * BM, bn * BN);
    // Two bodies share one set of shared memory: arrays of exclusive scopes occupy the same bytes.
    if row0 + BM <= c.rows() && col0 + BN <= c.cols() && a.cols() % BK == 0 {
        tile::<E, BM, BN, BK, QM, QN, LA, LB, false>(a, b, c, row0, col0, epilogue);
    } else {
        tile::<E, BM, BN, BK, QM, QN, LA, LB, true>(a, b, c, row0, col0, epilogue);
    }
}

/// Computes relu(0.5 · A·B + bias) and compares it with plain Rust.
pub fn main() -> Result<(), Box<dyn Error>> {
    let [m, n, k] = [200, 132, 72];
    // Small integers: all sums are exact, whatever their order.
    let small = |n: usize, factor: usize| (0..n).map(|i| (i * factor % 13) as f32 - 6.0).collect::<Vec<_>>();
    let (a, b, bias) = (small(m * k, 7), small(k * n, 5), small(n, 3));

    let device = Device::best()?;
    let (on_a, on_b, on_bias) = (device.upload(&a)?, device.upload(&b)?, device.upload(&bias)?);
    let mut on_c = device.zeros::<f32>(m * n)?;
    // SAFETY: `on_bias` lives until the end of this function, and nothing writes to it.
    let epilogue = BiasRelu { scale: 0.5, bias: unsafe { on_bias.view([n])?.detached() } };
    sgemm::<BiasRelu, 128, 128, 8, 2, 2, 1, 1>::launch(
        &device,
        on_a.view([m, k])?,
        on_b.view([k, n])?,
        on_c.view_mut([m, n])?,
        epilogue,
    )?;

    let c = on_c.download()?;
    for (i, c) in c.iter().enumerate() {
        let sum: f32 = (0..k).map(|x| a[i / n * k + x] * b[x * n + i % n]).sum();
        assert_eq!(*c, (0.5 * sum + bias[i % n]).max(0.0), "element {i}");
    }
    let ptx = sgemm::<BiasRelu, 128, 128, 8, 2, 2, 1, 1>::PTX;
    println!("{m} x {n} x {k}: all {} elements equal plain Rust; the first are {:?}", c.len(), &c[..6]);
    println!("{} fma among {} lines of PTX", ptx.matches("fma.rn.f32").count(), ptx.lines().count());
    Ok(())
}
