//! Tests of attention with extreme values, and with values that must not be read, against plain
//! Rust in `f64`.

use kernel_dsl::half::{bf16, f16};
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::LaunchStruct;
use kernels_rs::attention::cache::StoredElement;
use kernels_rs::attention::mask::{BlockMask, BlockSize};
use kernels_rs::attention::score::{Score, ScoreBias};
use kernels_rs::attention::{Attention, Decode, Gradients, KvCache, Layout, Qkv, Scratch};
use runtime::Device;
use runtime::testing::{Draw, Extreme, Random};

/// The unit roundoff of `f32`.
const U: f64 = 1.0 / (1u32 << 24) as f64;

/// Returns softmax(logits)·V of one column by the definition, its error bound, and the logarithm of
/// the sum. `off(x, max)` bounds the error of max − x.
fn attended(logits: &[f32], values: &[f64], off: impl Fn(f64, f64) -> f64) -> (f64, f64, f64) {
    let x: Vec<f64> = logits.iter().map(|x| f64::from(*x)).collect();
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if x.iter().any(|x| x.is_nan()) || max == f64::INFINITY {
        return (f64::NAN, 0.0, f64::NAN);
    }
    if max == f64::NEG_INFINITY {
        return (0.0, 0.0, f64::NEG_INFINITY);
    }
    let weights: Vec<f64> = x.iter().map(|x| (x - max).exp()).collect();
    let total: f64 = weights.iter().sum();
    // A weight of 2⁻¹²⁶ or less is 0 in `f32`, so that its product with an infinity is left out.
    let of = |w: &f64, v: &f64| if *w < 2f64.powi(-110) { 0.0 } else { w * v };
    let sum: f64 = weights.iter().zip(values).map(|(w, v)| of(w, v)).sum();
    let each = |((w, v), x): ((&f64, &f64), &f64)| match of(w, &v.abs()) {
        0.0 => 0.0,
        size => size * (off(*x, max) + (3.0 * (max - x).min(200.0) + 60.0) * U),
    };
    let bound: f64 = weights.iter().zip(values).zip(&x).map(each).sum();
    let count = logits.len() as f64;
    // The relative error of the sum of weights is that of its largest weight. A product below 2⁻¹²⁶
    // has an error of 2⁻¹⁵⁰ before the division by the sum.
    (sum / total, 2.0 * bound / total + count * count * 2f64.powi(-149), max + total.ln())
}

/// Compares an element of type `T`.
fn near<T: Float + Draw>(what: &str, got: T, expected: f64, bound: f64) {
    let got = f64::from(got.to_f32());
    // Rounding of the stored type: relative, and the smallest step.
    let (digits, least) = match T::SCALAR {
        kernel_dsl::compiler::Scalar::F16 => (2f64.powi(-11), 2f64.powi(-25)),
        kernel_dsl::compiler::Scalar::Bf16 => (2f64.powi(-8), 2f64.powi(-134)),
        _ => (0.0, 0.0),
    };
    let bound = bound + digits * expected.abs() + least;
    // A value within the error of the largest finite one may become infinite.
    let farthest = T::from_f32((expected + bound.copysign(expected)) as f32).to_f32();
    let same = got == expected
        || got.is_nan() && expected.is_nan()
        || (got - expected).abs() <= bound
        || got == f64::from(farthest);
    assert!(same, "{what}: {got:e}, not {expected:e} within {bound:e}");
}

const KEYS: usize = 70;

