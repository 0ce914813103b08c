//! Attention of many queries without the matrix of logits: the softmax is computed online, tile by
//! tile.
//!
//! ```text
//! cargo run --release -p kernels-rs --example flash_attention
//! ```
//!
//! The storage type is generic, heads have 64 or 128 elements, groups of queries share keys, and a
//! causal mask is optional. A block has 128 threads as 16 × 8. A thread has 4 rows × 4 keys of S
//! and 4 rows × D/8 columns of O, in registers. K and V are double-buffered. Shared memory is
//! exactly 48 KB, without space for padding: rows have an XOR swizzle. A struct with a trait
//! changes the logits, as ALiBi does here.

use kernel_dsl::prelude::*;
use runtime::Device;
use runtime::testing::Random;
use std::error::Error;

/// Changes to the logits.
#[device]
pub mod score {
    use kernel_dsl::prelude::*;
    /// Maps the scaled product (in units of log2 e) at a query and a key position to the logit.
    pub trait Score: Copy {
        /// Returns the logit for the product `s`.
        fn score(&self, s: f32, head: usize, query: usize, key: usize) -> f32;
    }
    /// No change.
    #[derive(Clone, Copy, DeviceCopy)]
    pub struct Plain;
    impl Score for Plain {
        fn score(&self, s: f32, _: usize, _: usize, _: usize) -> f32 {
            s
        }
    }
    /// A linear penalty of the distance (Press and others, 2021).
    #[derive(Clone, Copy, DeviceCopy)]
    pub struct Alibi {
        /// The slope of each head, in units of log2 e.
        pub slopes: View<f32, 1>,
    }
    impl Score for Alibi {
        fn score(&self, s: f32, h: usize, q: usize, k: usize) -> f32 {
            (k as f32 - q as f32).mul_add(self.slopes[h], s)
        }
    }
}
use score::*;

/// Computes attention. q, o: [batch, head, Lq, D]; k, v: [batch, kv head, Lk, D]; query i has the
/// position Lk − Lq + i. scale_log2 = log2(e)/√D.
#[kernel(
    block = 128, min_blocks = 2,
    tolerance(o(relative = 8e-3, absolute = 1e-5), lse(relative = 1e-6, absolute = 1e-5)), // an ulp of bf16
    grid = (q.dim(2).div_ceil(64), q.dim(1), q.dim(0)),
    writes(o = once, lse = once),
    // S = f32: converted once, on the way to shared memory.
    instances(T = f16, S = f16, D = 128, CAUSAL = true, M = Alibi; T = f16 | bf16, S = f32, D = 64, CAUSAL = false, M = Plain),
    derived(DQ = D / 32),
)]
#[requires(k.dim(3) == D, v.dim(3) == D, q.dim(3) == D, o.dim(3) == D, q.dim(1) % k.dim(1) == 0, k.dim(2) == v.dim(2), k.dim(2) >= q.dim(2),
           k.dim(0) == q.dim(0), v.dim(0) == q.dim(0), v.dim(1) == k.dim(1), o.dim(0) == q.dim(0), o.dim(1) == q.dim(1), o.dim(2) == q.dim(2), q.aligned(8), k.aligned(8), v.aligned(8), o.aligned(4))]
