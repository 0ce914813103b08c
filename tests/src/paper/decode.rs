//! (4) Decode attention: one query per sequence, keys split over blocks, all G query heads of a kv
//! head in one block, then a combine.
//!
//! A block has 128 threads, with D/8 lanes per key (16 bytes of f16 each), so that a warp has
//! 32/(D/8) keys at once. Each lane has U keys in flight for memory parallelism.
use super::trial::{Trial, is, number, trials, whole};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Expected, Input};

/// A partial softmax over some keys: Σ 2^(s−max) · v and Σ 2^(s−max).
#[device]
#[derive(Clone, Copy, DeviceCopy)]
pub struct Partial {
    pub max: f32,
    pub sum: f32,
    pub o: [f32; 8],
}

#[device]
pub fn empty() -> Partial {
    Partial { max: f32::NEG_INFINITY, sum: 0.0, o: [0.0; 8] }
}

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

trials!(decode<f16, 128, 2, 16>, |instance| match is::<f16>(instance, 0) {
    true => splits::<f16>(instance),
    false => splits::<f32>(instance),
});

trials!(decode_combine<f32, 128>, |instance| match is::<f16>(instance, 0) {
    true => vec![combined::<f16>(instance), far_apart::<f16>(instance)],
    false => vec![combined::<f32>(instance), far_apart::<f32>(instance)],
});

/// Sequences, with the partition of their keys.
#[derive(Clone, Copy)]
struct Sequences {
    lengths: &'static [u32],
    kv: usize,
    capacity: usize,
    splits: usize,
}

/// One kv head, and keys in three splits, of which the second sequence fills one.
const TWO: Sequences = Sequences { lengths: &[173, 5], kv: 1, capacity: 200, splits: 3 };

/// Two kv heads, a full cache and an empty one; splits of whole steps, and one more key.
const SHORT: [Sequences; 2] = [
    Sequences { lengths: &[20, 0, 19], kv: 2, capacity: 20, splits: 2 },
    Sequences { lengths: &[64, 65], kv: 1, capacity: 65, splits: 2 },
];

/// Queries, keys and values with the results: unscaled sums, largest logit and total of each split,
/// and the output.
struct Attended<T> {
    q: Vec<f32>,
    k: Vec<T>,
    v: Vec<T>,
    part_o: Vec<f64>,
    part_ml: Vec<f64>,
    o: Vec<f64>,
}

fn scale(d: usize) -> f32 {
    std::f32::consts::LOG2_E / (d as f32).sqrt()
}

fn attended<T: Float>(d: usize, group: usize, of: Sequences) -> Attended<T> {
    let Sequences { lengths, kv, capacity, splits } = of;
    let (batch, heads) = (lengths.len(), kv * group);
    // Beyond the last key of a sequence the contents are arbitrary.
    let key = |(i, x): (usize, &f32)| match i / d % capacity < lengths[i / d / capacity / kv] as usize {
        true => T::from_f32(x / 8.0),
        false => T::from_f32(f32::NAN),
    };
    let halves = |seed| whole(batch * kv * capacity * d, seed).iter().enumerate().map(key).collect::<Vec<_>>();
    let (k, v) = (halves(1), halves(2));
    let q: Vec<f32> = whole(batch * heads * d, 3).iter().map(|x| x / 8.0).collect();
    let (mut part_o, mut part_ml, mut o) = (Vec::new(), Vec::new(), Vec::new());
    for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
        let (len, wide) = (lengths[b] as usize, |x: T| f64::from(x.to_f32()));
        let cache = (b * kv + h / group) * capacity;
        let logit = |j: usize| {
            let of = |c: usize| f64::from(q[(b * heads + h) * d + c]) * wide(k[(cache + j) * d + c]);
            (0..d).map(of).sum::<f64>() * f64::from(scale(d))
        };
        let over = |keys: std::ops::Range<usize>| {
            let top = keys.clone().map(logit).fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = keys.clone().map(|j| (logit(j) - top).exp2()).collect();
            let sum = |c: usize| keys.clone().zip(&weights).map(|(j, w)| w * wide(v[(cache + j) * d + c])).sum();
            (top, weights.iter().sum::<f64>(), (0..d).map(sum).collect::<Vec<f64>>())
        };
        let each = len.div_ceil(splits).next_multiple_of(4 * 128 / (d / 8));
        for split in 0..splits {
            let (top, total, sums) = over((split * each).min(len)..((split + 1) * each).min(len));
            part_o.extend(sums);
            part_ml.extend([top, total]);
        }
        let (_, total, sums) = over(0..len);
        o.extend(sums.into_iter().map(|x| x / total));
    }
    Attended { q, k, v, part_o, part_ml, o }
}

