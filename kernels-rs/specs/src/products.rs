//! Specs of `gemm`, `sum_splits`, `gemv_n`, `gemv_t`: products α·op(A)·op(B) + β·C of
//! batches of matrices.

use super::stored::{at_rest, drawn, extreme, numbers, stored, unread};
use super::{TINY, U, gamma};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::gemm::epilogue::Identity;
use kernels_rs::gemm::gemv::{gemv_n, gemv_t};
use kernels_rs::gemm::tiled::{gemm, sum_splits};
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(gemm<f32, f32, f32, Identity, 128, 128, 8, 2, 2, 4, false, false, 256, 1, 1>, tiled_cases, tiled_reference);
runtime::register!(sum_splits<f32, Identity, 4>, parts_cases, parts_reference);
runtime::register!(gemv_n<f32, f32, f32, Identity, 1, 8, 16, 256, 4>, gemv_n_cases, few_reference);
runtime::register!(gemv_t<f32, f32, f32, Identity, 1, 1, 4, 4>, gemv_t_cases, gemv_t_reference);

/// Returns a batch of matrices with gaps after rows and matrices, in multiples of `unit`.
fn batch(random: &mut Random, stored: Scalar, extents: [usize; 3], unit: usize, gaps: usize) -> Input {
    let (elements, strides) = layout(extents, unit, gaps);
    drawn(random, stored, elements, extents, strides)
}

/// Returns the length and the strides of such a batch.
fn layout([n, rows, cols]: [usize; 3], unit: usize, gaps: usize) -> (usize, [usize; 3]) {
    let pitch = (cols + gaps * unit).max(unit);
    let plane = (rows * pitch + gaps * unit).max(unit);
    (n * plane + gaps, [plane, pitch, 1])
}

/// Returns the previous contents of C, which are not read if β is 0.
fn before(random: &mut Random, stored: Scalar, beta: f32, extents: [usize; 3], unit: usize, gaps: usize) -> Input {
    let (elements, strides) = layout(extents, unit, gaps);
    if beta == 0.0 {
        return unread(stored, elements, extents, strides);
    }
    drawn(random, stored, elements, extents, strides)
}

/// Returns α or β, most often the usual one.
fn factor(random: &mut Random, usual: f32) -> f32 {
    [usual, 1.0, -1.5, 0.0][random.below(4)]
}

/// α and β of successive cases.
const FACTORS: [[f32; 2]; 3] = [[1.0, 0.0], [-1.5, 1.0], [1.0, -1.5]];

/// Returns a case of one product: batch, M, N, K; α and β.
fn product(
    random: &mut Random,
    stored: Scalar,
    [n, rows, cols, depth]: [usize; 4],
    [alpha, beta]: [f32; 2],
    [transpose_a, transpose_b]: [bool; 2],
    unit: usize,
    splits: Option<usize>,
) -> Case {
    let gaps = random.below(3);
    let a = if transpose_a { [n, depth, rows] } else { [n, rows, depth] };
    let b = if transpose_b { [n, cols, depth] } else { [n, depth, cols] };
    let c = [n * splits.unwrap_or(1), rows, cols];
    let mut inputs = vec![
        Input::scalar(alpha),
        batch(random, stored, a, unit, gaps),
        batch(random, stored, b, unit, gaps),
        Input::scalar(beta),
        before(random, stored, beta, c, unit, gaps),
    ];
    inputs.extend(splits.map(Input::scalar));
    // The number of the first matrix, which this epilogue does not read.
    inputs.push(Input::scalar(random.below(3)));
    let parts = splits.map_or(String::new(), |s| format!(", {s} parts"));
    Case::new(
        format!("{n} of {rows} × {cols} × {depth}, α = {alpha}, β = {beta}{parts}, gaps of {}", gaps * unit),
        inputs,
    )
}

/// Returns two products of small extents: rows of A of each extreme, then columns of B. If β is 0,
/// the previous contents of C are NaN.
fn extreme_products(
    random: &mut Random,
    stored: Scalar,
    [transpose_a, transpose_b]: [bool; 2],
    unit: usize,
    splits: Option<usize>,
) -> [Case; 2] {
    let (all, other, depth) = (Extreme::ALL.len().next_multiple_of(unit), unit.max(4), unit.max(8));
    [true, false].map(|left| {
        let (rows, cols) = if left { (all, other) } else { (other, all) };
        let name = format!("extreme {}", if left { "rows" } else { "columns" });
        let mut case =
            product(random, stored, [1, rows, cols, depth], [1.0, 0.0], [transpose_a, transpose_b], unit, splits);
        let (argument, axis) =
            if left { (1, if transpose_a { 2 } else { 1 }) } else { (2, if transpose_b { 1 } else { 2 }) };
        if let &[n, a, b] = case.inputs[argument].extents() {
            let (_, strides) = layout([n, a, b], unit, 1);
            case.inputs[argument] = extreme(random, &Extreme::ALL, stored, axis, [n, a, b], strides);
        }
        Case { name, ..case }
    })
}

