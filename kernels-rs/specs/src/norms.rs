//! Specs of `norm_rows`, `norm_divided`, `norm_quantized`, `norm_activations`.

use super::quant_formats::near_units;
use super::rows::{RowTeam, cleared, rows_of};
use super::stored::{at_rest, drawn, extremes, numbers, rounded, scalars};
use super::{TINY, U, gamma, overflowed};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::rowwise::norm::{norm_activations, norm_divided, norm_quantized, norm_rows};
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(norm_rows<f32, f32, f32, true, false, true, 512, 1, 4, 2, 2>, cases, reference);
runtime::register!(norm_divided<f32, f32, f32, true, false, 256, 4, 8, 8192>, divided_cases, divided_reference);
runtime::register!(norm_quantized<f32, f32, false, 256, 1, 4, 4, 2>, quantized_cases, quantized_reference);
runtime::register!(norm_activations<f32, f32, false, 256, 1, 4, 2, 2>, units_cases, units_reference);

fn is_centered(instance: &Instance) -> bool {
    numbers(instance).first() == Some(&1)
}

fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[_, fused, whole, ..] = numbers(instance).as_slice() else { return Vec::new() };
    float_cases(instance, random, RowTeam::of(instance), fused == 1, whole == 1)
}

fn divided_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[_, fused, ..] = numbers(instance).as_slice() else { return Vec::new() };
    let Some(team) = RowTeam::divided(instance) else { return Vec::new() };
    let mut all = float_cases(instance, random, Some(team), fused == 1, false);
    // A block has elements of its row.
    all.retain(|case| case.inputs[1].extents()[1] > 0);
    for case in &mut all {
        let &[rows, cols] = case.inputs[1].extents() else { continue };
        case.inputs.insert(6, team.links([rows, cols]));
    }
    all
}

/// Returns cases of a norm in floats. `whole` selects rows that are kept in registers.
fn float_cases(instance: &Instance, random: &mut Random, team: Option<RowTeam>, fused: bool, whole: bool) -> Vec<Case> {
    let &[_, _, output] = scalars(instance).as_slice() else { return Vec::new() };
    let mut i = 0;
    let outputs = |random: &mut Random, shape: [usize; 2], team| {
        // Present, or absent in one of two ways.
        let saved = [[shape[0], 2], [0, 2], [shape[0], 2], [shape[0], 0]][i % 4];
        i += 1;
        let saved = Input::view(&vec![0f32; saved[0] * saved[1]], saved);
        [rows_of(random, output, shape, team, 1), saved]
    };
    all_cases(instance, random, team, Some(fused), whole, outputs)
}

