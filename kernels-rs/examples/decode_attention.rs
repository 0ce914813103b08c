//! Attention of one query for each sequence, over a long cache: the keys are split over blocks, and
//! a second kernel combines the parts.
//!
//! ```text
//! cargo run --release -p kernels-rs --example decode_attention
//! ```
//!
//! A block of 128 threads has all G query heads of one key head. Each key has D/8 lanes (16 bytes
//! of `f16` each), so that a warp has 32/(D/8) keys at once. Each lane has U keys in flight for
//! memory parallelism. The file shows streaming loads, groups of lanes, and structs that pass
//! through shuffles and shared memory.

use kernel_dsl::prelude::*;
use runtime::Device;
use runtime::testing::Random;
use std::error::Error;

/// A partial softmax over some keys: Σ 2^(s−max) · v and Σ 2^(s−max).
#[device]
#[derive(Clone, Copy, DeviceCopy)]
pub struct Partial {
    /// The largest logit, in units of log2 e.
    pub max: f32,
    /// The sum of the exponentials.
    pub sum: f32,
    /// The weighted sum of the values.
    pub o: [f32; 8],
}

/// Returns the softmax over no keys.
#[device]
pub fn empty() -> Partial {
    Partial { max: f32::NEG_INFINITY, sum: 0.0, o: [0.0; 8] }
}

/// Returns the softmax over the keys of both parts.
#[device]
pub fn merge(a: Partial, b: Partial) -> Partial {
    let max = a.max.max(b.max);
    let base = max.max(f32::MIN);
    let (x, y) = (fast::exp2(a.max - base), fast::exp2(b.max - base));
    let mut o = [0.0; 8];
    for e in unroll(0..8) {
        o[e] = a.o[e].mul_add(x, b.o[e] * y);
    }
    Partial { max, sum: a.sum.mul_add(x, b.sum * y), o }
}

/// Computes the parts. q: [batch, head, D]; k, v: [batch, kv head, capacity, D]; part_o:
/// [batch, head, split, D]; part_ml: [batch, head, split, 2].
#[kernel(
    block = 128, grid = (splits, k.dim(1), k.dim(0)),
    instances(T = f16 | f32, D = 128, G = 1 | 2),
    derived(LPK = D / 8),
    tolerance(part_o(relative = 1e-5, absolute = 1e-5), part_ml(relative = 1e-5)),
    writes(part_o = once, part_ml = once),
)]
#[requires(q.dim(1) == G * k.dim(1), q.dim(2) == D, k.dim(3) == D, v.dim(3) == D, v.dim(0) == k.dim(0), v.dim(1) == k.dim(1), v.dim(2) == k.dim(2), q.dim(0) == k.dim(0), lengths.len() == k.dim(0), part_o.dim(2) == splits, part_ml.dim(2) == splits, splits > 0,
           q.aligned(4), k.aligned(8), v.aligned(8), part_o.aligned(4))]
