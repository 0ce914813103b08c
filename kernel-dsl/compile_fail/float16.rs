//! Custom 16-bit floats with invalid parameters, and their unsupported operations.
use kernel_dsl::prelude::*;

#[kernel(block = 64, grid = 1)]
pub fn no_exponent(x: &[Float16<1, 0>], y: &mut [f32]) {
    y[thread::x()] = x[thread::x()].to_f32();
}

#[kernel(block = 64, grid = 1)]
pub fn no_mantissa(x: &[u16], y: &mut [f32]) {
    y[thread::x()] = Float16::<11, 15>::from_bits(x[thread::x()]).to_f32();
}

#[kernel(block = 64, grid = 1)]
pub fn sum(x: &[Float16<4, 7>], y: &mut [Float16<4, 7>]) {
    y[thread::x()] = x[thread::x()] + x[thread::x() + 1];
}

#[kernel(block = 64, grid = 1)]
pub fn other(x: &[Float16<4, 7>], y: &mut [Float16<5, 15>]) {
    y[thread::x()] = x[thread::x()];
}

fn main() {}
