//! Specs of `repack`, `repack_rows`, `quantize_q8`, `quantize_q4`, `dequantize`,
//! `quantize_activations`, `gemv_blocks`, `gemm_blocks`, `add_parts`: weights in the formats of
//! GGML, and bytes.
//!
//! Blocks are drawn as numbers, and are quantized and converted to planes on the host. References
//! read the units of planes by the format's own functions, which tests compare with another
//! decoder.

use super::norms::{Bounded, expected};
use super::stored::{at_rest, drawn, extremes, numbers, scalars, unread};
use super::{TINY, U, gamma};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::{Constant, Instance};
use kernel_dsl::half::f16;
use kernel_dsl::prelude::View;
use kernels_rs::activation::swiglu;
use kernels_rs::gemm::epilogue::Identity;
use kernels_rs::quant::Format;
use kernels_rs::quant::activations::quantize_activations;
use kernels_rs::quant::few::gemv_blocks;
use kernels_rs::quant::formats::device::{BlockFormat, PlaneUnit, Unit};
use kernels_rs::quant::formats::host::{self, Ggml, Planes};
use kernels_rs::quant::formats::*;
use kernels_rs::quant::many::{add_parts, gemm_blocks};
use kernels_rs::quant::repack::{dequantize, quantize_q4, quantize_q8, repack, repack_rows};
use kernels_rs::with_format;
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(repack<Q4_0>, files, repacked);
runtime::register!(repack_rows, of_bytes, padded);
runtime::register!(quantize_q8<f32, 4>, numbers_q8, quantized_q8);
runtime::register!(quantize_q4<f32>, numbers_q4, quantized_q4);
runtime::register!(dequantize<Q4_0, f32, 4>, planes, dequantized);
runtime::register!(quantize_activations<f32, swiglu, false, 4>, rows, quantized);
runtime::register!(gemv_blocks<Q4_0, f32, f32, Identity, true, 1, 4, 512, 4096, 2, 4, 4, 1>, few, product_of_few);
runtime::register!(gemm_blocks<Q4_0, f32, Identity, 64, 4, false, 1, 256>, many, product_of_many);
runtime::register!(add_parts<f32, Identity, 4>, parts, summed_parts);

/// Calls a function whose type parameter is the format that an instance names.
macro_rules! of_format {
    ($instance:expr, $function:ident($($argument:expr),*)) => {
        match format($instance) {
            Some(format) => with_format!(format, F => $function::<F>($($argument),*), else Vec::new()),
            None => Vec::new(),
        }
    };
}

/// Returns the format that an instance names.
fn format(instance: &Instance) -> Option<Format> {
    let name = instance.0.iter().find_map(|constant| match constant {
        Constant::Item(item) => Some(&item.name),
        _ => None,
    })?;
    Format::ALL.into_iter().find(|format| format!("{format:?}") == *name)
}

/// Draws blocks of `rows` rows of `units` units.
fn blocks<F: Ggml>(random: &mut Random, rows: usize, units: usize) -> Vec<u8> {
    host::quantize::<F>(&random.values(32 * rows * units))
}

/// Returns the number of units of `k` numbers: complete blocks, at least one.
fn units<F: Ggml>(k: usize) -> usize {
    k.div_ceil(F::NUMBERS).max(1) * F::NUMBERS / 32
}

/// Returns planes as a kernel takes them.
fn inputs<F: Ggml>(planes: &Planes) -> [Input; 2] {
    let &Planes { ref words, ref halves, rows, units } = planes;
    let wide = host::pitch::<F>(units);
    [Input::strided(words, [rows, F::words(units)], [wide, 1]), Input::view(halves, [rows, F::halves(units)])]
}

/// Reads the units of planes, row by row.
fn read<F: Ggml>(words: &Input, halves: &Input) -> Vec<Unit> {
    let (&[rows, wide], &[_, narrow]) = (words.extents(), halves.extents()) else { return Vec::new() };
    let units = (1..=wide).rev().find(|units| units % (F::NUMBERS / 32) == 0 && F::words(*units) == wide);
    let units = units.unwrap_or(0);
    // Reads a row at a time, copied to an address that is a multiple of 16 bytes.
    let (words, halves): (Vec<u32>, Vec<u16>) = (words.to_vec(), halves.to_vec());
    let row = |row: usize| {
        let pitch = words.len().checked_div(rows).unwrap_or(0);
        let mut aligned = vec![[0u32; 4]; wide.div_ceil(4) + 1];
        let first = aligned.as_ptr().align_offset(16).min(3);
        for (i, word) in words[row * pitch..][..wide].iter().enumerate() {
            aligned.as_flattened_mut()[first + i] = *word;
        }
        let aligned = &aligned.as_flattened()[first..];
        // SAFETY: both lists live until the units are read, and are not written.
        let views = unsafe {
            (View::<u32, 2>::host(aligned, [1, wide]), View::<u16, 2>::host(&halves[row * narrow..], [1, narrow]))
        };
        let unit = |unit| F::unpack(F::load(views.0, views.1, PlaneUnit { row: 0, unit, units }), unit);
        (0..units).map(unit).collect::<Vec<_>>()
    };
    (0..rows).flat_map(row).collect()
}

