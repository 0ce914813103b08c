//! Attention: prefill, packed and padded sequences, block masks, gradients, logits, decoding steps
//! and caches.

use super::{Array, Call, On, Written, number};
use kernels_rs::attention::mask::{BlockMask, BlockSize};
use kernels_rs::attention::{Append, Attention, Decode, Gradients, KvCache, KvCacheMut, Layout, Qkv, Scratch};
use kernels_rs::rotary::PairLayout;
use runtime::Error;

const OF_PREFILL: &[(&str, usize)] =
    &[("batch", 1), ("heads", 1), ("queries", 1), ("keys", 1), ("width", 1), ("values", 1)];
const OF_CACHED: &[(&str, usize)] = &[("sequences", 1), ("heads", 1), ("queries", 1), ("keys", 1)];
const OF_STEP: &[(&str, usize)] = &[("sequences", 1), ("heads", 1), ("keys", 1)];
const OF_APPEND: &[(&str, usize)] = &[("sequences", 1), ("heads", 1), ("room", 1), ("width", 2)];

pub const CALLS: &[Call] = &[
    Call { name: "Attention::run", dimensions: OF_PREFILL, on_cpu: &[], run: prefill },
    Call { name: "Attention::backward", dimensions: OF_PREFILL, on_cpu: &[], run: backward },
    Call {
        name: "Attention::scores",
        dimensions: &[("batch", 1), ("heads", 1), ("queries", 1), ("keys", 1), ("width", 1)],
        on_cpu: &[],
        run: scores,
    },
    Call {
        name: "Attention::run, padded",
        dimensions: &[("sequences", 1), ("heads", 1), ("queries", 1), ("keys", 1)],
        on_cpu: &[],
        run: padded,
    },
    Call {
        name: "Attention::run, packed",
        dimensions: &[("sequences", 1), ("heads", 1), ("queries", 1), ("keys", 1)],
        on_cpu: &[],
        run: packed,
    },
    Call {
        name: "Attention::run, masked",
        dimensions: &[("batch", 1), ("heads", 1), ("queries", 1), ("keys", 1)],
        on_cpu: &[],
        run: sparse,
    },
    Call { name: "Attention::run_cached", dimensions: OF_CACHED, on_cpu: &[], run: prefill_cached },
    Call { name: "Attention::run_cached, paged", dimensions: OF_CACHED, on_cpu: &[], run: prefill_paged },
    Call { name: "Decode::run", dimensions: OF_STEP, on_cpu: &[], run: step },
    Call { name: "Decode::run, paged", dimensions: OF_STEP, on_cpu: &[], run: step_paged },
    Call { name: "Decode::run, scaled", dimensions: OF_STEP, on_cpu: &[], run: step_scaled },
    Call { name: "Append::run", dimensions: OF_APPEND, on_cpu: &["sequences"], run: append },
    Call { name: "Append::run, scaled and paged", dimensions: OF_APPEND, on_cpu: &[], run: append_scaled_paged },
];

/// Q, K and V of [batch, head, row, element], for attention with a scale of 2⁻⁷. Each head of q has
/// its own head of keys and values, and each query sees all keys.
struct Prefill {
    shape: [usize; 6],
    q: (Array<f32>, Vec<f64>),
    k: (Array<f32>, Vec<f64>),
    v: (Array<f32>, Vec<f64>),
}

const SCALE: f32 = 1.0 / 128.0;

impl Prefill {
    fn new(on: &On, shape: [usize; 6]) -> Prefill {
        let [batch, heads, queries, keys, width, values] = shape;
        let [q, k, v] = [(queries * width, 1), (keys * width, 2), (keys * values, 3)]
            .map(|(n, seed)| on.numbers(batch * heads * n, seed));
        Prefill { shape, q, k, v }
    }

