//! Uninitialized CPU memory, and the operations that initialize it.

use kernel_dsl::prelude::*;
use runtime::interpreter::{Check, Checks};
use runtime::{Device, Error, Result};

/// Computes y ← x.
#[kernel(block = 32, grid = y.len().div_ceil(32))]
#[requires(x.len() == y.len())]
fn copied(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = x[i];
    }
}

#[test]
fn host_writes_initialize() -> Result<()> {
    let device = Device::cpu();
    let (mut x, mut y) = (device.alloc::<f32>(4)?, device.zeros::<f32>(4)?);
    x.as_mut_slice().expect("the host's own memory").fill(1.0);
    copied::launch(&device, &x, &mut y)?;
    assert_eq!(y.download()?, [1.0; 4]);
    Ok(())
}

/// Checks that each CPU device sees the writes of the other one, and reports memory that was never
/// written.
#[test]
fn cpu_devices_share_memory() -> Result<()> {
    let (one, other) = (Device::cpu(), Device::cpu());
    let x = one.upload(&[1.0f32; 4])?;
    let (mut y, mut z) = (one.alloc::<f32>(4)?, one.alloc::<f32>(4)?);
    copied::launch(&other, &x, &mut y)?;
    other.stream()?.copy(&x, &mut z)?;
    for written in [&y, &z] {
        copied::launch(&one, written, &mut one.zeros::<f32>(4)?)?;
    }
    let nothing = one.alloc::<f32>(4)?;
    let error = copied::launch(&other, &nothing, &mut y).expect_err("nothing has written it");
    let Error::Violation(report) = &error else { panic!("{error}") };
    assert_eq!(report.findings[0].check, Check::UninitializedBuffer, "{error}");
    Ok(())
}

/// Computes y ← x, shifted by one element beyond the end.
#[kernel(block = 32, grid = y.len().div_ceil(32))]
#[requires(x.len() == y.len())]
fn shifted(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = x[i + 1];
    }
}

/// Checks that each extent of checks reports what it documents, and that memory which is written
/// without checks is initialized.
#[test]
fn checks_have_an_extent() -> Result<()> {
    let device = Device::cpu();
    let x = device.upload(&[1.0f32, 2.0])?;
    let reported = |checks| {
        device.set_checks(checks);
        let mut y = device.alloc::<f32>(2)?;
        let shifted = shifted::launch(&device, &x, &mut y);
        let nothing = device.alloc::<f32>(2)?;
        let copied = copied::launch(&device, &nothing, &mut y);
        device.set_checks(Checks::All);
        if shifted.is_ok() {
            copied::launch(&device, &y, &mut device.zeros::<f32>(2)?)?;
        }
        Ok::<_, Error>((shifted.is_err(), copied.is_err()))
    };
    assert_eq!(reported(Checks::All)?, (true, true));
    assert_eq!(reported(Checks::Accesses)?, (true, false));
    assert_eq!(reported(Checks::Values)?, (false, false));
    Ok(())
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_memory_copied_to_the_cpu_is_initialized() -> Result<()> {
    let (gpu, cpu) = (Device::cuda(0)?, Device::cpu());
    let x = gpu.upload(&[1.0f32; 4])?;
    let mut y = cpu.alloc::<f32>(4)?;
    cpu.stream()?.copy(&x, &mut y)?;
    copied::launch(&cpu, &y, &mut cpu.zeros::<f32>(4)?)
}