/// Returns a number of a unit without the minimum's part.
fn scaled<F: Ggml>(unit: &Unit, j: usize) -> f64 {
    f64::from(unit.scale[j / 16]) * f64::from(F::STEP) * byte(unit, j)
}

/// Returns a byte of a unit.
fn byte(unit: &Unit, j: usize) -> f64 {
    f64::from(unit.bytes[j / 4].to_le_bytes()[j % 4] as i8)
}

/// Rows and blocks of a row.
const FILES: [[usize; 2]; 5] = [[1, 1], [3, 7], [9, 5], [2, 8], [0, 3]];

fn files(instance: &Instance, random: &mut Random) -> Vec<Case> {
    of_format!(instance, files_of(random))
}

fn files_of<F: Ggml>(random: &mut Random) -> Vec<Case> {
    FILES
        .map(|[rows, n]| {
            let units = n * F::NUMBERS / 32;
            let file: Vec<u8> = (0..rows * n * F::BYTES).map(|_| random.bits() as u8).collect();
            let [words, halves] = unwritten::<F>(rows, units);
            let file = Input::view(&file, [rows, n * F::BYTES]);
            Case::new(format!("{rows} rows of {n} blocks"), [file, Input::scalar(units), words, halves])
        })
        .into()
}

fn repacked(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    of_format!(instance, repacked_of(inputs))
}

fn repacked_of<F: Ggml>(inputs: &[Input]) -> Vec<Expected> {
    planes_of_file::<F>(&inputs[0].to_vec::<u8>(), inputs[0].extents()[0], 2)
}

/// Returns planes to be written: rows of words end with a gap.
fn unwritten<F: BlockFormat>(rows: usize, units: usize) -> [Input; 2] {
    let (wide, narrow) = (F::words(units), F::halves(units));
    [
        Input::strided(&vec![7u32; rows * (wide + 4)], [rows, wide], [wide + 4, 1]),
        Input::view(&vec![7u16; rows * narrow], [rows, narrow]),
    ]
}

/// Returns the planes to which `repack` converts a file.
fn planes_of_file<F: BlockFormat>(file: &[u8], rows: usize, first: usize) -> Vec<Expected> {
    let planes = host::repack::<F>(file, rows);
    let (pitch, wide) = (host::pitch::<F>(planes.units).max(1), F::words(planes.units));
    let words = planes.words.chunks(pitch).flat_map(|row| &row[..wide]).map(|word| f64::from(*word)).collect();
    let halves = planes.halves.iter().map(|half| f64::from(*half)).collect();
    let mut expected = vec![Expected::new(first, words, Bound::Exact)];
    if F::SCALED {
        expected.push(Expected::new(first + 1, halves, Bound::Exact));
    }
    expected
}

fn of_bytes(_: &Instance, random: &mut Random) -> Vec<Case> {
    let case = |[rows, cols, units]: [usize; 3]| {
        let from: Vec<i8> = (0..rows * (cols + 1)).map(|_| random.bits() as i8).collect();
        let from = Input::strided(&from, [rows, cols], [cols + 1, 1]);
        let [words, _] = unwritten::<Int8>(rows, units);
        Case::new(format!("{rows} × {cols}, {units} units"), [from, Input::scalar(units), words])
    };
    [[1, 1, 1], [2, 7, 1], [3, 32, 1], [9, 100, 4], [0, 7, 1]].map(case).into()
}

fn padded(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (x, &[rows, cols]) = (inputs[0].to_vec::<i8>(), inputs[0].extents()) else { return Vec::new() };
    let wide = 32 * inputs[1].value() as usize;
    let at = |i: usize| if i % wide < cols { x[i / wide * cols + i % wide] as u8 } else { 0 };
    planes_of_file::<Int8>(&(0..rows * wide).map(at).collect::<Vec<u8>>(), rows, 2)
}

/// Rows and columns: parts of blocks, blocks, many.
const SHAPES: [[usize; 2]; 5] = [[1, 1], [3, 32], [5, 100], [2, 0], [2, 1045]];

/// Draws numbers to be quantized to planes of format `F`, with gaps of `unit`.
fn numbers_of<F: BlockFormat>(instance: &Instance, random: &mut Random, unit: usize, special: &[f32]) -> Vec<Case> {
    let stored = scalars(instance).first().copied().unwrap_or(Scalar::F32);
    let case = |name: String, x: Input| {
        let (rows, units) = (x.extents()[0], x.extents()[1].div_ceil(32));
        let [words, halves] = unwritten::<F>(rows, units);
        Case::new(name, [x, Input::scalar(units), words, halves])
    };
    let mut cases: Vec<Case> = SHAPES
        .map(|[rows, cols]: [usize; 2]| {
            let cols = cols.next_multiple_of(unit);
            let pitch = (cols + unit).next_multiple_of(unit);
            case(format!("{rows} × {cols}"), drawn(random, stored, rows * pitch, [rows, cols], [pitch, 1]))
        })
        .into();
    if stored == Scalar::F32 {
        cases.push(case("zeros, ties, NaNs".into(), Input::view(special, [1, special.len()])));
    }
    cases.push(case("extremes".into(), extremes(random, &Extreme::ALL, stored, 32, 36)));
    cases
}

