//! Specs of `best_parts` and `best_of_parts`.

use super::logits::{EXTREMES, largest, order, temperature};
use super::random::{MARGIN, random_stream, scored, stream, words};
use crate::stored::{drawn, numbers, rounded, stored};
use crate::{TINY, U};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::half::bf16;
use kernels_rs::sampling::best::{Scored, Temperature, best_of_parts, best_parts};
use runtime::testing::{Bound, Case, Expected, Input, Random};

runtime::register!(best_parts<f32, false, 4>, parts_cases, parts_reference);
runtime::register!(best_of_parts, combine_cases, combine_reference);

fn is_noisy(instance: &Instance) -> bool {
    numbers(instance).first() == Some(&1)
}

/// Returns the best element of each stretch as score, bound and column, and the least distance to
/// the second best.
fn parts(instance: &Instance, inputs: &[Input]) -> (Vec<(f64, f64, f64)>, f64) {
    let (x, t, stream) = (inputs[0].values(), temperature(inputs, 1), stream(inputs, 4));
    let (&[rows, cols], &[_, count]) = (inputs[0].extents(), inputs[8].extents()) else { return (Vec::new(), 1.0) };
    let each = cols.div_ceil(count).next_multiple_of(4);
    let noisy = is_noisy(instance);
    let (mut all, mut margin) = (Vec::new(), f64::INFINITY);
    for row in 0..rows {
        let top = largest(&x[row * cols..][..cols]);
        for part in 0..count {
            let (mut best, mut second) = ((f64::NEG_INFINITY, 0.0, f64::from(u32::MAX)), f64::NEG_INFINITY);
            for col in (part * each).min(cols)..((part + 1) * each).min(cols) {
                let of_four = words(stream, row, (col / 4) as u32);
                let (score, off) = scored(noisy, x[row * cols + col], top, t, of_four, col % 4);
                if best.2 == f64::from(u32::MAX) || order(score) > order(best.0) {
                    second = best.0;
                    best = (score, off, col as f64);
                } else if order(score) > order(second) {
                    second = score;
                }
            }
            margin = margin.min(if best.0.is_finite() { (best.0 - second) / t } else { 1.0 });
            all.push((if best.0.is_nan() { f64::NEG_INFINITY } else { best.0 + top }, best.1, best.2));
        }
    }
    (all, margin)
}

fn parts_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[_, wide] = numbers(instance).as_slice() else { return Vec::new() };
    let up = |n: usize| n.next_multiple_of(wide);
    let noisy = is_noisy(instance);
    let mut all = Vec::new();
    for [rows, cols, count] in [[1, up(1), 1], [3, up(1500), 2], [2, up(37), 3], [2, 64, 4], [2, 0, 2], [0, up(5), 1]] {
        // Repeat until the best element exceeds the second by more than roundings.
        for _ in 0..100 {
            let case = parts_case(instance, random, [rows, cols, count], wide);
            if !noisy || parts(instance, &case.inputs).1 > MARGIN {
                all.push(case);
                break;
            }
        }
    }
    if !noisy && stored(instance) == Scalar::F32 {
        let mut case = parts_case(instance, random, [6, 44, 1], wide);
        let special = [f32::NAN, f32::NEG_INFINITY, f32::INFINITY, -0.0, 0.0, -f32::NAN];
        let x: Vec<f32> =
            (0..6 * 44).map(|i| if i < 2 * 44 { special[i / 44] } else { special[random.below(6)] }).collect();
        case.inputs[0] = Input::view(&x, [6, 44]);
        all.push(Case::new("NaNs, infinities and zeros", case.inputs));
        // The best element belongs to the last thread, or to the first or last thread's next
        // columns.
        let (best, cols) = ([1023, 1024, 1027, 2047, 2048], 2052);
        let mut case = parts_case(instance, random, [best.len(), cols, 1], wide);
        let x: Vec<f32> = (0..best.len() * cols).map(|i| if i % cols == best[i / cols] { 2.0 } else { -1.0 }).collect();
        case.inputs[0] = Input::view(&x, [best.len(), cols]);
        all.push(Case::new("more than at once", case.inputs));
    }
    if noisy {
        let largest = match stored(instance) {
            Scalar::F16 => 65504.0,
            Scalar::Bf16 => f64::from(bf16::MAX.to_f32()),
            _ => f64::from(f32::MAX),
        };
        for (t, size) in EXTREMES {
            let size = size.min(largest);
            for _ in 0..100 {
                let mut case = parts_case(instance, random, [1, up(31), 1], wide);
                case.inputs.splice(1..4, Input::value_of(Temperature::of(t)));
                // Some elements are below the largest by 0 to a few units in the last place, and
                // others by as much as its size.
                let value = |random: &mut Random| {
                    let near = (size as f32).next_down();
                    [size as f32, size as f32, near, near.next_down(), -size as f32, 0.0][random.below(6)]
                };
                let x: Vec<f32> = (0..up(31)).map(|_| value(random)).collect();
                case.inputs[0] = rounded(stored(instance), &x, [1, up(31)]);
                if parts(instance, &case.inputs).1 > MARGIN {
                    all.push(Case::new(format!("temperature {t:e}, logits of {size:e}"), case.inputs));
                    break;
                }
            }
        }
    }
    all
}

