//! Shuffles, votes and barriers of a warp in which lanes are missing, and invalid selectors of
//! shuffles.

use crate::{Bug, bug, counted, zeros};
use kernel_dsl::prelude::*;
use runtime::testing::Input;

pub const BUGS: &[Bug] = &[
    bug!(sum_in_a_branch, DivergentWarp, [signs(), zeros(32)]),
    bug!(vote_in_a_loop, DivergentWarp, [signs(), zeros(32)]),
    bug!(barrier_in_a_branch, DivergentWarp, [signs(), zeros(32)]),
    bug!(ballot_in_a_condition, DivergentWarp, [signs(), zeros(32)]),
    bug!(lanes_that_left, DivergentWarp, [signs(), zeros(32)]),
    bug!(match_by_some, DivergentWarp, [signs(), Input::slice(&[0u32; 32])]),
    bug!(lanes_that_returned, ShuffleInactive, [signs(), zeros(32)]),
    bug!(from_a_lane_outside, ShuffleInactive, [signs(), zeros(32)]),
    bug!(next_of_the_absent, UndefinedValue, [signs(), zeros(32)]),
    bug!(place_from_the_absent, UndefinedValue, [signs(), zeros(64)]),
    bug!(mask_of_a_warp, ShuffleSelector, [Input::scalar(32usize), counted(32), zeros(32)]),
    bug!(mask_of_a_group, ShuffleSelector, [Input::scalar(8usize), counted(32), zeros(32)]),
];

/// Returns 1 and −1 alternately.
fn signs() -> Input {
    Input::slice(&[1f32, -1.0].repeat(16))
}

/// a warp sum in a branch that only some lanes take
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn sum_in_a_branch<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let own = x[thread::x()];
    if MENDED {
        let all = warp::sum(own.max(0.0));
        y[thread::x()] = if own > 0.0 { all } else { 0.0 };
    } else if own > 0.0 {
        y[thread::x()] = warp::sum(own); //~ divergent-warp, shuffle-inactive, undefined-value
    }
}

/// lanes vote whether to continue, and lanes that have left the loop do not
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn vote_in_a_loop<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let mut left = if x[thread::x()] > 0.0 { 3 } else { 1 };
    let mut turns = 0.0;
    while if MENDED { warp::any(left > 0) } else { left > 0 } {
        left -= 1;
        turns += 1.0;
        if warp::all(left <= 0) {
            //~^ divergent-warp, undefined-value
            break;
        }
    }
    y[thread::x()] = turns;
}

/// a warp barrier in a branch
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn barrier_in_a_branch<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([32]);
    if x[t] > 0.0 {
        tile[t] = x[t];
        if !MENDED {
            warp::sync(); //~ divergent-warp
        }
    }
    if MENDED {
        warp::sync();
    }
    y[t] = if x[t] > 0.0 { tile[t] } else { 0.0 };
}

/// the second operand of `&&` is a vote, which lanes with a false first operand skip
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn ballot_in_a_condition<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let own = x[thread::x()];
    let many = if MENDED {
        let votes = warp::ballot(own > 0.0);
        own > 0.0 && votes.count_ones() > 4
    } else {
        own > 0.0 && warp::ballot(own > 0.0).count_ones() > 4 //~ divergent-warp
    };
    y[thread::x()] = if many { 1.0 } else { 0.0 }; //~ undefined-value
}

/// lanes leave a loop by `break`, and the others continue to shuffle
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn lanes_that_left<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let own = x[thread::x()];
    let mut sum = 0.0;
    for k in 0..2 {
        if !MENDED && own < 0.0 {
            break;
        }
        sum += warp::shuffle(own, 2 * k); //~ divergent-warp
    }
    y[thread::x()] = sum;
}

/// `match_any` in a branch that only some lanes take
#[kernel(target = sm_70, block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn match_by_some<const MENDED: bool>(x: &[f32], y: &mut [u32]) {
    let own = x[thread::x()];
    let mut like = 0;
    if MENDED || own > 0.0 {
        like = warp::match_any(own.to_bits()); //~ divergent-warp
    }
    y[thread::x()] = like; //~ undefined-value
}

/// a shuffle reads from lanes that have returned
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn lanes_that_returned<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let own = x[thread::x()];
    if !MENDED && own < 0.0 {
        return;
    }
    y[thread::x()] = warp::shuffle_xor(own, 1); //~ shuffle-inactive, undefined-value
}

/// a broadcast from an inactive lane
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn from_a_lane_outside<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let own = x[thread::x()];
    let mut first = 0.0;
    if MENDED {
        first = warp::broadcast(own, 1);
    } else if own > 0.0 {
        first = warp::broadcast(own, 1); //~ shuffle-inactive, divergent-warp
    }
    y[thread::x()] = first; //~ undefined-value
}

/// the undefined result of a shuffle from an inactive lane reaches a store via shared memory
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn next_of_the_absent<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([32]);
    let own = x[t];
    let mut next = 0.0;
    if MENDED {
        next = warp::shuffle_xor(own, 1);
    } else if own > 0.0 {
        next = warp::shuffle_xor(own, 1); //~ shuffle-inactive, divergent-warp
    }
    tile[t] = own + next / 2.0;
    warp::sync();
    y[t] = tile[31 - t]; //~ undefined-value
}

/// the index of a store comes from an inactive lane
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 64)]
fn place_from_the_absent<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let own = x[t];
    if MENDED {
        let first = warp::broadcast(t, 1);
        y[first + t] = own;
    } else if own > 0.0 {
        let first = warp::broadcast(t, 1); //~ shuffle-inactive, divergent-warp
        y[first + t] = own; //~ undefined-value
    }
}

/// a shuffle mask equal to the warp size
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn mask_of_a_warp<const MENDED: bool>(mask: usize, x: &[f32], y: &mut [f32]) {
    let mask = if MENDED { mask / 2 } else { mask };
    y[thread::x()] = warp::shuffle_xor(x[thread::x()], mask); //~ shuffle-selector
}

/// a shuffle mask that leaves its group of eight lanes
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn mask_of_a_group<const MENDED: bool>(mask: usize, x: &[f32], y: &mut [f32]) {
    let mask = if MENDED { mask / 2 } else { mask };
    y[thread::x()] = warp::group::<8>().shuffle_xor(x[thread::x()], mask); //~ shuffle-selector
}