fn numbers_q8(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[unit] = numbers(instance).as_slice() else { return Vec::new() };
    let x: Vec<f32> = [0.0; 32].into_iter().chain((0..32).map(|i| i as f32 - 16.0)).chain([f32::NAN; 32]).collect();
    numbers_of::<Q8_0>(instance, random, unit, &x)
}

fn numbers_q4(instance: &Instance, random: &mut Random) -> Vec<Case> {
    // The scale is 1, from −8. In the last blocks a positive and a negative number have the largest
    // magnitude, in any order, and the positive one counts.
    let mut x: Vec<f32> = (0..6 * 32).map(|i| if i < 32 { 0.0 } else { -8.0 }).collect();
    for (block, [one, other]) in [[0, 1], [16, 17], [0, 16], [0, 2]].into_iter().enumerate() {
        (x[64 + 32 * block + one], x[64 + 32 * block + other]) = (16.0, -16.0);
    }
    numbers_of::<Q4_0>(instance, random, 1, &x)
}

/// Returns a file in which `make` computes the block of each 32 numbers of a row.
fn file(x: &Input, make: impl Fn(&[f64]) -> (f32, Vec<u8>)) -> Vec<u8> {
    let (values, &[rows, cols]) = (x.values(), x.extents()) else { return Vec::new() };
    let mut file = Vec::new();
    for row in 0..rows {
        for first in (0..cols).step_by(32) {
            let (d, q) = make(&values[row * cols + first..row * cols + (first + 32).min(cols)]);
            file.extend(f16::from_f32(d).to_le_bytes());
            file.extend(q);
        }
    }
    file
}

fn quantized_q8(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let block = |x: &[f64]| {
        let (q, d, _) = eight_bits(x);
        (d, q.map(|q| q as u8).to_vec())
    };
    planes_of_file::<Q8_0>(&file(&inputs[0], block), inputs[0].extents()[0], 2)
}

/// Returns the scale and bytes of up to 32 numbers: the largest magnitude is −8 · d.
fn four_bits(x: &[f64]) -> (f32, Vec<u8>) {
    let x: Vec<f64> = x.iter().map(|x| if x.is_nan() { 0.0 } else { *x }).collect();
    let top = x.iter().map(|x| *x as f32).fold(0.0f32, |top, x| if (x.abs(), x) > (top.abs(), top) { x } else { top });
    let d = top / -8.0 + 0.0;
    let inverse = if d == 0.0 || d.is_subnormal() { 0.0 } else { 1.0 / d };
    let q = |i: usize| (x.get(i).map_or(0.0, |x| *x as f32).mul_add(inverse, 8.5) as u8).min(15);
    (d, (0..16).map(|i| q(i) | q(i + 16) << 4).collect())
}

fn quantized_q4(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    planes_of_file::<Q4_0>(&file(&inputs[0], four_bits), inputs[0].extents()[0], 2)
}

fn planes(instance: &Instance, random: &mut Random) -> Vec<Case> {
    of_format!(instance, planes_of(instance, random))
}

fn planes_of<F: Ggml>(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[unit] = numbers(instance).as_slice() else { return Vec::new() };
    SHAPES
        .map(|[rows, cols]: [usize; 2]| {
            let cols = cols.next_multiple_of(unit);
            let n = units::<F>(cols);
            let [words, halves] = inputs::<F>(&host::repack::<F>(&blocks::<F>(random, rows, n), rows));
            let pitch = cols + unit;
            let x = Input::strided(&vec![f32::NAN; rows * pitch], [rows, cols], [pitch, 1]);
            Case::new(format!("{rows} × {cols}"), [words, halves, Input::scalar(n), x])
        })
        .into()
}

/// Returns the expected numbers: scale times integer, rounded, then less the minimum.
fn dequantized(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    of_format!(instance, dequantized_of(inputs))
}

fn dequantized_of<F: Ggml>(inputs: &[Input]) -> Vec<Expected> {
    let (weights, &[rows, cols]) = (read::<F>(&inputs[0], &inputs[1]), inputs[3].extents()) else {
        return Vec::new();
    };
    let n = inputs[2].value() as usize;
    let number = |i: usize| {
        let (unit, j) = (&weights[i / cols * n + i % cols / 32], i % cols % 32);
        let product = scaled::<F>(unit, j) as f32;
        f64::from(if F::MINS { product - unit.min[j / 16] } else { product })
    };
    vec![Expected::new(3, (0..rows * cols).map(number).collect(), Bound::Exact)]
}

/// Shapes of activations: rows, columns, rows of a group.
const ACTIVATIONS: [[usize; 3]; 5] = [[1, 1, 1], [3, 32, 4], [5, 100, 2], [2, 0, 1], [9, 1045, 8]];

