//! Specs of `rotate`, `rotate_in_place`.

use super::stored::{at_rest, drawn, extreme, numbers, stored};
use super::{TINY, U};
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::rotary::kernels::{rotate, rotate_in_place};
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(rotate<f32, true, 4, 1>, cases, reference);
runtime::register!(rotate_in_place<f32, true, 4, 1>, cases_in_place, reference_in_place);

/// Tokens, heads, pairs, elements after the pairs, axes of positions; the third and fourth in
/// accesses.
const SHAPES: [[usize; 5]; 11] = [
    [1, 1, 1, 0, 1],
    [3, 5, 4, 0, 1],
    [2, 9, 8, 3, 3],
    [0, 2, 2, 0, 1],
    [2, 0, 2, 1, 2],
    [2, 1, 2, 1, 2],
    [3, 2, 0, 3, 1],
    [1, 33, 16, 0, 1],
    [3, 33, 1, 9, 1],
    [2, 1, 33, 0, 1],
    [1, 258, 1, 0, 1],
];

/// Returns tokens with gaps after heads and tokens.
fn heads(random: &mut Random, instance: &Instance, [tokens, heads, size]: [usize; 3], unit: usize) -> Input {
    let head = size + random.below(2) * unit;
    let token = (heads * head + random.below(2) * unit).max(unit);
    drawn(random, stored(instance), (tokens * token).max(1), [tokens, heads, size], [token, head, 1])
}

/// Returns positions, some negative, their number of axes, the axes of pairs, and frequencies.
fn angles(random: &mut Random, [tokens, pairs, rows]: [usize; 3]) -> [Input; 4] {
    let positions: Vec<u32> = (0..rows * tokens).map(|_| (random.below(3000) as i32 - 500) as u32).collect();
    let axes: Vec<u32> = (0..pairs).map(|_| random.below(rows) as u32).collect();
    let frequencies: Vec<f32> = (0..pairs).map(|i| 0.7f32.powi(i as i32)).collect();
    [Input::view(&positions, [rows, tokens]), Input::scalar(rows), Input::slice(&axes), Input::slice(&frequencies)]
}

fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[_, v, _] = numbers(instance).as_slice() else { return Vec::new() };
    let case = |shape: [usize; 5]| {
        let [tokens, n, pairs, behind, rows] = shape;
        let size = (2 * pairs + behind) * v;
        let x = heads(random, instance, [tokens, n, size], v);
        let y = heads(random, instance, [tokens, n, size], v);
        let mut inputs = vec![x];
        inputs.extend(angles(random, [tokens, pairs * v, rows]));
        inputs.push(y);
        Case::new(format!("{shape:?}"), inputs)
    };
    let mut all: Vec<Case> = SHAPES.map(case).into();
    // A head of each extreme.
    let (n, pairs) = (Extreme::ALL.len(), 4 * v);
    let x = extreme(random, &Extreme::ALL, stored(instance), 1, [1, n, 2 * pairs], [n * 2 * pairs, 2 * pairs, 1]);
    let mut inputs = vec![x];
    inputs.extend(angles(random, [1, pairs, 1]));
    inputs.push(heads(random, instance, [1, n, 2 * pairs], v));
    all.push(Case::new("extremes", inputs));
    all
}

fn cases_in_place(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let in_place = |mut case: Case| {
        // The input is also the output.
        case.inputs.pop();
        case.inputs.rotate_left(1);
        case
    };
    cases(instance, random).into_iter().map(in_place).collect()
}

fn reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    vec![rotated(instance, &inputs[0], &inputs[1..], 5)]
}

fn reference_in_place(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    vec![rotated(instance, &inputs[4], inputs, 4)]
}

/// Computes the rotated pairs and their error bounds. The angle is a rounded product: θ·u, which is
/// also the error of sine and cosine. Sine and cosine themselves have an error of 1.225 units in
/// the last place, each at most 2·u of a number up to 1: 2.45·u. Each result is a sum of two
/// products, one of which is rounded separately: 2·u of |a| + |b|.
fn rotated(instance: &Instance, x: &Input, rest: &[Input], argument: usize) -> Expected {
    let halves = numbers(instance).first() == Some(&1);
    let (values, positions, axes, frequencies) = (x.values(), rest[0].values(), rest[2].values(), rest[3].values());
    let &[tokens, heads, size] = x.extents() else { return Expected::exact(argument, Vec::<f64>::new()) };
    let pairs = frequencies.len();
    let (mut y, mut bounds) = (values.clone(), vec![0.0; values.len()]);
    for (token, head, pair) in
        (0..tokens * heads).flat_map(|i| (0..pairs).map(move |pair| (i / heads, i % heads, pair)))
    {
        let first = (token * heads + head) * size;
        let (a, b) = if halves { (pair, pairs + pair) } else { (2 * pair, 2 * pair + 1) };
        let (a, b) = (first + a, first + b);
        let position = positions[axes[pair] as usize * tokens + token] as u32 as i32;
        let angle = f64::from(position) * frequencies[pair];
        let (sin, cos) = angle.sin_cos();
        y[a] = values[a] * cos - values[b] * sin;
        y[b] = values[b] * cos + values[a] * sin;
        let off = 1.001 * U * (values[a].abs() + values[b].abs()) * (angle.abs() + 2.45 + 2.0) + 2.0 * TINY;
        // Products may overflow together, although their sum does not.
        let open = off.is_finite() && (values[a].abs() + values[b].abs()) > f64::from(f32::MAX);
        let bound = |y: f64| if open { f64::INFINITY } else { off + at_rest(stored(instance), y, off) };
        (bounds[a], bounds[b]) = (bound(y[a]), bound(y[b]));
    }
    Expected::new(argument, y, Bound::Each(bounds))
}