fn tiled_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[rows, cols, deep, _, _, unit, ta, tb, ..] = numbers(instance).as_slice() else { return Vec::new() };
    let transposed = [ta == 1, tb == 1];
    // Extents in units of accesses: one, some, almost a tile, a tile, and more.
    let up = |n: usize| n.next_multiple_of(unit);
    let shapes = [
        [1, up(1), up(1), up(1), 1],
        [1, up(3), up(5), 0, 1],
        [1, 0, up(5), up(3), 1],
        [2, up(rows - 1), up(cols + 1), up(deep + 1), 1],
        [1, rows, cols, 2 * deep, 1],
        [1, up(rows + 1), up(cols - 1), up(2 * deep - 1), 2],
        [1, up(1 + random.below(rows)), up(1 + random.below(2 * cols)), up(1 + random.below(5 * deep)), 3],
        [2, up(5), up(7), up(3), 4],
        // Another group of rows of blocks; two adjacent blocks with full rows; more than two tiles,
        // and another number of tiles with another depth.
        [1, up(8 * rows + 1), cols, up(1), 1],
        [1, rows, up(cols + 1), up(1), 1],
        [1, up(1), up(1), 4 * (deep + 1), 1],
        [1, up(1), up(1), 4 * (deep - 1), 1],
    ];
    let case = |(i, [n, m, c, k, splits]): (usize, [usize; 5])| {
        product(random, stored(instance), [n, m, c, k], FACTORS[i % 3], transposed, unit, Some(splits))
    };
    // The case of many rows takes the interpreters long, especially with accesses of single
    // elements.
    let is_tried = |(_, [_, m, ..]): &(usize, [usize; 5])| unit > 1 || *m <= 2 * rows;
    let mut all: Vec<Case> = shapes.into_iter().enumerate().filter(is_tried).map(case).collect();
    all.extend(extreme_products(random, stored(instance), transposed, unit, Some(1)));
    all
}

fn gemv_n_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[rows, lanes, unrolled, threads, unit] = numbers(instance).as_slice() else { return Vec::new() };
    few(random, stored(instance), rows, 4 * lanes, unrolled * threads / lanes, unit, false)
}

fn gemv_t_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[rows, wide, unit, piece] = numbers(instance).as_slice() else { return Vec::new() };
    let deep = if rows == 1 { 4 * 32 * piece } else { 512 };
    few(random, stored(instance), rows, 8 * wide, deep, unit, true)
}

fn few(
    random: &mut Random,
    stored: Scalar,
    rows: usize,
    cols: usize,
    deep: usize,
    unit: usize,
    transposed: bool,
) -> Vec<Case> {
    let up = |n: usize| n.next_multiple_of(unit);
    let shapes = [
        [1, 1, up(1), up(1)],
        [2, rows, cols, deep],
        [1, rows + 1, up(cols + 1), up(deep + 1)],
        [1, rows, up(cols - 1), up(deep - 1)],
        [1, rows, up(2 * cols + 3), up(1 + random.below(2 * deep))],
        [1, rows, up(3), 0],
        [1, 0, up(3), up(3)],
    ];
    let case = |(i, shape)| product(random, stored, shape, FACTORS[i % 3], [false, transposed], unit, None);
    let mut all: Vec<Case> = shapes.into_iter().enumerate().map(case).collect();
    all.extend(extreme_products(random, stored, [false, transposed], unit, None));
    all
}

fn tiled_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let &[_, _, deep, _, _, _, ta, tb, ..] = numbers(instance).as_slice() else { return Vec::new() };
    // The kernel's division of the depth.
    let splits = inputs[5].value() as usize;
    reference(stored(instance), inputs, [ta == 1, tb == 1], splits, |k| k.div_ceil(splits).next_multiple_of(deep))
}

fn few_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    reference(stored(instance), inputs, [false, false], 1, |k| k)
}

fn gemv_t_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    reference(stored(instance), inputs, [false, true], 1, |k| k)
}

