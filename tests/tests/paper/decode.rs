//! (4) Decode attention: one query a sequence, keys split over blocks, all G query heads of a kv head in one block, then a combine.
//! 128 threads; D/8 lanes a key (16 bytes of f16 each), so 32/(D/8) keys a warp at once; U keys in flight a lane for memory parallelism.
//!
use super::support::{agree, assemble};
use super::whole;
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Checker, Expected, Input};

/// A softmax in progress over some keys: Σ 2^(s−max) · v and Σ 2^(s−max).
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
    let base = if max == f32::NEG_INFINITY { 0.0 } else { max };
    let (x, y) = (fast::exp2(a.max - base), fast::exp2(b.max - base));
    let mut o = [0.0; 8];
    for e in unroll(0..8) {
        o[e] = a.o[e].mul_add(x, b.o[e] * y);
    }
    Partial { max, sum: a.sum.mul_add(x, b.sum * y), o }
}

/// q: [batch, head, D]; k, v: [batch, kv head, capacity, D]; part_o: [batch, head, split, D]; part_ml: [batch, head, split, 2].
#[kernel(
    block = 128, grid = (splits, k.dim(1), k.dim(0)),
    instances(T = f16 | f32, D = 128, G = 1 | 2),
    derived(LPK = D / 8),
    tolerance(part_o(relative = 1e-5, absolute = 1e-5), part_ml(relative = 1e-5)),
)]
#[requires(q.dim(1) == G * k.dim(1), q.dim(2) == D, k.dim(3) == D, v.dim(3) == D, lengths.len() == k.dim(0), part_o.dim(2) == splits, part_ml.dim(2) == splits, splits > 0,
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
    let (k, v) = (k.at(batch).at(kv).streaming(), v.at(batch).at(kv).streaming()); // read once: a property of the view, not of each load
    let len = lengths[batch] as usize;
    let lanes = warp::group::<LPK>();
    let keys = block::threads() / LPK; // a constant: the block is
    let (mine, d) = (thread::x() / LPK, lanes.lane() * 8);

    let mut qs = [[0.0f32; 8]; G];
    for g in unroll(0..G) {
        qs[g] = q.at(batch).load::<8>((kv * G + g, d)).map(|x| x * scale_log2);
    }
    let mut p = [empty(); G];

    let each = len.div_ceil(splits).next_multiple_of(keys * U);
    let (first, end) = ((split * each).min(len), ((split + 1) * each).min(len));
    for base in rolled((first..end).step_by(keys * U)) {
        // same trips for every thread: shuffles inside are converged
        let (mut kk, mut vv) = ([[0.0f32; 8]; U], [[0.0f32; 8]; U]);
        for u in unroll(0..U) {
            // all loads first
            let t = base + u * keys + mine;
            kk[u] = k.load_or::<8>((t, d), T::default()).map(T::to_f32);
            vv[u] = v.load_or::<8>((t, d), T::default()).map(T::to_f32);
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
            let bottom = if top == f32::NEG_INFINITY { 0.0 } else { top };
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

    // Between the groups of a warp, then between the warps.
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

/// A warp a head. o: [batch, head, D].
#[kernel(
    block = 32, grid = (o.dim(1), o.dim(0)),
    instances(T = f16 | f32, D = 64 | 128),
    tolerance(o(relative = 1e-3, absolute = 1e-5)), // an ulp of f16
)]
pub fn decode_combine<T: Float, const D: usize>(part_o: View<f32, 4>, part_ml: View<f32, 4>, o: ViewMut<T, 3>) {
    let (head, batch) = (block::x(), block::y());
    let (po, ml) = (part_o.at(batch).at(head), part_ml.at(batch).at(head));
    let mut max = f32::NEG_INFINITY;
    for i in (warp::lane()..ml.rows()).step_by(32) {
        max = max.max(ml[(i, 0)]);
    }
    let max = warp::max(max); // after the loop: lanes have met again
    let base = if max == f32::NEG_INFINITY { 0.0 } else { max };
    for d in (4 * warp::lane()..D).step_by(128) {
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

pub fn test(checker: &Checker) {
    const D: usize = 128;
    let (batch, kv_heads, group, capacity, splits) = (2, 1, 2, 200, 3);
    let halves = |n, seed| whole(n, seed).iter().map(|x| f16::from_f32(x / 8.0)).collect::<Vec<_>>();
    let (k, v) = (halves(batch * kv_heads * capacity * D, 1), halves(batch * kv_heads * capacity * D, 2));
    let q: Vec<f32> = whole(batch * kv_heads * group * D, 3).iter().map(|x| x / 8.0).collect();
    let lengths = [173u32, 5];
    let scale = std::f32::consts::LOG2_E / (D as f32).sqrt();
    let each = |len: usize| len.div_ceil(splits).next_multiple_of(32);
    // What each split finds, as the kernel leaves it.
    let (mut part_o, mut part_ml, mut o) = (Vec::new(), Vec::new(), Vec::new());
    for (b, h) in (0..batch).flat_map(|b| (0..group).map(move |h| (b, h))) {
        let len = lengths[b] as usize;
        let logit = |j: usize| {
            let dot: f64 =
                (0..D).map(|d| f64::from(q[(b * group + h) * D + d]) * k[(b * capacity + j) * D + d].to_f64()).sum();
            dot * f64::from(scale)
        };
        let over = |keys: std::ops::Range<usize>| {
            let top = keys.clone().map(logit).fold(f64::NEG_INFINITY, f64::max);
            let weight = |j: usize| (logit(j) - top).exp2();
            let total: f64 = keys.clone().map(weight).sum();
            let o: Vec<f64> = (0..D)
                .map(|d| keys.clone().map(|j| weight(j) * v[(b * capacity + j) * D + d].to_f64()).sum())
                .collect();
            (top, total, o)
        };
        for split in 0..splits {
            let (first, end) = ((split * each(len)).min(len), ((split + 1) * each(len)).min(len));
            let (top, total, sums) = over(first..end);
            part_o.extend(sums);
            part_ml.extend([top, total]);
        }
        let (_, total, sums) = over(0..len);
        o.extend(sums.into_iter().map(|x| x / total));
    }
    let heads = kv_heads * group;
    let inputs = vec![
        Input::view(&q, [batch, heads, D]),
        Input::view(&k, [batch, kv_heads, capacity, D]),
        Input::view(&v, [batch, kv_heads, capacity, D]),
        Input::slice(&lengths),
        Input::view(&vec![0f32; batch * heads * splits * D], [batch, heads, splits, D]),
        Input::view(&vec![0f32; batch * heads * splits * 2], [batch, heads, splits, 2]),
        Input::scalar(splits),
        Input::scalar(scale),
    ];
    let expected = [
        Expected::new(4, part_o.clone(), Bound::Absolute(1e-4)),
        Expected::new(5, part_ml.clone(), Bound::Absolute(1e-4)),
    ];
    agree::<decode<f16, D, 2, 16>>(checker, "splits", inputs, &expected);
    assemble::<decode<f16, D, 2, 16>>();

    let narrow = |all: &[f64]| all.iter().map(|x| *x as f32).collect::<Vec<_>>();
    let inputs = vec![
        Input::view(&narrow(&part_o), [batch, heads, splits, D]),
        Input::view(&narrow(&part_ml), [batch, heads, splits, 2]),
        Input::view(&vec![0f32; batch * heads * D], [batch, heads, D]),
    ];
    agree::<decode_combine<f32, D>>(checker, "combined", inputs, &[Expected::new(2, o, Bound::Absolute(1e-4))]);
    assemble::<decode_combine<f32, D>>();
}
