//! Specs of `ends_of_parts`, `level_sums`, `level_tokens`, `draw_likely`.

use super::sampling::{order, random_stream, stream, temperature, words};
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::sampling::best::Temperature;
use kernels_rs::sampling::nucleus::{
    Ends, LEVELS, draw_likely, ends_of_parts, level_of, level_sums, level_tokens, levels_between,
};
use kernels_rs::sampling::threshold::weight;
use runtime::testing::{Bound, Case, Expected, Input, Random};

runtime::register!(ends_of_parts<f32>, ends_cases, ends_reference);
runtime::register!(level_sums<f32>, sums_cases, sums_reference);
runtime::register!(level_tokens<f32>, tokens_cases, tokens_reference);
runtime::register!(draw_likely<f32>, draw_cases, draw_reference);

/// The integer that represents 1.
const UNIT: f32 = (1u64 << 40) as f32;

/// The least distance of a draw from another result, and of a logit from the end of a level.
const MARGIN: f64 = 1e-5;

/// Logits of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Logits {
    /// Ordinary logits.
    Drawn,
    /// Equal logits.
    Equal,
    /// NaNs, −∞, both zeros, and repeated numbers.
    Special,
    /// Logits from 0 down to 100 below, of which many count as 0.
    Wide,
    /// Ordinary logits, and one ∞.
    Infinite,
    /// −∞ and NaN.
    Nothing,
    /// The largest and the smallest finite numbers, and subnormal ones.
    Extreme,
}

impl Logits {
    fn draw(self, random: &mut Random, elements: usize) -> Vec<f32> {
        if self == Logits::Extreme {
            let extreme = [f32::MAX, f32::MIN, 1e-40, -1e-40, 3e38, 1.0];
            return extreme.into_iter().cycle().take(elements).collect();
        }
        let special = [f32::NAN, f32::NEG_INFINITY, -0.0, 0.0, 1.5, -2.0, -0.5];
        let mut x: Vec<f32> = random.values(elements);
        match self {
            Logits::Drawn | Logits::Extreme => (),
            Logits::Equal => x.fill(0.25),
            Logits::Special => x.iter_mut().for_each(|x| *x = special[random.below(special.len())]),
            Logits::Wide => x.iter_mut().for_each(|x| *x = -((random.below(10_000) as f32) / 100.0)),
            Logits::Infinite => x[elements / 2] = f32::INFINITY,
            Logits::Nothing => x.iter_mut().for_each(|x| *x = special[random.below(2)]),
        }
        x
    }
}

/// Returns the columns of a part.
fn columns(part: usize, parts: usize, cols: usize) -> std::ops::Range<usize> {
    let each = cols.div_ceil(parts);
    (part * each).min(cols)..((part + 1) * each).min(cols)
}

/// Returns the largest and the smallest number. Rust's functions ignore NaNs.
fn ends(x: &[f64]) -> [f64; 2] {
    [x.iter().copied().fold(f64::NEG_INFINITY, f64::max), x.iter().copied().fold(f64::INFINITY, f64::min)]
}

/// A token as the reference sees it.
#[derive(Clone, Copy, Debug)]
struct ReferenceToken {
    /// The probability relative to the largest; 0 below 2⁻⁴⁰.
    p: f64,
    /// The level and its fraction.
    level: f64,
}

/// Returns the tokens of a row.
fn tokens_of(x: &[f64], t: f64) -> Vec<ReferenceToken> {
    let [most, least] = ends(x);
    let range = if least.is_finite() && most.is_finite() { ((most - least) / t).min(28.0) } else { 28.0 };
    // A smaller range than the normal numbers of `f32` is one level.
    let range = range.max(f64::from(f32::MIN_POSITIVE));
    let of = |x: &f64| {
        let score = order(*x);
        let below = match score {
            _ if score == order(most) => 0.0,
            -1e300 => f64::INFINITY,
            _ => (most - score) / t,
        };
        let level = if below == 0.0 { 0.0 } else { (below * LEVELS as f64 / range).min(LEVELS as f64 - 0.5) };
        let p = if x.is_nan() { 0.0 } else { (-below).exp() };
        ReferenceToken { p: if p < 2f64.powi(-40) { 0.0 } else { p }, level }
    };
    x.iter().map(of).collect()
}

