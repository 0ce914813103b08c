//! Specs of `sample_likely`.

use super::logits::{Among, EXTREMES, largest, order, temperature};
use super::random::{MARGIN, of_seed, random_stream, scored, stream, words};
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::sampling::best::Temperature;
use kernels_rs::sampling::random::RandomStream;
use kernels_rs::sampling::threshold::sample_likely;
use runtime::testing::{Case, Expected, Input, Random};

runtime::register!(sample_likely<f32>, likely_cases, likely_reference);

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
