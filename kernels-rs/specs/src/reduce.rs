//! Specs of `reduce_rows`, `reduce_parts`, `reduce_columns`, `join_parts`, `join_columns`.

use super::stored::{self, drawn, numbers, scalars};
use super::{TINY, gamma};
use kernel_dsl::GenericArgument;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::reduce::kernels::{join_columns, join_parts, reduce_columns, reduce_parts, reduce_rows};
use kernels_rs::reduce::{ArgMax, Found, Sum};
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(reduce_rows<f32, Sum, 32, 4, 8>, row_cases, row_reference);
runtime::register!(reduce_parts<f32, Sum, 4>, part_cases, part_reference);
runtime::register!(reduce_columns<f32, Sum, 4>, column_cases, column_reference);
runtime::register!(join_parts<Sum>, join_cases, join_reference);
runtime::register!(join_columns<Sum>, join_column_cases, join_column_reference);

/// Returns whether the instance finds indices instead of sums.
fn finds(instance: &Instance) -> bool {
    instance.0.contains(&ArgMax::CONSTANT)
}

/// Returns a batch of matrices with gaps after rows.
fn batch(random: &mut Random, instance: &Instance, [n, rows, cols]: [usize; 3], unit: usize) -> (Input, usize) {
    let pitch = (cols + random.below(2) * unit).max(unit);
    let stored = scalars(instance).first().copied().unwrap_or(Scalar::F32);
    let elements = (n * rows * pitch).max(1);
    (drawn(random, stored, elements, [n, rows, cols], [(rows * pitch).max(unit), pitch, 1]), pitch)
}

/// Returns one matrix, for kernels without a batch.
fn matrix(random: &mut Random, instance: &Instance, [rows, cols]: [usize; 2], unit: usize) -> Input {
    let pitch = (cols + random.below(2) * unit).max(unit);
    let stored = scalars(instance).first().copied().unwrap_or(Scalar::F32);
    drawn(random, stored, rows * pitch + 1, [rows, cols], [pitch, 1])
}

/// Returns results to be overwritten.
fn results(instance: &Instance, n: usize) -> Input {
    if finds(instance) { Input::slice(&vec![7u32; n]) } else { Input::slice(&vec![7f32; n]) }
}

/// Returns states to be overwritten.
fn states<const R: usize>(instance: &Instance, extents: [usize; R]) -> Input {
    let n = extents.iter().product();
    if finds(instance) {
        Input::view(&vec![Found { value: 7.0, at: 7 }; n], extents)
    } else {
        Input::view(&vec![7f32; n], extents)
    }
}

/// Reduces elements with their indices: a sum with its error bound, or the largest with its first
/// index.
///
/// No element is part of more than `additions` additions, in any order: the error is γ of them ·
/// Σ|x|, and subnormal sums are exact. If Σ|x| overflows, partial sums may overflow, and any result
/// is correct. A state skips NaNs.
fn combined(
    instance: &Instance,
    elements: impl Iterator<Item = (usize, f64)> + Clone,
    additions: usize,
) -> (Vec<f64>, f64) {
    if finds(instance) {
        let best = elements.fold((f64::NEG_INFINITY, u32::MAX as usize), |best, (at, x)| {
            if x > best.0 || x == best.0 && at < best.1 { (x, at) } else { best }
        });
        return (vec![best.0, best.1 as f64], 0.0);
    }
    let size = elements.clone().map(|(_, x)| x.abs()).sum::<f64>();
    let bound = 1.001 * gamma(additions) * size + TINY;
    let bound = if size + bound > f64::from(f32::MAX) { f64::INFINITY } else { bound };
    (vec![elements.map(|(_, x)| x).fold(0.0, |sum, x| sum + x)], bound)
}

/// Returns the result over `n` elements instead of a state: the index alone. A NaN counts as −∞, so
/// that the first of `n` elements is the result if none is above −∞.
fn finished(
    instance: &Instance,
    elements: impl Iterator<Item = (usize, f64)> + Clone,
    n: usize,
    additions: usize,
) -> (f64, f64) {
    match combined(instance, elements, additions) {
        (state, _) if state[0] == f64::NEG_INFINITY && finds(instance) && n > 0 => (0.0, 0.0),
        (state, bound) => (state.last().copied().unwrap_or(0.0), bound),
    }
}

fn row_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[threads, v, rows] = numbers(instance).as_slice() else { return Vec::new() };
    let step = threads * v;
    let shapes =
        [[0, step], [1, 0], [rows, v], [rows + 1, step - v], [2, step], [rows, step + v], [3, 7 * step + 3 * v]];
    let case = |[rows, cols]: [usize; 2]| {
        let x = matrix(random, instance, [rows, cols], v);
        Case::new(format!("{rows} × {cols}"), [x, results(instance, rows)])
    };
    let mut all: Vec<Case> = shapes.map(case).into();
    all.push(Case::new("extremes", [extremes(random, instance, 5 * v, v), results(instance, Extreme::ALL.len())]));
    all
}

