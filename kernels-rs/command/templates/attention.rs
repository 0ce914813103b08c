//! Attention with a running softmax, with its test cases.

use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Case, Expected, Input, Random};

/// Computes out = softmax(scale · Q·Kᵀ)·V for queries, keys and values of D numbers each. A warp
/// takes a query; its lane l holds the numbers l, l + 32, ….
///
/// The keys are visited once: the largest score so far, the sum of the weights and the weighted sum
/// of the values are rescaled when the largest score grows.
#[kernel(
    block = (32, 4),
    grid = q.rows().div_ceil(4),
    instances(d32: D = 32; d64: D = 64),
    derived(N = D / 32),
    writes(out = once),
)]
#[requires(q.cols() == D, k.cols() == D, v.cols() == D, out.cols() == D)]
#[requires(v.rows() == k.rows(), out.rows() == q.rows(), k.rows() > 0)]
pub fn attend<const D: usize, const N: usize>(
    q: View<f32, 2>,
    k: View<f32, 2>,
    v: View<f32, 2>,
    mut out: ViewMut<f32, 2>,
    scale: f32,
) {
    let row = block::x() * 4 + thread::y();
    if row >= q.rows() {
        return; // all lanes of the warp
    }
    let mut query = [0.0; N];
    for i in unroll(0..N) {
        query[i] = q[(row, warp::lane() + 32 * i)] * scale;
    }
    let (mut top, mut sum, mut mix) = (f32::NEG_INFINITY, 0.0, [0.0; N]);
    for key in 0..k.rows() {
        let mut part = 0.0;
        for i in unroll(0..N) {
            part = query[i].mul_add(k[(key, warp::lane() + 32 * i)], part);
        }
        let score = warp::sum(part);
        let higher = top.max(score);
        let (keep, weight) = (math::exp(top - higher), math::exp(score - higher));
        (top, sum) = (higher, sum * keep + weight);
        for i in unroll(0..N) {
            mix[i] = weight.mul_add(v[(key, warp::lane() + 32 * i)], mix[i] * keep);
        }
    }
    for i in unroll(0..N) {
        out[(row, warp::lane() + 32 * i)] = mix[i] / sum;
    }
}

runtime::register!(attend<32, 1>, attend_cases, attend_reference);

/// Returns D of an instance.
fn numbers(instance: &kernel_dsl::compiler::hir::Instance) -> usize {
    match instance.0[..] {
        [kernel_dsl::compiler::hir::Constant::Usize(d), ..] => d as usize,
        _ => 32,
    }
}

fn attend_cases(instance: &kernel_dsl::compiler::hir::Instance, random: &mut Random) -> Vec<Case> {
    let d = numbers(instance);
    let mut case = |(queries, keys): (usize, usize)| {
        let mut matrix = |rows: usize| {
            let numbers: Vec<f32> = (0..rows * d).map(|_| random.unit() as f32 - 0.5).collect();
            Input::view(&numbers, [rows, d])
        };
        let inputs = [matrix(queries), matrix(keys), matrix(keys)];
        let out = Input::uninitialized::<f32, 2>([queries, d]);
        let scale = Input::scalar(1.0 / (d as f32).sqrt());
        Case::new(format!("{queries} queries, {keys} keys"), inputs.into_iter().chain([out, scale]).collect::<Vec<_>>())
    };
    [(1, 1), (4, 3), (5, 33), (9, 64)].into_iter().map(&mut case).collect()
}

/// Computes attention in f64. Weights sum to 1 and values are below 1/2; each of the about D + keys
/// roundings changes a weight by less than 2⁻²⁰ of its value.
fn attend_reference(instance: &kernel_dsl::compiler::hir::Instance, inputs: &[Input]) -> Vec<Expected> {
    let d = numbers(instance);
    let [q, k, v] = [0, 1, 2].map(|i| inputs[i].values());
    let scale = inputs[4].value();
    let mut all = Vec::new();
    for query in q.chunks(d) {
        let scores: Vec<f64> =
            k.chunks(d).map(|key| scale * query.iter().zip(key).map(|(a, b)| a * b).sum::<f64>()).collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
        let sum: f64 = weights.iter().sum();
        all.extend((0..d).map(|i| weights.iter().zip(v.chunks(d)).map(|(w, v)| w * v[i]).sum::<f64>() / sum));
    }
    let bound = (d + k.len() / d) as f64 * 2f64.powi(-20);
    vec![Expected::new(3, all, Bound::Absolute(bound))]
}
