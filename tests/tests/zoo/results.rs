//! Results of a kernel: values that are not finite or not accurate, and elements that are written
//! never or twice.

use crate::{Bug, bug, counted, zeros};
use kernel_dsl::prelude::*;
use runtime::testing::Input;

pub const BUGS: &[Bug] = &[
    bug!(norm_of_nothing, NanProduced, [zeros(32), zeros(32)]),
    bug!(softmax_of_minus_infinity, NanProduced, [Input::slice(&[f32::NEG_INFINITY; 32]), zeros(32)]),
    bug!(root_of_a_canceled_sum, NanProduced, [Input::slice(&[0.1f32; 32]), zeros(32)]),
    bug!(reciprocal_of_zero, InfinityProduced, [counted(32), zeros(32)]),
    bug!(sum_of_squares, InfinityProduced, [Input::slice(&[3.0e19f32; 32]), zeros(1)]),
    bug!(
        products_as_halves,
        ConversionOverflow,
        [Input::slice(&[300.0f32; 32]), Input::slice(&[f16::from_f32(0.0); 32])]
    ),
    bug!(sum_as_a_half, ConversionOverflow, [Input::slice(&[3000.0f32; 32]), Input::slice(&[f16::from_f32(0.0)])]),
    bug!(double_to_single, ConversionOverflow, [Input::slice(&[1.0e30f64; 32]), zeros(32)]),
    bug!(difference_of_squares, Cancellation, [counted(32), zeros(32)]),
    bug!(variance_in_one_pass, Cancellation, [counted(32), zeros(1)]),
    bug!(step_in_halves, Cancellation, [counted(32), zeros(32)]),
    bug!(
        root_near_zero,
        Cancellation,
        [Input::slice(&(1..33).map(f64::from).collect::<Vec<_>>()), Input::slice(&[0f64; 32])]
    ),
    bug!(last_column_left_out, UnwrittenOutput, [counted(64), zeros(64)]),
    bug!(rest_of_a_division, UnwrittenOutput, [counted(100), zeros(100)]),
    bug!(nothing_for_zero, UnwrittenOutput, [counted(32), zeros(32)]),
    bug!(seam_written_twice, WrittenTwice, [counted(65), zeros(65)]),
    bug!(border_after_all, WrittenTwice, [counted(64), zeros(64)]),
    bug!(clamped_to_the_last, WrittenTwice, [counted(24), zeros(24)]),
];

/// a vector of zeros is divided by its norm
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn norm_of_nothing<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let length = warp::sum(x[i] * x[i]).sqrt();
    let length = if MENDED { length.max(1.0e-12) } else { length };
    y[i] = x[i] / length; //~ nan-produced
}

/// a softmax over a fully masked row: −∞ − (−∞)
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn softmax_of_minus_infinity<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let most = warp::max(x[i]);
    let base = if MENDED && most == f32::NEG_INFINITY { 0.0 } else { most };
    y[i] = x[i] - base; //~ nan-produced
}

/// a variance, mean of squares minus square of the mean, where only the squares are weighted
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn root_of_a_canceled_sum<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (mean, square) = (warp::sum(x[i]) / 32.0, warp::sum(x[i] * x[i] * 0.999) / 32.0);
    let variance = square - mean * mean;
    y[i] = if MENDED { variance.max(0.0).sqrt() } else { variance.sqrt() }; //~ nan-produced
}

/// the reciprocal of the first of 0, 1, 2, …
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn reciprocal_of_zero<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = if MENDED && x[i] == 0.0 { 0.0 } else { 1.0 / x[i] }; //~ infinity-produced
}

/// the square of a finite number overflows
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 1)]
fn sum_of_squares<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let scaled = if MENDED { x[thread::x()] * 1.0e-20 } else { x[thread::x()] };
    let square = scaled * scaled; //~ infinity-produced
    let sum = warp::sum(square);
    if thread::x() == 0 {
        y[0] = sum.sqrt();
    }
}

/// 300 · 300 does not fit in an `f16`
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn products_as_halves<const MENDED: bool>(x: &[f32], y: &mut [f16]) {
    let i = thread::x();
    let product = x[i] * x[i];
    y[i] = f16::from_f32(if MENDED { product.min(65504.0) } else { product }); //~ conversion-overflow
}

/// a bound that is too small by one
#[kernel(block = 64, grid = 1, instances(MENDED = false | true), writes(y = all))]
#[requires(x.len() == 64, y.len() == 64)]
fn last_column_left_out<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let end = if MENDED { y.len() } else { y.len() - 1 };
    if i < end {
        y[i] = x[i]; //~ unwritten-output
    }
}

