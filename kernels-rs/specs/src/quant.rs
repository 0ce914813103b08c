//! Specs of `igemm`, `sum_rows`, `sum_columns`, `dp4a_peak`: integers, whose results are exact.

use super::stored::{numbers, scalars};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::gemm::epilogue::Identity;
use kernels_rs::quant::igemm::igemm;
use kernels_rs::quant::peak::dp4a_peak;
use kernels_rs::quant::sums::{sum_columns, sum_rows};
use runtime::testing::{Bound, Case, Expected, Input, Random};

runtime::register!(igemm<f32, Identity, 128, 128, 2, 2, 16, false, true, 256, 1, 1>, products, product);
runtime::register!(sum_rows<16>, rows, of_rows);
runtime::register!(sum_columns<4>, columns, of_columns);
runtime::register!(dp4a_peak, peak_cases, peak);

/// Returns a batch of matrices of bytes with gaps after rows and matrices, in multiples of `unit`.
fn bytes(random: &mut Random, extents: [usize; 3], unit: usize, gaps: usize) -> Input {
    let [n, rows, cols] = extents;
    let pitch = (cols + gaps * unit).next_multiple_of(unit).max(unit);
    let plane = (rows * pitch + gaps * unit).max(unit);
    let values: Vec<i8> = (0..n * plane + gaps).map(|_| random.below(256) as u8 as i8).collect();
    Input::strided(&values, extents, [plane, pitch, 1])
}

/// The number of scales or zero points.
#[derive(Clone, Copy)]
enum ScaleCount {
    None,
    One,
    /// One for each row or column.
    Each,
    /// One for each row or column of every matrix.
    All,
}

impl ScaleCount {
    fn drawn<T>(self, random: &mut Random, batch: usize, n: usize, mut value: impl FnMut(&mut Random) -> T) -> Vec<T> {
        let count = match self {
            ScaleCount::None => 0,
            ScaleCount::One => 1,
            ScaleCount::Each => n,
            ScaleCount::All => batch * n,
        };
        (0..count).map(|_| value(random)).collect()
    }
}

/// Scales of A and B, zero points of A and B.
const SCALE_COUNTS: [[ScaleCount; 4]; 8] = [
    [ScaleCount::None; 4],
    [ScaleCount::One, ScaleCount::Each, ScaleCount::Each, ScaleCount::One],
    [ScaleCount::Each, ScaleCount::One, ScaleCount::One, ScaleCount::Each],
    [ScaleCount::All; 4],
    [ScaleCount::Each; 4],
    [ScaleCount::Each, ScaleCount::Each, ScaleCount::None, ScaleCount::Each],
    [ScaleCount::One, ScaleCount::None, ScaleCount::Each, ScaleCount::None],
    [ScaleCount::None, ScaleCount::One, ScaleCount::One, ScaleCount::One],
];

