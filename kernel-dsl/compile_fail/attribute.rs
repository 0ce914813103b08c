//! Attributes that are unknown, repeated, or do not belong on a kernel.
use kernel_dsl::prelude::*;

#[kernel(blok = 256, grid = 1)]
pub fn misspelt(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel]
pub fn empty(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(block = 256, grid = 1, instances(N = 4))]
pub fn no_such_constant(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(block = 256, grid = 1)]
#[inline]
pub fn inlined(y: &mut [f32]) {
    y[0] = 1.0;
}

#[device(fast)]
fn fast(x: f32) -> f32 {
    x
}

#[kernel(block = 1, grid = 1)]
struct NotAFunction;

fn main() {
    println!("{} {} {} {}", misspelt::PTX, empty::PTX, no_such_constant::PTX, inlined::PTX);
    println!("{}", fast(1.0));
    let _ = NotAFunction;
}
