#![doc = include_str!(concat!(env!("OUT_DIR"), "/01_first_kernel.md"))]

use kernel_dsl::prelude::*;
use runtime::Device;

/// Multiplies each element of x by 3.
#[kernel(block = 256, grid = x.len().div_ceil(256))]
pub fn triple(x: &mut [f32]) {
    let i = grid::index();
    if i < x.len() {
        x[i] = 3.0 * x[i];
    }
}

/// Triples five numbers on the CPU.
pub fn first() -> runtime::Result<()> {
    let device = Device::cpu();
    let mut x = device.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0])?;
    triple::launch(&device, &mut x)?;
    println!("{:?}", x.download()?);
    Ok(())
}

/// Multiplies each element of x by 3, but has no guard.
#[kernel(block = 256, grid = x.len().div_ceil(256))]
pub fn triple_unguarded(x: &mut [f32]) {
    let i = grid::index();
    x[i] = 3.0 * x[i];
}

/// Launches the kernel without a guard, and prints the error.
pub fn unguarded() -> runtime::Result<()> {
    let device = Device::cpu();
    let mut x = device.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0])?;
    if let Err(error) = triple_unguarded::launch(&device, &mut x) {
        println!("{error}");
    }
    Ok(())
}
