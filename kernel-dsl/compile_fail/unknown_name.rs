//! A variable that does not exist: rustc's own error, once.
use kernel_dsl::prelude::*;

#[kernel(block = 256, grid = y.len().div_ceil(256))]
pub fn twice(y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = 2.0 * z[i];
    }
}

fn main() {
    println!("{}", twice::PTX);
}
