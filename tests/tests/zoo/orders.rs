//! Atomic operations whose order affects the result: no race, and yet a different result in the
//! next launch.

use crate::{Bug, bug, counted};
use kernel_dsl::prelude::*;
use runtime::testing::Input;

pub const BUGS: &[Bug] = &[
    bug!(float_sum_of_blocks, order 2, [numbers(), Input::slice(&[0u32]), Input::slice(&[0f32])]),
    bug!(slots_as_they_come, order 2, [counted(64), Input::slice(&[0u32]), Input::slice(&[0f32; 64])]),
    bug!(last_exchange, order 1, [counted(64), Input::slice(&[0f32])]),
];

/// Returns numbers whose sum depends on the order of the additions.
fn numbers() -> Input {
    Input::slice(&(0..128).map(|i| if i % 3 == 0 { 1.0e7 } else { 0.37 * i as f32 }).collect::<Vec<_>>())
}

/// sums of blocks are added as floats, in the order in which blocks end
#[kernel(block = 32, grid = 4, instances(MENDED = false | true))]
#[requires(x.len() == 128, fixed.len() == 1, y.len() == 1)]
fn float_sum_of_blocks<const MENDED: bool>(x: &[f32], fixed: &mut [u32], y: &mut [f32]) {
    let value = x[grid::index()];
    if MENDED {
        // The sum of integers is the same in any order.
        fixed.fetch_add(0, (value as u32) >> 4);
    } else {
        y.fetch_add(0, value);
    }
}

/// selected elements are packed in the order of an atomic counter
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(x.len() == 64, count.len() == 1, y.len() == 64)]
fn slots_as_they_come<const MENDED: bool>(x: &[f32], count: &mut [u32], y: &mut [f32]) {
    let i = grid::index();
    let slot = count.fetch_add(0, 1) as usize;
    let slot = if MENDED { i } else { slot };
    y[slot] = x[i];
}

/// the last of several atomic exchanges remains
#[kernel(block = 32, grid = 2, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 1)]
fn last_exchange<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if MENDED {
        if i == 63 {
            y[0] = x[i];
        }
    } else {
        y.exchange(0, x[i]);
    }
}
