//! Specs of `best_parts`, `best_of_parts`, `likeliest_of_parts`, `sample_top`,
//! `sample_likely`.

use super::stored::{drawn, numbers, rounded, stored};
use super::{TINY, U};
use kernel_dsl::Element;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::half::bf16;
use kernels_rs::sampling::best::{Scored, Temperature, best_of_parts, best_parts, rank, score_of};
use kernels_rs::sampling::random::RandomStream;
use kernels_rs::sampling::threshold::sample_likely;
use kernels_rs::sampling::top::{likeliest_of_parts, sample_top};
use runtime::testing::{Bound, Case, Expected, Input, Random};
use std::ops::Range;

runtime::register!(best_parts<f32, false, 4>, parts_cases, parts_reference);
runtime::register!(best_of_parts, combine_cases, combine_reference);
runtime::register!(likeliest_of_parts<f32>, likeliest_cases, likeliest_reference);
runtime::register!(sample_top<64>, top_cases, top_reference);
runtime::register!(sample_likely<f32>, likely_cases, likely_reference);

/// The minimum distance of a draw from another result, so that roundings do not decide it.
const MARGIN: f64 = 1e-4;

/// Computes Philox 4x32-10 with 64-bit products.
fn philox(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let (a, b) = (u64::from(c[0]) * 0xD251_1F53, u64::from(c[2]) * 0xCD9E_8D57);
        c = [(b >> 32) as u32 ^ c[1] ^ k[0], b as u32, (a >> 32) as u32 ^ c[3] ^ k[1], a as u32];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

/// Returns the midpoint of one of 2⁵⁵ steps from 0 to 1, times 1 − 2⁻²⁴, with `high` and the result
/// rounded to 24 bits.
fn uniform(high: u32, low: u32) -> f64 {
    let step = 2f64.powi(-32) - 2f64.powi(-56);
    let fraction = (f64::from(low & 0x7f_ffff) + 0.5) / 2f64.powi(55);
    f64::from((f64::from(high as f32) * step + fraction) as f32)
}

/// Returns the stream in a case's inputs: seed and offset, from `first` on.
pub(super) fn stream(inputs: &[Input], first: usize) -> [u32; 4] {
    [0, 1, 2, 3].map(|i| inputs[first + i].value() as u32)
}

pub(super) fn words([seed0, seed1, offset0, offset1]: [u32; 4], row: usize, index: u32) -> [u32; 4] {
    philox([index, row as u32, offset0, offset1], [seed0, seed1])
}

pub(super) fn random_stream(random: &mut Random) -> RandomStream {
    let mut word = || random.below(1 << 31) as u32 * 2 + 1;
    RandomStream { seed: [word(), word()], offset: [word(), word()] }
}

/// Returns the sort key of a score: a NaN counts as −∞, and −0 as 0.
pub(super) fn order(score: f64) -> f64 {
    if score.is_nan() { -1e300 } else { score.max(-1e300) + 0.0 }
}

/// Returns the temperature in a case's inputs, from `first` on: the scale and the spread.
pub(super) fn temperature(inputs: &[Input], first: usize) -> f64 {
    inputs[first + 1].value() / inputs[first].value()
}

fn is_noisy(instance: &Instance) -> bool {
    numbers(instance).first() == Some(&1)
}

/// Returns the largest finite element, or 0.
fn largest(x: &[f64]) -> f64 {
    x.iter().copied().filter(|x| x.is_finite()).reduce(f64::max).unwrap_or(0.0)
}

/// Returns the score of an element, x + T · noise, minus `top`, so that the sum keeps the noise.
/// Also returns its error bound: each logarithm has less than two units in the last place, and the
/// product with T is rounded.
fn scored(noisy: bool, x: f64, top: f64, t: f64, words: [u32; 4], at: usize) -> (f64, f64) {
    let x = x - top;
    if !noisy {
        return (x, 0.0);
    }
    let u = uniform(words[at], words[(at + 1) % 4]);
    let noise = -(-(-u).ln_1p()).ln();
    // A relative error of a logarithm's argument is an absolute error of the logarithm.
    (x + t * noise, 1.001 * t * U * (4.0 + 5.0 * noise.abs()) + TINY)
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

/// Temperatures, and magnitudes of logits: both ends of the ranges, and logits that are so large
/// that the sum loses the noise.
const EXTREMES: [(f32, f64); 8] = [
    (f32::MIN_POSITIVE, 1.0),
    (f32::MIN_POSITIVE, 1e-38),
    (1.0, 1e8),
    (1.0, f32::MAX as f64),
    (3e28, f32::MAX as f64),
    (f32::MAX, f32::MAX as f64),
    (f32::INFINITY, 1.0),
    (f32::INFINITY, f32::MAX as f64),
];

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

/// Returns the drawn tokens, and the draws' distance from other results.
fn drawn_tokens(inputs: &[Input]) -> (Vec<f64>, f64) {
    let (x, t, k, top_p) = (inputs[0].values(), temperature(inputs, 1), inputs[4].value() as usize, inputs[5].value());
    let stream = stream(inputs, 6);
    let cols = inputs[0].extents()[1];
    let mut margin = f64::INFINITY;
    let mut one = |(row, x): (usize, &[f64])| {
        let mut places: Vec<usize> = (0..cols).collect();
        places.sort_by(|a, b| order(x[*b]).total_cmp(&order(x[*a])).then(a.cmp(b)));
        places.truncate(k);
        let top = order(x[places[0]]);
        let of = |i: &usize| if x[*i] == f64::INFINITY { f64::NAN } else { ((order(x[*i]) - top) / t).exp() };
        let p: Vec<f64> = places.iter().map(of).collect();
        let begins = |i: usize| p[..i].iter().sum::<f64>();
        let total = begins(p.len());
        let kept = (0..p.len()).filter(|i| p[*i] > 0.0 && begins(*i) < top_p * total).count();
        // The sum begins with the least likely of the kept tokens.
        let below = |i: usize| p[i + 1..kept].iter().rev().sum::<f64>();
        let words = words(stream, row, u32::MAX);
        let aim = uniform(words[0], words[1]) * begins(kept);
        let hit = (0..kept).find(|i| below(*i) <= aim).unwrap_or(0);
        for i in 1..p.len() {
            margin = margin.min((begins(i) - top_p * total).abs() / total);
        }
        for i in 0..kept.max(1) - 1 {
            margin = margin.min((below(i) - aim).abs() / total);
        }
        places[hit] as f64
    };
    let tokens = x.chunks(cols.max(1)).enumerate().map(&mut one).collect();
    (tokens, margin)
}

/// Returns a stream whose draw for each row is in that row's stretch.
fn stream_for_stretches(random: &mut Random, stretches: &[Range<f64>]) -> RandomStream {
    loop {
        let stream = random_stream(random);
        let [[a, b], [c, d]] = [stream.seed, stream.offset];
        let aim = |row| {
            let words = words([a, b, c, d], row, u32::MAX);
            uniform(words[0], words[1])
        };
        if stretches.iter().enumerate().all(|(row, stretch)| stretch.contains(&aim(row))) {
            return stream;
        }
    }
}

fn of_seed(seed: u32) -> RandomStream {
    RandomStream { seed: [seed, 0], offset: [0, 0] }
}

fn top_inputs(x: Input, t: f32, k: usize, top_p: f32, stream: RandomStream) -> Vec<Input> {
    let rows = x.extents()[0];
    let mut inputs = vec![x];
    inputs.extend(Input::value_of(Temperature::of(t)));
    inputs.extend([Input::scalar(k), Input::scalar(top_p)]);
    inputs.extend(Input::value_of(stream));
    inputs.push(Input::view(&vec![0u32; rows], [rows]));
    inputs
}

/// Returns cases with integer probabilities, in which nothing is rounded.
fn whole_top_cases(most: usize, random: &mut Random) -> Vec<Case> {
    // If the last digits of columns were ignored, more tokens would qualify than there is room for.
    // The draws hit a token of the warp before the middle one, of the middle one, and of the last.
    let mut many = vec![0.25f32; 3 * (most + 76)];
    many.chunks_mut(most + 76).for_each(|row| row[0] = -1.0);
    let warps = most as f64 / 32.0;
    let of_warp = |warp: f64| (warp + 0.1) / warps..(warp + 0.9) / warps;
    let many_of =
        stream_for_stretches(random, &[of_warp(warps / 2.0 - 1.0), of_warp(warps / 2.0), of_warp(warps - 1.0)]);
    let all: [(Vec<f32>, usize, usize, f32, RandomStream); 8] = [
        (many, 3, most, 1.0, many_of),
        (vec![1e10, 1e10f32.next_up()], 1, 1, 1.0, random_stream(random)),
        // The exponentials are zero or infinite unless they are relative to the largest logit.
        (vec![1e10, 1e10], 1, 2, 1.0, stream_for_stretches(random, &[0.1..0.4])),
        // A part that ends where a token begins.
        (vec![0.25; 4], 1, 4, 0.5, stream_for_stretches(random, &[0.1..0.3])),
        // The largest number that draws the second token, and the smallest that draws the first.
        (vec![0.25; 2], 1, 2, 1.0, of_seed(3_106_243)),
        (vec![0.25; 2], 1, 2, 1.0, of_seed(32_405_005)),
        // 2 + 2⁻²⁴, which is rounded to the beginning of the first token.
        (vec![0.25; 3], 1, 3, 1.0, of_seed(28_620_244)),
        // Neighbors whose order an error in the last bit reverses.
        (vec![2.0, 2f32.next_up()], 1, 1, 1.0, random_stream(random)),
    ];
    let one = |(i, (x, rows, k, top_p, stream)): (usize, (Vec<f32>, usize, usize, f32, RandomStream))| {
        let cols = x.len() / rows;
        let inputs = top_inputs(Input::view(&x, [rows, cols]), 1.0, k, top_p, stream);
        Case::new(format!("{rows} × {cols}, {k} of them, up to {top_p}, whole {i}"), inputs)
    };
    all.into_iter().enumerate().map(one).collect()
}

fn top_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[most] = numbers(instance).as_slice() else { return Vec::new() };
    let mut all = whole_top_cases(most, random);
    // A block of 1024 threads takes the interpreters long.
    let shapes: Vec<(usize, usize, usize, f32, Among)> = match most {
        64 => vec![
            (2, 1100, 40, 0.9, Among::Drawn),
            (1, 65, 64, 0.999, Among::Drawn),
            (1, 7, 7, 0.5, Among::Drawn),
            (0, 9, 3, 1.0, Among::Drawn),
            // The draw is the last kept token, or would differ if one more token were kept.
            (1, 1100, 33, 1.0, Among::Near([32.0, 34.0])),
            (1, 70, 64, 1.0, Among::Near([63.0, 64.0])),
            (1, 300, 40, 0.61, Among::Equal),
            (2, 40, 40, 0.9, Among::Special),
        ],
        _ => vec![
            (1, most + 1, most, 0.97, Among::Drawn),
            (1, 1100, 33, 1.0, Among::Near([32.0, 34.0])),
            (1, 1100, most, 1.0, Among::Near([1000.0, 1024.0])),
            (1, 1100, 1001, 0.9705, Among::Equal),
            (1, 1100, 550, 1.0, Among::Fine([550.0; 2])),
            (1, 256, 200, 1.0, Among::Digits([150.0, 200.0])),
            // The k-th token's digit belongs to the sixth warp; fewer tokens have the larger half
            // of the first eight bits.
            (1, 256, 176, 1.0, Among::Digits([64.0, 176.0])),
            (1, 5, 1, 1.0, Among::Drawn),
            (2, 40, 40, 0.9, Among::Special),
            (2, 40, 6, 1.0, Among::Special),
            // Two rows with more elements than are read at once.
            (2, 8192 + 1100, most, 0.97, Among::Long([900.0, 1024.0])),
            // In each row, the two digits of the k-th token belong to two other warps.
            (DIGIT_WARPS.len(), most + 76, most, 0.9, Among::Spread),
        ],
    };
    for (t, size) in EXTREMES {
        let near = (size as f32).next_down();
        let x = [near, size as f32, -size as f32, near, f32::NEG_INFINITY, f32::NAN];
        for _ in 0..1000 {
            let inputs = top_inputs(Input::view(&x, [1, 6]), t, 5, 0.9, random_stream(random));
            if drawn_tokens(&inputs).1 > MARGIN {
                all.push(Case::new(format!("temperature {t:e}, 5 of {x:?}"), inputs));
                break;
            }
        }
    }
    for (rows, cols, k, top_p, among) in shapes {
        for _ in 0..1000 {
            let x = among.logits(random, instance, [rows, cols]);
            let inputs = top_inputs(x, among.temperature(random), k, top_p, random_stream(random));
            let (tokens, margin) = drawn_tokens(&inputs);
            let with = |k: f64| {
                let mut inputs = inputs.clone();
                inputs[4] = Input::scalar(k as usize);
                drawn_tokens(&inputs).0 != tokens
            };
            if margin > MARGIN / 4.0 && among.bounds_change_draw(k as f64, with) {
                all.push(Case::new(format!("{rows} × {cols}, {k} of them, up to {top_p}, {among:?}"), inputs));
                break;
            }
        }
    }
    for Case { inputs, .. } in &mut all {
        let ranks = ranks(&inputs[0].values(), inputs[0].extents()[1]);
        inputs[0] = shaped(&inputs[0], &ranks);
    }
    all
}

/// The warps whose threads have the first and the second digit of a row's 1024th logit.
const DIGIT_WARPS: [[usize; 2]; 3] = [[5, 8], [9, 16], [0, 17]];

/// The logits of a draw.
#[derive(Clone, Copy, Debug)]
enum Among {
    /// Ordinary logits.
    Drawn,
    /// Logits with nearly equal weights in a warp, and a draw that differs with either of these
    /// bounds.
    Near([f64; 2]),
    /// Logits with an equal first half of their bits, and such a draw.
    Fine([f64; 2]),
    /// Logits whose second eight bits have every value once, and such a draw.
    Digits([f64; 2]),
    /// Logits with nearly equal weights, and such a draw. In even rows another logit dominates, the
    /// first of a thread's second iteration. Odd rows begin after the least and end with the
    /// largest logit.
    Long([f64; 2]),
    /// Logits with digits of each warp. The 1024th has digits of the warps in [`DIGIT_WARPS`].
    Spread,
    /// Equal logits.
    Equal,
    /// NaNs, −∞, both zeros, and repeated numbers.
    Special,
}

impl Among {
    fn logits(self, random: &mut Random, instance: &Instance, [rows, cols]: [usize; 2]) -> Input {
        let special = [f32::NAN, f32::NEG_INFINITY, -0.0, 0.0, 1.5, -2.0, -0.5];
        match self {
            Among::Equal => Input::view(&vec![0.25f32; rows * cols], [rows, cols]),
            Among::Special => {
                let x: Vec<f32> = (0..rows * cols).map(|_| special[random.below(special.len())]).collect();
                Input::view(&x, [rows, cols])
            }
            Among::Near(_) => {
                let mut x: Vec<f32> = random.values(rows * cols);
                // Neighbors in a warp have similar weights, and warps differ. Columns 1023 and 1024
                // are large, the second in the threads' second iteration.
                x.iter_mut().enumerate().for_each(|(i, x)| *x += 40.0 * (i / 32 % 5) as f32);
                if let Some(x) = x.get_mut(1023..1025) {
                    x.fill(200.0);
                }
                // Large enough that one of the last is drawn.
                if let Some(x) = x.get_mut(3000..).and_then(|x| x.last_chunk_mut::<3>()) {
                    x.fill(3000.0);
                }
                Input::view(&x, [rows, cols])
            }
            Among::Fine(_) => {
                let x: Vec<f32> =
                    (0..rows * cols).map(|_| f32::from_bits(0x3e80_0000 + random.below(1 << 16) as u32)).collect();
                Input::view(&x, [rows, cols])
            }
            Among::Digits(_) => {
                let x: Vec<f32> =
                    (0..rows * cols).map(|i| f32::from_bits(0x3f00_0000 | (i as u32 * 77 % 256) << 16)).collect();
                Input::view(&x, [rows, cols])
            }
            Among::Long(_) => {
                let mut x: Vec<f32> = random.values(rows * cols);
                for (i, row) in x.chunks_mut(cols).enumerate() {
                    let (at, last) = if i % 2 == 0 { ((8192, 1e4), -5.0) } else { ((0, -5.0), 5.0) };
                    row[at.0] = at.1;
                    row[cols - 1] = last;
                }
                Input::view(&x, [rows, cols])
            }
            Among::Spread => {
                // The middle of the digits of a warp, whose threads have two digits each.
                let digit = |warp: usize| (2047 - 64 * warp - 32) as u64;
                let score = |first: u64, second: u64| score_of(first << 53 | second << 42);
                let element = |row: usize, i: usize| {
                    let [first, second] = DIGIT_WARPS[row].map(digit);
                    match i {
                        0..32 => score(digit(i), second),
                        32..64 => score(first, digit(i - 32)),
                        // The digit of another thread of the warp.
                        64 => score(first + 2, second),
                        65 => score(first, second + 2),
                        // More than half of the tokens that are still needed.
                        66..666 => score(digit(0), second),
                        666..916 => score(first, digit(0)),
                        _ => score(first, second),
                    }
                };
                let x: Vec<f32> = (0..rows * cols).map(|i| element(i / cols, i % cols)).collect();
                Input::view(&x, [rows, cols])
            }
            Among::Drawn => drawn(random, stored(instance), rows * cols, [rows, cols], [cols, 1]),
        }
    }

    fn temperature(self, random: &mut Random) -> f32 {
        match self {
            Among::Near(_) | Among::Digits(_) | Among::Long(_) => 100.0,
            _ => [1.0f32, 0.125, 2.0][random.below(3)],
        }
    }

    /// Returns whether each bound that should give another draw does; `own` is the case's bound.
    fn bounds_change_draw(self, own: f64, differs: impl Fn(f64) -> bool) -> bool {
        match self {
            Among::Near(bounds) | Among::Fine(bounds) | Among::Digits(bounds) | Among::Long(bounds) => {
                bounds.iter().all(|bound| *bound == own || differs(*bound))
            }
            _ => true,
        }
    }
}

fn top_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let mut inputs = inputs.to_vec();
    let logits: Vec<f32> = inputs[0].to_vec::<u64>().into_iter().map(score_of).collect();
    inputs[0] = shaped(&inputs[0], &logits);
    vec![Expected::exact(10, drawn_tokens(&inputs).0)]
}