    /// Returns the logits of a query, given by its row of q counted through batch and heads.
    fn logits(&self, row: usize) -> Vec<f64> {
        let [_, _, queries, keys, width, _] = self.shape;
        let first = row / queries * keys;
        let product = |key: usize| -> f64 {
            (0..width).map(|d| self.q.1[row * width + d] * self.k.1[(first + key) * width + d]).sum()
        };
        (0..keys).map(|key| product(key) * f64::from(SCALE)).collect()
    }

    /// Returns O and the logarithms of the sums of exponentials.
    fn reference(&self) -> [Vec<f64>; 2] {
        let [batch, heads, queries, keys, _, values] = self.shape;
        let (mut o, mut lse) = (Vec::new(), Vec::new());
        for row in 0..batch * heads * queries {
            let logits = self.logits(row);
            let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = logits.into_iter().map(|x| (x - max).exp()).collect();
            let (sum, first) = (weights.iter().sum::<f64>(), row / queries * keys);
            lse.push(if keys == 0 { max } else { max + sum.ln() });
            o.extend((0..values).map(|d| {
                let all: f64 =
                    weights.iter().enumerate().map(|(key, w)| w * self.v.1[(first + key) * values + d]).sum();
                if keys == 0 { 0.0 } else { all / sum }
            }));
        }
        [o, lse]
    }
}

fn prefill(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[batch, heads, queries, keys, width, values] = extents else { panic!() };
    let all = Prefill::new(on, [batch, heads, queries, keys, width, values]);
    let (mut o, mut lse) = (on.output(batch * heads * queries * values), on.output(batch * heads * queries));
    let mut view = lse.view_mut([batch, heads, queries]);
    Attention::new().scale(SCALE).run(
        &on.device,
        Qkv {
            q: all.q.0.view([batch, heads, queries, width]),
            k: all.k.0.view([batch, heads, keys, width]),
            v: all.v.0.view([batch, heads, keys, values]),
        },
        &mut o.view_mut([batch, heads, queries, values]),
        // The call rejects values without elements if logarithms are requested.
        Some(&mut view).filter(|_| values > 0),
    )?;
    let [of_o, of_lse] = all.reference();
    let mut written = vec![Written::new("o", o.download(), of_o)];
    if values > 0 {
        written.push(Written::new("lse", lse.download(), of_lse));
    }
    Ok(written)
}

/// Computes the gradients for a dO of 1 in all elements, by their definitions.
fn backward(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[batch, heads, queries, keys, width, values] = extents else { panic!() };
    let all = Prefill::new(on, [batch, heads, queries, keys, width, values]);
    let [reference_o, reference_lse] = all.reference();
    let rows = batch * heads * queries;
    let (o, lse): (Vec<f32>, Vec<f32>) =
        (reference_o.iter().map(|x| *x as f32).collect(), reference_lse.iter().map(|x| *x as f32).collect());
    let (o, lse, d_o) = (on.array(&o), on.array(&lse), on.array(&vec![1f32; rows * values]));
    let of_keys = batch * heads * keys;
    let (mut d_q, mut d_k, mut d_v) =
        (on.output(rows * width), on.output(of_keys * width), on.output(of_keys * values));
    let (of_q, of_o, of_v) =
        ([batch, heads, queries, width], [batch, heads, queries, values], [batch, heads, keys, values]);
    Attention::new().scale(SCALE).backward(
        &on.device,
        Qkv { q: all.q.0.view(of_q), k: all.k.0.view([batch, heads, keys, width]), v: all.v.0.view(of_v) },
        [&o.view(of_o), &d_o.view(of_o)],
        &lse.view([batch, heads, queries]),
        Gradients { d_q: d_q.view_mut(of_q), d_k: d_k.view_mut([batch, heads, keys, width]), d_v: d_v.view_mut(of_v) },
    )?;
    let [mut right_q, mut right_k, mut right_v] =
        [rows * width, of_keys * width, of_keys * values].map(|n| vec![0f64; n]);
    for row in 0..rows {
        let first = row / queries * keys;
        let delta: f64 = reference_o[row * values..][..values].iter().sum();
        for (key, logit) in all.logits(row).into_iter().enumerate() {
            let (p, key) = ((logit - reference_lse[row]).exp(), first + key);
            let d_p: f64 = all.v.1[key * values..][..values].iter().sum();
            let d_s = p * (d_p - delta) * f64::from(SCALE);
            right_v[key * values..][..values].iter_mut().for_each(|x| *x += p);
            for d in 0..width {
                right_q[row * width + d] += d_s * all.k.1[key * width + d];
                right_k[key * width + d] += d_s * all.q.1[row * width + d];
            }
        }
    }
    Ok(vec![
        Written::new("d_q", d_q.download(), right_q),
        Written::new("d_k", d_k.download(), right_k),
        Written::new("d_v", d_v.download(), right_v),
    ])
}

