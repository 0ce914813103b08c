//! Checks of the oracle that are allowed without a reason, by an unknown name, or where there is no
//! statement; and outputs without known values.
use kernel_dsl::prelude::*;

#[kernel(block = 32, grid = 1)]
pub fn without_a_reason(y: &mut [f32]) {
    #[allow(global_race)]
    y[0] = 1.0;
}

#[kernel(block = 32, grid = 1)]
pub fn no_check(y: &mut [f32]) {
    #[allow(global_rase, reason = "all store the same")]
    y[0] = 1.0;
}

#[kernel(block = 32, grid = 1)]
pub fn no_statement(x: &[f32], y: &mut [f32]) {
    match x.len() {
        #[allow(race, reason = "all store the same")]
        0 => y[0] = 1.0,
        _ => y[0] = 2.0,
    }
}

#[kernel(block = 32, grid = 1, writes(x = all, z = once))]
pub fn not_written(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = x[thread::x()];
}

#[kernel(block = 32, grid = 1, writes(y = twice))]
pub fn no_word(y: &mut [f32]) {
    y[thread::x()] = 1.0;
}

/// Allows lints of rustc, which rustc reads.
#[kernel(block = 32, grid = 1)]
pub fn of_rustc(y: &mut [f32]) {
    #[allow(unused_variables)]
    let i = 1;
    y[thread::x()] = 1.0;
}

fn main() {}
