//! Tolerances for exact outputs and for inputs, and invalid ones.
use kernel_dsl::prelude::*;

#[kernel(block = 32, grid = 1, tolerance(y(relative = 1e-6)))]
pub fn exact(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = math::exp(x[thread::x()]);
}

#[kernel(block = 32, grid = 1, tolerance(y(relative = 1e-6), z(absolute = 1e-6)))]
pub fn one_of_two(x: &[f32], y: &mut [f32], z: &mut [f32]) {
    y[thread::x()] = fast::exp(x[thread::x()]);
    z[thread::x()] = x[thread::x()];
}

#[kernel(block = 32, grid = 1, tolerance(x(relative = 1e-6), w(absolute = 1)))]
pub fn read_only(x: &[f32], y: &mut [f32]) {
    y[thread::x()] = fast::exp(x[thread::x()]);
}

#[kernel(block = 32, grid = 1, tolerance(y(ulp = 2)))]
pub fn unknown_measure(y: &mut [f32]) {
    y[thread::x()] = fast::rcp(1.0);
}

#[kernel(block = 32, grid = 1, tolerance(y()))]
pub fn nothing_said(y: &mut [f32]) {
    y[thread::x()] = fast::rcp(1.0);
}

#[kernel(block = 32, grid = 1, tolerance(y(relative = "small")))]
pub fn no_number(y: &mut [f32]) {
    y[thread::x()] = fast::rcp(1.0);
}

fn main() {}
