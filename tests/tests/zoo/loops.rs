//! Loops that do not end.

use crate::{Bug, bug, counted, zeros};
use kernel_dsl::prelude::*;
use runtime::testing::Input;

pub const BUGS: &[Bug] = &[
    bug!(no_progress, FuelExhausted, [counted(32), zeros(32)]),
    bug!(search_that_stands, FuelExhausted, [counted(32), zeros(32)]),
    bug!(spin_lock_of_lanes, FuelExhausted, [Input::slice(&[0u32]), zeros(1)]),
    bug!(flag_that_nobody_sets, FuelExhausted, [Input::slice(&[0u32]), zeros(32)]),
    bug!(later_block_awaited, FuelExhausted, [Input::slice(&[0u32]), zeros(2)]),
    bug!(exchange_without_news, FuelExhausted, [counted(64), Input::slice(&[5u32])]),
];

/// the index is not stepped where an element is passed over
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn no_progress<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let (mut i, mut sum) = (0, 0.0);
    while i < x.len() {
        //~^ fuel-exhausted
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

/// a binary search whose interval of two does not shrink
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn search_that_stands<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let key = x[thread::x()] + 0.5;
    let (mut low, mut high) = (0, x.len());
    while low < high {
        //~^ fuel-exhausted
        let middle = (low + high) / 2;
        if x[middle] < key {
            low = if MENDED { middle + 1 } else { middle };
        } else {
            high = middle;
        }
    }
    y[thread::x()] = low as f32;
}

/// lanes of one warp wait for one another's lock
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(lock.len() == 1, y.len() == 1)]
fn spin_lock_of_lanes<const MENDED: bool>(lock: &mut [u32], y: &mut [f32]) {
    if MENDED {
        y.fetch_add(0, 1.0);
    } else {
        while lock.compare_exchange(0, 0, 1) != 0 {} //~ fuel-exhausted
        y.fetch_add(0, 1.0);
        lock.exchange(0, 0);
    }
}

/// a flag is waited for that nobody sets
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(flag.len() == 1, y.len() == 32)]
fn flag_that_nobody_sets<const MENDED: bool>(flag: &mut [u32], y: &mut [f32]) {
    let t = thread::x();
    if MENDED && t == 0 {
        flag.exchange(0, 1);
    }
    while flag.fetch_or(0, 0) == 0 {} //~ fuel-exhausted
    y[t] = 1.0;
}

/// a block waits for one behind it, which need not have begun
#[kernel(block = 1, grid = 2, instances(MENDED = false | true))]
#[requires(done.len() == 1, y.len() == 2)]
fn later_block_awaited<const MENDED: bool>(done: &mut [u32], y: &mut [f32]) {
    let other = if MENDED { 0 } else { 1 };
    if block::x() == other {
        done.exchange(0, 1);
    } else {
        while done.fetch_or(0, 0) == 0 {} //~ fuel-exhausted
    }
    y[block::x()] = 1.0;
}

/// a maximum by compare and exchange that expects its first guess for ever
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, top.len() == 1)]
fn exchange_without_news<const MENDED: bool>(x: &[f32], top: &mut [u32]) {
    let own = x[thread::x()] as u32;
    let mut expected = 0;
    loop {
        //~^ fuel-exhausted
        let old = top.compare_exchange(0, expected, own.max(expected));
        if old == expected {
            break;
        }
        if MENDED {
            expected = old;
        }
    }
}