pub fn decode<T: Float, const D: usize, const G: usize, const LPK: usize>(
    q: View<f32, 3>,
    k: View<T, 4>,
    v: View<T, 4>,
    lengths: &[u32],
    part_o: ViewMut<f32, 4>,
    part_ml: ViewMut<f32, 4>,
    splits: usize,
    scale_log2: f32,
) {
    const U: usize = 4;
    let (split, kv, batch) = (block::x(), block::y(), block::z());
    // read once: a property of the view, not of each load
    let (k, v) = (k.at(batch).at(kv).streaming(), v.at(batch).at(kv).streaming());
    let len = (lengths[batch] as usize).min(k.rows());
    let lanes = warp::group::<LPK>();
    let keys = block::threads() / LPK; // a constant, because the block size is
    let (mine, d) = (thread::x() / LPK, lanes.lane() * 8);

    let mut qs = [[0.0f32; 8]; G];
    for g in unroll(0..G) {
        qs[g] = q.at(batch).load::<8>((kv * G + g, d)).map(|x| x * scale_log2);
    }
    let mut p = [empty(); G];

    let each = len.div_ceil(splits).next_multiple_of(keys * U);
    let (first, end) = ((split * each).min(len), ((split + 1) * each).min(len));
    for base in rolled((first..end).step_by(keys * U)) {
        // Every thread has the same number of iterations: shuffles inside are converged.
        let (mut kk, mut vv) = ([[0.0f32; 8]; U], [[0.0f32; 8]; U]);
        for u in unroll(0..U) {
            // All loads come first.
            let t = base + u * keys + mine;
            // Nothing is loaded beyond the end, where a cache may contain anything, including NaN.
            let a: [T; 8] = if t < end { k.load((t, d)) } else { [T::default(); 8] };
            let b: [T; 8] = if t < end { v.load((t, d)) } else { [T::default(); 8] };
            (kk[u], vv[u]) = (a.map(T::to_f32), b.map(T::to_f32));
        }
        for g in unroll(0..G) {
            let mut s = [0.0f32; U];
            let mut top = p[g].max;
            for u in unroll(0..U) {
                let mut x = 0.0;
                for e in unroll(0..8) {
                    x = qs[g][e].mul_add(kk[u][e], x);
                }
                let x = lanes.sum(x); // before the guard: a shuffle under a per-lane `if` is undefined
                s[u] = if base + u * keys + mine < end { x } else { f32::NEG_INFINITY };
                top = top.max(s[u]);
            }
            let bottom = top.max(f32::MIN); // only −∞: exp2(−∞ − MIN) = 0, never NaN
            let old = fast::exp2(p[g].max - bottom);
            p[g].sum *= old;
            for e in unroll(0..8) {
                p[g].o[e] *= old;
            }
            for u in unroll(0..U) {
                let w = fast::exp2(s[u] - bottom);
                p[g].sum += w;
                for e in unroll(0..8) {
                    p[g].o[e] = w.mul_add(vv[u][e], p[g].o[e]);
                }
            }
            p[g].max = top;
        }
    }

    // Combines the groups of a warp, and then the warps.
    let mut s = Shared::<Partial, 2>::new([4, LPK]); // structs in shared memory; two words and two vectors each
    for g in unroll(0..G) {
        let mut step = LPK;
        while step < 32 {
            p[g] = merge(p[g], warp::shuffle_xor(p[g], step));
            step *= 2;
        }
        if warp::lane() < LPK {
            s[(warp::index(), warp::lane())] = p[g];
        }
        block::sync();
        if thread::x() < LPK {
            let mut r = s[(0, thread::x())];
            for w in unroll(1..4) {
                r = merge(r, s[(w, thread::x())]);
            }
            let (o, ml) = (part_o.at(batch).at(kv * G + g), part_ml.at(batch).at(kv * G + g));
            o.store((split, d), r.o);
            if thread::x() == 0 {
                ml.store((split, 0), [r.max, r.sum]);
            }
        }
        block::sync();
    }
}

/// Combines the parts, with one warp per head. o: [batch, head, D]; a head without parts gets
/// zeros.
#[kernel(
    block = 32, grid = (o.dim(1), o.dim(0)),
    instances(T = f16 | f32, D = 64 | 128),
    tolerance(o(relative = 1e-3, absolute = 1e-5)), // an ulp of f16
    writes(o = once),
)]
#[requires(part_ml.dim(0) == part_o.dim(0), part_ml.dim(1) == part_o.dim(1), part_ml.dim(2) == part_o.dim(2),
           part_o.dim(3) == D, part_ml.dim(3) == 2, o.dim(2) == D, part_o.aligned(4), part_ml.aligned(2), o.aligned(4))]