fn scores(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[batch, heads, queries, keys, width] = extents else { panic!() };
    let all = Prefill::new(on, [batch, heads, queries, keys, width, 0]);
    let mut s = on.output(batch * heads * queries * keys);
    Attention::new().scale(SCALE).scores(
        &on.device,
        &all.q.0.view([batch, heads, queries, width]),
        &all.k.0.view([batch, heads, keys, width]),
        &mut s.view_mut([batch, heads, queries, keys]),
    )?;
    let reference = (0..batch * heads * queries).flat_map(|row| all.logits(row)).collect();
    Ok(vec![Written::new("s", s.download(), reference)])
}

/// Checks padded sequences whose rows are all valid, and their gradients.
fn padded(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[sequences, heads, queries, keys] = extents else { panic!() };
    let all = Prefill::new(on, [sequences, heads, queries, keys, 1, 1]);
    let lists = [queries, keys].map(|n| on.array(&vec![n as u32; sequences]));
    let padded = Layout::Padded { queries: lists[0].view([sequences]), keys: lists[1].view([sequences]) };
    let (of_q, of_k) = ([sequences, heads, queries, 1], [sequences, heads, keys, 1]);
    let qkv = Qkv { q: all.q.0.view(of_q), k: all.k.0.view(of_k), v: all.v.0.view(of_k) };
    let (mut o, mut lse) = (on.output(sequences * heads * queries), on.output(sequences * heads * queries));
    let attention = Attention::new().scale(SCALE).layout(padded);
    let mut of_lse = lse.view_mut([sequences, heads, queries]);
    attention.run(&on.device, qkv, &mut o.view_mut(of_q), Some(&mut of_lse))?;
    let [mut d_q, mut d_k, mut d_v] = [queries, keys, keys].map(|n| on.output(sequences * heads * n));
    let gradients = Gradients { d_q: d_q.view_mut(of_q), d_k: d_k.view_mut(of_k), d_v: d_v.view_mut(of_k) };
    let (of_o, of_lse) = (o.view(of_q), lse.view([sequences, heads, queries]));
    attention.backward(&on.device, qkv, [&of_o, &of_o], &of_lse, gradients)?;
    let [reference, _] = all.reference();
    let d_v = d_v.download();
    assert!(d_v.iter().all(|x| x.is_finite()), "the gradient of v");
    Ok(vec![Written::new("o", o.download(), reference)])
}

