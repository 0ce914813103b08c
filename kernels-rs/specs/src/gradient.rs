//! Specs of `attention_delta`, `attention_gradient_q`, `attention_gradient_kv` and
//! `attention_scores`.

use super::attention::{self, has};
use super::stored::{at_rest, drawn_but, extreme, numbers, stored};
use super::{TINY, U, gamma};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::attention::backward::{attention_delta, attention_gradient_kv, attention_gradient_q};
use kernels_rs::attention::debug::attention_scores;
use kernels_rs::attention::score::Plain;
use kernels_rs::attention::span::{Dense, KEYS, Listed, Packed, Whole};
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(attention_delta<f32>, delta_cases, delta_reference);
runtime::register!(attention_gradient_q<f32, Plain, Dense, Whole, 128, 4, 2, 1, 2, 2>, q_cases, q_reference);
runtime::register!(attention_gradient_kv<f32, Plain, Dense, Whole, 128, 4, 2, 1, 2, 2>, kv_cases, kv_reference);

runtime::register!(attention_scores<f32, Plain, 4>, scores_cases, scores_reference);

fn delta_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let case = |shape: [usize; 4]| {
        let [batch, heads, rows, width] = shape;
        let mut matrices = || attention::heads(random, stored(instance), shape, 1);
        let delta = Input::view(&vec![1.0f32; batch * heads * rows], [batch, heads, rows]);
        Case::new(format!("{batch} of {heads} heads of {rows} × {width}"), [matrices(), matrices(), delta])
    };
    let mut all: Vec<Case> = [[1, 1, 1, 1], [3, 2, 5, 33], [1, 1, 4, 64], [2, 1, 3, 0]].map(case).into();
    // A row of each extreme in O.
    let shape @ [_, _, rows, width] = [1, 1, Extreme::ALL.len(), 33];
    let o = extreme(random, &Extreme::ALL, stored(instance), 2, shape, [rows * width, rows * width, width, 1]);
    let d_o = attention::heads(random, stored(instance), shape, 1);
    all.push(Case::new("extreme rows", [o, d_o, Input::view(&vec![1.0f32; rows], [1, 1, rows])]));
    all
}

/// Computes δ and its error bounds: a fused sum of products, and 5 additions among lanes. If the
/// magnitudes of finite products overflow together, any result is correct.
fn delta_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (o, d_o) = (inputs[0].values(), inputs[1].values());
    let (width, rows) = (inputs[0].extents()[3], inputs[2].value_count());
    let one = |row: usize| {
        let products = (row * width..(row + 1) * width).map(|i| o[i] * d_o[i]);
        let (sum, size) = products.fold((0.0, 0.0), |(sum, size): (f64, f64), x| (sum + x, size + x.abs()));
        (sum, if overflows(size) { f64::INFINITY } else { 1.001 * gamma(width.div_ceil(32) + 5) * size + 8.0 * TINY })
    };
    let (values, bounds) = (0..rows).map(one).unzip();
    vec![Expected::new(2, values, Bound::Each(bounds))]
}

/// Returns whether sums of finite terms with these magnitudes may overflow in some order.
fn overflows(size: f64) -> bool {
    size.is_finite() && size > f64::from(f32::MAX) / 4.0
}

const UNBOUNDED: usize = 1 << 30;

/// Query heads and key heads, queries, keys, elements of keys and of values; the band of a query,
/// before and after.
type GradientShape = ([usize; 6], [usize; 2]);

/// A case in which the last two queries and keys of a head are NaN, and see only one of the others.
const NAN_CASE: GradientShape = ([2, 1, 5, 5, 8, 16], [1, 0]);

/// The operand that a gradient belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GradientOperand {
    Q,
    K,
    V,
}

fn q_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    cases(instance, random, &[GradientOperand::Q])
}

fn kv_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    cases(instance, random, &[GradientOperand::K, GradientOperand::V])
}

