//! The 32 bits of `usize`: not in buffers, no implicit conversion, no larger constants.
use kernel_dsl::prelude::*;

#[kernel(block = 32, grid = 1)]
pub fn indices(x: &[usize], y: &mut [u32]) {
    y[0] = 1;
}

#[kernel(block = 32, grid = 1)]
pub fn view(v: View<usize, 2>, y: &mut [u32]) {
    y[0] = 1;
}

#[kernel(block = 32, grid = 1)]
pub fn narrowed(n: u64, y: &mut [u32]) {
    let i = n as usize;
    y[i] = 1;
    y[(n & 0xff) as usize] = 1;
}

#[kernel(block = 32, grid = 1)]
pub fn constants(y: &mut [u32]) {
    let n = usize::MAX;
    y[n] = usize::BITS;
    y[0x1_0000_0000] = 1;
}

fn main() {
    println!("{} {} {} {}", indices::PTX, view::PTX, narrowed::PTX, constants::PTX);
}