fn splits<T: Float>(instance: &Instance) -> Vec<Trial> {
    [TWO].into_iter().chain(SHORT).map(|of| split::<T>(instance, of)).collect()
}

fn split<T: Float>(instance: &Instance, of: Sequences) -> Trial {
    let (d, group) = (number(instance, 1), number(instance, 2));
    let Sequences { lengths, kv, capacity, splits } = of;
    let (batch, heads) = (lengths.len(), kv * group);
    let all = attended::<T>(d, group, of);
    let inputs = [
        Input::view(&all.q, [batch, heads, d]),
        Input::view(&all.k, [batch, kv, capacity, d]),
        Input::view(&all.v, [batch, kv, capacity, d]),
        Input::slice(lengths),
        Input::view(&vec![0f32; batch * heads * splits * d], [batch, heads, splits, d]),
        Input::view(&vec![0f32; batch * heads * splits * 2], [batch, heads, splits, 2]),
        Input::scalar(splits),
        Input::scalar(scale(d)),
    ];
    let expected =
        [Expected::new(4, all.part_o, Bound::Absolute(1e-4)), Expected::new(5, all.part_ml, Bound::Absolute(1e-4))];
    Trial::new(format!("{splits} splits of {capacity} keys at most"), inputs, expected)
}

fn combined<T: Float>(instance: &Instance) -> Trial {
    let (d, heads) = (number(instance, 1), 2);
    let (all, batch, splits) = (attended::<f16>(d, heads, TWO), TWO.lengths.len(), TWO.splits);
    let narrow = |all: &[f64]| all.iter().map(|x| *x as f32).collect::<Vec<_>>();
    // One sequence more than parts exist for, and in each sequence one more head.
    let o: Vec<f64> = (0..(batch + 1) * (heads + 1))
        .flat_map(|i| match (i / (heads + 1), i % (heads + 1)) {
            (b, h) if b < batch && h < heads => all.o[(b * heads + h) * d..][..d].to_vec(),
            _ => vec![0.0; d],
        })
        .collect();
    let inputs = [
        Input::view(&narrow(&all.part_o), [batch, heads, splits, d]),
        Input::view(&narrow(&all.part_ml), [batch, heads, splits, 2]),
        Input::view(&vec![T::from_f32(1.0); o.len()], [batch + 1, heads + 1, d]),
    ];
    // A value of at most 1 has 11 bits in f16.
    let bound = if is::<f16>(instance, 0) { 1e-3 } else { 1e-4 };
    Trial::new(format!("{splits} splits, heads without parts"), inputs, [Expected::new(2, o, Bound::Absolute(bound))])
}

/// Makes more splits than lanes. In each head another split has a dominating logit, and the last
/// head's splits are all empty.
fn far_apart<T: Float>(instance: &Instance) -> Trial {
    let (d, batch, heads, splits) = (number(instance, 1), 2, 21, 67);
    let part_o: Vec<f32> = whole(batch * heads * splits * d, 8).iter().map(|x| x / 8.0).collect();
    let ml = |i: usize| {
        let (head, split) = (i / splits % heads, i / splits / heads + i % splits);
        match (head, split) {
            (20, _) => [f32::NEG_INFINITY, 0.0],
            _ if split == head * 16 / 5 + 1 => [150.0, 0.5],
            _ => [-150.0, 1.0],
        }
    };
    let part_ml: Vec<[f32; 2]> = (0..batch * heads * splits).map(ml).collect();
    let value = |i: usize| {
        let of_head = i / d * splits..(i / d + 1) * splits;
        let top = of_head.clone().map(|s| part_ml[s][0]).fold(f32::NEG_INFINITY, f32::max);
        let weight = |s: usize| f64::from(part_ml[s][0] - top).exp2();
        let sum = |f: &dyn Fn(usize) -> f32| of_head.clone().map(|s| f64::from(f(s)) * weight(s)).sum::<f64>();
        if top == f32::NEG_INFINITY { 0.0 } else { sum(&|s| part_o[s * d + i % d]) / sum(&|s| part_ml[s][1]) }
    };
    let o: Vec<f64> = (0..batch * heads * d).map(value).collect();
    let flat: Vec<f32> = part_ml.iter().flatten().copied().collect();
    let inputs = [
        Input::view(&part_o, [batch, heads, splits, d]),
        Input::view(&flat, [batch, heads, splits, 2]),
        Input::view(&vec![T::from_f32(1.0); o.len()], [batch, heads, d]),
    ];
    Trial::new(format!("{splits} splits, far apart"), inputs, [Expected::new(2, o, Bound::Absolute(1e-3))])
}
