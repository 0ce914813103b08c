//! Asynchronous copies on targets without them, and of unsupported types.
use kernel_dsl::prelude::*;

#[kernel(block = 64, grid = 1)]
pub fn on_pascal(x: View<f32, 1>, y: &mut [f32]) {
    let s = Shared::<f32, 1>::new([64]);
    s.cp_async(x);
    pipeline::commit();
    pipeline::wait::<0>();
    block::sync();
    y[0] = s[63];
}

#[kernel(target = sm_80, block = 64, grid = 1)]
pub fn of_halves(x: View<f16, 1>, y: &mut [f32]) {
    let s = Shared::<f16, 1>::new([64]);
    s.cp_async(x);
    pipeline::commit();
    pipeline::wait::<0>();
    block::sync();
    y[0] = s[63].to_f32();
}

#[kernel(target = sm_80, block = 64, grid = 1)]
pub fn without_a_number(y: &mut [f32]) {
    pipeline::wait();
    y[0] = 1.0;
}

fn main() {}
