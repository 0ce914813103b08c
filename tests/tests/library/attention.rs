//! Tests of attention, on the CPU and on a GPU, against plain Rust in `f64`.

mod gradients;
mod steps;

use kernels_rs::attention::mask::{BlockMask, BlockSize, global, local, random, strided};
use kernels_rs::attention::score::{Alibi, ScoreBias, Softcap};
use kernels_rs::attention::{Attention, Layout, Qkv};
use runtime::testing::Random;
use runtime::{Device, DeviceBuffer};

/// Numbers of sequences, heads of queries and of keys, queries, keys, and elements of a key and of
/// a value.
#[derive(Clone, Copy, Debug)]
struct AttentionShape {
    batch: usize,
    heads: usize,
    groups: usize,
    queries: usize,
    keys: usize,
    width: usize,
    values: usize,
}

const ONE: AttentionShape = AttentionShape { batch: 1, heads: 1, groups: 1, queries: 1, keys: 1, width: 8, values: 4 };

/// Operands on the host and on a device.
struct Operands {
    shape: AttentionShape,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    on_device: [DeviceBuffer<f32>; 3],
}

/// Query, keys and values of a head, the result and the logarithm of its sum.
struct Answer {
    o: Vec<f64>,
    lse: Vec<f64>,
}

impl Operands {
    fn new(device: &Device, random: &mut Random, shape: AttentionShape) -> Operands {
        let AttentionShape { batch, heads, groups, queries, keys, width, values } = shape;
        let mut drawn = |n: usize| random.values::<f32>(n);
        let q = drawn(batch * heads * queries * width);
        let (k, v) = (drawn(batch * groups * keys * width), drawn(batch * groups * keys * values));
        let on_device = [&q, &k, &v].map(|x| device.upload(x).unwrap());
        Operands { shape, q, k, v, on_device }
    }

    /// Computes the result by the definition. `logit(sequence, head, query, key, product)` is −∞
    /// for a masked key.
    fn answer(&self, logit: impl Fn([usize; 4], f64) -> f64) -> Answer {
        let AttentionShape { batch, heads, groups, queries, keys, width, values } = self.shape;
        let (mut o, mut lse) = (Vec::new(), Vec::new());
        for row in 0..batch * heads * queries {
            let (b, h, i) = (row / queries / heads, row / queries % heads, row % queries);
            let head = b * groups + h / (heads / groups);
            let product = |j: usize| -> f64 {
                let of =
                    |d: usize| f64::from(self.q[row * width + d]) * f64::from(self.k[(head * keys + j) * width + d]);
                (0..width).map(of).sum()
            };
            let logits: Vec<f64> = (0..keys).map(|j| logit([b, h, i, j], product(j))).collect();
            let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = logits.iter().map(|x| if top == f64::NEG_INFINITY { 0.0 } else { (x - top).exp() }).sum();
            lse.push(if total == 0.0 { f64::NEG_INFINITY } else { top + total.ln() });
            for c in 0..values {
                let of = |j: usize| (logits[j] - top).exp() * f64::from(self.v[(head * keys + j) * values + c]);
                o.push(if total == 0.0 { 0.0 } else { (0..keys).map(of).sum::<f64>() / total });
            }
        }
        Answer { o, lse }
    }
}

/// Tolerance: logits are below 30, from at most some hundred products and keys. Some hundred
/// roundings of the largest are below 10⁻⁴.
const TOLERANCE: f64 = 1e-4;

fn compare(what: &str, got: &[f32], expected: &[f64], near: f64) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (x, y)) in got.iter().zip(expected).enumerate() {
        let same = f64::from(*x) == *y || (f64::from(*x) - y).abs() <= near;
        assert!(same, "{what}: element {i} is {x}, not {y}");
    }
}

