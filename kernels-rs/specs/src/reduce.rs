//! Specs of `reduce_rows`, `reduce_parts`, `reduce_columns`, `join_columns`.

use super::stored::{self, drawn, numbers, scalars};
use super::{TINY, gamma};
use kernel_dsl::GenericArgument;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::reduce::kernels::{join_columns, reduce_columns, reduce_parts, reduce_rows};
use kernels_rs::reduce::{ArgMax, Found, Sum};
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(reduce_rows<f32, Sum, 32, 4, 8>, row_cases, row_reference);
runtime::register!(reduce_parts<f32, Sum, 4>, part_cases, part_reference);
runtime::register!(reduce_columns<f32, Sum, 4>, column_cases, column_reference);
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
    let case = |(x, rows, results, cols, chunk, pitch): (Input, usize, usize, usize, usize, usize)| {
        let parts = (rows * cols.div_ceil(chunk)).max(1);
        let name = format!("{rows} × {cols} in parts of {chunk}, indices {pitch} apart, {results} results");
        let parts = states(instance, [results, parts / results]);
        let ended = Input::view(&vec![0u32; results], [results]);
        let y = self::results(instance, results);
        Case::new(name, [x, Input::scalar(chunk), Input::scalar(pitch), parts, ended, y])
    };
    let shapes = [
        [1, 1, 5 * v, 2 * v],
        [3, 3, 300 * v, 256 * v],
        [3, 1, 300 * v, 256 * v],
        [2, 2, 8 * v, 8 * v],
        // More parts than threads.
        [2, 1, 300 * v, 2 * v],
        [1, 1, 0, v],
        [0, 1, 5 * v, 2 * v],
        [2, 2, 2916 * v, 2048 * v],
    ];
    let mut all: Vec<Case> = shapes
        .into_iter()
        .map(|[rows, results, cols, chunk]| {
            let pitch = if results < rows { cols } else { random.below(2) * cols };
            case((matrix(random, instance, [rows, cols], v), rows, results, cols, chunk, pitch))
        })
        .collect();
    let rows = Extreme::ALL.len();
    all.push(case((extremes(random, instance, 5 * v, v), rows, rows, 5 * v, 4 * v, 0)));
    all
}

/// Reduces parts as rows, then the parts: additions of a thread's parts, then of lanes and warps.
fn part_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let &[v] = numbers(instance).as_slice() else { return Vec::new() };
    let (x, chunk, pitch) = (inputs[0].values(), inputs[1].value() as usize, inputs[2].value() as usize);
    let (&[rows, cols], &[results, parts]) = (inputs[0].extents(), inputs[3].extents()) else { return Vec::new() };
    let additions = chunk.min(cols).div_ceil(256 * v) + v + 8 + parts.div_ceil(256) + 8;
    let result = |result: usize| {
        let of_result = result * (rows / results)..(result + 1) * (rows / results);
        let elements = of_result.flat_map(|row| (0..cols).map(move |c| (row, c)));
        let elements = elements.map(|(row, c)| (row * pitch + c, x[row * cols + c]));
        finished(instance, elements, rows / results * cols, additions)
    };
    let (values, bounds) = (0..results).map(result).unzip();
    vec![
        Expected::unchecked(3),
        Expected::new(4, vec![0.0; results], Bound::Exact),
        Expected::new(5, values, Bound::Each(bounds)),
    ]
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
fn parts_of(random: &mut Random, instance: &Instance, extents: [usize; 3]) -> Input {
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

/// Returns parts of a column for each extreme. No part that a kernel writes has a NaN as its
/// largest value.
fn extreme_parts(random: &mut Random, instance: &Instance) -> Input {
    let (cols, parts) = (Extreme::ALL.len(), EXTREME_PARTS);
    let of_cols = Extreme::rows::<f32>(&Extreme::ALL, random, parts, parts).to_vec::<f32>();
    let values: Vec<f32> = (0..cols * parts).map(|i| of_cols[i % cols * parts + i / cols]).collect();
    if !finds(instance) {
        return Input::view(&values, [1, parts, cols]);
    }
    let found = |(i, x): (usize, f32)| Found { value: x.max(f32::NEG_INFINITY), at: (i / cols) as u32 };
    Input::view(&values.into_iter().enumerate().map(found).collect::<Vec<_>>(), [1, parts, cols])
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
    let input = extreme_parts(random, instance);
    all.push(Case::new("extremes", [input, Input::scalar(1000usize), y(1, Extreme::ALL.len())]));
    all
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
