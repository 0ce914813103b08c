//! `?` in a kernel, which is rejected once, and only there.
use kernel_dsl::prelude::*;

#[device]
fn half(x: Option<f32>) -> Option<f32> {
    Some(x? * 0.5)
}

#[kernel(block = 64, grid = 1)]
pub fn shifted(y: &mut [f32]) {
    let below = warp::shuffle_up(y[thread::x()], 1)?;
    y[thread::x()] = below;
}

fn main() {
    println!("{:?}", half(None));
}
