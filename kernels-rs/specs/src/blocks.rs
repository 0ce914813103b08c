//! Spec of `heads`.

use super::stored::{at_rest, drawn, extreme, numbers, scalars};
use super::{TINY, U, gamma};
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::blocks::heads::heads;
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(heads<f32, f32, 64, true, 1>, cases, reference);

/// Tokens, heads, groups, sequences, rows of the cache, axes of positions.
const SHAPES: [[usize; 6]; 7] = [
    [1, 1, 1, 1, 1, 1],
    [3, 4, 2, 2, 3, 3],
    [5, 3, 1, 1, 9, 1],
    [0, 2, 1, 1, 2, 1],
    [2, 2, 1, 0, 3, 1],
    [2, 2, 1, 2, 0, 1],
    EXTREMES,
];

/// A token whose heads are extremes, one each.
const EXTREMES: [usize; 6] = [1, Extreme::ALL.len() - 2, 1, 1, 1, 1];

fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let Some(&d) = numbers(instance).first() else { return Vec::new() };
    let &[kind, in_cache] = scalars(instance).as_slice() else { return Vec::new() };
    let mut case = |shape: [usize; 6]| {
        let [tokens, heads, groups, sequences, room, axes] = shape;
        let cols = (heads + 2 * groups) * d;
        let pitch = cols + random.below(2) * 8;
        let mut packed = |extents: [usize; 4]| {
            let [a, b, c, d] = extents;
            drawn(random, in_cache, a * b * c * d, extents, [b * c * d, c * d, d, 1])
        };
        let [keys, values] = [(); 2].map(|()| packed([sequences, groups, room, d]));
        let all = Extreme::ALL.len();
        let qkv = match shape == EXTREMES {
            true => extreme(random, &Extreme::ALL, kind, 0, [all, d], [d, 1]).of_shape([1, all * d], [all * d, 1]),
            false => drawn(random, kind, (tokens * pitch).max(1), [tokens, cols], [pitch, 1]),
        };
        let weights = [(); 2].map(|()| drawn(random, kind, d, [d], [1]));
        let q = drawn(random, kind, tokens * heads * d, [tokens, heads, d], [heads * d, d, 1]);
        let positions: Vec<u32> = (0..axes * tokens).map(|_| (random.below(3000) as i32 - 500) as u32).collect();
        // Some pairs have an axis that does not exist.
        let of_pair: Vec<u32> = (0..d / 2).map(|_| random.below(axes + 1) as u32).collect();
        let frequencies: Vec<f32> = (0..d / 2).map(|i| 0.8f32.powi(i as i32)).collect();
        // Different slots, and one that does not exist.
        let mut slots: Vec<u32> = (0..tokens as u32).map(|i| i * 7 % 9 % (sequences * room).max(1) as u32).collect();
        slots.sort_unstable();
        slots.dedup();
        slots.resize(tokens, u32::MAX);
        let [q_weight, k_weight] = weights;
        Case::new(
            format!("{tokens} tokens, {heads} + 2 · {groups} heads, {sequences} × {room} rows"),
            [
                qkv,
                q_weight,
                k_weight,
                Input::scalar(1e-6f32),
                Input::view(&positions, [axes, tokens]),
                Input::slice(&of_pair),
                Input::slice(&frequencies),
                Input::slice(&slots),
                q,
                keys,
                values,
            ],
        )
    };
    let mut all: Vec<Case> = SHAPES.map(&mut case).into();
    // Without ε the norms of tiny heads are not tiny.
    let mut extremes = case(EXTREMES);
    extremes.name = "extremes, ε = 0".into();
    extremes.inputs[3] = Input::scalar(0f32);
    all.push(extremes);
    all
}

