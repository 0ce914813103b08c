//! Specs of `group_norm`, `group_norm_backward`, `group_norm_channels`.

use super::norms::{
    Bounded, LONG_ROW_EXTREMES, NormRow, expected, far_apart, far_from_zero, row, saved_of, with_storage_error,
};
use super::rows::RowTeam;
use super::stored::{at_rest, drawn, extreme, numbers, scalars};
use super::{TINY, U, gamma};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::rowwise::group::{group_norm, group_norm_backward, group_norm_channels};
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(group_norm<f32, f32, f32, 256, 1, 4, 4, 2>, cases, reference);
runtime::register!(group_norm_backward<f32, f32, 512, 1, 4, 2, 2>, backward_cases, backward_reference);
runtime::register!(group_norm_channels<f32, f32, 4>, channels_cases, channels_reference);

/// Samples, groups, channels of a group and elements of a channel.
type GroupShape = [usize; 4];

/// Returns the shapes for a team's rows and columns. An even number of rows becomes two samples,
/// and a row becomes several channels if possible.
fn shapes(team: RowTeam, random: &mut Random) -> Vec<GroupShape> {
    let one = |[rows, cols]: [usize; 2]| {
        let samples = if rows > 0 && rows.is_multiple_of(2) { 2 } else { 1 };
        let divides = |n: &&usize| cols.is_multiple_of(**n * team.wide);
        let channels = [3, 5, 2, 1].iter().find(divides).copied().unwrap_or(1);
        [samples, rows / samples, channels, cols / channels]
    };
    let mut all: Vec<GroupShape> = team.shapes(random).into_iter().map(one).collect();
    // The channels of the longest rows have only three accesses.
    all[0] = [1, 1, (team.kept + team.again + team.again / 2) / (3 * team.wide) + 1, 3 * team.wide];
    // Channels of one access each; and more elements than are kept in registers, with random
    // operands.
    all.push([2, 2, 9, team.wide]);
    all.extend([[1, 1, 1, team.kept + team.wide]; 4]);
    all
}

/// Returns rows of [sample, group, channels · elements], with `gap` accesses of `wide` elements
/// after each sample.
fn rows_of(random: &mut Random, stored: Scalar, shape: GroupShape, wide: usize, gap: usize) -> Input {
    let [samples, groups, channels, spatial] = shape;
    let cols = channels * spatial;
    let pitch = (groups * cols + gap * wide).max(wide);
    drawn(random, stored, samples * pitch, [samples, groups, cols], [pitch, cols.max(wide), 1])
}

/// Returns one number per channel, or an empty array.
fn a_channel(random: &mut Random, stored: Scalar, [_, groups, channels, _]: GroupShape, there: bool) -> Input {
    let n = if there { groups * channels } else { 0 };
    drawn(random, stored, n, [n], [1])
}

fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let (Some(team), &[element, weights, output]) = (RowTeam::of(instance), scalars(instance).as_slice()) else {
        return Vec::new();
    };
    let case = |(i, shape): (usize, GroupShape)| {
        // Weight and bias: both, each alone, and none. An absent `saved` has an empty last or first
        // axis.
        let with = [3, 1, 2, 0][i % 4];
        let [samples, groups, channels, spatial] = shape;
        let saved = match i % 8 {
            1 => [samples, groups, 0],
            5 => [0, groups, 2],
            _ => [samples, groups, 2],
        };
        let x = match (spatial, i % 4) {
            (n, 0) if n > team.kept => far_from_zero(random, element, [samples, groups, channels * spatial]),
            _ => rows_of(random, element, shape, team.wide, 1),
        };
        let inputs = [
            Input::scalar(1e-5f32),
            x,
            Input::scalar(channels),
            Input::scalar(spatial),
            a_channel(random, weights, shape, with & 1 > 0),
            a_channel(random, weights, shape, with & 2 > 0),
            rows_of(random, output, shape, team.wide, 0),
            Input::view(&vec![0f32; saved.iter().product()], saved),
        ];
        Case::new(format!("{samples} × {groups} groups of {channels} × {spatial}, weight and bias: {with}"), inputs)
    };
    let mut all: Vec<Case> = shapes(team, &mut Random::new(3)).into_iter().enumerate().map(case).collect();
    // Also scaled groups that do not fit in registers.
    let long = ((team.kept + team.again) / 2 + 5 * team.wide).next_multiple_of(team.wide);
    let short = [1e-5f32, 0.0].map(|epsilon| (epsilon, team.extremes(random), 21));
    for (epsilon, which, spatial) in short.into_iter().chain([(0.0, LONG_ROW_EXTREMES.to_vec(), long)]) {
        let (x, shape) = extreme_groups(random, element, &which, spatial, team.wide);
        let [samples, groups, channels, spatial] = shape;
        let inputs = [
            Input::scalar(epsilon),
            x,
            Input::scalar(channels),
            Input::scalar(spatial),
            a_channel(random, weights, shape, true),
            a_channel(random, weights, shape, true),
            rows_of(random, output, shape, team.wide, 0),
            Input::view(&vec![0f32; 2 * samples * groups], [samples, groups, 2]),
        ];
        all.push(Case::new(format!("extremes of {channels} × {spatial}, ε = {epsilon}"), inputs));
    }
    all
}

