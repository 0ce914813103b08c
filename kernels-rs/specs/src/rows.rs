//! Specs of `softmax_rows`, rows that a team keeps in registers, and longer ones, and of
//! `softmax_divided`, rows that blocks share.

use super::stored::{at_rest, drawn, extremes, numbers, rounded, stored};
use super::{TINY, U, gamma, overflowed};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::rowwise::softmax::{softmax_divided, softmax_rows};
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(softmax_rows<f32, false, false, 256, 1, 4, 4, 2>, cases, reference);
runtime::register!(softmax_divided<f32, false, false, 256, 4, 8, 8192>, divided_cases, divided_reference);

/// The division of a row among the threads of an instance.
#[derive(Clone, Copy)]
pub(super) struct RowTeam {
    pub rows: usize,
    /// Elements of an access.
    pub wide: usize,
    /// Elements of a row that are kept in registers, and that are read again per iteration.
    pub kept: usize,
    pub again: usize,
    pub threads: usize,
    /// The levels of additions among lanes, warps and parts.
    pub levels: usize,
    /// Whether blocks share a row. Then the first part counts as kept, and others as read again.
    pub shared: bool,
}

impl RowTeam {
    /// Returns the team of an instance, whose last five constants are those of the team.
    pub fn of(instance: &Instance) -> Option<RowTeam> {
        let &[.., threads, rows, wide, kept, again] = numbers(instance).as_slice() else { return None };
        let (kept, again) = (threads * wide * kept, threads * wide * again);
        Some(RowTeam { rows, wide, kept, again, threads, levels: 12, shared: false })
    }

    /// Returns the team of an instance whose blocks share a row. The last constants are threads,
    /// elements of an access, accesses and elements of a part.
    pub fn divided(instance: &Instance) -> Option<RowTeam> {
        let &[.., threads, wide, _pieces, part] = numbers(instance).as_slice() else { return None };
        Some(RowTeam { rows: 1, wide, kept: part, again: part, threads, levels: 20, shared: true })
    }

    /// Returns the words that the blocks of rows exchange, all 0.
    pub fn links(self, [rows, cols]: [usize; 2]) -> Input {
        let words = rows * (2 * cols.div_ceil(self.kept) + 1);
        Input::view(&vec![0u64; words], [words])
    }

    /// Returns rows and columns at and around the edges: of a block's rows, of the elements in
    /// registers, and of those that are read again.
    pub fn shapes(self, random: &mut Random) -> Vec<[usize; 2]> {
        let up = |n: usize| n.next_multiple_of(self.wide);
        let RowTeam { rows, kept, again, .. } = self;
        let long = [1, kept + again + self.wide];
        // Large teams take the interpreters long, and small teams cover the common code.
        let mut all = vec![long, [0, up(5)], [3, 0]];
        if kept <= 4096 {
            all.extend([[rows + 1, up(37)], [1, up(kept - 1)], [1, up(kept / 2 + 1)]]);
        }
        if rows > 1 {
            all.extend([
                [1, up(1)],
                [rows, up(3)],
                [2, up(1 + random.below(kept))],
                [1, up(kept + again + random.below(again))],
            ]);
        }
        all
    }

    /// Returns the extremes that rows are tested with: all of them for small teams, and some for
    /// one row per block, which takes the interpreters long.
    pub fn extremes(self, random: &mut Random) -> Vec<Extreme> {
        if self.rows > 1 {
            return Extreme::ALL.to_vec();
        }
        let some = [Extreme::Huge, Extreme::HugePositive, Extreme::Subnormal];
        some.into_iter().chain((0..3).filter_map(|_| random.choose(&Extreme::ALL).copied())).collect()
    }

    /// Returns the number of additions of a term of a row's sum: in its thread, then among lanes
    /// and warps.
    pub fn additions(self, cols: usize) -> usize {
        cols.div_ceil(self.threads) + self.wide + self.levels
    }
}

/// Returns rows with gaps of `gap` accesses.
pub(super) fn rows_of(
    random: &mut Random,
    stored: Scalar,
    [rows, cols]: [usize; 2],
    team: RowTeam,
    gap: usize,
) -> Input {
    let pitch = (cols + gap * team.wide).max(team.wide);
    drawn(random, stored, rows * pitch, [rows, cols], [pitch, 1])
}

