//! Mixtures of experts: the experts of each token, the order of rows by expert, and the sum of the
//! experts' results.
//!
//! ```text
//!   logits [tokens, experts] ─▶ route ─▶ experts, weights [tokens, chosen]
//!                                           │
//!   few tokens:  a row for each choice      ▼      many: rows by expert, in whole groups
//!   ┌ token 0: expert 7 ┐           count ─▶ place    ┌ expert 0: token 5, token 9, –, – ┐
//!   │ token 0: expert 2 │                             │ expert 2: token 0, token 1, …    │
//!   └ token 1: expert 2 ┘                             └ …                                ┘
//!                     products of these rows with their experts ─▶ combine
//! ```
//!
//! All lists stay on the device, so that a recorded graph works for other routes, too. A route is
//! one choice of a token: route i is choice i % chosen of token i / chosen.

use crate::activation::sigmoid;
use crate::gemm::epilogue::*;
use crate::rowwise::softmax::decay;
use crate::sampling::best::{column_of, rank};
use kernel_dsl::prelude::*;

/// Chooses experts for each token, with one warp per token and `N` experts per lane.
///
/// Logits are clamped to the finite numbers, and a NaN counts as the lowest. An expert's score is
/// the softmax of the token's logits, or with `SIGMOID` the sigmoid of its logit. The experts with
/// the largest logits are chosen, or those with the largest sums of score and bias. Chosen experts
/// are in descending order; of two equal experts, the one with the lower number comes first. An
/// expert's weight is `scale` times its score. With `SHARE` the weight is divided by the sum of the
/// chosen scores, or by 2⁻¹²⁶ if that is larger.
///
/// `logits` is [tokens, experts], and `experts` and `weights` are [tokens, chosen].
#[kernel(
    block = 256, grid = logits.dim(0).div_ceil(8), writes(experts = once, weights = once),
    instances(
        softmax_32: X = f32, SIGMOID = false, SHARE = true, N = 1;
        softmax_128: X = f32, SIGMOID = false, SHARE = false, N = 4;
        sigmoid_256: X = f32, SIGMOID = true, SHARE = true, N = 8;
        softmax_f16_512: X = f16, SIGMOID = false, SHARE = true, N = 16
    ),
)]
#[requires(
    logits.cols() > 0, logits.cols() <= 32 * N, experts.rows() == logits.rows(), experts.cols() <= logits.cols(),
    experts.cols() <= 32, weights.rows() == experts.rows(), weights.cols() == experts.cols(),
    bias.is_empty() || bias.len() == logits.cols(),
)]
pub fn route<X: Float, const SIGMOID: bool, const SHARE: bool, const N: usize>(
    logits: View<X, 2>,
    bias: &[f32],
    scale: f32,
    mut experts: ViewMut<i32, 2>,
    mut weights: ViewMut<f32, 2>,
) {
    let (token, lane) = (block::x() * 8 + warp::index(), warp::lane());
    let mut scores = [f32::MIN; N];
    for i in unroll(0..N) {
        if token < logits.rows() && lane + 32 * i < logits.cols() {
            // The maximum of a number and a NaN is the number.
            scores[i] = logits[(token, lane + 32 * i)].to_f32().max(f32::MIN).min(f32::MAX);
        }
    }
    let mut ranks = [0u64; N];
    for i in unroll(0..N) {
        if lane + 32 * i < logits.cols() {
            ranks[i] = rank(scores[i], lane + 32 * i);
        }
    }
    if SIGMOID {
        for i in unroll(0..N) {
            scores[i] = sigmoid(scores[i]);
        }
    } else {
        let mut top = scores[0];
        for i in unroll(1..N) {
            top = top.max(scores[i]);
        }
        let top = warp::max(top);
        let mut sum = 0.0f32;
        for i in unroll(0..N) {
            scores[i] = if lane + 32 * i < logits.cols() { decay(scores[i] - top) } else { 0.0 };
            sum += scores[i];
        }
        let sum = warp::sum(sum);
        for i in unroll(0..N) {
            scores[i] /= sum;
        }
    }
    if !bias.is_empty() {
        for i in unroll(0..N) {
            let expert = lane + 32 * i;
            if expert < logits.cols() {
                ranks[i] = rank(scores[i] + bias[expert], expert);
            }
        }
    }
    // Lane c has choice c.
    let (mut expert, mut score, mut total) = (0, 0.0f32, 0.0f32);
    for choice in 0..experts.cols() {
        let (mut best, mut of_best) = (ranks[0], scores[0]);
        for i in unroll(1..N) {
            if ranks[i] > best {
                best = ranks[i];
                of_best = scores[i];
            }
        }
        let top = warp::reduce(best, |a: u64, b: u64| a.max(b));
        let column = column_of(top) as usize;
        let of_top = warp::shuffle(of_best, column % 32);
        for i in unroll(0..N) {
            if ranks[i] == top {
                ranks[i] = 0;
            }
        }
        if lane == choice {
            expert = column as i32;
            score = of_top;
        }
        total += of_top;
    }
    if token < experts.rows() && lane < experts.cols() {
        experts[(token, lane)] = expert;
        weights[(token, lane)] = scale * if SHARE { score / total.max(f32::MIN_POSITIVE) } else { score };
    }
}