pub fn attention<T: Float, S: Float, M: Score, const D: usize, const DQ: usize, const CAUSAL: bool>(
    q: View<T, 4>,
    k: View<T, 4>,
    v: View<T, 4>,
    o: ViewMut<T, 4>,
    lse: ViewMut<f32, 3>,
    scale_log2: f32,
    score: M,
) {
    const BM: usize = 64; // `const` items in a body that use no parameter are plain Rust
    const BN: usize = 32;
    let (row0, head, batch) = (block::x() * BM, block::y(), block::z());
    let kv = head / (q.dim(1) / k.dim(1));
    let (q, k, v, o) = (q.at(batch).at(head), k.at(batch).at(kv), v.at(batch).at(kv), o.at(batch).at(head));
    let (lq, lk) = (q.rows(), k.rows());

    let sq = Shared::<S, 2>::swizzled([BM, D]);
    let sk = Shared::<S, 3>::swizzled([2, BN, D]);
    let sv = Shared::<S, 3>::new([2, BN, D]);

    let (ty, tx) = (thread::x() / 8, thread::x() % 8);
    let lanes = warp::group::<8>(); // the eight threads of a row
    let mut acc = [[[0.0f32; 4]; DQ]; 4];
    let (mut max, mut sum) = ([f32::NEG_INFINITY; 4], [0.0f32; 4]);

    let start = |j: usize, buf: usize| {
        // The closure captures handles, which are `Copy`.
        convert(sk.at(buf), k.offset((j * BN, 0))).and(convert(sv.at(buf), v.offset((j * BN, 0))))
    };
    let last = if CAUSAL { (lk - lq + row0 + BM).min(lk) } else { lk };
    let tiles = last.div_ceil(BN);
    let mut coming = convert(sq, q.offset((row0, 0))).and(start(0, 0));
    let mut buf = 0;
    for j in rolled(0..tiles) {
        // sm_61: stores the registers to shared memory here; sm_80: cp.async.wait_group
        coming.wait();
        block::sync();
        coming = if j + 1 < tiles { start(j + 1, buf ^ 1) } else { Pending::none() };

        let mut s = [[0.0f32; 4]; 4];
        for d in unroll_by::<2>((0..D).step_by(8)) {
            let (mut a, mut b) = ([[0.0f32; 8]; 4], [[0.0f32; 8]; 4]);
            for i in unroll(0..4) {
                a[i] = sq.load::<8>((ty * 4 + i, d)).map(S::to_f32);
                b[i] = sk.load::<8>((buf, tx + 8 * i, d)).map(S::to_f32);
            }
            for i in unroll(0..4) {
                for n in unroll(0..4) {
                    for e in unroll(0..8) {
                        s[i][n] = a[i][e].mul_add(b[n][e], s[i][n]);
                    }
                }
            }
        }

        let first_query = lk - lq + row0;
        let edge = (j + 1) * BN > lk || (CAUSAL && (j + 1) * BN > first_query + 1); // uniform
        for i in unroll(0..4) {
            let (query, mut top) = (first_query + ty * 4 + i, f32::NEG_INFINITY);
            for n in unroll(0..4) {
                let key = j * BN + tx + 8 * n;
                s[i][n] = score.score(s[i][n] * scale_log2, head, query, key);
                if edge && (key >= lk || (CAUSAL && key > query)) {
                    s[i][n] = f32::NEG_INFINITY;
                }
                top = top.max(s[i][n]);
            }
            let new = max[i].max(lanes.max(top));
            // a row without keys so far: exp2(−inf − MIN) = 0, never NaN
            let base = new.max(f32::MIN);
            let old = fast::exp2(max[i] - base);
            let mut part = 0.0;
            for n in unroll(0..4) {
                s[i][n] = fast::exp2(s[i][n] - base);
                part += s[i][n];
            }
            sum[i] = sum[i].mul_add(old, part); // the sums of the lanes are added once, at the end
            max[i] = new;
            for c in unroll(0..DQ) {
                for e in unroll(0..4) {
                    acc[i][c][e] *= old;
                }
            }
        }

        block::sync(); // all threads have read K[buf] …
        // … and P reuses its memory: same bytes, contents undefined until written
        let mut p = Shared::<f32, 2>::over(sk.at(buf), [BM, BN]);
        for i in unroll(0..4) {
            for n in unroll(0..4) {
                p[(ty * 4 + i, tx + 8 * n)] = s[i][n];
            }
        }
        warp::sync(); // a row of P is used by its warp only
        for n in unroll_by::<2>((0..BN).step_by(4)) {
            let mut w = [[0.0f32; 4]; 4];
            for i in unroll(0..4) {
                w[i] = p.load((ty * 4 + i, n));
            }
            for e in unroll(0..4) {
                for c in unroll(0..DQ) {
                    let x = sv.load::<4>((buf, n + e, tx * 4 + 32 * c)).map(S::to_f32);
                    for i in unroll(0..4) {
                        for z in unroll(0..4) {
                            acc[i][c][z] = w[i][e].mul_add(x[z], acc[i][c][z]);
                        }
                    }
                }
            }
        }
        buf ^= 1;
    }
    for i in unroll(0..4) {
        let total = lanes.sum(sum[i]);
        let inv = if total > 0.0 { 1.0 / total } else { 0.0 };
        let row = row0 + ty * 4 + i;
        if row < lq {
            for c in unroll(0..DQ) {
                o.store((row, tx * 4 + 32 * c), acc[i][c].map(|x| T::from_f32(x * inv)));
            }
            if tx == 0 {
                lse.at(batch).at(head).store(row, [max[i] + log2(total)]);
            }
        }
    }
}

