//! Cases of the example `decode_attention`.

use super::trial::{Trial, is, number, trials, whole};
use crate::examples::decode_attention::{decode, decode_combine};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Expected, Input};

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

/// One kv head, and keys in three splits. The second sequence has keys in only one split.
const TWO: Sequences = Sequences { lengths: &[173, 5], kv: 1, capacity: 200, splits: 3 };

/// First two kv heads, with a full cache and an empty one. Then splits of whole steps, and one more
/// key.
const SHORT_SEQUENCES: [Sequences; 2] = [
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
    [TWO].into_iter().chain(SHORT_SEQUENCES).map(|of| split::<T>(instance, of)).collect()
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
    // The output has one more sequence and one more head than the parts. The kernel must write
    // zeros there.
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
