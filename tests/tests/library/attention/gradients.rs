//! Tests of the gradients of attention, with lists of sequences and with block masks.

use super::{AttentionShape, ONE, Operands, TOLERANCE, compare};
use kernels_rs::attention::mask::{BlockMask, BlockSize, local, random};
use kernels_rs::attention::{Attention, Gradients, Layout, Qkv};
use runtime::testing::Random;
use runtime::{BufferView, Device, DeviceBuffer, Error};

/// Compares the logits with the definition, and the gradients with finite differences of the
/// definition in `f64`.
fn gradients(device: &Device) {
    const STEP: f64 = 1.0 / 128.0;
    let mut random = Random::new(7);
    for (shape, causal) in [
        (AttentionShape { heads: 2, queries: 3, keys: 5, values: 8, ..ONE }, true),
        (AttentionShape { batch: 2, queries: 4, keys: 2, width: 5, values: 3, ..ONE }, false),
    ] {
        let x = Operands::new(device, &mut random, shape);
        let AttentionShape { batch, heads, groups, queries, keys, width, values } = shape;
        let seen = |i: usize, j: usize| !causal || j + queries <= keys + i;
        let logit = |[_, _, i, j]: [usize; 4], x: f64| if seen(i, j) { 0.4 * x } else { f64::NEG_INFINITY };
        let d_o: Vec<f32> = random.values(batch * heads * queries * values);
        let on_d_o = device.upload(&d_o).unwrap();
        let attention = if causal { Attention::new().causal() } else { Attention::new() }.scale(0.4);
        let mut o = device.zeros::<f32>(d_o.len()).unwrap();
        let mut lse = device.zeros::<f32>(batch * heads * queries).unwrap();
        let [q, k, v] = &x.on_device;
        let (of_q, of_k) = ([batch, heads, queries, width], [batch, groups, keys, width]);
        let (of_v, of_o) = ([batch, groups, keys, values], [batch, heads, queries, values]);
        let (q, k, v) = (q.view(of_q).unwrap(), k.view(of_k).unwrap(), v.view(of_v).unwrap());
        let of_lse = [batch, heads, queries];
        attention
            .run(device, Qkv { q, k, v }, &mut o.view_mut(of_o).unwrap(), Some(&mut lse.view_mut(of_lse).unwrap()))
            .unwrap();
        let mut found = [x.q.len(), x.k.len(), x.v.len()].map(|n| device.upload(&vec![f32::NAN; n]).unwrap());
        let [d_q, d_k, d_v] = &mut found;
        attention
            .backward(
                device,
                Qkv { q, k, v },
                [&o.view(of_o).unwrap(), &on_d_o.view(of_o).unwrap()],
                &lse.view(of_lse).unwrap(),
                Gradients {
                    d_q: d_q.view_mut(of_q).unwrap(),
                    d_k: d_k.view_mut(of_k).unwrap(),
                    d_v: d_v.view_mut(of_v).unwrap(),
                },
            )
            .unwrap();
        let loss = |which: usize, at: usize, by: f64| {
            let [mut q, mut k, mut v] = [x.q.clone(), x.k.clone(), x.v.clone()];
            let moved = [&mut q, &mut k, &mut v];
            let before = f64::from(moved[which][at]);
            moved[which][at] = (before + by) as f32;
            let by = f64::from(moved[which][at]) - before;
            let on_device = [&q, &k, &v].map(|x| device.upload(x).unwrap());
            let answer = Operands { shape, q, k, v, on_device }.answer(logit);
            (answer.o.iter().zip(&d_o).map(|(o, d)| o * f64::from(*d)).sum::<f64>(), by)
        };
        for (which, found) in found.iter().enumerate() {
            for (at, gradient) in found.download().unwrap().into_iter().enumerate() {
                let ((up, far), (down, near)) = (loss(which, at, STEP), loss(which, at, -STEP));
                let expected = (up - down) / (far - near);
                // The error of the difference is the square of the step times a third derivative of
                // a few units.
                assert!((f64::from(gradient) - expected).abs() < 1e-3, "{which} at {at}: {gradient}, not {expected}");
            }
        }

        let mut s = device.upload(&vec![f32::NAN; batch * heads * queries * keys]).unwrap();
        attention.scores(device, &q, &k, &mut s.view_mut([batch, heads, queries, keys]).unwrap()).unwrap();
        let logits: Vec<f64> = (0..batch * heads * queries * keys)
            .map(|n| {
                let (row, j) = (n / keys, n % keys);
                let key = row / queries / heads * groups * keys + j;
                let of = |d: usize| f64::from(x.q[row * width + d]) * f64::from(x.k[key * width + d]);
                logit([0, 0, row % queries, j], (0..width).map(of).sum())
            })
            .collect();
        compare("logits", &s.download().unwrap(), &logits, TOLERANCE);
    }
}

