//! Mistakes of several kinds in several items: each is reported at its location, once.
use kernel_dsl::prelude::*;

#[device]
fn scaled(x: f32) -> f32 {
    x * scale
}

#[device]
fn shifted(x: f32, by: &mut f32) -> f32 {
    by = 1.0;
    x + *by
}

#[kernel(block = 32, grid = 1)]
pub fn first(a: f32, y: &mut [f32]) {
    let i = thread::x();
    let mut by = 2.0;
    y[i] = scaled(a) + shifted(a, by);
    y[j] = a;
}

#[kernel(block = 32, grid = n)]
pub fn second(n: usize, y: &mut [f32]) {
    let total = 0;
    total += n;
    y[total] = n + 1.0;
}

#[kernel(block = 32, grid = 1)]
pub fn third(n: usize, y: &mut [f32]) {
    let v: Vec<f32> = Vec::new();
    y[0] = v.len();
}

fn main() {
    println!("{} {} {}", first::PTX, second::PTX, third::PTX);
}
