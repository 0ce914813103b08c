//! A constant assertion that one of the declared instances does not meet.
use kernel_dsl::prelude::*;

#[kernel(block = T, grid = 1, instances(T = 32 | 40))]
pub fn fill<const T: usize>(y: &mut [f32]) {
    const { assert!(T % 32 == 0, "T is whole warps") }
    y[thread::x()] = 1.0;
}

fn main() {
    println!("{}", fill::<32>::PTX);
}