/// Returns whether rounding may move a level across its end.
fn is_ambiguous_level(level: f64) -> bool {
    level > 0.5 && level < LEVELS as f64 - 0.5 && (level - level.round()).abs() < MARGIN * level.max(1.0)
}

/// Returns the ends, as the kernel stores them.
fn ends_input(x: &[f32], [rows, cols, parts]: [usize; 3]) -> Input {
    let of = |i: usize| {
        let row: Vec<f64> = x[i / parts * cols..][..cols].iter().map(|x| f64::from(*x)).collect();
        let [largest, smallest] = ends(&row[columns(i % parts, parts, cols)]);
        Ends { largest: largest as f32, smallest: smallest as f32 }
    };
    Input::view(&(0..rows * parts).map(of).collect::<Vec<_>>(), [rows, parts])
}

/// Returns the sums of a row's levels, and the probability and level of each token.
fn summed(x: &[f32], t: f32) -> (Vec<u64>, Vec<(u64, usize)>) {
    let [largest, smallest] = ends(&x.iter().map(|x| f64::from(*x)).collect::<Vec<_>>()).map(|x| x as f32);
    let levels = levels_between(Ends { largest, smallest }, Temperature::of(t), UNIT);
    let tokens: Vec<(u64, usize)> = x.iter().map(|x| (weight(*x, levels.measure), level_of(*x, levels))).collect();
    let mut sums = vec![0; LEVELS];
    tokens.iter().for_each(|(p, level)| sums[*level] += p);
    (sums, tokens)
}

/// Returns the first level up to which the sum reaches a part of the total.
fn cut_level(sums: &[u64], top_p: u32, infinite: bool) -> usize {
    let total: u128 = sums.iter().map(|s| u128::from(*s)).sum();
    let need = if infinite { 1 } else { (total * u128::from(top_p)).div_ceil(1 << 32) };
    let reaches = |level: &usize| sums[..=*level].iter().map(|s| u128::from(*s)).sum::<u128>() >= need;
    if total == 0 { 0 } else { (0..LEVELS).find(reaches).unwrap_or(0) }
}

fn ends_cases(_: &Instance, random: &mut Random) -> Vec<Case> {
    let one = |(logits, [rows, cols, parts]): (Logits, [usize; 3])| {
        let mut x = logits.draw(random, rows * cols);
        if logits == Logits::Drawn {
            // The largest is the last of its row.
            x.chunks_mut(cols).enumerate().for_each(|(row, x)| x[cols - 1] = 9.0 + row as f32);
        }
        let stale = Ends { largest: 9e9, smallest: -9e9 };
        Case::new(
            format!("{logits:?}, {rows} × {cols} in {parts}"),
            [
                Input::view(&x, [rows, cols]),
                Input::view(&vec![stale; rows * parts], [rows, parts]),
                Input::view(&vec![7u64; rows * LEVELS], [rows, LEVELS]),
            ],
        )
    };
    [
        (Logits::Drawn, [2, 5000, 2]),
        (Logits::Drawn, [3, 515, 1]),
        (Logits::Drawn, [1, 3, 4]),
        (Logits::Special, [2, 700, 3]),
        (Logits::Infinite, [1, 40, 1]),
        (Logits::Nothing, [1, 9, 2]),
        (Logits::Extreme, [2, 150, 2]),
        (Logits::Equal, [0, 5, 1]),
    ]
    .map(one)
    .into()
}

fn ends_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (x, &[rows, cols], parts) = (inputs[0].values(), inputs[0].extents(), inputs[1].extents()[1]) else {
        return Vec::new();
    };
    let all = (0..rows * parts).flat_map(|i| ends(&x[i / parts * cols..][..cols][columns(i % parts, parts, cols)]));
    vec![Expected::new(1, all.collect(), Bound::Exact), Expected::exact(2, vec![0u64; rows * LEVELS])]
}

/// Returns the arguments that the kernels after the first have in common.
fn common(x: &[f32], t: f32, extents @ [rows, cols, _]: [usize; 3]) -> Vec<Input> {
    let mut inputs = vec![Input::view(x, [rows, cols]), ends_input(x, extents)];
    inputs.extend(Input::value_of(Temperature::of(t)));
    inputs.push(Input::scalar(UNIT));
    inputs
}

