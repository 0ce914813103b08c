//! Specs of `transpose`, `transpose_tiles`, `copy_rows`, `fill_rows`, `gather_rows`.

use super::stored::{numbers, specials, stored};
use super::{pieces, with_gaps};
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::permute::gather::gather_rows;
use kernels_rs::permute::rows::{copy_rows, fill_rows};
use kernels_rs::permute::tiles::transpose_tiles;
use kernels_rs::permute::transpose;
use runtime::testing::{Bound, Case, Expected, Input, Random, edges, shapes};

runtime::register!(transpose, cases, reference);
runtime::register!(transpose_tiles<f32, 4, 4, 64, 64, 1, 64, 65, 66, 16, 2, 4, 8, 2>, tiled_cases, tiled_reference);
runtime::register!(copy_rows<f32, 4, 4, 1>, copied_cases, copied_reference);
runtime::register!(fill_rows<f32, 4>, filled_cases, filled_reference);
runtime::register!(gather_rows<f32, 4, 2>, gathered_cases, gathered_reference);

fn cases(_: &Instance, random: &mut Random) -> Vec<Case> {
    let sizes = edges(32);
    let mut all = Vec::new();
    for shape in shapes([&sizes, &sizes], random).into_iter().chain([[1, 1000], [1000, 1], [131, 257]]) {
        all.push(case(random, shape, 0));
    }
    let shape = [(); 2].map(|()| 1 + random.below(200));
    all.push(case(random, shape, 0));
    all.push(case(random, shape, 3));
    all
}

fn case(random: &mut Random, [rows, cols]: [usize; 2], gap: usize) -> Case {
    let gaps = if gap == 0 { String::new() } else { format!(", rows {gap} elements apart") };
    let mut matrix = |[rows, cols]: [usize; 2]| {
        with_gaps(&random.special_values::<f32>(rows * (cols + gap) + gap), [rows, cols], gap)
    };
    let inputs = [matrix([rows, cols]), matrix([cols, rows])];
    Case::new(format!("{rows} × {cols}{gaps}"), inputs)
}

/// Returns the transposed values; nothing is computed.
fn reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let x = inputs[0].values();
    let &[rows, cols] = inputs[0].extents() else { return Vec::new() };
    let y = (0..cols).flat_map(|col| (0..rows).map(move |row| row * cols + col)).map(|i| x[i]).collect();
    vec![Expected::new(1, y, Bound::Exact)]
}

fn tiled_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[vx, vy, wide, _, _, high, ..] = numbers(instance).as_slice() else { return Vec::new() };
    let (down, across) = (|n: usize| n.next_multiple_of(vy), |n: usize| n.next_multiple_of(vx));
    let shapes = [
        [1, 1, down(1), across(1)],
        [1, 2, 0, across(3)],
        [1, 1, down(high - 1), across(wide + 1)],
        [2, 2, down(5), across(7)],
        [1, 1, down(high + 1), across(1 + random.below(wide - 4))],
        [1, 1, down(2 * high + 1), across(wide + 1)],
        // Tiles of one matrix and of the next, without a partial tile.
        [1, 2, high, wide],
        [2, 1, down(3), across(4 * wide - 4)],
        [2, 1, down(3), across(5 * wide + 4)],
        [2, 1, down(5 * high + 4), across(3)],
    ];
    let case = |[a, b, rows, cols]: [usize; 4]| {
        let gap = random.below(3);
        let mut batch = |[a, b, rows, cols]: [usize; 4], unit: usize| {
            let pitch = (cols + gap * unit).max(unit);
            let (plane, all) = ((rows * pitch).max(unit), (b * rows * pitch + gap * unit).max(unit));
            specials(random, stored(instance), a * all, [a, b, rows, cols], [all, plane, pitch, 1])
        };
        let inputs = [batch([a, b, rows, cols], vx), batch([a, b, cols, rows], vy)];
        Case::new(format!("{a} × {b} of {rows} × {cols}, gaps of {gap}"), inputs)
    };
    shapes.map(case).into()
}

fn tiled_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let x = inputs[0].values();
    let &[a, b, rows, cols] = inputs[0].extents() else { return Vec::new() };
    let one = |plane: usize| (0..rows * cols).map(move |i| (plane * rows + i % rows) * cols + i / rows);
    vec![Expected::new(1, (0..a * b).flat_map(one).map(|i| x[i]).collect(), Bound::Exact)]
}

fn copied_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[v, vx, _] = numbers(instance).as_slice() else { return Vec::new() };
    let case = |shape: [usize; 4]| {
        let x = pieces::read(random, stored(instance), shape, [v, vx]);
        let gap = random.below(3);
        Case::new(format!("{shape:?}"), [x, pieces::written(random, stored(instance), shape, v, gap)])
    };
    let mut all: Vec<Case> = pieces::shapes(v, &mut Random::new(3)).into_iter().map(case).collect();
    let shape = [1, 1, 3, 5 * v];
    let (extents, strides) = ([1, 1, 3, 5 * v / vx, vx], [15 * v, 15 * v, 5 * v, vx, 1]);
    let x = specials(random, stored(instance), 15 * v, extents, strides);
    all.push(Case::new("extremes", [x, pieces::written(random, stored(instance), shape, v, 1)]));
    all
}

/// Returns the values in the same order, for any access width.
fn copied_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    vec![Expected::new(1, inputs[0].values(), Bound::Exact)]
}

fn filled_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[v] = numbers(instance).as_slice() else { return Vec::new() };
    let case = |shape: [usize; 4]| {
        let (value, gap) = (random.special_values::<f32>(1)[0], random.below(3));
        let y = pieces::written(random, stored(instance), shape, v, gap);
        Case::new(format!("{shape:?}"), [Input::scalar(value), y])
    };
    pieces::shapes(v, &mut Random::new(3)).into_iter().map(case).collect()
}

fn filled_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    vec![Expected::new(1, vec![inputs[0].value(); inputs[1].value_count()], Bound::Exact)]
}

fn gathered_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[v, _] = numbers(instance).as_slice() else { return Vec::new() };
    let case = |[rows, cols, tokens]: [usize; 3]| {
        let mut matrix = |[rows, cols]: [usize; 2]| {
            let pitch = cols + random.below(2) * v;
            specials(random, stored(instance), rows * pitch + 1, [rows, cols], [pitch.max(v), 1])
        };
        let (table, y) = (matrix([rows, cols]), matrix([tokens, cols]));
        // Some indices are beyond the table, far or just by one.
        let number = |_| if random.below(9) == 0 { u32::MAX } else { random.below(rows + 2) as u32 };
        let index: Vec<u32> = (0..tokens).map(number).collect();
        Case::new(format!("{tokens} of {rows} rows of {cols}"), [table, Input::slice(&index), y])
    };
    [[5, v, 1], [40, 3 * v, 70], [1, 65 * v, 9], [0, v, 4], [7, 0, 3], [7, 2 * v, 0], [9, 171 * v, 3], [9, 3 * v, 171]]
        .map(case)
        .into()
}

fn gathered_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (table, index) = (inputs[0].values(), inputs[1].values());
    let &[rows, cols] = inputs[0].extents() else { return Vec::new() };
    let row = |at: f64| (0..cols).map(move |col| (at as usize) * cols + col);
    let one = |at: f64, i: usize| if (at as usize) < rows { table[i] } else { 0.0 };
    let y = index.iter().flat_map(|at| row(*at).map(|i| one(*at, i))).collect();
    vec![Expected::new(2, y, Bound::Exact)]
}
