//! A mistake that rustc accepts and the macro reports.
use kernel_dsl::prelude::*;

#[kernel(block = 256, grid = 1)]
pub fn wide(y: &mut [f32]) {
    let big: usize = 0x1_0000_0000;
    y[big] = 1.0;
}

#[device]
fn wide_too(x: usize) -> usize {
    x + 0x1_0000_0000
}

#[kernel(block = 256, grid = 1)]
pub fn buffers(y: &mut [usize]) {
    y[0] = wide_too(1);
}

fn main() {
    println!("{} {}", wide::PTX, buffers::PTX);
}