/// Runs the work that `call` queues, and compares the results.
macro_rules! check {
    ($device:expr, $operands:expr, $answer:expr, |$qkv:ident, $o:ident, $lse:ident| $call:expr) => {{
        let AttentionShape { batch, heads, groups, queries, keys, width, values } = $operands.shape;
        let [q, k, v] = &$operands.on_device;
        let mut o = $device.upload(&vec![f32::NAN; batch * heads * queries * values]).unwrap();
        let mut lse = $device.upload(&vec![f32::NAN; batch * heads * queries]).unwrap();
        {
            let $qkv = Qkv {
                q: q.view([batch, heads, queries, width]).unwrap(),
                k: k.view([batch, groups, keys, width]).unwrap(),
                v: v.view([batch, groups, keys, values]).unwrap(),
            };
            let $o = &mut o.view_mut([batch, heads, queries, values]).unwrap();
            let $lse = &mut lse.view_mut([batch, heads, queries]).unwrap();
            $call.unwrap();
        }
        let what = format!("{:?}, {}", $operands.shape, stringify!($call));
        compare(&what, &o.download().unwrap(), &$answer.o, TOLERANCE);
        compare(&what, &lse.download().unwrap(), &$answer.lse, TOLERANCE);
    }};
}

/// Checks every tile width, both access widths, both tile heights, and masked keys.
fn seen(device: &Device) {
    let mut random = Random::new(1);
    let shapes = [
        AttentionShape { keys: 3, ..ONE },
        AttentionShape { batch: 2, heads: 4, groups: 2, queries: 3, keys: 5, width: 40, values: 40 },
        AttentionShape { queries: 65, keys: 70, width: 16, values: 20, ..ONE },
        AttentionShape { queries: 5, keys: 66, width: 7, values: 72, ..ONE },
        AttentionShape { queries: 70, keys: 3, width: 3, values: 5, ..ONE },
        AttentionShape { queries: 2, keys: 20, width: 24, values: 132, ..ONE },
        AttentionShape { keys: 0, ..ONE },
        // Keys are divided among blocks: for few queries, and for causal masks whose last queries
        // have the most work.
        AttentionShape { heads: 2, queries: 3, keys: 600, width: 8, values: 8, ..ONE },
        AttentionShape { queries: 530, keys: 530, width: 8, values: 8, ..ONE },
    ];
    for shape in shapes {
        let x = Operands::new(device, &mut random, shape);
        let scale = 1.0 / (shape.width as f64).sqrt();
        let at = |i: usize| (shape.keys + i) as f64 - shape.queries as f64;
        let all = x.answer(|_, x| x * scale);
        check!(device, x, all, |qkv, o, lse| Attention::new().run(device, qkv, o, Some(lse)));
        let past = x.answer(|[_, _, i, j], x| if j as f64 <= at(i) { x * 0.25 } else { f64::NEG_INFINITY });
        let causal = Attention::new().causal().scale(0.25);
        check!(device, x, past, |qkv, o, lse| causal.run(device, qkv, o, Some(lse)));
        let near =
            x.answer(
                |[_, _, i, j], x| {
                    if (at(i) - 2.0..=at(i) + 1.0).contains(&(j as f64)) { x * scale } else { f64::NEG_INFINITY }
                },
            );
        check!(device, x, near, |qkv, o, lse| Attention::new().band(2, 1).run(device, qkv, o, Some(lse)));
    }
}