/// Returns cases of the gradients of `of`, in the order of the kernel's parameters.
fn cases(instance: &Instance, random: &mut Random, of: &[GradientOperand]) -> Vec<Case> {
    let wide = numbers(instance).first().copied().unwrap_or(0);
    let shapes: [GradientShape; 9] = [
        NAN_CASE,
        ([2, 1, 3, 13, 16, 8], [UNBOUNDED, 0]),
        ([1, 1, 65, 5, 8, 16], [3, 2]),
        ([1, 1, 1, 1, wide + 8, 8], [UNBOUNDED, UNBOUNDED]),
        // Tiles in which a query sees a single key, and tiles in which a single query sees a key.
        ([1, 1, 100, 100, 8, 8], [1, 1]),
        // More than a tile of both, and products of more than two slices.
        ([2, 1, 106, 100, 8, 40], [UNBOUNDED, 0]),
        ([1, 1, 70, 110, wide, wide], [UNBOUNDED, UNBOUNDED]),
        // A gradient of keys that no query sees, and an empty gradient.
        ([1, 1, 0, 5, 8, 8], [UNBOUNDED, UNBOUNDED]),
        ([1, 1, 5, 0, 8, 8], [UNBOUNDED, UNBOUNDED]),
    ];
    let mut all: Vec<Case> = shapes.map(|shape| case(instance, random, shape, Some(2), of)).into();
    // A gradient of each extreme: a row of dQ from dO, a row of dK from V, and a column of dV from
    // dO. The extremes repeat.
    let n = 24;
    let extents = [1, 1, n, n];
    for one in of {
        let (argument, axis) = match one {
            GradientOperand::Q => (3, 2),
            GradientOperand::K => (2, 2),
            GradientOperand::V => (3, 3),
        };
        let mut of_extremes = case(instance, random, ([1, 1, n, n, 8, n], [UNBOUNDED, UNBOUNDED]), None, of);
        of_extremes.inputs[argument] =
            extreme(random, &Extreme::ALL, stored(instance), axis, extents, [n * n, n * n, n, 1]);
        all.push(Case { name: format!("extremes of input {argument}"), ..of_extremes });
    }
    all
}

/// Returns a case. Each query has the logarithm of its logits' sum of exponentials; query `blind`
/// has −∞, as if it saw no key.
fn case(
    instance: &Instance,
    random: &mut Random,
    shape: GradientShape,
    blind: Option<usize>,
    of: &[GradientOperand],
) -> Case {
    let ([of_q, of_k, queries, keys, width, wide], [left, right]) = shape;
    let (stored, packed) = (stored(instance), has::<Packed>(instance));
    // Two sequences if there are few queries.
    let batch = if queries < 5 && !packed && !has::<Listed>(instance) { 2 } else { 1 };
    let odd = shape == NAN_CASE && !packed;
    let mut matrices = |heads_of, rows: usize, columns| {
        let (extents, strides) =
            ([batch, heads_of, rows, columns], [heads_of * rows * columns, rows * columns, columns, 1]);
        let at = |i: usize| (odd && rows - i / columns % rows <= 2 && i.is_multiple_of(3)).then_some(f32::NAN);
        drawn_but(random, stored, batch * strides[0], extents, strides, at)
    };
    let (q, k) = (matrices(of_q, queries, width), matrices(of_k, keys, width));
    let (v, d_o) = (matrices(of_k, keys, wide), matrices(of_q, queries, wide));
    let gradients: Vec<Input> = of
        .iter()
        .map(|one| match one {
            GradientOperand::Q => matrices(of_q, queries, width),
            GradientOperand::K => matrices(of_k, keys, width),
            GradientOperand::V => matrices(of_k, keys, wide),
        })
        .collect();
    let scale = 0.25f32;
    let (qs, ks) = (q.values(), k.values());
    let log = |row: usize| {
        let head = row / queries / (of_q / of_k);
        let product =
            |j: usize| (0..width).map(|d| qs[row * width + d] * ks[(head * keys + j) * width + d]).sum::<f64>();
        // Packed sequences accept any logarithm.
        let seen = |j: &usize| {
            packed || j + queries + left >= row % queries + keys && j + queries <= row % queries + keys + right
        };
        let all: f64 = (0..keys).filter(seen).map(|j| (product(j) * f64::from(scale)).exp()).sum();
        if blind == Some(row) { f32::NEG_INFINITY } else { all.ln() as f32 }
    };
    let logs: Vec<f32> = (0..batch * of_q * queries).map(log).collect();
    let deltas = Input::view(&random.values::<f32>(batch * of_q * queries), [batch, of_q, queries]);
    let mut inputs = vec![q, k, v, d_o, Input::view(&logs, [batch, of_q, queries]), deltas];
    inputs.extend(gradients);
    inputs.extend([Input::scalar(scale), Input::scalar(left), Input::scalar(right)]);
    let (rows, others) = if of == [GradientOperand::Q] { (queries, keys) } else { (keys, queries) };
    if has::<Listed>(instance) {
        let each = 2 * KEYS;
        let (tiles, blocks) = (rows.div_ceil(each), others.div_ceil(each));
        let (mut starts, mut list) = (Vec::new(), Vec::new());
        for head in 0..of_q {
            for _ in 0..tiles {
                starts.push(list.len() as u32);
                // Some heads have no block.
                list.extend((0..blocks as u32).filter(|_| head != 1));
            }
            starts.push(list.len() as u32);
        }
        inputs.extend([Input::view(&starts, [of_q, tiles + 1]), Input::slice(&list), Input::scalar(1usize)]);
    }
    if packed {
        inputs.extend([Input::slice(&starts(queries)), Input::slice(&starts(keys))]);
    }
    // At least one block, which has no work if the gradient is empty.
    inputs.extend([Input::scalar(if packed { 3 } else { batch }), Input::scalar(rows.max(1))]);
    Case::new(
        format!(
            "{batch} of {of_q} × {queries} queries, {of_k} × {keys} keys, {width} and {wide} wide, {left} keys before, {right} after"
        ),
        inputs,
    )
}

