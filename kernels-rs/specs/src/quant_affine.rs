//! Specs of `extremes`, `affine_fit`, `quantize_affine`, `dequantize_affine`: bytes with a scale
//! and a zero point.

use super::TINY;
use super::stored::{self, drawn, numbers, stored};
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::quant::affine::{affine_fit, dequantize_affine, extremes, quantize_affine};
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(extremes<f32, 4>, matrices, of_parts);
runtime::register!(affine_fit<true>, parts, fitted);
runtime::register!(quantize_affine<f32, 4>, to_bytes, quantized);
runtime::register!(dequantize_affine<f32, 4>, from_bytes, dequantized);

const SHAPES: [[usize; 2]; 5] = [[1, 1], [3, 7], [2, 1030], [0, 5], [4, 0]];

/// Returns a matrix with gaps.
fn matrix(instance: &Instance, random: &mut Random, [rows, cols]: [usize; 2], unit: usize) -> Input {
    let pitch = (cols + unit).next_multiple_of(unit);
    drawn(random, stored(instance), rows * pitch, [rows, cols], [pitch, 1])
}

fn matrices(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[unit] = numbers(instance).as_slice() else { return Vec::new() };
    let case = |name: &str, x: Input, parts: usize| {
        let &[rows, cols] = x.extents() else { return Vec::new() };
        let out = || Input::view(&vec![f32::NAN; rows * parts], [rows, parts]);
        vec![Case::new(format!("{rows} × {cols}{name} in {parts} parts"), [x, out(), out()])]
    };
    let random_cases = [([1, 1], 1), ([3, 7], 2), ([2, 1030], 1), ([0, 5], 2), ([4, 0], 1), ([2, 3080], 2)];
    let mut cases = Vec::new();
    for ([rows, cols], parts) in random_cases {
        cases.extend(case("", matrix(instance, random, [rows, cols.next_multiple_of(unit)], unit), parts));
    }
    // Elements beyond the end do not count as zeros; the last two threads have the extremes.
    let one_sign: Vec<f32> = (0..2 * 16).map(|i| if i < 16 { 1.0 + i as f32 } else { -1.0 - i as f32 }).collect();
    cases.extend(case(" of one sign", of_numbers(instance, &one_sign, [2, 16], 8), 1));
    let last: Vec<f32> = (0..1024).map(|i| [0.0, 1.0, -1.0][if i < 1016 { 0 } else { 1 + i / 4 % 2 }]).collect();
    cases.extend(case(", the extremes last", of_numbers(instance, &last, [1, 1024], 1024), 1));
    cases.extend(case(" at the extremes", stored::extremes(random, &Extreme::ALL, stored(instance), 8, 12), 1));
    cases
}

/// Returns the first `cols` elements of rows of `pitch` numbers.
fn of_numbers(instance: &Instance, x: &[f32], [rows, pitch]: [usize; 2], cols: usize) -> Input {
    stored::rounded(stored(instance), x, [rows, pitch]).of_shape([rows, cols], [pitch, 1])
}

/// Returns the extremes of finite numbers, which are exact.
fn of_parts(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (x, &[_, cols], &[rows, parts]) = (inputs[0].values(), inputs[0].extents(), inputs[1].extents()) else {
        return Vec::new();
    };
    let part = |i: usize| {
        let (row, part) = (i / parts, i % parts);
        (0..cols).filter(move |c| c / 1024 % parts == part).map(move |c| row * cols + c).filter(|i| x[*i].is_finite())
    };
    let low = (0..rows * parts).map(|i| part(i).fold(f64::INFINITY, |low, i| low.min(x[i]))).collect();
    let high = (0..rows * parts).map(|i| part(i).fold(f64::NEG_INFINITY, |high, i| high.max(x[i]))).collect();
    vec![Expected::new(1, low, Bound::Exact), Expected::new(2, high, Bound::Exact)]
}