fn rows(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let (&[gated, unit], &[stored]) = (numbers(instance).as_slice(), scalars(instance).as_slice()) else {
        return Vec::new();
    };
    let mut others = Random::new(7);
    let mut case = |name: String, x: Input, order: &[i32], chosen: usize, m: usize, room: usize, units: usize| {
        let (groups, cols) = (m.div_ceil(room), room * units);
        // The gate of any of these numbers with any number of `x` is in range.
        let &[rows, of_row] = x.extents() else { return Case::new(name, []) };
        let pitch = (of_row + unit).next_multiple_of(unit);
        let y = match gated {
            1 => drawn(&mut others, stored, rows * pitch, [rows, of_row], [pitch, 1]),
            _ => drawn(&mut others, stored, 0, [0, 0], [unit, 1]),
        };
        let bytes = Input::view(&vec![9i32; groups * 8 * cols], [groups, 8 * cols]);
        let factors = Input::view(&vec![9f32; groups * 4 * cols], [groups, 4 * cols]);
        Case::new(name, [x, y, Input::slice(order), Input::scalar(chosen), Input::scalar(room), bytes, factors])
    };
    let mut cases: Vec<Case> = ACTIVATIONS
        .map(|[m, cols, room]: [usize; 3]| {
            let cols = cols.next_multiple_of(unit);
            let pitch = (cols + unit).next_multiple_of(unit);
            let x = drawn(random, stored, m * pitch, [m, cols], [pitch, 1]);
            case(format!("{m} × {cols}, groups of {room}"), x, &[], 1, m, room, cols.div_ceil(32) + 1)
        })
        .into();
    // The rows are in another order, and some do not exist. Each row of X gives two.
    for (order, room) in [(vec![5, -1, 0, 3], 2), (vec![1, 1, 4, -1, -1, 2, 3, 0, 5, -2, 0, 0, 0, 0, 0, 0], 8)] {
        let x = drawn(random, stored, 3 * 36, [3, 36], [36, 1]);
        cases.push(case(format!("order of {}", order.len()), x, &order, 2, order.len(), room, 2));
    }
    let all = Extreme::ALL;
    cases.push(case("extremes".into(), extremes(random, &all, stored, 32, 36), &[], 1, all.len(), 64, 1));
    cases
}

/// Returns bytes and scale of up to 32 numbers, in `f32` as the kernel computes, and the sums of
/// the halves' bytes.
fn eight_bits(x: &[f64]) -> ([i8; 32], f32, [f32; 2]) {
    let top = x.iter().fold(2f32.powi(-120), |top, x| top.max((*x as f32).abs()));
    let inverse = 127.0 / top;
    let mut q = [0; 32];
    for (q, x) in q.iter_mut().zip(x) {
        *q = (*x as f32 * inverse).round_ties_even() as i8;
    }
    let sum = |q: &[i8]| q.iter().map(|q| f32::from(*q)).sum();
    (q, top / 127.0, [sum(&q[..16]), sum(&q[16..])])
}

/// Returns the results of `quantize_activations` for rows of `cols` numbers, in `groups` groups of
/// `room` rows of `units` units. `of` returns the row of `x` that belongs to a row, if there is
/// one.
fn grouped(
    x: &[f64],
    cols: usize,
    [groups, room]: [usize; 2],
    units: usize,
    of: impl Fn(usize) -> Option<usize>,
) -> (Vec<i32>, Vec<f32>) {
    let (mut bytes, mut factors) = (Vec::new(), Vec::new());
    for i in 0..groups * units * room {
        let (group, unit, r) = (i / room / units, i / room % units, i % room);
        let at = |k: usize| of(group * room + r).map_or(0, |row| row * cols + (32 * unit + k).min(cols));
        let (q, scale, [first, last]) = eight_bits(&x[at(0)..at(32)]);
        bytes.extend(q.chunks(4).map(|q| i32::from_le_bytes([q[0], q[1], q[2], q[3]].map(|q| q as u8))));
        factors.extend([scale, scale * (first + last), scale * first, scale * last]);
    }
    (bytes, factors)
}

/// Computes the bytes and factors. For a gate, the numbers are computed in `f64`, and the kernel's
/// numbers are within 8·u.
fn quantized(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (x, &[m, cols], &[groups, wide]) = (inputs[0].values(), inputs[0].extents(), inputs[5].extents()) else {
        return Vec::new();
    };
    let [chosen, room] = [3, 4].map(|i: usize| inputs[i].value() as usize);
    let order: Vec<i32> = inputs[2].to_vec();
    let of = |row: usize| {
        let of = if order.is_empty() { Some(row) } else { usize::try_from(order[row]).ok().map(|of| of / chosen) };
        of.filter(|row| *row < m)
    };
    let units = wide / (8 * room);
    if numbers(instance).first() == Some(&1) {
        let silu = |x: f64| if x == f64::NEG_INFINITY { 0.0 } else { x / (1.0 + (-x).exp()) };
        let gate = |(x, y): (&f64, f64)| f64::from((silu(*x) * y) as f32);
        let gates: Vec<f64> = x.iter().zip(inputs[1].values()).map(gate).collect();
        let gates: Vec<Bounded> = gates.iter().map(|x| (*x, 8.0 * U * x.abs() + TINY)).collect();
        let (bytes, factors) = near_units(&gates, cols, [groups, room], units, of);
        return vec![expected(5, bytes.into_iter()), expected(6, factors.into_iter())];
    }
    let (bytes, factors) = grouped(&x, cols, [groups, room], units, of);
    vec![
        Expected::new(5, bytes.into_iter().map(f64::from).collect(), Bound::Exact),
        Expected::new(6, factors.into_iter().map(f64::from).collect(), Bound::Exact),
    ]
}

