//! Spec of `adamw`.

use super::stored::{at_rest, drawn, extreme, numbers, scalars};
use super::{TINY, U, overflowed};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::optimizer::adamw;
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random, edges};

runtime::register!(adamw<f32, f32, 4>, cases, reference);

/// Weight factor, rate, β₁, 1 − β₁, β₂, 1 − β₂, correction and ε.
type OptimizerSettings = [f32; 8];

/// The settings of a late step, of the first step, and of a step that keeps no state.
const SETTINGS: [OptimizerSettings; 3] = [
    [0.9999, 1e-3, 0.9, 0.1, 0.999, 0.001, 1.01, 1e-8],
    [1.0, 1e-2, 0.9, 0.1, 0.999, 0.001, 31.622_776, 1e-8],
    [0.5, 3.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0],
];

fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let (v, formats) = (numbers(instance)[0], scalars(instance));
    let sizes = edges(256).into_iter().chain([random.below(5000)]).map(|n| n * v);
    let mut all = Vec::new();
    for (number, n) in sizes.enumerate() {
        let squares: Vec<f32> = random.values::<f32>(n).into_iter().map(f32::abs).collect();
        let arrays = [
            drawn(random, formats[1], n, [n], [1]),
            drawn(random, formats[0], n, [n], [1]),
            drawn(random, Scalar::F32, n, [n], [1]),
            Input::view(&squares, [n]),
        ];
        all.push(case(format!("{n} elements"), SETTINGS[number % SETTINGS.len()], arrays));
    }
    // Each extreme gradient meets other weights and states.
    let n = Extreme::ALL.len() * 40;
    let row = |random: &mut Random, format: Scalar, places: usize| {
        let mut of = Extreme::ALL;
        of.rotate_left(places);
        extreme(random, &of, format, 0, [n], [1])
    };
    for settings in SETTINGS {
        let arrays = [
            row(random, formats[1], 0),
            row(random, formats[0], 3),
            row(random, Scalar::F32, 5),
            row(random, Scalar::F32, 9),
        ];
        all.push(case("extremes".to_string(), settings, arrays));
    }
    all
}

fn case(name: String, settings: OptimizerSettings, arrays: [Input; 4]) -> Case {
    Case::new(name, settings.map(Input::scalar).into_iter().chain(arrays).collect::<Vec<_>>())
}

/// Computes the step in f64.
///
/// m and v are sums of two products: each product that is rounded, and the sum, has the error u of
/// itself. The quotient is evaluated at the ends of the intervals of m and v, because v may be all
/// rounding error. An interval that reaches 0 or the largest float leaves the weight open.
fn reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let [keep, rate, beta1, rest1, beta2, rest2, correction, epsilon] = std::array::from_fn(|i| inputs[i].value());
    let stored = scalars(instance)[0];
    let max = f64::from(f32::MAX);
    let [g, w, m, v] = [8, 9, 10, 11].map(|i| inputs[i].values());
    let (mut results, mut bounds) = ([const { Vec::new() }; 3], [const { Vec::new() }; 3]);
    for i in 0..g.len() {
        let (a, b) = (rest1 * g[i], beta1 * m[i]);
        let first = overflowed(a + b);
        let off_first = 1.001 * U * (b.abs() + first.abs()) + 2.0 * TINY;
        let (a, b) = (rest2 * g[i] * g[i], beta2 * v[i]);
        let sum = a + b;
        let second = overflowed(sum);
        let off_second = 1.001 * U * (2.0 * a.abs() + b.abs() + sum.abs()) + TINY * (2.0 + g[i].abs());
        let at_edge = (sum.abs() - max).abs() <= off_second || (a + b).abs() <= off_second && b < 0.0;

        let under = |second: f64, up: f64| second.max(0.0).sqrt() * correction * (1.0 + 4.0 * up * U) + epsilon;
        let denominator = second.sqrt() * correction + epsilon;
        let quotient = first / denominator;
        let low = under(second - off_second, -1.0);
        let ends = [first - off_first, first + off_first].map(|x| x.abs() / low);
        let off_quotient = if second.is_infinite() {
            0.0
        } else {
            let high = under(second + off_second, 1.0);
            let all = [first - off_first, first + off_first].map(|x| [x / low, x / high]);
            all.as_flattened().iter().map(|end| (end - quotient).abs()).fold(0.0, f64::max)
        };
        let value = overflowed(keep * w[i] - rate * quotient);
        let off = rate * (off_quotient + 4.0 * U * quotient.abs() + TINY)
            + 1.001 * U * ((keep * w[i]).abs() + value.abs())
            + 2.0 * TINY;
        let open = at_edge
            || low == 0.0
            || ends.iter().any(|end| *end > max)
            || (keep * w[i]).abs() + (rate * quotient).abs() > max
            || off.is_nan();
        let off = if open { f64::INFINITY } else { off + at_rest(stored, value, off) };
        for (which, (value, off)) in [(value, off), (first, off_first), (second, off_second)].into_iter().enumerate() {
            results[which].push(value);
            bounds[which].push(if off.is_nan() { 0.0 } else { off });
        }
    }
    let all = results.into_iter().zip(bounds).enumerate();
    all.map(|(which, (values, bounds))| Expected::new(9 + which, values, Bound::Each(bounds))).collect()
}