/// Returns elements with the extents of another matrix.
fn shaped<T: Element>(like: &Input, elements: &[T]) -> Input {
    Input::view(elements, [like.extents()[0], like.extents()[1]])
}

/// Returns the ranks of logits, row by row.
fn ranks(x: &[f64], cols: usize) -> Vec<u64> {
    x.iter().enumerate().map(|(i, x)| rank(*x as f32, i % cols.max(1))).collect()
}

fn likeliest_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let shapes: [([usize; 2], usize, [usize; 2], Among); 12] = [
        ([1, 1], 1, [1, 1], Among::Drawn),
        // Parts with more elements than are kept, with as many, with fewer, and with none.
        ([2, 50], 20, [3, 20], Among::Drawn),
        ([1, 50], 17, [4, 20], Among::Drawn),
        ([1, 45], 15, [3, 20], Among::Equal),
        ([2, 40], 20, [2, 6], Among::Special),
        ([0, 9], 9, [1, 3], Among::Drawn),
        ([1, 1100], 1024, [2, 550], Among::Fine([0.0; 2])),
        ([1, 256], 256, [1, 200], Among::Digits([0.0; 2])),
        ([DIGIT_WARPS.len(), 1100], 1100, [1, 1024], Among::Spread),
        // A thread has several elements, and a part has the maximum size.
        ([1, 9000], 8192, [2, 5], Among::Drawn),
        ([1, 8195], 8191, [2, 8190], Among::Drawn),
        // The last digits of columns decide.
        ([1, 2300], 2300, [1, 2100], Among::Equal),
    ];
    let inputs = |logits, [rows, each, parts, k]: [usize; 4]| {
        vec![logits, Input::scalar(each), Input::view(&vec![7u64; rows * parts * k], [rows, parts, k])]
    };
    let one = |(of @ [rows, cols], each, [parts, k], among): ([usize; 2], usize, [usize; 2], Among)| {
        let inputs = inputs(among.logits(random, instance, of), [rows, each, parts, k]);
        Case::new(format!("{rows} × {cols}, {k} of each {each}, {among:?}"), inputs)
    };
    // Only `f32` can store the logits of the other shapes.
    let fits = |among: Among| stored(instance) == Scalar::F32 || matches!(among, Among::Drawn);
    let mut cases: Vec<Case> = shapes.into_iter().filter(|(_, _, _, among)| fits(*among)).map(one).collect();
    if stored(instance) == Scalar::F32 {
        let tiny = f32::from_bits(1);
        let ends = [tiny, f32::MAX, 0.0, f32::MIN, -tiny, f32::MAX.next_down(), f32::MIN_POSITIVE, f32::MIN.next_up()];
        cases.push(Case::new("ends of the range, 3 of each 4", inputs(Input::view(&ends, [1, 8]), [1, 4, 2, 3])));
    }
    cases
}