/// Returns what [`grouped`] does, of numbers with errors. A byte is uncertain if its number is
/// within its error of the middle between two integers. A word with an uncertain byte may have any
/// value. A sum of bytes may differ by 1 for each uncertain byte.
pub(super) fn near_units(
    x: &[Bounded],
    cols: usize,
    [groups, room]: [usize; 2],
    units: usize,
    of: impl Fn(usize) -> Option<usize>,
) -> (Vec<Bounded>, Vec<Bounded>) {
    let exact: Vec<f64> = x.iter().map(|x| x.0).collect();
    let (bytes, factors) = grouped(&exact, cols, [groups, room], units, &of);
    let (mut near_bytes, mut near_factors) = (Vec::new(), Vec::new());
    for i in 0..groups * units * room {
        let (group, unit, r) = (i / room / units, i / room % units, i % room);
        let at = |k: usize| of(group * room + r).map_or(0, |row| row * cols + (32 * unit + k).min(cols));
        let here = &x[at(0)..at(32)];
        let top = here.iter().fold(2f64.powi(-120), |top, x| top.max(x.0.abs()));
        let off_top = here.iter().map(|x| x.1).fold(0.0, f64::max);
        let uncertain = |k: usize| {
            let (x, off) = here.get(k).copied().unwrap_or((0.0, 0.0));
            let n = x * 127.0 / top;
            let off = 127.0 * off / top + n.abs() * (off_top / top + 3.0 * U);
            // The bytes of NaNs, and of numbers beside an infinity, are certain.
            (n - n.round_ties_even()).abs() + off >= 0.5 || off.is_infinite()
        };
        for word in 0..8 {
            let any = (4 * word..4 * word + 4).any(uncertain);
            near_bytes.push((f64::from(bytes[8 * i + word]), if any { f64::INFINITY } else { 0.0 }));
        }
        let scale = f64::from(factors[4 * i]);
        let relative = off_top / top + 4.0 * U;
        for (j, all) in [(0, 0..0), (1, 0..32), (2, 0..16), (3, 16..32)] {
            let value = f64::from(factors[4 * i + j]);
            let off = scale * all.filter(|k| uncertain(*k)).count() as f64 + 1.01 * relative * value.abs() + TINY;
            // A NaN bound of a finite value comes from infinities: any result is correct.
            let off = if off.is_nan() { f64::INFINITY } else { off };
            near_factors.push((value, if value.is_finite() { off } else { 0.0 }));
        }
    }
    (near_bytes, near_factors)
}

/// Draws weights of `[n, k]`; returns them, the number of units of a row, and a scale for each row
/// of weights, or none.
fn weights<F: Ggml>(random: &mut Random, [n, k]: [usize; 2], by_rows: bool) -> ([Input; 2], usize, Input) {
    let of_row = units::<F>(k);
    let planes = inputs::<F>(&host::repack::<F>(&blocks::<F>(random, n, of_row), n));
    let scales: Vec<f32> = (0..if by_rows { n } else { 0 }).map(|i| 0.5 + i as f32 * 0.125).collect();
    (planes, of_row, Input::slice(&scales))
}

/// Draws `m` rows of activations in the format of `quantize_activations`, in groups of `room`, with
/// `units` units or a few more.
fn activations(random: &mut Random, m: usize, room: usize, units: usize) -> [Input; 2] {
    let units = units.next_multiple_of(4);
    let x: Vec<f32> = random.values(m * units * 32);
    let x: Vec<f64> = x.into_iter().map(f64::from).collect();
    activations_of(&x, m, room, units)
}

/// Returns the results of `quantize_activations` for `m` rows of `units` units in groups of `room`.
fn activations_of(x: &[f64], m: usize, room: usize, units: usize) -> [Input; 2] {
    let (groups, cols) = (m.div_ceil(room), room * units);
    let (bytes, factors) = grouped(x, 32 * units, [groups, room], units, |row| Some(row).filter(|row| *row < m));
    [Input::view(&bytes, [groups, 8 * cols]), Input::view(&factors, [groups, 4 * cols])]
}

/// Returns the number of an expert for each group; some are negative.
fn experts(groups: usize) -> Vec<i32> {
    (0..groups).map(|group| [2, 0, -1, 1][group % 4]).collect()
}

/// The experts of the cases with experts.
const EXPERTS: usize = 3;

fn few(instance: &Instance, random: &mut Random) -> Vec<Case> {
    of_format!(instance, few_of(instance, random))
}