/// Operands of a call, its results, and the gradients of each row.
struct Way {
    x: Operands,
    of: [[usize; 4]; 4],
    o: DeviceBuffer<f32>,
    lse: DeviceBuffer<f32>,
    d_o: DeviceBuffer<f32>,
    found: [DeviceBuffer<f32>; 3],
}

impl Way {
    fn new(device: &Device, random: &mut Random, shape: AttentionShape) -> Way {
        let AttentionShape { batch, heads, groups, queries, keys, width, values } = shape;
        let x = Operands::new(device, random, shape);
        let of = [
            [batch, heads, queries, width],
            [batch, groups, keys, width],
            [batch, groups, keys, values],
            [batch, heads, queries, values],
        ];
        let len = |shape: [usize; 4]| shape.iter().product::<usize>();
        let d_o: Vec<f32> = random.values(len(of[3]));
        let nothing = |n: usize| device.upload(&vec![f32::NAN; n]).unwrap();
        Way {
            o: device.zeros(len(of[3])).unwrap(),
            lse: device.upload(&vec![f32::NEG_INFINITY; batch * heads * queries]).unwrap(),
            d_o: device.upload(&d_o).unwrap(),
            found: [nothing(len(of[0])), nothing(len(of[1])), nothing(len(of[2]))],
            x,
            of,
        }
    }

    /// Compares with the definition in `f64`: P = softmax(S), dP = dO·Vᵀ, dS = P ∘ (dP − Σ dP ∘
    /// P)·scale. A row for which `there` returns false must be unchanged.
    fn compare(
        &self,
        what: &str,
        scale: f64,
        seen: impl Fn([usize; 4]) -> bool,
        there: impl Fn(usize, [usize; 2]) -> bool,
    ) {
        let AttentionShape { batch, heads, groups, queries, keys, width, values } = self.x.shape;
        let wide = |x: &[f32]| x.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
        let [q, k, v] = [wide(&self.x.q), wide(&self.x.k), wide(&self.x.v)];
        let d_o = wide(&self.d_o.download().unwrap());
        let mut expected = [vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]];
        for row in 0..batch * heads * queries {
            let (b, h, i) = (row / (heads * queries), row / queries % heads, row % queries);
            let keys_of = (b * groups + h / (heads / groups)) * keys;
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let (own, d_own) = (&q[row * width..(row + 1) * width], &d_o[row * values..(row + 1) * values]);
            let s: Vec<f64> = (0..keys)
                .map(|j| {
                    let x = scale * dot(own, &k[(keys_of + j) * width..(keys_of + j + 1) * width]);
                    if seen([b, h, i, j]) { x.exp() } else { 0.0 }
                })
                .collect();
            let sum: f64 = s.iter().sum();
            let p: Vec<f64> = s.iter().map(|s| if sum > 0.0 { s / sum } else { 0.0 }).collect();
            let d_p: Vec<f64> =
                (0..keys).map(|j| dot(d_own, &v[(keys_of + j) * values..(keys_of + j + 1) * values])).collect();
            let mean = dot(&p, &d_p);
            for j in 0..keys {
                let d_s = p[j] * (d_p[j] - mean) * scale;
                for d in 0..width {
                    expected[0][row * width + d] += d_s * k[(keys_of + j) * width + d];
                    expected[1][(keys_of + j) * width + d] += d_s * own[d];
                }
                for d in 0..values {
                    expected[2][(keys_of + j) * values + d] += p[j] * d_own[d];
                }
            }
        }
        for (which, found) in self.found.iter().enumerate() {
            let [_, heads, rows, columns] = self.of[which];
            for (at, got) in found.download().unwrap().into_iter().enumerate() {
                let row = [at / columns / rows / heads, at / columns % rows];
                let reference = expected[which][at];
                let near = (f64::from(got) - reference).abs() < 1e-4 * (1.0 + reference.abs());
                let right = if there(which, row) { near } else { got.is_nan() };
                assert!(right, "{what}, gradient {which} at {at}: {got}, not {reference}");
            }
        }
    }
}