fn parts_case(instance: &Instance, random: &mut Random, [rows, cols, count]: [usize; 3], wide: usize) -> Case {
    let pitch = cols + wide;
    let mut inputs = vec![drawn(random, stored(instance), rows * pitch, [rows, cols], [pitch, 1])];
    inputs.extend(Input::value_of(Temperature::of([1.0f32, 2.5, 0.3][random.below(3)])));
    inputs.extend(Input::value_of(random_stream(random)));
    inputs.push(Input::view(&vec![Scored { high: 0.0, low: 7.0, column: 0 }; rows * count], [rows, count]));
    Case::new(format!("{rows} × {cols} in {count}"), inputs)
}

/// Computes the scores. A score is exact as the sum of a number and its rounding error, which is at
/// most half a unit in the last place.
fn parts_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (all, _) = parts(instance, inputs);
    let (mut values, mut bounds) = (Vec::new(), Vec::new());
    let scale = inputs[1].value();
    for (score, off, column) in all {
        let score = score * if is_noisy(instance) { scale } else { 1.0 };
        let off = off * scale;
        // For infinite scores the rounding error is NaN or 0.
        let (low, of_low) = if score.is_finite() || !is_noisy(instance) {
            (0.0, if is_noisy(instance) { 1.001 * U * (score.abs() + off) + TINY } else { 0.0 })
        } else {
            (if score > 0.0 { f64::NAN } else { 0.0 }, 0.0)
        };
        values.extend([score + 0.0, low, column]);
        bounds.extend([if score.is_finite() { off + of_low } else { 0.0 }, of_low, 0.0]);
    }
    vec![Expected::new(8, values, Bound::Each(bounds))]
}

fn combine_cases(_: &Instance, random: &mut Random) -> Vec<Case> {
    let one = |[rows, parts]: [usize; 2]| {
        // Neighbors that only their rounding errors order; zeros of both signs, infinities.
        let (some, none) = (f32::INFINITY, f32::NEG_INFINITY);
        let some = [
            [(-1.0, 0.0), ((-1f32).next_down(), 0.5)],
            [(-1.0, 0.0), (0.5, -1.0)],
            [(0.5, 1e-9), (0.5, -1e-9)],
            [(2.0, 0.0), (2.0, 1e-30)],
            [(1e-10, 0.0), (2e-10, 0.0)],
            [(-0.0, 0.0), (0.0, -0.0)],
            [(none, f32::NAN), (none, 0.0)],
            [(some, f32::NAN), (f32::MAX, 1.0)],
            [(1e-45, 0.0), (0.0, 1e-45)],
        ];
        let mut best: Vec<Scored> = (0..rows * parts)
            .map(|i| {
                let (high, low) = some[i / parts % 9][random.below(2)];
                Scored { high, low, column: (i % parts * 1000 + random.below(1000)) as u32 }
            })
            .collect();
        // The best part belongs to the last lane, or to the first lane's next iteration.
        for (row, at) in (0..rows).map(|row| (row, 31 + row % 2)).filter(|(row, at)| row % 9 == 8 && *at < parts) {
            best[row * parts + at].high = 5.0;
        }
        Case::new(
            format!("{rows} × {parts}"),
            [Input::view(&best, [rows, parts]), Input::view(&vec![0u32; rows], [rows])],
        )
    };
    [[1, 1], [9, 31], [17, 33], [18, 33], [8, 100], [0, 3]].map(one).into()
}

fn combine_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let best = |row: &[f64]| {
        // Both parts of a score; the second counts if the first is finite.
        let of = |part: &[f64]| (part[0] + 0.0, if part[0].is_finite() { part[1] + 0.0 } else { 0.0 });
        let order = |a: &[f64], b: &[f64]| {
            let (a, b) = (of(a), of(b));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        };
        let mut all: Vec<&[f64]> = row.chunks(3).collect();
        all.sort_by(|a, b| order(b, a).then(a[2].total_cmp(&b[2])));
        all[0][2]
    };
    let parts = inputs[0].extents()[1];
    vec![Expected::exact(1, inputs[0].values().chunks(3 * parts).map(best))]
}