/// Computes the results and their error bounds. The norm's factor is the inverse root of a sum of
/// positive terms, with 2·⌈D / 64⌉ fused additions in a lane and five among lanes. The sum's error
/// is γ(2·⌈D / 64⌉ + 5), and the root halves it. The quotient by D, ε, the root and the reciprocal
/// add 4·u, and two products with the weight 2·u. The rotation has the errors of a rotary
/// embedding: the angle's rounding θ·u, 2.45·u of sine and cosine, and 2·u of the products.
fn reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let &[d, normed, ..] = numbers(instance).as_slice() else { return Vec::new() };
    let kinds = scalars(instance);
    let (Some(&in_q), Some(&in_cache)) = (kinds.first(), kinds.get(1)) else { return Vec::new() };
    let (qkv, epsilon) = (inputs[0].values(), inputs[3].value());
    let weights = [inputs[1].values(), inputs[2].values()];
    let (positions, axes, frequencies, slots) =
        (inputs[4].values(), inputs[5].values(), inputs[6].values(), inputs[7].values());
    let (&[tokens, of_q, _], &[sequences, groups, room, _]) = (inputs[8].extents(), inputs[9].extents()) else {
        return Vec::new();
    };
    let all = of_q + 2 * groups;
    let mut outputs = [8, 9, 10].map(|i: usize| (inputs[i].values(), vec![0.0; inputs[i].value_count()]));
    for (token, head) in (0..tokens * all).map(|i| (i / all, i % all)) {
        let x = &qkv[(token * all + head) * d..][..d];
        let mean = x.iter().map(|x| x * x).sum::<f64>() / d as f64;
        let (scale, off_scale) = match normed {
            1 => (1.0 / (mean + epsilon).sqrt(), gamma(2 * d.div_ceil(64) + 5) / 2.0 + 6.0 * U),
            _ => (1.0, 0.0),
        };
        let weight = |i: usize| if normed == 1 { weights[usize::from(head >= of_q)][i] } else { 1.0 };
        let of_values = head >= of_q + groups;
        let mut put = |i: usize, value: f64, off: f64| {
            let slot = slots[token] as usize;
            let (argument, at, kind) = match head.checked_sub(of_q) {
                None => (0, (token * of_q + head) * d + i, in_q),
                Some(_) if slot >= sequences * room => return,
                Some(of) => {
                    let (argument, group) = if of_values { (2, of - groups) } else { (1, of) };
                    (argument, ((slot / room * groups + group) * room + slot % room) * d + i, in_cache)
                }
            };
            let off = if of_values { 0.0 } else { 1.001 * off + 4.0 * TINY };
            // A NaN bound of a finite value comes from an infinity: any result is correct.
            let off = if value.is_finite() && off.is_nan() { f64::INFINITY } else { off };
            outputs[argument].0[at] = value;
            // A value in the format of the cache is copied.
            let is_copy = of_values && in_q == in_cache;
            outputs[argument].1[at] = off + if is_copy { 0.0 } else { at_rest(kind, value, off) };
        };
        for i in 0..d / 2 {
            let at = axes[i] as usize * tokens + token;
            let position = positions.get(at).map_or(0, |position| *position as u32 as i32);
            let (j, angle) = (i + d / 2, f64::from(position) * frequencies[i]);
            let (a, b) = (x[i] * scale * weight(i), x[j] * scale * weight(j));
            if of_values {
                put(i, x[i], 0.0);
                put(j, x[j], 0.0);
                continue;
            }
            let off = U * (a.abs() + b.abs()) * (angle.abs() + 2.45 + 2.0 + off_scale / U);
            // Without a norm, products may overflow together, although their sum does not.
            let open = off.is_finite() && a.abs() + b.abs() > f64::from(f32::MAX);
            let off = if open { f64::INFINITY } else { off };
            put(i, a * angle.cos() - b * angle.sin(), off);
            put(j, b * angle.cos() + a * angle.sin(), off);
        }
    }
    let argument = [8, 9, 10].into_iter();
    argument.zip(outputs).map(|(i, (values, bounds))| Expected::new(i, values, Bound::Each(bounds))).collect()
}