/// Computes the products and their error bounds. A sum of K products, fused in any order, has the
/// error γ(K)·Σ|a·b|. 32 more roundings combine the sums of lanes and warps; α rounds once and β
/// once. Each rounding of a subnormal adds half the least one. If the magnitudes of finite products
/// overflow together, the sum depends on their order and any result is correct.
fn reference(
    stored: Scalar,
    inputs: &[Input],
    [transpose_a, transpose_b]: [bool; 2],
    splits: usize,
    part: impl Fn(usize) -> usize,
) -> Vec<Expected> {
    let (alpha, a, b, beta, c) =
        (inputs[0].value(), inputs[1].values(), inputs[2].values(), inputs[3].value(), inputs[4].values());
    let (&[batches, a1, a2], &[_, rows, cols]) = (inputs[1].extents(), inputs[4].extents()) else { return Vec::new() };
    let depth = if transpose_a { a1 } else { a2 };
    let part = part(depth);
    let (mut values, mut bounds) = (Vec::new(), Vec::new());
    for plane in 0..batches * splits {
        let (n, first) = (plane / splits, (plane % splits * part).min(depth));
        for row in 0..rows {
            for col in 0..cols {
                let a = |k: usize| a[n * rows * depth + if transpose_a { k * rows + row } else { row * depth + k }];
                let b = |k: usize| b[n * depth * cols + if transpose_b { col * depth + k } else { k * cols + col }];
                let products = (first..(first + part).min(depth)).map(|k| a(k) * b(k));
                let sum = products.clone().fold(0.0, |sum, x| sum + x);
                let size: f64 = products.map(f64::abs).sum();
                let old = if beta == 0.0 { 0.0 } else { beta * c[(plane * rows + row) * cols + col] };
                let value = alpha * sum + old;
                values.push(value);
                let off = gamma(depth + 33) * (alpha.abs() * size) + (alpha * sum).abs() * U + value.abs() * U;
                let open = size.is_finite() && size * alpha.abs().max(1.0) > f64::from(f32::MAX) / 2.0;
                bounds.push(match open {
                    true => f64::INFINITY,
                    false => {
                        1.001 * off + (depth as f64 + 35.0) * alpha.abs().max(1.0) * TINY + at_rest(stored, value, off)
                    }
                });
            }
        }
    }
    vec![Expected::new(4, values, Bound::Each(bounds))]
}

fn parts_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[unit] = numbers(instance).as_slice() else { return Vec::new() };
    let up = |n: usize| n.next_multiple_of(unit);
    let shapes =
        [[1, 1, up(1), 1], [2, 3, up(7), 2], [1, 5, up(257), 3], [3, 1, up(1000), 5], [1, 0, up(3), 2], [1, 64, 64, 4]];
    let mut case = |[n, rows, cols, splits]: [usize; 4]| {
        let gaps = random.below(3);
        let (alpha, beta) = (factor(random, 1.0), factor(random, 0.0));
        let parts = batch(random, Scalar::F32, [n * splits, rows, cols], unit, gaps);
        let c = before(random, stored(instance), beta, [n, rows, cols], unit, gaps);
        let name = format!("{n} of {rows} × {cols} in {splits} parts, α = {alpha}, β = {beta}");
        Case::new(
            name,
            [Input::scalar(alpha), parts, Input::scalar(splits), Input::scalar(beta), c, Input::scalar(0usize)],
        )
    };
    let mut all: Vec<Case> = shapes.into_iter().map(&mut case).collect();
    // A row of each extreme in all parts.
    let (splits, extents) = (3, [1, Extreme::ALL.len(), up(5)]);
    let [_, rows, cols] = extents;
    let (elements, strides) = layout([splits, rows, cols], unit, 1);
    let parts = extreme(random, &Extreme::ALL, Scalar::F32, 1, [splits, rows, cols], strides);
    let c = unread(stored(instance), elements, extents, layout(extents, unit, 1).1);
    let scalars = [1.0f32, 0.0].map(Input::scalar);
    let [alpha, beta] = scalars;
    all.push(Case::new("extreme rows", [alpha, parts, Input::scalar(splits), beta, c, Input::scalar(0usize)]));
    all
}

/// Computes the sums and their error bounds: one addition per part, one rounding by α and one by β.
/// If the magnitudes of finite parts overflow together, any result is correct.
fn parts_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (alpha, parts, beta, c) = (inputs[0].value(), inputs[1].values(), inputs[3].value(), inputs[4].values());
    let splits = inputs[2].value() as usize;
    let &[_, rows, cols] = inputs[4].extents() else { return Vec::new() };
    let plane = rows * cols;
    let one = |i: usize| {
        let of_part = (0..splits).map(|s| parts[(i / plane * splits + s) * plane + i % plane]);
        let (sum, size) = (of_part.clone().sum::<f64>(), of_part.map(f64::abs).sum::<f64>());
        let value = alpha * sum + if beta == 0.0 { 0.0 } else { beta * c[i] };
        let off = 1.001 * (gamma(splits + 1) * alpha.abs() * size + value.abs() * U) + 4.0 * TINY;
        let open = size.is_finite() && size * alpha.abs().max(1.0) > f64::from(f32::MAX) / 2.0;
        (value, if open { f64::INFINITY } else { off + at_rest(stored(instance), value, off) })
    };
    let (values, bounds) = (0..c.len()).map(one).unzip();
    vec![Expected::new(4, values, Bound::Each(bounds))]
}