/// Returns the starts of three packed sequences. The second is empty. The end of the last is beyond
/// the last row, to which the kernel clamps it.
fn starts(n: usize) -> [u32; 4] {
    [0, n / 3, n / 3, n + 1].map(|n| n as u32)
}

/// Returns the start and end of the packed sequence that contains a row; without packing, all rows
/// are one sequence.
fn sequence(instance: &Instance, n: usize, row: usize) -> [usize; 2] {
    match (has::<Packed>(instance), row < n / 3) {
        (false, _) => [0, n],
        (true, true) => [0, n / 3],
        (true, false) => [2, n],
    }
}

fn q_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    vec![reference(instance, inputs, GradientOperand::Q, 6, 7)]
}

fn kv_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    vec![reference(instance, inputs, GradientOperand::K, 6, 8), reference(instance, inputs, GradientOperand::V, 7, 8)]
}

/// Computes a gradient, argument `out`, and its error bounds, to first order, with u = 2⁻²⁴. The
/// error of a logit x is e = γ(d + 1)·scale·Σ|q·k|. A weight p = e^(x − lse) has the relative
/// error e + (2·|x − lse| + 4)·u. The error of dP is γ(d′)·Σ|dO·v|. The difference of dP from δ
/// adds u, and the following two factors 3u. A gradient is a sum of n products, each with the error
/// of its weight, and with γ(n) of their magnitudes. If magnitudes of finite terms overflow
/// together, any result is correct.
fn reference(instance: &Instance, inputs: &[Input], of: GradientOperand, out: usize, scalars: usize) -> Expected {
    let [q, k, v, d_o, lse, delta] = [0, 1, 2, 3, 4, 5].map(|n| inputs[n].values());
    let [scale, left, right] = [0, 1, 2].map(|n| inputs[scalars + n].value());
    let [batch, of_q, queries, width] = dims(&inputs[0]);
    let [_, of_k, keys, wide] = dims(&inputs[2]);
    let columns = if of == GradientOperand::V { wide } else { width };
    let size = inputs[out].value_count();
    let (mut sums, mut sizes, mut offs) = (vec![0.0; size], vec![0.0; size], vec![0.0; size]);
    for (row, j) in (0..batch * of_q * queries).flat_map(|row| (0..keys).map(move |j| (row, j))) {
        let key = row / queries / (of_q / of_k) * keys + j;
        let ([own, query_end], [other, key_end]) =
            (sequence(instance, queries, row % queries), sequence(instance, keys, j));
        let distance = (j + query_end) as f64 - (row % queries + key_end) as f64;
        let listed = !has::<Listed>(instance) || row / queries != 1; // a batch of one
        if own != other || !listed || distance < -left || distance > right || lse[row] == f64::NEG_INFINITY {
            continue;
        }
        let dot = |a: &[f64], b: &[f64]| {
            let products = a.iter().zip(b).map(|(a, b)| a * b);
            products.fold((0.0, 0.0), |(sum, size): (f64, f64), x| (sum + x, size + x.abs()))
        };
        let (x, x_size) = dot(&q[row * width..(row + 1) * width], &k[key * width..(key + 1) * width]);
        let p = (scale * x - lse[row]).exp();
        let p_off = p * (gamma(width + 1) * scale * x_size + (2.0 * (scale * x - lse[row]).abs() + 4.0) * U);
        let (dp, dp_size) = dot(&d_o[row * wide..(row + 1) * wide], &v[key * wide..(key + 1) * wide]);
        let change = dp - delta[row];
        let open = of != GradientOperand::V && overflows(dp_size);
        let (weight, off) = if of == GradientOperand::V {
            (p, p_off)
        } else {
            let change_off = gamma(wide) * dp_size + U * change.abs();
            (p * change * scale, scale * (p_off * change.abs() + p * change_off + 3.0 * U * (p * change).abs()))
        };
        let (to, with, of_with) = match of {
            GradientOperand::Q => (row, &k, key),
            GradientOperand::K => (key, &q, row),
            GradientOperand::V => (key, &d_o, row),
        };
        for c in 0..columns {
            let y = with[of_with * columns + c];
            sums[to * columns + c] += weight * y;
            sizes[to * columns + c] += if open { f64::from(f32::MAX) } else { (weight * y).abs() };
            offs[to * columns + c] += off * y.abs();
        }
    }
    let n = 64 * (queries.max(keys)).div_ceil(64) * of_q / of_k;
    let bounds = (0..size).map(|i| {
        let off = 1.01 * (offs[i] + gamma(n) * sizes[i]) + n as f64 * 2f64.powi(-120);
        if overflows(sizes[i]) { f64::INFINITY } else { off + at_rest(stored(instance), sums[i], off) }
    });
    let bounds = bounds.collect();
    Expected::new(out, sums, Bound::Each(bounds))
}

