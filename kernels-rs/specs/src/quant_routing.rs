//! Specs of `route`, `count_routes`, `place_routes`, `combine`: mixtures of experts.

use super::stored::{at_rest, drawn, extremes, numbers, scalars, unread};
use super::{TINY, gamma};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::gemm::epilogue::Identity;
use kernels_rs::quant::routing::{combine, count_routes, place_routes, route};
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};
use std::cmp::Reverse;

runtime::register!(route<f32, false, true, 1>, logits, routed);
runtime::register!(count_routes, routes, counted);
runtime::register!(place_routes, unplaced, placed);
runtime::register!(combine<f32, Identity, 4>, rows, combined);

fn logits(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[.., n] = numbers(instance).as_slice() else { return Vec::new() };
    let stored = scalars(instance).first().copied().unwrap_or(Scalar::F32);
    let case = |what: String, x: Input, chosen: usize, bias: &[f32], scale: f32| {
        let (tokens, count) = (x.extents()[0], x.extents()[1]);
        let experts = Input::strided(&vec![-7i32; tokens * (chosen + 1)], [tokens, chosen], [chosen + 1, 1]);
        let weights = Input::strided(&vec![f32::NAN; tokens * (chosen + 1)], [tokens, chosen], [chosen + 1, 1]);
        let name = format!("{tokens} tokens, {chosen} of {count}{what}");
        Case::new(name, [x, Input::slice(bias), Input::scalar(scale), experts, weights])
    };
    let mut cases = Vec::new();
    for [tokens, count, chosen] in
        [[1, 1, 1], [9, 32 * n, 8], [8, 32 * n - 1, 32], [3, 16 * n + 1, 2], [0, 4, 2], [2, 7, 0]]
    {
        let x = drawn(random, stored, tokens * (count + 1), [tokens, count], [count + 1, 1]);
        cases.push(case(String::new(), x, chosen.min(count), &[], 1.0));
    }
    let bias: Vec<f32> = random.values(32 * n);
    let x = drawn(random, stored, 5 * 32 * n, [5, 32 * n], [32 * n, 1]);
    cases.push(case(", bias".into(), x, 6, &bias, 2.5));
    let equal = Input::view(&[1.0f32; 40], [2, 20]);
    if stored == Scalar::F32 {
        cases.push(case(", equal".into(), equal, 3, &[], 1.0));
    }
    cases.push(case(", extremes".into(), extremes(random, &Extreme::ALL, stored, 20, 24), 4, &[], 1.0));
    cases
}

/// Returns the choices by logits, or by biased scores rounded to `f32`.
///
/// A score has the errors of a difference, an exponential, a sum and a quotient. A weight adds the
/// errors of another sum, a quotient and a product.
fn routed(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let &[sigmoid, share, _] = numbers(instance).as_slice() else { return Vec::new() };
    let (x, &[tokens, count]) = (inputs[0].values(), inputs[0].extents()) else { return Vec::new() };
    let (bias, scale, chosen) = (inputs[1].values(), inputs[2].value(), inputs[3].extents()[1]);
    let (mut experts, mut weights, mut bounds) = (Vec::new(), Vec::new(), Vec::new());
    for token in 0..tokens {
        let most = f64::from(f32::MAX);
        let row = x[token * count..][..count].iter().map(|x| if x.is_nan() { -most } else { x.clamp(-most, most) });
        let row: Vec<f64> = row.collect();
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|x| (x - top).exp()).sum();
        let score = |x: &f64| if sigmoid == 1 { 1.0 / (1.0 + (-x).exp()) } else { (x - top).exp() / sum };
        let scores: Vec<f64> = row.iter().map(score).collect();
        // −0 counts as 0.
        let key = |i: usize| bias.get(i).map_or(row[i] as f32 + 0.0, |bias| scores[i] as f32 + *bias as f32);
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|a, b| key(*b).total_cmp(&key(*a)).then(a.cmp(b)));
        order.truncate(chosen);
        let total = order.iter().map(|i| scores[*i]).sum::<f64>().max(f64::from(f32::MIN_POSITIVE));
        for i in order {
            experts.push(i as f64);
            let divisor = if share == 1 { total } else { 1.0 };
            let weight = scale * scores[i] / divisor;
            weights.push(weight);
            bounds.push(gamma(240) * weight.abs() + 4.0 * TINY * (scale / divisor + 1.0));
        }
    }
    vec![Expected::new(3, experts, Bound::Exact), Expected::new(4, weights, Bound::Each(bounds))]
}

/// Draws routes to `count` experts.
fn draw(random: &mut Random, routes: usize, count: usize) -> Vec<i32> {
    (0..routes).map(|_| random.below(count) as i32).collect()
}

/// Routes and experts: none, one, a warp and one more, experts without routes, many groups of an
/// expert.
const ROUTES: [[usize; 2]; 8] = [[0, 3], [1, 1], [33, 2], [64, 9], [100, 40], [31, 8], [5, 7], [600, 2]];

fn routes(_: &Instance, random: &mut Random) -> Vec<Case> {
    let case = |[routes, count]: [usize; 2]| {
        let (experts, counts) = (Input::slice(&draw(random, routes, count)), Input::slice(&vec![-7i32; count]));
        Case::new(format!("{routes} routes to {count}"), [experts, counts])
    };
    ROUTES.map(case).into()
}

/// Returns the routes of each expert.
fn of_experts(experts: &[i32], count: usize) -> Vec<Vec<usize>> {
    let of = |expert: usize| (0..experts.len()).filter(|i| experts[*i] == expert as i32).collect();
    (0..count).map(of).collect()
}

