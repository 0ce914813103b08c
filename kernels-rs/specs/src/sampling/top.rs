//! Specs of `likeliest_of_parts` and `sample_top`.

use super::logits::{Among, DIGIT_WARPS, EXTREMES, order, ranks, shaped, temperature};
use super::random::{MARGIN, of_seed, random_stream, stream, stream_for_stretches, uniform, words};
use crate::stored::{numbers, stored};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::sampling::best::{Temperature, score_of};
use kernels_rs::sampling::random::RandomStream;
use kernels_rs::sampling::top::{likeliest_of_parts, sample_top};
use runtime::testing::{Case, Expected, Input, Random};

runtime::register!(likeliest_of_parts<f32>, likeliest_cases, likeliest_reference);
runtime::register!(sample_top<64>, top_cases, top_reference);

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

fn top_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let mut inputs = inputs.to_vec();
    let logits: Vec<f32> = inputs[0].to_vec::<u64>().into_iter().map(score_of).collect();
    inputs[0] = shaped(&inputs[0], &logits);
    vec![Expected::exact(10, drawn_tokens(&inputs).0)]
}
