//! Advice that fits the place: where it does not, following one message leads to the next.
use kernel_dsl::prelude::*;

#[device]
static TABLE: [f32; 2] = [1.0, 2.0];

#[device]
pub trait Area {
    fn area(&self) -> f32;
}

struct Square(f32);

#[device]
impl Square {
    fn area(&self) -> f32 {
        self.0 * self.0
    }
}

/// Uses an index that is a variable of no loop, so that nothing can be unrolled.
#[kernel(block = 32, grid = 1)]
pub fn stack(y: &mut [u32]) {
    let mut stack = [0u32; 4];
    let mut top = 0;
    while y[top] > 0 {
        stack[top] = y[top];
        top += 1;
    }
    y[0] = stack[0];
}

#[kernel(block = 32, grid = 1)]
pub fn tail(y: &mut [f32]) {
    y[1..].fill(0.0);
}

#[kernel(block = 32, grid = 1)]
pub unsafe fn trusted(y: &mut [f32]) {
    y[0] = 0.0;
}

/// Has one error: the type of the slot follows from the refused call.
#[kernel(block = 32, grid = 1)]
pub fn slot(y: &mut [f32]) {
    if let Some(slot) = y.get_mut(thread::x()) {
        *slot = 1.0;
    }
}

/// Has one error, too.
#[kernel(block = 32, grid = 1)]
pub fn each(y: &mut [f32]) {
    y.iter_mut().for_each(|v| *v += 1.0);
}

/// A missing rank: no trait of the macros is named.
#[kernel(block = 32, grid = 1)]
pub fn rank(x: View<f32>, y: &mut [f32]) {
    y[0] = x[0];
}

fn main() {
    println!("{} {}", TABLE[0], Square(2.0).area());
}