/// Returns one sample with a group of two channels for each extreme. Channels have at least
/// `spatial` elements.
fn extreme_groups(
    random: &mut Random,
    element: Scalar,
    all: &[Extreme],
    spatial: usize,
    wide: usize,
) -> (Input, GroupShape) {
    let spatial = spatial.next_multiple_of(wide);
    let shape = [1, all.len(), 2, spatial];
    let pitch = all.len() * 2 * spatial;
    (extreme(random, all, element, 1, [1, all.len(), 2 * spatial], [pitch, 2 * spatial, 1]), shape)
}

/// Returns a row's numbers, each repeated for the elements of its channel.
fn spread(of_channels: &[f64], row: usize, [_, groups, channels, spatial]: GroupShape) -> Vec<f64> {
    let first = row % groups.max(1) * channels;
    let own = of_channels.get(first..first + channels).unwrap_or(&[]);
    own.iter().flat_map(|x| std::iter::repeat_n(*x, spatial)).collect()
}

fn shape_of(x: &Input, channels: &Input, spatial: &Input) -> Option<GroupShape> {
    let &[samples, groups, _] = x.extents() else { return None };
    Some([samples, groups, channels.value() as usize, spatial.value() as usize])
}

/// Computes for each group what a layer norm computes for a row.
fn reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (Some(team), &[_, _, output]) = (RowTeam::of(instance), scalars(instance).as_slice()) else {
        return Vec::new();
    };
    let Some(shape) = shape_of(&inputs[1], &inputs[2], &inputs[3]) else { return Vec::new() };
    let (x, weight, bias) = (inputs[1].values(), inputs[4].values(), inputs[5].values());
    let [samples, groups, channels, spatial] = shape;
    let cols = channels * spatial;
    let of = |r: usize| {
        let (weight, bias) = (spread(&weight, r, shape), spread(&bias, r, shape));
        row(true, team, inputs[0].value(), &x[r * cols..(r + 1) * cols], &[], &weight, &bias)
    };
    let rows: Vec<NormRow> = (0..samples * groups).map(of).collect();
    let there = inputs[7].extents().iter().all(|n| *n > 0);
    let saved = rows.iter().filter(|_| there).flat_map(|row| row.of_row);
    vec![expected(6, rows.iter().flat_map(|row| row.y.iter().map(with_storage_error(output)))), expected(7, saved)]
}

/// Returns means and factors of groups, as if they had been saved.
fn saved(random: &mut Random, [samples, groups, ..]: GroupShape) -> Input {
    Input::view(&random.values::<f32>(2 * samples * groups), [samples, groups, 2])
}

