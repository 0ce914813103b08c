//! (3) Flash attention, prefill: storage type T (f16), D = 64 or 128, causal, grouped queries;
//! online softmax and O in registers; K and V double-buffered.
//!
//! A block has 128 threads as 16 × 8; a thread has 4 rows × 4 keys of S and 4 rows × D/8 columns of
//! O. Shared memory is exactly 48 KB, without space for padding: rows have an XOR swizzle.
use super::log2;
use super::trial::{Trial, is, number, trials, truth, whole};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Expected, Input};

#[device]
pub mod score {
    use kernel_dsl::prelude::*;
    /// Maps the scaled product (in units of log2 e) at a query and a key position to the logit.
    pub trait Score: Copy {
        fn score(&self, s: f32, head: usize, query: usize, key: usize) -> f32;
    }
    #[derive(Clone, Copy, DeviceCopy)]
    pub struct Plain;
    impl Score for Plain {
        fn score(&self, s: f32, _: usize, _: usize, _: usize) -> f32 {
            s
        }
    }
    #[derive(Clone, Copy, DeviceCopy)]
    pub struct Alibi {
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

trials!(attention<f16, f16, Alibi, 128, 4, true>, |instance| {
    match is::<bf16>(instance, 0) {
        true => attended::<bf16>(instance),
        false => attended::<f16>(instance),
    }
});

/// Numbers of sequences, heads of queries and of keys, queries and keys.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    heads: usize,
    kv: usize,
    lq: usize,
    lk: usize,
    /// Factor of the logits beyond those of vectors of length √D: with large factors, few keys have
    /// weight.
    sharp: f32,
    /// Each query attends to one key. All other logits are so small that an exponential relative to
    /// any of them overflows. For each head, one value of eight is NaN for all keys.
    alone: bool,
}

fn attended<T: Float>(instance: &Instance) -> Vec<Trial> {
    let [lq, lk] = if truth(instance, 5) { [70, 101] } else { [33, 40] };
    let one = Sizes { batch: 1, heads: 1, kv: 1, lq: 1, lk: 1, sharp: 1.0, alone: false };
    let mut all: Vec<_> = [
        Sizes { heads: 2, lq, lk, ..one },
        // Several sequences and heads with separate keys.
        Sizes { batch: 2, heads: 2, kv: 2, lq: 3, lk: 13, sharp: 8.0, ..one },
        // Whole tiles, and several tiles of queries.
        Sizes { lq: 65, lk: 96, ..one },
        Sizes { lq: 35, lk: 64, alone: true, ..one },
    ]
    .into_iter()
    .map(|sizes| attend::<T>(instance, sizes))
    .collect();
    all.push(halfway::<T>(instance));
    all
}

/// Makes queries with equal weights for all keys, whose values are adjacent numbers of bf16. Each
/// mean lies halfway and is rounded to even: down in every other column, and in the other columns
/// in the next head.
fn halfway<T: Float>(instance: &Instance) -> Trial {
    let (d, causal, alibi) = (number(instance, 3), truth(instance, 5), is::<Alibi>(instance, 2));
    let (heads, n) = (2, if causal { 2 } else { 4 });
    // The last query of a causal call sees all keys.
    let queries = if causal { 1 } else { n };
    let value = |i: usize| 1.0 + (i % d + i / d / n + i / d % 2) as f32 / 128.0;
    let v: Vec<T> = (0..heads * n * d).map(|i| T::from_f32(value(i))).collect();
    let mean = |i: usize| {
        let at = i / d / queries * n * d + i % d;
        f64::from(T::from_f32((v[at].to_f32() + v[at + d].to_f32()) / 2.0).to_f32())
    };
    let nothing = |n: usize| vec![T::default(); n * heads * d];
    let mut inputs = vec![
        Input::view(&nothing(queries), [1, heads, queries, d]),
        Input::view(&nothing(n), [1, heads, n, d]),
        Input::view(&v, [1, heads, n, d]),
        Input::view(&nothing(queries), [1, heads, queries, d]),
        Input::view(&vec![0f32; heads * queries], [1, heads, queries]),
        Input::scalar(1.0f32),
    ];
    if alibi {
        inputs.push(Input::view(&[0f32; 2], [heads]));
    }
    let o = (0..heads * queries * d).map(mean).collect();
    let lse = vec![(n as f64).log2(); heads * queries];
    let expected = [Expected::new(3, o, Bound::Exact), Expected::new(4, lse, Bound::Absolute(1e-6))];
    Trial::new("means halfway", inputs, expected)
}

fn attend<T: Float>(instance: &Instance, sizes: Sizes) -> Trial {
    let (d, causal, alibi) = (number(instance, 3), truth(instance, 5), is::<Alibi>(instance, 2));
    let Sizes { batch, heads, kv, lq, lk, sharp, alone } = sizes;
    let halves = |n, seed| whole(n, seed).iter().map(|x| T::from_f32(x / 8.0)).collect::<Vec<_>>();
    let (mut q, mut k) = (halves(batch * heads * lq * d, 1), halves(batch * kv * lk * d, 2));
    let mut v = halves(batch * kv * lk * d, 3);
    if alone {
        // A causal query attends to one of the keys up to its position.
        let looks_at = |row: usize| (5 * row + 3) % (lk - lq + row % lq + 1);
        let one = |place: usize, at: usize| T::from_f32(if place % d == at { 32.0 } else { 0.0 });
        q = (0..q.len()).map(|i| one(i, looks_at(i / d))).collect();
        k = (0..k.len()).map(|i| one(i, i / d % lk)).collect();
        v[..d].iter_mut().skip(3).step_by(8).for_each(|x| *x = T::from_f32(f32::NAN));
    }
    let wide = |x: T| f64::from(x.to_f32());
    let slopes = [0.1f32, 0.2];
    let scale = sharp * std::f32::consts::LOG2_E / (d as f32).sqrt();
    let (mut o, mut lse) = (Vec::new(), Vec::new());
    for row in 0..batch * heads * lq {
        let (i, head, sequence) = (row % lq, row / lq % heads, row / lq / heads);
        let (at, first) = (lk - lq + i, (sequence * kv + head / (heads / kv)) * lk);
        let logit = |j: usize| {
            let dot: f64 = (0..d).map(|c| wide(q[row * d + c]) * wide(k[(first + j) * d + c])).sum();
            let slope = if alibi { f64::from(slopes[head]) } else { 0.0 };
            dot * f64::from(scale) + (j as f64 - at as f64) * slope
        };
        let logits: Vec<f64> = (0..lk).map(|j| if causal && j > at { f64::NEG_INFINITY } else { logit(j) }).collect();
        let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = logits.iter().map(|x| (x - top).exp2()).sum();
        lse.push(top + total.log2());
        for c in 0..d {
            let weighed: f64 = (0..lk).map(|j| (logits[j] - top).exp2() * wide(v[(first + j) * d + c])).sum();
            o.push(weighed / total);
        }
    }
    // A value of at most 1 is rounded to T once: 11 bits of f16, 8 of bf16.
    let rounding = if is::<bf16>(instance, 0) { 8e-3 } else { 2e-3 };
    let mut inputs = vec![
        Input::view(&q, [batch, heads, lq, d]),
        Input::view(&k, [batch, kv, lk, d]),
        Input::view(&v, [batch, kv, lk, d]),
        Input::view(&vec![T::default(); q.len()], [batch, heads, lq, d]),
        Input::view(&vec![0f32; batch * heads * lq], [batch, heads, lq]),
        Input::scalar(scale),
    ];
    if alibi {
        inputs.push(Input::view(&slopes[..heads], [heads]));
    }
    let expected = [Expected::new(3, o, Bound::Absolute(rounding)), Expected::new(4, lse, Bound::Absolute(1e-4))];
    let what = if alone { ", one for each query" } else { "" };
    Trial::new(format!("{batch} x {heads} x {lq} queries, {kv} x {lk} keys{what}"), inputs, expected)
}