fn quantized_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let outputs = |_: &mut Random, [rows, cols]: [usize; 2], _| {
        let pitch = cols.next_multiple_of(4).max(4);
        [Input::strided(&vec![0i8; rows * pitch], [rows, cols], [pitch, 1]), Input::view(&vec![0f32; rows], [rows])]
    };
    let mut all: Vec<Case> = [false, true]
        .into_iter()
        .flat_map(|residual| all_cases(instance, random, RowTeam::of(instance), Some(residual), false, outputs))
        .collect();
    let (Some(team), &[element, weights]) = (RowTeam::of(instance), scalars(instance).as_slice()) else { return all };
    if element != Scalar::F32 {
        return all;
    }
    // The largest element is in the columns of the last or the first thread: in registers, among
    // the elements that are read again, or after them. Two more rows have zeros, or 1024
    // everywhere.
    let cols = team.kept + team.again + team.wide;
    let at = [team.kept - 1, team.kept, cols - team.wide - 1, cols - team.wide, cols, cols + 1];
    let element_of = |row: usize, col: usize| match at[row] {
        at if at > cols => 1024.0,
        at if at == col => -9.0,
        _ => 0.0,
    };
    let x: Vec<f32> = (0..at.len() * cols).map(|i| element_of(i / cols, i % cols)).collect();
    let none = || rows_of(&mut Random::new(1), element, [0, 0], team, 0);
    let column = || drawn(&mut Random::new(1), weights, 0, [0], [1]);
    let x = Input::view(&x, [at.len(), cols]);
    let mut inputs = vec![Input::scalar(1e-5f32), x, none(), none(), column(), column()];
    inputs.extend(outputs(random, [at.len(), cols], team));
    all.push(Case::new(format!("{} × {cols}, one or no number", at.len()), inputs));
    // Far from zero, and close to each other: an element beyond the end would be the largest.
    for cols in [5 * team.wide, cols] {
        let x: Vec<f32> = (0..cols).map(|i| if i % 2 == 0 { 4.0 } else { 6.0 }).collect();
        let mut inputs = vec![Input::scalar(1e-5f32), Input::view(&x, [1, cols]), none(), none(), column(), column()];
        inputs.extend(outputs(random, [1, cols], team));
        all.push(Case::new(format!("{cols} far from zero"), inputs));
    }
    // The reciprocals of the largest magnitudes overflow.
    let cols = 5 * team.wide;
    let x: Vec<f32> = (0..cols).map(|i| i as f32).collect();
    let weight = rounded(weights, &vec![1e-39; cols], [cols]);
    let mut inputs = vec![Input::scalar(1e-5f32), Input::view(&x, [1, cols]), none(), none(), weight, column()];
    inputs.extend(outputs(random, [1, cols], team));
    all.push(Case::new(format!("{cols} with subnormal weights"), inputs));
    all
}

/// Returns cases whose last group of rows is not full, and cases with more units than rows have
/// columns.
fn units_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let mut i = 0;
    let mut outputs = |_: &mut Random, [rows, cols]: [usize; 2], _| {
        i += 1;
        let (room, units) = ([1, 2, 4, 8][i % 4], cols.div_ceil(32).max(1) + [0, 3, 8][i % 3]);
        let (groups, numbers) = (rows.div_ceil(room), room * units);
        [
            Input::view(&vec![9i32; groups * 8 * numbers], [groups, 8 * numbers]),
            Input::view(&vec![9f32; groups * 4 * numbers], [groups, 4 * numbers]),
        ]
    };
    let mut all = Vec::new();
    for residual in [false, true] {
        all.extend(all_cases(instance, random, RowTeam::of(instance), Some(residual), false, &mut outputs));
    }
    if let (Some(team), &[element, weights, ..]) = (RowTeam::of(instance), scalars(instance).as_slice()) {
        // A long row without weight or bias: an element beyond its end would be the largest.
        let cols = team.kept + team.again + team.wide;
        let x: Vec<f32> = (0..cols).map(|i| if i % 2 == 0 { 4.0 } else { 6.0 }).collect();
        let none = || rows_of(&mut Random::new(1), element, [0, 0], team, 0);
        let column = || drawn(&mut Random::new(1), weights, 0, [0], [1]);
        let mut inputs =
            vec![Input::scalar(1e-5f32), rounded(element, &x, [1, cols]), none(), none(), column(), column()];
        inputs.extend(outputs(random, [1, cols], team));
        all.push(Case::new(format!("{cols} far from zero"), inputs));
    }
    for case in &mut all {
        // The room of the groups precedes the outputs.
        let &[rows, _] = case.inputs[1].extents() else { continue };
        let room = [1, 2, 4, 8].into_iter().find(|room| rows.div_ceil(*room) == case.inputs[6].extents()[0]);
        case.inputs.insert(6, Input::scalar(room.unwrap_or(1)));
    }
    all
}