fn is_masked(instance: &Instance) -> bool {
    numbers(instance).get(1) == Some(&1)
}

fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    RowTeam::of(instance).map_or_else(Vec::new, |team| cases_of(instance, random, team))
}

fn divided_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let Some(team) = RowTeam::divided(instance) else { return Vec::new() };
    let mut all = cases_of(instance, random, team);
    if team.kept <= 4096 {
        // More parts than a warp has lanes.
        let shape @ [_, cols] = [2, 40 * team.kept + team.wide];
        all.push(ordinary(random, instance, team, (1, shape)));
        // The largest elements are in part 32, which is the second of a lane, and in part 31.
        let large = |i: usize| i % cols / team.kept == 32 - i / cols && i % cols % team.kept < 16;
        let x: Vec<_> = (0..2 * cols).map(|i| if large(i) { 60.0 } else { -60.0f32 }).collect();
        let (x, y) = (values(instance, &x, shape), rows_of(random, stored(instance), shape, team, 0));
        all.push(case("values of 60 in parts 32 and 31 among −60".into(), random, instance, team, 1.0, x, y));
        let shape = [1, team.kept + team.wide];
        let x = values(instance, &vec![f32::NEG_INFINITY; shape[1]], shape);
        let y = rows_of(random, stored(instance), shape, team, 0);
        all.push(case("two parts of −∞".into(), random, instance, team, 1.0, x, y));
    }
    for case in &mut all {
        let &[rows, cols] = case.inputs[1].extents() else { continue };
        case.inputs.insert(5, team.links([rows, cols]));
    }
    all
}

fn cases_of(instance: &Instance, random: &mut Random, team: RowTeam) -> Vec<Case> {
    let mut shapes = team.shapes(random);
    if team.kept <= 4096 {
        shapes.push([1, team.kept + team.wide]);
    }
    let mut all: Vec<_> = shapes.into_iter().enumerate().map(|shape| ordinary(random, instance, team, shape)).collect();
    if team.kept <= 4096 {
        all.extend([extreme(random, instance, team, 1.0), peaks(random, instance, team)]);
        all.extend([scattered(random, instance, team, 0), scattered(random, instance, team, team.kept)]);
    }
    all
}

fn ordinary(random: &mut Random, instance: &Instance, team: RowTeam, (i, shape): (usize, [usize; 2])) -> Case {
    let [rows, cols] = shape;
    let gap = random.below(2);
    let x = rows_of(random, stored(instance), shape, team, gap);
    // The scale keeps the exponentials of the longest rows above the least numbers. A negative
    // scale would change the −∞ beyond a row's end to ∞.
    let scale = [8.0f32, 1.0, 1.0, -0.125][i % 4];
    let y = rows_of(random, stored(instance), shape, team, gap);
    case(format!("{rows} × {cols}, scale {scale}"), random, instance, team, scale, x, y)
}

/// Returns a case with random masks, if the instance has any.
fn case(name: String, random: &mut Random, instance: &Instance, team: RowTeam, scale: f32, x: Input, y: Input) -> Case {
    let &[rows, cols] = x.extents() else { return Case::new(name, []) };
    // 0 keeps all masks; another number leaves out that mask.
    let (some, missing) = (is_masked(instance), random.below(4));
    let [has_bias, has_keep, has_queries] = [1, 2, 3].map(|mask| some && missing != mask);
    let bias = if has_bias {
        // One row for all, or one row each.
        let stride = [0, cols.next_multiple_of(team.wide)][random.below(2)];
        let mut bias = random.values::<f32>((rows * stride).max(cols));
        // One in eight masks.
        bias.iter_mut().for_each(|bias| *bias = if random.below(8) == 0 { f32::NEG_INFINITY } else { *bias });
        Input::strided(&bias, [rows, cols], [stride, 1])
    } else {
        Input::view::<f32, 2>(&[], [0, 0])
    };
    let keep = if has_keep {
        let bytes: Vec<u8> = (0..rows * cols).map(|_| [0, 1, 255][random.below(3)]).collect();
        Input::view(&bytes, [rows, cols])
    } else {
        Input::view::<u8, 2>(&[], [0, 0])
    };
    let queries = if has_queries { random.below(rows + 2).min(cols) } else { 0 };
    let (bias_name, keep_name) = (if has_bias { ", bias" } else { "" }, if has_keep { ", keep" } else { "" });
    let queries_name = if queries > 0 { format!(", {queries} queries") } else { String::new() };
    Case::new(
        format!("{name}{bias_name}{keep_name}{queries_name}"),
        [Input::scalar(scale), x, bias, keep, Input::scalar(queries), y],
    )
}