fn sums_cases(_: &Instance, random: &mut Random) -> Vec<Case> {
    let one = |(logits, t, extents): (Logits, f32, [usize; 3])| {
        let [rows, cols, parts] = extents;
        let mut x = logits.draw(random, rows * cols);
        if parts > LEVELS {
            // The ends belong to parts that are read last.
            [x[LEVELS], x[LEVELS + 88]] = [9.0, -9.0];
        }
        let mut inputs = common(&x, t, extents);
        // The sums that other parts have added before.
        let before: Vec<u64> = (0..rows * LEVELS).map(|i| (i as u64 % 3) << 33).collect();
        inputs.push(Input::view(&before, [rows, LEVELS]));
        inputs.push(Input::view(&vec![9u64; rows * parts * LEVELS], [rows, parts, LEVELS]));
        Case::new(format!("{logits:?}, {rows} × {cols} in {parts} at {t}"), inputs)
    };
    [
        (Logits::Drawn, 1.0, [2, 2600, 1]),
        (Logits::Drawn, 2.0, [2, 2600, 3]),
        (Logits::Drawn, 1.0, [1, 6200, 1]),
        (Logits::Drawn, 0.05, [1, 1500, 2]),
        (Logits::Drawn, 1.0, [1, 601, 601]),
        (Logits::Wide, 1.0, [1, 1100, 1]),
        (Logits::Wide, 2.5, [1, 700, 3]),
        (Logits::Equal, 1.0, [1, 2500, 1]),
        (Logits::Special, 1.0, [2, 130, 1]),
        (Logits::Drawn, f32::INFINITY, [1, 300, 1]),
        (Logits::Extreme, 1.0, [1, 200, 1]),
        (Logits::Extreme, 1e38, [1, 200, 1]),
        (Logits::Drawn, 1.0, [0, 5, 1]),
    ]
    .map(one)
    .into()
}

/// Computes the sums. A probability has the errors of the difference, which is at most 28, and of
/// the exponential, and is rounded to an integer.
fn sums_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (x, t, mut sums) = (inputs[0].values(), temperature(inputs, 2), inputs[6].values());
    let &[rows, parts, _] = inputs[7].extents() else { return Vec::new() };
    let cols = inputs[0].extents()[1];
    let mut bounds = vec![0.0; sums.len()];
    let (mut of_parts, mut bounds_of_parts) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let tokens = tokens_of(&x[row * cols..][..cols], t);
        for part in 0..parts {
            let (mut own, mut bound) = (vec![0.0; LEVELS], vec![0.0; LEVELS]);
            for token in &tokens[columns(part, parts, cols)] {
                let p = token.p * f64::from(UNIT);
                let level = token.level as usize;
                own[level] += p.floor();
                bound[level] += p * 3e-6 + 1.0;
                if is_ambiguous_level(token.level) {
                    let near = token.level.round() as usize;
                    for level in [near - 1, near.min(LEVELS - 1)] {
                        bound[level] += p;
                    }
                }
            }
            for level in 0..LEVELS {
                sums[row * LEVELS + level] += own[level];
                bounds[row * LEVELS + level] += bound[level];
            }
            of_parts.extend(own);
            bounds_of_parts.extend(bound);
        }
    }
    vec![Expected::new(6, sums, Bound::Each(bounds)), Expected::new(7, of_parts, Bound::Each(bounds_of_parts))]
}