/// Returns cases with a residual, without one, or at random. `whole` selects rows that are kept in
/// registers.
fn all_cases(
    instance: &Instance,
    random: &mut Random,
    team: Option<RowTeam>,
    residual: Option<bool>,
    whole: bool,
    mut outputs: impl FnMut(&mut Random, [usize; 2], RowTeam) -> [Input; 2],
) -> Vec<Case> {
    let (Some(team), &[element, weights, ..]) = (team, scalars(instance).as_slice()) else { return Vec::new() };
    let shapes =
        team.shapes(random).into_iter().map(|[rows, cols]| [rows, if whole { cols.min(team.kept) } else { cols }]);
    // Whole parts only, and more parts of a row than a warp has lanes.
    let parts = [[1, 2 * team.kept], [2, 40 * team.kept + team.wide]];
    let parts = parts.into_iter().filter(|_| team.shared && team.kept <= 4096);
    let shapes = shapes.chain(parts).map(|shape| (shape, false));
    let far = [2, (team.kept / 2 + 5 + if team.shared { 2 * team.kept } else { 0 }).next_multiple_of(team.wide)];
    let all = shapes.chain([(far, true)]).collect::<Vec<_>>().into_iter().enumerate().map(|(i, (shape, far))| {
        let [rows, cols] = shape;
        // Weight and bias: both, each alone, and none.
        let (any, with) = (random.below(2) == 0, [3, 1, 2, 0][i % 4]);
        let fused = residual.unwrap_or(any);
        let x = if far { far_from_zero(random, element, shape) } else { rows_of(random, element, shape, team, 1) };
        let none = || rows_of(&mut Random::new(1), element, [0, 0], team, 0);
        let (residual, z) = match fused {
            true => (rows_of(random, element, shape, team, 0), rows_of(random, element, shape, team, 1)),
            false => (none(), none()),
        };
        let column = |random: &mut Random, there: bool| {
            let n = if there { cols } else { 0 };
            drawn(random, weights, n, [n], [1])
        };
        let (weight, bias) = (column(random, with & 1 > 0), column(random, with & 2 > 0));
        let mut inputs = vec![Input::scalar(1e-5f32), x, residual, z, weight, bias];
        inputs.extend(outputs(random, shape, team));
        Case::new(format!("{rows} × {cols}, residual: {fused}, weight and bias: {with}, far from zero: {far}"), inputs)
    });
    let mut all: Vec<Case> = all.collect();
    // A row of each extreme, with an ε that exceeds tiny elements, and with one that does not. Also
    // scaled rows that do not fit in registers.
    let cols = (3 * team.wide + 37).next_multiple_of(team.wide);
    let long = (!whole).then(|| (0.0, LONG_ROW_EXTREMES.to_vec(), team.kept + team.again + 5 * team.wide));
    let short = [1e-5f32, 0.0].map(|epsilon| (epsilon, team.extremes(random), cols));
    for (epsilon, which, cols) in short.into_iter().chain(long) {
        let shape = [which.len(), cols];
        let mut rows = |of: &[Extreme]| extremes(random, of, element, cols, cols + team.wide);
        let x = rows(&which);
        let none = || rows_of(&mut Random::new(1), element, [0, 0], team, 0);
        // The sum of two of the long rows would be infinite.
        let added = if which == LONG_ROW_EXTREMES { vec![Extreme::Zeros; which.len()] } else { which };
        let (residual, z) = if residual == Some(true) { (rows(&added), rows(&added)) } else { (none(), none()) };
        let column = |random: &mut Random| drawn(random, weights, cols, [cols], [1]);
        let mut inputs = vec![Input::scalar(epsilon), x, residual, z, column(random), column(random)];
        inputs.extend(outputs(random, shape, team));
        all.push(Case::new(format!("extremes of {cols}, ε = {epsilon}"), inputs));
    }
    all
}

/// A row that is scaled down and has a mean, and a row that is scaled up.
pub(super) const LONG_ROW_EXTREMES: [Extreme; 2] = [Extreme::HugePositive, Extreme::Subnormal];

/// Returns rows whose mean is a thousand times their deviation, and rows without deviation.
pub(super) fn far_from_zero<const R: usize>(random: &mut Random, element: Scalar, extents: [usize; R]) -> Input {
    let cols = extents.last().copied().unwrap_or(0);
    let x: Vec<f32> = random.values(extents.iter().product());
    let x = x.iter().enumerate().map(|(i, x)| 1000.0 + if i < cols { *x } else { 0.0 });
    rounded(element, &x.collect::<Vec<_>>(), extents)
}