pub fn decode_combine<T: Float, const D: usize>(part_o: View<f32, 4>, part_ml: View<f32, 4>, o: ViewMut<T, 3>) {
    const { assert!(D % 4 == 0 && D <= 128) }; // four elements a lane
    let (head, batch) = (block::x(), block::y());
    let (po, ml) = (part_o.at(batch).at(head), part_ml.at(batch).at(head));
    let mut max = f32::NEG_INFINITY;
    for i in (warp::lane()..ml.rows()).step_by(32) {
        max = max.max(ml[(i, 0)]);
    }
    let max = warp::max(max); // after the loop the lanes have reconverged
    let base = max.max(f32::MIN); // only −∞: exp2(−∞ − MIN) = 0, never NaN
    let d = 4 * warp::lane();
    if d < D {
        let (mut acc, mut sum) = ([0.0f32; 4], 0.0);
        for i in 0..ml.rows() {
            let [m, l]: [f32; 2] = ml.load((i, 0));
            let w = fast::exp2(m - base);
            sum = l.mul_add(w, sum);
            let x: [f32; 4] = po.load((i, d));
            for e in unroll(0..4) {
                acc[e] = x[e].mul_add(w, acc[e]);
            }
        }
        let inv = if sum > 0.0 { 1.0 / sum } else { 0.0 };
        o.at(batch).store((head, d), acc.map(|x| T::from_f32(x * inv)));
    }
}

/// Computes attention over a cache of 150 keys in three parts, and compares it with plain Rust.
pub fn main() -> Result<(), Box<dyn Error>> {
    let [heads, capacity, length, splits] = [2, 200, 150, 3];
    const D: usize = 128;
    let mut random = Random::new(1);
    let q: Vec<f32> = random.values(heads * D);
    let (k, v): (Vec<f32>, Vec<f32>) = (random.values(capacity * D), random.values(capacity * D));
    let scale_log2 = std::f32::consts::LOG2_E / (D as f32).sqrt();

    let device = Device::best()?;
    let (on_q, on_k, on_v) = (device.upload(&q)?, device.upload(&k)?, device.upload(&v)?);
    let lengths = device.upload(&[length as u32])?;
    let mut part_o = device.zeros::<f32>(heads * splits * D)?;
    let mut part_ml = device.zeros::<f32>(heads * splits * 2)?;
    let mut o = device.zeros::<f32>(heads * D)?;
    decode::<f32, D, 2, 16>::launch(
        &device,
        on_q.view([1, heads, D])?,
        on_k.view([1, 1, capacity, D])?,
        on_v.view([1, 1, capacity, D])?,
        &lengths,
        part_o.view_mut([1, heads, splits, D])?,
        part_ml.view_mut([1, heads, splits, 2])?,
        splits,
        scale_log2,
    )?;
    decode_combine::<f32, D>::launch(
        &device,
        part_o.view([1, heads, splits, D])?,
        part_ml.view([1, heads, splits, 2])?,
        o.view_mut([1, heads, D])?,
    )?;

    let o = o.download()?;
    let mut worst = 0.0f64;
    for head in 0..heads {
        let wide = |x: &[f32], i: usize| f64::from(x[i]);
        let dot = |key: usize| (0..D).map(|e| wide(&q, head * D + e) * wide(&k, key * D + e)).sum::<f64>();
        let weights: Vec<f64> = (0..length).map(|key| (dot(key) * f64::from(scale_log2)).exp2()).collect();
        let total: f64 = weights.iter().sum();
        for e in 0..D {
            let sum: f64 = (0..length).map(|key| weights[key] * wide(&v, key * D + e)).sum();
            worst = worst.max((wide(&o, head * D + e) - sum / total).abs());
        }
    }
    assert!(worst < 1e-4, "attention is off by {worst}");
    println!("{heads} heads over {length} keys in {splits} parts: at most {worst:.1e} from plain Rust");
    for (split, ml) in part_ml.download()?.chunks(2).take(splits).enumerate() {
        println!("part {split} of head 0: maximum {:.3}, sum of exponentials {:.3}", ml[0], ml[1]);
    }
    Ok(())
}