/// Checks every extreme value among the keys, with queries of 1 and of the largest value, and among
/// the values. Both access widths, a tile and a decoding step are covered.
fn extremes<T: Float + GenericArgument + Draw + StoredElement>(device: &Device) {
    let mut random = Random::new(31);
    let wide = |x: &[T]| x.iter().map(|x| x.to_f32()).collect::<Vec<f32>>();
    let upload = |x: &[T]| device.upload(x).unwrap();
    for (extreme, of_keys) in Extreme::ALL.into_iter().flat_map(|e| [(e, true), (e, false)]) {
        for (largest, width) in [(false, 1), (false, 8), (true, 8)] {
            if largest && !of_keys || width == 1 && size_of::<T>() < 4 {
                continue;
            }
            let what = format!(
                "{}, {} of {}, {width} wide",
                std::any::type_name::<T>(),
                extreme.name(),
                if of_keys { "keys" } else { "values" }
            );
            // Each product has one term that is not 0.
            let first = |x: &[T]| -> Vec<T> {
                let row = |x: &T| (0..width).map(|d| if d == 0 { *x } else { T::from_f32(0.0) }).collect::<Vec<T>>();
                x.iter().flat_map(row).collect()
            };
            let q = T::from_f32(if largest { <T as Draw>::LARGEST_FINITE as f32 } else { 1.0 });
            let (ordinary, strange): (Vec<T>, Vec<T>) = (random.values(KEYS), extreme.fill(&mut random, KEYS));
            let (k, v) = if of_keys { (strange, ordinary) } else { (ordinary, strange) };
            let logits: Vec<f32> = wide(&k).iter().map(|k| q.to_f32() * k).collect();
            let values: Vec<f64> = v.iter().map(|v| f64::from(v.to_f32())).collect();
            let (on_q, on_k) = (upload(&first(&[q])), upload(&first(&k)));
            let rows: Vec<T> = v.iter().flat_map(|v| vec![*v; 8]).collect();
            let on_v = upload(&rows);
            let mut o = upload(&[T::from_f32(3.0); 8]);
            let mut lse = device.zeros::<f32>(1).unwrap();
            let of_k = [1, 1, KEYS, width];
            Attention::new()
                .scale(1.0)
                .run(
                    device,
                    Qkv {
                        q: on_q.view([1, 1, 1, width]).unwrap(),
                        k: on_k.view(of_k).unwrap(),
                        v: on_v.view([1, 1, KEYS, 8]).unwrap(),
                    },
                    &mut o.view_mut([1, 1, 1, 8]).unwrap(),
                    Some(&mut lse.view_mut([1, 1, 1]).unwrap()),
                )
                .unwrap();
            let (expected, bound, log) = attended(&logits, &values, |_, _| 0.0);
            for got in o.download().unwrap() {
                near(&what, got, expected, bound);
            }
            near(&format!("the logarithm of {what}"), lse.download().unwrap()[0], log, 1e-5 + 2.0 * U * log.abs());

            // The rounded scale multiplies the query before the product.
            let fits = f64::from(q.to_f32()) * std::f64::consts::LOG2_E <= f64::from(f32::MAX);
            if width != 8 || !fits {
                continue;
            }
            let mut scratch = Scratch::with_splits(device, [1, 1, 8], 2).unwrap();
            let count = upload_count(device, KEYS as u32);
            let cache = [1, 1, KEYS, 8];
            let cached = KvCache::new(on_k.view(cache).unwrap(), on_v.view(cache).unwrap());
            let (of_q, count) = ([1, 1, 8], count.view([1]).unwrap());
            let mut o = upload(&[T::from_f32(3.0); 8]);
            Decode::new()
                .scale(1.0)
                .run(device, &on_q.view(of_q).unwrap(), cached, &count, &mut o.view_mut(of_q).unwrap(), &mut scratch)
                .unwrap();
            // Logits are in units of log₂ e, so that a logit beyond 2¹²⁸ / log₂ e is infinite.
            let logits: Vec<f32> = logits
                .iter()
                .map(|x| if (x * std::f32::consts::LOG2_E).is_infinite() { x * 2.0 } else { *x })
                .collect();
            let off = |x: f64, max: f64| if x == max { 0.0 } else { 8.0 * U * (x.abs() + max.abs()) };
            let (expected, bound, _) = attended(&logits, &values, off);
            for got in o.download().unwrap() {
                near(&format!("a step, {what}"), got, expected, bound);
            }
        }
    }
}

fn upload_count(device: &Device, n: u32) -> runtime::DeviceBuffer<u32> {
    device.upload(&[n]).unwrap()
}

