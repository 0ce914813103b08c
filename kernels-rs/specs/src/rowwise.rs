//! Spec of `softmax`.

use super::{TINY, U, gamma, matrix, size, with_gaps};
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::rowwise::textbook::softmax;
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random, edges, shapes};

runtime::register!(softmax<4>, cases, reference);

/// Lanes that share a row.
const LANES: usize = 32;

fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let (rows, cols) = (edges(size(instance)), edges(LANES));
    let mut all = Vec::new();
    for shape in shapes([&rows, &cols], random).into_iter().chain([[1, 1000], [40, 3], [3, 2 + random.below(500)]]) {
        all.push(ordinary(random, shape, 0));
    }
    all.push(ordinary(random, [7, 45], 3));
    all.push(special(random));
    all.push(wide(random));
    all.push(peaks(random));
    all
}

fn ordinary(random: &mut Random, shape @ [rows, cols]: [usize; 2], gap: usize) -> Case {
    let gaps = if gap == 0 { String::new() } else { format!(", rows {gap} elements apart") };
    let inputs = [matrix(random, shape, gap), matrix(random, shape, gap)];
    Case::new(format!("{rows} × {cols}{gaps}"), inputs)
}

/// Returns a row of each extreme, NaNs between rows, and a row in which only one lane has a sum.
fn special(random: &mut Random) -> Case {
    const COLS: usize = 70;
    let mut rows: Vec<f32> = Extreme::ALL.iter().flat_map(|extreme| extreme.fill::<f32>(random, COLS)).collect();
    rows.extend((0..COLS).map(|i| if i == 37 { -1e30 } else { f32::NEG_INFINITY }));
    let shape = [rows.len() / COLS, COLS];
    let (x, y) = (Input::view(&rows, shape), matrix(random, shape, 0));
    Case::new(format!("{} rows of extremes", shape[0]), [x, y])
}

/// Returns distances from the maximum at which the exponential becomes subnormal and then zero.
fn wide(random: &mut Random) -> Case {
    let shape = [9, 67];
    let x: Vec<_> = random.values::<f32>(shape[0] * shape[1]).into_iter().map(|x| x * 60.0).collect();
    Case::new("9 × 67, values from −60 to 60", [with_gaps(&x, shape, 0), matrix(random, shape, 0)])
}

/// Returns rows with one large column each: a maximum that misses one of them overflows the
/// exponential.
fn peaks(random: &mut Random) -> Case {
    const N: usize = 67;
    let x: Vec<_> = (0..N * N).map(|i| if i / N == i % N { 60.0 } else { -60.0f32 }).collect();
    Case::new("67 × 67, in each row one value of 60 among −60", [with_gaps(&x, [N, N], 0), matrix(random, [N, N], 0)])
}

/// The distance below the maximum at which the exponential is 0 in every `f32`, and more.
const MAX_EXPONENT_DISTANCE: f64 = 150.0;

/// Computes the softmax and its error bounds. With d = x − m, to first order in u and relative to
/// the exact value:
///
/// * d is rounded once, and e^(d(1 + δ)) = e^d · e^(dδ): |d|·u;
/// * `math::exp` has 0.892 units in the last place, each at most 2u: 1.784·u;
/// * the sum has positive terms with the errors above, so that its error is at most their weighted
///   mean; a term has ⌈cols / 32⌉ additions in its lane and 5 among lanes, with γ of these;
/// * the reciprocal and the product: 2·u.
///
/// The sum of these errors is at most 10⁻⁴, and 1.001 covers its square. For subnormals, the
/// exponential has an error of 0.892 of the least subnormal, and the product half of the least. The
/// sum is 1 or more, so its subnormal terms have no effect.
fn reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let x = inputs[0].values();
    let cols = inputs[0].extents().last().copied().unwrap_or(0).max(1);
    let (mut values, mut bounds) = (Vec::new(), Vec::new());
    for row in x.chunks(cols) {
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if row.iter().any(|x| x.is_nan() || *x == f64::INFINITY) {
            values.extend(row.iter().map(|_| f64::NAN));
        } else if top == f64::NEG_INFINITY {
            values.extend(row.iter().map(|_| 0.0));
        } else {
            let exponentials: Vec<_> = row.iter().map(|x| (x - top).exp()).collect();
            let sum: f64 = exponentials.iter().sum();
            let term = |x: &f64| ((x - top).abs().min(MAX_EXPONENT_DISTANCE) + 1.784) * U;
            let mean = row.iter().zip(&exponentials).map(|(x, e)| e * term(x)).sum::<f64>() / sum;
            let of_row = mean + gamma(cols.div_ceil(LANES) + 5) + 2.0 * U;
            values.extend(exponentials.iter().map(|e| e / sum));
            bounds
                .extend(row.iter().zip(&exponentials).map(|(x, e)| 1.001 * e / sum * (term(x) + of_row) + 2.0 * TINY));
        }
        bounds.resize(values.len(), 0.0);
    }
    vec![Expected::new(1, values, Bound::Each(bounds))]
}