fn backward_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let (Some(team), &[element, weights]) = (RowTeam::of(instance), scalars(instance).as_slice()) else {
        return Vec::new();
    };
    let case = |(i, shape): (usize, GroupShape)| {
        let ([samples, groups, channels, spatial], weighed) = (shape, i % 4 != 3);
        let inputs = [
            rows_of(random, element, shape, team.wide, 1),
            saved(random, shape),
            Input::scalar(channels),
            Input::scalar(spatial),
            a_channel(random, weights, shape, weighed),
            rows_of(random, element, shape, team.wide, 0),
            rows_of(random, element, shape, team.wide, 1),
        ];
        Case::new(format!("{samples} × {groups} groups of {channels} × {spatial}, weight: {weighed}"), inputs)
    };
    let mut all: Vec<Case> = shapes(team, &mut Random::new(3)).into_iter().enumerate().map(case).collect();
    let which = team.extremes(random);
    let (x, shape) = extreme_groups(random, element, &which, 21, team.wide);
    let [_, groups, channels, spatial] = shape;
    let saved = Input::view(&saved_of(&x.values(), channels * spatial, true, 1e-5), [1, groups, 2]);
    let mut rows = || rows_of(random, element, shape, team.wide, 0);
    let (dy, dx) = (rows(), rows());
    let weight = a_channel(random, weights, shape, true);
    let inputs = [x, saved, Input::scalar(channels), Input::scalar(spatial), weight, dy, dx];
    all.push(Case::new("extreme groups", inputs));
    let shape = [1, 2, 1, team.kept + 5 * team.wide];
    let x = far_apart(element, [1, 2, shape[3]]);
    let saved = Input::view(&saved_of(&x.values(), shape[3], true, 1e-5), [1, 2, 2]);
    let mut rows = || rows_of(random, element, shape, team.wide, 0);
    let (dy, dx) = (rows(), rows());
    let weight = a_channel(random, weights, shape, true);
    let inputs = [x, saved, Input::scalar(1usize), Input::scalar(shape[3]), weight, dy, dx];
    all.push(Case::new("groups whose differences overflow", inputs));
    all
}

/// Computes the gradients as for [`norm_backward`](kernels_rs::rowwise::backward::norm_backward).
fn backward_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (Some(team), &[element, _]) = (RowTeam::of(instance), scalars(instance).as_slice()) else { return Vec::new() };
    let Some(shape) = shape_of(&inputs[0], &inputs[2], &inputs[3]) else { return Vec::new() };
    let [x, saved, weight, g] = [0, 1, 4, 5].map(|i| inputs[i].values());
    let [samples, groups, channels, spatial] = shape;
    let cols = channels * spatial;
    let sums = gamma(team.additions(cols) + 1);
    let of = |r: usize| -> Vec<Bounded> {
        let (mean, f, weight) = (saved[2 * r], saved[2 * r + 1], spread(&weight, r, shape));
        let pair = |i: usize| {
            let at = r * cols + i;
            ((x[at] - mean) * f, g[at] * weight.get(i).unwrap_or(&1.0))
        };
        let over =
            |term: &dyn Fn(f64, f64) -> f64| (0..cols).map(pair).map(|(n, h)| term(n, h)).sum::<f64>() / cols as f64;
        let (of_h, of_hs) = (over(&|_, h| h), over(&|_, h| h.abs()));
        let (along, size) = (over(&|n, h| h * n), over(&|n, h| (h * n).abs()));
        let (off_h, off_along) = ((sums + 1.001 * U) * of_hs + TINY, (sums + 3.01 * U) * size + 4.0 * TINY);
        let one = |i: usize| {
            let (n, h) = pair(i);
            let inner = h - of_h - n * along;
            let products = n.abs() * off_along + 2.0 * U * (n * along).abs();
            let off = U * h.abs() + off_h + U * (h - of_h).abs() + products + U * inner.abs();
            let value = f * inner;
            (value, 1.001 * (f.abs() * off + U * value.abs()) + 4.0 * TINY * (1.0 + f.abs()))
        };
        (0..cols).map(one).collect()
    };
    vec![expected(6, (0..samples * groups).flat_map(of).map(|off| with_storage_error(element)(&off)))]
}