/// Returns two rows of one large element, except for the last or the first: the difference of that
/// one from the mean exceeds the range of `f32`.
pub(super) fn far_apart<const R: usize>(element: Scalar, extents: [usize; R]) -> Input {
    let cols = extents.last().copied().unwrap_or(0);
    let large = if element == Scalar::F16 { 6e4 } else { 3e38 };
    let x = (0..2 * cols).map(|i| if i == cols - 1 || i == cols { -large } else { large });
    rounded(element, &x.collect::<Vec<_>>(), extents)
}

/// A number, and the bound of its error.
pub(super) type Bounded = (f64, f64);

/// The results of a norm for a row: z, y, and the mean and factor.
pub(super) struct NormRow {
    z: Vec<Bounded>,
    pub y: Vec<Bounded>,
    pub of_row: [Bounded; 2],
}

/// Computes the norm of a row and its error bounds, to first order for terms of u. Differences that
/// may be as large as their operands use intervals. With C columns and n additions per term:
///
/// * z is rounded once, if a residual is added: u·|z|;
/// * the mean has (γ(n) + u) · Σ |z| / C, for its additions and its quotient, and the errors of the
///   z;
/// * d = z − μ has the errors of both, and u·|d|;
/// * the variance of d ± δ has 2·|d|·δ + δ² per element, γ(n + 1) of the fused sums and u of the
///   quotient; the sum with ε is rounded once more;
/// * the factor f is between the inverse roots of that interval's ends, and its root and quotient
///   are rounded: 2·u;
/// * y has d·δf + f·δ + δ·δf, one rounding for the product, one for the weight and one for the
///   bias.
///
/// Underflow adds half of the least subnormal in a product. In the squares' sum the error of
/// underflow is at most 2⁻²⁹ of variance + ε, because rows are scaled. With an ε of 0, the norm of
/// a row whose deviation may be 0 is arbitrary. The norm of a row with an infinity or a NaN is the
/// result of the formula.
pub(super) fn row(
    centered: bool,
    team: RowTeam,
    epsilon: f64,
    x: &[f64],
    residual: &[f64],
    weight: &[f64],
    bias: &[f64],
) -> NormRow {
    let count = x.len().max(1) as f64;
    let sums = gamma(team.additions(x.len()) + 1);
    let z: Vec<Bounded> = match residual {
        [] => x.iter().map(|x| (*x, 0.0)).collect(),
        _ => x.iter().zip(residual).map(|(x, r)| (overflowed(x + r), (x + r).abs() * U)).collect(),
    };
    if z.iter().any(|z| !z.0.is_finite()) {
        return row_of_infinities(centered, z, weight, bias);
    }
    let size = z.iter().map(|z| z.0.abs() + z.1).sum::<f64>() / count;
    let mean = match centered {
        true => {
            (z.iter().map(|z| z.0).sum::<f64>() / count, (sums + U) * size + z.iter().map(|z| z.1).sum::<f64>() / count)
        }
        false => (0.0, 0.0),
    };
    let d =
        |(z, off): Bounded| (z - mean.0, off + mean.1 + (z - mean.0).abs() * if centered { 1.001 * U } else { 0.0 });
    // If blocks share the row, the mean of each part is rounded, too.
    let size_of = |part: &[Bounded]| part.iter().map(|z| z.0.abs() + z.1).sum::<f64>() / part.len() as f64;
    let of_parts = if team.shared && centered { z.chunks(team.kept).map(size_of).fold(0.0, f64::max) } else { 0.0 };
    let of_parts = (sums + 4.0 * U) * of_parts;
    let variance = z.iter().map(|z| d(*z).0.powi(2)).sum::<f64>() / count;
    let lost = TINY.min((variance + epsilon) * U / 32.0);
    let square = |(d, off): Bounded| 2.0 * d.abs() * off + off * off + (sums + U) * (d.abs() + off).powi(2) + lost;
    let from_part = |(d, off): Bounded| (d, off + of_parts);
    let spread = z.iter().map(|z| square(from_part(d(*z)))).sum::<f64>() / count + 1.001 * U * (variance + epsilon);
    let root = |v: f64| 1.0 / v.max(0.0).sqrt();
    let factor = root(variance + epsilon);
    let off = (root(variance + epsilon - spread) - factor).max(factor - root(variance + epsilon + spread));
    let factor = (factor, off + 2.1 * U * (factor + off));
    let y = z.iter().enumerate().map(|(i, z)| {
        let (d, off) = d(*z);
        let (w, b) = (weight.get(i).unwrap_or(&1.0), bias.get(i).unwrap_or(&0.0));
        let value = d * factor.0;
        let off = d.abs() * factor.1 + factor.0 * off + off * factor.1 + 1.001 * U * value.abs() + TINY;
        if !off.is_finite() {
            return (0.0, f64::INFINITY);
        }
        // In a row that is scaled down, small differences are subnormal.
        let off = off + if variance > f64::from(f32::MAX) { 2f64.powi(-80) } else { 0.0 };
        let value = value * w;
        let off = off * w.abs() + 1.001 * U * (value.abs() + (value + b).abs()) + TINY;
        (value + b, 1.001 * off)
    });
    let y = y.collect();
    // The deviation may be 0.
    let saved = if factor.1.is_finite() { factor } else { (0.0, f64::INFINITY) };
    NormRow { y, z, of_row: [mean, saved] }
}