fn few_of<F: Ggml>(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[fresh, rows, wide, threads, piece, _, unit, _, room] = numbers(instance).as_slice() else {
        return Vec::new();
    };
    let stored = scalars(instance).first().copied().unwrap_or(Scalar::F32);
    let written = scalars(instance).last().copied().unwrap_or(Scalar::F32);
    let shapes = [
        [1, 1, 1],
        [rows + 1, 2, 520],
        [1, threads / 32 * wide + 1, 96],
        [rows, 5, piece + 40],
        [rows, 3, 0],
        [0, 3, 32],
        // With experts, all rows of a group have one expert. Each row of X gives two rows of Y, or
        // a group is incomplete.
        [if fresh == 1 { 6 } else { 4 * room - 1 }, 5, 64],
    ];
    let mut case = |(i, [m, n, k]): (usize, [usize; 3])| {
        let chosen_by = if i == 6 && rows == room { experts(m.div_ceil(room)) } else { Vec::new() };
        let (matrices, chosen) = if chosen_by.is_empty() { (1, 1) } else { (EXPERTS, if fresh == 1 { 2 } else { 1 }) };
        let ([words, halves], of_row, scales) = weights::<F>(random, [matrices * n, k], i % 2 == 1);
        let y = unread(written, m * n, [m, n], [n, 1]);
        let (x, [bytes, factors]) = if fresh == 1 {
            let k = k.next_multiple_of(unit);
            let (m, pitch) = (m / chosen, k + unit);
            (
                drawn(random, stored, m * pitch, [m, k], [pitch, 1]),
                [Input::view::<i32, 2>(&[], [0, 0]), Input::view::<f32, 2>(&[], [0, 0])],
            )
        } else {
            (Input::view::<f32, 2>(&[], [0, 0]), activations(random, m, room, of_row))
        };
        let name = format!("{m} × {n} × {k}{}", if matrices > 1 { ", experts" } else { "" });
        let (chosen, of_row) = (Input::scalar(chosen), Input::scalar(of_row));
        let experts = Input::slice(&chosen_by);
        Case::new(name, [x, chosen, bytes, factors, words, halves, of_row, scales, experts, y])
    };
    let mut all: Vec<Case> = shapes.into_iter().enumerate().map(&mut case).collect();
    let (m, k) = (PRODUCTS.len(), F::NUMBERS.max(128));
    let of_extremes = case((0, [m, 2, k]));
    let x = extremes(random, &PRODUCTS, stored, k, k + unit);
    all.push(if fresh == 1 { with_input(of_extremes, 0, x) } else { with_quantized(of_extremes, x, room, 2) });
    all
}

/// The extremes of a row of activations for which no sum of 32 bytes overflows with its scale.
const PRODUCTS: [Extreme; 9] = [
    Extreme::OneHuge,
    Extreme::OneAmongTiny,
    Extreme::Tiny,
    Extreme::Subnormal,
    Extreme::Zeros,
    Extreme::PositiveInfinity,
    Extreme::Infinities,
    Extreme::Nan,
    Extreme::AllNan,
];

/// Returns the case of extreme rows, with `x` as its argument `at`.
fn with_input(mut case: Case, at: usize, x: Input) -> Case {
    case.name = "extreme rows".into();
    case.inputs[at] = x;
    case
}

/// Returns the case of extreme rows, with the rows of `x` quantized in groups of `room` as the
/// arguments `at` and `at + 1`.
fn with_quantized(case: Case, x: Input, room: usize, at: usize) -> Case {
    let &[m, k] = x.extents() else { return case };
    let [bytes, factors] = activations_of(&x.values(), m, room, k / 32);
    with_input(with_input(case, at, bytes), at + 1, factors)
}

fn product_of_few(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    of_format!(instance, product_of_few_of(instance, inputs))
}

fn product_of_few_of<F: Ggml>(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let &[fresh, .., room] = numbers(instance).as_slice() else { return Vec::new() };
    let n = inputs[6].value() as usize;
    let m = inputs[9].extents()[0];
    let (bytes, factors) = if fresh == 1 {
        let (x, &[_, cols]) = (inputs[0].values(), inputs[0].extents()) else { return Vec::new() };
        let chosen = inputs[1].value() as usize;
        let unit = |i: usize| {
            let at = |k: usize| i / n / chosen * cols + (i % n * 32 + k).min(cols);
            let (q, scale, [first, last]) = eight_bits(&x[at(0)..at(32)]);
            (q, [scale, scale * (first + last), scale * first, scale * last].map(f64::from))
        };
        (0..m * n).map(unit).unzip()
    } else {
        ungrouped(&inputs[2], &inputs[3], m, room, n)
    };
    let experts: Vec<i32> = inputs[8].to_vec();
    let expert = |row: usize| experts.get(row / room).map_or(Some(0), |expert| usize::try_from(*expert).ok());
    let weights = [&inputs[4], &inputs[5], &inputs[7], &inputs[9]];
    // A lane has every 32nd unit; lanes are added in five steps.
    product::<F>(instance, weights, (bytes, factors), expert, m, [n.div_ceil(32), 5], 9)
}

