//! Signatures that a kernel or device function cannot have.
use kernel_dsl::prelude::*;

#[kernel(block = 1, grid = 1)]
pub async fn later(y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(block = 1, grid = 1)]
pub fn any<T: Copy>(x: T, y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(block = 1, grid = 1)]
pub fn opaque(x: impl Copy, y: &mut [f32]) {
    y[0] = 1.0;
}

#[kernel(block = 1, grid = 1)]
pub fn gives(y: &mut [f32]) -> f32 {
    y[0]
}

#[kernel(block = 1, grid = 1)]
pub extern "C" fn foreign((a, b): (f32, f32), y: &mut [f32]) {
    y[0] = a + b;
}

pub struct Owner;

impl Owner {
    #[device]
    pub fn method(&self, x: f32) -> f32 {
        x
    }
}

#[device]
fn line(x: f32) -> f32 {
    x
}

#[device]
fn factorial(n: u32) -> u32 {
    if n == 0 { 1 } else { n * factorial(n - 1) }
}

fn main() {}
