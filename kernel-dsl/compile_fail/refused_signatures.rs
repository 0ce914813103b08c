use kernel_dsl::prelude::*;

#[kernel(block = 32, grid = 1)]
pub fn slice_by_value(y: [f32]) {
    y[grid::index()] = 1.0;
}

#[kernel(block = 32, grid = 1)]
pub fn named_lifetime<'a>(x: &'a [f32], y: &'a mut [f32]) {
    y[grid::index()] = x[grid::index()];
}

#[kernel(block = 32, grid = 1)]
pub const fn constant(y: &mut [f32]) {
    y[grid::index()] = 1.0;
}

#[kernel(block = 32, grid = 1)]
pub fn closure(f: impl Fn(f32) -> f32, y: &mut [f32]) {
    y[grid::index()] = f(1.0);
}

#[kernel(block = 32, grid = 1, requires(x.len() == y.len()))]
pub fn condition_as_clause(x: &[f32], y: &mut [f32]) {
    y[grid::index()] = x[grid::index()];
}

#[kernel(block = 32, grid = 1)]
pub fn part_of_a_slice(x: &[f32], y: &mut [f32]) {
    let part = &x[1..3];
    y[grid::index()] = part[0];
}

fn main() {}