/// Checks packed sequences with equal numbers of queries and keys.
fn packed(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[sequences, heads, queries, keys] = extents else { panic!() };
    // For one head, the arrays of a batch and of packed sequences are the same. Several heads are
    // tested with one sequence.
    let all = Prefill::new(on, [sequences, heads, queries, keys, 1, 1]);
    assert!(sequences <= 1 || heads <= 1);
    let begins = |each: usize| (0..=sequences).map(|i| (i * each) as u32).collect::<Vec<_>>();
    let lists = [queries, keys].map(|n| on.array(&begins(n)));
    let packed = Layout::Packed {
        queries: lists[0].view([sequences + 1]),
        keys: lists[1].view([sequences + 1]),
        longest: [queries, keys],
    };
    let (of_q, of_k) = ([1, heads, sequences * queries, 1], [1, heads, sequences * keys, 1]);
    let qkv = Qkv { q: all.q.0.view(of_q), k: all.k.0.view(of_k), v: all.v.0.view(of_k) };
    let (mut o, mut lse) = (on.output(sequences * heads * queries), on.output(sequences * heads * queries));
    let attention = Attention::new().scale(SCALE).layout(packed);
    let of_lse = [1, heads, sequences * queries];
    attention.run(&on.device, qkv, &mut o.view_mut(of_q), Some(&mut lse.view_mut(of_lse)))?;
    let [mut d_q, mut d_k, mut d_v] = [queries, keys, keys].map(|n| on.output(sequences * heads * n));
    let gradients = Gradients { d_q: d_q.view_mut(of_q), d_k: d_k.view_mut(of_k), d_v: d_v.view_mut(of_k) };
    let (of_o, of_lse) = (o.view(of_q), lse.view(of_lse));
    attention.backward(&on.device, qkv, [&of_o, &of_o], &of_lse, gradients)?;
    assert!(d_v.download().iter().all(|x| x.is_finite()), "the gradient of v");
    let [reference, _] = all.reference();
    Ok(vec![Written::new("o", o.download(), reference)])
}

/// Checks a mask that masks no keys.
fn sparse(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[batch, heads, queries, keys] = extents else { panic!() };
    let all = Prefill::new(on, [batch, heads, queries, keys, 1, 1]);
    let mask = BlockMask::new(BlockSize::Small, heads, [queries, keys], |_, _, _| true).upload(&on.device)?;
    let (of_q, of_k) = ([batch, heads, queries, 1], [batch, heads, keys, 1]);
    let qkv = Qkv { q: all.q.0.view(of_q), k: all.k.0.view(of_k), v: all.v.0.view(of_k) };
    let (mut o, mut lse) = (on.output(batch * heads * queries), on.output(batch * heads * queries));
    let attention = Attention::new().scale(SCALE).mask(&mask);
    let mut of_lse = lse.view_mut([batch, heads, queries]);
    attention.run(&on.device, qkv, &mut o.view_mut(of_q), Some(&mut of_lse))?;
    let [mut d_q, mut d_k, mut d_v] = [queries, keys, keys].map(|n| on.output(batch * heads * n));
    let gradients = Gradients { d_q: d_q.view_mut(of_q), d_k: d_k.view_mut(of_k), d_v: d_v.view_mut(of_k) };
    let (of_o, of_lse) = (o.view(of_q), lse.view([batch, heads, queries]));
    attention.backward(&on.device, qkv, [&of_o, &of_o], &of_lse, gradients)?;
    assert!(d_v.download().iter().all(|x| x.is_finite()), "the gradient of v");
    let [reference, _] = all.reference();
    Ok(vec![Written::new("o", o.download(), reference)])
}

/// Number of elements of a head in a decoding step.
const WIDTH: usize = 8;

/// Returns arrays that begin at multiples of 16 bytes, as a step's cache requires.
fn aligned(on: &On) -> On {
    On { device: on.device.clone(), before: 4 * on.before }
}

/// Runs attention of many queries over a cache, with a page for each sequence if it is `paged`.
fn cached(on: &On, extents: &[usize], is_paged: bool) -> Result<Vec<Written>, Error> {
    let &[sequences, heads, queries, keys] = extents else { panic!() };
    let on = aligned(on);
    let all = Prefill::new(&on, [sequences, heads, queries, keys, WIDTH, WIDTH]);
    let table = on.array(&(0..sequences as u32).collect::<Vec<_>>());
    let (of_q, of_k) = ([sequences, heads, queries, WIDTH], [sequences, heads, keys, WIDTH]);
    let mut o = on.output(sequences * heads * queries * WIDTH);
    let mut lse = on.output(sequences * heads * queries);
    let cache = KvCache::new(all.k.0.view(of_k), all.v.0.view(of_k));
    let cache = if is_paged { cache.paged(table.view([sequences, 1])) } else { cache };
    let mut of_lse = lse.view_mut([sequences, heads, queries]);
    let call = Attention::new().scale(SCALE);
    call.run_cached(&on.device, &all.q.0.view(of_q), cache, &mut o.view_mut(of_q), Some(&mut of_lse))?;
    let [of_o, of_lse] = all.reference();
    Ok(vec![Written::new("o", o.download(), of_o), Written::new("lse", lse.download(), of_lse)])
}

