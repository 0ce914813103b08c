//! Control flow and indices that depend on an approximate instruction of the hardware.
//!
//! A GPU may decide differently from the interpreter, and the results then differ by more than any
//! tolerance.

use crate::{Bug, bug, counted, zeros};
use kernel_dsl::prelude::*;
use runtime::testing::Input;

pub const BUGS: &[Bug] = &[
    bug!(threshold_of_an_approximation, decides Branch, [counted(32), zeros(32)]),
    bug!(loop_until_it_is_small, decides Branch, [counted(32), zeros(32)]),
    bug!(bin_of_a_logarithm, decides Index, [Input::slice(&[8.0f32; 32]), Input::slice(&[0u32; 16])]),
    bug!(levels_by_a_reciprocal, decides Integer, [counted(32), Input::slice(&[0u32; 32])]),
];

/// a branch on a probability that an approximation computes
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn threshold_of_an_approximation<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let p = if MENDED { math::exp(-x[i]) } else { fast::exp(-x[i]) };
    if p > 0.5 {
        //~^ approximate-branch
        y[i] = x[i];
    }
}

/// a loop runs until an approximated value is small
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn loop_until_it_is_small<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let mut rest = x[i] + 1.0;
    let mut rounds = 0.0;
    while rest > 0.001 {
        //~^ approximate-branch
        rest = if MENDED { rest * 0.5 } else { fast::div(rest, 2.0) };
        rounds += 1.0;
    }
    y[i] = rounds;
}

/// a histogram whose bins are approximated logarithms
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, bins.len() == 16)]
fn bin_of_a_logarithm<const MENDED: bool>(x: &[f32], bins: &mut [u32]) {
    let x = x[thread::x()];
    let bin = if MENDED {
        ((x.to_bits() >> 23) as usize).saturating_sub(127)
    } else {
        fast::log2(x) as usize //~ approximate-integer
    };
    bins.fetch_add(bin.min(15), 1); //~ approximate-index
}

/// a quantizer truncates an approximated quotient to an integer
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn levels_by_a_reciprocal<const MENDED: bool>(x: &[f32], y: &mut [u32]) {
    let i = thread::x();
    let quotient = if MENDED { x[i] / 3.0 } else { x[i] * fast::rcp(3.0) };
    let level = quotient as u32; //~ approximate-integer
    y[i] = level; //~ approximate-integer
}
