//! Integer instructions with invalid operands.
use kernel_dsl::prelude::*;

#[kernel(block = 32, grid = 1)]
pub fn narrow(x: &[u16], y: &mut [u16]) {
    y[thread::x()] = int::mul_hi(x[thread::x()], 3);
}

#[kernel(block = 32, grid = 1)]
pub fn wide(x: &[u64], y: &mut [u64]) {
    y[thread::x()] = int::mul24(x[thread::x()], 3);
}

#[kernel(block = 32, grid = 1)]
pub fn three_bytes(x: &[i32], y: &mut [i32]) {
    y[thread::x()] = dp4a([1i8, 2, 3], x[thread::x()], 0);
}

#[kernel(block = 32, grid = 1)]
pub fn sum_of_another_sign(x: &[i32], y: &mut [u32]) {
    y[thread::x()] = dp4a(x[thread::x()], x[thread::x()], 0u32);
}

#[kernel(block = 32, grid = 1)]
pub fn floats(x: &[f32], y: &mut [f64]) {
    y[thread::x()] = fast::exp(y[thread::x()]);
}

#[kernel(block = 32, grid = 1)]
pub fn signed_sum(x: &[i32], y: &mut [i32]) {
    let (sum, _) = int::carrying_add(x[thread::x()], 3, false);
    y[thread::x()] = sum;
}

fn main() {}