fn prefill_cached(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    cached(on, extents, false)
}

fn prefill_paged(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    cached(on, extents, true)
}

fn step(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[sequences, heads, keys] = extents else { panic!() };
    let on = aligned(on);
    let all = Prefill::new(&on, [sequences, heads, 1, keys, WIDTH, WIDTH]);
    let lengths = on.array(&vec![keys as u32; sequences]);
    let (of_q, of_k) = ([sequences, heads, WIDTH], [sequences, heads, keys, WIDTH]);
    let mut o = on.output(sequences * heads * WIDTH);
    let mut scratch = Scratch::new(&on.device, of_q, heads, keys)?;
    Decode::new().scale(SCALE).run(
        &on.device,
        &all.q.0.view(of_q),
        KvCache::new(all.k.0.view(of_k), all.v.0.view(of_k)),
        &lengths.view([sequences]),
        &mut o.view_mut(of_q),
        &mut scratch,
    )?;
    let [reference, _] = all.reference();
    Ok(vec![Written::new("o", o.download(), reference)])
}

/// Checks a cache with one page per sequence, which holds all its keys.
fn step_paged(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[sequences, heads, keys] = extents else { panic!() };
    let on = aligned(on);
    let all = Prefill::new(&on, [sequences, heads, 1, keys, WIDTH, WIDTH]);
    let (lengths, table) = (on.array(&vec![keys as u32; sequences]), (0..sequences as u32).collect::<Vec<_>>());
    let table = on.array(&table);
    let (of_q, of_k) = ([sequences, heads, WIDTH], [sequences, heads, keys, WIDTH]);
    let mut o = on.output(sequences * heads * WIDTH);
    let mut scratch = Scratch::with_splits(&on.device, of_q, 2)?;
    Decode::new().scale(SCALE).run(
        &on.device,
        &all.q.0.view(of_q),
        KvCache::new(all.k.0.view(of_k), all.v.0.view(of_k)).paged(table.view([sequences, 1])),
        &lengths.view([sequences]),
        &mut o.view_mut(of_q),
        &mut scratch,
    )?;
    let [reference, _] = all.reference();
    Ok(vec![Written::new("o", o.download(), reference)])
}

/// Checks a cache of bytes with scales of 1.
fn step_scaled(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[sequences, heads, keys] = extents else { panic!() };
    let on = On { device: on.device.clone(), before: 16 * on.before };
    let all = Prefill::new(&on, [sequences, heads, 1, keys, WIDTH, WIDTH]);
    let bytes = |x: &[f64]| on.array(&x.iter().map(|x| *x as i8).collect::<Vec<_>>());
    let (k, v, ones) = (bytes(&all.k.1), bytes(&all.v.1), on.array(&vec![1f32; sequences * heads * keys]));
    let lengths = on.array(&vec![keys as u32; sequences]);
    let (of_q, of_k) = ([sequences, heads, WIDTH], [sequences, heads, keys, WIDTH]);
    let ones = ones.view([sequences, heads, keys]);
    let mut o = on.output(sequences * heads * WIDTH);
    let mut scratch = Scratch::new(&on.device, of_q, heads, keys)?;
    Decode::new().scale(SCALE).run(
        &on.device,
        &all.q.0.view(of_q),
        KvCache::new(k.view(of_k), v.view(of_k)).scaled([ones, ones]),
        &lengths.view([sequences]),
        &mut o.view_mut(of_q),
        &mut scratch,
    )?;
    let [reference, _] = all.reference();
    Ok(vec![Written::new("o", o.download(), reference)])
}

