//! `saxpy`, `map_1`, `map_2`, `map_3`.

use super::pieces;
use super::stored::{at_rest, numbers, scalars, stored};
use super::{TINY, U, overflowed};
use crate::activation::{fast_silu, fast_swiglu, silu, swiglu};
use crate::elementwise::maps::{map_1, map_2, map_3, multiply_add};
use crate::elementwise::saxpy;
use kernel_dsl::GenericArgument;
use kernel_dsl::compiler::hir::Instance;
use runtime::testing::{Bound, Case, Expected, Input, Random, edges};

runtime::register!(saxpy, cases, reference);
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
        let inputs = [vec![a], random.special_values(700), random.special_values(700)];
        all.push(case(format!("700 elements, some special, a = {a:e}"), &inputs));
    }
    all
}

fn case(name: String, [a, x, y]: &[Vec<f32>; 3]) -> Case {
    Case::new(name, [Input::scalar(a[0]), Input::slice(x), Input::slice(y)])
}

/// a·x has 48 bits and is exact in f64; the sum is rounded once there and once in `f32`.
fn reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let a = inputs[0].value();
    let pairs = inputs[1].values().into_iter().zip(inputs[2].values());
    let y: Vec<_> = pairs.map(|(x, y)| overflowed(a * x + y)).collect();
    let bounds = y.iter().map(|y| y.abs() * (U + f64::EPSILON) + TINY / 2.0).collect();
    vec![Expected::new(2, y, Bound::Each(bounds))]
}

/// For as many inputs as the instance has formats but one.
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
    pieces::shapes(v, &mut Random::new(3)).into_iter().map(case).collect()
}

/// Of x in [−1, 1]: `math::exp` is off by 1.784·u of its part in 1 + e⁻ˣ, and the sum, the quotient and the product round once each: 5·u
/// in all, and 1.001 covers their squares.
/// By approximations, off by what their documentation says.
fn silu_off(instance: &Instance, x: f64) -> (f64, f64) {
    let value = x / (1.0 + (-x).exp());
    let fast = [fast_silu::CONSTANT, fast_swiglu::CONSTANT].iter().any(|f| instance.0.contains(f));
    let part = if fast { 1e-5 } else { 1.001 * 5.0 * U };
    (value, part * value.abs() + TINY)
}

fn silu_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    mapped(instance, inputs, |x| silu_off(instance, x[0]))
}

/// One more product.
fn swiglu_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    mapped(instance, inputs, |x| {
        let (gate, off) = silu_off(instance, x[0]);
        let value = gate * x[1];
        (value, off * x[1].abs() + 1.001 * U * value.abs() + TINY)
    })
}

/// The product is exact in f64; the sum is rounded once there and once in `f32`.
fn multiply_add_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    mapped(instance, inputs, |x| {
        let value = x[0].mul_add(x[1], x[2]);
        (value, value.abs() * (U + f64::EPSILON) + TINY / 2.0)
    })
}

/// Each element by itself, and the last rounding.
fn mapped(instance: &Instance, inputs: &[Input], f: impl Fn(&[f64]) -> (f64, f64)) -> Vec<Expected> {
    let Some(read) = inputs.len().checked_sub(1) else { return Vec::new() };
    let all: Vec<_> = inputs[..read].iter().map(Input::values).collect();
    let one = |i: usize| {
        let (value, off) = f(&all.iter().map(|x| x[i]).collect::<Vec<_>>());
        (value, off + at_rest(stored(instance), value, off))
    };
    let (values, bounds) = (0..inputs[read].values().len()).map(one).unzip();
    vec![Expected::new(read, values, Bound::Each(bounds))]
}