/// Returns a row for each extreme, with gaps.
fn extremes(random: &mut Random, instance: &Instance, cols: usize, unit: usize) -> Input {
    let stored = scalars(instance).first().copied().unwrap_or(Scalar::F32);
    stored::extremes(random, &Extreme::ALL, stored, cols, cols + unit)
}

/// Reduces rows: additions of `V` sums per thread, then of these sums, of lanes and of warps.
fn row_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let &[threads, v, _] = numbers(instance).as_slice() else { return Vec::new() };
    let x = inputs[0].values();
    let &[rows, cols] = inputs[0].extents() else { return Vec::new() };
    let row = |row: usize| {
        finished(instance, (0..cols).map(|c| (c, x[row * cols + c])), cols, cols.div_ceil(threads * v) + v + 8)
    };
    let (values, bounds) = (0..rows).map(row).unzip();
    vec![Expected::new(1, values, Bound::Each(bounds))]
}

fn part_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[v] = numbers(instance).as_slice() else { return Vec::new() };
    let shapes = [[1, 5 * v, 2 * v], [3, 300 * v, 256 * v], [2, 8 * v, 8 * v], [1, 0, v], [2, 2916 * v, 2048 * v]];
    let case = |[rows, cols, chunk]: [usize; 3]| {
        let (x, pitch) = (matrix(random, instance, [rows, cols], v), random.below(2) * cols);
        let parts = states(instance, [rows, cols.div_ceil(chunk)]);
        let name = format!("{rows} × {cols} in parts of {chunk}, places {pitch} apart");
        Case::new(name, [x, Input::scalar(chunk), Input::scalar(pitch), parts])
    };
    let mut all: Vec<Case> = shapes.map(case).into();
    let (x, parts) = (extremes(random, instance, 5 * v, v), states(instance, [Extreme::ALL.len(), 2]));
    all.push(Case::new("extremes", [x, Input::scalar(4 * v), Input::scalar(5 * v), parts]));
    all
}

/// Reduces parts as rows.
fn part_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let &[v] = numbers(instance).as_slice() else { return Vec::new() };
    let (x, chunk, pitch) = (inputs[0].values(), inputs[1].value() as usize, inputs[2].value() as usize);
    let &[rows, cols] = inputs[0].extents() else { return Vec::new() };
    let (mut values, mut bounds) = (Vec::new(), Vec::new());
    for row in 0..rows {
        for from in (0..cols).step_by(chunk) {
            let places = from..cols.min(from + chunk);
            let additions = places.len().div_ceil(256 * v) + v + 8;
            let (parts, bound) = combined(instance, places.map(|c| (row * pitch + c, x[row * cols + c])), additions);
            bounds.extend(parts.iter().map(|_| bound));
            values.extend(parts);
        }
    }
    vec![Expected::new(3, values, Bound::Each(bounds))]
}

fn column_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[v] = numbers(instance).as_slice() else { return Vec::new() };
    let shapes = [
        [1, 1, v, 1],
        [2, 9, 3 * v, 9],
        [1, 70, 33 * v, 33],
        [1, 60, 32 * v, 64],
        [3, 0, 2 * v, 5],
        [1, 33, 70 * v, 32],
        // More matrices than there are blocks.
        [4100, 1, v, 1],
    ];
    let case = |[n, rows, cols, chunk]: [usize; 4]| {
        let (x, _) = batch(random, instance, [n, rows, cols], v);
        let parts = states(instance, [n, rows.div_ceil(chunk), cols]);
        Case::new(format!("{n} of {rows} × {cols} in parts of {chunk}"), [x, Input::scalar(chunk), parts])
    };
    let mut all: Vec<Case> = shapes.map(case).into();
    // A column for each extreme.
    let cols = Extreme::ALL.len();
    let (extents, strides) = ([1, 9, cols], [9 * cols, cols, 1]);
    let stored = scalars(instance).first().copied().unwrap_or(Scalar::F32);
    let x = stored::extreme(random, &Extreme::ALL, stored, 2, extents, strides);
    all.push(Case::new("extremes", [x, Input::scalar(9usize), states(instance, [1, 1, cols])]));
    all
}

/// Reduces columns: additions of a warp's rows, then of eight warps.
fn column_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (x, chunk) = (inputs[0].values(), inputs[1].value() as usize);
    let &[n, rows, cols] = inputs[0].extents() else { return Vec::new() };
    let (mut values, mut bounds) = (Vec::new(), Vec::new());
    for (matrix, from) in (0..n).flat_map(|m| (0..rows).step_by(chunk).map(move |r| (m, r))) {
        let places = from..rows.min(from + chunk);
        let additions = places.len().div_ceil(8) + 8;
        for col in 0..cols {
            let elements = places.clone().map(|r| (r, x[(matrix * rows + r) * cols + col]));
            let (parts, bound) = combined(instance, elements, additions);
            bounds.extend(parts.iter().map(|_| bound));
            values.extend(parts);
        }
    }
    vec![Expected::new(2, values, Bound::Each(bounds))]
}