/// Returns the bytes and factors of each unit, row by row: the first `units` units of rows.
fn ungrouped(bytes: &Input, factors: &Input, m: usize, room: usize, units: usize) -> (Vec<[i8; 32]>, Vec<[f64; 4]>) {
    let of_row = bytes.extents()[1] / (8 * room);
    let bytes: Vec<i8> = bytes.to_vec::<i32>().into_iter().flat_map(i32::to_le_bytes).map(|q| q as i8).collect();
    let factors = factors.values();
    let unit = |i: usize| {
        let (row, unit) = (i / units, i % units);
        let at = (row / room * of_row + unit) * room + row % room;
        (std::array::from_fn(|k| bytes[32 * at + k]), std::array::from_fn(|k| factors[4 * at + k]))
    };
    (0..m * units).map(unit).unzip()
}

fn many(instance: &Instance, random: &mut Random) -> Vec<Case> {
    of_format!(instance, many_of(instance, random))
}

fn many_of<F: Ggml>(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[tall, unit, of_experts, ..] = numbers(instance).as_slice() else { return Vec::new() };
    let stored = scalars(instance).first().copied().unwrap_or(Scalar::F32);
    // Rows, columns, K, parts of K.
    let shapes = [
        [1, 1, 32, 1],
        [tall, 128, 64, 1],
        [tall + 1, 129, 32, 1],
        [3, 5, 0, 1],
        [0, 3, 32, 1],
        [tall - 1, 127, 96, 1],
        // Parts of complete blocks of 256, the last of which is smaller or empty.
        [9, 5, 552, 2],
        [2, 3, 300, 3],
        [4 * tall - 3, 5, 64, 1],
        // Two blocks side by side, of rows that are or are not whole; another group of rows of
        // blocks; many units.
        [tall, 129, 32, 1],
        [513, 128, 32, 1],
        [1, 1, 992, 1],
    ];
    let mut case = |(i, [m, n, k, splits]): (usize, [usize; 4])| {
        let n = n.next_multiple_of(unit);
        let matrices = if of_experts == 1 { EXPERTS } else { 1 };
        let ([words, halves], of_row, scales) = weights::<F>(random, [matrices * n, k], i % 2 == 1);
        let [bytes, factors] = activations(random, m, 8, of_row);
        let y = unread(stored, splits * m * (n + unit), [splits * m, n], [n + unit, 1]);
        let (experts, tiles) =
            if matrices > 1 { experts_in_tiles(m.div_ceil(8), tall / 8) } else { Default::default() };
        let [experts, tiles] = [experts, tiles].map(|list| Input::slice(&list));
        let [of_row, rows, parts] = [of_row, m, splits].map(Input::scalar);
        let name = format!("{m} × {n} × {k}, {splits} parts");
        Case::new(name, [bytes, factors, words, halves, of_row, scales, experts, tiles, rows, parts, y])
    };
    // Formats with blocks of 256 numbers take the first shapes only: beyond a tile the code does
    // not depend on the format.
    let n = if F::NUMBERS == 32 && tall == 64 { shapes.len() } else { 9 };
    let mut all: Vec<Case> = shapes.into_iter().take(n).enumerate().map(&mut case).collect();
    let k = F::NUMBERS.max(128);
    let of_extremes = case((0, [PRODUCTS.len(), 4, k, 1]));
    let x = extremes(random, &PRODUCTS, Scalar::F32, k, k);
    all.push(with_quantized(of_extremes, x, 8, 0));
    all
}

/// Returns the expert of each of `groups` groups of 8 rows, and the first group of each tile of up
/// to `tall` groups of one expert: tiles that are full, that are not, without an expert, and empty.
fn experts_in_tiles(groups: usize, tall: usize) -> (Vec<i32>, Vec<i32>) {
    let (mut experts, mut tiles) = (Vec::new(), vec![-1; groups.min(1)]);
    for (expert, count) in [(2, tall + 1), (0, 1), (1, tall), (-1, groups)] {
        let end = groups.min(experts.len() + count);
        tiles.extend((experts.len()..end).step_by(tall).map(|group| group as i32));
        experts.resize(end, expert);
    }
    (experts, tiles)
}

fn product_of_many(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    of_format!(instance, product_of_many_of(instance, inputs))
}

fn product_of_many_of<F: Ggml>(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let [n, m] = [4, 8].map(|i: usize| inputs[i].value() as usize);
    let x = ungrouped(&inputs[0], &inputs[1], m, 8, n);
    let experts: Vec<i32> = inputs[6].to_vec();
    let expert = |row: usize| experts.get(row / 8).map_or(Some(0), |expert| usize::try_from(*expert).ok());
    product::<F>(instance, [&inputs[2], &inputs[3], &inputs[5], &inputs[10]], x, expert, m, [n, 0], 10)
}

/// Shapes of parts: rows, columns, parts.
const PARTS: [[usize; 3]; 5] = [[1, 1, 1], [3, 8, 2], [5, 300, 7], [0, 4, 2], [2, 0, 3]];