fn tokens_cases(_: &Instance, random: &mut Random) -> Vec<Case> {
    let mut all = Vec::new();
    for (logits, t, top_p, extents, longest) in [
        (Logits::Drawn, 1.0, 0.9, [2, 2600, 1], 64),
        (Logits::Drawn, 0.25, 0.5, [1, 1500, 2], 64),
        (Logits::Drawn, 1.0, 0.9, [3, 900, 3], 64),
        // More columns of a thread than a word has bits.
        (Logits::Drawn, 1.0, 0.9, [1, 17_000, 1], 256),
        (Logits::Wide, 1.0, 0.99, [1, 1100, 1], 8),
        (Logits::Wide, 30.0, 0.7, [1, 700, 3], 64),
        (Logits::Equal, 1.0, 0.5, [1, 1030, 1], 16),
        (Logits::Special, 1.0, 0.6, [2, 130, 1], 256),
        (Logits::Infinite, 1.0, 0.6, [1, 20, 1], 4),
        (Logits::Nothing, 1.0, 0.6, [1, 6, 1], 4),
        (Logits::Extreme, 1.0, 0.55, [2, 130, 1], 64),
        (Logits::Drawn, 1.0, 0.5, [0, 5, 1], 1),
    ] {
        let [rows, cols, parts] = extents;
        for _ in 0..1000 {
            let x = logits.draw(random, rows * cols);
            let part = (top_p * 2f64.powi(32)) as u32;
            let sums: Vec<u64> = x.chunks(cols).flat_map(|x| summed(x, t).0).collect();
            let mut inputs = common(&x, t, extents);
            inputs.extend([Input::scalar(part), Input::view(&sums, [rows, LEVELS])]);
            inputs.push(Input::view(&vec![3u32; rows * parts], [rows, parts]));
            inputs.push(Input::view(&vec![u32::MAX - 1; rows * parts * longest], [rows, parts, longest]));
            if selected(&inputs).is_some() {
                all.push(Case::new(format!("{logits:?}, {rows} × {cols} in {parts}, {top_p} at {t}"), inputs));
                break;
            }
        }
    }
    // Sums of a few units, so that one unit more or less changes the level.
    let few = |sums: &[u64]| [sums, &vec![0; LEVELS - sums.len()]].concat();
    for (n, (logits, sums, part)) in [
        (Logits::Drawn, few(&[1, 1, 1, 1]), 1 << 31),
        (Logits::Drawn, few(&[1, 1, 1, 1]), (1 << 31) + 1),
        (Logits::Drawn, few(&[1, 1, 1]), 0xaaaa_aaaa),
        (Logits::Drawn, few(&[1, 1, 1]), 0xaaaa_aaab),
        (Logits::Drawn, few(&[1 << 33, 1 << 33]), 1 << 31),
        (Logits::Drawn, few(&[1 << 33, 1 << 33, 1]), 1 << 31),
        (Logits::Drawn, few(&[0, 5, 0, 3]), u32::MAX),
        (Logits::Drawn, vec![1; LEVELS], 1 << 31),
        (Logits::Drawn, vec![1; LEVELS], 0x6000_0000),
        (Logits::Drawn, vec![1; LEVELS], 0xe000_0000),
        (Logits::Infinite, few(&[1, 1]), 1 << 31),
        (Logits::Infinite, few(&[1, 1]), u32::MAX),
    ]
    .into_iter()
    .enumerate()
    {
        for _ in 0..1000 {
            let mut inputs = common(&logits.draw(random, 600), 1.0, [1, 600, 1]);
            inputs.extend([Input::scalar(part), Input::view(&sums, [1, LEVELS])]);
            inputs.push(Input::view(&[3u32], [1, 1]));
            inputs.push(Input::view(&[u32::MAX - 1; 64], [1, 1, 64]));
            if selected(&inputs).is_some_and(|(counts, _)| counts != [0]) {
                all.push(Case::new(format!("{logits:?}, whole {n}"), inputs));
                break;
            }
        }
    }
    all
}

/// Returns the counts and lists of [`level_tokens`], or nothing if rounding decides them.
fn selected(inputs: &[Input]) -> Option<(Vec<u32>, Vec<u32>)> {
    let (x, t, top_p) = (inputs[0].values(), temperature(inputs, 2), inputs[6].value() as u32);
    let (sums, mut listed) = (inputs[7].to_vec::<u64>(), inputs[9].to_vec::<u32>());
    let &[rows, parts, longest] = inputs[9].extents() else { return None };
    let cols = inputs[0].extents()[1];
    let mut counts = Vec::new();
    for row in 0..rows {
        let x = &x[row * cols..][..cols];
        let cut = cut_level(&sums[row * LEVELS..][..LEVELS], top_p, x.contains(&f64::INFINITY));
        let tokens = tokens_of(x, t);
        if tokens.iter().any(|token| is_ambiguous_level(token.level) && (token.level - cut as f64).abs() < 1.5) {
            return None;
        }
        for part in 0..parts {
            let columns = columns(part, parts, cols);
            let first = columns.start;
            let mut own: Vec<usize> = columns.filter(|i| tokens[*i].level as usize == cut).collect();
            counts.push(own.len() as u32);
            // The tokens of a thread follow each other, in chunks of 32 columns for each thread.
            own.sort_by_key(|i| ((i - first) / (32 * LEVELS), (i - first) % LEVELS, *i));
            for (at, i) in own.iter().take(longest).enumerate() {
                listed[(row * parts + part) * longest + at] = *i as u32;
            }
        }
    }
    Some((counts, listed))
}