/// Returns states of parts with repeated values, so that the first index counts.
fn parts_of<const R: usize>(random: &mut Random, instance: &Instance, extents: [usize; R]) -> Input {
    let elements = extents.iter().product::<usize>();
    if !finds(instance) {
        return Input::view(&random.values::<f32>(elements), extents);
    }
    let value = |random: &mut Random| random.below(20) as f32 - 10.0;
    let found = |i| Found { value: value(random), at: (i * 37 % elements) as u32 };
    Input::view(&(0..elements).map(found).collect::<Vec<_>>(), extents)
}

/// The number of parts of each extreme.
const EXTREME_PARTS: usize = 7;

/// Returns parts of each extreme: a row of a matrix, or a column of the matrix in a batch. No part
/// that a kernel writes has a NaN as its largest value.
fn extreme_parts<const R: usize>(random: &mut Random, instance: &Instance, extents: [usize; R]) -> Input {
    let (rows, parts, in_columns) = (Extreme::ALL.len(), EXTREME_PARTS, R == 3);
    let of_rows = Extreme::rows::<f32>(&Extreme::ALL, random, parts, parts).to_vec::<f32>();
    let place = |i: usize| if in_columns { i % rows * parts + i / rows } else { i };
    let values: Vec<f32> = (0..rows * parts).map(|i| of_rows[place(i)]).collect();
    if !finds(instance) {
        return Input::view(&values, extents);
    }
    let part = |i: usize| if in_columns { i / rows } else { i % parts };
    let found = |(i, x): (usize, f32)| Found { value: x.max(f32::NEG_INFINITY), at: part(i) as u32 };
    Input::view(&values.into_iter().enumerate().map(found).collect::<Vec<_>>(), extents)
}

fn join_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let case = |[rows, parts]: [usize; 2]| {
        let input = parts_of(random, instance, [rows, parts]);
        Case::new(format!("{rows} of {parts} parts"), [input, Input::scalar(1000usize), results(instance, rows)])
    };
    let mut all: Vec<Case> = [[1, 1], [7, 32], [9, 33], [1, 300], [3, 0], [0, 4]].map(case).into();
    let input = extreme_parts(random, instance, [Extreme::ALL.len(), EXTREME_PARTS]);
    all.push(Case::new("extremes", [input, Input::scalar(1000usize), results(instance, Extreme::ALL.len())]));
    all
}

fn join_column_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let y = |n: usize, cols: usize| {
        if finds(instance) {
            Input::view(&vec![7u32; n * cols], [n, cols])
        } else {
            Input::view(&vec![7f32; n * cols], [n, cols])
        }
    };
    let case = |[n, parts, cols]: [usize; 3]| {
        let input = parts_of(random, instance, [n, parts, cols]);
        Case::new(format!("{n} of {parts} parts × {cols}"), [input, Input::scalar(1000usize), y(n, cols)])
    };
    // The last has more matrices than there are blocks.
    let shapes = [[1, 1, 1], [2, 8, 31], [1, 33, 33], [3, 70, 32], [1, 0, 3], [0, 4, 5], [4100, 1, 1]];
    let mut all: Vec<Case> = shapes.map(case).into();
    let input = extreme_parts(random, instance, [1, EXTREME_PARTS, Extreme::ALL.len()]);
    all.push(Case::new("extremes", [input, Input::scalar(1000usize), y(1, Extreme::ALL.len())]));
    all
}

/// Combines parts: additions of a lane's parts, then of lanes.
fn join_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (states, n) = (inputs[0].values(), inputs[1].value() as usize);
    let &[rows, parts] = inputs[0].extents() else { return Vec::new() };
    let row = |row: usize| {
        let of_row = (row * parts..(row + 1) * parts)
            .map(|i| if finds(instance) { (states[2 * i + 1] as usize, states[2 * i]) } else { (i, states[i]) });
        finished(instance, of_row, n, parts.div_ceil(32) + 5)
    };
    let (values, bounds) = (0..rows).map(row).unzip();
    vec![Expected::new(2, values, Bound::Each(bounds))]
}

/// Combines parts of columns: additions of a warp's parts, then of eight warps.
fn join_column_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (states, count) = (inputs[0].values(), inputs[1].value() as usize);
    let &[n, parts, cols] = inputs[0].extents() else { return Vec::new() };
    let column = |(matrix, col): (usize, usize)| {
        let of_column = (0..parts).map(|part| (matrix * parts + part) * cols + col);
        let elements = of_column
            .map(|i| if finds(instance) { (states[2 * i + 1] as usize, states[2 * i]) } else { (i, states[i]) });
        finished(instance, elements, count, parts.div_ceil(8) + 8)
    };
    let (values, bounds) = (0..n).flat_map(|matrix| (0..cols).map(move |col| (matrix, col))).map(column).unzip();
    vec![Expected::new(2, values, Bound::Each(bounds))]
}