/// tiles that overlap by one element
#[kernel(block = 64, grid = 1, instances(MENDED = false | true), writes(y = once))]
#[requires(x.len() == 65, y.len() == 65)]
fn seam_written_twice<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = x[i];
    block::sync();
    let first = if MENDED { 64 } else { 63 };
    if i <= 64 - first {
        y[first + i] = x[first + i]; //~ written-twice
    }
}

/// the difference of the squares of two close numbers
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn difference_of_squares<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let (a, b) = (x[i] + 10000.0, x[i] + 10000.0009765625);
    y[i] = if MENDED { (b - a) * (b + a) } else { b * b - a * a }; //~ cancellation
}

/// a variance, mean of squares minus square of the mean, of values far from zero
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 1)]
fn variance_in_one_pass<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let v = x[thread::x()] + 10000.0;
    let mean = warp::sum(v) / 32.0;
    let variance = if MENDED {
        warp::sum((v - mean) * (v - mean)) / 32.0
    } else {
        warp::sum(v * v) / 32.0 - mean * mean //~ cancellation
    };
    if thread::x() == 0 {
        y[0] = variance;
    }
}

/// a small step is added to a large time in 16 bits, and subtracted again
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn step_in_halves<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let step = f16::from_f32(x[i] / 64.0);
    let time = f16::from_f32(1024.0);
    let taken = (time + step) - time; //~ cancellation
    y[i] = if MENDED { step.to_f32() } else { taken.to_f32() };
}

/// the smaller root of x² − 2·10⁸·b·x + 1, in `f64`, by the formula for the larger one
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(b.len() == 32, y.len() == 32)]
fn root_near_zero<const MENDED: bool>(b: &[f64], y: &mut [f64]) {
    let i = thread::x();
    let half = 1.0e8 * b[i];
    let root = half.mul_add(half, -1.0).sqrt();
    y[i] = if MENDED { 1.0 / (half + root) } else { half - root }; //~ cancellation
}

/// the sum of a warp does not fit in 16 bits, where its mean would
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 1)]
fn sum_as_a_half<const MENDED: bool>(x: &[f32], y: &mut [f16]) {
    let sum = warp::sum(x[thread::x()]);
    if thread::x() == 0 {
        y[0] = f16::from_f32(if MENDED { sum / 32.0 } else { sum }); //~ conversion-overflow
    }
}

/// a square that fits in an `f64` and not in an `f32`
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn double_to_single<const MENDED: bool>(x: &[f64], y: &mut [f32]) {
    let i = thread::x();
    let square = x[i] * x[i];
    y[i] = (if MENDED { square.sqrt() } else { square }) as f32; //~ conversion-overflow
}

/// only the full tiles of 64 elements are written, not the remainder
#[kernel(block = 64, grid = 1, instances(MENDED = false | true), writes(y = all))]
#[requires(x.len() == y.len())]
fn rest_of_a_division<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let tiles = if MENDED { y.len().div_ceil(64) } else { y.len() / 64 };
    for tile in 0..tiles {
        let i = 64 * tile + thread::x();
        if i < y.len() {
            y[i] = x[i]; //~ unwritten-output
        }
    }
}

/// no value is stored where the reciprocal does not exist
#[kernel(block = 32, grid = 1, instances(MENDED = false | true), writes(y = all))]
#[requires(x.len() == 32, y.len() == 32)]
fn nothing_for_zero<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    if x[i] != 0.0 {
        y[i] = 1.0 / x[i]; //~ unwritten-output
    } else if MENDED {
        y[i] = 0.0;
    }
}

/// a border is written after the whole array, border included, has been copied
#[kernel(block = 64, grid = 1, instances(MENDED = false | true), writes(y = once))]
#[requires(x.len() == 64, y.len() == 64)]
fn border_after_all<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    if !MENDED || i > 0 {
        y[i] = x[i];
    }
    block::sync();
    if i == 63 {
        y[0] = 0.0; //~ written-twice
    }
}

/// threads beyond the end are clamped and repeat the last element
#[kernel(block = 32, grid = 1, instances(MENDED = false | true), writes(y = once))]
#[requires(x.len() == y.len(), y.len() > 0)]
fn clamped_to_the_last<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let i = t.min(y.len() - 1);
    if !MENDED || t == i {
        y[i] = x[i]; //~ written-twice, equal-stores
    }
}