fn parts(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let (&[unit], &[stored]) = (numbers(instance).as_slice(), scalars(instance).as_slice()) else { return Vec::new() };
    let mut cases: Vec<Case> = PARTS
        .map(|[rows, cols, splits]: [usize; 3]| {
            let cols = cols.next_multiple_of(unit);
            let parts: Vec<f32> = random.values(splits * rows * (cols + unit));
            let parts = Input::strided(&parts, [splits * rows, cols], [cols + unit, 1]);
            let y = unread(stored, rows * (cols + unit), [rows, cols], [cols + unit, 1]);
            Case::new(format!("{rows} × {cols}, {splits} parts"), [parts, Input::scalar(splits), y])
        })
        .into();
    let kinds: Vec<Extreme> = [Extreme::ALL, Extreme::ALL].concat();
    let (rows, cols) = (Extreme::ALL.len(), 8);
    let parts = extremes(random, &kinds, Scalar::F32, cols, cols + 4);
    let y = unread(stored, rows * (cols + 4), [rows, cols], [cols + 4, 1]);
    cases.push(Case::new("extreme rows", [parts, Input::scalar(2usize), y]));
    cases
}

fn summed_parts(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let stored = scalars(instance).last().copied().unwrap_or(Scalar::F32);
    let (parts, splits, n) = (inputs[0].values(), inputs[1].value() as usize, inputs[2].value_count());
    let sum = |f: fn(f64) -> f64, i: usize| (0..splits).map(|s| f(parts[s * n + i])).sum::<f64>();
    let values: Vec<f64> = (0..n).map(|i| sum(|x| x, i)).collect();
    // If the magnitudes of finite parts overflow together, any result is correct.
    let is_open = |size: f64| size.is_finite() && size > f64::from(f32::MAX);
    let off = |size: f64| 1.001 * gamma(splits + 1) * size + 2.0 * TINY;
    let bound = |i: usize| match sum(f64::abs, i) {
        size if is_open(size) => f64::INFINITY,
        size => off(size) + at_rest(stored, values[i], off(size)),
    };
    let bounds = (0..n).map(bound).collect();
    vec![Expected::new(2, values, Bound::Each(bounds))]
}

/// Returns products in `f64` with their bounds. Sums of products of bytes are integers below 2²⁴,
/// and exact. A unit rounds up to five times on the way to a sum: a product of two scales, or of a
/// scale with a half's sum, and each fused multiplication. A sum is made of `in_row` units, one
/// after another, then by `lane_additions` additions of lanes, and is multiplied by the row's
/// number. If the magnitudes of finite terms overflow together, any result is correct. A subnormal
/// product of two scales has an error of half the least one, which the sum of bytes multiplies. Y
/// has `m` rows for each part of K.
fn product<F: Ggml>(
    instance: &Instance,
    [words, halves, scales, y]: [&Input; 4],
    (bytes, factors): (Vec<[i8; 32]>, Vec<[f64; 4]>),
    expert: impl Fn(usize) -> Option<usize>,
    m: usize,
    [in_row, lane_additions]: [usize; 2],
    argument: usize,
) -> Vec<Expected> {
    let stored = scalars(instance).last().copied().unwrap_or(Scalar::F32);
    let (weights, scales) = (read::<F>(words, halves), scales.values());
    let (&[rows, n], &[of_weights, _]) = (y.extents(), words.extents()) else { return Vec::new() };
    let units = weights.len().checked_div(of_weights).unwrap_or(0);
    let splits = rows.checked_div(m).unwrap_or(0);
    // Parts of K are whole blocks of 256 numbers.
    let each = if splits > 1 { units.div_ceil(splits).next_multiple_of(8) } else { units };
    let (mut values, mut bounds) = (Vec::new(), Vec::new());
    for i in 0..rows * n {
        let (part, row, col) = (i / n / m, i / n % m, i % n);
        let (mut value, mut size, mut of_bytes) = (0.0, 0.0, 0.0);
        let matrix = expert(row);
        let of_part = (part * each).min(units)..(part * each + each).min(units);
        for u in of_part.filter(|_| matrix.is_some()) {
            let w = &weights[(matrix.unwrap_or(0) * n + col) * units + u];
            let (x, e) = (&bytes[row * units + u], &factors[row * units + u]);
            for (j, x) in x.iter().enumerate() {
                let term = e[0] * scaled::<F>(w, j) * f64::from(*x);
                (value, size) = (value + term, size + term.abs());
                of_bytes += (byte(w, j) * f64::from(*x)).abs();
            }
            if F::MINS {
                let of = |h: usize| f64::from(w.min[h]) * e[2 + h];
                let whole = f64::from(w.min[0]) * e[1];
                let term = if F::HALVES { of(0) + of(1) } else { whole };
                value -= term;
                size += if F::HALVES { of(0).abs() + of(1).abs() } else { whole.abs() };
            }
        }
        let scale = scales.get(matrix.unwrap_or(0) * n + col).copied().unwrap_or(1.0);
        (value, size) = (value * scale, size * scale);
        let roundings = 5 * in_row + lane_additions + 4;
        let tiny = 4.0 * roundings as f64 * TINY + of_bytes * scale.abs() * TINY;
        let off = 1.001 * gamma(roundings) * size + tiny;
        let open = size.is_finite() && size > f64::from(f32::MAX) / 4.0;
        values.push(value);
        bounds.push(if open { f64::INFINITY } else { off + at_rest(stored, value, off) });
    }
    vec![Expected::new(argument, values, Bound::Each(bounds))]
}
