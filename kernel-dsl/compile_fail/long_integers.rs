//! Uses of `u128` and `i128` that the device does not support.
use kernel_dsl::prelude::*;

#[device]
fn signed(a: i64) -> i128 {
    0
}

#[kernel(block = 32, grid = 1, instances(N = 0xffff_ffff_ffff_ffff_ffff_ffff_ffff_ffff))]
fn constant<const N: u128>(x: &mut [u128]) {}

#[kernel(block = 32, grid = 1)]
pub fn atomics(x: &mut [u128]) {
    x.fetch_add(0, 1);
}

#[kernel(block = 32, grid = 1)]
pub fn negative(x: &mut [u128]) {
    x[0] = -x[0];
}

#[kernel(block = 32, grid = 1)]
pub fn distance(x: &mut [u128]) {
    x[0] = x[0] << 128;
}

#[kernel(block = 32, grid = 1)]
pub fn too_long(x: &mut [u64]) {
    x[0] = 0x1_0000_0000_0000_0000;
}

#[kernel(block = 32, grid = 1)]
pub fn index(x: &mut [u32], n: u128) {
    x[n as usize] = 1;
}

#[kernel(block = 32, grid = 1)]
pub fn counted(x: &mut [u32], n: u128) {
    for i in 0..n {
        x[0] = i as u32;
    }
}

#[kernel(block = 32, grid = 1)]
pub fn of_lanes(x: &mut [u128]) {
    x[0] = warp::sum(x[thread::x()]);
}

#[kernel(block = 32, grid = 1)]
pub fn upper_half(x: &mut [u128]) {
    x[0] = int::mul_hi(x[0], 3);
}

#[kernel(block = 32, grid = 1)]
#[requires(n > 4)]
pub fn condition(x: &mut [u32], n: u128) {
    x[0] = n as u32;
}

#[kernel(block = 32, grid = 1)]
pub fn inline(x: &mut [u128]) {
    x[0] = ptx!("mov.b64 {d}, {a};", a = in(u128) x[0], d = out(u128));
}

fn main() {}