/// Counts the routes to each expert, with one warp per expert.
///
/// `experts` has an element for each route, and `counts` has one for each expert.
#[kernel(block = 256, grid = counts.len().div_ceil(8), writes(counts = once))]
pub fn count_routes(experts: &[i32], counts: &mut [i32]) {
    let (expert, lane) = (block::x() * 8 + warp::index(), warp::lane());
    let mut count = 0;
    for i in (lane..experts.len()).step_by(32) {
        if experts[i] == expert as i32 {
            count += 1;
        }
    }
    let count = warp::sum(count);
    if lane == 0 && expert < counts.len() {
        counts[expert] = count;
    }
}

/// Orders routes by expert, and the routes of an expert by number, in groups of `room` rows of one
/// expert. Divides the groups of an expert into tiles of up to `groups_of_tile` groups. There is
/// one warp per expert, and one for the rows after the last expert.
///
/// `order` is the route of each row, or −1. `groups` is the expert of each group, or −1. `tiles` is
/// the first group of each tile, or −1 for an empty tile. Full tiles come first, so that short ones
/// balance the load at the end. `places` is the row of each route.
///
/// `experts` and `places` have an element for each route, and `counts` has one for each expert.
#[kernel(
    block = 256, grid = (counts.len() + 1).div_ceil(8), writes(order = once, groups = once, tiles = once),
)]
#[requires(
    room > 0, groups_of_tile > 0, groups_of_tile <= 8, order.len() == room * groups.len(), order.len() >= experts.len(),
    places.len() == experts.len(),
    tiles.is_empty() || tiles.len() > groups.len() / groups_of_tile,
)]
pub fn place_routes(
    experts: &[i32],
    counts: &[i32],
    room: usize,
    groups_of_tile: usize,
    order: &mut [i32],
    groups: &mut [i32],
    tiles: &mut [i32],
    places: &mut [i32],
) {
    let (expert, lane) = (block::x() * 8 + warp::index(), warp::lane());
    // The groups, the full tiles and the other tiles of the experts before, and all full tiles.
    let (mut before, mut full_before, mut others_before, mut all_full) = (0, 0, 0, 0);
    for i in (lane..counts.len()).step_by(32) {
        let groups = (counts[i] as usize).div_ceil(room);
        all_full += groups / groups_of_tile;
        if i < expert {
            before += groups;
            full_before += groups / groups_of_tile;
            others_before += (groups % groups_of_tile).min(1);
        }
    }
    let first = warp::sum(before as i32) as usize;
    let full_before = warp::sum(full_before as i32) as usize;
    let other = (warp::sum(others_before as i32) + warp::sum(all_full as i32)) as usize;
    if expert < counts.len() {
        let count = counts[expert] as usize;
        let end = first + count.div_ceil(room);
        let mut next = room * first;
        for i in (0..experts.len()).step_by(32) {
            let route = i + lane;
            let of = if route < experts.len() { experts[route] } else { -1 };
            let mine = of == expert as i32;
            let all = warp::ballot(mine);
            if mine {
                let row = next + (all & ((1u32 << lane as u32) - 1)).count_ones() as usize;
                order[row] = route as i32;
                places[route] = row as i32;
            }
            next += all.count_ones() as usize;
        }
        for row in (room * first + count + lane..room * end).step_by(32) {
            order[row] = -1;
        }
        for group in (first + lane..end).step_by(32) {
            groups[group] = expert as i32;
        }
        if !tiles.is_empty() {
            let full = (end - first) / groups_of_tile;
            for i in (lane..full).step_by(32) {
                tiles[full_before + i] = (first + i * groups_of_tile) as i32;
            }
            if lane == 0 && first + full * groups_of_tile < end {
                tiles[other] = (first + full * groups_of_tile) as i32;
            }
        }
    } else if expert == counts.len() {
        for row in (room * first + lane..order.len()).step_by(32) {
            order[row] = -1;
        }
        for group in (first + lane..groups.len()).step_by(32) {
            groups[group] = -1;
        }
        let mut group = first + lane * groups_of_tile;
        for tile in (other + lane..tiles.len()).step_by(32) {
            tiles[tile] = if group < groups.len() { group as i32 } else { -1 };
            group += 32 * groups_of_tile;
        }
    }
}

/// Computes Y ← epilogue(Σ weight · row): a row of Y for each token, from the rows of its routes in
/// the order of its choices. Route i is row `places[i]` of `x`, or row i if `places` is empty.
#[kernel(
    block = 256, grid = (y.dim(0) * y.dim(1).div_ceil(V)).div_ceil(256), writes(y = once),
    instances(f32: X = f32, E = Identity, V = 4 | 1; f16: X = f16, E = Identity, V = 4),
)]
#[requires(
    weights.rows() == y.rows(), x.cols() == y.cols(), places.is_empty() || places.len() == weights.rows() * weights.cols(),
    x.rows() >= weights.rows() * weights.cols(), x.aligned(V), y.aligned(V), y.cols() % V == 0,
)]
pub fn combine<X: Float, E: Epilogue, const V: usize>(
    x: View<X, 2>,
    weights: View<f32, 2>,
    places: &[i32],
    y: ViewMut<X, 2>,
    epilogue: E,
) {
    let (pieces, i) = (y.cols().div_ceil(V), grid::index());
    let (token, col) = (i / pieces, i % pieces * V);
    if token < y.rows() {
        let mut sum = [0.0f32; V];
        for choice in 0..weights.cols() {
            let route = token * weights.cols() + choice;
            let row = if places.is_empty() { route } else { places[route] as usize };
            let weight = weights[(token, choice)];
            let part = x.load::<V>((row, col)).map(X::to_f32);
            for e in unroll(0..V) {
                sum[e] = weight.mul_add(part[e], sum[e]);
            }
        }
        store(1.0, sum, 0.0, y, token, col, 0, epilogue);
    }
}
