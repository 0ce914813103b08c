//! Tests of outputs with more than one right value, and of inputs with a structure, as users write
//! them. Wrong kernels show the texts of the failures.

use kernel_dsl::prelude::*;
use runtime::testing::{self, Expected, Gen, Input};

/// A found number and its place.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
#[repr(C)]
struct Hit {
    number: u32,
    place: u32,
}

/// Lists the multiples of `factor` in any order, and counts them. With `WRONG`, the list has number
/// 39 twice and number 40 never.
#[kernel(block = 32, grid = x.len().div_ceil(32), instances(WRONG = false | true))]
#[requires(x.len() <= hits.len(), count.len() == 1)]
fn listed<const WRONG: bool>(factor: u32, x: &[u32], hits: &mut [Hit], count: &mut [u32]) {
    let i = grid::index();
    if i < x.len() && x[i] % factor == 0 {
        let ticket = count.fetch_add(0, 1);
        let place = if WRONG && i == 40 { 39 } else { i };
        hits[ticket as usize] = Hit { number: x[place], place: place as u32 };
    }
}

/// Returns the multiples that the inputs of [`listed`] have.
fn hits(inputs: &[Input]) -> Vec<Hit> {
    let factor = inputs[0].to_vec::<u32>()[0];
    let all = inputs[1].to_vec::<u32>().into_iter().enumerate();
    all.filter(|(_, x)| x % factor == 0).map(|(i, number)| Hit { number, place: i as u32 }).collect()
}

const NO_HIT: Hit = Hit { number: u32::MAX, place: u32::MAX };

fn numbers(g: &mut Gen) -> [Input; 4] {
    let n = g.within("n", 0..=100);
    let x = g.ties::<u32>(n, 7);
    [3u32.into(), Input::slice(&x), Input::slice(&vec![NO_HIT; n]), Input::slice(&[0u32])]
}

/// Requires the exact count, and the list as a multiset.
fn multiset(inputs: &[Input]) -> Vec<Expected> {
    let mut all = hits(inputs);
    let count = all.len() as u32;
    all.resize(inputs[1].extents()[0], NO_HIT);
    vec![Expected::multiset(2, all), Expected::exact(3, [count])]
}

/// Requires that the list has the right numbers, however often and in any order.
fn set(inputs: &[Input]) -> Vec<Expected> {
    let all = hits(inputs);
    let free = (all.len() < inputs[1].extents()[0]).then_some(NO_HIT);
    vec![Expected::set(2, all.into_iter().chain(free)), Expected::unchecked(3)]
}

/// Compares the list with the count and the input.
fn judged(_: &[Input]) -> Vec<Expected> {
    let accepts = |before: &[Input], after: &[Input]| {
        let (list, count) = (after[2].to_vec::<Hit>(), after[3].to_vec::<u32>()[0] as usize);
        let x = before[1].to_vec::<u32>();
        let mut places: Vec<_> = list[..count].iter().map(|hit| hit.place).collect();
        places.sort();
        places.dedup();
        let known = list[..count].iter().all(|hit| x.get(hit.place as usize) == Some(&hit.number));
        match known && places.len() == count {
            true => Ok(()),
            false => Err(format!("{} of {count} hits are known", places.len())),
        }
    };
    vec![Expected::judged(2, accepts), Expected::unchecked(3)]
}

#[test]
fn outputs_without_an_order_are_compared_as_a_whole() {
    for reference in [multiset, set, judged] {
        testing::property::<listed<false>>().cases(numbers).reference(reference).check();
    }
    let x: Vec<u32> = (0..64).map(|i| 100 + i).collect();
    let fails = |reference: fn(&[Input]) -> Vec<Expected>| {
        let cases = |_: &mut Gen| [1u32.into(), Input::slice(&x), Input::slice(&[NO_HIT; 64]), Input::slice(&[0u32])];
        let found = testing::property::<listed<true>>().cases(cases).reference(reference).run().unwrap_err();
        found.failure.to_string()
    };
    let wrong = |why: &str| format!("hits is wrong on the interpreter on IR as lowered: {why}");
    let twice = "the element [139, 39] occurs twice, and in the reference once; the order is free";
    assert_eq!(fails(multiset), wrong(twice));
    assert_eq!(fails(set), wrong("it lacks [140, 40]"));
    assert_eq!(fails(judged), wrong("63 of 64 hits are known"));
}

/// Computes the sums of the rows of a sparse matrix of ones and x.
#[kernel(block = 32, grid = y.len().div_ceil(32))]
#[requires(offsets.len() == y.len() + 1)]
fn row_sums(offsets: &[u32], columns: &[u32], x: &[u32], y: &mut [u32]) {
    let row = grid::index();
    if row < y.len() {
        let mut sum = 0;
        for i in offsets[row] as usize..offsets[row + 1] as usize {
            sum = u32::wrapping_add(sum, x[columns[i] as usize]);
        }
        y[row] = sum;
    }
}