fn parts(_: &Instance, random: &mut Random) -> Vec<Case> {
    let case = |[rows, n]: [usize; 2]| {
        let (mut low, mut high): (Vec<f32>, Vec<f32>) = (random.values(rows * n), random.values(rows * n));
        for (low, high) in low.iter_mut().zip(&mut high) {
            (*low, *high) = (low.min(*high), high.max(*low));
        }
        // The extremes are in the last lane, or in the next element, which the first lane reads.
        for at in (0..rows).filter(|_| n > 32).map(|row| row * n + 32 - row % 2) {
            (low[at], high[at]) = (-3.0, 3.0);
        }
        // A scale of 1.
        if let ([.., low], [.., high]) = (&mut low[..], &mut high[..]) {
            (*low, *high) = (-100.0, 155.0);
        }
        let (low, high) = (Input::view(&low, [rows, n]), Input::view(&high, [rows, n]));
        let inputs = [low, high, Input::slice(&vec![f32::NAN; rows]), Input::slice(&vec![7i32; rows])];
        Case::new(format!("{rows} × {n}"), inputs)
    };
    // Zeros for an empty matrix.
    let mut all: Vec<Case> = [[1, 1], [9, 40], [3, 0], [0, 3], [8, 32], [17, 1]].map(case).into();
    // Both ends of the exponents; subnormal scales that are rounded up to one unit, and to two.
    let (largest, tiny, none) = (f32::MAX, f32::from_bits, f32::INFINITY);
    let ends = [
        [-largest, largest],
        [-3e38, 3e38],
        [0.0, largest],
        [-largest, 0.0],
        [-1e-40, 1e-40],
        [0.0, tiny(1)],
        [-tiny(1), tiny(2)],
        [-tiny(100), tiny(190)],
        [-tiny(190), tiny(63)],
        [-0.0, 0.0],
        [none, -none],
        [1.0, 2.0],
    ];
    let (low, high) = (ends.map(|[low, _]| low), ends.map(|[_, high]| high));
    let n = ends.len();
    let (low, high) = (Input::view(&low, [n, 1]), Input::view(&high, [n, 1]));
    let inputs = [low, high, Input::slice(&vec![f32::NAN; n]), Input::slice(&vec![7i32; n])];
    all.push(Case::new("extremes", inputs));
    all
}

/// Computes scales and zero points. The width and the scale are rounded once each to `f32`, from
/// the halves of the width if it overflows. Subnormal scales are rounded up.
fn fitted(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (low, high, &[rows, n]) = (inputs[0].values(), inputs[1].values(), inputs[0].extents()) else {
        return Vec::new();
    };
    let symmetric = numbers(instance) == [1];
    let (mut scales, mut zeros) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let low = low[row * n..(row + 1) * n].iter().fold(0.0f64, |a, b| a.min(*b));
        let high = high[row * n..(row + 1) * n].iter().fold(0.0f64, |a, b| a.max(*b));
        let (range, steps) = if symmetric { (high.max(-low), 127.0) } else { (high - low, 255.0) };
        let half = if (range as f32).is_finite() { 1.0 } else { 0.5 };
        let range = f64::from((range * half) as f32);
        let mut scale = f64::from((range / (steps * half)) as f32);
        if scale < f64::from(f32::MIN_POSITIVE) && steps * scale < range {
            scale += TINY;
        }
        scales.push(scale);
        let steps = if symmetric || scale == 0.0 { -128.0 } else { f64::from((low / scale) as f32).round_ties_even() };
        zeros.push(-128.0 - steps);
    }
    vec![Expected::new(2, scales, Bound::Exact), Expected::new(3, zeros, Bound::Exact)]
}

/// Returns one scale and zero point, or one for each row.
fn scales(random: &mut Random, rows: usize) -> [Input; 2] {
    let n = [1, rows.max(1)][random.below(2)];
    let scale: Vec<f32> = (0..n).map(|_| 0.004 + random.below(100) as f32 * 1e-4).collect();
    let zero: Vec<i32> = (0..n).map(|_| random.below(256) as i32 - 128).collect();
    [Input::slice(&scale), Input::slice(&zero)]
}

/// Returns bytes in rows that begin at multiples of `unit`.
fn bytes(random: &mut Random, [rows, cols]: [usize; 2], unit: usize) -> Input {
    let pitch = (cols + unit).next_multiple_of(unit);
    let values: Vec<i8> = (0..rows * pitch).map(|_| random.bits() as i8).collect();
    Input::strided(&values, [rows, cols], [pitch, 1])
}