fn counted(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let routes = of_experts(&inputs[0].to_vec::<i32>(), inputs[1].extents()[0]);
    vec![Expected::new(1, routes.iter().map(|routes| routes.len() as f64).collect(), Bound::Exact)]
}

fn unplaced(_: &Instance, random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    // The rows of a group, and the groups of a tile; 0 without tiles.
    for [room, tall] in [[8, 0], [2, 0], [8, 3], [8, 1]] {
        for [routes, count] in ROUTES {
            let experts = draw(random, routes, count);
            let counts: Vec<i32> = of_experts(&experts, count).iter().map(|routes| routes.len() as i32).collect();
            // There are more groups after the last expert's than a warp has lanes.
            let more = if tall < 2 { 40 * room } else { 0 };
            let rows = (routes + count.min(routes) * (room - 1)).next_multiple_of(room) + more;
            let tiles = (rows / room).checked_div(tall).map_or(0, |full| full + count.min(routes) + 1);
            let unwritten = |n: usize| Input::slice(&vec![-7i32; n]);
            let (experts, counts) = (Input::slice(&experts), Input::slice(&counts));
            let [order, groups, tiles, places] = [rows, rows / room, tiles, routes].map(unwritten);
            let name = format!("{routes} routes to {count}, groups of {room}, tiles of {tall}");
            let [room, tall] = [room, tall.max(1)].map(Input::scalar);
            cases.push(Case::new(name, [experts, counts, room, tall, order, groups, tiles, places]));
        }
    }
    // The largest cases come first, because they detect the most errors.
    cases.sort_by_key(|case| Reverse(case.inputs[4].extents()[0]));
    cases
}

fn placed(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let [room, tall] = [2, 3].map(|i: usize| inputs[i].value() as usize);
    let [rows, group_count, tile_count] = [4, 5, 6].map(|i: usize| inputs[i].extents()[0]);
    let experts = inputs[0].to_vec::<i32>();
    let (mut order, mut groups, mut tiles, mut short) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut places = vec![0.0; experts.len()];
    for (expert, routes) in of_experts(&experts, inputs[1].extents()[0]).into_iter().enumerate() {
        for route in &routes {
            places[*route] = order.len() as f64;
            order.push(*route as f64);
        }
        order.resize(order.len().next_multiple_of(room), -1.0);
        for group in (groups.len()..order.len() / room).step_by(tall) {
            if group + tall <= order.len() / room { &mut tiles } else { &mut short }.push(group as f64);
        }
        groups.resize(order.len() / room, expert as f64);
    }
    tiles.append(&mut short);
    tiles.extend((groups.len()..group_count).step_by(tall).map(|group| group as f64));
    order.resize(rows, -1.0);
    groups.resize(group_count, -1.0);
    tiles.resize(tile_count, -1.0);
    let exact = |argument: usize, values: Vec<f64>| Expected::new(argument, values, Bound::Exact);
    vec![exact(4, order), exact(5, groups), exact(6, tiles), exact(7, places)]
}

fn rows(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let (&[unit], &[stored]) = (numbers(instance).as_slice(), scalars(instance).as_slice()) else { return Vec::new() };
    let mut cases = Vec::new();
    let shapes: [[usize; 4]; 5] = [[1, 1, 1, 0], [3, 2, 300, 5], [5, 4, 8, 1], [0, 2, 4, 0], [2, 3, 0, 0]];
    for [tokens, chosen, cols, more] in shapes {
        let cols = cols.next_multiple_of(unit);
        let routes = tokens * chosen;
        let x = drawn(random, stored, (routes + more) * (cols + unit), [routes + more, cols], [cols + unit, 1]);
        let weights: Vec<f32> = random.values(routes);
        // Routes in the opposite order, after rows of no route.
        let places: Vec<i32> = (0..if more > 0 { routes } else { 0 }).map(|i| (routes + more - 1 - i) as i32).collect();
        let y = unread(stored, tokens * (cols + unit), [tokens, cols], [cols + unit, 1]);
        let weights = Input::view(&weights, [tokens, chosen]);
        cases.push(Case::new(format!("{tokens} × {chosen} × {cols}"), [x, weights, Input::slice(&places), y]));
    }
    let kinds = Extreme::ALL;
    let [pitch, cols] = [3 * unit.max(4), 2 * unit.max(4)];
    let x = extremes(random, &kinds, stored, cols, pitch);
    let weights = Input::view(&random.values::<f32>(kinds.len()), [kinds.len(), 1]);
    let y = unread(stored, kinds.len() * pitch, [kinds.len(), cols], [pitch, 1]);
    cases.push(Case::new("extreme rows", [x, weights, Input::slice::<i32>(&[]), y]));
    cases
}

fn combined(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let stored = scalars(instance).last().copied().unwrap_or(Scalar::F32);
    let (x, weights, places) = (inputs[0].values(), inputs[1].values(), inputs[2].to_vec::<i32>());
    let (&[_, chosen], &[tokens, cols]) = (inputs[1].extents(), inputs[3].extents()) else { return Vec::new() };
    let (mut values, mut bounds) = (Vec::new(), Vec::new());
    for i in 0..tokens * cols {
        let term = |choice: usize| {
            let route = i / cols * chosen + choice;
            let row = places.get(route).map_or(route, |row| *row as usize);
            weights[route] * x[row * cols + i % cols]
        };
        let value: f64 = (0..chosen).map(term).sum();
        let off = gamma(chosen + 2) * (0..chosen).map(|choice| term(choice).abs()).sum::<f64>() + 4.0 * TINY;
        values.push(value);
        bounds.push(off + at_rest(stored, value, off));
    }
    vec![Expected::new(3, values, Bound::Each(bounds))]
}
