//! Accesses of several elements that cannot be, and atomic operations that sm_61 has not.
use kernel_dsl::prelude::*;

#[kernel(block = 32, grid = 1, instances(N = 4 | 3))]
pub fn three<const N: usize>(x: &[f32], y: &mut [f32]) {
    let v: [f32; N] = x.load(0);
    y.store(0, v);
}

#[kernel(block = 32, grid = 1)]
pub fn pitch(y: &mut [f32]) {
    let tile = Shared::<f32, 2>::with_pitch([32, 32], 33);
    tile.fill(0.0);
    block::sync();
    y.store(0, tile.load::<4>((1, 0)));
}

#[kernel(block = 32, grid = 1)]
pub fn bytes(y: &mut [u8]) {
    y.fetch_add(0, 1);
}

#[kernel(block = 32, grid = 1)]
pub fn floats(y: &mut [f32]) {
    y.fetch_max(0, 1.0);
}

#[kernel(block = 32, grid = 1)]
pub fn read_only(x: View<f32, 1>, y: &mut [f32]) {
    x.fetch_add(0, 1.0);
    y[0] = x[0];
}

#[kernel(block = 32, grid = 1)]
pub fn unknown(x: &[f32], y: &mut [f32]) {
    let v = x.load(0);
    y[0] = 1.0;
}

fn main() {
    println!("{} {}", three::<4>::PTX, pitch::PTX);
}