/// Computes a row with infinities or NaNs. The mean may be infinite or NaN, and the factor is 1 /
/// √∞ = 0.
fn row_of_infinities(centered: bool, z: Vec<Bounded>, weight: &[f64], bias: &[f64]) -> NormRow {
    let mean = if centered { z.iter().map(|z| z.0).sum::<f64>() / z.len() as f64 } else { 0.0 };
    let variance = z.iter().map(|z| (z.0 - mean).powi(2)).sum::<f64>();
    let factor = if variance.is_nan() { f64::NAN } else { 0.0 };
    let y = z.iter().enumerate().map(|(i, z)| {
        let (w, b) = (weight.get(i).unwrap_or(&1.0), bias.get(i).unwrap_or(&0.0));
        ((z.0 - mean) * factor * w + b, 0.0)
    });
    NormRow { y: y.collect(), z, of_row: [(mean, 0.0), (factor, 0.0)] }
}

/// Returns the rows of a case.
fn rows(instance: &Instance, inputs: &[Input], team: Option<RowTeam>) -> Vec<NormRow> {
    let Some(team) = team else { return Vec::new() };
    let (x, residual) = (inputs[1].values(), inputs[2].values());
    let &[rows, cols] = inputs[1].extents() else { return Vec::new() };
    let (weight, bias) = (inputs[4].values(), inputs[5].values());
    let residual = |r: usize| residual.get(r * cols..(r + 1) * cols).unwrap_or(&[]);
    let epsilon = inputs[0].value();
    let centered = is_centered(instance);
    let one = |r: usize| row(centered, team, epsilon, &x[r * cols..(r + 1) * cols], residual(r), &weight, &bias);
    (0..rows).map(one).collect()
}

/// Returns the mean (0 unless centered) and 1 / √(variance + ε) of each row, rounded.
pub(super) fn saved_of(x: &[f64], cols: usize, centered: bool, epsilon: f64) -> Vec<f32> {
    let of_row = |row: &[f64]| {
        let mean = |of: &dyn Fn(f64) -> f64| row.iter().map(|x| of(*x)).sum::<f64>() / row.len() as f64;
        let middle = if centered { mean(&|x| x) } else { 0.0 };
        let variance = mean(&|x| (x - middle).powi(2));
        [middle as f32, (1.0 / (variance + epsilon).sqrt()) as f32]
    };
    x.chunks(cols.max(1)).flat_map(of_row).collect()
}