fn likeliest_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (cols, each) = (inputs[0].extents()[1], inputs[1].value() as usize);
    let (parts, k) = (inputs[2].extents()[1], inputs[2].extents()[2]);
    let ranks = ranks(&inputs[0].values(), cols);
    let of_part = |row: &[u64], part: usize| {
        let mut all = row[(part * each).min(cols)..((part + 1) * each).min(cols)].to_vec();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.resize(k, 0);
        all
    };
    let all = ranks.chunks(cols).flat_map(|row| (0..parts).flat_map(move |part| of_part(row, part)));
    vec![Expected::multiset(2, all)]
}

/// Returns the tokens drawn with noise, and the distances of the cuts and of the draws from other
/// results.
fn noisy_tokens(inputs: &[Input]) -> (Vec<f64>, [f64; 2]) {
    let (x, t, k, top_p) = (inputs[0].values(), temperature(inputs, 1), inputs[4].value() as usize, inputs[5].value());
    let (unit, stream) = (inputs[6].value(), stream(inputs, 7));
    let cols = inputs[0].extents()[1];
    let mut margins = [f64::INFINITY; 2];
    let mut one = |(row, x): (usize, &[f64])| {
        let mut places: Vec<usize> = (0..cols).collect();
        places.sort_by(|a, b| order(x[*b]).total_cmp(&order(x[*a])).then(a.cmp(b)));
        places.truncate(if k == 0 { cols } else { k });
        if top_p > 0.0 {
            let top = order(x[places[0]]);
            let of = |i: &usize| if order(x[*i]) == top { 1.0 } else { ((order(x[*i]) - top) / t).exp() };
            let p: Vec<f64> = places.iter().map(|i| (of(i) * unit).floor()).collect();
            let total: f64 = p.iter().sum();
            let cut = top_p / 2f64.powi(32) * total;
            let mut before = 0.0;
            let mut kept = 0;
            for p in p {
                if before < cut {
                    kept += 1;
                }
                margins[0] = margins[0].min((before - cut).abs() / total);
                before += p;
            }
            places.truncate(kept);
        }
        let most = largest(x);
        let score = |i: &usize| scored(true, x[*i], most, t, words(stream, row, (*i / 4) as u32), *i % 4).0;
        let mut scores: Vec<(f64, usize)> = places.iter().map(|i| (order(score(i)), *i)).collect();
        scores.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        if let [first, second, ..] = scores.as_slice()
            && first.0 > -1e300
        {
            margins[1] = margins[1].min((first.0 - second.0) / t);
        }
        scores[0].1 as f64
    };
    let tokens = x.chunks(cols.max(1)).enumerate().map(&mut one).collect();
    (tokens, margins)
}

