//! Constants that cannot be tables.

use kernel_dsl::prelude::*;

#[device(shared)]
const SHARED: [f32; 4] = [1.0; 4];

#[device(constant)]
const LARGE: [f32; 12_000] = [1.0; 12_000];

#[device(constant)]
const LARGER: [[f32; 4]; 2_000] = [[1.0; 4]; 2_000];

#[device]
const LARGEST: [u8; 70_000] = [1; 70_000];

#[device]
const WIDE: [usize; 2] = [2_000_000_000 * 3, 1];

#[device]
const SMALL: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

#[kernel(block = 32, grid = 1)]
fn two_large_ones(y: &mut [f32]) {
    let i = thread::x();
    y[i] = LARGE[i] + LARGER[i][i % 4];
}

#[kernel(block = 32, grid = 1)]
fn the_largest(y: &mut [u8]) {
    let i = thread::x();
    y[i] = LARGEST[i];
}

#[kernel(block = 32, grid = 1)]
fn a_wide_one(y: &mut [u32]) {
    let i = thread::x();
    y[i] = WIDE[i % 2] as u32;
}

#[kernel(block = 32, grid = 1)]
fn written(y: &mut [f32]) {
    let i = thread::x();
    SMALL[i % 4] = 1.0;
    y[i] = SMALL[0];
}

#[kernel(block = 32, grid = 1)]
fn a_variable_of_it(y: &mut [f32]) {
    let i = thread::x();
    let small = SMALL;
    y[i] = small[i % 4];
}

mod placed {
    #[kernel_dsl::device]
    pub mod items {
        #[device(somewhere)]
        pub const TABLE: [f32; 4] = [1.0; 4];
    }
}

fn main() {}