/// Calls [`Attention`] with the operands of a [`Way`].
macro_rules! way {
    ($way:ident, $attention:expr, $device:ident) => {{
        let attention = $attention;
        let [of_q, of_k, of_v, of_o] = $way.of;
        let of_lse = [of_q[0], of_q[1], of_q[2]];
        let [q, k, v] = &$way.x.on_device;
        let qkv = Qkv { q: q.view(of_q).unwrap(), k: k.view(of_k).unwrap(), v: v.view(of_v).unwrap() };
        let mut lse = $way.lse.view_mut(of_lse).unwrap();
        attention.run($device, qkv, &mut $way.o.view_mut(of_o).unwrap(), Some(&mut lse)).unwrap();
        let [d_q, d_k, d_v] = &mut $way.found;
        let gradients = Gradients {
            d_q: d_q.view_mut(of_q).unwrap(),
            d_k: d_k.view_mut(of_k).unwrap(),
            d_v: d_v.view_mut(of_v).unwrap(),
        };
        let (o, d_o) = ($way.o.view(of_o).unwrap(), $way.d_o.view(of_o).unwrap());
        let lse = $way.lse.view(of_lse).unwrap();
        attention.backward($device, qkv, [&o, &d_o], &lse, gradients).unwrap();
    }};
}

/// Checks gradients of sequences of different lengths, and with block masks.
fn sparse_gradients(device: &Device) {
    let mut random_numbers = Random::new(21);
    let causal = Attention::new().causal().scale(0.4);
    let (queries, keys) = ([70u32, 2, 0], [75u32, 5, 3]);
    let shape = AttentionShape { batch: 3, heads: 2, groups: 1, queries: 71, keys: 80, ..ONE };
    let mut padded = Way::new(device, &mut random_numbers, shape);
    let [dq, dk] = [queries, keys].map(|n| device.upload(&n).unwrap());
    let counts = Layout::Padded { queries: dq.view([3]).unwrap(), keys: dk.view([3]).unwrap() };
    // The rows beyond a length are filled with NaN.
    let mut o = padded.o.download().unwrap();
    for (i, o) in o.iter_mut().enumerate() {
        if i / shape.values % 71 >= queries[i / shape.values / 71 / 2] as usize {
            *o = f32::NAN;
        }
    }
    padded.o = device.upload(&o).unwrap();
    way!(padded, causal.layout(counts), device);
    let within = |[b, _, i, j]: [usize; 4]| {
        let (lq, lk) = (queries[b] as usize, keys[b] as usize);
        i < lq && j < lk && j + lq <= lk + i
    };
    padded.compare("padded", 0.4, within, |which, [b, row]| row < [queries, keys, keys][which][b] as usize);

    let starts = [[0u32, 66, 68, 68], [0, 9, 80, 83]];
    let shape = AttentionShape { batch: 1, heads: 4, groups: 2, queries: 68, keys: 83, values: 8, ..ONE };
    let mut packed = Way::new(device, &mut random_numbers, shape);
    let [dq, dk] = starts.map(|n| device.upload(&n).unwrap());
    let of = |starts: &[u32; 4], i: usize| (0..3).find(|s| i < starts[s + 1] as usize).unwrap();
    let same = |[_, _, i, j]: [usize; 4]| {
        let s = of(&starts[0], i);
        let ends = [0, 1].map(|n| starts[n][s + 1] as usize);
        s == of(&starts[1], j) && j + ends[0] <= i + ends[1]
    };
    let (queries, keys) = (dq.view([4]).unwrap(), dk.view([4]).unwrap());
    way!(packed, causal.layout(Layout::Packed { queries, keys, longest: [66, 71] }), device);
    packed.compare("packed", 0.4, same, |_, _| true);

    for (size, queries, keys) in [(BlockSize::Small, 130, 70), (BlockSize::Large, 3, 140)] {
        let shape = AttentionShape { heads: 2, queries, keys, ..ONE };
        let (near, some) = (local(0), random(0.5, 3));
        let mask =
            BlockMask::new(size, 2, [queries, keys], |h, r, c| if h == 0 { near(h, r, c) } else { some(h, r, c) });
        let (on_device, rows) = (mask.upload(device).unwrap(), queries.div_ceil(size.get()));
        let mut masked = Way::new(device, &mut random_numbers, shape);
        way!(masked, Attention::new().scale(0.4).mask(&on_device), device);
        let listed =
            |[_, h, i, j]: [usize; 4]| mask.lists()[h * rows + i / size.get()].contains(&((j / size.get()) as u32));
        masked.compare("masked", 0.4, listed, |_, _| true);
    }
}