fn to_bytes(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[unit] = numbers(instance).as_slice() else { return Vec::new() };
    let case = |[rows, cols]: [usize; 2]| {
        let shape = [rows, cols.next_multiple_of(unit)];
        let [scale, zero] = scales(random, rows);
        let x = matrix(instance, random, shape, unit);
        Case::new(format!("{rows} × {cols}"), [x, scale, zero, bytes(random, shape, unit)])
    };
    let mut all: Vec<Case> = SHAPES.map(case).into();
    // A row for each extreme and scale; some scales are far too small or too large.
    let rows = Extreme::ALL.len();
    let ends = [f32::MIN_POSITIVE, f32::from_bits(1), 0.0, f32::MAX / 127.0, 1e-40, 1e-30, 1.0];
    let scale: Vec<f32> = (0..rows).map(|i| ends[(i + i / ends.len()) % ends.len()]).collect();
    for shift in 0..ends.len() {
        let scale: Vec<f32> = (0..rows).map(|i| scale[(i + shift) % rows]).collect();
        let zero: Vec<i32> = (0..rows).map(|i| [0, -128, 127][i % 3]).collect();
        let x = stored::extremes(random, &Extreme::ALL, stored(instance), 4, 8);
        let inputs = [x, Input::slice(&scale), Input::slice(&zero), bytes(random, [rows, 4], unit)];
        all.push(Case::new(format!("extremes, shifted by {shift}"), inputs));
    }
    all
}

/// Computes the bytes. The inverse of the scale is rounded to 24 bits, and so is the product with
/// it.
fn quantized(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (x, scale, zero) = (inputs[0].values(), inputs[1].values(), inputs[2].values());
    let cols = inputs[0].extents()[1];
    let q = x.iter().enumerate().map(|(i, x)| {
        let which = (i / cols).min(scale.len() - 1);
        let steps = rounded(x * rounded(1.0 / scale[which])).round_ties_even();
        f64::from((steps + zero[which]) as i8)
    });
    vec![Expected::new(3, q.collect(), Bound::Exact)]
}

/// Rounds to 24 bits, for any exponent.
fn rounded(x: f64) -> f64 {
    // Rounds away the lowest 29 bits of the `f64`, with ties to even.
    let bits = x.to_bits();
    let up = (1 << 28) - 1 + (bits >> 29 & 1);
    if x.is_finite() && x != 0.0 { f64::from_bits((bits + up) >> 29 << 29) } else { x }
}

fn from_bytes(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[unit] = numbers(instance).as_slice() else { return Vec::new() };
    let case = |[rows, cols]: [usize; 2]| {
        let shape = [rows, cols.next_multiple_of(unit)];
        let [scale, zero] = scales(random, rows);
        let q = bytes(random, shape, unit);
        Case::new(format!("{rows} × {cols}"), [q, scale, zero, matrix(instance, random, shape, unit)])
    };
    let mut all: Vec<Case> = SHAPES.map(case).into();
    // The largest numbers, for which 128 units overflow, and the smallest.
    let scale = [f32::MAX / 127.0, f32::MAX / 127.5, f32::from_bits(1), f32::MIN_POSITIVE, 0.0];
    let q = Input::strided(&[-128i8, 127, 0, -1, 1, 2, -127, 5].repeat(5), [5, 4], [8, 1]);
    let inputs = [q, Input::slice(&scale), Input::slice(&[0; 5]), matrix(instance, random, [5, 4], unit)];
    all.push(Case::new("extremes", inputs));
    all
}

/// Computes the numbers: a product of 24 bits with 9, rounded once, and never an infinity.
fn dequantized(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (q, scale, zero) = (inputs[0].values(), inputs[1].values(), inputs[2].values());
    let cols = inputs[0].extents()[1];
    let x = q.iter().enumerate().map(|(i, q)| {
        let which = (i / cols).min(scale.len() - 1);
        f64::from(((scale[which] * (q - zero[which])) as f32).clamp(f32::MIN, f32::MAX))
    });
    vec![Expected::new(3, x.collect(), Bound::Exact)]
}