/// Returns the extents of a view of rank 4.
fn dims(input: &Input) -> [usize; 4] {
    input.extents().try_into().unwrap_or_default()
}

fn scores_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    // The number of sequences; queries and keys around a tile's size, and products around a
    // slice's.
    let shapes: [GradientShape; 5] = [
        ([1, 1, 1, 1, 8, 1], [UNBOUNDED, UNBOUNDED]),
        ([2, 1, 3, 65, 40, 1], [UNBOUNDED, 0]),
        ([4, 2, 3, 5, 16, 3], [2, 1]),
        ([1, 1, 65, 64, 8, 1], [UNBOUNDED, UNBOUNDED]),
        ([1, 1, 2, 3, 0, 1], [UNBOUNDED, UNBOUNDED]),
    ];
    let case = |([of_q, of_k, queries, keys, width, batch], [left, right]): GradientShape| {
        let inputs = [
            attention::heads(random, stored(instance), [batch, of_q, queries, width], 4),
            attention::heads(random, stored(instance), [batch, of_k, keys, width], 4),
            attention::heads(random, Scalar::F32, [batch, of_q, queries, keys], 1),
            Input::scalar(0.25f32),
            Input::scalar(left),
            Input::scalar(right),
        ];
        Case::new(
            format!("{batch} of {of_q} × {queries} queries, {of_k} × {keys} keys of {width}, {left} and {right}"),
            inputs,
        )
    };
    let mut all: Vec<Case> = shapes.map(case).into();
    // A key of each extreme.
    let (queries, keys, width) = (3, Extreme::ALL.len(), 16);
    let strides = [keys * width, keys * width, width, 1];
    let k = extreme(random, &Extreme::ALL, stored(instance), 2, [1, 1, keys, width], strides);
    let band = [(); 2].map(|()| Input::scalar(UNBOUNDED));
    let [left, right] = band;
    let inputs = [
        attention::heads(random, stored(instance), [1, 1, queries, width], 4),
        k,
        attention::heads(random, Scalar::F32, [1, 1, queries, keys], 1),
        Input::scalar(0.25f32),
        left,
        right,
    ];
    all.push(Case::new("extreme keys", inputs));
    all
}

/// Computes the logits and their error bounds: a fused sum of products, and the factor. If the
/// magnitudes of finite products overflow together, any result is correct.
fn scores_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let [q, k] = [0, 1].map(|n| inputs[n].values());
    let [scale, left, right] = [3, 4, 5].map(|n| inputs[n].value());
    let (&[batch, of_q, queries, width], &[_, of_k, keys, _]) = (inputs[0].extents(), inputs[1].extents()) else {
        return Vec::new();
    };
    let one = |i: usize| {
        let (row, j) = (i / keys, i % keys);
        let key = row / queries / (of_q / of_k) * keys + j;
        let distance = (j + queries) as f64 - (row % queries + keys) as f64;
        if distance < -left || distance > right {
            return (f64::NEG_INFINITY, 0.0);
        }
        let products = (0..width).map(|d| q[row * width + d] * k[key * width + d]);
        let (sum, size) = products.fold((0.0, 0.0), |(sum, size): (f64, f64), x| (sum + x, size + x.abs()));
        let off = 1.001 * gamma(width + 1) * scale * size + TINY;
        (scale * sum, if overflows(size) { f64::INFINITY } else { off })
    };
    let (values, bounds) = (0..batch * of_q * queries * keys).map(one).unzip();
    vec![Expected::new(2, values, Bound::Each(bounds))]
}
