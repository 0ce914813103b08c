//! Loops that do not end.

use crate::{Bug, bug, counted, zeros};
use kernel_dsl::prelude::*;
use runtime::testing::Input;

pub const BUGS: &[Bug] = &[
    bug!(no_progress, Livelock, [counted(32), zeros(32)]),
    bug!(search_that_stands, Livelock, [counted(32), zeros(32)]),
    bug!(spin_lock_of_lanes, Livelock, [Input::slice(&[0u32]), zeros(1)]),
    bug!(flag_never_set, Livelock, [Input::slice(&[0u32]), zeros(32)]),
    bug!(later_block_awaited, Livelock, [Input::slice(&[0u32]), zeros(32)]),
    bug!(exchange_without_news, Livelock, [counted(64), Input::slice(&[5u32])]),
    bug!(handshake_the_wrong_way_round, Livelock, [Input::slice(&[0u32; 2]), zeros(64)]),
    bug!(wait_before_the_barrier, Livelock, [Input::slice(&[0u32]), zeros(64)]),
    bug!(rounds_of_a_block, Livelock, [Input::slice(&[1u32]), zeros(64)]),
    bug!(turn_of_the_last, Livelock, [Input::slice(&[0u32]), zeros(32)]),
    bug!(steps_to_a_sum, FuelExhausted, [Input::scalar(0.1f32), zeros(32)]),
    bug!(even_numbers_to_an_odd_one, FuelExhausted, [Input::slice(&[1u32]), Input::slice(&[0u32; 32])]),
];

/// the index is not incremented where an element is skipped
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn no_progress<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let (mut i, mut sum) = (0, 0.0);
    while i < x.len() {
        //~^ livelock
        if x[i] == 7.0 {
            if MENDED {
                i += 1;
            }
            continue;
        }
        sum += x[i];
        i += 1;
    }
    y[thread::x()] = sum;
}

/// a binary search whose interval of two elements does not shrink
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn search_that_stands<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let key = x[thread::x()] + 0.5;
    let (mut low, mut high) = (0, x.len());
    while low < high {
        //~^ livelock
        let middle = (low + high) / 2;
        if x[middle] < key {
            low = if MENDED { middle + 1 } else { middle };
        } else {
            high = middle;
        }
    }
    y[thread::x()] = low as f32;
}

/// lanes of one warp wait for a lock that another lane of the warp holds
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(lock.len() == 1, y.len() == 1)]
fn spin_lock_of_lanes<const MENDED: bool>(lock: &mut [u32], y: &mut [f32]) {
    if MENDED {
        y.fetch_add(0, 1.0);
    } else {
        while lock.compare_exchange(0, 0, 1) != 0 {} //~ livelock
        y.fetch_add(0, 1.0);
        lock.exchange(0, 0);
    }
}

/// a wait for a flag that no thread sets
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(flag.len() == 1, y.len() == 32)]
fn flag_never_set<const MENDED: bool>(flag: &mut [u32], y: &mut [f32]) {
    let t = thread::x();
    if MENDED && t == 0 {
        flag.exchange(0, 1);
    }
    while flag.fetch_or(0, 0) == 0 {} //~ livelock
    y[t] = 1.0;
}

/// a block waits for a later block, which may not have started
#[kernel(block = 1, grid = 32, instances(MENDED = false | true))]
#[requires(done.len() == 1, y.len() == 32)]
fn later_block_awaited<const MENDED: bool>(done: &mut [u32], y: &mut [f32]) {
    let other = if MENDED { 0 } else { 1 };
    if block::x() == other {
        done.exchange(0, 1);
    } else {
        while done.fetch_or(0, 0) == 0 {} //~ livelock
    }
    y[block::x()] = 1.0;
}

/// a compare-and-exchange loop never updates its expected value
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, top.len() == 1)]
fn exchange_without_news<const MENDED: bool>(x: &[f32], top: &mut [u32]) {
    let own = x[thread::x()] as u32;
    let mut expected = 0;
    loop {
        //~^ livelock
        let old = top.compare_exchange(0, expected, own.max(expected));
        if old == expected {
            break;
        }
        if MENDED {
            expected = old;
        }
    }
}

/// two warps each wait for the other's flag before they set their own
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(flags.len() == 2, y.len() == 64)]
fn handshake_the_wrong_way_round<const MENDED: bool>(flags: &mut [u32], y: &mut [f32]) {
    let t = thread::x();
    let (own, other) = (t / 32, 1 - t / 32);
    if MENDED {
        flags.fetch_or(own, 1);
    }
    while flags.fetch_or(other, 0) == 0 {} //~ livelock
    flags.fetch_or(own, 1);
    y[t] = 1.0;
}

/// a warp waits for a store after a barrier that it has not reached itself
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(ready.len() == 1, y.len() == 64)]
fn wait_before_the_barrier<const MENDED: bool>(ready: &mut [u32], y: &mut [f32]) {
    let t = thread::x();
    if MENDED && t == 32 {
        ready.exchange(0, 1);
    }
    if t < 32 {
        while ready.fetch_or(0, 0) == 0 {} //~ livelock
    }
    block::sync();
    if !MENDED && t == 32 {
        ready.exchange(0, 1);
    }
    y[t] = 1.0;
}

/// a block loops until no work is left, and never takes any
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(left.len() == 1, y.len() == 64)]
fn rounds_of_a_block<const MENDED: bool>(left: &mut [u32], y: &mut [f32]) {
    let mut n = Shared::<u32, 1>::new([1]);
    loop {
        block::sync(); //~ livelock
        if thread::x() == 0 {
            n[0] = if MENDED { left.exchange(0, 0) } else { left.fetch_or(0, 0) };
        }
        block::sync();
        if n[0] == 0 {
            break;
        }
    }
    y[thread::x()] = 1.0;
}

/// blocks run in turn by index, beginning with the last
#[kernel(block = 1, grid = 32, instances(MENDED = false | true))]
#[requires(turn.len() == 1, y.len() == 32)]
fn turn_of_the_last<const MENDED: bool>(turn: &mut [u32], y: &mut [f32]) {
    let own = if MENDED { block::x() } else { 31 - block::x() };
    while turn.fetch_or(0, 0) != own as u32 {} //~ livelock
    y[own] = own as f32;
    turn.fetch_add(0, 1);
}

/// steps of 0.1 never add up to exactly 1
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(y.len() == 32)]
fn steps_to_a_sum<const MENDED: bool>(step: f32, y: &mut [f32]) {
    let (mut at, mut steps) = (0.0, 0.0);
    while if MENDED { at < 1.0 } else { at != 1.0 } {
        //~^ fuel-exhausted
        at += step;
        steps += 1.0;
    }
    y[thread::x()] = steps;
}

/// even numbers modulo 2³² are counted up to an odd one
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(end.len() == 1, y.len() == 32)]
fn even_numbers_to_an_odd_one<const MENDED: bool>(end: &[u32], y: &mut [u32]) {
    let mut k = 0u32;
    while if MENDED { k < end[0] } else { k != end[0] } {
        //~^ fuel-exhausted
        k = k.wrapping_add(2);
    }
    y[thread::x()] = k;
}
