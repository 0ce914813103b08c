//! The PTX of an instance that the kernel does not declare: rustc lists the declared ones.
use kernel_dsl::prelude::*;

#[kernel(block = T, grid = 1, instances(T = 16 | 32))]
pub fn fill<const T: usize>(y: &mut [f32]) {
    y[thread::x()] = 1.0;
}

fn main() {
    println!("{}", fill::<17>::PTX);
}
