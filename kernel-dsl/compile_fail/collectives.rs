//! Invalid exchanges between lanes, closures of the wrong type, and a shift of a `usize` by 32.
use kernel_dsl::prelude::*;

#[kernel(block = 64, grid = 1)]
pub fn traded(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = warp::sum((x[i], 1.0)).0;
    let v = warp::reduce(x, |a, _| a);
    y[i] = block::reduce(x[i], |a| a);
    let (before, total) = block::scan(x[i], |a, b| a + b);
}

#[kernel(block = 64, grid = 1)]
pub fn shifted(x: &[f32], y: &mut [f32]) {
    let i = thread::x() << 32;
    y[i] = x[i];
}

#[kernel(block = 64, grid = 1)]
pub fn shared_out(n: usize, x: &[f32], y: &mut [f32]) {
    let mut seen = [0.0; 4];
    for (s, [r, c]) in block::share([n, 8]).enumerate() {
        seen[s] = x[r * 8 + c];
    }
    for [i] in unroll(block::share([n])) {
        y[i] = seen[0];
    }
}

#[kernel(block = 64, grid = 1)]
pub fn from_nobody(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = block::broadcast(x[i], 64);
    y[i] += warp::broadcast(x[i], 32);
    y[i] += warp::group::<8>().shuffle(x[i], 8);
}

fn main() {
    println!("{} {} {} {}", traded::PTX, shifted::PTX, shared_out::PTX, from_nobody::PTX);
}