/// Checks that a pattern suits a kernel of sparse matrices, and that patterns reach the extremes.
#[test]
fn sparse_patterns_fit_a_kernel() {
    let cases = |g: &mut Gen| {
        let (rows, cols) = (g.within("rows", 0..=70), g.within("cols", 1..=40));
        let (offsets, columns) = g.sparse([rows, cols]);
        [Input::slice(&offsets), Input::slice(&columns), g.slice::<u32>(cols), g.slice::<u32>(rows)]
    };
    let reference = |inputs: &[Input]| {
        let [offsets, columns, x] = [0, 1, 2].map(|i| inputs[i].to_vec::<u32>());
        let row = |w: &[u32]| columns[w[0] as usize..w[1] as usize].iter().map(|c| x[*c as usize]);
        let sum = |w: &[u32]| row(w).fold(0, u32::wrapping_add);
        vec![Expected::exact(3, offsets.windows(2).map(sum).collect::<Vec<_>>())]
    };
    testing::property::<row_sums>().cases(cases).reference(reference).check();
}

/// Counts the elements of the sorted list `x` that are less than each of `keys`, and stores the
/// counts in the order `to`. With `LAST`, equal elements count too.
#[kernel(block = 32, grid = keys.len().div_ceil(32), instances(LAST = false | true))]
#[requires(keys.len() == to.len(), keys.len() == y.len())]
fn ranks<const LAST: bool>(x: &[i32], keys: &[i32], to: &[u32], y: &mut [u32]) {
    let i = grid::index();
    if i < keys.len() {
        let (mut low, mut high) = (0usize, x.len());
        while low < high {
            let middle = (low + high) / 2;
            if x[middle] < keys[i] || LAST && x[middle] == keys[i] {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        y[to[i] as usize] = low as u32;
    }
}

/// Checks that ties reveal a search that finds the last of equal elements instead of the first.
#[test]
fn sorted_lists_have_ties_and_permutations_no_races() {
    let cases = |g: &mut Gen| {
        let (n, keys) = (g.within("n", 0..=50), g.within("keys", 0..=70));
        let mut x = g.ties::<i32>(n, 5);
        x.sort();
        let to = Input::slice(&g.permutation(keys));
        [Input::slice(&x), Input::slice(&g.ties::<i32>(keys, 5)), to, g.slice::<u32>(keys)]
    };
    let reference = |inputs: &[Input]| {
        let [x, keys] = [0, 1].map(|i| inputs[i].to_vec::<i32>());
        let mut y = vec![0; keys.len()];
        for (key, to) in keys.iter().zip(inputs[2].to_vec::<u32>()) {
            y[to as usize] = x.iter().filter(|x| *x < key).count() as u32;
        }
        vec![Expected::exact(3, y)]
    };
    testing::property::<ranks<false>>().cases(cases).reference(reference).check();
    let found = testing::property::<ranks<true>>().cases(cases).reference(reference).run().unwrap_err();
    assert_eq!(found.case.name, "n = 1, keys = 1", "{found}");
}

/// Clears the lowest bit of each number.
#[kernel(block = 32, grid = y.len().div_ceil(32))]
#[requires(x.len() == y.len())]
fn without_low_bit(x: &[u128], y: &mut [u128]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = x[i] & !1;
    }
}

#[test]
fn long_integers_are_compared_and_shown_as_a_whole() {
    let cases = |_: &mut Gen| [Input::slice(&[2u128, (1 << 100) + 1]), Input::slice(&[0u128; 2])];
    let reference = |inputs: &[Input]| vec![Expected::exact(1, inputs[0].to_vec::<u128>())];
    let found = testing::property::<without_low_bit>().cases(cases).reference(reference).run().unwrap_err();
    let text = found.to_string();
    let (low, right) = (1u128 << 100, (1u128 << 100) + 1);
    assert!(text.contains(&format!("y[1] is {low} on")), "{text}");
    assert!(text.contains(&format!("the reference gives {right}")), "{text}");
    assert!(text.contains(&format!("x: u128[2] = 2, {right}")), "{text}");
}

/// Checks references of arguments that do not exist, or that the kernel only reads.
#[test]
fn references_of_other_arguments_are_rejected() {
    let cases = |_: &mut Gen| [Input::slice(&[2u128, 4]), Input::slice(&[0u128; 2])];
    let fails = |argument: usize| {
        let reference = move |inputs: &[Input]| {
            let right = inputs[0].to_vec::<u128>();
            vec![Expected::exact(1, right.clone()), Expected::exact(argument, right)]
        };
        testing::property::<without_low_bit>().cases(cases).reference(reference).run().unwrap_err().failure.to_string()
    };
    let why = "which the kernel does not write: it writes `y` (argument 1)";
    assert_eq!(fails(0), format!("the reference has values for `x`, {why}"));
    assert_eq!(fails(7), format!("the reference has values for argument 7, {why}"));
}