#[test]
fn cpu_extremes_have_documented_results() {
    extremes::<f32>(&Device::cpu());
    extremes::<f16>(&Device::cpu());
    extremes::<bf16>(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_extremes_have_documented_results() {
    let device = Device::cuda(0).unwrap();
    extremes::<f32>(&device);
    extremes::<f16>(&device);
    extremes::<bf16>(&device);
}

/// Checks large logits whose differences are exact, within one part of the keys and across joined
/// parts.
fn large_logits(device: &Device) {
    for (queries, keys) in [(1, 1), (3, 70), (3, 600)] {
        for base in [1e4f32, 1e6, 1e10, 1e38] {
            // The distance is 1/8, or the spacing of `f32` if that is larger.
            let step = (base * f32::EPSILON).max(0.125);
            let x: Vec<f32> = (0..keys).map(|j| base + step * (j * 7 % 16) as f32).collect();
            let v: Vec<f32> = (0..keys).map(|j| (j % 11) as f32 - 3.0).collect();
            let (on_q, on_k, on_v) = (
                device.upload(&vec![1.0f32; queries]).unwrap(),
                device.upload(&x).unwrap(),
                device.upload(&v).unwrap(),
            );
            let (mut o, mut lse) = (device.zeros::<f32>(queries).unwrap(), device.zeros::<f32>(queries).unwrap());
            let (of_q, of_k) = ([1, 1, queries, 1], [1, 1, keys, 1]);
            Attention::new()
                .scale(1.0)
                .run(
                    device,
                    Qkv { q: on_q.view(of_q).unwrap(), k: on_k.view(of_k).unwrap(), v: on_v.view(of_k).unwrap() },
                    &mut o.view_mut(of_q).unwrap(),
                    Some(&mut lse.view_mut([1, 1, queries]).unwrap()),
                )
                .unwrap();
            let values: Vec<f64> = v.iter().map(|v| f64::from(*v)).collect();
            let (expected, bound, log) = attended(&x, &values, |_, _| 0.0);
            for (o, lse) in o.download().unwrap().into_iter().zip(lse.download().unwrap()) {
                near(&format!("{keys} keys from {base}"), o, expected, bound);
                near(&format!("the logarithm of {keys} keys from {base}"), lse, log, 1e-5 + 2.0 * U * log.abs());
            }
        }
    }
}

#[test]
fn cpu_large_logits_have_documented_results() {
    large_logits(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_large_logits_have_documented_results() {
    large_logits(&Device::cuda(0).unwrap());
}

/// Operands and the gradient of O of one head, with the results.
#[derive(Clone)]
struct Head {
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    d_o: Vec<f32>,
    queries: usize,
    keys: usize,
    values: usize,
}

const WIDTH: usize = 8;

impl Head {
    fn new([queries, keys, values]: [usize; 3]) -> Head {
        let mut random = Random::new(41);
        let mut drawn = |n: usize| random.values::<f32>(n);
        Head {
            q: drawn(queries * WIDTH),
            k: drawn(keys * WIDTH),
            v: drawn(keys * values),
            d_o: drawn(queries * values),
            queries,
            keys,
            values,
        }
    }

    /// Returns O and the gradients of Q, K and V, each with the width of its rows.
    fn run<M: Score + LaunchStruct>(&self, device: &Device, attention: Attention<'_, M>) -> [(Vec<f32>, usize); 4] {
        let Head { queries, keys, values, .. } = *self;
        let [q, k, v, d_o] = [&self.q, &self.k, &self.v, &self.d_o].map(|x| device.upload(x).unwrap());
        let (of_q, of_k) = ([1, 1, queries, WIDTH], [1, 1, keys, WIDTH]);
        let (of_v, of_o) = ([1, 1, keys, values], [1, 1, queries, values]);
        let qkv = Qkv { q: q.view(of_q).unwrap(), k: k.view(of_k).unwrap(), v: v.view(of_v).unwrap() };
        let mut o = device.zeros::<f32>(queries * values).unwrap();
        let mut lse = device.upload(&vec![f32::NEG_INFINITY; queries]).unwrap();
        let of_lse = [1, 1, queries];
        let (mut to_o, mut to_lse) = (o.view_mut(of_o).unwrap(), lse.view_mut(of_lse).unwrap());
        attention.run(device, qkv, &mut to_o, Some(&mut to_lse)).unwrap();
        let [mut d_q, mut d_k, mut d_v] =
            [queries * WIDTH, keys * WIDTH, keys * values].map(|n| device.zeros::<f32>(n).unwrap());
        let gradients = Gradients {
            d_q: d_q.view_mut(of_q).unwrap(),
            d_k: d_k.view_mut(of_k).unwrap(),
            d_v: d_v.view_mut(of_v).unwrap(),
        };
        let outputs = [&o.view(of_o).unwrap(), &d_o.view(of_o).unwrap()];
        attention.backward(device, qkv, outputs, &lse.view(of_lse).unwrap(), gradients).unwrap();
        [(o, values), (d_q, WIDTH), (d_k, WIDTH), (d_v, values)].map(|(x, n)| (x.download().unwrap(), n))
    }

    /// Runs with zeros and with NaNs in some rows of queries and keys. Results that depend on none
    /// of these rows must be equal within rounding, because NaNs cause a second pass that adds in
    /// another order. All others must be NaN.
    fn compare<M: Score + LaunchStruct>(
        mut self,
        device: &Device,
        what: &str,
        [queries, keys]: [&[usize]; 2],
        seen: impl Fn(usize, usize) -> bool,
        attention: Attention<'_, M>,
    ) {
        let mut fill = |x: f32| {
            let rows = [
                (&mut self.q, queries, WIDTH),
                (&mut self.d_o, queries, self.values),
                (&mut self.k, keys, WIDTH),
                (&mut self.v, keys, self.values),
            ];
            for (of, rows, n) in rows {
                rows.iter().for_each(|row| of[row * n..(row + 1) * n].fill(x));
            }
        };
        fill(0.0);
        let without = self.run(device, attention);
        let mut fill = |x: f32| {
            let rows = [
                (&mut self.q, queries, WIDTH),
                (&mut self.d_o, queries, self.values),
                (&mut self.k, keys, WIDTH),
                (&mut self.v, keys, self.values),
            ];
            for (of, rows, n) in rows {
                rows.iter().for_each(|row| of[row * n..(row + 1) * n].fill(x));
            }
        };
        fill(f32::NAN);
        let with = self.run(device, attention);
        // Queries that see a key, and among them the queries that are a NaN or see one.
        let sees = |i: usize| (0..self.keys).any(|j| seen(i, j));
        let strange = |i: usize| sees(i) && queries.contains(&i) || keys.iter().any(|j| seen(i, *j));
        let of_key = |j: usize| (0..self.queries).any(|i| seen(i, j) && strange(i));
        for (n, ((without, width), (with, _))) in without.iter().zip(&with).enumerate() {
            for (i, (x, y)) in without.iter().zip(with).enumerate() {
                let row = i / width;
                let right = if n < 2 && strange(row) || n >= 2 && of_key(row) {
                    y.is_nan()
                } else {
                    (x - y).abs() <= 1e-5 * x.abs().max(1.0)
                };
                assert!(right, "{what}, output {n}, row {row}: {y} with NaNs where nothing is seen, {x} with zeros");
            }
        }
    }
}

/// Checks that a query whose logits are all −∞ has no effect on gradients, whatever its values and
/// dO are. The query's own gradient is 0.
fn without_weights(device: &Device) {
    // Cases for both access widths, and for more rows than a tile.
    for shape @ [queries, keys, values] in [[5, 70, 3], [70, 100, 8]] {
        for (q, d_o) in [(-1e30, f32::INFINITY), (-1e30, f32::NAN), (f32::NEG_INFINITY, 1.0)] {
            let mut head = Head::new(shape);
            // The first elements are 0 in the other queries, so that their logits are finite.
            head.q.iter_mut().step_by(WIDTH).for_each(|x| *x = 0.0);
            head.k.iter_mut().step_by(WIDTH).for_each(|x| *x = 1e30);
            head.q[2 * WIDTH..3 * WIDTH].fill(0.0);
            head.d_o[2 * values..3 * values].fill(0.0);
            let mut other = head.clone();
            other.q[2 * WIDTH] = q;
            other.d_o[2 * values..3 * values].fill(d_o);
            // With a dO of 0 the query has no effect on the gradients of keys and values.
            let [_, _, (d_k, _), (d_v, _)] = head.run(device, Attention::new().scale(1.0));
            let [(o, _), (d_q, _), (of_k, _), (of_v, _)] = other.run(device, Attention::new().scale(1.0));
            let what = format!("{queries} queries, {keys} keys, q of {q}, dO of {d_o}");
            assert!(o[2 * values..3 * values].iter().all(|x| *x == 0.0), "{what}: o");
            assert!(d_q[2 * WIDTH..3 * WIDTH].iter().all(|x| *x == 0.0), "{what}: d_q");
            for (name, expected, got) in [("d_k", d_k, of_k), ("d_v", d_v, of_v)] {
                for (x, y) in expected.iter().zip(got) {
                    assert!((x - y).abs() <= 1e-5 * x.abs().max(1.0), "{what}: {name} has {y}, not {x}");
                }
            }
        }
    }
}

#[test]
fn cpu_queries_without_weights_have_documented_results() {
    without_weights(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_queries_without_weights_have_documented_results() {
    without_weights(&Device::cuda(0).unwrap());
}

/// Checks that masked keys and values have no effect, in every variant of the call and of its
/// gradients.
fn unseen(device: &Device) {
    // Cases for both access widths, both steps of keys, both tile heights, and split keys.
    for shape @ [queries, keys, _] in [[3, 70, 3], [5, 103, 128], [70, 100, 40], [2, 600, 8]] {
        for (left, right) in [(1 << 30, 0), (2, 1)] {
            let attention = Attention::new().band(left, right);
            // With a causal mask, only the last query sees the last key.
            let strange = if right == 0 { vec![keys - 1] } else { vec![0, keys - 3] };
            let seen = |i: usize, j: usize| {
                let at = i + keys - queries;
                j + left >= at && j <= at + right
            };
            Head::new(shape).compare(
                device,
                &format!("a band of {left} and {right}, {shape:?}"),
                [&[queries - 1], &strange],
                seen,
                attention,
            );
        }
    }

    let (lq, lk) = (4, 66);
    let counts = [lq, lk].map(|n| upload_count(device, n as u32));
    let [lengths_q, lengths_k] = [counts[0].view([1]).unwrap(), counts[1].view([1]).unwrap()];
    Head::new([6, 70, 12]).compare(
        device,
        "padded",
        [&[4, 5], &[66, 67, 69]],
        |i, j| i < lq && j < lk,
        Attention::new().layout(Layout::Padded { queries: lengths_q, keys: lengths_k }),
    );

    let starts = [[1u32, 3, 5], [2u32, 40, 69]].map(|n| device.upload(&n).unwrap());
    let [starts_q, starts_k] = [starts[0].view([3]).unwrap(), starts[1].view([3]).unwrap()];
    Head::new([6, 70, 12]).compare(
        device,
        "packed",
        [&[0, 5], &[0, 1, 50, 69]],
        |i, j| (1..3).contains(&i) && (2..40).contains(&j) || (3..5).contains(&i) && (40..69).contains(&j),
        Attention::new().layout(Layout::Packed { queries: starts_q, keys: starts_k, longest: [2, 38] }),
    );

    let mask = BlockMask::new(BlockSize::Small, 1, [130, 130], |_, row, col| row >= col && (row, col) != (2, 0));
    let on_device = mask.upload(device).unwrap();
    Head::new([130, 130, 8]).compare(
        device,
        "blocks",
        [&[70], &[0, 100]],
        |i, j| i >= j && (i / 64, j / 64) != (2, 0),
        Attention::new().causal().mask(&on_device),
    );

    // A bias that masks some keys, and all keys of the second query.
    for [queries, keys, values] in [[3, 70, 8], [3, 70, 128]] {
        let seen = move |i: usize, j: usize| i != 1 && !(i + j).is_multiple_of(3);
        let bias: Vec<f32> =
            (0..queries * keys).map(|n| if seen(n / keys, n % keys) { 0.25 } else { f32::NEG_INFINITY }).collect();
        let bias = device.upload(&bias).unwrap();
        // SAFETY: the buffer lives until the end of the block, and nothing writes to it.
        let bias = ScoreBias { bias: unsafe { bias.view([1, 1, queries, keys]).unwrap().detached() } };
        Head::new([queries, keys, values]).compare(
            device,
            "masked by a bias",
            [&[1], &[3, 66]],
            seen,
            // SAFETY: a bias for each query and key.
            unsafe { Attention::new().score(bias) },
        );
    }
}

#[test]
fn cpu_unseen_keys_have_no_effect() {
    unseen(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_unseen_keys_have_no_effect() {
    unseen(&Device::cuda(0).unwrap());
}

/// Checks that a cache's contents beyond its length have no effect: in rows, in pages, and in the
/// scales of bytes.
fn unread(device: &Device) {
    let (room, page, length) = (48, 16, 19);
    let mut random = Random::new(51);
    let drawn: [Vec<f32>; 3] = [WIDTH, room * WIDTH, room * WIDTH].map(|n| random.values(n));
    let count = upload_count(device, length as u32);
    let count = count.view([1]).unwrap();
    let of_q = [1, 1, WIDTH];
    let run = |rest: f32| {
        let [q, mut k, mut v] = drawn.clone();
        [&mut k, &mut v].into_iter().for_each(|x| x[length * WIDTH..].fill(rest));
        let bytes: Vec<i8> = k.iter().map(|x| (x * 20.0) as i8).collect();
        let scales: Vec<f32> = (0..room).map(|j| if j < length { 0.05 } else { rest }).collect();
        let [q, k, v, scales] = [&q, &k, &v, &scales].map(|x| device.upload(x).unwrap());
        let (bytes, table) = (device.upload(&bytes).unwrap(), device.upload(&[0u32, 1, u32::MAX]).unwrap());
        let mut scratch = Scratch::with_splits(device, of_q, 3).unwrap();
        let q = q.view(of_q).unwrap();
        let mut all = Vec::new();
        let rows = [1, 1, room, WIDTH];
        let mut o = device.zeros::<f32>(WIDTH).unwrap();
        let step = Decode::new();
        let cache = KvCache::new(k.view(rows).unwrap(), v.view(rows).unwrap());
        step.run(device, &q, cache, &count, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
        all.extend(o.download().unwrap());
        let pages = [3, 1, page, WIDTH];
        let cache = KvCache::new(k.view(pages).unwrap(), v.view(pages).unwrap()).paged(table.view([1, 3]).unwrap());
        step.run(device, &q, cache, &count, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
        all.extend(o.download().unwrap());
        let (bytes, scales) = (bytes.view(rows).unwrap(), scales.view([1, 1, room]).unwrap());
        let cache = KvCache::new(bytes, bytes).scaled([scales, scales]);
        step.run(device, &q, cache, &count, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
        all.extend(o.download().unwrap());
        all.into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    assert_eq!(run(0.0), run(f32::NAN));
    assert_eq!(run(0.0), run(f32::INFINITY));
}

/// Checks that the keys and values of later tokens have no effect on a token, whatever they are.
fn later_tokens(device: &Device) {
    const TOKENS: usize = 3;
    let (room, length) = (48, 37);
    let mut random = Random::new(53);
    let drawn: [Vec<f32>; 3] = [TOKENS * WIDTH, room * WIDTH, room * WIDTH].map(|n| random.values(n));
    let count = upload_count(device, length as u32);
    let of_q = [TOKENS, 1, WIDTH];
    let run = |rest: f32| {
        let [q, mut k, mut v] = drawn.clone();
        [&mut k, &mut v].into_iter().for_each(|x| x[(length - 1) * WIDTH..].fill(rest));
        let [q, k, v] = [&q, &k, &v].map(|x| device.upload(x).unwrap());
        let mut o = device.zeros::<f32>(TOKENS * WIDTH).unwrap();
        let rows = [1, 1, room, WIDTH];
        let cache = KvCache::new(k.view(rows).unwrap(), v.view(rows).unwrap());
        let mut scratch = Scratch::with_splits(device, of_q, 2).unwrap();
        let (q, count) = (q.view(of_q).unwrap(), count.view([1]).unwrap());
        let step = Decode::new().tokens(TOKENS);
        step.run(device, &q, cache, &count, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
        o.download().unwrap()
    };
    let [of_zero, of_nan, of_infinity] = [0.0, f32::NAN, f32::INFINITY].map(run);
    let earlier = (TOKENS - 1) * WIDTH;
    assert_eq!(of_zero[..earlier], of_nan[..earlier]);
    assert_eq!(of_zero[..earlier], of_infinity[..earlier]);
    assert!(of_nan[earlier..].iter().all(|x| x.is_nan()), "{of_nan:?}");
}

#[test]
fn cpu_later_tokens_have_no_effect() {
    later_tokens(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_later_tokens_have_no_effect() {
    later_tokens(&Device::cuda(0).unwrap());
}

#[test]
fn cpu_unread_pages_have_no_effect() {
    unread(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_unread_pages_have_no_effect() {
    unread(&Device::cuda(0).unwrap());
}

/// Checks that a query with a NaN or an infinity makes its row NaN over a cache of integers, whose
/// kernel rounds queries to integers. The other head of the group is finite. A sequence without
/// keys gives zeros, whatever its query is.
fn queries_not_finite<T: Float + GenericArgument, K: StoredElement + GenericArgument>(
    device: &Device,
    stored: impl Fn(f32) -> K,
    width: usize,
) {
    let (room, lengths) = (40, [37u32, 0]);
    let elements: Vec<K> = (0..2 * room * width / K::NUMBERS).map(|i| stored((i % 7) as f32 - 3.0)).collect();
    let elements = device.upload(&elements).unwrap();
    let rows = elements.view([2, 1, room, width / K::NUMBERS]).unwrap();
    let blocks = width.div_ceil(32);
    let of_blocks = device.upload(&vec![f16::from_f32(0.125); 2 * room * blocks]).unwrap();
    let of_rows = device.upload(&vec![0.125f32; 2 * room]).unwrap();
    let cache = KvCache::new(rows, rows);
    let of_blocks = of_blocks.view([2, 1, room, blocks]).unwrap();
    let mut caches = vec![cache.blocks([of_blocks; 2])];
    if K::NUMBERS == 1 {
        let of_rows = of_rows.view([2, 1, room]).unwrap();
        caches.push(cache.scaled([of_rows; 2]));
    }
    let lengths = device.upload(&lengths).unwrap();
    let of_q = [2, 2, width];
    for cache in caches {
        for (at, odd) in [(0, f32::NAN), (width - 1, f32::INFINITY), (width / 2, f32::NEG_INFINITY)] {
            let mut q = vec![T::from_f32(0.5); 4 * width];
            // Head 1 of each sequence.
            [q[width + at], q[3 * width + at]] = [T::from_f32(odd); 2];
            let (q, mut o) = (device.upload(&q).unwrap(), device.zeros::<T>(4 * width).unwrap());
            let mut scratch = Scratch::with_splits(device, of_q, 2).unwrap();
            let (q, lengths) = (q.view(of_q).unwrap(), lengths.view([2]).unwrap());
            Decode::new().run(device, &q, cache, &lengths, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
            let o: Vec<f32> = o.download().unwrap().into_iter().map(T::to_f32).collect();
            let [finite, row, empty] = [&o[..width], &o[width..2 * width], &o[2 * width..]];
            assert!(finite.iter().all(|x| x.is_finite()), "{width}, {odd} at {at}: {finite:?}");
            assert!(row.iter().all(|x| x.is_nan()), "{width}, {odd} at {at}: {row:?}");
            assert!(empty.iter().all(|x| *x == 0.0), "{width}, {odd} at {at}: {empty:?}");
        }
    }
}

/// Runs [`queries_not_finite`] with lanes of 16 and of 8 numbers.
fn all_queries_not_finite(device: &Device) {
    let word = |x: f32| (0..8).fold(0, |word, i| word | (x as i32 as u32 & 15) << (4 * i));
    for width in [64, 40] {
        queries_not_finite::<f32, i8>(device, |x| x as i8, width);
        queries_not_finite::<f16, i8>(device, |x| x as i8, width);
        queries_not_finite::<f32, u32>(device, word, width);
    }
}

#[test]
fn cpu_queries_not_finite_have_documented_results() {
    all_queries_not_finite(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_queries_not_finite_have_documented_results() {
    all_queries_not_finite(&Device::cuda(0).unwrap());
}

/// Checks that the step limit applies to each block: a launch of more blocks ends, and an endless
/// loop is stopped at the device's limit.
#[test]
fn many_heads_end() {
    let device = Device::cpu();
    let run = |heads: usize| {
        let (x, mut o) = (device.upload(&vec![1.0f32; heads]).unwrap(), device.zeros::<f32>(heads).unwrap());
        let x = x.view([1, heads, 1, 1]).unwrap();
        Attention::new().run(&device, Qkv { q: x, k: x, v: x }, &mut o.view_mut([1, heads, 1, 1]).unwrap(), None)
    };
    device.set_instruction_limit(Some(1 << 18));
    run(1).unwrap();
    run(20).unwrap();
    device.set_instruction_limit(Some(100));
    let error = run(1).unwrap_err().to_string();
    assert!(error.contains("the block reached its limit of 100 warp instructions"), "{error}");
    assert!(error.contains("`Device::set_instruction_limit`"), "{error}");
    device.set_instruction_limit(None);
    run(1).unwrap();
}