fn channels_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let (&[wide], &[element, weights]) = (numbers(instance).as_slice(), scalars(instance).as_slice()) else {
        return Vec::new();
    };
    let finite = extreme_groups(random, element, Extreme::finite(), 21, wide);
    let mut case = |([samples, groups, channels, spatial], which): (GroupShape, usize)| {
        let all = groups * channels;
        let shape = [samples, all, 1, spatial];
        let inputs = [
            rows_of(random, element, shape, wide, 1),
            saved(random, [samples, groups, 0, 0]),
            rows_of(random, element, shape, wide, 0),
            Input::scalar(channels),
            a_channel(random, weights, shape, which != 1),
            a_channel(random, weights, shape, which != 2),
        ];
        Case::new(format!("{samples} × {groups} groups of {channels} × {spatial}, outputs {which}"), inputs)
    };
    // Groups of each finite extreme.
    let (x, shape) = finite;
    let mut extremes = case((shape, 0));
    let mut gradients = case(([1, 4, Extreme::ALL.len() / 4, 2 * wide], 0));
    let mut overflowing = case(([1, 2, 1, 8 * wide], 0));
    overflowing.inputs[0] = far_apart(element, [1, 2, 8 * wide]);
    overflowing.inputs[1] = Input::view(&saved_of(&overflowing.inputs[0].values(), 8 * wide, true, 1e-5), [1, 2, 2]);
    overflowing.name = "groups whose differences overflow".into();
    let [_, groups, channels, spatial] = shape;
    let saved = Input::view(&saved_of(&x.values(), channels * spatial, true, 1e-5), [1, groups, 2]);
    let x = x.of_shape([1, groups * channels, spatial], [groups * channels * spatial, spatial, 1]);
    let mut all: Vec<Case> = [
        ([1, 1, 1, wide], 0),
        ([3, 2, 2, 7 * wide], 0),
        ([2, 1, 3, 257 * wide], 0),
        ([1, 1, 2, 3 * wide], 1),
        ([1, 2, 1, 2 * wide], 2),
        ([0, 1, 2, wide], 0),
        ([2, 2, 1, 0], 0),
    ]
    .map(case)
    .into();
    (extremes.name, extremes.inputs[0], extremes.inputs[1]) = ("extreme groups".into(), x, saved);
    // Gradients of each extreme, a channel each.
    let (channels, spatial) = (Extreme::ALL.len(), 2 * wide);
    let strides = [channels * spatial, spatial, 1];
    gradients.inputs[2] = extreme(random, &Extreme::ALL, element, 1, [1, channels, spatial], strides);
    all.extend([overflowing, extremes, Case { name: "extreme gradients".into(), ..gradients }]);
    all
}

/// Computes the gradients and their error bounds. Each term of Σ dy·n has two roundings, and takes
/// part in the additions of its thread, of the samples, and in 10 among threads. If the magnitudes
/// of finite terms overflow together, any result is correct.
fn channels_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (&[samples, all, spatial], &[_, groups, _]) = (inputs[0].extents(), inputs[1].extents()) else {
        return Vec::new();
    };
    let Some(weights) = scalars(instance).get(1).copied() else { return Vec::new() };
    let [x, saved, g] = [0, 1, 2].map(|i| inputs[i].values());
    let additions = gamma(spatial.div_ceil(256) + 4 + samples + 14);
    let of = |which: usize| {
        let channel = |channel: usize| {
            let term = |i: usize| {
                let (sample, at) = (i / spatial, (i / spatial * all + channel) * spatial + i % spatial);
                let group = 2 * (sample * groups + channel / (all / groups));
                g[at] * if which == 0 { (x[at] - saved[group]) * saved[group + 1] } else { 1.0 }
            };
            let terms = || (0..samples * spatial).map(term);
            let value = terms().fold(0.0, |sum, x| sum + x);
            let size: f64 = terms().map(f64::abs).sum();
            let off = 1.001 * additions * size + (samples * spatial) as f64 * 4.0 * TINY;
            let open = size.is_finite() && size > f64::from(f32::MAX) / 2.0;
            (value, if open { f64::INFINITY } else { off + at_rest(weights, value, off) })
        };
        let there = !inputs[4 + which].extents().contains(&0);
        let (values, bounds) = (0..if there { all } else { 0 }).map(channel).unzip();
        Expected::new(4 + which, values, Bound::Each(bounds))
    };
    vec![of(0), of(1)]
}