/// Appends to the last row of the cache, with frequencies of 0, which do not rotate.
fn append(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[sequences, heads, room, width] = extents else { panic!() };
    let n = sequences * heads * width;
    let ((q, of_q), (k, of_k), (v, of_v)) = (on.numbers(n, 1), on.numbers(n, 2), on.numbers(n, 3));
    let (lengths, frequencies) =
        (on.array(&vec![room.saturating_sub(1) as u32; sequences]), on.array(&vec![0f32; width / 2]));
    let (mut rotated, mut keys, mut values) =
        (on.output(n), on.array(&vec![0f32; n * room]), on.array(&vec![0f32; n * room]));
    let (new, cache) = ([sequences, heads, width], [sequences, heads, room, width]);
    Append::new(PairLayout::Halves, &frequencies.view([width / 2])).run(
        &on.device,
        &q.view(new),
        &mut rotated.view_mut(new),
        [&k.view(new), &v.view(new)],
        KvCacheMut::new(keys.view_mut(cache), values.view_mut(cache)),
        &lengths.view([sequences]),
    )?;
    let last = |new: &[f64]| -> Vec<f64> {
        let at = |i: usize| (i / width / room * width + i % width, i / width % room);
        (0..n * room).map(|i| if at(i).1 + 1 == room { new[at(i).0] } else { 0.0 }).collect()
    };
    Ok(vec![
        Written::new("rotated", rotated.download(), of_q),
        Written::new("keys", keys.download(), last(&of_k)),
        Written::new("values", values.download(), last(&of_v)),
    ])
}

/// Appends to a cache with one page per sequence. All elements of a head have one magnitude, which
/// bytes represent exactly.
fn append_scaled_paged(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[sequences, heads, room, width] = extents else { panic!() };
    let (n, rows) = (sequences * heads * width, sequences * heads * room);
    let whole: Vec<f32> = (0..n).map(|i| 127.0 * number(i / width.max(1)).signum()).collect();
    let (q, new) = (on.array(&whole), on.array(&whole));
    let (lengths, frequencies) =
        (on.array(&vec![room.saturating_sub(1) as u32; sequences]), on.array(&vec![0f32; width / 2]));
    let table = on.array(&(0..sequences as u32).collect::<Vec<_>>());
    let mut rotated = on.output(n);
    let [mut keys, mut values] = [(); 2].map(|()| on.array(&vec![0i8; n * room]));
    let [mut of_keys, mut of_values] = [(); 2].map(|()| on.array(&vec![0f32; rows]));
    let (shape, cache, scales) = ([sequences, heads, width], [sequences, heads, room, width], [sequences, heads, room]);
    Append::new(PairLayout::Interleaved, &frequencies.view([width / 2])).run(
        &on.device,
        &q.view(shape),
        &mut rotated.view_mut(shape),
        [&new.view(shape), &new.view(shape)],
        KvCacheMut::new(keys.view_mut(cache), values.view_mut(cache))
            .scaled([of_keys.view_mut(scales), of_values.view_mut(scales)])
            .paged(table.view([sequences, 1])),
        &lengths.view([sequences]),
    )?;
    let last = |i: usize| i % room.max(1) + 1 == room;
    let of_row = |i: usize| if last(i) && width > 0 { 1.0 } else { 0.0 };
    let of_key = |i: usize| if last(i / width) { f64::from(whole[i / width / room * width]) } else { 0.0 };
    Ok(vec![
        Written::new("rotated", rotated.download(), whole.iter().map(|x| f64::from(*x)).collect()),
        Written::new("keys", keys.download(), (0..n * room).map(of_key).collect()),
        Written::new("scales of keys", of_keys.download(), (0..rows).map(of_row).collect()),
    ])
}
