//! Rust that has no meaning on the device: all mistakes are reported at once, each at its token.
use kernel_dsl::prelude::*;

#[kernel(block = 256, grid = y.len().div_ceil(256))]
pub fn k(y: &mut [f32]) {
    let i = grid::index();
    let double = move |x: f32| x + x;
    let z = match i {
        0 => 1.0,
        n if n > 4 => 2.0,
        _ => 3.0,
    };
    let name = "k";
    println!("{name}");
    y[i] = double(z);
}

fn main() {
    println!("{}", k::PTX);
}
