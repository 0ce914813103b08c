//! The zoo's kernels that read uninitialized variables, with their corrected versions.
use kernel_dsl::prelude::*;

/// a variable is set in one of two branches
#[kernel(block = 64, grid = 1)]
#[requires(x.len() == 64, y.len() == 64)]
pub fn value_of_one_branch(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let value: f32;
    if x[i] > 0.0 {
        value = x[i];
    }
    y[i] = value; //~ uninitialized-local
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() == 64, y.len() == 64)]
pub fn value_of_one_branch_mended(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    let value: f32;
    if x[i] > 0.0 {
        value = x[i];
    } else {
        value = 0.0;
    }
    y[i] = value;
}

/// a sum starts from an uninitialized variable
#[kernel(block = 64, grid = 1)]
#[requires(y.len() == 64)]
pub fn sum_from_nothing(x: &[f32], y: &mut [f32]) {
    let mut sum: f32;
    for i in 0..x.len() {
        sum += x[i];
    }
    y[thread::x()] = sum; //~ uninitialized-local
}

#[kernel(block = 64, grid = 1)]
#[requires(y.len() == 64)]
pub fn sum_from_nothing_mended(x: &[f32], y: &mut [f32]) {
    let mut sum: f32 = 0.0;
    for i in 0..x.len() {
        sum += x[i];
    }
    y[thread::x()] = sum;
}

fn main() {
    println!("{}{}", value_of_one_branch_mended::PTX, sum_from_nothing_mended::PTX);
}