fn products(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[rows, cols, _, _, unit, ta, tb, ..] = numbers(instance).as_slice() else { return Vec::new() };
    let stored = scalars(instance).first().copied().unwrap_or(Scalar::I32);
    let words = unit.min(4);
    let [unit_a, unit_b] = [ta == 1, tb == 0].map(|transposed| if transposed { words } else { unit });
    // K need not be a multiple of the access width if it is the last axis of neither matrix.
    let depth = if ta == 1 && tb == 0 { 1 } else { unit };
    let up = |n: usize, unit: usize| n.next_multiple_of(unit);
    let m = |n| up(n, if ta == 1 { words } else { 1 });
    let (n, k) = (|x| up(x, words), |x| up(x, depth));
    let shapes = [
        [1, m(1), n(1), k(1)],
        [1, m(3), n(5), 0],
        [1, 0, n(5), k(3)],
        [2, m(3), n(1 + random.below(cols)), k(33)],
        [2, m(5), n(3), k(31)],
        [1, rows, cols, 64],
        [1, m(rows + 1), n(cols - 1), k(63)],
        [1, m(rows - 1), n(cols + 1), k(1 + random.below(160))],
        // Two adjacent blocks with full rows; another group of rows of blocks; depths that are
        // divisible by 33 and 31.
        [1, m(rows), n(cols + 1), k(1)],
        [1, m(8 * rows + 1), cols, k(1)],
        [1, m(1), n(1), k(528)],
        [1, m(1), n(1), k(496)],
        // Scales at the ends of `f32`.
        [1, m(9), n(11), k(33)],
    ];
    let mut case = |(i, [batch, m, n, k]): (usize, [usize; 4])| {
        let gaps = random.below(3);
        let a = if ta == 1 { [batch, k, m] } else { [batch, m, k] };
        let b = if tb == 1 { [batch, n, k] } else { [batch, k, n] };
        let ends = [f32::MAX, 1e30, 1e-30, 1e-45, -1e-40, f32::INFINITY, f32::NAN, 1.0, 0.0];
        let scale = |random: &mut Random| match i {
            12 => ends[random.below(ends.len())],
            _ => 0.001 + random.below(1000) as f32 * 1e-5,
        };
        let zero = |random: &mut Random| random.below(256) as i32 - 128;
        let [of_a, of_b, zeros_a, zeros_b] = SCALE_COUNTS[i % SCALE_COUNTS.len()];
        let (scale_a, scale_b) = (of_a.drawn(random, batch, m, scale), of_b.drawn(random, batch, n, scale));
        let (zero_a, zero_b) = (zeros_a.drawn(random, batch, m, zero), zeros_b.drawn(random, batch, n, zero));
        let (a, b) = (bytes(random, a, unit_a, gaps), bytes(random, b, unit_b, gaps));
        let sums = |of: &Input, rows: bool, there: bool| {
            let data: Vec<i32> = total(of, rows).into_iter().map(|x| x as i32).collect();
            let n = data.len() / batch;
            if there { Input::view(&data, [batch, n]) } else { Input::view(&data[..0], [0, 0]) }
        };
        let (sums_a, sums_b) = (sums(&a, ta == 0, !zero_b.is_empty()), sums(&b, tb == 1, !zero_a.is_empty()));
        let c = match stored {
            Scalar::I8 => bytes(random, [batch, m, n], words, gaps),
            Scalar::I32 => Input::view(&vec![7i32; batch * m * n], [batch, m, n]),
            _ => Input::view(&vec![f32::NAN; batch * m * n], [batch, m, n]),
        };
        Case::new(
            format!(
                "{batch} of {m} × {n} × {k}, {} and {} scales, {} and {} zero points, gaps of {}",
                scale_a.len(),
                scale_b.len(),
                zero_a.len(),
                zero_b.len(),
                gaps * unit
            ),
            [
                a,
                Input::slice(&scale_a),
                Input::slice(&zero_a),
                sums_a,
                b,
                Input::slice(&scale_b),
                Input::slice(&zero_b),
                sums_b,
                c,
                Input::scalar([0.5f32, 1.0, 20.0][random.below(3)]),
                Input::scalar([0.0f32, 3.0, -100.0][random.below(3)]),
            ],
        )
    };
    shapes.into_iter().enumerate().map(&mut case).collect()
}

/// Computes the products. Integers are exact in `f64`, and below 2³¹ here. A real number is sₐ·s_b
/// times the sum as `f32`: the same roundings in the same order.
fn product(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let &[_, _, _, _, _, ta, tb, ..] = numbers(instance).as_slice() else { return Vec::new() };
    let stored = scalars(instance).first().copied().unwrap_or(Scalar::I32);
    let (a, b) = (inputs[0].values(), inputs[4].values());
    let &[batch, m, n] = inputs[8].extents() else { return Vec::new() };
    let &[_, a1, a2] = inputs[0].extents() else { return Vec::new() };
    let depth = if ta == 1 { a1 } else { a2 };
    let [scale_a, zero_a, scale_b, zero_b] = [1, 2, 5, 6].map(|i: usize| inputs[i].values());
    let pick = |of: &[f64], otherwise: f64, each: usize, p: usize, i: usize| match of.len() {
        0 => otherwise,
        1 => of[0],
        len if len == each => of[i],
        _ => of[p * each + i],
    };
    let (inverse, zero) = (inputs[9].value() as f32, inputs[10].value() as f32);
    let mut values = Vec::new();
    for p in 0..batch {
        for r in 0..m {
            for c in 0..n {
                let (za, zb) = (pick(&zero_a, 0.0, m, p, r), pick(&zero_b, 0.0, n, p, c));
                let a = |k: usize| a[p * m * depth + if ta == 1 { k * m + r } else { r * depth + k }] - za;
                let b = |k: usize| b[p * n * depth + if tb == 1 { c * depth + k } else { k * n + c }] - zb;
                let sum = (0..depth).fold(0.0, |sum, k| sum + a(k) * b(k));
                let scale = pick(&scale_a, 1.0, m, p, r) as f32 * pick(&scale_b, 1.0, n, p, c) as f32;
                let real = scale * sum as f32;
                values.push(match stored {
                    Scalar::I32 => sum,
                    // A NaN is the byte 0.
                    Scalar::I8 => f64::from(((real * inverse).round_ties_even() + zero) as i8),
                    _ => f64::from(real),
                });
            }
        }
    }
    vec![Expected::new(8, values, Bound::Exact)]
}