#[test]
fn cpu_sparse_gradients_agree_with_the_reference() {
    sparse_gradients(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_sparse_gradients_agree_with_the_reference() {
    sparse_gradients(&Device::cuda(0).unwrap());
}

/// Calls attention with lists of queries and keys, forward and backward.
fn of_lists(
    device: &Device,
    way: &mut Way,
    lists: [&BufferView<'_, u32, 1>; 2],
    packed: bool,
) -> [Result<(), Error>; 2] {
    let [of_q, of_k, of_v, of_o] = way.of;
    let of_lse = [of_q[0], of_q[1], of_q[2]];
    let [queries, keys] = lists.map(|list| *list);
    let layout = match packed {
        true => Layout::Packed { queries, keys, longest: [2, 3] },
        false => Layout::Padded { queries, keys },
    };
    let attention = Attention::new().layout(layout);
    let [q, k, v] = &way.x.on_device;
    let qkv = Qkv { q: q.view(of_q).unwrap(), k: k.view(of_k).unwrap(), v: v.view(of_v).unwrap() };
    let forwards = {
        let (mut o, mut lse) = (way.o.view_mut(of_o).unwrap(), way.lse.view_mut(of_lse).unwrap());
        attention.run(device, qkv, &mut o, Some(&mut lse))
    };
    let [d_q, d_k, d_v] = &mut way.found;
    let gradients = Gradients {
        d_q: d_q.view_mut(of_q).unwrap(),
        d_k: d_k.view_mut(of_k).unwrap(),
        d_v: d_v.view_mut(of_v).unwrap(),
    };
    let (o, d_o, lse) = (way.o.view(of_o).unwrap(), way.d_o.view(of_o).unwrap(), way.lse.view(of_lse).unwrap());
    [forwards, attention.backward(device, qkv, [&o, &d_o], &lse, gradients)]
}

/// Rejects lists of a different number of sequences than the call's, forward and backward.
/// Sequences in only one of the lists would not be computed.
#[test]
fn lists_of_other_sequences_are_rejected() {
    let device = Device::cpu();
    let numbers = device.upload(&[0u32, 1, 2]).unwrap();
    let list = |n: usize| numbers.range(0..n).unwrap();
    let refused = |batch: usize, lists: [usize; 2], packed: bool, why: &str| {
        let mut way = Way::new(&device, &mut Random::new(31), AttentionShape { batch, queries: 2, keys: 3, ..ONE });
        let [queries, keys] = lists.map(list);
        for called in of_lists(&device, &mut way, [&queries, &keys], packed) {
            let said = called.map_or_else(|error| error.to_string(), |()| String::new());
            assert!(if why.is_empty() { said.is_empty() } else { said.contains(why) }, "{batch}, {lists:?}: {said}");
        }
    };
    refused(2, [2, 2], false, "");
    refused(
        2,
        [1, 2],
        false,
        "the list of queries: extents [1], expected [2] (a number for each sequence of the batch",
    );
    refused(2, [2, 1], false, "the list of keys: extents [1], expected [2]");
    refused(2, [3, 3], false, "the list of queries: extents [3], expected [2]");
    refused(1, [3, 3], true, "");
    refused(1, [3, 2], true, "the list of keys: extents [2], expected [3] (the length of the list of queries");
    refused(1, [1, 3], true, "the list of keys: extents [3], expected [1]");
    refused(2, [3, 3], true, "q is a batch of 2, and packed sequences are a batch of 1");
}

#[test]
fn cpu_gradients_agree_with_the_reference() {
    gradients(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_gradients_agree_with_the_reference() {
    gradients(&Device::cuda(0).unwrap());
}
