//! Cases of the example `flash_attention`.

use super::trial::{Trial, is, number, trials, truth, whole};
use crate::examples::flash_attention::attention;
use crate::examples::flash_attention::score::Alibi;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Expected, Input};

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
    /// Factor of the usual scale 1/√D of logits. With large factors, few keys have weight.
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

/// Makes queries with equal weights for all keys. The values are adjacent numbers of bf16, so each
/// mean lies halfway and rounds to even: down in every other column, alternating between heads.
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