/// Returns a row of each extreme. Masked elements are NaNs.
fn extreme(random: &mut Random, instance: &Instance, team: RowTeam, scale: f32) -> Case {
    let cols = (3 * team.wide + 37).next_multiple_of(team.wide);
    let all = team.extremes(random);
    let x = extremes(random, &all, stored(instance), cols, cols + team.wide);
    let y = rows_of(random, stored(instance), [all.len(), cols], team, 0);
    let mut case = case("extremes".into(), random, instance, team, scale, x, y);
    if let [_, x, bias, keep, queries, _] = &mut case.inputs[..] {
        let end = ends(queries.value() as usize, cols);
        let (biases, kept) = (bias.values(), keep.values());
        let masked = |i: usize| {
            i % cols >= end(i / cols)
                || kept.get(i).is_some_and(|keep| *keep == 0.0)
                || biases.get(i) == Some(&f64::NEG_INFINITY)
        };
        *x = x.clone().with_nan_where(masked);
    }
    case
}

/// Returns the end of the unmasked columns of each row.
fn ends(queries: usize, cols: usize) -> impl Fn(usize) -> usize {
    move |r| if queries > 0 { (cols + 1 + r % queries).saturating_sub(queries).min(cols) } else { cols }
}

/// Returns rows with one large column each: each thread has a different maximum, far from the
/// others'.
fn peaks(random: &mut Random, instance: &Instance, team: RowTeam) -> Case {
    let (rows, cols) = (team.rows + 1, (8 * team.wide + 60).next_multiple_of(team.wide));
    let x: Vec<_> = (0..rows * cols).map(|i| if i % cols == 7 * (i / cols) { 60.0 } else { -60.0f32 }).collect();
    let (x, y) = (values(instance, &x, [rows, cols]), rows_of(random, stored(instance), [rows, cols], team, 0));
    case("in each row one value of 60 among −60".into(), random, instance, team, 1.0, x, y)
}

/// Returns elements of −60, except one of each thread from `from` on, in different pieces and
/// positions. The exceptions of a warp are below those of the previous warp. An element that a
/// maximum misses would give an infinity.
fn scattered(random: &mut Random, instance: &Instance, team: RowTeam, from: usize) -> Case {
    let RowTeam { wide, kept, again, threads, .. } = team;
    let cols = from + if from == 0 { kept } else { again };
    let pieces = (cols - from) / (threads * wide);
    let mut x = vec![-60.0f32; cols];
    for thread in 0..threads {
        let (piece, place) = (thread % pieces, thread / pieces % wide);
        x[from + (piece * threads + thread) * wide + place] = 60.0 - 3.0 * (thread / 32) as f32;
    }
    let (x, y) = (values(instance, &x, [1, cols]), rows_of(random, stored(instance), [1, cols], team, 0));
    case(
        format!("one value of 60 or less a thread among −60, from {from} of {cols} on"),
        random,
        instance,
        team,
        1.0,
        x,
        y,
    )
}

/// Returns rows without gaps, in the instance's storage format.
pub(super) fn values(instance: &Instance, x: &[f32], extents: [usize; 2]) -> Input {
    rounded(stored(instance), x, extents)
}

/// The distance below the maximum at which the exponential is 0 in every `f32`, and more.
const MAX_EXPONENT_DISTANCE: f64 = 150.0;

fn reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    RowTeam::of(instance).map_or_else(Vec::new, |team| vec![softmax_of(instance, inputs, team, 5)])
}

/// Computes the softmax of shared rows, and accepts words of 0 only.
fn divided_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let Some(team) = RowTeam::divided(instance) else { return Vec::new() };
    vec![cleared(inputs, 5), softmax_of(instance, inputs, team, 6)]
}

/// Returns words of 0 as the result of an argument.
pub(super) fn cleared(inputs: &[Input], argument: usize) -> Expected {
    let words = inputs[argument].extents().iter().product();
    Expected::new(argument, vec![0.0; words], Bound::Each(vec![0.0; words]))
}

