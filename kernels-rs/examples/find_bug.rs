//! Bugs found without a GPU: a missing bounds check, and a missing barrier.
//!
//! ```text
//! cargo run --release -p kernels-rs --example find_bug
//! ```
//!
//! On `Device::cpu()` an interpreter checks every access. The interpreter reports races from the
//! happens-before order of accesses, so that one run finds them whatever the order of the threads.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// Doubles y. The last block has more threads than there are elements left.
#[kernel(block = 64, grid = y.len().div_ceil(64))]
pub fn doubles_too_many(y: &mut [f32]) {
    let i = grid::index();
    y[i] *= 2.0;
}

/// Reverses y, 64 elements at most. The barrier between the two accesses to `s` is missing.
#[kernel(block = 64, grid = 1)]
#[requires(y.len() <= 64)]
pub fn reverses_without_a_barrier(y: &mut [u32]) {
    let mut s = Shared::<u32, 1>::new([64]);
    let i = thread::index();
    if i < y.len() {
        s[i] = y[i];
    }
    if i < y.len() {
        y[i] = s[y.len() - 1 - i];
    }
}

/// Reverses y correctly.
#[kernel(block = 64, grid = 1)]
#[requires(y.len() <= 64)]
pub fn reverses(y: &mut [u32]) {
    let mut s = Shared::<u32, 1>::new([64]);
    let i = thread::index();
    if i < y.len() {
        s[i] = y[i];
    }
    block::sync();
    if i < y.len() {
        y[i] = s[y.len() - 1 - i];
    }
}

/// Runs the kernels and prints what the interpreter reports.
pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::cpu();

    let mut y = device.upload(&[1.0f32; 100])?;
    let error = doubles_too_many::launch(&device, &mut y).expect_err("28 threads are out of bounds");
    println!("{error}\n");

    let mut y = device.upload(&Vec::from_iter(0..64u32))?;
    let error = reverses_without_a_barrier::launch(&device, &mut y).expect_err("the warps race");
    println!("{error}\n");

    let mut y = device.upload(&Vec::from_iter(0..64u32))?;
    reverses::launch(&device, &mut y)?;
    assert_eq!(y.download()?, Vec::from_iter((0..64u32).rev()));
    println!("with the barrier: {:?} …", &y.download()?[..4]);
    Ok(())
}
