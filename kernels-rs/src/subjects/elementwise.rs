//! `saxpy`.

use super::{TINY, U, overflowed};
use crate::elementwise::saxpy;
use kernel_dsl::compiler::hir::Instance;
use runtime::testing::{Bound, Case, Expected, Input, Random, edges};

runtime::register!(saxpy, cases, reference);

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