fn likely_inputs(x: Input, t: f32, k: usize, part: u32, unit: f32, stream: RandomStream) -> Vec<Input> {
    let rows = x.extents()[0];
    let mut inputs = vec![x];
    inputs.extend(Input::value_of(Temperature::of(t)));
    inputs.extend([Input::scalar(k), Input::scalar(part), Input::scalar(unit)]);
    inputs.extend(Input::value_of(stream));
    inputs.push(Input::view(&vec![0u32; rows], [rows]));
    inputs
}

/// Logits, the integer that represents 1, and for two draws the number of tokens and their part of
/// the probability.
type DrawCase = (Vec<f32>, f32, [(usize, u32); 2]);

/// Returns draws by probabilities of a few units, whose sum is exact, so that one unit more or less
/// changes the draw.
fn whole_likely_cases(random: &mut Random) -> Vec<Case> {
    let equal = |n: usize| vec![0.25f32; n];
    let last = [vec![0.0; 31], vec![1.0]].concat();
    const HALF: u32 = 1 << 31;
    // Logits, the integer that represents 1, and two pairs of the number of tokens and their part:
    // the first gives the draw, the second another draw.
    let all: [DrawCase; 14] = [
        // A part of two units and a little more: three units are needed.
        (equal(3), 1.0, [(0, 0xaaaa_aaab), (0, HALF)]),
        // A part of exactly two units.
        (equal(4), 1.0, [(0, HALF), (0, 0xbfff_ffff)]),
        (vec![1.0, 0.0], 1.0, [(0, 0xe666_6666), (0, 0)]),
        (equal(2), 1.0, [(0, 1), (0, 0)]),
        (equal(3), 1.0, [(2, 0xc000_0000), (1, 0)]),
        (equal(3), 1.0, [(2, HALF), (2, 0)]),
        // Both kept tokens are needed, and the third is not kept.
        (equal(3), 1.0, [(2, 0xc000_0000), (0, 0)]),
        (last, 1.0, [(0, 0xe666_6666), (0, 0)]),
        (vec![0.0, 0.0, 1.0, 0.0], 1.0, [(1, 0), (0, 0)]),
        (vec![0.0, 0.0, 0.0, 1.0], 1.0, [(1, 0), (0, 0)]),
        (equal(3), 1.0, [(1, 0), (2, 0)]),
        (equal(3), 1.0, [(0, 0x4000_0000), (0, 0x9000_0000)]),
        // Words with a lower half of zero.
        (equal(4), 2f32.powi(32), [(0, 0xc000_0000), (0, HALF)]),
        (equal(4), 2f32.powi(32), [(0, HALF), (0, 0xc000_0000)]),
    ];
    let mut cases = Vec::new();
    for (i, (x, unit, [own, other])) in all.into_iter().enumerate() {
        for _ in 0..1000 {
            let stream = random_stream(random);
            let with =
                |(k, part): (usize, u32)| likely_inputs(Input::view(&x, [1, x.len()]), 1.0, k, part, unit, stream);
            let inputs = with(own);
            let (tokens, [_, margin]) = noisy_tokens(&inputs);
            if margin > MARGIN && noisy_tokens(&with(other)).0 != tokens {
                cases.push(Case::new(format!("{} columns, whole {i}", x.len()), inputs));
                break;
            }
        }
    }
    // Equal and neighboring numbers that are so large that only the rounding error keeps the noise,
    // and decides.
    for (x, best) in [([1e8f32, 1e8], 1.0), ([16_777_218.0, 16_777_220.0], 0.0), ([-16_777_220.0, -16_777_222.0], 1.0)]
    {
        for _ in 0..1000 {
            let inputs = likely_inputs(Input::view(&x, [1, 2]), 1.0, 0, 0, 1.0, random_stream(random));
            let (tokens, [_, margin]) = noisy_tokens(&inputs);
            if tokens == [best] && margin > MARGIN {
                cases.push(Case::new(format!("of {x:?}"), inputs));
                break;
            }
        }
    }
    // The likeliest token, which alone counts, belongs to the last warp: of a block's columns, and
    // of its maximum. The token is also in the first thread's next columns.
    for (cols, best, part) in [(4096, 4000, 0), (1024, 1000, HALF), (4097, 4096, 0)] {
        let x: Vec<f32> = (0..cols).map(|i| if i == best { 200.0 } else { 0.0 }).collect();
        let inputs = likely_inputs(Input::view(&x, [1, cols]), 1.0, 0, part, 1.0, random_stream(random));
        cases.push(Case::new(format!("of {cols} the one at {best}"), inputs));
    }
    // Neighbors that are so large that no noise changes their order; and the least and the largest
    // noise, in the first column and in the fourth.
    let nothing = f32::NEG_INFINITY;
    for (x, stream) in [
        ([1e30, 1e30f32.next_up(), 0.0, 0.0], random_stream(random)),
        ([-1e30f32.next_up(), -1e30, nothing, nothing], random_stream(random)),
        ([0.0, -10.0, nothing, nothing], of_seed(16_390_493)),
        ([30.0, nothing, nothing, 12.0], of_seed(1_343_428)),
    ] {
        let inputs = likely_inputs(Input::view(&x, [1, 4]), 1.0, 0, 0, 1.0, stream);
        cases.push(Case::new(format!("of {x:?}"), inputs));
    }
    // Extremes of temperatures and of logits, drawn from all tokens, from the likeliest two, and
    // from half of the probability.
    for (t, size) in EXTREMES {
        let (k, part) = [(0, 0), (2, 0), (0, HALF)][random.below(3)];
        let near = (size as f32).next_down();
        let x = [near, size as f32, -size as f32, near, nothing, f32::NAN];
        for _ in 0..1000 {
            let inputs = likely_inputs(Input::view(&x, [1, 6]), t, k, part, 2f32.powi(40), random_stream(random));
            let [cut, draw] = noisy_tokens(&inputs).1;
            if cut.min(draw) > MARGIN {
                cases.push(Case::new(format!("temperature {t:e}, {k} of {x:?}, up to {part}"), inputs));
                break;
            }
        }
    }
    cases
}

