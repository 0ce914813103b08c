//! Tests of attention, on the CPU and on a GPU, against plain Rust in `f64`.

use kernel_dsl::half::{bf16, f16};
use kernels_rs::attention::mask::{BlockMask, BlockSize, global, local, random, strided};
use kernels_rs::attention::score::{Alibi, ScoreBias, Softcap};
use kernels_rs::attention::{Attention, Decode, Gradients, KvCache, Layout, Qkv, Scratch};
use runtime::testing::Random;
use runtime::{BufferView, Device, DeviceBuffer, Error};

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

/// Checks decoding steps, which are attention of one query, over caches: contiguous, paged, in
/// `f16` and in bytes.
fn steps(device: &Device) {
    let mut random = Random::new(6);
    let (batch, room, page) = (2, 48, 16);
    for (heads, groups, width) in [(2, 2, 64), (3, 1, 24), (4, 2, 200), (8, 1, 128)] {
        let shape = AttentionShape { batch, heads, groups, queries: 1, keys: room, width, values: width };
        let x = Operands::new(device, &mut random, shape);
        let lengths = [37u32, 3];
        let scale = 1.0 / (width as f64).sqrt();
        let answer = x.answer(|[b, _, _, j], x| if j < lengths[b] as usize { x * scale } else { f64::NEG_INFINITY }).o;
        let counts = device.upload(&lengths).unwrap();
        let counts = counts.view([batch]).unwrap();
        let of_q = [batch, heads, width];
        let mut scratch = Scratch::with_splits(device, of_q, 3).unwrap();
        let q = x.on_device[0].view(of_q).unwrap();
        let [_, k, v] = &x.on_device;
        let cache = [batch, groups, room, width];
        // The second run checks that the first has restored the counters.
        for _ in 0..2 {
            let mut o = device.upload(&vec![f32::NAN; answer.len()]).unwrap();
            let kv = KvCache::new(k.view(cache).unwrap(), v.view(cache).unwrap());
            Decode::new().run(device, &q, kv, &counts, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
            compare("a cache", &o.download().unwrap(), &answer, TOLERANCE);
        }

        let pages = room / page;
        let table: Vec<u32> = (0..(batch * pages) as u32).map(|i| i * 5 % (batch * pages) as u32).collect();
        let in_pages = |of: &[f32]| {
            let mut out = vec![0.0; of.len()];
            for (i, x) in of.iter().enumerate() {
                let (d, j, g, b) = (i % width, i / width % room, i / width / room % groups, i / width / room / groups);
                let plane = table[b * pages + j / page] as usize;
                out[((plane * groups + g) * page + j % page) * width + d] = *x;
            }
            device.upload(&out).unwrap()
        };
        let (pk, pv, table_there) = (in_pages(&x.k), in_pages(&x.v), device.upload(&table).unwrap());
        let paged = [batch * pages, groups, page, width];
        let kv = KvCache::new(pk.view(paged).unwrap(), pv.view(paged).unwrap());
        let mut o = device.upload(&vec![f32::NAN; answer.len()]).unwrap();
        let there = table_there.view([batch, pages]).unwrap();
        Decode::new().run(device, &q, kv.paged(there), &counts, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
        compare("pages", &o.download().unwrap(), &answer, TOLERANCE);

        // `f16` keeps 11 bits of keys and values below 4, and logits are sums of them.
        let halves = |of: &[f32]| device.upload(&of.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>()).unwrap();
        let (hk, hv) = (halves(&x.k), halves(&x.v));
        let kv = KvCache::new(hk.view(cache).unwrap(), hv.view(cache).unwrap());
        Decode::new().run(device, &q, kv, &counts, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
        compare("halves", &o.download().unwrap(), &answer, 2e-2);
        // An output of 16 bits has the same numbers, rounded.
        let mut narrow = device.upload(&vec![bf16::NAN; answer.len()]).unwrap();
        Decode::new().run(device, &q, kv, &counts, &mut narrow.view_mut(of_q).unwrap(), &mut scratch).unwrap();
        let rounded: Vec<bf16> = o.download().unwrap().iter().map(|x| bf16::from_f32(*x)).collect();
        assert_eq!(narrow.download().unwrap(), rounded, "an output of 16 bits");

        if width % 16 == 0 {
            // The error of a byte is 1/254 of the largest element of its row.
            let bytes = |of: &[f32]| {
                let tops: Vec<f32> =
                    of.chunks(width).map(|r| r.iter().fold(0.0f32, |m, x| m.max(x.abs())) / 127.0).collect();
                let bytes: Vec<i8> = of.iter().enumerate().map(|(i, x)| (x / tops[i / width]).round() as i8).collect();
                (device.upload(&bytes).unwrap(), device.upload(&tops).unwrap())
            };
            let ((bk, sk), (bv, sv)) = (bytes(&x.k), bytes(&x.v));
            let kv = KvCache::new(bk.view(cache).unwrap(), bv.view(cache).unwrap());
            let kv = kv.scaled([&sk, &sv].map(|scales| scales.view([batch, groups, room]).unwrap()));
            Decode::new().run(device, &q, kv, &counts, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
            let whole = o.download().unwrap();
            compare("bytes", &whole, &answer, 0.1);
            // A page for each sequence, in the other order: the same numbers.
            let swapped = |bytes: &[i8], scales: &[f32]| {
                let (bytes, scales) = (
                    [&bytes[bytes.len() / 2..], &bytes[..bytes.len() / 2]].concat(),
                    [&scales[scales.len() / 2..], &scales[..scales.len() / 2]].concat(),
                );
                (device.upload(&bytes).unwrap(), device.upload(&scales).unwrap())
            };
            let (pk, pk_scales) = swapped(&bk.download().unwrap(), &sk.download().unwrap());
            let (pv, pv_scales) = swapped(&bv.download().unwrap(), &sv.download().unwrap());
            let table = device.upload(&[1u32, 0]).unwrap();
            let kv = KvCache::new(pk.view(cache).unwrap(), pv.view(cache).unwrap())
                .scaled([&pk_scales, &pv_scales].map(|scales| scales.view([batch, groups, room]).unwrap()))
                .paged(table.view([batch, 1]).unwrap());
            Decode::new().run(device, &q, kv, &counts, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
            assert_eq!(o.download().unwrap(), whole, "bytes in pages");
        }
    }
}

#[test]
fn cpu_steps_agree_with_the_reference() {
    steps(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_steps_agree_with_the_reference() {
    steps(&Device::cuda(0).unwrap());
}

/// Checks steps of several tokens: every number of warps that share keys, all kinds of caches, and
/// sequences with fewer keys than tokens.
fn several_tokens(device: &Device) {
    let mut random = Random::new(8);
    let (batch, room, page) = (2, 80, 16);
    for (heads, groups, width, tokens) in
        [(2, 1, 128, 4), (4, 2, 64, 2), (1, 1, 24, 16), (3, 1, 200, 5), (8, 1, 32, 16)]
    {
        let what = format!("{tokens} tokens of {heads} and {groups} heads of {width}");
        let shape = AttentionShape { batch, heads, groups, queries: tokens, keys: room, width, values: width };
        let x = Operands::new(device, &mut random, shape);
        let lengths = [77u32, 3];
        let scale = 1.0 / (width as f64).sqrt();
        let seen = |b: usize, t: usize| (lengths[b] as usize + t + 1).saturating_sub(tokens);
        let masked = |[b, _, t, j]: [usize; 4], x: f64| if j < seen(b, t) { x * scale } else { f64::NEG_INFINITY };
        // Operands have heads before queries, and a step has tokens before heads.
        let place = |i: usize| {
            let (d, t, h, b) = (i % width, i / width % tokens, i / width / tokens % heads, i / width / tokens / heads);
            ((b * tokens + t) * heads + h) * width + d
        };
        let (mut answer, mut of_tokens) = (vec![0.0; x.q.len()], vec![0.0f32; x.q.len()]);
        for (i, (o, q)) in x.answer(masked).o.into_iter().zip(&x.q).enumerate() {
            (answer[place(i)], of_tokens[place(i)]) = (o, *q);
        }
        let of_q = [batch * tokens, heads, width];
        let (q, counts) = (device.upload(&of_tokens).unwrap(), device.upload(&lengths).unwrap());
        let (q, counts) = (q.view(of_q).unwrap(), counts.view([batch]).unwrap());
        let mut o = device.upload(&vec![f32::NAN; answer.len()]).unwrap();
        let step = Decode::new().tokens(tokens);
        let [_, k, v] = &x.on_device;
        let cache = [batch, groups, room, width];
        let kv = KvCache::new(k.view(cache).unwrap(), v.view(cache).unwrap());
        let scratches =
            [Scratch::with_splits(device, of_q, 3), Scratch::for_tokens(device, of_q, tokens, groups, room)];
        for mut scratch in scratches.map(Result::unwrap) {
            // The second run checks that the first has restored the counters.
            for _ in 0..2 {
                step.run(device, &q, kv, &counts, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
                compare(&what, &o.download().unwrap(), &answer, TOLERANCE);
            }
        }
        let mut scratch = Scratch::with_splits(device, of_q, 2).unwrap();
        // Pages of one key head are the rows of the cache.
        if groups == 1 {
            let table: Vec<u32> = (0..(batch * room / page) as u32).collect();
            let table = device.upload(&table).unwrap();
            let pages = [batch * room / page, 1, page, width];
            let kv = KvCache::new(k.view(pages).unwrap(), v.view(pages).unwrap());
            let kv = kv.paged(table.view([batch, room / page]).unwrap());
            step.run(device, &q, kv, &counts, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
            compare(&format!("pages, {what}"), &o.download().unwrap(), &answer, TOLERANCE);
        }
        let halves = |of: &[f32]| device.upload(&of.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>()).unwrap();
        let (hk, hv) = (halves(&x.k), halves(&x.v));
        let kv = KvCache::new(hk.view(cache).unwrap(), hv.view(cache).unwrap());
        step.run(device, &q, kv, &counts, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
        compare(&format!("halves, {what}"), &o.download().unwrap(), &answer, 2e-2);
    }
}

#[test]
fn cpu_several_tokens_agree_with_the_reference() {
    several_tokens(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_several_tokens_agree_with_the_reference() {
    several_tokens(&Device::cuda(0).unwrap());
}

/// Rejects a cache of a different number of sequences, and one without pages. Fewer pages than
/// sequences and no sequences are legal.
#[test]
fn caches_of_other_sequences_are_rejected() {
    let device = Device::cpu();
    let (of_q, of_cache) = ([4, 1, 8], [4, 1, 4, 8]);
    let (q, x) = (device.zeros::<f32>(4 * 8).unwrap(), device.zeros::<f32>(4 * 4 * 8).unwrap());
    let (lengths, table) = (device.upload(&[4u32; 4]).unwrap(), device.upload(&[0u32, 1, 1, 0]).unwrap());
    let mut answers = device.zeros::<f32>(4 * 8).unwrap();
    let (q, cache, lengths) = (q.view(of_q).unwrap(), x.view(of_cache).unwrap(), lengths.view([4]).unwrap());
    let (table, mut o) = (table.view([4, 1]).unwrap(), answers.view_mut(of_q).unwrap());
    let mut scratch = Scratch::with_splits(&device, of_q, 2).unwrap();

    let mut in_one_piece = |planes: usize| {
        let kv = cache.slice(0..planes).unwrap();
        Decode::new().run(&device, &q, KvCache::new(kv, kv), &lengths, &mut o, &mut scratch)
    };
    in_one_piece(4).unwrap();
    for planes in [0, 2, 3] {
        let said = in_one_piece(planes).unwrap_err().to_string();
        let wanted =
            format!("the cache has {planes} planes, and there are 4 queries: it needs a plane for each sequence");
        assert!(said.contains(&wanted), "{said}");
    }

    let mut in_pages = |pages: usize, rows: usize| {
        let (kv, table) = (cache.slice(0..pages).unwrap(), table.slice(0..rows).unwrap());
        Decode::new().run(&device, &q, KvCache::new(kv, kv).paged(table), &lengths, &mut o, &mut scratch)
    };
    in_pages(4, 4).unwrap();
    in_pages(2, 4).unwrap();
    for rows in [0, 2, 3] {
        let said = in_pages(4, rows).unwrap_err().to_string();
        let wanted = format!("the table has {rows} rows, and there are 4 queries: it needs a row for each sequence");
        assert!(said.contains(&wanted), "{said}");
    }
    let said = in_pages(0, 4).unwrap_err().to_string();
    assert!(said.contains("the cache has no page, and there are 4 queries: it needs at least one"), "{said}");

    let (q, lengths) = (q.slice(0..0).unwrap(), lengths.slice(0..0).unwrap());
    let mut nothing = o.slice(0..0).unwrap();
    let cache = KvCache::new(cache, cache);
    Decode::new().run(&device, &q, cache, &lengths, &mut nothing, &mut scratch).unwrap();
    Decode::new().run(&device, &q, cache.paged(table), &lengths, &mut nothing, &mut scratch).unwrap();
}

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

#[test]
fn cpu_gradients_agree_with_the_reference() {
    gradients(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_gradients_agree_with_the_reference() {
    gradients(&Device::cuda(0).unwrap());
}