fn tokens_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let Some((counts, listed)) = selected(inputs) else { return Vec::new() };
    vec![Expected::exact(8, counts), Expected::exact(9, listed)]
}

fn draw_cases(_: &Instance, random: &mut Random) -> Vec<Case> {
    let mut all = Vec::new();
    // The drawn token belongs to the level, or to one above.
    for (logits, t, top_p, extents, longest, level) in [
        (Logits::Drawn, 1.0, 0.9, [1, 2600, 2], 64, false),
        (Logits::Drawn, 0.25, 0.5, [1, 1500, 3], 64, false),
        (Logits::Drawn, 1.0, 0.5, [1, 40, 1], 64, true),
        (Logits::Drawn, 0.02, 0.9, [2, 300, 1], 64, true),
        (Logits::Wide, 1.0, 0.9, [1, 1100, 2], 8, true),
        (Logits::Wide, 30.0, 0.7, [1, 700, 3], 64, false),
        (Logits::Equal, 1.0, 0.501, [1, 300, 1], 16, true),
        (Logits::Equal, 1.0, 0.501, [1, 300, 2], 256, true),
        (Logits::Special, 1.0, 0.9, [1, 130, 1], 256, true),
        (Logits::Infinite, 1.0, 0.6, [1, 20, 1], 4, true),
        (Logits::Nothing, 1.0, 0.6, [1, 6, 1], 4, true),
        (Logits::Extreme, 1.0, 0.55, [1, 40, 1], 64, true),
        (Logits::Drawn, 1.0, 0.5, [0, 5, 1], 1, true),
        // Parts in all warps, some of them empty, and tokens of the level in many.
        (Logits::Drawn, 1.0, 0.9, [1, 1500, 500], 4, false),
        (Logits::Drawn, 3.0, 0.6, [1, 2500, 511], 2, false),
        (Logits::Drawn, 1.0, 0.5, [1, 90, 60], 2, true),
        (Logits::Equal, 1.0, 0.501, [1, 90, 61], 1, true),
        (Logits::Equal, 1.0, 0.501, [1, 90, 61], 2, true),
        (Logits::Equal, 1.0, 0.7, [1, 1010, 1], 4, true),
        (Logits::Equal, 1.0, 0.9, [1, 1500, 40], 32, true),
        (Logits::Equal, 1.0, 0.3, [1, 1500, 40], 64, true),
        // More tokens of the level than a block keeps, and as many.
        (Logits::Equal, 1.0, 0.4, [1, 2049, 1], 4096, true),
        (Logits::Equal, 1.0, 0.4, [1, 2048, 2], 1024, true),
        // Several tokens above the level in a thread.
        (Logits::Drawn, 1.0, 0.9, [1, 5000, 1], 64, false),
        (Logits::Drawn, 0.5, 0.95, [1, 9000, 1], 64, false),
        // In one of these, the second iteration of the last search finds the token.
        (Logits::Drawn, 0.7, 0.9, [1, 15_000, 1], 64, false),
        (Logits::Drawn, 0.6, 0.9, [1, 14_000, 1], 64, false),
        (Logits::Special, 1.0, 0.97, [1, 5000, 1], 64, false),
        (Logits::Drawn, 1.0, 0.9, [3, 300, 3], 64, false),
        (Logits::Special, 2.0, 0.97, [1, 2700, 1], 64, false),
        (Logits::Special, 3.0, 0.96, [1, 2300, 2], 64, false),
        (Logits::Special, 1.5, 0.95, [1, 600, 1], 64, false),
    ] {
        let [rows, cols, parts] = extents;
        for _ in 0..3000 {
            let x = logits.draw(random, rows * cols);
            let part = (top_p * 2f64.powi(32)) as u32;
            let mut inputs = common(&x, t, extents);
            let (mut sums, mut of_parts, mut counts) = (Vec::new(), Vec::new(), Vec::new());
            let mut listed = vec![u32::MAX; rows * parts * longest];
            for (row, x) in x.chunks(cols).enumerate() {
                let (of_row, tokens) = summed(x, t);
                let cut = cut_level(&of_row, part, x.contains(&f32::INFINITY));
                for part in 0..parts {
                    let own = |i: &usize| tokens[*i].1 == cut;
                    let columns = columns(part, parts, cols);
                    let mut own_sums = vec![0u64; LEVELS];
                    tokens[columns.clone()].iter().for_each(|(p, level)| own_sums[*level] += p);
                    of_parts.extend(own_sums);
                    counts.push(columns.clone().filter(own).count() as u32);
                    for (at, i) in columns.filter(own).take(longest).enumerate() {
                        listed[(row * parts + part) * longest + at] = i as u32;
                    }
                }
                sums.extend(of_row);
            }
            inputs.extend([Input::scalar(part), Input::view(&sums, [rows, LEVELS])]);
            inputs.push(Input::view::<u64, 3>(&of_parts, [rows, parts, LEVELS]));
            inputs.push(Input::view(&counts, [rows, parts]));
            inputs.push(Input::view(&listed, [rows, parts, longest]));
            inputs.extend(Input::value_of(random_stream(random)));
            inputs.push(Input::view(&vec![u32::MAX; rows], [rows]));
            let (_, of_level, margin) = drawn(&inputs);
            if margin > MARGIN && (rows != 1 || of_level == level) {
                all.push(Case::new(format!("{logits:?}, {rows} × {cols} in {parts}, {top_p} at {t}"), inputs));
                break;
            }
        }
    }
    all
}

