//! Specs of `saxpy`, `map_1`, `map_2`, `map_3`.

use super::pieces;
use super::stored::{at_rest, extreme, numbers, scalars, stored};
use super::{TINY, U, overflowed};
use kernel_dsl::GenericArgument;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::activation::{fast_silu, fast_swiglu, silu, swiglu};
use kernels_rs::elementwise::maps::{map_1, map_2, map_3, multiply_add};
use kernels_rs::elementwise::saxpy;
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random, edges};

runtime::register!(saxpy, cases, reference);
runtime::register_bench!(saxpy, large);
runtime::register!(map_1<f32, f32, silu, 4, 4, 1>, map_cases, silu_reference);
runtime::register!(map_2<f32, f32, f32, swiglu, 4, 4, 4, 1, 1>, map_cases, swiglu_reference);
runtime::register!(map_3<f32, f32, f32, f32, multiply_add, 4, 4, 4, 4, 1, 1, 1>, map_cases, multiply_add_reference);

fn cases(_: &Instance, random: &mut Random) -> Vec<Case> {
    let mut all = Vec::new();
    for n in edges(256).into_iter().chain([random.below(5000), 10_007]) {
        let inputs = [random.values::<f32>(1), random.values(n), random.values(n)];
        all.push(case(format!("{n} elements"), &inputs));
    }
    for a in [1.0, -0.0, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY, f32::NAN] {
        let mut of_all = || Extreme::ALL.iter().flat_map(|e| e.fill::<f32>(random, 35)).collect::<Vec<_>>();
        let (x, mut y) = (of_all(), of_all());
        // Pairs each extreme with another one.
        y.rotate_left(7 * 35);
        all.push(case(format!("700 elements of extremes, a = {a:e}"), &[vec![a], x, y]));
    }
    all
}

/// Returns a case so large that the launch cost does not hide the kernel's time.
fn large(_: &Instance, random: &mut Random) -> Vec<Case> {
    let n = 1 << 22;
    vec![case(format!("{n} elements"), &[random.values(1), random.values(n), random.values(n)])]
}

fn case(name: String, [a, x, y]: &[Vec<f32>; 3]) -> Case {
    Case::new(name, [Input::scalar(a[0]), Input::slice(x), Input::slice(y)])
}

/// Computes the exact results. a·x has 48 bits and is exact in f64; the sum is rounded once in f64
/// and once in `f32`.
fn reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let a = inputs[0].value();
    let pairs = inputs[1].values().into_iter().zip(inputs[2].values());
    let y: Vec<_> = pairs.map(|(x, y)| a * x + y).collect();
    let bounds = y.iter().map(|y| y.abs() * (U + f64::EPSILON) + TINY / 2.0).collect();
    vec![Expected::new(2, y, Bound::Each(bounds))]
}

/// Returns cases for the instance's number of inputs: one less than its formats.
fn map_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let (formats, numbers) = (scalars(instance), numbers(instance));
    let Some(inputs) = formats.len().checked_sub(1) else { return Vec::new() };
    let v = numbers[0];
    let case = |shape: [usize; 4]| {
        let mut all: Vec<_> =
            (0..inputs).map(|i| pieces::read(random, formats[i], shape, [v, numbers[1 + i]])).collect();
        let gap = random.below(3);
        all.push(pieces::written(random, stored(instance), shape, v, gap));
        Case::new(format!("{shape:?}"), all)
    };
    let mut all: Vec<Case> = pieces::shapes(v, &mut Random::new(3)).into_iter().map(case).collect();
    // A row of each extreme, in reverse order for the last input.
    let extents = |v: usize| [1, 1, Extreme::ALL.len(), 40 / v, v];
    let strides = |v: usize| [40 * Extreme::ALL.len(), 40 * Extreme::ALL.len(), 40, v, 1];
    let reversed: Vec<Extreme> = Extreme::ALL.into_iter().rev().collect();
    let of = |i: usize| if i + 1 < inputs || inputs == 1 { &Extreme::ALL[..] } else { &reversed[..] };
    let mut arrays: Vec<_> = (0..inputs)
        .map(|i| extreme(random, of(i), formats[i], 2, extents(numbers[1 + i]), strides(numbers[1 + i])))
        .collect();
    arrays.push(pieces::written(random, stored(instance), [1, 1, Extreme::ALL.len(), 40], v, 0));
    all.push(Case::new("extremes", arrays));
    all
}

/// Returns the result and its error bound. `math::exp` has the error 1.784·u, of its result or of
/// its part in 1 + e^−|x|. The sum, the quotient and two products round once each: 7·u in total,
/// and 1.001 covers second-order terms. If e^−|x| is subnormal, its error is one least subnormal.
/// The approximations have the errors of their documentation: 0 below −88.
fn silu_off(instance: &Instance, x: f64) -> (f64, f64) {
    // The limit at −∞.
    let value = if x == f64::NEG_INFINITY { 0.0 } else { x / (1.0 + (-x).exp()) };
    let fast = [fast_silu::CONSTANT, fast_swiglu::CONSTANT].iter().any(|f| instance.0.contains(f));
    if fast {
        return (value, if x < -80.0 { 2.0 * value.abs() + TINY } else { 1e-5 * value.abs() + TINY });
    }
    (value, 1.001 * 7.0 * U * value.abs() + TINY + if x < 0.0 { 2.0 * x.abs().min(200.0) * TINY } else { 0.0 })
}

fn silu_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    mapped(instance, inputs, |x| silu_off(instance, x[0]))
}

/// Computes the results; there is one more product than in `silu`.
fn swiglu_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    mapped(instance, inputs, |x| {
        let (gate, off) = silu_off(instance, x[0]);
        // The gate is rounded to the range of `f32`: an infinity times 0 is NaN.
        let value = overflowed(gate) * x[1];
        (value, off * x[1].abs() + 1.001 * U * value.abs() + TINY)
    })
}

/// Computes the results. The product is exact in f64; the sum is rounded once in f64 and once in
/// `f32`.
fn multiply_add_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    mapped(instance, inputs, |x| {
        let value = x[0].mul_add(x[1], x[2]);
        (value, value.abs() * (U + f64::EPSILON) + TINY / 2.0)
    })
}

/// Computes each element independently, with the error of the final rounding.
fn mapped(instance: &Instance, inputs: &[Input], f: impl Fn(&[f64]) -> (f64, f64)) -> Vec<Expected> {
    let Some(read) = inputs.len().checked_sub(1) else { return Vec::new() };
    let all: Vec<_> = inputs[..read].iter().map(Input::values).collect();
    let one = |i: usize| {
        let (value, off) = f(&all.iter().map(|x| x[i]).collect::<Vec<_>>());
        (value, off + at_rest(stored(instance), value, off))
    };
    let (values, bounds) = (0..inputs[read].value_count()).map(one).unzip();
    vec![Expected::new(read, values, Bound::Each(bounds))]
}