#[test]
fn cpu_masked_keys_agree_with_the_reference() {
    seen(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_masked_keys_agree_with_the_reference() {
    seen(&Device::cuda(0).unwrap());
}

/// Checks each score function of the library, and a bias that masks keys of some rows, or all keys
/// of a row.
fn scores(device: &Device) {
    let mut random = Random::new(2);
    let shape = AttentionShape { heads: 2, queries: 4, keys: 9, ..ONE };
    let x = Operands::new(device, &mut random, shape);
    let scale = 1.0 / (shape.width as f64).sqrt();
    let slopes = [0.5f32, 0.125];
    let mut bias: Vec<f32> = random.values(4 * 9);
    bias[3] = f32::NEG_INFINITY;
    bias[9..18].fill(f32::NEG_INFINITY);
    let (on_slopes, on_bias) = (device.upload(&slopes).unwrap(), device.upload(&bias).unwrap());
    // SAFETY: the buffers live until the end of the function, and nothing writes to them. Both
    // heads share one bias.
    let (alibi, biased) = unsafe {
        (
            Alibi { slopes: on_slopes.view([2]).unwrap().detached() },
            ScoreBias { bias: on_bias.view_strided([1, 2, 4, 9], [0, 0, 9, 1]).unwrap().detached() },
        )
    };
    macro_rules! scored {
        ($score:expr, $logit:expr) => {
            let answer = x.answer($logit);
            // SAFETY: there is a slope for each head, and a bias for each query and key.
            let attention = unsafe { Attention::new().score($score) };
            check!(device, x, answer, |qkv, o, lse| attention.run(device, qkv, o, Some(lse)));
        };
    }
    scored!(alibi, |[_, h, i, j], x| x * scale + f64::from(slopes[h]) * (j as f64 - (5 + i) as f64));
    scored!(biased, |[_, _, i, j], x| x * scale + f64::from(bias[i * 9 + j]));
    scored!(Softcap { cap: 0.7 }, |_, x| 0.7 * (x * scale / 0.7).tanh());
}

#[test]
fn cpu_scores_agree_with_the_reference() {
    scores(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_scores_agree_with_the_reference() {
    scores(&Device::cuda(0).unwrap());
}

/// Checks padded and packed sequences of different lengths against each sequence alone. Rows beyond
/// the lengths remain unchanged.
fn lengths(device: &Device) {
    let mut random = Random::new(3);
    let shape = AttentionShape { batch: 3, heads: 2, groups: 1, queries: 6, keys: 9, ..ONE };
    let x = Operands::new(device, &mut random, shape);
    let (queries, keys) = ([6u32, 2, 0], [9u32, 5, 3]);
    let scale = 1.0 / (shape.width as f64).sqrt();
    let mut padded = x.answer(|[b, _, i, j], x| {
        let (lq, lk) = (queries[b] as usize, keys[b] as usize);
        if j < lk && j + lq <= lk + i { x * scale } else { f64::NEG_INFINITY }
    });
    let [dq, dk] = [queries, keys].map(|n| device.upload(&n).unwrap());
    let untouched = 77.0f32;
    let mut o = device.upload(&vec![untouched; padded.o.len()]).unwrap();
    let [q, k, v] = &x.on_device;
    let (q, k, v) = (q.view([3, 2, 6, 8]).unwrap(), k.view([3, 1, 9, 8]).unwrap(), v.view([3, 1, 9, 4]).unwrap());
    let counts = Layout::Padded { queries: dq.view([3]).unwrap(), keys: dk.view([3]).unwrap() };
    let causal = Attention::new().causal();
    causal.layout(counts).run(device, Qkv { q, k, v }, &mut o.view_mut([3, 2, 6, 4]).unwrap(), None).unwrap();
    for (i, x) in padded.o.iter_mut().enumerate() {
        if i / 4 % 6 >= queries[i / 48] as usize {
            *x = f64::from(untouched);
        }
    }
    compare("padded", &o.download().unwrap(), &padded.o, TOLERANCE);

    // The queries and keys are packed: each sequence directly follows the one before.
    let all = AttentionShape { batch: 1, queries: 8, keys: 17, ..shape };
    let packed = Operands::new(device, &mut random, all);
    let starts = [[0u32, 6, 8, 8], [0, 9, 14, 17]];
    let of = |starts: &[u32; 4], i: usize| (0..3).find(|s| i < starts[s + 1] as usize).unwrap();
    let answer = packed.answer(|[_, _, i, j], x| {
        let s = of(&starts[0], i);
        let place = |n: usize, i: usize| i - starts[n][s] as usize;
        let same = s == of(&starts[1], j);
        if same && place(1, j) + queries[s] as usize <= keys[s] as usize + place(0, i) {
            x * scale
        } else {
            f64::NEG_INFINITY
        }
    });
    let [dq, dk] = starts.map(|n| device.upload(&n).unwrap());
    let (dq, dk) = (dq.view([4]).unwrap(), dk.view([4]).unwrap());
    let causal = causal.layout(Layout::Packed { queries: dq, keys: dk, longest: [6, 9] });
    check!(device, packed, answer, |qkv, o, lse| causal.run(device, qkv, o, Some(lse)));
}

#[test]
fn cpu_sequences_of_any_length_are_as_if_alone() {
    lengths(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_sequences_of_any_length_are_as_if_alone() {
    lengths(&Device::cuda(0).unwrap());
}

/// Checks block masks of both sizes, with a causal mask inside.
fn masks(device: &Device) {
    let mut random_numbers = Random::new(4);
    for (size, queries, keys) in [(BlockSize::Small, 70, 200), (BlockSize::Large, 3, 260), (BlockSize::Small, 3, 700)] {
        let shape = AttentionShape { heads: 2, queries, keys, ..ONE };
        let x = Operands::new(device, &mut random_numbers, shape);
        let (near, first, some) = (local(0), global(1), random(0.5, 7));
        let mask = BlockMask::new(size, 2, [queries, keys], |h, r, c| {
            if h == 0 { near(h, r, c) || some(h, r, c) } else { r == 0 && first(h, 1, c) }
        });
        let on_device = mask.upload(device).unwrap();
        let rows = queries.div_ceil(size.get());
        let answer = x.answer(|[_, h, i, j], x| {
            let listed = mask.lists()[h * rows + i / size.get()].contains(&((j / size.get()) as u32));
            if listed && j + queries <= keys + i { x * 0.3 } else { f64::NEG_INFINITY }
        });
        let causal = Attention::new().causal().scale(0.3).mask(&on_device);
        check!(device, x, answer, |qkv, o, lse| causal.run(device, qkv, o, Some(lse)));
    }
}

#[test]
fn cpu_masks_agree_with_the_reference() {
    masks(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_masks_agree_with_the_reference() {
    masks(&Device::cuda(0).unwrap());
}

#[test]
fn mask_patterns_match_their_documentation() {
    let far = strided(3);
    assert!(far(0, 4, 1) && far(0, 1, 4) && !far(0, 1, 3));
    let mask = BlockMask::new(BlockSize::Large, 4, [8192, 8192], random(0.25, 9));
    assert!((mask.density() - 0.25).abs() < 0.02, "{}", mask.density());
    assert_eq!(mask, BlockMask::new(BlockSize::Large, 4, [8192, 8192], random(0.25, 9)));
}

/// Rejects a mask whose extents differ from the call's.
#[test]
fn masks_of_other_extents_are_rejected() {
    let device = Device::cpu();
    let x = Operands::new(&device, &mut Random::new(5), ONE);
    let mask = BlockMask::new(BlockSize::Small, 1, [1, 2], local(0)).upload(&device).unwrap();
    let [q, k, v] = &x.on_device;
    let (q, k, v) = (q.view([1, 1, 1, 8]).unwrap(), k.view([1, 1, 1, 8]).unwrap(), v.view([1, 1, 1, 4]).unwrap());
    let mut o = device.zeros::<f32>(4).unwrap();
    let qkv = Qkv { q, k, v };
    let error = Attention::new().mask(&mask).run(&device, qkv, &mut o.view_mut([1, 1, 1, 4]).unwrap(), None);
    assert!(error.unwrap_err().to_string().contains("the mask has 1 heads, 1 queries and 2 keys"));
    // A mask, and sequences of several lengths.
    let one = device.upload(&[1u32]).unwrap();
    let padded = Layout::Padded { queries: one.view([1]).unwrap(), keys: one.view([1]).unwrap() };
    let mask = BlockMask::new(BlockSize::Small, 1, [1, 1], local(0)).upload(&device).unwrap();
    let attention = Attention::new().mask(&mask).layout(padded);
    let error = attention.run(&device, qkv, &mut o.view_mut([1, 1, 1, 4]).unwrap(), None).unwrap_err().to_string();
    assert!(error.contains("a mask applies to sequences of `Layout::Dense` only"), "{error}");
}

/// Checks calls without sequences or without queries: nothing is computed, and extents are still
/// compared.
#[test]
fn calls_without_queries_compute_nothing() {
    let device = Device::cpu();
    for (batch, queries) in [(0, 2), (2, 0)] {
        let shape = AttentionShape { batch, queries, keys: 3, ..ONE };
        let x = Operands::new(&device, &mut Random::new(32), shape);
        let nothing = x.answer(|_, x| x);
        check!(device, x, nothing, |qkv, o, lse| Attention::new().run(&device, qkv, o, Some(lse)));
        let numbers = device.upload(&vec![0u32; batch]).unwrap();
        let list = numbers.view([batch]).unwrap();
        let padded = Attention::new().layout(Layout::Padded { queries: list, keys: list });
        check!(device, x, nothing, |qkv, o, lse| padded.run(&device, qkv, o, Some(lse)));
        let mask = BlockMask::new(BlockSize::Small, 1, [queries, 3], local(0)).upload(&device).unwrap();
        let masked = Attention::new().mask(&mask);
        check!(device, x, nothing, |qkv, o, lse| masked.run(&device, qkv, o, Some(lse)));
        let [q, k, v] = &x.on_device;
        let (q, k) = (q.view([batch, 1, queries, 8]).unwrap(), k.view([batch, 1, 3, 8]).unwrap());
        let v = v.view([batch, 1, 3, 4]).unwrap();
        let mut o = device.zeros::<f32>(0).unwrap();
        let mut o = o.view_mut([batch, 1, queries, 5]).unwrap();
        let said = Attention::new().run(&device, Qkv { q, k, v }, &mut o, None).unwrap_err().to_string();
        assert!(said.contains("a row of v's elements for each query of each head"), "{said}");
    }
    // Packed sequences: no offsets, one offset, and offsets of one empty sequence.
    for places in 0..3 {
        let shape = AttentionShape { queries: 0, keys: 0, ..ONE };
        let x = Operands::new(&device, &mut Random::new(33), shape);
        let nothing = x.answer(|_, x| x);
        let numbers = device.upload(&vec![0u32; places]).unwrap();
        let list = numbers.view([places]).unwrap();
        let packed = Attention::new().layout(Layout::Packed { queries: list, keys: list, longest: [1, 1] });
        check!(device, x, nothing, |qkv, o, lse| packed.run(&device, qkv, o, Some(lse)));
    }
}

/// Rejects values without elements if the caller requests logarithms, which such a call cannot
/// compute.
#[test]
fn values_without_elements_have_no_logarithms() {
    let device = Device::cpu();
    let x = Operands::new(&device, &mut Random::new(34), AttentionShape { values: 0, ..ONE });
    let [q, k, v] = &x.on_device;
    let (q, k, v) = (q.view([1, 1, 1, 8]).unwrap(), k.view([1, 1, 1, 8]).unwrap(), v.view([1, 1, 1, 0]).unwrap());
    let (mut o, mut lse) = (device.zeros::<f32>(0).unwrap(), device.zeros::<f32>(1).unwrap());
    let (mut o, mut lse) = (o.view_mut([1, 1, 1, 0]).unwrap(), lse.view_mut([1, 1, 1]).unwrap());
    Attention::new().run(&device, Qkv { q, k, v }, &mut o, None).unwrap();
    let said = Attention::new().run(&device, Qkv { q, k, v }, &mut o, Some(&mut lse)).unwrap_err().to_string();
    assert!(said.contains("rows of v are empty"), "{said}");
}