/// Returns the drawn tokens, whether the last belongs to the level, and the least distance of draws
/// from other results.
fn drawn(inputs: &[Input]) -> (Vec<u32>, bool, f64) {
    let (x, t, top_p) = (inputs[0].values(), temperature(inputs, 2), inputs[6].value() / 2f64.powi(32));
    let (cols, stream) = (inputs[0].extents()[1], stream(inputs, 11));
    let (mut margin, mut of_level, mut drawn) = (1.0f64, true, Vec::new());
    for (row, x) in x.chunks(cols.max(1)).enumerate() {
        // The first ∞, or the first token if no other counts.
        if let Some(first) = x.iter().position(|x| *x == f64::INFINITY) {
            drawn.push(first as u32);
            continue;
        }
        if ends(x)[0] == f64::NEG_INFINITY {
            drawn.push(0);
            continue;
        }
        let tokens = tokens_of(x, t);
        let mut ranked: Vec<usize> = (0..cols).collect();
        ranked.sort_by(|a, b| order(x[*b]).total_cmp(&order(x[*a])).then(a.cmp(b)));
        let need = top_p * tokens.iter().map(|token| token.p).sum::<f64>();
        let (mut kept, mut mass) = (0, 0.0);
        for i in &ranked {
            margin = margin.min((mass - need).abs() / need);
            if mass >= need {
                break;
            }
            kept += 1;
            mass += tokens[*i].p;
        }
        ranked.truncate(kept);
        let cut = tokens[ranked[kept - 1]].level as usize;
        if tokens.iter().any(|token| is_ambiguous_level(token.level) && (token.level - cut as f64).abs() < 1.5) {
            margin = 0.0;
        }
        // Tokens above the level by level and column, then those of the level by rank.
        let mut all: Vec<usize> = (0..cols).filter(|i| (tokens[*i].level as usize) < cut).collect();
        all.sort_by_key(|i| tokens[*i].level as usize);
        let above = all.len();
        all.extend(ranked.iter().filter(|i| tokens[**i].level as usize == cut));
        let [high, low, ..] = words(stream, row, u32::MAX);
        let aim = (f64::from(high) + f64::from(low) / 2f64.powi(32)) / 2f64.powi(32) * mass;
        let (mut before, mut token) = (0.0, 0);
        for (at, i) in all.iter().enumerate() {
            margin = margin.min((before - aim).abs() / mass);
            if before <= aim {
                token = *i;
                of_level = at >= above;
            }
            before += tokens[*i].p;
        }
        let near = |other: &ReferenceToken| (other.level - tokens[token].level.floor() - 0.5).abs() < 1.5;
        if tokens.iter().any(|other| is_ambiguous_level(other.level) && near(other)) {
            margin = 0.0;
        }
        drawn.push(token as u32);
    }
    (drawn, of_level, margin)
}

fn draw_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    vec![Expected::exact(15, drawn(inputs).0)]
}