fn likely_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let mut all = whole_likely_cases(random);
    // A block of 1024 threads takes the interpreters long.
    for (rows, cols, k, part, among) in [
        (2usize, 1100usize, 0usize, 0.9, Among::Drawn),
        (1, 1300, 1050, 0.0, Among::Drawn),
        (1, 1100, 1030, 0.97, Among::Drawn),
        (1, 7, 0, 0.5, Among::Drawn),
        (1, 40, 0, 0.31, Among::Equal),
        (0, 9, 3, 0.0, Among::Drawn),
        // The draw is one of the last kept tokens, or would be one of the next.
        (1, 60, 7, 0.0, Among::Near([6.0, 7.0])),
        (1, 60, 7, 0.0, Among::Near([7.0, 8.0])),
        (1, 1100, 40, 0.0, Among::Near([39.0, 40.0])),
        (1, 1100, 40, 0.0, Among::Near([40.0, 41.0])),
        (1, 40, 0, 0.31, Among::Near([0.285, 0.31])),
        (1, 40, 0, 0.31, Among::Near([0.31, 0.335])),
        (1, 1100, 0, 0.5, Among::Near([0.48, 0.5])),
        (1, 1100, 0, 0.5, Among::Near([0.5, 0.52])),
        (1, 40, 0, 0.4, Among::Special),
        (1, 40, 0, 0.0, Among::Special),
        (1, 30, 1, 0.0, Among::Near([1.0; 2])),
        // The likeliest token belongs to a thread of the last warps, and to one in its fifth
        // iteration.
        (1, 3003, 0, 0.0, Among::Near([0.0; 2])),
        (1, 4100, 0, 0.0, Among::Near([0.0; 2])),
        (1, 1100, 550, 0.0, Among::Fine([535.0, 550.0])),
        (1, 1100, 550, 0.0, Among::Fine([550.0, 565.0])),
        (1, 1100, 0, 0.5, Among::Fine([0.485, 0.5])),
        (1, 1100, 0, 0.5, Among::Fine([0.5, 0.515])),
        (1, 256, 200, 0.0, Among::Digits([150.0, 200.0])),
        (1, 256, 0, 0.8, Among::Digits([0.6, 0.8])),
        // The cut is a digit of the fifth warp.
        (1, 256, 0, 0.57, Among::Digits([0.25, 0.57])),
    ] {
        for _ in 0..1000 {
            let x = among.logits(random, instance, [rows, cols]);
            let (t, stream) = (among.temperature(random), random_stream(random));
            let inputs = likely_inputs(x, t, k, (part * 2f64.powi(32)) as u32, 2f32.powi(40), stream);
            let (tokens, [cut, draw]) = noisy_tokens(&inputs);
            // The bound is the number of tokens, or if that is 0 their part of the probability.
            let with = |bound: f64| {
                let mut inputs = inputs.clone();
                match k {
                    0 => inputs[5] = Input::scalar((bound * 2f64.powi(32)) as u32),
                    _ => inputs[4] = Input::scalar(bound as usize),
                }
                noisy_tokens(&inputs).0 != tokens
            };
            if cut.min(draw) > MARGIN / 8.0 && among.bounds_change_draw(if k == 0 { part } else { k as f64 }, with) {
                all.push(Case::new(format!("{rows} × {cols}, {k} of them, up to {part}, {among:?}"), inputs));
                break;
            }
        }
    }
    let special = [f32::NAN, f32::NEG_INFINITY, f32::INFINITY, -0.0];
    let x: Vec<f32> =
        (0..4 * 9).map(|i| if i % 9 < 5 { special[i / 9] } else { [special[i / 9], f32::NAN][i % 2] }).collect();
    let inputs = likely_inputs(Input::view(&x, [4, 9]), 1.0, 6, 1 << 31, 2f32.powi(40), random_stream(random));
    all.push(Case::new("NaNs, infinities and zeros", inputs));
    all
}

/// Returns the expected tokens: the first of equal infinities, and never a missing element.
fn likely_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let x = inputs[0].values();
    let tokens = noisy_tokens(inputs).0;
    let special = |row: usize| inputs[0].extents() == [4, 9] && row < 3 && x[9 * row].to_bits() != 0;
    let token = |(row, token): (usize, &f64)| if special(row) { 0.0 } else { *token };
    vec![Expected::exact(11, tokens.iter().enumerate().map(token))]
}
