//! Tests of the prover on pairs of small kernels, equivalent ones and others.

use super::proof::{Proof, Prover};
use super::trial::lowered;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use kernel_dsl::{Artifact, Kernel};

/// Returns the proof that the second kernel behaves like the first in every launch of the first.
fn proof(of: &'static Artifact, other: &'static Artifact) -> Option<Proof> {
    let instance = Instance(of.instances[0].constants.to_vec());
    let (program, kernel) = lowered(of, &instance);
    let (_, other) = lowered(other, &instance);
    Prover::new(&program, &kernel).proof(&other)
}

macro_rules! same {
    ($of:ident, $other:ident) => {
        assert!(proof($of::ARTIFACT, $other::ARTIFACT).is_some(), "not proved");
        assert!(proof($other::ARTIFACT, $of::ARTIFACT).is_some(), "not proved in reverse");
    };
}

macro_rules! different {
    ($of:ident, $other:ident) => {
        assert_eq!(proof($of::ARTIFACT, $other::ARTIFACT), None);
        assert_eq!(proof($other::ARTIFACT, $of::ARTIFACT), None, "in reverse");
    };
}

mod loads;
mod multiples;

#[kernel(block = 64, grid = 1)]
fn masked(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let mut v = 0.0;
    if i < y.len() {
        v = x[i];
    }
    block::sync();
    if i < y.len() {
        y[i] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn masked_of_one(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let mut v = 1.0;
    if i < y.len() {
        v = x[i];
    }
    block::sync();
    if i < y.len() {
        y[i] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn otherwise_masked(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let mut v = 0.0;
    if i < x.len() {
        v = x[i];
    }
    block::sync();
    if i < y.len() {
        y[i] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn otherwise_masked_of_one(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let mut v = 1.0;
    if i < x.len() {
        v = x[i];
    }
    block::sync();
    if i < y.len() {
        y[i] = v;
    }
}

#[test]
fn values_demanded_under_a_mask_are_arbitrary_elsewhere() {
    same!(masked, masked_of_one);
    different!(otherwise_masked, otherwise_masked_of_one);
    different!(masked, otherwise_masked);
}

#[kernel(block = 64, grid = 1)]
fn kept_inside(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (mut v, mut kept) = (0.0, false);
    if i < x.len() {
        v = x[i];
        kept = v > 0.5;
    }
    block::sync();
    if kept && i < y.len() {
        y[i] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn kept_inside_of_one(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (mut v, mut kept) = (1.0, false);
    if i < x.len() {
        v = x[i];
        kept = v > 0.5;
    }
    block::sync();
    if kept && i < y.len() {
        y[i] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn kept_outside(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (mut v, mut kept) = (0.0, true);
    if i < x.len() {
        v = x[i];
        kept = v > 0.5;
    }
    block::sync();
    if kept && i < y.len() {
        y[i] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn kept_outside_of_one(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (mut v, mut kept) = (1.0, true);
    if i < x.len() {
        v = x[i];
        kept = v > 0.5;
    }
    block::sync();
    if kept && i < y.len() {
        y[i] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn not_kept_inside(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (mut v, mut kept) = (0.0, false);
    if i < x.len() {
        v = x[i];
        kept = v > 0.5;
    }
    block::sync();
    if !kept && i < y.len() {
        y[i] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn not_kept_inside_of_one(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (mut v, mut kept) = (1.0, false);
    if i < x.len() {
        v = x[i];
        kept = v > 0.5;
    }
    block::sync();
    if !kept && i < y.len() {
        y[i] = v;
    }
}

#[test]
fn select_with_a_constant_implies_its_condition() {
    same!(kept_inside, kept_inside_of_one);
    different!(kept_outside, kept_outside_of_one);
    different!(not_kept_inside, not_kept_inside_of_one);
}

#[kernel(block = 64, grid = 1)]
fn before_more(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let mut v = 0.0;
    if i < y.len() {
        v = x[i];
    }
    block::sync();
    if i + 1 < y.len() {
        y[i] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn before_more_of_one(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let mut v = 1.0;
    if i < y.len() {
        v = x[i];
    }
    block::sync();
    if i + 1 < y.len() {
        y[i] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn more_before(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let mut v = 0.0;
    if i + 1 < y.len() {
        v = x[i];
    }
    block::sync();
    if i < y.len() {
        y[i] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn more_before_of_one(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let mut v = 1.0;
    if i + 1 < y.len() {
        v = x[i];
    }
    block::sync();
    if i < y.len() {
        y[i] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn before_another(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let mut v = 0.0;
    if i < x.len() {
        v = x[i];
    }
    block::sync();
    if i + 1 < y.len() {
        y[i] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn before_another_of_one(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let mut v = 1.0;
    if i < x.len() {
        v = x[i];
    }
    block::sync();
    if i + 1 < y.len() {
        y[i] = v;
    }
}

#[test]
fn sum_below_an_end_implies_the_index_is_below() {
    same!(before_more, before_more_of_one);
    different!(more_before, more_before_of_one);
    different!(before_another, before_another_of_one);
}

#[kernel(block = 96, grid = 1)]
fn in_two_ways(x: &[f32], y: &mut [f32], z: &mut [f32]) {
    let t = thread::x();
    let v = if t < x.len() {
        x[t]
    } else if t < y.len() {
        y[t]
    } else {
        0.0
    };
    block::sync();
    if t < x.len() {
        z[t] = v;
    } else if t < y.len() {
        y[t] = v * 2.0;
    }
}

#[kernel(block = 96, grid = 1)]
fn in_two_ways_of_one(x: &[f32], y: &mut [f32], z: &mut [f32]) {
    let t = thread::x();
    let v = if t < x.len() {
        x[t]
    } else if t < y.len() {
        y[t]
    } else {
        1.0
    };
    block::sync();
    if t < x.len() {
        z[t] = v;
    } else if t < y.len() {
        y[t] = v * 2.0;
    }
}

#[kernel(block = 96, grid = 1)]
fn in_two_ways_and_more(x: &[f32], y: &mut [f32], z: &mut [f32]) {
    let t = thread::x();
    let v = if t < x.len() {
        x[t]
    } else if t < y.len() {
        y[t]
    } else {
        0.0
    };
    block::sync();
    if t < x.len() {
        z[t] = v;
    } else if t < z.len() {
        y[t] = v * 2.0;
    }
}

#[kernel(block = 96, grid = 1)]
fn in_two_ways_and_more_of_one(x: &[f32], y: &mut [f32], z: &mut [f32]) {
    let t = thread::x();
    let v = if t < x.len() {
        x[t]
    } else if t < y.len() {
        y[t]
    } else {
        1.0
    };
    block::sync();
    if t < x.len() {
        z[t] = v;
    } else if t < z.len() {
        y[t] = v * 2.0;
    }
}

#[test]
fn values_demanded_in_two_ways_are_arbitrary_where_neither_holds() {
    same!(in_two_ways, in_two_ways_of_one);
    different!(in_two_ways_and_more, in_two_ways_and_more_of_one);
}

#[kernel(block = 64, grid = 1)]
fn shuffled(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let mut v = 0.0;
    if i < y.len() {
        v = x[i];
    }
    let v = warp::shuffle_xor(v, 1);
    if i < y.len() {
        y[i] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn shuffled_of_one(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let mut v = 1.0;
    if i < y.len() {
        v = x[i];
    }
    let v = warp::shuffle_xor(v, 1);
    if i < y.len() {
        y[i] = v;
    }
}

#[test]
fn shuffled_values_are_demanded_by_other_lanes() {
    different!(shuffled, shuffled_of_one);
}

#[kernel(block = 64, grid = 1)]
fn carried(x: &[f32], y: &mut [f32]) {
    let mut v = 0.0;
    for i in (thread::x()..x.len()).step_by(64) {
        if i % 2 == 0 {
            v = x[i];
        }
        if i % 2 == 0 {
            y[i] = v;
        }
    }
}

#[kernel(block = 64, grid = 1)]
fn carried_of_one(x: &[f32], y: &mut [f32]) {
    let mut v = 1.0;
    for i in (thread::x()..x.len()).step_by(64) {
        if i % 2 == 0 {
            v = x[i];
        }
        if i % 2 == 0 {
            y[i] = v;
        }
    }
}

#[kernel(block = 64, grid = 1)]
fn carried_further(x: &[f32], y: &mut [f32]) {
    let mut v = 0.0;
    for i in (thread::x()..x.len()).step_by(64) {
        if i % 3 == 0 {
            v = x[i];
        }
        if i % 2 == 0 {
            y[i] = v;
        }
    }
}

#[kernel(block = 64, grid = 1)]
fn carried_further_of_one(x: &[f32], y: &mut [f32]) {
    let mut v = 1.0;
    for i in (thread::x()..x.len()).step_by(64) {
        if i % 3 == 0 {
            v = x[i];
        }
        if i % 2 == 0 {
            y[i] = v;
        }
    }
}

#[test]
fn carried_values_are_demanded_where_an_iteration_demands_them() {
    same!(carried, carried_of_one);
    different!(carried_further, carried_further_of_one);
}

#[kernel(block = 1, grid = y.len())]
fn a_block_each(y: &mut [f32]) {
    let i = block::x();
    if i < y.len() {
        y[i] = 1.0;
    }
}

#[kernel(block = 1, grid = y.len())]
fn a_block_each_or_equal(y: &mut [f32]) {
    let i = block::x();
    if i <= y.len() {
        y[i] = 1.0;
    }
}

#[kernel(block = 1, grid = y.len() + 1)]
fn a_block_more(y: &mut [f32]) {
    let i = block::x();
    if i < y.len() {
        y[i] = 1.0;
    }
}

#[kernel(block = 1, grid = y.len() + 1)]
fn a_block_more_or_equal(y: &mut [f32]) {
    let i = block::x();
    if i <= y.len() {
        y[i] = 1.0;
    }
}

#[kernel(block = 64, grid = y.len().div_ceil(64))]
fn a_thread_each(y: &mut [f32]) {
    let i = block::x() * 64 + thread::x();
    if i < y.len() {
        y[i] = 1.0;
    }
}

#[kernel(block = 64, grid = y.len().div_ceil(64))]
fn a_thread_each_or_equal(y: &mut [f32]) {
    let i = block::x() * 64 + thread::x();
    if i <= y.len() {
        y[i] = 1.0;
    }
}

#[kernel(block = 64, grid = y.len().div_ceil(64))]
fn a_thread_each_of_blocks(y: &mut [f32]) {
    let i = block::x() * 64 + thread::x();
    if block::x() * 64 < y.len() {
        if i < y.len() {
            y[i] = 1.0;
        }
    }
}

#[test]
fn block_index_is_below_the_grid_extent_only() {
    same!(a_block_each, a_block_each_or_equal);
    different!(a_block_more, a_block_more_or_equal);
    different!(a_thread_each, a_thread_each_or_equal);
    same!(a_thread_each, a_thread_each_of_blocks);
}

#[kernel(block = 1, grid = y.rows() * y.cols())]
#[requires(y.cols() > 0)]
fn place(mut y: ViewMut<f32, 2>) {
    let (i, n) = (block::x(), y.cols());
    let (row, col) = if n == 1 { (i, 0) } else { (i / n, i - i / n * n) };
    if row < y.rows() {
        y[(row, col)] = 1.0;
    }
}

#[kernel(block = 1, grid = y.rows() * y.cols())]
#[requires(y.cols() > 0)]
fn place_divided(mut y: ViewMut<f32, 2>) {
    let (i, n) = (block::x(), y.cols());
    let (row, col) = (i / n, i - i / n * n);
    if row <= y.rows() {
        y[(row, col)] = 1.0;
    }
}

#[kernel(block = 1, grid = y.rows() * y.cols())]
#[requires(y.cols() > 0)]
fn place_of_two(mut y: ViewMut<f32, 2>) {
    let (i, n) = (block::x(), y.cols());
    let (row, col) = if n == 2 { (i, 0) } else { (i / n, i - i / n * n) };
    if row < y.rows() {
        y[(row, col)] = 1.0;
    }
}

#[kernel(block = 64, grid = (y.rows() * y.cols()).div_ceil(64))]
fn row(mut y: ViewMut<f32, 2>) {
    let i = grid::index();
    if i < y.rows() * y.cols() {
        let (row, col) = if y.rows() == 1 { (0, i) } else { (i / y.cols(), i - i / y.cols() * y.cols()) };
        y[(row, col)] = 1.0;
    }
}

#[kernel(block = 64, grid = (y.rows() * y.cols()).div_ceil(64))]
fn row_divided(mut y: ViewMut<f32, 2>) {
    let i = grid::index();
    if i < y.rows() * y.cols() {
        let (row, col) = (i / y.cols(), i - i / y.cols() * y.cols());
        y[(row, col)] = 1.0;
    }
}

#[kernel(block = 64, grid = (y.rows() * y.cols()).div_ceil(64))]
fn row_of_two(mut y: ViewMut<f32, 2>) {
    let i = grid::index();
    if i < y.rows() * y.cols() {
        let (row, col) = if y.rows() == 2 { (0, i) } else { (i / y.cols(), i - i / y.cols() * y.cols()) };
        y[(row, col)] = 1.0;
    }
}

#[test]
fn index_of_a_single_row_is_zero() {
    same!(row, row_divided);
    different!(row, row_of_two);
}

#[test]
fn division_by_one_is_the_identity() {
    same!(place, place_divided);
    different!(place, place_of_two);
}

/// Subtracts one from an index: the subtraction wraps where i is 0, where its result is not
/// demanded.
#[kernel(block = 64, grid = 1)]
fn before(x: &[f32], y: &mut [f32]) {
    let i = thread::x() + block::y();
    let at = if i > 0 { (i - 1) / 4 } else { 0 };
    if i > 0 {
        y[i] = x[at];
    }
}

#[kernel(block = 64, grid = 1)]
fn before_always(x: &[f32], y: &mut [f32]) {
    let i = thread::x() + block::y();
    let at = if i > 0 { (i - 1) / 4 } else { 0 };
    y[i] = x[at];
}

#[kernel(block = 64, grid = 1)]
fn before_or_three(x: &[f32], y: &mut [f32]) {
    let i = thread::x() + block::y();
    y[i] = x[if i == 0 { 3 } else { (i - 1) / 4 }];
}

#[kernel(block = 64, grid = 1)]
fn before_or_wrapped(x: &[f32], y: &mut [f32]) {
    let i = thread::x() + block::y();
    y[i] = x[(i - 1) / 4];
}

#[test]
fn undemanded_values_demand_no_operands() {
    different!(before, before_always);
    different!(before_or_three, before_or_wrapped);
}

#[kernel(block = 1, grid = y.len())]
fn clamped(x: &[f32], y: &mut [f32]) {
    let i = block::x();
    y[i] = x[i.min(y.len() - 1)];
}

#[kernel(block = 1, grid = y.len())]
fn unclamped(x: &[f32], y: &mut [f32]) {
    let i = block::x();
    y[i] = x[i];
}

#[kernel(block = 1, grid = y.len())]
fn clamped_lower(x: &[f32], y: &mut [f32]) {
    let i = block::x();
    y[i] = x[i.min(y.len() - 2)];
}

#[test]
fn minimum_is_at_most_either_operand() {
    same!(clamped, unclamped);
    different!(clamped, clamped_lower);
}

#[kernel(block = 64, grid = 1)]
fn squared(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (v, first) = (x[i], x[0]);
    let d = v - first;
    y[i] = d * d;
}

#[kernel(block = 64, grid = 1)]
fn squared_turned(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (v, first) = (x[i], x[0]);
    let d = first - v;
    y[i] = d * d;
}

#[kernel(block = 64, grid = 1)]
fn cubed(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (v, first) = (x[i], x[0]);
    let d = v - first;
    y[i] = d * d * d;
}

#[kernel(block = 64, grid = 1)]
fn cubed_turned(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (v, first) = (x[i], x[0]);
    let d = first - v;
    y[i] = d * d * d;
}

#[test]
fn squares_ignore_the_sign() {
    same!(squared, squared_turned);
    different!(cubed, cubed_turned);
}

#[kernel(block = 64, grid = 1)]
fn sums(x: &[f32], y: &mut [f32]) {
    let sum = warp::sum(x[thread::x()]);
    if warp::lane() == 0 {
        y[warp::index()] = sum;
    }
}

#[kernel(block = 64, grid = 1)]
fn sums_of_all(x: &[f32], y: &mut [f32]) {
    let sum = warp::sum(x[thread::x()]);
    y[warp::index()] = sum;
}

#[kernel(block = 64, grid = 1)]
fn sums_of_one_warp(x: &[f32], y: &mut [f32]) {
    let sum = warp::sum(x[thread::x()]);
    if thread::x() == 0 {
        y[warp::index()] = sum;
    }
}

#[kernel(block = 64, grid = 1)]
fn firsts(x: &[f32], y: &mut [f32]) {
    if warp::lane() == 0 {
        y[warp::index()] = x[thread::x()];
    }
}

#[kernel(block = 64, grid = 1)]
fn firsts_of_all(x: &[f32], y: &mut [f32]) {
    y[warp::index()] = x[thread::x()];
}

#[test]
fn any_lane_may_store_a_uniform_value() {
    same!(sums, sums_of_all);
    different!(sums, sums_of_one_warp);
    different!(firsts, firsts_of_all);
}

#[kernel(block = 256, grid = 1)]
fn of_first(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([32]);
    let t = thread::x();
    if t < 32 {
        s[t] = x[t];
    }
    block::sync();
    let v = warp::shuffle(s[t % 32], t % 8);
    if t < 7 {
        y[t] = v;
    }
}

#[kernel(block = 256, grid = 1)]
fn of_first_by_seven(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([32]);
    let t = thread::x();
    if t < 32 {
        s[t] = x[t];
    }
    block::sync();
    let v = warp::shuffle(s[t % 7], t % 7);
    if t < 7 {
        y[t] = v;
    }
}

#[kernel(block = 256, grid = 1)]
fn of_first_by_six(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([32]);
    let t = thread::x();
    if t < 32 {
        s[t] = x[t];
    }
    block::sync();
    let v = warp::shuffle(s[t % 6], t % 7);
    if t < 7 {
        y[t] = v;
    }
}

#[kernel(block = 256, grid = 1)]
fn of_first_and_more(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([32]);
    let t = thread::x();
    if t < 32 {
        s[t] = x[t];
    }
    block::sync();
    let v = warp::shuffle(s[t % 32], t % 8);
    if t < 8 {
        y[t] = v;
    }
}

#[kernel(block = 256, grid = 1)]
fn of_first_by_seven_and_more(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([32]);
    let t = thread::x();
    if t < 32 {
        s[t] = x[t];
    }
    block::sync();
    let v = warp::shuffle(s[t % 7], t % 7);
    if t < 8 {
        y[t] = v;
    }
}

#[test]
fn undemanded_values_are_arbitrary_per_thread() {
    same!(of_first, of_first_by_seven);
    different!(of_first, of_first_by_six);
    different!(of_first_and_more, of_first_by_seven_and_more);
}

#[kernel(block = 96, grid = 1)]
fn reached(x: &[u32], aim: u32, y: &mut [u32]) {
    let t = thread::x();
    let mut here = 0;
    if t < 32 {
        here = x[t];
    }
    let (before, _all) = block::scan(here, 0, |a, b| a + b);
    if before < aim && aim <= before + here {
        y[0] = t as u32;
    }
}

#[kernel(block = 96, grid = 1)]
fn reached_of_first(x: &[u32], aim: u32, y: &mut [u32]) {
    let t = thread::x();
    let mut here = 0;
    if t < 32 {
        here = x[t];
    }
    let (before, _all) = block::scan(here, 0, |a, b| a + b);
    if before < aim && aim <= before + here {
        y[0] = t as u32 % 32;
    }
}

#[kernel(block = 96, grid = 1)]
fn reached_or_not(x: &[u32], aim: u32, y: &mut [u32]) {
    let t = thread::x();
    let mut here = 0;
    if t < 32 {
        here = x[t];
    }
    let (before, _all) = block::scan(here, 0, |a, b| a + b);
    if before <= aim && aim <= before + here {
        y[0] = t as u32;
    }
}

#[kernel(block = 96, grid = 1)]
fn reached_or_not_of_first(x: &[u32], aim: u32, y: &mut [u32]) {
    let t = thread::x();
    let mut here = 0;
    if t < 32 {
        here = x[t];
    }
    let (before, _all) = block::scan(here, 0, |a, b| a + b);
    if before <= aim && aim <= before + here {
        y[0] = t as u32 % 32;
    }
}

#[kernel(block = 96, grid = 1)]
fn reached_of_one(x: &[u32], aim: u32, y: &mut [u32]) {
    let t = thread::x();
    let mut here = 1;
    if t < 32 {
        here = x[t];
    }
    let (before, _all) = block::scan(here, 0, |a, b| a + b);
    if before < aim && aim <= before + here {
        y[0] = t as u32;
    }
}

#[kernel(block = 96, grid = 1)]
fn reached_of_one_of_first(x: &[u32], aim: u32, y: &mut [u32]) {
    let t = thread::x();
    let mut here = 1;
    if t < 32 {
        here = x[t];
    }
    let (before, _all) = block::scan(here, 0, |a, b| a + b);
    if before < aim && aim <= before + here {
        y[0] = t as u32 % 32;
    }
}

#[test]
fn reaching_a_target_implies_a_nonzero_addend() {
    same!(reached, reached_of_first);
    different!(reached_or_not, reached_or_not_of_first);
    different!(reached_of_one, reached_of_one_of_first);
}

#[kernel(block = 64, grid = 1)]
fn from_middle(x: &[f32], y: &mut [f32], z: &mut [u32]) {
    let t = thread::x();
    let sum = warp::sum(x[t]);
    if warp::lane() > 4 {
        y[warp::index()] = sum;
        z[t] = warp::lane() as u32;
    }
}

#[kernel(block = 64, grid = 1)]
fn from_middle_of_another(x: &[f32], y: &mut [f32], z: &mut [u32]) {
    let t = thread::x();
    let sum = warp::sum(x[t]);
    if warp::lane() > 4 {
        y[(t + 32) / 32 % 2] = sum;
        z[t] = warp::lane() as u32;
    }
}

#[test]
fn representative_thread_demands_its_values() {
    different!(from_middle, from_middle_of_another);
}

/// Divides 0 by a number that may be 0.
#[kernel(block = 1, grid = 7)]
fn quotient_of_zero(n: usize, y: &mut [u32]) {
    y[block::x()] = (thread::x() / n) as u32;
}

#[kernel(block = 1, grid = 7)]
fn remainder_of_zero(n: usize, y: &mut [u32]) {
    y[block::x()] = (thread::x() % n) as u32;
}

#[kernel(block = 1, grid = 7)]
fn zero_itself(_n: usize, y: &mut [u32]) {
    y[block::x()] = thread::x() as u32;
}

#[test]
fn zero_divided_by_a_number_that_may_be_zero_is_not_zero() {
    same!(quotient_of_zero, remainder_of_zero);
    different!(quotient_of_zero, zero_itself);
}