pub(super) fn expected(argument: usize, all: impl Iterator<Item = Bounded>) -> Expected {
    let (values, bounds) = all.unzip();
    Expected::new(argument, values, Bound::Each(bounds))
}

/// Returns a function that adds the error of the last rounding, to `stored`, to a bound.
pub(super) fn with_storage_error(stored: Scalar) -> impl Fn(&Bounded) -> Bounded {
    move |&(value, off)| (value, off + at_rest(stored, value, off))
}

fn reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    in_floats(instance, inputs, RowTeam::of(instance), [6, 7])
}

fn divided_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let mut all = in_floats(instance, inputs, RowTeam::divided(instance), [7, 8]);
    all.insert(1, cleared(inputs, 6));
    all
}

/// Computes a norm in floats, whose results are arguments `y` and `saved`.
fn in_floats(instance: &Instance, inputs: &[Input], team: Option<RowTeam>, [y, saved]: [usize; 2]) -> Vec<Expected> {
    let &[element, _, output] = scalars(instance).as_slice() else { return Vec::new() };
    let rows = rows(instance, inputs, team);
    let in_y = expected(y, rows.iter().flat_map(|row| row.y.iter().map(with_storage_error(output))));
    let is_there = |argument: usize| inputs[argument].extents().iter().all(|n| *n > 0);
    let of_rows = rows.iter().filter(|_| is_there(saved)).flat_map(|row| row.of_row);
    vec![in_y, sums(element, &rows, is_there(3)), expected(saved, of_rows)]
}

/// Returns z, if it is written.
fn sums(element: Scalar, rows: &[NormRow], there: bool) -> Expected {
    expected(3, rows.iter().filter(|_| there).flat_map(|row| row.z.iter().map(with_storage_error(element))))
}

/// Computes the bytes and their error bounds, for y ± off in a row whose largest magnitude is T ±
/// t. T / 127 is rounded once and y · 127 / T twice, and the result is rounded to an integer.
fn quantized_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let &[element, ..] = scalars(instance).as_slice() else { return Vec::new() };
    let rows = rows(instance, inputs, RowTeam::of(instance));
    let top = |row: &NormRow| {
        // NaNs are ignored.
        let largest = |of: fn(&Bounded) -> f64| row.y.iter().map(of).fold(0.0, f64::max);
        (largest(|y| y.0.abs()), largest(|y| y.1))
    };
    let bytes = rows.iter().flat_map(|row| {
        let (top, off) = top(row);
        row.y.iter().map(move |y| {
            let value = if top == 0.0 || y.0.is_nan() { 0.0 } else { y.0 * 127.0 / top };
            if off == f64::INFINITY {
                return (0.0, f64::INFINITY);
            }
            (
                value,
                0.5 + if top == 0.0 { 0.0 } else { 1.01 * (127.0 * y.1 / top + value.abs() * (off / top + 2.0 * U)) },
            )
        })
    });
    let scale = |row: &NormRow| (top(row).0 / 127.0, top(row).1 / 127.0 + 1.001 * U * top(row).0 / 127.0 + TINY);
    let scales = rows.iter().map(scale);
    let there = inputs[3].extents().iter().all(|n| *n > 0);
    vec![expected(6, bytes), expected(7, scales), sums(element, &rows, there)]
}

fn units_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let &[element, ..] = scalars(instance).as_slice() else { return Vec::new() };
    let rows = rows(instance, inputs, RowTeam::of(instance));
    let (&[m, cols], room) = (inputs[1].extents(), inputs[6].value() as usize) else { return Vec::new() };
    let &[groups, wide] = inputs[7].extents() else { return Vec::new() };
    let y: Vec<Bounded> = rows.iter().flat_map(|row| row.y.iter().copied()).collect();
    let of = |row: usize| Some(row).filter(|row| *row < m);
    let (bytes, factors) = near_units(&y, cols, [groups, room], wide / (8 * room), of);
    let there = inputs[3].extents().iter().all(|n| *n > 0);
    vec![expected(7, bytes.into_iter()), expected(8, factors.into_iter()), sums(element, &rows, there)]
}
