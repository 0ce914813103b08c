//! Closures where no closure can be, and mistakes in them.
use kernel_dsl::prelude::*;

#[device]
fn apply(f: impl Fn(f32) -> f32, x: f32) -> f32 {
    f(x)
}

#[device]
fn summed(f: impl Fn(f32) -> f32 + Copy, x: f32) -> f32 {
    let all = [f, f];
    x
}

#[kernel(block = 32, grid = 1)]
pub fn chosen(y: &mut [f32]) {
    let (double, half) = (|x: f32| x + x, |x: f32| x * 0.5);
    let f = if y[0] > 1.0 { double } else { half };
    y[1] = f(y[0]);
}

#[kernel(block = 32, grid = 1)]
pub fn not_exhaustive(n: u32, y: &mut [f32]) {
    y[0] = match n {
        0..=9 => 1.0,
        11.. => 2.0,
    };
}

#[kernel(block = 32, grid = 1)]
pub fn wrong_parameter(y: &mut [f32]) {
    y[0] = apply(|n: usize| n as f32, y[1]);
}

fn main() {
    println!("{} {} {}", chosen::PTX, not_exhaustive::PTX, wrong_parameter::PTX);
}