/// Returns the sums of each row, or of each column, of every matrix.
fn total(of: &Input, rows: bool) -> Vec<f64> {
    let (x, &[batch, r, c]) = (of.values(), of.extents()) else { return Vec::new() };
    let at = |p: usize, i: usize, j: usize| x[p * r * c + i * c + j];
    let of_row = |p: usize, i: usize| (0..c).fold(0.0, |sum, j| sum + at(p, i, j));
    let of_column = |p: usize, j: usize| (0..r).fold(0.0, |sum, i| sum + at(p, i, j));
    (0..batch)
        .flat_map(|p| {
            if rows {
                (0..r).map(|i| of_row(p, i)).collect::<Vec<_>>()
            } else {
                (0..c).map(|j| of_column(p, j)).collect()
            }
        })
        .collect()
}

fn rows(instance: &Instance, random: &mut Random) -> Vec<Case> {
    sums(instance, random, |[_, r, _]| r)
}

fn columns(instance: &Instance, random: &mut Random) -> Vec<Case> {
    sums(instance, random, |[_, _, c]| c)
}

fn sums(instance: &Instance, random: &mut Random, kept: impl Fn([usize; 3]) -> usize) -> Vec<Case> {
    let &[unit] = numbers(instance).as_slice() else { return Vec::new() };
    let up = |n: usize| n.next_multiple_of(unit);
    let shapes = [[1, 1, up(1)], [2, 9, up(513)], [1, 0, up(3)], [1, 3, 0], [3, 17, up(31 * unit)]];
    let case = |extents: [usize; 3]| {
        let gaps = random.below(3);
        let to = [extents[0], kept(extents)];
        let inputs = [bytes(random, extents, unit, gaps), Input::view(&vec![5i32; to[0] * to[1]], to)];
        Case::new(format!("{} of {} × {}, gaps of {}", extents[0], extents[1], extents[2], gaps * unit), inputs)
    };
    shapes.map(case).into()
}

fn of_rows(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    vec![Expected::new(1, total(&inputs[0], true), Bound::Exact)]
}

fn of_columns(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    vec![Expected::new(1, total(&inputs[0], false), Bound::Exact)]
}

fn peak_cases(_: &Instance, random: &mut Random) -> Vec<Case> {
    [(1, 0), (2, 3)]
        .map(|(blocks, iterations): (usize, usize)| {
            let x: Vec<i32> = (0..256 * blocks).map(|_| random.bits() as i32).collect();
            let inputs = [Input::slice(&x), Input::scalar(iterations), Input::slice(&vec![0i32; 256 * blocks])];
            Case::new(format!("{blocks} blocks, {iterations} iterations"), inputs)
        })
        .into()
}

/// Computes sums of at most 3 · 64 · 4 products of bytes, which are exact.
fn peak(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let iterations = inputs[1].value();
    let dot = |x: i32, y: i32| -> f64 {
        x.to_le_bytes().iter().zip(y.to_le_bytes()).map(|(x, y)| f64::from(*x as i8) * f64::from(y as i8)).sum()
    };
    let of = |x: &i32| {
        let all =
            (0..8).map(|i| x.rotate_left(i)).flat_map(|a| (0..8).map(move |j| dot(a, x.rotate_right(j)))).sum::<f64>();
        iterations * all
    };
    vec![Expected::new(2, inputs[0].to_vec::<i32>().iter().map(of).collect(), Bound::Exact)]
}