/// Converts T to S on the way to shared memory. For S = T it is a plain copy, with cp.async where
/// the target has it.
#[device]
fn convert<T: Float, S: Float>(to: Shared<S, 2>, from: View<T, 2>) -> Pending {
    to.copy_async_map(from, |x| S::from_f32(x.to_f32()))
}

/// Computes the logarithm to base 2.
#[device]
fn log2(x: f32) -> f32 {
    math::ln(x) * std::f32::consts::LOG2_E
}

/// Computes attention of two heads and compares it with plain Rust in `f64`.
pub fn main() -> Result<(), Box<dyn Error>> {
    let [heads, queries, keys] = [2, 33, 40];
    const D: usize = 64;
    let mut random = Random::new(1);
    let mut halves = |n: usize| random.values::<f32>(n).into_iter().map(f16::from_f32).collect::<Vec<f16>>();
    let (q, k, v) = (halves(heads * queries * D), halves(heads * keys * D), halves(heads * keys * D));
    let scale_log2 = std::f32::consts::LOG2_E / (D as f32).sqrt();

    let device = Device::best()?;
    let (on_q, on_k, on_v) = (device.upload(&q)?, device.upload(&k)?, device.upload(&v)?);
    let mut o = device.zeros::<f16>(q.len())?;
    let mut lse = device.zeros::<f32>(heads * queries)?;
    attention::<f16, f32, Plain, D, 2, false>::launch(
        &device,
        on_q.view([1, heads, queries, D])?,
        on_k.view([1, heads, keys, D])?,
        on_v.view([1, heads, keys, D])?,
        o.view_mut([1, heads, queries, D])?,
        lse.view_mut([1, heads, queries])?,
        scale_log2,
        Plain,
    )?;

    let o = o.download()?;
    let mut worst = 0.0f64;
    for (row, o) in o.chunks(D).enumerate() {
        let first = row / queries * keys;
        let dot = |key: usize| (0..D).map(|e| q[row * D + e].to_f64() * k[(first + key) * D + e].to_f64()).sum::<f64>();
        let weights: Vec<f64> = (0..keys).map(|key| (dot(key) * f64::from(scale_log2)).exp2()).collect();
        let total: f64 = weights.iter().sum();
        for (e, o) in o.iter().enumerate() {
            let sum: f64 = (0..keys).map(|key| weights[key] * v[(first + key) * D + e].to_f64()).sum();
            worst = worst.max((o.to_f64() - sum / total).abs());
        }
    }
    // Outputs are below 1, and are rounded to the 11 bits of f16.
    assert!(worst < 1e-3, "attention is off by {worst}");
    println!("{heads} heads of {queries} queries and {keys} keys: at most {worst:.1e} from plain Rust");
    println!("the first output: {:.3?} …, log2 of its sum of exponentials: {:.3}", &o[..4], lse.download()?[0]);
    Ok(())
}