/// Computes the softmax and its error bounds, to first order in u. z = scale · x + bias is rounded
/// twice, with the error u·(|scale · x| + |z|), which shifts the logarithm of the result. With d =
/// z − m for the row's maximum m:
///
/// * An exponential of the thread, and the factor to the row's maximum: the differences of their
///   arguments are rounded, and add up to |d|: |d|·u. Each `math::exp` has 0.892 units in the last
///   place, 1.784·u. The quotient, its product with the factor, and the last product: 3·u.
/// * A term of the sum: |d|·u in the same way, through the thread's, the warp's and the block's
///   maximum, with 3 · 1.784·u and 2 products. Also 1.784·u and a product each time that the
///   thread's maximum grew after the elements in registers, and γ of its additions. If blocks share
///   the row, the factor to the row's maximum is another such product. The error of the sum is at
///   most the weighted mean of its terms' errors.
/// * A logarithm: d and the difference are rounded, |d|·u + |y|·u. `math::ln` has less than a unit
///   in the last place, 2·u·|ln Σ|, and the error of the sum shifts it.
///
/// The factor 1.001 covers terms of second order. If results are subnormal, each of the
/// exponentials, factors and products has an error of at most the least subnormal.
fn softmax_of(instance: &Instance, inputs: &[Input], team: RowTeam, y: usize) -> Expected {
    let [_, _, bias, keep, queries, ..] = inputs else { return Expected::unchecked(y) };
    let (scale, x) = (inputs[0].value(), inputs[1].values());
    let log = numbers(instance).first() == Some(&1);
    let cols = inputs[1].extents().last().copied().unwrap_or(0).max(1);
    let (bias, keep, queries) = (bias.values(), keep.values(), queries.value() as usize);
    let (mut values, mut bounds) = (Vec::new(), Vec::new());
    for (r, row) in x.chunks(cols).enumerate() {
        let end = ends(queries, cols)(r);
        let logit = |c: usize| {
            let i = r * cols + c;
            let bias = *bias.get(i).unwrap_or(&0.0);
            let left_out = c >= end || keep.get(i).is_some_and(|keep| *keep == 0.0) || bias == f64::NEG_INFINITY;
            let product = scale * row[c];
            let z = overflowed(product + bias);
            if left_out { (f64::NEG_INFINITY, 0.0) } else { (z, (product.abs() + z.abs()) * U) }
        };
        let z: Vec<(f64, f64)> = (0..cols).map(logit).collect();
        let top = z.iter().map(|z| z.0).fold(f64::NEG_INFINITY, f64::max);
        if z.iter().any(|(z, _)| z.is_nan() || *z == f64::INFINITY) {
            values.extend(z.iter().map(|_| f64::NAN));
        } else if top == f64::NEG_INFINITY {
            values.extend(z.iter().map(|_| if log { f64::NEG_INFINITY } else { 0.0 }));
        } else {
            let passes = cols.saturating_sub(team.kept).div_ceil(team.again) as f64;
            let sum: f64 = z.iter().map(|z| (z.0 - top).exp()).sum();
            let near = |(z, off): (f64, f64)| {
                (z - top).abs().min(MAX_EXPONENT_DISTANCE) * U + if z == f64::NEG_INFINITY { 0.0 } else { off }
            };
            let term = |z| near(z) + (7.5 + 2.8 * passes) * U;
            let mean = z.iter().map(|z| (z.0 - top).exp() * term(*z)).sum::<f64>() / sum;
            let of_sum = 1.001 * (mean + gamma(team.additions(cols)));
            for z in z {
                let (value, off) = if log {
                    let value = z.0 - top - sum.ln();
                    (value, 1.001 * (z.1 + ((z.0 - top).abs() + value.abs() + 2.0 * sum.ln()) * U) + of_sum)
                } else {
                    let value = (z.0 - top).exp() / sum;
                    (value, 1.001 * value * (near(z) + 7.0 * U + of_sum) + 4.0 * TINY)
                };
                values.push(value);
                bounds.push(if off.is_finite() { off + at_rest(stored(instance), value, off) } else { 0.0 });
            }
        }
        bounds.resize(values.len(), 0.0);
    }
    Expected::new(y, values, Bound::Each(bounds))
}
